//! The command line from outside: exit codes, and what goes where.
#![cfg(feature = "io")]

#[path = "support/wait.rs"]
mod wait;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use jadoube::trace::{Event, Trace};
use jadoube::wire::Family;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_serial::{SerialPort, SerialStream};

use wait::until_blocking;

/// For what another process has to do first.
const DEADLINE: Duration = Duration::from_secs(30);

fn jadoube(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jadoube"));
    command
        .args(args)
        .stdin(Stdio::null())
        .env_remove("JADOUBE_LOG")
        .env_remove("STATE_DIRECTORY");
    command
}

fn output(args: &[&str]) -> Output {
    jadoube(args).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// What a bad configuration ends with.
fn refused(config: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jadoube.toml");
    fs::write(&path, config).unwrap();
    let output = output(&["run", "--config", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    stderr(&output).replace(path.to_str().unwrap(), "FILE")
}

#[test]
fn help_lists_the_commands() {
    let output = output(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    for command in [
        "run", "simulate", "record", "replay", "ports", "check", "schema",
    ] {
        assert!(
            stdout(&output).contains(&format!("\n  {command} ")),
            "{command}"
        );
        let help = self::output(&[command, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{command}");
        assert!(stdout(&help).contains("Usage: jadoube"), "{command}");
    }
}

#[test]
fn wrong_usage_ends_with_2_and_says_so_on_standard_error() {
    for args in [
        &[][..],
        &["castle"],
        &["run", "--speed", "2"],
        &["run", "--table", "1"],
        &["run", "--port", "auto", "--config", "x"],
        &["run", "--port", "auto", "--table", "Table 1"],
        &["run", "--port", "auto", "--broker", "localhost"],
        &["replay"],
        &["replay", "x.trace", "--json", "--summary"],
        &["simulate"],
        &["simulate", "--pgn", "x", "--hands", "shaky"],
        &["simulate", "--pgn", "x", "--board", "abacus"],
        &["simulate", "--pgn", "x", "--speed", "0"],
        &["simulate", "--pgn", "x", "--speed", "1e300"],
        &["simulate", "--pgn", "x", "--scene", "afternoon"],
        &["simulate", "--pgn", "x", "--table", "2"],
        &["simulate", "--scene", "afternoon", "--table", "9"],
        &["simulate", "--scene", "afternoon", "--board", "psb1"],
        &["simulate", "--scene", "storm"],
        &["record", "--port", "x"],
    ] {
        let output = output(args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{args:?}");
        assert!(!stderr(&output).is_empty(), "{args:?}");
    }
}

#[test]
fn a_bad_configuration_ends_with_78_its_place_and_advice() {
    assert_eq!(
        refused("event = \"spring-open\"\n\n[[table]]\nname = \"12\"\nport = \"auto\"\norientaton = \"auto\"\n")
            .lines()
            .map(|line| line.split("; ").next().unwrap())
            .collect::<Vec<_>>(),
        [
            "jadoube: FILE: line 6, column 1: unknown key \"orientaton\"",
            "Correct the name of the key or take it out"
        ]
    );
    assert_eq!(
        refused("[mqtt]\nurl = \"mqtts://broker\"\n"),
        "jadoube: FILE: line 2, column 7: mqtts:// is known, but this build has no TLS yet\n\
         Use mqtt:// to a broker on this machine or in a network of your own, and let that one bridge on with TLS.\n"
    );
}

#[test]
fn a_missing_configuration_ends_with_78_and_what_to_do() {
    let output = output(&["run", "--config", "no/such/file.toml"]);
    assert_eq!(output.status.code(), Some(78));
    let lines: Vec<&str> = stderr(&output).lines().collect();
    assert!(
        lines[0].starts_with("jadoube: no/such/file.toml: cannot be read: "),
        "{lines:?}"
    );
    assert!(lines[1].contains("--port auto"), "{lines:?}");
    assert_eq!(lines.len(), 2);
}

#[test]
fn check_refuses_what_run_refuses_in_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jadoube.toml");
    for (config, what) in [
        ("event = \"open\"\n", "no table is configured"),
        (
            "[[table]]\nname = \"1\"\nboard = \"certabo\"\nport = \"/no/port\"\n",
            "boards of family certabo cannot be read yet",
        ),
        (
            "[mqtt]\nusername = \"x\"\npassword_file = \"none\"\n[[table]]\nname = \"1\"\nport = \"/no/port\"\n",
            "password_file cannot be read",
        ),
        (
            "[mqtt]\nversion = 4\n[[table]]\nname = \"1\"\nport = \"/no/port\"\n",
            "mqtt version 4",
        ),
    ] {
        fs::write(&path, config).unwrap();
        let path = path.to_str().unwrap();
        let run = output(&["run", "--config", path]);
        let check = output(&["check", "--config", path]);
        for output in [&run, &check] {
            assert_eq!(output.status.code(), Some(78), "{what}: {output:?}");
        }
        assert!(stderr(&run).contains(what), "{}", stderr(&run));
        assert!(stdout(&check).contains(what), "{}", stdout(&check));
        let advice = stderr(&run).lines().last().unwrap().to_owned();
        assert!(
            stdout(&check).contains(&advice),
            "{advice}: {}",
            stdout(&check)
        );
    }
}

/// Only what works is offered, and what is refused is so with what works.
#[test]
fn a_board_is_one_of_those_that_are_listed() {
    let demo = cfg!(feature = "demo").then_some(&["demo"][..]);
    let commands = [
        &["simulate", "--pgn", "/no/file"][..],
        &["record", "--port", "/no/port", "--out", "/no/file"],
    ];
    for command in demo.into_iter().chain(commands) {
        let works: fn(Family) -> bool = match command[0] {
            "record" => jadoube::board::is_supported,
            _ => jadoube::sim::is_simulated,
        };
        let all = Family::ALL.iter().copied();
        let (offered, others): (Vec<Family>, Vec<Family>) = all.partition(|family| works(*family));
        let words: Vec<&str> = offered.iter().map(|family| family.as_str()).collect();
        let list = format!("[possible values: {}]", words.join(", "));
        let help = output(&[command[0], "--help"]);
        assert!(stdout(&help).contains(&list), "{}", stdout(&help));
        for family in others {
            let refused = output(&[command, &["--board", family.as_str()]].concat());
            assert_eq!(refused.status.code(), Some(2), "{family}");
            assert!(stderr(&refused).contains(&list), "{}", stderr(&refused));
        }
        for family in offered.iter().filter(|_| command[0] != "demo") {
            let taken = output(&[command, &["--board", family.as_str()]].concat());
            assert_eq!(taken.status.code(), Some(1), "{}", stderr(&taken));
        }
    }
}

/// No other game is played than stands in the file.
#[test]
fn a_move_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("de.pgn");
    fs::write(&file, "[White \"A\"]\n\n1. e4 e5 2. Sf3 Sc6 1-0\n").unwrap();
    let file = file.to_str().unwrap();
    let demo = cfg!(feature = "demo").then_some(&["demo", "--once"][..]);
    for command in demo.into_iter().chain([&["simulate"][..]]) {
        let refused = output(&[command, &["--pgn", file]].concat());
        assert_eq!(refused.status.code(), Some(1), "{command:?}");
        let errors = stderr(&refused);
        assert!(
            errors.contains("game 1 of the PGN: 2. Sf3 cannot be read"),
            "{errors}"
        );
    }
}

#[test]
fn outputs_of_replay_exclude_each_other_as_its_help_says() {
    let outputs = ["--json", "--stages", "--summary", "--pgn"];
    let help = output(&["replay", "--help"]);
    assert!(stdout(&help).contains("At most one of --json, --stages, --summary and --pgn"));
    for (index, one) in outputs.iter().enumerate() {
        for other in &outputs[index + 1..] {
            let both = output(&["replay", "/no/file", one, other]);
            assert_eq!(both.status.code(), Some(2), "{one} {other}");
        }
    }
}

#[test]
fn schemas_go_to_standard_output_as_one_object() {
    let output = output(&["schema"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let all: Value = serde_json::from_str(stdout(&output)).unwrap();
    let names: Vec<&String> = all.as_object().unwrap().keys().collect();
    let wanted: Vec<&str> = jadoube::publish::schemas()
        .iter()
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(names, wanted);
    for (name, schema) in all.as_object().unwrap() {
        jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn schemas_go_into_a_folder_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let schemas = folder.path().join("made/on/the/way");
    // Twice: the second run replaces what the first wrote.
    for _ in 0..2 {
        let output = output(&["schema", "--out", schemas.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        let mut names: Vec<String> = fs::read_dir(&schemas)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut wanted: Vec<String> = jadoube::publish::schemas()
            .iter()
            .map(|(name, _)| format!("{name}.schema.json"))
            .collect();
        wanted.sort();
        assert_eq!(names, wanted);
    }
    let game = fs::read_to_string(schemas.join("game.schema.json")).unwrap();
    let game: Value = serde_json::from_str(&game).unwrap();
    assert!(game["properties"]["moves"].is_object());
}

#[test]
fn an_unwritable_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let output = output(&["schema", "--out", file.join("below").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("file/below: "),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("--out"), "{}", stderr(&output));
}

#[test]
fn thousands_of_tables_are_checked_in_a_moment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jadoube.toml");
    let table = |n: u32| format!("[[table]]\nname = \"{n}\"\nport = \"/dev/no-port-{n}\"\n");
    let tables: String = (0..4000).map(table).collect();
    fs::write(
        &path,
        format!("[mqtt]\nurl = \"mqtt://127.0.0.1:1\"\n{tables}"),
    )
    .unwrap();
    let begin = Instant::now();
    let checked = output(&["check", "--config", path.to_str().unwrap()]);
    // It was minutes when each table looked through all ports.
    assert!(begin.elapsed() < DEADLINE, "{:?}", begin.elapsed());
    assert_eq!(checked.status.code(), Some(1));
    let lines = stdout(&checked).lines();
    assert_eq!(
        lines
            .filter(|line| line.starts_with("FAIL  table "))
            .count(),
        4000
    );
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = jadoube(&["schema"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(stderr(&output), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_failed_check_is_told_by_the_exit_code_though_nobody_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jadoube.toml");
    // Nobody listens there.
    fs::write(
        &path,
        "[mqtt]\nurl = \"mqtt://127.0.0.1:1\"\n[[table]]\nname = \"1\"\nport = \"/no/port\"\n",
    )
    .unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = jadoube(&["check", "--config", path.to_str().unwrap()])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("checks failed"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_log_filter_that_is_none_is_told() {
    for (wanted, is_one) in [
        ("rubbish", false),
        ("info,jadoub", false),
        ("jadoube=loud", false),
        ("DEBUG", true),
        ("warn,rumqttc=debug", true),
    ] {
        let output = jadoube(&["schema"])
            .env("JADOUBE_LOG", wanted)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        let told = stderr(&output).contains("JADOUBE_LOG is not a log filter");
        assert_eq!(told, !is_one, "{wanted}: {}", stderr(&output));
    }
}

#[test]
fn a_closed_standard_error_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = jadoube(&["run", "--config", "no/such/file.toml"])
        .env("JADOUBE_LOG", "=/no filter")
        .stdout(Stdio::null())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(78));
}

#[test]
fn a_log_filter_that_is_none_is_told_and_does_not_stop_the_command() {
    let output = jadoube(&["schema"])
        .env("JADOUBE_LOG", "=/no filter")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("JADOUBE_LOG"),
        "{}",
        stderr(&output)
    );
    assert!(serde_json::from_str::<Value>(stdout(&output)).is_ok());
}

/// The example as it is shipped, and with all that it offers switched on: `run` starts with both.
#[test]
fn what_the_shipped_example_offers_works() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/jadoube.toml");
    let text = fs::read_to_string(&example).unwrap();
    let for_tls = ["cert_file", "key_file", "ca_file"];
    let is_offered = |line: &&str| {
        let key = line.trim_start_matches('#').split(' ').next();
        !for_tls.contains(&key.unwrap_or_default()) && !line.starts_with("#serial")
    };
    let switched_on = |line: &str| match line.strip_prefix('#') {
        Some(key) if !key.starts_with(' ') => format!("{key}\n"),
        _ => format!("{line}\n"),
    };
    let offered: String = text.lines().filter(is_offered).map(switched_on).collect();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mqtt-password"), "secret\n").unwrap();
    let path = folder.path().join("jadoube.toml");
    fs::write(&path, offered).unwrap();
    for path in [&example, &path] {
        let config = jadoube::config::Config::load(path).unwrap();
        let refusals = jadoube::daemon::node::refusals(&config);
        assert!(refusals.is_empty(), "{}: {refusals:?}", path.display());
    }

    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    let families: Vec<Family> = words.filter_map(|word| word.parse().ok()).collect();
    assert!(families.contains(&Family::Dgt));
    for family in families {
        assert!(jadoube::board::is_supported(family), "{family}");
    }
}

/// A board's end, and the port that it is plugged in to.
fn port() -> (SerialStream, String, fs::File) {
    let (board, mut line) = SerialStream::pair().unwrap();
    let path = line.name().unwrap();
    // Held open, as reading the board's end fails while nobody has the other; but without the lock that this one carries.
    line.set_exclusive(false).unwrap();
    let held = fs::File::open(&path).unwrap();
    (board, path, held)
}

#[tokio::test]
async fn a_port_is_recorded_until_it_is_stopped() {
    let (mut board, path, _held) = port();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("game.trace");
    let args = ["record", "--port", &path, "--out", trace.to_str().unwrap()];
    let child = jadoube(&args).stderr(Stdio::piped()).spawn().unwrap();

    let mut opening = [0; 7];
    timeout(DEADLINE, board.read_exact(&mut opening))
        .await
        .expect("the opening comes")
        .unwrap();
    assert_eq!(opening, [0x40, 0x55, 0x45, 0x4d, 0x42, 0x4b, 0x41]);
    board
        .write_all(&[0x8e, 0x00, 0x05, 0x34, 0x00])
        .await
        .unwrap();
    until_blocking("the whole answer", DEADLINE, || {
        let text = fs::read_to_string(&trace).ok()?;
        let bytes: usize = Trace::parse(&text)
            .ok()?
            .lines
            .iter()
            .map(|line| match &line.event {
                Event::FromBoard(bytes) => bytes.len(),
                _ => 0,
            })
            .sum();
        (bytes == 5).then_some(())
    });
    send("-INT", &child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("5 bytes recorded"),
        "{}",
        stderr(&output)
    );

    // A recording is never replaced.
    let again = self::output(&args);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        stderr(&again).contains("game.trace: "),
        "{}",
        stderr(&again)
    );
    assert!(
        stderr(&again).contains("replaces nothing"),
        "{}",
        stderr(&again)
    );
}

/// What cannot be read is recorded all the same, and said while there is time to mend it; a replay says it too.
#[tokio::test]
async fn a_recording_of_another_make_is_told() {
    let (mut board, path, _held) = port();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("game.trace");
    let trace = trace.to_str().unwrap();
    let log = folder.path().join("log");
    let child = jadoube(&["record", "--port", &path, "--out", trace])
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    board.write_all(b"$H,1,club-7\r\n").await.unwrap();
    let said = |what: &str| {
        until_blocking(what, DEADLINE, || {
            let text = fs::read_to_string(&log).ok()?;
            text.contains(what).then_some(())
        })
    };
    said("none of 13 bytes can be read as dgt");
    said("name it with --board (psb1)");
    send("-INT", &child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    said("13 bytes recorded");

    let replayed = self::output(&["replay", trace]);
    assert_eq!(replayed.status.code(), Some(0));
    let errors = stderr(&replayed);
    assert!(
        errors.contains("none of its 13 bytes can be read as dgt"),
        "{errors}"
    );
}

fn send(signal: &str, child: &Child) {
    let killed = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

/// Starts a simulator at its utmost speed, in a folder where its link and games are.
fn simulator(folder: &Path) -> Child {
    let games = "[Event \"x\"]\n\n1. e4 e5 2. Nf3 Nc6 *\n\n".repeat(50);
    fs::write(folder.join("games.pgn"), games).unwrap();
    let child = jadoube(&["simulate", "--pgn", "games.pgn", "--link", "board"])
        .args(["--speed", "1000", "--stay"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until_blocking("the link", DEADLINE, || {
        fs::read_link(folder.join("board")).ok()
    });
    child
}

#[test]
fn a_signal_ends_the_fastest_simulator_and_takes_its_link_away() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let child = simulator(folder.path());
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signal}");
        assert!(fs::read_link(folder.path().join("board")).is_err());
    }
}

#[test]
fn the_daemon_stops_in_order_when_its_terminal_is_closed() {
    for (signal, prefix) in [("-HUP", &[][..]), ("-TERM", &["nohup"])] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        // Nobody listens there.
        let args = ["run", "--port", "auto", "--broker", "mqtt://127.0.0.1:1"];
        let program = [prefix, &[env!("CARGO_BIN_EXE_jadoube")], &args].concat();
        let child = Command::new(program[0])
            .args(&program[1..])
            .env_remove("JADOUBE_LOG")
            .env("XDG_STATE_HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let said = |what: &str| {
            until_blocking(what, DEADLINE, || {
                let text = fs::read_to_string(&log).ok()?;
                text.contains(what).then_some(())
            })
        };
        said("no connection to the broker");
        if !prefix.is_empty() {
            // nohup says to go on, and so it does: the signal stays ignored.
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let ignored = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))
                .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
                .unwrap();
            assert_eq!(ignored & 1, 1, "{status}");
            send("-HUP", &child);
        }
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signal}");
        said("stopping");
    }
}

#[test]
fn a_port_that_is_not_there_is_named_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("no-port");
    let trace = folder.path().join("game.trace");
    let output = output(&[
        "record",
        "--port",
        port.to_str().unwrap(),
        "--out",
        trace.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("no-port is not there"),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("jadoube ports"),
        "{}",
        stderr(&output)
    );
    assert!(!trace.exists());
}
