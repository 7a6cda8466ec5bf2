//! Virtual boards: games, the hands that play them, and the board and clock that see it.
//!
//! game → hands → square changes and presses → scanner and chess clock → a family's bytes
//!
//! * [`pgn`] reads the games.
//! * [`hands`] turns moves into men lifted and put down, [`scene`] adds what else happens at a table, and `faults` what goes wrong
//!   there; all of them write a [`script`].
//! * [`clock`] is the chess clock on the table.
//! * [`scan`] is how a board looks at its squares, [`board`] what it tells of them.
//! * [`player`] plays a script on a board and answers its host.
//! * [`mod@line`] is the serial line, with its time.
//!
//! [`trace`] does all of it at once, in virtual time, for tests and measurements.

pub mod afternoon;
pub mod board;
pub mod clock;
mod faults;
pub mod hands;
pub mod line;
pub mod pgn;
pub mod player;
pub mod scan;
pub mod scene;
pub mod script;

use shakmaty::Color;

use board::VirtualBoard;
use clock::ClockControl;
use hands::{Hands, Level};
use line::Line;
use pgn::SimGame;
use player::{Player, TableOptions};
use script::{GameTruth, Script};

use crate::Millis;
use crate::trace::{Event, Header, Line as TraceLine, Trace};
use crate::wire::Family;

/// Whether there is a virtual board of this family.
pub fn is_simulated(family: Family) -> bool {
    VirtualBoard::of(family).is_some()
}

/// A game as its host would have heard it.
#[derive(Debug, Clone)]
pub struct Traced {
    pub family: Family,
    /// The board's messages, each at the time of its last byte. All squares come first.
    pub messages: Vec<(Millis, Vec<u8>)>,
    /// When the script's time 0 was.
    pub began_ms: Millis,
    /// What the clock was set to; `None` where the board had none.
    pub control: Option<ClockControl>,
    /// When who pressed, in the time of the messages.
    pub presses: Vec<(Millis, Color)>,
    /// What really was played, in the script's time.
    pub games: Vec<GameTruth>,
}

impl Traced {
    /// The same in the format that recorders share. Where the board has no clock, the presses stand in it as commands.
    pub fn to_trace(&self) -> Trace {
        let mut header = Header {
            board: self.family,
            time_control: self
                .control
                .as_ref()
                .map(|control| control.as_time_control().clone()),
            ..Header::default()
        };
        if let Some(first) = self.games.first() {
            header.chess960 = first.chess960;
            header.fen = (first.start_fen != INITIAL_FEN).then(|| first.start_fen.clone());
        }
        let mut lines: Vec<(Millis, Event)> = self
            .messages
            .iter()
            .map(|(at_ms, bytes)| (*at_ms, Event::FromBoard(bytes.clone())))
            .collect();
        if self.control.is_none() {
            lines.extend(self.presses.iter().map(|&(at_ms, side)| {
                let side = side.fold_wb("white", "black");
                let command = format!(r#"{{"verb":"press","args":{{"side":"{side}"}}}}"#);
                (at_ms, Event::Command(command))
            }));
            lines.sort_by_key(|(at_ms, _)| *at_ms);
        }
        let lines = (1..)
            .zip(lines)
            .map(|(number, (at_ms, event))| TraceLine {
                at_ms,
                number,
                event,
            })
            .collect();
        Trace { header, lines }
    }
}

/// One game from the first report of all squares to a few seconds after its end, at the pace of the wire. The same arguments give
/// the same bytes.
///
/// # Panics
///
/// If no board of the family [is simulated](is_simulated).
pub fn trace(game: &SimGame, level: Level, seed: u64, options: &TableOptions) -> Traced {
    let script = Hands::new(level, seed).script(game);
    let board = VirtualBoard::of(options.family).expect("a family that is simulated");
    trace_script(script, board, options)
}

/// Any script from the first report of all squares to a few seconds after its end, at the pace of the wire.
pub fn trace_script(
    script: Script,
    board: impl Into<VirtualBoard>,
    options: &TableOptions,
) -> Traced {
    let games = script.games.clone();
    let presses: Vec<(Millis, Color)> = script.presses().collect();
    let board = board.into();
    let (family, has_clock) = (board.family(), board.has_clock());
    let mut line = Line::new(board.baud());
    let greeting = board.greeting();
    let mut player = Player::new(0, script, board, options);
    let mut messages = Vec::new();
    let mut now = 0;
    player.handle_host(now, greeting);
    let mut end_ms = None;
    loop {
        while let Some(message) = player.poll_output() {
            line.write(now, &message);
            let through = line.poll_timeout().unwrap_or(now);
            line.poll(through);
            messages.push((through, message));
        }
        if player.is_finished() && end_ms.is_none() {
            end_ms = Some(now + AFTERWARDS_MS);
        }
        match player.poll_timeout() {
            Some(next) if end_ms.is_none_or(|end| next <= end) => now = next,
            _ => break,
        }
        player.handle_timeout(now);
    }
    let began_ms = player.began_ms().unwrap_or(now);
    Traced {
        family,
        messages,
        control: options.control.clone().filter(|_| has_clock),
        began_ms,
        presses: presses
            .into_iter()
            .map(|(at_ms, side)| (began_ms + at_ms, side))
            .collect(),
        games,
    }
}

const INITIAL_FEN: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// The clock may have something to say after the last move.
const AFTERWARDS_MS: Millis = 2_000;

#[cfg(test)]
mod tests;
