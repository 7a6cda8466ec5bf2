//! `jadoube replay` from outside.
#![cfg(feature = "io")]

use std::process::{Command, Output};

use serde_json::Value;

fn replay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jadoube"))
        .arg("replay")
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces"))
        .env_remove("JADOUBE_LOG")
        .output()
        .expect("the program runs")
}

fn lines(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON value a line"))
        .collect()
}

#[test]
fn a_trace_that_cannot_be_read_keeps_no_other_from_being_replayed() {
    let output = replay(&["opening.trace", "none.trace", "takeback.trace", "--summary"]);
    assert_eq!(output.status.code(), Some(1));
    let names: Vec<Value> = lines(&output)
        .iter()
        .map(|line| line["trace"].clone())
        .collect();
    assert_eq!(names, ["opening", "takeback"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("none.trace"));
}

#[test]
fn lines_name_their_trace_where_several_are_given() {
    let one = lines(&replay(&["opening.trace", "--json"]));
    assert!(one.iter().all(|line| line.get("trace").is_none()));
    let topic = |line: &Value| {
        line["topic"]
            .as_str()
            .is_some_and(|topic| topic.starts_with("jadoube/v1/replay/edge/replay/"))
    };
    assert!(!one.is_empty() && one.iter().all(topic));
    let two = lines(&replay(&["opening.trace", "takeback.trace", "--json"]));
    assert!(two.len() > one.len() && two[0]["trace"] == "opening");
}

#[test]
fn only_known_notations_are_taken() {
    let output = replay(&["opening.trace", "--notation", "xx"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Case G7: no acceptance empties a record.
#[test]
fn what_was_played_before_an_accepted_position_stays_in_the_pgn() {
    let output = replay(&["position-accepted.trace", "--pgn"]);
    let pgn = String::from_utf8_lossy(&output.stdout);
    let before = pgn.find("2... Nc6").expect("the moves before");
    let after = pgn
        .find("[FEN \"r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/1NBRKB1R w")
        .expect("the position that was accepted");
    assert!(before < after, "{pgn}");
}
