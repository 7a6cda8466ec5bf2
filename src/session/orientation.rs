//! Which way round the board stands.

use super::Table;
use crate::board::{self, Contents, Orientation, OrientationSetting, Picture};
use crate::laws::position::Position;
use crate::sensing::{Look, explain};
use shakmaty::{Bitboard, Board, Square};

impl Table {
    /// Which way round the board is read; until that is found, as if it stood right.
    pub(super) fn stands(&self) -> Orientation {
        self.orientation.unwrap_or(Orientation::Normal)
    }

    /// Which way round the board stands, as long as no move of this game was made on it.
    pub(super) fn find_orientation(&mut self) -> bool {
        let found = match self.orientation_setting {
            OrientationSetting::Normal => Some(Orientation::Normal),
            OrientationSetting::Rotated => Some(Orientation::Rotated),
            OrientationSetting::Auto => {
                let fresh = self.open_game().is_none_or(|game| game.line.is_empty());
                if !fresh || !self.raw.is_complete() {
                    return false;
                }
                let start = self.open_game().map(|game| game.line.start.clone());
                let start = start.unwrap_or_else(Position::initial);
                board::find_orientation(&self.believed(), start.board())
            }
        };
        let Some(found) = found.filter(|found| self.orientation != Some(*found)) else {
            return false;
        };
        let first = self.orientation.is_none();
        self.orientation = Some(found);
        if first && found == Orientation::Normal {
            // The squares were read this way already.
            return false;
        }
        let fresh = self.game.as_mut().filter(|game| game.line.is_empty());
        let was_ready = fresh.is_some_and(|game| std::mem::take(&mut game.ready));
        self.sense_from(self.believed().oriented(found));
        self.find_ready();
        if was_ready && self.game.as_ref().is_some_and(|game| !game.ready) {
            self.changed();
        }
        true
    }

    /// The first move on a board that shows no colours tells which side White has: it is turned, if what it shows can only be read
    /// that way. Until then moves of the far side were read as those of men that had no move.
    pub(super) fn turn_by_first_move(&mut self, look: Look) -> bool {
        if self.orientation_setting != OrientationSetting::Auto || !self.raw.is_presence() {
            return false;
        }
        let Some(game) = self.open_game() else {
            return false;
        };
        if !game.ready || !game.line.is_empty() {
            return false;
        }
        let start = game.line.start.clone();
        let first_move = |picture: &Picture| {
            let differing = picture.differing(start.board());
            let moves = explain::moves_to(&start, picture, differing, Bitboard::EMPTY);
            (!moves.is_empty()).then_some(differing)
        };
        let stands = self.stands();
        let other = match stands {
            Orientation::Normal => Orientation::Rotated,
            Orientation::Rotated => Orientation::Normal,
        };
        let shown = self.believed();
        let picture = shown.oriented(other);
        if first_move(&shown.oriented(stands)).is_some() {
            return false;
        }
        let Some(moved) = first_move(&picture) else {
            return false;
        };
        self.orientation = Some(other);
        // The array stood, and then this was done, whichever way it was read.
        let (array, changes) = array_and_changes(&picture, start.board(), moved);
        let now = self.now;
        self.sense_from(array);
        let (sensing, cx) = self.sensing();
        sensing.handle_squares(now, &changes, look, &cx);
        true
    }
}

/// What the board showed before something was done on these squares of its array, and what was done.
pub(super) fn array_and_changes(
    shown: &Picture,
    start: &Board,
    moved: Bitboard,
) -> (Picture, Vec<(Square, Contents)>) {
    let mut array = shown.clone();
    let mut changes = Vec::new();
    for square in moved {
        let man = start.piece_at(square);
        let stood = man.map_or(Contents::Empty, |man| shown.sense().shows(man));
        array.set(square, stood);
        changes.extend(shown.at(square).map(|contents| (square, contents)));
    }
    (array, changes)
}
