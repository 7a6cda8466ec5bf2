//! Serial ports: which are there, what answers on them, and bytes to and from the one a table wants.
//!
//! Three things make this harder than opening a file. A board has no name that lasts: the kernel numbers ports in the
//! order of plugging, and the link under `/dev/serial/by-id` of a USB board carries no serial number (protocol sheet,
//! section 1), so a board is known by what it answers. Most serial devices are not boards, and opening one already does
//! something to it (DTR rises, Arduinos reset), so nothing is opened that no configuration named and whose USB id no
//! board is known to have. And ports come and go at any moment, so that every step may find its device gone; that is a
//! normal answer everywhere here.
//!
//! * [`Devices`] lists the ports from sysfs without opening any.
//! * [`open`] opens one for us alone, and says what to do where it cannot.
//! * [`probe`] asks what stands at the other end.
//! * [`Finder`] looks for the boards of all tables of a process, so that no two of them ask one port at once.
//! * [`spawn`] starts a link, which keeps one table's board open: it finds, identifies, streams, and finds it again.

mod devices;
mod finder;
mod identify;
mod link;
mod port;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::config;

pub use devices::{Device, Devices, KNOWN_USB_IDS, KnownUsb, Usb, UsbId};
pub use finder::{Answer, Finder, Surveyed, survey};
pub use identify::{Identified, Identity, ProbeError, probe, speeds};
pub use link::{LinkEvent, LinkHandle, spawn};
pub use port::{Holder, OpenError, Port, open, permission_advice};

/// Where the system shows its devices. Tests point it at folders of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// sysfs, normally `/sys`.
    pub sys: PathBuf,
    /// Device nodes, normally `/dev`.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots {
            sys: "/sys".into(),
            dev: "/dev".into(),
        }
    }
}

/// How a table's board is to be found: `port` and `serial` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PortSpec {
    /// Whatever is at this path. It was named by a person, so it is opened whatever it is.
    Path(PathBuf),
    /// The board that gives this number as its own, wherever it is plugged in.
    Serial(String),
    /// Any board that no other table names.
    Auto,
}

impl From<&config::Device> for PortSpec {
    fn from(device: &config::Device) -> PortSpec {
        match device {
            config::Device::Auto => PortSpec::Auto,
            config::Device::Serial(serial) => PortSpec::Serial(serial.clone()),
            config::Device::Port(path) => PortSpec::Path(path.clone()),
        }
    }
}

impl FromStr for PortSpec {
    type Err = PortSpecError;

    /// Reads the value of `port`: `auto`, or an absolute path.
    fn from_str(text: &str) -> Result<PortSpec, PortSpecError> {
        match text {
            "auto" => Ok(PortSpec::Auto),
            path if Path::new(path).is_absolute() => Ok(PortSpec::Path(path.into())),
            other => Err(PortSpecError(other.to_owned())),
        }
    }
}

impl std::fmt::Display for PortSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PortSpec::Path(path) => write!(f, "{}", path.display()),
            PortSpec::Serial(serial) => write!(f, "board {serial}"),
            PortSpec::Auto => f.write_str("auto"),
        }
    }
}

/// A port that is neither `auto` nor a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid port {0:?}: expected \"auto\" or an absolute path such as \"/dev/ttyACM0\"")]
pub struct PortSpecError(String);

/// Times and limits of everything in this module.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Between two looks at what is plugged in.
    pub poll: Duration,
    /// After opening, before the first byte is sent (protocol sheet 1: clients wait about 0.5 s).
    pub settle: Duration,
    /// Between two commands: a board's input buffer holds ten bytes (protocol sheet 1).
    pub spacing: Duration,
    /// After the last question of one round, until it is asked again.
    pub answer: Duration,
    /// Rounds of questions. With the times above they outlast the 2 s in which a freshly plugged board is deaf (case P3).
    pub attempts: u32,
    /// A presence board gives a sign of life at least once a second (sheet of boards, 3.2); it is listened to for so long each time.
    pub sign_of_life: Duration,
    /// For one write; a port that takes a byte no sooner is gone.
    pub write_timeout: Duration,
    /// First pause after a port that failed; doubled each time.
    pub retry_min: Duration,
    /// Longest pause for a port that a table waits for by path.
    pub retry_named: Duration,
    /// Longest pause for a port that might be a board. Longer, as asking means opening it.
    pub retry_guessed: Duration,
    /// A link that lasted so long is found again without a pause.
    pub steady: Duration,
    /// How long a table on `auto` waits for the board that it had, before it takes another one plugged in since.
    pub loyalty: Duration,
    /// USB ids to ask besides [`KNOWN_USB_IDS`].
    pub extra_usb_ids: Vec<UsbId>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            poll: Duration::from_secs(1),
            settle: Duration::from_millis(500),
            spacing: Duration::from_millis(80),
            answer: Duration::from_millis(400),
            attempts: 5,
            sign_of_life: Duration::from_millis(1100),
            write_timeout: Duration::from_secs(1),
            retry_min: Duration::from_secs(1),
            retry_named: Duration::from_secs(5),
            retry_guessed: Duration::from_secs(30),
            steady: Duration::from_secs(10),
            loyalty: Duration::from_secs(10),
            extra_usb_ids: Vec::new(),
        }
    }
}

/// Bytes that came in one read, and when.
pub type Chunk = (Vec<u8>, Instant);

/// What keeps a table waiting, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// One line that names the thing at fault.
    pub reason: String,
    /// What to do, as a sentence.
    pub advice: String,
}

impl From<&OpenError> for Refusal {
    fn from(error: &OpenError) -> Refusal {
        Refusal {
            reason: error.to_string(),
            advice: error.advice(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_auto_or_a_path() {
        assert_eq!("auto".parse(), Ok(PortSpec::Auto));
        assert_eq!(
            "/dev/ttyACM0".parse(),
            Ok(PortSpec::Path("/dev/ttyACM0".into()))
        );
        for wrong in ["", "ttyACM0", "Auto", "COM3"] {
            assert!(wrong.parse::<PortSpec>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn asking_outlasts_a_board_that_is_deaf_after_plugging() {
        let s = Settings::default();
        let round = s.spacing * 4 + s.answer;
        assert!(
            s.settle + round * (s.attempts - 1) > Duration::from_secs(2),
            "case P3"
        );
        assert!(s.spacing >= Duration::from_millis(75), "protocol sheet 1");
    }
}
