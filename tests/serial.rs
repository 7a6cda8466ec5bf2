//! Links to virtual boards on pseudo terminals: finding, identifying, losing and finding again.
#![cfg(feature = "io")]

#[path = "support/devices.rs"]
mod devices;

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jadoube::daemon::serial::{
    Answer, Finder, Identity, LinkEvent, OpenError, PortSpec, ProbeError, Roots, Settings, open,
    probe, spawn, survey,
};
use jadoube::wire::{Family, psb1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_serial::{SerialPort, SerialStream};

use devices::Devices;

const DGT: &str = "045b:8111";
const FTDI: &str = "0403:6001";
const GPS: &str = "1546:01a7";
const ARDUINO: &str = "2341:0043";

/// Longer than anything here takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_board_is_opened_by_its_path() {
    let machine = Machine::new();
    let board = machine.plug("ttyUSB7", "dead:beef", Board::new("3000147740"));
    let finder = machine.finder();
    let path = machine.dev("ttyUSB7");
    let mut table = Table::new(PortSpec::Path(path.clone()), &finder);
    let (at, identity) = table.opened().await;
    assert_eq!(at, path, "as it was configured");
    let identity = identity.unwrap();
    assert_eq!(identity.serial.as_deref(), Some("3000147740"));
    assert_eq!(identity.short_serial.as_deref(), Some("47740"));
    assert_eq!(identity.version.as_deref(), Some("3.10"));
    // What the board said while it was asked comes to the reader too.
    let expected = [
        &b"\xa2\x00\x0d3000147740"[..],
        b"\x91\x00\x0847740",
        b"\x93\x00\x05\x03\x0a",
    ]
    .concat();
    assert_eq!(table.bytes(expected.len()).await, expected);

    // Both ways, every value of a byte.
    table.send(&[0x42]).await;
    board.heard(|heard| heard.ends_with(&[0x42])).await;
    let all: Vec<u8> = (0..=255).collect();
    board.say(&all);
    assert_eq!(table.bytes(256).await, all);
}

#[tokio::test]
async fn commands_are_spaced() {
    let machine = Machine::new();
    let board = machine.plug("ttyACM0", DGT, Board::new("3000147740"));
    let settings = Settings {
        spacing: Duration::from_millis(60),
        ..quick()
    };
    let finder = Finder::new(machine.roots(), settings);
    let mut table = Table::new(PortSpec::Auto, &finder);
    table.opened().await;
    let start = Instant::now();
    for _ in 0..4 {
        table.send(&[0x42]).await;
    }
    board.heard(|heard| heard.ends_with(&[0x42; 4])).await;
    assert!(start.elapsed() >= Duration::from_millis(3 * 60));
}

#[tokio::test]
async fn a_board_is_found_by_its_number_among_others() {
    // Case N1: the wanted one is the last.
    let machine = Machine::new();
    for (port, serial) in [
        ("ttyACM0", "3000000001"),
        ("ttyACM1", "3000000002"),
        ("ttyACM2", "3000000003"),
    ] {
        machine.stand(port, DGT, Board::new(serial));
    }
    let finder = machine.finder();
    let mut third = Table::new(PortSpec::Serial("3000000003".into()), &finder);
    assert_eq!(third.opened().await.0, machine.dev("ttyACM2"));
    let mut by_short_number = Table::new(PortSpec::Serial("00001".into()), &finder);
    assert_eq!(by_short_number.opened().await.0, machine.dev("ttyACM0"));
}

#[tokio::test]
async fn a_device_of_unknown_make_is_left_alone() {
    // Case A9.
    let machine = Machine::new();
    let gps = machine.plug("ttyACM0", GPS, Stranger::new(""));
    let board = machine.plug("ttyACM1", DGT, Board::new("3000147740"));
    let finder = machine.finder();
    let mut auto = Table::new(PortSpec::Auto, &finder);
    assert_eq!(auto.opened().await.0, machine.dev("ttyACM1"));
    let mut missing = Table::new(PortSpec::Serial("3000000009".into()), &finder);
    let (reason, advice) = missing.waiting().await;
    assert_eq!(reason, "board 3000000009 is not connected");
    assert!(advice.contains("ttyACM0 (1546:01a7"), "{advice}");
    // Another round of looking ends with a message, too: the board is replugged.
    machine.unplug("ttyACM1", board);
    auto.lost().await;
    machine.stand("ttyACM2", DGT, Board::new("3000147740"));
    auto.opened().await;
    assert_eq!(gps.all_heard(), b"");
    // Opening sets the speed; the GPS still has its own.
    assert_eq!(gps.slave.baud_rate().unwrap(), Stranger::BAUD);
    let seen = survey(&machine.roots(), &quick(), &[], &[]).await;
    assert!(matches!(seen[0].answer, Answer::Foreign));
    assert_eq!(gps.slave.baud_rate().unwrap(), Stranger::BAUD);
}

#[tokio::test]
async fn a_board_that_comes_back_under_another_name_is_the_same() {
    // Case A7; for each way in which the board may be configured.
    for by in ["serial", "auto", "kernel name"] {
        let machine = Machine::new();
        let board = machine.plug("ttyACM0", DGT, Board::new("3000147740"));
        let finder = machine.finder();
        let spec = match by {
            "serial" => PortSpec::Serial("3000147740".into()),
            "auto" => PortSpec::Auto,
            _ => PortSpec::Path(board.node.clone()),
        };
        let mut table = Table::new(spec, &finder);
        table.opened().await;
        machine.unplug("ttyACM0", board);
        let reason = table.lost().await;
        assert!(!reason.is_empty());
        let (reason, _) = table.waiting().await;
        assert!(
            reason.contains("not connected") || reason.contains("is not there"),
            "{by}: {reason}"
        );
        let board = machine.plug("ttyACM1", DGT, Board::new("3000147740"));
        let (path, identity) = table.opened().await;
        assert_eq!(path, machine.dev("ttyACM1"), "{by}");
        assert_eq!(identity.unwrap().serial.as_deref(), Some("3000147740"));
        // Only what is said from now on reaches the board.
        table.send(&[0x4b]).await;
        board.heard(|heard| heard.ends_with(&[0x4b])).await;
    }
}

#[tokio::test]
async fn boards_that_swap_their_names_keep_their_tables() {
    // Case A8, without a restart: the kernel's names promise nothing.
    let machine = Machine::new();
    let (a, b) = (Board::new("3000000001"), Board::new("3000000002"));
    let (first, second) = (Pty::new(), Pty::new());
    let (first_node, second_node) = (first.node(), second.node());
    let a = machine.plug_at("ttyACM0", DGT, a, first);
    let b = machine.plug_at("ttyACM1", DGT, b, second);
    let finder = machine.finder();
    let mut one = Table::new(PortSpec::Path(first_node.clone()), &finder);
    let mut two = Table::new(PortSpec::Path(second_node.clone()), &finder);
    assert_eq!(one.opened_board().await, "3000000001");
    assert_eq!(two.opened_board().await, "3000000002");
    // The same two nodes, the boards the other way round: first the players on them change, then the lines drop.
    a.become_board("3000000002");
    b.become_board("3000000001");
    one.handle.reopen();
    two.handle.reopen();
    one.lost().await;
    two.lost().await;
    assert_eq!(one.opened_board().await, "3000000001");
    assert_eq!(two.opened_board().await, "3000000002");
}

#[tokio::test]
async fn a_link_names_a_place_and_keeps_it() {
    // Case N2: board A goes to the table of board B, and that is where its game is played now.
    let machine = Machine::new();
    let a = machine.plug("by-path-1", DGT, Board::new("3000000001"));
    let b = machine.plug("by-path-2", DGT, Board::new("3000000002"));
    let finder = machine.finder();
    let mut one = Table::new(PortSpec::Path(machine.dev("by-path-1")), &finder);
    let mut two = Table::new(PortSpec::Path(machine.dev("by-path-2")), &finder);
    one.opened().await;
    two.opened().await;
    machine.unplug("by-path-1", a);
    machine.unplug("by-path-2", b);
    one.lost().await;
    two.lost().await;
    machine.stand("by-path-2", DGT, Board::new("3000000001"));
    assert_eq!(two.opened_board().await, "3000000001");
    machine.stand("by-path-1", DGT, Board::new("3000000002"));
    assert_eq!(one.opened_board().await, "3000000002");
}

#[tokio::test]
async fn tables_do_not_take_each_others_boards() {
    let machine = Machine::new();
    machine.stand("ttyACM0", DGT, Board::new("3000000001"));
    machine.stand("ttyACM1", DGT, Board::new("3000000002"));
    machine.stand("ttyACM2", DGT, Board::new("3000000003"));
    machine.stand("ttyACM10", DGT, Board::new("3000000004"));
    let finder = machine.finder();
    let mut auto = Table::new(PortSpec::Auto, &finder);
    let mut auto_too = Table::new(PortSpec::Auto, &finder);
    let mut named = Table::new(PortSpec::Serial("3000000001".into()), &finder);
    let mut placed = Table::new(PortSpec::Path(machine.dev("ttyACM2")), &finder);
    assert_eq!(named.opened().await.0, machine.dev("ttyACM0"));
    assert_eq!(
        auto.opened().await.0,
        machine.dev("ttyACM1"),
        "in the order of the ports"
    );
    assert_eq!(auto_too.opened().await.0, machine.dev("ttyACM10"));
    assert_eq!(placed.opened().await.0, machine.dev("ttyACM2"));
}

#[tokio::test]
async fn a_board_that_nobody_wants_is_asked_once() {
    let machine = Machine::new();
    let spare = machine.plug("ttyACM0", DGT, Board::new("3000000001"));
    let finder = machine.finder();
    let mut table = Table::new(PortSpec::Serial("3000000002".into()), &finder);
    let (reason, _) = table.waiting().await;
    assert!(reason.contains("free: 3000000001 on /dev/pts/"), "{reason}");
    let asked = spare.all_heard();
    assert!(!asked.is_empty());
    // The table goes on looking, and finds its board in the end.
    let board = machine.plug("ttyACM1", DGT, Board::new("3000000002"));
    table.opened().await;
    assert_eq!(spare.all_heard(), asked);
    // Replugged, it may be another one, and is asked again.
    machine.unplug("ttyACM1", board);
    machine.unplug("ttyACM0", spare);
    table.lost().await;
    let spare = machine.plug("ttyACM0", DGT, Board::new("3000000003"));
    spare.heard(|heard| !heard.is_empty()).await;
    // A table that wants it gets it, though it was asked before.
    let mut other = Table::new(PortSpec::Serial("3000000003".into()), &finder);
    other.opened().await;
}

#[tokio::test]
async fn auto_waits_for_the_board_that_it_had() {
    let machine = Machine::new();
    let own = machine.plug("ttyACM0", DGT, Board::new("3000000001"));
    let settings = Settings {
        loyalty: Duration::ZERO,
        ..quick()
    };
    let finder = Finder::new(machine.roots(), settings);
    let mut table = Table::new(PortSpec::Auto, &finder);
    table.opened().await;
    machine.stand("ttyACM1", DGT, Board::new("3000000002"));
    machine.unplug("ttyACM0", own);
    table.lost().await;
    // A spare board that was there all the time is no replacement; one that was brought is.
    let (reason, _) = table.waiting().await;
    assert!(
        reason.starts_with("board 3000000001 is not connected; free: 3000000002"),
        "{reason}"
    );
    machine.stand("ttyACM2", DGT, Board::new("3000000003"));
    assert_eq!(table.opened().await.0, machine.dev("ttyACM2"));
}

#[tokio::test]
async fn a_busy_port_is_named_with_its_holder_and_taken_when_free() {
    // Case P2.
    let machine = Machine::new();
    let board = machine.plug("ttyACM0", DGT, Board::new("3000147740"));
    let holder = Holding::new(&board.node);
    let finder = machine.finder();
    for spec in [PortSpec::Path(machine.dev("ttyACM0")), PortSpec::Auto] {
        let mut table = Table::new(spec, &finder);
        let (reason, advice) = table.waiting().await;
        let who = format!("sleep (pid {})", holder.0.id());
        assert!(reason.contains(&format!("is in use by {who}")), "{reason}");
        assert!(advice.contains(&format!("Close {who}")), "{advice}");
    }
    let seen = survey(&machine.roots(), &quick(), &[], &[]).await;
    assert!(
        matches!(
            &seen[0].answer,
            Answer::Busy {
                holder: Some(_),
                ..
            }
        ),
        "{seen:?}"
    );
    assert_eq!(board.all_heard(), b"");
    let mut table = Table::new(PortSpec::Path(machine.dev("ttyACM0")), &finder);
    table.waiting().await;
    drop(holder);
    let (more, _) = table.events_until_opened().await;
    assert_eq!(more, [], "each cause is said once");
}

#[tokio::test]
async fn one_process_opens_a_port_once() {
    let machine = Machine::new();
    let board = machine.plug("ttyACM0", DGT, Board::new("3000147740"));
    let port = open(&machine.dev("ttyACM0")).unwrap();
    assert_eq!(
        open(&board.node).unwrap_err(),
        OpenError::HeldHere {
            path: board.node.clone()
        }
    );
    drop(port);
    let mut port = open(&board.node).unwrap();
    assert_eq!(port.node(), board.node);
    let identified = probe(&mut port, &quick(), &[Family::Dgt]).await.unwrap();
    assert_eq!(
        identified.identity.to_string(),
        "dgt board 3000147740, firmware 3.10"
    );
}

#[tokio::test]
async fn a_presence_board_on_a_microcontroller_is_sent_nothing_but_the_question() {
    let machine = Machine::new();
    let board = machine.plug("ttyACM0", ARDUINO, Presence::new("club-7"));
    let finder = machine.finder();
    let mut table = Table::new(PortSpec::Auto, &finder);
    let (path, identity) = table.opened().await;
    assert_eq!(path, machine.dev("ttyACM0"));
    let identity = identity.unwrap();
    assert_eq!(identity.to_string(), "psb1 board club-7, firmware sim1");
    assert!(identity.answers_to("club-7"));
    assert_eq!(board.slave.baud_rate().unwrap(), 115_200);
    assert_eq!(board.all_heard(), b"?\n");
    let heard = table.bytes(80).await;
    assert!(heard.starts_with(b"ets Jun"), "{heard:?}");
    assert!(heard.ends_with(b"\n"));
    table.send(b"?\n").await;
    board.heard(|heard| heard == b"?\n?\n").await;

    let mut other = Table::new(PortSpec::Serial("club-8".into()), &finder);
    other.waiting().await;
    machine.stand("ttyACM1", ARDUINO, Presence::new("club-8"));
    assert_eq!(other.opened().await.0, machine.dev("ttyACM1"));
}

#[tokio::test]
async fn behind_an_adapter_either_kind_of_board_is_found_at_its_speed() {
    let machine = Machine::new();
    for (name, baud) in [("ttyUSB0", 115_200), ("ttyUSB1", 9600)] {
        let board = Presence {
            baud: Some(baud),
            ..Presence::new(&format!("at-{baud}"))
        };
        let board = machine.plug(name, FTDI, board);
        let mut table = Table::new(PortSpec::Serial(format!("at-{baud}")), &machine.finder());
        let (_, identity) = table.opened().await;
        assert_eq!(identity.unwrap().family, Family::Psb1);
        assert_eq!(board.slave.baud_rate().unwrap(), baud);
        // What came at other speeds is no word of the board.
        let heard = String::from_utf8(table.bytes(1).await).unwrap();
        assert!(heard.contains("$H,1,at-"), "{heard}");
    }
    let board = machine.plug("ttyUSB2", FTDI, Board::new("3000147740"));
    let mut table = Table::new(PortSpec::Path(board.node.clone()), &machine.finder());
    assert_eq!(table.opened_board().await, "3000147740");
    assert_eq!(board.slave.baud_rate().unwrap(), 9600);
    assert!(!board.all_heard().contains(&b'?'), "it answers first");
}

#[tokio::test]
async fn a_presence_board_that_hears_nothing_is_one_all_the_same() {
    let machine = Machine::new();
    let deaf = Presence {
        deaf: true,
        ..Presence::new("unsaid")
    };
    machine.stand("ttyACM0", ARDUINO, deaf);
    let mut table = Table::new(PortSpec::Auto, &machine.finder());
    let (_, identity) = table.opened().await;
    assert_eq!(
        identity.unwrap().to_string(),
        "psb1 board without a serial number"
    );
}

#[tokio::test]
async fn who_says_what_stands_there_gets_no_other_and_asks_for_no_other() {
    let machine = Machine::new();
    let presence = machine.plug("ttyACM0", ARDUINO, Presence::new("club-7"));
    let dgt = machine.plug("ttyACM1", DGT, Board::new("3000147740"));
    let finder = machine.finder();
    let mut table = Table::of(Some(Family::Dgt), PortSpec::Auto, &finder);
    assert_eq!(table.opened_board().await, "3000147740");
    assert_eq!(presence.all_heard(), b"", "nobody wants such a board");
    let mut other = Table::of(Some(Family::Psb1), PortSpec::Auto, &finder);
    assert_eq!(other.opened_board().await, "club-7");

    machine.unplug("ttyACM1", dgt);
    table.lost().await;
    let named = machine.plug("ttyS7", "dead:beef", Presence::new("club-9"));
    let spec = PortSpec::Path(named.node.clone());
    let mut third = Table::of(Some(Family::Psb1), spec, &finder);
    assert_eq!(third.opened_board().await, "club-9");
    assert_eq!(named.all_heard(), b"?\n");
}

#[tokio::test]
async fn presence_boards_are_listed() {
    let machine = Machine::new();
    machine.stand("ttyACM0", ARDUINO, Presence::new("club-7"));
    machine.stand("ttyACM1", ARDUINO, Stranger::new("$GPGLL,,,,,,V*06\r\n"));
    let seen = survey(&machine.roots(), &quick(), &[], &[]).await;
    assert!(
        matches!(&seen[0].answer, Answer::Board(board) if board.family == Family::Psb1),
        "{seen:?}"
    );
    assert!(matches!(seen[1].answer, Answer::Stranger(_)), "{seen:?}");
}

#[tokio::test]
async fn a_port_that_we_may_not_open_says_so() {
    // Case P1.
    let machine = Machine::new();
    let board = machine.plug("ttyACM0", DGT, Board::new("3000147740"));
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        fs::set_permissions(
            &board.node,
            std::os::unix::fs::PermissionsExt::from_mode(0o000),
        )
        .unwrap();
        assert!(matches!(
            open(&board.node),
            Err(OpenError::NoPermission { .. })
        ));
        return;
    }
    // Root may open anything, so somebody else tries.
    let node = board.node.to_str().unwrap();
    let spawned = Command::new(env!("CARGO_BIN_EXE_jadoube"))
        .args(["record", "--port", node, "--out", "/dev/null"])
        .current_dir("/")
        .as_nobody()
        .output();
    match spawned {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(text.contains(node) && text.contains("permission"), "{text}");
        }
        Err(error) => eprintln!("not tested, as nobody may not run the program: {error}"),
    }
}

#[tokio::test]
async fn a_board_that_is_deaf_at_first_is_asked_again() {
    // Case P3.
    let machine = Machine::new();
    let board = machine.plug(
        "ttyACM0",
        DGT,
        Board {
            deaf_to: 9,
            ..Board::new("3000147740")
        },
    );
    let mut port = open(&board.node).unwrap();
    probe(&mut port, &quick(), &[Family::Dgt]).await.unwrap();
    assert!(board.all_heard().len() > 9);
    drop(port);

    // Longer than one round of asking: the table hears of it, once, and gets its board.
    machine.stand(
        "ttyACM1",
        FTDI,
        Board {
            deaf_to: 50,
            ..Board::new("3000147741")
        },
    );
    let finder = machine.finder();
    let mut table = Table::new(PortSpec::Path(machine.dev("ttyACM1")), &finder);
    let (waits, (_, identity)) = table.events_until_opened().await;
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert!(waits[0].0.starts_with("nothing answers on "), "{waits:?}");
    assert!(
        waits[0].0.ends_with("ttyACM1"),
        "as the table calls it: {waits:?}"
    );
    assert_eq!(identity.unwrap().serial.as_deref(), Some("3000147741"));
}

#[tokio::test]
async fn garbage_before_the_answer_is_tolerated() {
    let machine = Machine::new();
    let greeting = [
        &[0x12, 0x7f][..],
        &[0x8e, 0, 5, 0x24],
        &[0x80, 0, 0],
        &[0x86, 0, 0x43, 1, 2, 3],
    ]
    .concat();
    machine.stand(
        "ttyACM0",
        DGT,
        Board {
            greeting: greeting.clone(),
            ..Board::new("3000147740")
        },
    );
    let finder = machine.finder();
    let mut table = Table::new(PortSpec::Auto, &finder);
    assert_eq!(table.opened_board().await, "3000147740");
    assert!(
        table.bytes(greeting.len()).await.starts_with(&greeting),
        "it is the session's business"
    );
}

#[tokio::test]
async fn a_stranger_is_taken_only_where_it_was_named() {
    let machine = Machine::new();
    machine.stand("ttyUSB0", FTDI, Stranger::new("$GPGGA,1\r\n"));
    let finder = machine.finder();
    let mut auto = Table::new(PortSpec::Auto, &finder);
    let (reason, advice) = auto.waiting().await;
    assert!(
        reason.contains("is no board that jadoube knows"),
        "{reason}"
    );
    assert!(advice.contains("port = \""), "{advice}");
    let mut named = Table::new(PortSpec::Path(machine.dev("ttyUSB0")), &finder);
    let (_, identity) = named.opened().await;
    assert_eq!(identity, None);
    assert!(named.bytes(10).await.starts_with(b"$GPGGA"));
}

#[tokio::test]
async fn a_port_that_vanishes_is_a_normal_answer() {
    let machine = Machine::new();
    // Listed and gone before it is opened.
    machine.list("ttyACM0", DGT, Path::new("/dev/pts/no-such-port"));
    // Gone at the first question.
    let mut shy = machine.plug(
        "ttyACM1",
        DGT,
        Board {
            leaves_at: Some(1),
            ..Board::new("3000000001")
        },
    );
    let finder = machine.finder();
    let mut table = Table::new(PortSpec::Auto, &finder);
    shy.gone().await;
    let (reason, _) = table.waiting().await;
    assert_eq!(reason, "no board is connected");
    machine.unlist("ttyACM1");
    machine.stand("ttyACM1", DGT, Board::new("3000000002"));
    assert_eq!(table.opened_board().await, "3000000002");

    let mut named = Table::new(PortSpec::Path(machine.dev("nowhere")), &finder);
    let (reason, advice) = named.waiting().await;
    assert!(reason.ends_with("nowhere is not there"), "{reason}");
    assert!(advice.contains("jadoube ports"), "{advice}");
}

#[tokio::test]
async fn probing_a_port_that_vanishes_ends() {
    let machine = Machine::new();
    let board = machine.plug(
        "ttyACM1",
        DGT,
        Board {
            leaves_at: Some(2),
            ..Board::new("3000000001")
        },
    );
    let mut port = open(&board.node).unwrap();
    assert!(matches!(
        probe(&mut port, &quick(), &[Family::Dgt]).await,
        Err(ProbeError::Gone(_))
    ));
    let silent = machine.plug("ttyACM2", DGT, Stranger::new(""));
    let mut port = open(&silent.node).unwrap();
    assert!(matches!(
        probe(&mut port, &quick(), &[Family::Dgt]).await,
        Err(ProbeError::Silent)
    ));
}

#[tokio::test]
async fn a_silent_board_can_be_reopened() {
    // Case A6: the session knows when to expect bytes, the link only how to begin anew.
    let machine = Machine::new();
    machine.stand("ttyACM0", DGT, Board::new("3000147740"));
    let finder = machine.finder();
    let mut table = Table::new(PortSpec::Serial("3000147740".into()), &finder);
    table.opened().await;
    table.handle.reopen();
    table.lost().await;
    let (waits, _) = table.events_until_opened().await;
    assert_eq!(waits, []);
}

#[tokio::test]
async fn a_link_ends_with_its_reader_or_at_shutdown() {
    let machine = Machine::new();
    let board = machine.plug("ttyACM0", DGT, Board::new("3000147740"));
    let finder = machine.finder();
    let mut table = Table::new(PortSpec::Auto, &finder);
    table.opened().await;
    drop(table.events);
    // The port is free again: another table gets it.
    let (stop, stopped) = oneshot::channel::<()>();
    let (handle, events) = spawn(PortSpec::Path(board.node.clone()), None, &finder, async {
        let _ = stopped.await;
    });
    let mut table = Table {
        handle,
        events,
        pending: Vec::new(),
    };
    table.opened().await;
    stop.send(()).unwrap();
    let end = async { while table.events.recv().await.is_some() {} };
    timeout(DEADLINE, end).await.unwrap();
    open(&board.node).unwrap();
}

#[tokio::test]
async fn all_devices_are_surveyed() {
    let machine = Machine::new();
    machine.stand("ttyACM0", DGT, Board::new("3000147740"));
    machine.stand("ttyACM1", DGT, Stranger::new(""));
    machine.stand("ttyUSB0", FTDI, Stranger::new("hello"));
    machine.stand("ttyUSB1", GPS, Stranger::new(""));
    let seen = survey(&machine.roots(), &quick(), &[], &[]).await;
    let names: Vec<_> = seen.iter().map(|s| s.device.name.as_str()).collect();
    assert_eq!(names, ["ttyACM0", "ttyACM1", "ttyUSB0", "ttyUSB1"]);
    assert!(
        matches!(&seen[0].answer, Answer::Board(identity) if identity.answers_to("3000147740"))
    );
    assert!(
        matches!(&seen[1].answer, Answer::Refused(refusal) if refusal.reason.starts_with("nothing answers"))
    );
    assert!(
        matches!(&seen[2].answer, Answer::Stranger(refusal) if refusal.reason.contains("no board that"))
    );
    assert!(matches!(&seen[3].answer, Answer::Foreign));
    // What is named is asked, listed or not.
    let other = Pty::new();
    let named = [machine.dev("ttyUSB1"), other.node(), machine.dev("nowhere")];
    let seen = survey(&machine.roots(), &quick(), &named, &[]).await;
    assert_eq!(seen.len(), 6);
    for (place, says) in [
        (3, "nothing answers"),
        (4, "nothing answers"),
        (5, "is not there"),
    ] {
        assert!(
            matches!(&seen[place].answer, Answer::Refused(refusal) if refusal.reason.contains(says)),
            "{seen:?}"
        );
    }
}

#[tokio::test]
async fn a_configuration_is_checked_against_what_is_there() {
    let machine = Machine::new();
    let board = machine.plug("ttyACM0", DGT, Board::new("3000147740"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // Greets whoever comes, as an MQTT 5 broker does, and says no more.
    let broker = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(1..) = socket.read(&mut buffer).await {
                    let _ = socket.write_all(&[0x20, 3, 0, 0, 0]).await;
                }
            });
        }
    });
    let folder = machine.0.folder();
    let file = folder.join("jadoube.toml");
    let written = format!(
        "state_dir = \"state\"\n[mqtt]\nurl = \"mqtt://127.0.0.1:{port}\"\n[[table]]\nname = \"12\"\nport = \"{}\"\n",
        board.node.display()
    );
    fs::write(&file, &written).unwrap();
    let (code, out, _) = jadoube(&["check", "--config", file.to_str().unwrap()]).await;
    assert_eq!(code, Some(0), "{out}");
    for line in [
        format!("ok    configuration: {}, one table", file.display()),
        format!(
            "ok    state: {} can be made",
            folder.join("state").display()
        ),
        format!("ok    broker: 127.0.0.1 port {port} takes us as an MQTT 5 client"),
        format!(
            "ok    table 12: dgt board 3000147740, firmware 3.10, on {}",
            board.node.display()
        ),
    ] {
        assert!(out.lines().any(|out| out == line), "{line}\n{out}");
    }

    broker.abort();
    let nowhere = machine.dev("nowhere");
    fs::write(
        &file,
        written.replace(board.node.to_str().unwrap(), nowhere.to_str().unwrap()),
    )
    .unwrap();
    let (code, out, err) = jadoube(&["check", "--config", file.to_str().unwrap()]).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains(&format!(
            "FAIL  table 12: {} is not there\n      Plug",
            nowhere.display()
        )),
        "{out}"
    );
    assert!(out.contains("FAIL  broker: "), "{out}");
    assert_eq!(err, "jadoube: 2 checks failed\n");

    fs::write(&file, "nonsense = 1").unwrap();
    let (code, out, err) = jadoube(&["check", "--config", file.to_str().unwrap()]).await;
    assert_eq!((code, out.as_str()), (Some(78), ""));
    assert!(err.contains("nonsense"), "{err}");
}

#[tokio::test]
async fn assigning_is_refused_with_a_way_out() {
    let (code, out, err) = jadoube(&["ports", "--assign"]).await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        err.contains("--assign") && err.contains("serial = "),
        "{err}"
    );
}

/// Exit code, standard output, standard error.
async fn jadoube(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_jadoube"));
    command
        .args(args)
        .env_remove("JADOUBE_LOG")
        .kill_on_drop(true);
    let output = timeout(DEADLINE, command.output())
        .await
        .expect("an end in time")
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Times that make a test quick, in the proportions of the real ones.
fn quick() -> Settings {
    Settings {
        poll: Duration::from_millis(20),
        settle: Duration::from_millis(10),
        spacing: Duration::from_millis(3),
        answer: Duration::from_millis(60),
        attempts: 5,
        sign_of_life: Duration::from_millis(100),
        retry_min: Duration::from_millis(20),
        retry_named: Duration::from_millis(100),
        retry_guessed: Duration::from_millis(200),
        ..Settings::default()
    }
}

/// A machine's devices, and what is plugged in until the end of the test.
struct Machine(Devices, RefCell<Vec<Plugged>>);

impl Machine {
    fn new() -> Machine {
        Machine(Devices::new(), RefCell::default())
    }

    fn roots(&self) -> Roots {
        self.0.roots()
    }

    fn finder(&self) -> Finder {
        Finder::new(self.roots(), quick())
    }

    fn dev(&self, name: &str) -> PathBuf {
        self.0.dev(name)
    }

    /// Plugs something in that stays until the end of the test.
    fn stand(&self, name: &str, usb: &str, player: impl Player) {
        let plugged = self.plug(name, usb, player);
        self.1.borrow_mut().push(plugged);
    }

    fn plug(&self, name: &str, usb: &str, player: impl Player) -> Plugged {
        self.plug_at(name, usb, player, Pty::new())
    }

    fn plug_at(&self, name: &str, usb: &str, player: impl Player, pty: Pty) -> Plugged {
        let plugged = Plugged::new(player, pty);
        self.list(name, usb, &plugged.node);
        plugged
    }

    fn list(&self, name: &str, usb: &str, node: &Path) {
        self.0.list(name, usb, node);
    }

    fn unlist(&self, name: &str) {
        self.0.unlist(name);
    }

    /// Hangs up. The slave stays open to the end of the test: so long nobody else gets a node of this number.
    fn unplug(&self, name: &str, mut plugged: Plugged) {
        plugged.hang_up();
        self.1.borrow_mut().push(plugged);
        self.unlist(name);
    }
}

/// A pseudo terminal. Its slave stays open here, unread, so that the master can be read before and after a link opens it.
struct Pty {
    master: SerialStream,
    slave: SerialStream,
}

impl Pty {
    fn new() -> Pty {
        let (master, mut slave) = SerialStream::pair().unwrap();
        slave.set_baud_rate(Stranger::BAUD).unwrap();
        Pty { master, slave }
    }

    fn node(&self) -> PathBuf {
        self.slave.name().unwrap().into()
    }
}

/// What sits at the far end.
trait Player: Send + 'static {
    /// Said when plugged in.
    fn greeting(&self) -> Vec<u8>;
    /// Said to one byte; nothing means that it goes away.
    fn answer(&mut self, byte: u8) -> Option<Vec<u8>>;
    fn become_board(&mut self, _serial: &str) {}
    /// The speed of the line at which the next bytes come and go.
    fn tune(&mut self, _baud: u32) {}
}

/// A presence board, as it is before anything is moved.
struct Presence {
    board: psb1::VirtualBoard,
    /// At any other speed nobody understands anybody; none for a line that has no speed, as on USB.
    baud: Option<u32>,
    tuned: u32,
    /// It talks, and does not hear.
    deaf: bool,
}

impl Presence {
    fn new(id: &str) -> Presence {
        Presence {
            board: psb1::VirtualBoard::new(psb1::Identity {
                id: id.parse().unwrap(),
                ..psb1::Identity::default()
            }),
            baud: None,
            tuned: 0,
            deaf: false,
        }
    }
}

impl Player for Presence {
    fn greeting(&self) -> Vec<u8> {
        b"ets Jun  8 2016\r\nrst:0x1 (POWERON_RESET)\r\n".to_vec()
    }

    fn answer(&mut self, byte: u8) -> Option<Vec<u8>> {
        let is_understood = self.baud.is_none_or(|baud| baud == self.tuned);
        Some(match (is_understood, self.deaf) {
            (false, _) => vec![!byte],
            (true, true) => b"$S,07,0001A2F3,FFFF00000000EFFF*7C\n".to_vec(),
            (true, false) => self.board.handle_host(0, &[byte]).concat(),
        })
    }

    fn tune(&mut self, baud: u32) {
        self.tuned = baud;
    }
}

/// A DGT board, as far as identifying goes.
struct Board {
    serial: String,
    greeting: Vec<u8>,
    /// So many bytes get no answer.
    deaf_to: usize,
    /// At this byte it is unplugged.
    leaves_at: Option<usize>,
    heard: usize,
}

impl Board {
    fn new(serial: &str) -> Board {
        Board {
            serial: serial.into(),
            greeting: Vec::new(),
            deaf_to: 0,
            leaves_at: None,
            heard: 0,
        }
    }
}

impl Player for Board {
    fn greeting(&self) -> Vec<u8> {
        self.greeting.clone()
    }

    fn answer(&mut self, byte: u8) -> Option<Vec<u8>> {
        self.heard += 1;
        if self.leaves_at.is_some_and(|at| self.heard >= at) {
            return None;
        }
        if self.heard <= self.deaf_to {
            return Some(Vec::new());
        }
        Some(match byte {
            0x45 => [&[0x91, 0, 8], &self.serial.as_bytes()[5..]].concat(),
            0x55 => [&[0xa2, 0, 13], self.serial.as_bytes()].concat(),
            0x4d => vec![0x93, 0, 5, 3, 10],
            _ => Vec::new(),
        })
    }

    fn become_board(&mut self, serial: &str) {
        self.serial = serial.into();
    }
}

/// A device of another kind. It talks, and answers every byte with the same.
struct Stranger(&'static str);

impl Stranger {
    const BAUD: u32 = 38400;

    fn new(says: &'static str) -> Stranger {
        Stranger(says)
    }
}

impl Player for Stranger {
    fn greeting(&self) -> Vec<u8> {
        self.0.into()
    }

    fn answer(&mut self, _: u8) -> Option<Vec<u8>> {
        Some(self.0.into())
    }
}

/// A player on its pseudo terminal. Dropping it hangs up.
struct Plugged {
    node: PathBuf,
    heard: watch::Receiver<Vec<u8>>,
    says: mpsc::UnboundedSender<Vec<u8>>,
    player: Arc<Mutex<dyn Player>>,
    task: Option<JoinHandle<()>>,
    slave: SerialStream,
}

impl Plugged {
    fn new(player: impl Player, pty: Pty) -> Plugged {
        let node = pty.node();
        let Pty { mut master, slave } = pty;
        let greeting = player.greeting();
        let player: Arc<Mutex<dyn Player>> = Arc::new(Mutex::new(player));
        let (heard_tx, heard) = watch::channel(Vec::new());
        let (says, mut to_say) = mpsc::unbounded_channel::<Vec<u8>>();
        let playing = player.clone();
        let task = tokio::spawn(async move {
            master.write_all(&greeting).await.unwrap();
            let mut buffer = [0; 64];
            loop {
                let reply = tokio::select! {
                    read = master.read(&mut buffer) => {
                        let Ok(length @ 1..) = read else { return };
                        let mut reply = Vec::new();
                        // What is set on one end of a pseudo terminal is seen on the other.
                        playing.lock().unwrap().tune(master.baud_rate().unwrap());
                        for &byte in &buffer[..length] {
                            match playing.lock().unwrap().answer(byte) {
                                Some(bytes) => reply.extend(bytes),
                                None => return,
                            }
                        }
                        heard_tx.send_modify(|heard| heard.extend(&buffer[..length]));
                        reply
                    }
                    Some(bytes) = to_say.recv() => bytes,
                };
                master.write_all(&reply).await.unwrap();
            }
        });
        Plugged {
            node,
            heard,
            says,
            player,
            task: Some(task),
            slave,
        }
    }

    fn all_heard(&self) -> Vec<u8> {
        self.heard.borrow().clone()
    }

    /// Waits until what the board heard is as told.
    async fn heard(&self, told: impl FnMut(&Vec<u8>) -> bool) {
        timeout(DEADLINE, self.heard.clone().wait_for(told))
            .await
            .expect("heard in time")
            .unwrap();
    }

    fn say(&self, bytes: &[u8]) {
        self.says.send(bytes.to_vec()).unwrap();
    }

    fn become_board(&self, serial: &str) {
        self.player.lock().unwrap().become_board(serial);
    }

    fn hang_up(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// Waits until the player went away by itself.
    async fn gone(&mut self) {
        timeout(DEADLINE, self.task.take().unwrap())
            .await
            .expect("gone in time")
            .unwrap();
    }
}

impl Drop for Plugged {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// The reader of a link.
struct Table {
    handle: jadoube::daemon::serial::LinkHandle,
    events: mpsc::Receiver<LinkEvent>,
    pending: Vec<u8>,
}

impl Table {
    fn new(spec: PortSpec, finder: &Finder) -> Table {
        Table::of(None, spec, finder)
    }

    /// A table whose board is said to be of this family.
    fn of(family: Option<Family>, spec: PortSpec, finder: &Finder) -> Table {
        let (handle, events) = spawn(spec, family, finder, std::future::pending());
        Table {
            handle,
            events,
            pending: Vec::new(),
        }
    }

    async fn next(&mut self) -> LinkEvent {
        timeout(DEADLINE, self.events.recv())
            .await
            .expect("an event in time")
            .expect("the link lives")
    }

    async fn opened(&mut self) -> (PathBuf, Option<Identity>) {
        self.events_until_opened().await.1
    }

    /// The number of the board whose port is opened next.
    async fn opened_board(&mut self) -> String {
        let (_, identity) = self.opened().await;
        identity.and_then(|found| found.serial).expect("a number")
    }

    /// With the reasons for waiting before.
    async fn events_until_opened(
        &mut self,
    ) -> (Vec<(String, String)>, (PathBuf, Option<Identity>)) {
        let mut waits = Vec::new();
        loop {
            match self.next().await {
                LinkEvent::Opened { path, identity } => {
                    self.pending.clear();
                    return (waits, (path, identity));
                }
                LinkEvent::Waiting { reason, advice } => waits.push((reason, advice)),
                other => panic!("{other:?}"),
            }
        }
    }

    async fn waiting(&mut self) -> (String, String) {
        match self.next().await {
            LinkEvent::Waiting { reason, advice } => (reason, advice),
            other => panic!("{other:?}"),
        }
    }

    async fn lost(&mut self) -> String {
        loop {
            match self.next().await {
                LinkEvent::Lost { reason } => return reason,
                LinkEvent::Bytes(..) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// At least so many bytes, but all that came with them.
    async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.pending.len() < count {
            match self.next().await {
                LinkEvent::Bytes(bytes, _) => self.pending.extend(bytes),
                other => panic!("{other:?}"),
            }
        }
        std::mem::take(&mut self.pending)
    }

    async fn send(&self, bytes: &[u8]) {
        self.handle.write.send(bytes.to_vec()).await.unwrap();
    }
}

/// Another program that has a port open.
struct Holding(Child);

impl Holding {
    /// A child inherits the masters of all pseudo terminals here, and with them would be a virtual board, and would keep the
    /// boards of other tests from hanging up. So it closes them first.
    fn new(node: &Path) -> Holding {
        let port = fs::File::open(node).unwrap();
        let close_all = "for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval \"exec $fd>&-\"; done; exec sleep 600";
        let child = Command::new("bash")
            .args(["-c", close_all])
            .stdin(port)
            .spawn()
            .unwrap();
        let holding = Holding(child);
        let start = Instant::now();
        let name = format!("/proc/{}/comm", holding.0.id());
        while fs::read_to_string(&name).unwrap() != "sleep\n" {
            assert!(start.elapsed() < DEADLINE, "asleep in time");
            std::thread::yield_now();
        }
        holding
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

trait AsNobody {
    fn as_nobody(&mut self) -> &mut Self;
}

impl AsNobody for Command {
    fn as_nobody(&mut self) -> &mut Self {
        use std::os::unix::process::CommandExt;
        self.uid(65534).gid(65534)
    }
}
