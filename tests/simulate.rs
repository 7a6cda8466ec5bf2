//! The virtual board behind its pty, heard by a host that opens it as it would a real one.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use jadoube::commands::simulate::{Serving, VirtualPort};
use jadoube::sim::hands::{Hands, Level, Pace};
use jadoube::sim::pgn;
use jadoube::sim::player::{Player, TableOptions};
use jadoube::sim::script::{Act, Action, Script};
use jadoube::wire::dgt::{ClockMessage, Decoder, Item, Message, PieceCode, VirtualBoard};
use jadoube::wire::psb1;
use tokio_serial::SerialPort;

const GAME: &str = "[Result \"1-0\"]\n[TimeControl \"180+2\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Bxc6 dxc6 5. O-O 1-0\n";

/// Nothing here takes so long.
const DEADLINE: Duration = Duration::from_secs(60);

/// SEND_RESET, SEND_BRD, SEND_UPDATE_NICE.
const OPENING: [u8; 3] = [0x40, 0x42, 0x4b];

fn open(path: &str) -> tokio_serial::Result<Box<dyn SerialPort>> {
    tokio_serial::new(path, 9600)
        .timeout(Duration::from_millis(50))
        .open()
}

/// The board as a host sees it through a port.
struct Host {
    port: Box<dyn SerialPort>,
    decoder: Decoder,
    squares: [PieceCode; 64],
    dumps: usize,
    clocks: usize,
}

impl Host {
    fn open(path: &str) -> Host {
        let mut port = open(path).unwrap();
        port.write_all(&OPENING).unwrap();
        Host {
            port,
            decoder: Decoder::default(),
            squares: [PieceCode::Empty; 64],
            dumps: 0,
            clocks: 0,
        }
    }

    fn listen_until(&mut self, what: &str, done: impl Fn(&Host) -> bool) {
        let begin = Instant::now();
        let mut buffer = [0; 256];
        while !done(self) {
            assert!(
                begin.elapsed() < DEADLINE,
                "waiting for {what}: {}",
                self.placement()
            );
            let Ok(count) = self.port.read(&mut buffer) else {
                continue;
            };
            let mut items = Vec::new();
            self.decoder.push(&buffer[..count], |item| items.push(item));
            for item in items {
                match item {
                    Item::Message(Message::BoardDump(dump)) => {
                        self.squares = *dump;
                        self.dumps += 1;
                    }
                    Item::Message(Message::FieldUpdate { square, piece }) => {
                        self.squares[usize::from(square.index())] = piece;
                    }
                    Item::Message(Message::Clock(ClockMessage::Times(_))) => self.clocks += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn placement(&self) -> String {
        self.squares
            .iter()
            .map(|piece| piece.letter().unwrap_or('.'))
            .collect()
    }
}

/// The placement after 5. O-O, rank by rank, so that it can be read.
fn castled() -> String {
    [
        "r.bqkbnr", ".pp..ppp", "p.p.....", "....p...", "....P...", ".....N..", "PPPP.PPP",
        "RNBQ.RK.",
    ]
    .concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_opens_the_port_for_itself_and_hears_the_whole_game() {
    let game = pgn::read(GAME.as_bytes()).remove(0).unwrap();
    let script = Hands::new(Level::Human, 4)
        .with_pace(Pace::Mean(1000))
        .script(&game);
    let options = TableOptions {
        control: Some("180+2".parse().unwrap()),
        ..TableOptions::default()
    };
    let mut player = Player::new(0, script, VirtualBoard::default(), &options);
    let mut port = VirtualPort::open().unwrap();
    let path = port.path().to_owned();
    let host = tokio::task::spawn_blocking(move || {
        let mut host = Host::open(&path);
        assert!(open(&path).is_err(), "a second host got the port");
        host.listen_until("the dump", |host| host.dumps == 1);
        host.listen_until("the last position", |host| host.placement() == castled());
        assert!(host.clocks > 5);
        drop(host);

        // The board is still there for the next one.
        let mut host = Host::open(&path);
        host.listen_until("another dump", |host| host.dumps == 1);
        assert_eq!(host.placement(), castled());
    });
    let serving = Serving {
        speed: 20.0,
        linger: None,
    };
    tokio::select! {
        served = port.serve(&mut player, &serving) => panic!("it ended: {served:?}"),
        host = host => host.unwrap(),
    }
}

fn simulate(folder: &Path, arguments: &[&str]) -> Command {
    let of_the_file = [&["--pgn", "games.pgn"], arguments].concat();
    simulate_with(folder, &of_the_file)
}

fn simulate_with(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jadoube"));
    command
        .current_dir(folder)
        .arg("simulate")
        .args(arguments)
        .env_remove("JADOUBE_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A command that is killed if its test ends before it does.
struct Running(Child);

impl Running {
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.0.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn exit_code(&mut self) -> i32 {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(begin.elapsed() < DEADLINE, "it does not end");
            thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_command_prints_its_port_plays_and_ends_and_takes_its_link_away() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("games.pgn"), GAME).unwrap();
    let arguments = [
        "--link", "board", "--speed", "20", "--think", "1", "--seed", "3", "--linger", "1",
    ];
    let mut command = Running(simulate(folder.path(), &arguments).spawn().unwrap());
    let path = command.first_line();
    let link = folder.path().join("board");
    assert_eq!(std::fs::read_link(&link).unwrap(), Path::new(&path));
    let mut host = Host::open(link.to_str().unwrap());
    host.listen_until("the last position", |host| host.placement() == castled());
    // Then the kings stand on d5 and e4, the light squares.
    host.listen_until("the result", |host| {
        let kings = [host.squares[27], host.squares[36]];
        kings.contains(&PieceCode::WhiteKing) && kings.contains(&PieceCode::BlackKing)
    });
    assert_eq!(command.exit_code(), 0);
    assert!(std::fs::symlink_metadata(&link).is_err());
}

/// What a host of a presence board hears until it shows these squares, a1 the lowest bit; its hello first.
fn presence_until(path: &str, last: u64) -> Vec<psb1::Message> {
    let mut port = tokio_serial::new(path, 115_200)
        .timeout(Duration::from_millis(50))
        .open()
        .unwrap();
    port.write_all(b"\n?\n").unwrap();
    let mut decoder = psb1::Decoder::default();
    let mut heard = Vec::new();
    let begin = Instant::now();
    let mut buffer = [0; 256];
    let shows = |message: &psb1::Message| matches!(message, psb1::Message::Scan { squares, .. } if squares.occupied == last);
    while !heard.last().is_some_and(shows) {
        assert!(begin.elapsed() < DEADLINE, "{:?}", heard.last());
        let Ok(count) = port.read(&mut buffer) else {
            continue;
        };
        decoder.push(&buffer[..count], |item| match item {
            psb1::Item::Message(message) => heard.push(message),
            psb1::Item::Skipped(skipped) => assert!(heard.is_empty(), "{skipped:?}"),
        });
    }
    heard
}

#[test]
fn the_command_plays_a_presence_board() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("games.pgn"), GAME.replace("1-0", "*")).unwrap();
    let arguments = [
        "--board", "psb1", "--serial", "club-7", "--speed", "20", "--think", "1", "--linger", "1",
    ];
    let mut command = Running(simulate(folder.path(), &arguments).spawn().unwrap());
    let path = command.first_line();
    let standing = castled();
    let ranks: Vec<&str> = (0..8)
        .rev()
        .map(|rank| &standing[8 * rank..8 * rank + 8])
        .collect();
    let last = (0..64u32).fold(0, |squares, number| {
        let stands = ranks.concat().as_bytes()[number as usize] != b'.';
        squares | u64::from(stands) << number
    });
    let heard = presence_until(&path, last);
    let hello = heard.iter().find_map(|message| match message {
        psb1::Message::Hello(hello) => Some(hello.id.to_string()),
        _ => None,
    });
    assert_eq!(hello.as_deref(), Some("club-7"));
    assert_eq!(command.exit_code(), 0);
}

#[test]
fn the_command_ends_when_told_to_and_takes_its_link_away() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("games.pgn"), GAME).unwrap();
    for signal in ["TERM", "INT"] {
        let arguments = ["--link", "board", "--stay"];
        let mut command = Running(simulate(folder.path(), &arguments).spawn().unwrap());
        command.first_line();
        let killed = Command::new("kill")
            .args(["-s", signal, &command.0.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        assert_eq!(command.exit_code(), 0);
        assert!(std::fs::symlink_metadata(folder.path().join("board")).is_err());
    }
}

#[test]
fn a_table_of_the_afternoon_begins_with_the_men_in_the_box() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--scene", "afternoon", "--table", "4", "--link", "board"];
    let mut command = Running(simulate_with(folder.path(), &arguments).spawn().unwrap());
    command.first_line();
    let link = folder.path().join("board");
    let mut host = Host::open(link.to_str().unwrap());
    host.listen_until("the dump", |host| host.dumps == 1);
    assert_eq!(host.placement(), ".".repeat(64));
    host.listen_until("some men", |host| {
        host.placement().replace('.', "").len() >= 5
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_follows_the_board_that_is_plugged_in_instead() {
    let act = |at_ms, kind| Action { at_ms, kind };
    let king = Act::Square {
        square: shakmaty::Square::E4,
        piece: Some(shakmaty::Color::White.king()),
    };
    let script = Script {
        start: shakmaty::Board::empty(),
        actions: vec![
            act(300, Act::Unplugged),
            act(400, king),
            act(800, Act::Plugged { rotated: false }),
        ],
        last: shakmaty::Board::empty(),
        games: Vec::new(),
    };
    let options = TableOptions {
        lead_in_ms: 100,
        ..TableOptions::default()
    };
    let spare = psb1::VirtualBoard::new(psb1::Identity {
        id: "club-8".parse().unwrap(),
        ..psb1::Identity::default()
    });
    let mut player =
        Player::new(0, script, VirtualBoard::default(), &options).with_spares([spare.into()]);
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("board");
    let mut port = VirtualPort::open().unwrap().with_link(&link).unwrap();
    let path = link.to_str().unwrap().to_owned();
    let host = tokio::task::spawn_blocking(move || {
        let mut host = Host::open(&path);
        host.listen_until("the dump", |host| host.dumps == 1);
        assert_eq!(host.placement(), ".".repeat(64));
        let begin = Instant::now();
        let mut buffer = [0; 256];
        let gone = |error: std::io::Error| error.kind() != std::io::ErrorKind::TimedOut;
        while !host.port.read(&mut buffer).is_err_and(gone) {
            assert!(begin.elapsed() < DEADLINE, "the board is not unplugged");
        }
        drop(host);
        // The link leads nowhere until there is another board.
        while open(&path).is_err() {
            assert!(begin.elapsed() < DEADLINE, "no board is plugged in");
            thread::yield_now();
        }
        presence_until(&path, 1 << 28)
    });
    let serving = Serving {
        speed: 1.0,
        linger: None,
    };
    let heard = tokio::select! {
        served = port.serve(&mut player, &serving) => panic!("it ended: {served:?}"),
        heard = host => heard.unwrap(),
    };
    assert!(heard.iter().any(
        |message| matches!(message, psb1::Message::Hello(hello) if hello.id.to_string() == "club-8")
    ));
    drop(port);
    assert!(std::fs::symlink_metadata(&link).is_err());
}

#[test]
fn every_kind_of_hands_plays_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("games.pgn"), GAME).unwrap();
    for hands in ["clean", "human", "blitz", "faulty"] {
        let arguments = [
            "--hands", hands, "--link", "board", "--speed", "60", "--think", "1", "--linger", "1",
        ];
        let mut command = Running(simulate(folder.path(), &arguments).spawn().unwrap());
        command.first_line();
        let link = folder.path().join("board");
        let mut host = Host::open(link.to_str().unwrap());
        host.listen_until("the dump", |host| host.dumps == 1);
        assert_eq!(command.exit_code(), 0, "{hands}");
    }
}

/// Exit code and standard error of a command that does not get as far as playing.
fn refused(pgn: &str, arguments: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("games.pgn"), pgn).unwrap();
    let mut command = Running(simulate(folder.path(), arguments).spawn().unwrap());
    let code = command.exit_code();
    let mut text = String::new();
    let mut stderr = command.0.stderr.take().unwrap();
    stderr.read_to_string(&mut text).unwrap();
    (code, text)
}

#[test]
fn what_cannot_be_played_is_told() {
    let two = "[Event \"a\"]\n\n1. e4 *\n\n[Event \"b\"]\n\n1. e5 *\n";
    let (code, text) = refused(two, &[]);
    assert_eq!(code, 1);
    assert_eq!(
        text,
        "jadoube: games.pgn: game 2 of the PGN: 1. e5 cannot be played\n\
         Correct the move (in English letters: K Q R B N), or take the game out.\n"
    );

    let (code, text) = refused("", &[]);
    assert_eq!(code, 1);
    assert_eq!(
        text.lines().next(),
        Some("jadoube: games.pgn: there is no game in it")
    );

    for (arguments, expected, part) in [
        (["--board", "certabo"], 2, "[possible values: dgt, psb1]"),
        (["--serial", "12"], 2, "serial number \"12\""),
        (["--time-control", "soon"], 2, "as 40/5400+30:1800+30"),
        (["--time-control", "5400d5"], 2, "as in 300+3"),
        (["--link", "games.pgn"], 1, "that is no link"),
    ] {
        let (code, text) = refused(GAME, &arguments);
        assert_eq!(code, expected, "{text}");
        assert!(text.contains(part), "{text}");
    }
}
