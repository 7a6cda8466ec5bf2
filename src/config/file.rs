//! The file as it is written, and what is wrong with it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use super::{BrokerUrl, ConfigError, Device, Mqtt, MqttVersion, Name, Place, Settings, Table};
use crate::Millis;
use crate::board::OrientationSetting;
use crate::clock::ClockSide;
use crate::clock::control::TimeControl;
use crate::game::Arming;
use crate::laws::ruleset::{Ruleset, Variant};
use crate::session::ResultByKings;
use crate::wire::Family;

/// The file as it is written; everything may be missing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) event: Option<Name>,
    pub(super) node: Option<Name>,
    #[serde(default, deserialize_with = "path")]
    pub(super) state_dir: Option<PathBuf>,
    #[serde(default)]
    pub(super) mqtt: MqttSection,
    pub(super) defaults: Option<DefaultsSection>,
    #[serde(default)]
    pub(super) table: Vec<TableSection>,
    /// That of another command; only known here so that one file can serve both.
    #[serde(rename = "hub")]
    pub(super) _hub: Option<toml::Table>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MqttSection {
    #[serde(deserialize_with = "parsed")]
    url: Option<BrokerUrl>,
    #[serde(deserialize_with = "base")]
    base: Option<String>,
    #[serde(deserialize_with = "mqtt_version")]
    version: Option<MqttVersion>,
    username: Option<String>,
    password_file: Option<Spanned<PathBuf>>,
    cert_file: Option<Spanned<PathBuf>>,
    key_file: Option<Spanned<PathBuf>>,
    ca_file: Option<Spanned<PathBuf>>,
}

/// Declares a section with the keys of [`Settings`] and some of its own.
macro_rules! settings_section {
    ($name:ident { $($(#[$meta:meta])* $key:ident: $type:ty,)* }) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$meta])* $key: $type,)*
            #[serde(default, deserialize_with = "parsed")]
            ruleset: Option<Ruleset>,
            #[serde(default, deserialize_with = "parsed")]
            variant: Option<Variant>,
            supervised: Option<bool>,
            #[serde(default, deserialize_with = "parsed")]
            time_control: Option<TimeControl>,
            #[serde(default, deserialize_with = "board")]
            board: Option<Option<Family>>,
            orientation: Option<OrientationSetting>,
            white_clock_side: Option<ClockSide>,
            arming: Option<Arming>,
            result_by_kings: Option<ResultByKings>,
            #[serde(default, deserialize_with = "pgn_delay")]
            pgn_delay_s: Option<u32>,
            clock_control: Option<bool>,
            record: Option<bool>,
            publish_touches: Option<bool>,
            #[serde(default, deserialize_with = "short_time")]
            settle_ms: Option<Millis>,
            #[serde(default, deserialize_with = "short_time")]
            hold_ms: Option<Millis>,
        }

        impl $name {
            /// These settings where they are given, the others where not.
            pub(super) fn over(&self, others: &Settings) -> Settings {
                Settings {
                    ruleset: self.ruleset.unwrap_or(others.ruleset),
                    variant: self.variant.unwrap_or(others.variant),
                    supervised: self.supervised.unwrap_or(others.supervised),
                    time_control: self.time_control.clone().or_else(|| others.time_control.clone()),
                    board: self.board.unwrap_or(others.board),
                    orientation: self.orientation.unwrap_or(others.orientation),
                    white_clock_side: self.white_clock_side.unwrap_or(others.white_clock_side),
                    arming: self.arming.or(others.arming),
                    result_by_kings: self.result_by_kings.unwrap_or(others.result_by_kings),
                    pgn_delay_s: self.pgn_delay_s.unwrap_or(others.pgn_delay_s),
                    clock_control: self.clock_control.unwrap_or(others.clock_control),
                    record: self.record.unwrap_or(others.record),
                    publish_touches: self.publish_touches.unwrap_or(others.publish_touches),
                    settle_ms: self.settle_ms.unwrap_or(others.settle_ms),
                    hold_ms: self.hold_ms.unwrap_or(others.hold_ms),
                }
            }
        }
    };
}

settings_section!(DefaultsSection {});

settings_section!(TableSection {
    name: Spanned<Name>,
    serial: Option<Spanned<String>>,
    port: Option<Spanned<PathBuf>>,
});

/// Fills in what the tables take from the defaults, and checks that no two want the same.
pub(super) fn tables(
    text: &str,
    sections: &[TableSection],
    defaults: &Settings,
) -> Result<Vec<Table>, ConfigError> {
    let mut names = HashMap::new();
    let mut devices = HashMap::new();
    let mut tables = Vec::with_capacity(sections.len());
    for section in sections {
        let name = section.name.get_ref();
        if let Some(before) = names.insert(name.clone(), section.name.span()) {
            return Err(ConfigError::new(
                format!(
                    "table {name} was described before, in line {}",
                    Place::of(text, before.start).line
                ),
                "Give each table a name of its own.",
            )
            .at(text, section.name.span().start));
        }
        let (device, span) = device(text, section)?;
        if let Some(before) = devices.insert(device.clone(), name.clone()) {
            let (what, advice) = match device {
                Device::Auto => (
                    format!("tables {before} and {name} both take whatever board there is"),
                    "Give each its board by serial or port; jadoube ports lists them.",
                ),
                _ => (
                    format!("tables {before} and {name} have the same board ({device})"),
                    "A board stands on one table: correct one of them; jadoube ports lists the boards.",
                ),
            };
            return Err(ConfigError::new(what, advice).at(text, span.start));
        }
        tables.push(Table {
            name: name.clone(),
            device,
            settings: section.over(defaults),
        });
    }
    Ok(tables)
}

/// Which board a table names, and where it does so.
fn device(text: &str, section: &TableSection) -> Result<(Device, Range<usize>), ConfigError> {
    const ADVICE: &str =
        "jadoube ports lists the boards with their serial numbers and their ports.";
    match (&section.serial, &section.port) {
        (Some(_), Some(port)) => Err(ConfigError::new(
            format!("table {} has both serial and port", section.name.get_ref()),
            "Keep serial to follow the board wherever it is plugged in, or port to take whatever is plugged in there.",
        )
        .at(text, port.span().start)),
        (Some(serial), None) => {
            let number = serial.get_ref();
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_graphic()) {
                let what = format!("{number:?} is no serial number");
                return Err(ConfigError::new(what, ADVICE).at(text, serial.span().start));
            }
            Ok((Device::Serial(number.clone()), serial.span()))
        }
        (None, Some(port)) => {
            let path = port.get_ref();
            let device = match path.to_str() {
                Some("auto") => Device::Auto,
                _ if path.is_absolute() => Device::Port(path.clone()),
                _ => {
                    let what = format!("port {path:?} is neither auto nor the whole path of a device");
                    return Err(ConfigError::new(what, ADVICE).at(text, port.span().start));
                }
            };
            Ok((device, port.span()))
        }
        (None, None) => Ok((Device::Auto, section.name.span())),
    }
}

pub(super) fn mqtt(text: &str, section: MqttSection, folder: &Path) -> Result<Mqtt, ConfigError> {
    // Whoever gives a certificate counts on encryption, and must not go without it unawares.
    for (key, file) in [
        ("cert_file", &section.cert_file),
        ("key_file", &section.key_file),
        ("ca_file", &section.ca_file),
    ] {
        if let Some(file) = file {
            return Err(ConfigError::new(
                format!("{key} is for mqtts://, and this build has no TLS yet"),
                "Take it out, and keep the broker on this machine or in a network of your own.",
            )
            .at(text, file.span().start));
        }
    }
    if let (None, Some(file)) = (&section.username, &section.password_file) {
        return Err(ConfigError::new(
            "password_file is given, but no username",
            "Say with username = \"…\" whose password it is.",
        )
        .at(text, file.span().start));
    }
    let place = |file: Option<Spanned<PathBuf>>| file.map(|file| folder.join(file.into_inner()));
    let default = Mqtt::default();
    Ok(Mqtt {
        url: section.url.unwrap_or(default.url),
        base: section.base.unwrap_or(default.base),
        version: section.version.unwrap_or_default(),
        username: section.username,
        password_file: place(section.password_file),
        cert_file: place(section.cert_file),
        key_file: place(section.key_file),
        ca_file: place(section.ca_file),
    })
}

/// Something to do about a complaint of the TOML reader.
pub(super) fn advice_for(what: &str) -> &'static str {
    if what.contains("unknown field `password`") {
        "Write the password into a file of its own and name that with password_file = \"…\"."
    } else if what.contains("unknown field") {
        "Correct the name of the key or take it out; the example jadoube.toml explains every key."
    } else if what.contains("missing field `name`") {
        "Give the table its number or name, which the topics carry: name = \"12\"."
    } else if what.contains("expected a string") || what.contains("expected path string") {
        "Put the value into quotes."
    } else if what.contains("wanted string") {
        "The words that may stand here are in the example jadoube.toml."
    } else if what.contains("duplicate key") {
        "Keep one of the two lines."
    } else if what.contains("no TLS yet") {
        "Use mqtt:// to a broker on this machine or in a network of your own, and let that one bridge on with TLS."
    } else if what.contains("must not hold a user") {
        "Put them into username = \"…\" and password_file = \"…\"."
    } else {
        "Correct this line; the example jadoube.toml explains every key."
    }
}

fn parsed<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(de::Error::custom)
}

fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    match path.as_os_str().is_empty() {
        true => Err(de::Error::custom("the path is empty")),
        false => Ok(Some(path)),
    }
}

/// The levels below which everything is published: a topic, not a filter, and none of the broker's own.
fn base<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let base = String::deserialize(deserializer)?;
    let level_ok = |level: &str| {
        !level.is_empty() && !level.contains(|c: char| c.is_control() || matches!(c, '+' | '#'))
    };
    if base.split('/').all(level_ok) && !base.starts_with('$') && base.len() <= 128 {
        Ok(Some(base))
    } else {
        Err(de::Error::custom(format!(
            "{base:?} is no topic: levels between slashes are expected, without + and #, as jadoube/v1"
        )))
    }
}

fn mqtt_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<MqttVersion>, D::Error> {
    match i64::deserialize(deserializer)? {
        4 => Ok(Some(MqttVersion::V4)),
        5 => Ok(Some(MqttVersion::V5)),
        other => Err(de::Error::custom(format!(
            "version {other} of MQTT is unknown: 5 or 4 (which is 3.1.1) is expected"
        ))),
    }
}

fn board<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Family>>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.as_str() {
        "auto" => Ok(Some(None)),
        _ => match text.parse() {
            Ok(family) => Ok(Some(Some(family))),
            Err(expected) => Err(de::Error::custom(format!(
                "board {text:?}: auto | {expected}"
            ))),
        },
    }
}

fn pgn_delay<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    const LONGEST_S: u32 = 24 * 3600;
    within(deserializer, LONGEST_S.into(), "seconds")
        .map(|seconds| Some(u32::try_from(seconds).unwrap_or(LONGEST_S)))
}

fn short_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
    // Beyond this a whole move can be played, and none would be seen by itself.
    const LONGEST_MS: Millis = 10_000;
    within(deserializer, LONGEST_MS, "milliseconds").map(Some)
}

fn within<'de, D: Deserializer<'de>>(
    deserializer: D,
    longest: u64,
    unit: &str,
) -> Result<u64, D::Error> {
    let given = i64::deserialize(deserializer)?;
    match u64::try_from(given) {
        Ok(given) if given <= longest => Ok(given),
        _ => Err(de::Error::custom(format!(
            "{given} {unit} are out of range: 0 to {longest} are expected"
        ))),
    }
}
