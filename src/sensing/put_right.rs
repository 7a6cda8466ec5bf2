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
        let is_read = self.read_unseen(now, press.pressed(), cx);
        if is_read {
            for fault in &right {
                self.tell_closed(fault, FaultEnd::Restored);
            }
        } else {
            self.faults.extend(right);
        }
        is_read
    }
}
