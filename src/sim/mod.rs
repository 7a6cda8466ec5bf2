//! Virtual boards: games, the hands that play them, and the board and clock that see it.
//!
//! game → hands → square changes and presses → scanner and chess clock → a family's bytes
//!
//! * [`pgn`] reads the games.
//! * [`hands`] turns moves into men lifted and put down, [`scene`] adds what else happens at a table; both write a [`script`].
//! * [`clock`] is the chess clock on the table.
//! * [`scan`] is how a board looks at its squares.
//! * [`player`] plays a script on a board and answers its host.
//! * [`line`] is the serial line, with its time.
//!
//! [`trace`] does all of it at once, in virtual time, for tests and measurements.

pub mod clock;
pub mod hands;
pub mod line;
pub mod pgn;
pub mod player;
pub mod scan;
pub mod scene;
pub mod script;

use hands::{Hands, Level, LevelError};
use line::Line;
use pgn::SimGame;
use player::{Player, TableOptions};
use script::{GameTruth, Script};

use crate::Millis;
use crate::wire::dgt::VirtualBoard;

/// A game as its host would have heard it.
#[derive(Debug, Clone)]
pub struct Traced {
    /// The board's messages, each at the time of its last byte. First comes a board dump.
    pub messages: Vec<(Millis, Vec<u8>)>,
    /// When the script's time 0 was.
    pub began_ms: Millis,
    /// What really was played, in the script's time.
    pub games: Vec<GameTruth>,
}

/// One game from the dump to a few seconds after its end, at 9600 baud. The same arguments give the same bytes.
pub fn trace(
    game: &SimGame,
    level: Level,
    seed: u64,
    options: &TableOptions,
) -> Result<Traced, LevelError> {
    let script = Hands::new(level, seed)?.script(game);
    Ok(trace_script(script, VirtualBoard::default(), options))
}

/// Any script from the dump to a few seconds after its end, at 9600 baud.
pub fn trace_script(script: Script, board: VirtualBoard, options: &TableOptions) -> Traced {
    let games = script.games.clone();
    let mut player = Player::new(0, script, board, options);
    let mut line = Line::new(line::BAUD);
    let mut messages = Vec::new();
    let mut now = 0;
    player.handle_host(now, SEND_BOARD_AND_UPDATES);
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
    Traced {
        messages,
        began_ms: player.began_ms().unwrap_or(now),
        games,
    }
}

/// SEND_BRD and SEND_UPDATE_NICE (protocol sheet 2).
const SEND_BOARD_AND_UPDATES: &[u8] = &[0x42, 0x4b];

/// The clock may have something to say after the last move.
const AFTERWARDS_MS: Millis = 2_000;

#[cfg(test)]
mod tests;
