//! The demo as people run it: the binary, its output, its end.
#![cfg(feature = "demo")]

#[path = "support/skip.rs"]
mod skip;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The games take some 90 s; everything waits longer than it should on a busy machine.
const DEADLINE: Duration = Duration::from_secs(240);

/// A command that is killed if its test ends before it does.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    /// Everything temporary goes into `folder`.
    fn start(folder: &Path, arguments: &[&str]) -> Running {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jadoube"))
            .arg("demo")
            .args(arguments)
            .current_dir(folder)
            .env("TMPDIR", folder)
            .env_remove("JADOUBE_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Running { child, stdout }
    }

    /// Reads until a line has `part` in it.
    fn line_with(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            let count = self.stdout.read_line(&mut line).unwrap();
            assert!(
                count > 0,
                "it ended before it said {part:?}: {}",
                self.errors()
            );
            if line.contains(part) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// The rest of standard output, and the exit code.
    fn rest(&mut self) -> (String, i32) {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        (text, self.exit_code(DEADLINE))
    }

    fn exit_code(&mut self, within: Duration) -> i32 {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().expect("it was killed");
            }
            assert!(begin.elapsed() < within, "it does not end");
            thread::yield_now();
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(status.unwrap().success());
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = self.child.kill();
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_built_in_games_are_shown_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = Running::start(folder.path(), &["--once"]);
    let (text, code) = demo.rest();
    assert_eq!(code, 0, "{text}{}", demo.errors());
    assert_eq!(
        text.lines().last(),
        Some("3 of 3 records equal the games played")
    );
    for part in [
        "mosquitto_sub -h 127.0.0.1 -p ",
        "table 1    3.   Bb5 ",
        "table 2    3.   exd6 ",
        "table 3    3.   exd6           -  by the reply",
        "table 3   12.   Qh7#           -  by the end of the game",
        "alert: illegal_move urgent for the arbiter (confirmed): 1 · 5 Black",
        "; way back e5-c6; clocks 1:3",
        "alert closed: illegal_move (restored)",
        "alert closed: displaced (restored)",
        "table 1  the game is over: 1-0 (by kings)",
        "table 2  the game is over: * (left unfinished)",
        "table 3  board demo-47003: ok",
        "table 3  the game is over: 1-0 (by board)",
    ] {
        assert!(text.contains(part), "{part:?} is not in it:\n{text}");
    }
    // Without a terminal there are no colours.
    assert!(!text.contains('\x1b'));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Who reads only the beginning still gets the verdict.
#[test]
fn the_games_are_played_to_their_end_though_nobody_reads() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games.pgn");
    std::fs::write(&games, "[Result \"1-0\"]\n\n1. e4 e5 1-0\n").unwrap();
    let arguments = ["--once", "--boards", "1", "--board", "dgt", "--speed", "20"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_jadoube"))
        .args(["demo", "--pgn", games.to_str().unwrap()])
        .args(arguments)
        .env("TMPDIR", folder.path())
        .env("JADOUBE_LOG", "info")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("table 1: 1-0"), "{errors}");
}

#[test]
fn the_afternoon_is_shown_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Instant::now();
    let mut demo = Running::start(folder.path(), &["--once", "--scene", "afternoon"]);
    let (text, code) = demo.rest();
    assert_eq!(code, 0, "{text}{}", demo.errors());
    assert_eq!(
        text.lines().last(),
        Some("24 of 24 records equal the games played")
    );
    for part in [
        "setup_wrong warn for the arbiter (confirmed): 1 · 1 · the start position differs (b1, c1)",
        "table 3  board 3000147004: ok",
        "table 8  board demo-47007: ok",
        "table 2    5.   bxa8=Q ",
        "table 5  the game is over: 1/2-1/2 (by arbiter)",
        "table 6  the game is over: * (left unfinished)",
    ] {
        assert!(text.contains(part), "{part:?} is not in it:\n{text}");
    }
    assert!(
        begin.elapsed() < Duration::from_secs(300),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn the_games_of_a_file_are_played_and_the_line_to_paste_works() {
    let folder = tempfile::tempdir().unwrap();
    let games = "1. f3 e5 2. g4 Qh4# 0-1\n\n1. e4 c5 2. Nf3 1/2-1/2\n\n1. d4 d5 2. c4 e6 *\n";
    std::fs::write(folder.path().join("games.pgn"), games).unwrap();
    let mut demo = Running::start(
        folder.path(),
        &["--once", "--pgn", "games.pgn", "--boards", "3"],
    );
    let line = demo.line_with("subscribe");
    let words: Vec<String> = line
        .split_whitespace()
        .skip(1)
        .map(|word| word.trim_matches('\'').to_owned())
        .collect();
    // The broker of the demo marks only what it kept before somebody subscribed, so one who comes too early asks again.
    let heard = (0..20).find_map(|_| {
        let subscriber = Command::new(&words[0])
            .args(&words[1..])
            .args(["-W", "3", "-C", "1", "--retained-only"])
            .output();
        match subscriber {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                skip::skipped("no mosquitto_sub");
                Some(None)
            }
            heard => {
                let heard = String::from_utf8(heard.unwrap().stdout).unwrap();
                (!heard.is_empty()).then_some(Some(heard))
            }
        }
    });
    match heard {
        Some(None) => {}
        Some(Some(heard)) => assert!(heard.starts_with("jadoube/v1/demo/edge/demo/"), "{heard}"),
        None => panic!("nothing was heard on {line:?}"),
    }
    let (text, code) = demo.rest();
    assert_eq!(code, 0, "{text}{}", demo.errors());
    assert!(text.ends_with("3 of 3 records equal the games played\n"));
    assert!(text.contains("table 1  the game is over: 0-1"), "{text}");
    assert!(
        text.contains("table 2  the game is over: 1/2-1/2 (by kings)"),
        "{text}"
    );
}

#[test]
fn it_ends_cleanly_when_told_to() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let mut demo = Running::start(folder.path(), &[]);
        demo.line_with("White's clock runs");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        demo.signal(signal);
        let code = demo.exit_code(Duration::from_secs(2));
        assert_eq!(code, 0, "{}", demo.errors());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn what_cannot_be_shown_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("wrong.pgn", "1. e5 *\n");
    write(
        "later.pgn",
        "[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n\n1. e4 *\n",
    );
    for (arguments, expected, part) in [
        (["--board", "certabo"], 2, "[possible values: dgt, psb1]"),
        (["--scene", "storm"], 2, "say --scene incidents"),
        (["--scene", "storm"], 2, "or --scene afternoon"),
        (
            ["--scene=afternoon", "--boards=9"],
            2,
            "has 8 boards, not 9",
        ),
        (["--scene=afternoon", "--board=dgt"], 2, "Leave --board out"),
        (["--speed", "0"], 2, "a number above 0"),
        (["--boards", "0"], 2, "1..=100"),
        (["--pgn", "none.pgn"], 1, "none.pgn: "),
        (
            ["--pgn", "wrong.pgn"],
            1,
            "wrong.pgn: game 1 of the PGN: 1. e5 cannot be played",
        ),
        (
            ["--pgn", "later.pgn"],
            1,
            "later.pgn: game 1 starts from a position of its own",
        ),
    ] {
        let mut demo = Running::start(folder.path(), &arguments);
        let (text, code) = demo.rest();
        assert_eq!(text, "");
        assert_eq!(code, expected);
        let errors = demo.errors();
        assert!(errors.contains(part), "{errors}");
    }
}
