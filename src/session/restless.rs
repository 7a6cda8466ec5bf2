//! Squares whose sensor changes again and again while no hand is near: a loose contact, or a coil that is out of tune. What such a square
//! shows says nothing, be it the right thing for a moment. It is not read until it has been calm for a while.

use super::Table;
use super::alerts::Source;
use crate::Millis;
use crate::board::{self, Contents, Picture, Sense};
use crate::publish::{CloseReason, Link};
use crate::sensing::{Context, Look, Sensing};
use shakmaty::{Bitboard, Square};
use std::collections::{BTreeMap, VecDeque};

/// A square that has changed again so often while no other did is moved by no hand: whoever adjusts a man lifts him once or twice.
const AGAIN: usize = 6;

/// If that was within this time: who hesitates lifts him more often, and takes longer over it.
const WITHIN_MS: Millis = 8_000;

/// A square that has shown the same for so long is calm.
const CALM_MS: Millis = 20_000;

/// A board that has not stood still for so long, as it does between moves however fast they are played, is told to be restless.
const UNREST_MS: Millis = 10_000;

/// The board has changed, and not stood still since.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unrest {
    since: Millis,
    /// It has gone on for long.
    is_told: bool,
}

/// What is known of the unrest of each square, in the board's own numbering.
#[derive(Debug, Default)]
pub(super) struct Restless {
    /// The square that changed last, if it changed alone.
    last: Option<Change>,
    /// The changes of each square after which the same one was the next to change.
    again: BTreeMap<Square, VecDeque<Change>>,
    /// Those that are not read, and when they last changed.
    squares: BTreeMap<Square, Millis>,
}

/// A change of a square.
#[derive(Debug, Clone, Copy)]
struct Change {
    square: Square,
    at: Millis,
    before: Option<Contents>,
}

/// A square that was found to be restless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    square: Square,
    /// When it began to be so, and what it showed until then.
    since: Millis,
    before: Option<Contents>,
}

impl Restless {
    /// Squares change, in one look at the board that showed `picture` before. Tells of one that is restless from here on.
    fn note(
        &mut self,
        now: Millis,
        changes: &[(Square, Contents)],
        picture: &Picture,
    ) -> Option<Found> {
        let mut others = Vec::new();
        for (square, _) in changes {
            match self.squares.get_mut(square) {
                Some(last) => *last = now,
                None => others.push(*square),
            }
        }
        let square = *others.first()?;
        let is_alone = others.len() == 1;
        let change = Change {
            square,
            at: now,
            before: picture.at(square),
        };
        let last = std::mem::replace(&mut self.last, is_alone.then_some(change));
        let first = last.filter(|last| is_alone && last.square == square)?;
        let again = self.again.entry(square).or_default();
        again.push_back(first);
        while again
            .front()
            .is_some_and(|first| first.at + WITHIN_MS < now)
        {
            again.pop_front();
        }
        let first = *again.front().filter(|_| again.len() >= AGAIN)?;
        self.again.remove(&square);
        self.last = None;
        self.squares.insert(square, now);
        Some(Found {
            square,
            since: first.at,
            before: first.before,
        })
    }

    pub(super) fn contains(&self, square: Square) -> bool {
        self.squares.contains_key(&square)
    }

    fn squares(&self) -> impl Iterator<Item = Square> {
        self.squares.keys().copied()
    }

    /// The board is heard again: what its squares did meanwhile nobody knows.
    pub(super) fn wait_anew(&mut self, now: Millis) {
        self.squares.values_mut().for_each(|last| *last = now);
    }

    /// When the first of them is calm, if it does not change any more.
    fn calm_at(&self) -> Option<Millis> {
        self.squares.values().min().map(|last| last + CALM_MS)
    }

    /// Those that are calm by now.
    fn take_calm(&mut self, now: Millis) -> Vec<Square> {
        let is_calm = |_: &Square, last: &mut Millis| *last + CALM_MS <= now;
        self.squares
            .extract_if(.., is_calm)
            .map(|(square, _)| square)
            .collect()
    }
}

impl Table {
    /// What the board shows where it is believed, in its own numbering.
    pub(super) fn believed(&self) -> Picture {
        let mut picture = self.raw.clone();
        for square in self.restless.squares() {
            picture.forget(square);
        }
        picture
    }

    /// The game is read anew from this picture, oriented as the board stands.
    pub(super) fn sense_from(&mut self, picture: Picture) {
        self.sensing.restart(picture, self.now);
        let stands = self.stands();
        for square in self.restless.squares() {
            if let Some(shows) = self.raw.at(square) {
                self.sensing
                    .leave_restless(board::oriented(square, stands), shows);
            }
        }
    }

    /// Squares are about to show something else. Tells which of the changes are to be read.
    pub(super) fn without_restless(
        &mut self,
        changes: &[(Square, Contents)],
    ) -> Vec<(Square, Contents)> {
        let found = self.restless.note(self.now, changes, &self.raw);
        if let Some(found) = found {
            self.misreads.forget_last(found.square);
            self.tell_restless(found.square);
        }
        if self.knows_men_again() {
            self.read_left();
            return changes.to_vec();
        }
        if let Some(found) = found {
            self.leave_restless(found);
        }
        let (unread, read): (Vec<_>, Vec<_>) = changes
            .iter()
            .copied()
            .partition(|(square, _)| self.restless.contains(*square));
        let stands = self.stands();
        for (square, shows) in unread {
            let square = board::oriented(square, stands);
            self.sense(|sensing, _| sensing.note_restless(square, shows));
        }
        read
    }

    fn leave_restless(&mut self, found: Found) {
        let Found {
            square,
            since,
            before,
        } = found;
        let name = board::oriented(square, self.stands());
        let stop = |sensing: &mut Sensing, cx: &Context<'_>| {
            sensing.find_restless(name, since, before, cx)
        };
        self.sense(stop);
    }

    /// Whether a game is followed on a board that names its men: whoever comes back to a restless square is known by his name, and what
    /// the square shows is worth more than its unrest.
    fn knows_men_again(&self) -> bool {
        self.raw.sense() == Sense::Piece && self.context().following
    }

    /// Whether all that is wrong there is that these squares do not rest.
    pub(super) fn are_restless(&self, squares: Bitboard) -> bool {
        let stands = self.stands();
        let mut raw = squares
            .into_iter()
            .map(|square| board::oriented(square, stands));
        raw.all(|square| self.restless.contains(square))
    }

    /// Squares that were left unread before the game are read.
    fn read_left(&mut self) {
        let stands = self.stands();
        let left = self.sensing.restless_squares().into_iter();
        self.read_again(left.map(|square| board::oriented(square, stands)).collect());
    }

    /// When the first restless square is calm. Of a board that is gone nobody knows.
    pub(super) fn calm_due(&self) -> Option<Millis> {
        self.restless.calm_at().filter(|_| self.link == Link::Ok)
    }

    /// Squares that are calm are read again, and what is still wrong there is the arbiter's.
    pub(super) fn read_calm(&mut self) {
        let now = self.now;
        let calm = self.restless.take_calm(now);
        for square in &calm {
            if !self.misreads.is_often(*square, now) {
                self.close_alert(Source::Misread(*square), CloseReason::Restored);
            }
        }
        let stands = self.stands();
        let names = calm.iter().map(|square| board::oriented(*square, stands));
        self.sensing.tell_faults_on(names.collect());
        self.read_again(calm);
    }

    /// These squares show what they show now; when they came to do so nobody knows.
    fn read_again(&mut self, squares: Vec<Square>) {
        let shown = |square: Square| Some((square, self.raw.at(square)?));
        let changes: Vec<_> = squares.into_iter().filter_map(shown).collect();
        if !changes.is_empty() {
            self.read_squares(&changes, Look::Dump);
        }
    }

    /// A square that is read has changed.
    pub(super) fn note_unrest(&mut self) {
        let since = self.now;
        self.unrest.get_or_insert(Unrest {
            since,
            is_told: false,
        });
    }

    /// When it is told that the board does not stand still.
    pub(super) fn unrest_due(&self) -> Option<Millis> {
        let unrest = self.unrest.filter(|unrest| !unrest.is_told)?;
        Some(unrest.since + UNREST_MS)
    }

    /// What was told of the board is not what it shows, and nobody can say what it does show.
    pub(super) fn tell_unrest(&mut self) {
        if let Some(unrest) = &mut self.unrest {
            unrest.is_told = true;
        }
        self.publish_position();
    }

    /// Whether the board has not stood still for so long that no game can be read on it.
    pub(super) fn is_restless(&self) -> bool {
        self.unrest.is_some_and(|unrest| unrest.is_told)
    }

    fn tell_restless(&mut self, square: Square) {
        let name = board::oriented(square, self.stands());
        let says = format!("{name} changes again and again. Look at this square.");
        self.tell_square_faulty(Source::Misread(square), name.into(), says);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the square is found restless that changes at these times, with others at those.
    fn found(changes: impl IntoIterator<Item = Millis>, others: &[Millis]) -> Option<Millis> {
        let mut of_all: Vec<(Millis, Square)> = changes
            .into_iter()
            .map(|at| (at, Square::H5))
            .chain(others.iter().map(|at| (*at, Square::E4)))
            .collect();
        of_all.sort();
        let (mut restless, mut picture) = (Restless::default(), Picture::default());
        for (at, square) in of_all {
            let shows = match picture.is_empty(square) {
                true => Contents::Occupied,
                false => Contents::Empty,
            };
            let found = restless.note(at, &[(square, shows)], &picture);
            picture.set(square, shows);
            if let Some(found) = found {
                assert_eq!(found.square, Square::H5);
                return Some(at);
            }
        }
        None
    }

    #[test]
    fn what_changes_again_and_again_is_moved_by_no_hand() {
        let every = |ms: Millis| (0..20).map(move |n| n * ms);
        assert_eq!(found(every(100), &[]), Some(600));
        assert_eq!(found(every(1_100), &[]), Some(6_600));
        // Between the moves of others it is found a little later.
        assert_eq!(found(every(300), &[350, 800, 1_400]), Some(2_700));
        assert_eq!(found(every(1_500), &[]), None);
        assert_eq!(found([0, 400, 900, 1_200, 1_500, 1_900], &[]), None);
        // Men are exchanged on a square: each comes from another.
        let taken: Vec<Millis> = (0..20).map(|n| n * 200 + 100).collect();
        assert_eq!(found(every(200), &taken), None);
    }

    #[test]
    fn a_square_that_rests_is_read_again() {
        let mut restless = Restless::default();
        restless.squares.insert(Square::H5, 1_000);
        let changes = [(Square::H5, Contents::Empty), (Square::E4, Contents::Empty)];
        restless.note(2_000, &changes, &Picture::default());
        assert_eq!(restless.calm_at(), Some(2_000 + CALM_MS));
        assert_eq!(restless.take_calm(2_000 + CALM_MS - 1), []);
        assert_eq!(restless.take_calm(2_000 + CALM_MS), [Square::H5]);
        assert_eq!(restless.calm_at(), None);
    }
}
