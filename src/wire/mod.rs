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
//! 4. on a live port, all in `daemon::serial`: its USB ids (`devices`, with the udev rule), with what may be asked for behind them;
//!    its line's speeds, and what makes an answer whole (`identify`);
//! 5. if it is to be played virtually: its board in [`sim::board`](crate::sim::board).

pub mod dgt;
pub mod psb1;

use crate::text::words;

words! {
    /// A family of boards: those that speak the same protocol. Named in traces, configurations and on the command line, whether this
    /// build can read it or not.
    #[derive(Default, PartialOrd, Ord)]
    Family {
        /// DGT boards, serial, USB or Bluetooth, one on a cable.
        #[default]
        Dgt = "dgt",
        /// DGT boards on a bus.
        DgtBus = "dgt-bus",
        /// Presence boards that speak our own protocol.
        Psb1 = "psb1",
        /// Certabo and Tabutronic.
        Certabo = "certabo",
        /// Millennium ChessLink.
        Chesslink = "chesslink",
    }
}

impl Family {
    /// What its boards speak, for people.
    pub fn tongue(self) -> &'static str {
        match self {
            Family::Dgt => "DGT",
            Family::DgtBus => "DGT bus",
            Family::Psb1 => "PSB1",
            Family::Certabo => "Certabo",
            Family::Chesslink => "ChessLink",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_its_word() {
        for family in Family::ALL {
            assert_eq!(family.as_str().parse(), Ok(*family));
        }
        let refused = "abacus".parse::<Family>().unwrap_err().to_string();
        assert_eq!(
            refused,
            "dgt | dgt-bus | psb1 | certabo | chesslink is expected"
        );
    }
}
