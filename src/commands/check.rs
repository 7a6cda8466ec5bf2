//! `jadoube check`: would `run` work with this configuration?

use std::path::PathBuf;

use super::{DEFAULT_CONFIG, Failure};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CONFIG)]
    pub config: PathBuf,
}

pub fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::failed("check is not built yet"))
}
