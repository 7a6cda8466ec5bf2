//! `jadoube simulate`: games on a virtual board behind a pty.

use std::path::PathBuf;

use super::Failure;
use crate::trace::Family;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The games to play, one after the other
    #[arg(long, value_name = "FILE")]
    pub pgn: PathBuf,
    /// The make of the board
    #[arg(long, value_name = "FAMILY", default_value_t = Family::Dgt)]
    pub board: Family,
    /// A symbolic link to the pty, so that its name is known beforehand
    #[arg(long, value_name = "PATH")]
    pub link: Option<PathBuf>,
    /// How fast time goes: 1 is real time, 10 ten times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = super::speed)]
    pub speed: f64,
    /// How the players handle the men
    #[arg(long, value_name = "HANDS", value_enum, default_value_t = Hands::Human)]
    pub hands: Hands,
    /// Picks the chances; the same number plays the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The serial number that the virtual board tells
    #[arg(long, value_name = "N")]
    pub serial: Option<String>,
    /// The time control, as in PGN; that of the game unless given
    #[arg(long, value_name = "CONTROL")]
    pub time_control: Option<String>,
}

/// How the players handle the men.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Hands {
    /// Each man straight from square to square
    Clean,
    /// As people do: sliding, adjusting, captures in any order
    Human,
    /// In a hurry
    Blitz,
    /// With what goes wrong in boards and cables
    Faulty,
}

pub fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::failed("simulate is not built yet"))
}
