//!

pub mod ruleset;
