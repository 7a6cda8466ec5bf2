//! The record that a session is a fold over: what the board and the clock showed and what people asked, each with its time.
//!
//! Moves, presses, alerts and numbers follow from the entries and from nothing else, so that a session that is rebuilt from them is
//! the one that was: same games, same ids, same timers. Readings that say nothing new are not kept; neither are raw bytes.

use crate::Millis;
use crate::board::Contents;
use crate::clock;
use crate::command::Command;
use crate::publish::Link;
use crate::wire::Family;
use serde::{Deserialize, Serialize};
use shakmaty::{Color, Piece, Role, Square};

/// One entry of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub at: Millis,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The session began: what is armed from the start waits since then.
    Begun,
    /// Squares that read differently, in the board's own numbering: index 0 to 63 (a1 is 0), and what they show.
    Squares {
        changes: Vec<(u8, Code)>,
        /// A dump showed them, which does not tell when they changed.
        #[serde(default)]
        dump: bool,
    },
    /// The board told of a change of this square that leaves it as it was read before.
    Repeated(u8),
    /// A dump agreed with what was known, where that was in question.
    Dump,
    /// A clock reading that says something new.
    Clock(ClockCode),
    Command(Box<Command>),
    /// What the wall clock shows from now on.
    Wall(Wall),
    /// A pairing stands whose game was played before the first entry.
    Paired,
    /// Whether the board is there.
    Link(Link),
    /// A board of this family is plugged in from now on.
    Family(Family),
    /// What the board says of itself.
    Serial {
        number: String,
        long: bool,
    },
    Firmware(String),
    Battery(u8),
}

/// The wall clock beside the monotonic one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    /// Unix time in milliseconds at monotonic time 0.
    pub offset_ms: i64,
    /// Whether it can be trusted.
    pub time_ok: bool,
}

impl Wall {
    /// Unix time in milliseconds.
    pub fn unix_ms(&self, at: Millis) -> i64 {
        self.offset_ms
            .saturating_add(i64::try_from(at).unwrap_or(i64::MAX))
    }
}

/// Contents of a square as one character: a FEN letter, `.` empty, `x` something, `1` White or `2` Black for a side, `=`, `+`, `-` for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(char);

impl From<Contents> for Code {
    fn from(contents: Contents) -> Code {
        use crate::board::Token;
        Code(match contents {
            Contents::Empty => '.',
            Contents::Occupied => 'x',
            Contents::Side(Color::White) => '1',
            Contents::Side(Color::Black) => '2',
            Contents::Piece(piece) => piece.char(),
            Contents::Token(Token::Draw) => '=',
            Contents::Token(Token::WhiteWins) => '+',
            Contents::Token(Token::BlackWins) => '-',
        })
    }
}

impl Code {
    /// The contents; `None` for a character that stands for nothing, which only a damaged record holds.
    pub fn contents(self) -> Option<Contents> {
        use crate::board::Token;
        Some(match self.0 {
            '.' => Contents::Empty,
            'x' => Contents::Occupied,
            '1' => Contents::Side(Color::White),
            '2' => Contents::Side(Color::Black),
            '=' => Contents::Token(Token::Draw),
            '+' => Contents::Token(Token::WhiteWins),
            '-' => Contents::Token(Token::BlackWins),
            letter => Contents::Piece(Piece {
                color: Color::from_white(letter.is_ascii_uppercase()),
                role: Role::from_char(letter)?,
            }),
        })
    }
}

/// A square as it is kept.
pub fn index(square: Square) -> u8 {
    square.to_u32() as u8
}

/// A clock reading as it is kept: times in milliseconds, the flags, who is to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCode {
    left: Option<(u64, bool)>,
    right: Option<(u64, bool)>,
    running: bool,
    right_to_move: bool,
}

impl From<clock::Reading> for ClockCode {
    fn from(reading: clock::Reading) -> ClockCode {
        match reading {
            clock::Reading::Absent => ClockCode {
                left: None,
                right: None,
                running: false,
                right_to_move: false,
            },
            clock::Reading::Times {
                left,
                right,
                running,
                to_move,
            } => ClockCode {
                left: Some((left.ms, left.flag)),
                right: Some((right.ms, right.flag)),
                running,
                right_to_move: to_move == clock::Wing::Right,
            },
        }
    }
}

impl From<ClockCode> for clock::Reading {
    fn from(code: ClockCode) -> clock::Reading {
        let (Some(left), Some(right)) = (code.left, code.right) else {
            return clock::Reading::Absent;
        };
        let display = |(ms, flag)| clock::Display { ms, flag };
        clock::Reading::Times {
            left: display(left),
            right: display(right),
            running: code.running,
            to_move: if code.right_to_move {
                clock::Wing::Right
            } else {
                clock::Wing::Left
            },
        }
    }
}
