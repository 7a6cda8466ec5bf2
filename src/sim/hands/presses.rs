//! The clock's lever: pressed after the move, with the other hand before it stands, or only after the reply.

use shakmaty::{ByColor, Color};

use super::{Hands, Level};
use crate::Millis;
use crate::sim::script::{Act, Manner, Played, Table};

/// The presses of a game so far.
#[derive(Debug, Default)]
pub(super) struct Presses {
    /// The place among the plies of a move whose press was forgotten.
    forgotten: Option<usize>,
    /// When each side last pressed. In a hurry that can be later than now.
    last: ByColor<Millis>,
}

/// How a player presses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// After the move, whatever it was.
    Surely,
    /// As players do.
    Usual {
        /// Nothing hinders him from forgetting it until the reply.
        may_forget: bool,
        /// After the last move it does not matter.
        is_last: bool,
    },
}

impl Presses {
    /// When the hand of this side is back from the clock.
    pub(super) fn hand_is_back(&self, side: Color) -> Millis {
        self.last[side] + FROM_CLOCK_MS
    }

    fn latest(&self) -> Millis {
        self.last.white.max(self.last.black)
    }

    fn press(&mut self, table: &mut Table, at_ms: Millis, side: Color) -> Millis {
        table.act_at(at_ms, Act::Press { side });
        self.last[side] = at_ms;
        at_ms
    }
}

impl Hands {
    /// Presses for the move that was just played, and for the one before it where that was forgotten.
    pub(super) fn complete(
        &mut self,
        table: &mut Table,
        presses: &mut Presses,
        plies: &mut [Played],
        mut played: Played,
        care: Care,
    ) -> Played {
        let side = played.side;
        let (usual, may_forget, is_last) = match care {
            Care::Surely => (false, false, false),
            Care::Usual {
                may_forget,
                is_last,
            } => (true, may_forget, is_last),
        };
        if let Some(earlier) = presses.forgotten.take() {
            // The lever is still on the opponent's side: he presses now, and only then can the answer be completed.
            let (low, high) = self.unless_hurried((200, 800), (10, 80));
            let at_ms = self.moment_after(table, presses, played.placed_ms, low, high);
            plies[earlier].pressed_ms = Some(presses.press(table, at_ms, side.other()));
        } else if self.human() && may_forget && self.chance(self.unless_hurried(30, 100)) {
            played.manners.push(Manner::PressForgotten);
            presses.forgotten = Some(plies.len());
            return played;
        } else if usual && self.human() && self.chance(EARLY_PRESSES) {
            played.manners.push(Manner::PressedEarly);
            let at_ms = self
                .early_press(played.touched_ms, played.placed_ms)
                .max(presses.latest() + FROM_CLOCK_MS);
            played.pressed_ms = Some(presses.press(table, at_ms, side));
            table.now = table.now.max(at_ms);
            return played;
        }
        let (low, high) = match self.level {
            Level::Clean => (400, 400),
            _ => self.unless_hurried((150, 1200), (20, 120)),
        };
        let at_ms = self.moment_after(table, presses, played.placed_ms, low, high);
        if !(is_last && self.human() && self.chance(500)) {
            played.pressed_ms = Some(presses.press(table, at_ms, side));
        }
        played
    }

    /// A time from `low` to `high` from now. In a hurry the other player does not wait for it.
    fn moment_after(
        &mut self,
        table: &mut Table,
        presses: &Presses,
        placed_ms: Millis,
        low: Millis,
        high: Millis,
    ) -> Millis {
        let ms = self.between(low, high);
        if self.level == Level::Blitz {
            return placed_ms.max(presses.latest()) + ms;
        }
        table.wait(ms);
        table.now
    }

    /// A press with the other hand, at the latest as the man is let go.
    fn early_press(&mut self, touched_ms: Millis, placed_ms: Millis) -> Millis {
        if self.chance(500) {
            placed_ms + self.between(0, 20)
        } else {
            (placed_ms - self.between(20, 150)).max(touched_ms + 10)
        }
    }
}

/// Of 1000 presses so many come before the sensor can have shown the move: one in 30.
const EARLY_PRESSES: u64 = 33;

/// From the clock back to the men.
const FROM_CLOCK_MS: Millis = 20;
