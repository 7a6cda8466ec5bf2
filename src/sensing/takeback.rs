//! Positions of the game so far that stand on the board again, at once or a move further: a takeback, or without a clock perhaps analysis.

use super::look::sole;
use super::search::MISSED;
use super::*;

impl Sensing {
    /// The clock runs again: a position of the game so far is a takeback, however many plies would lead there by playing on.
    pub(super) fn match_earlier(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let n = cx.line.len();
        if self.picture.agrees_with(cx.line.tip().board()) {
            return false;
        }
        let deepest = deepest_takeback(cx.line, n);
        let earlier = (deepest..n)
            .rev()
            .find(|keep| self.picture.agrees_with(cx.line.position(*keep).board()));
        if let Some(keep) = earlier {
            self.tentative = None;
            self.retracted_to(keep, now, cx);
        }
        earlier.is_some()
    }

    /// The board shows an earlier position.
    pub(super) fn retracted_to(&mut self, keep: usize, now: Millis, cx: &Context<'_>) {
        if keep >= cx.line.len() {
            // It was never told, so there is nothing to take back.
            self.tentative = match self.tentative.take() {
                Some(mut tentative) if keep > tentative.keep => {
                    tentative.moves.truncate(keep - tentative.keep);
                    tentative.stem = tentative.stem.min(keep);
                    tentative.since = now;
                    tentative.shown = true;
                    Some(tentative)
                }
                _ => None,
            };
            return;
        }
        if self.is_too_far_back(keep, cx) {
            self.tentative = None;
            return;
        }
        let (hold, why) = (self.timing.takeback, CorrectionReason::TakenBack);
        self.tentative = Some(Tentative::new(keep, Vec::new(), now, hold, why));
    }

    /// Without a clock nobody can tell a long takeback from analysis: more than two plies back is neither.
    pub(super) fn is_too_far_back(&self, keep: usize, cx: &Context<'_>) -> bool {
        !cx.has_clock && !cx.unstarted && cx.line.len() > keep + 2
    }

    /// A takeback that has not come to rest is none if the record goes on to what the board shows now.
    pub(super) fn doubt_takeback(&mut self, cx: &Context<'_>) {
        let retracts = |tentative: &mut Tentative| {
            tentative.keep < cx.line.len() && tentative.why == CorrectionReason::TakenBack
        };
        if let Some(tentative) = self.tentative.take_if(retracts) {
            let tip = cx.line.tip();
            let differing = self.picture.differing(tip.board());
            if explain::moves_to(tip, &self.picture, differing, Bitboard::EMPTY).is_empty() {
                self.tentative = Some(tentative);
            }
        }
    }

    /// Whether the last move, which nobody has pressed or answered, was seen put back, and the board may show another one on its way since:
    /// nobody has answered a move before it was put back.
    pub(super) fn is_on_its_way_from_second_thought(&self, cx: &Context<'_>) -> bool {
        self.tentative.as_ref().is_some_and(|tentative| {
            let keep = tentative.keep;
            let before = cx.line.position(keep);
            let open = self.picture.differing(before.board());
            let since_then = |square: Square| self.trail.at(square) > tentative.since;
            tentative.why == CorrectionReason::TakenBack
                && tentative.moves.is_empty()
                && keep + 1 == cx.line.len()
                && self.rest(keep, cx) == 0
                && open.into_iter().all(since_then)
                && (explain::only_hands(before, &self.picture, open)
                    || explain::is_in_progress(before, &self.picture, open))
        })
    }

    /// A position of the game so far, or one move from one, that the board shows on every square.
    pub(super) fn older(
        &self,
        view: &View<'_>,
        now: Millis,
        cx: &Context<'_>,
    ) -> Option<(usize, Vec<Seen>)> {
        let n = view.len();
        let is_one_deed = self.picture.differing(view.tip().board()).count() <= 2;
        let before_shown = cx.has_clock.then(|| retrace::shown_and_put_back(view, n));
        for keep in self.takebacks(view, cx).rev() {
            let position = view.position(keep);
            if self.picture.agrees_with(position.board()) {
                return Some((keep, Vec::new()));
            }
            // Men that wander about leave positions that differ by one man from many earlier ones. Who goes further back than his own
            // last move and plays on moves more of them, unless all had been put back.
            if is_one_deed && keep + 2 < n && before_shown.flatten() != Some(keep) {
                continue;
            }
            let differing = self.picture.differing(position.board());
            let found = explain::moves_to(position, &self.picture, differing, Bitboard::EMPTY);
            if let Some(m) = sole(&found)
                && !(keep + 1 == n && self.is_done(view, m))
                && self.may_have_gone_back(view, keep, m)
            {
                return Some((keep, vec![Seen::new(position, m, now)]));
            }
        }
        // What was told already may have been part of a longer way back; only where none explains it does it stay aside. While an
        // irregular move stands that was pressed over, a man that goes back answers it.
        let stands =
            |fault: &Fault| fault.level == Level::Confirmed && fault.kind == FaultKind::IllegalMove;
        // And whoever pressed has answered what would be taken back, be his man missing.
        if self.faults.iter().any(stands) || self.pressed_missing(view.tip()).is_some() {
            return None;
        }
        let set_aside = self.faulty();
        if set_aside.is_empty() {
            return None;
        }
        let beside = |keep: &usize| {
            let position = view.position(*keep);
            (self.picture.differing(position.board()) & !set_aside).is_empty()
        };
        let keep = self.takebacks(view, cx).rev().find(beside)?;
        Some((keep, Vec::new()))
    }

    /// How many plies a takeback can leave.
    fn takebacks(&self, view: &View<'_>, cx: &Context<'_>) -> std::ops::Range<usize> {
        let n = view.len();
        let deepest = if cx.unstarted {
            0
        } else if cx.has_clock {
            deepest_takeback(cx.line, n)
        } else {
            // Without a clock nobody can tell a long takeback from analysis.
            cx.line.len().saturating_sub(2).min(n)
        };
        deepest..n
    }

    /// Whether men can have gone back to where they stood after so many plies, and `m` been played from there: where two men have stood on
    /// one square the later of them came there after the other had left, unless he took him.
    pub(super) fn may_have_gone_back(&self, view: &View<'_>, keep: usize, m: Move) -> bool {
        if !self.is_poor() {
            return true;
        }
        let before = view.position(keep);
        let after = before.play(m);
        let (was, is) = (view.tip().board(), after.board());
        (keep..view.len()).all(|index| {
            let Some(played) = view.mv(index) else {
                return true;
            };
            let effects = view.position(index).effects(played);
            effects.iter().all(|(to, man)| {
                let has_other_man = man.is_some()
                    && is.piece_at(to).is_some()
                    && is.piece_at(to) != was.piece_at(to);
                let takes = m.to() == to && m.is_capture();
                // Who took unseen may not have been there at all.
                let was_seen = self.trail.at(to) > view.seen_at(index);
                let has_changed = self.trail.at(to) > view.seen_at(index + 1);
                !has_other_man || takes || !was_seen || has_changed
            })
        })
    }

    pub(super) fn take_back_once_at_rest(&mut self, keep: usize, moves: Vec<Seen>) {
        let (since, hold) = (self.last_change, self.timing.takeback);
        let why = CorrectionReason::TakenBack;
        self.tentative = Some(Tentative::new(keep, moves, since, hold, why));
    }

    /// What stood after so many plies was seen to stand again: what was seen before is no play that could be read once more.
    pub(super) fn leave_out_taken_back(&mut self, keep: usize, cx: &Context<'_>) {
        if self
            .picture
            .agrees_with(self.record(cx).position(keep).board())
        {
            self.film.leave_out_until(self.last_change);
            self.check_at = None;
        }
    }

    /// Men on their way back to an older position can have been told as a fault; once that position stands, all of it was a takeback.
    pub(super) fn is_back_from_faults(&mut self, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        if self.faults.is_empty() || self.picture.agrees_with(view.tip().board()) {
            return false;
        }
        let stands = |keep: &usize| self.picture.agrees_with(view.position(*keep).board());
        let Some(keep) = self.takebacks(&view, cx).rev().find(stands) else {
            return false;
        };
        self.take_back_once_at_rest(keep, Vec::new());
        true
    }

    /// Whether men go back to where they stood a few plies ago: each of these squares shows what it showed then, or nothing yet.
    pub(super) fn is_on_the_way_back(&self, view: &View<'_>, open: Bitboard) -> bool {
        let placed = open & !self.picture.vacant();
        placed.any() && self.stood_there(view, placed, 2 * MISSED)
    }

    /// Whether all these squares show what stood there after one of so many plies ago.
    pub(super) fn stood_there(&self, view: &View<'_>, placed: Bitboard, plies: usize) -> bool {
        let n = view.len();
        (n.saturating_sub(plies)..n).any(|keep| {
            let board = view.position(keep).board();
            (self.picture.differing(board) & placed).is_empty()
        })
    }

    /// Whether an earlier position of the game stands on the board, from further back than a takeback goes; two further plies from
    /// there are play again.
    pub(super) fn look_further_back(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if cx.has_clock || cx.unstarted {
            return false;
        }
        if let Some(keep) = self.away.filter(|keep| *keep < cx.line.len()) {
            let from = cx.line.position(keep);
            let lines = explain::lines_to(from, &self.picture, Bitboard::EMPTY, 2, |_| true);
            if let Some(line) = lines.sole() {
                let moves = self.seen(from, line, now);
                self.away = None;
                self.tentative = None;
                let why = CorrectionReason::TakenBack;
                self.tell_change(keep, moves, keep, why, Vec::new(), cx);
                return true;
            }
            if self.picture.agrees_with(from.board())
                || !explain::moves_to(
                    from,
                    &self.picture,
                    self.picture.differing(from.board()),
                    Bitboard::EMPTY,
                )
                .is_empty()
            {
                return true;
            }
        }
        let n = cx.line.len();
        let far = (deepest_takeback(cx.line, n)..n.saturating_sub(2))
            .rev()
            .find(|keep| self.picture.agrees_with(cx.line.position(*keep).board()));
        if far.is_some() {
            self.away = far;
            self.tell_sync();
        }
        far.is_some()
    }

    /// The first press of a game: it says of a move from where the game was away from the record that this was play.
    pub(super) fn pressed_from_away(&mut self, now: Millis, side: Color, cx: &Context<'_>) -> bool {
        let Some(keep) = self.away.filter(|keep| *keep < cx.line.len()) else {
            return false;
        };
        let from = cx.line.position(keep);
        let differing = self.picture.differing(from.board());
        let found = explain::moves_to(from, &self.picture, differing, Bitboard::EMPTY);
        let Some(m) = sole(&found).filter(|_| from.turn() == side) else {
            return false;
        };
        let moves = self.seen(from, &[m], now);
        self.away = None;
        self.tentative = None;
        let why = CorrectionReason::TakenBack;
        self.tell_change(keep, moves, keep, why, Vec::new(), cx);
        self.tell_completed(side);
        self.tell_sync();
        true
    }
}

/// How far back a takeback can go: an array, from further away than two plies, is the next game's.
pub(super) fn deepest_takeback(line: &Line, plies: usize) -> usize {
    usize::from(plies > 2 + line.steps_back() && line.start.is_array())
}
