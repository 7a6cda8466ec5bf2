//! The Laws of Chess as pure judgements: what may be played from a position, why something may not, and what has ended.
//!
//! Nothing here holds state or sees a sensor.

pub mod illegal;
pub mod position;
pub mod ruleset;
