//! Asking what stands at the other end of an open port.

use std::io;
use std::time::{Duration, Instant};

use tokio::time::{Instant as Deadline, timeout_at};

use super::{Chunk, Port, Settings};
use crate::board::{self, Dialect, Reading};
use crate::wire::Family;

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

/// Asks a board for its numbers and its firmware, in the tongue of each family that it may be of (protocol sheet 2, opening sequence;
/// sheet of boards 3.2), and leaves the port at the speed at which it answered. DGT boards are left idle.
///
/// Any garbage may come before, between and instead of the answers: the board may be in the middle of reporting to a program
/// that held it before us, or deaf for its first 2 s (case P3), or a microcontroller that starts anew because its port was opened, so
/// the questions are repeated. None of them changes anything but the reporting mode (see [`Dialect::identify`]).
pub async fn probe(
    port: &mut Port,
    settings: &Settings,
    may_be: &[Family],
) -> Result<Identified, ProbeError> {
    let mut ears: Vec<Ear> = may_be.iter().map(|family| Ear::new(*family)).collect();
    let mut heard = Heard::default();
    if let Some(ear) = ears.first_mut() {
        heard.tune(port, ear.speeds()[0])?;
        ear.listen(port, settings.settle, &mut heard).await?;
    }
    // A round of several tongues takes as long as several of one.
    let rounds = match may_be {
        [Family::Dgt] => settings.attempts,
        _ => settings.attempts.min(MIXED_ROUNDS),
    };
    for round in 0..rounds {
        for ear in &mut ears {
            for (place, speed) in ear.speeds().iter().enumerate() {
                // The speed that is only allowed is tried once the other one was in vain.
                if place > 0 && round + 1 < rounds {
                    break;
                }
                heard.tune(port, *speed)?;
                if let Some(identity) = ear.ask(port, settings, &mut heard).await? {
                    return Ok(Identified {
                        identity,
                        heard: heard.chunks,
                    });
                }
            }
        }
    }
    // It has answered in part, and not said the rest in a further round.
    if let Some((identity, speed)) = ears
        .iter()
        .find_map(|ear| Some((ear.identity()?, ear.speed)))
    {
        heard.tune(port, speed)?;
        return Ok(Identified {
            identity,
            heard: heard.chunks,
        });
    }
    // Whoever named the port gets it as the first tongue wants it.
    if let Some(ear) = ears.first() {
        port.set_speed(ear.speeds()[0])?;
    }
    match heard.bytes {
        0 => Err(ProbeError::Silent),
        _ => Err(ProbeError::Unintelligible {
            heard: heard.chunks,
        }),
    }
}

/// A device that talks without end is not kept whole.
const HEARD_AT_MOST: usize = 32 * 1024;

/// Rounds of questions in several tongues, or to a microcontroller: they take longer than its start.
const MIXED_ROUNDS: u32 = 3;

/// What came from the port.
#[derive(Default)]
struct Heard {
    /// At this speed.
    speed: Option<u32>,
    chunks: Vec<Chunk>,
    bytes: usize,
}

impl Heard {
    /// Listens at another speed. What came at the last one is of no use at this one.
    fn tune(&mut self, port: &mut Port, speed: u32) -> io::Result<()> {
        if self.speed != Some(speed) {
            port.set_speed(speed)?;
            self.speed = Some(speed);
            self.chunks.clear();
        }
        Ok(())
    }
}

/// Takes the few answers it waits for out of whatever comes.
struct Ear {
    family: Family,
    /// None where this build cannot read such boards: then nothing is asked, and nothing understood.
    dialect: Option<Box<dyn Dialect>>,
    /// The speed at which something was understood last.
    speed: u32,
    short: Option<String>,
    long: Option<String>,
    version: Option<String>,
    /// It told its squares, which only a board does.
    scanned: bool,
}

impl Ear {
    fn new(family: Family) -> Ear {
        Ear {
            family,
            dialect: board::dialect(family),
            speed: 0,
            short: None,
            long: None,
            version: None,
            scanned: false,
        }
    }

    /// The speeds of such a board's line, the usual one first.
    fn speeds(&self) -> &'static [u32] {
        speeds(self.family)
    }

    /// Asks once, and waits for the answer; none if it is not whole and may be so in the next round.
    async fn ask(
        &mut self,
        port: &mut Port,
        settings: &Settings,
        heard: &mut Heard,
    ) -> io::Result<Option<Identity>> {
        // A board that wakes up in the middle of a round has missed its first questions. So an answer that is missing is asked
        // for once more, and only then taken for one that this board does not give.
        let awake = self.identity().is_some();
        let questions = self.dialect.as_ref().map(|dialect| dialect.identify());
        for question in questions.unwrap_or_default() {
            port.write(&question, settings.write_timeout).await?;
            self.listen(port, settings.spacing, heard).await?;
        }
        let patience = match self.family {
            Family::Psb1 => settings.sign_of_life,
            _ => settings.answer,
        };
        let patience = Deadline::now() + patience;
        // The version was asked for last: once it is here, a number that is not will not come.
        while self.version.is_none() && self.hear(port, patience, heard).await? {}
        Ok(self.identity().filter(|_| self.is_complete() || awake))
    }

    /// Hears for a fixed time.
    async fn listen(
        &mut self,
        port: &mut Port,
        time: Duration,
        heard: &mut Heard,
    ) -> io::Result<()> {
        let end = Deadline::now() + time;
        while self.hear(port, end, heard).await? {}
        Ok(())
    }

    /// Hears once; false when the time is over.
    async fn hear(
        &mut self,
        port: &mut Port,
        end: Deadline,
        heard: &mut Heard,
    ) -> io::Result<bool> {
        let mut buffer = [0; 1024];
        let Ok(read) = timeout_at(end, port.read(&mut buffer)).await else {
            return Ok(false);
        };
        let bytes = &buffer[..read?];
        self.take(bytes);
        if self.identity().is_some() {
            self.speed = heard.speed.unwrap_or_default();
        }
        heard.bytes += bytes.len();
        if heard.bytes <= HEARD_AT_MOST {
            heard.chunks.push((bytes.to_vec(), Instant::now()));
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
            scanned,
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
            Reading::Scan { .. } => *scanned = true,
            _ => {}
        });
    }

    fn is_complete(&self) -> bool {
        let short = self.short.is_some() || self.family == Family::Psb1;
        self.long.is_some() && short && self.version.is_some()
    }

    fn identity(&self) -> Option<Identity> {
        let serial = self.long.clone().or_else(|| self.short.clone());
        // A presence board that cannot hear us is one all the same: its lines have a check.
        let speaks = self.scanned && self.family == Family::Psb1;
        if serial.is_none() && self.version.is_none() && !speaks {
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

/// The speeds of the line of a family's boards, the usual one first.
pub fn speeds(family: Family) -> &'static [u32] {
    match family {
        Family::Psb1 => &[115_200, 9600],
        Family::Dgt | Family::DgtBus | Family::Certabo | Family::Chesslink => &[9600],
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

    #[test]
    fn a_presence_board_is_known_by_its_hello_or_else_by_its_squares() {
        let heard = |bytes: &[u8]| {
            let mut ear = Ear::new(Family::Psb1);
            ear.take(bytes);
            ear.identity()
        };
        let hello = b"rst:0x1\r\n$H,1,esp32-demo,fw0.3,L*40\n";
        assert_eq!(
            heard(hello).unwrap().to_string(),
            "psb1 board esp32-demo, firmware fw0.3"
        );
        let scan = b"$S,00,00000000,FFFF00000000FFFF*7F\n";
        assert_eq!(
            heard(scan).unwrap().to_string(),
            "psb1 board without a serial number"
        );
        let gps = b"$GPGLL,4916.45,N,12311.12,W,225444,A,*1D\r\n$B,87,3920*45\n";
        assert_eq!(heard(gps), None);
    }
}
