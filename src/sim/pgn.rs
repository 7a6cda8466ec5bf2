//! Games to play, read from PGN.
//!
//! Only the main line, the clock times and the result are of interest to a pair of hands; variations and glyphs are passed over.

use std::fmt;
use std::ops::ControlFlow;

use pgn_reader::{RawComment, RawTag, Reader, SanPlus, Visitor};
use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Chess, Move, Outcome, Position, PositionError};

use crate::Millis;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PgnErrorKind {
    /// The FEN tag cannot be read, or its position cannot be played from.
    Start { fen: String, why: String },
    /// Another game than chess.
    Variant(String),
    /// A move of the main line that is not legal, or fits several men.
    Move { ply: usize, san: String },
    /// The file breaks off or is no PGN.
    Syntax(String),
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
            PgnErrorKind::Move { ply, san } => write!(
                f,
                "{}{} {san} cannot be played",
                ply.div_ceil(2),
                if ply % 2 == 1 { "." } else { "..." }
            ),
            PgnErrorKind::Syntax(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for PgnError {}

/// Reads every game of a PGN text; a game that cannot be played does not keep the others from being read.
pub fn read(pgn: &[u8]) -> Vec<Result<SimGame, PgnError>> {
    let mut reader = Reader::new(pgn);
    let mut visitor = GameVisitor { number: 0 };
    let mut games = Vec::new();
    loop {
        match reader.read_game(&mut visitor) {
            Ok(Some(game)) => games.push(game),
            Ok(None) => return games,
            Err(error) => {
                games.push(Err(PgnError {
                    game: visitor.number.max(1),
                    kind: PgnErrorKind::Syntax(error.to_string()),
                }));
                return games;
            }
        }
    }
}

struct GameVisitor {
    number: usize,
}

struct Movetext {
    game: SimGame,
    position: Chess,
    clocks: Vec<Option<Millis>>,
}

impl Visitor for GameVisitor {
    type Tags = Vec<(String, String)>;
    type Movetext = Movetext;
    type Output = Result<SimGame, PgnError>;

    fn begin_tags(&mut self) -> ControlFlow<Self::Output, Self::Tags> {
        self.number += 1;
        ControlFlow::Continue(Vec::new())
    }

    fn tag(
        &mut self,
        tags: &mut Self::Tags,
        name: &[u8],
        value: RawTag<'_>,
    ) -> ControlFlow<Self::Output> {
        tags.push((
            String::from_utf8_lossy(name).into_owned(),
            value.decode_utf8_lossy().into_owned(),
        ));
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, tags: Self::Tags) -> ControlFlow<Self::Output, Self::Movetext> {
        match start(&tags) {
            Ok((start, chess960)) => {
                let mut game = SimGame::new(start.clone(), chess960, Vec::new());
                game.number = self.number;
                game.tags = tags;
                ControlFlow::Continue(Movetext {
                    game,
                    position: start,
                    clocks: Vec::new(),
                })
            }
            Err(kind) => ControlFlow::Break(Err(PgnError {
                game: self.number,
                kind,
            })),
        }
    }

    fn san(&mut self, text: &mut Self::Movetext, san: SanPlus) -> ControlFlow<Self::Output> {
        match san.san.to_move(&text.position) {
            Ok(m) => {
                text.position.play_unchecked(m);
                text.game.moves.push(m);
                text.clocks.push(None);
                ControlFlow::Continue(())
            }
            Err(_) => ControlFlow::Break(Err(PgnError {
                game: self.number,
                kind: PgnErrorKind::Move {
                    // Counted from the start position's own side to move, so that the number reads as in the file.
                    ply: text.game.moves.len() + 1 + usize::from(text.game.start.turn().is_black()),
                    san: san.to_string(),
                },
            })),
        }
    }

    fn comment(
        &mut self,
        text: &mut Self::Movetext,
        comment: RawComment<'_>,
    ) -> ControlFlow<Self::Output> {
        if let (Some(last), Some(clock)) =
            (text.clocks.last_mut(), clock_command(comment.as_bytes()))
        {
            *last = Some(clock);
        }
        ControlFlow::Continue(())
    }

    fn outcome(
        &mut self,
        text: &mut Self::Movetext,
        outcome: Outcome,
    ) -> ControlFlow<Self::Output> {
        text.game.result = outcome;
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, text: Self::Movetext) -> Self::Output {
        let mut game = text.game;
        if text.clocks.iter().any(Option::is_some) {
            game.clocks = Some(text.clocks);
        }
        if game.result == Outcome::Unknown
            && let Some(Ok(result)) = game.tag("Result").map(str::parse)
        {
            game.result = result;
        }
        Ok(game)
    }
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
fn clock_command(comment: &[u8]) -> Option<Millis> {
    let text = std::str::from_utf8(comment).ok()?;
    let rest = &text[text.find("[%clk")? + "[%clk".len()..];
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
            assert_eq!(clock_command(comment.as_bytes()), None, "{comment}");
        }
    }
}
