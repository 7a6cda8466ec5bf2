//! What a table is armed with: a pairing as it was meant.

use crate::clock::control::{TimeControl, TimeControlError};
use crate::command::{Arm, Player};
use crate::laws::position::{FenError, Position};
use crate::laws::ruleset::{Ruleset, UnknownName, Variant};
use std::fmt;

/// Who plays what on which terms. It is read once, from an [`Arm`]; what that does not name stays as configured.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairing {
    pub game: Option<String>,
    pub white: Option<Player>,
    pub black: Option<Player>,
    /// PGN Round, Board, Event, Site and Date.
    pub round: Option<String>,
    pub board: Option<String>,
    pub event: Option<String>,
    pub site: Option<String>,
    pub date: Option<String>,
    pub time_control: Option<TimeControl>,
    pub ruleset: Option<Ruleset>,
    pub variant: Option<Variant>,
    pub supervised: Option<bool>,
    /// Where the game begins.
    pub start: Position,
    /// Take over the game that was begun from the start array without being armed.
    pub adopt: bool,
}

/// Why a pairing cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    #[error("{0}")]
    Start(#[from] FenError),
    #[error("game {0:?} must be 1 to 32 of a-z 0-9 -")]
    Game(String),
    #[error("{0}")]
    Rules(#[from] UnknownName),
    #[error("time_control: {0}")]
    TimeControl(#[from] TimeControlError),
    #[error(
        "game {game} was played to its end {place}; give another game an id of its own, and put right in its PGN who played {game}"
    )]
    Played { game: String, place: Place },
    #[error(
        "game {game} is being played at table {table}; end it there first, or give this one an id of its own"
    )]
    Playing { game: String, table: String },
}

/// Where a game was played to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// At the table that the pairing is for.
    Here,
    /// At another one of the node.
    Table(String),
    /// At whatever table, before this run.
    EarlierRun,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Here => f.write_str("here"),
            Place::Table(table) => write!(f, "at table {table}"),
            Place::EarlierRun => f.write_str("before this start"),
        }
    }
}

impl Default for Pairing {
    /// Any game from the usual position.
    fn default() -> Pairing {
        Pairing {
            game: None,
            white: None,
            black: None,
            round: None,
            board: None,
            event: None,
            site: None,
            date: None,
            time_control: None,
            ruleset: None,
            variant: None,
            supervised: None,
            start: Position::initial(),
            adopt: false,
        }
    }
}

impl TryFrom<&Arm> for Pairing {
    type Error = PairingError;

    fn try_from(arm: &Arm) -> Result<Pairing, PairingError> {
        let start = Position::start(arm.fen.as_deref(), arm.chess960.unwrap_or(false))?;
        if let Some(id) = arm.game.as_ref().filter(|id| !is_topic_level(id)) {
            return Err(PairingError::Game(id.clone()));
        }
        Ok(Pairing {
            game: arm.game.clone(),
            white: arm.white.clone(),
            black: arm.black.clone(),
            round: arm.round.clone(),
            board: arm.board.clone(),
            event: arm.event.clone(),
            site: arm.site.clone(),
            date: arm.date.clone(),
            ruleset: arm.ruleset.as_deref().map(str::parse).transpose()?,
            variant: arm.variant.as_deref().map(str::parse).transpose()?,
            time_control: arm.time_control.as_deref().map(str::parse).transpose()?,
            supervised: arm.supervised,
            start,
            adopt: arm.adopt,
        })
    }
}

impl Pairing {
    /// Whether it names a player.
    pub(super) fn is_named(&self) -> bool {
        let players = [&self.white, &self.black];
        players
            .into_iter()
            .flatten()
            .any(|player| player.name.is_some())
    }
}

/// The id of a game is the last level of its topics.
fn is_topic_level(id: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=32).contains(&id.len()) && id.chars().all(fits)
}
