//! A whole node: virtual boards on pseudo terminals, the daemon, a real broker, and readers that hold it to its contract.
#![cfg(feature = "io")]

#[path = "support/devices.rs"]
mod devices;
#[path = "support/mosquitto.rs"]
mod mosquitto;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use jadoube::board::dgt::raw_square;
use jadoube::commands::simulate::{Serving, VirtualPort};
use jadoube::config::Config;
use jadoube::daemon::node::{Parts, StartError, run};
use jadoube::daemon::serial::{Roots, Settings};
use jadoube::publish::schemas;
use jadoube::sim::hands::{Hands, Level, Pace};
use jadoube::sim::pgn;
use jadoube::sim::player::{Player, TableOptions};
use jadoube::sim::scene::Scene;
use jadoube::trace::Trace;
use jadoube::wire::dgt::{Identity, PieceCode, VirtualBoard};
use jadoube::wire::{Family, psb1};
use jadoube::{replay, session};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_serial::{SerialPort, SerialStream};

use devices::Devices;
use mosquitto::wait::until;
use mosquitto::{Mosquitto, PATIENCE, Read, Reader};

const PREFIX: &str = "jadoube/v1/open";
const EDGE: &str = "jadoube/v1/open/edge/pi07";
const BOARD: &str = "jadoube/v1/open/edge/pi07/board/12";

/// Twelve moves each, with captures, both castlings and a check.
const GAME: &str = "[Result \"1-0\"]\n[TimeControl \"180+2\"]\n\n\
    1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. c3 Nf6 5. d4 exd4 6. cxd4 Bb4+ 7. Bd2 Bxd2+ 8. Nbxd2 d5 \
    9. exd5 Nxd5 10. O-O O-O 11. Re1 Be6 12. Ne4 h6 1-0\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_game_arrives_though_the_broker_is_killed_twice() {
    let Some(mut broker) = Mosquitto::start() else {
        return;
    };
    let reader = Reader::subscribe(broker.port, &format!("{PREFIX}/#")).await;
    let game = pgn::read(GAME.as_bytes()).remove(0).unwrap();
    let scene = Scene::new().result_kings(game.result);
    let script = Hands::new(Level::Human, 7)
        .with_pace(Pace::Mean(350))
        .script_with(&game, &scene);
    let options = TableOptions {
        control: Some("180+2".parse().unwrap()),
        ..TableOptions::default()
    };
    let mut player = Player::new(0, script, VirtualBoard::default(), &options);
    let mut port = VirtualPort::open().unwrap();
    let home = TempDir::new().unwrap();
    let device = format!("port = \"{}\"", port.path());
    let mut daemon = Daemon::start(&home, &configuration(broker.port, &device));
    let playing = tokio::spawn(async move {
        let serving = Serving {
            speed: 1.0,
            linger: None,
        };
        port.serve(&mut player, &serving).await
    });

    for moves in [7, 15] {
        reader
            .until("moves before a crash", |all| {
                events(all, "move").len() >= moves
            })
            .await;
        broker.kill();
        // The game goes on meanwhile: the trace tells.
        let written = trace_length(&home);
        wait_until("the board to go on", || trace_length(&home) > written + 500).await;
        broker.restart();
    }
    let ended = |all: &Vec<Read>| !events(all, "game_ended").is_empty();
    reader
        .until_within(Duration::from_secs(60), "the end of the game", ended)
        .await;
    let archived = |all: &Vec<Read>| all.iter().any(|read| read.topic.contains("/archive/"));
    reader.until("the archive", archived).await;
    daemon.kill();
    let offline = |all: &Vec<Read>| {
        last(all, &format!("{EDGE}/status")).is_some_and(|status| status["status"] == "offline")
    };
    reader.until("the last will", offline).await;
    playing.abort();

    let all = reader.all();
    validate(&all);
    let loud = events(&all, "alert_raised");
    assert_eq!(loud, [Value::Null; 0], "nobody did anything wrong");
    let mut numbers = Vec::new();
    let mut ids = BTreeMap::new();
    for event in all_events(&all) {
        let id = event["id"].as_str().unwrap().to_owned();
        let seq = event["seq"].as_u64().unwrap();
        match ids.insert(id, event.clone()) {
            None => numbers.push(seq),
            Some(twin) => assert_eq!(twin, event),
        }
    }
    let complete: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, complete, "without gaps and in order");

    let late = Reader::subscribe(broker.port, &format!("{PREFIX}/#")).await;
    let topic = format!("{BOARD}/game");
    late.until("the retained game", |all| last(all, &topic).is_some())
        .await;
    let record = last(&late.all(), &topic).unwrap();
    assert_eq!(uci(&record), game.uci());
    assert_eq!(record["result"], "1-0");
    assert_eq!(record["phase"], "ended");
    assert!(
        record["moves"]
            .as_array()
            .unwrap()
            .iter()
            .all(|m| m["state"] == "final")
    );

    let id = record["game"].as_str().unwrap();
    let archive = all
        .iter()
        .rev()
        .find(|read| read.topic == format!("{EDGE}/archive/{id}"));
    let kept = fs::read_to_string(home.path().join(format!("state/pgn/{id}.pgn"))).unwrap();
    assert_eq!(archive.unwrap().text, kept);
    assert_eq!(
        pgn::read(kept.as_bytes()).remove(0).unwrap().uci(),
        game.uci()
    );

    // The trace alone gives the same game.
    let trace = Trace::parse(&fs::read_to_string(only_trace(&home)).unwrap()).unwrap();
    let settings = jadoube::session::Settings::new("12");
    let settings = jadoube::replay::settings(&trace, settings).unwrap();
    let again = jadoube::replay::replay(&trace, settings).publications;
    let mut games = again.iter().filter(|(_, publication)| {
        matches!(publication.topic, jadoube::publish::Topic::Game { .. })
    });
    let last = games.next_back().unwrap().1.body.to_text();
    assert_eq!(uci(&serde_json::from_str(&last).unwrap()), game.uci());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_replugged_under_another_name_goes_on_with_its_game() {
    // Case A7.
    let Some((broker, reader, machine, board)) = hall().await else {
        return;
    };
    let plug = machine.plug("ttyACM0", &board);
    let node = Node::start(&machine, broker.port, "serial = \"3000147740\"");
    pair(
        &reader,
        json!({"white": {"name": "Anna"}, "black": {"name": "Berta"}}),
    )
    .await;
    play(&reader, &board, &["e2e4", "e7e5"]).await;
    let id = record(&reader)["game"].clone();

    machine.unplug("ttyACM0", plug);
    reader
        .until("the board missing", |all| {
            last(all, &format!("{BOARD}/status")).is_some_and(|s| s["status"] == "missing")
        })
        .await;
    board.carry("g1f3");
    board.carry("b8c6");
    let _plug = machine.plug("ttyACM1", &board);
    let plies = |count: usize| {
        move |all: &Vec<Read>| {
            last(all, &format!("{BOARD}/game")).is_some_and(|game| uci(&game).len() == count)
        }
    };
    reader.until("the plies played meanwhile", plies(4)).await;
    play(&reader, &board, &["f1b5"]).await;
    let game = record(&reader);
    assert_eq!(uci(&game), ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5"]);
    assert_eq!(game["game"], id);
    assert_eq!(game["in_sync"], true);
    assert_eq!(events(&reader.all(), "game_started").len(), 1);
    let info = last(&reader.all(), &format!("{EDGE}/info")).unwrap();
    assert_eq!(info["boards"][0]["serial"], "3000147740");
    assert!(
        info["boards"][0]["port"]
            .as_str()
            .unwrap()
            .ends_with("ttyACM1")
    );
    node.stop().await;
    validate(&reader.all());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_change_the_game_or_are_refused_and_change_nothing() {
    let Some((broker, reader, machine, board)) = hall().await else {
        return;
    };
    let _plug = machine.plug("ttyACM0", &board);
    let node = Node::start(&machine, broker.port, "port = \"auto\"");
    let names = json!({
        "game": "r3b12", "round": "3", "board": "12",
        "white": {"name": "Muster, Anna"}, "black": {"name": "Beispiel, Berta"},
    });
    pair(&reader, names.clone()).await;
    let named = |all: &Vec<Read>| {
        let text = all
            .iter()
            .rev()
            .find(|read| read.topic == format!("{BOARD}/pgn"));
        text.is_some_and(|pgn| pgn.text.contains("[White \"Muster, Anna\"]"))
    };
    reader.until("the names in the PGN", named).await;
    let game = record(&reader);
    assert_eq!(game["white"]["name"], "Muster, Anna");
    assert_eq!(
        (&game["game"], &game["round"]),
        (&json!("r3b12"), &json!("3"))
    );
    // The same once more is no news.
    let rev = game["rev"].clone();
    reader.publish(&format!("{PREFIX}/core/table/12"), &names.to_string(), true);

    play(&reader, &board, &["e2e4", "e7e5", "g1f3"]).await;
    assert!(record(&reader)["rev"].as_u64() > rev.as_u64());

    let before = record(&reader);
    for (verb, body, retain, what) in [
        ("dance", json!({"id": "r1"}), false, "unknown verb"),
        (
            "takeback",
            json!({"id": "r2", "table": "13"}),
            false,
            "not one of this node's",
        ),
        ("takeback", json!({"id": "r3"}), true, "retained"),
        (
            "takeback",
            json!({"id": "r4", "expect_rev": 0}),
            false,
            "stale",
        ),
        (
            "takeback",
            json!({"id": "r5", "expires": "2020-01-01T00:00:00Z"}),
            false,
            "late",
        ),
        (
            "takeback",
            json!({"id": "r6", "args": {"plies": 1}}),
            false,
            "bad arguments",
        ),
        (
            "takeback",
            json!({"id": "r7", "reply_to": format!("{EDGE}/status")}),
            false,
            "below",
        ),
    ] {
        let id = body["id"].as_str().unwrap().to_owned();
        let topic = format!("{PREFIX}/cmd/pi07/{verb}");
        reader.publish(&topic, &body.to_string(), retain);
        let reply = reply(&reader, "anyone", &id).await;
        assert_eq!(reply["ok"], false, "{reply}");
        assert!(reply["error"].as_str().unwrap().contains(what), "{reply}");
        if retain {
            reader.publish(&topic, "", true);
        }
    }
    assert_eq!(record(&reader), before);

    // Carried out once, though it comes twice; both are answered.
    let body = json!({
        "id": "t1", "by": "arbiter:anna", "table": "12",
        "expect_rev": before["rev"], "reply_to": format!("{PREFIX}/reply/ui-3"),
    });
    for times in 1..=2 {
        reader.publish(
            &format!("{PREFIX}/cmd/pi07/takeback"),
            &body.to_string(),
            false,
        );
        let topic = format!("{PREFIX}/reply/ui-3");
        reader
            .until("the answers", |all| {
                all.iter().filter(|r| r.topic == topic).count() == times
            })
            .await;
    }
    assert_eq!(reply(&reader, "ui-3", "t1").await["ok"], true);
    assert_eq!(uci(&record(&reader)), ["e2e4", "e7e5"]);
    board.carry("f3g1");
    let synced =
        |all: &Vec<Read>| last(all, &format!("{BOARD}/game")).is_some_and(|g| g["in_sync"] == true);
    reader.until("the board as the record", synced).await;

    let body = json!({"id": "t2", "by": "arbiter:anna", "args": {"result": "1/2-1/2"}});
    reader.publish(
        &format!("{PREFIX}/cmd/pi07/result"),
        &body.to_string(),
        false,
    );
    assert_eq!(reply(&reader, "arbiter-anna", "t2").await["ok"], true);
    reader
        .until("the archive", |all| {
            all.iter().any(|read| {
                read.topic == format!("{EDGE}/archive/r3b12")
                    && read.text.contains("[White \"Muster, Anna\"]")
                    && read.text.contains("1/2-1/2")
            })
        })
        .await;
    assert_eq!(record(&reader)["result"], "1/2-1/2");
    let home = node.stop().await;
    let status = last(&reader.all(), &format!("{EDGE}/status")).unwrap();
    assert_eq!(status["status"], "offline");
    validate(&reader.all());

    // What was told to the session stands in the trace; what was refused at the door does not.
    let text = fs::read_to_string(only_trace(&home)).unwrap();
    assert!(text.contains("Muster, Anna"), "{text}");
    assert!(text.contains("\"t1\"") && text.contains("\"r4\""), "{text}");
    assert!(!text.contains("\"r1\"") && !text.contains("ui-3"), "{text}");
    Trace::parse(&text).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_an_absent_broker_nor_an_absent_board_stops_the_others() {
    let Some(mut broker) = Mosquitto::stopped("allow_anonymous true\n") else {
        return;
    };
    let machine = Machine::new();
    let board = Men::new("3000147740");
    let _plug = machine.plug("ttyACM0", &board);
    let tables = "serial = \"3000147740\"\npgn_delay_s = 3600\n[[table]]\nname = \"13\"\nserial = \"3000000009\"";
    let node = Node::start(&machine, broker.port, tables);
    board.until_asked().await;
    broker.restart();
    let reader = Reader::subscribe(broker.port, &format!("{PREFIX}/#")).await;
    pair(&reader, json!({})).await;
    play(&reader, &board, &["d2d4"]).await;
    let status = format!("{EDGE}/board/13/status");
    reader
        .until("the other board missing", |all| {
            last(all, &status).is_some_and(|status| status["status"] == "missing")
        })
        .await;
    // PGN is held back, but not from this machine.
    let body = json!({"id": "t1", "table": "12", "args": {"result": "1-0"}});
    reader.publish(
        &format!("{PREFIX}/cmd/pi07/result"),
        &body.to_string(),
        false,
    );
    assert_eq!(reply(&reader, "anyone", "t1").await["ok"], true);
    let id = record(&reader)["game"].as_str().unwrap().to_owned();
    let kept = node.home.path().join(format!("state/pgn/{id}.pgn"));
    wait_until("the PGN on the disk", || kept.exists()).await;
    // A broker that hangs is not waited for long.
    broker.freeze();
    let stopping = Instant::now();
    node.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(8));
    broker.thaw();
    let all = reader.all();
    assert!(all.iter().all(|read| !read.topic.ends_with("/pgn")));
    assert!(all.iter().all(|read| !read.topic.contains("/archive/")));
    validate(&all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_that_falls_silent_is_opened_anew() {
    // Case A6.
    let Some((broker, reader, machine, board)) = hall().await else {
        return;
    };
    let _plug = machine.plug("ttyACM0", &board);
    let node = Node::start(&machine, broker.port, "port = \"auto\"");
    board.until_asked().await;
    let status = |wanted: &'static str| {
        move |all: &Vec<Read>| {
            last(all, &format!("{BOARD}/status")).is_some_and(|s| s["status"] == wanted)
        }
    };
    reader.until("the board", status("ok")).await;
    board.mute.store(true, Ordering::Relaxed);
    reader.until("its port closed", status("missing")).await;
    // The status itself may be replaced before it is sent; what happened is told.
    let alerts = events(&reader.all(), "alert_raised");
    let is_told = alerts.iter().any(|e| e["alert"]["kind"] == "board_silent");
    assert!(is_told, "{alerts:?}");
    board.mute.store(false, Ordering::Relaxed);
    reader.until("the board again", status("ok")).await;
    pair(&reader, json!({})).await;
    play(&reader, &board, &["c2c4"]).await;
    node.stop().await;
    validate(&reader.all());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_in_mid_game_leaves_the_record_and_tells_what_is_lost() {
    let Some((broker, reader, machine, board)) = hall().await else {
        return;
    };
    let _plug = machine.plug("ttyACM0", &board);
    let pairing = json!({"round": 3, "white": "Muster, Anna", "black": "Beispiel, Berta"});
    let node = Node::start(&machine, broker.port, "port = \"auto\"");
    pair(&reader, pairing.clone()).await;
    play(&reader, &board, &["e2e4", "e7e5"]).await;
    let before = record(&reader);
    let home = node.stop().await;
    let kept: Vec<PathBuf> = fs::read_dir(home.path().join("state/pgn"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let text = fs::read_to_string(&kept[0]).unwrap();
    assert!(text.contains("1. e4") && text.ends_with("e5 *\n"), "{text}");

    // The pairing arms a game at the new start, but the men stand in the middle of the old one.
    let node = Node::start(&machine, broker.port, "port = \"auto\"");
    let lost = format!("{BOARD}/alert/operator/record");
    reader
        .until("the operator told", |all| last(all, &lost).is_some())
        .await;
    let alert = last(&reader.all(), &lost).unwrap();
    assert_eq!(alert["kind"], "record_lost");
    reader
        .until("the pairing armed", |all| {
            events(all, "game_started").len() == 2
        })
        .await;
    let boot = alert["boot"].clone();
    let position = format!("{BOARD}/position");
    let is_read = |all: &Vec<Read>, boot: &Value| {
        last(all, &position).is_some_and(|position| {
            position["boot"] == *boot && !position["placement"].as_str().unwrap().contains('?')
        })
    };
    reader
        .until("the board read", |all| is_read(all, &boot))
        .await;
    assert_eq!(record(&reader), before, "nothing takes its place");

    let topic = format!("{PREFIX}/cmd/pi07/accept_position");
    reader.publish(&topic, r#"{"id":"a1","args":{"turn":"white"}}"#, false);
    assert_eq!(reply(&reader, "anyone", "a1").await["ok"], true);
    play(&reader, &board, &["g1f3", "b8c6"]).await;
    let game = record(&reader);
    assert_eq!(game["white"]["name"], "Muster, Anna");
    assert_eq!(game["round"], "3");
    assert!(
        game["start_fen"]
            .as_str()
            .unwrap()
            .starts_with("rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w")
    );
    reader
        .until("the alert taken back", |all| {
            all.iter()
                .rev()
                .find(|read| read.topic == lost)
                .unwrap()
                .text
                .is_empty()
        })
        .await;
    let body = r#"{"id":"a2","args":{"result":"1-0"}}"#;
    reader.publish(&format!("{PREFIX}/cmd/pi07/result"), body, false);
    assert_eq!(reply(&reader, "anyone", "a2").await["ok"], true);
    let ended = |all: &Vec<Read>| {
        last(all, &format!("{BOARD}/game")).is_some_and(|game| game["phase"] == "ended")
    };
    reader.until("the result", ended).await;
    node.stop().await;

    // A game that is over is not begun anew for the same pairing.
    let node = Node::start(&machine, broker.port, "port = \"auto\"");
    reader
        .until("the board read once more", |all| {
            let status = last(all, &format!("{BOARD}/status")).unwrap();
            status["boot"] != boot && is_read(all, &status["boot"])
        })
        .await;
    for verb in ["resend", "takeback"] {
        reader.publish(
            &format!("{PREFIX}/cmd/pi07/{verb}"),
            r#"{"id":"a3"}"#,
            false,
        );
        reply(&reader, "anyone", "a3").await;
    }
    assert_eq!(record(&reader)["result"], "1-0");
    assert_eq!(events(&reader.all(), "game_started").len(), 2);
    // Another pairing is.
    let next = json!({"round": 4, "white": "Beispiel, Berta", "black": "Muster, Anna"});
    reader.publish(&format!("{PREFIX}/core/table/12"), &next.to_string(), true);
    reader
        .until("the next round", |all| {
            last(all, &format!("{BOARD}/game")).is_some_and(|game| game["round"] == "4")
        })
        .await;
    // What cannot be read is told to the operator, until it is put right.
    let refused = format!("{BOARD}/alert/operator/pairing");
    reader.publish(&format!("{PREFIX}/core/table/12"), r#"{"white":7}"#, true);
    reader
        .until("the refusal", |all| last(all, &refused).is_some())
        .await;
    let text = last(&reader.all(), &refused).unwrap()["text"].to_string();
    assert!(text.contains("pairing refused"), "{text}");
    reader.publish(&format!("{PREFIX}/core/table/12"), "", true);
    reader
        .until("the refusal taken back", |all| {
            all.iter()
                .rev()
                .find(|read| read.topic == refused)
                .unwrap()
                .text
                .is_empty()
        })
        .await;
    node.stop().await;
    validate(&reader.all());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_game_that_is_over_never_begins_again() {
    let Some((broker, reader, machine, board)) = hall().await else {
        return;
    };
    let _plug = machine.plug("ttyACM0", &board);
    let two = "port = \"auto\"\n[[table]]\nname = \"13\"\nport = \"/dev/none\"";
    let node = Node::start(&machine, broker.port, two);
    let command = async |verb: &str, id: &str, table: &str, args: Value| {
        let body = json!({"id": id, "table": table, "args": args});
        let topic = format!("{PREFIX}/cmd/pi07/{verb}");
        reader.publish(&topic, &body.to_string(), false);
        reply(&reader, "anyone", id).await
    };
    let archive = |game: &str| {
        let topic = format!("{EDGE}/archive/{game}");
        let all = reader.all();
        let last = all.iter().rev().find(|read| read.topic == topic);
        last.map(|read| read.text.clone())
    };
    let refused_as = |reply: &Value, why: &str| {
        let error = reply["error"].as_str().unwrap_or_default();
        assert!(error.contains(why), "{reply}");
    };

    pair(&reader, json!({"game": "g1", "white": "Anna"})).await;
    play(&reader, &board, &["e2e4"]).await;
    let elsewhere = command("arm", "1", "13", json!({"game": "g1"})).await;
    refused_as(&elsewhere, "game g1 is being played at table 12");
    command("result", "2", "12", json!({"result": "1-0"})).await;
    let elsewhere = command("arm", "3", "13", json!({"game": "g1"})).await;
    refused_as(&elsewhere, "g1 was played to its end at table 12");
    board.carry("e4e2");
    pair(&reader, json!({"game": "g2", "white": "Berta"})).await;
    play(&reader, &board, &["d2d4"]).await;
    command("result", "4", "12", json!({"result": "0-1"})).await;
    // A name of the game before is put right.
    let told = command("arm", "5", "12", json!({"game": "g1", "white": "Anne"})).await;
    assert!(
        told["note"].as_str().unwrap().contains("g1 is over"),
        "{told}"
    );
    reader
        .until("the name put right", |_| {
            archive("g1").is_some_and(|pgn| pgn.contains("[White \"Anne\"]"))
        })
        .await;
    let before = archive("g1");
    node.stop().await;

    // Of an earlier run the record is out of reach: the game is not begun anew all the same.
    board.carry("d4d2");
    let node = Node::start(&machine, broker.port, two);
    let pairing = json!({"game": "g1", "white": "Anna-Lena"}).to_string();
    reader.publish(&format!("{PREFIX}/core/table/12"), &pairing, true);
    let refused = format!("{BOARD}/alert/operator/pairing");
    reader
        .until("the refusal", |all| last(all, &refused).is_some())
        .await;
    let text = last(&reader.all(), &refused).unwrap()["text"].to_string();
    assert!(
        text.contains("game g1 was played to its end before"),
        "{text}"
    );
    let again = command("arm", "6", "12", json!({"game": "g1"})).await;
    refused_as(&again, "before this start");
    pair(&reader, json!({"game": "g3", "white": "Anna-Lena"})).await;
    play(&reader, &board, &["c2c4"]).await;
    assert_eq!(archive("g1"), before);
    assert!(archive("g1").is_some_and(|pgn| pgn.contains("1. e4")));
    node.stop().await;
    validate(&reader.all());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_ends_it_in_good_order() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let home = TempDir::new().unwrap();
    let absent = home.path().join("no-board");
    let device = format!("port = \"{}\"", absent.display());
    let reader = Reader::subscribe(broker.port, &format!("{PREFIX}/#")).await;
    for signal in ["-TERM", "-INT"] {
        let mut daemon = Daemon::start(&home, &configuration(broker.port, &device));
        let status = |wanted: &'static str| {
            move |all: &Vec<Read>| {
                last(all, &format!("{EDGE}/status")).is_some_and(|s| s["status"] == wanted)
            }
        };
        reader.until("online", status("online")).await;
        let log = home.path().join("log");
        wait_until("the absent board to be told", || {
            fs::read_to_string(&log).unwrap().contains("no-board")
        })
        .await;
        daemon.signal(signal);
        assert_eq!(daemon.ended().await.code(), Some(0));
        reader.until("offline", status("offline")).await;
    }
    let log = fs::read_to_string(home.path().join("log")).unwrap();
    let told = log.lines().filter(|line| line.contains("no-board")).count();
    assert_eq!(told, 1, "{log}");
    assert!(log.contains("Plug the board in"), "{log}");
}

#[tokio::test]
async fn what_cannot_work_is_refused_at_the_start() {
    let folder = TempDir::new().unwrap();
    for (text, what) in [
        ("", "no table"),
        ("[[table]]\nname = \"1\"\nboard = \"certabo\"", "certabo"),
        (
            "[mqtt]\nversion = 4\n[[table]]\nname = \"1\"",
            "mqtt version 4",
        ),
        (
            "[mqtt]\nusername = \"x\"\npassword_file = \"none\"\n[[table]]\nname = \"1\"",
            "password_file cannot be read",
        ),
    ] {
        let config = Config::parse(text, folder.path()).unwrap();
        let error: StartError = run(config, Parts::default(), std::future::pending())
            .await
            .unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.advice().ends_with('.'), "{}", error.advice());
    }
    let path = folder.path().join("none.toml");
    fs::write(&path, "event = \"open\"\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_jadoube"))
        .args(["run", "--config"])
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(78));
}

// --- the daemon ---

fn configuration(port: u16, device: &str) -> String {
    format!(
        "event = \"open\"\nnode = \"pi07\"\nstate_dir = \"state\"\n\
         [mqtt]\nurl = \"mqtt://127.0.0.1:{port}\"\n\
         [[table]]\nname = \"12\"\n{device}\n"
    )
}

/// The daemon as a process of its own.
struct Daemon(Child);

impl Daemon {
    fn start(home: &TempDir, text: &str) -> Daemon {
        let path = home.path().join("jadoube.toml");
        fs::write(&path, text).unwrap();
        let log = fs::File::create(home.path().join("log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_jadoube"))
            .args(["run", "--config"])
            .arg(&path)
            .env_remove("JADOUBE_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Daemon(child)
    }

    /// As a power cut.
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &id])
                .status()
                .unwrap()
                .success()
        );
    }

    async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the daemon to end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The daemon within the test, on a machine of its own.
struct Node {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), StartError>>,
    home: TempDir,
}

impl Node {
    fn start(machine: &Machine, port: u16, device: &str) -> Node {
        let home = TempDir::new().unwrap();
        let config = Config::parse(&configuration(port, device), home.path()).unwrap();
        let parts = Parts {
            roots: machine.roots(),
            serial: quick(),
            ..Parts::default()
        };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(run(config, parts, async move { drop(stopped.await) }));
        Node { stop, task, home }
    }

    /// Ends it, and leaves what it wrote.
    async fn stop(self) -> TempDir {
        self.stop.send(()).unwrap();
        let ended = tokio::time::timeout(PATIENCE, self.task).await;
        ended.expect("ends in time").unwrap().unwrap();
        self.home
    }
}

/// On a presence board no man has a name, and yet the moves have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_presence_board_is_found_and_its_game_is_told() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let reader = Reader::subscribe(broker.port, &format!("{PREFIX}/#")).await;
    let text = "1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. d3 Nf6 5. Bg5 d6 *";
    let game = pgn::read(text.as_bytes()).remove(0).unwrap();
    let script = Hands::new(Level::Clean, 7)
        .with_pace(Pace::Mean(700))
        .script(&game);
    let board = psb1::VirtualBoard::default();
    let options = TableOptions::of(Family::Psb1);
    let mut player = Player::new(0, script, board, &options);
    let mut port = VirtualPort::open().unwrap();
    let machine = Machine::new();
    machine.0.list("ttyACM0", "2341:0043", port.path().as_ref());
    let node = Node::start(&machine, broker.port, "port = \"auto\"");
    let playing = tokio::spawn(async move {
        let serving = Serving {
            speed: 1.0,
            linger: None,
        };
        port.serve(&mut player, &serving).await
    });
    let all_moves = |all: &Vec<Read>| {
        last(all, &format!("{BOARD}/game")).is_some_and(|game| {
            game["moves"]
                .as_array()
                .is_some_and(|moves| moves.len() == 10)
        })
    };
    reader
        .until_within(Duration::from_secs(60), "ten plies", all_moves)
        .await;
    let all = reader.all();
    validate(&all);
    let told = last(&all, &format!("{BOARD}/game")).unwrap();
    let uci: Vec<&str> = told["moves"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|ply| ply["uci"].as_str())
        .collect();
    assert_eq!(uci, game.uci());
    let status = last(&all, &format!("{BOARD}/status")).unwrap();
    assert_eq!(status["serial"], "virtual-1");
    assert_eq!(status["firmware"], "sim1");
    assert_eq!(status["orientation"], "normal");
    let info = last(&all, &format!("{EDGE}/info")).unwrap();
    assert_eq!(info["boards"][0]["family"], "psb1");
    let position = last(&all, &format!("{BOARD}/position")).unwrap();
    assert_eq!(
        position["placement"],
        "x1xxx2x/xxx2xxx/2xx1x2/2x1x1x1/2x1x3/3x1x2/xxx2xxx/xx1xx2x"
    );
    assert_eq!(events(&all, "alert_raised"), [Value::Null; 0]);
    playing.abort();
    let home = node.stop().await;
    let trace = Trace::from_bytes(&fs::read(only_trace(&home)).unwrap()).unwrap();
    assert_eq!(trace.header.board, Family::Psb1);
    let settings = replay::settings(&trace, session::Settings::new("12")).unwrap();
    let replayed = replay::summarise("x", &replay::replay(&trace, settings));
    let plies: Vec<String> = replayed.plies.into_iter().map(|ply| ply.uci).collect();
    assert_eq!(plies, uci);
}

fn quick() -> Settings {
    Settings {
        poll: Duration::from_millis(20),
        settle: Duration::from_millis(10),
        spacing: Duration::from_millis(3),
        sign_of_life: Duration::from_millis(100),
        retry_min: Duration::from_millis(20),
        retry_named: Duration::from_millis(100),
        retry_guessed: Duration::from_millis(200),
        ..Settings::default()
    }
}

fn traces(home: &TempDir) -> Vec<PathBuf> {
    let folder = fs::read_dir(home.path().join("state/traces"));
    let entries = folder.into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn only_trace(home: &TempDir) -> PathBuf {
    let mut all = traces(home);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn trace_length(home: &TempDir) -> u64 {
    let lengths = traces(home)
        .into_iter()
        .map(|path| fs::metadata(path).unwrap().len());
    lengths.sum()
}

// --- boards ---

/// A machine's devices, most of them DGT boards.
struct Machine(Devices);

impl Machine {
    fn new() -> Machine {
        Machine(Devices::new())
    }

    fn roots(&self) -> Roots {
        self.0.roots()
    }

    fn plug(&self, name: &str, men: &Men) -> Plug {
        let plug = Plug::new(men);
        self.0.list(name, "045b:8111", &plug.node);
        plug
    }

    fn unplug(&self, name: &str, plug: Plug) {
        plug.task.abort();
        self.0.unlist(name);
    }
}

/// A broker with a reader of all topics, and a machine with a board that can be plugged in; none where there is no broker to start.
async fn hall() -> Option<(Mosquitto, Reader, Machine, Men)> {
    let broker = Mosquitto::start()?;
    let reader = Reader::subscribe(broker.port, &format!("{PREFIX}/#")).await;
    Some((broker, reader, Machine::new(), Men::new("3000147740")))
}

/// A board and the test's hands at it. It stands there whether it is plugged in or not.
struct Men {
    board: Arc<Mutex<VirtualBoard>>,
    says: Arc<Mutex<Option<mpsc::UnboundedSender<Vec<u8>>>>>,
    /// It hears and says nothing.
    mute: Arc<AtomicBool>,
}

impl Men {
    fn new(serial: &str) -> Men {
        let board = VirtualBoard::new(Identity {
            serial: serial[5..].to_owned(),
            long_serial: Some(serial.to_owned()),
            ..Identity::default()
        });
        Men {
            board: Arc::new(Mutex::new(board)),
            says: Arc::default(),
            mute: Arc::default(),
        }
    }

    /// Carries a man from square to square, what stands there is put aside first.
    fn carry(&self, uci: &str) {
        let [from, to] = [&uci[..2], &uci[2..4]].map(|name| raw_square(name.parse().unwrap()));
        let mut board = self.board.lock().unwrap();
        let man = board.squares()[usize::from(from.index())];
        let told = [
            board.set_square(from, PieceCode::Empty),
            board.set_square(to, man),
        ];
        if let Some(says) = &*self.says.lock().unwrap() {
            let _ = says.send(told.concat());
        }
    }

    /// Waits until somebody wants to hear of every change.
    async fn until_asked(&self) {
        let idle = jadoube::wire::dgt::Mode::Idle;
        wait_until("the board to be asked", || {
            self.board.lock().unwrap().mode() != idle
        })
        .await;
    }
}

/// One end of a cable.
struct Plug {
    node: PathBuf,
    task: JoinHandle<()>,
    /// Keeps the node's number from others until the test ends.
    _slave: SerialStream,
}

impl Plug {
    fn new(men: &Men) -> Plug {
        let (mut master, slave) = SerialStream::pair().unwrap();
        let node = slave.name().unwrap().into();
        let (says, mut to_say) = mpsc::unbounded_channel::<Vec<u8>>();
        *men.says.lock().unwrap() = Some(says);
        let (board, mute) = (men.board.clone(), men.mute.clone());
        let task = tokio::spawn(async move {
            let mut buffer = [0; 64];
            loop {
                let bytes = tokio::select! {
                    read = master.read(&mut buffer) => match read {
                        Ok(length @ 1..) => board.lock().unwrap().handle_host(&buffer[..length]),
                        _ => return,
                    },
                    Some(bytes) = to_say.recv() => bytes,
                };
                if mute.load(Ordering::Relaxed) {
                    continue;
                }
                if master.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        });
        Plug {
            node,
            task,
            _slave: slave,
        }
    }
}

/// Tells who plays at table 12, and waits until the board is known to stand there ready.
async fn pair(reader: &Reader, pairing: Value) {
    reader.publish(
        &format!("{PREFIX}/core/table/12"),
        &pairing.to_string(),
        true,
    );
    reader
        .until("the game ready", |all| {
            last(all, &format!("{BOARD}/game")).is_some_and(|game| game["phase"] == "ready")
        })
        .await;
}

/// Plays moves, each once the one before it is published.
async fn play(reader: &Reader, board: &Men, moves: &[&str]) {
    for uci in moves {
        board.carry(uci);
        reader
            .until(uci, |all| {
                let game = last(all, &format!("{BOARD}/game"));
                let moves = game.map(|game| self::uci(&game)).unwrap_or_default();
                moves.last().is_some_and(|last| last == uci)
            })
            .await;
    }
}

// --- what is read ---

fn parsed(read: &Read) -> Value {
    serde_json::from_str(&read.text).unwrap_or_else(|error| panic!("{error}: {read:?}"))
}

fn all_events(all: &[Read]) -> Vec<Value> {
    let those = all
        .iter()
        .filter(|read| read.topic == format!("{BOARD}/event"));
    those.map(parsed).collect()
}

/// Events of one type, twins left out.
fn events(all: &[Read], kind: &str) -> Vec<Value> {
    let mut those: Vec<Value> = Vec::new();
    for event in all_events(all) {
        if event["type"] == kind && those.iter().all(|known| known["id"] != event["id"]) {
            those.push(event);
        }
    }
    those
}

fn last(all: &[Read], topic: &str) -> Option<Value> {
    let read = all.iter().rev().find(|read| read.topic == topic)?;
    (!read.text.is_empty()).then(|| parsed(read))
}

fn record(reader: &Reader) -> Value {
    last(&reader.all(), &format!("{BOARD}/game")).unwrap()
}

fn uci(game: &Value) -> Vec<String> {
    let moves = game["moves"].as_array().unwrap().iter();
    moves
        .map(|played| played["uci"].as_str().unwrap().to_owned())
        .collect()
}

async fn reply(reader: &Reader, client: &str, id: &str) -> Value {
    let find = |all: &[Read]| {
        let topic = format!("{PREFIX}/reply/{client}");
        let replies = all.iter().rev().filter(|read| read.topic == topic);
        replies.map(parsed).find(|reply| reply["id"] == id)
    };
    reader
        .until(&format!("the answer to {id}"), |all| find(all).is_some())
        .await;
    find(&reader.all()).unwrap()
}

async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let look = async || condition().then_some(()).ok_or_else(String::new);
    until(what, PATIENCE, look).await;
}

/// Holds every payload against the schema of its topic.
fn validate(all: &[Read]) {
    static VALIDATORS: LazyLock<BTreeMap<&str, jsonschema::Validator>> = LazyLock::new(|| {
        let all = schemas().into_iter().map(|(name, schema)| {
            let schema = serde_json::to_value(schema).unwrap();
            (name, jsonschema::validator_for(&schema).unwrap())
        });
        all.collect()
    });
    assert!(!all.is_empty());
    for read in all {
        let below = read.topic.strip_prefix(PREFIX).unwrap();
        let levels: Vec<&str> = below.split('/').skip(1).collect();
        let schema = match levels[..] {
            ["edge", _, "status"] => "node-status",
            ["edge", _, "info"] => "info",
            ["edge", _, "board", _, "status"] => "board-status",
            ["edge", _, "board", _, "alert", _, _] if read.text.is_empty() => continue,
            ["edge", _, "board", _, "alert", _, _] => "alert",
            ["edge", _, "board", _, "pgn"] | ["edge", _, "archive", _] => {
                assert!(
                    pgn::read(read.text.as_bytes()).remove(0).is_ok(),
                    "{read:?}"
                );
                continue;
            }
            ["edge", _, "alertline"] => continue,
            [
                "edge",
                _,
                "board",
                _,
                name @ ("position" | "clock" | "game" | "event"),
            ] => name,
            ["reply", _] => "reply",
            // Written by the tests.
            ["cmd" | "core", ..] => continue,
            _ => panic!("a topic that the contract does not know: {}", read.topic),
        };
        let errors: Vec<String> = VALIDATORS[schema]
            .iter_errors(&parsed(read))
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{schema}: {errors:?} in {read:?}");
    }
}
