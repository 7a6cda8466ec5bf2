//! `jadoube run`: the daemon that reads the boards of this machine.

use std::path::PathBuf;

use super::Failure;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration; /etc/jadoube/jadoube.toml unless given, or none where --port says all
    #[arg(long, value_name = "FILE", conflicts_with_all = ["port", "table"])]
    pub config: Option<PathBuf>,
    /// The serial port of the only board, or auto; no configuration is read then
    #[arg(long, value_name = "P")]
    pub port: Option<String>,
    /// The name of that board's table
    #[arg(long, value_name = "T", requires = "port")]
    pub table: Option<String>,
    /// The broker, instead of the configured one: mqtt://host:1883
    #[arg(long, value_name = "URL")]
    pub broker: Option<String>,
}

pub fn run(_args: Args) -> Result<(), Failure> {
    Err(Failure::failed("run is not built yet"))
}
