//! The text format in which recorders, tests and bug reports share what went over a board's cable.

use std::fmt;
use std::str::FromStr;

/// A family of boards: those that speak the same protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Family {
    /// DGT serial, USB and Bluetooth boards in single-board mode.
    #[default]
    Dgt,
    /// DGT boards on a bus.
    DgtBus,
    /// Our own protocol for presence boards.
    Psb1,
    /// Certabo and Tabutronic.
    Certabo,
    /// Millennium ChessLink.
    Chesslink,
}

impl Family {
    const NAMES: [(Family, &'static str); 5] = [
        (Family::Dgt, "dgt"),
        (Family::DgtBus, "dgt-bus"),
        (Family::Psb1, "psb1"),
        (Family::Certabo, "certabo"),
        (Family::Chesslink, "chesslink"),
    ];
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Family::NAMES.iter().find(|(family, _)| family == self);
        f.pad(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for Family {
    type Err = ParseFamilyError;

    fn from_str(text: &str) -> Result<Family, ParseFamilyError> {
        Family::NAMES
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(family, _)| *family)
            .ok_or(ParseFamilyError)
    }
}

/// The text names no family of boards that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("dgt, dgt-bus, psb1, certabo or chesslink is expected")]
pub struct ParseFamilyError;
