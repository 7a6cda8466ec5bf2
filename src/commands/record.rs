//! `jadoube record`: the raw trace of a port.

use std::path::PathBuf;

use super::Failure;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The serial port of the board
    #[arg(long, value_name = "P")]
    pub port: String,
    /// The trace to write; must not exist yet
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

pub fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::failed("record is not built yet"))
}
