//!

pub mod pgn;
