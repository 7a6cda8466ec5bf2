//! Three games as real boards sent them, through the whole pipeline: the record, the clock times and the alerts must be what the
//! players did, however the bytes are cut and whatever the timing between two ticks of the clock was.
//!
//! The recordings are other people's and stay in the corpus, `$JADOUBE_CORPUS` or `../shared`; without it nothing is tested.
//! They carry no times: one message after another, and while the clock runs it sends one each second.

#[allow(dead_code)]
#[path = "support/games.rs"]
mod games;
#[path = "support/outline.rs"]
mod outline;

use std::fs;
use std::path::PathBuf;

use jadoube::Millis;
use jadoube::game::MoveState;
use jadoube::publish::{self, AlertKind, Body, Orientation, Payload, Severity, Topic};
use jadoube::replay::{self, Replayed, Summary};
use jadoube::session::Settings;
use jadoube::trace::{Event, Header, Line, Trace};
use jadoube::wire::dgt::{BwTime, ClockMessage, Decoder, Item, Message, PieceCode, RawSquare};
use shakmaty::san::SanPlus;
use shakmaty::{CastlingMode, Chess, Position as _};

#[test]
fn the_games_are_what_was_played() {
    each(|recording| {
        for timing in Timing::ALL {
            let trace = recording.trace(timing);
            recording.check(&format!("{timing:?}"), &trace);
        }
    });
}

/// Chunks on a cable end anywhere, also in the middle of a message.
#[test]
fn chunks_end_anywhere() {
    each(|recording| {
        let whole = recording.trace(Timing::Ticks);
        for seed in 0..2 {
            let mut chance = fastrand::Rng::with_seed(seed);
            let cut = cut_anew(&whole, &mut chance);
            recording.check(&format!("cut anew, seed {seed}"), &cut);
        }
        let mut single = whole.clone();
        single.lines = whole
            .lines
            .iter()
            .flat_map(|line| {
                let Event::FromBoard(bytes) = &line.event else {
                    return vec![line.clone()];
                };
                bytes
                    .iter()
                    .map(|byte| Line {
                        event: Event::FromBoard(vec![*byte]),
                        ..line.clone()
                    })
                    .collect()
            })
            .collect();
        recording.check("byte by byte", &single);
    });
}

/// The same game on a board that stands the other way round; its clock stands where it stood, so the wings change too.
#[test]
fn the_board_turned_round() {
    each(|recording| {
        let turned = recording.turned();
        for timing in [Timing::Ticks, Timing::AtOnce] {
            let trace = turned.trace(timing);
            turned.check(&format!("turned, {timing:?}"), &trace);
        }
    });
}

/// The same game with the colours exchanged, so that Black moves first.
#[test]
fn the_colours_exchanged() {
    each(|recording| {
        let mirrored = recording.mirrored();
        for timing in [Timing::Ticks, Timing::AtOnce] {
            let mut trace = mirrored.trace(timing);
            trace.header.fen =
                Some("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1".into());
            mirrored.check(&format!("mirrored, {timing:?}"), &trace);
        }
    });
}

/// The daemon restarts here and there: a session that is rebuilt from its record tells what the old one would have told.
#[test]
fn restarts_change_nothing() {
    each(|recording| {
        let whole = recording.trace(Timing::Ticks);
        let plain = recording.replay(&whole);
        for offset in [3, 59] {
            let mut trace = whole.clone();
            trace.lines = Vec::new();
            for (index, line) in whole.lines.iter().enumerate() {
                if index % 113 == offset {
                    trace.lines.push(Line {
                        event: Event::Restart,
                        ..line.clone()
                    });
                }
                trace.lines.push(line.clone());
            }
            let label = format!("restarts from line {offset} on");
            recording.check(&label, &trace);
            let restarted = recording.replay(&trace);
            let first = plain
                .publications
                .iter()
                .zip(&restarted.publications)
                .find(|(plain, restarted)| plain != restarted);
            if let Some((plain, restarted)) = first {
                panic!(
                    "{} {label}: {restarted:?}\nand without: {plain:?}",
                    recording.name
                );
            }
            assert_eq!(
                restarted.publications.len(),
                plain.publications.len(),
                "{} {label}",
                recording.name
            );
        }
    });
}

/// The same games from their occupied squares and presses alone. Where the board did not show what was played the record says so, from
/// the moment on at which it could not be told.
#[test]
fn from_their_occupied_squares() {
    for timing in Timing::ALL {
        let mut faults = Vec::new();
        let (mut right, mut all, mut doubts) = (0, 0, 0);
        each(|recording| {
            let trace = recording.outline(timing);
            let replayed = recording.replay(&trace);
            let name = recording.name;
            for (at, publication) in &replayed.publications {
                if let Body::Payload(Payload::Game(game)) = &publication.body
                    && let Some(fault) = unmarked(game, &recording.uci)
                {
                    faults.push(format!("{name} at {at}: {fault}"));
                }
            }
            let summary = replay::summarise(name, &replayed);
            for told in &summary.alerts {
                if told.alert.severity != Severity::Info {
                    faults.push(format!("{name} at {}: {}", told.raised_ms, told.alert.text));
                }
            }
            let record = summary
                .game
                .map_or_else(Vec::new, |game| game.moves.clone());
            let same = record.iter().zip(&recording.uci);
            let same = same.take_while(|(ply, played)| ply.uci == **played).count();
            if same < recording.uci.len() {
                faults.push(format!("{name}: {same} of {} plies", recording.uci.len()));
            }
            right += same;
            all += recording.uci.len();
            doubts += record.iter().filter(|ply| ply.doubt.is_some()).count();
        });
        println!("from occupied squares, {timing:?}: {right} of {all} plies, {doubts} in doubt");
        assert!(faults.is_empty(), "{timing:?}:\n{}", faults.join("\n"));
    }
}

/// A completed ply that is not what was played, and no doubt about it or before it.
fn unmarked(game: &publish::Game, played: &[String]) -> Option<String> {
    let wrong =
        (0..game.moves.len()).find(|index| played.get(*index) != Some(&game.moves[*index].uci))?;
    let marked = game.moves[..=wrong].iter().any(|ply| ply.doubt.is_some());
    let completed = game.moves[wrong].state == MoveState::Final;
    (completed && !marked).then(|| {
        let ply = &game.moves[wrong];
        format!(
            "ply {} is {} for {:?}, without doubt",
            ply.ply,
            ply.uci,
            played.get(wrong)
        )
    })
}

/// Virtual time between messages that carry none.
#[derive(Debug, Clone, Copy)]
enum Timing {
    /// Each message of the clock a second after the last, the squares 100 ms apart after it.
    Ticks,
    /// The squares 30 ms apart.
    Quick,
    /// The squares spread over the second.
    Spread,
    /// The squares 30 ms apart, just before the next message of the clock.
    Late,
    /// All that happened in a second together, in one chunk.
    AtOnce,
}

impl Timing {
    const ALL: [Timing; 5] = [
        Timing::Ticks,
        Timing::Quick,
        Timing::Spread,
        Timing::Late,
        Timing::AtOnce,
    ];

    /// The time of a message after the last of the clock, it being the `index`th of `count` until the next.
    fn after(self, index: u64, count: u64) -> Millis {
        let step = 900 / count.max(9);
        match self {
            Timing::Ticks => (index + 1) * step,
            Timing::Quick => (index + 1) * step.min(30),
            Timing::Spread => (index + 1) * 1_000 / (count + 1),
            Timing::Late => 990 - (count - 1 - index) * step.min(30),
            Timing::AtOnce => 500,
        }
    }
}

struct Recording {
    name: &'static str,
    messages: Vec<Message>,
    /// The moves as they were played.
    uci: Vec<String>,
    orientation: Orientation,
    result: &'static str,
    /// Whether a flag falls.
    flag: bool,
}

impl Recording {
    fn trace(&self, timing: Timing) -> Trace {
        let mut lines = Vec::new();
        let mut now = 0;
        let mut push = |at: Millis, bytes: Vec<u8>| {
            let number = lines.len() + 1;
            lines.push(Line {
                at_ms: at,
                number,
                event: Event::FromBoard(bytes),
            });
        };
        let mut rest = self.messages.as_slice();
        while let Some((first, after)) = rest.split_first() {
            push(now, first.encode());
            let count = after
                .iter()
                .position(|message| matches!(message, Message::Clock(_)))
                .unwrap_or(after.len());
            let (squares, next) = after.split_at(count);
            if let Timing::AtOnce = timing {
                let chunk: Vec<u8> = squares.iter().flat_map(Message::encode).collect();
                if !chunk.is_empty() {
                    push(now + timing.after(0, 1), chunk);
                }
            } else {
                for (index, message) in squares.iter().enumerate() {
                    push(
                        now + timing.after(index as u64, count as u64),
                        message.encode(),
                    );
                }
            }
            now += 1_000;
            rest = next;
        }
        Trace {
            header: Header::default(),
            lines,
        }
    }

    /// What a presence board would have told of it.
    fn outline(&self, timing: Timing) -> Trace {
        let messages = self.trace(timing).lines.into_iter();
        let messages = messages.filter_map(|line| match line.event {
            Event::FromBoard(bytes) => Some((line.at_ms, bytes)),
            _ => None,
        });
        outline::outline(&games::Recording {
            name: self.name,
            messages: messages.collect(),
            moves: self.uci.clone(),
        })
    }

    fn replay(&self, trace: &Trace) -> Replayed {
        let settings = replay::settings(trace, Settings::new("1")).expect("a head that is read");
        replay::replay(trace, settings)
    }

    fn check(&self, label: &str, trace: &Trace) {
        let replayed = self.replay(trace);
        let summary = replay::summarise(self.name, &replayed);
        let faults = self.faults(&summary, &replayed);
        assert!(
            faults.is_empty(),
            "{} {label}:\n{}",
            self.name,
            faults.join("\n")
        );
    }

    /// What is not as it was.
    fn faults(&self, summary: &Summary, replayed: &Replayed) -> Vec<String> {
        let mut faults = Vec::new();
        let Some(game) = &summary.game else {
            return vec!["no game".into()];
        };
        if summary.games.len() != 1 {
            faults.push(format!("{} games", summary.games.len()));
        }
        if summary.skipped_bytes != 0 {
            faults.push(format!("{} bytes skipped", summary.skipped_bytes));
        }
        let read: Vec<&str> = game.moves.iter().map(|ply| ply.uci.as_str()).collect();
        if read != self.uci {
            let same = read
                .iter()
                .zip(&self.uci)
                .take_while(|(read, played)| read == played)
                .count();
            faults.push(format!(
                "{} plies, not {}; from ply {} {:?}, not {:?}",
                read.len(),
                self.uci.len(),
                same + 1,
                &read[same..read.len().min(same + 4)],
                &self.uci[same..self.uci.len().min(same + 4)]
            ));
        }
        for ply in &game.moves {
            if ply.doubt.is_some() {
                faults.push(format!("ply {} has doubt {:?}", ply.ply, ply.doubt));
            }
        }
        let shown: Vec<Option<u64>> = game.moves.iter().map(|ply| ply.clk_ms).collect();
        let expected = self.clock_times();
        for (index, (shown, expected)) in shown.iter().zip(&expected).enumerate() {
            if *shown != Some(*expected) {
                faults.push(format!("ply {} clk {shown:?}, not {expected}", index + 1));
            }
        }
        if game.result != self.result {
            faults.push(format!("result {}, not {}", game.result, self.result));
        }
        if self.orientation_told(replayed) != Some(self.orientation) {
            faults.push("the board is taken the other way round".into());
        }
        let mut flags = 0;
        for told in &summary.alerts {
            if told.alert.kind == AlertKind::Flag {
                flags += 1;
            } else if told.alert.severity != Severity::Info {
                faults.push(format!("at {}: {}", told.raised_ms, told.alert.text));
            }
        }
        if flags != u32::from(self.flag) {
            faults.push(format!("{flags} flags"));
        }
        faults
    }

    /// What the mover's clock showed at each press, from the bytes alone: the first message in which the lever has changed.
    fn clock_times(&self) -> Vec<u64> {
        let mut times = Vec::new();
        let mut last: Option<BwTime> = None;
        for message in &self.messages {
            let Message::Clock(ClockMessage::Times(shown)) = message else {
                continue;
            };
            if last.is_some_and(|last| last.running && last.right_up != shown.right_up) {
                let mover = if shown.right_up {
                    shown.left
                } else {
                    shown.right
                };
                times.push(mover.millis());
            }
            last = Some(*shown);
        }
        times
    }

    /// What the board's status said last.
    fn orientation_told(&self, replayed: &Replayed) -> Option<Orientation> {
        let status = replayed
            .publications
            .iter()
            .rev()
            .find(|(_, publication)| matches!(publication.topic, Topic::BoardStatus { .. }))?;
        let Body::Payload(Payload::BoardStatus(status)) = &status.1.body else {
            return None;
        };
        status.orientation
    }

    fn turned(&self) -> Recording {
        Recording {
            orientation: match self.orientation {
                Orientation::Normal => Orientation::Rotated,
                Orientation::Rotated => Orientation::Normal,
            },
            messages: self.changed(|square| 63 - square, |piece| piece),
            uci: self.uci.clone(),
            ..*self
        }
    }

    fn mirrored(&self) -> Recording {
        let other_colour = |letter: char| match letter.is_ascii_lowercase() {
            true => letter.to_ascii_uppercase(),
            false => letter.to_ascii_lowercase(),
        };
        let piece = |piece: PieceCode| match piece.letter() {
            Some(letter) => PieceCode::from_letter(other_colour(letter)).expect("still a man"),
            None => piece,
        };
        let rank = |c: char| match c.to_digit(10) {
            Some(rank) => char::from_digit(9 - rank, 10).expect("1 to 8"),
            None => c,
        };
        Recording {
            messages: self.changed(|square| square ^ 56, piece),
            uci: self
                .uci
                .iter()
                .map(|uci| uci.chars().map(rank).collect())
                .collect(),
            result: match self.result {
                "1-0" => "0-1",
                other => other,
            },
            ..*self
        }
    }

    /// The same messages with other squares and men, and the clock's wings exchanged.
    fn changed(
        &self,
        square: impl Fn(u8) -> u8,
        piece: impl Fn(PieceCode) -> PieceCode,
    ) -> Vec<Message> {
        let place = |raw: RawSquare| RawSquare::new(square(raw.index())).expect("still a square");
        self.messages
            .iter()
            .map(|message| match message {
                Message::FieldUpdate {
                    square,
                    piece: code,
                } => Message::FieldUpdate {
                    square: place(*square),
                    piece: piece(*code),
                },
                Message::BoardDump(codes) => {
                    let mut changed = codes.clone();
                    for raw in RawSquare::all() {
                        changed[usize::from(place(raw).index())] =
                            piece(codes[usize::from(raw.index())]);
                    }
                    Message::BoardDump(changed)
                }
                Message::Clock(ClockMessage::Times(times)) => {
                    Message::Clock(ClockMessage::Times(BwTime {
                        left: times.right,
                        right: times.left,
                        right_up: !times.right_up,
                        ..*times
                    }))
                }
                other => other.clone(),
            })
            .collect()
    }
}

fn each(mut test: impl FnMut(&Recording)) {
    let folder = corpus().join("captures/dgt-serial");
    if !folder.is_dir() {
        println!("skipped: no corpus");
        return;
    }
    let read = |file: &str| fs::read(folder.join(file)).expect("a file of the corpus");
    let text = |file: &str| String::from_utf8(read(file)).expect("text");
    let games = [
        ("1", uci(&text("1.uci")), Orientation::Normal, "*", false),
        ("2", uci(&text("2.uci")), Orientation::Rotated, "*", false),
        (
            "johan",
            san(&text("johan.pgn")),
            Orientation::Normal,
            "1-0",
            true,
        ),
    ];
    let plies = [57, 99, 43];
    for ((name, uci, orientation, result, flag), plies) in games.into_iter().zip(plies) {
        assert_eq!(uci.len(), plies, "{name}");
        test(&Recording {
            name,
            messages: messages(&read(&format!("{name}.bin"))),
            uci,
            orientation,
            result,
            flag,
        });
    }
}

fn corpus() -> PathBuf {
    std::env::var_os("JADOUBE_CORPUS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    )
}

fn messages(bytes: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut decoder = Decoder::default();
    decoder.push(bytes, |item| match item {
        Item::Message(message) => messages.push(message),
        Item::Skipped(skipped) => panic!("{skipped:?} in a recording"),
    });
    messages
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.starts_with('['))
        .flat_map(str::split_whitespace)
        .filter(|word| !word.ends_with('.') && !["*", "1-0", "0-1", "1/2-1/2"].contains(word))
}

fn uci(text: &str) -> Vec<String> {
    words(text).map(str::to_owned).collect()
}

fn san(text: &str) -> Vec<String> {
    let mut position = Chess::default();
    words(text)
        .map(|word| {
            let san: SanPlus = word.parse().expect("SAN");
            let played = san.san.to_move(&position).expect("a legal move");
            position.play_unchecked(played);
            played.to_uci(CastlingMode::Standard).to_string()
        })
        .collect()
}

/// The same bytes in other chunks; each chunk comes when its last byte does.
fn cut_anew(trace: &Trace, chance: &mut fastrand::Rng) -> Trace {
    let mut cut = Trace {
        header: trace.header.clone(),
        lines: Vec::new(),
    };
    let mut pending = Vec::new();
    for line in &trace.lines {
        let Event::FromBoard(bytes) = &line.event else {
            continue;
        };
        pending.extend_from_slice(bytes);
        // Most chunks end with a message, some in the middle of one, and some hold several.
        let keep = match chance.u8(..4) {
            0 => chance.usize(..pending.len().min(6)),
            _ => 0,
        };
        let rest = pending.split_off(pending.len() - keep);
        let chunk = std::mem::replace(&mut pending, rest);
        if !chunk.is_empty() {
            cut.lines.push(Line {
                event: Event::FromBoard(chunk),
                ..line.clone()
            });
        }
    }
    if let Some(last) = trace.lines.last()
        && !pending.is_empty()
    {
        cut.lines.push(Line {
            event: Event::FromBoard(pending),
            ..last.clone()
        });
    }
    cut
}
