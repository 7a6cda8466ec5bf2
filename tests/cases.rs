//! The reported cases, through bytes and the whole pipeline: every line as it stands, and with colours mirrored; on a board that
//! knows its men, and on one that sees no more than that something stands on a square.

#[path = "support/case.rs"]
mod case;

use case::{Case, Event, Press};

/// The lines of the groups that this program answers for.
const CASES: &str = include_str!("cases.txt");

/// Cases of these groups count; the others are tried and listed.
const GROUPS: &[&str] = &["A", "C", "D", "E", "F", "G", "H", "I", "K", "M1", "R"];

/// Marks that are not scored yet: judgements of the Laws that are still to come.
const LATER: &[&str] = &["!touch", "!moved_again", "!promotion_check"];

/// A line of which a presence board cannot show everything.
struct Unseen {
    id: &'static str,
    /// What it has to come to instead, in the words of the table.
    exp: &'static str,
    /// Somebody presses at the end: until then the man is in a hand, for all that anybody can tell.
    pressed: bool,
    /// What cannot be seen.
    why: &'static str,
}

const UNSEEN: &[Unseen] = &[
    Unseen {
        id: "F1.1",
        exp: "a8=Q /amb",
        pressed: false,
        why: "what the pawn became",
    },
    Unseen {
        id: "F2.1",
        exp: "a8=R /amb",
        pressed: false,
        why: "what the pawn became; the rook is among the alternatives",
    },
    Unseen {
        id: "F4.1",
        exp: "e8=Q /amb",
        pressed: false,
        why: "whose queen it is",
    },
    Unseen {
        id: "F7.1",
        exp: "d8=Q /amb",
        pressed: false,
        why: "what the pawn became",
    },
    Unseen {
        id: "F7.2",
        exp: "bxa8=Q+ /amb",
        pressed: false,
        why: "what the pawn became",
    },
    Unseen {
        id: "G7.1",
        exp: "- !irregular(a1) /open",
        pressed: true,
        why: "that the rook took the queen's place; it is missing from its own",
    },
    Unseen {
        id: "R4.1",
        exp: "Qxd6 /amb",
        pressed: true,
        why: "which of the men in her reach the queen took; none was lifted",
    },
    Unseen {
        id: "R9.1",
        exp: "Qxc4",
        pressed: true,
        why: "that the queen took, until somebody presses; the squares on her way tell what",
    },
];

#[test]
fn reported_cases_on_a_presence_board() {
    let mut failures = Vec::new();
    let mut all = 0;
    for mut case in lines().filter(|case| counts(&case.id)) {
        if let Some(unseen) = UNSEEN.iter().find(|unseen| unseen.id == case.id) {
            println!("not to be seen in {}: {}", unseen.id, unseen.why);
            case.expect(unseen.exp);
            if unseen.pressed {
                case.events
                    .extend([Event::Wait(AFTERWARDS_MS), Event::Press]);
            }
        }
        for (name, case) in [("", case.clone()), (" mirrored", case.mirrored())] {
            all += 1;
            if let Err(why) = case.run_outline() {
                failures.push(format!("{}{name}: {why}", case.id));
            }
        }
    }
    println!(
        "cases on a presence board: {} of {all}",
        all - failures.len()
    );
    assert!(all > 0, "no case counts");
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn lines() -> impl Iterator<Item = Case> {
    CASES
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(Case::parse)
}

fn counts(id: &str) -> bool {
    let name = id.split('.').next().unwrap_or(id);
    GROUPS.iter().any(|group| {
        if group.len() == 1 {
            name.starts_with(group)
        } else {
            name == *group
        }
    })
}

#[test]
fn reported_cases() {
    let mut failures = Vec::new();
    let (mut right, mut all) = (0, 0);
    let mut later = Vec::new();
    let mut others = Vec::new();
    for case in lines() {
        for mark in &case.marks {
            if LATER.iter().any(|later| mark.starts_with(later)) {
                later.push(format!("{} {mark}", case.id));
            }
        }
        for (name, case) in [("", case.clone()), (" mirrored", case.mirrored())] {
            for press in [Press::Command, Press::Clock] {
                let verdict = case.run(press);
                let label = format!("{}{name} {press:?}", case.id);
                if !counts(&case.id) {
                    if let Err(why) = verdict {
                        others.push(format!("{label}: {why}"));
                    }
                    continue;
                }
                all += 1;
                match verdict {
                    Ok(()) => right += 1,
                    Err(why) => failures.push(format!("{label}: {why}")),
                }
            }
        }
    }
    println!("cases: {right} of {all}");
    assert!(all > 0, "no case counts");
    println!("left for the Laws: {}", later.join(", "));
    println!("other groups, not right yet: {}", others.len());
    for other in &others {
        println!("  {other}");
    }
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// The press follows the last event so soon.
const AFTERWARDS_MS: u64 = 500;
