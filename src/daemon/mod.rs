//! All input and output of `run`.

pub mod serial;
