//! How long a board's message takes through a whole session, from its bytes to the last publication that follows from it, and how
//! much memory a table holds after a long game.

#[allow(dead_code)]
#[path = "../tests/support/games.rs"]
mod games;

use jadoube::Millis;
use jadoube::publish::{Body, Payload, Publication};
use jadoube::session::{Session, Settings};
use jadoube::sim::hands::Level;
use jadoube::sim::pgn::SimGame;
use jadoube::sim::player::TableOptions;
use jadoube::{game::Pairing, sim};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What a board sent, each message with its time.
type Messages = Vec<(Millis, Vec<u8>)>;

fn main() {
    let mut sources: Vec<(String, Messages)> = games::recordings()
        .into_iter()
        .map(|recording| (recording.name.to_owned(), recording.messages))
        .collect();
    for seed in 0..4 {
        let game = games::random_game(seed, 120);
        sources.push((format!("virtual {seed}"), played(&game, "300+3", seed)));
    }
    for (name, messages) in &sources {
        let mut taken: Vec<Duration> = (0..TURNS).flat_map(|_| latencies(messages)).collect();
        taken.sort_unstable();
        let at = |per_mille: usize| taken[(taken.len() - 1) * per_mille / 1000].as_secs_f64() * 1e6;
        println!(
            "{name}: {} messages, median {:.1} µs, 99 % within {:.1} µs, longest {:.1} µs",
            messages.len(),
            at(500),
            at(990),
            at(1000)
        );
    }
    print_memory();
}

fn played(game: &SimGame, control: &str, seed: u64) -> Messages {
    let options = TableOptions {
        control: Some(control.parse().expect("a time control")),
        ..TableOptions::default()
    };
    sim::trace(game, Level::Human, seed, &options).messages
}

/// By how much this process grows with each table whose game has been played to its end.
fn print_memory() {
    let messages = played(&games::long_game(0, 2 * LONG), "5400+30", 0);
    // The first one also pays for what all share.
    let mut tables = vec![table_after(&messages)];
    let before = resident_kb();
    tables.extend((0..TABLES).map(|_| table_after(&messages)));
    let after = resident_kb();
    let plies = tables.pop().map_or(0, |mut table| recorded(&mut table));
    match before.zip(after) {
        Some((before, after)) => println!(
            "memory of a table after {plies} of {} plies: {} kB",
            2 * LONG,
            after.saturating_sub(before) / TABLES
        ),
        None => println!("memory: this system does not tell"),
    }
}

fn table_after(messages: &[(Millis, Vec<u8>)]) -> Session {
    let mut session = open();
    for (at, bytes) in messages {
        session.handle_bytes(*at, bytes);
        drain(&mut session);
    }
    session
}

/// How many plies the record of this table has.
fn recorded(session: &mut Session) -> usize {
    let plies = |publication: &Publication| match &publication.body {
        Body::Payload(Payload::Game(game)) => Some(game.moves.len()),
        _ => None,
    };
    session.snapshot().iter().find_map(plies).unwrap_or(0)
}

/// The memory of this process that is not swapped out, as Linux tells it.
fn resident_kb() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What each message took, the timers before it aside: those go off on their own time.
fn latencies(messages: &[(Millis, Vec<u8>)]) -> Vec<Duration> {
    let mut session = open();
    messages
        .iter()
        .map(|(at, bytes)| {
            session.handle_timeout(*at);
            drain(&mut session);
            let begun = Instant::now();
            session.handle_bytes(*at, bytes);
            drain(&mut session);
            begun.elapsed()
        })
        .collect()
}

fn open() -> Session {
    let settings = Settings {
        armed: Some(Pairing::default()),
        ..Settings::new("1")
    };
    let mut session = Session::new(settings, 0);
    session.handle_opened(0);
    session
}

fn drain(session: &mut Session) {
    while session.poll_write().is_some() {}
    while let Some(entry) = session.poll_entry() {
        black_box(entry);
    }
    while let Some(publication) = session.poll_publication() {
        black_box(publication);
    }
}

const TURNS: usize = 5;
/// The moves of a long game, and how many tables play it.
const LONG: usize = 400;
const TABLES: usize = 50;
