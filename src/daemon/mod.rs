//! All input and output of `run`.

pub mod backoff;
pub mod mqtt;
