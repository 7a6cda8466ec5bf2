//! Every trace once more with the sides exchanged, and at another pace: what White's men do there, Black's do here, and neither what
//! is recorded nor what is told knows the difference.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use jadoube::laws::position::Position;
use jadoube::publish::Game;
use jadoube::replay;
use jadoube::session::Settings;
use jadoube::trace::{Event, Trace};
use jadoube::wire::Family;
use jadoube::wire::dgt::{Decoder, Item, Message, PieceCode, RawSquare};
use serde_json::Value;

#[test]
fn traces_with_the_sides_exchanged() {
    let mut failures = Vec::new();
    let mut tried = 0;
    for (name, trace) in traces() {
        if !has_one_game(&trace) || WHITE_BEGINS.contains(&name.as_str()) {
            continue;
        }
        let Some(mirrored) = mirrored(&trace) else {
            continue;
        };
        tried += 1;
        let (expected, found) = (Outcome::of(&trace).mirrored(), Outcome::of(&mirrored));
        if let Some(why) = expected.difference(&found) {
            failures.push(format!("{name}: {why}\n{}", shown(&mirrored)));
        }
    }
    println!("{tried} traces with the sides exchanged");
    assert!(tried > 90, "{tried}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Hands and clocks are no metronomes: a tenth more or less of every pause changes nothing.
#[test]
fn traces_at_another_pace() {
    let mut failures = Vec::new();
    let mut tried = 0;
    for (name, trace) in traces() {
        if AT_A_LIMIT.contains(&name.as_str()) {
            continue;
        }
        let expected = Outcome::of(&trace);
        for percent in [90, 110] {
            let mut paced = trace.clone();
            for line in &mut paced.lines {
                line.at_ms = line.at_ms * percent / 100;
            }
            tried += 1;
            if let Some(why) = expected.difference(&Outcome::of(&paced)) {
                failures.push(format!("{name} at {percent} %: {why}"));
            }
        }
    }
    println!("{tried} traces at another pace");
    assert!(tried > 200, "{tried}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// In these a second game begins from the array: with White to move, whoever has the other men.
const WHITE_BEGINS: &[&str] = &["unarmed-second-game"];

/// In these something lasts just longer than a named time, here the minute after which it is told that a clock stands.
const AT_A_LIMIT: &[&str] = &["clock-stopped-dismissed"];

/// What came of a trace: games and alerts, without their times.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    games: Vec<Vec<(String, String)>>,
    /// Phase, result, and whether the board agrees.
    ends: Vec<(String, String, bool)>,
    alerts: BTreeMap<String, usize>,
}

impl Outcome {
    fn of(trace: &Trace) -> Outcome {
        let settings = replay::settings(trace, Settings::new("1")).expect("a board");
        let summary = replay::summarise("", &replay::replay(trace, settings));
        let word = |value: Value| value.as_str().unwrap_or("-").to_owned();
        let plies = |game: &Game| {
            let ply = |ply: &jadoube::game::snapshot::Move| {
                let doubt = serde_json::to_value(ply.doubt).expect("plain data");
                (ply.uci.clone(), word(doubt))
            };
            game.moves.iter().map(ply).collect()
        };
        let end = |game: &Game| {
            let phase = serde_json::to_value(game.phase).expect("plain data");
            (word(phase), game.result.to_string(), game.in_sync)
        };
        let mut alerts = BTreeMap::new();
        for told in &summary.alerts {
            let alert = serde_json::to_value(&told.alert).expect("plain data");
            let mut squares = told.alert.squares.clone();
            squares.sort_unstable();
            let words =
                ["kind", "audience", "severity", "side"].map(|key| word(alert[key].clone()));
            let open = if told.closed_ms.is_none() {
                "open"
            } else {
                "closed"
            };
            let line = format!("{} {} {open}", words.join(" "), squares.join(","));
            *alerts.entry(line).or_default() += 1;
        }
        Outcome {
            games: summary.games.iter().map(plies).collect(),
            ends: summary.games.iter().map(end).collect(),
            alerts,
        }
    }

    fn mirrored(&self) -> Outcome {
        let plies = |game: &Vec<(String, String)>| {
            let ply = |(uci, doubt): &(String, String)| (other_rank(uci), doubt.clone());
            game.iter().map(ply).collect()
        };
        let end = |(phase, result, in_sync): &(String, String, bool)| {
            (phase.clone(), other_result(result), *in_sync)
        };
        let alert = |(line, count): (&String, &usize)| {
            let words: Vec<String> = line
                .split(' ')
                .map(|word| match word {
                    "white" => "black".to_owned(),
                    "black" => "white".to_owned(),
                    squares if squares.len() < 3 || squares.contains(',') => {
                        let mut squares: Vec<String> = squares.split(',').map(other_rank).collect();
                        squares.sort_unstable();
                        squares.join(",")
                    }
                    other => other.to_owned(),
                })
                .collect();
            (words.join(" "), *count)
        };
        Outcome {
            games: self.games.iter().map(plies).collect(),
            ends: self.ends.iter().map(end).collect(),
            alerts: self.alerts.iter().map(alert).collect(),
        }
    }

    fn difference(&self, found: &Outcome) -> Option<String> {
        let mut text = String::new();
        if self.games != found.games {
            let _ = write!(text, "\n  {:?}\n  not {:?}", found.games, self.games);
        }
        if self.ends != found.ends {
            let _ = write!(text, "\n  {:?}\n  not {:?}", found.ends, self.ends);
        }
        if self.alerts != found.alerts {
            let _ = write!(text, "\n  {:?}\n  not {:?}", found.alerts, self.alerts);
        }
        (!text.is_empty()).then_some(text)
    }
}

/// The trace with White's men for Black's, rank for rank; none where it holds what has no counterpart.
fn mirrored(trace: &Trace) -> Option<Trace> {
    let mut header = trace.header.clone();
    if header.board != Family::Dgt {
        return None;
    }
    let start = Position::start(header.fen.as_deref(), header.chess960).ok()?;
    header.fen = Some(other_fen(header.fen.as_deref().unwrap_or(&start.fen()))?);
    let mut lines = Vec::new();
    let mut decoder = Decoder::default();
    for line in &trace.lines {
        let mut line = line.clone();
        match &mut line.event {
            Event::FromBoard(bytes) => {
                let mut others = Vec::new();
                let mut is_whole = true;
                decoder.push(bytes, |item| match item {
                    Item::Message(message) => others.extend(other_message(&message)),
                    Item::Skipped(_) => is_whole = false,
                });
                if !is_whole {
                    // Where bytes were lost the same ones cannot be lost on the other side.
                    return None;
                }
                if others.is_empty() {
                    continue;
                }
                *bytes = others;
            }
            Event::Command(text) => *text = other_command(text)?,
            Event::ToBoard(_) | Event::Unplugged(_) | Event::Opened(_) | Event::Restart => {}
        }
        lines.push(line);
    }
    Some(Trace { header, lines })
}

fn other_message(message: &Message) -> Vec<u8> {
    let mut bytes = match message {
        Message::BoardDump(codes) => {
            let mut others = [PieceCode::Empty; 64];
            for (index, code) in codes.iter().enumerate() {
                others[index ^ 56] = other_code(*code);
            }
            Message::BoardDump(Box::new(others)).encode()
        }
        Message::FieldUpdate { square, piece } => Message::FieldUpdate {
            square: RawSquare::new(square.index() ^ 56).expect("a square"),
            piece: other_code(*piece),
        }
        .encode(),
        other => other.encode(),
    };
    if let (Message::Clock(_), [_, _, _, times @ .., status]) = (message, bytes.as_mut_slice()) {
        // An acknowledgement has 0xa in its fourth or seventh byte (protocol sheet 3.6), and no sides.
        let is_ack = times[0] & 0x0f == 0x0a || times[3] & 0x0f == 0x0a;
        if !is_ack {
            times.rotate_left(3);
            // One of the two wings is up: bit 4 with bit 1, or bit 3.
            *status = match *status & 0x1a {
                0x08 => *status ^ 0x1a,
                0x12 => *status ^ 0x1a,
                _ => *status,
            };
        }
    }
    bytes
}

fn other_code(code: PieceCode) -> PieceCode {
    match code {
        PieceCode::WhiteWins => PieceCode::BlackWins,
        PieceCode::BlackWins => PieceCode::WhiteWins,
        PieceCode::Empty | PieceCode::Draw => code,
        man => PieceCode::ALL
            .into_iter()
            .find(|other| (*other as u8) == (man as u8 + 5) % 12 + 1)
            .expect("a man of the other colour"),
    }
}

fn other_fen(fen: &str) -> Option<String> {
    let fields: Vec<&str> = fen.split(' ').collect();
    let [placement, turn, rights, ep, rest @ ..] = fields.as_slice() else {
        return None;
    };
    let case = |text: &str| -> String {
        let swap = |c: char| match c.is_ascii_uppercase() {
            true => c.to_ascii_lowercase(),
            false => c.to_ascii_uppercase(),
        };
        text.chars().map(swap).collect()
    };
    let ranks: Vec<String> = placement.split('/').rev().map(case).collect();
    let turn = if *turn == "w" { "b" } else { "w" };
    let ep = other_rank(ep);
    Some(format!(
        "{} {turn} {} {ep} {}",
        ranks.join("/"),
        case(rights),
        rest.join(" ")
    ))
}

/// A command with the sides exchanged; none where it says more than that.
fn other_command(text: &str) -> Option<String> {
    let mut command: Value = serde_json::from_str(text).ok()?;
    const VERBS: [&str; 9] = [
        "press",
        "accept_position",
        "accept_illegal",
        "resolve",
        "result",
        "takeback",
        "play",
        "ack",
        "dismiss",
    ];
    let verb = command["verb"].as_str()?;
    if !VERBS.contains(&verb) {
        return None;
    }
    for (key, value) in command.get_mut("args").and_then(Value::as_object_mut)? {
        let Some(text) = value.as_str() else {
            if key.ends_with("_ms") {
                return None;
            }
            continue;
        };
        let changed = match key.as_str() {
            "side" | "turn" if text == "white" => "black".to_owned(),
            "side" | "turn" => "white".to_owned(),
            "result" => other_result(text),
            "uci" | "move" | "line" => other_rank(text),
            _ => text.to_owned(),
        };
        *value = Value::String(changed);
    }
    Some(command.to_string())
}

fn other_result(result: &str) -> String {
    match result {
        "1-0" => "0-1",
        "0-1" => "1-0",
        other => other,
    }
    .to_owned()
}

/// Squares, moves in UCI and in SAN, seen from the other side.
fn other_rank(text: impl AsRef<str>) -> String {
    let other = |c: char| match c {
        '1'..='8' => char::from(b'1' + b'8' - c as u8),
        other => other,
    };
    text.as_ref().chars().map(other).collect()
}

fn has_one_game(trace: &Trace) -> bool {
    let settings = replay::settings(trace, Settings::new("1")).expect("a board");
    replay::summarise("", &replay::replay(trace, settings))
        .games
        .len()
        == 1
}

/// The trace in its own words, for whoever looks into a failure.
fn shown(trace: &Trace) -> String {
    if std::env::var_os("JADOUBE_SHOW").is_none() {
        return String::new();
    }
    let mut text = trace.header.to_string();
    for line in &trace.lines {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn traces() -> Vec<(String, Trace)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let mut found: Vec<(String, Trace)> = fs::read_dir(folder)
        .expect("the folder of the traces")
        .map(|entry| entry.expect("an entry of it").path())
        .filter(|path| path.extension().is_some_and(|found| found == "trace"))
        .map(|path| {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let trace = Trace::from_bytes(&fs::read(&path).expect("a trace")).expect("a trace");
            (name, trace)
        })
        .collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}
