//! What the board shows between games: whether the start position is on it, and whether a new game begins.

use super::Table;
use super::alerts::Source;
use super::setup::{Wrong, is_on_the_way_to};
use crate::Millis;
use crate::board::{Orientation, Picture};
use crate::game::{Change, CorrectionReason, Game, Seen};
use crate::publish::CloseReason;
use crate::sensing::explain;
use shakmaty::Bitboard;

/// The start array, standing on the board or just left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Array {
    pub since: Option<Millis>,
    /// It stood long enough that a legal first move begins a game.
    ripe: bool,
    /// It stands the other way round than the game that is open.
    turned_round: bool,
    /// The board was cleared since it last showed the game: what stands on it now was set up, not taken back.
    pub cleared: bool,
    /// Men stand on it where the next game begins with them, and what is left of the game is little.
    pub is_set_up: bool,
    pub wrong: Wrong,
}

impl Table {
    /// The start position stands on the board for the first time in this game: moves are followed from here on.
    pub(super) fn find_ready(&mut self) {
        let Some(game) = &mut self.game else { return };
        if game.is_over() || !game.line.is_empty() {
            return;
        }
        let differing = self.sensing.picture().differing(game.line.start.board());
        if !game.ready && differing.is_empty() && !self.raw.is_blank() {
            self.array.wrong.squares = Bitboard::EMPTY;
            self.begin_to_follow();
        } else if !game.ready {
            self.watch_wrong_array(differing);
        } else if game.ready && !game.clocks.used && differing.count() > 8 {
            // The men are being set up anew; this is no play.
            game.ready = false;
            self.array.wrong.squares = Bitboard::EMPTY;
            self.sense_from(self.sensing.picture().clone());
            self.changed();
        }
    }

    pub(super) fn begin_to_follow(&mut self) {
        let now = self.now;
        if let Some(game) = &mut self.game {
            game.ready = true;
        }
        let (sensing, cx) = self.sensing();
        sensing.follow(now, false, &cx);
        if self.array.wrong.squares.is_empty() {
            self.close_alert(Source::Setup, CloseReason::Restored);
        }
        self.changed();
        // A clock that runs already runs for this game.
        if self.clock.is_running()
            && let Some(wing) = self.clock.to_move()
        {
            self.clock_started(wing);
        }
    }

    /// The array on the board, in either orientation: a new game may be about to begin.
    pub(super) fn watch_array(&mut self) -> bool {
        let start = self.openings.next_start();
        let shown = self.believed();
        self.watch_clearing(&shown);
        let right = shown.agrees_with(start.board());
        let turned = shown.rotated().agrees_with(start.board());
        if self.raw.is_complete() && (right || turned) {
            if self.is_set_up_for_next() {
                self.close_alert(Source::Setup, CloseReason::Restored);
            }
            if self.array.since.is_none() {
                // A man that was only adjusted does not make it stand anew: `ripe` stays as it is.
                self.array.since = Some(self.now);
                let stands = if turned {
                    Orientation::Rotated
                } else {
                    Orientation::Normal
                };
                // An array without colours looks the same from both sides, and says nothing of it.
                self.array.turned_round = right != turned
                    && self
                        .orientation
                        .is_some_and(|orientation| orientation != stands);
            }
            return false;
        }
        if let Some(since) = self.array.since.take() {
            self.array.ripe = self.may_open()
                && (self.array.ripe
                    || self.now.saturating_sub(since) >= self.settings.games.array_before_move);
        }
        if self.array.ripe && self.may_open() {
            // A legal first move from an array that stood begins the game.
            for orientation in [Orientation::Normal, Orientation::Rotated] {
                let picture = shown.oriented(orientation);
                let differing = picture.differing(start.board());
                let moves = explain::moves_to(&start, &picture, differing, Bitboard::EMPTY);
                if let [m] = moves.as_slice() {
                    self.begin_anew();
                    self.orientation = Some(orientation);
                    let now = self.now;
                    if let Some(game) = &mut self.game {
                        game.ready = true;
                    }
                    self.sense_from(picture);
                    self.change_record(Change {
                        keep: 0,
                        moves: vec![Seen::new(&start, *m, now)],
                        why: CorrectionReason::Reread,
                        readings: None,
                    });
                    return true;
                }
            }
            if shown.differing(start.board()).count() > 4
                && shown.rotated().differing(start.board()).count() > 4
            {
                self.array.ripe = false;
            }
        }
        false
    }

    /// A board that differs from the game on so many squares is being cleared.
    fn watch_clearing(&mut self, shown: &Picture) {
        const MANY: usize = 16;
        let Some(game) = self
            .game
            .as_ref()
            .filter(|game| game.ready && !game.is_over() && !game.line.is_empty())
        else {
            (self.array.cleared, self.array.is_set_up) = (false, false);
            return;
        };
        let orientation = self.stands();
        let picture = shown.oriented(orientation);
        let differing = picture.differing(game.line.tip().board());
        let next = self.openings.next_start();
        self.array.is_set_up = is_on_the_way_to(next.board(), &picture, differing);
        match differing.count() {
            0 => {
                self.array.cleared = false;
                if self.array.wrong.squares.is_empty() {
                    // They play on, and nothing was set up.
                    self.close_alert(Source::Setup, CloseReason::Superseded);
                }
            }
            MANY.. => self.array.cleared = true,
            _ => {}
        }
    }

    /// Whether the next game's array stands on the board while the last game is still open.
    pub(super) fn stands_as_array(&self) -> bool {
        self.array.since.is_some() && self.may_open()
    }

    /// Whether an array on the board would be a new game: none is open, or the one that is has moves that an array does not explain
    /// as taken back.
    pub(super) fn may_open(&self) -> bool {
        self.open_game()
            .is_none_or(|game| self.is_left_for_array(game))
    }

    /// Whether an array on the board has left this game behind: it was reached neither by taking back nor by playing, as when all
    /// knights have gone home.
    fn is_left_for_array(&self, game: &Game) -> bool {
        if self.array.turned_round || self.array.cleared {
            // Nobody takes moves back by turning the board, or by clearing it.
            return true;
        }
        // Before an attached clock runs, moves fall away when the array is set up again; it is the same game.
        let unstarted = self.clock.is_attached() && !game.clocks.used;
        !unstarted && !game.explains_array(&self.openings.next_start())
    }

    /// Whether the game that is open looks as if it were over, though nobody has said so: the board is cleared or set up for another
    /// one, or the clock that ran in it stands.
    pub(super) fn looks_left(&self) -> bool {
        let stopped =
            |game: &Game| self.clock.is_attached() && game.clocks.used && !self.clock.is_running();
        self.array.cleared || self.stands_as_array() || self.open_game().is_some_and(stopped)
    }
}
