//! When each square changed, and what that tells of the order of plies that were not seen singly.

use crate::Millis;
use crate::board::Contents;
use shakmaty::{Bitboard, Square};

/// Two squares of one board may be looked at in the wrong order within the time of a scan (dgt.md 1: 200 to 250 ms).
const SCAN_MS: Millis = 300;

/// What is remembered of the changes of each square.
#[derive(Debug, Clone)]
pub(super) struct Trail {
    squares: [Mark; 64],
    looks: u64,
    unordered: Bitboard,
}

/// The last change of a square.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    at: Millis,
    /// The how-manieth look at the board that showed it; all changes of one look have one number.
    look: u64,
    /// What stood there last, and since when: a man that was lifted and put back arrived when it first came.
    man: Option<Contents>,
    first: Millis,
}

/// What the changes of the squares say of a line's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Each man was seen to arrive after the one before.
    Told,
    /// Nothing tells.
    Open,
    /// Some man was seen to arrive before one that moved earlier in the line.
    Against,
}

impl Default for Trail {
    fn default() -> Trail {
        Trail {
            squares: [Mark::default(); 64],
            looks: 1,
            unordered: Bitboard::EMPTY,
        }
    }
}

impl Trail {
    /// The square has come to show this, together with others or alone.
    pub(super) fn note(&mut self, now: Millis, square: Square, contents: Contents, together: bool) {
        let mark = &mut self.squares[square.to_usize()];
        mark.at = now;
        mark.look = self.looks;
        if !contents.is_empty() && mark.man != Some(contents) {
            mark.man = Some(contents);
            mark.first = now;
        }
        self.unordered.set(square, together);
    }

    /// What is noted from here on belongs to the next look.
    pub(super) fn end_look(&mut self) {
        self.looks += 1;
    }

    /// The number of the look under way.
    pub(super) fn looks(&self) -> u64 {
        self.looks
    }

    /// When the square last changed.
    pub(super) fn at(&self, square: Square) -> Millis {
        self.squares[square.to_usize()].at
    }

    /// The look in which it did.
    pub(super) fn look(&self, square: Square) -> u64 {
        self.squares[square.to_usize()].look
    }

    /// Squares that last changed together with others, as in a dump: nothing tells their order.
    pub(super) fn unordered(&self) -> Bitboard {
        self.unordered
    }

    /// Whether men can have arrived on these squares one after the other. Where two arrived on one square only the later can be told.
    pub(super) fn order(&self, arrivals: &[Square]) -> Order {
        let mut told = true;
        for (index, earlier) in arrivals.iter().enumerate() {
            let later = &arrivals[index + 1..];
            if later.contains(earlier) || self.unordered.contains(*earlier) {
                told = false;
                continue;
            }
            let mark = self.squares[earlier.to_usize()];
            for other in later {
                let after = self.squares[other.to_usize()];
                if self.unordered.contains(*other) {
                    continue;
                }
                if mark.first > after.at + SCAN_MS {
                    return Order::Against;
                }
                told &= mark.look < after.look;
            }
        }
        match told && !arrivals.iter().any(|to| self.unordered.contains(*to)) {
            true => Order::Told,
            false => Order::Open,
        }
    }
}
