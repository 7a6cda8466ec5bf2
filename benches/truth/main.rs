//! How much of what hands did is read rightly: whole games played by virtual hands on a virtual board, whose line may lose what it
//! carries, read live by a session that asks the board back; and the recordings of real games.
//!
//! `cargo bench --bench truth` prints the table; `cargo bench --bench truth -- KIND` its rows of that name, and `-- KIND NUMBER` writes
//! that game's trace to stdout, and to stderr what was played beside what was read; `-- outline 1` writes the occupied squares of the
//! recording 1 as a trace. `JADOUBE_GAMES=N` plays N games of each kind instead of the usual number, `JADOUBE_SHOW=1` tells of each
//! game that is not read rightly.

#[allow(dead_code)]
#[path = "../../tests/support/games.rs"]
mod games;
mod kinds;
#[allow(dead_code)]
#[path = "../../tests/support/live.rs"]
mod live;
#[path = "../../tests/support/outline.rs"]
mod outline;
mod recorded;
mod table;
#[allow(dead_code)]
#[path = "../../tests/support/verdict.rs"]
mod verdict;

use kinds::{KINDS, Kind};
use table::Row;

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    if let [word, name] = words.as_slice()
        && word == "outline"
    {
        match recorded::outline_of(name) {
            Some(trace) => print!("{trace}"),
            None => eprintln!("no recording {name}"),
        }
        return;
    }
    if let [kind, number] = words.as_slice()
        && let Ok(number) = number.parse()
    {
        match KINDS.iter().find(|known| known.name == kind) {
            Some(kind) => {
                let (_, live) = kind.play(number);
                print!("{}", live.trace);
                print_truth(&live);
            }
            None => eprintln!("no kind {kind}; there are {}", kinds::names()),
        }
        return;
    }
    let wanted = |kind: &&Kind| {
        words.is_empty() || words.iter().any(|word| kind.name.contains(word.as_str()))
    };
    let count: u64 = std::env::var("JADOUBE_GAMES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(GAMES);
    let show = std::env::var_os("JADOUBE_SHOW").is_some();
    println!("{}", table::HEAD);
    for kind in KINDS.iter().filter(wanted) {
        let mut row = Row::default();
        for number in 0..count {
            let (origin, live) = kind.play(number);
            let verdict = verdict::Verdict::new(&live);
            if show && (!verdict.is_clean() || verdict.is_restless()) {
                println!("  {} {number} ({origin:?}): {}", kind.name, verdict.why());
            }
            row.add(origin, &verdict);
        }
        println!("{}", row.line(kind.name));
    }
    if words.is_empty() {
        recorded::print(show);
    }
}

/// What was played beside what was read, a ply a line, with the seconds at which it was touched, put down and pressed.
fn print_truth(live: &live::Live) {
    let seconds = |ms: u64| (live.began_ms + ms) as f64 / 1000.;
    for (index, played) in live.truth.plies.iter().enumerate() {
        let read = live.told.record.get(index);
        eprintln!(
            "{} {} {} touched {} put down {} pressed {} {:?}",
            index + 1,
            played.uci,
            read.map_or("-", |ply| &ply.uci),
            seconds(played.touched_ms),
            seconds(played.placed_ms),
            played
                .pressed_ms
                .map_or("-".into(), |ms| seconds(ms).to_string()),
            played.manners
        );
    }
}

/// Games of each kind unless `JADOUBE_GAMES` says otherwise.
const GAMES: u64 = 40;
