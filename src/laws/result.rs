//! How a game can have ended.

use shakmaty::{Color, Square};
use std::fmt;
use std::str::FromStr;

/// Where the kings show the result, as the makers of boards agreed.
pub const CENTRE: [Square; 4] = [Square::D4, Square::E4, Square::D5, Square::E5];

/// A result; written as PGN writes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GameResult {
    WhiteWins,
    BlackWins,
    Draw,
    /// Both have lost, as when neither came. PGN has no sign for it.
    BothLose,
    /// Not ended, or nobody knows how.
    #[default]
    Unknown,
}

impl GameResult {
    pub const ALL: [GameResult; 5] = [
        GameResult::WhiteWins,
        GameResult::BlackWins,
        GameResult::Draw,
        GameResult::BothLose,
        GameResult::Unknown,
    ];

    pub fn won_by(winner: Color) -> GameResult {
        winner.fold_wb(GameResult::WhiteWins, GameResult::BlackWins)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            GameResult::WhiteWins => "1-0",
            GameResult::BlackWins => "0-1",
            GameResult::Draw => "1/2-1/2",
            GameResult::BothLose => "0-0",
            GameResult::Unknown => "*",
        }
    }

    /// Who has lost, where the other side has won.
    pub fn loser(self) -> Option<Color> {
        match self {
            GameResult::WhiteWins => Some(Color::Black),
            GameResult::BlackWins => Some(Color::White),
            _ => None,
        }
    }
}

impl fmt::Display for GameResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("result must be one of 1-0 0-1 1/2-1/2 0-0 *")]
pub struct UnknownResult;

impl FromStr for GameResult {
    type Err = UnknownResult;

    fn from_str(text: &str) -> Result<GameResult, UnknownResult> {
        GameResult::ALL
            .into_iter()
            .find(|result| result.as_str() == text)
            .ok_or(UnknownResult)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_as_it_is_written() {
        for result in GameResult::ALL {
            assert_eq!(result.to_string().parse(), Ok(result));
            // Whoever refuses one names them all.
            assert!(UnknownResult.to_string().contains(result.as_str()));
        }
        assert_eq!("1:0".parse::<GameResult>(), Err(UnknownResult));
    }
}
