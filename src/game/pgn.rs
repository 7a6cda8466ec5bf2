//! Writes a game as PGN, in export format, so that every reader we know takes it without a complaint.
//!
//! Readers differ in what they forgive, so nothing needs forgiving here: the roster first and in its order, one blank line
//! between tags and moves and none elsewhere, lines under 80 columns that break only between tokens (one broken inside a clock
//! command is not understood everywhere), values without quotes and backslashes, the result as the tag has it.
//!
//! A move that the Laws do not know, but which stands because nobody objected (Appendix A.5.2), is no PGN move, and a reader that
//! meets one drops the whole game and its result with it. So the text stops before it and goes on from the position after it, as a
//! second game with the same tags. Each of the two carries the result.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use shakmaty::san::{San, SanPlus};
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Color, File, Rank, Setup};

use super::snapshot::{Move, Snapshot};
use super::{Doubt, MoveState, Phase, ResultState};
use crate::clock::control::TimeControl;
use crate::command::Player;
use crate::laws::Side;
use crate::laws::position::Position;

/// What the roster needs and a game does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PgnTags {
    /// The name of the event for people.
    pub event: Option<String>,
    /// `City CCC`, with the country's code.
    pub site: Option<String>,
    /// `2027.04.02`, where the game is played. Without it the day in `started_at` is taken.
    pub date: Option<String>,
    /// When it is written, RFC 3339 in UTC; none where the wall clock is not to be trusted, and no time of day is told then.
    pub now: Option<String>,
}

/// For whom a game is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For those who follow it: only final moves, since a receiver keeps a wrong one as a variation for ever; the clocks in tags
    /// while the game runs.
    Live,
    /// For keeping: all moves, the time spent on each, and comments where the board left a doubt.
    Archive,
}

/// The game as PGN: one game, or more where an accepted illegal move divides it. Ends with a line feed; whoever joins games puts
/// one blank line between them.
pub fn write(game: &Snapshot, tags: &PgnTags, scope: Scope) -> String {
    let parts = parts(game, scope);
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        write_tags(&mut text, game, tags, scope, part, index);
        text.push('\n');
        write_movetext(&mut text, part, result(game));
    }
    text
}

/// A stretch of the game that PGN can tell: legal moves from a position.
struct Part {
    start: Position,
    /// Comments before the first move.
    before: Vec<String>,
    plies: Vec<Ply>,
    /// Comment behind the last move.
    after: Option<String>,
}

struct Ply {
    number: NonZeroU32,
    color: Color,
    san: String,
    comment: Option<String>,
}

fn parts(game: &Snapshot, scope: Scope) -> Vec<Part> {
    let Some(mut position) = self::position(game, &game.start_fen) else {
        // Nothing can be played from an unknown position, but the tags and the result can be told.
        let start = self::position(game, &game.fen).unwrap_or(Position::initial());
        return vec![Part::new(start)];
    };

    let mut done = Vec::new();
    let mut part = Part::new(position.clone());
    for (index, m) in game.moves.iter().enumerate() {
        if scope == Scope::Live && m.state == MoveState::Provisional {
            break;
        }
        let (number, color) = (position.setup().fullmoves, position.turn());
        if m.doubt != Some(Doubt::IllegalAccepted)
            && let Some((next, san)) = play(&position, m)
        {
            position = next;
            part.plies.push(Ply {
                number,
                color,
                san,
                comment: comment(m, scope),
            });
            continue;
        }

        // The record itself knows the position after its last move.
        let next = if index + 1 == game.moves.len() {
            self::position(game, &game.fen)
        } else {
            displace(&position, m)
        };
        let note = (scope == Scope::Archive).then(|| {
            let uci = m.uci.parse::<UciMove>();
            format!(
                "{number}{} {} is no legal move but stands",
                if color.is_white() { "." } else { "..." },
                uci.map_or("the next move".to_owned(), |uci| uci.to_string()),
            )
        });
        let Some(next) = next else {
            part.after = note.map(|note| note + "; the rest is left out");
            break;
        };
        position = next.clone();
        let mut following = Part::new(next);
        if part.plies.is_empty() {
            // A game without moves would only puzzle: the next one takes its place.
            following.before = part.before.into_iter().chain(note).collect();
        } else {
            part.after = note.map(|note| note + "; see the next game");
            done.push(part);
        }
        part = following;
    }
    done.push(part);
    done
}

impl Part {
    fn new(start: Position) -> Part {
        Part {
            start,
            before: Vec::new(),
            plies: Vec::new(),
            after: None,
        }
    }
}

/// The position after a move that PGN can tell, and its SAN; none where the move cannot be played, or not be written.
///
/// After an accepted illegal move the side that is not to move may be in check, which no move generator takes; whether the move is
/// legal is then for the record to say, and it must have said so in SAN.
fn play(position: &Position, m: &Move) -> Option<(Position, String)> {
    let mv = position.parse_uci(&m.uci, true)?;
    let san = if position.legal().is_some() {
        position.is_playable(mv).then(|| position.san(mv))?
    } else {
        SanPlus::from_ascii(m.san.as_bytes())
            .ok()
            .filter(|san| !matches!(san.san, San::Null | San::Put { .. }))?;
        m.san.clone()
    };
    let next = position.play(mv);
    has_kings(&next).then_some((next, san))
}

/// The position after a move by piece geometry alone, whatever the Laws say of it. The count for the 50 moves starts anew.
fn displace(position: &Position, m: &Move) -> Option<Position> {
    let mv = position.parse_uci(&m.uci, true)?;
    let setup = Setup {
        halfmoves: 0,
        ..position.play(mv).setup()
    };
    let next = Position::from_setup(setup, position.castling_mode());
    has_kings(&next).then_some(next)
}

/// The comment behind a move. What was spent on it and what was doubtful is for the archive.
fn comment(m: &Move, scope: Scope) -> Option<String> {
    let mut words = Vec::new();
    if let Some(time) = m.clk_ms.and_then(remaining) {
        words.push(format!("[%clk {time}]"));
    }
    if scope == Scope::Archive {
        if let Some(ms) = m.emt_ms {
            words.push(format!("[%emt {}]", hms(ms)));
        }
        match m.doubt {
            Some(Doubt::Ambiguous) => words.push("not certain".to_owned()),
            Some(Doubt::Gap) => words.push("not seen".to_owned()),
            Some(Doubt::PromotionUnseen) => words.push("piece not seen".to_owned()),
            Some(Doubt::IllegalAccepted) | None => {}
        }
    }
    (!words.is_empty()).then(|| words.join(" "))
}

fn write_tags(
    text: &mut String,
    game: &Snapshot,
    tags: &PgnTags,
    scope: Scope,
    part: &Part,
    index: usize,
) {
    let result = result(game);
    let is_over = result != UNFINISHED || game.phase == Phase::Ended;
    let mut tag = |name: &str, value: &str| {
        text.push_str(&format!("[{name} \"{value}\"]\n"));
    };

    tag(
        "Event",
        &value(tags.event.as_deref()).unwrap_or(UNKNOWN.to_owned()),
    );
    tag(
        "Site",
        &value(tags.site.as_deref()).unwrap_or(UNKNOWN.to_owned()),
    );
    tag("Date", &date(game, tags));
    tag("Round", &round(game));
    tag("White", &name(&game.white, game));
    tag("Black", &name(&game.black, game));
    tag("Result", result);

    let mut others = BTreeMap::new();
    for (side, player) in [("White", &game.white), ("Black", &game.black)] {
        others.insert(format!("{side}Title"), value(player.title.as_deref()));
        others.insert(format!("{side}Team"), value(player.team.as_deref()));
        others.insert(
            format!("{side}Elo"),
            player.elo.filter(|&elo| elo > 0).map(|elo| elo.to_string()),
        );
        others.insert(
            format!("{side}FideId"),
            player.fide_id.map(|id| id.to_string()),
        );
    }
    let mut other = |name: &str, value: Option<String>| {
        others.insert(name.to_owned(), value);
    };

    other("Board", value(game.board.as_deref()));
    // Two games with the same id would be one game to a receiver.
    other(
        "GameId",
        value(Some(&game.game)).map(|id| match index {
            0 => id,
            _ => format!("{id}-{}", index + 1),
        }),
    );
    if let Some(control) = &game.time_control {
        match control.parse::<TimeControl>() {
            Ok(control) => {
                other("TimeControl", Some(control.without_delay().to_string()));
                other("ClockMode", control.mode());
            }
            Err(_) => other("TimeControl", Some(UNKNOWN.to_owned())),
        }
    }
    if game.chess960 {
        other("Variant", Some("Chess960".to_owned()));
    }
    if game.chess960 || part.start != Position::initial() {
        other("SetUp", Some("1".to_owned()));
        other("FEN", Some(fen(&part.start)));
    }
    // A time that nobody is sure of is none.
    let started = game.started_at.as_deref().filter(|_| tags.now.is_some());
    if let Some((date, time)) = started.and_then(utc) {
        other("UTCDate", Some(date));
        other("UTCTime", Some(time));
    }
    // PGN has four results; other scores, such as a game that both have lost, stand in tags of their own.
    if result == UNFINISHED
        && game.result_state != Some(ResultState::Proposed)
        && let Some((white, black)) = game.result.split_once('-')
        && let (Some(white), Some(black)) = (score(white), score(black))
    {
        other("WhiteScore", Some(white.to_owned()));
        other("BlackScore", Some(black.to_owned()));
    }

    if is_over || scope == Scope::Archive {
        let termination = value(game.termination.as_deref())
            .filter(|_| game.result_state != Some(ResultState::Proposed))
            .or((result == UNFINISHED).then(|| "unterminated".to_owned()));
        other("Termination", termination);
        other("PlyCount", Some(part.plies.len().to_string()));
    } else {
        other("WhiteClock", game.white_clock_ms.and_then(remaining));
        other("BlackClock", game.black_clock_ms.and_then(remaining));
        let clocks = game.white_clock_ms.is_some() || game.black_clock_ms.is_some();
        let now = tags.now.as_deref().filter(|now| utc(now).is_some());
        if let Some(now) = now.filter(|_| clocks) {
            let running = match (game.phase, to_move(game)) {
                (Phase::Playing, Side::White) => "W",
                (Phase::Playing, Side::Black) => "B",
                _ => "N",
            };
            other("ReferenceTime", value(Some(&format!("{running}/{now}"))));
        }
    }

    for (name, value) in others {
        if let Some(value) = value {
            tag(&name, &value);
        }
    }
}

fn write_movetext(text: &mut String, part: &Part, result: &str) {
    let mut tokens: Vec<String> = Vec::new();
    for comment in &part.before {
        tokens.push(format!("{{{comment}}}"));
    }
    // Black's move needs its number where no white one stands right before it.
    let mut needs_number = true;
    for ply in &part.plies {
        tokens.push(match ply.color {
            Color::White => format!("{}. {}", ply.number, ply.san),
            Color::Black if needs_number => format!("{}... {}", ply.number, ply.san),
            Color::Black => ply.san.clone(),
        });
        needs_number = ply.color.is_black();
        if let Some(comment) = &ply.comment {
            tokens.push(format!("{{{comment}}}"));
            needs_number = true;
        }
    }
    if let Some(comment) = &part.after {
        tokens.push(format!("{{{comment}}}"));
    }
    tokens.push(result.to_owned());

    let mut column = 0;
    for token in tokens {
        let width = token.chars().count();
        if column > 0 && column + 1 + width >= LINE {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(&token);
        column += width;
    }
    text.push('\n');
}

/// The result as PGN knows it. One that is only proposed is none yet.
fn result(game: &Snapshot) -> &str {
    match game.result.as_str() {
        _ if game.result_state == Some(ResultState::Proposed) => UNFINISHED,
        result @ ("1-0" | "0-1" | "1/2-1/2") => result,
        _ => UNFINISHED,
    }
}

fn score(points: &str) -> Option<&str> {
    matches!(points, "0" | "1/2" | "1").then_some(points)
}

/// Who is to move after the last final move: his clock runs.
fn to_move(game: &Snapshot) -> Side {
    let provisional = game
        .moves
        .iter()
        .filter(|m| m.state == MoveState::Provisional)
        .count();
    match (game.turn, provisional % 2) {
        (side, 0) => side,
        (Side::White, _) => Side::Black,
        (Side::Black, _) => Side::White,
    }
}

/// A name that receivers take for one: Lichess drops games in which a side has none.
fn name(player: &Player, game: &Snapshot) -> String {
    value(player.name.as_deref())
        .filter(|name| name.chars().count() > 1 && !name.eq_ignore_ascii_case("unknown"))
        .or_else(|| {
            value(Some(&format!(
                "NN Board {}",
                game.board.as_deref().unwrap_or(&game.table)
            )))
        })
        .unwrap_or("NN".to_owned())
}

/// `3.12` where round and board are both known: so LiveChess writes it and Lichess reads it.
fn round(game: &Snapshot) -> String {
    let round = value(game.round.as_deref());
    let board = value(game.board.as_deref())
        .filter(|board| board.bytes().all(|byte| byte.is_ascii_digit()));
    match (round, board) {
        (Some(round), Some(board)) if round.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{round}.{board}")
        }
        (Some(round), _) => round,
        (None, _) => UNKNOWN.to_owned(),
    }
}

fn date(game: &Snapshot, tags: &PgnTags) -> String {
    let given = tags.date.as_deref().map(|date| date.replace('-', "."));
    let started = || {
        let day = game.started_at.as_deref()?.get(..10)?;
        Some(day.replace('-', "."))
    };
    given
        .filter(|date| is_date(date))
        .or_else(|| started().filter(|date| is_date(date)))
        .unwrap_or("????.??.??".to_owned())
}

fn is_date(date: &str) -> bool {
    date.len() == 10
        && date.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'.',
            _ => byte.is_ascii_digit() || byte == b'?',
        })
}

/// Date and time of an RFC 3339 time in UTC, as PGN writes them.
fn utc(at: &str) -> Option<(String, String)> {
    let (day, time) = at.strip_suffix('Z')?.split_once('T')?;
    let day = day.replace('-', ".");
    let time = time.get(..8)?;
    let is_time = time.bytes().enumerate().all(|(index, byte)| match index {
        2 | 5 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    (is_date(&day) && is_time).then(|| (day, time.to_owned()))
}

/// A tag value that no reader stumbles over: PGN's escapes are not undone everywhere, so there is nothing to escape.
fn value(text: Option<&str>) -> Option<String> {
    let plain: String = text?
        .chars()
        .filter_map(|char| match char {
            '"' => Some('\''),
            '\\' => Some('/'),
            // Marks without width: joiners, direction, byte order.
            '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}' => None,
            char if char.is_whitespace() || char.is_control() => Some(' '),
            char => Some(char),
        })
        .collect();
    let words: Vec<&str> = plain.split(' ').filter(|word| !word.is_empty()).collect();
    let short: String = words.join(" ").chars().take(VALUE).collect();
    let short = short.trim_end();
    (!short.is_empty() && short != UNKNOWN).then(|| short.to_owned())
}

/// Time left on a clock. None at zero, which readers take for a clock that was never read.
fn remaining(ms: u64) -> Option<String> {
    (ms >= 1000).then(|| hms(ms))
}

fn hms(ms: u64) -> String {
    let seconds = ms / 1000;
    format!(
        "{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// The position of a FEN of this game, if it is one that readers set up.
fn position(game: &Snapshot, fen: &str) -> Option<Position> {
    Position::from_fen(fen, game.chess960)
        .ok()
        .filter(has_kings)
}

/// Readers set up positions of many kinds, but none without one king each.
fn has_kings(position: &Position) -> bool {
    Color::ALL
        .iter()
        .all(|color| position.board().king_of(*color).is_some())
}

/// A FEN with Shredder's castling rights (`HAha`) in Chess960, since X-FEN's `KQkq` leaves to the reader which rook is meant.
fn fen(position: &Position) -> String {
    let setup = position.setup();
    let mut rights = String::new();
    for color in Color::ALL {
        let back_rank = color.fold_wb(Rank::First, Rank::Eighth);
        for rook in (setup.castling_rights & back_rank).into_iter().rev() {
            let letter = match position.castling_mode() {
                CastlingMode::Chess960 => rook.file().char(),
                CastlingMode::Standard if rook.file() == File::H => 'k',
                CastlingMode::Standard => 'q',
            };
            rights.push(color.fold_wb(letter.to_ascii_uppercase(), letter));
        }
    }
    if rights.is_empty() {
        rights.push('-');
    }
    format!(
        "{} {} {rights} {} {} {}",
        setup.board,
        setup.turn.char(),
        setup
            .ep_square
            .map_or("-".to_owned(), |square| square.to_string()),
        setup.halfmoves,
        setup.fullmoves,
    )
}

const UNFINISHED: &str = "*";
const UNKNOWN: &str = "?";

/// Lines are shorter than this.
const LINE: usize = 80;

/// A value is at most this long, in characters: Lichess's editor takes no more.
const VALUE: usize = 140;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::game::CompletedBy;

    const ARRAY: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    fn game(start_fen: &str, moves: &[&str]) -> Snapshot {
        Snapshot {
            game: "r3-b12".into(),
            rev: 1,
            table: "12".into(),
            phase: Phase::Playing,
            ruleset: "fide-2023".into(),
            variant: "standard".into(),
            supervised: true,
            start_fen: start_fen.into(),
            chess960: false,
            fen: start_fen.into(),
            turn: if moves.len().is_multiple_of(2) {
                Side::White
            } else {
                Side::Black
            },
            moves: moves
                .iter()
                .zip(1..)
                .map(|(uci, ply)| Move {
                    ply,
                    uci: (*uci).into(),
                    san: "?".into(),
                    state: MoveState::Final,
                    by: Some(CompletedBy::Press),
                    clk_ms: None,
                    emt_ms: None,
                    doubt: None,
                    alternatives: Vec::new(),
                })
                .collect(),
            round: Some("3".into()),
            board: Some("12".into()),
            white: named("Alpha, Anna"),
            black: named("Beta, Bo"),
            time_control: Some("40/5400+30:1800+30".into()),
            started_at: Some("2027-04-02T13:00:00Z".into()),
            last_move_at: None,
            ended_at: None,
            white_clock_ms: None,
            black_clock_ms: None,
            result: "*".into(),
            result_by: None,
            result_state: None,
            termination: None,
            reason: None,
            in_sync: true,
        }
    }

    fn named(name: &str) -> Player {
        Player {
            name: Some(name.into()),
            ..Player::default()
        }
    }

    fn ended(mut game: Snapshot, result: &str, termination: &str) -> Snapshot {
        game.phase = Phase::Ended;
        game.result = result.into();
        game.result_state = Some(ResultState::Set);
        game.termination = Some(termination.into());
        game
    }

    fn tags() -> PgnTags {
        PgnTags {
            event: Some("Spring Open".into()),
            site: Some("Brno CZE".into()),
            date: Some("2027.04.02".into()),
            now: Some("2027-04-02T13:04:12.318Z".into()),
        }
    }

    /// The movetext of each game in the text, lines joined.
    fn movetext(text: &str) -> Vec<String> {
        text.split("\n\n")
            .filter(|block| !block.starts_with('['))
            .map(|block| block.trim_end().replace('\n', " "))
            .collect()
    }

    fn tag<'t>(text: &'t str, name: &str) -> Option<&'t str> {
        text.lines().find_map(|line| {
            line.strip_prefix(&format!("[{name} \""))?
                .strip_suffix("\"]")
        })
    }

    #[test]
    fn writes_a_running_game() {
        let mut game = game(ARRAY, &["e2e4", "e7e5", "g1f3", "b8c6"]);
        for (m, clk_ms) in game.moves.iter_mut().zip([5_412_900, 5_395_000, 5_430_000]) {
            m.clk_ms = Some(clk_ms);
            m.emt_ms = Some(8_000);
        }
        game.moves[3].state = MoveState::Provisional;
        game.white.elo = Some(2412);
        game.white.fide_id = Some(333111);
        game.white.title = Some("WIM".into());
        game.black.team = Some("Beta Club".into());
        game.white_clock_ms = Some(5_430_000);
        game.black_clock_ms = Some(5_395_400);
        let expected = "\
[Event \"Spring Open\"]
[Site \"Brno CZE\"]
[Date \"2027.04.02\"]
[Round \"3.12\"]
[White \"Alpha, Anna\"]
[Black \"Beta, Bo\"]
[Result \"*\"]
[BlackClock \"1:29:55\"]
[BlackTeam \"Beta Club\"]
[Board \"12\"]
[GameId \"r3-b12\"]
[ReferenceTime \"B/2027-04-02T13:04:12.318Z\"]
[TimeControl \"40/5400+30:1800+30\"]
[UTCDate \"2027.04.02\"]
[UTCTime \"13:00:00\"]
[WhiteClock \"1:30:30\"]
[WhiteElo \"2412\"]
[WhiteFideId \"333111\"]
[WhiteTitle \"WIM\"]

1. e4 {[%clk 1:30:12]} 1... e5 {[%clk 1:29:55]} 2. Nf3 {[%clk 1:30:30]} *
";
        assert_eq!(write(&game, &tags(), Scope::Live), expected);
    }

    #[test]
    fn writes_a_finished_game_with_all_that_is_known() {
        let mut game = ended(
            game(ARRAY, &["f2f3", "e7e5", "g2g4", "d8h4"]),
            "0-1",
            "normal",
        );
        game.white_clock_ms = Some(5_430_000);
        game.moves[1].emt_ms = Some(61_500);
        game.moves[2].doubt = Some(Doubt::Gap);
        game.moves[3].clk_ms = Some(900);
        let text = write(&game, &tags(), Scope::Archive);
        assert_eq!(tag(&text, "Termination"), Some("normal"));
        assert_eq!(tag(&text, "PlyCount"), Some("4"));
        assert_eq!(tag(&text, "WhiteClock"), None);
        assert_eq!(
            movetext(&text),
            ["1. f3 e5 {[%emt 0:01:01]} 2. g4 {not seen} 2... Qh4# 0-1"]
        );
        let text = write(&game, &tags(), Scope::Live);
        assert_eq!(tag(&text, "Termination"), Some("normal"));
        assert_eq!(tag(&text, "WhiteClock"), None);
        assert_eq!(movetext(&text), ["1. f3 e5 2. g4 Qh4# 0-1"]);
    }

    #[test]
    fn an_empty_game_is_tags_and_a_star() {
        let mut game = game(ARRAY, &[]);
        game.white = Player::default();
        game.black = named(" ? ");
        game.board = None;
        game.round = None;
        game.time_control = None;
        game.started_at = None;
        let text = write(&game, &PgnTags::default(), Scope::Live);
        assert_eq!(
            text,
            "[Event \"?\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"?\"]\n\
             [White \"NN Board 12\"]\n[Black \"NN Board 12\"]\n[Result \"*\"]\n\
             [GameId \"r3-b12\"]\n\n*\n"
        );
    }

    #[test]
    fn the_start_of_another_position_is_told() {
        let fen = "4k3/8/8/8/4P3/8/8/4K3 b - e3 3 17";
        let text = write(&game(fen, &["e8d7", "e4e5"]), &tags(), Scope::Live);
        assert_eq!(tag(&text, "SetUp"), Some("1"));
        // No pawn could take it.
        assert_eq!(tag(&text, "FEN"), Some("4k3/8/8/8/4P3/8/8/4K3 b - - 3 17"));
        assert_eq!(movetext(&text), ["17... Kd7 18. e5 *"]);
        assert_eq!(tag(&text, "Variant"), None);
    }

    #[test]
    fn chess960_castles_by_rook_files() {
        let fen = "nrbkrqbn/pppppppp/8/8/8/8/PPPPPPPP/1R1K1R2 w KQkq - 0 1";
        let mut game = game(fen, &["d1f1"]);
        game.chess960 = true;
        let text = write(&game, &tags(), Scope::Live);
        assert_eq!(tag(&text, "Variant"), Some("Chess960"));
        assert_eq!(
            tag(&text, "FEN"),
            Some("nrbkrqbn/pppppppp/8/8/8/8/PPPPPPPP/1R1K1R2 w FBeb - 0 1")
        );
        assert_eq!(movetext(&text), ["1. O-O *"]);

        // Also from the usual array: without the FEN a reader would take it for standard chess.
        game.start_fen = ARRAY.into();
        game.moves.clear();
        let text = write(&game, &tags(), Scope::Live);
        assert_eq!(
            tag(&text, "FEN"),
            Some("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w HAha - 0 1")
        );
    }

    /// Case M1: White leaves his king in check, Black castles, nobody objects.
    fn illegal_accepted() -> Snapshot {
        let fen = "r1bqk2r/pppp1ppp/2n2n2/4p3/1bB1P3/3P1N2/PPP2PPP/RNBQK2R w KQkq - 1 5";
        let mut game = game(
            fen,
            &["c2c3", "b4a5", "b2b4", "a5b6", "e1d3", "e8g8", "d3e2"],
        );
        game.moves[4].doubt = Some(Doubt::IllegalAccepted);
        game.moves[5].san = "O-O".into();
        ended(game, "1-0", "normal")
    }

    #[test]
    fn an_accepted_illegal_move_divides_the_game() {
        let text = write(&illegal_accepted(), &tags(), Scope::Archive);
        assert_eq!(
            movetext(&text),
            [
                "5. c3 Ba5 6. b4 Bb6 {7. e1d3 is no legal move but stands; see the next \
                 game} 1-0",
                "7... O-O 8. Ke2 1-0",
            ]
        );
        let second = text.rsplit("[Event ").next().expect("two games");
        assert_eq!(tag(second, "SetUp"), Some("1"));
        assert_eq!(
            tag(second, "FEN"),
            Some("r1bqk2r/pppp1ppp/1bn2n2/4p3/1PB1P3/2PK1N2/P4PPP/RNBQ3R b kq - 0 7")
        );
        assert_eq!(tag(second, "Result"), Some("1-0"));
        assert_eq!(tag(second, "GameId"), Some("r3-b12-2"));
        assert!(!write(&illegal_accepted(), &tags(), Scope::Live).contains('{'));
    }

    #[test]
    fn a_king_left_in_check_goes_on_by_the_record() {
        let fen = "r1bqk2r/pppp1ppp/2n2n2/4p3/1bB1P3/3P1N2/PPP2PPP/RNBQK2R w KQkq - 1 5";
        let mut game = game(fen, &["f3d4", "e8g8", "c2c3", "b4e7"]);
        game.moves[0].doubt = Some(Doubt::IllegalAccepted);
        game.moves[1].san = "O-O".into();
        let text = write(&game, &tags(), Scope::Archive);
        assert_eq!(
            movetext(&text),
            ["{5. f3d4 is no legal move but stands} 5... O-O 6. c3 Be7 *"]
        );
    }

    #[test]
    fn an_illegal_move_at_the_end_leaves_the_position() {
        let after = "rnbqkbnr/pppp1ppp/8/4p3/4P3/4N3/PPPP1PPP/RNBQKB1R b KQkq - 0 2";
        let mut game = game(ARRAY, &["e2e4", "e7e5", "g1e3"]);
        game.fen = after.into();
        game.moves[2].doubt = Some(Doubt::IllegalAccepted);
        let text = write(
            &ended(game, "0-1", "rules infraction"),
            &tags(),
            Scope::Live,
        );
        assert_eq!(movetext(&text), ["1. e4 e5 0-1", "0-1"]);
        assert_eq!(text.matches(after).count(), 1);
    }

    #[test]
    fn a_captured_king_ends_the_moves_but_not_the_result() {
        let mut game = game(ARRAY, &["e2e4", "d1e8", "a7a6"]);
        game.moves[1].doubt = Some(Doubt::IllegalAccepted);
        let text = write(&ended(game, "1-0", "normal"), &tags(), Scope::Archive);
        assert_eq!(
            movetext(&text),
            ["1. e4 {1... d1e8 is no legal move but stands; the rest is left out} 1-0"]
        );
    }

    #[test]
    fn castling_through_check_or_without_the_right_is_castling_all_the_same() {
        for rights in ["KQ", "-"] {
            let fen = format!("4k3/8/b7/8/8/8/8/R3K2R w {rights} - 0 1");
            let mut game = game(&fen, &["e1g1", "a6f1"]);
            game.moves[0].doubt = Some(Doubt::IllegalAccepted);
            let text = write(&game, &tags(), Scope::Live);
            assert_eq!(tag(&text, "FEN"), Some("4k3/8/b7/8/8/8/8/R4RK1 b - - 0 1"));
            assert_eq!(movetext(&text), ["1... Bxf1 *"]);
        }
    }

    #[test]
    fn a_proposed_result_is_none_and_an_odd_one_has_its_own_tags() {
        let mut game = ended(game(ARRAY, &["e2e4"]), "1-0", "normal");
        game.result_state = Some(ResultState::Proposed);
        let text = write(&game, &tags(), Scope::Archive);
        assert_eq!(tag(&text, "Result"), Some("*"));
        assert_eq!(tag(&text, "Termination"), Some("unterminated"));
        assert_eq!(movetext(&text), ["1. e4 *"]);

        let text = write(
            &ended(game, "0-0", "rules infraction"),
            &tags(),
            Scope::Archive,
        );
        assert_eq!(tag(&text, "Result"), Some("*"));
        assert_eq!(tag(&text, "WhiteScore"), Some("0"));
        assert_eq!(tag(&text, "BlackScore"), Some("0"));
        assert_eq!(tag(&text, "Termination"), Some("rules infraction"));
    }

    #[test]
    fn values_need_no_escapes() {
        let mut game = game(ARRAY, &[]);
        game.white = named("Čapek \"Čap\",\r\n\tJan\\Jiří\u{202e}\u{0}");
        game.black = named(&"ž".repeat(200));
        game.time_control = Some("5400b30".into());
        let text = write(&game, &tags(), Scope::Live);
        assert_eq!(tag(&text, "White"), Some("Čapek 'Čap', Jan/Jiří"));
        assert_eq!(
            tag(&text, "Black").map(|name| name.chars().count()),
            Some(140)
        );
        assert_eq!(tag(&text, "TimeControl"), Some("5400"));
        assert_eq!(tag(&text, "ClockMode"), Some("bronstein 30"));

        game.time_control = Some("60 mins".into());
        let text = write(&game, &tags(), Scope::Live);
        assert_eq!(tag(&text, "TimeControl"), Some("?"));
    }

    #[test]
    fn no_line_is_long_or_breaks_a_comment() {
        let there_and_back = ["g1f3", "g8f6", "f3g1", "f6g8"];
        let moves: Vec<&str> = there_and_back.iter().cycle().copied().take(400).collect();
        let mut game = game(ARRAY, &moves);
        for m in &mut game.moves {
            m.clk_ms = Some(36_000_000);
            m.emt_ms = Some(36_000_000);
            m.doubt = Some(Doubt::PromotionUnseen);
        }
        let text = write(&game, &tags(), Scope::Archive);
        for line in text.lines().filter(|line| !line.starts_with('[')) {
            assert!(line.chars().count() < LINE, "{line}");
            assert_eq!(
                line.matches('{').count(),
                line.matches('}').count(),
                "{line}"
            );
        }
        assert_eq!(text.matches("\n\n").count(), 1);
    }

    #[test]
    fn longest_comment_fits_a_line() {
        let fen = "4k3/8/8/8/8/8/8/4K3 w - - 0 9999";
        let mut game = game(fen, &["e1e3", "a1a2q", "a1a1"]);
        for m in &mut game.moves {
            m.doubt = Some(Doubt::IllegalAccepted);
        }
        let text = write(&game, &tags(), Scope::Archive);
        assert!(text.contains("9999... a1a2q is no legal move"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() < LINE),
            "{text}"
        );
    }

    #[test]
    fn a_start_that_is_no_position_still_gives_the_result() {
        for fen in ["", "nonsense", "8/8/8/8/8/8/8/8 w - - 0 1"] {
            let game = ended(game(fen, &["e2e4"]), "1/2-1/2", "normal");
            let text = write(&game, &tags(), Scope::Archive);
            assert_eq!(movetext(&text), ["1/2-1/2"]);
            assert_eq!(tag(&text, "FEN"), None);
        }
    }

    #[test]
    fn the_date_is_that_of_the_place_if_it_is_told() {
        let mut game = game(ARRAY, &[]);
        let with = |game: &Snapshot, date: Option<&str>| {
            let tags = PgnTags {
                date: date.map(str::to_owned),
                ..PgnTags::default()
            };
            tag(&write(game, &tags, Scope::Live), "Date").map(str::to_owned)
        };
        assert_eq!(
            with(&game, Some("2027.04.??")).as_deref(),
            Some("2027.04.??")
        );
        assert_eq!(
            with(&game, Some("2027-04-03")).as_deref(),
            Some("2027.04.03")
        );
        assert_eq!(with(&game, Some("today")).as_deref(), Some("2027.04.02"));
        game.started_at = Some("é".into());
        assert_eq!(with(&game, None).as_deref(), Some("????.??.??"));
    }

    #[test]
    fn fens_come_back_the_same() {
        for fen in [
            ARRAY,
            "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b Kq e3 0 3",
            "8/8/8/8/8/4k3/8/4K2R w K - 12 80",
        ] {
            let parsed = Position::from_fen(fen, false).expect(fen);
            assert_eq!(super::fen(&parsed), fen);
        }
    }

    proptest! {
        /// Whatever the fields hold, the text has the shape of PGN and one result.
        #[test]
        fn any_text_in_a_field_leaves_the_shape(
            texts in prop::collection::vec("\\PC{0,30}|[\\x00-\\x7f]{0,30}|[-0-9:.TZ]{0,24}", 12),
            fen in prop_oneof![Just(ARRAY.to_owned()), Just("k7/8/8/8/8/8/8/7K b - - 4294967295 4294967295".to_owned()), ".{0,60}"],
            moves in prop::collection::vec(("[a-h][1-8][a-h][1-8][qn]?|.{0,6}", "[A-Ha-h1-8+#=xO-]{0,8}", any::<bool>()), 0..12),
            chess960: bool,
            live: bool,
        ) {
            let mut game = game(&fen, &moves.iter().map(|(uci, ..)| &uci[..]).collect::<Vec<_>>());
            for (m, (_, san, illegal)) in game.moves.iter_mut().zip(&moves) {
                m.san = san.clone();
                m.doubt = illegal.then_some(Doubt::IllegalAccepted);
            }
            game.chess960 = chess960;
            game.white_clock_ms = Some(u64::MAX);
            let [event, site, day, round, board, white, black, control, started, result, termination, at]: [String; 12] =
                texts.try_into().expect("twelve texts");
            game.round = Some(round);
            game.board = Some(board);
            game.white.name = Some(white);
            game.black.title = Some(black);
            game.time_control = Some(control);
            game.started_at = Some(started);
            game.result = result;
            game.termination = Some(termination);
            let tags = PgnTags { event: Some(event), site: Some(site), date: Some(day), now: Some(at) };
            let scope = if live { Scope::Live } else { Scope::Archive };

            let text = write(&game, &tags, scope);
            for (index, block) in text.trim_end().split("\n\n").enumerate() {
                for line in block.lines() {
                    if index % 2 == 0 {
                        prop_assert!(line.starts_with('[') && line.ends_with("\"]"), "{}", line);
                        prop_assert_eq!(line.matches('"').count(), 2);
                    } else {
                        prop_assert!(!line.starts_with('[') && line.chars().count() < LINE, "{}", line);
                        prop_assert_eq!(line.matches('{').count(), line.matches('}').count());
                    }
                }
                if index % 2 == 1 {
                    prop_assert!(block.ends_with(super::result(&game)));
                }
            }
        }
    }
}
