//! The connection to the broker against a real one that is killed, frozen, absent or unwilling, and against stubs where
//! the broker must misbehave.
#![cfg(feature = "io")]

#[path = "support/mosquitto.rs"]
mod mosquitto;

use std::time::{Duration, Instant};

use jadoube::command::Reply;
use jadoube::daemon::mqtt::{Connection, Link, Mqtt, NotSent, Settings, Status, connect};
use jadoube::daemon::orders;
use jadoube::outbox::{Limits, MemoryOutbox, NotKept};
use jadoube::publish::{Audience, Body, Publication, Topic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use mosquitto::{Mosquitto, PATIENCE, Read, Reader};

const EDGE: &str = "jadoube/v1/open/edge/pi07";

fn settings(port: u16) -> Settings {
    Settings {
        busy: jadoube::daemon::orders::busy,
        ..Settings::node("127.0.0.1", port, "open", "pi07").with_tables(["12"])
    }
}

fn start(port: u16) -> Connection {
    start_with(settings(port))
}

fn start_with(settings: Settings) -> Connection {
    connect(settings, MemoryOutbox::new(Limits::default())).expect("the settings are right")
}

async fn until(mqtt: &Mqtt, what: &str, condition: impl FnMut(&Status) -> bool) -> Status {
    let mut status = mqtt.status();
    let met = tokio::time::timeout(PATIENCE, status.wait_for(condition)).await;
    let met = met.map(|met| met.map(|status| status.clone()));
    match met {
        Ok(Ok(status)) => status,
        _ => panic!("never: {what}; {:?}", mqtt.status().borrow().clone()),
    }
}

async fn until_connected(mqtt: &Mqtt) {
    until(mqtt, "connected", |s| s.link == Link::Connected).await;
}

async fn until_sent(mqtt: &Mqtt) {
    until(mqtt, "all sent", |s| {
        s.queued == 0 && s.link == Link::Connected
    })
    .await;
}

fn event(number: usize) -> Publication {
    let table = "12".to_owned();
    Publication {
        topic: Topic::Event { table },
        body: Body::Text(number.to_string()),
    }
}

fn game(text: &str) -> Publication {
    let table = "12".to_owned();
    Publication {
        topic: Topic::Game { table },
        body: Body::Text(text.to_owned()),
    }
}

fn alert(id: &str, body: Body) -> Publication {
    Publication {
        topic: Topic::Alert {
            table: "12".to_owned(),
            audience: Audience::Arbiter,
            id: id.to_owned(),
        },
        body,
    }
}

fn publish(mqtt: &Mqtt, publication: Publication) {
    mqtt.publish(&publication).expect("there is room");
}

/// Whether the last message of a topic contains a text.
fn last_contains(all: &[Read], topic: &str, part: &str) -> bool {
    let last = all.iter().rev().find(|read| read.topic == topic);
    last.is_some_and(|read| read.text.contains(part))
}

fn numbers(reader: &Reader) -> Vec<usize> {
    let texts = reader.texts(&format!("{EDGE}/board/12/event"));
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_the_broker_is_killed() {
    for window in [1, 16] {
        let Some(mut broker) = Mosquitto::start() else {
            return;
        };
        let reader = Reader::subscribe(broker.port, &format!("{EDGE}/board/12/event")).await;
        let mut settings = settings(broker.port);
        settings.window = window;
        let Connection { mqtt, .. } = start_with(settings);
        until_connected(&mqtt).await;
        for number in 0..300 {
            publish(&mqtt, event(number));
            publish(&mqtt, game(&format!("\"after {number}\"")));
            match number {
                100 | 200 => {
                    let near = number - 20;
                    let what = "the reader follows";
                    reader.until(what, |all| all.len() >= near).await;
                    broker.kill();
                }
                130 => broker.restart(),
                // The second time it comes back only once all is said.
                299 => broker.restart(),
                _ => {}
            }
        }
        until_sent(&mqtt).await;
        let last = |all: &Vec<Read>| all.last().is_some_and(|read| read.text == "299");
        reader.until("the last event", last).await;

        let mut seen = Vec::new();
        for number in numbers(&reader) {
            if seen.last().is_none_or(|&last| number > last) {
                seen.push(number);
            }
        }
        assert_eq!(seen, (0..300).collect::<Vec<_>>(), "window {window}");
        // Not from what was read: the broker, too, repeats what it had not saved as delivered.
        let log = broker.log();
        let ours = |line: &&str| {
            line.contains("Received PUBLISH from jadoube") && line.contains("12/event'")
        };
        let sent = log.lines().filter(ours).count();
        let twins = sent - 300;
        assert!(twins <= 2 * usize::from(window), "{twins} twins");

        let late = Reader::subscribe(broker.port, &format!("{EDGE}/#")).await;
        let retained = |all: &Vec<Read>| {
            last_contains(all, &format!("{EDGE}/board/12/game"), "after 299")
                && last_contains(all, &format!("{EDGE}/status"), "online")
        };
        late.until("the retained values", retained).await;
        assert_eq!(mqtt.status().borrow().dropped, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_broker_forgot_is_said_again() {
    let Some(mut broker) = Mosquitto::start() else {
        return;
    };
    // The later line counts.
    broker.configure("persistence false");
    broker.restart();
    let Connection { mqtt, .. } = start(broker.port);
    publish(&mqtt, game("\"old\""));
    until_sent(&mqtt).await;
    let archive = Topic::Archive {
        game: "g1".to_owned(),
    };
    publish(
        &mqtt,
        Publication {
            topic: archive,
            body: Body::Text("1. e4 *".to_owned()),
        },
    );
    publish(&mqtt, game("\"new\""));
    publish(&mqtt, alert("a1", Body::Text("\"look\"".to_owned())));
    publish(&mqtt, alert("a1", Body::Clear));
    until_sent(&mqtt).await;
    broker.kill();
    until(&mqtt, "lost", |s| s.link != Link::Connected).await;
    broker.restart();
    let reader = Reader::subscribe(broker.port, &format!("{EDGE}/#")).await;
    let again = |all: &Vec<Read>| {
        last_contains(all, &format!("{EDGE}/status"), "online")
            && last_contains(all, &format!("{EDGE}/board/12/game"), "new")
            && last_contains(all, &format!("{EDGE}/archive/g1"), "1. e4 *")
    };
    reader.until("the retained values", again).await;
    let games = reader.texts(&format!("{EDGE}/board/12/game"));
    assert!(games.iter().all(|text| text.contains("new")), "{games:?}");
    let alerts = reader.texts(&format!("{EDGE}/board/12/alert/arbiter/a1"));
    assert_eq!(alerts, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_comes_later_gets_everything() {
    let Some(mut broker) = Mosquitto::stopped("allow_anonymous true\n") else {
        return;
    };
    let Connection { mqtt, .. } = start(broker.port);
    let lost =
        |s: &Status| matches!(&s.link, Link::Disconnected { reason } if reason.contains("listens"));
    until(&mqtt, "no broker", lost).await;
    for number in 0..10 {
        publish(&mqtt, event(number));
    }
    assert_eq!(mqtt.status().borrow().queued, 10);
    broker.restart();
    until_sent(&mqtt).await;
    let received = broker.log().matches("board/12/event'").count();
    assert_eq!(received, 10, "{}", broker.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_told_with_what_to_do() {
    let Some(broker) = Mosquitto::with("allow_anonymous false\n") else {
        return;
    };
    let mut settings = settings(broker.port);
    settings.username = Some("pi07".to_owned());
    settings.password = Some("wrong".to_owned());
    let Connection { mqtt, .. } = start_with(settings);
    let refused = |s: &Status| matches!(&s.link, Link::Refused { reason } if reason.contains("password_file"));
    until(&mqtt, "refused", refused).await;
    publish(&mqtt, event(1));
    assert_eq!(mqtt.shutdown(Duration::from_secs(3)).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_access_list_denies_is_set_aside_and_the_rest_goes_on() {
    let lines = "allow_anonymous true\n";
    let Some(mut broker) = Mosquitto::stopped(lines) else {
        return;
    };
    broker.configure(&format!("acl_file {}/acl", broker.path().display()));
    let denied = format!("topic readwrite #\ntopic deny {EDGE}/board/12/event\n");
    broker.file("acl", &denied);
    broker.restart();
    let game_topic = format!("{EDGE}/board/12/game");
    let reader = Reader::subscribe(broker.port, &format!("{EDGE}/board/#")).await;
    let Connection { mqtt, .. } = start(broker.port);
    publish(&mqtt, event(1));
    publish(&mqtt, event(2));
    publish(&mqtt, game("\"after 2\""));
    let parked = |s: &Status| s.parked == 2 && s.queued == 0;
    let status = until(&mqtt, "set aside", parked).await;
    let reason = status.refused.unwrap_or_default();
    assert!(
        reason.ends_with("board/12/event: not authorised"),
        "{reason}"
    );
    let through = |all: &Vec<Read>| last_contains(all, &game_topic, "after 2");
    reader.until("the game", through).await;

    broker.file("acl", "topic readwrite #\n");
    broker.restart();
    until(&mqtt, "lost", |s| s.link != Link::Connected).await;
    until_connected(&mqtt).await;
    assert_eq!(mqtt.release_parked(), 2);
    until_sent(&mqtt).await;
    reader
        .until("the events", |_| numbers(&reader) == [1, 2])
        .await;
    publish(&mqtt, event(3));
    let trusted = |s: &Status| s.queued == 0 && s.refused.is_none();
    until(&mqtt, "nothing refused", trusted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_kills_the_connection_is_set_aside() {
    // The first limit answers with a reason that the transport cannot read, the second is announced at connecting.
    for limit in ["message_size_limit 1000\n", "max_packet_size 1000\n"] {
        let Some(broker) = Mosquitto::with(&format!("allow_anonymous true\n{limit}")) else {
            return;
        };
        let Connection { mqtt, .. } = start(broker.port);
        until_connected(&mqtt).await;
        publish(&mqtt, game(&format!("\"{}\"", "x".repeat(2000))));
        publish(&mqtt, event(1));
        let parked = |s: &Status| s.parked == 1 && s.queued == 0 && s.link == Link::Connected;
        let status = until(&mqtt, "set aside", parked).await;
        assert!(status.refused.is_some(), "{limit}");
        assert_eq!(mqtt.shutdown(Duration::from_secs(3)).await, 0, "{limit}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_may_come_back_with_a_narrower_window() {
    let Some(mut broker) = Mosquitto::start() else {
        return;
    };
    let mut settings = settings(broker.port);
    settings.window = 16;
    let Connection { mqtt, .. } = start_with(settings);
    // So many that the packet ids stand above what the broker allows later.
    for number in 0..15 {
        publish(&mqtt, event(number));
    }
    until_sent(&mqtt).await;
    broker.configure("max_inflight_messages 2");
    broker.restart();
    until(&mqtt, "lost", |s| s.link != Link::Connected).await;
    for number in 15..100 {
        publish(&mqtt, event(number));
    }
    until_sent(&mqtt).await;
    assert_eq!(mqtt.shutdown(Duration::from_secs(3)).await, 0);
    let log = broker.log();
    assert!(!log.contains("protocol error"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_large_a_message_is_refused_before_the_outbox() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let Connection { mqtt, .. } = start(broker.port);
    let large = game(&"x".repeat(256 * 1024));
    let refused = mqtt.publish(&large);
    assert!(matches!(
        refused,
        Err(NotSent::Outbox(NotKept::TooLarge { .. }))
    ));
    publish(&mqtt, game(&"x".repeat(250 * 1024)));
    publish(&mqtt, event(1));
    until_sent(&mqtt).await;
}

/// A free port, for a broker that misbehaves.
async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_says_nothing_holds_nobody_up() {
    let (listener, port) = listen().await;
    let accepting = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            held.push(socket);
        }
    });
    let Connection { mqtt, .. } = start(port);
    let began = Instant::now();
    for number in 0..1000 {
        publish(&mqtt, event(number));
    }
    assert!(began.elapsed() < Duration::from_secs(2));
    let silent = |s: &Status| matches!(&s.link, Link::Disconnected { reason } if reason.starts_with("no answer"));
    until(&mqtt, "no answer", silent).await;
    assert_eq!(mqtt.shutdown(Duration::from_secs(3)).await, 1000);
    accepting.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_broker_of_ours_is_named_so() {
    for (answer, what) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "is no MQTT 5 broker",
        ),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "is no MQTT 5 broker"),
        // The 3.1.1 way of saying: unacceptable protocol version.
        (&[0x20, 2, 0, 1], "3.1.1"),
        (&[], "3.1.1"),
    ] {
        let (listener, port) = listen().await;
        let stub = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut buffer = [0; 4096];
                let _ = socket.read(&mut buffer).await;
                let _ = socket.write_all(answer).await;
            }
        });
        let Connection { mqtt, .. } = start(port);
        let named =
            |s: &Status| matches!(&s.link, Link::Disconnected { reason } if reason.contains(what));
        until(&mqtt, what, named).await;
        stub.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_acknowledges_nothing_is_left() {
    let (listener, port) = listen().await;
    // Greets, answers pings, and lets every publish fall.
    let stub = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let mut greeted = false;
            while let Ok(count @ 1..) = socket.read(&mut buffer).await {
                let answer: &[u8] = match greeted {
                    false => &[0x20, 3, 0, 0, 0],
                    true if buffer[..count].ends_with(&[0xc0, 0]) => &[0xd0, 0],
                    true => &[],
                };
                greeted = true;
                if socket.write_all(answer).await.is_err() {
                    break;
                }
            }
        }
    });
    let Connection { mqtt, .. } = start(port);
    publish(&mqtt, event(1));
    let left = |s: &Status| matches!(&s.link, Link::Disconnected { reason } if reason.contains("acknowledges nothing"));
    let status = until(&mqtt, "left", left).await;
    assert_eq!((status.queued, status.parked), (1, 0));
    stub.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_broker_is_noticed_and_found_again() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let Connection { mqtt, .. } = start(broker.port);
    until_connected(&mqtt).await;
    broker.freeze();
    publish(&mqtt, event(1));
    let lost = |s: &Status| matches!(s.link, Link::Disconnected { .. });
    until(&mqtt, "noticed", lost).await;
    broker.thaw();
    until_sent(&mqtt).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_will_says_offline() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let status = format!("{EDGE}/status");
    let reader = Reader::subscribe(broker.port, &status).await;
    let Connection { mqtt, task, .. } = start(broker.port);
    let online = |all: &Vec<Read>| last_contains(all, &status, "online");
    reader.until("online", online).await;
    task.abort();
    let offline = |all: &Vec<Read>| last_contains(all, &status, "offline");
    reader.until("the last will", offline).await;
    drop(mqtt);
    let late = Reader::subscribe(broker.port, &status).await;
    late.until("retained", |all| {
        offline(all) && all.iter().all(|read| read.retain)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_will_that_comes_late_is_put_right() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let status = format!("{EDGE}/status");
    let reader = Reader::subscribe(broker.port, &status).await;
    let _connection = start(broker.port);
    let online = |all: &Vec<Read>| last_contains(all, &status, "online");
    reader.until("online", online).await;
    reader.publish(&status, r#"{"v":1,"status":"offline","boot":""}"#, true);
    let again = |all: &Vec<Read>| all.len() == 3 && online(all);
    reader.until("online again", again).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_of_an_earlier_run_are_emptied() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let alerts = format!("{EDGE}/board/12/alert/arbiter");
    let reader = Reader::subscribe(broker.port, &format!("{EDGE}/board/+/alert/#")).await;
    for id in ["old", "open"] {
        reader.publish(&format!("{alerts}/{id}"), "\"earlier\"", true);
    }
    reader.until("both alerts", |all| all.len() == 2).await;

    let Connection { mqtt, .. } = start(broker.port);
    until_connected(&mqtt).await;
    publish(&mqtt, alert("open", Body::Text("\"now\"".to_owned())));
    until_sent(&mqtt).await;
    mqtt.sweep_alerts();
    let emptied = |_: &Vec<Read>| {
        let old = reader.texts(&format!("{alerts}/old"));
        old.last().is_some_and(String::is_empty)
    };
    reader.until("emptied", emptied).await;
    until_sent(&mqtt).await;
    let open = reader.texts(&format!("{alerts}/open"));
    assert_eq!(open.last().map(String::as_str), Some("\"now\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_sends_what_waits_and_leaves_offline_behind() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let status = format!("{EDGE}/status");
    let Connection { mqtt, task, .. } = start(broker.port);
    until_connected(&mqtt).await;
    for number in 0..200 {
        publish(&mqtt, event(number));
    }
    assert_eq!(mqtt.shutdown(Duration::from_secs(3)).await, 0);
    assert!(matches!(mqtt.publish(&event(1)), Err(NotSent::Closed)));
    assert_eq!(mqtt.status().borrow().link, Link::Closed);
    let _ = task.await;
    let late = Reader::subscribe(broker.port, &status).await;
    let offline = |all: &Vec<Read>| last_contains(all, &status, "offline");
    late.until("offline", offline).await;
    let log = broker.log();
    let client = "jadoube-pi07-";
    let polite = log
        .lines()
        .any(|line| line.contains("Received DISCONNECT from") && line.contains(client));
    assert!(polite, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_arrive_with_their_retain_flag_and_a_flood_is_counted() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let other = Reader::subscribe(broker.port, "jadoube/v1/open/#").await;
    let commands = "jadoube/v1/open/cmd/pi07";
    other.publish(&format!("{commands}/press"), "kept", true);
    other.until("kept", |all| all.len() == 1).await;
    let Connection {
        mqtt, mut incoming, ..
    } = start(broker.port);
    let first = tokio::time::timeout(PATIENCE, incoming.recv()).await;
    let first = first.expect("in time").expect("open");
    assert_eq!(mqtt.below(&first.topic), Some("cmd/pi07/press"));
    assert!(first.retain);

    other.publish(&format!("{commands}/pause"), "live and kept", true);
    other.publish(&format!("{commands}/resume"), "live", false);
    let mut flags = Vec::new();
    while flags.len() < 2 {
        let next = tokio::time::timeout(PATIENCE, incoming.recv()).await;
        flags.push(next.expect("in time").expect("open").retain);
    }
    assert_eq!(flags, [true, false]);

    let began = Instant::now();
    // Large ones, as so many bytes are sooner sent than so many messages.
    let filler = "x".repeat(60_000);
    for number in 0..200 {
        let command = format!(r#"{{"id":"{number}","by":"ui","x":"{filler}"}}"#);
        other.publish(&format!("{commands}/press"), &command, false);
    }
    until(&mqtt, "counted", |s| s.flooded >= 50).await;
    // Who finds no room hears of it, and states have theirs.
    let pairings = "jadoube/v1/open/core/table/12";
    other.publish(pairings, "old", false);
    other.publish(pairings, "new", false);
    publish(&mqtt, event(1));
    until_sent(&mqtt).await;
    let replies = "jadoube/v1/open/reply/ui";
    let is_busy = |message: &Read| message.topic == replies && message.text.contains("busy");
    other.until("answers", |all| all.iter().any(is_busy)).await;
    // One a second, however many were refused.
    let told = other.all().iter().filter(|read| is_busy(read)).count();
    let most = began.elapsed().as_secs() as usize + 1;
    assert!(told <= most, "{told} in {:?}", began.elapsed());
    let mut count = 0;
    let pairing = loop {
        let next = tokio::time::timeout(PATIENCE, incoming.recv()).await;
        let next = next.expect("in time").expect("open");
        match mqtt.below(&next.topic) {
            Some("core/table/12") => break next,
            _ => count += 1,
        }
    };
    assert!(count >= 100, "{count}");
    // Both may have come before this one was fetched, or one after the other.
    if pairing.payload == b"old" {
        let next = tokio::time::timeout(PATIENCE, incoming.recv()).await;
        assert_eq!(next.expect("in time").expect("open").payload, b"new");
    } else {
        assert_eq!(pairing.payload, b"new");
    }
}

fn answer(mqtt: &Mqtt, id: usize) {
    let reply = Reply {
        id: id.to_string(),
        ok: true,
        error: None,
        note: None,
    };
    let topic = "jadoube/v1/open/reply/ui".to_owned();
    mqtt.send(orders::answer(topic, &reply))
        .expect("there is room");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_goes_before_the_answers() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let reader = Reader::subscribe(broker.port, "jadoube/v1/open/#").await;
    let Connection { mqtt, .. } = start(broker.port);
    until_connected(&mqtt).await;
    until_sent(&mqtt).await;
    broker.freeze();
    for id in 0..300 {
        answer(&mqtt, id);
    }
    for number in 0..10 {
        publish(&mqtt, event(number));
    }
    publish(&mqtt, game("\"after 9\""));
    publish(&mqtt, alert("a1", Body::Text("\"look\"".to_owned())));
    broker.thaw();
    until_sent(&mqtt).await;
    let is_answer = |read: &Read| read.topic.contains("/reply/");
    reader
        .until("all", |all| {
            all.iter().filter(|read| is_answer(read)).count() == 300
        })
        .await;
    let all = reader.all();
    let last = all
        .iter()
        .rposition(|read| read.topic.contains("/board/12/"));
    let before = all[..last.expect("they came")].iter();
    // No more than the one that was under way, if one was by then.
    assert!(before.filter(|read| is_answer(read)).count() <= 1);
    assert_eq!(numbers(&reader), (0..10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_survive_a_flood_and_a_value_without_room_is_said_again() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let reader = Reader::subscribe(broker.port, &format!("{EDGE}/#")).await;
    let limits = Limits {
        entries: 12,
        ..Limits::default()
    };
    let Connection { mqtt, .. } =
        connect(settings(broker.port), MemoryOutbox::new(limits)).expect("the settings are right");
    until_connected(&mqtt).await;
    until_sent(&mqtt).await;
    broker.freeze();
    let position = |text: &str| Publication {
        topic: Topic::Position {
            table: "12".to_owned(),
        },
        body: Body::Text(format!("\"{text}\"")),
    };
    publish(&mqtt, event(0));
    publish(&mqtt, position("newest"));
    for id in 0..5 {
        answer(&mqtt, id);
    }
    for number in 1..12 {
        publish(&mqtt, event(number));
    }
    let status = mqtt.status().borrow().clone();
    assert_eq!(
        (status.queued, status.dropped),
        (12, 6),
        "5 answers and the position"
    );
    broker.thaw();
    let topic = format!("{EDGE}/board/12/position");
    reader
        .until("the position", |all| last_contains(all, &topic, "newest"))
        .await;
    assert_eq!(numbers(&reader), (0..12).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_many_answers_wait_no_more_are_asked_for() {
    let (listener, port) = listen().await;
    let command = |payload: &str| {
        let topic = "jadoube/v1/open/cmd/pi07/press";
        let length = 2 + topic.len() + 1 + payload.len();
        assert!(length < 128);
        let mut packet = vec![0x30, length as u8, 0, topic.len() as u8];
        packet.extend(topic.bytes().chain([0]).chain(payload.bytes()));
        packet
    };
    // Greets and acknowledges nothing; when told, it hands on three commands, of which one asks for no answer.
    let (go, told) = tokio::sync::oneshot::channel::<()>();
    let stub = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("it comes");
        let mut buffer = [0; 4096];
        let _ = socket.read(&mut buffer).await;
        let _ = socket.write_all(&[0x20, 3, 0, 0, 0]).await;
        let _ = told.await;
        for payload in [r#"{"id":"1"}"#, r#"{"id":"2"}"#, "{}"] {
            let _ = socket.write_all(&command(payload)).await;
        }
        while let Ok(1..) = socket.read(&mut buffer).await {}
    });
    let Connection {
        mqtt, mut incoming, ..
    } = start(port);
    until_connected(&mqtt).await;
    for id in 0..500 {
        answer(&mqtt, id);
    }
    go.send(()).expect("the stub waits");
    let status = until(&mqtt, "refused", |s| s.flooded == 2).await;
    assert_eq!(status.queued, 501, "one says busy for both");
    let next = tokio::time::timeout(PATIENCE, incoming.recv()).await;
    assert_eq!(next.expect("in time").expect("open").payload, b"{}");
    stub.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_leave_under_our_topics_is_put_right() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let Connection { mqtt, .. } = start(broker.port);
    let ours = |at: u32| Publication {
        topic: Topic::Alert {
            table: "12".to_owned(),
            audience: Audience::Arbiter,
            id: "a1".to_owned(),
        },
        body: Body::Text(format!(r#"{{"at":{at}}}"#)),
    };
    publish(&mqtt, ours(1));
    mqtt.sweep_alerts();
    until_sent(&mqtt).await;
    let other = Reader::subscribe(broker.port, "jadoube/v1/open/#").await;
    let alert = |id: &str| format!("{EDGE}/board/12/alert/arbiter/{id}");
    let last = |all: &[Read], topic: &str| {
        let of = all.iter().rev().find(|message| message.topic == topic);
        of.map(|message| message.text.clone())
    };
    other.publish(&alert("forged"), "lies", true);
    other
        .until("emptied", |all| {
            last(all, &alert("forged")).as_deref() == Some("")
        })
        .await;
    other.publish(&alert("a1"), "lies", true);
    let put_right = |all: &[Read]| last(all, &alert("a1")).as_deref() == Some(r#"{"at":1}"#);
    let forged = |all: &[Read]| all.iter().any(|message| message.text == "lies");
    other
        .until("restored", |all| forged(all) && put_right(all))
        .await;
    let status = format!("{EDGE}/status");
    other.publish(&status, r#"{"v":1,"status":"offline","boot":"x"}"#, true);
    other
        .until("online", |all| {
            let offline = |message: &Read| message.text.contains("offline");
            all.iter().any(offline)
                && last(all, &status).is_some_and(|text| text.contains("online"))
        })
        .await;
    // What we change ourselves is left alone.
    publish(&mqtt, ours(2));
    until_sent(&mqtt).await;
    other
        .until("changed", |all| {
            last(all, &alert("a1")).as_deref() == Some(r#"{"at":2}"#)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_retained_topic_is_put_right_after_somebody_wrote_or_emptied_it() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let Connection { mqtt, .. } = start(broker.port);
    let of = || "12".to_owned();
    let topics = [
        Topic::Info,
        Topic::BoardStatus { table: of() },
        Topic::Position { table: of() },
        Topic::Clock { table: of() },
        Topic::Game { table: of() },
        Topic::Pgn { table: of() },
    ];
    let paths = topics
        .each_ref()
        .map(|topic| format!("jadoube/v1/open/{}", topic.path("pi07")));
    for topic in &topics {
        let body = Body::Text("ours".to_owned());
        let topic = topic.clone();
        publish(&mqtt, Publication { topic, body });
    }
    until_sent(&mqtt).await;
    let other = Reader::subscribe(broker.port, "jadoube/v1/open/#").await;
    for lie in ["lies", ""] {
        for path in &paths {
            other.publish(path, lie, true);
        }
        let is_right = |all: &Vec<Read>| {
            paths.iter().all(|path| {
                let mut texts = all.iter().filter(|read| read.topic == *path);
                let told = texts.clone().any(|read| read.text == lie);
                told && texts.next_back().is_some_and(|read| read.text == "ours")
            })
        };
        other.until("all put right", is_right).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_daemon_is_not_answered_and_what_it_leaves_is_put_right() {
    let Some(broker) = Mosquitto::start() else {
        return;
    };
    let start = |id: &str| {
        start_with(Settings {
            client_id: Some(id.to_owned()),
            boot: id.to_owned(),
            ..settings(broker.port)
        })
    };
    let ours = start("ours");
    publish(&ours.mqtt, game("\"ours\""));
    until_sent(&ours.mqtt).await;
    let reader = Reader::subscribe(broker.port, &format!("{EDGE}/#")).await;
    let record = format!("{EDGE}/board/12/game");
    let twin = start("twin");
    until(&ours.mqtt, "the twin", |status| status.has_twin).await;
    for number in 0..5 {
        publish(&twin.mqtt, game(&format!("\"twin {number}\"")));
        until_sent(&twin.mqtt).await;
    }
    reader
        .until("the twin's", |all| last_contains(all, &record, "twin 4"))
        .await;
    twin.mqtt.shutdown(Duration::from_secs(5)).await;
    reader
        .until("what stands when it has gone", |all| {
            last_contains(all, &record, "ours")
                && last_contains(all, &format!("{EDGE}/status"), "online")
        })
        .await;
    let texts = reader.texts(&record);
    let answers = texts.iter().filter(|text| text.contains("ours")).count();
    assert_eq!(answers, 2, "the retained one, and the last: {texts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_daemon_as_the_same_node_is_found_out() {
    let Some(mut broker) = Mosquitto::start() else {
        return;
    };
    // On one machine the two have one client id, and the broker ends the older connection.
    for ids in [["same", "same"], ["one", "another"]] {
        let twins = ids.map(|id| {
            start_with(Settings {
                client_id: Some(id.to_owned()),
                boot: format!("boot-{}", fastrand::u32(..)),
                ..settings(broker.port)
            })
        });
        let found = async {
            let mut status = twins.each_ref().map(|twin| twin.mqtt.status());
            let [a, b] = &mut status;
            tokio::select! {
                _ = a.wait_for(|status| status.has_twin) => {}
                _ = b.wait_for(|status| status.has_twin) => {}
            }
        };
        tokio::time::timeout(PATIENCE, found)
            .await
            .unwrap_or_else(|_| panic!("not found out: {ids:?}"));
        for twin in twins {
            twin.mqtt.shutdown(Duration::from_secs(1)).await;
        }
    }
    // One alone that comes back is none.
    let alone = start_with(Settings {
        boot: "alone".to_owned(),
        ..settings(broker.port)
    });
    until_connected(&alone.mqtt).await;
    publish(&alone.mqtt, event(1));
    until_sent(&alone.mqtt).await;
    broker.kill();
    until(&alone.mqtt, "lost", |s| s.link != Link::Connected).await;
    broker.restart();
    until_connected(&alone.mqtt).await;
    publish(&alone.mqtt, event(2));
    assert!(!until(&alone.mqtt, "sent", |s| s.queued == 0).await.has_twin);
}

#[test]
fn settings_that_cannot_work_say_what_to_do() {
    let check = |change: fn(&mut Settings)| {
        let mut settings = settings(1883);
        change(&mut settings);
        let refused = connect(settings, MemoryOutbox::default()).err();
        refused.map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(check(|s| s.version = 4).contains("version = 5"));
    assert!(check(|s| s.window = 17).contains("1 to 16"));
    assert!(check(|s| s.keep_alive = Duration::from_secs(1)).contains("5 to 60"));
    assert!(check(|s| s.node = "a+b".to_owned()).contains("a+b"));
    assert!(check(|s| s.host.clear()).contains("mqtt://"));
}
