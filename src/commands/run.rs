//! `jadoube run`: the daemon that reads the boards of this machine.

use std::path::{Path, PathBuf};

use super::stop::Stop;
use super::{DEFAULT_CONFIG, Failure};
use crate::config::Config;
use crate::daemon::node::{self, Parts, StartError};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration [default: /etc/jadoube/jadoube.toml, or none where --port says all]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["port", "table"])]
    pub config: Option<PathBuf>,
    /// The serial port of the only board, or auto; no configuration is read then: the event is "open", the node this machine's
    /// host name, and records go to $XDG_STATE_HOME/jadoube, else ~/.local/state/jadoube
    #[arg(long, value_name = "P")]
    pub port: Option<String>,
    /// The name of that board's table [default: 1]
    #[arg(long, value_name = "T", requires = "port")]
    pub table: Option<String>,
    /// The broker, instead of the configured one: mqtt://HOST or mqtt://HOST:PORT [default: mqtt://127.0.0.1:1883]
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
    let config = args.configuration()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The loop of the node, and beside it whatever waits for ports and sockets.
        .worker_threads(2)
        .enable_all()
        .build()?;
    let ran = runtime.block_on(async {
        // From here on a signal ends the daemon in good order, and no longer the process.
        let mut stop = Stop::new()?;
        let shutdown = async move { stop.wanted().await };
        node::run(config, Parts::default(), shutdown)
            .await
            .map_err(unstarted)
    });
    // A thread that waits for a port that is gone is not waited for.
    runtime.shutdown_background();
    ran
}

fn unstarted(error: StartError) -> Failure {
    let advice = error.advice();
    Failure::config(error).advise(advice)
}
