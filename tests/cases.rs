//! The reported cases, through bytes and the whole pipeline: every line as it stands, and with colours mirrored.

#[path = "support/case.rs"]
mod case;

use case::{Case, Press};

/// The lines of the groups that this program answers for.
const CASES: &str = include_str!("cases.txt");

/// Cases of these groups count; the others are tried and listed.
const GROUPS: &[&str] = &["A", "C", "D", "E", "F", "G", "H", "I", "K", "M1", "R"];

/// Marks that are not scored yet: judgements of the Laws that are still to come.
const LATER: &[&str] = &["!touch", "!moved_again", "!promotion_check"];

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
    for line in CASES
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
    {
        let case = Case::parse(line);
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
