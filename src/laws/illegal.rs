//! What a player tried, read off two placements, and why the Laws do not know it (Article 3, 7.5.1, 7.5.2).

use super::position::Position;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Bitboard, Board, CastlingSide, Color, File, Move, Piece, Role, Square, attacks};

/// Why the Laws do not know a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IllegalReason {
    PieceCannotMoveSo,
    PathBlocked,
    OwnKingInCheck,
    CastlingRightLost,
    CastlingThroughCheck,
    CastlingBlocked,
    NoEnPassant,
    OwnPieceCaptured,
    KingCaptured,
    WrongColourPromotion,
    PawnOnLastRank,
    NotYourTurn,
    PiecesSwapped,
    Other,
}

/// One deed of one player that no legal move explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// One man went from one square to another; `placed` differs from `man` where a pawn was exchanged.
    One {
        from: Square,
        to: Square,
        man: Piece,
        placed: Piece,
    },
    /// King and rook as in castling.
    Castle { color: Color, side: CastlingSide },
    /// A pawn went as in en passant, and the pawn beside it is gone.
    EnPassant {
        from: Square,
        to: Square,
        color: Color,
    },
    /// Two men of one side stand on each other's squares.
    Swapped { a: Square, b: Square, color: Color },
}

impl Attempt {
    /// Reads the deed off what differs between the position and the board. `shown` tells the man that the board shows.
    pub fn read(
        position: &Position,
        differing: Bitboard,
        shown: impl Fn(Square) -> Option<Piece>,
    ) -> Option<Attempt> {
        let board = position.board();
        match differing.count() {
            2 => {
                let (a, b) = (differing.first()?, differing.last()?);
                one_man(board, a, b, &shown)
                    .or_else(|| one_man(board, b, a, &shown))
                    .or_else(|| swapped(board, a, b, &shown))
            }
            3 => en_passant_like(board, differing, &shown),
            4 => castling_like(board, differing, &shown),
            _ => None,
        }
    }

    pub fn color(&self) -> Color {
        match *self {
            Attempt::One { man, .. } => man.color,
            Attempt::Castle { color, .. }
            | Attempt::EnPassant { color, .. }
            | Attempt::Swapped { color, .. } => color,
        }
    }

    /// Whether it takes the square of an own man.
    pub fn takes_own_man(&self, position: &Position) -> bool {
        matches!(*self, Attempt::One { to, man, .. } if position.board().color_at(to) == Some(man.color))
    }

    /// The deed as a move that can be played on by geometry, if it is one.
    pub fn as_move(&self, position: &Position) -> Option<Move> {
        if self.color() != position.turn() {
            return None;
        }
        match *self {
            Attempt::One {
                from,
                to,
                man,
                placed,
            } => {
                let promotion = (placed != man).then_some(placed.role);
                if placed.color != man.color || (promotion.is_some() && man.role != Role::Pawn) {
                    return None;
                }
                if position.board().color_at(to) == Some(man.color) {
                    return None;
                }
                Some(Move::Normal {
                    role: man.role,
                    from,
                    to,
                    capture: position.board().role_at(to),
                    promotion,
                })
            }
            Attempt::Castle { color, side } => {
                let king = position.board().king_of(color)?;
                let rook = corner(color, side);
                Some(Move::Castle { king, rook })
            }
            Attempt::EnPassant { from, to, .. } => Some(Move::EnPassant { from, to }),
            Attempt::Swapped { .. } => None,
        }
    }

    /// UCI of what was tried, where it can be written so.
    pub fn uci(&self, position: &Position) -> Option<String> {
        match *self {
            Attempt::One {
                from,
                to,
                man,
                placed,
            } => {
                let exchanged = if placed.role != man.role {
                    placed.role.char().to_string()
                } else {
                    String::new()
                };
                Some(format!("{from}{to}{exchanged}"))
            }
            Attempt::Castle { .. } => self.as_move(position).map(|m| position.uci(m)),
            Attempt::EnPassant { from, to, .. } => Some(format!("{from}{to}")),
            Attempt::Swapped { .. } => None,
        }
    }

    /// Why the Laws do not know it.
    pub fn reason(&self, position: &Position) -> IllegalReason {
        if self.color() != position.turn() {
            return IllegalReason::NotYourTurn;
        }
        match *self {
            Attempt::One {
                from,
                to,
                man,
                placed,
            } => reason_of_one(position, from, to, man, placed),
            Attempt::Castle { color, side } => reason_of_castling(position, color, side),
            Attempt::EnPassant { from, to, .. } => {
                let known = position.setup().ep_square == Some(to) || {
                    position
                        .geometric_moves()
                        .contains(&Move::EnPassant { from, to })
                };
                if known {
                    IllegalReason::OwnKingInCheck
                } else {
                    IllegalReason::NoEnPassant
                }
            }
            Attempt::Swapped { .. } => IllegalReason::PiecesSwapped,
        }
    }
}

fn one_man(
    board: &Board,
    from: Square,
    to: Square,
    shown: &impl Fn(Square) -> Option<Piece>,
) -> Option<Attempt> {
    let man = board.piece_at(from)?;
    if shown(from).is_some() {
        return None;
    }
    let placed = shown(to)?;
    let exchanged =
        man.role == Role::Pawn && placed.role != Role::Pawn && is_last_rank(man.color, to);
    (placed == man || exchanged).then_some(Attempt::One {
        from,
        to,
        man,
        placed,
    })
}

fn swapped(
    board: &Board,
    a: Square,
    b: Square,
    shown: &impl Fn(Square) -> Option<Piece>,
) -> Option<Attempt> {
    let (on_a, on_b) = (board.piece_at(a)?, board.piece_at(b)?);
    let crossed = shown(a) == Some(on_b) && shown(b) == Some(on_a);
    (crossed && on_a.color == on_b.color).then_some(Attempt::Swapped {
        a,
        b,
        color: on_a.color,
    })
}

fn en_passant_like(
    board: &Board,
    differing: Bitboard,
    shown: &impl Fn(Square) -> Option<Piece>,
) -> Option<Attempt> {
    let to = differing
        .into_iter()
        .find(|square| shown(*square).is_some())?;
    let placed = shown(to).filter(|piece| piece.role == Role::Pawn)?;
    let victim = (!placed.color).pawn();
    let gone = |square: &Square| shown(*square).is_none();
    let from = differing
        .into_iter()
        .find(|square| gone(square) && board.piece_at(*square) == Some(placed))?;
    let beside = differing
        .into_iter()
        .find(|square| gone(square) && board.piece_at(*square) == Some(victim))?;
    let fits = board.piece_at(to).is_none()
        && attacks::pawn_attacks(placed.color, from).contains(to)
        && beside == Square::from_coords(to.file(), from.rank());
    fits.then_some(Attempt::EnPassant {
        from,
        to,
        color: placed.color,
    })
}

fn castling_like(
    board: &Board,
    differing: Bitboard,
    shown: &impl Fn(Square) -> Option<Piece>,
) -> Option<Attempt> {
    for color in Color::ALL {
        for side in CastlingSide::ALL {
            let home = Square::from_coords(File::E, color.backrank());
            let rook = corner(color, side);
            let squares = Bitboard::from(home)
                | Bitboard::from(rook)
                | Bitboard::from(side.king_to(color))
                | Bitboard::from(side.rook_to(color));
            if squares == differing
                && board.piece_at(home) == Some(Role::King.of(color))
                && board.piece_at(rook) == Some(Role::Rook.of(color))
                && shown(side.king_to(color)) == Some(Role::King.of(color))
                && shown(side.rook_to(color)) == Some(Role::Rook.of(color))
                && shown(home).is_none()
                && shown(rook).is_none()
            {
                return Some(Attempt::Castle { color, side });
            }
        }
    }
    None
}

fn corner(color: Color, side: CastlingSide) -> Square {
    Square::from_coords(
        if side.is_king_side() {
            File::H
        } else {
            File::A
        },
        color.backrank(),
    )
}

fn is_last_rank(color: Color, square: Square) -> bool {
    square.rank() == (!color).backrank()
}

fn reason_of_one(
    position: &Position,
    from: Square,
    to: Square,
    man: Piece,
    placed: Piece,
) -> IllegalReason {
    let board = position.board();
    let taken = board.piece_at(to);
    if taken.is_some_and(|taken| taken.color == man.color) {
        return IllegalReason::OwnPieceCaptured;
    }
    let reach = reach_on_empty_board(position, from, to, man);
    if man.role == Role::Pawn && is_last_rank(man.color, to) && reach == Reach::Open {
        if placed.color != man.color {
            return IllegalReason::WrongColourPromotion;
        }
        if placed.role == Role::Pawn {
            return IllegalReason::PawnOnLastRank;
        }
        if placed.role == Role::King {
            return IllegalReason::Other;
        }
    }
    match reach {
        Reach::Never => {
            if let Some(side) = two_squares_of_king(from, to, man) {
                return reason_of_castling(position, man.color, side);
            }
            if beside_pawn(board, from, to, man) {
                IllegalReason::NoEnPassant
            } else {
                IllegalReason::PieceCannotMoveSo
            }
        }
        Reach::Blocked => IllegalReason::PathBlocked,
        Reach::Open if taken.is_some_and(|taken| taken.role == Role::King) => {
            IllegalReason::KingCaptured
        }
        Reach::Open => IllegalReason::OwnKingInCheck,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Never,
    Blocked,
    Open,
}

/// Whether the man could go there on an empty board, and whether something stands between.
fn reach_on_empty_board(position: &Position, from: Square, to: Square, man: Piece) -> Reach {
    let board = position.board();
    if man.role == Role::Pawn {
        let step = man.color.fold_wb(8, -8);
        if attacks::pawn_attacks(man.color, from).contains(to) {
            return if board.piece_at(to).is_some() {
                Reach::Open
            } else {
                Reach::Never
            };
        }
        let one = from.offset(step);
        let second = man
            .color
            .fold_wb(shakmaty::Rank::Second, shakmaty::Rank::Seventh);
        let two = one
            .and_then(|one| one.offset(step))
            .filter(|_| from.rank() == second);
        if one == Some(to) {
            return if board.piece_at(to).is_some() {
                Reach::Blocked
            } else {
                Reach::Open
            };
        }
        if two == Some(to) {
            let free = one.is_some_and(|one| board.piece_at(one).is_none())
                && board.piece_at(to).is_none();
            return if free { Reach::Open } else { Reach::Blocked };
        }
        return Reach::Never;
    }
    if !attacks::attacks(from, man, Bitboard::EMPTY).contains(to) {
        Reach::Never
    } else if attacks::attacks(from, man, board.occupied()).contains(to) {
        Reach::Open
    } else {
        Reach::Blocked
    }
}

fn two_squares_of_king(from: Square, to: Square, man: Piece) -> Option<CastlingSide> {
    let home = Square::from_coords(File::E, man.color.backrank());
    if man.role != Role::King || from != home {
        return None;
    }
    CastlingSide::ALL
        .into_iter()
        .find(|side| side.king_to(man.color) == to)
}

/// A pawn stepped diagonally to an empty square behind an enemy pawn.
fn beside_pawn(board: &Board, from: Square, to: Square, man: Piece) -> bool {
    man.role == Role::Pawn
        && attacks::pawn_attacks(man.color, from).contains(to)
        && board.piece_at(Square::from_coords(to.file(), from.rank())) == Some((!man.color).pawn())
}

/// Article 3.8.2, in its order: the right is lost, something stands between, the king is or would pass in check.
fn reason_of_castling(position: &Position, color: Color, side: CastlingSide) -> IllegalReason {
    let setup = position.setup();
    let castles = shakmaty::Castles::from_setup(&setup, position.castling_mode())
        .unwrap_or_else(|castles| castles);
    if castles.rook(color, side).is_none() {
        return IllegalReason::CastlingRightLost;
    }
    if (castles.path(color, side) & setup.board.occupied()).any() {
        return IllegalReason::CastlingBlocked;
    }
    IllegalReason::CastlingThroughCheck
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FEN before, what the board shows after as a placement, the reason. One row a kind; colours mirrored below.
    const TABLE: &[(&str, &str, IllegalReason)] = &[
        // The knight is pinned against its king, or the king stands in check already.
        (
            "4k3/8/8/8/1b6/8/3N4/4K3 w - - 0 1",
            "4k3/8/8/8/1b6/5N2/8/4K3",
            IllegalReason::OwnKingInCheck,
        ),
        (
            "4k3/8/8/8/8/8/8/R3K3 w - - 0 1",
            "4k3/8/8/8/8/8/1R6/4K3",
            IllegalReason::PieceCannotMoveSo,
        ),
        (
            "4k3/8/8/8/8/P7/8/R3K3 w - - 0 1",
            "4k3/8/8/8/R7/P7/8/4K3",
            IllegalReason::PathBlocked,
        ),
        (
            "4k3/8/8/2b5/8/8/8/4K2R w K - 0 1",
            "4k3/8/8/2b5/8/8/8/5RK1",
            IllegalReason::CastlingThroughCheck,
        ),
        (
            "4k3/8/8/8/8/8/8/4K2R w - - 0 1",
            "4k3/8/8/8/8/8/8/5RK1",
            IllegalReason::CastlingRightLost,
        ),
        (
            "4k3/8/8/8/8/8/8/4KB1R w K - 0 1",
            "4k3/8/8/8/8/8/8/5BKR",
            IllegalReason::CastlingBlocked,
        ),
        (
            "4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1",
            "4k3/8/3P4/8/8/8/8/4K3",
            IllegalReason::NoEnPassant,
        ),
        (
            "4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1",
            "4k3/8/3P4/3p4/8/8/8/4K3",
            IllegalReason::NoEnPassant,
        ),
        (
            "4k3/8/8/8/8/8/P7/R3K3 w - - 0 1",
            "4k3/8/8/8/8/8/R7/4K3",
            IllegalReason::OwnPieceCaptured,
        ),
        (
            "4k3/8/8/8/8/8/8/4RK2 w - - 0 1",
            "4R3/8/8/8/8/8/8/5K2",
            IllegalReason::KingCaptured,
        ),
        (
            "8/4P2k/8/8/8/8/8/4K3 w - - 0 1",
            "4q3/7k/8/8/8/8/8/4K3",
            IllegalReason::WrongColourPromotion,
        ),
        (
            "8/4P2k/8/8/8/8/8/4K3 w - - 0 1",
            "4P3/7k/8/8/8/8/8/4K3",
            IllegalReason::PawnOnLastRank,
        ),
        (
            "4k3/8/8/8/8/8/8/R3K3 b - - 0 1",
            "4k3/8/8/8/8/8/R7/4K3",
            IllegalReason::NotYourTurn,
        ),
        (
            "4k3/8/8/8/8/8/8/1NB1K3 w - - 0 1",
            "4k3/8/8/8/8/8/8/1BN1K3",
            IllegalReason::PiecesSwapped,
        ),
        (
            "4k3/8/8/8/8/8/P7/4K3 w - - 0 1",
            "4k3/8/8/P7/8/8/8/4K3",
            IllegalReason::PieceCannotMoveSo,
        ),
    ];

    fn judge(fen: &str, shown: &str) -> Option<IllegalReason> {
        let position = Position::from_fen(fen, false).expect("table");
        let shown = Board::from_ascii_board_fen(shown.as_bytes()).expect("table");
        let differing = Square::ALL
            .into_iter()
            .filter(|s| position.board().piece_at(*s) != shown.piece_at(*s))
            .collect();
        Attempt::read(&position, differing, |s| shown.piece_at(s))
            .map(|attempt| attempt.reason(&position))
    }

    fn mirrored(fen: &str) -> String {
        let (placement, rest) = fen.split_once(' ').unwrap_or((fen, ""));
        let swap = |text: &str| -> String {
            text.chars()
                .map(|c| {
                    if c.is_lowercase() {
                        c.to_ascii_uppercase()
                    } else {
                        c.to_ascii_lowercase()
                    }
                })
                .collect()
        };
        let placement: Vec<String> = placement.split('/').rev().map(swap).collect();
        if rest.is_empty() {
            return placement.join("/");
        }
        let fields: Vec<&str> = rest.split(' ').collect();
        let turn = if fields[0] == "w" { "b" } else { "w" };
        let rights = if fields[1] == "-" {
            "-".to_owned()
        } else {
            swap(fields[1])
        };
        format!("{} {turn} {rights} - 0 1", placement.join("/"))
    }

    #[test]
    fn reasons_by_table_and_mirrored() {
        for (fen, shown, reason) in TABLE {
            assert_eq!(judge(fen, shown), Some(*reason), "{fen} -> {shown}");
            assert_eq!(
                judge(&mirrored(fen), &mirrored(shown)),
                Some(*reason),
                "mirrored {fen} -> {shown}"
            );
        }
    }
}
