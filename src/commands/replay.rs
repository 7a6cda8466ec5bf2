//! `jadoube replay`: traces through the pipeline in virtual time.

use std::path::PathBuf;

use super::Failure;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The traces, replayed one after the other, each from a clean state
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    /// Print each publication as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// Print every stage, interleaved
    #[arg(long, conflicts_with_all = ["json", "summary", "pgn"])]
    pub stages: bool,
    /// Print one line of JSON a trace: games, alerts, plies, counts
    #[arg(long, conflicts_with_all = ["json", "pgn"])]
    pub summary: bool,
    /// Print the games as PGN
    #[arg(long, conflicts_with = "json")]
    pub pgn: bool,
    /// The language of the letters for the pieces
    #[arg(long, value_name = "LANG")]
    pub notation: Option<String>,
    /// Take what the traces do not say from this configuration
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

pub fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::failed("replay is not built yet"))
}
