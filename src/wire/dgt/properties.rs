//! What holds for any bytes and any commands: no panic, nothing lost, nothing that depends on how bytes arrive.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

proptest! {
    /// The decoder agrees with the slow truth, byte for byte, also when every push brings another number of bytes.
    #[test]
    fn decoder_agrees_with_the_slow_truth(bytes in stream(), cuts in vec(1..40usize, 1..20)) {
        let (expected, tail) = slowly(&bytes);
        prop_assert_eq!(expected.iter().map(|(length, _)| length).sum::<usize>() + tail.len(), bytes.len());
        for (length, item) in &expected {
            if let Item::Skipped(skipped) = item {
                prop_assert_eq!(skipped.bytes as usize, *length);
            }
        }
        let expected: Vec<Item> = expected.into_iter().map(|(_, item)| item).collect();
        for cuts in [&[usize::MAX][..], &[1], &cuts] {
            let (items, rest) = in_pieces(&bytes, cuts);
            prop_assert_eq!(&items, &expected);
            prop_assert_eq!(&rest, &tail);
        }
    }

    #[test]
    fn messages_survive_the_wire(sent in vec(message(), 0..12), cuts in vec(1..30usize, 1..10)) {
        let bytes: Vec<u8> = sent.iter().flat_map(Message::encode).collect();
        let (items, rest) = in_pieces(&bytes, &cuts);
        prop_assert_eq!(items, sent.into_iter().map(Item::Message).collect::<Vec<_>>());
        prop_assert!(rest.is_empty());
    }

    /// One byte lost, added or changed costs no message but its own.
    #[test]
    fn a_fault_stays_where_it_is(
        before in vec(message(), 1..4),
        hit in message(),
        after in vec(message(), 1..4),
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
        let heard: Vec<Message> = in_pieces(&bytes, &[usize::MAX])
            .0
            .into_iter()
            .filter_map(|item| match item {
                Item::Message(message) => Some(message),
                Item::Skipped(_) => None,
            })
            .collect();
        prop_assert!(heard.starts_with(&before));
        prop_assert!(heard.ends_with(&after));
    }

    /// Section 2: a board that does not know a command of several bytes takes each of them for one of its own.
    #[test]
    fn no_command_holds_a_harmful_byte(command in command()) {
        for byte in command.encode() {
            prop_assert!(!FORBIDDEN.contains(&byte), "{:02x} in {:?}", byte, command);
            prop_assert!(byte < HEADER);
        }
    }

    #[test]
    fn virtual_board_is_heard_as_it_stands(steps in vec(step(), 0..80)) {
        let mut board = VirtualBoard::default();
        let mut decoder = Decoder::default();
        let mut picture = [PieceCode::Empty; 64];
        let mut clock = None;
        let mut known = false;
        for step in steps {
            let (bytes, asked_for_board) = match step {
                Step::Say(command) => (board.handle_host(&command.encode()), command == Command::Board),
                Step::Put(square, piece) => (board.set_square(square, piece), false),
                Step::Show(time) => (board.set_clock(time), false),
            };
            if board.mode() == Mode::Idle {
                known = false;
            }
            let mut faults = Vec::new();
            decoder.push(&bytes, |item| match item {
                Item::Message(Message::BoardDump(dump)) => picture = *dump,
                Item::Message(Message::FieldUpdate { square, piece }) => {
                    picture[usize::from(square.index())] = piece;
                }
                Item::Message(Message::Clock(ClockMessage::Times(time))) => clock = Some(time),
                Item::Message(Message::Clock(ClockMessage::Absent)) => clock = None,
                Item::Message(_) => {}
                Item::Skipped(skipped) => faults.push(skipped),
            });
            prop_assert!(faults.is_empty(), "{:?}", faults);
            prop_assert!(decoder.buffered().is_empty());
            known |= asked_for_board && board.mode() != Mode::Idle;
            if known {
                prop_assert_eq!(&picture, board.squares());
            }
            if matches!(board.mode(), Mode::Update | Mode::UpdateNice) {
                prop_assert_eq!(clock, board.clock());
            }
        }
        prop_assert_eq!(board.forbidden_seen(), 0);
    }

    #[test]
    fn virtual_board_hears_the_same_in_any_pieces(bytes in vec(host_byte(), 0..60), cuts in vec(1..9usize, 1..9)) {
        let mut whole = VirtualBoard::default();
        whole.set_clock(Some(BwTime::default()));
        let mut cut = whole.clone();
        let expected = whole.handle_host(&bytes);
        let mut answers = Vec::new();
        let mut rest = &bytes[..];
        for &size in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, others) = rest.split_at(size.min(rest.len()));
            answers.extend(cut.handle_host(piece));
            rest = others;
        }
        prop_assert_eq!(answers, expected);
        prop_assert_eq!(cut.forbidden_seen(), whole.forbidden_seen());
        prop_assert_eq!(cut.mode(), whole.mode());
    }
}

/// Two million bytes, half noise and half damaged speech: every one accounted for, and never more than a frame held back.
#[test]
fn a_long_bad_line_fills_no_memory() {
    let mut random = fastrand::Rng::with_seed(1);
    let speech: Vec<u8> = {
        let mut board = VirtualBoard::default();
        let mut bytes = board.handle_host(&[0x4b, 0x42, 0x45, 0x47, 0x49]);
        bytes.extend(board.set_clock(Some(BwTime::default())));
        for square in RawSquare::all() {
            bytes.extend(board.set_square(square, PieceCode::Empty));
        }
        bytes.extend(
            Message::Unknown {
                id: 0xb0,
                data: vec![0x11; 300],
            }
            .encode(),
        );
        bytes
    };
    let mut decoder = Decoder::default();
    let (mut pushed, mut skipped, mut heard) = (0, 0, 0);
    while pushed < 2_000_000 {
        let mut piece: Vec<u8> = match random.u8(..4) {
            0 => (0..random.usize(..300)).map(|_| random.u8(..)).collect(),
            // Seldom a header, so that announced lengths run on.
            1 => (0..random.usize(..3000))
                .map(|_| random.u8(..0x80))
                .collect(),
            _ => {
                let mut bytes = speech.clone();
                for _ in 0..random.usize(..20) {
                    let at = random.usize(..bytes.len());
                    bytes[at] = random.u8(..);
                }
                bytes
            }
        };
        // Encoded again, every message has the length it came with, but for the battery's, whose length is free.
        piece
            .iter_mut()
            .filter(|byte| **byte == 0xa0)
            .for_each(|byte| *byte = 0xa1);
        decoder.push(&piece, |item| match item {
            Item::Message(message) => heard += message.encode().len(),
            Item::Skipped(Skipped { bytes, .. }) => skipped += bytes as usize,
        });
        pushed += piece.len();
        assert!(decoder.buffered().len() < MAX_FRAME);
        assert!(decoder.missing().is_none_or(|missing| missing > 0));
    }
    assert_eq!(skipped + heard + decoder.buffered().len(), pushed);
    assert!(heard > pushed / 10 && skipped > pushed / 10);
}

/// What the decoder should say: every item with its length, and the unfinished frame. With the whole stream in view, it is
/// enough to cut before every byte with the top bit set.
fn slowly(bytes: &[u8]) -> (Vec<(usize, Item)>, Vec<u8>) {
    let mut items = Vec::new();
    let skipped = |bytes: usize, reason| {
        (
            bytes,
            Item::Skipped(Skipped {
                bytes: bytes as u32,
                reason,
            }),
        )
    };
    let mut starts: Vec<usize> = (1..bytes.len()).filter(|&at| bytes[at] >= HEADER).collect();
    starts.push(bytes.len());
    let mut from = 0;
    for to in starts {
        let part = &bytes[from..to];
        from = to;
        let is_last = to == bytes.len();
        let mut taken = 0;
        if let [id @ HEADER..=0xff, rest @ ..] = part {
            let announced = match rest {
                [high, low, ..] => usize::from(*high) * 128 + usize::from(*low),
                _ => 3,
            };
            let item = match Message::check_length(*id, announced) {
                Err(reason) if part.len() >= 3 => skipped(3, reason),
                _ if part.len() < announced && is_last => return (items, part.to_vec()),
                _ if part.len() < announced => {
                    skipped(part.len(), SkipReason::CutShort { id: *id })
                }
                _ => match Message::decode(*id, &part[3..announced]) {
                    Ok(message) => (announced, Item::Message(message)),
                    Err(reason) => skipped(announced, reason),
                },
            };
            taken = item.0;
            items.push(item);
        }
        for _ in taken..part.len() {
            let goes_on = matches!(items.last(), Some((_, Item::Skipped(_))));
            items.push(skipped(
                1,
                if goes_on {
                    SkipReason::MoreNoise
                } else {
                    SkipReason::Noise
                },
            ));
        }
    }
    (items, Vec::new())
}

/// Pushes the bytes in pieces of these sizes, over and over.
fn in_pieces(bytes: &[u8], sizes: &[usize]) -> (Vec<Item>, Vec<u8>) {
    let mut decoder = Decoder::default();
    let mut items = Vec::new();
    let mut rest = bytes;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, others) = rest.split_at(size.min(rest.len()));
        decoder.push(piece, |item| items.push(item));
        rest = others;
    }
    (items, decoder.buffered().to_vec())
}

/// Bytes as a bad line brings them: messages, beginnings of messages, headers that announce anything, noise.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let cut = (message(), any::<prop::sample::Index>()).prop_map(|(message, at)| {
        let mut bytes = message.encode();
        bytes.truncate(at.index(bytes.len()) + 1);
        bytes
    });
    let odd = (known_id(), 0..0x80u8, 0..0x80u8).prop_map(|(id, high, low)| vec![id, high, low]);
    let short = (known_id(), 0..0x10u8, vec(0..0x80u8, 0..16))
        .prop_map(|(id, low, data)| [vec![id, 0, low], data].concat());
    let part = prop_oneof![
        4 => message().prop_map(|message| message.encode()),
        2 => cut,
        1 => odd,
        2 => short,
        1 => vec(any::<u8>(), 0..20),
        1 => vec(0..0x80u8, 0..20),
    ];
    vec(part, 0..12).prop_map(|parts| parts.concat())
}

fn known_id() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![
        0x80, 0x86, 0x8d, 0x8e, 0x8f, 0x90, 0x91, 0x92, 0x93, 0x96, 0xa0, 0xa2, 0xff,
    ])
}

fn message() -> impl Strategy<Value = Message> {
    let text = |size| {
        vec(0x20..0x7fu8, size)
            .prop_map(|text| text.into_iter().map(char::from).collect::<String>())
    };
    let version = || (0..0x80u8, 0..0x80u8);
    prop_oneof![
        8 => (square(), piece()).prop_map(|(square, piece)| Message::FieldUpdate { square, piece }),
        8 => clock_message().prop_map(Message::Clock),
        1 => prop::array::uniform32((piece(), piece())).prop_map(|pairs| {
            let mut board = Box::new(START);
            for (squares, (one, other)) in board.chunks_mut(2).zip(pairs) {
                squares.copy_from_slice(&[one, other]);
            }
            Message::BoardDump(board)
        }),
        1 => (0..0x4000u16).prop_map(Message::BusAddress),
        1 => text(1..14).prop_map(Message::SerialNumber),
        1 => text(10..11).prop_map(Message::LongSerialNumber),
        1 => vec(0..0x80u8, 0..300)
            .prop_map(|text| Message::Trademark(text.into_iter().map(char::from).collect())),
        1 => version().prop_map(|(major, minor)| Message::Version { major, minor }),
        1 => version().prop_map(|(major, minor)| Message::HardwareVersion { major, minor }),
        1 => battery().prop_map(Message::Battery),
        1 => vec(0..0x80u8, 0..300).prop_map(Message::EeMoves),
        1 => (0xa3..=0xffu8, vec(0..0x80u8, 0..300)).prop_map(|(id, data)| Message::Unknown { id, data }),
        1 => vec(0..0x80u8, 100).prop_map(|data| Message::Unknown { id: 0x86, data }),
    ]
}

fn battery() -> impl Strategy<Value = Battery> {
    let told = || prop::option::of(0..0x7fu8);
    let times = prop::array::uniform7(told());
    (
        prop::option::of(0..=100u8),
        times,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(percent, times, charging, discharging)| {
            let [
                hours_left,
                minutes_left,
                hours_on,
                minutes_on,
                standby_days,
                standby_hours,
                standby_minutes,
            ] = times;
            Battery {
                percent,
                hours_left,
                minutes_left,
                hours_on,
                minutes_on,
                standby_days,
                standby_hours,
                standby_minutes,
                charging,
                discharging,
            }
        })
}

fn clock_message() -> impl Strategy<Value = ClockMessage> {
    let ack = any::<[u8; 4]>();
    prop_oneof![
        8 => bw_time().prop_map(ClockMessage::Times),
        2 => ack.prop_map(|[ack0, ack1, ack2, ack3]| ClockMessage::Ack(Ack { ack0, ack1, ack2, ack3 })),
        1 => Just(ClockMessage::Null),
        1 => Just(ClockMessage::Absent),
    ]
}

fn bw_time() -> impl Strategy<Value = BwTime> {
    (side_time(), side_time(), any::<[bool; 3]>()).prop_map(
        |(right, left, [running, right_up, battery_low])| BwTime {
            right,
            left,
            running,
            right_up,
            battery_low,
        },
    )
}

fn side_time() -> impl Strategy<Value = SideTime> {
    (0..10u8, 0..60u8, 0..60u8, any::<[bool; 3]>()).prop_map(
        |(hours, minutes, seconds, [flag_halted, increment, flag_shown])| SideTime {
            hours,
            minutes,
            seconds,
            flag_halted,
            increment,
            flag_shown,
        },
    )
}

fn square() -> impl Strategy<Value = RawSquare> {
    (0..64u8).prop_map(RawSquare)
}

fn piece() -> impl Strategy<Value = PieceCode> {
    prop::sample::select(PieceCode::ALL.to_vec())
}

fn command() -> impl Strategy<Value = Command> {
    let plain = prop::sample::select(vec![
        Command::Reset,
        Command::Clock,
        Command::Board,
        Command::Update,
        Command::UpdateBoard,
        Command::SerialNumber,
        Command::BusAddress,
        Command::Trademark,
        Command::HardwareVersion,
        Command::EeMoves,
        Command::UpdateNice,
        Command::Battery,
        Command::Version,
        Command::LongSerialNumber,
    ]);
    prop_oneof![3 => plain, 2 => clock_command().prop_map(Command::ToClock)]
}

fn clock_command() -> impl Strategy<Value = ClockCommand> {
    let text = || {
        vec(
            prop_oneof![9 => 0..0x80u8, 1 => any::<u8>()].prop_map(char::from),
            0..12,
        )
        .prop_map(|text| text.into_iter().collect::<String>())
    };
    let setting = || {
        (0..10u8, 0..60u8, 0..60u8)
            .prop_map(|(h, m, s)| ClockSetting::new(h, m, s).expect("all in range"))
    };
    let mode = prop::sample::select(vec![
        RunMode::LeftRuns,
        RunMode::RightRuns,
        RunMode::Pause,
        RunMode::FollowLever,
    ]);
    let icons = any::<[bool; 6]>().prop_map(
        |[
            left_dot,
            left_colon,
            left_one,
            right_dot,
            right_colon,
            right_one,
        ]| Icons {
            left_dot,
            left_colon,
            left_one,
            right_dot,
            right_colon,
            right_one,
        },
    );
    let beeps = || any::<u8>().prop_map(Beeps::new);
    prop_oneof![
        (text(), icons, any::<bool>()).prop_map(|(text, icons, beep)| {
            ClockCommand::Display {
                segments: Segments::new(&text),
                icons,
                beep,
            }
        }),
        Just(ClockCommand::End),
        Just(ClockCommand::Version),
        (setting(), setting(), mode).prop_map(|(left, right, mode)| ClockCommand::SetNRun {
            left,
            right,
            mode
        }),
        beeps().prop_map(ClockCommand::Beep),
        (text(), beeps()).prop_map(|(text, beep)| ClockCommand::Ascii {
            text: ClockText::new(&text),
            beep
        }),
    ]
}

/// What happens to a virtual board.
#[derive(Debug, Clone)]
enum Step {
    Say(Command),
    Put(RawSquare, PieceCode),
    Show(Option<BwTime>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => command().prop_map(Step::Say),
        4 => (square(), piece()).prop_map(|(square, piece)| Step::Put(square, piece)),
        2 => prop::option::of(bw_time()).prop_map(Step::Show),
    ]
}

fn host_byte() -> impl Strategy<Value = u8> {
    prop_oneof![4 => 0x40..0x56u8, 1 => Just(0x2b), 2 => 0..0x10u8, 1 => any::<u8>()]
}
