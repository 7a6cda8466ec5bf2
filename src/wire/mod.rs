//! Board families: bytes to frames and back. One file a family; a new make of board begins with a new file here.
//!
//! A new family is, in this order:
//!
//! 1. its protocol, a file beside [`dgt`]: a decoder that counts what it skips and why, the host's commands, and the virtual board's
//!    side if there is to be one;
//! 2. its word in [`Family`], unless it has one already;
//! 3. what its frames say, a file beside [`board::dgt`](crate::board::dgt) with a [`Dialect`](crate::board::Dialect), and the line
//!    of that in [`board::dialect`](crate::board::dialect); a clock of a new kind on its cable, in
//!    [`ClockSource`](crate::clock::ClockSource). From then on the whole pipeline reads such boards, `record` records them, and
//!    whoever asks [`board::is_supported`](crate::board::is_supported) lets them pass;
//! 4. on a live port, all in `daemon::serial`: its USB ids (`devices`, with the udev rule), whether a port of which nobody said what
//!    stands there may be asked for it (`identify`), and its line speed (`port`);
//! 5. if it is to be played virtually: its board in [`sim::player`](crate::sim::player), and its word in
//!    [`sim::is_simulated`](crate::sim::is_simulated).

pub mod dgt;

use std::fmt;
use std::str::FromStr;

/// A family of boards: those that speak the same protocol. Named in traces, configurations and on the command line, whether this
/// build can read it or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// DGT boards, serial, USB or Bluetooth, one on a cable.
    #[default]
    Dgt,
    /// DGT boards on a bus.
    DgtBus,
    /// Presence boards that speak our own protocol.
    Psb1,
    /// Certabo and Tabutronic.
    Certabo,
    /// Millennium ChessLink.
    Chesslink,
}

impl Family {
    /// Each with its word, and with what people call what it speaks.
    const WORDS: [(Family, &'static str, &'static str); 5] = [
        (Family::Dgt, "dgt", "DGT"),
        (Family::DgtBus, "dgt-bus", "DGT bus"),
        (Family::Psb1, "psb1", "PSB1"),
        (Family::Certabo, "certabo", "Certabo"),
        (Family::Chesslink, "chesslink", "ChessLink"),
    ];

    pub fn all() -> impl ExactSizeIterator<Item = Family> {
        Family::WORDS.into_iter().map(|(family, ..)| family)
    }

    pub fn as_str(self) -> &'static str {
        Family::WORDS[self as usize].1
    }

    /// What its boards speak, for people.
    pub fn tongue(self) -> &'static str {
        Family::WORDS[self as usize].2
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<Family, UnknownFamily> {
        Family::all()
            .find(|family| family.as_str() == text)
            .ok_or(UnknownFamily)
    }
}

/// The text names no family of boards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFamily;

impl fmt::Display for UnknownFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, family) in Family::all().enumerate() {
            let between = if at > 0 { " | " } else { "" };
            write!(f, "{between}{family}")?;
        }
        f.write_str(" is expected")
    }
}

impl std::error::Error for UnknownFamily {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_the_word_of_its_row() {
        for (at, (family, word, _)) in Family::WORDS.into_iter().enumerate() {
            assert_eq!(family as usize, at, "{word}");
            assert_eq!(family.to_string(), word);
            assert_eq!(word.parse(), Ok(family));
        }
        let refused = "abacus".parse::<Family>().unwrap_err().to_string();
        assert_eq!(
            refused,
            "dgt | dgt-bus | psb1 | certabo | chesslink is expected"
        );
    }
}
