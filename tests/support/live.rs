//! A game played by virtual hands on a virtual board, whose line may lose what it carries, and read live by a session that asks the
//! board back; all in virtual time.

use jadoube::Millis;
use jadoube::board::driver::Watch;
use jadoube::command::Command;
use jadoube::game::Pairing;
use jadoube::laws::position::Position;
use jadoube::publish::{
    AlertBody, AlertKind, Body, Doubt, EventKind, Payload, Phase, Severity, Side,
};
use jadoube::session::{Session, Settings};
use jadoube::sim::board::VirtualBoard;
use jadoube::sim::hands::{Hands, Level};
use jadoube::sim::line::Line;
use jadoube::sim::pgn::SimGame;
use jadoube::sim::player::{Player, TableOptions};
use jadoube::sim::scan::Sweep;
use jadoube::sim::script::{GameTruth, Script};
use jadoube::trace::{Event, Header, Line as TraceLine, Trace};
use jadoube::wire::{Family, psb1};
use shakmaty::Color;
use std::collections::BTreeMap;

/// How a game is played and what its line does.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    pub level: Level,
    pub family: Family,
    pub scan_ms: Millis,
    pub sweep: Sweep,
    /// What the clock at the board is set to; without one, or at a board that knows none, the presses come as commands.
    pub control: Option<&'static str>,
    /// Of 1000 changes so many are never told.
    pub unsent: u16,
    /// Of 1000 bytes so many are lost on the way.
    pub lost: u64,
    /// Whether the host may ask the board back.
    pub asks: bool,
    pub rotated: bool,
    /// Whether a board that does not know its men sees whose they are.
    pub colours: bool,
    /// Whether anybody presses, where the board has no clock of its own.
    pub pressed: bool,
}

impl Conditions {
    /// A game of people at a DGT board that is well.
    pub const USUAL: Conditions = Conditions {
        level: Level::Human,
        family: Family::Dgt,
        scan_ms: 220,
        sweep: Sweep::Rolling,
        control: Some("40/5400+30:1800+30"),
        unsent: 0,
        lost: 0,
        asks: true,
        rotated: false,
        colours: false,
        pressed: true,
    };
}

/// What was played, and what was told of it. All times are the session's.
#[derive(Debug)]
pub struct Live {
    pub family: Family,
    pub truth: GameTruth,
    /// When the truth's time 0 was.
    pub began_ms: Millis,
    pub told: Told,
    pub trace: Trace,
}

/// What a session tells of its first game.
#[derive(Debug, Default)]
pub struct Told {
    game: Option<String>,
    /// The record as last told.
    pub record: Vec<Ply>,
    /// When each ply was first told as this move.
    pub first: BTreeMap<(usize, String), Millis>,
    pub alerts: Vec<Alert>,
    pub corrections: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ply {
    pub uci: String,
    pub doubt: Option<Doubt>,
    /// What else may have been played from here on, each a line of moves.
    pub alternatives: Vec<String>,
}

/// An alert with all that it ever was.
#[derive(Debug, Clone)]
pub struct Alert {
    id: String,
    pub kind: AlertKind,
    pub side: Option<Side>,
    /// All squares that it ever named.
    pub squares: Vec<String>,
    pub raised_ms: Millis,
    /// When it first was `warn` or louder.
    pub loud_ms: Option<Millis>,
    pub closed_ms: Option<Millis>,
}

impl Told {
    /// Takes what the session has to say.
    pub fn take_in(&mut self, session: &mut Session) {
        while session.poll_entry().is_some() {}
        while session.poll_reply().is_some() {}
        while let Some(publication) = session.poll_publication() {
            let Body::Payload(payload) = publication.body else {
                continue;
            };
            let now = payload.envelope().mono_ms;
            match payload {
                Payload::Game(game) if game.phase != Phase::Setup => {
                    if *self.game.get_or_insert_with(|| game.game.clone()) != game.game {
                        continue;
                    }
                    self.record = game
                        .moves
                        .iter()
                        .map(|m| Ply {
                            uci: m.uci.clone(),
                            doubt: m.doubt,
                            alternatives: m.alternatives.clone(),
                        })
                        .collect();
                    for (index, ply) in self.record.iter().enumerate() {
                        self.first.entry((index, ply.uci.clone())).or_insert(now);
                    }
                }
                Payload::Event(event) => match event.kind {
                    EventKind::Correction { .. } => self.corrections += 1,
                    EventKind::AlertRaised { alert } | EventKind::AlertChanged { alert } => {
                        self.note_alert(now, &alert);
                    }
                    EventKind::AlertClosed { alert: id, .. } => {
                        if let Some(alert) = self.alerts.iter_mut().find(|alert| alert.id == id) {
                            alert.closed_ms = Some(now);
                        }
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }

    fn note_alert(&mut self, now: Millis, body: &AlertBody) {
        let index = match self.alerts.iter().position(|alert| alert.id == body.id) {
            Some(index) => index,
            None => {
                self.alerts.push(Alert {
                    id: body.id.clone(),
                    kind: body.kind,
                    side: body.side,
                    squares: Vec::new(),
                    raised_ms: now,
                    loud_ms: None,
                    closed_ms: None,
                });
                self.alerts.len() - 1
            }
        };
        let alert = &mut self.alerts[index];
        alert.kind = body.kind;
        alert.side = body.side.or(alert.side);
        for square in &body.squares {
            if !alert.squares.contains(square) {
                alert.squares.push(square.clone());
            }
        }
        if body.severity >= Severity::Warn {
            alert.loud_ms.get_or_insert(now);
        }
    }
}

/// Plays a game by the hands of this seed.
pub fn play(game: &SimGame, conditions: &Conditions, seed: u64) -> Live {
    let script = Hands::new(conditions.level, seed).script(game);
    play_script(game, script, conditions, seed)
}

/// Plays a script that begins where the game does.
pub fn play_script(game: &SimGame, script: Script, conditions: &Conditions, seed: u64) -> Live {
    let truth = script.games[0].clone();
    let mut table = Table::new(game, script, conditions, seed);
    table.run();
    Live {
        family: conditions.family,
        truth,
        began_ms: table.player.began_ms().unwrap_or(0),
        told: table.told,
        trace: table.trace,
    }
}

/// A board, its line and the session that reads it.
struct Table {
    conditions: Conditions,
    greeting: &'static [u8],
    chance: fastrand::Rng,
    /// When who presses, in the script's time, where the board has no clock; the next one last.
    presses: Vec<(Millis, Color)>,
    player: Player,
    line: Line,
    session: Session,
    told: Told,
    trace: Trace,
}

impl Table {
    fn new(game: &SimGame, script: Script, conditions: &Conditions, seed: u64) -> Table {
        let watch = if conditions.asks {
            Watch::Judge
        } else {
            Watch::Ignore
        };
        let start = &script.games[0].start_fen;
        let board = match conditions.colours {
            true => psb1::VirtualBoard::new(psb1::Identity {
                colours: true,
                ..psb1::Identity::default()
            })
            .into(),
            false => VirtualBoard::of(conditions.family).expect("a board that can be played"),
        };
        let mut settings = Settings::new("1");
        settings.family = conditions.family;
        settings.watch = watch;
        settings.armed = Some(Pairing {
            start: Position::from_fen(start, game.chess960).expect("a game's own beginning"),
            ..Pairing::default()
        });
        let header = Header {
            board: conditions.family,
            silence: watch,
            chess960: game.chess960,
            fen: Some(start.clone()),
            ..Header::default()
        };
        let options = TableOptions {
            control: conditions
                .control
                .map(|control| control.parse().expect("a time control")),
            scan_ms: conditions.scan_ms,
            sweep: conditions.sweep,
            rotated: conditions.rotated,
            unsent_per_mille: conditions.unsent,
            seed,
            ..TableOptions::of(conditions.family)
        };
        let mut presses: Vec<(Millis, Color)> = Vec::new();
        if conditions.pressed && (conditions.control.is_none() || !board.has_clock()) {
            presses.extend(script.presses());
            presses.reverse();
        }
        Table {
            conditions: *conditions,
            chance: fastrand::Rng::with_seed(seed),
            presses,
            greeting: board.greeting(),
            line: Line::new(board.baud()),
            player: Player::new(0, script, board, &options),
            session: Session::new(settings, 0),
            told: Told::default(),
            trace: Trace {
                header,
                lines: Vec::new(),
            },
        }
    }

    fn run(&mut self) {
        let mut now = 0;
        self.session.handle_opened(now);
        if !self.conditions.asks {
            self.player.handle_host(now, self.greeting);
        }
        let mut end = None;
        loop {
            self.told.take_in(&mut self.session);
            self.exchange(now);
            if self.player.is_finished() && end.is_none() {
                end = Some(now + AFTERWARDS_MS);
            }
            let press = self
                .player
                .began_ms()
                .zip(self.presses.last())
                .map(|(began, (at, _))| began + at);
            let next = [
                self.line.poll_timeout(),
                self.player.poll_timeout(),
                self.session.poll_timeout(),
                press,
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
            if press.is_some_and(|at| at <= now)
                && let Some((_, side)) = self.presses.pop()
            {
                self.press(now, side);
            }
            self.session.handle_timeout(now);
        }
        self.told.take_in(&mut self.session);
    }

    /// What the session writes goes to the board, what the board says to the line.
    fn exchange(&mut self, now: Millis) {
        while let Some(bytes) = self.session.poll_write() {
            self.note(now, Event::ToBoard(bytes.clone()));
            if self.conditions.asks {
                self.player.handle_host(now, &bytes);
            }
        }
        while let Some(message) = self.player.poll_output() {
            let left: Vec<u8> = message
                .into_iter()
                .filter(|_| self.chance.u64(..1000) >= self.conditions.lost)
                .collect();
            self.line.write(now, &left);
        }
    }

    fn press(&mut self, now: Millis, side: Color) {
        let side = side.fold_wb("white", "black");
        let text = format!(r#"{{"verb":"press","args":{{"side":"{side}"}}}}"#);
        self.note(now, Event::Command(text.clone()));
        let mut command = Command::parse(&text, None).expect("a press");
        command.id = self.trace.lines.len().to_string();
        self.session.handle_command(now, command);
    }

    fn note(&mut self, at_ms: Millis, event: Event) {
        let number = self.trace.lines.len() + 1;
        self.trace.lines.push(TraceLine {
            at_ms,
            number,
            event,
        });
    }
}

/// Whatever is to be said of a game is said by then.
const AFTERWARDS_MS: Millis = 30_000;
