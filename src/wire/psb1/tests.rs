//! The format's examples, its faults, and what holds for any bytes.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn in_pieces(bytes: &[u8], cuts: &[usize]) -> (Vec<Item>, Vec<u8>) {
    let mut decoder = Decoder::default();
    let mut items = Vec::new();
    let mut rest = bytes;
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*cut).min(rest.len()));
        decoder.push(now, |item| items.push(item));
        rest = later;
    }
    (items, decoder.buffered().to_vec())
}

fn heard(bytes: &[u8]) -> Vec<Item> {
    in_pieces(bytes, &[usize::MAX]).0
}

fn message(line: &str) -> Message {
    let items = heard(line.as_bytes());
    match <[Item; 1]>::try_from(items) {
        Ok([Item::Message(message)]) => message,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> SkipReason {
    let items = heard(line.as_bytes());
    match items[..] {
        [Item::Skipped(Skipped { bytes, reason })] if bytes as usize == line.len() => reason,
        _ => panic!("{line}: {items:?}"),
    }
}

/// A body with its check.
fn checked(body: &str) -> String {
    let mut line = Vec::new();
    frame(body, &mut line);
    String::from_utf8(line).unwrap()
}

const START: u64 = 0xffff_0000_0000_ffff;

/// The examples of the sheet of boards, 3.2.
#[test]
fn the_examples_of_the_format() {
    let scan = |seq, ms, occupied| Message::Scan {
        seq,
        ms,
        squares: Squares {
            occupied,
            white: None,
        },
    };
    let change = |square, occupied| Change { square, occupied };
    let table = [
        (
            "$H,1,esp32-demo,fw0.3,L*40\n",
            Message::Hello(Hello {
                id: "esp32-demo".parse().unwrap(),
                firmware: Text::word("fw0.3"),
                can: Letters::new("L"),
            }),
        ),
        ("$S,00,00000000,FFFF00000000FFFF*7F\n", scan(0, 0, START)),
        (
            "$S,07,0001A2F3,FFFF00000000EFFF*7C\n",
            scan(7, 0x1a2f3, START & !(1 << 12)),
        ),
        (
            "$S,08,0001A4D2,FFFF00001000EFFF*77\n",
            scan(8, 0x1a4d2, START & !(1 << 12) | 1 << 28),
        ),
        (
            "$D,09,0001A9C0,-e7*14\n",
            Message::Delta {
                seq: 9,
                ms: 0x1a9c0,
                changes: vec![change(52, false)],
            },
        ),
        (
            "$D,0A,0001AB10,-d1+d4*19\n",
            Message::Delta {
                seq: 10,
                ms: 0x1ab10,
                changes: vec![change(3, false), change(27, true)],
            },
        ),
        (
            "$B,87,3920*45\n",
            Message::Battery {
                percent: 87,
                millivolts: Some(3920),
            },
        ),
    ];
    for (line, expected) in table {
        assert_eq!(message(line), expected);
        assert_eq!(expected.encode(), line.as_bytes());
        assert_eq!(
            message(&line.replace('\n', "\r\n")),
            expected,
            "CR before LF"
        );
    }
    assert_eq!(
        Command::Lamps(1 << 12 | 1 << 28).encode(),
        b"$L,0000000010001000*60\n"
    );
    assert_eq!(Command::Ask.encode(), b"?\n");
}

/// The page shows no line that its own reader would not take.
#[test]
fn the_lines_of_the_page_are_lines() {
    let lines = include_str!("psb1.md").lines();
    let is_line = |line: &&str| line.starts_with('$') && !line.starts_with("$ ");
    let shown: Vec<&str> = lines.filter(is_line).collect();
    let items = heard((shown.join("\n") + "\n").as_bytes());
    assert!(shown.len() >= 4 && items.len() == shown.len());
    for item in items {
        assert!(matches!(item, Item::Message(_)), "{item:?}");
    }
}

#[test]
fn what_a_later_version_adds_is_ignored_or_kept() {
    let scan = message(&checked("S,01,00000002,FFFF00000000FFFF,more,and more"));
    assert!(matches!(scan, Message::Scan { squares, .. } if squares.white.is_none()));
    let colours = message(&checked(
        "S,01,00000002,FFFF00000000FFFF,000000000000FFFF,x",
    ));
    let Message::Scan { squares, .. } = colours else {
        panic!("{colours:?}")
    };
    assert_eq!(squares.is_white(0), Some(true));
    assert_eq!(squares.is_white(63), Some(false));
    assert_eq!(squares.is_white(30), None);
    let hello = message(&checked("H,1,a,b,LXZ,later"));
    let Message::Hello(hello) = hello else {
        panic!("{hello:?}")
    };
    assert!(hello.can.has('X') && hello.can.has('L') && !hello.can.has('C'));
    let plain = message(&checked("H,1,a,b"));
    assert!(matches!(plain, Message::Hello(hello) if hello.can == Letters::default()));
    assert_eq!(
        message(&checked("Z,whatever 1,2")),
        Message::Unknown(Text::line("Z,whatever 1,2"))
    );
    assert_eq!(
        message(&checked("E,row 3 reads nothing, see cable")),
        Message::Fault(Text::line("row 3 reads nothing, see cable"))
    );
    assert_eq!(
        message(&checked("B,5")),
        Message::Battery {
            percent: 5,
            millivolts: None
        }
    );
}

#[test]
fn what_is_no_line_says_why() {
    let bad = |letter, field| SkipReason::BadField { letter, field };
    let table = [
        ("rst:0x1 (POWERON_RESET)\r\n".into(), SkipReason::Chatter),
        ("\n".into(), SkipReason::Chatter),
        ("$\n".into(), SkipReason::Unchecked),
        ("$S,00\n".into(), SkipReason::Unchecked),
        ("$B,87,3920*4g\n".into(), SkipReason::NoCheckDigits),
        (
            "$H,1,esp32-demo,fw0.3,L*4a\n".into(),
            SkipReason::NoCheckDigits,
        ),
        (
            "$B,87,3920*44\n".into(),
            SkipReason::WrongCheck {
                said: 0x44,
                is: 0x45,
            },
        ),
        (checked("B,\u{1}87"), SkipReason::Unprintable),
        (checked("E,a*b"), SkipReason::Unprintable),
        (checked("E,caf\u{e9}"), SkipReason::Unprintable),
        // A GPS receiver, as many stand on such ports.
        (
            "$GPGLL,4916.45,N,12311.12,W,225444,A,*1D\r\n".into(),
            SkipReason::NotOurs,
        ),
        (checked(""), SkipReason::NotOurs),
        (
            checked("s,00,00000000,FFFF00000000FFFF"),
            SkipReason::NotOurs,
        ),
        (checked("H,2,board,fw,L"), SkipReason::OtherVersion),
        (checked("H"), bad('H', 1)),
        (checked("H,1"), bad('H', 2)),
        (checked("H,1,no space,fw,L"), bad('H', 2)),
        (checked("H,1,a23456789012345678901234x,fw,L"), bad('H', 2)),
        (checked("H,1,board"), bad('H', 3)),
        (checked("S,0,00000000,FFFF00000000FFFF"), bad('S', 1)),
        (checked("S,+0,00000000,FFFF00000000FFFF"), bad('S', 1)),
        (checked("S,00,0000000,FFFF00000000FFFF"), bad('S', 2)),
        (checked("S,00,00000000,FFFF00000000FFFG"), bad('S', 3)),
        (checked("S,00,00000000"), bad('S', 3)),
        (checked("D,00,00000000,"), bad('D', 3)),
        (checked("D,00,00000000,-e"), bad('D', 3)),
        (checked("D,00,00000000,-e9"), bad('D', 3)),
        (checked("D,00,00000000,-i1"), bad('D', 3)),
        (checked("D,00,00000000,e2e4"), bad('D', 3)),
        (checked("B,101"), bad('B', 1)),
        (checked("B,+7"), bad('B', 1)),
        (checked("B"), bad('B', 1)),
    ];
    for (line, reason) in table {
        assert_eq!(refusal(&line), reason, "{line}");
    }
}

#[test]
fn after_a_hello_of_another_version_nothing_is_read_until_one_of_ours() {
    let scan = checked("S,00,00000000,FFFF00000000FFFF");
    let [other, ours] = ["H,2,board,fw,L", "H,1,board,fw,L"].map(checked);
    let text = [&*scan, &other, &scan, &ours, &scan].concat();
    let are_read: Vec<bool> = heard(text.as_bytes())
        .iter()
        .map(|item| matches!(item, Item::Message(_)))
        .collect();
    assert_eq!(are_read, [true, false, false, true, true]);
}

#[test]
fn the_next_line_begins_wherever_it_stands() {
    let good = "$B,87,3920*45\n";
    for (before, skipped) in [
        ("booting...", vec![10]),
        ("$S,00,0000", vec![10]),
        ("ready\n$S,0\n$$", vec![6, 5, 1, 1]),
    ] {
        let items = heard(format!("{before}{good}").as_bytes());
        let counts: Vec<u32> = items
            .iter()
            .filter_map(|item| match item {
                Item::Skipped(skipped) => Some(skipped.bytes),
                Item::Message(_) => None,
            })
            .collect();
        assert_eq!(counts, skipped, "{before}");
        assert!(matches!(items.last(), Some(Item::Message(_))), "{before}");
    }
}

#[test]
fn a_body_has_eighty_characters_and_no_more() {
    let longest = checked(&format!("E,{}", "x".repeat(78)));
    assert!(matches!(message(&longest), Message::Fault(_)));
    let crlf = longest.replace('\n', "\r\n");
    assert!(matches!(message(&crlf), Message::Fault(_)));
    assert_eq!(
        refusal(&checked(&format!("E,{}", "x".repeat(79)))),
        SkipReason::TooLong
    );
    let endless = [b"$".as_slice(), &[b'x'; 500]].concat();
    let (items, buffered) = in_pieces(&endless, &[usize::MAX]);
    assert!(buffered.len() <= MAX_BODY);
    assert!(matches!(
        items[0],
        Item::Skipped(Skipped {
            reason: SkipReason::TooLong,
            ..
        })
    ));
}

#[test]
fn what_stalls_is_given_up() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.abandon(), None);
    decoder.push(b"$S,00", |item| panic!("{item:?}"));
    let skipped = decoder.abandon().unwrap();
    assert_eq!((skipped.bytes, skipped.reason), (5, SkipReason::Abandoned));
    decoder.push(b"boot", |item| panic!("{item:?}"));
    assert_eq!(decoder.abandon().unwrap().reason, SkipReason::Chatter);
    assert_eq!(decoder.buffered(), b"");
}

fn lines(out: Vec<Vec<u8>>) -> String {
    String::from_utf8(out.concat()).unwrap()
}

#[test]
fn a_board_answers_tells_changes_and_gives_signs_of_life() {
    let mut board = VirtualBoard::default();
    let row: Vec<(u8, Option<bool>)> = (0..16).map(|square| (square, Some(true))).collect();
    assert_eq!(
        lines(board.set_squares(5, &row)),
        checked("S,00,00000005,000000000000FFFF")
    );
    let both = checked("H,1,virtual-1,sim1,") + &checked("S,01,00000010,000000000000FFFF");
    assert!(!board.is_asked());
    assert_eq!(lines(board.handle_host(16, b"@UEM\n")), "");
    assert_eq!(lines(board.handle_host(16, b"@UEM?\r")), "");
    assert_eq!(lines(board.handle_host(16, b"\n")), both);
    assert!(board.is_asked());
    assert_eq!(board.poll_timeout(), 1016);
    assert_eq!(lines(board.handle_timeout(1015)), "");
    assert_eq!(
        lines(board.handle_timeout(1016)),
        checked("S,02,000003F8,000000000000FFFF")
    );
    assert_eq!(lines(board.set_squares(1100, &[(12, Some(true))])), "");
    assert_eq!(
        lines(board.set_squares(1200, &[(12, None), (28, Some(true))])),
        checked("S,03,000004B0,000000001000EFFF")
    );
    board.power_cycle(2000);
    assert!(!board.is_asked());
    assert_eq!(
        lines(board.handle_timeout(board.poll_timeout())),
        checked("H,1,virtual-1,sim1,") + &checked("S,00,00000000,000000001000EFFF")
    );
}

#[test]
fn a_board_does_what_its_letters_say() {
    let mut board = VirtualBoard::new(Identity {
        lamps: true,
        battery: Some((87, 3920)),
        colours: true,
        ..Identity::default()
    });
    board.set_squares(0, &[(4, Some(true)), (60, Some(false))]);
    let told = lines(board.handle_host(1, b"?\n"));
    assert_eq!(
        told,
        checked("H,1,virtual-1,sim1,LBC")
            + &checked("S,01,00000001,1000000000000010,0000000000000010")
    );
    assert_eq!(
        board.handle_host(2, b"$L,0000000010001000*60\n"),
        Vec::<Vec<u8>>::new()
    );
    assert_eq!(board.lamps(), 1 << 12 | 1 << 28);
    board.handle_host(3, b"$L,0000000000000000*61\n");
    assert_eq!(
        board.lamps(),
        1 << 12 | 1 << 28,
        "a wrong check changes nothing"
    );
    board.power_cycle(10);
    assert!(lines(board.handle_timeout(10)).contains("$B,87,3920*45\n"));

    let mut board = VirtualBoard::new(Identity {
        deltas: true,
        ..Identity::default()
    });
    assert_eq!(
        lines(board.set_squares(9, &[(3, Some(true)), (27, Some(false))])),
        checked("D,00,00000009,+d1+d4")
    );
    let all: Vec<(u8, Option<bool>)> = (0..64).map(|square| (square, Some(true))).collect();
    assert!(lines(board.set_squares(10, &all)).starts_with("$S,01,"));
    assert_eq!(
        board.report_fault("row 3*\u{7}"),
        checked("E,row 3__").into_bytes()
    );
}

fn text(most: usize) -> impl Strategy<Value = Text> {
    vec(0x20u8..0x7f, 0..most).prop_map(|bytes| Text::word(&String::from_utf8_lossy(&bytes)))
}

fn any_message() -> impl Strategy<Value = Message> {
    let change =
        (0..64u8, any::<bool>()).prop_map(|(square, occupied)| Change { square, occupied });
    prop_oneof![
        ("[A-Za-z0-9_-]{1,24}", text(24), text(8)).prop_map(|(id, firmware, can)| {
            Message::Hello(Hello {
                id: id.parse().unwrap(),
                firmware,
                can: Letters::new(can.as_str()),
            })
        }),
        (
            any::<u8>(),
            any::<u32>(),
            any::<u64>(),
            option::of(any::<u64>())
        )
            .prop_map(|(seq, ms, occupied, white)| Message::Scan {
                seq,
                ms,
                squares: Squares { occupied, white }
            }),
        (any::<u8>(), any::<u32>(), vec(change, 1..=22))
            .prop_map(|(seq, ms, changes)| Message::Delta { seq, ms, changes }),
        (0..=100u8, option::of(0..100_000u32)).prop_map(|(percent, millivolts)| {
            Message::Battery {
                percent,
                millivolts,
            }
        }),
        text(78).prop_map(Message::Fault),
    ]
}

/// Any bytes, with lines and parts of lines among them.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        vec(any::<u8>(), 0..40),
        any_message().prop_map(|message| message.encode()),
        (any_message(), any::<prop::sample::Index>(), any::<u8>()).prop_map(
            |(message, at, byte)| {
                let mut line = message.encode();
                let at = at.index(line.len());
                line[at] = byte;
                line
            }
        ),
        Just(b"$".to_vec()),
        vec(0x20u8..0x7f, 0..200),
    ];
    vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn the_same_bytes_cut_anywhere_say_the_same(bytes in stream(), cuts in vec(1..40usize, 1..20)) {
        let (whole, rest) = in_pieces(&bytes, &[usize::MAX]);
        for cuts in [&[1][..], &cuts] {
            let (items, buffered) = in_pieces(&bytes, cuts);
            prop_assert_eq!(&items, &whole);
            prop_assert_eq!(&buffered, &rest);
        }
    }

    /// Told by the bytes themselves: what is not skipped and not waiting is good lines, one after the other.
    #[test]
    fn every_byte_ends_up_once(bytes in stream()) {
        let mut decoder = Decoder::default();
        let mut at = 0;
        let mut begun = 0;
        for (index, byte) in bytes.iter().enumerate() {
            let mut items = Vec::new();
            decoder.push(&[*byte], |item| items.push(item));
            for item in items {
                match item {
                    Item::Skipped(skipped) => {
                        prop_assert!(skipped.bytes > 0);
                        at += skipped.bytes as usize;
                    }
                    Item::Message(message) => {
                        let line = &bytes[begun..=index];
                        let again = match message {
                            // What a later version adds is not kept.
                            Message::Unknown(_) => None,
                            message => Some(message),
                        };
                        if let Some(message) = again {
                            prop_assert_eq!(heard(&message.encode()), vec![Item::Message(message)]);
                        }
                        at += line.len();
                    }
                }
                begun = at;
            }
            prop_assert_eq!(at + decoder.buffered().len(), index + 1);
        }
    }

    #[test]
    fn messages_survive_the_wire(sent in vec(any_message(), 0..12), cuts in vec(1..30usize, 1..10)) {
        let bytes: Vec<u8> = sent.iter().flat_map(Message::encode).collect();
        let (items, rest) = in_pieces(&bytes, &cuts);
        prop_assert_eq!(items, sent.into_iter().map(Item::Message).collect::<Vec<_>>());
        prop_assert!(rest.is_empty());
    }

    /// A byte lost, added or changed costs no line but its own.
    #[test]
    fn a_fault_stays_where_it_is(
        before in vec(any_message(), 1..4),
        hit in any_message(),
        after in vec(any_message(), 1..4),
        at in any::<prop::sample::Index>(),
        fault in 0..3u8,
        byte in any::<u8>(),
    ) {
        let mut damaged = hit.encode();
        let at = at.index(damaged.len());
        match fault {
            0 => drop(damaged.remove(at)),
            1 => damaged.insert(at, byte),
            _ => damaged[at] = byte,
        }
        let mut bytes: Vec<u8> = before.iter().flat_map(Message::encode).collect();
        bytes.extend(damaged);
        bytes.extend(after.iter().flat_map(Message::encode));
        let said: Vec<Message> = heard(&bytes)
            .into_iter()
            .filter_map(|item| match item {
                Item::Message(message) => Some(message),
                Item::Skipped(_) => None,
            })
            .collect();
        prop_assert!(said.starts_with(&before));
        prop_assert!(said.ends_with(&after));
    }

    #[test]
    fn a_host_that_hears_all_sees_what_stands(
        looks in vec(vec((0..64u8, option::of(any::<bool>())), 1..30), 0..40),
        colours in any::<bool>(),
        deltas in any::<bool>(),
    ) {
        let mut board = VirtualBoard::new(Identity { colours, deltas, ..Identity::default() });
        let mut host = Squares { white: colours.then_some(0), ..Squares::default() };
        let mut next = 0u8;
        for (now, look) in looks.iter().enumerate() {
            let now = now as u64 * 300;
            let told = [board.set_squares(now, look), board.handle_timeout(now)].concat();
            for item in heard(&told.concat()) {
                match item {
                    Item::Message(Message::Scan { seq, squares, .. }) => {
                        prop_assert_eq!(seq, next);
                        next = next.wrapping_add(1);
                        host = squares;
                    }
                    Item::Message(Message::Delta { seq, changes, .. }) => {
                        prop_assert_eq!(seq, next);
                        next = next.wrapping_add(1);
                        for change in changes {
                            host.set_occupied(change.square, change.occupied);
                        }
                    }
                    Item::Message(Message::Hello(_)) => {}
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert_eq!(host, board.squares());
        }
    }
}
