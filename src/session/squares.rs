//! Squares whose sensors are not to be trusted: the operator is told which, so that somebody looks at them. Nothing on this page changes
//! what is read.

use super::Table;
use super::alerts::{Notice, Source, named_in_text};
use crate::Millis;
use crate::board::{self, Contents, Picture};
use crate::publish::{AlertKind, Audience, CloseReason, Severity};
use shakmaty::{Bitboard, Square};
use std::collections::{BTreeMap, VecDeque};

/// More readings of a square in an hour than this that did not last are told (case I7).
const MISREADS_PER_HOUR: usize = 5;

const HOUR_MS: Millis = 3_600_000;

/// Readings that were gone again before they could be taken for what is there.
#[derive(Debug, Default)]
pub(super) struct Misreads {
    /// When each square was misread, for the last hour.
    of: BTreeMap<Square, VecDeque<Millis>>,
    /// The square that changed last, what it showed before, and since when it has changed alone.
    last: Option<Change>,
}

#[derive(Debug, Clone, Copy)]
struct Change {
    at: Millis,
    square: Square,
    before: Option<Contents>,
    /// Nothing else had changed for a while before.
    alone: bool,
    /// It shows what it showed before.
    back: bool,
}

impl Misreads {
    /// Squares have changed, in one look at the board that showed `picture` before. No hand changes a square alone and back again in
    /// less than `settle`, but for a nudge. Whether that was so can be told once as long has passed: it tells the square.
    fn note(
        &mut self,
        now: Millis,
        changes: &[(Square, Contents)],
        picture: &Picture,
        settle: Millis,
    ) -> Option<Square> {
        let since = self.last.map(|last| now.saturating_sub(last.at));
        let is_apart = since.is_none_or(|since| since >= settle);
        let misread = self.last.filter(|last| is_apart && last.back);
        if let Some(Change { at, square, .. }) = misread {
            let times = self.of.entry(square).or_default();
            times.push_back(at);
            if times.len() > MISREADS_PER_HOUR + 1 {
                times.pop_front();
            }
        }
        self.last = match (changes, self.last) {
            ([(square, contents)], Some(last))
                if !is_apart && last.square == *square && last.alone =>
            {
                Some(Change {
                    at: now,
                    back: last.before == Some(*contents),
                    ..last
                })
            }
            ([(square, _), ..], _) => Some(Change {
                at: now,
                square: *square,
                before: picture.at(*square),
                alone: is_apart && changes.len() == 1,
                back: false,
            }),
            ([], last) => last,
        };
        misread.map(|last| last.square)
    }

    /// What this square showed last was unrest.
    pub(super) fn forget_last(&mut self, square: Square) {
        self.last.take_if(|last| last.square == square);
    }

    /// Whether this square was misread too often in the hour before this time.
    pub(super) fn is_often(&self, square: Square, now: Millis) -> bool {
        self.of.get(&square).is_some_and(|times| {
            let lately = |at: &&Millis| **at + HOUR_MS > now;
            times.iter().filter(lately).count() > MISREADS_PER_HOUR
        })
    }
}

impl Table {
    /// Squares are about to show something else, in the board's own numbering.
    pub(super) fn watch_misreads(&mut self, changes: &[(Square, Contents)]) {
        let (now, settle) = (self.now, self.settings.timing.settle);
        let told: Vec<Square> = self
            .alerts
            .iter()
            .filter_map(|(source, _)| match source {
                Source::Misread(square) => Some(square),
                _ => None,
            })
            .collect();
        for square in told {
            if !self.misreads.is_often(square, now) && !self.restless.contains(square) {
                self.close_alert(Source::Misread(square), CloseReason::Restored);
            }
        }
        if !self.context().following {
            return;
        }
        // A man that nobody misses was in no hand.
        let in_place = self
            .sensing
            .picture()
            .agrees_with(self.line().tip().board());
        let misread = self.misreads.note(now, changes, &self.raw, settle);
        if let Some(square) =
            misread.filter(|square| in_place && self.misreads.is_often(*square, now))
        {
            let name = board::oriented(square, self.stands());
            let says = format!("{name} is often misread for a moment. Look at this square.");
            self.tell_square_faulty(Source::Misread(square), name.into(), says);
        }
    }

    /// What sensing takes for dead squares has changed, or not.
    pub(super) fn tell_dead_squares(&mut self) {
        let dead = match &self.game {
            Some(game) if !game.is_over() => {
                let told = self.squares_astray() | self.sensing.restless_squares();
                self.sensing.suspect_squares(&game.line) & !told
            }
            _ => Bitboard::EMPTY,
        };
        if dead.is_empty() {
            self.close_alert(Source::DeadSquares, CloseReason::Restored);
            return;
        }
        let names = named_in_text(dead);
        let says = match dead.count() {
            1 => format!("{names} may not show what stands there. Look at this square."),
            _ => format!("one of {names} may not show what stands there. Look at these squares."),
        };
        self.tell_square_faulty(Source::DeadSquares, dead, says);
    }

    pub(super) fn tell_square_faulty(&mut self, source: Source, squares: Bitboard, says: String) {
        let (audience, severity) = (Audience::Operator, Severity::Info);
        let mut notice = Notice::new(AlertKind::SquareFaulty, audience, severity, says);
        notice.squares = squares;
        self.raise(source, notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::{Board, Color};

    const SETTLE: Millis = 250;

    /// When a square came to show what.
    type Shown = (Millis, Square, Contents);

    /// Changes of squares with their times, and how many misreadings of d7 come of them.
    fn misread(changes: &[Shown]) -> usize {
        let mut picture = Picture::from(&Board::new());
        let mut misreads = Misreads::default();
        for (at, square, contents) in changes {
            misreads.note(*at, &[(*square, *contents)], &picture, SETTLE);
            picture.set(*square, *contents);
        }
        misreads.note(1_000_000, &[], &picture, SETTLE);
        misreads.of.get(&Square::D7).map_or(0, VecDeque::len)
    }

    #[test]
    fn what_hands_do_is_no_misreading() {
        let queen = Contents::Piece(Color::Black.queen());
        let pawn = Contents::Piece(Color::Black.pawn());
        let (d7, d6) = (Square::D7, Square::D6);
        let none = Contents::Empty;
        let table: [(&str, &[Shown], usize); 6] = [
            ("another man", &[(0, d7, queen), (80, d7, pawn)], 1),
            ("nothing", &[(0, d7, none), (80, d7, pawn)], 1),
            (
                "twice in one",
                &[
                    (0, d7, queen),
                    (80, d7, pawn),
                    (120, d7, none),
                    (200, d7, pawn),
                ],
                1,
            ),
            ("lifted and put back", &[(0, d7, none), (400, d7, pawn)], 0),
            (
                "on its way",
                &[
                    (0, d7, none),
                    (100, d6, pawn),
                    (200, d6, none),
                    (240, d7, pawn),
                ],
                0,
            ),
            (
                "just before a move",
                &[
                    (0, d7, queen),
                    (80, d7, pawn),
                    (200, d7, none),
                    (500, d6, pawn),
                ],
                0,
            ),
        ];
        for (what, changes, expected) in table {
            assert_eq!(misread(changes), expected, "{what}");
        }
    }

    #[test]
    fn few_misreadings_in_an_hour_are_nothing() {
        let mut misreads = Misreads::default();
        let every = |minutes: u64| (0..6).map(move |n| n * minutes * 60_000);
        misreads.of.insert(Square::D7, every(1).collect());
        misreads.of.insert(Square::E4, every(15).collect());
        assert!(misreads.is_often(Square::D7, 6 * 60_000));
        assert!(!misreads.is_often(Square::E4, 80 * 60_000));
        assert!(!misreads.is_often(Square::D7, 2 * HOUR_MS));
    }
}
