//!

pub mod control;
