//! The Laws of Chess as pure judgements: what may be played from a position, why something may not, and what has ended.
//!
//! Nothing here holds state or sees a sensor.

pub mod illegal;
pub mod position;
pub mod result;
pub mod ruleset;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::Color;

/// One side of a game.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    White,
    Black,
}

impl From<Color> for Side {
    fn from(color: Color) -> Side {
        color.fold_wb(Side::White, Side::Black)
    }
}

impl From<Side> for Color {
    fn from(side: Side) -> Color {
        match side {
            Side::White => Color::White,
            Side::Black => Color::Black,
        }
    }
}
