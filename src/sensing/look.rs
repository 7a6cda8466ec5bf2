//! Looks the placement up next to where the game stands, at every change: the same, one move on, the last move otherwise or not at
//! all. What is seen is held back until it has stood for as long as the move may be unfinished.

use super::trail::EARLY_MS;
use super::*;

/// Who leaves again so soon after his move was in the hand all the time.
pub(super) const LET_GO_MS: Millis = 500;

impl Sensing {
    /// Looks the placement up; called at every change.
    pub(super) fn look(&mut self, now: Millis, cx: &Context<'_>) {
        if let Some(tentative) = &mut self.tentative {
            tentative.shown = false;
        }
        if self.waiting.is_some() && !self.end_of_waiting(cx) {
            return;
        }
        self.doubt_supposed(cx);
        let resumed = std::mem::take(&mut self.resumed);
        let lost = self.lost.take();
        self.doubt_takeback(cx);
        let from_rival = self
            .tentative
            .as_ref()
            .is_some_and(Tentative::is_from_rival);
        if from_rival && self.is_captured_beside_record(cx) {
            self.tentative = None;
        }
        if self.match_superseded(now, cx) || self.match_another_mans_move(now, cx) {
            self.away = None;
        } else if self.is_castling_in_hand(cx) {
            // Whatever else the board shows is looked at once they stand.
        } else if (resumed && self.match_earlier(now, cx)) || self.match_near(now, cx) {
            self.away = None;
        } else if self.is_on_its_way_from_supposed() || self.is_on_its_way_from_second_thought(cx) {
            // It is looked up once that has come to an end.
        } else if let Some(tentative) = self.tentative.take() {
            // What was never told need not have been: a captured man that is dragged along may stand where its own side could have moved.
            if self.match_near(now, cx) || (!self.is_on_its_way(cx) && self.match_rivals(now, cx)) {
                self.away = None;
            } else if !self.is_gone_from_rival(&tentative) {
                self.tentative = Some(tentative);
            }
        } else if (!self.is_on_its_way(cx) && self.match_rivals(now, cx))
            || self.match_past_rivals(now, cx)
        {
            self.away = None;
        }
        if self.observations.is_empty() && self.is_lost(cx) {
            let lost = lost.map(|lost| lost.goes_on(now));
            self.lost = lost.or(Some(fast::Lost::new(now)));
        } else if lost.is_some_and(|lost| lost.asked) {
            // What could not be followed may have led back to where it began.
            self.check_after_fast_men(now);
        }
        self.close_restored(cx);
        self.tell_sync();
    }

    /// Whether it was read from where the record does not stand, because of a man who is there no more: he was only passing.
    fn is_gone_from_rival(&self, tentative: &Tentative) -> bool {
        let stopped = tentative.moves.last().map(|seen| seen.mv.to());
        tentative.is_from_rival() && stopped.is_some_and(|to| self.picture.is_empty(to))
    }

    /// Whether the board may show a move on its way, as the record has it.
    fn is_on_its_way(&self, cx: &Context<'_>) -> bool {
        if self.rivals.is_empty() {
            return false;
        }
        let view = self.view(cx);
        let tip = view.tip();
        let open = self.picture.differing(tip.board()) & !self.mask(&view);
        explain::only_hands(tip, &self.picture, open)
            || explain::is_in_progress(tip, &self.picture, open)
    }

    /// Looks among the positions next to where the game stands: the same, one move on, the last move otherwise or not at all.
    pub(super) fn match_near(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let differing = self.picture.differing(view.tip().board());
        if differing.is_empty() {
            self.arrived_again(now);
            return true;
        }
        let none = Bitboard::EMPTY;
        let mask = self.mask_of(&view, differing);
        if self.follow_shadow(now) || self.match_castled(now, cx) {
            return true;
        }
        let view = self.view(cx);
        // Every move puts a man down, so that men who are only lifted have made none. Nor was the last move another one, but for en
        // passant: two others of the same man to the same square change the same squares.
        let is_only_lifted = self.picture.is_exact() && differing.is_subset(self.picture.vacant());
        let before = view.len().checked_sub(1).map(|keep| view.position(keep));
        if is_only_lifted && before.is_none_or(|before| before.en_passant_moves().is_empty()) {
            let is_aside = differing.is_subset(mask);
            if is_aside {
                self.arrived_again(now);
            }
            return is_aside;
        }
        if self.is_en_passant_laid_down(&view) {
            return false;
        }
        if self.frozen_since.is_none()
            && let Some((keep, line)) = self.come_down_under_reply(&view, differing & !mask)
        {
            let moves = self.seen(view.position(keep), &line, now);
            self.otherwise(keep, moves, now, cx);
            return true;
        }
        // A square that has changed since it was set aside may have been part of a move.
        let still = mask & !self.changed_since_told();
        let masks = [
            Some(none),
            (still.any()).then_some(still),
            (mask != still).then_some(mask),
        ];
        for mask in masks.into_iter().flatten() {
            let view = self.view(cx);
            let tip = view.tip();
            if (differing & !mask).is_empty() {
                self.arrived_again(now);
                return true;
            }
            let mut found = explain::moves_to(tip, &self.picture, differing, mask);
            found.retain(|m| !self.is_early(*m));
            if let Some(m) = self.arrived(&view.standpoint(view.len()), &found) {
                if !self.may_play(tip, m) || self.is_of_another_man(m) {
                    return false;
                }
                if let Some((keep, line)) = self.gone_on_under_reply(&view, m) {
                    let moves = self.seen(view.position(keep), &line, now);
                    self.otherwise(keep, moves, now, cx);
                    return true;
                }
                // A man that was missing from where it went may have gone on from there unseen.
                let mends = (tip.squares(m) & self.faulty()).any();
                let since = view.seen_at(view.len());
                let next = Seen::found(tip, m, self.shown_at(tip, m, since, now));
                if mends && self.frozen_since.is_none() && self.heal_with_fewer(now, cx) {
                    return true;
                }
                self.arrived_by(vec![next], now, cx);
                return true;
            }
            if self.match_gone_on(now, cx) {
                return true;
            }
            let view = self.view(cx);
            let tip = view.tip();
            if self.frozen_since.is_none()
                && let Some(moves) = self.two_plies(&view, differing, mask, None, now)
            {
                self.arrived_by(moves, now, cx);
                return true;
            }
            let n = view.len();
            if n > 0 {
                let before = view.position(n - 1);
                let differing = self.picture.differing(before.board());
                if differing.is_empty() {
                    if self.is_swapped_with_victim(&view) {
                        self.arrived_again(now);
                        return true;
                    }
                    if self.frozen_since.is_none() {
                        self.retracted_to(n - 1, now, cx);
                        return true;
                    }
                    return false;
                }
                let found = explain::moves_to(before, &self.picture, differing, mask);
                // Beside what is set aside a man may only go on: anything else has less to go by.
                let goes_on = |m| view.last().is_some_and(|stopped| is_continued(stopped, m));
                let since = view.seen_at(n - 1);
                if let Some(m) = self.arrived(&view.standpoint(n - 1), &found)
                    && self.may_play(before, m)
                    && (m.is_castle() || self.may_move_on(tip))
                    && (mask.is_empty() || goes_on(m))
                    && !self.came_after_all(&view, m, cx)
                    && (is_continued(view.mv(n - 1).unwrap_or(m), m)
                        || self.may_have_gone_back(&view, n - 1, m))
                    && !self.is_done(&view, m)
                {
                    let next = Seen::found(before, m, self.shown_at(before, m, since, now));
                    self.otherwise(n - 1, vec![next], now, cx);
                    return true;
                }
            }
        }
        self.match_fast(now, cx)
    }

    /// Whether what stands on the square that `m` leads to was put there long after the last move, which is completed and of which
    /// the board showed no more than that its man had gone.
    pub(super) fn came_after_all(&self, view: &View<'_>, m: Move, cx: &Context<'_>) -> bool {
        let n = view.len();
        self.is_poor()
            && self.is_completed(n, cx)
            && self.trail.at(m.to()) > view.seen_at(n) + self.timing.hand
    }

    /// Whether the last move is over, so that what would make it `m` is something else.
    pub(super) fn is_done(&self, view: &View<'_>, m: Move) -> bool {
        let last = view.len().checked_sub(1);
        self.was_let_go_of(view, m)
            || self.has_put_victim_down(view)
            || last.is_some_and(|last| self.was_no_victim(view, last, m))
    }

    /// Whether the man of the last move had been let go of when it was pressed, and went to where `m` leads after that: this is no part
    /// of his move any more, but a deed of its own. Who goes back to where he had stopped before is put right.
    pub(super) fn was_let_go_of(&self, view: &View<'_>, m: Move) -> bool {
        let n = view.len();
        let to = m.to();
        let (Some(from), Some(last)) = (m.from(), view.last()) else {
            return false;
        };
        let left = self.trail.at(last.to());
        let is_his = |pressed: Pressed| {
            view.mover(n) == Some(pressed.side)
                && pressed.at + press::CLOCK_LAG_MS >= view.seen_at(n)
        };
        let has_pressed_last = self.film.last_press().is_some_and(is_his);
        let had_stopped_there = !self.trail.came_since(to, left)
            || self
                .picture
                .at(to)
                .is_some_and(|man| self.trail.stood(to, man, view.seen_at(n - 1)));
        // Where he stands he may still be exchanged for another.
        last.from() == Some(from)
            && last.to() != to
            && has_pressed_last
            && self.trail.at(from) < left
            && !had_stopped_there
            && !self.faulty().contains(to)
            && self.was_pressed_before(view, n - 1, left)
    }

    /// Whether the ply at this index was pressed, and its man let go of when he left again. The scan that was under way at the press is
    /// told after it, and so is what one hand does while the other presses.
    pub(super) fn was_pressed_before(&self, view: &View<'_>, index: usize, left: Millis) -> bool {
        let mover = view.position(index).turn();
        let under_way = left.saturating_sub(trail::SCAN_MS);
        view.is_pressed(index)
            && left >= view.seen_at(index + 1) + LET_GO_MS
            && !self.film.has_pressed_between(mover, under_way, left)
    }

    /// Capture and recapture, or move and reply, in one look at the board. Who has `pressed` says that nothing of them is on its way.
    pub(super) fn two_plies(
        &self,
        view: &View<'_>,
        differing: Bitboard,
        mask: Bitboard,
        pressed: Option<Color>,
        now: Millis,
    ) -> Option<Vec<Seen>> {
        let tip = view.tip();
        let open = differing & !mask;
        let left = |color: Color| {
            (open & tip.board().by_color(color))
                .into_iter()
                .any(|square| {
                    self.picture
                        .piece(square)
                        .is_none_or(|shown| shown.color != color)
                })
        };
        let since = view.seen_at(view.len());
        // Whoever took unseen may have left a square on which the answering man stands by now.
        let mut refilled = self.refilled(tip, since) & !mask;
        if refilled.any() && self.has_arrived_otherwise(view, mask) {
            refilled = Bitboard::EMPTY;
        }
        let has_left = left(tip.turn()) || refilled.any();
        let least = if self.is_poor() { 2 } else { 3 };
        let changed = (open | refilled).count();
        if changed < least || changed > 8 || !has_left || !left(!tip.turn()) {
            return None;
        }
        let is_answer =
            |line: &[Move]| !self.is_poor() || self.is_answer(tip, line, since, open, pressed, now);
        // Without a press the likeliest of all has to be one.
        let fits = |line: &[Move]| {
            self.order(tip, line) != Order::Against
                && !self.has_come_before(tip, line)
                && (pressed.is_none() || is_answer(line))
        };
        let lines = explain::lines_over(tip, &self.picture, mask, refilled, 2, fits);
        let line = self.likeliest(&view.standpoint(view.len()), &lines)?;
        if self.was_never_there(tip, &line) || (pressed.is_none() && !is_answer(&line)) {
            return None;
        }
        // The man that moved last may have gone on before the reply, if fewer plies explain the board then.
        let last = view.last().filter(|last| line[1].from() == Some(last.to()));
        if let Some(last) = last {
            let goes_on = |line: &[Move]| is_continued(last, line[0]);
            let before = view.position(view.len() - 1);
            let fewer = explain::lines_to(before, &self.picture, mask, 2, goes_on);
            if !fewer.found.is_empty() || self.replied_long_before(view, line[0], last) {
                return None;
            }
        }
        Some(self.seen(tip, &line, now))
    }

    /// Whether the last move read otherwise explains the board alone.
    fn has_arrived_otherwise(&self, view: &View<'_>, mask: Bitboard) -> bool {
        let Some(keep) = view.len().checked_sub(1) else {
            return false;
        };
        let before = view.position(keep);
        let differing = self.picture.differing(before.board());
        let found = explain::moves_to(before, &self.picture, differing, mask);
        self.arrived(&view.standpoint(keep), &found).is_some()
    }

    /// Whether the man of this reply was gone long before the move that it answers, which may rather have gone on without it.
    fn replied_long_before(&self, view: &View<'_>, reply: Move, last: Move) -> bool {
        let n = view.len();
        let Some(square) = reply.from().filter(|from| {
            self.picture.is_empty(*from) && self.trail.at(*from) + EARLY_MS < view.seen_at(n)
        }) else {
            return false;
        };
        let before = view.position(n - 1);
        let differing = self.picture.differing(before.board());
        let found = explain::moves_to(before, &self.picture, differing, Bitboard::from(square));
        found.iter().any(|m| is_continued(last, *m))
    }

    /// The board shows where the game stands: whatever the hands did in between was nothing.
    pub(super) fn arrived_again(&mut self, now: Millis) {
        if let Some(tentative) = &mut self.tentative {
            tentative.since = now;
            tentative.shown = true;
        }
    }

    /// Moves were made from where the game stands. All but the last have been answered, and are told at once.
    pub(super) fn arrived_by(&mut self, mut moves: Vec<Seen>, now: Millis, cx: &Context<'_>) {
        let mut tentative = self.tentative.take().unwrap_or_else(|| {
            Tentative::new(cx.line.len(), Vec::new(), now, 0, CorrectionReason::MovedOn)
        });
        let waited = if tentative.moves.is_empty() && tentative.keep < cx.line.len() {
            tentative.hold
        } else {
            0
        };
        // A line that takes the place of the record is not told before what is played from it has stood; neither are two moves in one
        // look, where the board does not show the first.
        let fresh = tentative.keep + tentative.moves.len() == tentative.stem
            && (tentative.stem > tentative.keep || (moves.len() > 1 && self.is_poor()));
        match tentative.moves.is_empty() {
            true => tentative.moves = moves,
            false => tentative.moves.append(&mut moves),
        }
        if let Some((keep, moves, lines)) = self.in_any_order(&tentative, now, cx) {
            let told_before = keep.saturating_sub(tentative.keep);
            tentative.moves.truncate(told_before);
            if told_before > 0 {
                self.tell_tentative(tentative, cx);
            }
            let lines = lines.into_iter().map(weigh::Weighed::from).collect();
            self.tell_change(keep, moves, keep, CorrectionReason::Reread, lines, cx);
            return;
        }
        let Some(last) = tentative.moves.last() else {
            return;
        };
        let before = match tentative.moves.as_slice() {
            [.., before, _] => &before.after,
            _ => cx.line.position(tentative.keep),
        };
        let hold = self.hold(before, last.mv, cx);
        let count = tentative.moves.len() - 1;
        if count > 0 && !fresh {
            let answered: Vec<Seen> = tentative.moves.drain(..count).collect();
            if tentative.supposed {
                self.remember_superseded(tentative.keep, &answered, cx);
            }
            self.tell_moves(tentative.keep, answered, tentative.stem, tentative.why, cx);
            tentative.keep += count;
            tentative.stem = tentative.keep;
        }
        tentative.hold = hold.max(if tentative.keep < cx.line.len() {
            waited.min(self.rest(tentative.keep, cx))
        } else {
            0
        });
        tentative.supposed = false;
        tentative.since = now;
        tentative.shown = true;
        self.tentative = Some(tentative);
    }

    /// Moves were made after so many plies: from where the game stands, or in place of what was read there.
    pub(super) fn arrived_from(
        &mut self,
        keep: usize,
        moves: Vec<Seen>,
        now: Millis,
        cx: &Context<'_>,
    ) {
        match keep == self.view(cx).len() {
            true => self.arrived_by(moves, now, cx),
            false => self.otherwise(keep, moves, now, cx),
        }
    }

    /// The board shows the last plies otherwise than they were read so far.
    pub(super) fn otherwise(
        &mut self,
        keep: usize,
        moves: Vec<Seen>,
        now: Millis,
        cx: &Context<'_>,
    ) {
        let Some(last) = moves.last() else { return };
        let before = if moves.len() > 1 {
            moves[moves.len() - 2].after.clone()
        } else {
            self.view(cx).position(keep).clone()
        };
        let rest = match self.rest(keep, cx) {
            // A king that goes to the centre after his move was completed shows the result more often than not (case K1).
            rest if rest > 0 && is_king_to_centre(last.mv) => self.timing.sign,
            rest => rest,
        };
        let hold = self.hold(&before, last.mv, cx).max(rest);
        let same_man = cx.line.plies.get(keep).is_some_and(|ply| {
            moves
                .first()
                .is_some_and(|seen| is_continued(ply.mv, seen.mv))
        });
        let why = if same_man && self.is_poor() && rest > 0 {
            // A completed move: what stood where he seemed to go was the captured man on his way off the board.
            CorrectionReason::Reread
        } else if same_man || keep >= cx.line.len() {
            CorrectionReason::MovedOn
        } else {
            CorrectionReason::TakenBack
        };
        let (base, stem, mut told) = match self.tentative.take() {
            Some(tentative) if tentative.keep <= keep => {
                (tentative.keep, tentative.stem.min(keep), tentative.moves)
            }
            _ => (keep, keep, Vec::new()),
        };
        told.truncate(keep - base);
        told.extend(moves);
        if is_recorded(base, &told, cx.line) {
            // He is back where the record has him.
            return;
        }
        self.tentative = Some(Tentative {
            stem,
            ..Tentative::new(base, told, now, hold, why)
        });
    }

    /// While the record is frozen only a move whose man was lifted before the stop may finish.
    pub(super) fn may_play(&self, before: &Position, m: Move) -> bool {
        let Some(stopped) = self.frozen_since else {
            return true;
        };
        before
            .effects(m)
            .iter()
            .filter(|(_, man)| man.is_none())
            .any(|(square, _)| self.trail.at(square) < stopped)
    }

    /// While the record is frozen a man that has arrived goes on only if it was lifted again before the stop. The square that it came
    /// from tells nothing: it has been empty since the move.
    pub(super) fn may_move_on(&self, tip: &Position) -> bool {
        let Some(stopped) = self.frozen_since else {
            return true;
        };
        let left = self.picture.differing(tip.board()) & tip.board().occupied();
        left.into_iter()
            .all(|square| self.trail.at(square) < stopped)
    }

    /// Whether the man on the square that `m` leads to had come there before: a man too many, that nobody moved there now. A queen
    /// may be ready before her pawn goes.
    pub(super) fn is_of_another_man(&self, m: Move) -> bool {
        let from = m
            .from()
            .filter(|_| m.promotion().is_none() && !m.is_castle());
        from.is_some_and(|from| self.trail.was_there_before(from, m.to()))
    }

    /// How long a move is held before it is told: it may not be finished.
    pub(super) fn hold(&self, before: &Position, m: Move, cx: &Context<'_>) -> Millis {
        let (settle, hold) = match cx.time_trouble {
            true => (self.timing.settle_short, self.timing.hold_short),
            false => (self.timing.settle, self.timing.hold),
        };
        let Move::Normal { role, from, to, .. } = m else {
            return settle;
        };
        if role == Role::Rook && castles_by(before, from, to) {
            return self.timing.hold_rook;
        }
        if goes_on(before, role, from, to) {
            hold
        } else {
            settle
        }
    }

    /// How long a placement must rest that rewrites what is in the record.
    pub(super) fn rest(&self, keep: usize, cx: &Context<'_>) -> Millis {
        let rewrites_completed =
            cx.line.len() > keep && (cx.line.len() > keep + 1 || cx.line.plies[keep].by.is_some());
        if rewrites_completed {
            self.timing.takeback
        } else {
            0
        }
    }

    pub(super) fn is_completed(&self, ply: usize, cx: &Context<'_>) -> bool {
        cx.line
            .plies
            .get(ply - 1)
            .is_some_and(|ply| ply.by.is_some())
    }

    /// The opponent lifts a man: the mover has finished, unless that man can be what he is about to take.
    pub(super) fn end_waiting_at_opponents_lift(
        &mut self,
        lifted: Bitboard,
        cx: &Context<'_>,
    ) -> bool {
        let Some(tentative) = &self.tentative else {
            return false;
        };
        let Some(last) = tentative.moves.last() else {
            return false;
        };
        let rewrites = tentative.keep < cx.line.len();
        if rewrites && tentative.supposed {
            if self.may_take_where_he_stood(lifted, cx) {
                return false;
            }
        } else if rewrites && self.rest(tentative.keep, cx) > 0 {
            return false;
        }
        let theirs = last.after.board().by_color(last.after.turn());
        // With both kings in the hands nobody answers.
        let are_kings_off = last.after.board().kings().is_subset(self.picture.vacant());
        if (lifted & theirs).is_empty() || are_kings_off {
            return false;
        }
        let before = match tentative.moves.len() {
            0 | 1 => cx.line.position(tentative.keep),
            n => &tentative.moves[n - 2].after,
        };
        let side = last.after.turn();
        let ends = (lifted & theirs).into_iter().any(|square| {
            !is_victim_of(before, last.mv, square) && self.agree_on(square, Some(side))
        });
        if ends {
            self.flush(cx);
        }
        ends
    }

    /// Tells what was held back.
    pub(super) fn flush(&mut self, cx: &Context<'_>) {
        if let Some(tentative) = self.tentative.take() {
            // With what is taken back a fault may be over.
            self.look_due |=
                tentative.why == CorrectionReason::TakenBack && !self.faults.is_empty();
            self.tell_tentative(tentative, cx);
        }
    }

    /// What was held back of the first `plies` plies, for whoever tells what follows it; and after how many of the record it stands.
    pub(super) fn take_held_back(&mut self, plies: usize) -> (usize, Vec<Seen>) {
        match self.tentative.take() {
            Some(mut tentative) if tentative.keep <= plies => {
                tentative.moves.truncate(plies - tentative.keep);
                (tentative.keep, tentative.moves)
            }
            _ => (plies, Vec::new()),
        }
    }

    pub(super) fn tell_tentative(&mut self, tentative: Tentative, cx: &Context<'_>) {
        let Tentative {
            keep,
            moves,
            stem,
            why,
            supposed,
            ..
        } = tentative;
        if supposed {
            self.remember_superseded(keep, &moves, cx);
        }
        self.tell_moves(keep, moves, stem, why, cx);
    }

    pub(super) fn tell_moves(
        &mut self,
        keep: usize,
        moves: Vec<Seen>,
        stem: usize,
        why: CorrectionReason,
        cx: &Context<'_>,
    ) {
        let left = self.answered_castling(keep, &moves, stem, cx);
        let mover = moves.last().map(|seen| !seen.after.turn());
        // Who pressed before the answer was seen has pressed for what was answered.
        let answered_at = match moves.as_slice() {
            [.., _, answer] => Some(answer.at),
            _ => None,
        };
        let pressed = |press: &Press| {
            !press.spent
                && (mover == Some(press.side) || answered_at.is_some_and(|at| press.at <= at))
        };
        let completed = self
            .presses
            .front()
            .is_some_and(pressed)
            .then(|| self.presses.pop_front())
            .flatten();
        // What else is wrong is judged with his press.
        let is_wrong_beside = |seen: &Seen| {
            let after = &seen.after;
            let open = self.picture.differing(after.board()) & !self.faulty();
            !explain::only_hands(after, &self.picture, open)
        };
        if let Some(press) = completed.filter(|press| mover == Some(press.side))
            && moves.last().is_some_and(is_wrong_beside)
        {
            self.presses.push_front(Press {
                spent: true,
                ..press
            });
        }
        if !is_recorded(keep, &moves, cx.line) {
            self.tell_change(keep, moves, stem, why, Vec::new(), cx);
        }
        if let Some(fault) = left {
            self.raise(fault);
            self.tell_sync();
        }
        // A press before its move was seen belongs to that move.
        let side = completed.map(|press| press.side).or_else(|| {
            let unspent = self.unspent.take_if(|press| mover == Some(press.side));
            unspent.map(|press| press.side)
        });
        if let Some(side) = side {
            self.tell_completed(side);
        }
    }
}

/// Whether these plies are all that the record has after so many.
fn is_recorded(keep: usize, moves: &[Seen], line: &Line) -> bool {
    let recorded = line.plies.get(keep..).unwrap_or_default();
    let moves = moves.iter().map(|seen| seen.mv);
    moves.eq(recorded.iter().map(|ply| ply.mv))
}

/// The only move that explains the board. Among several that look alike a poorer sensor decides nothing.
pub(super) fn sole(found: &[Move]) -> Option<Move> {
    match found {
        [m] => Some(*m),
        _ => None,
    }
}

fn is_king_to_centre(m: Move) -> bool {
    matches!(m, Move::Normal { role: Role::King, to, .. } if CENTRE.contains(&to))
}

/// Whether `later` is the same man going on, or castling begun with the rook or the king.
pub(super) fn is_continued(earlier: Move, later: Move) -> bool {
    match later {
        Move::Castle { king, rook } => earlier.from() == Some(king) || earlier.from() == Some(rook),
        later => earlier.from() == later.from(),
    }
}

/// Whether the man that made this move could have taken the one on this square instead.
fn is_victim_of(before: &Position, m: Move, square: Square) -> bool {
    let takes = |other: &Move| other.from() == m.from() && capture_square(*other) == square;
    m.from()
        .is_some_and(|from| before.move_between(from, square).is_some())
        || before.en_passant_moves().iter().any(takes)
}

/// Whether the rook that went from `from` to `to` may be about to castle.
pub(super) fn castles_by(before: &Position, from: Square, to: Square) -> bool {
    let castles = |castling: Castling| castling.rook == from && castling.rook_to == to;
    before.may_castle_with(from) && before.castlings().any(castles)
}

/// Whether the man that went from `from` to `to` can go on the same way: one square more, or the king to where he castles.
pub(super) fn goes_on(before: &Position, role: Role, from: Square, to: Square) -> bool {
    match role {
        Role::Knight => false,
        Role::King => {
            let passes = |castling: Castling| {
                castling.king == from && attacks::between(from, castling.king_to).contains(to)
            };
            before.may_castle_with(from) && before.castlings().any(passes)
        }
        // What may go further may also go one square further: it can be stopped by nothing but a man there.
        Role::Pawn | Role::Bishop | Role::Rook | Role::Queen => {
            let ray = attacks::ray(from, to);
            let beyond = (attacks::king_attacks(to) & ray).into_iter();
            beyond
                .filter(|next| attacks::between(from, *next).contains(to))
                .any(|next| before.move_between(from, next).is_some())
        }
    }
}

pub(super) fn capture_square(m: Move) -> Square {
    match m {
        Move::EnPassant { from, to } => Square::from_coords(to.file(), from.rank()),
        m => m.to(),
    }
}
