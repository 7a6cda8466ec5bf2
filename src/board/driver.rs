//! Talks to one board: what it must be asked, and what its answers say of squares, clock and the board itself.
//!
//! Nothing here reaches the record but through [`Reading`]; what is asked and when has no say in what the answers mean.

use super::{Contents, Token};
use crate::Millis;
use crate::clock::{self, Display, Wing};
use crate::wire::dgt::{self, ClockMessage, Command, Decoder, Item, Message, PieceCode, RawSquare};
use shakmaty::{Color, Role, Square};
use std::collections::VecDeque;

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

/// The asking side of a DGT board, and the decoder of what it sends.
#[derive(Debug, Default)]
pub struct Driver {
    decoder: Decoder,
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
/// A dump that has not come whole by then is asked for again: it takes 70 ms on the line and may be damaged there like anything else.
const DUMP_AGAIN_MS: Millis = 500;
/// A board that is asked answers by then, whatever noise there is on its line: each noise asks for a dump, at most once in
/// [`DUMP_AGAIN_MS`].
const FOREIGN_AFTER_MS: Millis = 10_000;
/// Fewer skipped bytes are a contact that sparks, not a voice.
const FOREIGN_BYTES: u64 = 8;

impl Driver {
    pub fn new(watch: Watch) -> Driver {
        Driver {
            watch,
            ..Driver::default()
        }
    }

    /// The port is open: what all clients ask first (dgt.md 2).
    pub fn handle_opened(&mut self, now: Millis) {
        self.decoder = Decoder::default();
        self.opened = true;
        self.silent = false;
        self.asked_at = None;
        self.dump_asked_at = None;
        self.heard_at = now;
        self.dump_heard_at = now;
        self.hear_message(now);
        self.writes.clear();
        for command in [
            Command::Reset,
            Command::LongSerialNumber,
            Command::SerialNumber,
            Command::Version,
            Command::Board,
            Command::UpdateNice,
            Command::Clock,
        ] {
            self.writes.push_back(command.encode());
        }
    }

    /// Takes over a port that is open, with the bytes of a frame that is under way.
    pub fn resume(&mut self, now: Millis, buffered: &[u8], skipped_bytes: u64) {
        self.opened = true;
        self.heard_at = now;
        self.dump_heard_at = now;
        self.hear_message(now);
        self.skipped_bytes = skipped_bytes;
        self.decoder.push(buffered, |_| {});
    }

    pub fn handle_lost(&mut self) {
        self.opened = false;
        self.silent = false;
        self.foreign = false;
        self.asked_at = None;
        self.writes.clear();
        self.decoder.abandon();
    }

    pub fn handle_bytes(&mut self, now: Millis, bytes: &[u8], mut sink: impl FnMut(Reading)) {
        if bytes.is_empty() {
            return;
        }
        self.heard_at = now;
        self.asked_at = None;
        self.silent = false;
        let Driver {
            decoder,
            skipped_bytes,
            dump_wanted,
            dump_heard_at,
            dump_asked_at,
            skipped_since,
            ..
        } = self;
        let mut is_message = false;
        decoder.push(bytes, |item| match item {
            Item::Message(message) => {
                is_message = true;
                *skipped_since = 0;
                if matches!(message, Message::BoardDump(_)) {
                    *dump_heard_at = now;
                    *dump_asked_at = None;
                    *dump_wanted = false;
                }
                sink(reading(message));
            }
            Item::Skipped(skipped) => {
                *skipped_bytes += u64::from(skipped.bytes);
                *skipped_since += u64::from(skipped.bytes);
                *dump_wanted = true;
                sink(Reading::Skipped {
                    bytes: skipped.bytes,
                    reason: skipped.reason.to_string(),
                });
            }
        });
        if is_message {
            self.message_at = now;
            self.foreign = false;
        }
        self.ask_if_wanted(now);
    }

    fn hear_message(&mut self, now: Millis) {
        self.message_at = now;
        self.skipped_since = 0;
        self.foreign = false;
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
        if self.dump_wanted && !under_way {
            self.dump_wanted = false;
            self.dump_asked_at = Some(now);
            self.writes.push_back(Command::Board.encode());
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
        match self.asked_at {
            Some(at) if now >= at + SILENT_AFTER_MS => self.silent = true,
            None if now >= self.heard_at + ASK_AFTER_MS => {
                self.asked_at = Some(now);
                self.writes.push_back(Command::SerialNumber.encode());
            }
            _ => {}
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
        let silence = match self.asked_at {
            Some(at) if !self.silent => Some(at + SILENT_AFTER_MS),
            Some(_) => None,
            None => Some(self.heard_at + ASK_AFTER_MS),
        };
        silence
            .into_iter()
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

    /// Whether what speaks at the other end speaks no DGT.
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
        self.decoder.buffered()
    }
}

/// The board's index of a square in the numbering of a board that stands right (dgt.md 3.3: a8 is 0).
pub fn raw_square(square: Square) -> RawSquare {
    RawSquare::new((square.to_u32() as u8) ^ 56).expect("a square's index is below 64")
}

fn square_of(raw: RawSquare) -> Square {
    Square::new(u32::from(raw.index() ^ 56))
}

fn contents_of(code: PieceCode) -> Contents {
    match code {
        PieceCode::Empty => Contents::Empty,
        PieceCode::Draw => Contents::Token(Token::Draw),
        PieceCode::WhiteWins => Contents::Token(Token::WhiteWins),
        PieceCode::BlackWins => Contents::Token(Token::BlackWins),
        PieceCode::WhitePawn => Contents::Piece(Role::Pawn.of(Color::White)),
        PieceCode::WhiteRook => Contents::Piece(Role::Rook.of(Color::White)),
        PieceCode::WhiteKnight => Contents::Piece(Role::Knight.of(Color::White)),
        PieceCode::WhiteBishop => Contents::Piece(Role::Bishop.of(Color::White)),
        PieceCode::WhiteKing => Contents::Piece(Role::King.of(Color::White)),
        PieceCode::WhiteQueen => Contents::Piece(Role::Queen.of(Color::White)),
        PieceCode::BlackPawn => Contents::Piece(Role::Pawn.of(Color::Black)),
        PieceCode::BlackRook => Contents::Piece(Role::Rook.of(Color::Black)),
        PieceCode::BlackKnight => Contents::Piece(Role::Knight.of(Color::Black)),
        PieceCode::BlackBishop => Contents::Piece(Role::Bishop.of(Color::Black)),
        PieceCode::BlackKing => Contents::Piece(Role::King.of(Color::Black)),
        PieceCode::BlackQueen => Contents::Piece(Role::Queen.of(Color::Black)),
    }
}

fn reading(message: Message) -> Reading {
    match message {
        Message::FieldUpdate { square, piece } => Reading::Square {
            square: square_of(square),
            contents: contents_of(piece),
        },
        Message::BoardDump(codes) => {
            let mut squares = [(Square::A1, Contents::Empty); 64];
            for ((slot, raw), code) in squares.iter_mut().zip(RawSquare::all()).zip(codes.iter()) {
                *slot = (square_of(raw), contents_of(*code));
            }
            Reading::Dump(Box::new(squares))
        }
        Message::Clock(ClockMessage::Times(times)) => Reading::Clock(clock_reading(&times)),
        Message::Clock(ClockMessage::Absent) => Reading::Clock(clock::Reading::Absent),
        Message::Clock(ClockMessage::Ack(ack)) => Reading::Other(format!("clock ack {ack:?}")),
        Message::Clock(ClockMessage::Null) => Reading::Other("clock null".into()),
        Message::SerialNumber(serial) | Message::LongSerialNumber(serial) => {
            Reading::Serial(serial)
        }
        Message::Version { major, minor } => Reading::Firmware(format!("{major}.{minor}")),
        Message::Battery(battery) => match battery.percent {
            Some(percent) => Reading::Battery(percent),
            None => Reading::Other("battery".into()),
        },
        other => Reading::Other(format!("{other:?}")),
    }
}

/// The lever's raised side is to move, and its clock runs when the clock runs (dgt.md 3.5).
fn clock_reading(times: &dgt::BwTime) -> clock::Reading {
    let display = |side: &dgt::SideTime| Display {
        ms: side.millis(),
        flag: side.flag_halted || side.flag_shown,
    };
    clock::Reading::Times {
        left: display(&times.left),
        right: display(&times.right),
        running: times.running,
        to_move: if times.right_up {
            Wing::Right
        } else {
            Wing::Left
        },
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
            let mut driver = Driver::new(Watch::Judge);
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
        let mut driver = Driver::new(Watch::Judge);
        driver.handle_opened(0);
        for now in (0..60_000).step_by(5_000) {
            driver.handle_bytes(now, b"noise noise", |_| {});
            driver.handle_bytes(now, &[0x93, 0, 5, 1, 7], |_| {});
            driver.handle_timeout(now);
            assert!(!driver.is_foreign(), "{now}");
        }
        let mut ignoring = Driver::new(Watch::Ignore);
        ignoring.handle_opened(0);
        hear(&mut ignoring, 0, 60_000, b"noise");
        assert!(!ignoring.is_foreign());
    }
}
