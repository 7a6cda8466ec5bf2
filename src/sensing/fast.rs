//! Fast play: hands of both players over the board at once. The next man is lifted before the last one was put down, so that the
//! board hardly ever shows a position; each man that is put down is looked up beside what may be in the hands.

use super::look::{capture_square, is_continued};
use super::*;

/// Men stand where nothing explains them, while hands go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lost {
    /// Since when, or when that was last looked into.
    pub(super) at: Millis,
    /// Since when on the whole.
    pub(super) since: Millis,
    /// The board was asked what it shows.
    pub(super) asked: bool,
    /// And has told.
    pub(super) dump_seen: bool,
    /// How often nothing was found.
    pub(super) tries: u32,
    /// It is looked into when the board changes again.
    pub(super) rests: bool,
}

impl Lost {
    pub(super) fn new(now: Millis) -> Lost {
        Lost {
            at: now,
            since: now,
            asked: false,
            dump_seen: false,
            tries: 0,
            rests: false,
        }
    }

    /// The board has changed, and men still stand where nothing explains them. After a rest it is asked anew, and after a longer one
    /// nobody plays fast.
    pub(super) fn goes_on(self, now: Millis) -> Lost {
        match self.rests {
            false => self,
            true if now > self.at + FAST_MS => Lost::new(now),
            true => Lost {
                at: now,
                asked: false,
                dump_seen: false,
                rests: false,
                ..self
            },
        }
    }
}

/// Who was looked for in vain so often is looked for at ever longer intervals.
const PROMPT_TRIES: u32 = 4;
const MOST_DOUBLED: u32 = 5;

/// Whoever thinks for longer does not play fast.
pub(super) const FAST_MS: Millis = 800;

/// So many men put down within this time are fast play too.
const FAST_MEN: usize = 3;
const FAST_FOR_MS: Millis = 2_000;

/// Who pressed so long ago plays on.
const PLAYED_ON_MS: Millis = 5_000;

/// Men that go back to where they were some plies ago have done so by then.
const GOING_BACK_MS: Millis = 1_500;
/// No more plies are taken back one by one than these.
const RETRACED: usize = 8;

impl Sensing {
    /// Looks up a man that was put down while the opponent has begun to answer, or has answered already.
    pub(super) fn match_fast(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.frozen_since.is_some() || self.waiting.is_some() {
            return false;
        }
        if self.is_poor() {
            return self.match_fast_unseen(now, cx);
        }
        let Some((keep, line, in_hand)) = self.read_fast(2, cx) else {
            return false;
        };
        let view = self.view(cx);
        let moves = self.seen(view.position(keep), &line, now);
        self.arrived_from(keep, moves, now, cx);
        if in_hand {
            self.flush(cx);
        }
        true
    }

    /// The same on a board that knows no men: a man was put down, beside one of the opponent's that is gone, and perhaps after one
    /// who captured unseen.
    fn match_fast_unseen(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let tip = view.tip();
        let since = view.seen_at(n);
        let open = self.picture.differing(tip.board()) & !self.mask(&view);
        let put_down = open & !self.picture.vacant();
        if put_down.is_empty() || open.count() > 6 || now > since + FAST_MS {
            return false;
        }
        let vacated = open & self.picture.vacant();
        for depth in 1..=2 {
            let next = if depth == 2 { tip.turn() } else { !tip.turn() };
            let gone = vacated & tip.board().by_color(next);
            for hand in gone {
                let hand = Bitboard::from(hand);
                let lines =
                    explain::lines_to(tip, &self.picture, self.mask(&view) | hand, depth, |line| {
                        !self.may_still_take(tip, line, hand)
                            && self.ends_put_down(tip, line, since)
                    });
                if let Some(line) = self.likeliest(&view.standpoint(n), &lines) {
                    let moves = self.seen(tip, &line, now);
                    self.arrived_by(moves, now, cx);
                    self.flush(cx);
                    return true;
                }
            }
        }
        false
    }

    /// Whether the last man of this line stands where he went.
    pub(super) fn ends_put_down(&self, from: &Position, line: &[Move], since: Millis) -> bool {
        before_last(from, line)
            .is_some_and(|(position, last)| self.is_put_down(&position, last, since))
    }

    /// The last man has gone on by way of where he stopped, beside a hand or not.
    pub(super) fn match_gone_on(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.frozen_since.is_some() || self.is_poor() || self.waiting.is_some() {
            return false;
        }
        let view = self.view(cx);
        // This is asked at each change: the cheap refusals first.
        if !self.has_gone_on(&view) || self.is_completed(view.len(), cx) {
            return false;
        }
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
        if self.frozen_since.is_some() || self.waiting.is_some() {
            return false;
        }
        let view = self.view(cx);
        let differing = self.picture.differing(view.tip().board());
        if (differing & !self.picture.vacant()).is_empty() {
            return false;
        }
        let open = differing & !self.gone(&view);
        (open & !self.picture.vacant()).any()
            && (open.count() <= CLEARED || self.is_played_on())
            && !self.is_victim_about(&view)
            && !self.is_castling_in_hand(cx)
    }

    /// Whether both have pressed of late: nobody clears the board or sets it up.
    fn is_played_on(&self) -> bool {
        let since = self.last_change.saturating_sub(PLAYED_ON_MS);
        Color::ALL
            .into_iter()
            .all(|side| self.film.has_pressed_since(side, since))
    }

    /// Whether so many men were put down of late that this is fast play, whatever can be read of it.
    pub(super) fn are_men_put_down_fast(&self, now: Millis) -> bool {
        self.film.put_down_since(now.saturating_sub(FAST_FOR_MS)) >= FAST_MEN
    }

    /// When it is looked into.
    pub(super) fn lost_due(&self, lost: Lost) -> Millis {
        let doubled = lost.tries.saturating_sub(PROMPT_TRIES).min(MOST_DOUBLED);
        lost.at
            + match lost.asked {
                true => self.timing.lost_again << doubled,
                false => self.timing.lost,
            }
    }

    /// Hands go on over what nothing explains: something was missed. The board is read anew, and several plies are looked for.
    pub(super) fn look_for_missed(&mut self, now: Millis, cx: &Context<'_>) {
        let Some(lost) = self.lost.take().filter(|_| self.is_lost(cx)) else {
            return;
        };
        if self.set_aside_strangers(now, cx) {
            return;
        }
        let view = self.view(cx);
        let open = self.picture.differing(view.tip().board()) & !self.gone(&view);
        let moves_on = explain::is_in_progress(view.tip(), &self.picture, open)
            || self.is_going_on_to_take(&view);
        // Whoever takes his time comes to rest, and is read then.
        let is_fast = lost.since <= view.seen_at(view.len()) + FAST_MS
            || self.are_men_put_down_fast(now)
            || self.have_some_captured(&view, cx);
        // What is to be judged by what stood before the answer is no plies that were missed.
        let is_answered = |press: &Press| self.is_answered(*press, cx);
        let is_judged = !self.presses.front().is_some_and(is_answered);
        let may_read = !moves_on && is_fast && is_judged && (lost.asked || !cx.can_dump);
        let goes_back = now < lost.since + GOING_BACK_MS && self.is_going_back(cx);
        if may_read && !goes_back && self.read_stretch(now, cx) {
            return;
        }
        let is_telling = (is_fast || !self.is_poor()) && !self.is_no_play(cx);
        if is_telling && now >= lost.since + self.timing.grace && self.faults.is_empty() {
            // It is not told while hands go on what is wrong, but that something is.
            let view = self.view(cx);
            let differing = self.picture.differing(view.tip().board());
            let gap = self.missed(differing, now);
            self.raise(gap.unwrap_or_else(|| Fault::new(FaultKind::Displaced, differing, now)));
        }
        let rests = lost.asked && self.last_change <= lost.at;
        if !rests && cx.can_dump {
            self.observations.push_back(Observation::AskDump);
        }
        self.lost = Some(Lost {
            at: now,
            asked: true,
            tries: lost.tries + 1,
            rests,
            ..lost
        });
    }

    /// Whether the man that was seen on his way may have taken by now, his victim passing over another square.
    fn is_going_on_to_take(&self, view: &View<'_>) -> bool {
        self.is_poor() && !view.moves.is_empty() && self.has_gone_on(view) && {
            let before = view.position(view.len() - 1);
            let open = self.picture.differing(before.board()) & !self.mask(view);
            explain::is_in_progress(before, &self.picture, open)
        }
    }

    /// Whether the men that stand where nothing explains them stood there some plies ago: they may be taken back, one by one.
    fn is_going_back(&self, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let differing = self.picture.differing(view.tip().board());
        let arrived = differing & !self.mask_of(&view, differing) & !self.picture.vacant();
        self.stood_there(&view, arrived, RETRACED)
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
        if self.is_poor()
            || view.is_pressed(keep)
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

    /// Who was thought to have moved where nobody saw him has been in the hand, and comes down elsewhere after the answer.
    pub(super) fn come_down_under_reply(
        &self,
        view: &View<'_>,
        open: Bitboard,
    ) -> Option<(usize, Vec<Move>)> {
        let to = (open & !self.picture.vacant()).single_square()?;
        let keep = view.len().checked_sub(2)?;
        let (m, reply) = (view.mv(keep)?, view.mv(keep + 1)?);
        let (from, before) = (m.from()?, view.position(keep));
        let is_taken_there = reply.to() == m.to();
        let is_beside = attacks::king_attacks(m.to()).contains(to);
        if is_taken_there && (is_beside || self.was_taken_where_he_stood(view, keep)) {
            // He passes there on his way off the board.
            return None;
        }
        let is_unseen = is_taken_there || !self.is_put_down(before, m, view.seen_at(keep));
        if !is_unseen || self.trail.at(to) < self.left_at(from)? {
            return None;
        }
        // A press may be told before a slow board shows what was done before it; where it knows its men, he may have been in the hand.
        let most = match self.picture.is_exact() {
            true => self.timing.dump,
            false => trail::SCAN_MS,
        };
        let has_just_pressed = self.film.last_press().is_some_and(|press| {
            press.side == before.turn() && self.trail.at(to) <= press.at + most
        });
        if view.is_pressed(keep) && !has_just_pressed {
            return None;
        }
        let mask = self.mask(view);
        let explains = |line: &[Move; 2]| {
            let after = before.play_playable(line[0]).play_playable(line[1]);
            (self.picture.differing(after.board()) & !mask).is_empty()
        };
        let came = before.moves_between(from, to).into_iter();
        came.filter_map(|m| {
            let answers = before
                .play_playable(m)
                .moves_between(reply.from()?, reply.to());
            let same = |answer: &Move| answer.promotion() == reply.promotion();
            Some([m, answers.into_iter().find(same)?])
        })
        .find(explains)
        .map(|line| (keep, line.to_vec()))
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
        // Fast play has both players' men off their squares.
        let theirs = open & tip.board().by_color(!tip.turn());
        if theirs.is_empty() {
            return self.read_gone_on(&view, mask, 1, cx);
        }
        if let Some((m, in_hand)) = self.taken_with_victim_about(tip, open) {
            return Some((n, vec![m], in_hand));
        }
        for depth in 1..=deepest {
            if let Some(gone_on) = self.read_gone_on(&view, mask, depth, cx) {
                return Some(gone_on);
            }
            let (found, in_hand) = self.lines_beside(tip, mask, depth, view.seen_at(n), LOOK_MS);
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
        if self.is_completed(n, cx) || !self.has_gone_on(view) {
            return None;
        }
        if depth == 1
            && let Some((taken, in_hand)) = self.taken_on_the_way(from, mask, stop)
        {
            return Some((keep, vec![taken], in_hand));
        }
        let may_go_on = left < view.seen_at(n) + self.timing.hold
            && stop
                .from()
                .is_some_and(|square| look::goes_on(from, stop.role(), square, stop.to()));
        if !may_go_on {
            return None;
        }
        let since = view.seen_at(keep);
        let (mut found, in_hand) = self.lines_beside(from, mask, depth, since, LOOK_MS);
        found.retain(|line| is_by_way_of(line[0], stop));
        match found.as_slice() {
            [line] => Some((keep, line.clone(), in_hand)),
            _ => None,
        }
    }

    /// The capture for which the man that stopped here has gone on, its victim still passing over another square: there he was not
    /// seen before his captor had arrived, or hardly so. Nobody answers an answer as soon.
    fn taken_on_the_way(
        &self,
        before: &Position,
        mask: Bitboard,
        stop: Move,
    ) -> Option<(Move, bool)> {
        let open = self.picture.differing(before.board()) & !mask;
        let (taken, in_hand) = self.taken_with_victim_about(before, open)?;
        let squares = before.squares(taken);
        let passing = (open & !squares & !self.picture.vacant()).single_square()?;
        let soon = self.trail.at(taken.to()) < self.trail.at(passing) + trail::SCAN_MS / 2;
        (is_by_way_of(taken, stop) && soon).then_some((taken, in_hand))
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
        // Each ply leaves a square, and its man stands elsewhere; most of what is asked is refused here.
        let open = self.picture.differing(board) & !mask;
        let left = |color: Color| open & board.by_color(color);
        let both = left(from.turn()).any() && (depth < 2 || left(!from.turn()).any());
        if !both || (open & !self.picture.vacant()).is_empty() || open.count() > 2 * depth + 4 {
            return (Vec::new(), false);
        }
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
                self.is_fresh(from, line, since)
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
    fn is_fresh(&self, from: &Position, line: &[Move], since: Millis) -> bool {
        let mut turn = from.turn();
        let mut reached: Vec<(Square, Contents)> = Vec::with_capacity(line.len());
        line.iter().all(|m| {
            let to = m.to();
            let taken = reached.iter().find(|(square, _)| *square == to);
            let went_on = |square: &Square| {
                let passed = reached.iter().any(|(reached, _)| reached == square);
                passed && self.trail.at(*square) <= since
            };
            let was_seen = taken.is_none_or(|(square, man)| self.trail.stood(*square, *man, since))
                && m.from().filter(went_on).is_none();
            reached.retain(|(square, _)| *square != to);
            let man = m.promotion().unwrap_or(m.role()).of(turn);
            reached.push((to, Contents::Piece(man)));
            turn = !turn;
            was_seen
                && m.from().is_none_or(|from| {
                    let left = self.trail.at(from);
                    let of_late = !self.picture.is_empty(from) || left + trail::EARLY_MS >= since;
                    of_late && !self.trail.was_there_before(from, to)
                })
        })
    }

    /// Whether the man that moves last in this line may be on his way to take the one that is gone.
    fn may_still_take(&self, from: &Position, line: &[Move], hand: Bitboard) -> bool {
        if hand.is_empty() {
            return false;
        }
        before_last(from, line).is_some_and(|(position, last)| {
            position.moves().into_iter().any(|other| {
                is_continued(last, other)
                    && other.is_capture()
                    && hand.contains(capture_square(other))
            })
        })
    }
}

/// The last move of a line, and the position that it is played in.
fn before_last(from: &Position, line: &[Move]) -> Option<(Position, Move)> {
    let (last, before) = line.split_last()?;
    let position = before
        .iter()
        .fold(from.clone(), |position, m| position.play_playable(*m));
    Some((position, *last))
}

/// Whether the man may have been seen on this square on his way.
fn is_by_way_of(m: Move, stop: Move) -> bool {
    m.from() == stop.from()
        && m.from()
            .is_some_and(|from| attacks::between(from, m.to()).contains(stop.to()))
}
