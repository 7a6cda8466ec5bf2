//! Moves that are none, each with what is wrong with it, and what legal play could explain after all.

use std::collections::HashSet;

use shakmaty::{
    Bitboard, Board, CastlingMode, CastlingSide, Chess, File, Piece, Position, Rank, Role, Square,
    attacks,
};

use super::Situation;
use crate::sim::hands::Hands;
use crate::sim::script::{Breach, Table};

impl Hands {
    /// An illegal move of the side to move, of a reason drawn by lot where the position gives it.
    pub(super) fn illegal(&mut self, table: &Table, s: &Situation) -> Option<Illegal> {
        let explained = Explained::new(s);
        let mut reasons = Breach::ALL;
        self.shuffle(&mut reasons);
        if self.chance(300) {
            // Few positions give these.
            reasons.sort_by_key(|reason| !matches!(reason, Breach::Castling | Breach::EnPassant));
        }
        let mut all = illegal_moves(s.position);
        self.shuffle(&mut all);
        for reason in reasons {
            let found = all.iter().position(|illegal| {
                illegal.breach == reason
                    && !explained.has(&illegal.board)
                    && illegal.changes.iter().all(|&(square, piece)| {
                        piece.is_none()
                            || table.board.piece_at(square).is_some()
                            || table.is_free(square)
                    })
            });
            if let Some(index) = found {
                return Some(all.swap_remove(index));
            }
        }
        None
    }
}

/// A move that is none, with everything that it changes.
pub(super) struct Illegal {
    pub breach: Breach,
    pub changes: Vec<(Square, Option<Piece>)>,
    pub board: Board,
}

/// Boards that legal play explains, as it stands or by another last move.
pub(super) struct Explained {
    boards: HashSet<Board>,
    outlines: HashSet<Bitboard>,
}

impl Illegal {
    pub fn squares(&self) -> Vec<Square> {
        let mut squares: Vec<Square> = self.changes.iter().map(|(square, _)| *square).collect();
        squares.sort_unstable();
        squares.dedup();
        squares
    }
}

impl Explained {
    pub fn new(s: &Situation) -> Explained {
        let mut boards: HashSet<Board> = HashSet::new();
        for position in [Some(s.position), s.before, s.earlier]
            .into_iter()
            .flatten()
        {
            boards.insert(position.board().clone());
            boards.extend(successors(position).map(|next| next.board().clone()));
        }
        // Another move two plies ago and the same reply to it.
        if let (Some(earlier), Some(last)) = (s.earlier, s.last) {
            let others = successors(earlier).filter(|other| other.is_legal(last));
            boards.extend(others.map(|mut other| {
                other.play_unchecked(last);
                other.board().clone()
            }));
        }
        let outlines = boards.iter().map(Board::occupied).collect();
        Explained { boards, outlines }
    }

    pub fn has(&self, board: &Board) -> bool {
        self.boards.contains(board)
    }

    pub fn has_outline(&self, board: &Board) -> bool {
        self.outlines.contains(&board.occupied())
    }
}

fn successors(position: &Chess) -> impl Iterator<Item = Chess> + '_ {
    position.legal_moves().into_iter().map(|m| {
        let mut next = position.clone();
        next.play_unchecked(m);
        next
    })
}

pub(super) fn with(board: &Board, changes: &[(Square, Option<Piece>)]) -> Board {
    let mut board = board.clone();
    for &(square, piece) in changes {
        match piece {
            Some(piece) => board.set_piece_at(square, piece),
            None => board.discard_piece_at(square),
        }
    }
    board
}

/// Every way in which a man of the side to move can go wrong. A pawn on the last rank only waits for its queen, and nobody takes a king.
fn illegal_moves(position: &Chess) -> Vec<Illegal> {
    let mut all = Vec::new();
    let board = position.board();
    for from in position.us() {
        let Some(man) = board.piece_at(from) else {
            continue;
        };
        for to in Square::ALL {
            let waits = man.role == Role::Pawn && Bitboard::BACKRANKS.contains(to);
            if to == from || waits || board.role_at(to) == Some(Role::King) {
                continue;
            }
            let mut changes = vec![(from, None), (to, Some(man))];
            let breach = breach(position, man, from, to);
            if breach == Breach::EnPassant {
                changes.push((Square::from_coords(to.file(), from.rank()), None));
            }
            all.push(Illegal {
                breach,
                board: with(board, &changes),
                changes,
            });
        }
    }
    all.extend(castlings(position).into_iter().map(|changes| Illegal {
        breach: Breach::Castling,
        board: with(board, &changes),
        changes,
    }));
    all
}

/// What would be wrong with this move, if it is not legal.
fn breach(position: &Chess, man: Piece, from: Square, to: Square) -> Breach {
    let board = position.board();
    if board.color_at(to) == Some(man.color) {
        return Breach::OwnManTaken;
    }
    if man.role == Role::Pawn && board.piece_at(to).is_none() {
        let passed = Square::from_coords(to.file(), from.rank());
        let takes = attacks::pawn_attacks(man.color, from).contains(to);
        let fifth = man.color.fold_wb(Rank::Fifth, Rank::Fourth);
        if takes && from.rank() == fifth && board.piece_at(passed) == Some(man.color.other().pawn())
        {
            return Breach::EnPassant;
        }
        let ahead = from.file() == to.file();
        let forward = man.color.fold_wb(1, -1);
        let steps = (i32::from(to.rank()) - i32::from(from.rank())) * forward;
        let second = man.color.fold_wb(Rank::Second, Rank::Seventh);
        return match steps {
            1 if ahead => Breach::KingInCheck,
            2 if ahead && from.rank() == second => {
                if (attacks::between(from, to) & board.occupied()).any() {
                    Breach::PathBlocked
                } else {
                    Breach::KingInCheck
                }
            }
            _ => Breach::CannotMoveSo,
        };
    }
    if !attacks::attacks(from, man, Bitboard::EMPTY).contains(to) {
        Breach::CannotMoveSo
    } else if !attacks::attacks(from, man, board.occupied()).contains(to) {
        Breach::PathBlocked
    } else {
        Breach::KingInCheck
    }
}

/// Castlings from the usual squares over empty ones, whether they are allowed or not.
fn castlings(position: &Chess) -> Vec<Vec<(Square, Option<Piece>)>> {
    let side = position.turn();
    let board = position.board();
    let rank = side.fold_wb(Rank::First, Rank::Eighth);
    let king = Square::from_coords(File::E, rank);
    if position.castles().mode() != CastlingMode::Standard || board.king_of(side) != Some(king) {
        return Vec::new();
    }
    CastlingSide::ALL
        .into_iter()
        .filter_map(|castling| {
            let file = if castling.is_king_side() {
                File::H
            } else {
                File::A
            };
            let rook = Square::from_coords(file, rank);
            let clear = (attacks::between(king, rook) & board.occupied()).is_empty();
            (clear && board.piece_at(rook) == Some(side.rook())).then(|| {
                vec![
                    (king, None),
                    (castling.king_to(side), Some(side.king())),
                    (rook, None),
                    (castling.rook_to(side), Some(side.rook())),
                ]
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::fen::Fen;

    fn breaches(fen: &str, from: Square, to: Square) -> Vec<Breach> {
        let fen: Fen = fen.parse().unwrap();
        let position: Chess = fen.into_position(CastlingMode::Standard).unwrap();
        illegal_moves(&position)
            .into_iter()
            .filter(|illegal| {
                illegal.changes[0] == (from, None)
                    && illegal.changes[1] == (to, position.board().piece_at(from))
            })
            .map(|illegal| illegal.breach)
            .collect()
    }

    #[test]
    fn each_move_has_its_reason() {
        for (fen, from, to, reason) in [
            (
                "4k3/8/8/8/8/8/8/N3K3 w - - 0 1",
                Square::A1,
                Square::A2,
                Breach::CannotMoveSo,
            ),
            (
                "4k3/8/8/8/8/8/P7/R3K3 w - - 0 1",
                Square::A1,
                Square::A5,
                Breach::PathBlocked,
            ),
            (
                "4k3/8/8/8/8/N7/P7/4K3 w - - 0 1",
                Square::A2,
                Square::A4,
                Breach::PathBlocked,
            ),
            (
                "4k3/4r3/8/8/8/4N3/8/4K3 w - - 0 1",
                Square::E3,
                Square::C4,
                Breach::KingInCheck,
            ),
            (
                "4k3/8/8/8/8/8/P7/R3K3 w - - 0 1",
                Square::A1,
                Square::A2,
                Breach::OwnManTaken,
            ),
            (
                "4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1",
                Square::E5,
                Square::D6,
                Breach::EnPassant,
            ),
            (
                "4k3/8/8/3Pp3/8/8/8/4K3 b - - 0 1",
                Square::E5,
                Square::D4,
                Breach::CannotMoveSo,
            ),
            (
                "4k3/8/8/8/3Pp3/8/8/4K3 b - - 0 1",
                Square::E4,
                Square::D3,
                Breach::EnPassant,
            ),
        ] {
            assert_eq!(breaches(fen, from, to), [reason], "{fen} {from} {to}");
        }
    }

    #[test]
    fn castling_through_check_and_without_the_right_are_illegal_castlings() {
        for fen in [
            "4k3/8/8/2b5/8/8/8/4K2R w K - 0 1",
            "4k3/8/8/8/8/8/8/4K2R w - - 0 1",
        ] {
            let both = breaches(fen, Square::E1, Square::G1);
            assert!(both.contains(&Breach::Castling), "{fen}: {both:?}");
        }
        let blocked = breaches("4k3/8/8/8/8/8/8/4KB1R w K - 0 1", Square::E1, Square::G1);
        assert_eq!(blocked, [Breach::CannotMoveSo]);
    }
}
