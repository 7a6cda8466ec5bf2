//! Whether a node can start with a configuration, and what is said when it does.

use tracing::{error, info, warn};

use crate::board;
use crate::config::{self, Config, ConfigError};
use crate::daemon::files::try_folder;
use crate::daemon::mqtt::{self, SettingsError};
use crate::daemon::orders;
use crate::wire::Family;

/// Why a node does not start. All of it is in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("[mqtt]: {0}")]
    Mqtt(#[from] SettingsError),
    #[error("no table is configured")]
    NoTable,
    #[error("table {table}: boards of family {family} cannot be read yet")]
    Family { table: String, family: Family },
}

impl StartError {
    /// What to do about it, as a sentence.
    pub fn advice(&self) -> String {
        match self {
            StartError::Config(error) => error.advice().to_owned(),
            StartError::Mqtt(_) => "Correct the section [mqtt] of the configuration.".to_owned(),
            StartError::NoTable => {
                "Add a [[table]] with its name, or say --port auto --table 1.".to_owned()
            }
            StartError::Family { .. } => {
                let all = Family::ALL.iter();
                all.filter(|family| board::is_supported(**family))
                    .fold("Say board = \"auto\"".to_owned(), |advice, family| {
                        format!("{advice} or board = \"{family}\"")
                    })
                    + "."
            }
        }
    }
}

/// Everything in a configuration for which [`super::run`] would not start, found before anything is opened.
pub fn refusals(config: &Config) -> Vec<StartError> {
    let mut refusals = Vec::new();
    match mqtt_settings(config, "") {
        Ok(settings) => refusals.extend(settings.check().err().map(StartError::Mqtt)),
        Err(error) => refusals.push(error),
    }
    if config.tables.is_empty() {
        refusals.push(StartError::NoTable);
    }
    for table in &config.tables {
        let family = table.settings.board;
        if let Some(family) = family.filter(|family| !board::is_supported(*family)) {
            refusals.push(StartError::Family {
                table: table.name.to_string(),
                family,
            });
        }
    }
    refusals
}

/// How the broker is reached for a moment, beside a daemon that may be at work: with its credentials, but not as the node.
pub fn visitor_settings(config: &Config) -> Result<mqtt::Settings, StartError> {
    let settings = mqtt::Settings {
        subscriptions: Vec::new(),
        is_node: false,
        ..mqtt_settings(config, "")?
    };
    settings.check()?;
    Ok(settings)
}

pub(super) fn mqtt_settings(config: &Config, boot: &str) -> Result<mqtt::Settings, StartError> {
    let url = &config.mqtt.url;
    let password = match &config.mqtt.password_file {
        Some(path) => Some(config::read_password(path)?),
        None => None,
    };
    Ok(mqtt::Settings {
        base: config.mqtt.base.clone(),
        boot: boot.to_owned(),
        username: config.mqtt.username.clone(),
        password,
        version: match config.mqtt.version {
            config::MqttVersion::V4 => 4,
            config::MqttVersion::V5 => 5,
        },
        busy: orders::busy,
        ..mqtt::Settings::node(&url.host, url.port, &config.event, &config.node)
            .with_tables(config.tables.iter().map(|table| &table.name))
    })
}

/// What somebody who reads along needs to know, and what will not work.
pub(super) fn tell_beginning(config: &Config, settings: &mqtt::Settings) {
    let prefix = settings.prefix();
    let node = &config.node;
    info!(
        "node {node}, broker {}:{}, records under {}",
        settings.host,
        settings.port,
        config.state_dir.display()
    );
    info!(
        "read along: mosquitto_sub -h {} -p {} -v -t '{prefix}edge/{node}/#'",
        settings.host, settings.port
    );
    for table in &config.tables {
        let name = &table.name;
        info!(
            "table {name}: {prefix}edge/{node}/board/{name}/…, its pairing {prefix}core/table/{name}"
        );
        if table.settings.clock_control {
            warn!("table {name}: clock_control has no effect yet: the clock is only read");
        }
    }
    if let Err(refusal) = try_folder(&config.state_dir) {
        error!(
            "{}: no trace and no PGN file is kept. {}",
            refusal.reason, refusal.advice
        );
    }
}
