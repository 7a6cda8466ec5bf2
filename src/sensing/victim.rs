//! Where the man is that was captured last, on his way off the board.

use super::*;

impl Sensing {
    /// Whether all that differs is the man that was captured last, passing over another square on its way off the board, and perhaps
    /// what the opponent has lifted, who has begun to answer: a man of his own, or first the one that he takes.
    pub(super) fn is_victim_about(&self, view: &View<'_>) -> bool {
        self.victim_about(view).is_some()
    }

    /// The square that he passes over, empty where all is only in the hand; nothing where he is not about.
    pub(super) fn victim_about(&self, view: &View<'_>) -> Option<Bitboard> {
        let last = view.last().filter(|m| m.is_capture())?;
        let before = view.position(view.len() - 1);
        let tip = view.tip();
        let mut open = self.picture.differing(before.board());
        let gone = self.picture.differing(tip.board()) & self.picture.vacant();
        if let Some(taken) = (gone & tip.board().by_color(!tip.turn())).single_square()
            && taken != last.to()
            && tip
                .moves()
                .into_iter()
                .any(|m| m.is_capture() && super::look::capture_square(m) == taken)
        {
            open = open.without(taken);
        }
        let lifted = open & tip.board().by_color(tip.turn()) & self.picture.vacant();
        if let Some(square) = lifted.single_square() {
            open &= !lifted;
            // A man of the same kind that left its own square is where it went, and not the one that was taken.
            let man = tip.board().piece_at(square);
            if open
                .into_iter()
                .any(|stray| self.picture.piece(stray) == man)
            {
                return None;
            }
        }
        let mut passed = open & !before.squares(last);
        // Whoever pressed and has lifted his man again holds no victim any more.
        let came_later = |square| self.trail.at(square) > self.trail.at(last.to());
        if view.is_pressed(view.len() - 1)
            && self.has_gone_on(view)
            && passed.into_iter().any(came_later)
        {
            return None;
        }
        if let Move::EnPassant { from, .. } = last {
            passed.set(from, !self.picture.is_empty(from));
        }
        explain::may_pass(before, last, &self.picture, open).then_some(passed)
    }

    /// The only capture that the board shows whole while the man that was taken stands beside. Where men are not known, that is one whose
    /// victim was put there before the captor was lifted: nobody else can have come.
    pub(super) fn made_with_victim_about(&self, view: &View<'_>, open: Bitboard) -> Option<Move> {
        let tip = view.tip();
        if !self.is_poor() {
            return explain::made_with_victim_about(tip, &self.picture, open);
        }
        let (from, beside) = (open & self.picture.vacant(), open & !self.picture.vacant());
        let (from, beside) = (from.single_square()?, beside.single_square()?);
        let since = view.seen_at(view.len());
        let came = self.trail.at(beside);
        if came <= since || came >= self.trail.at(from) {
            return None;
        }
        let mut made = tip.moves_from(from).filter(|m| {
            let may_pass = || explain::may_pass(tip, *m, &self.picture, open);
            let is_taken_away = self.trail.at(m.to()) > since;
            m.is_capture() && is_taken_away && may_pass() && self.is_put_down(tip, *m, since)
        });
        made.next().filter(|_| made.next().is_none())
    }

    /// Whether the record goes on to what the board shows with such a capture, so that no other reading of it is needed.
    pub(super) fn is_captured_beside_record(&self, cx: &Context<'_>) -> bool {
        let record = self.record(cx);
        let open = self.picture.differing(record.tip().board()) & !self.mask(&record);
        self.is_poor() && self.made_with_victim_about(&record, open).is_some()
    }

    /// Whether a pawn was taken en passant and lies where its captor had stood. Where men are not known, the captor was lifted for it:
    /// else the pawn that made two steps would have made one.
    pub(super) fn is_en_passant_laid_down(&self, view: &View<'_>) -> bool {
        let tip = view.tip();
        let moves = tip.en_passant_moves();
        // This is asked at each change: the cheap refusal first.
        if moves.is_empty() {
            return false;
        }
        let since = view.seen_at(view.len());
        let open = self.picture.differing(tip.board()) & !self.mask(view);
        moves.into_iter().any(|m| {
            let squares = tip.squares(m);
            let left = explain::left_of(tip, m, &self.picture, open);
            open.is_subset(squares)
                && m.from().is_some_and(|from| {
                    left == Some(Bitboard::from(from))
                        && !self.picture.is_empty(from)
                        && (!self.is_poor() || self.trail.at(from) > since)
                })
        })
    }

    /// Whether the man of the ply at this index stood where the next one took him, and did not only pass there: for longer than that, or
    /// until the captor was in the hand. What is put down elsewhere since is he, on his way off the board.
    pub(super) fn was_taken_where_he_stood(&self, view: &View<'_>, index: usize) -> bool {
        let (Some(m), Some(reply)) = (view.mv(index), view.mv(index + 1)) else {
            return false;
        };
        // Where men are not known, nobody saw who came there if another had stood there.
        let may_be_seen = self.picture.is_exact() || !m.is_capture();
        let man = m.promotion().unwrap_or(m.role());
        let shown = self
            .picture
            .sense()
            .shows(man.of(view.position(index).turn()));
        let came = self.trail.filled(m.to());
        let was_seen = may_be_seen
            && !m.is_castle()
            && self
                .film
                .has_shown(m.to(), shown, view.seen_at(index), came);
        let stopped = view.seen_at(index + 1);
        let left = self.trail.left(m.to());
        let captor_left = reply.from().and_then(|from| self.left_at(from));
        was_seen
            && reply.is_capture()
            && reply.to() == m.to()
            && (left < stopped
                || left >= stopped + self.timing.hold
                || captor_left.is_some_and(|at| at <= left))
    }

    /// Who was put down elsewhere before the answer came to where he had stood is gone from there, and another of his men has moved: the
    /// answer took him, and its hand had cleared the square first.
    pub(super) fn read_taken_first(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let Some(keep) = view.len().checked_sub(2) else {
            return false;
        };
        let (Some(m), Some(reply)) = (view.mv(keep), view.mv(keep + 1)) else {
            return false;
        };
        let before = view.position(keep);
        let man = m.promotion().unwrap_or(m.role()).of(before.turn());
        let shown = self.picture.sense().shows(man);
        let laid = view.seen_at(keep + 1);
        let has_stood = |to| (self.film).has_shown(to, shown, view.seen_at(keep), laid);
        if m.is_castle()
            || !self.picture.is_empty(m.to())
            || view.tip().board().piece_at(m.to()) != Some(man)
            || !has_stood(reply.to())
        {
            return false;
        }
        let lines = explain::lines_to(before, &self.picture, self.mask(&view), 3, |line| {
            let same = |one: Move, other: Move| {
                one.from() == other.from() && one.promotion() == other.promotion()
            };
            let read = line.iter().zip([(m, reply.to()), (reply, reply.to())]);
            read.into_iter()
                .all(|(own, (told, to))| same(*own, told) && own.to() == to)
        });
        if !lines.explain() {
            return false;
        }
        let before = before.clone();
        self.jumped(&before, keep, lines, now, cx);
        self.look_due = true;
        true
    }

    /// The square that the captor of the last move left, if the man that he took was put down there.
    pub(super) fn victim_in_his_place(&self, view: &View<'_>) -> Option<Square> {
        let last = view.last().filter(|m| m.is_capture())?;
        let from = last.from().filter(|from| !self.picture.is_empty(*from))?;
        let victim = last.capture()?.of(view.tip().turn());
        // Who left the captured man's square again has taken back.
        let stays = self.trail.at(last.to()) <= view.seen_at(view.len());
        let shows = self.picture.at(from).filter(|shown| !shown.is_empty())?;
        let is_victim = shows.agrees(Some(victim)) && self.is_followed_by_victim(last);
        (stays && is_victim).then_some(from)
    }

    /// Whether that is all that differs from before the capture: where men are not known, nothing does. Before it is pressed both may
    /// as well have been put back.
    pub(super) fn is_swapped_with_victim(&self, view: &View<'_>) -> bool {
        let last = view.len().checked_sub(1);
        last.is_some_and(|index| view.is_pressed(index))
            && self.victim_in_his_place(view).is_some()
            && (self.picture).agrees_with(view.position(view.len() - 1).board())
    }

    /// Whoever presses for such a capture has not taken it back.
    pub(super) fn leave_swapped(&mut self, side: Color, cx: &Context<'_>) {
        let record = self.record(cx);
        let n = record.len();
        let is_his = record.mover(n) == Some(side) && self.victim_in_his_place(&record).is_some();
        self.tentative
            .take_if(|tentative| is_his && tentative.moves.is_empty() && tentative.keep + 1 == n);
    }

    /// Whether the capture `m`, in place of the ply at this index, would have left its victim standing past the press where the man of
    /// that ply seems to have gone, and that is too far from where he was taken: nobody carries him about.
    pub(super) fn was_no_victim(&self, view: &View<'_>, index: usize, m: Move) -> bool {
        let beside = attacks::king_attacks(m.to());
        let is_far = |stop: Move| {
            stop.from() == m.from() && stop.to() != m.to() && !beside.contains(stop.to())
        };
        self.is_poor()
            && m.is_capture()
            && view.is_pressed(index)
            && view.mv(index).is_some_and(is_far)
    }

    /// Whether the last move is a capture of which a board that knows no men showed all that it can: the victim lifted, and another
    /// man put down in his place after he had left his own. What came to stand beside it then is the victim, put down.
    pub(super) fn has_put_victim_down(&self, view: &View<'_>) -> bool {
        let Some(last) = view.last().filter(|m| self.is_poor() && m.is_capture()) else {
            return false;
        };
        let keep = view.len() - 1;
        let (before, since) = (view.position(keep), view.seen_at(keep));
        let stands_there = !self.picture.is_empty(last.to());
        let passed = self.victim_about(view).unwrap_or_default();
        let came_last = |square| self.trail.at(square) > self.trail.at(last.to());
        stands_there
            && self.is_put_down(before, last, since)
            && passed.single_square().is_some_and(came_last)
    }
}
