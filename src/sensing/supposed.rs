//! Who stood for a moment where he could have gone, and is there no more: he was a captured man on his way off the board, and the move
//! was a capture. And what if he was not?

use super::*;

impl Sensing {
    /// A man has been gone for a while, and one capture alone can have taken him where he is. Who has pressed and was only glimpsed where
    /// he seemed to stand has captured in any case.
    pub(super) fn suppose_capture(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if !self.is_poor() || self.frozen_since.is_some() {
            return false;
        }
        if self.suppose_answered(now, cx) {
            return true;
        }
        let view = self.view(cx);
        let n = view.len();
        let is_glimpsed = n > 0 && self.was_glimpsed(&view, n - 1);
        // He may be the one that moved last, and have gone on from where he stopped.
        let keep = match view.last() {
            Some(_) if self.has_gone_on(&view) && (!self.is_completed(n, cx) || is_glimpsed) => {
                n - 1
            }
            _ => n,
        };
        let from = view.standpoint(keep);
        let mut captures = self.unseen_captures(&from, self.mask_after(&view, keep), None);
        captures.retain(|m| keep == n || !self.is_done(&view, *m));
        let Some(&m) = captures.first() else {
            return keep < n && self.suppose_both(now, cx);
        };
        let has_captured = keep < n && is_glimpsed && view.is_pressed(n - 1);
        let goes_elsewhere = !has_captured && captures.iter().any(|other| other.to() != m.to());
        let position = from.position;
        let board = position.board();
        let theirs = self.picture.differing(board) & board.by_color(!position.turn());
        let is_his = has_captured
            || m.from()
                .is_some_and(|from| self.agree_on(from, Some(position.turn())));
        if goes_elsewhere || theirs.any() || !is_his {
            return false;
        }
        let seen = self.seen_from(&from, m, now);
        // Where he stopped the opponent may have taken him, and be thinking with both men in his hands.
        let hand = match keep < n && keep < cx.line.len() {
            true => self.timing.quiet,
            false => self.timing.hand,
        };
        self.arrived_from(keep, vec![seen], now, cx);
        self.suppose_for(hand, now);
        true
    }

    /// What was read just now is told once it has stood for so long, and is only supposed until then.
    pub(super) fn suppose_for(&mut self, time: Millis, now: Millis) {
        let stood = now.saturating_sub(self.last_change);
        if let Some(tentative) = &mut self.tentative {
            tentative.supposed = true;
            tentative.hold = tentative.hold.max(time.saturating_sub(stood));
        }
    }

    /// The man that moved last has pressed and is there no more: what was seen there was a captured man on his way off the board.
    pub(super) fn suppose_glimpsed(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let is_gone = n > 0 && view.is_pressed(n - 1) && self.was_glimpsed(&view, n - 1);
        is_gone
            && (self.read_last_anew(now, cx)
                || self.suppose_capture(now, cx)
                || self.try_past_rivals(cx, |sensing| sensing.suppose_capture(now, cx)))
    }

    /// The same of the man who made the move before the last: he was gone again before he can have seen the answer to his move.
    pub(super) fn suppose_answered(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let Some(keep) = n.checked_sub(2) else {
            return false;
        };
        let is_gone = self.was_glimpsed(&view, keep)
            && view
                .mv(keep)
                .is_some_and(|m| self.trail.at(m.to()) < view.seen_at(n) + look::LET_GO_MS);
        is_gone && self.suppose_both(now, cx)
    }

    /// The last two plies again, the same men with other captures, where one of them was only glimpsed.
    pub(super) fn suppose_both(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let Some(keep) = n.checked_sub(2) else {
            return false;
        };
        let (Some(first), Some(second)) = (view.mv(keep), view.mv(keep + 1)) else {
            return false;
        };
        let read = [first, second];
        let may_differ = [keep, keep + 1].map(|index| self.was_glimpsed(&view, index));
        if !may_differ.contains(&true) {
            return false;
        }
        let before = view.position(keep);
        let fits =
            |line: &[Move]| {
                (keep..).zip(line).zip(read).zip(may_differ).all(
                    |(((index, m), read), may_differ)| {
                        m.from() == read.from()
                            && !self.was_no_victim(&view, index, *m)
                            && match may_differ {
                                true => m.is_capture() && *m != read,
                                false => *m == read || (m.is_capture() && read.is_capture()),
                            }
                    },
                )
            };
        let lines = explain::lines_to(before, &self.picture, self.mask(&view), 2, |line| {
            line.len() < 2 || fits(line)
        });
        let Some(line) = self.likeliest(&view.standpoint(keep), &lines) else {
            return false;
        };
        let hand = match may_differ {
            [_, true] => self.timing.quiet,
            [_, false] => self.timing.hand,
        };
        let moves = self.seen(before, &line, now);
        self.otherwise(keep, moves, now, cx);
        self.suppose_for(hand, now);
        true
    }

    /// Whether the man of the ply at this index is gone from where he went, and was seen there for no longer than a captured man who
    /// passes by.
    pub(super) fn was_glimpsed(&self, view: &View<'_>, index: usize) -> bool {
        view.mv(index).is_some_and(|m| {
            !m.is_capture()
                && !m.is_castle()
                && self.picture.is_empty(m.to())
                && self.trail.at(m.to()) < view.seen_at(index + 1) + self.timing.hand
        })
    }

    /// Whether the square that the last move led to was left again soon after.
    pub(super) fn was_brief(&self, view: &View<'_>) -> bool {
        view.stop()
            .is_some_and(|to| self.trail.at(to) < view.seen_at(view.len()) + self.timing.hand)
    }

    /// Who was supposed to have captured stands again where he was seen to go, or another has taken him there.
    pub(super) fn doubt_supposed(&mut self, cx: &Context<'_>) {
        let stands_again = |tentative: &mut Tentative| {
            tentative.supposed
                && (tentative.keep..cx.line.len()).any(|index| {
                    let told = cx.line.plies[index].mv;
                    let own = tentative.moves.get(index - tentative.keep);
                    !self.picture.is_empty(told.to()) && own.is_some_and(|seen| seen.mv != told)
                })
        };
        self.tentative.take_if(stands_again);
    }

    /// The last ply is a capture of which nothing shows but that its man is gone, and its side has made a move with another man since,
    /// as nobody does who has moved: the first was knocked off, or is still to be put back.
    pub(super) fn match_another_mans_move(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if !self.is_poor() || self.frozen_since.is_some() {
            return false;
        }
        let view = self.view(cx);
        let (Some(keep), Some(last)) = (view.len().checked_sub(1), view.last()) else {
            return false;
        };
        let (before, since) = (view.position(keep), view.seen_at(keep));
        let theirs =
            self.picture.differing(before.board()) & before.board().by_color(!before.turn());
        if !last.is_capture()
            || view.is_pressed(keep)
            || theirs.any()
            || self.is_put_down(before, last, since)
        {
            return false;
        }
        let told = keep.min(view.keep);
        let view = View::new(view.line, told, &view.moves[..keep - told]);
        let moves = self.beside_hands(&view, 1, None, now);
        let is_of_another = |seen: &Seen| seen.mv.from() != last.from();
        let Some(moves) = moves.filter(|moves| moves.iter().all(is_of_another)) else {
            return false;
        };
        self.otherwise(keep, moves, now, cx);
        if let Some(tentative) = &mut self.tentative
            && tentative.keep < cx.line.len()
        {
            // Nobody has taken back what was never played.
            tentative.why = CorrectionReason::Reread;
        }
        true
    }

    /// A capture that was supposed in place of the last ply has been told. Whoever comes to stand where its man was seen has taken him
    /// there: the ply was what it had been read as.
    pub(super) fn match_superseded(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let n = cx.line.len();
        let Some((index, seen)) = &self.superseded else {
            return false;
        };
        // The man that takes him may have been seen on his way.
        let is_answer = n == index + 1 || (n == index + 2 && !cx.line.plies[index + 1].pressed);
        if !is_answer || self.frozen_since.is_some() {
            self.superseded = None;
            return false;
        }
        if self.picture.is_empty(seen.mv.to()) {
            return false;
        }
        let (index, seen) = (*index, seen.clone());
        let tentative = self.tentative.take();
        let is_taken = self.match_after(index, seen, now, cx);
        match is_taken {
            true => self.superseded = None,
            false => self.tentative = tentative,
        }
        is_taken
    }

    /// Whether the board may show the answer to what is supposed to have been played in place of the record, not finished yet.
    pub(super) fn is_on_its_way_from_supposed(&self) -> bool {
        self.tentative.as_ref().is_some_and(|tentative| {
            tentative.supposed
                && tentative.moves.last().is_some_and(|last| {
                    let open = self.picture.differing(last.after.board());
                    explain::is_in_progress(&last.after, &self.picture, open)
                })
        })
    }

    /// How the last ply was read that one of these takes the place of.
    pub(super) fn remember_superseded(&mut self, keep: usize, moves: &[Seen], cx: &Context<'_>) {
        let last = cx.line.len().checked_sub(1);
        self.superseded = last.and_then(|index| {
            let now = moves.get(index.checked_sub(keep)?)?;
            let told = &cx.line.plies[index];
            let was = Seen::new(cx.line.position(index), told.mv, told.seen_at);
            (told.mv != now.mv).then_some((index, was))
        });
    }

    /// Whether one of these men, now lifted, may be about to take the one that moved last, who was seen where the record has him.
    pub(super) fn may_take_where_he_stood(&self, lifted: Bitboard, cx: &Context<'_>) -> bool {
        cx.line.plies.last().is_some_and(|last| {
            let stood = last.mv.to();
            lifted.contains(stood)
                || lifted.into_iter().any(|from| {
                    let may_take = |tip: &Position| tip.move_between(from, stood).is_some();
                    may_take(cx.line.tip()) || self.is_so_in_a_rival(may_take)
                })
        })
    }
}
