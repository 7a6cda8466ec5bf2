//! Men that were pushed beside their squares, on a board that knows no men: nobody went there.

use super::*;

/// Who is pushed has come to the next square by then.
const PUSHED_MS: Millis = 1_000;

impl Sensing {
    /// Whether all that is wrong is men who stand beside their squares, where no such man goes: they were pushed there, on a board where
    /// anybody may have come to stand on a square. Where another reading of the record explains all of it nobody was.
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
        let is_pushed = |from: Square| {
            let beside = attacks::king_attacks(from) & came;
            let mut beside = beside.into_iter();
            beside.any(|to| {
                let moves = |position: &Position| position.move_between(from, to).is_some();
                let goes_on = self.goes_on(view, from, to);
                let goes = goes_on.unwrap_or_else(|| may_go(from, to));
                !goes && !self.is_so_in_a_rival(moves)
            })
        };
        let shows_all = |tip: &Position| self.picture.agrees_with(tip.board());
        (1..=MOST).contains(&left.count())
            && left.count() == came.count()
            && left.into_iter().all(is_pushed)
            && !self.is_so_in_a_rival(shows_all)
    }

    /// Men who were pushed beside their squares while another moves, or before he had moved or pressed, to where nobody who is gone can
    /// have gone: they are none of his move. Of each his square, and where he stands.
    pub(super) fn pushed_aside(&self, view: &View<'_>, differing: Bitboard) -> Vec<Bitboard> {
        let tip = view.tip();
        let came = differing & !self.picture.vacant() & !tip.board().occupied();
        // This is asked at each change: the cheap refusal first.
        if !self.is_poor() || came.is_empty() {
            return Vec::new();
        }
        let left = differing & self.picture.vacant();
        let ours = left & tip.board().by_color(tip.turn());
        let pushed_to = |to: Square| {
            let from = self.pushed_from(left, to)?;
            let came = self.trail.filled(to);
            let moved_since =
                view.seen_at(view.len()) > came || self.film.has_pressed_since(!tip.turn(), came);
            let is_beside_move = moved_since || ours.without(from).any();
            let is_shown = |tip: &Position| {
                let agrees = |square| self.picture.agrees_at(square, tip.board().piece_at(square));
                agrees(from) && agrees(to)
            };
            let is_pushed = is_beside_move
                && self.goes_on(view, from, to) != Some(true)
                && !left.into_iter().any(|other| self.may_come(tip, other, to))
                && !self.is_so_in_a_rival(is_shown);
            is_pushed.then(|| Bitboard::from(from).with(to))
        };
        came.into_iter().filter_map(pushed_to).collect()
    }

    /// The one square beside `to` that was left shortly before somebody came there, or in the same look.
    fn pushed_from(&self, left: Bitboard, to: Square) -> Option<Square> {
        let came = self.trail.filled(to);
        let has_just_left = |from: &Square| {
            let left = self.trail.left(*from);
            (left..=left + PUSHED_MS).contains(&(came + LOOK_MS))
        };
        let beside = (attacks::king_attacks(to) & left).into_iter();
        let from: Bitboard = beside.filter(has_just_left).collect();
        from.single_square()
    }

    /// Whether who left `from` can have gone to `to`, be it out of turn, as the record reads or in a rival.
    fn may_come(&self, tip: &Position, from: Square, to: Square) -> bool {
        let leads = |position: &Position| {
            let turned = position.with_turn(!position.turn());
            [position, &turned].into_iter().any(|position| {
                let mut moves = position.moves_between(from, to).into_iter();
                moves.any(|m| !self.came_before(position, m))
            })
        };
        leads(tip) || self.is_so_in_a_rival(leads)
    }

    /// Whether the man who stands on the one square because he has just moved there may have gone on to the other: he does not move again.
    /// Nothing where another man stands there.
    fn goes_on(&self, view: &View<'_>, from: Square, to: Square) -> Option<bool> {
        let last = view.last().filter(|last| last.to() == from)?;
        let before = view.position(view.len().checked_sub(1)?);
        Some(before.move_between(last.from()?, to).is_some())
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
