//! The chess clock on a virtual table: what its players' lever and the arbiter's button do to two falling times.

use std::fmt;
use std::str::FromStr;

use shakmaty::{ByColor, Color};

use crate::Millis;
use crate::clock::control::{Bonus, Period, TimeControl, TimeControlError};

/// A time control that the clock can count: periods with increments, read and written as all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockControl(TimeControl);

impl ClockControl {
    /// The periods in order; there is at least one.
    pub fn periods(&self) -> &[Period] {
        self.0.periods()
    }

    pub fn as_time_control(&self) -> &TimeControl {
        &self.0
    }
}

impl TryFrom<TimeControl> for ClockControl {
    type Error = UncountedControl;

    fn try_from(control: TimeControl) -> Result<ClockControl, UncountedControl> {
        let counts = |period: &Period| matches!(period.bonus, Bonus::None | Bonus::Increment(_));
        if !control.periods().is_empty() && control.periods().iter().all(counts) {
            Ok(ClockControl(control))
        } else {
            Err(UncountedControl(control))
        }
    }
}

impl FromStr for ClockControl {
    type Err = ClockControlError;

    fn from_str(text: &str) -> Result<ClockControl, ClockControlError> {
        Ok(text.parse::<TimeControl>()?.try_into()?)
    }
}

impl fmt::Display for ClockControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A time control with more, or less, than times and increments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the virtual clock cannot count the time control {0}, only periods with increments, as in 300+3 or 40/5400+30:1800+30"
)]
pub struct UncountedControl(TimeControl);

/// A text that says nothing to which the clock can be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClockControlError {
    #[error(transparent)]
    NoControl(#[from] TimeControlError),
    #[error(transparent)]
    Uncounted(#[from] UncountedControl),
}

/// A clock with two displays and one lever.
///
/// Times are granted as a DGT clock grants them: the increment of the first move before the clock starts, each later one when the
/// move is completed by the lever (protocol sheet 3.5). A further period's time is added when the former has run out, and the flag
/// symbol stays shown until that player next presses. When the last period runs out the clock halts at zero with the flag down.
///
/// Time never runs backwards; a call with an earlier `now` than the last one changes nothing that has been counted.
#[derive(Debug, Clone)]
pub struct ChessClock {
    control: ClockControl,
    sides: ByColor<Display>,
    /// Whose time falls; `None` while stopped.
    running: Option<Color>,
    /// Whose lever end is up: he is to move.
    lever: Color,
    at: Millis,
}

#[derive(Debug, Clone, Copy)]
struct Display {
    left_ms: u64,
    period: usize,
    /// Time used up in the last period.
    fallen: bool,
    /// The flag symbol of an earlier period.
    flag_shown: bool,
}

impl ChessClock {
    /// A clock set to `control`, stopped, with White to move.
    pub fn new(control: ClockControl) -> ChessClock {
        let first = control.periods()[0];
        let display = Display {
            left_ms: u64::from(first.seconds + first.bonus.seconds()) * 1000,
            period: 0,
            fallen: false,
            flag_shown: false,
        };
        ChessClock {
            control,
            sides: ByColor {
                black: display,
                white: display,
            },
            running: None,
            lever: Color::White,
            at: 0,
        }
    }

    /// Sets both times to the start of the control again; the clock is stopped.
    pub fn reset(&mut self, now: Millis) {
        let at = self.at.max(now);
        *self = ChessClock::new(self.control.clone());
        self.at = at;
    }

    /// Starts the time of `side`, whose lever end comes up. A clock with a fallen flag stays halted.
    pub fn start(&mut self, now: Millis, side: Color) {
        self.advance(now);
        self.lever = side;
        if !self.is_flag_down() {
            self.running = Some(side);
        }
    }

    /// Stops both times.
    pub fn stop(&mut self, now: Millis) {
        self.advance(now);
        self.running = None;
    }

    /// `side` presses his end of the lever down. Pressing an end that is down does nothing.
    pub fn press(&mut self, now: Millis, side: Color) {
        self.advance(now);
        if self.lever != side {
            return;
        }
        self.lever = side.other();
        if self.running.is_some() {
            let display = self.sides.get_mut(side);
            display.left_ms +=
                u64::from(self.control.periods()[display.period].bonus.seconds()) * 1000;
            display.flag_shown = false;
            self.running = Some(side.other());
        }
    }

    /// Lets time pass.
    pub fn advance(&mut self, now: Millis) {
        let mut elapsed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let Some(side) = self.running else { return };
        let display = self.sides.get_mut(side);
        while elapsed >= display.left_ms {
            elapsed -= display.left_ms;
            let Some(next) = self.control.periods().get(display.period + 1) else {
                display.left_ms = 0;
                display.fallen = true;
                self.running = None;
                return;
            };
            display.period += 1;
            display.left_ms = u64::from(next.seconds) * 1000;
            display.flag_shown = true;
        }
        display.left_ms -= elapsed;
    }

    /// Time left of `side` as of the last call.
    pub fn left_ms(&self, side: Color) -> u64 {
        self.sides.get(side).left_ms
    }

    pub fn running(&self) -> Option<Color> {
        self.running
    }

    /// The player whose lever end is up.
    pub fn lever(&self) -> Color {
        self.lever
    }

    /// Whether a flag has fallen in the last period.
    pub fn is_flag_down(&self) -> bool {
        self.sides.iter().any(|display| display.fallen)
    }

    /// What the two displays show, as seen from the clock's front. White's is the left one of a board that stands normally and the
    /// right one of a turned board (protocol sheet 3.5).
    pub fn face(&self, rotated: bool) -> ClockFace {
        let left = Color::from_white(!rotated);
        ClockFace {
            left: self.side_face(left),
            right: self.side_face(left.other()),
            running: self.running.is_some(),
            right_up: self.lever != left,
        }
    }

    fn side_face(&self, side: Color) -> SideFace {
        let display = self.sides.get(side);
        // A display shows the second that has begun: 0:00 only once nothing is left, as the recorded flag fall does.
        let seconds = display.left_ms.div_ceil(1000).min(LONGEST_S);
        let part =
            |value: u64| u8::try_from(value).expect("hours, minutes and seconds are below 60");
        SideFace {
            hours: part(seconds / 3600),
            minutes: part(seconds / 60 % 60),
            seconds: part(seconds % 60),
            halted: display.fallen,
            increment: self.control.periods()[display.period].bonus.seconds() > 0,
            flag_shown: display.flag_shown,
        }
    }
}

/// What a clock shows, left and right as seen from its front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockFace {
    pub left: SideFace,
    pub right: SideFace,
    pub running: bool,
    /// The right end of the lever is up: the player on the right is to move.
    pub right_up: bool,
}

/// One display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideFace {
    pub hours: u8,
    pub minutes: u8,
    pub seconds: u8,
    /// Flag down, halted at zero.
    pub halted: bool,
    /// The control gives time for each move.
    pub increment: bool,
    /// The flag of an earlier period is shown.
    pub flag_shown: bool,
}

/// 9:59:59, the most that the board's clock message can say (protocol sheet 3.5).
const LONGEST_S: u64 = 9 * 3600 + 59 * 60 + 59;

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(control: &str) -> ChessClock {
        ChessClock::new(control.parse().unwrap())
    }

    fn shown(side: SideFace) -> (u8, u8, u8) {
        (side.hours, side.minutes, side.seconds)
    }

    #[test]
    fn controls_that_it_cannot_count_are_refused() {
        for text in [
            "300",
            "300+3",
            "40/5400+30:1800+30",
            "40/7200:20/3600",
            "0+5",
        ] {
            assert_eq!(text.parse::<ClockControl>().unwrap().to_string(), text);
        }
        for text in ["?", "-", "*180", "5400d5", "40/5400+30:900b5", "5 min"] {
            let error = text.parse::<ClockControl>().unwrap_err().to_string();
            assert!(error.contains("40/5400+30:1800+30"), "{error}");
        }
    }

    #[test]
    fn the_recorded_opening_is_counted_alike() {
        // dgt-captures.md 1.2: 3 min + 2 s, White left; started, pressed by White after some three seconds.
        let mut clock = clock("180+2");
        let face = clock.face(false);
        assert_eq!(
            (shown(face.left), shown(face.right)),
            ((0, 3, 2), (0, 3, 2))
        );
        assert!(!face.running && !face.right_up && face.left.increment);
        clock.start(1000, Color::White);
        clock.advance(2000);
        assert_eq!(shown(clock.face(false).left), (0, 3, 1));
        clock.advance(4500);
        assert_eq!(shown(clock.face(false).left), (0, 2, 59));
        clock.press(4500, Color::White);
        let face = clock.face(false);
        assert_eq!(shown(face.left), (0, 3, 1));
        assert!(face.running && face.right_up);
        clock.advance(5500);
        assert_eq!(shown(clock.face(false).right), (0, 3, 1));
        assert_eq!(clock.left_ms(Color::White), 180_500);
    }

    #[test]
    fn a_turned_board_has_white_on_the_right() {
        let mut clock = clock("180+2");
        clock.start(0, Color::White);
        clock.advance(1000);
        let face = clock.face(true);
        assert_eq!(
            (shown(face.right), shown(face.left)),
            ((0, 3, 1), (0, 3, 2))
        );
        assert!(face.right_up);
    }

    #[test]
    fn the_flag_halts_the_clock_at_zero() {
        let mut clock = clock("10");
        clock.start(0, Color::White);
        clock.advance(9_999);
        assert_eq!(shown(clock.face(false).left), (0, 0, 1));
        clock.advance(30_000);
        let face = clock.face(false);
        assert_eq!(shown(face.left), (0, 0, 0));
        assert!(face.left.halted && !face.running && !face.right_up);
        // Nothing revives it but a reset.
        clock.press(31_000, Color::White);
        clock.start(32_000, Color::Black);
        clock.advance(40_000);
        assert_eq!(clock.left_ms(Color::Black), 10_000);
        assert!(!clock.face(false).running);
        clock.reset(41_000);
        assert!(!clock.is_flag_down());
        assert_eq!(clock.left_ms(Color::White), 10_000);
    }

    #[test]
    fn a_second_period_is_added_when_the_first_has_run_out() {
        let mut clock = clock("40/10+1:20+2");
        clock.start(0, Color::White);
        clock.advance(12_000);
        let face = clock.face(false);
        assert_eq!(shown(face.left), (0, 0, 19));
        assert!(face.left.flag_shown && !face.left.halted && face.running);
        clock.press(12_000, Color::White);
        let face = clock.face(false);
        assert_eq!(shown(face.left), (0, 0, 21));
        assert!(!face.left.flag_shown);
    }

    #[test]
    fn a_stopped_clock_keeps_its_times_and_moves_its_lever() {
        let mut clock = clock("300+3");
        clock.start(0, Color::White);
        clock.stop(2_000);
        clock.press(60_000, Color::White);
        assert_eq!(clock.left_ms(Color::White), 301_000);
        assert_eq!(clock.lever(), Color::Black);
        // An end that is down already.
        clock.start(61_000, Color::White);
        clock.press(62_000, Color::Black);
        assert_eq!(clock.running(), Some(Color::White));
    }

    #[test]
    fn long_controls_are_shown_as_the_most_there_is() {
        assert_eq!(shown(clock("86400").face(false).left), (9, 59, 59));
    }
}
