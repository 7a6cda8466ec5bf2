//! The configuration of `run`: a TOML file, or the few arguments that do without one.
//!
//! Each value is read into its own type here, so that whoever has a [`Config`] need not check it again. Unknown keys are
//! refused: a mistyped one would be a setting that nobody applies. The section `[hub]` belongs to the command of that name; it
//! is accepted and left unread. `systemd/jadoube.toml` explains every key; a new key is written there too.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Millis;
use crate::board::OrientationSetting;
use crate::clock::ClockSide;
use crate::clock::control::TimeControl;
use crate::game::Arming;
use crate::laws::ruleset::{Rules, Ruleset, Variant};
use crate::reading::in_words;
use crate::sensing::Timing;
use crate::session::{self, ResultByKings};
use crate::wire::Family;

mod file;
mod values;

use file::{File, advice_for, mqtt, tables};
pub use values::{BrokerUrl, BrokerUrlError, MqttVersion, Name, NameError};

/// Everything that `run` is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Topic level.
    pub event: Name,
    /// Topic level.
    pub node: Name,
    /// Where the record, the outbox, PGN files and traces are kept.
    pub state_dir: PathBuf,
    pub mqtt: Mqtt,
    /// What a table has that says nothing else.
    pub defaults: Settings,
    pub tables: Vec<Table>,
}

/// How the broker is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Mqtt {
    pub url: BrokerUrl,
    /// The first levels of all topics.
    pub base: String,
    pub version: MqttVersion,
    pub username: Option<String>,
    /// See [`read_password`].
    pub password_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
}

/// One table, with what it takes from the defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub name: Name,
    pub device: Device,
    pub settings: Settings,
}

/// Which board stands on a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Device {
    /// The only board that no other table names.
    Auto,
    /// The board with this serial number of its own, wherever it is plugged in.
    Serial(String),
    /// Whatever is plugged in there.
    Port(PathBuf),
}

/// What can be set for one table or for all.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub ruleset: Ruleset,
    pub variant: Variant,
    /// Whether the arbiters are enough for the Laws of standard play to apply in rapid and blitz (2023: A.4, B.2).
    pub supervised: bool,
    /// Nothing is compared with a control where there is none.
    pub time_control: Option<TimeControl>,
    /// `None`: found out.
    pub board: Option<Family>,
    pub orientation: OrientationSetting,
    pub white_clock_side: ClockSide,
    /// `None`: `auto`, until somebody sends a pairing for the table.
    pub arming: Option<Arming>,
    pub result_by_kings: ResultByKings,
    /// Delays `pgn` and the archive.
    pub pgn_delay_s: u32,
    /// Whether commands may set and stop the clock on the board's cable.
    pub clock_control: bool,
    /// Whether each game's trace is kept.
    pub record: bool,
    /// Whether each lift and place is published.
    pub publish_touches: bool,
    /// How long the board must be quiet before a move is shown.
    pub settle_ms: Millis,
    /// How long a man that could go on is waited for.
    pub hold_ms: Millis,
}

/// Why a configuration cannot be used: where, what is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    path: Option<PathBuf>,
    place: Option<Place>,
    what: String,
    advice: String,
}

/// A place in a file; both count from 1, and a column is a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl Config {
    /// Reads a file. Relative paths in it start at its own folder.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let bytes = fs::read(path).map_err(|error| {
            let advice = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "Copy the example jadoube.toml there, name another file with --config, or do without one: \
                     jadoube run --port auto --table 1 --broker mqtt://127.0.0.1:1883"
                }
                std::io::ErrorKind::PermissionDenied => "Let the user that runs jadoube read it.",
                _ => "Name a readable file with --config.",
            };
            ConfigError::new(format!("cannot be read: {error}"), advice)
                .in_file(path)
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let readable = String::from_utf8_lossy(&error.as_bytes()[..good]).into_owned();
            ConfigError::new("not UTF-8", "Save the file as UTF-8.")
                .at(&readable, readable.len())
                .in_file(path)
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Config::parse(&text, folder).map_err(|error| error.in_file(path))
    }

    /// Reads the text of a file that lies in `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Config, ConfigError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let advice = advice_for(error.message());
            let what = in_words(error.message());
            let place = error.span().map(|span| span.start);
            let error = ConfigError::new(what, advice);
            match place {
                Some(offset) => error.at(text, offset),
                None => error,
            }
        })?;
        let defaults = match &file.defaults {
            Some(section) => section.over(&Settings::default()),
            None => Settings::default(),
        };
        let tables = tables(text, &file.table, &defaults)?;
        Ok(Config {
            event: file.event.unwrap_or_else(default_event),
            node: file.node.unwrap_or_else(own_host_name),
            state_dir: file
                .state_dir
                .map_or_else(default_state_dir, |dir| folder.join(dir)),
            mqtt: mqtt(text, file.mqtt, folder)?,
            defaults,
            tables,
        })
    }

    /// The configuration of `run` without a file: one table, one board, one broker.
    ///
    /// `port` is `auto` or a path; the table is `1` and the broker the one of this machine unless said otherwise. The state goes
    /// where a user may write.
    pub fn from_args(
        port: Option<&str>,
        table: Option<&str>,
        broker: Option<&str>,
    ) -> Result<Config, ConfigError> {
        let device = match port {
            None | Some("auto") => Device::Auto,
            Some("") => {
                return Err(ConfigError::new(
                    "--port: no port is named",
                    "Say --port auto, or name a device that jadoube ports lists.",
                ));
            }
            Some(path) => Device::Port(path.into()),
        };
        let name = table.unwrap_or("1").parse::<Name>().map_err(|error| {
            ConfigError::new(
                format!("--table: {error}"),
                "Use the number or a short name of the table: it becomes a level of the topics.",
            )
        })?;
        let defaults = Settings::default();
        let mut config = Config {
            event: default_event(),
            node: own_host_name(),
            state_dir: users_state_dir(),
            mqtt: Mqtt::default(),
            tables: vec![Table {
                name,
                device,
                settings: defaults.clone(),
            }],
            defaults,
        };
        if let Some(broker) = broker {
            config.use_broker(broker)?;
        }
        Ok(config)
    }

    /// Takes the broker of the command line in place of the configured one.
    pub fn use_broker(&mut self, url: &str) -> Result<(), ConfigError> {
        self.mqtt.url = url.parse().map_err(|error: BrokerUrlError| {
            ConfigError::new(format!("--broker: {error}"), BROKER_ADVICE)
        })?;
        Ok(())
    }
}

/// Reads the password of the broker: what the file holds, without the space and line break around it.
pub fn read_password(path: &Path) -> Result<String, ConfigError> {
    let refused = |what: String, advice: &str| {
        Err(ConfigError::new(format!("password_file {what}"), advice).in_file(path))
    };
    match fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => refused(
            "is empty".into(),
            "Write the password into it, on one line.",
        ),
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) => refused(
            format!("cannot be read: {error}"),
            "Write the password into it, on one line, and let only the user that runs jadoube read it.",
        ),
    }
}

impl ConfigError {
    /// What to do about it, as a sentence.
    pub fn advice(&self) -> &str {
        &self.advice
    }

    pub fn place(&self) -> Option<Place> {
        self.place
    }

    fn new(what: impl Into<String>, advice: impl Into<String>) -> ConfigError {
        ConfigError {
            path: None,
            place: None,
            what: what.into(),
            advice: advice.into(),
        }
    }

    fn at(mut self, text: &str, offset: usize) -> ConfigError {
        self.place = Some(Place::of(text, offset));
        self
    }

    fn in_file(mut self, path: &Path) -> ConfigError {
        self.path = Some(path.to_owned());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(Place { line, column }) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ConfigError {}

impl Settings {
    /// What they come to for the session of a table.
    pub fn session(&self, table: &str) -> session::Settings {
        let usual = Timing::default();
        session::Settings {
            timing: Timing {
                settle: self.settle_ms,
                // Whoever is short of time is never waited for longer than everybody.
                settle_short: usual.settle_short.min(self.settle_ms),
                hold: self.hold_ms,
                hold_short: usual.hold_short.min(self.hold_ms),
                ..usual
            },
            orientation: self.orientation,
            white_clock_side: self.white_clock_side,
            arming: self.arming,
            rules: Rules {
                ruleset: self.ruleset,
                variant: self.variant,
                supervised: self.supervised,
            },
            time_control: self.time_control.clone(),
            kings: self.result_by_kings,
            publish_touches: self.publish_touches,
            family: self.board.unwrap_or_default(),
            takes_all: self.board.is_none(),
            ..session::Settings::new(table)
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            ruleset: Ruleset::default(),
            variant: Variant::default(),
            supervised: true,
            time_control: None,
            board: None,
            orientation: OrientationSetting::Auto,
            white_clock_side: ClockSide::Auto,
            arming: None,
            result_by_kings: ResultByKings::Accept,
            pgn_delay_s: 0,
            clock_control: false,
            record: true,
            publish_touches: false,
            settle_ms: 250,
            hold_ms: 350,
        }
    }
}

impl Default for Mqtt {
    fn default() -> Mqtt {
        Mqtt {
            url: BrokerUrl::default(),
            base: "jadoube/v1".into(),
            version: MqttVersion::V5,
            username: None,
            password_file: None,
            cert_file: None,
            key_file: None,
            ca_file: None,
        }
    }
}

/// The broker of this machine.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Serial(serial) => write!(f, "serial number {serial}"),
            Device::Port(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Place {
    fn of(text: &str, offset: usize) -> Place {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

fn default_event() -> Name {
    Name("open".into())
}

/// The host name made to fit: what comes before its first dot.
fn own_host_name() -> Name {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().split('.').next().unwrap_or_default();
    Name::fitted(name, "node")
}

/// That which the unit's `StateDirectory=` made, or where it would be.
fn default_state_dir() -> PathBuf {
    match std::env::var_os("STATE_DIRECTORY") {
        // systemd separates several by colons; the unit has one.
        Some(dir) if !dir.is_empty() => dir.into(),
        _ => "/var/lib/jadoube".into(),
    }
}

/// As the XDG base directory specification has it: without a file it is a person who tries something, not a service.
fn users_state_dir() -> PathBuf {
    let variable = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    variable("STATE_DIRECTORY")
        .or_else(|| variable("XDG_STATE_HOME").map(|dir| dir.join("jadoube")))
        .or_else(|| variable("HOME").map(|dir| dir.join(".local/state/jadoube")))
        .unwrap_or_else(default_state_dir)
}

const BROKER_ADVICE: &str = "Say --broker mqtt://HOST:1883; a broker with TLS is reached through one on this machine that bridges to it.";

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    const EXAMPLE: &str = include_str!("../systemd/jadoube.toml");

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("/etc/jadoube"))
    }

    #[test]
    fn an_empty_file_is_all_defaults() {
        let config = parse("").unwrap();
        assert_eq!(config.event.as_str(), "open");
        assert_eq!(config.mqtt, Mqtt::default());
        assert_eq!(config.mqtt.url.to_string(), "mqtt://127.0.0.1:1883");
        assert_eq!(config.defaults, Settings::default());
        assert!(config.tables.is_empty());
    }

    #[test]
    fn a_table_says_what_differs_from_the_defaults() {
        let config = parse(
            r#"
            event = "spring-open"
            node  = "pi07"
            state_dir = "state"
            [mqtt]
            url  = "mqtt://[::1]:1884/"
            base = "club/chess"
            version = 4
            username = "pi07"
            password_file = "secret"
            [defaults]
            ruleset = "fide-2009"
            variant = "rapid"
            supervised = false
            time_control = "40/5400+30:1800+30"
            board = "dgt"
            settle_ms = 100
            [[table]]
            name  = "12"
            serial = "3000147740"
            [[table]]
            name = "13"
            port = "/dev/serial/by-id/usb-DGT"
            board = "auto"
            orientation = "rotated"
            white_clock_side = "left"
            arming = "manual"
            result_by_kings = "propose"
            pgn_delay_s = 900
            clock_control = true
            record = false
            publish_touches = true
            settle_ms = 300
            hold_ms = 0
            variant = "blitz"
            [hub]
            anything = { goes = ["here"] }
            "#,
        )
        .unwrap();
        assert_eq!(config.state_dir, Path::new("/etc/jadoube/state"));
        assert_eq!(config.mqtt.url.host, "::1");
        assert_eq!(config.mqtt.url.to_string(), "mqtt://[::1]:1884");
        assert_eq!(config.mqtt.version, MqttVersion::V4);
        let secret = config.mqtt.password_file.as_deref();
        assert_eq!(secret, Some(Path::new("/etc/jadoube/secret")));
        let defaults = Settings {
            ruleset: Ruleset::Fide2009,
            variant: Variant::Rapid,
            supervised: false,
            time_control: "40/5400+30:1800+30".parse().ok(),
            board: Some(Family::Dgt),
            settle_ms: 100,
            ..Settings::default()
        };
        assert_eq!(config.defaults, defaults);
        let [twelve, thirteen] = &config.tables[..] else {
            panic!("two tables: {:?}", config.tables);
        };
        assert_eq!(twelve.name.as_str(), "12");
        assert_eq!(twelve.device, Device::Serial("3000147740".into()));
        assert_eq!(twelve.settings, defaults);
        let port = Device::Port("/dev/serial/by-id/usb-DGT".into());
        assert_eq!(thirteen.device, port);
        let wanted = Settings {
            board: None,
            orientation: OrientationSetting::Rotated,
            white_clock_side: ClockSide::Left,
            arming: Some(Arming::Manual),
            result_by_kings: ResultByKings::Propose,
            pgn_delay_s: 900,
            clock_control: true,
            record: false,
            publish_touches: true,
            settle_ms: 300,
            hold_ms: 0,
            variant: Variant::Blitz,
            ..defaults
        };
        assert_eq!(thirteen.settings, wanted);
    }

    #[test]
    fn the_shipped_example_is_a_configuration() {
        let config = parse(EXAMPLE).unwrap();
        assert_eq!(config.tables.len(), 1);
        assert_eq!(config.tables[0].device, Device::Auto);
        assert_eq!(config.defaults, Settings::default());
    }

    #[test]
    fn the_shipped_example_tells_the_defaults_and_knows_every_key() {
        // A key behind "#" without a space is one that can be switched on.
        let switched_on: Vec<&str> = EXAMPLE
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => rest,
                _ => line,
            })
            // These contradict others of the example, or need TLS.
            .filter(|line| !line.starts_with("port =") && !line.contains("_file = \"node."))
            .filter(|line| !line.starts_with("ca_file"))
            .collect();
        let config = parse(&switched_on.join("\n")).unwrap();
        let wanted = Settings {
            time_control: "40/5400+30:1800+30".parse().ok(),
            arming: Some(Arming::Auto),
            ..Settings::default()
        };
        assert_eq!(config.defaults, wanted);
        assert_eq!(config.event, default_event());
        assert_eq!(config.mqtt.url, BrokerUrl::default());
        assert_eq!(config.mqtt.base, Mqtt::default().base);
        assert_eq!(config.mqtt.version, MqttVersion::default());

        // The reader's own complaint lists the keys of each section.
        for section in ["", "[mqtt]\n", "[defaults]\n", "[[table]]\nname = \"1\"\n"] {
            let error = parse(&format!("{section}no_such_key = 1")).unwrap_err();
            let keys = error
                .what
                .strip_prefix("unknown key \"no_such_key\"; ")
                .and_then(|rest| rest.strip_suffix(" is expected"))
                .unwrap();
            for key in keys.split(", ").flat_map(|keys| keys.split(" or ")) {
                let stands = EXAMPLE.lines().any(|line| {
                    let line = line.trim_start_matches('#');
                    line.starts_with(&format!("{key} = ")) || line.contains(&format!("[{key}]"))
                });
                assert!(stands, "{key} of {section:?} is not in the example");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, place, what, advice) in [
            (
                "event = \"Spring Open\"",
                (1, 9),
                "\"Spring Open\" is no name",
                "Correct this line",
            ),
            ("node = \"\"", (1, 8), "is no name", "Correct this line"),
            (
                "evnt = \"x\"",
                (1, 1),
                "unknown key \"evnt\"; event, node",
                "Correct the name",
            ),
            ("event = x", (1, 9), "", "Correct this line"),
            ("# ä\n[mqtt\n", (2, 6), "", "Correct this line"),
            (
                "[mqtt]\npassword = \"x\"",
                (2, 1),
                "unknown key \"password\"",
                "password_file = ",
            ),
            (
                "[mqtt]\nurl = \"mqtts://x\"",
                (2, 7),
                "no TLS yet",
                "bridge",
            ),
            (
                "[mqtt]\nurl = \"http://x\"",
                (2, 7),
                "mqtt://host:1883 is expected",
                "Correct this line",
            ),
            (
                "[mqtt]\nurl = \"mqtt://me:pw@x\"",
                (2, 7),
                "must not hold",
                "password_file",
            ),
            (
                "[mqtt]\nbase = \"a/#\"",
                (2, 8),
                "is no topic",
                "Correct this line",
            ),
            (
                "[mqtt]\nversion = 3",
                (2, 11),
                "version 3 of MQTT",
                "Correct this line",
            ),
            (
                "[mqtt]\nca_file = \"x\"",
                (2, 11),
                "ca_file is for mqtts://",
                "Take it out",
            ),
            (
                "[mqtt]\npassword_file = \"x\"",
                (2, 17),
                "no username",
                "username",
            ),
            (
                "[defaults]\nvariant = \"bullet\"",
                (2, 11),
                "unknown variant \"bullet\"",
                "Correct this line",
            ),
            (
                "[defaults]\norientation = \"left\"",
                (2, 15),
                "\"left\" is given, but",
                "Correct this line",
            ),
            (
                "[defaults]\nboard = \"abacus\"",
                (2, 9),
                "board \"abacus\": auto | dgt | ",
                "Correct this line",
            ),
            (
                "[defaults]\nruleset = \"FIDE\"",
                (2, 11),
                "unknown ruleset \"FIDE\"",
                "Correct this line",
            ),
            (
                "[defaults]\ntime_control = \"2 h\"",
                (2, 16),
                "\"2 h\" in time control",
                "Correct this line",
            ),
            (
                "[defaults]\nsettle_ms = -1",
                (2, 13),
                "0 to 10000 are expected",
                "Correct this line",
            ),
            (
                "[defaults]\npgn_delay_s = 86401",
                (2, 15),
                "0 to 86400 are expected",
                "Correct this line",
            ),
            (
                "[defaults]\nsupervised = \"yes\"",
                (2, 14),
                "true or false is expected",
                "Correct this line",
            ),
            (
                "[defaults]\nserial = \"1\"",
                (2, 1),
                "unknown key \"serial\"",
                "Correct the name",
            ),
            (
                "[[table]]\nname = 12",
                (2, 8),
                "text in double quotes is expected",
                "quotes",
            ),
            (
                "[[table]]\nname = \"1\"\nserial = 30001",
                (3, 10),
                "text in double quotes is expected",
                "quotes",
            ),
            (
                "[[table]]\nname = \"1\"\nserial = \"no 5\"",
                (3, 10),
                "no serial number",
                "jadoube ports",
            ),
            (
                "[[table]]\nname = \"1\"\nport = \"ttyUSB0\"",
                (3, 8),
                "neither auto nor",
                "jadoube ports",
            ),
            (
                "[[table]]\nport = \"auto\"",
                (1, 1),
                "name is missing",
                "number or name",
            ),
            (
                "[[table]]\nname = \"1\"\nserial = \"5\"\nport = \"auto\"",
                (4, 8),
                "table 1 has both serial and port",
                "Keep serial",
            ),
            (
                "[[table]]\nname = \"1\"\n[[table]]\nname = \"1\"\n",
                (4, 8),
                "table 1 was described before, in line 2",
                "a name of its own",
            ),
            (
                "[[table]]\nname = \"1\"\nserial = \"5\"\n[[table]]\nname = \"2\"\nserial = \"5\"",
                (6, 10),
                "tables 1 and 2 have the same board (serial number 5)",
                "one table",
            ),
            (
                "[[table]]\nname = \"1\"\nport = \"/dev/x\"\n[[table]]\nname = \"2\"\nport = \"/dev/x\"",
                (6, 8),
                "tables 1 and 2 have the same board (/dev/x)",
                "one table",
            ),
            (
                "[[table]]\nname = \"1\"\n[[table]]\nname = \"2\"\nport = \"auto\"",
                (5, 8),
                "tables 1 and 2 both take whatever board there is",
                "by serial or port",
            ),
        ] {
            let error = parse(text).unwrap_err();
            let (line, column) = place;
            assert_eq!(
                error.place,
                Some(Place { line, column }),
                "{text:?}: {error}"
            );
            assert!(error.to_string().contains(what), "{text:?}: {error}");
            assert!(error.advice.contains(advice), "{text:?}: {}", error.advice);
            assert!(!error.to_string().contains('\n'), "{error}");
            assert!(!error.to_string().contains("pw"), "{error}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jadoube.toml");
        let error = Config::load(&path).unwrap_err();
        assert!(
            error.to_string().contains("jadoube.toml: cannot be read"),
            "{error}"
        );
        assert!(error.advice().contains("--port auto"), "{}", error.advice());
        fs::write(&path, b"# \xc3\xa4 \xff\n").unwrap();
        let error = Config::load(&path).unwrap_err();
        assert_eq!(error.place(), Some(Place { line: 1, column: 5 }));
        fs::write(&path, "[[table]]\nname = \"1\"\n").unwrap();
        assert_eq!(Config::load(&path).unwrap().tables.len(), 1);
    }

    #[test]
    fn arguments_do_without_a_file() {
        let config = Config::from_args(Some("auto"), Some("7"), Some("mqtt://broker")).unwrap();
        assert_eq!(config.mqtt.url.to_string(), "mqtt://broker:1883");
        assert_eq!(config.tables[0].name.as_str(), "7");
        assert_eq!(config.tables[0].device, Device::Auto);
        let config = Config::from_args(Some("link"), None, None).unwrap();
        assert_eq!(config.tables[0].name.as_str(), "1");
        assert_eq!(config.tables[0].device, Device::Port("link".into()));
        for (port, table, broker, what) in [
            ("", "1", "mqtt://x", "--port"),
            ("auto", "Table 1", "mqtt://x", "--table"),
            ("auto", "1", "x", "--broker"),
        ] {
            let error = Config::from_args(Some(port), Some(table), Some(broker)).unwrap_err();
            assert!(error.to_string().starts_with(what), "{error}");
        }
    }

    #[test]
    fn a_password_is_read_without_its_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        assert!(
            read_password(&path)
                .unwrap_err()
                .to_string()
                .contains("password_file cannot")
        );
        fs::write(&path, "\n").unwrap();
        assert!(
            read_password(&path)
                .unwrap_err()
                .to_string()
                .contains("is empty")
        );
        fs::write(&path, "two words\r\n").unwrap();
        assert_eq!(read_password(&path).unwrap(), "two words");
    }

    proptest! {
        #[test]
        fn any_host_name_fits(text in any::<String>()) {
            let name = Name::fitted(&text, "node");
            prop_assert!(name.as_str().parse::<Name>().is_ok(), "{}", name);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "([a-z_\\[\\]]{1,12}( = (\"\\PC{0,8}\"|[0-9-]{1,9}))?\n){0,6}") {
            let _ = parse(&text);
        }

        #[test]
        fn any_address_is_read_or_refused(text in "(mqtts?://)?[\\PC\\[\\]:@/]{0,20}") {
            if let Ok(url) = text.parse::<BrokerUrl>() {
                prop_assert_eq!(url.to_string().parse(), Ok(url));
            }
        }
    }
}
