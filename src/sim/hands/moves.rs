//! One move carried out: the men of it lifted and put down, in one of the orders in which people do that.

use shakmaty::{
    Bitboard, CastlingSide, Chess, Color, Move, Piece, Position, Role, Square, attacks,
};

use super::{HAND_MS, Hands, Level};
use crate::Millis;
use crate::sim::script::{Manner, Table};

impl Hands {
    /// Carries out one move; gives the time of the first touch.
    pub(in crate::sim) fn play(
        &mut self,
        table: &mut Table,
        position: &Chess,
        m: Move,
        manners: &mut Vec<Manner>,
    ) -> Option<Millis> {
        let side = position.turn();
        let touched_ms = table.now;
        match m {
            Move::Castle { king, rook } => self.castle(table, side, king, rook, manners),
            Move::EnPassant { from, to } => self.en_passant(table, side, from, to, manners),
            Move::Normal {
                role,
                from,
                to,
                capture,
                promotion,
            } => {
                let piece = role.of(side);
                match (capture.is_some(), promotion) {
                    (false, None) => self.step(table, piece, from, to, manners),
                    (true, None) => self.capture(table, piece, from, to, manners),
                    (captures, Some(role)) => {
                        self.promote(table, from, to, piece, role.of(side), captures, manners);
                    }
                }
            }
            // Only in variants that are not played here.
            Move::Put { .. } => return None,
        }
        Some(touched_ms)
    }

    fn step(
        &mut self,
        table: &mut Table,
        piece: Piece,
        from: Square,
        to: Square,
        manners: &mut Vec<Manner>,
    ) {
        if self.human() && self.chance(self.unless_hurried(20, 0)) {
            manners.push(Manner::TargetFirst);
            table.place(to, piece);
            table.wait(self.between(40, 150));
            table.lift(from);
            return;
        }
        table.lift(from);
        self.carry(table, piece, from, to, manners);
        table.place(to, piece);
    }

    fn capture(
        &mut self,
        table: &mut Table,
        piece: Piece,
        from: Square,
        to: Square,
        manners: &mut Vec<Manner>,
    ) {
        let shares = self.unless_hurried([720, 195, 85], [850, 100, 50]);
        let manner = self.capture_manner(shares, manners);
        match manner {
            Manner::VictimFirst => {
                table.lift(to);
                self.pause_with_victim(table);
                table.lift(from);
                self.carry(table, piece, from, to, manners);
            }
            Manner::OwnFirst => {
                table.lift(from);
                self.carry(table, piece, from, to, manners);
                table.lift(to);
                table.wait(self.hand_ms());
            }
            _ => {
                table.lift(from);
                self.carry(table, piece, from, to, manners);
            }
        }
        table.place(to, piece);
    }

    /// How a man is taken: shares of over it, it first, one's own man first.
    fn capture_manner(&mut self, shares: [u64; 3], manners: &mut Vec<Manner>) -> Manner {
        let [over, victim, own] = shares;
        let manner = match self.level {
            Level::Clean => Manner::VictimFirst,
            _ => self.choose(&[
                (over, Manner::Overwritten),
                (victim, Manner::VictimFirst),
                (own, Manner::OwnFirst),
            ]),
        };
        manners.push(manner);
        manner
    }

    /// En passant: the captured pawn does not stand where the capturing one goes.
    fn en_passant(
        &mut self,
        table: &mut Table,
        side: Color,
        from: Square,
        to: Square,
        manners: &mut Vec<Manner>,
    ) {
        let victim = Square::from_coords(to.file(), from.rank());
        let pawn = side.pawn();
        let order = match self.level {
            Level::Clean => None,
            _ => self.choose(&[
                (600, None),
                (200, Some(Manner::VictimFirst)),
                (200, Some(Manner::OwnFirst)),
            ]),
        };
        manners.extend(order);
        match order {
            Some(Manner::VictimFirst) => {
                table.lift(victim);
                self.pause_with_victim(table);
                table.lift(from);
                table.wait(self.hand_ms());
                table.place(to, pawn);
            }
            Some(_) => {
                table.lift(from);
                table.wait(self.hand_ms());
                table.lift(victim);
                table.wait(self.hand_ms());
                table.place(to, pawn);
            }
            None => {
                table.lift(from);
                table.wait(self.hand_ms());
                table.place(to, pawn);
                table.wait(self.hand_ms());
                table.lift(victim);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a promotion has this many parts")]
    fn promote(
        &mut self,
        table: &mut Table,
        from: Square,
        to: Square,
        pawn: Piece,
        piece: Piece,
        captures: bool,
        manners: &mut Vec<Manner>,
    ) {
        if captures {
            let manner = self.capture_manner([400, 400, 200], manners);
            match manner {
                Manner::VictimFirst => {
                    table.lift(to);
                    self.pause_with_victim(table);
                    table.lift(from);
                }
                Manner::OwnFirst => {
                    table.lift(from);
                    table.wait(self.hand_ms());
                    table.lift(to);
                }
                _ => {
                    table.lift(from);
                }
            }
        } else {
            table.lift(from);
        }
        table.wait(self.hand_ms());
        if self.human() && self.chance(500) {
            manners.push(Manner::PawnFirst);
            table.place(to, pawn);
            let (low, high) = self.unless_hurried((400, 2500), (100, 300));
            table.wait(self.between(low, high));
            if self.chance(700) {
                table.lift(to);
                table.wait(self.hand_ms());
            }
        } else {
            manners.push(Manner::PieceDirect);
        }
        table.place(to, piece);
    }

    /// Castling. In Chess960 either man may stand still, or go where the other one stands.
    fn castle(
        &mut self,
        table: &mut Table,
        side: Color,
        king: Square,
        rook: Square,
        manners: &mut Vec<Manner>,
    ) {
        let castling = CastlingSide::from_king_side(king < rook);
        let (king_to, rook_to) = (castling.king_to(side), castling.rook_to(side));
        let (moves_king, moves_rook) = (king != king_to, rook != rook_to);
        if !(moves_king && moves_rook) {
            let (piece, from, to) = if moves_king {
                (side.king(), king, king_to)
            } else {
                (side.rook(), rook, rook_to)
            };
            if moves_king || moves_rook {
                table.lift(from);
                table.wait(self.hand_ms());
                table.place(to, piece);
            }
            return;
        }
        let manner = match self.level {
            Level::Clean => Manner::KingFirst,
            _ => self.choose(&[
                (self.unless_hurried(800, 500), Manner::KingFirst),
                (100, Manner::RookFirst),
                (self.unless_hurried(100, 400), Manner::TwoHanded),
            ]),
        };
        manners.push(manner);
        let mut men = [(side.king(), king, king_to), (side.rook(), rook, rook_to)];
        if manner == Manner::RookFirst || manner == Manner::TwoHanded && self.chance(500) {
            men.swap(0, 1);
        }
        let [(one, one_from, one_to), (two, two_from, two_to)] = men;
        table.lift(one_from);
        if manner == Manner::TwoHanded || one_to == two_from {
            // Both men are in the air.
            table.wait(match self.level {
                Level::Clean => HAND_MS,
                _ => self.between(10, self.unless_hurried(150, 60)),
            });
            table.lift(two_from);
            table.wait(self.hand_ms());
            let mut places = [(one, one_to), (two, two_to)];
            if manner == Manner::TwoHanded && self.chance(500) {
                places.swap(0, 1);
            }
            table.place(places[0].1, places[0].0);
            let (low, high) = self.unless_hurried((10, 250), (5, 60));
            table.wait(match self.level {
                Level::Clean => HAND_MS,
                _ => self.between(low, high),
            });
            table.place(places[1].1, places[1].0);
            return;
        }
        table.wait(self.hand_ms());
        table.place(one_to, one);
        let (low, high) = self.unless_hurried((150, 1200), (30, 120));
        table.wait(match self.level {
            Level::Clean => HAND_MS,
            _ => self.between(low, high),
        });
        table.lift(two_from);
        table.wait(self.hand_ms());
        table.place(two_to, two);
    }

    /// What a player does before he moves: lifts the man and puts it back, or adjusts another one of his (Article 4.2).
    pub(super) fn fidget(
        &mut self,
        table: &mut Table,
        position: &Chess,
        m: Move,
        manners: &mut Vec<Manner>,
    ) {
        if !self.human() || self.level == Level::Blitz {
            return;
        }
        if self.chance(15)
            && let Some(from) = m.from()
            && let Some(piece) = table.lift(from)
        {
            manners.push(Manner::PutBack);
            table.wait(self.between(200, 1500));
            table.place(from, piece);
            table.wait(self.between(300, 1500));
        }
        let mut others = position.us();
        others.discard(m.from().unwrap_or(m.to()));
        if self.chance(15)
            && let Some(square) = self.pick(others)
            && let Some(piece) = table.lift(square)
        {
            manners.push(Manner::Adjusted);
            table.wait(self.between(60, 390));
            table.place(square, piece);
            table.wait(self.between(200, 900));
        }
    }

    pub(super) fn straighten(
        &mut self,
        table: &mut Table,
        position: &Chess,
        m: Move,
        manners: &mut Vec<Manner>,
    ) {
        let Some(castling) = m.castling_side() else {
            return;
        };
        if !(self.human() && self.chance(self.unless_hurried(150, 0))) {
            return;
        }
        let side = position.turn();
        let square = if self.chance(500) {
            castling.king_to(side)
        } else {
            castling.rook_to(side)
        };
        table.wait(self.between(80, 400));
        if let Some(piece) = table.lift(square) {
            manners.push(Manner::Straightened);
            table.wait(self.between(60, 390));
            table.place(square, piece);
        }
    }

    /// The captured man, already in the hand, passes close over a neighbouring square.
    pub(super) fn drag_victim(
        &mut self,
        table: &mut Table,
        position: &Chess,
        m: Move,
        ply: usize,
        coming: &[Move],
        manners: &mut Vec<Manner>,
    ) {
        let (true, Some(role)) = (self.human(), m.capture()) else {
            return;
        };
        if !self.chance(140) {
            return;
        }
        let mut squares = attacks::king_attacks(m.to());
        // Not where the next moves go through: two men on a square is more than a board can show.
        for &next in coming.iter().take(3) {
            squares &= !reach(next, table);
        }
        squares &= !reach(m, table);
        let free = squares
            .into_iter()
            .filter(|&square| table.is_free(square))
            .collect::<Bitboard>();
        if let Some(square) = self.pick(free) {
            manners.push(Manner::VictimDragged);
            let from_ms = table.now + self.between(30, self.unless_hurried(600, 120));
            let until_ms =
                from_ms + self.between(self.unless_hurried(80, 40), self.unless_hurried(900, 150));
            let victim = role.of(position.turn().other());
            table.ghost(ply, square, victim, from_ms, until_ms);
        }
    }

    /// From the lift to just before the man is put down, perhaps seen on its way.
    fn carry(
        &mut self,
        table: &mut Table,
        piece: Piece,
        from: Square,
        to: Square,
        manners: &mut Vec<Manner>,
    ) {
        if self.human() {
            let way = match piece.role {
                Role::Knight if self.chance(10) => {
                    let beside = attacks::king_attacks(to)
                        .into_iter()
                        .filter(|&square| table.is_free(square) && square != from)
                        .collect();
                    self.pick(beside).into_iter().collect::<Vec<_>>()
                }
                Role::Bishop | Role::Rook | Role::Queen | Role::Pawn
                    if attacks::between(from, to).any()
                        && self.chance(self.unless_hurried(SLIDES, HURRIED_SLIDES)) =>
                {
                    self.stops(from, to)
                }
                _ => Vec::new(),
            };
            if !way.is_empty() {
                manners.push(if piece.role == Role::Knight {
                    Manner::Brushed
                } else {
                    Manner::Slid
                });
            }
            let (low, high) = self.unless_hurried((60, 300), (10, 40));
            for square in way {
                table.wait(self.between(low, high));
                table.place(square, piece);
                table.wait(if self.chance(self.unless_hurried(100, 0)) {
                    1000
                } else {
                    self.between(low, high)
                });
                table.lift(square);
            }
        }
        table.wait(self.hand_ms());
    }

    /// One or two squares on the way, in order.
    fn stops(&mut self, from: Square, to: Square) -> Vec<Square> {
        let mut way: Vec<Square> = attacks::between(from, to).into_iter().collect();
        way.sort_by_key(|square| square.distance(from));
        let stops = if self.chance(self.unless_hurried(400, 700)) {
            2
        } else {
            1
        };
        while way.len() > stops {
            way.remove(self.rng.usize(..way.len()));
        }
        way
    }

    fn pause_with_victim(&mut self, table: &mut Table) {
        let ms = if !self.human() {
            HAND_MS
        } else if self.chance(self.unless_hurried(150, 0)) {
            // He has the victim in his hand and looks once more.
            self.between(1500, 12_000)
        } else if self.level == Level::Blitz {
            self.between(40, 120)
        } else {
            self.between(100, 600)
        };
        table.wait(ms);
    }
}

/// All squares that a move can touch, those on the way included.
fn reach(m: Move, table: &Table) -> Bitboard {
    let mut squares = Bitboard::from_square(m.to());
    if let Some(from) = m.from() {
        squares.add(from);
        squares |= attacks::between(from, m.to());
        // Men that stand on the board may be adjusted at any time, and a knight brushes what is beside its square.
        squares |= table.board.occupied();
        if m.role() == Role::Knight {
            squares |= attacks::king_attacks(m.to());
        }
        if m.is_castle() {
            squares |= Bitboard::from_rank(from.rank());
        }
        if m.is_en_passant() {
            squares.add(Square::from_coords(m.to().file(), from.rank()));
        }
    }
    squares
}

/// Of 1000 moves over other squares so many are slid, which makes some 5 of 100 moves.
const SLIDES: u64 = 150;

/// In a hurry men are pushed rather than lifted.
const HURRIED_SLIDES: u64 = 400;
