//! What a DGT board is asked, and what its frames say (a board alone on its cable).

use shakmaty::{Color, Role, Square};

use super::driver::{Dialect, Reading};
use super::{Contents, Token};
use crate::clock::{self, ClockSource, Display, Wing};
use crate::wire::dgt::{
    BwTime, ClockMessage, Command, Decoder, Item, Message, PieceCode, RawSquare, SideTime, Skipped,
    serial_digits,
};

/// The decoder of what a DGT board sends, with the questions to it.
#[derive(Debug, Default)]
pub struct Dgt {
    decoder: Decoder,
}

impl Dialect for Dgt {
    /// None has more than one byte, which a device of another make might take for something else.
    fn identify(&self) -> Vec<Vec<u8>> {
        encoded(&[
            Command::Reset,
            Command::LongSerialNumber,
            Command::SerialNumber,
            Command::Version,
        ])
    }

    /// What all clients ask first (protocol sheet 2).
    fn opening(&self) -> Vec<Vec<u8>> {
        let report = encoded(&[Command::Board, Command::UpdateNice, Command::Clock]);
        [self.identify(), report].concat()
    }

    fn ask_squares(&self) -> Option<Vec<u8>> {
        Some(Command::Board.encode())
    }

    fn clock_source(&self) -> ClockSource {
        ClockSource::Dgt
    }

    /// Every board has a number, and the answer is short (protocol sheet 7.4).
    fn ask_life(&self) -> Vec<u8> {
        Command::SerialNumber.encode()
    }

    fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Reading)) {
        self.decoder.push(bytes, |item| {
            sink(match item {
                Item::Message(message) => reading(message),
                Item::Skipped(skipped) => unread(skipped),
            });
        });
    }

    fn abandon(&mut self) -> Option<Reading> {
        self.decoder.abandon().map(unread)
    }

    fn buffered(&self) -> &[u8] {
        self.decoder.buffered()
    }
}

fn encoded(commands: &[Command]) -> Vec<Vec<u8>> {
    commands.iter().map(Command::encode).collect()
}

/// The board's index of a square in the numbering of a board that stands right (protocol sheet 3.3: a8 is 0).
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

fn unread(skipped: Skipped) -> Reading {
    Reading::Skipped {
        bytes: skipped.bytes,
        reason: skipped.reason.to_string(),
        loss: true,
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
            Reading::Scan {
                squares: Box::new(squares),
                gapless: false,
            }
        }
        Message::Clock(ClockMessage::Times(times)) => Reading::Clock(clock_reading(&times)),
        Message::Clock(ClockMessage::Absent) => Reading::Clock(clock::Reading::Absent),
        Message::Clock(ClockMessage::Ack(ack)) => Reading::Other(format!("clock ack {ack:?}")),
        Message::Clock(ClockMessage::Null) => Reading::Other("clock null".into()),
        Message::SerialNumber(ref text) | Message::LongSerialNumber(ref text) => {
            match serial_digits(text) {
                Some(serial) => Reading::Serial {
                    number: serial.to_owned(),
                    long: matches!(message, Message::LongSerialNumber(_)),
                },
                None => Reading::Other(format!("{message:?}")),
            }
        }
        Message::Version { major, minor } => Reading::Firmware(format!("{major}.{minor}")),
        Message::Battery(battery) => match battery.percent {
            Some(percent) => Reading::Battery(percent),
            None => Reading::Other("battery".into()),
        },
        other => Reading::Other(format!("{other:?}")),
    }
}

/// The lever's raised side is to move, and its clock runs when the clock runs (protocol sheet 3.5).
fn clock_reading(times: &BwTime) -> clock::Reading {
    let display = |side: &SideTime| Display {
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
