//! Men that were displaced when somebody pressed, and are put right later. That was no play, and what they hid may be read now: the move
//! that was pressed.

use super::*;

impl Sensing {
    /// Notes which of the squares that have changed show again what they should, where a man had been displaced: on a board that knows
    /// no men a square that is left and filled looks as if somebody had been taken there.
    pub(super) fn note_put_right(&mut self, changed: Bitboard, cx: &Context<'_>) {
        if self.faults.is_empty() || !self.is_poor() {
            return;
        }
        let view = self.record(cx);
        let board = view.tip().board();
        // Where nothing stands that should not, a man who comes may be one that was in the hand.
        let has_stray =
            |fault: &&Fault| fault.is_told_displaced() && (fault.squares & !board.occupied()).any();
        let astray = self.faults.iter().filter(has_stray);
        let squares = astray.fold(Bitboard::EMPTY, |all, fault| all | fault.squares);
        let since = view.seen_at(view.len());
        for square in changed & squares & !self.picture.differing(board) {
            self.trail.put_right(square, since);
        }
    }

    /// A press found men displaced, and not the move that it was for. They stand right again, and all that is wrong by now is a man of
    /// the presser's who is gone: he has captured, which the board does not show.
    pub(super) fn read_put_right(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let Some(press) = self.unspent.filter(|_| self.is_poor()) else {
            return false;
        };
        let view = self.view(cx);
        let tip = view.tip();
        let open = self.picture.differing(tip.board());
        let own = tip.board().by_color(press.side);
        let is_right = |fault: &Fault| {
            let wrong = fault.squares & open;
            fault.is_told_displaced() && wrong != fault.squares && wrong.is_subset(own)
        };
        if tip.turn() != press.side
            || !self.presses.is_empty()
            || self.tentative.is_some()
            || !explain::is_only_missing(tip, &self.picture, open)
            || !self.faults.iter().any(is_right)
        {
            return false;
        }
        let (right, others) = std::mem::take(&mut self.faults)
            .into_iter()
            .partition(is_right);
        self.faults = others;
        let is_read = self.read_unseen(now, press.side, press.at, cx);
        if is_read {
            for fault in &right {
                self.tell_closed(fault, FaultEnd::Restored);
            }
        } else {
            self.faults.extend(right);
        }
        is_read
    }

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
                .is_some_and(|(from, keep)| !view.position(keep).moves_between(from, to).is_empty())
        };
        let is_pushed = |from: Square| {
            let beside = attacks::king_attacks(from) & came;
            let mut beside = beside.into_iter();
            beside.any(|to| {
                let moves = |position: &Position| !position.moves_between(from, to).is_empty();
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
            && self.trail.at(gone) <= came + LOOK_MS
            && self.trail.at(from) <= came
            && position.moves_from(from).any(|other| captures(&other))
    }
}
