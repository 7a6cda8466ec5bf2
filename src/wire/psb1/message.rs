//! What a board and its host may say to each other.

use std::fmt;
use std::str::FromStr;

use super::{SkipReason, VERSION, frame, is_printable};

/// A line of the board.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Message {
    /// `H`: what it is. At boot, and when it is asked.
    Hello(Hello),
    /// `S`: all squares, at every change and at least once a second.
    Scan { seq: u8, ms: u32, squares: Squares },
    /// `D`: squares that have changed, in their order; it shares its numbers with the scans.
    Delta {
        seq: u8,
        ms: u32,
        changes: Vec<Change>,
    },
    /// `B`
    Battery {
        percent: u8,
        millivolts: Option<u32>,
    },
    /// `E`: something is wrong with the board, in its own words.
    Fault(Text),
    /// A sound line with a letter that this build does not know, whole.
    Unknown(Text),
}

/// What a board says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hello {
    pub id: BoardId,
    pub firmware: Text,
    pub can: Letters,
}

/// The name by which a board is known: 1 to 24 of `A-Z a-z 0-9 _ -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoardId(String);

/// What a board can do, a letter each: `L` lamps, `B` battery, `C` colours, `D` changes. Letters of later versions are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Letters(Text);

/// Text that fits into a body: printable, without `$` and `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(String);

/// What all squares show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Squares {
    pub occupied: u64,
    /// The squares that hold white men, on boards that see colours.
    pub white: Option<u64>,
}

/// A square that something was put on, or taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Change {
    /// Below 64.
    pub square: u8,
    pub occupied: bool,
}

/// What a host may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Say hello and send a scan now.
    Ask,
    /// Light the lamps of these squares, and no others.
    Lamps(u64),
}

impl Message {
    /// The line as it goes over the wire.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    pub fn encode_into(&self, out: &mut Vec<u8>) {
        frame(&self.body(), out);
    }

    fn body(&self) -> String {
        match self {
            Message::Hello(Hello { id, firmware, can }) => {
                format!("H,{VERSION},{id},{firmware},{can}")
            }
            Message::Scan { seq, ms, squares } => {
                let mut body = format!("S,{seq:02X},{ms:08X},{:016X}", squares.occupied);
                if let Some(white) = squares.white {
                    body.push_str(&format!(",{white:016X}"));
                }
                body
            }
            Message::Delta { seq, ms, changes } => {
                let changes: String = changes.iter().map(Change::to_string).collect();
                format!("D,{seq:02X},{ms:08X},{changes}")
            }
            Message::Battery {
                percent,
                millivolts,
            } => match millivolts {
                Some(millivolts) => format!("B,{percent},{millivolts}"),
                None => format!("B,{percent}"),
            },
            Message::Fault(text) => format!("E,{text}"),
            Message::Unknown(text) => text.to_string(),
        }
    }

    /// What a body says whose check was right: printable, without `$` and `*`.
    pub(super) fn decode(body: &str) -> Result<Message, SkipReason> {
        let (letter, rest) = body.split_once(',').unwrap_or((body, ""));
        let &[letter] = letter.as_bytes() else {
            return Err(SkipReason::NotOurs);
        };
        let mut fields = Fields {
            letter: char::from(letter),
            number: 0,
            rest: Some(rest).filter(|_| body.len() > 1),
        };
        Ok(match letter {
            b'H' => {
                if fields.next()? != VERSION {
                    return Err(SkipReason::OtherVersion);
                }
                Message::Hello(Hello {
                    id: fields.read(|id| id.parse().ok())?,
                    firmware: fields.read(|text| Some(Text(text.into())))?,
                    // A board that can do nothing may leave the last field out.
                    can: Letters(Text(fields.next().unwrap_or_default().into())),
                })
            }
            b'S' => Message::Scan {
                seq: fields.read(hex::<2>)? as u8,
                ms: fields.read(hex::<8>)? as u32,
                squares: Squares {
                    occupied: fields.read(hex::<16>)?,
                    white: fields.read(hex::<16>).ok(),
                },
            },
            b'D' => Message::Delta {
                seq: fields.read(hex::<2>)? as u8,
                ms: fields.read(hex::<8>)? as u32,
                changes: fields.read(changes)?,
            },
            b'B' => Message::Battery {
                percent: fields.read(|text| decimal(text).filter(|percent| *percent <= 100))? as u8,
                millivolts: fields.read(decimal).ok(),
            },
            b'E' => Message::Fault(Text(rest.into())),
            b'A'..=b'Z' => Message::Unknown(Text(body.into())),
            _ => return Err(SkipReason::NotOurs),
        })
    }
}

/// The fields of a body, one after the other. What follows the last one that is asked for is of a later version, and ignored.
struct Fields<'a> {
    letter: char,
    number: usize,
    rest: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<&'a str, SkipReason> {
        self.number += 1;
        let rest = self.rest.ok_or_else(|| self.bad())?;
        let (field, rest) = match rest.split_once(',') {
            Some((field, rest)) => (field, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        Ok(field)
    }

    fn read<T>(&mut self, read: impl FnOnce(&'a str) -> Option<T>) -> Result<T, SkipReason> {
        let field = self.next()?;
        read(field).ok_or_else(|| self.bad())
    }

    fn bad(&self) -> SkipReason {
        SkipReason::BadField {
            letter: self.letter,
            field: self.number,
        }
    }
}

/// A number of exactly `DIGITS` hexadecimal digits.
fn hex<const DIGITS: usize>(text: &str) -> Option<u64> {
    let whole = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| whole)
}

fn decimal(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// At least one of `+e4` and `-e2`.
fn changes(text: &str) -> Option<Vec<Change>> {
    let (each, rest) = text.as_bytes().as_chunks::<3>();
    if each.is_empty() || !rest.is_empty() {
        return None;
    }
    each.iter()
        .map(|[sign, file, rank]| {
            let occupied = match sign {
                b'+' => true,
                b'-' => false,
                _ => return None,
            };
            let file = file.checked_sub(b'a').filter(|file| *file < 8)?;
            let rank = rank.checked_sub(b'1').filter(|rank| *rank < 8)?;
            Some(Change {
                square: rank * 8 + file,
                occupied,
            })
        })
        .collect()
}

impl Squares {
    pub fn is_occupied(&self, square: u8) -> bool {
        self.occupied & bit(square) != 0
    }

    /// Whether a white man stands there; none where the square is empty, or the board sees no colours.
    pub fn is_white(&self, square: u8) -> Option<bool> {
        self.white
            .filter(|_| self.is_occupied(square))
            .map(|white| white & bit(square) != 0)
    }

    pub fn set_occupied(&mut self, square: u8, occupied: bool) {
        match occupied {
            true => self.occupied |= bit(square),
            false => self.occupied &= !bit(square),
        }
    }
}

/// The bit of a square.
pub(super) fn bit(square: u8) -> u64 {
    1 << (square & 63)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.occupied { '+' } else { '-' };
        let file = char::from(b'a' + self.square % 8);
        let rank = self.square / 8 % 8 + 1;
        write!(f, "{sign}{file}{rank}")
    }
}

/// What is no name of a board.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no name of a board: 1 to 24 of A-Z, a-z, 0-9, _ and -")]
pub struct UnfitId(String);

impl FromStr for BoardId {
    type Err = UnfitId;

    fn from_str(text: &str) -> Result<BoardId, UnfitId> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        match (1..=24).contains(&text.len()) && text.bytes().all(fits) {
            true => Ok(BoardId(text.to_owned())),
            false => Err(UnfitId(crate::text::one_line(text, 40))),
        }
    }
}

impl fmt::Display for BoardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Text {
    /// A field of a line: what does not fit becomes `_`, and what is longer than 24 characters is cut.
    pub fn word(text: &str) -> Text {
        Text::fitted(text, ",$*", 24)
    }

    /// All of a line but its letter: the same with commas, up to 78 characters.
    pub fn line(text: &str) -> Text {
        Text::fitted(text, "$*", 78)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn fitted(text: &str, without: &str, most: usize) -> Text {
        let fits =
            |c: &char| is_printable(&[u8::try_from(*c).unwrap_or(0)]) && !without.contains(*c);
        let fitted = |c: char| Some(c).filter(fits).unwrap_or('_');
        Text(text.chars().take(most).map(fitted).collect())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Letters {
    pub fn new(letters: &str) -> Letters {
        Letters(Text::word(letters))
    }

    pub fn has(&self, letter: char) -> bool {
        self.0.as_str().contains(letter)
    }
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Command {
    pub fn encode(self) -> Vec<u8> {
        match self {
            Command::Ask => b"?\n".to_vec(),
            Command::Lamps(squares) => {
                let mut out = Vec::new();
                frame(&format!("L,{squares:016X}"), &mut out);
                out
            }
        }
    }

    /// What a line of a host says, without its LF. Whatever stands before a question belongs to what was said before to another
    /// board: who looks for boards of several kinds asks in several tongues.
    pub(super) fn decode(line: &[u8]) -> Option<Command> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.ends_with(b"?") {
            return Some(Command::Ask);
        }
        let (body, [b'*', digits @ ..]) = line.strip_prefix(b"$")?.split_last_chunk::<3>()? else {
            return None;
        };
        let said = hex::<2>(std::str::from_utf8(digits).ok()?)?;
        if said != u64::from(super::check(body)) {
            return None;
        }
        let squares = std::str::from_utf8(body).ok()?.strip_prefix("L,")?;
        let squares = squares.split(',').next()?;
        hex::<16>(squares).map(Command::Lamps)
    }
}
