//! How many plies the players have pressed for, whatever was seen of them.
//!
//! The sides press in turn, so that presses count plies as squares do. Where the count is ahead of the record, and the board has come
//! to rest, plies were played that the record does not have, even if the board looks as if none were missing.

use super::*;

/// What the presses say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    /// After so many plies the last press was, by the turns that the sides take.
    plies: usize,
    /// So many of them were never pressed, as the record reads up to this ply.
    forgotten: (usize, usize),
    /// It was looked into why the record has fewer.
    looked_into: bool,
}

impl Tally {
    /// After so many plies all is in order.
    pub(super) fn after(plies: usize) -> Tally {
        Tally {
            plies,
            ..Tally::default()
        }
    }

    /// A press of `side`, when so many plies are known; White's are the odd ones, or the even ones, by who was to `begin`. Who forgets
    /// to press is counted with what he is seen to have played; who presses twice in a row has played once.
    fn count(&mut self, side: Color, known: usize, begin: Color) {
        let mover = |plies: usize| if plies % 2 == 1 { begin } else { !begin };
        if mover(self.plies + 1) == side {
            self.plies += 1;
        }
        let before = self.plies;
        while self.plies + 2 < known || (self.plies + 2 == known && mover(known) == side) {
            self.plies += 2;
        }
        if self.plies > before {
            self.forgotten = (known, self.plies - before);
        }
        self.looked_into = false;
    }

    /// What was pressed beyond so many plies was for none, or somebody has been told of it.
    pub(super) fn settle(&mut self, plies: usize) {
        self.plies = self.plies.min(plies);
    }

    /// The record is read otherwise after so many plies: nobody may have forgotten to press.
    pub(super) fn read_otherwise(&mut self, keep: usize) {
        let (known, forgotten) = self.forgotten;
        if keep < known {
            self.plies -= forgotten.min(self.plies);
            self.forgotten = (0, 0);
        }
    }

    /// Whether they have pressed for more plies than are known.
    pub(super) fn is_ahead_of(&self, known: usize) -> bool {
        self.plies > known
    }

    pub(super) fn note_looked_into(&mut self) {
        self.looked_into = true;
    }
}

impl Sensing {
    pub(super) fn count_press(&mut self, side: Color, cx: &Context<'_>) {
        let known = self.view(cx).len();
        // Who has pressed to and fro has played nothing.
        if self.tally.is_ahead_of(known + 1) && self.shows_all_plies(cx) {
            self.tally.settle(known);
        }
        let begin = cx.line.start.turn();
        self.tally.count(side, known, begin);
    }

    /// Whether no ply can be missing: a board that knows its men shows all of them as the record has it, or in the hands.
    fn shows_all_plies(&self, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let tip = view.tip();
        let differing = self.picture.differing(tip.board());
        !self.is_poor() && explain::only_hands(tip, &self.picture, differing)
    }

    /// When it is told that plies are missing, if they are.
    pub(super) fn plies_missing_due(&self, cx: &Context<'_>) -> Option<Millis> {
        if self.tally.looked_into
            || !self.tally.is_ahead_of(cx.line.len())
            || self.tentative.is_some()
        {
            return None;
        }
        let pressed_at = self.film.last_press().map_or(0, |press| press.at);
        let rests = self.last_change.max(self.heard_since).max(pressed_at);
        Some(rests + self.timing.grace)
    }

    /// The board is at rest, and the record still lacks plies that were pressed for: they are looked for once more in all that was
    /// seen, and told of if they are not found. Whatever else is wrong is told of by itself.
    pub(super) fn tell_plies_missing(&mut self, now: Millis, cx: &Context<'_>) {
        self.tally.note_looked_into();
        let is_idle = self.faults.is_empty()
            && self.presses.is_empty()
            && self.waiting.is_none()
            && self.frozen_since.is_none()
            && self.sign.is_none()
            && self.away.is_none();
        if self.shows_all_plies(cx) {
            self.tally.settle(cx.line.len());
        } else if is_idle && !self.read_all_pressed(now, cx) {
            self.raise(Fault {
                level: Level::Told,
                ..Fault::new(FaultKind::PliesMissing, Bitboard::EMPTY, now)
            });
        }
    }
}
