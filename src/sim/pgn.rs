//! Games to play, read from PGN.
//!
//! Only the main line, the clock times and the result are of interest to a pair of hands; variations and glyphs are passed over.

mod tokens;

use std::fmt;
use std::mem;

use shakmaty::fen::Fen;
use shakmaty::san::{San, SanPlus};
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Chess, Move, Outcome, Position, PositionError};

use crate::Millis;
use crate::text::one_line;
use tokens::{Token, Tokens};

/// One game, checked move by move: each of `moves` is legal where it stands.
#[derive(Debug, Clone)]
pub struct SimGame {
    /// The place of the game in its file, from 1.
    pub number: usize,
    /// Tag pairs in the order of the file.
    pub tags: Vec<(String, String)>,
    /// Where the game starts.
    pub start: Chess,
    /// Whether castling follows the rules of Chess960, and is written as king takes rook.
    pub chess960: bool,
    pub moves: Vec<Move>,
    /// What `%clk` gives for each of `moves`; `None` where the whole game has no clock times.
    pub clocks: Option<Vec<Option<Millis>>>,
    pub result: Outcome,
}

impl SimGame {
    /// A game that was not read from a file, with no clock times and no result.
    pub fn new(start: Chess, chess960: bool, moves: Vec<Move>) -> SimGame {
        SimGame {
            number: 1,
            tags: Vec::new(),
            start,
            chess960,
            moves,
            clocks: None,
            result: Outcome::Unknown,
        }
    }

    /// The value of a tag pair.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags
            .iter()
            .find(|(tag, _)| tag == name)
            .map(|(_, value)| value.as_str())
    }

    /// How castling is written and judged in this game.
    pub fn castling_mode(&self) -> CastlingMode {
        CastlingMode::from_chess960(self.chess960)
    }

    /// The moves in UCI notation, castling as the game's mode writes it.
    pub fn uci(&self) -> Vec<String> {
        self.moves
            .iter()
            .map(|&m| UciMove::from_move(m, self.castling_mode()).to_string())
            .collect()
    }

    /// The position after the last move.
    pub fn last_position(&self) -> Chess {
        let mut position = self.start.clone();
        for &m in &self.moves {
            position.play_unchecked(m);
        }
        position
    }
}

/// Why a game cannot be played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgnError {
    /// The place of the game in its file, from 1.
    pub game: usize,
    pub kind: PgnErrorKind,
}

/// A ply is counted from White's first move, so that its number reads as in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PgnErrorKind {
    /// The FEN tag cannot be read, or its position cannot be played from.
    Start { fen: String, why: String },
    /// Another game than chess.
    Variant(String),
    /// A move of the main line that is not legal, or fits several men.
    Move { ply: usize, san: String },
    /// What stands where a move of the main line should, and is none.
    Unreadable { ply: usize, text: String },
    /// A comment or a variation that begins at this ply has no end.
    Unclosed { what: &'static str, ply: usize },
    /// The game goes on after its result.
    AfterResult { ply: usize, text: String },
    /// A line of the tag pairs that is none.
    Tag(String),
}

impl fmt::Display for PgnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "game {} of the PGN: ", self.game)?;
        match &self.kind {
            PgnErrorKind::Start { fen, why } => {
                write!(f, "cannot start from FEN \"{fen}\": {why}")
            }
            PgnErrorKind::Variant(variant) => {
                write!(
                    f,
                    "variant \"{variant}\" is not played here; only chess and Chess960 are"
                )
            }
            PgnErrorKind::Move { ply, san } => {
                write!(f, "{} {san} cannot be played", MoveNumber(*ply))
            }
            PgnErrorKind::Unreadable { ply, text } => {
                write!(f, "{} {text} cannot be read", MoveNumber(*ply))
            }
            PgnErrorKind::Unclosed { what, ply } => {
                write!(f, "a {what} at {} is never closed", MoveNumber(*ply))
            }
            PgnErrorKind::AfterResult { ply, text } => {
                write!(f, "{} {text} stands after the result", MoveNumber(*ply))
            }
            PgnErrorKind::Tag(line) => write!(f, "the tag pair {line} cannot be read"),
        }
    }
}

impl std::error::Error for PgnError {}

struct MoveNumber(usize);

impl fmt::Display for MoveNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dots = if self.0 % 2 == 1 { "." } else { "..." };
        write!(f, "{}{dots}", self.0.div_ceil(2))
    }
}

/// Reads every game of a PGN text; a game that cannot be played does not keep the others from being read.
pub fn read(pgn: &[u8]) -> Vec<Result<SimGame, PgnError>> {
    let text = String::from_utf8_lossy(pgn);
    let mut games = Vec::new();
    let mut reading: Option<Reading> = None;
    for (token, is_after_blank) in Tokens::new(&text) {
        if let Some(ended) = reading.take_if(|game| game.is_followed_by(&token, is_after_blank)) {
            games.push(ended.finish());
        }
        let game = reading.get_or_insert_with(|| Reading::new(games.len() + 1));
        game.take(token);
    }
    games.extend(reading.map(Reading::finish));
    games
}

/// A game while it is read.
struct Reading {
    number: usize,
    tags: Vec<(String, String)>,
    /// There was something else than tag pairs and comments.
    is_begun: bool,
    movetext: Option<Movetext>,
    failed: Option<PgnErrorKind>,
}

struct Movetext {
    game: SimGame,
    position: Chess,
    clocks: Vec<Option<Millis>>,
    /// How many variations are open.
    variations: usize,
    is_over: bool,
}

impl Reading {
    fn new(number: usize) -> Reading {
        Reading {
            number,
            tags: Vec::new(),
            is_begun: false,
            movetext: None,
            failed: None,
        }
    }

    /// Whether this is of the next game. Some files have games without tag pairs, and some have blank lines in the movetext.
    fn is_followed_by(&self, token: &Token<'_>, is_after_blank: bool) -> bool {
        let is_over = self.movetext.as_ref().is_some_and(|text| text.is_over);
        let is_open = self
            .movetext
            .as_ref()
            .is_some_and(|text| text.variations > 0);
        match token {
            Token::Tag { .. } | Token::BadTag(_) => self.is_begun,
            Token::Comment(_) | Token::OpenComment => false,
            token => {
                self.is_begun
                    && is_after_blank
                    && !is_open
                    && (is_over || *token == Token::Number("1"))
            }
        }
    }

    /// What comes after a fault is of no interest.
    fn take(&mut self, token: Token<'_>) {
        self.is_begun |= !matches!(
            token,
            Token::Tag { .. } | Token::BadTag(_) | Token::Comment(_)
        );
        if self.failed.is_none() {
            self.failed = self.read(token).err();
        }
    }

    fn read(&mut self, token: Token<'_>) -> Result<(), PgnErrorKind> {
        match token {
            Token::Tag { name, value } => self.tags.push((name.to_owned(), value)),
            Token::BadTag(line) => return Err(PgnErrorKind::Tag(quoted(line))),
            Token::Comment(comment) => {
                if let Some(text) = &mut self.movetext {
                    text.comment(comment);
                }
            }
            token => {
                let text = match &mut self.movetext {
                    Some(text) => text,
                    none => none.insert(Movetext::new(self.number, mem::take(&mut self.tags))?),
                };
                text.take(token)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<SimGame, PgnError> {
        let game = self.number;
        let finished = match (self.failed, self.movetext) {
            (Some(kind), _) => Err(kind),
            (None, Some(text)) => text.finish(),
            (None, None) => Movetext::new(game, self.tags).and_then(Movetext::finish),
        };
        finished.map_err(|kind| PgnError { game, kind })
    }
}

impl Movetext {
    fn new(number: usize, tags: Vec<(String, String)>) -> Result<Movetext, PgnErrorKind> {
        let (position, chess960) = start(&tags)?;
        let mut game = SimGame::new(position.clone(), chess960, Vec::new());
        game.number = number;
        game.tags = tags;
        Ok(Movetext {
            game,
            position,
            clocks: Vec::new(),
            variations: 0,
            is_over: false,
        })
    }

    fn take(&mut self, token: Token<'_>) -> Result<(), PgnErrorKind> {
        match token {
            Token::VariationBegins => self.variations += 1,
            Token::VariationEnds if self.variations > 0 => self.variations -= 1,
            Token::VariationEnds => return Err(self.unreadable(")")),
            Token::OpenComment => return Err(self.unclosed("comment")),
            // What else stands in a variation is not played.
            Token::Word(word) if self.variations == 0 => self.word(word)?,
            Token::Outcome(outcome) if self.variations == 0 => {
                self.game.result = outcome;
                self.is_over = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), PgnErrorKind> {
        let ply = self.ply();
        if self.is_over {
            let text = quoted(word);
            return Err(PgnErrorKind::AfterResult { ply, text });
        }
        let san = san(word).ok_or_else(|| self.unreadable(word))?;
        let unplayable = |_| PgnErrorKind::Move {
            ply,
            san: quoted(word),
        };
        let m = san.to_move(&self.position).map_err(unplayable)?;
        self.position.play_unchecked(m);
        self.game.moves.push(m);
        self.clocks.push(None);
        Ok(())
    }

    fn comment(&mut self, comment: &str) {
        if self.variations == 0
            && let (Some(last), Some(clock)) = (self.clocks.last_mut(), clock_command(comment))
        {
            *last = Some(clock);
        }
    }

    fn finish(self) -> Result<SimGame, PgnErrorKind> {
        if self.variations > 0 {
            return Err(self.unclosed("variation"));
        }
        let mut game = self.game;
        if self.clocks.iter().any(Option::is_some) {
            game.clocks = Some(self.clocks);
        }
        if game.result == Outcome::Unknown
            && let Some(Ok(result)) = game.tag("Result").map(str::parse)
        {
            game.result = result;
        }
        Ok(game)
    }

    /// Counted from the start position's own side to move.
    fn ply(&self) -> usize {
        self.game.moves.len() + 1 + usize::from(self.game.start.turn().is_black())
    }

    fn unreadable(&self, text: &str) -> PgnErrorKind {
        PgnErrorKind::Unreadable {
            ply: self.ply(),
            text: quoted(text),
        }
    }

    fn unclosed(&self, what: &'static str) -> PgnErrorKind {
        PgnErrorKind::Unclosed {
            what,
            ply: self.ply(),
        }
    }
}

fn quoted(text: &str) -> String {
    one_line(text, MOST_SHOWN)
}

/// Castling is written with noughts too, and with the dashes of a typesetter.
fn san(word: &str) -> Option<San> {
    let is_castling = word.starts_with(['0', 'O']);
    let read = match is_castling {
        true => word.replace('0', "O").replace(['–', '—'], "-").parse(),
        false => word.parse::<SanPlus>(),
    };
    read.ok().map(|plus| plus.san)
}

/// The start position that the tags ask for.
fn start(tags: &[(String, String)]) -> Result<(Chess, bool), PgnErrorKind> {
    let tag = |name: &str| {
        tags.iter()
            .find(|(tag, _)| tag == name)
            .map(|(_, value)| value.as_str())
    };
    let declared = match tag("Variant") {
        None => false,
        Some(variant) => {
            chess960_variant(variant).ok_or_else(|| PgnErrorKind::Variant(variant.to_owned()))?
        }
    };
    let Some(fen) = tag("FEN") else {
        return Ok((Chess::default(), declared));
    };
    let refused = |why: String| PgnErrorKind::Start {
        fen: fen.to_owned(),
        why,
    };
    let setup = Fen::from_ascii(fen.trim().as_bytes())
        .map_err(|error| refused(error.to_string()))?
        .into_setup();
    // Some files give a Chess960 start and no Variant tag; the castling rights show it.
    let chess960 = declared || CastlingMode::detect(&setup).is_chess960();
    // Composed and handicap positions may hold more men than a game can, or a check that no move gave: hands can play them.
    let start = setup
        .position(CastlingMode::from_chess960(chess960))
        .or_else(PositionError::ignore_too_much_material)
        .or_else(PositionError::ignore_impossible_check)
        .map_err(|error: PositionError<Chess>| refused(error.to_string()))?;
    Ok((start, chess960))
}

/// Whether a `Variant` tag means Chess960 (`true`), plain chess (`false`) or something else (`None`).
fn chess960_variant(variant: &str) -> Option<bool> {
    let plain: String = variant
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    match plain.as_str() {
        "" | "standard" | "chess" | "normal" | "fromposition" => Some(false),
        "chess960" | "960" | "fischerandom" | "fischerrandom" | "fischerrandomchess" => Some(true),
        _ => None,
    }
}

/// The time of a `[%clk H:MM:SS]` command in a comment; exporters wrap lines inside it.
fn clock_command(comment: &str) -> Option<Millis> {
    let rest = &comment[comment.find("[%clk")? + "[%clk".len()..];
    let time = rest[..rest.find(']')?].trim();
    let mut parts = time.split(':');
    let hours: u64 = parts.next()?.parse().ok()?;
    let minutes: u64 = parts.next()?.parse().ok()?;
    let seconds = parts.next()?;
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let whole: u64 = whole.parse().ok()?;
    let tenths: u64 = fraction.get(..1)?.parse().ok()?;
    if parts.next().is_some() || hours > 99 || minutes > 59 || whole > 59 {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + whole) * 1000 + tenths * 100)
}

/// Characters of the file that an error quotes.
const MOST_SHOWN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pgn: &str) -> Result<SimGame, PgnError> {
        let mut games = read(pgn.as_bytes());
        assert_eq!(games.len(), 1);
        games.remove(0)
    }

    #[test]
    fn moves_clocks_and_result_are_read() {
        let game = one("[White \"A\"]\n[Result \"1-0\"]\n\n1. e4 {[%clk 0:05:03]} (1. d4 d5) e5 {[%clk\n00:15:01.5] [%emt 00:00:02]} 2. Nf3 $1 1-0\n").unwrap();
        assert_eq!(game.uci(), ["e2e4", "e7e5", "g1f3"]);
        assert_eq!(game.clocks, Some(vec![Some(303_000), Some(901_500), None]));
        assert_eq!(game.result.to_string(), "1-0");
        assert_eq!(game.tag("White"), Some("A"));
    }

    #[test]
    fn the_second_game_is_named_when_it_is_wrong() {
        let games =
            read(b"1. e4 *\n\n[Event \"x\"]\n\n1. e4 e5 2. Ke3 *\n\n[Event \"y\"]\n\n1. d4 *\n");
        assert_eq!(games.len(), 3);
        let error = games[1].clone().unwrap_err();
        assert_eq!(
            error.to_string(),
            "game 2 of the PGN: 2. Ke3 cannot be played"
        );
        assert!(games[2].is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_named_and_no_other_game_is_played() {
        for (pgn, what) in [
            ("1. Sf3 Sf6 2. c4 c5 1-0", "1. Sf3 cannot be read"),
            ("1. e4 e5 2. Nf33 Nc6", "2. Nf33 cannot be read"),
            ("1. e4 e5 2. Nf3 N", "2... N cannot be read"),
            ("1. e4 e5 1/2-", "2. 1/2- cannot be read"),
            ("1. e4 ♞f6 *", "1... ♞f6 cannot be read"),
            ("1. e4 e5+- Nf3 *", "1... e5+- cannot be read"),
            ("1. e4 e5) 2. Nf3", "2. ) cannot be read"),
            ("1. e4 e5 2. -- *", "2. -- cannot be played"),
            ("1. e4 {the best e5", "a comment at 1... is never closed"),
            ("1. e4 (1. d4 d5 1-0", "a variation at 1... is never closed"),
            ("1. e4 1-0 e5", "1... e5 stands after the result"),
            (
                "[White \"A]\n[Black \"B\"]\n\n1. e4 *",
                "the tag pair [White \"A] cannot be read",
            ),
        ] {
            let error = one(pgn).unwrap_err();
            assert_eq!(error.to_string(), format!("game 1 of the PGN: {what}"));
        }
        let latin: &[u8] = b"1. e4 \xce-\xce *";
        assert!(read(latin)[0].is_err());
    }

    #[test]
    fn a_game_ends_with_its_result_or_before_tags_or_the_number_one() {
        let games = read(b"1. e4\n\n1. d4 d5\n\n2. c4 *\n\nc4 {x} 1-0 {resigns}\n\n[White \"A\"]\n\n\n{y} 1. Nf3 (1. a3\n\n1. a4)\n[White \"B\"]\n\n*\n");
        let read: Vec<_> = games
            .iter()
            .map(|game| {
                let game = game.as_ref().unwrap();
                (game.tag("White").unwrap_or_default(), game.uci().join(" "))
            })
            .collect();
        let expected = [
            ("", "e2e4"),
            ("", "d2d4 d7d5 c2c4"),
            ("", "c2c4"),
            ("A", "g1f3"),
            ("B", ""),
        ];
        assert_eq!(
            read,
            expected.map(|(white, moves)| (white, moves.to_owned()))
        );
    }

    #[test]
    fn a_long_tag_pair_is_read() {
        let name = "x".repeat(3_000_000);
        let game = one(&format!("[White \"{name}\"]\n\n1. e4 *\n")).unwrap();
        assert_eq!(game.tag("White"), Some(&*name));
    }

    #[test]
    fn starts_from_a_fen_and_refuses_a_broken_one() {
        let game = one("[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 0 1\"]\n\n1... Kd7 2. e4 *\n").unwrap();
        assert_eq!(game.uci(), ["e8d7", "e2e4"]);
        let error = one("[FEN \"4k3/9/8 w\"]\n\n1. e4 *\n").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("game 1 of the PGN: cannot start from FEN"),
            "{error}"
        );
        let error = one("[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 0 1\"]\n\n1... Kd1 *\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "game 1 of the PGN: 1... Kd1 cannot be played"
        );
    }

    #[test]
    fn chess960_is_known_by_its_tag_or_its_rights() {
        let game = one("[Variant \"chess 960\"]\n[FEN \"bqnbrkrn/pppppppp/8/8/8/8/PPPPPPPP/BQNBRKRN w KQkq - 0 1\"]\n\n*\n").unwrap();
        assert!(game.chess960);
        let game = one("[FEN \"bqnbrkrn/pppppppp/8/8/8/8/PPPPPPPP/BQNBRKRN w GEge - 0 1\"]\n\n*\n")
            .unwrap();
        assert!(game.chess960);
        let error = one("[Variant \"Antichess\"]\n\n1. e3 *\n").unwrap_err();
        assert_eq!(error.kind, PgnErrorKind::Variant("Antichess".to_owned()));
    }

    #[test]
    fn odd_clock_commands_are_no_time() {
        for comment in [
            "",
            "[%clk",
            "[%clk ]",
            "[%clk 1:2]",
            "[%clk 0:61:00]",
            "[%clk 0:00:00:00]",
            "[%clk a:b:c]",
            "[%clk 0:00:1.]",
        ] {
            assert_eq!(clock_command(comment), None, "{comment}");
        }
    }
}
