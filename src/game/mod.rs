//! The record of one game: what was played, from where, and how it ended.
//!
//! * `line`: the plies as they stand;
//! * `record`: the game, and what becomes of it when moves are seen, taken back or completed;
//! * `clocks`: what the clock has to do with it;
//! * `result`: how it ends;
//! * `pairing`: what a table is armed with;
//! * `opening`: which game comes next, and who opens it;
//! * `finished`: the games that are over;
//! * [`snapshot`] and [`pgn`]: the record as others read it.
//!
//! What is never edited are the entries of a session (`session::entry`): a takeback, a correction or a ruling comes after the ones it
//! concerns. [`Line`] is what they amount to so far.

use crate::text::words;

mod clocks;
mod finished;
mod line;
mod opening;
mod pairing;
pub mod pgn;
mod record;
mod result;
pub mod snapshot;

pub use clocks::{Clocks, FlagFall};
pub use line::{CompletedBy, CorrectionReason, Doubt, Line, MoveState, Ply, Seen, puts_back};
pub use opening::{Armed, Openings, Terms};
pub use pairing::{Pairing, PairingError, Place};
pub use record::{Change, Event, Game, Orders, Phase, Readings};
pub use result::{Contradiction, Reason, ResultBy, ResultState, Sign, Verdict};

words! {
    /// How a game begins.
    #[derive(Default)]
    Arming {
        /// By setting up the array.
        #[default]
        Auto = "auto",
        /// By a command.
        Manual = "manual",
    }
}
