//! Fast play: hands of both players over the board at once. The next man is lifted before the last one was put down, so that the
//! board hardly ever shows a position; each man that is put down is looked up beside what may be in the hands.

use super::look::{capture_square, is_continued};
use super::*;

/// A board that is made for fast play looks at all its squares within this time.
const FAST_SCAN_MS: Millis = 60;

/// No more plies are taken back one by one than these.
const RETRACED: usize = 8;

impl Sensing {
    /// Looks up a man that was put down while the opponent has begun to answer, or has answered already.
    pub(super) fn match_fast(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.frozen_since.is_some() || self.is_poor() || self.waiting.is_some() {
            return false;
        }
        let Some((keep, line, in_hand)) = self.read_fast(2, cx) else {
            return false;
        };
        let view = self.view(cx);
        let n = view.len();
        let moves = self.seen(view.position(keep), &line, now);
        if keep == n {
            self.arrived_by(moves, now, cx);
        } else {
            self.otherwise(keep, moves, now, cx);
        }
        if in_hand {
            self.flush(cx);
        }
        true
    }

    /// The last man has gone on by way of where he stopped, beside a hand or not.
    pub(super) fn match_gone_on(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.frozen_since.is_some() || self.is_poor() || self.waiting.is_some() {
            return false;
        }
        let view = self.view(cx);
        let mask = self.mask(&view);
        let Some((keep, line, in_hand)) = self.read_gone_on(&view, mask, 1, cx) else {
            return false;
        };
        let moves = self.seen(view.position(keep), &line, now);
        self.otherwise(keep, moves, now, cx);
        if in_hand {
            self.flush(cx);
        }
        true
    }

    /// Whether men stand where nothing explains them.
    pub(super) fn is_lost(&self, cx: &Context<'_>) -> bool {
        if self.is_poor() || self.frozen_since.is_some() || self.waiting.is_some() {
            return false;
        }
        let view = self.view(cx);
        let tip = view.tip();
        let differing = self.picture.differing(tip.board());
        let open = differing & !self.mask_of(&view, differing);
        (open & !self.picture.vacant()).any() && open.count() <= CLEARED
    }

    /// Hands go on over what nothing explains: something was missed. The board is read anew, and several plies are looked for.
    pub(super) fn look_for_missed(&mut self, now: Millis, cx: &Context<'_>) {
        let since = self.lost_since.take();
        if !self.is_lost(cx) {
            return;
        }
        if !self.is_going_back(cx) && self.read_missed(now, cx) {
            self.lost_since = None;
            return;
        }
        if since.is_some_and(|since| self.last_change > since) {
            self.lost_since = Some(now);
            if cx.can_dump {
                self.observations.push_back(Observation::AskDump);
            }
        }
    }

    /// Whether the men that stand where nothing explains them stood there some plies ago: they may be taken back, one by one.
    fn is_going_back(&self, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let differing = self.picture.differing(view.tip().board());
        let arrived = differing & !self.mask_of(&view, differing) & !self.picture.vacant();
        (n.saturating_sub(RETRACED)..n).any(|earlier| {
            let board = view.position(earlier).board();
            (self.picture.differing(board) & arrived).is_empty()
        })
    }

    /// Several plies that explain the board beside a hand.
    fn read_missed(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let tip = view.tip().clone();
        let mask = self.mask(&view);
        let since = view.seen_at(n);
        // Boards that look slowly tell them out of order. Before they are taken at that, what was missed is asked for.
        let sure = self.dump_seen || !cx.can_dump;
        let slow = sure.then_some(trail::SCAN_MS);
        for slack in std::iter::once(FAST_SCAN_MS).chain(slow) {
            for depth in 1..=search::MISSED {
                let (found, _) = self.lines_beside(&tip, mask, depth, since, slack);
                if self.tell_missed(n, &tip, found, now, cx) {
                    return true;
                }
            }
        }
        // What was read before the loss was seen may be wrong itself.
        let deepest = if sure { search::MISSED.min(n) } else { 0 };
        for back in 1..=deepest {
            for depth in back..=search::MISSED {
                let view = self.view(cx);
                let from = view.position(n - back).clone();
                let since = view.seen_at(n - back);
                let (found, _) =
                    self.lines_beside(&from, Bitboard::EMPTY, depth, since, trail::SCAN_MS);
                if self.tell_missed(n - back, &from, found, now, cx) {
                    return true;
                }
            }
        }
        false
    }

    fn tell_missed(
        &mut self,
        keep: usize,
        from: &Position,
        found: Vec<Vec<Move>>,
        now: Millis,
        cx: &Context<'_>,
    ) -> bool {
        if found.is_empty() {
            return false;
        }
        let lines = explain::Lines {
            found,
            complete: true,
            refused: false,
        };
        self.jumped(from, keep, lines, now, cx);
        true
    }

    /// A man went on from where he stopped while the answer was put down: what was read as his next move was the same one.
    pub(super) fn gone_on_under_reply(
        &self,
        view: &View<'_>,
        m: Move,
    ) -> Option<(usize, Vec<Move>)> {
        let keep = view.len().checked_sub(2)?;
        let (stop, reply) = (view.mv(keep)?, view.mv(keep + 1)?);
        let from = stop.from().filter(|_| m.from() == Some(stop.to()))?;
        let before = view.position(keep);
        let left = self.trail.at(stop.to());
        let is_pressed = view.line.plies.get(keep).is_some_and(|ply| ply.pressed);
        if self.is_poor()
            || is_pressed
            || left > view.seen_at(keep + 1) + self.timing.hold
            || left > view.seen_at(keep + 2)
            || !look::goes_on(before, stop.role(), from, stop.to())
        {
            return None;
        }
        let whole = before
            .moves_between(from, m.to())
            .into_iter()
            .find(|whole| is_by_way_of(*whole, stop))?;
        let after = before.play_playable(whole);
        after.is_playable(reply).then(|| (keep, vec![whole, reply]))
    }

    /// The fewest plies that explain the board beside a hand, if they do so in one way; and whether a man is in the hand.
    fn read_fast(&self, deepest: usize, cx: &Context<'_>) -> Option<(usize, Vec<Move>, bool)> {
        let view = self.view(cx);
        let n = view.len();
        let tip = view.tip();
        let differing = self.picture.differing(tip.board());
        let mask = self.mask_of(&view, differing);
        let open = differing & !mask;
        if (open & !self.picture.vacant()).is_empty() || open.count() > 10 {
            return None;
        }
        if let Some((m, in_hand)) = self.taken_with_victim_about(tip, open) {
            return Some((n, vec![m], in_hand));
        }
        for depth in 1..=deepest {
            if let Some(gone_on) = self.read_gone_on(&view, mask, depth, cx) {
                return Some(gone_on);
            }
            let (found, in_hand) =
                self.lines_beside(tip, mask, depth, view.seen_at(n), FAST_SCAN_MS);
            match found.as_slice() {
                [] => {}
                [line] => return Some((n, line.clone(), in_hand)),
                _ => return None,
            }
        }
        None
    }

    /// The same where the man that moved last has gone on: he did not stand for long, and nobody pressed.
    fn read_gone_on(
        &self,
        view: &View<'_>,
        mask: Bitboard,
        depth: usize,
        cx: &Context<'_>,
    ) -> Option<(usize, Vec<Move>, bool)> {
        let n = view.len();
        let keep = n.checked_sub(1)?;
        let stop = view.last()?;
        let from = view.position(keep);
        let left = self.trail.at(stop.to());
        let may_go_on = !self.is_completed(n, cx)
            && self.picture.is_empty(stop.to())
            && left < view.seen_at(n) + self.timing.hold
            && stop
                .from()
                .is_some_and(|square| look::goes_on(from, stop.role(), square, stop.to()));
        if !may_go_on {
            return None;
        }
        let since = view.seen_at(keep);
        let (mut found, in_hand) = self.lines_beside(from, mask, depth, since, FAST_SCAN_MS);
        found.retain(|line| is_by_way_of(line[0], stop));
        match found.as_slice() {
            [line] => Some((keep, line.clone(), in_hand)),
            _ => None,
        }
    }

    /// A capture whose victim still passes over the board, be it that the opponent has a man in the hand already.
    fn taken_with_victim_about(&self, tip: &Position, open: Bitboard) -> Option<(Move, bool)> {
        let theirs = open & tip.board().by_color(!tip.turn()) & self.picture.vacant();
        let hands = std::iter::once(Bitboard::EMPTY).chain(theirs.into_iter().map(Bitboard::from));
        hands.into_iter().find_map(|hand| {
            let m = explain::made_with_victim_about(tip, &self.picture, open & !hand)?;
            Some((m, hand.any()))
        })
    }

    /// Lines of so many plies that explain the board, with nothing in the hands or with one man of the side that moves next.
    fn lines_beside(
        &self,
        from: &Position,
        mask: Bitboard,
        depth: usize,
        since: Millis,
        slack: Millis,
    ) -> (Vec<Vec<Move>>, bool) {
        let board = from.board();
        let next = if depth.is_multiple_of(2) {
            from.turn()
        } else {
            !from.turn()
        };
        let of_late = |square: &Square| self.trail.at(*square) + trail::EARLY_MS >= since;
        let vacated: Bitboard = (self.picture.vacant() & board.by_color(next) & !mask)
            .into_iter()
            .filter(of_late)
            .collect();
        let hands = std::iter::once(Bitboard::EMPTY).chain(vacated.into_iter().map(Bitboard::from));
        for hand in hands {
            let lines = explain::lines_to(from, &self.picture, mask | hand, depth, |line| {
                self.is_fresh(line, since)
                    && !self.may_still_take(from, line, hand)
                    && self.may_have_passed(from, line, since)
                    && self.is_in_turn(from, line, slack)
            });
            if !lines.found.is_empty() {
                let complete = lines.complete;
                let found = if complete { lines.found } else { Vec::new() };
                return (found, hand.any());
            }
        }
        (Vec::new(), false)
    }

    /// Whether each man of this line was on his way of late, and stood where he went before he was taken there.
    fn is_fresh(&self, line: &[Move], since: Millis) -> bool {
        let mut reached = Bitboard::EMPTY;
        line.iter().all(|m| {
            let unseen = m.is_capture() && reached.contains(m.to());
            reached.add(m.to());
            !unseen
                && m.from().is_none_or(|from| {
                    let left = self.trail.at(from);
                    let of_late = !self.picture.is_empty(from) || left + trail::EARLY_MS >= since;
                    of_late && !self.trail.was_there_before(from, m.to())
                })
        })
    }

    /// Whether the man that moves last in this line may be on his way to take the one that is gone.
    fn may_still_take(&self, from: &Position, line: &[Move], hand: Bitboard) -> bool {
        let Some((last, before)) = line.split_last() else {
            return false;
        };
        if hand.is_empty() {
            return false;
        }
        let mut position = from.clone();
        for m in before {
            position = position.play_playable(*m);
        }
        position.moves().into_iter().any(|other| {
            is_continued(*last, other) && other.is_capture() && hand.contains(capture_square(other))
        })
    }
}

/// Whether the man may have been seen on this square on his way.
fn is_by_way_of(m: Move, stop: Move) -> bool {
    m.from() == stop.from()
        && m.from()
            .is_some_and(|from| attacks::between(from, m.to()).contains(stop.to()))
}
