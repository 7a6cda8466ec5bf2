//! How well a line fits what was seen on the way, where the placement alone does not tell: a board that knows no men shows the same
//! after every capture that a man can make.
//!
//! A weight counts against a line, in tenths of the natural logarithm of its odds, so that weights add up. They rest on what three
//! recordings of real games show: of 36 captures 26 left no empty square behind, and nobody touches a third square without need.

use super::*;

/// How much speaks against a line; less is likelier.
pub(super) type Weight = u32;

/// The captured man was overwritten: no empty square was seen.
pub(super) const OVERWRITTEN: Weight = 3;
/// His square was seen empty, and filled after the capturing man had left his own.
pub(super) const TAKEN_AWAY: Weight = 13;
/// His square was seen empty, but filled again before the capturing man was lifted: more likely he was put back.
const PUT_BACK_FIRST: Weight = 25;
/// A castling man's square is filled by the other one, and was never seen empty.
pub(super) const EXCHANGED_UNSEEN: Weight = 30;
/// A man of the line's side, or of the other, was lifted and put back for nothing.
const ADJUSTED: Weight = 35;
/// The same while the moving man was in the hand.
const TOUCHED_ON_THE_WAY: Weight = 55;
/// Something stood for a moment on a square that is none of the line's.
const PASSED_OVER: Weight = 20;
/// The same beside a capture: the captured man on his way off the board.
pub(super) const PASSED_BESIDE: Weight = 8;

/// The answering man was lifted before what he answers was put down; within one look at the board nobody can tell.
pub(super) const LIFTED_EARLY: Weight = 12;
/// The king makes a step where he could castle.
const CASTLING_GIVEN_UP: Weight = 35;

/// What players would hardly choose is in doubt all the same: only what was seen tells that it was not played.
const MOST_IMPLAUSIBLE: Weight = 30;

/// A line and how much speaks against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Weighed {
    pub(super) moves: Vec<Move>,
    pub(super) weight: Weight,
}

impl Weighed {
    /// The same for each of its moves: all of it speaks against the first.
    pub(super) fn weights(&self) -> Vec<Weight> {
        let rest = std::iter::repeat(0);
        std::iter::once(self.weight)
            .chain(rest)
            .take(self.moves.len())
            .collect()
    }
}

/// A line against which nothing speaks.
impl From<Vec<Move>> for Weighed {
    fn from(moves: Vec<Move>) -> Weighed {
        Weighed { moves, weight: 0 }
    }
}

impl Sensing {
    /// The lines with what speaks against each, the likeliest first.
    pub(super) fn weighed(&self, from: &Standpoint<'_>, lines: Vec<Vec<Move>>) -> Vec<Weighed> {
        let mut weighed: Vec<Weighed> = lines
            .into_iter()
            .map(|moves| Weighed {
                weight: self.weigh(from, &moves),
                moves,
            })
            .collect();
        weighed.sort_by_key(|line| line.weight);
        weighed
    }

    /// What speaks against `line`, played from there, by what the squares did since.
    pub(super) fn weigh(&self, from: &Standpoint<'_>, line: &[Move]) -> Weight {
        self.weigh_touches_from(from.since, from, line)
    }

    /// The same where what squares that are none of the line's did until `weighed` is known to speak against it already.
    pub(super) fn weigh_touches_from(
        &self,
        weighed: Millis,
        from: &Standpoint<'_>,
        line: &[Move],
    ) -> Weight {
        if self.picture.is_exact() {
            return 0;
        }
        let &Standpoint { last, since, .. } = from;
        let mut weight = 0;
        let mut explained = Bitboard::EMPTY;
        let mut beside = Bitboard::EMPTY;
        let mut reached = Bitboard::EMPTY;
        let mut lifted: Option<Millis> = None;
        let mut position = from.position.clone();
        // Whom the move before took may still have been on his way off the board.
        let taken_before = last.filter(|last| last.is_capture());
        let mut last = last;
        for m in line {
            let to = m.to();
            explained |= position.squares(*m);
            if let Some(from) = m.from() {
                explained |= attacks::between(from, to);
                lifted = self.left_at(from).or(lifted);
            }
            if m.is_capture() && !m.is_en_passant() {
                let filled = self.trail.at(to);
                // The man that came there before him in this line may be all that was seen.
                let touched = filled > since && !self.picture.is_empty(to) && !reached.contains(to);
                let left = m.from().and_then(|from| self.left_at(from));
                weight += match (touched, left) {
                    (false, _) => OVERWRITTEN,
                    (true, Some(left)) if filled < left => PUT_BACK_FIRST,
                    (true, _) => TAKEN_AWAY,
                };
                beside |= attacks::king_attacks(to);
            }
            if let Move::Castle { king, rook } = *m {
                for square in [king, rook] {
                    if !self.picture.is_empty(square) && self.trail.at(square) <= since {
                        weight += EXCHANGED_UNSEEN;
                    }
                }
            }
            reached.add(to);
            weight += implausible(&position, *m, last);
            last = Some(*m);
            position = position.play(*m);
        }
        let is_left_before = |square: Square| {
            taken_before.is_some_and(|last| attacks::king_attacks(last.to()).contains(square))
                && lifted.is_some_and(|lifted| self.trail.at(square) < lifted)
        };
        for square in self.trail.changed_since(weighed) & !explained {
            weight += if !self.picture.is_empty(square) {
                match lifted {
                    Some(lifted) if self.trail.at(square) > lifted => TOUCHED_ON_THE_WAY,
                    _ => ADJUSTED,
                }
            } else if from.position.board().piece_at(square).is_some() {
                // A man in a hand says nothing.
                0
            } else if is_left_before(square) {
                0
            } else if beside.contains(square) {
                PASSED_BESIDE
            } else {
                PASSED_OVER
            };
        }
        weight
    }

    /// Whether the answering man was lifted before the one that he answers was put down.
    pub(super) fn lifted_early(&self, m: Move, reply: Move, since: Millis) -> bool {
        let to = m.to();
        let came = self.trail.at(to);
        // Who took him there came later, and may be all that is seen.
        let is_his = reply.to() != to || (!m.is_capture() && self.trail.came_since(to, came));
        let is_seen = is_his && came > since && !self.picture.is_empty(to) && !m.is_castle();
        let left = reply.from().and_then(|from| self.left_at(from));
        is_seen && left.is_some_and(|left| left + LOOK_MS < came)
    }

    /// When the square was last seen to be left, if it is vacant.
    pub(super) fn left_at(&self, square: Square) -> Option<Millis> {
        self.picture.is_empty(square).then(|| self.trail.at(square))
    }

    /// When the board first showed `m`: its man gone from where it stood, and put down where that can be seen.
    pub(super) fn shown_at(
        &self,
        before: &Position,
        m: Move,
        since: Millis,
        now: Millis,
    ) -> Millis {
        if self.picture.is_exact() {
            return now;
        }
        before
            .effects(m)
            .squares()
            .into_iter()
            .map(|square| self.trail.at(square))
            .filter(|at| *at > since && *at <= now)
            .max()
            .unwrap_or(now)
    }
}

/// What speaks against any one move where a player has many to choose from: who is in check has few.
pub(super) fn choices(position: &Position) -> Weight {
    let mut left = position.moves().len();
    let mut weight = 0;
    while left > 1 {
        left = left * 2 / 3;
        weight += 4;
    }
    weight
}

/// What speaks against a player's choosing this move among others that look alike: only captures and exchanges do.
pub(super) fn implausible(position: &Position, m: Move, last: Option<Move>) -> Weight {
    let exchange = exchange(m);
    if !m.is_capture() {
        return match m {
            Move::Normal {
                role: Role::King,
                from,
                ..
            } if gives_up_castling(position, from) => CASTLING_GIVEN_UP,
            _ => exchange,
        };
    }
    let takes_back = last.is_some_and(|last| last.is_capture() && last.to() == m.to());
    let gain = gain_of(position, m);
    let bargain = match gain {
        _ if takes_back && gain >= 0 => 0,
        1.. => 10 - 2 * gain.min(5) as Weight,
        0 => 10,
        _ => (12 + 8 * gain.unsigned_abs()).min(MOST_IMPLAUSIBLE),
    };
    exchange + bargain
}

/// What speaks against exchanging a pawn for this man, and not for a queen.
pub(super) fn exchange(m: Move) -> Weight {
    match m.promotion() {
        None | Some(Role::Queen) => 0,
        Some(Role::Knight) => 30,
        Some(_) => 40,
    }
}

/// Whether this king could castle instead.
fn gives_up_castling(position: &Position, king: Square) -> bool {
    position.may_castle_with(king) && !position.castling_moves().is_empty()
}

/// What the exchanges on one square bring the side that begins them, in pawns.
fn gain_of(position: &Position, m: Move) -> i32 {
    let worth = |role: Role| match role {
        Role::Pawn => 1,
        Role::Knight | Role::Bishop => 3,
        Role::Rook => 5,
        Role::Queen => 9,
        Role::King => 100,
    };
    let (Some(from), to) = (m.from(), m.to()) else {
        return 0;
    };
    let board = position.board();
    let mut occupied = board.occupied().without(from);
    let mut gains = vec![m.capture().map_or(0, worth)];
    let mut on_square = worth(m.role());
    let mut side = !position.turn();
    loop {
        let attackers = board.attacks_to(to, side, occupied) & occupied;
        let least = attackers
            .into_iter()
            .filter_map(|square| Some((worth(board.role_at(square)?), square)))
            .min();
        let Some((value, square)) = least else { break };
        gains.push(on_square - gains[gains.len() - 1]);
        on_square = value;
        occupied.discard(square);
        side = !side;
        if gains.len() > 16 {
            break;
        }
    }
    // Nobody has to go on taking.
    while gains.len() > 1 {
        let last = gains.pop().unwrap_or(0);
        let index = gains.len() - 1;
        gains[index] = -(-gains[index]).max(last);
    }
    gains[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(fen: &str, uci: &str) -> i32 {
        let position = Position::from_fen(fen, false).expect("a position");
        gain_of(&position, position.parse_uci(uci, false).expect("a move"))
    }

    #[test]
    fn exchanges_are_counted_to_their_end() {
        let table = [
            // Pawn takes pawn, nobody takes back.
            ("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "e4d5", 1),
            // The queen takes a guarded pawn.
            ("4k3/8/4p3/3p4/8/8/8/3QK3 w - - 0 1", "d1d5", -8),
            // Knight for knight, guarded once.
            ("4k3/8/4p3/3n4/8/2N5/8/4K3 w - - 0 1", "c3d5", 0),
            // Two attackers, one guard.
            ("4k3/8/4p3/3n4/4P3/2N5/8/4K3 w - - 0 1", "e4d5", 3),
            // A rook behind a rook counts too.
            ("3rk3/8/8/3p4/8/8/3R4/3RK3 w - - 0 1", "d2d5", 1),
        ];
        for (fen, uci, expected) in table {
            assert_eq!(gain(fen, uci), expected, "{fen} {uci}");
        }
    }
}
