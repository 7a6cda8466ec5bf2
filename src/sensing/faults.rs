//! What no legal play explains: which squares, whose deed, how loud, and when it is over.

use super::*;

impl Sensing {
    /// Squares set aside: those of standing faults that still differ, and of men that were gone already when the last move was made.
    pub(super) fn mask(&self, view: &View<'_>) -> Bitboard {
        self.mask_of(view, self.picture.differing(view.tip().board()))
    }

    /// The same where it is known already what differs.
    pub(super) fn mask_of(&self, view: &View<'_>, differing: Bitboard) -> Bitboard {
        if differing.is_empty() {
            return differing;
        }
        (self.faulty() | self.gone(view) | self.half_castled(view)) & differing
    }

    /// Men that are in no hand: each side has moved since its own went. Who has the move may have lifted his man while the other was
    /// still moving.
    pub(super) fn gone(&self, view: &View<'_>) -> Bitboard {
        let tip = view.tip();
        let lifted = tip.board().occupied() & self.picture.vacant();
        if lifted.is_empty() {
            return lifted;
        }
        let n = view.len();
        let seen = view.seen_at(n);
        let early = seen.saturating_sub(trail::EARLY_MS);
        let own = view.seen_at(n.saturating_sub(1)).max(early);
        let is_own = tip.board().by_color(tip.turn());
        let mut gone = Bitboard::EMPTY;
        for square in lifted {
            let until = if is_own.contains(square) { own } else { seen };
            gone.set(square, self.trail.at(square) < until);
        }
        gone
    }

    /// The squares of all standing faults.
    pub(super) fn faulty(&self) -> Bitboard {
        let aside = self
            .faults
            .iter()
            .filter(|fault| fault.kind != FaultKind::Gap);
        aside.fold(Bitboard::EMPTY, |all, fault| {
            all | fault.squares | fault.over
        })
    }

    /// Whether it is told already that the record does not lead to what the board shows.
    pub(super) fn is_in_gap(&self) -> bool {
        self.faults.iter().any(|fault| fault.kind == FaultKind::Gap)
    }

    /// What stands on these squares where plies may well have gone missing, if that is more than an accident.
    pub(super) fn missed(&self, open: Bitboard, since: Millis) -> Option<Fault> {
        (open.count() > ACCIDENT).then(|| Fault::new(FaultKind::Gap, open, since))
    }

    /// Squares set aside that have changed since that was told. What follows an irregular move is not read from there.
    pub(super) fn changed_since_told(&self) -> Bitboard {
        let changed = |fault: &Fault| {
            let squares = match fault.side {
                None => fault.squares,
                Some(_) => Bitboard::EMPTY,
            };
            let since = fault.since;
            squares
                .into_iter()
                .filter(move |square| self.trail.at(*square) > since)
        };
        self.faults.iter().flat_map(changed).collect()
    }

    /// Men of this side that were off the board before this time.
    fn gone_until(&self, view: &View<'_>, until: Millis, color: Color) -> Bitboard {
        let gone = view.tip().board().by_color(color) & self.picture.vacant();
        gone.into_iter()
            .filter(|square| self.trail.at(*square) < until)
            .collect()
    }

    /// Men that are in no hand any more: their own side has made a move since they went.
    pub(super) fn forgotten(&self, view: &View<'_>) -> Bitboard {
        let n = view.len();
        let forgotten = (n.saturating_sub(1)..=n)
            .filter(|ply| *ply > 0)
            .map(|ply| self.gone_until(view, view.seen_at(ply), view.position(ply - 1).turn()))
            .fold(Bitboard::EMPTY, |all, squares| all | squares)
            & !self.faulty();
        if forgotten.is_empty() {
            return forgotten;
        }
        let castling = Color::ALL.map(|side| self.castling_with(view, side));
        forgotten & !self.half_castled(view) & !(castling[0] | castling[1])
    }

    /// Whether the placement is something that no legal play, no hand and no fault told already explains.
    pub(super) fn is_unexplained(&self, cx: &Context<'_>) -> bool {
        self.unexplained(&self.view(cx)).any()
    }

    /// Its squares.
    pub(super) fn unexplained(&self, view: &View<'_>) -> Bitboard {
        let differing = self.picture.differing(view.tip().board());
        match differing.any() && self.shadow_shown() {
            true => Bitboard::EMPTY,
            false => differing & !self.mask_of(view, differing),
        }
    }

    /// Whether all that differs is the man that was captured last, passing over another square on its way off the board, and perhaps
    /// what the opponent has lifted, who has begun to answer: a man of his own, or first the one that he takes.
    pub(super) fn is_victim_about(&self, view: &View<'_>) -> bool {
        self.victim_about(view).is_some()
    }

    /// The square that he passes over; none where all is only in the hand.
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
        let passed = open & !before.effects(last).squares();
        explain::may_pass(before, last, &self.picture, open).then_some(passed)
    }

    /// Things that are never told, however long: men in the hands, a move on its way.
    pub(super) fn is_patient(&self, view: &View<'_>, open: Bitboard, cx: &Context<'_>) -> bool {
        let tip = view.tip();
        // More men than there are, and a dump agrees: one that is on its way does not stand where it came from.
        if self.grace_passed && self.dump_seen && explain::has_too_many(tip, &self.picture) {
            return false;
        }
        let is_in_hands = |position: &Position, open: Bitboard| {
            let is_on_its_way = match self.grace_passed {
                true => explain::is_in_progress_at_rest,
                false => explain::is_in_progress,
            };
            explain::only_hands(position, &self.picture, open)
                || is_on_its_way(position, &self.picture, open)
        };
        if is_in_hands(tip, open) {
            return true;
        }
        let n = view.len();
        if n == 0 {
            return false;
        }
        let before = view.position(n - 1);
        let open = self.picture.differing(before.board());
        if self.is_completed(n, cx) {
            // Who takes a capture back puts his own man down first; where men are not known apart, a victim that waits long for its
            // captor looks the same.
            return self.is_poor()
                && view.last().is_some_and(|last| last.is_capture())
                && explain::only_hands(before, &self.picture, open);
        }
        is_in_hands(before, open)
    }

    /// Men that went off the board in the middle of the last move, which could have taken them and did not: they may be what was
    /// taken, and their captor stands beside their square.
    fn lost_beside(&self, view: &View<'_>) -> Bitboard {
        let n = view.len();
        let Some(last) = view.last().filter(|m| !m.is_capture()) else {
            return Bitboard::EMPTY;
        };
        let before = view.position(n - 1);
        let (since, until) = (view.seen_at(n - 1), self.trail.at(last.to()));
        let victims: Bitboard = before
            .moves()
            .into_iter()
            .filter(|m| m.from() == last.from() && m.is_capture())
            .map(super::look::capture_square)
            .collect();
        (victims & self.picture.vacant())
            .into_iter()
            .filter(|square| (since + 1..=until).contains(&self.trail.at(*square)))
            .collect()
    }

    /// Whether all that is wrong is a man of the side that has the move, who may have been in the hand since its last one.
    fn may_be_in_hand(&self, squares: Bitboard, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let turn = view.tip().turn();
        let own = squares & view.tip().board().by_color(turn);
        let until = view.seen_at(view.len().saturating_sub(1));
        own == squares
            && squares.count() == 1
            && (squares & self.gone_until(&view, until, turn)).is_empty()
    }

    /// What stands on the board that nothing explains, as a fault; these squares are left out. Where it was `pressed` over, nothing is
    /// on its way off the board any more.
    pub(super) fn new_fault(
        &self,
        aside: Bitboard,
        pressed: Option<Color>,
        cx: &Context<'_>,
    ) -> Option<(Option<Seen>, Fault)> {
        if self.waiting.is_some()
            || self.has_changed_frozen()
            || self.sign.is_some()
            || self.away.is_some()
            || self.is_in_gap()
        {
            return None;
        }
        let view = self.view(cx);
        let tip = view.tip();
        if self.picture.agrees_with(tip.board()) {
            return None;
        }
        let forgotten = self.forgotten(&view) & !aside;
        if forgotten.any() && forgotten.count() <= CLEARED {
            return Some((None, self.classify(tip, forgotten)));
        }
        if self.grace_passed {
            let beside = self.lost_beside(&view) & !self.faulty();
            if beside.any() {
                let fault = Fault::new(FaultKind::Displaced, beside, self.last_change);
                return Some((None, fault));
            }
        }
        if !self.is_unexplained(cx) {
            return None;
        }
        let mask = self.mask(&view) | aside;
        let open = self.picture.differing(tip.board()) & !mask;
        if open.is_empty() || open.count() > CLEARED {
            return None;
        }
        let about = match self.grace_passed {
            true => None,
            false => self.victim_about(&view),
        };
        // Whom the other side has taken since is none of the presser's.
        let is_his = pressed == Some(!tip.turn());
        let stands = about.filter(|passed| is_his && passed.any());
        let lifted = open & tip.board().by_color(tip.turn()) & self.picture.vacant();
        // It might be an answer of which the board shows the end first, as long as nobody presses.
        if (stands.is_none() || lifted.any()) && self.is_patient(&view, open, cx) {
            return None;
        }
        if about.is_some() {
            return stands.map(|passed| (None, self.classify(tip, passed)));
        }
        if self.unheard
            && let Some(gap) = self.missed(open, self.last_change)
        {
            return Some((None, gap));
        }
        // One deed that the board shows whole is that deed, even if half of it would be a legal move.
        let whole = self.classify(tip, open);
        if whole.side.is_some() {
            return Some((None, whole));
        }

        // A move was made and something else is wrong: the move is followed, the rest is the fault.
        let made: Vec<(Move, Bitboard)> = tip
            .moves()
            .into_iter()
            .filter_map(|m| {
                let effects = tip.effects(m);
                let squares = effects.squares();
                let made = squares.is_subset(open)
                    && !self.is_of_another_man(m)
                    && effects.iter().all(|(square, man)| {
                        self.picture
                            .at(square)
                            .is_none_or(|contents| contents.agrees(man))
                    });
                made.then(|| (m, open & !squares))
            })
            .collect();
        // Deeds of both sides on squares that have nothing to do with each other are faults of their own.
        if made.is_empty()
            && let Some(fault) = self.deed_of_one_side(tip, open)
        {
            return Some((None, fault));
        }
        let (seen, position, open) = match made.as_slice() {
            [(m, rest)] if rest.any() => {
                let after = tip.play(*m);
                (Some(Seen::new(tip, *m, self.last_change)), after, *rest)
            }
            // Two men of his stand where each could have gone: nothing tells which of them is the move.
            _ => (None, tip.clone(), open),
        };
        if seen.is_some() && explain::only_hands(&position, &self.picture, open) {
            return None;
        }
        let fault = self.classify(&position, open);
        if fault.kind == FaultKind::Displaced
            && let Some(answered) = self.answered_irregular_move(&position, open)
        {
            return Some((seen, answered));
        }
        Some((seen, fault))
    }

    /// An irregular move that was answered before anybody could tell: some of the squares show one man gone astray, with all that
    /// belongs to it, and the others a reply that fits behind it.
    pub(super) fn answered_irregular_move(
        &self,
        position: &Position,
        open: Bitboard,
    ) -> Option<Fault> {
        // A castling and the reply to it with castling or en passant change no more.
        if open.count() > 8 {
            return None;
        }
        let left = open & position.board().by_color(position.turn());
        let mut deeds: Vec<Bitboard> = open
            .carry_rippler()
            .filter(|deed| (2..=4).contains(&deed.count()) && (*deed & left).any())
            .collect();
        deeds.sort_by_key(|deed| deed.count());
        deeds.into_iter().find_map(|deed| {
            let mut fault = self.classify(position, deed);
            if fault.kind != FaultKind::IllegalMove {
                return None;
            }
            let shown = || {
                deed.into_iter()
                    .map(|square| (square, self.man_on(position, deed, square)))
            };
            let after = match fault.shadow.last() {
                Some(seen) => seen.after.clone(),
                // No move of this position puts such a man there.
                None => position.with_squares(shown()).with_turn(!position.turn()),
            };
            let after = &after;
            let differing = self.picture.differing(after.board());
            let replies = explain::moves_to(after, &self.picture, differing, Bitboard::EMPTY);
            let [reply] = replies.as_slice() else {
                return None;
            };
            if self.is_poor() && !self.is_after(*reply, deed) {
                return None;
            }
            if !fault.shadow.is_empty() {
                let reply = Seen::new(after, *reply, self.last_change);
                fault.shadow.push(reply);
            }
            fault.over = open & !fault.squares;
            fault.level = Level::Told;
            Some(fault)
        })
    }

    /// What these squares show, in the words of the Laws where it is one player's deed.
    pub(super) fn classify(&self, position: &Position, open: Bitboard) -> Fault {
        let mut fault = Fault::new(FaultKind::Displaced, open, self.last_change);
        let own_turn = |attempt: &Attempt| attempt.color() == position.turn();
        let attempt = Attempt::read(position, open, |square| self.man_on(position, open, square))
            // A legal move is no fault, whatever else stands on the board.
            .filter(|attempt| !own_turn(attempt) || !is_playable_on_turn(position, *attempt));
        let Some(attempt) = attempt else {
            return fault;
        };
        // What was done while the clocks stood is no move of anybody's.
        if open
            .into_iter()
            .all(|square| self.stood.contains(&self.trail.at(square)))
        {
            return fault;
        }
        fault.side = Some(attempt.color());
        fault.reason = Some(attempt.reason(position));
        fault.uci = attempt.uci(position);
        fault.kind = match attempt {
            Attempt::Swapped { .. } => FaultKind::Displaced,
            _ if attempt.takes_own_man(position) => FaultKind::Displaced,
            _ if own_turn(&attempt) => FaultKind::IllegalMove,
            _ if is_playable_on_turn(position, attempt) => FaultKind::OutOfTurn,
            // A man of the side that has not the move, where it could not go if it had: nobody moved it there.
            _ => FaultKind::Displaced,
        };
        if fault.kind == FaultKind::IllegalMove
            && let Some(m) = attempt.as_move(position)
        {
            fault.shadow = vec![Seen::new(position, m, self.last_change)];
        }
        fault
    }

    /// At a press a man of the presser's that is nowhere is no longer in his hand. What was done `after` it is none of its business.
    pub(super) fn note_fault_at_press(
        &mut self,
        level: Level,
        side: Color,
        his_turn: bool,
        after: Bitboard,
        cx: &Context<'_>,
    ) {
        if self.is_in_gap() {
            return;
        }
        let told = self.faults.len();
        // A move that is found beside what is wrong is completed by this press.
        self.unspent = his_turn.then_some(side);
        self.note_fault_by(level, Some(side), after, cx);
        if self
            .faults
            .last()
            .is_some_and(|fault| fault.kind == FaultKind::IllegalMove)
        {
            self.unspent = None;
        }
        let missing = self.own_men_missing(side, his_turn, after, cx);
        if self.faults.len() == told && missing.any() {
            let view = self.view(cx);
            let mut fault = self.classify(view.tip(), missing);
            fault.level = Level::Told;
            self.raise(fault);
            self.unspent = Some(side);
        } else if self.faults.len() == told && his_turn {
            // Nothing was played, and something stands where nothing should: the press leaves it no more time.
            let view = self.view(cx);
            let tip = view.tip();
            let open = self.picture.differing(tip.board()) & !self.mask(&view);
            if open.is_empty() || explain::is_only_missing(tip, &self.picture, open) {
                return;
            }
            let gap = match self.unheard || open.count() > CLEARED {
                true => self.missed(open, self.last_change),
                false => None,
            };
            let mut fault = gap.unwrap_or_else(|| self.classify(tip, open));
            fault.level = Level::Told;
            if fault.kind != FaultKind::Gap || view.len() > 0 {
                self.raise(fault);
            }
        }
    }

    /// The squares of men of the presser's that are nowhere on the board, if that is all that is wrong.
    pub(super) fn own_men_missing(
        &self,
        side: Color,
        his_turn: bool,
        after: Bitboard,
        cx: &Context<'_>,
    ) -> Bitboard {
        let view = self.view(cx);
        let tip = view.tip();
        let open = self.picture.differing(tip.board()) & !self.faulty() & !after;
        if !explain::is_only_missing(tip, &self.picture, open) {
            return Bitboard::EMPTY;
        }
        let own = open & tip.board().by_color(side);
        if own.is_empty() {
            return own;
        }
        if tip.turn() == side {
            return if his_turn { own } else { Bitboard::EMPTY };
        }
        // What the opponent can take he may have in his hand already.
        let victims: Bitboard = tip
            .moves()
            .into_iter()
            .filter(|m| m.is_capture())
            .map(super::look::capture_square)
            .collect();
        own & !victims
    }

    /// The deed of one side, where the other side's stands on other squares.
    fn deed_of_one_side(&self, position: &Position, open: Bitboard) -> Option<Fault> {
        let concerns = |color: Color| -> Bitboard {
            open.into_iter()
                .filter(|square| self.concerns(*square, color, position))
                .collect()
        };
        let sides = [position.turn(), !position.turn()].map(concerns);
        let [ours, theirs] = sides;
        if ours.is_empty() || theirs.is_empty() || (ours & theirs).any() {
            return None;
        }
        sides
            .into_iter()
            .map(|part| self.classify(position, part))
            .find(|fault| fault.side.is_some())
    }

    /// Notes what is not explained: what is noted is set aside, and the rest looked at again.
    pub(super) fn note_all_faults(&mut self, cx: &Context<'_>) {
        for fault in &mut self.faults {
            if fault.level == Level::Unsaid {
                fault.level = Level::Noted;
                tell(&mut self.observations, fault);
            }
        }
        let mut noted = usize::MAX;
        while self.faults.len() != noted
            && self
                .observations
                .iter()
                .all(|told| !matches!(told, Observation::Moved(_)))
        {
            noted = self.faults.len();
            self.note_fault_by(Level::Noted, None, Bitboard::EMPTY, cx);
        }
    }

    /// Raises what is not explained, at this level, where this side has pressed; nothing if all is explained.
    fn note_fault_by(
        &mut self,
        level: Level,
        pressed: Option<Color>,
        aside: Bitboard,
        cx: &Context<'_>,
    ) {
        let Some((seen, mut fault)) = self.new_fault(aside, pressed, cx) else {
            return;
        };
        // What the other side has on the board is not finished by this press.
        let others = fault.kind == FaultKind::IllegalMove
            && pressed.is_some_and(|side| fault.side != Some(side));
        let level = if others { Level::Noted } else { level };
        // The answer to a move that was told is no deed of its own, even where that move cannot be played on by geometry.
        let tip = self.view(cx).tip();
        let turn = tip.turn();
        let missing = self.pressed_missing(tip).map(Bitboard::from);
        let over = self.faults.iter_mut().find(|known| {
            let is_his_deed = known.side == Some(turn) && known.reason.is_some();
            known.level >= Level::Told && (is_his_deed || missing == Some(known.squares))
        });
        if fault.kind == FaultKind::OutOfTurn
            && let Some(known) = over
        {
            known.over |= fault.squares;
            tell(&mut self.observations, known);
            return;
        }
        if let Some(seen) = seen {
            let keep = self.view(cx).len();
            self.flush(cx);
            self.tell_moves(keep, vec![seen], keep, CorrectionReason::MovedOn, cx);
        }
        if self.is_gone_on_astray(&fault, cx) {
            return;
        }
        if level >= Level::Told && takes_over_own_man(&fault) {
            fault.kind = FaultKind::IllegalMove;
        }
        fault.level = cap(fault.kind, level.max(fault.level));
        fault.until_press = fault.kind == FaultKind::OutOfTurn && cx.has_clock;
        self.raise(fault);
    }

    /// The reply that stands before this move was made, out of its turn: nothing tells yet whether it is one.
    pub(super) fn early_reply(
        &self,
        tip: &Position,
        line: &[Move],
        pressed: Option<Color>,
        cx: &Context<'_>,
    ) -> Option<Fault> {
        let [first, reply] = line else { return None };
        let after = tip.play_playable(*first);
        let fault = self.classify(tip, after.effects(*reply).squares());
        // After mate nobody need press.
        let is_last = after.play_playable(*reply).moves().is_empty();
        let is_open = cx.has_clock && pressed != Some(!tip.turn()) && !is_last;
        (is_open && fault.kind == FaultKind::OutOfTurn).then_some(Fault {
            until_press: true,
            level: Level::Unsaid,
            ..fault
        })
    }

    /// Whether this was told as a deed out of turn that waits for a press.
    pub(super) fn is_early(&self, m: Move) -> bool {
        let squares = m.from().map(|from| Bitboard::from(from).with(m.to()));
        self.faults
            .iter()
            .any(|fault| fault.until_press && Some(fault.squares) == squares)
    }

    /// The deed out of turn of this side, if it is a move by now, and nothing else is wrong.
    pub(super) fn early_move(&self, side: Color, cx: &Context<'_>) -> Option<Seen> {
        let view = self.view(cx);
        let tip = view.tip();
        if tip.turn() != side || self.waiting.is_some() || self.frozen_since.is_some() {
            return None;
        }
        let differing = self.picture.differing(tip.board());
        let fault = self.faults.iter().find(|fault| {
            fault.until_press
                && fault.level < Level::Told
                && (fault.squares & differing) == fault.squares
        })?;
        let aside = self.mask_of(&view, differing) & !fault.squares;
        let found = explain::moves_to(tip, &self.picture, differing, aside);
        let m = *found.iter().find(|m| self.is_early(**m))?;
        Some(Seen::found(tip, m, self.last_change))
    }

    /// A man that stood astray has gone on to another wrong square: the same irregularity, on other squares.
    fn is_gone_on_astray(&mut self, fault: &Fault, cx: &Context<'_>) -> bool {
        let tip = self.view(cx).tip();
        let differing = self.picture.differing(tip.board());
        let found = self.faults.iter().enumerate().find_map(|(index, known)| {
            let deed = self.classify(tip, (known.squares | fault.squares) & differing);
            let same = deed.side.is_some() && deed.side == known.side && deed.kind == known.kind;
            same.then_some((index, deed))
        });
        let Some((index, deed)) = found else {
            return false;
        };
        let known = &mut self.faults[index];
        known.squares |= deed.squares;
        (known.reason, known.uci, known.shadow) = (deed.reason, deed.uci, deed.shadow);
        known.level = known.level.max(Level::Noted);
        tell(&mut self.observations, known);
        true
    }

    pub(super) fn raise(&mut self, mut fault: Fault) {
        fault.id = self.next_fault;
        self.next_fault += 1;
        tell(&mut self.observations, &fault);
        self.faults.push(fault);
    }

    /// A press makes what stands loud: the presser's own irregular move, and anything displaced.
    pub(super) fn raise_levels(&mut self, level: Level, side: Color, cx: &Context<'_>) {
        let turn = self.view(cx).tip().turn();
        for fault in &mut self.faults {
            if !fault.is_made_loud_by(side, turn) {
                continue;
            }
            let taken_over = fault.side == Some(side) && takes_over_own_man(fault);
            if taken_over {
                fault.kind = FaultKind::IllegalMove;
            }
            let level = cap(fault.kind, level);
            if fault.level < level {
                fault.level = level;
                tell(&mut self.observations, fault);
            }
        }
    }

    pub(super) fn escalation_at(&self, fault: &Fault, cx: &Context<'_>) -> Option<Millis> {
        // Before the clock was started men are still being set up.
        if fault.level > Level::Noted || (cx.unstarted && cx.line.is_empty()) {
            return None;
        }
        let since = fault.since.max(self.heard_since);
        match fault.kind {
            FaultKind::IllegalMove | FaultKind::OutOfTurn if cx.has_clock => None,
            FaultKind::Displaced => {
                let missing = fault
                    .squares
                    .into_iter()
                    .all(|square| self.picture.is_empty(square));
                if missing && self.may_be_in_hand(fault.squares, cx) {
                    return None;
                }
                Some(
                    since
                        + if missing {
                            self.timing.missing
                        } else {
                            self.timing.displaced
                        },
                )
            }
            _ => Some(since + self.timing.displaced),
        }
    }

    pub(super) fn escalate_by_time(&mut self, now: Millis, cx: &Context<'_>) {
        for index in 0..self.faults.len() {
            if self
                .escalation_at(&self.faults[index], cx)
                .is_some_and(|at| now >= at)
            {
                self.faults[index].level = Level::Told;
                tell(&mut self.observations, &self.faults[index]);
            }
        }
    }

    /// Faults whose squares all agree with the record again are over; so is an irregular move that was replaced by a legal one.
    pub(super) fn close_restored(&mut self, cx: &Context<'_>) {
        self.reconsider_unread(cx);
        if self.faults.is_empty() && !self.unheard {
            return;
        }
        let view = self.view(cx);
        let tip = view.tip();
        let differing = self.picture.differing(tip.board());
        let is_led_to = explain::only_hands(tip, &self.picture, differing);
        let in_question = differing | self.squares_in_question();
        self.unheard &= differing.any();
        let (over, open): (Vec<Fault>, Vec<Fault>) =
            self.faults.drain(..).partition(|fault| match fault.kind {
                FaultKind::Gap => is_led_to,
                _ => ((fault.squares | fault.over) & in_question).is_empty(),
            });
        self.faults = open;
        self.note_dead(&over, cx);
        for fault in over {
            self.tell_closed(&fault, FaultEnd::Restored);
        }
    }

    pub(super) fn close_faults(&mut self, why: FaultEnd) {
        for fault in std::mem::take(&mut self.faults) {
            self.tell_closed(&fault, why);
        }
    }

    fn tell_closed(&mut self, fault: &Fault, why: FaultEnd) {
        if fault.level > Level::Unsaid {
            let id = fault.id;
            self.observations
                .push_back(Observation::FaultClosed { id, why });
        }
    }

    /// Takes a fault off the list because somebody has decided on it.
    pub fn settle_fault(&mut self, id: u32) -> Option<Fault> {
        let index = self.faults.iter().position(|fault| fault.id == id)?;
        Some(self.faults.remove(index))
    }

    /// Whether the board shows an irregular move and what was played after it.
    pub(super) fn shadow_shown(&self) -> bool {
        self.faults
            .iter()
            .filter_map(|fault| fault.shadow.last())
            .any(|seen| self.picture.agrees_with(seen.after.board()))
    }

    /// The opponent plays on over an irregular move: it is followed by geometry, beside the record.
    pub(super) fn follow_shadow(&mut self, now: Millis) -> bool {
        for index in 0..self.faults.len() {
            let Some(last) = self.faults[index].shadow.last() else {
                continue;
            };
            let differing = self.picture.differing(last.after.board());
            if differing.is_empty() {
                return true;
            }
            let found = explain::moves_to(&last.after, &self.picture, differing, Bitboard::EMPTY);
            if let [m] = found.as_slice() {
                let seen = Seen::new(&last.after, *m, now);
                let fault = &mut self.faults[index];
                fault.shadow.push(seen);
                fault.over |= differing;
                // The reply is the last moment: it was not stopped at the press, or there is no clock to press.
                fault.level = fault.level.max(Level::Told);
                tell(&mut self.observations, fault);
                self.lift_over_fault = None;
                self.tell_sync();
                return true;
            }
        }
        false
    }

    /// With a clock, an opponent who lifts a man over an irregular move has begun to answer it.
    pub(super) fn note_lift_over_fault(&mut self, now: Millis, lifted: Bitboard, cx: &Context<'_>) {
        if !cx.has_clock || self.frozen_since.is_some() || self.waiting.is_some() {
            return;
        }
        let view = self.view(cx);
        let tip = view.tip();
        let theirs = lifted & tip.board().by_color(!tip.turn());
        let Some(square) = theirs.first() else { return };
        let open = self.picture.differing(tip.board()).without(square);
        if open.is_empty() {
            return;
        }
        let stood = |since: Millis| now.saturating_sub(since) >= self.timing.settle;
        let quiet_before = Square::ALL
            .into_iter()
            .filter(|other| *other != square)
            .map(|other| self.trail.at(other))
            .max()
            .is_some_and(stood);
        let attempt = Attempt::read(tip, open, |square| self.man_on(tip, open, square));
        let irregular = attempt
            .is_some_and(|attempt| attempt.color() == tip.turn() && !attempt.takes_own_man(tip));
        if irregular
            && quiet_before
            && !self.is_on_the_way_back(&view, open)
            && !is_victim_of(tip, square, open)
            && self.faults.iter().all(|fault| fault.level < Level::Told)
            && !explain::is_in_progress(tip, &self.picture, open)
        {
            self.lift_over_fault = Some((now, square));
        }
    }

    pub(super) fn is_put_back(&self, square: Square, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let man = view.tip().board().piece_at(square);
        self.picture
            .at(square)
            .is_none_or(|contents| contents.agrees(man))
    }

    /// The opponent has begun to answer an irregular move: suspected, and told.
    pub(super) fn tell_irregular_move(&mut self, now: Millis, cx: &Context<'_>) {
        let turn = self.view(cx).tip().turn();
        if let Some(fault) = self
            .faults
            .iter_mut()
            .find(|fault| fault.side == Some(turn) && fault.level < Level::Told)
        {
            fault.level = Level::Told;
            tell(&mut self.observations, fault);
            return;
        }
        let view = self.view(cx);
        let tip = view.tip();
        let theirs = tip.board().by_color(!turn);
        let in_hand: Bitboard = theirs
            .into_iter()
            .filter(|square| self.picture.is_empty(*square))
            .collect();
        let open = self.picture.differing(tip.board()) & !self.mask(&view);
        // The lifted man is the opponent's move on its way; the rest must still be the irregular move.
        let lifted = in_hand & open;
        if lifted.count() != 1 {
            return;
        }
        let mut fault = self.classify(tip, open & !lifted);
        if fault.kind == FaultKind::IllegalMove {
            fault.level = Level::Told;
            fault.since = now;
            self.raise(fault);
        }
    }
}

/// Tells of a fault as it is by now, unless nobody is to know of it yet.
pub(super) fn tell(observations: &mut VecDeque<Observation>, fault: &Fault) {
    if fault.level > Level::Unsaid {
        observations.push_back(Observation::Fault(fault.clone()));
    }
}

/// What is left to do of a move that was pressed or answered too early.
pub(super) fn unfinished_fault(m: Move, left: Bitboard, side: Color, since: Millis) -> Fault {
    let kind = match m {
        Move::Castle { .. } => FaultKind::CastlingUnfinished,
        Move::EnPassant { .. } => FaultKind::Displaced,
        _ => FaultKind::PromotionUnfinished,
    };
    Fault {
        side: Some(side),
        reason: (kind == FaultKind::PromotionUnfinished).then_some(IllegalReason::PawnOnLastRank),
        level: Level::Told,
        ..Fault::new(kind, left, since)
    }
}

/// Whether a man that left one of these squares may be about to take the man on this one (case R6).
fn is_victim_of(position: &Position, victim: Square, left: Bitboard) -> bool {
    let takes = |m: &Move| {
        m.is_capture()
            && super::look::capture_square(*m) == victim
            && m.from().is_some_and(|from| left.contains(from))
    };
    position.moves().iter().any(takes)
}

/// Whether this would be a move if it were this side's turn.
pub(super) fn is_playable_on_turn(position: &Position, attempt: Attempt) -> bool {
    let turned = position.with_turn(attempt.color());
    attempt
        .as_move(&turned)
        .is_some_and(|m| turned.is_playable(m))
}

/// An own man's square taken over: displaced until a press makes it an irregular move.
pub(super) fn takes_over_own_man(fault: &Fault) -> bool {
    fault.kind == FaultKind::Displaced && fault.reason == Some(IllegalReason::OwnPieceCaptured)
}

/// What each kind of fault can become at its loudest: only an irregular move is confirmed.
pub(super) fn cap(kind: FaultKind, level: Level) -> Level {
    match kind {
        FaultKind::IllegalMove | FaultKind::OutOfTurn => level,
        _ => level.min(Level::Told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also where what stands is told once more.
    #[test]
    fn nobody_hears_of_what_is_not_said_yet() {
        let mut sensing = Sensing::new(Timing::default());
        let fault = Fault::new(FaultKind::OutOfTurn, Bitboard::from(Square::A6), 1_000);
        let unsaid = Fault {
            level: Level::Unsaid,
            ..fault.clone()
        };
        for (fault, told) in [(unsaid, 0), (fault, 1)] {
            sensing.raise(fault);
            assert_eq!(sensing.observations.len(), told);
            sensing.tell_again();
            assert_eq!(sensing.observations.len(), 2 * told);
            sensing.close_faults(FaultEnd::Ended);
            assert_eq!(sensing.observations.len(), 3 * told);
        }
    }
}
