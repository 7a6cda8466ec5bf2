//! `jadoube demo`: everything on one machine, with nothing installed.

use std::path::PathBuf;

use super::Failure;
use crate::trace::Family;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many boards play
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    pub boards: u16,
    /// The make of the boards
    #[arg(long, value_name = "FAMILY", default_value_t = Family::Dgt)]
    pub board: Family,
    /// Play a named scene instead of whole games
    #[arg(long, value_name = "NAME", conflicts_with = "pgn")]
    pub scene: Option<String>,
    /// How fast time goes: 1 is real time, 10 ten times as fast
    #[arg(long, value_name = "X", value_parser = super::speed)]
    pub speed: Option<f64>,
    /// Play the games of this file
    #[arg(long, value_name = "FILE")]
    pub pgn: Option<PathBuf>,
    /// End after the games
    #[arg(long)]
    pub once: bool,
}

pub fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::failed("demo is not built yet"))
}
