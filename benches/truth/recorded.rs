//! The recordings of real games, where the corpus is: as their boards told them, and from their occupied squares alone.

use crate::games::{self, Recording};
use crate::live::Told;
use crate::outline::outline;
use jadoube::Millis;
use jadoube::command::Command;
use jadoube::replay;
use jadoube::session::{Session, Settings};
use jadoube::trace::{Event, Header, Line, Trace};

type AsTrace = fn(&Recording) -> Trace;

/// One line for each way of reading them.
pub fn print(show: bool) {
    let recordings = games::recordings();
    let plies: usize = recordings
        .iter()
        .map(|recording| recording.moves.len())
        .sum();
    let ways: [(&str, AsTrace); 2] = [("identity", whole), ("occupied squares", outline)];
    for (name, trace) in ways {
        let mut sum = Right::default();
        for recording in &recordings {
            let told = read(&trace(recording));
            let right = right(&told, recording);
            if show && right.plies < recording.moves.len() {
                let from = |moves: &[String]| -> String {
                    moves[right.plies..moves.len().min(right.plies + 3)].join(" ")
                };
                let read: Vec<String> = told.record.iter().map(|ply| ply.uci.clone()).collect();
                println!(
                    "  recording {}: {} of {}, then [{}] for [{}]",
                    recording.name,
                    right.plies,
                    recording.moves.len(),
                    from(&read),
                    from(&recording.moves)
                );
            }
            sum.plies += right.plies;
            sum.doubts += right.doubts;
        }
        println!(
            "recordings, {name}: {} of {plies} plies, {} in doubt",
            sum.plies, sum.doubts
        );
    }
}

/// The outline of the recording of this name, as a trace.
pub fn outline_of(name: &str) -> Option<Trace> {
    games::recordings()
        .iter()
        .find(|recording| recording.name == name)
        .map(outline)
}

fn whole(recording: &Recording) -> Trace {
    let lines = (1..)
        .zip(&recording.messages)
        .map(|(number, (at_ms, bytes))| Line {
            at_ms: *at_ms,
            number,
            event: Event::FromBoard(bytes.clone()),
        })
        .collect();
    Trace {
        header: Header::default(),
        lines,
    }
}

fn read(trace: &Trace) -> Told {
    let settings = replay::settings(trace, Settings::new("1")).expect("a board that can be read");
    let mut session = Session::new(settings, 0);
    let mut told = Told::default();
    session.handle_opened(0);
    let mut end = 0;
    for line in &trace.lines {
        end = line.at_ms;
        match &line.event {
            Event::FromBoard(bytes) => session.handle_bytes(end, bytes),
            Event::Command(text) => {
                let mut command = Command::parse(text, None).expect("a press");
                command.id = line.number.to_string();
                session.handle_command(end, command);
            }
            _ => {}
        }
        told.take_in(&mut session);
    }
    session.handle_timeout(end + AFTERWARDS_MS);
    told.take_in(&mut session);
    told
}

#[derive(Default)]
struct Right {
    /// Plies that stand in the record as they were played, up to the first that does not.
    plies: usize,
    doubts: usize,
}

fn right(told: &Told, recording: &Recording) -> Right {
    Right {
        plies: told
            .record
            .iter()
            .zip(&recording.moves)
            .take_while(|(ply, played)| ply.uci == **played)
            .count(),
        doubts: told.record.iter().filter(|ply| ply.doubt.is_some()).count(),
    }
}

/// Whatever is to be said of a game is said by then.
const AFTERWARDS_MS: Millis = 600_000;
