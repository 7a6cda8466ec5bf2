//! What the README tells people to type is what the program takes.
#![cfg(feature = "io")]

use std::fs;
use std::path::Path;

use jadoube::command::{Arm, Command};
use jadoube::publish::schemas;
use serde_json::{Value, json};

/// The arguments of each line that begins with this program.
fn lines(program: &str) -> Vec<Vec<String>> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(readme).expect("a README");
    text.lines()
        .filter(|line| line.split(' ').next() == Some(program))
        .map(words)
        .collect()
}

/// As a shell takes a simple line apart: quotes hold words together, a word that begins with # ends it.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (' ', None) => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn after<'a>(words: &'a [String], flag: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| word == flag)?;
    words.get(at + 1).map(String::as_str)
}

fn validator(name: &str) -> jsonschema::Validator {
    let (_, schema) = schemas()
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("a schema of that name");
    let schema = serde_json::to_value(schema).expect("a schema is JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

#[test]
fn its_payloads_are_read_and_valid() {
    let (command, pairing) = (validator("command"), validator("pairing"));
    let mut seen = [0, 0];
    for words in lines("mosquitto_pub") {
        let topic = after(&words, "-t").expect("a topic");
        let levels: Vec<&str> = topic.split('/').collect();
        let Some(text) = after(&words, "-m") else {
            assert!(words.iter().any(|word| word == "-n"), "{words:?}");
            continue;
        };
        let value: Value = serde_json::from_str(text).expect(text);
        match levels[..] {
            ["jadoube", "v1", _, "cmd", _, verb] => {
                assert!(command.is_valid(&value), "{text}");
                Command::parse(text, Some(verb)).expect(text);
                assert!(!words.iter().any(|word| word == "-r"), "{words:?}");
                seen[0] += 1;
            }
            ["jadoube", "v1", _, "core", "table", _] => {
                assert!(pairing.is_valid(&value), "{text}");
                serde_json::from_str::<Arm>(text).expect(text);
                seen[1] += 1;
            }
            _ => panic!("{topic}"),
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn the_schema_of_commands_is_what_is_sent() {
    let command = validator("command");
    for (valid, value) in [
        (true, json!({})),
        (true, json!({"id": "1", "table": 1})),
        (
            true,
            json!({"verb": "takeback", "args": {"keep_plies": 40}}),
        ),
        (true, json!({"args": {"turn": "white"}})),
        (
            true,
            json!({"verb": "arm", "args": {"white": "Muster, Anna", "round": 3}}),
        ),
        (false, json!({"verb": "dance"})),
        (
            false,
            json!({"verb": "takeback", "args": {"keep_plies": "many"}}),
        ),
        (false, json!({"table": [1]})),
    ] {
        assert_eq!(command.is_valid(&value), valid, "{value}");
    }
}

#[test]
fn its_command_lines_are_understood() {
    use clap::Parser;
    let mut seen = 0;
    for words in lines("jadoube") {
        let end = words
            .iter()
            .position(|word| ["&", "|", ">"].contains(&word.as_str()))
            .unwrap_or(words.len());
        jadoube::commands::Cli::try_parse_from(&words[..end]).unwrap_or_else(|why| panic!("{why}"));
        seen += 1;
    }
    assert!(seen >= 2, "{seen}");
}
