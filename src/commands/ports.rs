//! `jadoube ports`: the serial devices, and what answers on them.

use super::Failure;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Find out which board stands on which table, by lifting a piece there
    #[arg(long)]
    pub assign: bool,
}

pub fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::failed("ports is not built yet"))
}
