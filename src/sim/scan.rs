//! How a board looks at its squares: one after the other, so that what happens between two looks is not seen.
//!
//! A full scan takes some 200 to 250 ms (protocol sheet 1). A man that leaves c7 just after the board looked there and stands on c6
//! before it looks there is therefore reported on c6 first: the order of updates is the order of sampling, not of the hand.
//!
//! Boards of one's own make look faster, at all squares at once, and tell what two looks agree upon.

use crate::Millis;

/// In which order a board looks at its squares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sweep {
    /// One after the other all through the scan; what differs is told at once.
    #[default]
    Rolling,
    /// All at the end of the scan; a square is told once two looks in a row agree on it, and with all others of which that is so.
    Whole,
}

/// The scanner of one board. `T` is what a square can show.
///
/// [`change`](Scanner::change) says what happens on a square; [`poll_look`](Scanner::poll_look) gives what the board notices, in
/// order, and [`poll_timeout`](Scanner::poll_timeout) when it next may.
#[derive(Debug, Clone)]
pub struct Scanner<T> {
    sweep: Sweep,
    period_ms: Millis,
    actual: [T; 64],
    /// What the last look at all squares saw, where that has to be borne out.
    looked: [T; 64],
    seen: [T; 64],
    /// When a changed square is looked at next, and the changes' order for boards that look at once.
    due: Vec<Sample<T>>,
}

#[derive(Debug, Clone, Copy)]
struct Sample<T> {
    at_ms: Millis,
    square: usize,
    /// For a board that looks at once every change is seen, also one that is undone within the same millisecond.
    at_once: Option<T>,
}

impl<T: Copy + PartialEq> Scanner<T> {
    /// A board that shows `squares` and takes `period_ms` for a scan; with 0 it notices everything at once.
    pub fn new(sweep: Sweep, period_ms: Millis, squares: [T; 64]) -> Scanner<T> {
        Scanner {
            sweep,
            period_ms,
            actual: squares,
            looked: squares,
            seen: squares,
            due: Vec::new(),
        }
    }

    /// From `now` on the square shows `contents`.
    ///
    /// # Panics
    ///
    /// If `square` is not below 64.
    pub fn change(&mut self, now: Millis, square: usize, contents: T) {
        self.actual[square] = contents;
        let sample = if self.period_ms == 0 {
            Sample {
                at_ms: now,
                square,
                at_once: Some(contents),
            }
        } else if self.due.iter().any(|sample| sample.square == square)
            || self.is_whole() && !self.due.is_empty()
        {
            return;
        } else {
            Sample {
                at_ms: self.next_look(now, square),
                square,
                at_once: None,
            }
        };
        let position = self.due.partition_point(|other| {
            (other.at_ms, self.order(other.square)) <= (sample.at_ms, self.order(square))
        });
        self.due.insert(position, sample);
    }

    /// What the board has noticed by `now` in its next look: at one square, or at all of them.
    pub fn poll_look(&mut self, now: Millis) -> Option<Vec<(usize, T)>> {
        if !self.is_whole() {
            return self.poll(now).map(|noticed| vec![noticed]);
        }
        while let Some(due) = self.poll_timeout().filter(|due| *due <= now) {
            self.due.clear();
            let (actual, looked, seen) = (self.actual, self.looked, &mut self.seen);
            let mut noticed = Vec::new();
            for square in 0..64 {
                if actual[square] == looked[square] && actual[square] != seen[square] {
                    seen[square] = actual[square];
                    noticed.push((square, actual[square]));
                }
            }
            self.looked = actual;
            if let Some(square) = (0..64).find(|square| self.seen[*square] != actual[*square]) {
                self.due.push(Sample {
                    at_ms: due + self.period_ms,
                    square,
                    at_once: None,
                });
            }
            if !noticed.is_empty() {
                return Some(noticed);
            }
        }
        None
    }

    /// The next square that the board has noticed by `now`, with what it saw there.
    fn poll(&mut self, now: Millis) -> Option<(usize, T)> {
        while self.due.first().is_some_and(|sample| sample.at_ms <= now) {
            let sample = self.due.remove(0);
            let contents = sample.at_once.unwrap_or(self.actual[sample.square]);
            if self.seen[sample.square] != contents {
                self.seen[sample.square] = contents;
                return Some((sample.square, contents));
            }
        }
        None
    }

    /// When a changed square is looked at next.
    pub fn poll_timeout(&self) -> Option<Millis> {
        self.due.first().map(|sample| sample.at_ms)
    }

    /// The first look at `square` that is not before `now`: square i is looked at i/64 of a period into each scan.
    fn next_look(&self, now: Millis, square: usize) -> Millis {
        let phase = match self.sweep {
            Sweep::Rolling => square as u64 * self.period_ms / 64,
            Sweep::Whole => 0,
        };
        let scans = now.saturating_sub(phase).div_ceil(self.period_ms);
        scans * self.period_ms + phase
    }

    /// A board that notices everything at once has no two looks that could agree.
    fn is_whole(&self) -> bool {
        self.sweep == Sweep::Whole && self.period_ms > 0
    }

    /// Looks within one millisecond keep the order of the scan; changes seen at once keep their own.
    fn order(&self, square: usize) -> usize {
        if self.period_ms == 0 { 0 } else { square }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(scanner: &mut Scanner<u8>, now: Millis) -> Vec<(usize, u8)> {
        std::iter::from_fn(|| scanner.poll(now)).collect()
    }

    #[test]
    fn a_quick_step_up_the_board_is_seen_on_its_new_square_first() {
        // c7 is square 10 and c6 square 18: at 256 ms a scan they are looked at 40 and 72 ms into it.
        let mut scanner = Scanner::new(Sweep::Rolling, 256, [0; 64]);
        scanner.change(0, 10, 7);
        assert_eq!(drain(&mut scanner, 40), [(10, 7)]);
        scanner.change(300, 10, 0);
        scanner.change(320, 18, 7);
        assert_eq!(scanner.poll_timeout(), Some(328));
        assert_eq!(drain(&mut scanner, 327), []);
        assert_eq!(drain(&mut scanner, 600), [(18, 7), (10, 0)]);
        assert_eq!(scanner.poll_timeout(), None);
    }

    #[test]
    fn what_comes_and_goes_between_two_looks_is_not_seen() {
        let mut scanner = Scanner::new(Sweep::Rolling, 256, [0; 64]);
        scanner.change(50, 10, 7);
        scanner.change(200, 10, 0);
        assert_eq!(drain(&mut scanner, 1000), []);
    }

    #[test]
    fn a_direct_exchange_shows_no_empty_square() {
        let mut scanner = Scanner::new(Sweep::Rolling, 256, [7; 64]);
        scanner.change(50, 10, 0);
        scanner.change(200, 10, 1);
        assert_eq!(drain(&mut scanner, 1000), [(10, 1)]);
    }

    #[test]
    fn a_board_without_a_scan_time_notices_each_change_in_order() {
        let mut scanner = Scanner::new(Sweep::Rolling, 0, [0; 64]);
        scanner.change(5, 40, 1);
        scanner.change(5, 40, 0);
        scanner.change(5, 3, 2);
        assert_eq!(drain(&mut scanner, 5), [(40, 1), (40, 0), (3, 2)]);
    }

    #[test]
    fn a_board_that_looks_at_all_squares_tells_what_two_looks_agree_upon() {
        let mut scanner = Scanner::new(Sweep::Whole, 20, [0; 64]);
        scanner.change(5, 10, 7);
        scanner.change(20, 18, 7);
        assert_eq!(scanner.poll_timeout(), Some(20));
        assert_eq!(scanner.poll_look(39), None);
        scanner.change(39, 18, 8);
        assert_eq!(scanner.poll_look(40), Some(vec![(10, 7)]));
        scanner.change(41, 11, 7);
        scanner.change(59, 10, 0);
        assert_eq!(scanner.poll_look(60), Some(vec![(18, 8)]));
        assert_eq!(scanner.poll_look(80), Some(vec![(10, 0), (11, 7)]));
        assert_eq!(scanner.poll_timeout(), None);
        // What comes and goes before a second look is not told.
        scanner.change(90, 5, 7);
        scanner.change(115, 5, 0);
        assert_eq!(scanner.poll_look(1000), None);
        assert_eq!(scanner.poll_timeout(), None);
    }
}
