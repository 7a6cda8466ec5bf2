//! The recordings of real games, where the corpus is.

use crate::games::{self, Recording};
use crate::live::Told;
use jadoube::Millis;
use jadoube::game::Pairing;
use jadoube::session::{Session, Settings};

/// One line for each way of reading them.
pub fn print() {
    let recordings = games::recordings();
    let plies: usize = recordings
        .iter()
        .map(|recording| recording.moves.len())
        .sum();
    let right: usize = recordings.iter().map(right).sum();
    println!("recordings: {right} of {plies} plies");
}

/// Plies that stand in the record as they were played, up to the first that does not.
fn right(recording: &Recording) -> usize {
    let mut settings = Settings::new("1");
    settings.armed = Some(Pairing::default());
    let mut session = Session::new(settings, 0);
    let mut told = Told::default();
    session.handle_opened(0);
    let mut end = 0;
    for (at, bytes) in &recording.messages {
        session.handle_bytes(*at, bytes);
        told.take_in(&mut session);
        end = *at;
    }
    session.handle_timeout(end + AFTERWARDS_MS);
    told.take_in(&mut session);
    told.record
        .iter()
        .zip(&recording.moves)
        .take_while(|(ply, played)| ply.uci == **played)
        .count()
}

/// Whatever is to be said of a game is said by then.
const AFTERWARDS_MS: Millis = 600_000;
