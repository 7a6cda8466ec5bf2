//! DGT boards in single-board mode: bytes to messages and back, for both ends of the cable.
//!
//! The host's side is [`Decoder`], which turns bytes into [`Message`]s, and [`Command`], which is all a host may say.
//! The board's side is [`VirtualBoard`], which answers as a board does. Section numbers in these files are those of the
//! protocol sheet (see the crate's page).
//!
//! Squares are numbered and clock sides named as the board does it. Which way round the board stands, and whose clock
//! is the left one, is for others to say.

mod command;
mod decoder;
mod message;
mod virtual_board;

pub use command::{
    Beeps, ClockCommand, ClockSetting, ClockText, Command, Icons, RunMode, Segments,
};
pub use decoder::{Decoder, Item, SkipReason, Skipped};
pub use message::{
    Ack, AckKind, AckOutcome, Battery, BwTime, ClockButton, ClockButtons, ClockMessage, Message,
    SideTime, serial_digits,
};
pub use virtual_board::{Identity, Mode, VirtualBoard};

use std::fmt;

/// A square as the board numbers it (3.3): 0 = a8, 1 = b8 … 63 = h1 while the connector is at White's left hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawSquare(u8);

impl RawSquare {
    /// The square of this number, if there is one.
    pub const fn new(index: u8) -> Option<Self> {
        if index < 64 { Some(Self(index)) } else { None }
    }

    /// All 64 in the board's order.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        const ALL: [RawSquare; 64] = {
            let mut all = [RawSquare(0); 64];
            let mut index = 0;
            while index < 64 {
                all[index] = RawSquare(index as u8);
                index += 1;
            }
            all
        };
        ALL.into_iter()
    }

    /// Its number, 0 to 63.
    pub const fn index(self) -> u8 {
        self.0
    }

    /// The square that has this one's place when the board is turned half round.
    pub const fn turned(self) -> Self {
        Self(63 - self.0)
    }
}

impl TryFrom<u8> for RawSquare {
    type Error = SkipReason;

    fn try_from(index: u8) -> Result<Self, SkipReason> {
        Self::new(index).ok_or(SkipReason::NoSuchSquare(index))
    }
}

impl From<RawSquare> for u8 {
    fn from(square: RawSquare) -> u8 {
        square.0
    }
}

impl fmt::Display for RawSquare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the sensor of a square reads (3.4). The order, king before queen, is the board's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum PieceCode {
    #[default]
    Empty = 0x0,
    WhitePawn = 0x1,
    WhiteRook = 0x2,
    WhiteKnight = 0x3,
    WhiteBishop = 0x4,
    WhiteKing = 0x5,
    WhiteQueen = 0x6,
    BlackPawn = 0x7,
    BlackRook = 0x8,
    BlackKnight = 0x9,
    BlackBishop = 0xa,
    BlackKing = 0xb,
    BlackQueen = 0xc,
    /// The token that stands for a draw; not a chessman.
    Draw = 0xd,
    /// The token that stands for White's win; not a chessman.
    WhiteWins = 0xe,
    /// The token that stands for Black's win; not a chessman.
    BlackWins = 0xf,
}

impl PieceCode {
    /// Every code in the order of its number.
    pub const ALL: [Self; 16] = [
        Self::Empty,
        Self::WhitePawn,
        Self::WhiteRook,
        Self::WhiteKnight,
        Self::WhiteBishop,
        Self::WhiteKing,
        Self::WhiteQueen,
        Self::BlackPawn,
        Self::BlackRook,
        Self::BlackKnight,
        Self::BlackBishop,
        Self::BlackKing,
        Self::BlackQueen,
        Self::Draw,
        Self::WhiteWins,
        Self::BlackWins,
    ];

    /// The piece this number stands for, if any.
    pub fn new(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The chessman with this FEN letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|piece| piece.letter() == Some(letter))
    }

    /// Its FEN letter; none for an empty square and for a token.
    pub fn letter(self) -> Option<char> {
        Some(match self {
            Self::WhitePawn => 'P',
            Self::WhiteRook => 'R',
            Self::WhiteKnight => 'N',
            Self::WhiteBishop => 'B',
            Self::WhiteKing => 'K',
            Self::WhiteQueen => 'Q',
            Self::BlackPawn => 'p',
            Self::BlackRook => 'r',
            Self::BlackKnight => 'n',
            Self::BlackBishop => 'b',
            Self::BlackKing => 'k',
            Self::BlackQueen => 'q',
            Self::Empty | Self::Draw | Self::WhiteWins | Self::BlackWins => return None,
        })
    }
}

impl TryFrom<u8> for PieceCode {
    type Error = SkipReason;

    fn try_from(code: u8) -> Result<Self, SkipReason> {
        Self::new(code).ok_or(SkipReason::NoSuchPiece(code))
    }
}

impl From<PieceCode> for u8 {
    fn from(piece: PieceCode) -> u8 {
        piece as u8
    }
}

/// The start position as a board dump shows it, connector at White's left hand. Turned round it reads backwards.
pub const START: [PieceCode; 64] = {
    use PieceCode::*;
    let mut board = [Empty; 64];
    let black = [
        BlackRook,
        BlackKnight,
        BlackBishop,
        BlackQueen,
        BlackKing,
        BlackBishop,
        BlackKnight,
        BlackRook,
    ];
    let white = [
        WhiteRook,
        WhiteKnight,
        WhiteBishop,
        WhiteQueen,
        WhiteKing,
        WhiteBishop,
        WhiteKnight,
        WhiteRook,
    ];
    let mut file = 0;
    while file < 8 {
        board[file] = black[file];
        board[8 + file] = BlackPawn;
        board[48 + file] = WhitePawn;
        board[56 + file] = white[file];
        file += 1;
    }
    board
};

/// A byte of this size or more begins a frame, and is never data (3.1).
const HEADER: u8 = 0x80;

/// The longest frame that fourteen bits of length can announce (3.1).
const MAX_FRAME: usize = 0x3fff;

/// Message identifiers (3.2).
mod id {
    pub const BOARD_DUMP: u8 = 0x86;
    pub const BWTIME: u8 = 0x8d;
    pub const FIELD_UPDATE: u8 = 0x8e;
    pub const EE_MOVES: u8 = 0x8f;
    pub const BUS_ADDRESS: u8 = 0x90;
    pub const SERIAL_NUMBER: u8 = 0x91;
    pub const TRADEMARK: u8 = 0x92;
    pub const VERSION: u8 = 0x93;
    pub const HARDWARE_VERSION: u8 = 0x96;
    pub const BATTERY: u8 = 0xa0;
    pub const LONG_SERIAL_NUMBER: u8 = 0xa2;
}

/// Opcodes that a host must never send: they start the boot loader, rewrite the board's memory, leave single-board mode
/// or mean nothing to a board without lamps (section 2, checklist 9).
const FORBIDDEN: [u8; 7] = [0x4a, 0x4e, 0x51, 0x53, 0x54, 0x60, 0x63];

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests;
