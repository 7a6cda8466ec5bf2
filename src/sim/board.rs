//! The boards that can be played: what they notice of their squares and clock, in the bytes of their family.

use shakmaty::{Color, Piece, Role, Square};

use super::clock::{ClockFace, SideFace};
use super::line;
use crate::Millis;
use crate::wire::Family;
use crate::wire::dgt::{self, BwTime, Mode, PieceCode, RawSquare, SideTime};
use crate::wire::psb1;

/// A virtual board of any family.
#[derive(Debug, Clone)]
pub enum VirtualBoard {
    Dgt(dgt::VirtualBoard),
    Psb1(psb1::VirtualBoard),
}

impl From<dgt::VirtualBoard> for VirtualBoard {
    fn from(board: dgt::VirtualBoard) -> VirtualBoard {
        VirtualBoard::Dgt(board)
    }
}

impl From<psb1::VirtualBoard> for VirtualBoard {
    fn from(board: psb1::VirtualBoard) -> VirtualBoard {
        VirtualBoard::Psb1(board)
    }
}

impl VirtualBoard {
    /// A board of this family; none while there is none to be played.
    pub fn of(family: Family) -> Option<VirtualBoard> {
        match family {
            Family::Dgt => Some(dgt::VirtualBoard::default().into()),
            Family::Psb1 => Some(psb1::VirtualBoard::default().into()),
            Family::DgtBus | Family::Certabo | Family::Chesslink => None,
        }
    }

    pub fn family(&self) -> Family {
        match self {
            VirtualBoard::Dgt(_) => Family::Dgt,
            VirtualBoard::Psb1(_) => Family::Psb1,
        }
    }

    /// The speed of its line.
    pub fn baud(&self) -> u32 {
        match self {
            VirtualBoard::Dgt(_) => line::BAUD,
            VirtualBoard::Psb1(_) => line::PSB1_BAUD,
        }
    }

    /// Whether a clock can be plugged into it.
    pub fn has_clock(&self) -> bool {
        match self {
            VirtualBoard::Dgt(_) => true,
            VirtualBoard::Psb1(_) => false,
        }
    }

    /// What a host has to say so that it tells all squares, and from then on what changes.
    pub fn greeting(&self) -> &'static [u8] {
        match self {
            // SEND_BRD and SEND_UPDATE_NICE (protocol sheet 2).
            VirtualBoard::Dgt(_) => &[0x42, 0x4b],
            VirtualBoard::Psb1(_) => b"\n?\n",
        }
    }

    /// The number that it has for a square; turned round it counts from the other end.
    pub(super) fn number(&self, square: Square, rotated: bool) -> usize {
        let square = if rotated { square.rotate_180() } else { square };
        match self {
            // From a8 along the ranks (protocol sheet 3.3).
            VirtualBoard::Dgt(_) => square.flip_vertical().to_usize(),
            VirtualBoard::Psb1(_) => square.to_usize(),
        }
    }

    /// The men stand when the board gets power.
    pub(super) fn set_up(&mut self, now: Millis, men: &[Option<Piece>; 64]) -> Vec<Vec<u8>> {
        let men: Vec<(usize, Option<Piece>)> = men.iter().copied().enumerate().collect();
        let told = self.handle_look(now, &men);
        match self {
            VirtualBoard::Dgt(_) => told,
            VirtualBoard::Psb1(board) => {
                board.power_cycle(now);
                Vec::new()
            }
        }
    }

    /// The board notices what stands on these squares, all in one look.
    pub(super) fn handle_look(
        &mut self,
        now: Millis,
        look: &[(usize, Option<Piece>)],
    ) -> Vec<Vec<u8>> {
        match self {
            VirtualBoard::Dgt(board) => look
                .iter()
                .map(|(number, man)| board.set_square(raw(*number), code(*man)))
                .collect(),
            VirtualBoard::Psb1(board) => {
                let look: Vec<(u8, Option<bool>)> = look
                    .iter()
                    .map(|(number, man)| (*number as u8, man.map(|man| man.color.is_white())))
                    .collect();
                board.set_squares(now, &look)
            }
        }
    }

    /// The clock shows something, the same as before or not.
    pub(super) fn handle_clock(&mut self, face: ClockFace) -> Vec<u8> {
        match self {
            VirtualBoard::Dgt(board) => board.set_clock(Some(face.into())),
            VirtualBoard::Psb1(_) => Vec::new(),
        }
    }

    pub(super) fn handle_host(&mut self, now: Millis, bytes: &[u8]) -> Vec<Vec<u8>> {
        match self {
            VirtualBoard::Dgt(board) => vec![board.handle_host(bytes)],
            VirtualBoard::Psb1(board) => board.handle_host(now, bytes),
        }
    }

    /// Whether a host wants to know what happens.
    pub(super) fn is_watched(&self) -> bool {
        match self {
            VirtualBoard::Dgt(board) => board.mode() != Mode::Idle,
            VirtualBoard::Psb1(board) => board.is_asked(),
        }
    }

    /// When it next says something unasked, though nothing changes.
    pub(super) fn poll_timeout(&self) -> Option<Millis> {
        match self {
            VirtualBoard::Dgt(_) => None,
            VirtualBoard::Psb1(board) => Some(board.poll_timeout()),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Millis) -> Vec<Vec<u8>> {
        match self {
            VirtualBoard::Dgt(_) => Vec::new(),
            VirtualBoard::Psb1(board) => board.handle_timeout(now),
        }
    }
}

fn raw(number: usize) -> RawSquare {
    let raw = u8::try_from(number).ok().and_then(RawSquare::new);
    raw.expect("a board has 64 squares")
}

impl From<ClockFace> for BwTime {
    fn from(face: ClockFace) -> BwTime {
        BwTime {
            right: face.right.into(),
            left: face.left.into(),
            running: face.running,
            right_up: face.right_up,
            battery_low: false,
        }
    }
}

impl From<SideFace> for SideTime {
    fn from(face: SideFace) -> SideTime {
        SideTime {
            hours: face.hours,
            minutes: face.minutes,
            seconds: face.seconds,
            flag_halted: face.halted,
            increment: face.increment,
            flag_shown: face.flag_shown,
        }
    }
}

fn code(piece: Option<Piece>) -> PieceCode {
    let Some(Piece { color, role }) = piece else {
        return PieceCode::Empty;
    };
    match (color, role) {
        (Color::White, Role::Pawn) => PieceCode::WhitePawn,
        (Color::White, Role::Knight) => PieceCode::WhiteKnight,
        (Color::White, Role::Bishop) => PieceCode::WhiteBishop,
        (Color::White, Role::Rook) => PieceCode::WhiteRook,
        (Color::White, Role::Queen) => PieceCode::WhiteQueen,
        (Color::White, Role::King) => PieceCode::WhiteKing,
        (Color::Black, Role::Pawn) => PieceCode::BlackPawn,
        (Color::Black, Role::Knight) => PieceCode::BlackKnight,
        (Color::Black, Role::Bishop) => PieceCode::BlackBishop,
        (Color::Black, Role::Rook) => PieceCode::BlackRook,
        (Color::Black, Role::Queen) => PieceCode::BlackQueen,
        (Color::Black, Role::King) => PieceCode::BlackKing,
    }
}
