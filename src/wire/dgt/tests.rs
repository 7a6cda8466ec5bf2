//! Bytes against meanings. The names say how far the bytes can be trusted: `real_` left a board, `logged_` were rebuilt from
//! what a program logged, `made_` follow from the rules alone.

use super::*;

#[test]
fn real_board_dump_of_a_normal_and_of_a_turned_board() {
    let normal = "86 00 43 08 09 0a 0c 0b 0a 09 08 07 07 07 07 07 07 07 07 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        01 01 01 01 01 01 01 01 02 03 04 06 05 04 03 02";
    assert_eq!(one(normal), Message::BoardDump(Box::new(START)));
    let turned = "86 00 43 02 03 04 05 06 04 03 02 01 01 01 01 01 01 01 01 00 00 00 00 00 00 00 00
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        07 07 07 07 07 07 07 07 08 09 0a 0b 0c 0a 09 08";
    let mut backwards = START;
    backwards.reverse();
    assert_eq!(one(turned), Message::BoardDump(Box::new(backwards)));
}

#[test]
fn real_opening_of_game_1() {
    // A dialogue of both kinds of message; a clock is told as left, right, and > or < for the side that runs.
    let dialogue = "
        8d 00 0a 20 03 02 20 03 02 08 | 3:02 3:02
        8d 00 0a 20 03 02 20 03 02 09 | 3:02<3:02
        8d 00 0a 20 03 02 20 03 01 09 | 3:01<3:02
        8e 00 05 34 00                | e2-
        8e 00 05 24 01                | e4P
        8d 00 0a 20 03 02 20 03 00 09 | 3:00<3:02
        8d 00 0a 20 03 02 20 02 59 09 | 2:59<3:02
        8d 00 0a 20 03 02 20 03 01 13 | 3:01>3:02
        8d 00 0a 20 03 01 20 03 01 13 | 3:01>3:01
        8e 00 05 0c 00                | e7-
        8e 00 05 1c 07                | e5p
        8d 00 0a 20 03 03 20 03 01 09 | 3:01<3:03
        8d 00 0a 20 03 03 20 03 00 09 | 3:00<3:03
        8e 00 05 3e 00                | g1-
        8e 00 05 2d 03                | f3N
        8d 00 0a 20 03 03 20 02 59 09 | 2:59<3:03
        8d 00 0a 20 03 03 20 03 01 13 | 3:01>3:03
        8d 00 0a 20 03 02 20 03 01 13 | 3:01>3:02
        8e 00 05 01 00                | b8-
        8d 00 0a 20 03 01 20 03 01 13 | 3:01>3:01
        8e 00 05 12 09                | c6n
        8d 00 0a 20 03 00 20 03 01 13 | 3:01>3:00
        8d 00 0a 20 03 02 20 03 01 09 | 3:01<3:02
        8e 00 05 3d 00                | f1-
        8d 00 0a 20 03 02 20 02 58 09 | 2:58<3:02
        8e 00 05 19 04                | b5B
        8d 00 0a 20 03 02 20 03 00 13 | 3:00>3:02
        8e 00 05 06 00                | g8-
        8e 00 05 15 09                | f6n
        8d 00 0a 20 02 59 20 03 00 13 | 3:00>2:59
        8e 00 05 33 00                | d2-
        8e 00 05 2b 01                | d3P
        8e 00 05 05 00                | f8-
        8e 00 05 1a 0a                | c5b
        8e 00 05 12 00                | c6-
        8d 00 0a 20 02 59 20 02 56 09 | 2:56<2:59
        8e 00 05 19 00                | b5-
        8e 00 05 12 04                | c6B
        8d 00 0a 20 01 46 20 01 49 12 | 1:49 1:46";
    let rows = dialogue.lines().filter(|line| !line.trim().is_empty());
    for (bytes, meaning) in rows.filter_map(|line| line.split_once('|')) {
        let told = match one(bytes) {
            Message::FieldUpdate { square, piece } => name(square) + &show(piece),
            Message::Clock(ClockMessage::Times(t)) => {
                assert!(t.left.increment && t.right.increment && !t.battery_low);
                let side = |side: SideTime| format!("{}:{:02}", side.minutes, side.seconds);
                let sign = match (t.running, t.right_up) {
                    (false, _) => ' ',
                    (true, false) => '<',
                    (true, true) => '>',
                };
                format!("{}{sign}{}", side(t.left), side(t.right))
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(told, meaning.trim(), "{bytes}");
        assert_eq!(one(bytes).encode(), hex(bytes), "{bytes}");
    }
}

#[test]
fn real_piece_dynamics_on_a_normal_board() {
    for (fields, meaning) in [
        ("0b 00 12 07", "d7- c6p"),
        ("04 00 06 0b 07 00 05 08", "e8- g8k h8- f8r"),
        ("1b 00 0c 00 0c 03 14 0a 14 00", "d5- e7- e7N e6b e6-"),
        ("03 00 0c 0c 14 03 14 00", "d8- e7q e6N e6-"),
        ("3c 00 3e 05 3f 00 3d 02", "e1- g1K h1- f1R"),
        ("1c 00 25 07", "e5- f4p"),
        (
            "38 00 3b 02 3b 00 3c 02 3c 00 3d 02",
            "a1- d1R d1- e1R e1- f1R",
        ),
        ("12 07 0a 00", "c6p c7-"),
        ("1a 00 2c 0a", "c5- e3b"),
        ("22 00 2c 03", "c4- e3N"),
        ("13 07 0b 00", "d6p d7-"),
        ("0c 00 13 06 1b 07 1b 00", "e7- d6Q d5p d5-"),
        ("12 00 1a 00 12 06", "c6- c5- c6Q"),
        ("23 00 06 00 3e 00 1b 0b 24 05", "d4- g8- g1- d5k e4K"),
    ] {
        assert_eq!(updates(fields, |square| square), meaning);
    }
}

#[test]
fn real_piece_dynamics_on_a_turned_board() {
    for (fields, meaning) in [
        ("0b 00 1b 01", "e2- e4P"),
        ("0c 00 14 01 14 00 1c 01", "d2- d3P d3- d4P"),
        ("3b 00 39 0b 38 00 3a 08", "e8- g8k h8- f8r"),
        ("03 00 01 05 00 00 02 02", "e1- g1K h1- f1R"),
        ("0e 00 1e 01", "b2- b4P"),
        ("1f 00 16 07 1e 00", "a4- b3p b4-"),
        ("0f 00 16 01", "a2- b3P"),
        ("10 00 34 00 34 04", "h3- d7- d7B"),
        ("34 00 2d 0c 25 03 25 00", "d7- c6q c5N c5-"),
        (
            "2d 00 25 0c 25 00 1d 0c 15 01 15 00",
            "c6- c5q c5- c4q c3P c3-",
        ),
    ] {
        assert_eq!(updates(fields, RawSquare::turned), meaning, "{fields}");
    }
}

#[test]
fn real_flag_fall_of_johan() {
    let before = times("8d 00 0a 20 00 01 20 00 16 13");
    assert!(before.running && before.right_up && !before.right.flag_halted);
    assert_eq!(
        (before.right.millis(), before.left.millis()),
        (1_000, 16_000)
    );
    let after = times("8d 00 0a 30 00 00 20 00 16 12");
    assert!(!after.running && after.right_up);
    assert!(after.right.flag_halted && after.right.increment && !after.left.flag_halted);
    assert_eq!((after.right.millis(), after.left.millis()), (0, 16_000));
}

#[test]
fn real_seconds_are_decimal_digits() {
    let t = times("8d 00 0a 20 00 31 20 00 09 09");
    assert_eq!((t.right.seconds, t.left.seconds), (31, 9));
    // Case L2.
    let t = times("8d 00 0a 20 03 02 20 02 59 09");
    assert_eq!((t.right.millis(), t.left.millis()), (182_000, 179_000));
    assert_eq!(t.right.hours, 0);
}

#[test]
fn real_bytes_after_configuration_are_survived() {
    let (items, rest) = decode(&hex("90 81 00 08 00 00 b5 00 08 91 8e 00 05 24 01"));
    let cut = |bytes, id| {
        Item::Skipped(Skipped {
            bytes,
            reason: SkipReason::CutShort { id },
        })
    };
    assert_eq!(
        items[..4],
        [cut(1, 0x90), cut(5, 0x81), cut(3, 0xb5), cut(1, 0x91)]
    );
    assert_eq!(
        items[4..],
        [Item::Message(field(0x24, PieceCode::WhitePawn))]
    );
    assert!(rest.is_empty());
}

#[test]
fn real_bus_frames_are_kept_whole_or_skipped() {
    let data = hex("06 50 18 0c 40 30 79");
    assert_eq!(
        one("85 00 0a 06 50 18 0c 40 30 79"),
        Message::Unknown { id: 0x85, data }
    );
    assert_eq!(
        one("85 00 06 06 50 61"),
        Message::Unknown {
            id: 0x85,
            data: hex("06 50 61")
        }
    );
    let data = hex("06 50 00 14 0a 05 01 00 00 00 00 7d 47 00");
    assert_eq!(
        one("b1 00 11 06 50 00 14 0a 05 01 00 00 00 00 7d 47 00"),
        Message::Unknown { id: 0xb1, data }
    );
    // A host's ping read back is no frame: its length would be zero.
    let (items, _) = decode(&hex("87 00 00 07"));
    let skipped = |bytes, reason| Item::Skipped(Skipped { bytes, reason });
    let length = SkipReason::ImpossibleLength {
        id: 0x87,
        length: 0,
    };
    assert_eq!(
        items,
        [skipped(3, length), skipped(1, SkipReason::MoreNoise)]
    );
}

#[test]
fn real_trademark_longer_than_seven_bits_of_length() {
    // The digits of the serial number were not published; these stand in for them.
    let text = "Digital Game Technology\r\nCopyright (c) 2021 DGT\r\nsoftware version: 1.00, build: 210722\r\n\
                hardware version: 1.00, serial no: P00000000000";
    let mut bytes = vec![0x92, 0x01, (text.len() + 3) as u8 & 0x7f];
    bytes.extend_from_slice(text.as_bytes());
    assert_eq!(
        decode(&bytes).0,
        [Item::Message(Message::Trademark(text.to_owned()))]
    );
    assert_eq!(Message::Trademark(text.to_owned()).encode(), bytes);
}

#[test]
fn logged_acknowledgements_in_all_three_forms() {
    // The marker may stand in byte 3, in byte 6 or in both; which of them a clock uses is not known.
    for (bytes, ack) in [
        ("8d 00 0a 0a 10 09 00 20 00 00", [0x10, 0x09, 0x20, 0x00]),
        ("8d 00 0a 0a 10 0c 00 00 00 00", [0x10, 0x0c, 0x00, 0x00]),
        ("8d 00 0a 0a 20 00 00 00 00 00", [0x20, 0x00, 0x00, 0x00]),
        ("8d 00 0a 0a 10 09 00 1e 00 00", [0x10, 0x09, 0x1e, 0x00]),
        ("8d 00 0a 0a 10 08 20 05 31 00", [0x10, 0x88, 0x05, 0x31]),
    ] {
        let [ack0, ack1, ack2, ack3] = ack;
        let expected = Message::Clock(ClockMessage::Ack(Ack {
            ack0,
            ack1,
            ack2,
            ack3,
        }));
        assert_eq!(expected.encode(), hex(bytes));
        let mut frame = hex(bytes);
        for (third, sixth) in [(0x0a, 0x00), (0x00, 0x0a), (0x0a, 0x0a)] {
            frame[3] = frame[3] & 0xf0 | third;
            frame[6] = frame[6] & 0xf0 | sixth;
            assert_eq!(
                decode(&frame).0,
                [Item::Message(expected.clone())],
                "{frame:02x?}"
            );
        }
    }
}

#[test]
fn logged_versions_of_clocks() {
    assert_eq!(
        acknowledged("8d 00 0a 0a 10 09 00 20 00 00").clock_version(),
        Some((2, 0))
    );
    assert_eq!(
        acknowledged("8d 00 0a 0a 10 09 00 1e 00 00").clock_version(),
        Some((1, 14))
    );
    assert_eq!(
        acknowledged("8d 00 0a 0a 10 0c 00 00 00 00").clock_version(),
        None
    );
    assert_eq!(
        acknowledged("8d 00 0a 0a 20 00 00 00 00 00").outcome(),
        AckOutcome::Failed
    );
}

#[test]
fn logged_buttons() {
    use ClockButton::*;
    for (pair, pressed, held) in [
        ("05 31", Back, vec![Back]),
        ("21 34", Minus, vec![Minus]),
        ("11 33", RunPause, vec![RunPause]),
        ("09 32", Plus, vec![Plus]),
        ("41 35", Ok, vec![Ok]),
        ("45 35", Ok, vec![Back, Ok]),
        ("25 34", Minus, vec![Back, Minus]),
        ("15 33", RunPause, vec![Back, RunPause]),
        ("0d 32", Plus, vec![Back, Plus]),
        ("31 33", RunPause, vec![Minus, RunPause]),
        ("29 32", Plus, vec![Minus, Plus]),
        ("61 35", Ok, vec![Minus, Ok]),
        ("19 32", Plus, vec![RunPause, Plus]),
        ("51 35", Ok, vec![RunPause, Ok]),
        ("49 35", Ok, vec![Plus, Ok]),
    ] {
        let AckKind::Buttons(buttons) =
            acknowledged(&format!("8d 00 0a 0a 10 08 20 {pair} 00")).kind()
        else {
            panic!("{pair} is no button");
        };
        assert_eq!(buttons.pressed(), Some(pressed), "{pair}");
        for button in [Back, Minus, RunPause, Plus, Ok] {
            assert_eq!(
                buttons.is_held(button),
                held.contains(&button),
                "{pair} {button:?}"
            );
        }
    }
}

#[test]
fn logged_identity_of_boards() {
    assert_eq!(
        one("93 00 05 03 0a"),
        Message::Version {
            major: 3,
            minor: 10
        }
    );
    assert_eq!(
        one("93 00 05 01 50"),
        Message::Version {
            major: 1,
            minor: 80
        }
    );
    let long = "a2 00 0d 33 30 30 30 31 34 37 37 34 30";
    assert_eq!(
        one(long),
        Message::LongSerialNumber("3000147740".to_owned())
    );
}

#[test]
fn logged_unasked_log_of_the_whole_memory() {
    let mut bytes = hex("8f 3e 03");
    bytes.resize(3 + 0x1f00, 0x7f);
    assert_eq!(
        decode(&bytes).0,
        [Item::Message(Message::EeMoves(vec![0x7f; 0x1f00]))]
    );
    // It takes eight seconds to come; meanwhile the decoder says how much there is to wait for.
    let mut decoder = Decoder::default();
    decoder.push(&bytes[..2], |item| panic!("{item:?}"));
    assert_eq!(decoder.missing(), Some(1));
    decoder.push(&bytes[2..1000], |item| panic!("{item:?}"));
    assert_eq!(
        (decoder.missing(), decoder.buffered().len()),
        (Some(0x1f03 - 1000), 1000)
    );
}

#[test]
fn made_identity_and_battery() {
    assert_eq!(one("90 00 05 08 01"), Message::BusAddress(1025));
    assert_eq!(
        one("91 00 08 31 32 33 34 35"),
        Message::SerialNumber("12345".to_owned())
    );
    let old = "91 00 0c 30 30 31 33 37 20 31 2e 30";
    assert_eq!(one(old), Message::SerialNumber("00137 1.0".to_owned()));
    assert_eq!(
        one("96 00 05 01 02"),
        Message::HardwareVersion { major: 1, minor: 2 }
    );
    let battery = Battery {
        percent: Some(100),
        hours_on: Some(0),
        minutes_on: Some(0),
        standby_days: Some(0),
        standby_hours: Some(0),
        standby_minutes: Some(0),
        ..Battery::default()
    };
    assert_eq!(
        one("a0 00 0c 64 7f 7f 00 00 00 00 00 00"),
        Message::Battery(battery)
    );
    assert_eq!(
        Message::Battery(battery).encode(),
        hex("a0 00 0c 64 7f 7f 00 00 00 00 00 00")
    );
    // The form of seven bytes that a header's constant speaks of.
    let short = Battery {
        percent: Some(80),
        hours_left: Some(5),
        minutes_left: Some(30),
        ..Battery::default()
    };
    assert_eq!(one("a0 00 07 50 05 1e 7f"), Message::Battery(short));
    let charging = Battery {
        percent: Some(80),
        charging: true,
        ..Battery::default()
    };
    assert_eq!(
        one("a0 00 0c 50 7f 7f 7f 7f 7f 7f 7f 01"),
        Message::Battery(charging)
    );
}

#[test]
fn made_clock_messages_that_are_no_times() {
    assert_eq!(
        one("8d 00 0a 00 00 00 00 00 00 20"),
        Message::Clock(ClockMessage::Absent)
    );
    assert_eq!(
        one("8d 00 0a 00 00 00 00 00 00 00"),
        Message::Clock(ClockMessage::Null)
    );
    // Without a clock the digits may be anything.
    assert_eq!(
        one("8d 00 0a 0f 7f 7f 0f 7f 7f 20"),
        Message::Clock(ClockMessage::Absent)
    );
    let refused = acknowledged("8d 00 0a 0a 40 0a 00 00 00 00");
    assert_eq!(
        (refused.outcome(), refused.kind()),
        (AckOutcome::Refused, AckKind::Answer(0x0a))
    );
    assert_eq!(
        acknowledged("8d 00 0a 0a 10 01 20 00 00 00").kind(),
        AckKind::Ready
    );
    assert_eq!(
        acknowledged("8d 00 0a 0a 10 10 20 00 00 00").kind(),
        AckKind::NotRemote
    );
    assert_eq!(
        acknowledged("8d 00 0a 0a 10 0a 20 00 17 00").kind(),
        AckKind::Mode(0x17)
    );
    let high = acknowledged("8d 00 0a 3a 10 09 00 10 00 00");
    assert_eq!((high.ack2, high.ack3), (0x90, 0x80));
    let high = acknowledged("8d 00 0a 0a 10 09 30 10 00 00");
    assert_eq!((high.ack0, high.ack1), (0x90, 0x89));
    // Case A10: both markers at once, and top bits.
    assert_eq!(
        acknowledged("8d 00 0a 0a 20 00 0a 00 00 00").outcome(),
        AckOutcome::Failed
    );
    let AckKind::Buttons(plus) = acknowledged("8d 00 0a 0a 10 08 2a 00 32 00").kind() else {
        panic!()
    };
    assert_eq!(plus.pressed(), Some(ClockButton::Plus));
}

#[test]
fn made_clock_signs() {
    let t = times("8d 00 0a 71 02 03 09 59 58 0d");
    assert_eq!((t.right.hours, t.right.millis()), (1, 3_723_000));
    assert!(t.right.flag_halted && t.right.increment && t.right.flag_shown);
    assert_eq!(t.left, SideTime::new(9, 59, 58));
    assert!(t.running && !t.right_up && t.battery_low);
}

#[test]
fn made_data_that_cannot_be() {
    let time = |hours, minutes, seconds| SkipReason::NoSuchTime {
        hours,
        minutes,
        seconds,
    };
    for (bytes, reason) in [
        ("8e 00 05 40 01", SkipReason::NoSuchSquare(0x40)),
        ("8e 00 05 24 10", SkipReason::NoSuchPiece(0x10)),
        ("8d 00 0a 0b 00 00 00 00 00 08", time(0x0b, 0x00, 0x00)),
        ("8d 00 0a 00 60 00 00 00 00 08", time(0x00, 0x60, 0x00)),
        ("8d 00 0a 00 00 1a 00 00 00 08", time(0x00, 0x00, 0x1a)),
        ("8d 00 0a 00 00 00 0f 00 00 08", time(0x0f, 0x00, 0x00)),
        ("8d 00 0a 00 00 00 00 0c 00 08", time(0x00, 0x0c, 0x00)),
        ("8d 00 0a 00 00 00 00 00 7f 08", time(0x00, 0x00, 0x7f)),
        (
            "91 00 08 31 32 00 34 35",
            SkipReason::UnprintableText { id: 0x91 },
        ),
        (
            "a2 00 0d 33 30 30 30 31 34 37 37 34 7f",
            SkipReason::UnprintableText { id: 0xa2 },
        ),
    ] {
        let (items, rest) = decode(&hex(bytes));
        let length = hex(bytes).len() as u32;
        assert_eq!(
            items,
            [Item::Skipped(Skipped {
                bytes: length,
                reason
            })],
            "{bytes}"
        );
        assert!(rest.is_empty());
    }
    let mut dump = Message::BoardDump(Box::new(START)).encode();
    dump[40] = 0x10;
    let skipped = Skipped {
        bytes: 67,
        reason: SkipReason::NoSuchPiece(0x10),
    };
    assert_eq!(decode(&dump).0, [Item::Skipped(skipped)]);
}

#[test]
fn made_lengths_that_cannot_be() {
    for (header, reason) in [
        (
            "80 00 00",
            SkipReason::ImpossibleLength {
                id: 0x80,
                length: 0,
            },
        ),
        (
            "92 00 02",
            SkipReason::ImpossibleLength {
                id: 0x92,
                length: 2,
            },
        ),
        (
            "8e 00 06",
            SkipReason::WrongLength {
                id: 0x8e,
                length: 6,
            },
        ),
        (
            "8e 02 05",
            SkipReason::WrongLength {
                id: 0x8e,
                length: 0x105,
            },
        ),
        (
            "8d 00 09",
            SkipReason::WrongLength {
                id: 0x8d,
                length: 9,
            },
        ),
        (
            "86 00 42",
            SkipReason::WrongLength {
                id: 0x86,
                length: 66,
            },
        ),
        (
            "91 00 03",
            SkipReason::WrongLength {
                id: 0x91,
                length: 3,
            },
        ),
        (
            "a2 00 0c",
            SkipReason::WrongLength {
                id: 0xa2,
                length: 12,
            },
        ),
        (
            "90 7f 7f",
            SkipReason::WrongLength {
                id: 0x90,
                length: 0x3fff,
            },
        ),
    ] {
        // Judged as soon as the header is in, so a wrong length holds nothing up.
        let mut bytes = hex(header);
        let (items, rest) = decode(&bytes);
        assert_eq!(
            items,
            [Item::Skipped(Skipped { bytes: 3, reason })],
            "{header}"
        );
        assert!(rest.is_empty());
        bytes.extend(hex("8e 00 05 24 01"));
        assert_eq!(
            decode(&bytes).0[1..],
            [Item::Message(field(0x24, PieceCode::WhitePawn))]
        );
    }
}

#[test]
fn made_faults_cost_no_good_message() {
    let pawn = Item::Message(field(0x24, PieceCode::WhitePawn));
    // Case A1: the cut frame goes, the two after it come.
    let (items, _) = decode(&hex("8e 00 05 34 8e 00 05 24 01 8e 00 05 34 00"));
    let cut = Item::Skipped(Skipped {
        bytes: 4,
        reason: SkipReason::CutShort { id: 0x8e },
    });
    assert_eq!(
        items,
        [
            cut,
            pawn.clone(),
            Item::Message(field(0x34, PieceCode::Empty))
        ]
    );
    assert_eq!(faults(&items), 1);
    // Case A3: the port is opened in the middle of a message.
    for start in ["05 24 01", "00 12 7f"] {
        let (items, _) = decode(&hex(&format!("{start} 8e 00 05 24 01")));
        assert_eq!((items.len(), faults(&items)), (4, 1));
        assert_eq!(items[3], pawn);
    }
    let dump = Message::BoardDump(Box::new(START));
    let mut bytes = dump.encode().split_off(30);
    bytes.extend(dump.encode());
    let (items, rest) = decode(&bytes);
    assert_eq!((items.len(), faults(&items), rest.len()), (38, 1, 0));
    assert_eq!(items[37], Item::Message(dump));
    // A lost length byte: what is left of the frame belongs to the same fault.
    let (items, _) = decode(&hex("8e 05 24 01 8e 00 05 24 01"));
    assert_eq!((items.len(), faults(&items)), (3, 1));
    // Two faults with a good message between them are two.
    assert_eq!(faults(&decode(&hex("01 02 8e 00 05 24 01 01 02")).0), 2);
    let (items, _) = decode(&hex("8e 00 8e 00 05 24 01"));
    assert_eq!((items.len(), faults(&items)), (2, 1));
    assert_eq!(items[1], pawn);
}

#[test]
fn made_token_on_a_square() {
    let (items, _) = decode(&hex("8e 00 05 24 00 8e 00 05 1b 0d"));
    let draw = field(0x1b, PieceCode::Draw);
    assert_eq!(
        items,
        [
            Item::Message(field(0x24, PieceCode::Empty)),
            Item::Message(draw)
        ]
    );
    assert!(PieceCode::Draw.letter().is_none());
}

#[test]
fn made_draughts_dumps_are_kept_whole() {
    let mut bytes = hex("86 00 67");
    bytes.resize(103, 0x04);
    assert_eq!(
        decode(&bytes).0,
        [Item::Message(Message::Unknown {
            id: 0x86,
            data: vec![4; 100]
        })]
    );
}

#[test]
fn made_stalled_frame_is_abandoned() {
    let mut decoder = Decoder::default();
    assert_eq!((decoder.abandon(), decoder.missing()), (None, None));
    decoder.push(&hex("8d 00 0a 20"), |item| panic!("{item:?}"));
    let skipped = Skipped {
        bytes: 4,
        reason: SkipReason::Abandoned { id: 0x8d },
    };
    assert_eq!(decoder.abandon(), Some(skipped));
    assert!(decoder.buffered().is_empty());
    // Should the rest come after all, it is part of that fault.
    let mut items = Vec::new();
    decoder.push(&hex("03 8e 00 05 24 01"), |item| items.push(item));
    let late = Item::Skipped(Skipped {
        bytes: 1,
        reason: SkipReason::MoreNoise,
    });
    assert_eq!(
        items,
        [late, Item::Message(field(0x24, PieceCode::WhitePawn))]
    );
}

#[test]
fn made_log_of_the_board() {
    let log = "7f 7f 7f 6a
        48 00 49 01 4a 02 4c 03 4b 04 4a 05 49 06 48 07 47 08 47 09 47 0a 47 0b 47 0c 47 0d 47 0e 47 0f
        41 30 41 31 41 32 41 33 41 34 41 35 41 36 41 37 42 38 43 39 44 3a 46 3b 45 3c 44 3d 43 3e 42 3f
        6f 40 34 51 24 70 03 01 40 0c 57 1c 60 03 03 6e 6b";
    assert_eq!(one(&format!("8f 00 58 {log}")), Message::EeMoves(hex(log)));
    // The virtual board, where nothing has been played yet.
    let [Item::Message(Message::EeMoves(own))] =
        &decode(&VirtualBoard::default().handle_host(&[0x49])).0[..]
    else {
        panic!("no log");
    };
    assert_eq!(own[..69], hex(log)[..69]);
    assert_eq!(own[69..], [0x6e, 0x6b]);
}

#[test]
fn made_commands_of_the_host() {
    for (command, byte) in [
        (Command::Reset, 0x40),
        (Command::Clock, 0x41),
        (Command::Board, 0x42),
        (Command::Update, 0x43),
        (Command::UpdateBoard, 0x44),
        (Command::SerialNumber, 0x45),
        (Command::BusAddress, 0x46),
        (Command::Trademark, 0x47),
        (Command::HardwareVersion, 0x48),
        (Command::EeMoves, 0x49),
        (Command::UpdateNice, 0x4b),
        (Command::Battery, 0x4c),
        (Command::Version, 0x4d),
        (Command::LongSerialNumber, 0x55),
    ] {
        assert_eq!(command.encode(), [byte], "{command:?}");
    }
    let five = ClockSetting::new(0, 5, 0).expect("a clock can show five minutes");
    let text = ClockText::new("Hello");
    let icons = Icons {
        left_colon: true,
        right_dot: true,
        ..Icons::default()
    };
    for (command, bytes) in [
        (ClockCommand::Version, "2b 03 03 09 00"),
        (ClockCommand::End, "2b 03 03 03 00"),
        (ClockCommand::Beep(Beeps::new(1)), "2b 04 03 0b 01 00"),
        (
            ClockCommand::SetNRun {
                left: five,
                right: five,
                mode: RunMode::LeftRuns,
            },
            "2b 0a 03 0a 00 05 00 00 05 00 01 00",
        ),
        (
            ClockCommand::Ascii {
                text,
                beep: Beeps::SILENT,
            },
            "2b 0c 03 0c 48 65 6c 6c 6f 20 20 20 00 00",
        ),
        (
            ClockCommand::Display {
                segments: Segments::new("123456"),
                icons,
                beep: true,
            },
            "2b 0b 03 01 4f 5b 06 7d 6d 66 11 03 00",
        ),
    ] {
        assert_eq!(Command::from(command).encode(), hex(bytes), "{command:?}");
    }
    assert_eq!(ClockSetting::new(10, 0, 0), None);
    assert_eq!(ClockSetting::new(0, 60, 0), None);
    assert_eq!(ClockSetting::new(0, 0, 60), None);
}

#[test]
fn virtual_board_speaks_only_when_told_to() {
    let e4 = RawSquare(0x24);
    let mut board = VirtualBoard::default();
    assert!(board.set_square(e4, PieceCode::WhitePawn).is_empty());
    assert!(board.handle_host(&[0x44]).is_empty());
    assert!(board.set_square(e4, PieceCode::WhitePawn).is_empty());
    assert_eq!(
        board.set_square(e4, PieceCode::Empty),
        hex("8e 00 05 24 00")
    );
    assert!(board.set_clock(Some(BwTime::default())).is_empty());
    assert!(board.handle_host(&[0x40]).is_empty());
    assert_eq!(board.mode(), Mode::Idle);
    assert!(board.set_square(e4, PieceCode::WhitePawn).is_empty());
    board.handle_host(&[0x4b]);
    board.power_cycle();
    assert!(board.set_square(e4, PieceCode::Empty).is_empty());
}

#[test]
fn virtual_board_reports_the_clock_always_or_as_it_changes() {
    let shown = |seconds| {
        Some(BwTime {
            right: SideTime::new(0, 3, seconds),
            ..BwTime::default()
        })
    };
    let mut board = VirtualBoard::default();
    assert_eq!(
        board.handle_host(&[0x4b]),
        hex("8d 00 0a 00 00 00 00 00 00 20")
    );
    assert!(board.set_clock(None).is_empty());
    assert_eq!(
        board.set_clock(shown(2)),
        hex("8d 00 0a 00 03 02 00 00 00 08")
    );
    assert!(board.set_clock(shown(2)).is_empty());
    assert_eq!(board.set_clock(shown(1)).len(), 10);
    // Asking once changes nothing.
    assert_eq!(board.handle_host(&[0x41]).len(), 10);
    assert!(board.set_clock(shown(1)).is_empty());
    assert_eq!(board.handle_host(&[0x43]).len(), 10);
    assert_eq!(board.set_clock(shown(1)).len(), 10);
    assert_eq!(board.set_clock(shown(1)).len(), 10);
}

#[test]
fn virtual_board_answers_questions_it_knows() {
    let mut board = VirtualBoard::default();
    assert_eq!(board.handle_host(&[0x45]), hex("91 00 08 30 31 30 32 35"));
    assert_eq!(board.handle_host(&[0x46]), hex("90 00 05 08 01"));
    assert_eq!(board.handle_host(&[0x4d]), hex("93 00 05 03 01"));
    assert!(board.handle_host(&[0x48, 0x4c, 0x55]).is_empty());
    let identity = Identity {
        long_serial: Some("3000147740".to_owned()),
        hardware_version: Some((1, 2)),
        battery: Some(Battery {
            percent: Some(50),
            ..Battery::default()
        }),
        ..Identity::default()
    };
    let mut board = VirtualBoard::new(identity);
    let mut answers = Vec::new();
    for command in [
        Command::Trademark,
        Command::HardwareVersion,
        Command::Battery,
        Command::LongSerialNumber,
    ] {
        answers.extend(messages(&board.handle_host(&command.encode())));
    }
    assert_eq!(
        answers[0],
        Message::Trademark(board.identity().trademark.clone())
    );
    assert_eq!(answers[1], Message::HardwareVersion { major: 1, minor: 2 });
    assert!(matches!(
        answers[2],
        Message::Battery(Battery {
            percent: Some(50),
            ..
        })
    ));
    assert_eq!(
        answers[3],
        Message::LongSerialNumber("3000147740".to_owned())
    );
}

#[test]
fn virtual_clock_acknowledges_in_the_modes_that_report_it() {
    let version = Command::ToClock(ClockCommand::Version).encode();
    let mut board = VirtualBoard::default();
    board.handle_host(&[0x4b]);
    assert!(board.handle_host(&version).is_empty());
    board.set_clock(Some(BwTime::default()));
    assert_eq!(
        board.handle_host(&version),
        hex("8d 00 0a 0a 10 09 00 20 00 00")
    );
    // Text that is full of opcodes is not taken for commands, however it is cut.
    let text = ClockCommand::Ascii {
        text: ClockText::new("@ABCDEFG"),
        beep: Beeps::SILENT,
    };
    let mut answer = Vec::new();
    for byte in Command::from(text).encode() {
        answer.extend(board.handle_host(&[byte]));
    }
    assert_eq!(answer, hex("8d 00 0a 0a 10 0c 00 00 00 00"));
    let five = ClockSetting::new(0, 5, 0).expect("a clock can show five minutes");
    let set = ClockCommand::SetNRun {
        left: five,
        right: five,
        mode: RunMode::Pause,
    };
    assert_eq!(
        board.handle_host(&Command::from(set).encode()),
        hex("8d 00 0a 0a 40 0a 00 00 00 00")
    );
    board.handle_host(&[0x44]);
    assert!(board.handle_host(&version).is_empty());
}

#[test]
fn virtual_board_counts_what_must_not_be_sent() {
    let mut board = VirtualBoard::default();
    assert!(board.handle_host(&hex("4a 4e 51 53 54 63")).is_empty());
    assert_eq!(board.forbidden_seen(), 6);
    // A board without lamps takes the bytes after 60 for commands; here the first of them that it knows is a reset.
    board.handle_host(&[0x44]);
    assert!(board.handle_host(&hex("60 04 00 40 40 00")).is_empty());
    assert_eq!((board.forbidden_seen(), board.mode()), (7, Mode::Idle));
    assert!(board.handle_host(&hex("00 7f ff 80 2a")).is_empty());
    assert_eq!(board.forbidden_seen(), 7);
}

#[test]
fn numbers_and_letters() {
    for square in RawSquare::all() {
        assert_eq!(RawSquare::try_from(u8::from(square)), Ok(square));
        assert_eq!(square.turned().turned(), square);
    }
    assert_eq!(RawSquare::new(64), None);
    assert_eq!(name(RawSquare(0)) + &name(RawSquare(63)), "a8h1");
    for (code, piece) in PieceCode::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(u8::from(piece)), code);
        assert_eq!(PieceCode::try_from(code as u8), Ok(piece));
        assert!(
            piece
                .letter()
                .is_none_or(|letter| PieceCode::from_letter(letter) == Some(piece))
        );
    }
    assert_eq!(PieceCode::new(16), None);
    let letters: String = PieceCode::ALL
        .into_iter()
        .filter_map(PieceCode::letter)
        .collect();
    assert_eq!(letters, "PRNBKQprnbkq");
}

#[test]
fn real_recordings_whole() {
    let folder = corpus().join("captures/dgt-serial");
    if !folder.is_dir() {
        println!("skipped: no corpus");
        return;
    }
    for (file, clocks, fields, turned) in [
        ("1.bin", 323, 131, false),
        ("2.bin", 578, 226, true),
        ("johan.bin", 854, 101, false),
    ] {
        let bytes = std::fs::read(folder.join(file)).expect("the corpus has all three recordings");
        let (items, rest) = decode(&bytes);
        assert!(rest.is_empty(), "{file}");
        let mut counts = [0, 0, 0];
        let mut board = [PieceCode::Empty; 64];
        let mut clock = None;
        let mut again = Vec::new();
        for item in items {
            let Item::Message(message) = item else {
                panic!("{file}: {item:?}")
            };
            message.encode_into(&mut again);
            match message {
                Message::BoardDump(dump) => {
                    counts[0] += 1;
                    board = *dump;
                    let mut start = START;
                    if turned {
                        start.reverse();
                    }
                    assert_eq!(board, start, "{file}");
                }
                Message::Clock(ClockMessage::Times(now)) => {
                    counts[1] += 1;
                    assert_ne!(
                        clock.replace(now),
                        Some(now),
                        "{file}: in this mode a clock message tells a change"
                    );
                    assert!(
                        now.left.increment && now.right.increment && !now.battery_low,
                        "{file}"
                    );
                }
                Message::FieldUpdate { square, piece } => {
                    counts[2] += 1;
                    let here = &mut board[usize::from(square.index())];
                    assert_ne!(
                        std::mem::replace(here, piece),
                        piece,
                        "{file}: a field update tells a change"
                    );
                }
                other => panic!("{file}: {other:?}"),
            }
        }
        assert_eq!(counts, [1, clocks, fields], "{file}");
        assert!(
            again == bytes,
            "{file}: encoded again the messages are other bytes"
        );
    }
}

/// Recordings that are not part of this project; where they are, tests read them.
fn corpus() -> std::path::PathBuf {
    match std::env::var_os("JADOUBE_CORPUS") {
        Some(folder) => folder.into(),
        None => std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
    }
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).expect("tests write bytes in hex"))
        .collect()
}

fn decode(bytes: &[u8]) -> (Vec<Item>, Vec<u8>) {
    let mut decoder = Decoder::default();
    let mut items = Vec::new();
    decoder.push(bytes, |item| items.push(item));
    (items, decoder.buffered().to_vec())
}

fn messages(bytes: &[u8]) -> Vec<Message> {
    let (items, rest) = decode(bytes);
    assert!(rest.is_empty(), "unfinished: {rest:02x?}");
    let message = |item| match item {
        Item::Message(message) => message,
        Item::Skipped(skipped) => panic!("{skipped:?} in {bytes:02x?}"),
    };
    items.into_iter().map(message).collect()
}

fn one(bytes: &str) -> Message {
    let mut messages = messages(&hex(bytes));
    assert_eq!(messages.len(), 1, "{bytes}");
    messages.remove(0)
}

fn times(bytes: &str) -> BwTime {
    match one(bytes) {
        Message::Clock(ClockMessage::Times(times)) => times,
        other => panic!("{bytes}: {other:?}"),
    }
}

fn acknowledged(bytes: &str) -> Ack {
    match one(bytes) {
        Message::Clock(ClockMessage::Ack(ack)) => ack,
        other => panic!("{bytes}: {other:?}"),
    }
}

fn field(square: u8, piece: PieceCode) -> Message {
    Message::FieldUpdate {
        square: RawSquare(square),
        piece,
    }
}

fn faults(items: &[Item]) -> usize {
    items
        .iter()
        .filter(|item| matches!(item, Item::Skipped(skipped) if skipped.reason != SkipReason::MoreNoise))
        .count()
}

/// The name of a square while the connector is at White's left hand.
fn name(square: RawSquare) -> String {
    let (rank, file) = (8 - square.index() / 8, square.index() % 8);
    format!("{}{rank}", char::from(b'a' + file))
}

fn show(piece: PieceCode) -> String {
    piece.letter().unwrap_or('-').to_string()
}

/// Field updates, given as pairs of square and piece, in words.
fn updates(fields: &str, place: impl Fn(RawSquare) -> RawSquare) -> String {
    let bytes: Vec<u8> = hex(fields)
        .chunks(2)
        .flat_map(|pair| [0x8e, 0x00, 0x05, pair[0], pair[1]])
        .collect();
    let told = messages(&bytes).into_iter().map(|message| match message {
        Message::FieldUpdate { square, piece } => name(place(square)) + &show(piece),
        other => panic!("{other:?}"),
    });
    told.collect::<Vec<_>>().join(" ")
}
