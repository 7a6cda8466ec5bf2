//! Chess clocks: what their readings mean.
//!
//! A clock is read by its wings, left and right as seen from its front; which of them is White's is told from outside. The state
//! here is what the last reading said, extrapolated by nothing: times between readings are for whoever looks.

use crate::Millis;
use crate::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::Color;

pub mod control;

words! {
    /// Which clock the game is played with.
    #[derive(Default)]
    ClockKind {
        /// Whatever the bytes and the presses show.
        #[default]
        Auto = "auto",
        /// None at all.
        None = "none",
        /// One on the board's cable.
        Dgt = "dgt",
        /// One that is not connected; its presses come as commands.
        External = "external",
    }
}

words! {
    /// On which side of the clock, seen from its front, White's time stands.
    #[derive(Default)]
    ClockSide {
        /// Found anew at each new game.
        #[default]
        Auto = "auto",
        Left = "left",
        Right = "right",
    }
}

/// One side of the clock as it stands on the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wing {
    Left,
    Right,
}

impl Wing {
    pub fn other(self) -> Wing {
        match self {
            Wing::Left => Wing::Right,
            Wing::Right => Wing::Left,
        }
    }
}

/// What one wing shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Display {
    pub ms: u64,
    /// The sign that this flag has fallen.
    pub flag: bool,
}

/// What the clock said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// No clock is on the cable.
    Absent,
    Times {
        left: Display,
        right: Display,
        running: bool,
        to_move: Wing,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Running {
    White,
    Black,
    #[default]
    None,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Flag {
    White,
    Black,
    Both,
    #[default]
    None,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClockSource {
    /// A clock on the board's cable.
    Dgt,
    /// Told by commands.
    External,
    #[default]
    None,
}

/// What a reading means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockEvent {
    /// This wing's clock was started, from a stop.
    Started(Wing),
    Stopped,
    /// The player of this wing pressed: his move is completed (6.2.1).
    Pressed(Wing),
    /// The flag of this wing is down.
    Flag(Wing),
    /// The times were changed, or differ from what had to be expected.
    Adjusted,
    Absent,
    /// A clock is there (again).
    Present,
}

/// The last word of the clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracker {
    last: Option<(Millis, Reading)>,
    /// Signs of flags, left and right, that came from nowhere and were not shown again yet.
    doubted: [bool; 2],
}

/// A display counts whole seconds and a message may be a second late, so that a smaller deviation is none (protocol sheet 1).
const TOLERANCE_MS: u64 = 1_000;

impl Tracker {
    /// Whether the reading says anything that the last one does not imply. Only such readings need to be kept.
    pub fn is_news(&self, now: Millis, reading: &Reading) -> bool {
        let Some((at, last)) = &self.last else {
            return true;
        };
        match (last, reading) {
            (Reading::Absent, Reading::Absent) => false,
            (
                Reading::Times {
                    left,
                    right,
                    running,
                    to_move,
                },
                Reading::Times {
                    left: new_left,
                    right: new_right,
                    running: new_running,
                    to_move: new_to_move,
                },
            ) => {
                if running != new_running || to_move != new_to_move {
                    return true;
                }
                let gone = if *running { now.saturating_sub(*at) } else { 0 };
                let expected = |wing: Wing, display: &Display| {
                    if *to_move == wing {
                        display.ms.saturating_sub(gone)
                    } else {
                        display.ms
                    }
                };
                let deviates = |wing, old: &Display, new: &Display| {
                    old.flag != new.flag || expected(wing, old).abs_diff(new.ms) > TOLERANCE_MS
                };
                deviates(Wing::Left, left, new_left) || deviates(Wing::Right, right, new_right)
            }
            _ => true,
        }
    }

    /// Takes a reading that is news.
    pub fn handle(&mut self, now: Millis, mut reading: Reading) -> Vec<ClockEvent> {
        let mut events = Vec::new();
        self.doubt_flags(now, &mut reading);
        let before = self
            .last
            .replace((now, reading))
            .map(|(_, reading)| reading);
        let Reading::Times {
            left,
            right,
            running,
            to_move,
        } = reading
        else {
            events.push(ClockEvent::Absent);
            return events;
        };
        let (old_left, old_right) = match before {
            Some(Reading::Times {
                left: old_left,
                right: old_right,
                running: was_running,
                to_move: was_to_move,
            }) => {
                match (was_running, running) {
                    (false, true) => events.push(ClockEvent::Started(to_move)),
                    (true, false) => {
                        // The lever went over and the clock was stopped before a message told either.
                        if was_to_move != to_move {
                            events.push(ClockEvent::Pressed(was_to_move));
                        }
                        events.push(ClockEvent::Stopped);
                    }
                    (true, true) if was_to_move != to_move => {
                        events.push(ClockEvent::Pressed(was_to_move))
                    }
                    _ => events.push(ClockEvent::Adjusted),
                }
                (old_left, old_right)
            }
            _ => {
                events.push(ClockEvent::Present);
                if running {
                    events.push(ClockEvent::Started(to_move));
                }
                (Display::default(), Display::default())
            }
        };
        for (wing, old, new) in [
            (Wing::Left, old_left, left),
            (Wing::Right, old_right, right),
        ] {
            if new.flag && !old.flag {
                events.push(ClockEvent::Flag(wing));
            }
        }
        events
    }

    /// A flag falls when its time has run out. One that is shown over any other time may be two halves of messages whose middle was
    /// lost on the line (protocol sheet 3.1); it counts when it is shown again.
    fn doubt_flags(&mut self, now: Millis, reading: &mut Reading) {
        let (
            Some((
                at,
                Reading::Times {
                    left: old_left,
                    right: old_right,
                    ..
                },
            )),
            Reading::Times { left, right, .. },
        ) = (&self.last, reading)
        else {
            self.doubted = [false; 2];
            return;
        };
        let gone = now.saturating_sub(*at) + TOLERANCE_MS;
        for ((old, new), doubted) in [(old_left, left), (old_right, right)]
            .into_iter()
            .zip(&mut self.doubted)
        {
            let can_have_run_out = new.ms == 0 || old.ms <= gone;
            let first = new.flag && !old.flag && !can_have_run_out && !*doubted;
            new.flag &= !first;
            *doubted = first;
        }
    }

    /// What the clock said last, and when.
    pub fn last(&self) -> Option<(Millis, Reading)> {
        self.last
    }

    pub fn is_running(&self) -> bool {
        matches!(self.last, Some((_, Reading::Times { running: true, .. })))
    }

    /// Whether a clock is there.
    pub fn is_attached(&self) -> bool {
        matches!(self.last, Some((_, Reading::Times { .. })))
    }

    pub fn display(&self, wing: Wing) -> Option<Display> {
        match self.last {
            Some((_, Reading::Times { left, right, .. })) => Some(match wing {
                Wing::Left => left,
                Wing::Right => right,
            }),
            _ => None,
        }
    }

    /// The wing whose time runs, or would run.
    pub fn to_move(&self) -> Option<Wing> {
        match self.last {
            Some((_, Reading::Times { to_move, .. })) => Some(to_move),
            _ => None,
        }
    }
}

/// The side that sits at this wing.
pub fn side_of(wing: Wing, white: Wing) -> Color {
    if wing == white {
        Color::White
    } else {
        Color::Black
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(left: u64, right: u64, running: bool, to_move: Wing) -> Reading {
        let display = |seconds: u64| Display {
            ms: seconds * 1000,
            flag: false,
        };
        Reading::Times {
            left: display(left),
            right: display(right),
            running,
            to_move,
        }
    }

    #[test]
    fn a_game_of_three_minutes() {
        let mut clock = Tracker::default();
        assert_eq!(
            clock.handle(0, times(182, 182, false, Wing::Left)),
            [ClockEvent::Present]
        );
        assert_eq!(
            clock.handle(1_000, times(182, 182, true, Wing::Left)),
            [ClockEvent::Started(Wing::Left)]
        );
        assert!(!clock.is_news(2_000, &times(181, 182, true, Wing::Left)));
        assert!(!clock.is_news(3_900, &times(180, 182, true, Wing::Left)));
        assert!(clock.is_news(2_000, &times(120, 182, true, Wing::Left)));
        // The increment comes with the lever (case L6).
        let pressed = times(183, 182, true, Wing::Right);
        assert!(clock.is_news(4_000, &pressed));
        assert_eq!(
            clock.handle(4_000, pressed),
            [ClockEvent::Pressed(Wing::Left)]
        );
        assert_eq!(
            clock.handle(5_000, times(183, 181, false, Wing::Right)),
            [ClockEvent::Stopped]
        );
        // The lever of a stopped clock says nothing about moves.
        assert_eq!(
            clock.handle(6_000, times(183, 181, false, Wing::Left)),
            [ClockEvent::Adjusted]
        );
        assert_eq!(clock.handle(7_000, Reading::Absent), [ClockEvent::Absent]);
    }

    /// Case L14: the flag is told once.
    #[test]
    fn flag_once() {
        let mut clock = Tracker::default();
        clock.handle(0, times(16, 1, true, Wing::Right));
        let down = Reading::Times {
            left: Display {
                ms: 16_000,
                flag: false,
            },
            right: Display { ms: 0, flag: true },
            running: false,
            to_move: Wing::Right,
        };
        assert_eq!(
            clock.handle(1_000, down),
            [ClockEvent::Stopped, ClockEvent::Flag(Wing::Right)]
        );
        assert!(!clock.is_news(2_000, &down));
    }

    #[test]
    fn a_flag_from_nowhere_counts_when_it_is_shown_again() {
        let flagged = |left, right| Reading::Times {
            left: Display {
                ms: left,
                flag: false,
            },
            right: Display {
                ms: right,
                flag: true,
            },
            running: true,
            to_move: Wing::Right,
        };
        let mut clock = Tracker::default();
        clock.handle(0, times(5_400, 5_400, true, Wing::Right));
        let garbled = flagged(1_000, 12_345_000);
        let flags = |events: &[ClockEvent]| events.contains(&ClockEvent::Flag(Wing::Right));
        assert!(!flags(&clock.handle(1_000, garbled)));
        assert!(!flags(
            &clock.handle(2_000, times(5_400, 5_398, true, Wing::Right))
        ));
        assert!(!flags(&clock.handle(3_000, garbled)));
        assert!(clock.is_news(4_000, &garbled));
        assert!(flags(&clock.handle(4_000, garbled)));
        // The next period's time stands there at once.
        let mut clock = Tracker::default();
        clock.handle(0, times(5_400, 1, true, Wing::Right));
        assert!(flags(&clock.handle(2_000, flagged(5_400_000, 1_800_000))));
    }
}
