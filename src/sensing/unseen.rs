//! Moves that a board does not show which knows no men. Of a capture it sees no more than that the capturing man is gone, as if he
//! were in the hand; the rest is told by the squares that were touched, by the press, and by what is played next.

use super::*;

impl Sensing {
    /// The move among `found` that has arrived: its man is gone from where it stood, and came to stand where he went.
    pub(super) fn arrived(&self, from: &Standpoint<'_>, found: &[Move]) -> Option<Move> {
        if self.picture.is_exact() {
            return look::sole(found);
        }
        let found = found
            .iter()
            .filter(|m| !self.came_before(from.position, **m));
        let lines = found.map(|m| vec![*m]).collect();
        let weighed = self.weighed(from, lines);
        let m = *weighed.first()?.moves.first()?;
        self.is_put_down(from.position, m, from.since).then_some(m)
    }

    /// Whether the board shows the moving man where he went, and not only that he has gone.
    pub(super) fn is_put_down(&self, position: &Position, m: Move, since: Millis) -> bool {
        if self.picture.is_exact() || m.is_castle() || m.is_en_passant() {
            return true;
        }
        let to = m.to();
        if self.unread_squares().contains(to) || self.came_before(position, m) {
            return false;
        }
        if position.board().piece_at(to).is_none()
            || self.picture.differing(position.board()).contains(to)
        {
            return !self.may_be_another(position, m);
        }
        let filled = self.trail.at(to);
        let left = m.from().map_or(0, |from| self.trail.at(from));
        filled > since && filled >= left
    }

    /// Whether who stands where `m` leads came there long before its man had left, be the squares told out of order, and another man was
    /// gone by then, or he was pressed over where he stands: it is another man, on a board that knows none.
    pub(super) fn came_before(&self, position: &Position, m: Move) -> bool {
        let (Some(from), to) = (m.from(), m.to()) else {
            return false;
        };
        let came = self.trail.filled(to);
        let had_left = |square: Square| self.trail.left(square) <= came + trail::SEEN_TWICE_MS;
        let is_another_gone = || {
            let gone = self.picture.differing(position.board()) & self.picture.vacant();
            gone.without(from).into_iter().any(had_left)
        };
        let is_told_there = |fault: &Fault| fault.is_told_displaced() && fault.squares.contains(to);
        self.stood_before(position, m, trail::SEEN_TWICE_MS)
            && (is_another_gone() || self.faults.iter().any(is_told_there))
    }

    /// Whether who stands where `m` leads came there before its man had left, be the squares told so much out of order. Whoever takes
    /// somebody need not have been seen to come, and a queen may be ready before her pawn goes.
    pub(super) fn stood_before(&self, position: &Position, m: Move, slack: Millis) -> bool {
        let Move::Normal {
            from,
            to,
            capture: None,
            promotion: None,
            ..
        } = m
        else {
            return false;
        };
        let came = self.trail.filled(to);
        // This is asked of many moves: the cheap refusals first.
        self.is_poor()
            && position.board().piece_at(to).is_none()
            && !self.picture.is_empty(to)
            && self.left_at(from).is_some_and(|left| left > came + slack)
            && !self.trail.unwatched().contains(to)
            && !self.unread_squares().contains(to)
            && !self.film.may_be_vacant(from, came, came + slack)
    }

    /// Whether who stands where `m` leads had come before its man left, and after another had who can have gone there, of either side.
    fn may_be_another(&self, position: &Position, m: Move) -> bool {
        let to = m.to();
        let (Some(from), came) = (m.from(), self.trail.at(to)) else {
            return false;
        };
        if self.picture.is_empty(to) || self.left_at(from).is_none_or(|left| left <= came) {
            return false;
        }
        let gone = self.picture.differing(position.board()) & self.picture.vacant();
        let had_left = |square: &Square| *square != from && self.trail.at(*square) < came;
        let others: Vec<Square> = gone.into_iter().filter(had_left).collect();
        let turned = position.with_turn(!position.turn());
        let may_go = |square| {
            let by = |position: &Position| position.move_between(square, to).is_some();
            by(position) || by(&turned)
        };
        others.into_iter().any(may_go)
    }

    /// Whether a line of two plies ends with a move that the board shows, and is more than a move on its way: a captured man that
    /// passes over another square on his way off the board looks like an answer.
    pub(super) fn is_answer(
        &self,
        tip: &Position,
        line: &[Move],
        since: Millis,
        open: Bitboard,
        pressed: Option<Color>,
        now: Millis,
    ) -> bool {
        let [first, second] = line else { return false };
        if first.to() == second.to() {
            // What came to stand there was the first of them, unless who was lifted before it came has pressed for it.
            // Or nobody was seen to come at all.
            let left = |m: &Move| m.from().and_then(|from| self.left_at(from));
            let is_seen =
                left(second).is_some_and(|left| self.trail.filled_since(second.to(), left));
            let is_unseen = left(first).is_some_and(|left| self.trail.at(second.to()) < left);
            return pressed == Some(!tip.turn()) && (is_seen || is_unseen);
        }
        // Nobody comes down after the one who came to where he had stood: the captured man passes there.
        let came = |square: Square| self.trail.at(square);
        if first.from() == Some(second.to()) && came(first.to()) > came(second.to()) + LOOK_MS {
            return false;
        }
        if !self.is_put_down(&tip.play(*first), *second, since) {
            // Who has pressed holds nobody: he has captured.
            let is_gone = |m: &Move| m.from().is_some_and(|from| self.left_at(from).is_some());
            return pressed == Some(!tip.turn())
                && second.is_capture()
                && is_gone(first)
                && is_gone(second);
        }
        if pressed.is_some() || now >= self.last_change + self.timing.takeback {
            return true;
        }
        // The answering man is put down after he was lifted, as near as a scan tells; what came before that may be something else.
        let came_first = second.from().filter(|from| {
            let (came, left) = (self.trail.at(second.to()), self.trail.at(*from));
            came + LOOK_MS < left
        });
        let passing = came_first.map_or(open, |from| open.without(from));
        !explain::is_in_progress(tip, &self.picture, open)
            && !explain::is_in_progress(tip, &self.picture, passing)
    }

    /// What the board shows has stood for longer than a hand takes over it: who has gone has captured, and what stands somewhere was
    /// put down there.
    pub(super) fn search_at_rest(&mut self, now: Millis, cx: &Context<'_>) {
        if self.waiting.is_some()
            || self.frozen_since.is_some()
            || self.sign.is_some()
            || !self.is_unexplained(cx)
        {
            return;
        }
        // Who has pressed is judged with it.
        if self.presses.is_empty() && self.reread_as_castling(now, true, cx) {
            return;
        }
        let view = self.view(cx);
        let differing = self.picture.differing(view.tip().board());
        if explain::is_only_missing(view.tip(), &self.picture, differing)
            && self.have_some_captured(&view, cx)
            && self.read_stretch(now, cx)
        {
            return;
        }
        let view = self.view(cx);
        let mask = self.mask_of(&view, differing);
        if let Some(moves) = self.two_plies(&view, differing, mask, None, now) {
            self.arrived_by(moves, now, cx);
        } else if explain::is_only_missing(view.tip(), &self.picture, differing)
            || !self.match_rivals(now, cx)
        {
            self.suppose_capture(now, cx);
        }
    }

    /// Whether more men are gone than the players have in their hands, and nobody presses: some have captured, one after the other.
    /// Both kings may be gone to show the result.
    pub(super) fn have_some_captured(&self, view: &View<'_>, cx: &Context<'_>) -> bool {
        if !self.is_poor() || cx.has_clock {
            return false;
        }
        let tip = view.tip();
        let gone = self.picture.differing(tip.board()) & self.picture.vacant() & !self.mask(view);
        !tip.board().kings().is_subset(gone) && !explain::only_hands(tip, &self.picture, gone)
    }

    /// The squares of men of the side to move that were left and filled again since this time, where nobody can tell by whom.
    pub(super) fn refilled(&self, position: &Position, since: Millis) -> Bitboard {
        if !self.is_poor() {
            return Bitboard::EMPTY;
        }
        let own = position.board().by_color(position.turn());
        self.trail.changed_since(since) & own & !self.picture.vacant()
    }

    /// The captures that the man can have made who is gone from the board and whose side has the move, the likeliest first. A man of
    /// the other side may be in a hand besides, and squares may be set aside.
    pub(super) fn unseen_captures(
        &self,
        from: &Standpoint<'_>,
        aside: Bitboard,
        pressed_at: Option<Millis>,
    ) -> Vec<Move> {
        let position = from.position;
        let board = position.board();
        let open = self.picture.differing(board) & !aside;
        let gone = |color: Color| open & board.by_color(color) & self.picture.vacant();
        let own = gone(position.turn());
        let left_by = |time: Millis| {
            move |square: &Square| pressed_at.is_none_or(|at| self.trail.at(*square) <= at + time)
        };
        let before_press = left_by(LOOK_MS);
        // What the opponent has lifted since is his answer.
        let theirs: Bitboard = gone(!position.turn())
            .into_iter()
            .filter(before_press)
            .collect();
        let moved: Bitboard = match own.single_square() {
            // A slow board tells later that he has left.
            Some(_) => own.into_iter().filter(left_by(trail::SCAN_MS)).collect(),
            None => own.into_iter().filter(before_press).collect(),
        };
        let Some(vacated) = moved
            .single_square()
            .or_else(|| self.last_lifted(moved).filter(|_| pressed_at.is_some()))
        else {
            return Vec::new();
        };
        // The captured man may still be passing over a square on his way off the board; what came since is none if it is the answer.
        let late = gone(!position.turn()) & !theirs;
        let passing = open & !own & !gone(!position.turn()) & !self.answered_on(position, late);
        let is_one = |squares: Bitboard| squares.count() <= 1;
        if !is_one(passing) || !is_one(theirs) || (passing & board.occupied()).any() {
            return Vec::new();
        }
        let unread = self.unread_squares();
        let is_unseen = |m: &Move| unread.contains(m.to()) || (self.is_poor() && m.is_capture());
        let lines = position
            .moves_from(vacated)
            .filter(|m| is_unseen(m) && !m.is_en_passant() && !theirs.contains(m.to()))
            .filter(|m| {
                let beside = attacks::king_attacks(m.to());
                passing.is_subset(beside) || self.is_victim_of_answer(position, *m, theirs, passing)
            })
            .filter(|m| {
                let man = m.promotion().unwrap_or(m.role()).of(position.turn());
                let is_lifted = self.picture.is_empty(m.to());
                is_lifted
                    || self
                        .picture
                        .at(m.to())
                        .is_none_or(|contents| contents.agrees(Some(man)))
            })
            .map(|m| vec![m])
            .collect();
        let weighed = self.weighed(from, lines);
        weighed.into_iter().flat_map(|line| line.moves).collect()
    }

    /// The one of these that was left long after the others. Who went before he was lifted was knocked off.
    pub(super) fn last_lifted(&self, left: Bitboard) -> Option<Square> {
        let last = left
            .into_iter()
            .max_by_key(|square| self.trail.at(*square))?;
        let is_earlier =
            |square: Square| self.trail.at(square) + self.timing.hand < self.trail.at(last);
        left.without(last)
            .into_iter()
            .all(is_earlier)
            .then_some(last)
    }

    /// The squares on which these men of the side that answers, who have been lifted, may have been put down since.
    fn answered_on(&self, position: &Position, lifted: Bitboard) -> Bitboard {
        let Some(from) = lifted.single_square() else {
            return Bitboard::EMPTY;
        };
        let turned = position.with_turn(!position.turn());
        let came = |m: &Move| {
            self.trail.at(m.to()) > self.trail.at(from) && !self.picture.is_empty(m.to())
        };
        let arrived = turned.moves_from(from).filter(came);
        arrived.map(|m| m.to()).collect()
    }

    /// Whether the man that passes here may be the one whom the answer to `m` takes, of which no more is seen than that its man was
    /// lifted.
    fn is_victim_of_answer(
        &self,
        position: &Position,
        m: Move,
        lifted: Bitboard,
        passing: Bitboard,
    ) -> bool {
        let (Some(from), Some(square)) = (lifted.single_square(), passing.single_square()) else {
            return false;
        };
        let after = position.play_playable(m);
        let answers = || after.moves_from(from);
        let is_beside = |answer: Move| {
            answer.is_capture()
                && attacks::king_attacks(look::capture_square(answer)).contains(square)
        };
        self.trail.at(square) > self.trail.at(from)
            && answers().any(is_beside)
            && !answers().any(|answer| answer.to() == square)
    }

    /// What is set aside where the record stands after so many plies: of earlier ones nothing is.
    pub(super) fn mask_after(&self, view: &View<'_>, plies: usize) -> Bitboard {
        match plies == view.len() {
            true => self.mask(view),
            false => Bitboard::EMPTY,
        }
    }

    /// `m` as it was played from there.
    pub(super) fn seen_from(&self, from: &Standpoint<'_>, m: Move, now: Millis) -> Seen {
        let at = self.shown_at(from.position, m, from.since, now);
        Seen::new(from.position, m, at)
    }

    /// The man that moved last is gone from where he seemed to stand, and the answer is on the board: what stood there was a captured
    /// man on his way off the board, and the move was another.
    pub(super) fn read_last_anew(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let Some((keep, moves)) = self.last_anew(now, None, cx) else {
            return false;
        };
        self.otherwise(keep, moves, now, cx);
        true
    }

    /// The same where the record knows of no such move, and what else may have been played does.
    pub(super) fn read_rivals_anew(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let is_gone = self.is_poor() && {
            let view = self.view(cx);
            self.has_gone_on(&view) && self.was_brief(&view)
        };
        let ask = |sensing: &mut Sensing| sensing.read_last_anew(now, cx);
        is_gone && self.try_rivals(cx, ask)
    }

    /// The same as it would read; the answer of a side that has pressed need not be put down.
    fn last_anew(
        &self,
        now: Millis,
        pressed: Option<Color>,
        cx: &Context<'_>,
    ) -> Option<(usize, Vec<Seen>)> {
        if !self.is_poor() {
            return None;
        }
        let view = self.view(cx);
        let keep = view.len().checked_sub(1)?;
        let before = view.position(keep);
        let turn = !before.turn();
        if !self.has_gone_on(&view) || pressed.is_some_and(|side| side != turn) {
            return None;
        }
        // Where he was pressed and stood, he had moved; not where he is only supposed to have taken.
        let is_recorded = view.keep > keep;
        if is_recorded && self.is_completed(keep + 1, cx) && !self.was_brief(&view) {
            return None;
        }
        let since = view.seen_at(keep);
        let mask = self.mask(&view);
        let refilled = self.refilled(before, since) & !mask;
        let lines = explain::lines_over(before, &self.picture, mask, refilled, 2, |line| {
            !self.is_done(&view, line[0])
                && (line[0].is_capture() || !self.came_after_all(&view, line[0], cx))
                && (pressed.is_some() || self.is_put_down(&before.play(line[0]), line[1], since))
        });
        let line = self.likeliest(&view.standpoint(keep), &lines)?;
        Some((keep, self.seen(before, &line, now)))
    }

    /// This side has pressed, so that its man who is gone is not in the hand: he has captured. Tells what he did, if he did.
    pub(super) fn read_unseen(&mut self, now: Millis, pressed: Pressed, cx: &Context<'_>) -> bool {
        let Some((keep, moves)) = self.unseen_at_press(now, pressed, cx) else {
            return false;
        };
        self.arrived_from(keep, moves, now, cx);
        self.flush(cx);
        true
    }

    /// Before anything is made loud at a press: a move, or a move and the reply to it, that explains all of it, now that whoever has
    /// pressed holds no man that captured. Tells that, if there is one; what else may have been played is asked last.
    pub(super) fn read_at_last(&mut self, now: Millis, side: Color, cx: &Context<'_>) -> bool {
        if !self.is_poor() || self.waiting.is_some() || self.frozen_since.is_some() {
            return false;
        }
        let view = self.view(cx);
        let tip = view.tip();
        let differing = self.picture.differing(tip.board());
        let read = |mask: Bitboard| {
            let found = explain::moves_to(tip, &self.picture, differing, mask);
            let one = self.arrived(&view.standpoint(view.len()), &found);
            match one.filter(|m| self.may_play(tip, *m) && !self.is_of_another_man(*m)) {
                Some(m) => Some(self.seen(tip, &[m], now)),
                None => self.two_plies(&view, differing, mask, Some(side), now),
            }
        };
        // What was told already may be part of it.
        let masks = [Bitboard::EMPTY, self.mask_of(&view, differing)];
        if let Some(moves) = masks.into_iter().find_map(read) {
            self.arrived_by(moves, now, cx);
        } else if !self.match_rivals(now, cx) {
            return false;
        }
        self.flush(cx);
        true
    }

    /// Whether a man stands where none should: he may be passing over the board in a hand.
    pub(super) fn is_passing(&self, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let tip = view.tip();
        (self.picture.differing(tip.board()) & !tip.board().occupied()).any()
    }

    /// Whether there is something that [`Sensing::read_unseen`] would tell.
    pub(super) fn is_unseen_at_press(
        &self,
        now: Millis,
        pressed: Pressed,
        cx: &Context<'_>,
    ) -> bool {
        self.unseen_at_press(now, pressed, cx).is_some()
    }

    /// Whether a man is gone who will not come back if he stays away for long.
    pub(super) fn waits_for_gone(&self, cx: &Context<'_>) -> bool {
        !self.gone_told && self.is_poor() && self.picture.differing(cx.line.tip().board()).any()
    }

    /// A man has been gone for longer than anybody holds one, and nothing else is wrong: he has captured, and nobody pressed.
    pub(super) fn tell_long_gone(&mut self, now: Millis, cx: &Context<'_>) {
        if self.waiting.is_some() || self.frozen_since.is_some() || self.sign.is_some() {
            return;
        }
        // Where he was seen on the way he has not stayed.
        let passed = self.tentative.take_if(|tentative| !tentative.shown);
        if self.tentative.is_some() || self.tell_gone_or_rival(now, cx) {
            return;
        }
        // Nobody holds two of them, but may have taken back.
        let view = self.view(cx);
        let open = self.picture.differing(view.tip().board());
        let are_two = open.count() > 1 && explain::is_only_missing(view.tip(), &self.picture, open);
        if !cx.has_clock && are_two && self.read_stretch(now, cx) {
            return;
        }
        self.tentative = passed;
    }

    /// The one man who is gone has captured, as the record has it or one of the readings that are a doubt about it.
    pub(super) fn tell_gone_or_rival(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let tell =
            |sensing: &mut Sensing| sensing.is_own_man_gone(cx) && sensing.tell_gone(now, cx);
        tell(self) || self.try_doubts(cx, tell)
    }

    /// Whether all that is wrong is that a man of the side to move is gone.
    fn is_own_man_gone(&self, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let tip = view.tip();
        let gone = self.picture.differing(tip.board()) & !self.mask(&view);
        let own = gone & self.picture.vacant() & tip.board().by_color(tip.turn());
        own == gone && own.count() == 1
    }

    /// The man who is gone, and will not come back, has captured.
    pub(super) fn tell_gone(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let from = view.standpoint(view.len());
        let mut aside = self.mask(&view);
        if self.sign.is_some() {
            // The kings may show the result by now.
            let centre: Bitboard = CENTRE.into_iter().collect();
            aside |= from.position.board().kings() | (centre & !self.picture.vacant());
        }
        let captures = self.unseen_captures(&from, aside, None);
        let Some(&m) = captures
            .first()
            .filter(|m| self.may_play(from.position, **m))
        else {
            return false;
        };
        let seen = self.seen_from(&from, m, now);
        self.arrived_by(vec![seen], now, cx);
        self.flush(cx);
        true
    }

    /// What this side did that the board does not show, now that it has pressed: after how many plies, from the tip or from where its last
    /// move stopped on the way, and the moves.
    fn unseen_at_press(
        &self,
        now: Millis,
        pressed: Pressed,
        cx: &Context<'_>,
    ) -> Option<(usize, Vec<Seen>)> {
        let side = pressed.side;
        if (!self.is_poor() && self.unread.is_empty())
            || self.waiting.is_some()
            || self.frozen_since.is_some()
        {
            return None;
        }
        if let Some(reread) = self.last_anew(now, Some(side), cx) {
            return Some(reread);
        }
        let view = self.view(cx);
        let n = view.len();
        let differing = self.picture.differing(view.tip().board());
        let missing = differing & self.picture.vacant();
        let answers =
            view.tip().turn() != side && (missing & view.tip().board().by_color(side)).any();
        if answers || self.refilled(view.tip(), view.seen_at(n)).any() {
            // What was told already may be part of it.
            let masks = [Bitboard::EMPTY, self.mask_of(&view, differing)];
            let read = |mask| self.two_plies(&view, differing, mask, Some(side), now);
            if let Some(moves) = masks.into_iter().find_map(read) {
                return Some((n, moves));
            }
        }
        let keep = if view.tip().turn() == side {
            n
        } else {
            n.checked_sub(1)
                .filter(|_| !self.is_completed(n, cx) && self.has_gone_on(&view))?
        };
        let from = view.standpoint(keep);
        let agrees = self.picture.agrees_with(from.position.board());
        let m = match self.exchanged(from.position, from.since) {
            Some(m) if keep == n && agrees => m,
            _ => {
                let aside = self.mask_after(&view, keep);
                *self
                    .unseen_captures(&from, aside, Some(pressed.at))
                    .first()?
            }
        };
        // What is recorded already is nothing unseen.
        let is_known = view.mv(keep) == Some(m) && view.keep > keep;
        (!is_known).then(|| (keep, vec![self.seen_from(&from, m, now)]))
    }

    /// The man that a square shows. Where the board knows no men, that is whoever of those that are gone from the squares `open` can
    /// have come there, if they are the deed of one player.
    pub(super) fn man_on(
        &self,
        position: &Position,
        open: Bitboard,
        square: Square,
    ) -> Option<Piece> {
        let contents = self.picture.at(square).filter(|shown| !shown.is_empty())?;
        if let Contents::Piece(piece) = contents {
            return Some(piece);
        }
        let board = position.board();
        if !open.contains(square) {
            return board.piece_at(square);
        }
        let gone = open & board.occupied() & self.picture.vacant();
        let (first, last) = (gone.first()?, gone.last()?);
        let came = |from: Square| {
            let man = board.piece_at(from)?;
            let exchanged = man.role == Role::Pawn && square.rank() == (!man.color).backrank();
            let role = if exchanged { Role::Queen } else { man.role };
            Some(role.of(match contents {
                Contents::Side(color) if exchanged => color,
                _ => man.color,
            }))
        };
        let man = if first == last {
            came(first)
        } else if board.color_at(first) == board.color_at(last) {
            // King and rook, each where castling puts him.
            let king = (gone & board.kings()).single_square()?;
            let rook = (gone & board.rooks()).single_square()?;
            let castling = Castling::new(king, rook, board.color_at(king)?);
            match square {
                square if square == castling.king_to => came(king),
                square if square == castling.rook_to => came(rook),
                _ => None,
            }
        } else {
            // A pawn, and the one beside him.
            gone.into_iter()
                .find(|from| {
                    board.piece_at(*from).is_some_and(|man| {
                        man.role == Role::Pawn
                            && attacks::pawn_attacks(man.color, *from).contains(square)
                    })
                })
                .and_then(came)
        };
        man.filter(|man| contents.agrees(Some(*man)))
    }

    /// Whether the board shows all of `reply`, and its man lifted after these squares had changed. Where nobody knows whose man came to
    /// stand on a square, two men that stand astray look like a deed and the answer to it.
    pub(super) fn is_after(&self, reply: Move, deed: Bitboard) -> bool {
        let begun = reply.from().map_or(0, |from| self.trail.at(from));
        !deed.contains(reply.to())
            && deed
                .into_iter()
                .all(|square| self.trail.at(square) <= begun)
    }

    /// A move after which all stands as before, though both of its men were lifted: castling in which king and rook only exchanged their
    /// squares (Chess960), or a capture whose victim was put down where his captor came from.
    pub(super) fn exchanged(&self, position: &Position, since: Millis) -> Option<Move> {
        if self.picture.is_exact() {
            return None;
        }
        let is_refilled = |squares: Bitboard| {
            (squares & self.picture.vacant()).is_empty()
                && squares
                    .into_iter()
                    .all(|square| self.trail.at(square) > since)
        };
        let castling = position.castling_moves().into_iter().find(|m| {
            let squares = position.squares(*m);
            squares.count() == 2 && is_refilled(squares)
        });
        let captures = || {
            let mut captures = position.moves().into_iter().filter(|m| {
                let is_plain = matches!(
                    m,
                    Move::Normal {
                        promotion: None,
                        ..
                    }
                );
                is_plain && m.is_capture() && is_refilled(position.squares(*m))
            });
            let m = captures.next().filter(|_| captures.next().is_none())?;
            self.is_followed_by_victim(m).then_some(m)
        };
        castling.or_else(captures)
    }

    /// Whether the captor's square was filled again, after he had left it and then come to where he took.
    pub(super) fn is_followed_by_victim(&self, m: Move) -> bool {
        let came = self.trail.at(m.to());
        let from = m.from().filter(|_| m.is_capture());
        from.is_some_and(|from| !self.picture.is_empty(from) && self.trail.left_before(from, came))
    }

    /// Such a move that was answered before anybody pressed.
    pub(super) fn read_exchanged(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let tip = view.tip();
        let Some(first) = self.exchanged(tip, view.seen_at(view.len())) else {
            return false;
        };
        let after = tip.play(first);
        let differing = self.picture.differing(after.board());
        let left = differing & tip.squares(first);
        let mask = self.mask(&view) | left;
        let replies = explain::moves_to(&after, &self.picture, differing, mask);
        let Some(reply) = look::sole(&replies) else {
            return false;
        };
        let moves = self.seen(tip, &[first, reply], now);
        self.arrived_by(moves, now, cx);
        true
    }

    /// The likeliest of several lines that explain the board, where it cannot tell them apart.
    pub(super) fn likeliest(
        &self,
        from: &Standpoint<'_>,
        lines: &explain::Lines,
    ) -> Option<Vec<Move>> {
        if self.picture.is_exact() {
            return lines.sole().map(<[Move]>::to_vec);
        }
        let weighed = self.weighed(from, lines.found.clone());
        Some(weighed.into_iter().next()?.moves)
    }
}
