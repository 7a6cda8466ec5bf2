//! The record, continued by what was seen and not told yet.

use super::*;

/// The record, continued by what was seen and not told yet.
pub(super) struct View<'a> {
    pub(super) line: &'a Line,
    pub(super) keep: usize,
    pub(super) moves: &'a [Seen],
    /// The plies of the line that stay.
    recorded: &'a [Ply],
    /// Where it leads; asked for more often than all else.
    tip: &'a Position,
}

/// A position that play went on from, with all by which a line from there is weighed.
#[derive(Clone, Copy)]
pub(super) struct Standpoint<'a> {
    pub(super) position: &'a Position,
    /// The move that led there, and when it was seen.
    pub(super) last: Option<Move>,
    pub(super) since: Millis,
}

impl<'a> View<'a> {
    /// So many plies of the line, and these after them.
    pub(super) fn new(line: &'a Line, keep: usize, moves: &'a [Seen]) -> View<'a> {
        let tip = match moves.last() {
            Some(seen) => &seen.after,
            None => line.position(keep),
        };
        View {
            line,
            keep,
            moves,
            recorded: line.plies.get(..keep).unwrap_or(&line.plies),
            tip,
        }
    }

    /// The whole line.
    pub(super) fn of(line: &'a Line) -> View<'a> {
        View {
            line,
            keep: line.len(),
            moves: &[],
            recorded: &line.plies,
            tip: line.tip(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keep + self.moves.len()
    }

    /// What was seen and not told yet at this index, counted from 0.
    fn untold(&self, index: usize) -> Option<&'a Seen> {
        self.moves.get(index.checked_sub(self.keep)?)
    }

    pub(super) fn position(&self, plies: usize) -> &'a Position {
        let Some(index) = plies.checked_sub(1) else {
            return &self.line.start;
        };
        match (self.recorded.get(index), self.untold(index)) {
            (Some(ply), _) => &ply.after,
            (None, Some(seen)) => &seen.after,
            (None, None) => self.line.position(plies.min(self.keep)),
        }
    }

    pub(super) fn tip(&self) -> &'a Position {
        self.tip
    }

    /// Where it stood after so many plies.
    pub(super) fn standpoint(&self, plies: usize) -> Standpoint<'a> {
        Standpoint {
            position: self.position(plies),
            last: self.last_of(plies),
            since: self.seen_at(plies),
        }
    }

    /// The move that led to the tip.
    pub(super) fn last(&self) -> Option<Move> {
        self.last_of(self.len())
    }

    /// Where the man of that move went; castling, the king.
    pub(super) fn stop(&self) -> Option<Square> {
        Some(Castling::stop(self.last()?, !self.tip.turn()))
    }

    /// Whose the last of so many plies is.
    pub(super) fn mover(&self, plies: usize) -> Option<Color> {
        Some(self.position(plies.checked_sub(1)?).turn())
    }

    /// How many plies there are with the last one of this side; the sides move in turn.
    pub(super) fn plies_of(&self, side: Color) -> usize {
        let n = self.len();
        match self.mover(n) == Some(side) {
            true => n,
            false => n.saturating_sub(1),
        }
    }

    /// The last of so many plies.
    pub(super) fn last_of(&self, plies: usize) -> Option<Move> {
        self.mv(plies.checked_sub(1)?)
    }

    /// The move at this index, counted from 0.
    pub(super) fn mv(&self, index: usize) -> Option<Move> {
        match self.recorded.get(index) {
            Some(ply) => Some(ply.mv),
            None => Some(self.untold(index)?.mv),
        }
    }

    /// Whether the ply at this index is recorded, and was pressed.
    pub(super) fn is_pressed(&self, index: usize) -> bool {
        self.recorded.get(index).is_some_and(|ply| ply.pressed)
    }

    /// When the last of these plies was seen.
    pub(super) fn seen_at(&self, plies: usize) -> Millis {
        let Some(index) = plies.checked_sub(1) else {
            return 0;
        };
        match (self.recorded.get(index), self.untold(index)) {
            (Some(ply), _) => ply.seen_at,
            (None, Some(seen)) => seen.at,
            (None, None) => self.recorded.last().map_or(0, |ply| ply.seen_at),
        }
    }
}

impl Sensing {
    /// The record as it would read if all that was seen were told.
    pub(super) fn view<'a>(&'a self, cx: &Context<'a>) -> View<'a> {
        match &self.tentative {
            Some(tentative) => View::new(cx.line, tentative.keep, &tentative.moves),
            None => View::of(cx.line),
        }
    }

    /// Whether the man that moved last stands no more where he went.
    pub(super) fn has_gone_on(&self, view: &View<'_>) -> bool {
        view.stop().is_some_and(|to| self.picture.is_empty(to))
    }
}
