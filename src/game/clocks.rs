//! What the clock has to do with a game: who thinks, what was pressed, whose flag is down.

use super::record::{Event, Game};
use super::{CompletedBy, Ply};
use crate::Millis;
use shakmaty::{ByColor, Color};

/// The clock as far as this game is concerned.
#[derive(Debug, Clone, Default)]
pub struct Clocks {
    /// A clock has run, or was pressed, in this game.
    pub used: bool,
    pub stopped_at: Option<Millis>,
    /// That it stands for long has been told, be the alert still open or not.
    pub stop_told: bool,
    /// What it showed last, and when.
    pub shown: ByColor<Option<u64>>,
    shown_at: Millis,
    /// Whose flags are down.
    pub flags: ByColor<bool>,
    /// Since when the side to move has been thinking on a running clock, and what it had used before a stop.
    thinking: Option<(Color, Millis)>,
    thought_ms: Millis,
    /// The last press of each side: the mover's clock and the time he used, for the move that it completes.
    pressed: ByColor<Option<PressTimes>>,
    /// How often each flag fell: the first fall ends the first period.
    falls: ByColor<usize>,
    /// Presses in a row that fit the other side's move.
    wrong_presses: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PressTimes {
    pub clk_ms: Option<u64>,
    pub emt_ms: Option<u64>,
}

/// A flag fell, with what the time control asks of it (6.8, 6.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlagFall {
    /// How many moves that side has completed, and how many it had to, where that is known.
    pub completed: u32,
    pub required: Option<u32>,
    pub both: bool,
}

impl Clocks {
    /// What the clock of this side shows at a moment at which nobody pressed. A reading that says nothing new is not kept, so that a
    /// running clock is counted on from the last that was; it shows whole seconds.
    pub(super) fn times_at(&self, side: Color, at: Millis) -> PressTimes {
        let shown = *self.shown.get(side);
        match self.thinking {
            Some((thinker, since)) if thinker == side && self.stopped_at.is_none() => {
                let gone = at.saturating_sub(self.shown_at);
                PressTimes {
                    clk_ms: shown.map(|ms| ms.saturating_sub(gone).next_multiple_of(1_000)),
                    emt_ms: Some(self.thought_ms + at.saturating_sub(since)),
                }
            }
            thinking => PressTimes {
                clk_ms: shown,
                emt_ms: thinking
                    .filter(|(thinker, _)| *thinker == side)
                    .map(|_| self.thought_ms),
            },
        }
    }

    /// Takes what was pressed for the move that it completes.
    pub(super) fn take_press(&mut self, mover: Color) -> Option<PressTimes> {
        self.pressed.get_mut(mover).take()
    }
}

impl Game {
    /// The clock of this side began to run. False where this game is not concerned.
    pub fn handle_clock_started(&mut self, now: Millis, side: Color) -> bool {
        if self.is_over() || !self.ready {
            return false;
        }
        let clocks = &mut self.clocks;
        clocks.used = true;
        clocks.stopped_at = None;
        if clocks.thinking.is_none_or(|(thinker, _)| thinker != side) {
            clocks.thought_ms = 0;
        }
        clocks.thinking = Some((side, now));
        self.quiet_since = None;
        self.started_at.get_or_insert(now);
        // What was played before the clock ran was provisional until now.
        for ply in 1..self.line.len() {
            self.complete(ply, CompletedBy::Reply);
        }
        self.change();
        true
    }

    /// The clock stopped. False where this game is not concerned.
    pub fn handle_clock_stopped(&mut self, now: Millis) -> bool {
        if !self.clocks.used || self.is_over() {
            return false;
        }
        if let Some((_, since)) = self.clocks.thinking {
            self.clocks.thought_ms += now.saturating_sub(since);
        }
        self.clocks.stopped_at = Some(now);
        self.clocks.stop_told = false;
        self.change();
        true
    }

    /// A player pressed; `clk_ms` is what his clock shows after it. False where this game is not concerned.
    pub fn handle_press(
        &mut self,
        now: Millis,
        side: Color,
        clk_ms: Option<u64>,
        shown: ByColor<Option<u64>>,
    ) -> bool {
        if self.is_over() || !self.ready {
            return false;
        }
        let clocks = &mut self.clocks;
        let emt_ms = match clocks.thinking {
            Some((thinker, since)) if thinker == side && clocks.stopped_at.is_none() => {
                Some(clocks.thought_ms + now.saturating_sub(since))
            }
            _ => None,
        };
        clocks.thinking = Some((!side, now));
        clocks.thought_ms = 0;
        clocks.used = true;
        *clocks.pressed.get_mut(side) = Some(PressTimes { clk_ms, emt_ms });
        self.quiet_since = None;
        self.started_at.get_or_insert(now);
        self.tell(Event::Press { side, shown });
        self.change();
        true
    }

    /// The clock is gone, and freezes nothing any more. Tells whether it was used in this game.
    pub fn handle_clock_absent(&mut self) -> bool {
        let is_used = self.clocks.used && !self.is_over();
        if is_used {
            self.clocks.stopped_at = None;
        }
        is_used
    }

    /// This side's clock was pressed over a move of the other side. True once it has happened twice in a row: once may be a message
    /// that came late, a whole think of each side is none (case L1).
    pub fn handle_wrong_press(&mut self) -> bool {
        self.clocks.wrong_presses += 1;
        self.clocks.wrong_presses >= 2
    }

    /// This side's clock was pressed over a move of its own.
    pub fn handle_right_press(&mut self) {
        self.clocks.wrong_presses = 0;
    }

    /// Whether the last move of this side was answered after a whole think before this side's clock was pressed: all of it on the
    /// clock that ran. The bytes of a clock lag (A17), but not so long.
    pub fn is_answered_on_his_time(&self, side: Color) -> bool {
        let Some(last) = self.line.last_of(side) else {
            return false;
        };
        let seen_at = |ply: usize| self.line.plies.get(ply - 1).map(|ply| ply.seen_at);
        match (seen_at(last), seen_at(last + 1)) {
            (Some(moved), Some(answered)) => answered >= moved + THINK_MS,
            _ => false,
        }
    }

    /// The times that the clock showed then.
    pub fn show_times(&mut self, at: Millis, shown: ByColor<Option<u64>>) {
        self.clocks.shown_at = at;
        if !self.is_over() && self.clocks.shown != shown {
            self.clocks.shown = shown;
            self.change();
        }
    }

    /// A flag fell; none where it had fallen before, or the game is over.
    pub fn handle_flag(&mut self, side: Color) -> Option<FlagFall> {
        if self.is_over() || *self.clocks.flags.get(side) {
            return None;
        }
        *self.clocks.flags.get_mut(side) = true;
        let falls = self.clocks.falls.get_mut(side);
        let period = *falls;
        *falls += 1;
        self.tell(Event::Flag { side });
        self.change();

        let is_completed = |ply: &&Ply| ply.by.is_some();
        let completed = self.line.plies.iter().filter(is_completed).count();
        let plies = self
            .line
            .start
            .plies_before()
            .saturating_add(completed as u32);
        let control = self.terms.time_control.as_ref();
        Some(FlagFall {
            completed: side.fold_wb(plies.div_ceil(2), plies / 2),
            required: control.and_then(|control| control.moves_by_end_of(period)),
            both: self.clocks.flags.white && self.clocks.flags.black,
        })
    }

    /// A flag is armed again once its clock shows time and no sign (case L14). True where it was down.
    pub fn rearm_flag(&mut self, side: Color) -> bool {
        std::mem::take(self.clocks.flags.get_mut(side))
    }
}

/// A reply that came after so long was thought about.
const THINK_MS: Millis = 2_000;
