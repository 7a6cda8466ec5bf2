//! What is played over an irregular move, or before its turn.

use super::*;

impl Sensing {
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
        let fault = self.classify(tip, after.squares(*reply));
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

    /// Whether the board shows an irregular move and what was played after it.
    pub(super) fn shadow_shown(&self) -> bool {
        self.faults
            .iter()
            .filter_map(|fault| fault.shadow.last())
            .any(|seen| self.picture.agrees_with(seen.after.board()))
    }

    /// The opponent plays on over an irregular move: it is followed by geometry, beside the record. A man who is only lifted answers
    /// nothing before he has pressed: where men are not known he may be who the mover takes.
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
            let has_pressed = || {
                let side = last.after.turn();
                self.film.has_pressed_since(side, last.at)
            };
            let is_played = |m: Move| self.is_put_down(&last.after, m, last.at) || has_pressed();
            if let [m] = found.as_slice()
                && is_played(*m)
            {
                let seen = Seen::new(&last.after, *m, now);
                let fault = &mut self.faults[index];
                fault.shadow.push(seen);
                fault.over |= differing;
                // The reply is the last moment: it was not stopped at the press, or there is no clock to press.
                fault.level = fault.level.max(Level::Told);
                faults::tell(&mut self.observations, fault);
                self.lift_over_fault = None;
                self.tell_sync();
                return true;
            }
        }
        false
    }

    /// With a clock, an opponent who lifts a man over an irregular move has begun to answer it.
    pub(super) fn note_lift_over_fault(&mut self, now: Millis, lifted: Bitboard, cx: &Context<'_>) {
        let may_tell = cx.has_clock && self.frozen_since.is_none() && self.waiting.is_none();
        if lifted.is_empty() || !may_tell {
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
            && !self.are_kings_going(tip)
            && !is_victim_of(tip, square)
            && self.faults.iter().all(|fault| fault.level < Level::Told)
            && !explain::is_in_progress(tip, &self.picture, open)
        {
            self.lift_over_fault = Some((now, square));
        }
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
            faults::tell(&mut self.observations, fault);
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

/// Whether the mover may be about to take the man on this square (case R6), be it with another man than the one that stands astray: that
/// one may be put right yet.
fn is_victim_of(position: &Position, victim: Square) -> bool {
    let takes = |m: &Move| m.is_capture() && look::capture_square(*m) == victim;
    position.moves().iter().any(takes)
}
