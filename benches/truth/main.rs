//! How much of what hands did is read rightly: whole games played by virtual hands on a virtual board, whose line may lose what it
//! carries, read live by a session that asks the board back; and the recordings of real games.
//!
//! `cargo bench --bench truth` prints the table; `cargo bench --bench truth -- KIND` its rows of that name, and `-- KIND NUMBER` writes
//! that game's trace to stdout; `-- outline 1` does so with the occupied squares of the recording 1. `JADOUBE_GAMES=N` plays N games of each kind instead of the usual number, `JADOUBE_SHOW=1` tells of each
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
                let l = kind.play(number);
                print!("{}", l.trace);
                for (i, t) in l.truth.plies.iter().enumerate() {
                    eprintln!(
                        "{} {} {} t{} p{} pr{:?} {:?}",
                        i + 1,
                        t.uci,
                        l.told.record.get(i).map_or("-", |x| &x.uci),
                        (l.began_ms + t.touched_ms) as f64 / 1000.,
                        (l.began_ms + t.placed_ms) as f64 / 1000.,
                        t.pressed_ms.map(|p| (l.began_ms + p) as f64 / 1000.),
                        t.manners
                    );
                }
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
            let verdict = verdict::Verdict::new(&kind.play(number));
            if show && !verdict.is_clean() {
                println!("  {} {number}: {}", kind.name, verdict.why());
            }
            row.add(&verdict);
        }
        println!("{}", row.line(kind.name));
    }
    if words.is_empty() {
        recorded::print(show);
    }
}

/// Games of each kind unless `JADOUBE_GAMES` says otherwise.
const GAMES: u64 = 40;
