//! How much of what hands did is read rightly: whole games played by virtual hands on a virtual board, whose line may lose what it
//! carries, read live by a session that asks the board back.
//!
//! `cargo bench --bench truth` prints the table; `cargo bench --bench truth -- KIND NUMBER` writes that game's trace to stdout.
//! `JADOUBE_GAMES=N` plays N games of each kind instead of the usual number.

#[allow(dead_code)]
#[path = "../tests/support/games.rs"]
mod games;

use jadoube::Millis;
use jadoube::board::driver::Watch;
use jadoube::publish::{AlertBody, Body, EventKind, Payload, Phase, Severity};
use jadoube::session::{Session, Settings};
use jadoube::sim::hands::{Hands, Level};
use jadoube::sim::line::{self, Line};
use jadoube::sim::pgn::SimGame;
use jadoube::sim::player::{Player, TableOptions};
use jadoube::sim::script::GameTruth;
use jadoube::trace::{Event, Header, Line as TraceLine, Trace};
use jadoube::wire::dgt::VirtualBoard;
use std::collections::BTreeMap;

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let count: u64 = std::env::var("JADOUBE_GAMES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(40);
    if let [kind, number] = words.as_slice()
        && let Some(kind) = KINDS.iter().find(|known| known.name == kind)
        && let Ok(number) = number.parse()
    {
        print!("{}", play(kind, number).trace);
        return;
    }
    println!(
        "{:<16} {:>7} {:>13} {:>7} {:>7} {:>7} {:>11} {:>8}",
        "kind", "games", "plies", "silent", "doubt", "alerts", "corrections", "median"
    );
    for kind in KINDS {
        let mut sum = Sum::default();
        for number in 0..count {
            let played = play(kind, number);
            sum.add(&played);
            if std::env::var_os("JADOUBE_SHOW").is_some() && !played.is_clean() {
                println!("  {} {number}: {}", kind.name, played.why());
            }
        }
        sum.print(kind.name, count);
    }
}

/// How a game is played and what its line does.
struct Kind {
    name: &'static str,
    level: Level,
    scan_ms: Millis,
    clock: bool,
    /// Of 1000 field updates so many never leave the board.
    unsent: u64,
    /// Of 1000 bytes so many are lost on the way.
    lost: u64,
    /// Whether the host may ask the board back.
    asks: bool,
}

const PLAIN: Kind = Kind {
    name: "",
    level: Level::Human,
    scan_ms: 220,
    clock: true,
    unsent: 0,
    lost: 0,
    asks: true,
};

const KINDS: &[Kind] = &[
    Kind {
        name: "clean",
        level: Level::Clean,
        ..PLAIN
    },
    Kind {
        name: "human",
        ..PLAIN
    },
    Kind {
        name: "human-no-clock",
        clock: false,
        ..PLAIN
    },
    Kind {
        name: "human-at-once",
        scan_ms: 0,
        ..PLAIN
    },
    Kind {
        name: "unsent-1%",
        unsent: 10,
        ..PLAIN
    },
    Kind {
        name: "lost-0.3%",
        lost: 3,
        ..PLAIN
    },
    Kind {
        name: "unsent-no-dump",
        unsent: 10,
        asks: false,
        ..PLAIN
    },
    Kind {
        name: "unsent-no-clock",
        unsent: 10,
        clock: false,
        ..PLAIN
    },
];

/// What became of one game.
struct Outcome {
    truth: Vec<String>,
    read: Vec<String>,
    doubts: usize,
    alerts: Vec<String>,
    corrections: usize,
    /// From the hand to the publication of each ply.
    delays: Vec<Millis>,
    trace: String,
}

impl Outcome {
    /// Plies that stand in the record as they were played, from the first one on.
    fn unbroken(&self) -> usize {
        self.truth
            .iter()
            .zip(&self.read)
            .take_while(|(truth, read)| truth == read)
            .count()
    }

    fn is_exact(&self) -> bool {
        self.truth == self.read
    }

    fn is_silent_error(&self) -> bool {
        !self.is_exact() && self.doubts == 0 && self.alerts.is_empty()
    }

    fn is_clean(&self) -> bool {
        self.is_exact() && self.alerts.is_empty()
    }

    fn why(&self) -> String {
        let at = self.unbroken();
        format!(
            "{} of {} (read {}), then {:?} for {:?}; doubts {}, alerts {:?}",
            at,
            self.truth.len(),
            self.read.len(),
            self.read.get(at..(at + 3).min(self.read.len())),
            self.truth.get(at..(at + 3).min(self.truth.len())),
            self.doubts,
            self.alerts
        )
    }
}

#[derive(Default)]
struct Sum {
    exact: usize,
    plies: usize,
    unbroken: usize,
    silent: usize,
    doubts: usize,
    alerts: usize,
    corrections: usize,
    delays: Vec<Millis>,
}

impl Sum {
    fn add(&mut self, played: &Outcome) {
        self.exact += usize::from(played.is_exact());
        self.plies += played.truth.len();
        self.unbroken += played.unbroken();
        self.silent += usize::from(played.is_silent_error());
        self.doubts += played.doubts;
        self.alerts += played.alerts.len();
        self.corrections += played.corrections;
        self.delays.extend(&played.delays);
    }

    fn print(&mut self, name: &str, count: u64) {
        self.delays.sort_unstable();
        let median = self.delays.get(self.delays.len() / 2).copied();
        println!(
            "{name:<16} {:>7} {:>13} {:>7} {:>7} {:>7} {:>11.2} {:>5} ms",
            format!("{}/{count}", self.exact),
            format!("{}/{}", self.unbroken, self.plies),
            self.silent,
            self.doubts,
            self.alerts,
            self.corrections as f64 * 100.0 / self.plies.max(1) as f64,
            median.unwrap_or(0),
        );
    }
}

fn play(kind: &Kind, number: u64) -> Outcome {
    let game = game(number);
    let script = Hands::new(kind.level, number)
        .expect("hands that can play")
        .script(&game);
    let options = TableOptions {
        control: kind
            .clock
            .then(|| "40/5400+30:1800+30".parse().expect("a time control")),
        scan_ms: kind.scan_ms,
        ..TableOptions::default()
    };
    let truth = script.games[0].clone();
    let mut table = Table::new(kind, number, script, &options);
    table.run(&truth);
    table.outcome(&truth)
}

fn game(number: u64) -> SimGame {
    let corpus = games::corpus_games();
    let standard: Vec<&SimGame> = corpus
        .iter()
        .filter(|game| !game.chess960 && game.moves.len() > 8 && game.start == Default::default())
        .collect();
    match standard.get(number as usize * 7 % standard.len().max(1)) {
        Some(game) if number % 4 != 3 => (*game).clone(),
        _ => games::random_game(number, 120),
    }
}

/// A board, its line and the session that reads it, in virtual time.
struct Table<'a> {
    kind: &'a Kind,
    chance: fastrand::Rng,
    player: Player,
    line: Line,
    session: Session,
    trace: Trace,
    /// The record as last told, and when each ply was first told.
    read: Vec<(String, bool)>,
    told: BTreeMap<(usize, String), Millis>,
    alerts: Vec<String>,
    corrections: usize,
}

impl<'a> Table<'a> {
    fn new(
        kind: &'a Kind,
        number: u64,
        script: jadoube::sim::script::Script,
        options: &TableOptions,
    ) -> Table<'a> {
        let mut settings = Settings::new("1");
        settings.watch = if kind.asks {
            Watch::Judge
        } else {
            Watch::Ignore
        };
        settings.armed = Some(jadoube::game::Pairing::default());
        Table {
            kind,
            chance: fastrand::Rng::with_seed(number),
            player: Player::new(0, script, VirtualBoard::default(), options),
            line: Line::new(line::BAUD),
            session: Session::new(settings, 0),
            trace: Trace {
                header: Header {
                    silence: if kind.asks {
                        Watch::Judge
                    } else {
                        Watch::Ignore
                    },
                    ..Header::default()
                },
                lines: Vec::new(),
            },
            read: Vec::new(),
            told: BTreeMap::new(),
            alerts: Vec::new(),
            corrections: 0,
        }
    }

    fn run(&mut self, truth: &GameTruth) {
        let mut now = 0;
        self.session.handle_opened(now);
        if !self.kind.asks {
            self.player.handle_host(now, &[0x42, 0x4b]);
        }
        let mut pressed = 0;
        let mut end = None;
        loop {
            self.take_in(now);
            while let Some(bytes) = self.session.poll_write() {
                self.note(now, Event::ToBoard(bytes.clone()));
                if self.kind.asks {
                    self.player.handle_host(now, &bytes);
                }
            }
            while let Some(message) = self.player.poll_output() {
                if message[0] == FIELD_UPDATE && self.chance.u64(..1000) < self.kind.unsent {
                    continue;
                }
                let left: Vec<u8> = message
                    .into_iter()
                    .filter(|_| self.chance.u64(..1000) >= self.kind.lost)
                    .collect();
                self.line.write(now, &left);
            }
            if self.player.is_finished() && end.is_none() {
                end = Some(now + 30_000);
            }
            let press = (!self.kind.clock)
                .then(|| {
                    let began = self.player.began_ms()?;
                    truth.plies[pressed.min(truth.plies.len())..]
                        .iter()
                        .position(|played| played.pressed_ms.is_some())
                        .map(|next| {
                            let played = &truth.plies[pressed + next];
                            (
                                began + played.pressed_ms.unwrap_or(0),
                                played.side,
                                pressed + next + 1,
                            )
                        })
                })
                .flatten();
            let next = [
                self.line.poll_timeout(),
                self.player.poll_timeout(),
                self.session.poll_timeout(),
                press.map(|(at, ..)| at),
            ]
            .into_iter()
            .flatten()
            .min();
            match next {
                Some(next) if end.is_none_or(|end| next <= end) => now = next.max(now),
                _ => break,
            }
            let bytes = self.line.poll(now);
            if !bytes.is_empty() {
                self.note(now, Event::FromBoard(bytes.clone()));
                self.session.handle_bytes(now, &bytes);
            }
            self.player.handle_timeout(now);
            if let Some((at, side, next)) = press
                && at <= now
            {
                pressed = next;
                let side = side.fold_wb("white", "black");
                let text = format!(r#"{{"verb":"press","args":{{"side":"{side}"}}}}"#);
                self.note(now, Event::Command(text));
                let command =
                    format!(r#"{{"id":"p{pressed}","verb":"press","args":{{"side":"{side}"}}}}"#);
                let command = serde_json::from_str(&command).expect("a press");
                self.session.handle_command(now, command);
            }
            self.session.handle_timeout(now);
        }
        self.take_in(now);
    }

    fn note(&mut self, at_ms: Millis, event: Event) {
        let number = self.trace.lines.len() + 1;
        self.trace.lines.push(TraceLine {
            at_ms,
            number,
            event,
        });
    }

    fn take_in(&mut self, now: Millis) {
        while self.session.poll_entry().is_some() {}
        while self.session.poll_reply().is_some() {}
        while let Some(publication) = self.session.poll_publication() {
            let Body::Payload(payload) = publication.body else {
                continue;
            };
            match payload {
                Payload::Game(game) if game.phase != Phase::Setup => {
                    self.read = game
                        .moves
                        .iter()
                        .map(|m| (m.uci.clone(), m.doubt.is_some()))
                        .collect();
                    for (ply, (uci, _)) in self.read.iter().enumerate() {
                        self.told.entry((ply, uci.clone())).or_insert(now);
                    }
                }
                Payload::Event(event) if matches!(event.kind, EventKind::Correction { .. }) => {
                    self.corrections += 1;
                }
                Payload::Alert(alert) if alert.alert.severity != Severity::Info => {
                    let AlertBody { kind, squares, .. } = &alert.alert;
                    let second = now / 1000;
                    self.alerts
                        .push(format!("{kind:?} {squares:?} at {second}"));
                }
                _ => {}
            }
        }
    }

    fn outcome(self, truth: &GameTruth) -> Outcome {
        let began = self.player.began_ms().unwrap_or(0);
        let delays = truth
            .plies
            .iter()
            .enumerate()
            .filter_map(|(ply, played)| {
                let told = self.told.get(&(ply, played.uci.clone()))?;
                Some(told.saturating_sub(began + played.placed_ms))
            })
            .collect();
        Outcome {
            truth: truth.uci().into_iter().map(str::to_owned).collect(),
            doubts: self.read.iter().filter(|(_, doubt)| *doubt).count(),
            read: self.read.into_iter().map(|(uci, _)| uci).collect(),
            alerts: self.alerts,
            corrections: self.corrections,
            delays,
            trace: self.trace.to_string(),
        }
    }
}

/// Message with one square (protocol sheet 3.2).
const FIELD_UPDATE: u8 = 0x8e;
