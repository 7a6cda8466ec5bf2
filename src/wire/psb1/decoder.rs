//! Bytes to messages.
//!
//! Bytes come in whatever pieces the port hands over, and on the same wire a microcontroller prints what its boot loader and its
//! author have to say. `$` stands nowhere but at the beginning of a frame, so there is one rule for every fault: whatever cannot be
//! is skipped and told, and the next `$` begins a frame, wherever it stands. The check then tells a line from what looks like one.

use super::{MAX_BODY, Message, check, is_printable};

/// Cuts a stream of bytes into messages.
///
/// Every byte pushed ends up exactly once: in a message, in a [`Skipped`], or in [`buffered`](Self::buffered). What comes out does
/// not depend on how the stream was cut into pushes. At most one line is held in memory.
///
/// The decoder knows no time. A line that stops half-way stays [`buffered`](Self::buffered) until more bytes come, or until the
/// caller has waited long enough and says [`abandon`](Self::abandon).
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    /// The beginning of a line: of a frame if it begins with `$`, else of chatter.
    line: Vec<u8>,
    /// The last hello named another version: what its lines mean nobody knows here, though they look like ours.
    is_other_version: bool,
}

/// What comes out of a stream, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Item {
    Message(Message),
    Skipped(Skipped),
}

/// Bytes that made no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Skipped {
    /// How many; at least one.
    pub bytes: u32,
    pub reason: SkipReason,
}

/// Why bytes were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SkipReason {
    /// Boot text, debug prints, blank lines; a long one in portions.
    #[error("no frame in it")]
    Chatter,
    #[error("line cut short by the next one")]
    CutShort,
    #[error("line too long")]
    TooLong,
    /// The line ends without `*` and two digits.
    #[error("line without a check")]
    Unchecked,
    /// The digits of the check have to be 0 to 9 and A to F.
    #[error("check with other digits than 0-9 and A-F")]
    NoCheckDigits,
    #[error("check says {said:02X}, the line gives {is:02X}")]
    WrongCheck { said: u8, is: u8 },
    #[error("unprintable character in a line")]
    Unprintable,
    /// Other devices frame their lines like this: it is NMEA's way.
    #[error("line of another format")]
    NotOurs,
    #[error("line of another version of the format")]
    OtherVersion,
    /// The field of this number, counted from the letter, is missing or is no such thing.
    #[error("line {letter} with a bad field {field}")]
    BadField { letter: char, field: usize },
    /// The caller gave the line up.
    #[error("line abandoned unfinished")]
    Abandoned,
}

impl Decoder {
    /// Takes bytes in and hands out all that they complete.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(Item)) {
        for &byte in bytes {
            if byte == b'$' && !self.line.is_empty() {
                let reason = match self.is_frame() {
                    true => SkipReason::CutShort,
                    false => SkipReason::Chatter,
                };
                self.end(Err(reason), &mut sink);
            }
            self.line.push(byte);
            match (byte, self.is_frame()) {
                (b'\n', true) => self.end(read(&self.line), &mut sink),
                (b'\n', false) => self.end(Err(SkipReason::Chatter), &mut sink),
                (_, true) if self.line.len() > MAX_UNENDED => {
                    self.end(Err(SkipReason::TooLong), &mut sink);
                }
                (_, false) if self.line.len() >= MAX_BODY => {
                    self.end(Err(SkipReason::Chatter), &mut sink);
                }
                _ => {}
            }
        }
    }

    /// The bytes of the unfinished line.
    pub fn buffered(&self) -> &[u8] {
        &self.line
    }

    /// Gives the unfinished line up, because the rest of it has not come in time.
    pub fn abandon(&mut self) -> Option<Skipped> {
        if self.line.is_empty() {
            return None;
        }
        let reason = match self.is_frame() {
            true => SkipReason::Abandoned,
            false => SkipReason::Chatter,
        };
        let bytes = self.line.len() as u32;
        self.line.clear();
        Some(Skipped { bytes, reason })
    }

    fn is_frame(&self) -> bool {
        self.line.first() == Some(&b'$')
    }

    fn end(&mut self, outcome: Result<Message, SkipReason>, sink: &mut impl FnMut(Item)) {
        let bytes = self.line.len() as u32;
        self.line.clear();
        let outcome = match outcome {
            Ok(hello @ Message::Hello(_)) => {
                self.is_other_version = false;
                Ok(hello)
            }
            Ok(_) if self.is_other_version => Err(SkipReason::OtherVersion),
            outcome => outcome,
        };
        self.is_other_version |= outcome == Err(SkipReason::OtherVersion);
        sink(match outcome {
            Ok(message) => Item::Message(message),
            Err(reason) => Item::Skipped(Skipped { bytes, reason }),
        });
    }
}

/// A line from its `$` to its LF.
fn read(line: &[u8]) -> Result<Message, SkipReason> {
    let line = line.strip_prefix(b"$").unwrap_or(line);
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let Some((body, [b'*', digits @ ..])) = line.split_last_chunk::<3>() else {
        return Err(SkipReason::Unchecked);
    };
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(SkipReason::NoCheckDigits),
    };
    let said = digit(digits[0])? << 4 | digit(digits[1])?;
    let is = check(body);
    if said != is {
        return Err(SkipReason::WrongCheck { said, is });
    }
    if body.len() > MAX_BODY {
        return Err(SkipReason::TooLong);
    }
    // `*` ends a body, so that one inside of it is damage that the check missed.
    if !is_printable(body) || body.contains(&b'*') {
        return Err(SkipReason::Unprintable);
    }
    Message::decode(std::str::from_utf8(body).map_err(|_| SkipReason::Unprintable)?)
}

/// `$`, a body, `*`, two digits and CR: without LF a longer line is none.
const MAX_UNENDED: usize = 1 + MAX_BODY + 3 + 1;
