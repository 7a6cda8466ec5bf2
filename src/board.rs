//! What each square shows: frames become contents of squares, whichever way round the board stands.
//!
//! A dump and single updates end as the same thing here. What is legal is not known in this module.

use crate::laws::result::GameResult;
use crate::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Bitboard, Board, ByColor, Color, Piece, Role, Square};
use std::fmt;

pub mod dgt;
pub mod driver;
pub mod psb1;

pub use driver::{Abilities, Dialect, Driver, Reading, Watch, abilities, dialect, is_supported};

/// What a sensor can know of one square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contents {
    Empty,
    /// Something stands there; the board cannot tell what.
    Occupied,
    /// A man of this side.
    Side(Color),
    Piece(Piece),
    /// A DGT result token: it occupies the square and is nothing to the Laws.
    Token(Token),
}

/// The tokens with which DGT boards can be told a result (codes 0d to 0f).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Token {
    Draw,
    WhiteWins,
    BlackWins,
}

impl Token {
    pub fn result(self) -> GameResult {
        match self {
            Token::Draw => GameResult::Draw,
            Token::WhiteWins => GameResult::WhiteWins,
            Token::BlackWins => GameResult::BlackWins,
        }
    }
}

impl Contents {
    /// Whether a square that holds `man` can show this.
    pub fn agrees(self, man: Option<Piece>) -> bool {
        match (self, man) {
            (Contents::Empty | Contents::Token(_), None) => true,
            (Contents::Occupied, Some(_)) => true,
            (Contents::Side(color), Some(man)) => man.color == color,
            (Contents::Piece(piece), Some(man)) => piece == man,
            _ => false,
        }
    }

    pub fn is_empty(self) -> bool {
        matches!(self, Contents::Empty | Contents::Token(_))
    }

    /// The man, where the sensor can name it.
    pub fn piece(self) -> Option<Piece> {
        match self {
            Contents::Piece(piece) => Some(piece),
            _ => None,
        }
    }

    /// One letter, as in a FEN; `x` for a man that the board cannot tell.
    pub fn letter(self) -> Option<char> {
        match self {
            Contents::Empty => None,
            Contents::Occupied | Contents::Side(_) | Contents::Token(_) => Some('x'),
            Contents::Piece(piece) => Some(piece.char()),
        }
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contents::Empty => f.write_str("empty"),
            Contents::Occupied => f.write_str("x"),
            Contents::Side(color) => f.write_str(color.fold_wb("X", "x")),
            Contents::Piece(piece) => write!(f, "{}", piece.char()),
            Contents::Token(token) => write!(f, "token {}", token.result()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Orientation {
    Normal,
    Rotated,
}

words! {
    /// How the board stands: found from the array, or told.
    #[derive(Default, JsonSchema)]
    OrientationSetting {
        #[default]
        Auto = "auto",
        Normal = "normal",
        Rotated = "rotated",
    }
}

/// How much a board can tell of a man.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sense {
    /// That something stands there.
    Presence,
    /// And whose it is.
    Side,
    /// And what it is.
    Piece,
}

impl Sense {
    /// How a board with this sense shows a man.
    pub fn shows(self, man: Piece) -> Contents {
        match self {
            Sense::Presence => Contents::Occupied,
            Sense::Side => Contents::Side(man.color),
            Sense::Piece => Contents::Piece(man),
        }
    }
}

/// All 64 squares as last read. A square that was never read agrees with everything.
///
/// Kept twice over as sets of squares, because the comparison with a position is the most frequent question of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    squares: [Option<Contents>; 64],
    /// The squares read as a known man or as empty, as a board.
    men: Board,
    /// The squares whose contents are known exactly.
    exact: Bitboard,
    /// The squares where something stands of which no more is known.
    occupied: Bitboard,
    /// The squares where a man stands of which only the side is known.
    sides: ByColor<Bitboard>,
}

impl Default for Picture {
    fn default() -> Picture {
        Picture {
            squares: [None; 64],
            men: Board::empty(),
            exact: Bitboard::EMPTY,
            occupied: Bitboard::EMPTY,
            sides: ByColor::default(),
        }
    }
}

/// What a board shows that names every man.
impl From<&Board> for Picture {
    fn from(board: &Board) -> Picture {
        Picture::of(board, Sense::Piece)
    }
}

impl Picture {
    /// What a board with this sense shows.
    pub fn of(board: &Board, sense: Sense) -> Picture {
        let mut picture = Picture::default();
        for square in Square::ALL {
            let man = board.piece_at(square);
            let contents = man.map_or(Contents::Empty, |man| sense.shows(man));
            picture.set(square, contents);
        }
        picture
    }

    pub fn at(&self, square: Square) -> Option<Contents> {
        self.squares[square.to_usize()]
    }

    /// The man that a square shows, if it shows one by name.
    pub fn piece(&self, square: Square) -> Option<Piece> {
        self.men.piece_at(square)
    }

    /// Whether the square was read and is vacant.
    pub fn is_empty(&self, square: Square) -> bool {
        self.at(square).is_some_and(Contents::is_empty)
    }

    /// Whether the square can show this man, or none.
    pub fn agrees_at(&self, square: Square, man: Option<Piece>) -> bool {
        self.at(square).is_none_or(|contents| contents.agrees(man))
    }

    /// Takes a reading; tells what stood there before if that was something else.
    pub fn set(&mut self, square: Square, contents: Contents) -> Option<Option<Contents>> {
        let before = self.squares[square.to_usize()];
        if before == Some(contents) {
            return None;
        }
        self.squares[square.to_usize()] = Some(contents);
        match contents {
            Contents::Piece(piece) => self.men.set_piece_at(square, piece),
            _ => self.men.discard_piece_at(square),
        }
        self.exact.set(
            square,
            !matches!(contents, Contents::Occupied | Contents::Side(_)),
        );
        self.occupied
            .set(square, matches!(contents, Contents::Occupied));
        for color in Color::ALL {
            self.sides
                .get_mut(color)
                .set(square, contents == Contents::Side(color));
        }
        Some(before)
    }

    /// Takes back what was read of a square.
    pub fn forget(&mut self, square: Square) {
        self.squares[square.to_usize()] = None;
        self.men.discard_piece_at(square);
        self.exact.discard(square);
        self.occupied.discard(square);
        for color in Color::ALL {
            self.sides.get_mut(color).discard(square);
        }
    }

    /// The squares that were read and are vacant.
    pub fn vacant(&self) -> Bitboard {
        self.exact & !self.men.occupied()
    }

    /// Whether every square shows exactly what stands on it.
    pub fn is_exact(&self) -> bool {
        self.exact == Bitboard::FULL
    }

    /// How much this board can tell of a man, by the poorest of what it shows.
    pub fn sense(&self) -> Sense {
        if self.occupied.any() {
            Sense::Presence
        } else if self.sides.iter().any(|side| side.any()) {
            Sense::Side
        } else {
            Sense::Piece
        }
    }

    /// Whether it shows for no man what he is, nor whose.
    pub fn is_presence(&self) -> bool {
        let unknown =
            |contents| matches!(contents, None | Some(Contents::Empty | Contents::Occupied));
        self.squares.iter().copied().all(unknown)
    }

    /// Whether every square has been read.
    pub fn is_complete(&self) -> bool {
        self.squares.iter().all(Option::is_some)
    }

    /// Whether nothing has been read yet.
    pub fn is_blank(&self) -> bool {
        self.squares.iter().all(Option::is_none)
    }

    /// The squares that cannot show this board.
    pub fn differing(&self, board: &Board) -> Bitboard {
        let mut same_side = Bitboard::EMPTY;
        for color in Color::ALL {
            same_side |= self.men.by_color(color) & board.by_color(color);
        }
        let mut same_role = Bitboard::EMPTY;
        for role in Role::ALL {
            same_role |= self.men.by_role(role) & board.by_role(role);
        }
        let vacant = !self.men.occupied() & !board.occupied();
        let known = self.exact & !(vacant | (same_side & same_role));
        if self.is_exact() {
            return known;
        }
        let other_side = |color| *self.sides.get(color) & !board.by_color(color);
        known
            | (self.occupied & !board.occupied())
            | other_side(Color::White)
            | other_side(Color::Black)
    }

    /// The squares that show a man of this side.
    pub fn by_color(&self, color: Color) -> Bitboard {
        self.men.by_color(color) | *self.sides.get(color)
    }

    /// The squares where a man stands of whom nothing is known, or that were never read.
    pub fn untold(&self) -> Bitboard {
        !(self.exact | *self.sides.get(Color::White) | *self.sides.get(Color::Black))
    }

    /// The squares that were never read, or are read no more.
    pub fn unread(&self) -> Bitboard {
        self.untold() & !self.occupied
    }

    pub fn agrees_with(&self, board: &Board) -> bool {
        // Asked of all positions of a game: the cheap refusal first.
        let is_full_otherwise = self.exact & (self.men.occupied() ^ board.occupied());
        is_full_otherwise.is_empty() && self.differing(board).is_empty()
    }

    /// The same board seen from the other side.
    pub fn rotated(&self) -> Picture {
        let mut turned = Picture::default();
        for square in Square::ALL {
            if let Some(contents) = self.at(square) {
                turned.set(square.rotate_180(), contents);
            }
        }
        turned
    }

    /// The picture as the game numbers the squares.
    pub fn oriented(&self, orientation: Orientation) -> Picture {
        match orientation {
            Orientation::Normal => self.clone(),
            Orientation::Rotated => self.rotated(),
        }
    }

    /// First field of a FEN, with `x` for a man that the board cannot tell and `?` for a square not yet read.
    pub fn placement(&self) -> String {
        let mut text = String::with_capacity(71);
        for rank in shakmaty::Rank::ALL.into_iter().rev() {
            let mut vacant = 0;
            for file in shakmaty::File::ALL {
                let letter = match self.at(Square::from_coords(file, rank)) {
                    None => Some('?'),
                    Some(contents) => contents.letter(),
                };
                match letter {
                    None => vacant += 1,
                    Some(letter) => {
                        if vacant > 0 {
                            text.push_str(&vacant.to_string());
                        }
                        vacant = 0;
                        text.push(letter);
                    }
                }
            }
            if vacant > 0 {
                text.push_str(&vacant.to_string());
            }
            if rank != shakmaty::Rank::First {
                text.push('/');
            }
        }
        text
    }
}

/// The square as a game on a board of this orientation names it.
pub fn oriented(square: Square, orientation: Orientation) -> Square {
    match orientation {
        Orientation::Normal => square,
        Orientation::Rotated => square.rotate_180(),
    }
}

/// Which way round the board stands, judged by an array that it should show (the board's own numbering in, protocol sheet 7.1).
///
/// A turned board has White's men on its upper ranks, and its king beside the other bishop; an array with king and queen exchanged
/// is a wrong set-up of a board that stands right. So the array need not agree on every square, but on most, and better one way.
///
/// Where the sensor sees no colours an array may look the same from both sides. It is read as standing right, until a move tells.
pub fn find_orientation(raw: &Picture, array: &Board) -> Option<Orientation> {
    const TOLERANCE: usize = 8;
    if raw.is_blank() {
        return None;
    }
    let normal = raw.differing(array).count();
    let rotated = raw.rotated().differing(array).count();
    if normal == 0 && rotated == 0 {
        return Some(Orientation::Normal);
    }
    if normal <= TOLERANCE && normal < rotated {
        Some(Orientation::Normal)
    } else if rotated <= TOLERANCE && rotated < normal {
        Some(Orientation::Rotated)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(placement: &str) -> Picture {
        Picture::from(&Board::from_ascii_board_fen(placement.as_bytes()).expect("test board"))
    }

    /// Cases B1 and B4: what the board shows in its own numbering, and how it stands.
    #[test]
    fn orientation_by_the_start_array() {
        let table = [
            (
                "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR",
                Some(Orientation::Normal),
            ),
            (
                "RNBKQBNR/PPPPPPPP/8/8/8/8/pppppppp/rnbkqbnr",
                Some(Orientation::Rotated),
            ),
            (
                "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKQBNR",
                Some(Orientation::Normal),
            ),
            (
                "rnbkqbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR",
                Some(Orientation::Normal),
            ),
            (
                "rnbkqbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKQBNR",
                Some(Orientation::Normal),
            ),
            (
                "RNBQKBNR/PPPPPPPP/8/8/8/8/pppppppp/rnbqkbnr",
                Some(Orientation::Rotated),
            ),
            ("8/8/8/8/8/8/8/8", None),
        ];
        for (shown, expected) in table {
            assert_eq!(
                find_orientation(&picture(shown), &Board::new()),
                expected,
                "{shown}"
            );
        }
    }

    #[test]
    fn an_array_without_colours_stands_right() {
        let mut shown = picture("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR");
        assert!(!shown.is_presence());
        for square in Square::ALL {
            if !shown.is_empty(square) {
                shown.set(square, Contents::Occupied);
            }
        }
        assert!(shown.is_presence());
        assert_eq!(
            find_orientation(&shown, &Board::new()),
            Some(Orientation::Normal)
        );
        shown.set(Square::D2, Contents::Empty);
        assert_eq!(find_orientation(&shown, &Board::new()), None);
    }

    #[test]
    fn a_square_never_read_agrees_with_everything() {
        let mut picture = Picture::default();
        assert!(picture.agrees_with(&Board::new()));
        picture.set(Square::E2, Contents::Empty);
        assert_eq!(picture.differing(&Board::new()), Bitboard::from(Square::E2));
    }

    #[test]
    fn placement_text() {
        let mut shown = picture("4k3/8/8/3pP3/8/8/8/4K3");
        assert_eq!(shown.placement(), "4k3/8/8/3pP3/8/8/8/4K3");
        shown.set(Square::A1, Contents::Occupied);
        assert_eq!(shown.placement(), "4k3/8/8/3pP3/8/8/8/x3K3");
        assert!(Picture::default().placement().starts_with("????????/"));
    }
}
