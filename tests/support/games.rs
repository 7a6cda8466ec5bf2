//! Games for the hands to play, and recordings of real ones.

use jadoube::sim::pgn::{self, SimGame};
use shakmaty::fen::Fen;
use shakmaty::{Board, CastlingMode, Chess, Move, Position};
use std::path::PathBuf;

/// Random legal moves, with the rare ones not so rare: castling, promotion and en passant are taken as often as not.
pub fn random_game(seed: u64, plies: usize) -> SimGame {
    random_game_from(Chess::default(), seed, plies)
}

/// The same from one of the arrays of Chess960.
pub fn random_chess960(seed: u64, plies: usize) -> SimGame {
    let number = fastrand::Rng::with_seed(seed).u32(..960);
    let placement = Board::chess960(number).to_string();
    let start = format!("{placement} w KQkq - 0 1")
        .parse::<Fen>()
        .ok()
        .and_then(|fen| fen.into_position(CastlingMode::Chess960).ok())
        .expect("an array of Chess960");
    random_game_from(start, seed, plies)
}

fn random_game_from(start: Chess, seed: u64, plies: usize) -> SimGame {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut position = start.clone();
    let mut moves: Vec<Move> = Vec::with_capacity(plies);
    while moves.len() < plies {
        let legal = position.legal_moves();
        if legal.is_empty() || position.is_insufficient_material() {
            break;
        }
        let rare: Vec<Move> = legal
            .iter()
            .copied()
            .filter(|m| m.is_castle() || m.is_promotion() || m.is_en_passant())
            .collect();
        let choice: &[Move] = if !rare.is_empty() && rng.bool() {
            &rare
        } else {
            &legal
        };
        let m = choice[rng.usize(..choice.len())];
        moves.push(m);
        position.play_unchecked(m);
    }
    SimGame::new(start.clone(), start.castles().mode().is_chess960(), moves)
}

/// Random moves of which few capture, so that the Laws let the game go on: nothing but the number of plies ends it.
pub fn long_game(seed: u64, plies: usize) -> SimGame {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut position = Chess::default();
    let mut moves: Vec<Move> = Vec::with_capacity(plies);
    while moves.len() < plies {
        let mut legal: Vec<Move> = position.legal_moves().to_vec();
        rng.shuffle(&mut legal);
        // The 75 moves of 9.6.2 begin anew with a pawn.
        let is_wanted = |m: &&Move| m.is_zeroing() == (position.halfmoves() >= FEW);
        let quiet = |m: &&Move| !m.is_capture();
        let chosen = (legal.iter().filter(is_wanted).find(quiet))
            .or_else(|| legal.iter().find(quiet))
            .or(legal.first());
        let Some(m) = chosen else { break };
        moves.push(*m);
        position.play_unchecked(*m);
    }
    SimGame::new(Chess::default(), false, moves)
}

/// So many plies without a pawn move or capture are nothing yet.
const FEW: u32 = 40;

/// A folder of the corpus beside the project, or where `JADOUBE_CORPUS` says; it need not be there.
pub fn corpus(folder: &str) -> PathBuf {
    std::env::var_os("JADOUBE_CORPUS")
        .map_or_else(
            || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"),
            PathBuf::from,
        )
        .join(folder)
}

/// The games of the corpus; none where there is no corpus.
pub fn corpus_games() -> Vec<SimGame> {
    let Ok(entries) = std::fs::read_dir(corpus("games")) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "pgn"))
        .collect();
    paths.sort();
    paths
        .iter()
        .filter_map(|path| std::fs::read(path).ok())
        .flat_map(|text| pgn::read(&text))
        .filter_map(Result::ok)
        .collect()
}

/// What a real board sent in a whole game, and the moves that were played.
#[derive(Debug, Clone)]
pub struct Recording {
    pub name: &'static str,
    /// Messages with their times; the recordings have none of their own, but their clock ticks once a second.
    pub messages: Vec<(u64, Vec<u8>)>,
    pub moves: Vec<String>,
}

/// The recordings of the corpus; none where there is no corpus.
pub fn recordings() -> Vec<Recording> {
    ["1", "2", "johan"]
        .into_iter()
        .filter_map(|name| {
            let folder = corpus("captures/dgt-serial");
            let bytes = std::fs::read(folder.join(format!("{name}.bin"))).ok()?;
            let moves = match std::fs::read_to_string(folder.join(format!("{name}.uci"))) {
                Ok(text) => text
                    .split_whitespace()
                    .filter(|word| !word.contains('.') && word.len() >= 4)
                    .map(str::to_owned)
                    .collect(),
                Err(_) => {
                    let text = std::fs::read(folder.join(format!("{name}.pgn"))).ok()?;
                    pgn::read(&text).into_iter().find_map(Result::ok)?.uci()
                }
            };
            Some(Recording {
                name,
                messages: timed(&bytes),
                moves,
            })
        })
        .collect()
}

/// Cuts a recording at its headers and gives it times: two clock messages make a second, what lies between shares it.
fn timed(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let mut rest = bytes;
    while rest.len() >= 3 {
        let length = usize::from(rest[1]) << 7 | usize::from(rest[2]);
        let (message, after) = rest.split_at(length.clamp(3, rest.len()));
        messages.push(message.to_vec());
        rest = after;
    }
    let mut now = 0;
    let mut last_shown = Vec::new();
    messages
        .into_iter()
        .map(|message| {
            if message[0] == CLOCK {
                // A second has passed if the display says so.
                now += if message == last_shown { 10 } else { 900 };
                last_shown = message.clone();
            } else {
                now += 100;
            }
            (now, message)
        })
        .collect()
}

/// Clock message (protocol sheet 3.5).
const CLOCK: u8 = 0x8d;
