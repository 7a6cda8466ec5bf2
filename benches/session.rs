//! How long a board's message takes through a whole session, from its bytes to the last publication that follows from it.

#[allow(dead_code)]
#[path = "../tests/support/games.rs"]
mod games;

use jadoube::Millis;
use jadoube::session::{Session, Settings};
use jadoube::sim::hands::Level;
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
        let options = TableOptions {
            control: Some("300+3".parse().expect("a time control")),
            ..TableOptions::default()
        };
        let traced = sim::trace(&game, Level::Human, seed, &options);
        sources.push((format!("virtual {seed}"), traced.messages));
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
}

/// What each message took, the timers before it aside: those go off on their own time.
fn latencies(messages: &[(Millis, Vec<u8>)]) -> Vec<Duration> {
    let mut session = Session::new(
        Settings {
            armed: Some(Pairing::default()),
            ..Settings::new("1")
        },
        0,
    );
    session.handle_opened(0);
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
