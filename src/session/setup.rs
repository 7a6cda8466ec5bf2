//! What is wrong with a set-up: men that are not seen, or stand on each other's squares; and the game that is played from it all the same.

use super::Table;
use super::alerts::{Notice, Source, named_in_text, way_back};
use super::orientation::array_and_changes;
use crate::Millis;
use crate::board::{self, Contents, Picture, Sense};
use crate::game::Game;
use crate::laws::position::Position;
use crate::publish::{AlertKind, Audience, CloseReason, Severity};
use crate::sensing::{ACCIDENT, Look, explain};
use shakmaty::{Bitboard, Board, Color, Move, Piece, Role, Square};

/// Where the array that a game is played from is not what it should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Once the game is followed these squares are not read.
    pub squares: Bitboard,
    since: Millis,
    /// Other men stand there than should, and are told until they are put right; else none are seen there, while all others stand.
    are_astray: bool,
    /// Those of the former that were told: while men are on their way back the way back is not told anew at each step.
    told: Bitboard,
}

impl Table {
    /// The array is not on the board, but may be as far as it shows: a square is dead, or the last man is put up late; or some men stand on
    /// each other's squares. A legal first move from what has stood for a while says so. If it is one of the men who were not shown, he
    /// may have been put up wrongly, and the answer says so.
    pub(super) fn watch_wrong_array(&mut self, differing: Bitboard) {
        let Some(game) = &self.game else { return };
        let start = &game.line.start;
        let wrong = self.array.wrong.squares;
        let stood = self.now.saturating_sub(self.array.wrong.since)
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
                self.array.wrong.squares = differing;
                self.array.wrong.since = self.now;
            }
        } else {
            self.array.wrong.squares = Bitboard::EMPTY;
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
        let shown = self.believed();
        let found = board::find_orientation(&shown, start.board());
        let stands = found.is_some_and(|found| {
            let picture = shown.oriented(found);
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
        self.array.wrong.squares = wrong;
        // Where men stand none is only unseen.
        self.array.wrong.are_astray = (wrong & !array.vacant()).any();
        self.array.wrong.told = Bitboard::EMPTY;
        self.sense_from(array);
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
        let is_astray = self.array.wrong.are_astray;
        if self.array.wrong.squares.is_empty() || (!is_astray && game.line.is_empty()) {
            return;
        }
        let unread = self.sensing.unread_squares();
        let still = match is_astray {
            true => unread | self.sensing.picture().differing(game.line.tip().board()),
            false => unread,
        };
        let wrong = self.array.wrong.squares & still;
        self.array.wrong.squares = wrong;
        if wrong.is_empty() {
            self.close_alert(Source::Setup, CloseReason::Restored);
            return;
        }
        if is_astray && std::mem::replace(&mut self.array.wrong.told, wrong) == wrong {
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
        match self.array.wrong.are_astray {
            true => self.array.wrong.squares,
            false => Bitboard::EMPTY,
        }
    }

    pub(super) fn is_setting_up(&self) -> bool {
        let begins = self.open_game().is_some_and(|game| !game.ready);
        self.raw.is_complete() && (begins || self.is_set_up_for_next())
    }

    /// Whether the men are being set up for a game that is paired, or that its array alone would open, while the last one was left without
    /// a result.
    pub(super) fn is_set_up_for_next(&self) -> bool {
        let is_paired = self.openings.is_armed() && self.array.cleared;
        let opens_itself = !self.openings.is_by_hand() && self.array.is_set_up;
        (is_paired || opens_itself) && self.open_game().is_some()
    }

    /// All men are there, as far as the board can tell, and some stand on each other's squares.
    pub(super) fn judge_setup(&mut self) {
        let Some(game) = &self.game else { return };
        let is_next = self.is_set_up_for_next();
        let (board, picture) = if is_next {
            let board = self.openings.next_start().board().clone();
            let shown = self.believed();
            let found = board::find_orientation(&shown, &board);
            let picture = shown.oriented(found.unwrap_or(self.stands()));
            (board, picture)
        } else {
            let picture = self.sensing.picture().clone();
            (game.line.start.board().clone(), picture)
        };
        let picture = &picture;
        let differing = picture.differing(&board);
        let astray = match is_next {
            // Nobody has said yet that a game begins: it may be analysis.
            true => {
                let next = self.openings.next_start();
                let is_played = |plies| is_played(&next, picture, plies);
                is_few_astray(picture, &board, differing) && !(1..=MISSED).any(is_played)
            }
            false => is_few_astray(picture, &board, differing),
        };
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

/// More squares than these without a man are no array.
const MOST_MISSING: usize = 2;

/// Plies that may have been played before anybody looked.
const MISSED: usize = 4;

/// What is said of squares on which other men stand than in the array.
fn differs(squares: Bitboard) -> String {
    format!(
        "the start position differs ({}). Look at the board.",
        named_in_text(squares)
    )
}

/// Whether all men of an array are there, some of them on these squares where others belong, and no play led there.
fn is_astray(start: &Position, picture: &Picture, differing: Bitboard) -> bool {
    // The side that begins has the move: both have made as many plies.
    let mut plies = (2..=MISSED).step_by(2);
    is_few_astray(picture, start.board(), differing)
        && !plies.any(|plies| is_played(start, picture, plies))
}

/// Whether so many plies may have led to what the board shows.
fn is_played(start: &Position, picture: &Picture, plies: usize) -> bool {
    let lines = explain::lines_to(start, picture, Bitboard::EMPTY, plies, |_| true);
    !lines.complete || lines.explain()
}

/// Whether all men of an array are there, a few of them on these squares where others belong.
fn is_few_astray(picture: &Picture, array: &Board, differing: Bitboard) -> bool {
    differing.any() && differing.count() <= FEW && are_all_there(picture, array)
}

/// Whether men of a game that differs from the board on these squares are being set up to this array, from either side of the board: men
/// stand where they begin who did not in the game, and hardly anything else has come. No accident does that.
pub(super) fn is_on_the_way_to(array: &Board, picture: &Picture, differing: Bitboard) -> bool {
    let mut turned = array.clone();
    turned.rotate_180();
    let came = differing & !picture.vacant();
    let is_led_to = |array: &Board| {
        let astray = came & picture.differing(array);
        let home = came & !astray;
        home.count() >= MANY_HOME && home.count() > MANY_HOME * astray.count()
    };
    differing.count() > ACCIDENT && (is_led_to(array) || is_led_to(&turned))
}

/// So many men go home at once for no other reason.
const MANY_HOME: usize = 3;

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
