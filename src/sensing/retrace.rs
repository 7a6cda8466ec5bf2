//! A takeback whose men go back in such an order that each step back is a legal move: the board alone cannot tell it from men that go
//! home in play. The clock can: moves are pressed, and what is shown or taken back is not.

use super::*;
use crate::game::puts_back;

/// Who takes longer than this over a ply plays; men that are put back after one another follow sooner.
const THOUGHT_OVER_MS: Millis = 3_000;

impl Sensing {
    /// How many plies stood before what was shown, or taken back, since, and what was played after it: the board shows nothing else.
    pub(super) fn retraced(&self, cx: &Context<'_>) -> Option<(usize, Vec<Seen>)> {
        if cx.unstarted || !self.presses.is_empty() {
            return None;
        }
        let view = match self.tentative {
            Some(_) => self.view(cx),
            None => self.record(cx),
        };
        let back = match cx.has_clock {
            true if view.is_pressed(view.len().checked_sub(1)?) => return played_after(&view),
            true => shown_and_put_back(&view, view.len()).or_else(|| taken_back(&view)),
            false => turned(&view),
        };
        back.map(|keep| (keep, Vec::new()))
    }

    /// The board has rested on what may have been taken back.
    pub(super) fn take_back_retraced(&mut self, cx: &Context<'_>) {
        let Some((keep, played)) = self.retraced(cx) else {
            return;
        };
        if !cx.has_clock {
            // Only what is played next can tell.
            self.away = Some(keep);
            self.tell_sync();
            return;
        }
        let (keep, mut moves) = self.take_held_back(keep);
        moves.extend(played);
        let why = CorrectionReason::TakenBack;
        self.tell_change(keep, moves, keep, why, Vec::new(), cx);
    }
}

/// All that was played since the last press, up to so many plies, has come to nothing. The move before it may be one that is not pressed
/// yet.
pub(super) fn shown_and_put_back(view: &View<'_>, n: usize) -> Option<usize> {
    // Mostly the last of them is pressed: nothing was played since.
    let last = n.checked_sub(1).filter(|last| !view.is_pressed(*last))?;
    let pressed = (0..last).rfind(|index| view.is_pressed(*index));
    let first = pressed.map_or(0, |ply| ply + 1);
    (first..n).take(2).find(|keep| {
        // After an even number the same side has the move, as it would have in play that nobody presses.
        let is_play = (n - keep).is_multiple_of(2) && (pressed.is_none() || *keep > first)
            || (keep + 1..n).all(|index| is_thought_over(view, index));
        !is_play && view.position(*keep).board() == view.position(n).board()
    })
}

/// The same before the last move, which is pressed.
fn played_after(view: &View<'_>) -> Option<(usize, Vec<Seen>)> {
    let before = view.len().checked_sub(1)?;
    let last = view.line.plies.get(before).filter(|ply| ply.pressed)?;
    let keep = shown_and_put_back(view, before)?;
    let from = view.position(keep);
    let played = || Seen::new(from, last.mv, last.seen_at);
    from.is_playable(last.mv).then(|| (keep, vec![played()]))
}

/// The last plies have put back, man by man, what those before them had moved, and of these some were pressed.
fn taken_back(view: &View<'_>) -> Option<usize> {
    let n = view.len();
    let is_pressed = |index: usize| view.is_pressed(index);
    // The sides move in turn, so that an odd number cannot put itself back.
    [2, 4].into_iter().find_map(|back| {
        let (keep, steps) = (n.checked_sub(2 * back)?, n - back);
        let mut before = keep.saturating_sub(1)..steps;
        if (steps..n).any(is_pressed)
            || view.position(keep).board() != view.tip().board()
            || (steps + 1..n).any(|index| is_thought_over(view, index))
            || !before.any(is_pressed)
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

/// Whether the ply at this index came long after the one before it: who takes his time over each plays, repeats the position and
/// forgets to press.
fn is_thought_over(view: &View<'_>, index: usize) -> bool {
    view.seen_at(index) + THOUGHT_OVER_MS < view.seen_at(index + 1)
}

/// The board shows what it showed an odd number of plies ago, when the other side had the move.
fn turned(view: &View<'_>) -> Option<usize> {
    let n = view.len();
    let as_long_ago = |keep: &usize| {
        !(n - keep).is_multiple_of(2) && view.position(*keep).board() == view.tip().board()
    };
    let earliest = takeback::deepest_takeback(view.line, n);
    (earliest..n).rev().find(as_long_ago)
}
