//! All input and output of `run`: the broker and the serial ports. Rules live elsewhere.

pub mod backoff;
pub mod mqtt;
pub mod serial;
