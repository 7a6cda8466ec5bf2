//! How fast square events become plies, beside a referee that does the least: it plays whatever legal move from the last position
//! leads to the placement. Both get the same events in the same run; the ratio is what counts, and who reads the games right.
//!
//! Measured are games of 80 moves that human hands play on a virtual board, and the recordings of the corpus, where there is one.

#[allow(dead_code)]
#[path = "../tests/support/games.rs"]
mod games;

use jadoube::Millis;
use jadoube::board::driver::Watch;
use jadoube::board::{Contents, Driver, Reading};
use jadoube::clock::{self, Wing};
use jadoube::game::{Change, CompletedBy, Line, Ply};
use jadoube::laws::position::Position;
use jadoube::sensing::{Context, Look, Observation, Sensing, Timing};
use jadoube::sim;
use jadoube::sim::hands::Level;
use jadoube::sim::player::TableOptions;
use jadoube::wire::Family;
use shakmaty::uci::UciMove;
use shakmaty::{Board, Chess, Color, Move, Position as _, Square};
use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

fn main() {
    let virtual_games = virtual_games();
    if std::env::var_os("JADOUBE_BENCH_PROFILE").is_some() {
        // For a profiler: sensing and nothing else.
        for game in (0..PROFILED).flat_map(|_| &virtual_games) {
            black_box(sense(black_box(game)).len());
        }
        return;
    }
    print(&format!("{MOVES} moves each, virtual"), &virtual_games);
    let recordings = recordings();
    match recordings.is_empty() {
        true => println!("no recordings here (JADOUBE_CORPUS names their folder)"),
        false => print("recordings", &recordings),
    }
}

fn print(name: &str, games: &[Prepared]) {
    let events: usize = games.iter().map(Prepared::squares).sum();
    let plies: usize = games.iter().map(|game| game.moves.len()).sum();
    println!(
        "{} games ({name}), {events} square events, {plies} plies",
        games.len()
    );
    let (mut sensed, mut refereed) = (Vec::new(), Vec::new());
    // In turns, so that both meet the same mood of the machine.
    for _ in 0..ROUNDS {
        sensed.push(rate(games, events, |game| sense(game).len()));
        refereed.push(rate(games, events, |game| referee(game).len()));
    }
    let sensed_moves = |game: &Prepared| -> Vec<String> {
        let line = sense(game);
        (0..line.len()).map(|index| line.uci(index)).collect()
    };
    let refereed_moves =
        |game: &Prepared| -> Vec<String> { referee(game).iter().map(UciMove::to_string).collect() };
    let (sensed, refereed) = (Rate::of(sensed), Rate::of(refereed));
    let right = |read: &dyn Fn(&Prepared) -> Vec<String>| -> usize {
        games
            .iter()
            .map(|game| right(&read(game), &game.moves))
            .sum()
    };
    println!(
        "sensing: {sensed} million square events a second, {} of {plies} plies right",
        right(&sensed_moves)
    );
    println!(
        "referee: {refereed} million square events a second, {} of {plies} plies right",
        right(&refereed_moves)
    );
    println!("ratio: {:.2}", sensed.median / refereed.median);
    for game in games {
        println!(
            "  {}: sensing {}, referee {} of {}",
            game.name,
            self::right(&sensed_moves(game), &game.moves),
            self::right(&refereed_moves(game), &game.moves),
            game.moves.len()
        );
    }
}

/// A game as its squares and presses, decoded and turned the right way round beforehand.
struct Prepared {
    name: String,
    first: Vec<(Square, Contents)>,
    events: Vec<(Millis, Input)>,
    moves: Vec<String>,
}

enum Input {
    Square([(Square, Contents); 1]),
    Press(Color),
}

impl Prepared {
    fn new(name: String, messages: &[(Millis, Vec<u8>)], moves: Vec<String>) -> Prepared {
        let mut driver = Driver::new(Family::default(), Watch::Ignore);
        let mut first: Vec<(Square, Contents)> = Vec::new();
        let mut events = Vec::new();
        let mut rotated = false;
        let mut to_move: Option<Wing> = None;
        for (at, bytes) in messages {
            driver.handle_bytes(*at, bytes, |reading| match reading {
                Reading::Scan { squares, .. } if first.is_empty() => {
                    rotated = squares.contains(&(
                        Square::A1,
                        Contents::Piece(shakmaty::Role::Rook.of(Color::Black)),
                    ));
                    first = squares
                        .iter()
                        .map(|(square, contents)| (turned(*square, rotated), *contents))
                        .collect();
                }
                Reading::Square { square, contents } => {
                    events.push((*at, Input::Square([(turned(square, rotated), contents)])));
                }
                Reading::Clock(clock::Reading::Times {
                    to_move: wing,
                    running: true,
                    ..
                }) => {
                    if to_move.is_some_and(|before| before != wing) {
                        let white = if rotated { Wing::Right } else { Wing::Left };
                        // The lever fell on the side that now waits.
                        events.push((*at, Input::Press(Color::from_white(wing != white))));
                    }
                    to_move = Some(wing);
                }
                _ => {}
            });
        }
        Prepared {
            name,
            first,
            events,
            moves,
        }
    }

    fn squares(&self) -> usize {
        self.events
            .iter()
            .filter(|(_, input)| matches!(input, Input::Square(_)))
            .count()
    }
}

fn turned(square: Square, rotated: bool) -> Square {
    if rotated { square.rotate_180() } else { square }
}

fn recordings() -> Vec<Prepared> {
    games::recordings()
        .into_iter()
        .map(|recording| Prepared::new(recording.name.into(), &recording.messages, recording.moves))
        .collect()
}

/// Random games of the same length, as human hands play them.
fn virtual_games() -> Vec<Prepared> {
    let options = TableOptions {
        control: Some("5400+30".parse().expect("a time control")),
        ..TableOptions::default()
    };
    (0..)
        .map(|seed| (seed, games::random_game(seed, 2 * MOVES)))
        .filter(|(_, game)| game.moves.len() == 2 * MOVES)
        .take(VIRTUAL)
        .map(|(seed, game)| {
            let traced = sim::trace(&game, Level::Human, seed, &options);
            Prepared::new(format!("virtual {seed}"), &traced.messages, game.uci())
        })
        .collect()
}

/// Sensing with the least record that can follow it; timers go off as in a session.
fn sense(game: &Prepared) -> Line {
    let mut line = Line::new(Position::initial());
    let mut sensing = Sensing::new(Timing::default());
    sensing.handle_squares(0, &game.first, Look::Dump, &context(&line));
    take(&mut sensing, &mut line);
    for (at, input) in &game.events {
        serve(&mut sensing, &mut line, *at);
        match input {
            Input::Square(change) => {
                sensing.handle_squares(*at, change, Look::Update, &context(&line))
            }
            Input::Press(side) => sensing.handle_press(*at, *side, &context(&line)),
        }
        take(&mut sensing, &mut line);
    }
    serve(&mut sensing, &mut line, Millis::MAX / 2);
    line
}

fn serve(sensing: &mut Sensing, line: &mut Line, until: Millis) {
    while let Some(at) = sensing
        .poll_timeout(&context(line))
        .filter(|at| *at <= until)
    {
        black_box(sensing.handle_timeout(at, &context(line)));
        take(sensing, line);
    }
}

fn take(sensing: &mut Sensing, line: &mut Line) {
    while let Some(observation) = sensing.poll_observation() {
        match observation {
            Observation::Moved(Change { keep, moves, .. }) => {
                line.plies.truncate(keep);
                for seen in moves {
                    if let Some(answered) = line.plies.last_mut() {
                        answered.by.get_or_insert(CompletedBy::Reply);
                    }
                    line.plies.push(Ply::new(seen.mv, seen.after, seen.at));
                }
            }
            Observation::Completed { side, by } => {
                if let Some(ply) = line
                    .last_of(side)
                    .and_then(|ply| line.plies.get_mut(ply - 1))
                {
                    ply.by.get_or_insert(by);
                    ply.pressed |= by == CompletedBy::Press;
                }
            }
            _ => {}
        }
    }
}

fn context(line: &Line) -> Context<'_> {
    Context {
        line,
        following: true,
        setting_up: false,
        has_clock: true,
        unstarted: false,
        can_dump: false,
        time_trouble: false,
    }
}

/// Plays every legal move from the last position that leads to the placement, the moment it does.
fn referee(game: &Prepared) -> Vec<UciMove> {
    let mut position = Chess::default();
    let mut board = Board::empty();
    for (square, contents) in &game.first {
        show(&mut board, *square, *contents);
    }
    let mut next = successors(&position);
    let mut played = Vec::new();
    for (_, input) in &game.events {
        let Input::Square([(square, contents)]) = input else {
            continue;
        };
        show(&mut board, *square, *contents);
        if let Some((m, _)) = next.iter().find(|(_, after)| *after == board) {
            let m = *m;
            played.push(m.to_uci(position.castles().mode()));
            position.play_unchecked(m);
            next = successors(&position);
        }
    }
    played
}

fn show(board: &mut Board, square: Square, contents: Contents) {
    match contents.piece() {
        Some(piece) => board.set_piece_at(square, piece),
        None => board.discard_piece_at(square),
    }
}

fn successors(position: &Chess) -> Vec<(Move, Board)> {
    position
        .legal_moves()
        .into_iter()
        .map(|m| {
            let mut after = position.clone();
            after.play_unchecked(m);
            (m, after.board().clone())
        })
        .collect()
}

/// How many plies agree until the first that does not.
fn right(read: &[String], moves: &[String]) -> usize {
    read.iter()
        .zip(moves)
        .take_while(|(read, played)| read == played)
        .count()
}

fn rate(games: &[Prepared], events: usize, read: impl Fn(&Prepared) -> usize) -> f64 {
    let begun = Instant::now();
    let before = processor_time();
    let mut turns = 0;
    while begun.elapsed() < ROUND {
        for game in games {
            black_box(read(black_box(game)));
        }
        turns += 1;
    }
    let spent = processor_time()
        .zip(before)
        .map_or_else(|| begun.elapsed(), |(after, before)| after - before);
    (turns * events) as f64 / spent.as_secs_f64()
}

/// For how long this thread has been on a processor, as Linux tells it: what others do on the machine is not counted.
fn processor_time() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = told.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// Events a second over the rounds.
struct Rate {
    median: f64,
    best: f64,
}

impl Rate {
    fn of(mut rounds: Vec<f64>) -> Rate {
        rounds.sort_by(f64::total_cmp);
        Rate {
            median: rounds[rounds.len() / 2],
            best: rounds[rounds.len() - 1],
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} (best {:.2})", self.median / 1e6, self.best / 1e6)
    }
}

/// How many moves a virtual game has, and how many games there are.
const MOVES: usize = 80;
const VIRTUAL: usize = 8;
/// How often a profiler sees each game.
const PROFILED: usize = 200;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(400);
