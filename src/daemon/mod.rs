//! All input and output of `run`: the serial ports, the broker, the files, and the loop that ties them together. Rules live elsewhere.

mod archives;
pub mod backoff;
pub mod desk;
pub mod files;
mod inbox;
pub mod mqtt;
pub mod node;
pub mod orders;
pub mod serial;
pub mod store;
