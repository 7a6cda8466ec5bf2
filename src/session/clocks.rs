//! What the clock shows, and what that means for the game.

use super::Table;
use super::alerts::{Notice, Source};
use crate::Millis;
use crate::board::Orientation;
use crate::clock::{self, ClockEvent, ClockKind, ClockSide, Wing};
use crate::game::FlagFall;
use crate::publish::{AlertKind, Audience, CloseReason, Severity};
use shakmaty::{ByColor, Color};

impl Table {
    pub(super) fn apply_clock(&mut self, reading: clock::Reading) {
        let now = self.now;
        let events = self.clock.handle(now, reading);
        self.show_clock_times();
        for event in events {
            match event {
                ClockEvent::Started(wing) => self.clock_started(wing),
                ClockEvent::Stopped => self.clock_stopped(),
                ClockEvent::Pressed(wing) => {
                    let side = self.side(wing);
                    let clk = self.clock.display(wing).map(|display| display.ms);
                    self.pressed(side, clk);
                }
                ClockEvent::Flag(wing) => self.flag_fell(self.side(wing)),
                ClockEvent::Absent => {
                    if self.hand_in(
                        |game| game.handle_clock_absent(),
                        |sensing, cx| sensing.handle_clock_running(now, cx),
                    ) {
                        let notice = Notice::new(
                            AlertKind::ClockAbsent,
                            Audience::Operator,
                            Severity::Info,
                            "the clock is no longer connected. Look at its cable.",
                        );
                        self.close_alert(Source::ClockStopped, CloseReason::Superseded);
                        self.raise(Source::ClockAbsent, notice);
                    }
                }
                ClockEvent::Present => self.close_alert(Source::ClockAbsent, CloseReason::Restored),
                ClockEvent::Adjusted => {}
            }
        }
        self.rearm_flags();
        self.publish_clock();
    }

    /// What the clock shows goes into the record of the game.
    pub(super) fn show_clock_times(&mut self) {
        let shown = self.clock_times();
        let Some((at, _)) = self.clock.last() else {
            return;
        };
        if let Some(game) = self.game.as_mut().filter(|_| self.clock.is_attached()) {
            game.show_times(at, shown);
            self.tell_game();
            self.show_times_after_the_end(at);
        }
    }

    /// What each side's clock said last.
    pub(super) fn clock_times(&self) -> ByColor<Option<u64>> {
        ByColor::new_with(|color| self.clock_ms(color))
    }

    /// What a side's clock said last.
    pub(super) fn clock_ms(&self, color: Color) -> Option<u64> {
        match self.clock.display(self.wing(color)) {
            Some(display) => Some(display.ms),
            None => *self.game.as_ref()?.clocks.shown.get(color),
        }
    }

    pub(super) fn clock_started(&mut self, wing: Wing) {
        self.open_with_clock();
        if self.begin_from_wrong_array(self.side(wing)) {
            // It is told to the game that begins with it.
            return;
        }
        let (now, side) = (self.now, self.side(wing));
        if self.hand_in(
            |game| game.handle_clock_started(now, side),
            |sensing, cx| sensing.handle_clock_running(now, cx),
        ) {
            self.tell_game();
            self.close_alert(Source::ClockStopped, CloseReason::Restored);
        }
    }

    fn clock_stopped(&mut self) {
        let now = self.now;
        if self.hand_in(
            |game| game.handle_clock_stopped(now),
            |sensing, _| sensing.handle_clock_stopped(now),
        ) {
            self.tell_game();
        }
    }

    /// A player pressed; `clk_ms` is what his clock shows after it.
    pub(super) fn pressed(&mut self, side: Color, clk_ms: Option<u64>) {
        let (now, shown) = (self.now, self.clock_times());
        if self.hand_in(
            |game| game.handle_press(now, side, clk_ms, shown),
            |sensing, cx| sensing.handle_press(now, side, cx),
        ) {
            self.tell_game();
            self.close_alert(Source::Press, CloseReason::Superseded);
        }
    }

    fn flag_fell(&mut self, side: Color) {
        let game = self.game.as_mut();
        let Some(fall) = game.and_then(|game| game.handle_flag(side)) else {
            return;
        };
        self.tell_game();
        let FlagFall {
            completed, both, ..
        } = fall;
        let (severity, says) = match fall.required {
            Some(required) if completed >= required => (
                Severity::Info,
                format!("flag down; {completed} moves of {required} completed."),
            ),
            Some(required) => (
                Severity::Urgent,
                format!("flag down; {completed} moves of {required} completed."),
            ),
            None => (
                Severity::Urgent,
                format!("flag down; {completed} moves completed."),
            ),
        };
        let mut notice = Notice::new(AlertKind::Flag, Audience::Arbiter, severity, says);
        notice.side = Some(side);
        notice.show_clocks(self.clock_times());
        self.raise(Source::Flag(side.into()), notice);
        if severity == Severity::Info {
            self.close_alert(Source::Flag(side.into()), CloseReason::Lapsed);
        }
        if both {
            let notice = Notice::new(
                AlertKind::BothFlags,
                Audience::Arbiter,
                Severity::Urgent,
                "both flags are down. Look at the clock.",
            );
            self.raise(Source::BothFlags, notice);
        }
    }

    /// Flags that fell while the game was held to be over.
    pub(super) fn catch_up_flags(&mut self) {
        for color in Color::ALL {
            let shown = self.clock.display(self.wing(color));
            if shown.is_some_and(|display| display.flag) {
                self.flag_fell(color);
            }
        }
    }

    /// A flag is armed again once its clock shows time and no sign (case L14).
    fn rearm_flags(&mut self) {
        for color in Color::ALL {
            let shown = self.clock.display(self.wing(color));
            let up = shown.is_some_and(|display| !display.flag && display.ms > 0);
            if up
                && self
                    .game
                    .as_mut()
                    .is_some_and(|game| game.rearm_flag(color))
            {
                self.close_alert(Source::Flag(color.into()), CloseReason::Restored);
                self.close_alert(Source::BothFlags, CloseReason::Restored);
            }
        }
    }

    pub(super) fn flags(&self) -> ByColor<bool> {
        let game = self.game.as_ref();
        game.map_or_else(ByColor::default, |game| game.clocks.flags)
    }

    /// Whether a clock reading is for us and says something new.
    pub(super) fn takes_clock(&self, now: Millis, reading: &clock::Reading) -> bool {
        !matches!(self.settings.clock, ClockKind::None | ClockKind::External)
            && self.clock.is_news(now, reading)
    }

    /// The wing of White's clock: as set, else at White's left hand on a board that stands right (protocol sheet 3.5).
    fn white_wing(&self) -> Wing {
        match self.settings.white_clock_side {
            ClockSide::Left => Wing::Left,
            ClockSide::Right => Wing::Right,
            ClockSide::Auto => match self.orientation {
                Some(Orientation::Rotated) => Wing::Right,
                _ => Wing::Left,
            },
        }
    }

    pub(super) fn side(&self, wing: Wing) -> Color {
        clock::side_of(wing, self.white_wing())
    }

    fn wing(&self, side: Color) -> Wing {
        let white = self.white_wing();
        side.fold_wb(white, white.other())
    }
}
