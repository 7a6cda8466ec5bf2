//! Whose deed it is what squares show, in the words of the Laws.

use super::*;

impl Sensing {
    /// What stands on these squares where plies may well have gone missing, if that is more than an accident.
    pub(super) fn missed(&self, open: Bitboard, since: Millis) -> Option<Fault> {
        (open.count() > ACCIDENT).then(|| Fault::new(FaultKind::Gap, open, since))
    }

    /// Whether what nothing explains may be somebody's deed: play is followed, from where the record stands.
    pub(super) fn may_find_faults(&self, cx: &Context<'_>) -> bool {
        self.waiting.is_none()
            && !self.has_changed_frozen()
            && !self.is_no_play(cx)
            && self.away.is_none()
            && !self.is_in_gap()
    }

    /// What stands on the board that nothing explains, as a fault; these squares are left out. Where it was `pressed` over, nothing is
    /// on its way off the board any more. With it comes the move that was made beside it, which has to be told first.
    pub(super) fn new_fault(
        &self,
        aside: Bitboard,
        pressed: Option<Color>,
        cx: &Context<'_>,
    ) -> Option<(Option<Seen>, Fault)> {
        if !self.may_find_faults(cx) {
            return None;
        }
        let view = self.view(cx);
        let tip = view.tip();
        if self.picture.agrees_with(tip.board()) {
            return None;
        }
        let is_new = |squares: &Bitboard| (*squares & (aside | self.faulty())).is_empty();
        // Nobody's move, whoever's man it is.
        let displaced = |squares| Fault::new(FaultKind::Displaced, squares, self.last_change);
        let pushed = self.pushed_aside(&view, self.picture.differing(tip.board()));
        if let Some(pushed) = pushed.into_iter().find(is_new) {
            return Some((None, displaced(pushed)));
        }
        let forgotten = self.forgotten(&view) & !aside;
        if forgotten.any() && forgotten.count() <= CLEARED {
            return Some((None, self.classify(tip, forgotten)));
        }
        if pressed == Some(!tip.turn())
            && let Some(square) = self.victim_in_his_place(&view).map(Bitboard::from)
            && is_new(&square)
        {
            return Some((None, displaced(square)));
        }
        if self.grace_passed {
            let beside = self.lost_beside(&view) & !self.faulty();
            if beside.any() {
                return Some((None, displaced(beside)));
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
        if (stands.is_none() || lifted.any()) && self.is_patient(&view, open, pressed, cx) {
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
        let mut made: Vec<(Move, Bitboard)> = tip
            .moves()
            .into_iter()
            .filter_map(|m| {
                let effects = tip.effects(m);
                let squares = effects.squares();
                let made = squares.is_subset(open)
                    && !self.is_of_another_man(m)
                    && !self.came_before(tip, m)
                    && !self.may_be_pushed_there(tip, m, open & !squares)
                    && effects.iter().all(|(square, man)| {
                        self.picture
                            .at(square)
                            .is_none_or(|contents| contents.agrees(man))
                    });
                made.then(|| (m, open & !squares))
            })
            .collect();
        // Half of a castling is no move where all of it was made.
        let all: Vec<Bitboard> = made.iter().map(|(_, rest)| *rest).collect();
        made.retain(|(_, rest)| {
            let is_whole = |other: &Bitboard| other == rest || !other.is_subset(*rest);
            all.iter().all(is_whole)
        });
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
            && let Some(answered) = self.answered_irregular_move(&position, open, pressed)
        {
            return Some((seen, answered));
        }
        // Beside a man whom nobody can have put there the rest may be a move on its way, unless the presser's own man is gone.
        let gone = open & self.picture.vacant();
        let is_his = |side: Color| (gone & position.board().by_color(side)).any();
        if fault.side.is_none() && !pressed.is_some_and(is_his) {
            let strangers = self.strangers(self.last_change, &view) & open;
            if let Some(stranger) = strangers.single_square() {
                return Some((seen, displaced(stranger.into())));
            }
        }
        Some((seen, fault))
    }

    /// An irregular move that was answered before anybody could tell: some of the squares show one man gone astray, with all that
    /// belongs to it, and the others a reply that fits behind it. A man that is only lifted answers nothing before his side has pressed.
    pub(super) fn answered_irregular_move(
        &self,
        position: &Position,
        open: Bitboard,
        pressed: Option<Color>,
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
            let done = deed.into_iter().map(|square| self.trail.at(square)).max();
            let is_put_down = self.is_put_down(after, *reply, done.unwrap_or(0));
            let is_seen = is_put_down || pressed == Some(after.turn());
            if self.is_poor() && !(is_seen && self.is_after(*reply, deed)) {
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

    /// The deed of one side, where the other side's stands on other squares.
    pub(super) fn deed_of_one_side(&self, position: &Position, open: Bitboard) -> Option<Fault> {
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

/// Whether this would be a move if it were this side's turn.
pub(super) fn is_playable_on_turn(position: &Position, attempt: Attempt) -> bool {
    let turned = position.with_turn(attempt.color());
    attempt
        .as_move(&turned)
        .is_some_and(|m| turned.is_playable(m))
}
