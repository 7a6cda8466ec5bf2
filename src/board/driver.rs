//! Talks to one board: what it must be asked, and what its answers say of squares, clock and the board itself.
//!
//! Nothing here reaches the record but through [`Reading`]; what is asked and when has no say in what the answers mean.

use super::{Contents, dgt, psb1};
use crate::clock::ClockSource;
use crate::text::words;
use crate::wire::Family;
use crate::{Millis, clock};
use shakmaty::Square;
use std::collections::VecDeque;
use std::fmt;

/// What a frame says.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// One square, in the board's numbering.
    Square {
        square: Square,
        contents: Contents,
    },
    /// All of them, at one look.
    Scan {
        squares: Box<[(Square, Contents); 64]>,
        /// The board had told of every change until then, so that what differs has changed just now. Otherwise nothing tells when.
        gapless: bool,
    },
    /// The board told of changes that came after others which nobody heard: only a scan tells what stands there.
    Missed,
    Clock(clock::Reading),
    /// Its own number. Some boards have two, and the long one is on the label.
    Serial {
        number: String,
        long: bool,
    },
    Firmware(String),
    Battery(u8),
    /// The board says that something is wrong with it, in its own words.
    Fault(String),
    /// The clock answered a command, or a frame that says nothing to us; for the stages only.
    Other(String),
    /// Bytes that were no frame.
    Skipped {
        bytes: u32,
        reason: String,
        /// What was said of squares may be lost with them, unnoticed.
        loss: bool,
    },
}

/// How boards of one family are asked and understood: all in which one family differs from another here.
///
/// Every byte pushed ends up once: in a reading, in a [`Reading::Skipped`], or in [`buffered`](Dialect::buffered).
pub trait Dialect: fmt::Debug + Send {
    /// What finds out whether one of these boards is there and which, a write each: its numbers, then its firmware. It changes
    /// nothing but that the board stops reporting.
    fn identify(&self) -> Vec<Vec<u8>>;

    /// What is asked once the port is open, a write each: what it is, all squares, and that it reports from now on.
    fn opening(&self) -> Vec<Vec<u8>>;

    /// What of the opening is to be asked again every second, as long as it is not answered.
    fn unanswered(&self) -> Option<Vec<u8>> {
        None
    }

    /// Asks for all squares; none where a board cannot be asked for them.
    fn ask_squares(&self) -> Option<Vec<u8>>;

    /// What a clock that it reports is.
    fn clock_source(&self) -> ClockSource;

    /// Asks for something that every board answers, and that changes nothing.
    fn ask_life(&self) -> Vec<u8>;

    /// How long a board of which nothing can be read is still there, where these boards give signs of life unasked.
    fn silent_after(&self) -> Option<Millis> {
        None
    }

    /// Takes bytes in and hands out what they say.
    fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Reading));

    /// Gives an unfinished frame up, and tells what is skipped with it.
    fn abandon(&mut self) -> Option<Reading>;

    /// The bytes of an unfinished frame.
    fn buffered(&self) -> &[u8];

    /// What a dialect that begins anew has to be given so that it goes on as this one would.
    fn memory(&self) -> Vec<u8> {
        self.buffered().to_vec()
    }
}

/// The dialect of a family; none while this build cannot read its boards. A line for each that it can.
pub fn dialect(family: Family) -> Option<Box<dyn Dialect>> {
    match family {
        Family::Dgt => Some(Box::<dgt::Dgt>::default()),
        Family::Psb1 => Some(Box::<psb1::Psb1>::default()),
        Family::DgtBus | Family::Certabo | Family::Chesslink => None,
    }
}

/// What the boards of a family can do, as far as those have to know who never speak with one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// What a clock that they report is.
    pub clock: ClockSource,
    /// They give all squares when they are asked.
    pub dumps: bool,
}

/// What the boards of this family can do; nothing, while this build cannot read them.
pub fn abilities(family: Family) -> Abilities {
    dialect(family).map_or_else(Abilities::default, |dialect| Abilities {
        clock: dialect.clock_source(),
        dumps: dialect.ask_squares().is_some(),
    })
}

/// Whether this build reads boards of this family.
pub fn is_supported(family: Family) -> bool {
    dialect(family).is_some()
}

/// The asking side of a board.
#[derive(Debug)]
pub struct Driver {
    family: Family,
    /// Without one, all that comes is skipped. Who starts a table asks [`is_supported`] before.
    dialect: Option<Box<dyn Dialect>>,
    watch: Watch,
    writes: VecDeque<Vec<u8>>,
    opened: bool,
    opened_at: Millis,
    heard_at: Millis,
    /// When the last bytes came.
    bytes_at: Millis,
    /// When the question was put that is not answered yet.
    asked_at: Option<Millis>,
    /// When the opening was asked last.
    greeted_at: Millis,
    dump_wanted: bool,
    dump_asked_at: Option<Millis>,
    dump_heard_at: Millis,
    silent: bool,
    skipped_bytes: u64,
    messages: u64,
    /// A message has come since the port was opened.
    spoken: bool,
    /// When the last message came, or the port was opened; and what was skipped since.
    message_at: Millis,
    skipped_since: u64,
    foreign: bool,
}

/// The beginning of a frame, and what of the frames before has a say in what the next ones mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unfinished {
    pub bytes: Vec<u8>,
    /// When the last bytes came.
    pub at: Millis,
}

words! {
    /// What it means that a board or its clock sends nothing.
    #[derive(Default)]
    Watch {
        /// Nothing: the bytes of a trace are all there is.
        #[default]
        Ignore = "ignore",
        /// It is reported: we ask at a known rate, so that silence means something (case A6).
        Judge = "judge",
    }
}

/// A board that said nothing for so long is asked for its number.
const ASK_AFTER_MS: Millis = 2_000;
/// A question open for so long makes a board silent (protocol sheet 7.4: about 3 s).
const SILENT_AFTER_MS: Millis = 3_000;
/// A board that has not said what it is is asked again after this time (sheet of boards 3.2).
const GREET_EVERY_MS: Millis = 1_000;
/// Opening its port starts many a microcontroller anew, and what it runs takes its time until it speaks.
const START_MS: Millis = 8_000;
/// Bytes that come later than so long after the ones before belong to no frame of those (protocol sheet 3.1: about half a second). In a
/// trace whose silence means nothing, the times of its chunks mean nothing either.
const STALL_MS: Millis = 500;
/// A lost field update is invisible; a dump now and then is the safety net (protocol sheet 7.4: 5 to 30 s).
const DUMP_EVERY_MS: Millis = 10_000;
/// A dump that has not come whole by then is asked for again: it takes 70 ms on the line and may be damaged there like anything else.
const DUMP_AGAIN_MS: Millis = 500;
/// A board that is asked answers by then, whatever noise there is on its line: each noise asks for a dump, at most once in
/// [`DUMP_AGAIN_MS`].
const FOREIGN_AFTER_MS: Millis = 10_000;
/// Fewer skipped bytes are a contact that sparks, not a voice.
const FOREIGN_BYTES: u64 = 8;

impl Driver {
    pub fn new(family: Family, watch: Watch) -> Driver {
        Driver {
            family,
            dialect: dialect(family),
            watch,
            writes: VecDeque::new(),
            opened: false,
            opened_at: 0,
            heard_at: 0,
            bytes_at: 0,
            asked_at: None,
            greeted_at: 0,
            dump_wanted: false,
            dump_asked_at: None,
            dump_heard_at: 0,
            silent: false,
            skipped_bytes: 0,
            messages: 0,
            spoken: false,
            message_at: 0,
            skipped_since: 0,
            foreign: false,
        }
    }

    /// What is plugged in from now on speaks this.
    pub fn handle_family(&mut self, family: Family) {
        self.family = family;
        self.dialect = dialect(family);
    }

    /// The port is open, and the board is asked what it is and what it shows.
    pub fn handle_opened(&mut self, now: Millis) {
        self.dialect = dialect(self.family);
        self.opened = true;
        self.silent = false;
        self.asked_at = None;
        self.dump_asked_at = None;
        self.opened_at = now;
        self.heard_at = now;
        self.greeted_at = now;
        self.dump_heard_at = now;
        self.hear_message(now);
        self.spoken = false;
        self.writes.clear();
        if let Some(dialect) = &self.dialect {
            self.writes.extend(dialect.opening());
        }
    }

    /// Takes over a port that is open, with what has come of a frame that is under way.
    pub fn resume(&mut self, now: Millis, unfinished: &Unfinished, skipped_bytes: u64) {
        self.bytes_at = unfinished.at;
        self.opened = true;
        self.opened_at = now;
        self.heard_at = now;
        self.greeted_at = now;
        self.dump_heard_at = now;
        self.hear_message(now);
        self.skipped_bytes = skipped_bytes;
        if let Some(dialect) = &mut self.dialect {
            dialect.push(&unfinished.bytes, &mut |_| {});
        }
    }

    pub fn handle_lost(&mut self) {
        self.opened = false;
        self.silent = false;
        self.foreign = false;
        self.asked_at = None;
        self.writes.clear();
        if let Some(Reading::Skipped { bytes, .. }) =
            self.dialect.as_mut().and_then(|dialect| dialect.abandon())
        {
            self.skipped_bytes += u64::from(bytes);
        }
    }

    pub fn handle_bytes(&mut self, now: Millis, bytes: &[u8], mut sink: impl FnMut(Reading)) {
        if bytes.is_empty() {
            return;
        }
        self.heard_at = now;
        self.asked_at = None;
        let stalled = self.watch == Watch::Judge && now > self.bytes_at + STALL_MS;
        self.bytes_at = now;
        let Driver {
            dialect,
            skipped_bytes,
            messages,
            dump_wanted,
            dump_heard_at,
            dump_asked_at,
            skipped_since,
            ..
        } = self;
        let mut is_message = false;
        let mut take = |reading: Reading| {
            if let Reading::Skipped { bytes, loss, .. } = &reading {
                *skipped_bytes += u64::from(*bytes);
                *skipped_since += u64::from(*bytes);
                *dump_wanted |= *loss;
            } else {
                is_message = true;
                *messages += 1;
                *skipped_since = 0;
            }
            match reading {
                Reading::Scan { .. } => {
                    *dump_heard_at = now;
                    *dump_asked_at = None;
                    *dump_wanted = false;
                }
                Reading::Missed => *dump_wanted = true,
                _ => {}
            }
            sink(reading);
        };
        match dialect {
            Some(dialect) => {
                if stalled && let Some(skipped) = dialect.abandon() {
                    take(skipped);
                }
                dialect.push(bytes, &mut take);
            }
            None => take(Reading::Skipped {
                bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                reason: format!("boards of family {} cannot be read yet", self.family),
                loss: false,
            }),
        }
        if is_message {
            self.hear_message(now);
        }
        if is_message || self.silent_after().is_none() {
            self.silent = false;
        }
        self.ask_if_wanted(now);
    }

    fn hear_message(&mut self, now: Millis) {
        self.spoken = true;
        self.message_at = now;
        self.skipped_since = 0;
        self.foreign = false;
    }

    fn silent_after(&self) -> Option<Millis> {
        self.dialect.as_ref().and_then(|it| it.silent_after())
    }

    /// When the board is silent, unless something comes.
    fn silent_at(&self) -> Option<Millis> {
        match (self.silent_after(), self.spoken) {
            (Some(after), true) => Some(self.message_at + after),
            (Some(after), false) => Some(self.opened_at + after.max(START_MS)),
            (None, _) => self.asked_at.map(|at| at + SILENT_AFTER_MS),
        }
    }

    /// What of the opening is put again, and when.
    fn greeting(&self) -> Option<(Millis, Vec<u8>)> {
        let question = self
            .dialect
            .as_ref()
            .filter(|_| !self.foreign)?
            .unanswered()?;
        Some((self.greeted_at + GREET_EVERY_MS, question))
    }

    /// Asks for all squares, at once or as soon as the answer to an earlier question cannot come any more.
    pub fn ask_dump(&mut self, now: Millis) {
        self.dump_wanted = true;
        self.ask_if_wanted(now);
    }

    fn ask_if_wanted(&mut self, now: Millis) {
        let under_way = self
            .dump_asked_at
            .is_some_and(|at| now < at + DUMP_AGAIN_MS);
        if self.dump_wanted
            && !under_way
            && let Some(question) = self.dialect.as_ref().and_then(|it| it.ask_squares())
        {
            self.dump_wanted = false;
            self.dump_asked_at = Some(now);
            self.writes.push_back(question);
        }
    }

    /// When the open question for all squares is put again.
    fn ask_again_at(&self) -> Option<Millis> {
        self.dump_asked_at
            .filter(|_| !self.silent && !self.foreign)
            .map(|at| at + DUMP_AGAIN_MS)
    }

    pub fn handle_timeout(&mut self, now: Millis) {
        if self.watch == Watch::Ignore || !self.opened {
            return;
        }
        if self.foreign_at().is_some_and(|at| now >= at) {
            self.foreign = true;
        }
        if self.silent_at().is_some_and(|at| now >= at) {
            self.silent = true;
        }
        if self.asked_at.is_none() && now >= self.heard_at + ASK_AFTER_MS {
            self.asked_at = Some(now);
            self.writes
                .extend(self.dialect.as_ref().map(|dialect| dialect.ask_life()));
        }
        if let Some((_, question)) = self.greeting().filter(|(at, _)| now >= *at) {
            self.greeted_at = now;
            self.writes.push_back(question);
        }
        if now >= self.dump_heard_at + DUMP_EVERY_MS {
            self.dump_heard_at = now;
            self.ask_dump(now);
        }
        if self.ask_again_at().is_some_and(|at| now >= at) {
            self.ask_dump(now);
        }
    }

    pub fn poll_timeout(&self) -> Option<Millis> {
        if self.watch == Watch::Ignore || !self.opened {
            return None;
        }
        let silence = self.silent_at().filter(|_| !self.silent);
        let ask = (self.asked_at.is_none()).then_some(self.heard_at + ASK_AFTER_MS);
        silence
            .into_iter()
            .chain(ask)
            .chain(self.greeting().map(|(at, _)| at))
            .chain(self.foreign_at())
            .chain(self.ask_again_at())
            .chain([self.dump_heard_at + DUMP_EVERY_MS])
            .min()
    }

    pub fn poll_write(&mut self) -> Option<Vec<u8>> {
        self.writes.pop_front()
    }

    /// Whether the board has left our questions unanswered.
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// Whether what speaks at the other end is no board of this family.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// When that will be found, unless a message comes.
    fn foreign_at(&self) -> Option<Millis> {
        (!self.foreign && self.skipped_since >= FOREIGN_BYTES)
            .then_some(self.message_at + FOREIGN_AFTER_MS)
    }

    /// Bytes that were no part of a frame, since the session began.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// What could be read, since the session began.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// What has come of a frame that is not complete yet.
    pub fn unfinished(&self) -> Unfinished {
        let dialect = self.dialect.as_ref();
        Unfinished {
            bytes: dialect.map_or_else(Vec::new, |dialect| dialect.memory()),
            at: self.bytes_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets time pass as a daemon does, with these bytes every 200 ms.
    fn hear(driver: &mut Driver, from: Millis, until: Millis, bytes: &[u8]) {
        for now in (from..until).step_by(200) {
            driver.handle_timeout(now);
            driver.handle_bytes(now, bytes, |_| {});
        }
        driver.handle_timeout(until);
    }

    #[test]
    fn what_speaks_no_dgt_is_found_out_and_a_board_comes_back() {
        for noise in [&b"$GPGGA,123519,4807.038,N\r\n"[..], b"@", &[0xff; 40]] {
            let mut driver = Driver::new(Family::Dgt, Watch::Judge);
            driver.handle_opened(0);
            hear(&mut driver, 0, 9_999, noise);
            assert!(!driver.is_foreign());
            hear(&mut driver, 10_000, 10_200, noise);
            assert!(driver.is_foreign(), "{noise:?}");
            assert!(!driver.is_silent());
            let version = [0x93, 0, 5, 1, 7];
            driver.handle_bytes(11_000, &version, |_| {});
            driver.handle_bytes(11_100, &version, |_| {});
            assert!(!driver.is_foreign());
        }
    }

    fn heard(driver: &mut Driver, at: Millis, bytes: &[u8]) -> Vec<Reading> {
        let mut readings = Vec::new();
        driver.handle_bytes(at, bytes, |reading| readings.push(reading));
        readings
    }

    /// protocol sheet 3.1: bytes that come half a second later do not complete a frame.
    #[test]
    fn a_frame_that_stalls_is_dropped_whole() {
        let mut driver = Driver::new(Family::Dgt, Watch::Judge);
        driver.handle_opened(0);
        while driver.poll_write().is_some() {}
        assert_eq!(heard(&mut driver, 1_000, &[0x8e, 0, 5]), []);
        let slow = heard(&mut driver, 1_500, &[0x24, 1]);
        assert!(matches!(slow[..], [Reading::Square { .. }]), "{slow:?}");
        heard(&mut driver, 2_000, &[0x8e, 0, 5, 0x24]);
        let late = heard(&mut driver, 2_501, &[1, 0x8e, 0, 5, 0x34, 0]);
        let skipped: Vec<u32> = late
            .iter()
            .filter_map(|reading| match reading {
                Reading::Skipped { bytes, .. } => Some(*bytes),
                _ => None,
            })
            .collect();
        assert_eq!((late.len(), skipped), (3, vec![4, 1]), "{late:?}");
        assert_eq!(driver.skipped_bytes(), 5);
        assert_eq!(driver.poll_write(), Some(vec![0x42]), "a dump heals it");

        let mut ignoring = Driver::new(Family::Dgt, Watch::Ignore);
        heard(&mut ignoring, 0, &[0x8e, 0, 5, 0x24]);
        let late = heard(&mut ignoring, 60_000, &[1]);
        assert!(matches!(late[..], [Reading::Square { .. }]), "{late:?}");
    }

    #[test]
    fn what_a_lost_link_cuts_off_is_counted() {
        let mut driver = Driver::new(Family::Dgt, Watch::Judge);
        driver.handle_opened(0);
        heard(&mut driver, 0, &[0x8e, 0, 5]);
        driver.handle_lost();
        assert_eq!(driver.skipped_bytes(), 3);
        driver.handle_opened(100);
        assert_eq!(heard(&mut driver, 100, &[0x24, 1]).len(), 2);
        assert_eq!(driver.skipped_bytes(), 5);
    }

    /// protocol sheet 3.2: old boards write a version behind their number.
    #[test]
    fn a_serial_number_is_its_digits() {
        let mut driver = Driver::new(Family::Dgt, Watch::Ignore);
        for (bytes, serial) in [
            (&b"\x91\x00\x0801025"[..], Some("01025")),
            (b"\x91\x00\x0c01025 1.0", Some("01025")),
            (b"\xa2\x00\x0d3000147740", Some("3000147740")),
            (b"\x91\x00\x08abcde", None),
            (b"\x91\x00\x08     ", None),
        ] {
            let read = heard(&mut driver, 0, bytes);
            match serial {
                Some(serial) => {
                    let long = bytes[0] == 0xa2;
                    let number = serial.to_owned();
                    assert_eq!(read, [Reading::Serial { number, long }]);
                }
                None => assert!(matches!(read[..], [Reading::Other(_)]), "{read:?}"),
            }
        }
    }

    #[test]
    fn neither_noise_beside_messages_nor_a_trace_is_foreign() {
        let mut driver = Driver::new(Family::Dgt, Watch::Judge);
        driver.handle_opened(0);
        for now in (0..60_000).step_by(5_000) {
            driver.handle_bytes(now, b"noise noise", |_| {});
            driver.handle_bytes(now, &[0x93, 0, 5, 1, 7], |_| {});
            driver.handle_timeout(now);
            assert!(!driver.is_foreign(), "{now}");
        }
        let mut ignoring = Driver::new(Family::Dgt, Watch::Ignore);
        ignoring.handle_opened(0);
        hear(&mut ignoring, 0, 60_000, b"noise");
        assert!(!ignoring.is_foreign());
    }
}
