//! What the board shows between games: how it stands, whether the start position is on it, and whether a new game begins.

use super::Table;
use super::alerts::{Notice, Source, named_in_text, way_back};
use crate::Millis;
use crate::board::{self, Contents, Orientation, OrientationSetting, Picture, Sense};
use crate::game::{Change, CorrectionReason, Game, Seen};
use crate::laws::position::Position;
use crate::publish::{AlertKind, Audience, CloseReason, Severity};
use crate::sensing::{Look, explain};
use shakmaty::{Bitboard, Board, Color, Move, Piece, Role, Square};

/// The start array, standing on the board or just left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Array {
    pub since: Option<Millis>,
    /// It stood long enough that a legal first move begins a game.
    ripe: bool,
    /// It stands the other way round than the game that is open.
    turned_round: bool,
    /// The board was cleared since it last showed the game: what stands on it now was set up, not taken back.
    cleared: bool,
    /// The squares of the game's array that do not show it, since when, and which of the two faults of a set-up that is: men are not seen
    /// while all others stand, or they stand on each other's squares. Once the game is followed these squares are not read.
    wrong: Bitboard,
    wrong_since: Millis,
    /// It is the latter: it is told until they are put right.
    is_astray: bool,
    /// Those of them that were told: while men are on their way back the way back is not told anew at each step.
    told: Bitboard,
}

/// More squares than these without a man are no array.
const MOST_MISSING: usize = 2;

/// Plies that may have been played before anybody looked.
const MISSED: usize = 4;

impl Table {
    /// The start position stands on the board for the first time in this game: moves are followed from here on.
    pub(super) fn find_ready(&mut self) {
        let Some(game) = &mut self.game else { return };
        if game.is_over() || !game.line.is_empty() {
            return;
        }
        let differing = self.sensing.picture().differing(game.line.start.board());
        let now = self.now;
        if !game.ready && differing.is_empty() && !self.raw.is_blank() {
            self.array.wrong = Bitboard::EMPTY;
            self.begin_to_follow();
        } else if !game.ready {
            self.watch_wrong_array(differing);
        } else if game.ready && !game.clocks.used && differing.count() > 8 {
            // The men are being set up anew; this is no play.
            game.ready = false;
            self.array.wrong = Bitboard::EMPTY;
            self.sensing.restart(self.sensing.picture().clone(), now);
            self.changed();
        }
    }

    fn begin_to_follow(&mut self) {
        let now = self.now;
        if let Some(game) = &mut self.game {
            game.ready = true;
        }
        let (sensing, cx) = self.sensing();
        sensing.follow(now, false, &cx);
        if self.array.wrong.is_empty() {
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

    /// The array is not on the board, but may be as far as it shows: a square is dead, or the last man is put up late; or some men stand on
    /// each other's squares. A legal first move from what has stood for a while says so. If it is one of the men who were not shown, he
    /// may have been put up wrongly, and the answer says so.
    fn watch_wrong_array(&mut self, differing: Bitboard) {
        let Some(game) = &self.game else { return };
        let start = &game.line.start;
        let wrong = self.array.wrong;
        let stood = self.now.saturating_sub(self.array.wrong_since)
            >= self.settings.games.array_before_move;
        if wrong.any() && wrong.is_subset(differing) && stood {
            let mut picture = self.sensing.picture().clone();
            for square in wrong {
                picture.forget(square);
            }
            let is_shown = |m: &Move| m.from().is_some_and(|from| !wrong.contains(from));
            let begins = |plies: usize| {
                let fits = |line: &[Move]| line.last().is_some_and(is_shown);
                let lines = explain::lines_to(start, &picture, Bitboard::EMPTY, plies, fits);
                !lines.found.is_empty()
            };
            if begins(1) || (self.are_missing(wrong) && begins(2)) {
                self.follow_wrong_array(wrong);
            }
        } else if self.are_missing(differing) || self.are_astray(differing) {
            if wrong != differing {
                self.array.wrong = differing;
                self.array.wrong_since = self.now;
            }
        } else {
            self.array.wrong = Bitboard::EMPTY;
        }
    }

    /// Whether these squares, on which the board differs from the array, only lack their men, and are few.
    fn are_missing(&self, differing: Bitboard) -> bool {
        (1..=MOST_MISSING).contains(&differing.count())
            && self.game.as_ref().is_some_and(|game| {
                explain::is_only_missing(&game.line.start, self.sensing.picture(), differing)
            })
    }

    /// Whether all men are there, some of them on these squares where others belong, and no play led there.
    fn are_astray(&self, differing: Bitboard) -> bool {
        self.game
            .as_ref()
            .is_some_and(|game| is_astray(&game.line.start, self.sensing.picture(), differing))
    }

    /// The clock runs where no game is open, or one that was left: the next begins with the array, be some of its men on each other's
    /// squares.
    pub(super) fn open_with_clock(&mut self) {
        let start = self.openings.next_start();
        let found = board::find_orientation(&self.raw, start.board());
        let stands = found.is_some_and(|found| {
            let picture = self.raw.oriented(found);
            is_astray(&start, &picture, picture.differing(start.board()))
        });
        // What is near the array may also be reached by playing, or taking back.
        let is_left = |game: &Game| match game.is_over() {
            true => !self.sensing.picture().agrees_with(game.line.tip().board()),
            false => self.array.cleared,
        };
        let may_open = self.game.as_ref().is_none_or(is_left);
        if may_open && self.raw.is_complete() && stands {
            self.begin_anew();
        }
    }

    /// The squares that do not show the array in what stands, if a game that is not followed yet may begin with it and this side to move.
    pub(super) fn wrong_to_begin_with(&self, turn: Color) -> Option<Bitboard> {
        let game = self.open_game().filter(|game| !game.ready)?;
        let differing = self.sensing.picture().differing(game.line.start.board());
        let is_first = turn == game.line.start.turn();
        let may_begin = game.line.is_empty()
            && self.raw.is_complete()
            && (self.are_missing(differing) || (is_first && self.are_astray(differing)));
        may_begin.then_some(differing)
    }

    /// The clock runs for this side, be it that the other one has pressed: what stands is the array, as far as the board can show it, or as
    /// somebody has set it up. Whether a game is followed from here on that was not before.
    pub(super) fn begin_from_wrong_array(&mut self, turn: Color) -> bool {
        let wrong = self.wrong_to_begin_with(turn);
        if let Some(wrong) = wrong {
            self.follow_wrong_array(wrong);
        }
        wrong.is_some()
    }

    /// The game is followed from its array, of which these squares are not read, and what else differs from it has just been done.
    fn follow_wrong_array(&mut self, wrong: Bitboard) {
        let Some(game) = &self.game else { return };
        let start = game.line.start.board().clone();
        let shown = self.sensing.picture().clone();
        let moved = shown.differing(&start) & !wrong;
        let (array, changes) = array_and_changes(&shown, &start, moved);
        let now = self.now;
        self.array.wrong = wrong;
        // Where men stand none is only unseen.
        self.array.is_astray = (wrong & !array.vacant()).any();
        self.array.told = Bitboard::EMPTY;
        self.sensing.restart(array, now);
        self.sensing.leave_unread(wrong, &start);
        self.begin_to_follow();
        let (sensing, cx) = self.sensing();
        sensing.handle_squares(now, &changes, Look::Update, &cx);
    }

    /// A game that is played from an array of which not all was shown: the arbiter is told, until each of these squares shows a change. Men
    /// who stand on each other's squares are told at once, and until they are put right.
    pub(super) fn tell_wrong_array(&mut self) {
        let Some(game) = self.game.as_ref().filter(|game| game.is_followed()) else {
            return;
        };
        let is_astray = self.array.is_astray;
        if self.array.wrong.is_empty() || (!is_astray && game.line.is_empty()) {
            return;
        }
        let unread = self.sensing.unread_squares();
        let still = match is_astray {
            true => unread | self.sensing.picture().differing(game.line.tip().board()),
            false => unread,
        };
        let wrong = self.array.wrong & still;
        self.array.wrong = wrong;
        if wrong.is_empty() {
            self.close_alert(Source::Setup, CloseReason::Restored);
            return;
        }
        if is_astray && std::mem::replace(&mut self.array.told, wrong) == wrong {
            return;
        }
        let says = match is_astray {
            true => format!("played, and {}", differs(wrong)),
            false => format!(
                "played, and the start position was not seen whole ({}). Look at the board.",
                named_in_text(wrong)
            ),
        };
        let (kind, to, how) = (AlertKind::SetupWrong, Audience::Arbiter, Severity::Warn);
        let mut notice = Notice::new(kind, to, how, says);
        notice.squares = wrong;
        notice.ply = Some(1);
        if is_astray {
            let array = game.line.start.board();
            let (shown, mut stood) = (self.sensing.shown(), Picture::of(array, Sense::Piece));
            for square in wrong {
                stood.set(square, shown.at(square).unwrap_or(Contents::Empty));
            }
            notice.detail.way_back = way_back(&stood, array);
        }
        self.raise(Source::Setup, notice);
    }

    /// The squares of the array on which other men stand: nothing is wrong with their sensors.
    pub(super) fn squares_astray(&self) -> Bitboard {
        match self.array.is_astray {
            true => self.array.wrong,
            false => Bitboard::EMPTY,
        }
    }

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
                board::find_orientation(&self.raw, start.unwrap_or_else(Position::initial).board())
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
        let now = self.now;
        let fresh = self.game.as_mut().filter(|game| game.line.is_empty());
        let was_ready = fresh.is_some_and(|game| std::mem::take(&mut game.ready));
        self.sensing.restart(self.raw.oriented(found), now);
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
        let picture = self.raw.oriented(other);
        if first_move(&self.raw.oriented(stands)).is_some() {
            return false;
        }
        let Some(moved) = first_move(&picture) else {
            return false;
        };
        self.orientation = Some(other);
        // The array stood, and then this was done, whichever way it was read.
        let (array, changes) = array_and_changes(&picture, start.board(), moved);
        let now = self.now;
        self.sensing.restart(array, now);
        let (sensing, cx) = self.sensing();
        sensing.handle_squares(now, &changes, look, &cx);
        true
    }

    /// The array on the board, in either orientation: a new game may be about to begin.
    pub(super) fn watch_array(&mut self) -> bool {
        let start = self.openings.next_start();
        self.watch_clearing();
        let right = self.raw.agrees_with(start.board());
        let turned = self.raw.rotated().agrees_with(start.board());
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
                let picture = self.raw.oriented(orientation);
                let differing = picture.differing(start.board());
                let moves = explain::moves_to(&start, &picture, differing, Bitboard::EMPTY);
                if let [m] = moves.as_slice() {
                    self.begin_anew();
                    self.orientation = Some(orientation);
                    let now = self.now;
                    if let Some(game) = &mut self.game {
                        game.ready = true;
                    }
                    self.sensing.restart(picture, now);
                    self.change_record(Change {
                        keep: 0,
                        moves: vec![Seen::new(&start, *m, now)],
                        why: CorrectionReason::Reread,
                        readings: None,
                    });
                    return true;
                }
            }
            if self.raw.differing(start.board()).count() > 4
                && self.raw.rotated().differing(start.board()).count() > 4
            {
                self.array.ripe = false;
            }
        }
        false
    }

    /// A board that differs from the game on so many squares is being cleared.
    fn watch_clearing(&mut self) {
        const MANY: usize = 16;
        let Some(game) = self
            .game
            .as_ref()
            .filter(|game| game.is_followed() && !game.line.is_empty())
        else {
            self.array.cleared = false;
            return;
        };
        let orientation = self.stands();
        match self
            .raw
            .oriented(orientation)
            .differing(game.line.tip().board())
            .count()
        {
            0 => {
                self.array.cleared = false;
                if self.array.wrong.is_empty() {
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

    pub(super) fn is_setting_up(&self) -> bool {
        let begins = self.open_game().is_some_and(|game| !game.ready);
        self.raw.is_complete() && (begins || self.is_set_up_for_next())
    }

    /// Whether the men are being set up for a game that is paired, while the last one was left without a result.
    fn is_set_up_for_next(&self) -> bool {
        self.openings.is_armed() && self.array.cleared && self.open_game().is_some()
    }

    /// All men are there, as far as the board can tell, and some stand on each other's squares.
    pub(super) fn judge_setup(&mut self) {
        let Some(game) = &self.game else { return };
        let is_next = self.is_set_up_for_next();
        let (board, picture) = if is_next {
            let board = self.openings.next_start().board().clone();
            let found = board::find_orientation(&self.raw, &board);
            let picture = self.raw.oriented(found.unwrap_or(self.stands()));
            (board, picture)
        } else {
            let picture = self.sensing.picture().clone();
            (game.line.start.board().clone(), picture)
        };
        let picture = &picture;
        let differing = picture.differing(&board);
        let astray = differing.any() && differing.count() <= FEW && are_all_there(picture, &board);
        if astray || are_sides_misread(picture, &board) {
            let mut notice = Notice::new(
                AlertKind::SetupWrong,
                Audience::Arbiter,
                Severity::Warn,
                differs(differing),
            );
            notice.squares = differing;
            notice.ply = is_next.then_some(1);
            notice.detail.way_back = way_back(picture, &board);
            notice.detail.restore = Some(board.board_fen().to_string());
            self.raise(Source::Setup, notice);
        } else if differing.is_empty() {
            self.close_alert(Source::Setup, CloseReason::Restored);
        }
    }
}

/// What is said of squares on which other men stand than in the array.
fn differs(squares: Bitboard) -> String {
    format!(
        "the start position differs ({}). Look at the board.",
        named_in_text(squares)
    )
}

/// Whether all men of an array are there, some of them on these squares where others belong, and no play led there.
fn is_astray(start: &Position, picture: &Picture, differing: Bitboard) -> bool {
    let is_played = || {
        let lines = |plies| explain::lines_to(start, picture, Bitboard::EMPTY, plies, |_| true);
        // The side that begins has the move: both have made as many plies.
        let mut plies = (2..=MISSED).step_by(2).map(lines);
        plies.any(|lines| !lines.complete || lines.explain())
    };
    differing.any()
        && differing.count() <= FEW
        && are_all_there(picture, start.board())
        && !is_played()
}

/// What the board showed before something was done on these squares of its array, and what was done.
fn array_and_changes(
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

/// Men that stand on each other's squares differ on no more squares than this.
const FEW: usize = 8;

/// Whether a board that shows whose its men are, and not which, has all of them about where they belong, and takes some for the other
/// side's: nobody sets up like that, and no move can be read from it.
fn are_sides_misread(picture: &Picture, board: &Board) -> bool {
    let (mut occupied, mut misread) = (Bitboard::EMPTY, false);
    for square in Square::ALL {
        let man = board.piece_at(square);
        let Some(contents) = picture.at(square).filter(|contents| !contents.is_empty()) else {
            continue;
        };
        occupied.add(square);
        if let Contents::Side(color) = contents {
            misread |= man.is_some_and(|man| man.color != color);
        }
    }
    let elsewhere = occupied ^ board.occupied();
    let all_there = occupied.count() == board.occupied().count();
    misread && all_there && elsewhere.count() <= FEW
}

/// Whether as many men stand on the board as the array has: of each kind where the sensor knows it, else of each side, else in all.
fn are_all_there(picture: &Picture, board: &Board) -> bool {
    let shown = |fits: &dyn Fn(Contents) -> bool| {
        let squares = Square::ALL.iter();
        squares
            .filter(|square| picture.at(**square).is_some_and(fits))
            .count()
    };
    let side = |color: Color| {
        shown(&|contents| contents == Contents::Side(color)) == board.by_color(color).count()
    };
    let kind = |man: Piece| {
        shown(&|contents| contents == Contents::Piece(man)) == board.by_piece(man).count()
    };
    let kinds = |color: Color| Role::ALL.iter().all(|role| kind(role.of(color)));
    shown(&|contents| !contents.is_empty()) == board.occupied().count()
        && (picture.is_presence()
            || Color::ALL.into_iter().all(side)
            || Color::ALL.into_iter().all(kinds))
}
