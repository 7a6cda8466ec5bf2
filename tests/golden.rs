//! Traces beside what the pipeline makes of them, stage by stage.
//!
//! Each `tests/traces/NAME.trace` has a `NAME.stages`: what `jadoube replay --stages` prints for it. A golden is a claim that this
//! is right, so whoever rebuilds one reads the difference and explains it in the commit.
//!
//! ```text
//! cargo test --test golden                           compares all; lists the failures at the end, each with its difference
//! JADOUBE_GOLDEN=show cargo test --test golden       prints what comes out now, and compares nothing
//! JADOUBE_GOLDEN=rebuild cargo test --test golden    writes the goldens anew
//! JADOUBE_TRACES=castling,flag …                     any of the three, for traces whose names contain one of these words
//! ```
//!
//! Timers are named in the goldens and do not tell their time, so that another default does not rewrite them all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jadoube::publish::{Body, Payload};
use jadoube::replay;
use jadoube::session::Settings;
use jadoube::trace::Trace;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Compare,
    Show,
    Rebuild,
}

#[test]
fn goldens() {
    let mode = match std::env::var("JADOUBE_GOLDEN").as_deref() {
        Err(_) | Ok("" | "compare") => Mode::Compare,
        Ok("show") => Mode::Show,
        Ok("rebuild") => Mode::Rebuild,
        Ok(other) => panic!("JADOUBE_GOLDEN is {other:?}; compare, show or rebuild is expected"),
    };
    let wanted = std::env::var("JADOUBE_TRACES").unwrap_or_default();
    let is_wanted = |path: &Path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        wanted.is_empty() || wanted.split(',').any(|word| name.contains(word.trim()))
    };
    let traces: Vec<PathBuf> = files("trace")
        .into_iter()
        .filter(|path| is_wanted(path))
        .collect();
    assert!(!traces.is_empty(), "no trace of that name");
    let mut failures = Vec::new();
    for path in &traces {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let shown = match stages(path) {
            Ok(shown) => shown,
            Err(why) => {
                failures.push(format!("{name}: {why}"));
                continue;
            }
        };
        let golden = path.with_extension("stages");
        match mode {
            Mode::Show => print!("== {name}\n{shown}"),
            Mode::Rebuild => {
                if fs::read_to_string(&golden).ok().as_ref() != Some(&shown) {
                    println!("rebuilt {name}");
                    fs::write(&golden, shown).expect("the folder of the traces can be written to");
                }
            }
            Mode::Compare => match fs::read_to_string(&golden) {
                Ok(expected) if expected == shown => {}
                Ok(expected) => {
                    failures.push(format!("{name}:\n{}", difference(&expected, &shown)));
                }
                Err(error) => failures.push(format!("{name}: no golden: {error}")),
            },
        }
    }
    for golden in files("stages") {
        if !golden.with_extension("trace").exists() {
            failures.push(format!("{}: no trace", golden.display()));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} traces come out otherwise:\n{}\nIf that is right: JADOUBE_GOLDEN=rebuild cargo test --test golden",
        failures.len(),
        traces.len(),
        failures.join("\n")
    );
}

/// An event names the state of the record that contains it, so that who keeps events and records in step never steps back.
#[test]
fn revisions_never_go_backwards() {
    let mut events = 0;
    for path in files("trace") {
        let name = path.display();
        let trace = Trace::from_bytes(&fs::read(&path).expect("a trace")).expect("a trace");
        let settings = replay::settings(&trace, Settings::new("1")).expect("a DGT board");
        let mut told: BTreeMap<String, u64> = BTreeMap::new();
        let mut records: BTreeMap<String, u64> = BTreeMap::new();
        for (_, publication) in replay::replay(&trace, settings).publications {
            let Body::Payload(payload) = publication.body else {
                continue;
            };
            let text = payload.to_json();
            match payload {
                Payload::Event(event) => {
                    let Some(game) = event.game else { continue };
                    // An adopted game has been counted before it is told.
                    let known = records.get(&game).copied().unwrap_or(event.rev);
                    assert!(
                        event.rev == known || event.rev == known + 1,
                        "{name}: rev {} while the record is at {known}: {text}",
                        event.rev
                    );
                    let before = told.insert(game, event.rev).unwrap_or(0);
                    assert!(event.rev >= before, "{name}: after {before}: {text}");
                    events += 1;
                }
                Payload::Game(game) => {
                    let before = told.insert(game.game.clone(), game.rev).unwrap_or(0);
                    assert!(game.rev >= before, "{name}: after {before}: {text}");
                    records.insert(game.record.game, game.record.rev);
                }
                _ => {}
            }
        }
    }
    assert!(events > 300, "{events}");
}

fn files(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of the traces")
        .map(|entry| entry.expect("an entry of it").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

fn stages(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let trace = Trace::from_bytes(&bytes).map_err(|error| error.to_string())?;
    let mut settings =
        replay::settings(&trace, Settings::new("1")).map_err(|error| error.to_string())?;
    settings.stages = true;
    let mut text = replay::replay(&trace, settings).stages.join("\n");
    text.push('\n');
    Ok(text)
}

/// The lines that differ, each with what stands around it.
fn difference(expected: &str, shown: &str) -> String {
    const AROUND: usize = 2;
    let expected: Vec<&str> = expected.lines().collect();
    let shown: Vec<&str> = shown.lines().collect();
    // Lengths of the longest common subsequences of what follows each pair of lines.
    let mut common = vec![vec![0_u32; shown.len() + 1]; expected.len() + 1];
    for (i, old) in expected.iter().enumerate().rev() {
        for (j, new) in shown.iter().enumerate().rev() {
            common[i][j] = if old == new {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines: Vec<(char, &str)> = Vec::new();
    while i < expected.len() || j < shown.len() {
        if i < expected.len() && j < shown.len() && expected[i] == shown[j] {
            lines.push((' ', expected[i]));
            i += 1;
            j += 1;
        } else if j == shown.len() || (i < expected.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(('-', expected[i]));
            i += 1;
        } else {
            lines.push(('+', shown[j]));
            j += 1;
        }
    }
    let is_near = |index: usize| {
        let (from, to) = (
            index.saturating_sub(AROUND),
            (index + AROUND + 1).min(lines.len()),
        );
        lines[from..to].iter().any(|(sign, _)| *sign != ' ')
    };
    let mut text = String::new();
    let mut skipped = false;
    for (index, (sign, line)) in lines.iter().enumerate() {
        if is_near(index) {
            if std::mem::take(&mut skipped) {
                text.push_str("   …\n");
            }
            text.push_str(&format!("  {sign}{line}\n"));
        } else {
            skipped = true;
        }
    }
    text
}
