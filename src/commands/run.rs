//! `jadoube run`: the daemon that reads the boards of this machine.

use std::path::{Path, PathBuf};

use super::{DEFAULT_CONFIG, Failure};
use crate::config::Config;

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

impl Args {
    /// What the arguments and the file say, arguments first.
    fn configuration(&self) -> Result<Config, Failure> {
        if let Some(port) = &self.port {
            return Config::from_args(Some(port), self.table.as_deref(), self.broker.as_deref())
                .map_err(Failure::usage);
        }
        let path = self.config.as_deref();
        let mut config = Config::load(path.unwrap_or(Path::new(DEFAULT_CONFIG)))?;
        if let Some(broker) = &self.broker {
            config.use_broker(broker).map_err(Failure::usage)?;
        }
        Ok(config)
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    let _config = args.configuration()?;
    Err(Failure::failed("run is not built yet"))
}
