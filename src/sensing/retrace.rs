//! A takeback whose first man to go back is the one that moved first: each step back is a legal move, and the board alone cannot
//! tell it from men that go home. The clock can: moves are pressed, what is taken back is not.

use super::*;
use crate::game::puts_back;

impl Sensing {
    /// What stands after this reading may be how many plies stood before: the last ones have put back, man by man, what those before
    /// them had moved, and nobody has pressed them.
    pub(super) fn retraces(view: &View<'_>) -> Option<usize> {
        let n = view.len();
        // The sides move in turn, so that an odd number cannot put itself back.
        [2, 4].into_iter().find_map(|back| {
            let (keep, steps) = (n.checked_sub(2 * back)?, n - back);
            let mut recorded = view.line.plies.iter().take(view.keep).skip(steps);
            if view.position(keep).board() != view.tip().board() || recorded.any(|ply| ply.pressed)
            {
                return None;
            }
            let mut moved: Vec<Move> = (keep..steps).filter_map(|at| view.mv(at)).collect();
            let put_back = (steps..n).filter_map(|at| view.mv(at)).all(|m| {
                let undone = moved.iter().position(|moved| puts_back(m, *moved));
                undone.map(|at| moved.swap_remove(at)).is_some()
            });
            put_back.then_some(keep)
        })
    }

    /// The board has rested on what may have been taken back. Where the clock was pressed before and is no more, it was.
    pub(super) fn take_back_retraced(&mut self, cx: &Context<'_>) {
        let view = self.view(cx);
        let Some(keep) = Self::retraces(&view).filter(|_| cx.has_clock && self.presses.is_empty())
        else {
            return;
        };
        let steps = (keep + view.len()) / 2;
        let mut before = cx
            .line
            .plies
            .iter()
            .take(steps)
            .skip(keep.saturating_sub(1));
        if before.any(|ply| ply.pressed) {
            self.tentative = None;
            let why = CorrectionReason::TakenBack;
            self.tell_change(keep, Vec::new(), keep, why, Vec::new(), cx);
        }
    }
}
