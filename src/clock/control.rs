//! Time controls in the form in which PGN writes them: `40/5400+30:1800+30`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How much time the players have (Article 6.3.1; PGN standard, section 9.6.1).
///
/// Read from and written as PGN, with two forms that the standard lacks: `5400d5` for a delay and `5400b5` for Bronstein's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeControl {
    /// `?`
    Unknown,
    /// `-`: no clock.
    Unlimited,
    /// `*180`: what one spends the other gains; seconds at the start.
    Hourglass(u32),
    /// Periods one after the other; never empty. If the last one asks for moves too, it repeats.
    Periods(Vec<Period>),
}

/// Time for a number of moves, or for all that remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Moves to complete in this period; none: all that remain.
    pub moves: Option<u32>,
    /// Time that is added at its start.
    pub seconds: u32,
    pub bonus: Bonus,
}

/// What a move brings beside the main time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bonus {
    #[default]
    None,
    /// `+30`: seconds added for each move, kept if unspent.
    Increment(u32),
    /// `d5`: seconds for each move before the main time runs, lost if unspent.
    Delay(u32),
    /// `b5`: what the move took is given back, at most these seconds.
    Bronstein(u32),
}

impl TimeControl {
    /// The periods; none where the control is not made of them.
    pub fn periods(&self) -> &[Period] {
        match self {
            TimeControl::Periods(periods) => periods,
            TimeControl::Unknown | TimeControl::Unlimited | TimeControl::Hourglass(_) => &[],
        }
    }

    /// How many moves must be completed by the end of a period, counted from 0; none if that period lasts to the end of the game.
    pub fn moves_by_end_of(&self, period: usize) -> Option<u32> {
        let last = self.periods().last()?;
        let mut sum: u32 = 0;
        for index in 0..=period {
            let moves = self.periods().get(index).unwrap_or(last).moves?;
            sum = sum.checked_add(moves)?;
        }
        Some(sum)
    }

    /// The control as the PGN standard can say it: delays fall away, see [`TimeControl::mode`].
    pub fn without_delay(&self) -> TimeControl {
        match self {
            TimeControl::Periods(periods) => TimeControl::Periods(
                periods
                    .iter()
                    .map(|period| Period {
                        bonus: match period.bonus {
                            Bonus::Delay(_) | Bonus::Bronstein(_) => Bonus::None,
                            bonus => bonus,
                        },
                        ..*period
                    })
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    /// What [`TimeControl::without_delay`] leaves out, of the first period that has it: `delay 5`, `bronstein 30`.
    pub fn mode(&self) -> Option<String> {
        self.periods().iter().find_map(|period| match period.bonus {
            Bonus::Delay(seconds) => Some(format!("delay {seconds}")),
            Bonus::Bronstein(seconds) => Some(format!("bronstein {seconds}")),
            Bonus::None | Bonus::Increment(_) => None,
        })
    }
}

impl Bonus {
    /// Seconds that each move brings, in whatever way: what Article 8.4 asks for.
    pub fn seconds(self) -> u32 {
        match self {
            Bonus::None => 0,
            Bonus::Increment(seconds) | Bonus::Delay(seconds) | Bonus::Bronstein(seconds) => {
                seconds
            }
        }
    }
}

/// Why a text is no time control.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimeControlError {
    #[error("empty time control; write - if there is no clock, ? if it is unknown")]
    Empty,
    #[error(
        "invalid {part} {text:?} in time control; periods are written as in 40/5400+30:1800+30"
    )]
    Part { part: &'static str, text: String },
    #[error(
        "{text:?} is no time control; seconds and bonus are expected, as 5400+30 for 90 minutes and 30 seconds a move, \
         or periods as 40/5400+30:1800+30; - if there is no clock, ? if it is unknown"
    )]
    Words { text: String },
    #[error("{part} {text} in time control: no clock shows more than 99:59:59")]
    TooLong { part: &'static str, text: String },
    #[error("zero {0} in time control")]
    Zero(&'static str),
    #[error("period {0} of the time control lacks its number of moves, as only the last one may")]
    NoMoves(usize),
}

impl FromStr for TimeControl {
    type Err = TimeControlError;

    fn from_str(text: &str) -> Result<TimeControl, TimeControlError> {
        match text.trim() {
            "" => Err(TimeControlError::Empty),
            "?" => Ok(TimeControl::Unknown),
            "-" => Ok(TimeControl::Unlimited),
            text if !text.starts_with(|c: char| c.is_ascii_digit() || "*+-".contains(c))
                && !text.contains('/') =>
            {
                let text = text.chars().take(MOST_SHOWN).collect();
                Err(TimeControlError::Words { text })
            }
            text => match text.strip_prefix('*') {
                Some(seconds) => Ok(TimeControl::Hourglass(positive("seconds", seconds)?)),
                None => {
                    let periods: Vec<Period> =
                        text.split(':').map(str::parse).collect::<Result<_, _>>()?;
                    let open = periods.iter().position(|period| period.moves.is_none());
                    match open {
                        Some(index) if index + 1 < periods.len() => {
                            Err(TimeControlError::NoMoves(index + 1))
                        }
                        _ => Ok(TimeControl::Periods(periods)),
                    }
                }
            },
        }
    }
}

impl FromStr for Period {
    type Err = TimeControlError;

    fn from_str(text: &str) -> Result<Period, TimeControlError> {
        let (moves, time) = match text.split_once('/') {
            Some((moves, time)) => (Some(positive("moves", moves)?), time),
            None => (None, text),
        };
        let (seconds, bonus) = match time.find(['+', 'd', 'b']) {
            Some(at) => {
                let (seconds, bonus) = time.split_at(at);
                // Some boards write an increment of nothing; it is none.
                let of: fn(u32) -> Bonus = match &bonus[..1] {
                    "+" => Bonus::Increment,
                    "d" => Bonus::Delay,
                    _ => Bonus::Bronstein,
                };
                let bonus = match number("bonus", &bonus[1..])? {
                    0 => Bonus::None,
                    seconds => of(seconds),
                };
                (number("seconds", seconds)?, bonus)
            }
            None => (number("seconds", time)?, Bonus::None),
        };
        if seconds == 0 && bonus == Bonus::None {
            return Err(TimeControlError::Zero("seconds"));
        }
        Ok(Period {
            moves,
            seconds,
            bonus,
        })
    }
}

impl fmt::Display for TimeControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeControl::Unknown => f.write_str("?"),
            TimeControl::Unlimited => f.write_str("-"),
            TimeControl::Hourglass(seconds) => write!(f, "*{seconds}"),
            TimeControl::Periods(periods) => {
                for (index, period) in periods.iter().enumerate() {
                    if index > 0 {
                        f.write_str(":")?;
                    }
                    write!(f, "{period}")?;
                }
                Ok(())
            }
        }
    }
}

impl TimeControl {
    /// For people, who often mean minutes where they wrote seconds: `40 moves in 90 min + 30 s a move, then 30 min + 30 s a move`.
    pub fn in_words(&self) -> String {
        match self {
            TimeControl::Unknown => "unknown".into(),
            TimeControl::Unlimited => "no clock".into(),
            TimeControl::Hourglass(seconds) => format!("hourglass, {} each", time(*seconds)),
            TimeControl::Periods(periods) => {
                let words: Vec<String> = periods.iter().map(Period::in_words).collect();
                words.join(", then ")
            }
        }
    }
}

impl Period {
    fn in_words(&self) -> String {
        let moves = self
            .moves
            .map_or(String::new(), |moves| format!("{moves} moves in "));
        let bonus = match self.bonus {
            Bonus::None => String::new(),
            Bonus::Increment(seconds) => format!(" + {seconds} s a move"),
            Bonus::Delay(seconds) => format!(", delay {seconds} s a move"),
            Bonus::Bronstein(seconds) => format!(", Bronstein {seconds} s a move"),
        };
        format!("{moves}{}{bonus}", time(self.seconds))
    }
}

fn time(seconds: u32) -> String {
    match (seconds / 60, seconds % 60) {
        (minutes @ 2.., 0) => format!("{minutes} min"),
        (minutes @ 2.., rest) => format!("{minutes} min {rest} s"),
        _ => format!("{seconds} s"),
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(moves) = self.moves {
            write!(f, "{moves}/")?;
        }
        write!(f, "{}", self.seconds)?;
        match self.bonus {
            Bonus::None => Ok(()),
            Bonus::Increment(seconds) => write!(f, "+{seconds}"),
            Bonus::Delay(seconds) => write!(f, "d{seconds}"),
            Bonus::Bronstein(seconds) => write!(f, "b{seconds}"),
        }
    }
}

fn positive(part: &'static str, text: &str) -> Result<u32, TimeControlError> {
    match number(part, text)? {
        0 => Err(TimeControlError::Zero(part)),
        number => Ok(number),
    }
}

/// Characters of a text that is no time control which are quoted.
const MOST_SHOWN: usize = 40;

/// Digits only: `u32`'s own parser takes a sign.
fn number(part: &'static str, text: &str) -> Result<u32, TimeControlError> {
    let invalid = || TimeControlError::Part {
        part,
        text: text.to_owned(),
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    let number = text.parse().ok().filter(|&number| number <= MOST);
    let number = number.ok_or_else(invalid)?;
    if part != "moves" && number > MOST_SECONDS {
        let text = text.to_owned();
        return Err(TimeControlError::TooLong { part, text });
    }
    Ok(number)
}

/// 99:59:59
const MOST_SECONDS: u32 = 359_999;

/// More seconds or moves than any game has; sums and milliseconds stay far from overflowing.
const MOST: u32 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn control(text: &str) -> TimeControl {
        text.parse().expect(text)
    }

    #[test]
    fn reads_what_pgn_writes() {
        assert_eq!(
            control("40/5400+30:1800+30"),
            TimeControl::Periods(vec![
                Period {
                    moves: Some(40),
                    seconds: 5400,
                    bonus: Bonus::Increment(30),
                },
                Period {
                    moves: None,
                    seconds: 1800,
                    bonus: Bonus::Increment(30),
                },
            ])
        );
        assert_eq!(control("?"), TimeControl::Unknown);
        assert_eq!(control("-"), TimeControl::Unlimited);
        assert_eq!(control("*180"), TimeControl::Hourglass(180));
        assert_eq!(control("300+3").periods()[0].bonus, Bonus::Increment(3));
        assert_eq!(control("5400d5").periods()[0].bonus, Bonus::Delay(5));
        assert_eq!(control("5400b5").periods()[0].bonus, Bonus::Bronstein(5));
        assert_eq!(control("300+0"), control("300"));
    }

    #[test]
    fn writes_what_it_read() {
        for text in [
            "?",
            "-",
            "*180",
            "5400",
            "300+3",
            "0+30",
            "5400d5",
            "5400b5",
            "40/7200",
            "40/7200:3600",
            "40/5400+30:1800+30",
            "40/7200:20/3600:900+30",
            "40/7200d5:900b5",
        ] {
            assert_eq!(control(text).to_string(), text);
        }
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        for (text, said) in [
            ("", "empty"),
            (
                "banana",
                "\"banana\" is no time control; seconds and bonus are expected, as 5400+30",
            ),
            ("dagger", "5400+30"),
            ("60 mins", "invalid seconds \"60 mins\""),
            ("G/90", "invalid moves \"G\""),
            ("90m+30s", "invalid bonus \"30s\""),
            ("5400+", "invalid bonus \"\""),
            ("+30", "invalid seconds \"\""),
            ("-5", "invalid seconds \"-5\""),
            ("0", "zero seconds"),
            ("0/300", "zero moves"),
            ("*0", "zero seconds"),
            ("5400:1800", "period 1"),
            ("40/5400:", "invalid seconds \"\""),
            ("99999999999", "invalid seconds"),
            ("360000", "99:59:59"),
            ("300+360000", "99:59:59"),
            ("300+3+3", "invalid bonus \"3+3\""),
            ("300é3", "invalid seconds"),
        ] {
            let error = text.parse::<TimeControl>().expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn counts_periods() {
        let two = control("40/5400+30:1800+30");
        assert_eq!(two.moves_by_end_of(0), Some(40));
        assert_eq!(two.moves_by_end_of(1), None);

        let repeating = control("40/7200:20/3600");
        assert_eq!(repeating.moves_by_end_of(2), Some(80));

        assert_eq!(control("?").moves_by_end_of(0), None);
    }

    #[test]
    fn says_in_pgn_what_pgn_can_say() {
        let control = control("40/5400b30:1800b30");
        assert_eq!(control.without_delay().to_string(), "40/5400:1800");
        assert_eq!(control.mode().as_deref(), Some("bronstein 30"));
    }

    #[test]
    fn controls_in_words() {
        for (text, words) in [
            ("90+30", "90 s + 30 s a move"),
            (
                "40/5400+30:1800+30",
                "40 moves in 90 min + 30 s a move, then 30 min + 30 s a move",
            ),
            ("180+2", "3 min + 2 s a move"),
            ("150", "2 min 30 s"),
            ("1500d5", "25 min, delay 5 s a move"),
            ("*180", "hourglass, 3 min each"),
            ("-", "no clock"),
        ] {
            let control: TimeControl = text.parse().expect("a control");
            assert_eq!(control.in_words(), words);
        }
    }
}
