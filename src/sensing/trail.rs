//! When each square changed, and what that tells of the order of plies that were not seen singly.

use crate::Millis;
use crate::board::Contents;
use shakmaty::{Bitboard, Square};

/// Two squares of one board may be looked at in the wrong order within the time of a scan (protocol sheet 1: 200 to 250 ms).
pub(super) const SCAN_MS: Millis = 300;

/// A board that is as slow, and tells of a change once it has seen it twice, may tell of two squares so much out of order.
pub(super) const SEEN_TWICE_MS: Millis = 500;

/// A board that is made for fast play looks at all its squares within this time. What lies no further apart may be of one look, and
/// of a look that was under way at a press.
pub(super) const LOOK_MS: Millis = 60;

/// A man that comes back later than this after he left has moved meanwhile.
const PUT_BACK_MS: Millis = 2_000;
/// A board may show a man's new square before it sees that he has left the old one (case A14), but not so long before.
pub(super) const EARLY_MS: Millis = 4_000;

/// What is remembered of the changes of each square.
#[derive(Debug, Clone)]
pub(super) struct Trail {
    squares: [Mark; 64],
    looks: u64,
    unordered: Bitboard,
    unwatched: Bitboard,
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
    is_vacant: bool,
    /// When it was last seen to be left, and to be filled.
    left: Millis,
    filled: Millis,
    /// The man that stood there before, and since when.
    before: Option<(Contents, Millis)>,
}

/// What the changes of the squares say of a line's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Each man was seen to arrive after the one before, those of one side in scans of their own.
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
            unwatched: Bitboard::EMPTY,
        }
    }
}

impl Trail {
    /// The square has come to show this, together with others or alone. What a dump tells may have come about at any time since the
    /// board told something before.
    pub(super) fn note(
        &mut self,
        now: Millis,
        square: Square,
        contents: Contents,
        together: bool,
        in_dump: bool,
    ) {
        let mark = &mut self.squares[square.to_usize()];
        mark.at = now;
        mark.is_vacant = contents.is_empty();
        mark.look = self.looks;
        // A man that was lifted and put back arrived when he first came; one that was elsewhere meanwhile did not.
        if !contents.is_empty() && (mark.man != Some(contents) || now > mark.left + PUT_BACK_MS) {
            mark.before = mark.man.map(|man| (man, mark.first));
            mark.man = Some(contents);
            mark.first = now;
        }
        match contents.is_empty() {
            true => mark.left = now,
            false => mark.filled = now,
        }
        self.unordered.set(square, together);
        self.unwatched.set(square, in_dump);
    }

    /// Play begins: what changed before was setting up.
    pub(super) fn begin(&mut self) {
        for mark in &mut self.squares {
            (mark.at, mark.first) = (0, 0);
        }
    }

    /// The square has changed and changed back.
    pub(super) fn touch(&mut self, now: Millis, square: Square) {
        let mark = &mut self.squares[square.to_usize()];
        mark.at = now;
        mark.look = self.looks;
        self.looks += 1;
    }

    /// What stood here is put right: the way there and back was no play. It counts as not having changed since this time.
    pub(super) fn put_right(&mut self, square: Square, since: Millis) {
        let mark = &mut self.squares[square.to_usize()];
        for at in [
            &mut mark.at,
            &mut mark.first,
            &mut mark.left,
            &mut mark.filled,
        ] {
            *at = since.min(*at);
        }
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

    /// Whether this man was seen on the square after this time, before the one that stands there now.
    pub(super) fn stood(&self, square: Square, man: Contents, since: Millis) -> bool {
        self.squares[square.to_usize()]
            .before
            .is_some_and(|(before, at)| before == man && at >= since)
    }

    /// Whether the man that stands there, or stood there last, came at this time or later.
    pub(super) fn came_since(&self, square: Square, since: Millis) -> bool {
        let mark = &self.squares[square.to_usize()];
        mark.man.is_some() && mark.first >= since
    }

    /// When it was last seen to be filled, be it left again since.
    pub(super) fn filled(&self, square: Square) -> Millis {
        self.squares[square.to_usize()].filled
    }

    /// Whether the square was filled at this time or later, be it with what had stood there shortly before.
    pub(super) fn filled_since(&self, square: Square, since: Millis) -> bool {
        self.squares[square.to_usize()].filled >= since
    }

    /// When it was last seen to be left, be it filled again since.
    pub(super) fn left(&self, square: Square) -> Millis {
        self.squares[square.to_usize()].left
    }

    /// Whether a square was filled after another one had been left, as near as a look at the board tells: who left may stand there now.
    pub(super) fn came_after_leaving(&self, from: Square, to: Square) -> bool {
        let left = self.squares[from.to_usize()].left;
        self.filled_since(to, left.saturating_sub(LOOK_MS))
    }

    /// Whether the square was last left before this time, and filled since.
    pub(super) fn left_before(&self, square: Square, time: Millis) -> bool {
        let mark = &self.squares[square.to_usize()];
        mark.left < time && mark.filled > time
    }

    /// The squares that changed after this time, be it that they changed back.
    pub(super) fn changed_since(&self, since: Millis) -> Bitboard {
        Square::ALL
            .into_iter()
            .filter(|square| self.at(*square) > since)
            .collect()
    }

    /// The look in which it did.
    pub(super) fn look(&self, square: Square) -> u64 {
        self.squares[square.to_usize()].look
    }

    /// Squares that last changed while nobody looked: others may have changed and changed back.
    pub(super) fn unwatched(&self) -> Bitboard {
        self.unwatched
    }

    /// Whether the man on `to` stood there long before one left `from`: that one went elsewhere.
    pub(super) fn was_there_before(&self, from: Square, to: Square) -> bool {
        let (left, came) = (self.squares[from.to_usize()], self.squares[to.to_usize()]);
        let seen_singly = !self.unordered.contains(from) && !self.unordered.contains(to);
        seen_singly && left.is_vacant && !came.is_vacant && came.at + EARLY_MS < left.at
    }

    /// From when to when a man can have been on its way from one square to another; none where nothing tells.
    pub(super) fn journey(&self, from: Square, to: Square) -> Journey {
        let (left, came) = (self.squares[from.to_usize()], self.squares[to.to_usize()]);
        let departed = (left.is_vacant && !self.unordered.contains(from)).then_some(left.at);
        let arrived = (!came.is_vacant && !self.unordered.contains(to)).then_some(came);
        Journey {
            begun: match (departed, arrived) {
                (Some(at), Some(came)) => Some(at.min(came.first)),
                (at, came) => at.or(came.map(|came| came.first)),
            },
            ended: arrived.map(|came| came.at).or(departed),
            departed,
            came: arrived.map(|came| came.first),
            arrived: arrived.map(|came| (came.look, came.at)),
        }
    }

    /// The same where nobody can tell who stands on a square: a man came there if it was filled after he had left.
    pub(super) fn departure(&self, from: Square, to: Square) -> Journey {
        let (left, came) = (self.squares[from.to_usize()], self.squares[to.to_usize()]);
        if !left.is_vacant || self.unordered.contains(from) {
            return Journey::default();
        }
        let arrived =
            (!came.is_vacant && !self.unordered.contains(to) && came.at >= left.at).then_some(came);
        Journey {
            begun: Some(left.at),
            ended: arrived.map(|came| came.at).or(Some(left.at)),
            departed: Some(left.at),
            came: arrived.map(|came| came.at),
            arrived: arrived.map(|came| (came.look, came.at)),
        }
    }
}

/// When a man can have been on its way, as far as the squares tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Journey {
    pub(super) begun: Option<Millis>,
    pub(super) ended: Option<Millis>,
    departed: Option<Millis>,
    /// When he was first seen where he went.
    came: Option<Millis>,
    /// The look that showed him arrived, and when that was.
    arrived: Option<(u64, Millis)>,
}

impl Journey {
    /// The same where another man is seen on the square to which it led: no more is known than when it began.
    pub(super) fn only_begun(&self) -> Journey {
        Journey {
            begun: self.departed,
            ..Journey::default()
        }
    }

    /// Whether he was seen to go before this other man of his side. Both within one scan may have gone in either order.
    fn is_before_of_same_side(&self, later: &Journey) -> bool {
        let apart = |earlier: Option<Millis>, later: Option<Millis>| {
            earlier
                .zip(later)
                .is_some_and(|(earlier, later)| earlier + SCAN_MS < later)
        };
        let at = |journey: &Journey| journey.arrived.map(|(_, at)| at);
        apart(at(self), at(later)) || apart(self.departed, later.departed)
    }

    fn is_seen_before(&self, later: &Journey) -> bool {
        let (earlier, later) = (self.arrived, later.arrived);
        earlier
            .zip(later)
            .is_some_and(|((earlier, _), (later, _))| earlier < later)
    }
}

/// Whether the men were put down in their turn, where the squares may be told so much out of order.
pub(super) fn is_in_turn(journeys: &[Journey], slack: Millis) -> bool {
    let came = |journey: &Journey| journey.came;
    journeys.iter().enumerate().all(|(index, earlier)| {
        journeys[index + 1..].iter().all(|later| {
            came(earlier)
                .zip(came(later))
                .is_none_or(|(earlier, later)| earlier <= later + slack)
        })
    })
}

/// Whether men can have made these journeys one after the other, where the squares may be told so much out of order.
pub(super) fn order(journeys: &[Journey], slack: Millis) -> Order {
    let mut told = true;
    for (index, earlier) in journeys.iter().enumerate() {
        for (after, later) in journeys[index + 1..].iter().enumerate() {
            if let (Some(begun), Some(ended)) = (earlier.begun, later.ended)
                && begun > ended + slack
            {
                return Order::Against;
            }
            // The sides move in turn: what can change places are the plies of one of them.
            let same_side = after % 2 == 1;
            told &= earlier.is_seen_before(later)
                && (!same_side || earlier.is_before_of_same_side(later));
        }
    }
    match told && journeys.iter().all(|journey| journey.arrived.is_some()) {
        true => Order::Told,
        false => Order::Open,
    }
}
