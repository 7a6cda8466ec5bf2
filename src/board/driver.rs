//! Talks to one board: what it must be asked, and what its answers say of squares, clock and the board itself.
//!
//! Nothing here reaches the record but through [`Reading`]; what is asked and when has no say in what the answers mean.

use super::{Contents, dgt};
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
    /// All of them.
    Dump(Box<[(Square, Contents); 64]>),
    Clock(clock::Reading),
    Serial(String),
    Firmware(String),
    Battery(u8),
    /// The clock answered a command, or a frame that says nothing to us; for the stages only.
    Other(String),
    /// Bytes that were no frame.
    Skipped {
        bytes: u32,
        reason: String,
    },
}

/// How boards of one family are asked and understood: all in which one family differs from another here.
///
/// Every byte pushed ends up once: in a reading, in a [`Reading::Skipped`], or in [`buffered`](Dialect::buffered).
pub trait Dialect: fmt::Debug + Send {
    /// What is asked once the port is open, a write each: the board's numbers, all squares, and that it reports from now on.
    fn opening(&self) -> Vec<Vec<u8>>;

    /// Asks for all squares.
    fn ask_squares(&self) -> Vec<u8>;

    /// Asks for something that every board answers, and that changes nothing.
    fn ask_life(&self) -> Vec<u8>;

    /// Takes bytes in and hands out what they say.
    fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Reading));

    /// Gives an unfinished frame up.
    fn abandon(&mut self);

    /// The bytes of an unfinished frame.
    fn buffered(&self) -> &[u8];
}

/// The dialect of a family; none while this build cannot read its boards. A line for each that it can.
pub fn dialect(family: Family) -> Option<Box<dyn Dialect>> {
    match family {
        Family::Dgt => Some(Box::<dgt::Dgt>::default()),
        Family::DgtBus | Family::Psb1 | Family::Certabo | Family::Chesslink => None,
    }
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
    heard_at: Millis,
    /// When the question was put that is not answered yet.
    asked_at: Option<Millis>,
    dump_wanted: bool,
    dump_asked_at: Option<Millis>,
    dump_heard_at: Millis,
    silent: bool,
    skipped_bytes: u64,
    /// When the last message came, or the port was opened; and what was skipped since.
    message_at: Millis,
    skipped_since: u64,
    foreign: bool,
}

/// Who judges a silent board.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Watch {
    /// Nobody: the bytes of a trace are all there is.
    #[default]
    Ignore,
    /// We ask at a known rate, so that silence means something (case A6).
    Judge,
}

/// A board that said nothing for so long is asked for its number.
const ASK_AFTER_MS: Millis = 2_000;
/// A question open for so long makes a board silent (dgt.md 7.4: about 3 s).
const SILENT_AFTER_MS: Millis = 3_000;
/// A lost field update is invisible; a dump now and then is the safety net (dgt.md 7.4: 5 to 30 s).
const DUMP_EVERY_MS: Millis = 10_000;
/// A dump that has not come by then is asked for again.
const DUMP_AGAIN_MS: Millis = 1_000;
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
            heard_at: 0,
            asked_at: None,
            dump_wanted: false,
            dump_asked_at: None,
            dump_heard_at: 0,
            silent: false,
            skipped_bytes: 0,
            message_at: 0,
            skipped_since: 0,
            foreign: false,
        }
    }

    /// The port is open, and the board is asked what it is and what it shows.
    pub fn handle_opened(&mut self, now: Millis) {
        self.dialect = dialect(self.family);
        self.opened = true;
        self.silent = false;
        self.asked_at = None;
        self.dump_asked_at = None;
        self.heard_at = now;
        self.dump_heard_at = now;
        self.hear_message(now);
        self.writes.clear();
        if let Some(dialect) = &self.dialect {
            self.writes.extend(dialect.opening());
        }
    }

    /// Takes over a port that is open, with the bytes of a frame that is under way.
    pub fn resume(&mut self, now: Millis, buffered: &[u8], skipped_bytes: u64) {
        self.opened = true;
        self.heard_at = now;
        self.dump_heard_at = now;
        self.hear_message(now);
        self.skipped_bytes = skipped_bytes;
        if let Some(dialect) = &mut self.dialect {
            dialect.push(buffered, &mut |_| {});
        }
    }

    pub fn handle_lost(&mut self) {
        self.opened = false;
        self.silent = false;
        self.foreign = false;
        self.asked_at = None;
        self.writes.clear();
        if let Some(dialect) = &mut self.dialect {
            dialect.abandon();
        }
    }

    pub fn handle_bytes(&mut self, now: Millis, bytes: &[u8], mut sink: impl FnMut(Reading)) {
        if bytes.is_empty() {
            return;
        }
        self.heard_at = now;
        self.asked_at = None;
        self.silent = false;
        let Driver {
            dialect,
            skipped_bytes,
            dump_wanted,
            dump_heard_at,
            dump_asked_at,
            skipped_since,
            ..
        } = self;
        let mut is_message = false;
        let mut take = |reading: Reading| {
            if let Reading::Skipped { bytes, .. } = &reading {
                *skipped_bytes += u64::from(*bytes);
                *skipped_since += u64::from(*bytes);
                *dump_wanted = true;
            } else {
                is_message = true;
                *skipped_since = 0;
            }
            if matches!(reading, Reading::Dump(_)) {
                *dump_heard_at = now;
                *dump_asked_at = None;
            }
            sink(reading);
        };
        match dialect {
            Some(dialect) => dialect.push(bytes, &mut take),
            None => take(Reading::Skipped {
                bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                reason: format!("boards of family {} cannot be read yet", self.family),
            }),
        }
        if is_message {
            self.message_at = now;
            self.foreign = false;
        }
        if self.dump_wanted {
            self.ask_dump(now);
        }
    }

    fn hear_message(&mut self, now: Millis) {
        self.message_at = now;
        self.skipped_since = 0;
        self.foreign = false;
    }

    /// Asks for all squares, unless that is under way.
    pub fn ask_dump(&mut self, now: Millis) {
        self.dump_wanted = false;
        let under_way = self
            .dump_asked_at
            .is_some_and(|at| now < at + DUMP_AGAIN_MS);
        if let Some(dialect) = self.dialect.as_ref().filter(|_| !under_way) {
            self.dump_asked_at = Some(now);
            self.writes.push_back(dialect.ask_squares());
        }
    }

    pub fn handle_timeout(&mut self, now: Millis) {
        if self.watch == Watch::Ignore || !self.opened {
            return;
        }
        if self.foreign_at().is_some_and(|at| now >= at) {
            self.foreign = true;
        }
        match self.asked_at {
            Some(at) if now >= at + SILENT_AFTER_MS => self.silent = true,
            None if now >= self.heard_at + ASK_AFTER_MS => {
                self.asked_at = Some(now);
                self.writes
                    .extend(self.dialect.as_ref().map(|dialect| dialect.ask_life()));
            }
            _ => {}
        }
        if now >= self.dump_heard_at + DUMP_EVERY_MS {
            self.dump_heard_at = now;
            self.ask_dump(now);
        }
    }

    pub fn poll_timeout(&self) -> Option<Millis> {
        if self.watch == Watch::Ignore || !self.opened {
            return None;
        }
        let silence = match self.asked_at {
            Some(at) if !self.silent => Some(at + SILENT_AFTER_MS),
            Some(_) => None,
            None => Some(self.heard_at + ASK_AFTER_MS),
        };
        silence
            .into_iter()
            .chain(self.foreign_at())
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

    /// The bytes of a frame that is not complete yet.
    pub fn buffered(&self) -> &[u8] {
        self.dialect
            .as_ref()
            .map_or(&[], |dialect| dialect.buffered())
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
