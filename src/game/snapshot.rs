//! The record of a game as it is told and written: what stands in words, with wall times.

use super::{CompletedBy, Doubt, Line, MoveState, Phase, ResultBy, ResultState};
use crate::command::Player;
use crate::laws::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The whole record as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    pub game: String,
    /// Rises with every change.
    pub rev: u64,
    pub table: String,
    pub phase: Phase,
    pub ruleset: String,
    pub variant: String,
    pub supervised: bool,
    pub start_fen: String,
    pub chess960: bool,
    /// The position after the last move.
    pub fen: String,
    pub turn: Side,
    pub moves: Vec<Move>,
    pub round: Option<String>,
    pub board: Option<String>,
    pub white: Player,
    pub black: Player,
    pub time_control: Option<String>,
    pub started_at: Option<String>,
    pub last_move_at: Option<String>,
    pub ended_at: Option<String>,
    pub white_clock_ms: Option<u64>,
    pub black_clock_ms: Option<u64>,
    pub result: String,
    pub result_by: Option<ResultBy>,
    pub result_state: Option<ResultState>,
    pub termination: Option<String>,
    pub reason: Option<String>,
    pub in_sync: bool,
}

/// One ply of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Move {
    pub ply: u32,
    pub uci: String,
    pub san: String,
    pub state: MoveState,
    /// What completed it.
    pub by: Option<CompletedBy>,
    /// What the mover's clock showed once he had pressed.
    pub clk_ms: Option<u64>,
    /// The time he spent on it.
    pub emt_ms: Option<u64>,
    pub doubt: Option<Doubt>,
    /// With doubt: each a whole line of UCI moves separated by spaces, from this ply on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
}

impl Move {
    /// The ply at this index, counted from 0.
    pub fn of(line: &Line, index: usize) -> Move {
        let ply = &line.plies[index];
        Move {
            ply: index as u32 + 1,
            uci: line.uci(index),
            san: line.san(index),
            state: ply.state,
            by: ply.by,
            clk_ms: ply.clk_ms,
            emt_ms: ply.emt_ms,
            doubt: ply.doubt,
            alternatives: ply.alternatives.clone(),
        }
    }
}
