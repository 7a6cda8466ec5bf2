//! `ports` and `check` beside a running daemon: what is open already is asked of who has it.
#![cfg(feature = "io")]

#[path = "support/wait.rs"]
mod wait;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use jadoube::commands::ports::list;
use jadoube::daemon::desk;
use jadoube::daemon::serial::{Roots, Settings};
use tempfile::TempDir;

use wait::{until, until_blocking};

/// Longer than anything here takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(40);

/// A child that ends with the value.
struct Running(Child);

impl Running {
    fn start(args: &[&str]) -> Running {
        let mut command = jadoube(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn jadoube(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jadoube"));
    command.args(args).stdin(Stdio::null());
    command.env_remove("JADOUBE_LOG");
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Runs `look` until what it gives is as awaited.
async fn until_seen(what: &str, mut look: impl AsyncFnMut() -> String, awaited: &str) -> String {
    let look = async || {
        let seen = look().await;
        if seen.contains(awaited) {
            Ok(seen)
        } else {
            Err(seen)
        }
    };
    until(what, DEADLINE, look).await
}

#[tokio::test]
async fn a_port_that_a_daemon_has_is_asked_of_the_daemon() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("game.pgn"), "1. e4 e5 *\n").unwrap();
    let (game, link) = (path("game.pgn"), path("board"));
    let _board = Running::start(&[
        "simulate",
        "--pgn",
        &game,
        "--link",
        &link,
        "--serial",
        "3000147740",
        "--stay",
    ]);
    until_blocking("the board", DEADLINE, || {
        Path::new(&link).exists().then_some(())
    });
    // A machine where this is one port of a USB adapter.
    let roots = Roots {
        sys: folder.path().join("sys"),
        dev: folder.path().join("dev"),
    };
    let device = roots.sys.join("devices/usb1");
    let class = roots.sys.join("class/tty/ttyUSB0");
    for dir in [&device, &class, &roots.dev] {
        fs::create_dir_all(dir).unwrap();
    }
    fs::write(device.join("idVendor"), "0403\n").unwrap();
    fs::write(device.join("idProduct"), "6001\n").unwrap();
    symlink(&device, class.join("device")).unwrap();
    symlink(&link, roots.dev.join("ttyUSB0")).unwrap();
    let settings = Settings {
        attempts: 2,
        ..Settings::default()
    };
    let usb = async || {
        let lines = list(&roots, &settings).await;
        let line = lines.iter().find(|line| line.contains("ttyUSB0"));
        line.cloned().unwrap_or_default()
    };
    // Nobody has it: the board speaks for itself.
    let line = until_seen("the board", usb, "dgt board 3000147740").await;
    assert!(!line.contains("table"), "{line}");

    let config = path("jadoube.toml");
    let written = format!(
        "event = \"open\"\nnode = \"ports-test\"\nstate_dir = \"state\"\n[mqtt]\nurl = \"mqtt://127.0.0.1:1\"\n\
         [[table]]\nname = \"12\"\nport = \"{link}\"\n"
    );
    fs::write(&config, &written).unwrap();
    let daemon = Running::start(&["run", "--config", &config]);
    let pid = daemon.0.id();
    // Not by looking at the port: that would keep it from the daemon.
    let asked = async || {
        let daemons = desk::ask().await;
        let told = daemons.iter().find(|told| told.pid == Some(pid));
        format!("{:?}", told.map(|told| &told.told.ports))
    };
    until_seen("the daemon's word", asked, r#"status: Some("ok")"#).await;
    let line = usb().await;
    let by = format!("in use by the running jadoube (pid {pid}, node ports-test)");
    let board = "dgt board 3000147740, firmware 3.1, table 12, ok";
    assert!(line.contains("0403:6001"), "{line}");
    assert!(line.ends_with(&format!("{board}: {by}")), "{line}");

    // A pseudo terminal is in no list of the system's; the daemon's word lists it.
    let output = jadoube(&["ports"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let lines = stdout(&output);
    let own = lines.lines().find(|line| line.contains(&link)).unwrap();
    assert!(own.ends_with(&format!("{board}: {by}")), "{own}");

    for by_what in [
        format!("port = \"{link}\""),
        "serial = \"3000147740\"".to_owned(),
        "serial = \"47740\"".to_owned(),
    ] {
        let text = written.replace(&format!("port = \"{link}\""), &by_what);
        fs::write(&config, text).unwrap();
        let output = jadoube(&["check", "--config", &config]).output().unwrap();
        let lines = stdout(&output);
        let ok = format!("ok    table 12: {board}, on {link}: {by}");
        assert!(lines.lines().any(|line| line == ok), "{by_what}: {lines}");
    }

    // Another node may not count on it.
    fs::write(&config, written.replace("ports-test", "another")).unwrap();
    let output = jadoube(&["check", "--config", &config]).output().unwrap();
    let lines = stdout(&output);
    let held =
        format!("FAIL  table 12: {board}, on {link}: {by}\n      That is another node: stop it");
    assert!(lines.contains(&held), "{lines}");
    assert_eq!(output.status.code(), Some(1));

    // Without it the board speaks for itself again.
    drop(daemon);
    let line = until_seen("the board", usb, "dgt board 3000147740, firmware 3.1").await;
    assert!(!line.contains("table"), "{line}");
}
