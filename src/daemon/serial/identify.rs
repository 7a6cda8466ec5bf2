//! Asking what stands at the other end of an open port.

use std::io;
use std::time::{Duration, Instant};

use tokio::time::{Instant as Deadline, timeout_at};

use super::{Chunk, Port, Settings};
use crate::board::{self, Dialect, Reading};
use crate::wire::Family;

/// What is asked for on a port of which nobody said what stands there. Whatever is added here is sent to boards of other makes, and
/// to other devices too.
const ASKED: Family = Family::Dgt;

/// What answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub family: Family,
    /// The board's own number: the long one if it has one, else the short one.
    pub serial: Option<String>,
    /// The short number, which is printed on some boards that also have a long one.
    pub short_serial: Option<String>,
    /// Firmware, `major.minor`.
    pub version: Option<String>,
}

impl Identity {
    /// Whether this is the board that a person calls `serial`.
    pub fn answers_to(&self, serial: &str) -> bool {
        let serial = Some(serial.trim());
        serial == self.serial.as_deref() || serial == self.short_serial.as_deref()
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.family)?;
        match &self.serial {
            Some(serial) => write!(f, " board {serial}")?,
            None => f.write_str(" board without a serial number")?,
        }
        match &self.version {
            Some(version) => write!(f, ", firmware {version}"),
            None => Ok(()),
        }
    }
}

/// An answer, with everything that was heard while waiting for it.
#[derive(Clone, Debug)]
pub struct Identified {
    /// What answered.
    pub identity: Identity,
    /// All bytes so far, in order.
    pub heard: Vec<Chunk>,
}

/// Why nobody answered.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Not one byte came.
    #[error("nothing answers")]
    Silent,
    /// Bytes came, but no answer of a board we know.
    #[error("what answers is no board that jadoube knows ({} bytes)", heard.iter().map(|(bytes, _)| bytes.len()).sum::<usize>())]
    Unintelligible {
        /// The bytes.
        heard: Vec<Chunk>,
    },
    /// The device went away meanwhile.
    #[error("the device went away: {0}")]
    Gone(#[from] io::Error),
}

/// Asks a board for its numbers and its firmware (protocol sheet 2, opening sequence). It leaves the board idle.
///
/// Any garbage may come before, between and instead of the answers: the board may be in the middle of reporting to a program
/// that held it before us, or deaf for its first 2 s (case P3), so the questions are repeated. None of them changes anything but
/// the reporting mode (see [`Dialect::identify`]).
pub async fn probe(port: &mut Port, settings: &Settings) -> Result<Identified, ProbeError> {
    let mut ear = Ear::new(ASKED);
    ear.listen(port, settings.settle).await?;
    for _ in 0..settings.attempts {
        // A board that wakes up in the middle of a round has missed its first questions. So an answer that is missing is asked
        // for once more, and only then taken for one that this board does not give.
        let awake = ear.identity().is_some();
        for question in ear.questions() {
            port.write(&question, settings.write_timeout).await?;
            ear.listen(port, settings.spacing).await?;
        }
        let patience = Deadline::now() + settings.answer;
        // The version was asked for last: once it is here, a number that is not will not come.
        while ear.version.is_none() && ear.hear(port, patience).await? {}
        if ear.is_complete() || awake && ear.identity().is_some() {
            break;
        }
    }
    if let Some(identity) = ear.identity() {
        return Ok(Identified {
            identity,
            heard: ear.heard,
        });
    }
    match ear.heard.is_empty() {
        true => Err(ProbeError::Silent),
        false => Err(ProbeError::Unintelligible { heard: ear.heard }),
    }
}

/// A device that talks without end is not kept whole.
const HEARD_AT_MOST: usize = 32 * 1024;

/// Takes the few answers it waits for out of whatever comes.
struct Ear {
    family: Family,
    /// None where this build cannot read such boards: then nothing is asked, and nothing understood.
    dialect: Option<Box<dyn Dialect>>,
    heard: Vec<Chunk>,
    bytes: usize,
    short: Option<String>,
    long: Option<String>,
    version: Option<String>,
}

impl Ear {
    fn new(family: Family) -> Ear {
        Ear {
            family,
            dialect: board::dialect(family),
            heard: Vec::new(),
            bytes: 0,
            short: None,
            long: None,
            version: None,
        }
    }

    fn questions(&self) -> Vec<Vec<u8>> {
        let dialect = self.dialect.as_ref();
        dialect.map_or_else(Vec::new, |dialect| dialect.identify())
    }

    /// Hears for a fixed time.
    async fn listen(&mut self, port: &mut Port, time: Duration) -> io::Result<()> {
        let end = Deadline::now() + time;
        while self.hear(port, end).await? {}
        Ok(())
    }

    /// Hears once; false when the time is over.
    async fn hear(&mut self, port: &mut Port, end: Deadline) -> io::Result<bool> {
        let mut buffer = [0; 1024];
        let Ok(read) = timeout_at(end, port.read(&mut buffer)).await else {
            return Ok(false);
        };
        let bytes = &buffer[..read?];
        self.take(bytes);
        self.bytes += bytes.len();
        if self.bytes <= HEARD_AT_MOST {
            self.heard.push((bytes.to_vec(), Instant::now()));
        }
        // A port that always has more would keep `timeout_at` from ever looking at its clock.
        Ok(Deadline::now() < end)
    }

    fn take(&mut self, bytes: &[u8]) {
        let Ear {
            dialect,
            short,
            long,
            version,
            ..
        } = self;
        let Some(dialect) = dialect else { return };
        dialect.push(bytes, &mut |reading| match reading {
            Reading::Serial {
                number,
                long: false,
            } => *short = Some(number),
            Reading::Serial { number, long: true } => *long = Some(number),
            Reading::Firmware(told) => *version = Some(told),
            _ => {}
        });
    }

    fn is_complete(&self) -> bool {
        self.long.is_some() && self.short.is_some() && self.version.is_some()
    }

    fn identity(&self) -> Option<Identity> {
        let serial = self.long.clone().or_else(|| self.short.clone());
        if serial.is_none() && self.version.is_none() {
            return None;
        }
        Some(Identity {
            family: self.family,
            serial,
            short_serial: self.short.clone(),
            version: self.version.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(bytes: &[u8]) -> Option<Identity> {
        let mut ear = Ear::new(Family::Dgt);
        ear.take(bytes);
        let whole = ear.identity();
        let mut ear = Ear::new(Family::Dgt);
        bytes.iter().for_each(|byte| ear.take(&[*byte]));
        assert_eq!(ear.identity(), whole, "the same bytes cut differently");
        whole
    }

    #[test]
    fn a_board_gives_its_numbers_and_its_firmware() {
        let identity =
            heard(b"\x91\x00\x0847740\xa2\x00\x0d3000147740\x93\x00\x05\x03\x0a").unwrap();
        assert_eq!(identity.to_string(), "dgt board 3000147740, firmware 3.10");
        assert!(identity.answers_to("3000147740") && identity.answers_to("47740"));
        assert!(!identity.answers_to("") && !identity.answers_to("740"));
    }

    #[test]
    fn old_boards_answer_less() {
        let identity = heard(b"\x91\x00\x0c01025 1.0\x93\x00\x05\x01\x50").unwrap();
        assert_eq!(identity.serial.as_deref(), Some("01025"));
        assert_eq!(identity.version.as_deref(), Some("1.80"));
        assert_eq!(
            heard(b"\x93\x00\x05\x01\x06").unwrap().to_string(),
            "dgt board without a serial number, firmware 1.6"
        );
    }

    #[test]
    fn garbage_neither_answers_nor_hides_an_answer() {
        assert_eq!(heard(b""), None);
        assert_eq!(heard(b"$GPGGA,123519,4807.038,N\r\n"), None);
        assert_eq!(heard(b"\x40\x55\x45\x4d"), None, "an echo is no board");
        assert_eq!(heard(b"\x91\x00\x08abcde"), None);
        assert_eq!(heard(b"\x80\x00\x00\x91\x00\x02\x93\x00\x7f\x01"), None);
        // Half a dump, then a field update cut short, then the answer.
        let identity = heard(b"\x01\x02\x03\x8e\x00\x05\x34\x93\x00\x05\x04\x00\x8d").unwrap();
        assert_eq!(identity.version.as_deref(), Some("4.0"));
    }
}
