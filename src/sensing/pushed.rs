//! Men that were pushed beside their squares, on a board that knows no men: nobody went there.

use super::*;

/// Who is pushed has come to the next square by then.
const PUSHED_MS: Millis = 1_000;

impl Sensing {
    /// Whether all that is wrong is men who stand beside their squares, where no such man goes: they were pushed there, on a board where
    /// anybody may have come to stand on a square.
    pub(super) fn is_pushed(&self, view: &View<'_>) -> bool {
        const MOST: usize = 2;
        if !self.is_poor() {
            return false;
        }
        let tip = view.tip();
        let open = self.picture.differing(tip.board());
        let (left, came) = (open & self.picture.vacant(), open & !self.picture.vacant());
        let may_go = |from: Square, to: Square| {
            let man = tip.board().piece_at(from);
            man.is_some_and(|man| match man.role {
                // Straight on, or to where he may have taken somebody of whom the record does not know.
                Role::Pawn => {
                    (attacks::pawn_attacks(!man.color, to) | to.file()).contains(from)
                        && from.rank() != to.rank()
                        && (from.rank() < to.rank()) == man.color.is_white()
                }
                _ => attacks::attacks(from, man, Bitboard::EMPTY).contains(to),
            })
        };
        // Who has just moved does not move again.
        let has_moved = |from: Square| view.last().is_some_and(|last| last.to() == from);
        let may_go_on = |to: Square| {
            let from = view.last().and_then(|last| last.from());
            from.zip(view.len().checked_sub(1))
                .is_some_and(|(from, keep)| view.position(keep).move_between(from, to).is_some())
        };
        let is_pushed = |from: Square| {
            let beside = attacks::king_attacks(from) & came;
            let mut beside = beside.into_iter();
            beside.any(|to| {
                let moves = |position: &Position| position.move_between(from, to).is_some();
                let goes = match has_moved(from) {
                    true => may_go_on(to),
                    false => may_go(from, to),
                };
                !goes && !self.is_so_in_a_rival(moves)
            })
        };
        (1..=MOST).contains(&left.count())
            && left.count() == came.count()
            && left.into_iter().all(is_pushed)
    }

    /// Whether who stands where `m` leads may rather be the one who is gone beside, pushed there, and its man have captured: a board
    /// that knows no men cannot tell. The other squares are `rest`.
    pub(super) fn may_be_pushed_there(&self, position: &Position, m: Move, rest: Bitboard) -> bool {
        let Some((from, gone)) = m.from().zip(rest.single_square()) else {
            return false;
        };
        let came = self.trail.at(m.to());
        let captures = |other: &Move| other.is_capture() && !other.is_en_passant();
        self.is_poor()
            && self.picture.is_empty(gone)
            && attacks::king_attacks(m.to()).contains(gone)
            && (came.saturating_sub(PUSHED_MS)..=came + LOOK_MS).contains(&self.trail.at(gone))
            && self.trail.at(from) <= came
            && position.moves_from(from).any(|other| captures(&other))
    }
}
