//! What holds of a session whatever comes in: its output does not depend on how bytes are cut, when timers are served or when the
//! daemon restarts; nothing makes it panic or grow; its record is always one that can be played; and hands are understood.
//!
//! `JADOUBE_FUZZ_BYTES=10000000 cargo test --release --test properties` feeds the full number of random bytes, `JADOUBE_SEEDS=N`
//! tries N times as many seeds.

#[allow(dead_code)]
#[path = "support/case.rs"]
mod case;
#[allow(dead_code)]
#[path = "support/games.rs"]
mod games;
#[allow(dead_code)]
#[path = "support/live.rs"]
mod live;
#[path = "support/table.rs"]
mod table;
#[allow(dead_code)]
#[path = "support/verdict.rs"]
mod verdict;

use case::{Case, Press};
use fastrand::Rng;
use jadoube::command::Command;
use jadoube::laws::position::Position;
use jadoube::publish::{
    self, Body, Doubt, Event, EventKind, Game, Payload, Publication, Severity, Topic,
};
use jadoube::replay;
use jadoube::session::{Session, Settings};
use jadoube::sim::hands::Level;
use jadoube::sim::pgn::SimGame;
use jadoube::sim::player::TableOptions;
use jadoube::sim::{self, Traced};
use jadoube::trace::{self, Seconds, Trace};
use jadoube::wire::Family;
use live::{Conditions, Live};
use std::collections::{BTreeMap, HashMap};
use table::{Driver, Input, Inputs, Told, difference, inputs, keep, run};
use verdict::Verdict;

/// The same bytes cut at any places give the same publications.
#[test]
fn cuts_change_nothing() {
    for sample in samples() {
        for seed in 0..seeds(4) {
            let mut rng = Rng::with_seed(seed);
            let whole = sprinkled(&sample, seed);
            let expected = run(&sample.settings, &whole, Driver::Punctual);
            let cut = recut(&whole, &mut rng);
            let found = run(&sample.settings, &cut, Driver::Punctual);
            sample.expect_same("cut", seed, &cut, &expected, &found);
        }
    }
}

/// Timers served late give the same publications, with the same times and in the same order.
#[test]
fn late_timers_change_nothing() {
    for sample in samples() {
        for seed in 0..seeds(4) {
            let inputs = sprinkled(&sample, seed);
            let expected = run(&sample.settings, &inputs, Driver::Punctual);
            for driver in [Driver::Asleep, Driver::Unsteady(seed)] {
                let found = run(&sample.settings, &inputs, driver);
                sample.expect_same("late", seed, &inputs, &expected, &found);
            }
        }
    }
}

/// A restart anywhere changes no later publication but `boot`.
#[test]
fn restarts_change_nothing() {
    for sample in samples() {
        for seed in 0..seeds(6) {
            let mut rng = Rng::with_seed(seed);
            let inputs = sprinkled(&sample, seed);
            let expected = run(&sample.settings, &inputs, Driver::Punctual);
            // In the middle of frames, too.
            let mut restarted = recut(&inputs, &mut rng);
            for _ in 0..rng.usize(1..4) {
                restart_somewhere(&mut restarted, &mut rng);
            }
            let found = run(&sample.settings, &restarted, Driver::Punctual);
            sample.expect_same("restart", seed, &restarted, &expected, &found);
        }
    }
}

/// Whatever is done and asked, the record can be played, its numbers run on, and every payload is what its schema says.
#[test]
fn the_record_is_always_playable() {
    let schemas = Schemas::new();
    let mut payloads = 0;
    for sample in samples() {
        for seed in 0..seeds(4) {
            let inputs = sprinkled(&sample, seed);
            let told = run(&sample.settings, &inputs, Driver::Punctual);
            if let Err(why) = is_consistent(&told, &schemas) {
                panic!(
                    "{} seed {seed}: {why}\n{}",
                    sample.name,
                    keep(
                        &format!("record-{}-{seed}", sample.name),
                        &sample.trace,
                        &inputs
                    )
                );
            }
            payloads += told.json().count();
        }
    }
    println!("payloads valid: {payloads}");
}

/// Random and mutated bytes, commands and times: no panic, nothing piles up.
#[test]
fn noise_is_survived() {
    let wanted: usize = number("JADOUBE_FUZZ_BYTES").unwrap_or(500_000);
    let sources: Vec<(Family, Vec<u8>)> = samples()
        .iter()
        .map(|sample| (sample.settings.family, bytes_of(&sample.inputs)))
        .filter(|(_, bytes)| !bytes.is_empty())
        .collect();
    let mut rng = Rng::with_seed(1);
    let mut fed = 0;
    let mut most_buffered = 0;
    let mut entries = 0_usize;
    while fed < wanted {
        let (family, sample) = &sources[rng.usize(..sources.len())];
        let mut settings = Settings::new("1");
        settings.family = *family;
        let mut session = Session::new(settings, 0);
        session.handle_opened(0);
        let mut now = 0;
        // Several lives a board, so that noise falls into games, too.
        for _ in 0..4 {
            let bytes = if rng.u8(..4) == 0 {
                std::iter::repeat_with(|| rng.u8(..)).take(4_000).collect()
            } else {
                mutated(sample, &mut rng)
            };
            fed += bytes.len();
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(rng.usize(1..40).min(rest.len()));
                rest = after;
                session.handle_bytes(now, chunk);
                let kept = session.unfinished_frame().bytes.len();
                assert!(kept <= longest(*family), "{family}: {kept} bytes kept");
                most_buffered = most_buffered.max(kept);
                if rng.u8(..50) == 0
                    && let Ok(command) = Command::parse(&random_command(&mut rng), None)
                {
                    session.handle_command(now, command);
                }
                if rng.u8(..200) == 0 {
                    session.handle_lost(now);
                }
                now += match rng.u8(..8) {
                    0 => rng.u64(..20_000),
                    1..=3 => rng.u64(..500),
                    _ => 0,
                };
                if rng.bool() {
                    session.handle_timeout(now);
                }
                // What is handed out must not grow with what came in but by a fair share of it.
                let mut handed_out = 0;
                while session.poll_write().is_some() {
                    handed_out += 1;
                }
                while session.poll_publication().is_some() || session.poll_reply().is_some() {
                    handed_out += 1;
                }
                while session.poll_entry().is_some() {
                    entries += 1;
                }
                assert!(handed_out < 2_000, "{handed_out} messages from one chunk");
            }
        }
    }
    println!("noise: {fed} bytes, {entries} entries, {most_buffered} bytes kept at most");
}

/// Games played by human hands come out as they were played.
#[test]
fn human_games_are_read_exactly() {
    let mut tally = Tally::default();
    for seed in 0..seeds(35) {
        let game = games::random_game(seed, 60 + (seed % 80) as usize);
        tally.play(&game, seed, &format!("random-{seed}"));
    }
    // Every so manieth game of the corpus, so that the share stays the same however large it is.
    for (index, game) in games::corpus_games().iter().enumerate().step_by(101) {
        tally.play(game, index as u64, &format!("corpus-{index}"));
    }
    tally.close();
}

/// Whatever hands do to any legal game, on either kind of board and standing either way: nothing panics, and the record can be played.
/// How often it is wrong and nothing says so is printed.
#[test]
fn any_hands_leave_a_record_that_can_be_played() {
    for family in [Family::Dgt, Family::Psb1] {
        for level in [Level::Clean, Level::Human, Level::Blitz, Level::Faulty] {
            let (mut games, mut exact, mut silent) = (0, 0, 0);
            for seed in 0..seeds(6) {
                let game = match seed % 3 {
                    2 => games::random_chess960(seed, 70),
                    _ => games::random_game(seed, 70),
                };
                let conditions = Conditions {
                    level,
                    family,
                    scan_ms: [40, 250][seed as usize % 2],
                    unsent: if level == Level::Blitz { 10 } else { 0 },
                    rotated: seed % 4 == 1,
                    ..Conditions::USUAL
                };
                let live = live::play(&game, &conditions, seed);
                let verdict = Verdict::new(&live);
                if let Err(why) = can_be_played(&live) {
                    panic!("{family} {level} seed {seed}: {why}");
                }
                games += 1;
                exact += usize::from(verdict.exact);
                silent += usize::from(verdict.silent);
                if family == Family::Dgt && level == Level::Clean {
                    assert!(verdict.is_clean(), "seed {seed}: {}", verdict.why());
                }
            }
            println!("{family} {level}: {exact} of {games} games exact, {silent} silent errors");
        }
    }
}

/// The record as last told, from the game's own beginning.
fn can_be_played(live: &Live) -> Result<(), String> {
    let mut position = Position::from_fen(&live.truth.start_fen, live.truth.chess960)
        .map_err(|error| error.to_string())?;
    for (number, ply) in (1..).zip(&live.told.record) {
        let accepted = ply.doubt == Some(Doubt::IllegalAccepted);
        let m = position
            .parse_move(&ply.uci, accepted)
            .map_err(|error| format!("ply {number}: {error}"))?;
        position = position.play(m);
    }
    Ok(())
}

// --- samples ---

/// A trace, and what its session is told.
struct Sample {
    name: String,
    trace: Trace,
    settings: Settings,
    inputs: Inputs,
}

impl Sample {
    fn new(name: String, trace: Trace) -> Sample {
        let settings = replay::settings(&trace, Settings::new("1"))
            .expect("a trace of a board that can be read");
        let inputs = inputs(&trace);
        Sample {
            name,
            trace,
            settings,
            inputs,
        }
    }

    fn expect_same(&self, kind: &str, seed: u64, inputs: &Inputs, expected: &Told, found: &Told) {
        if let Some(difference) = difference(expected, found) {
            panic!(
                "{kind} {} seed {seed}: {difference}\n{}",
                self.name,
                keep(&format!("{kind}-{}-{seed}", self.name), &self.trace, inputs)
            );
        }
    }
}

/// The reported cases, games by clean and by human hands, and the recordings where they are.
fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    let cases = include_str!("cases.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    for line in cases {
        let case = Case::parse(line);
        for press in [Press::Command, Press::Clock] {
            let trace = Trace::parse(&case.trace(press)).expect("the case as a trace");
            samples.push(Sample::new(format!("{}-{press:?}", case.id), trace));
        }
    }
    for seed in 0..24 {
        let level = match seed % 6 {
            0 => Level::Clean,
            1 | 4 => Level::Human,
            2 | 5 => Level::Blitz,
            _ => Level::Faulty,
        };
        let game = games::random_game(seed, 24);
        let name = format!("{level}-{seed}");
        samples.push(Sample::new(name, traced(&game, level, seed).to_trace()));
    }
    for seed in 0..4 {
        let options = TableOptions {
            rotated: seed % 2 == 1,
            ..TableOptions::of(Family::Psb1)
        };
        let game = games::random_game(seed, 12);
        let traced = sim::trace(&game, Level::Human, seed, &options);
        samples.push(Sample::new(format!("presence-{seed}"), traced.to_trace()));
    }
    for recording in games::recordings() {
        let text: String = recording.messages.iter().fold(
            "# jadoube-trace: 1\n# board: dgt\n".into(),
            |text, (at, bytes)| {
                let told = trace::Event::FromBoard(bytes.clone());
                format!("{text}{} {told}\n", Seconds(*at))
            },
        );
        let trace = Trace::parse(&text).expect("the recording as a trace");
        samples.push(Sample::new(format!("recording-{}", recording.name), trace));
    }
    samples
}

fn traced(game: &SimGame, level: Level, seed: u64) -> Traced {
    let family = match seed % 4 {
        3 => Family::Psb1,
        _ => Family::Dgt,
    };
    let options = TableOptions {
        rotated: seed % 2 == 1,
        control: (seed % 4 < 3).then(|| "300+3".parse().expect("a time control")),
        scan_ms: [0, 40, 250][seed as usize % 3],
        unsent_per_mille: if level == Level::Blitz { 10 } else { 0 },
        seed,
        ..TableOptions::of(family)
    };
    sim::trace(game, level, seed, &options)
}

/// The sample with commands and noise between its lines; as it is for seed 0.
fn sprinkled(sample: &Sample, seed: u64) -> Inputs {
    let mut inputs = sample.inputs.clone();
    if seed == 0 {
        return inputs;
    }
    let mut rng = Rng::with_seed(seed);
    for _ in 0..rng.usize(1..8) {
        let at = rng.usize(..=inputs.len());
        let now = moment(&inputs, at, &mut rng);
        let input = match rng.u8(..8) {
            0 => {
                let length = rng.usize(1..12);
                Input::Bytes(std::iter::repeat_with(|| rng.u8(..)).take(length).collect())
            }
            1 if rng.bool() => Input::Lost,
            1 => Input::Opened,
            _ => match Command::parse(&random_command(&mut rng), None) {
                Ok(command) => Input::Command(Box::new(command)),
                Err(_) => continue,
            },
        };
        inputs.insert(at, (now, input));
    }
    inputs
}

/// A time that an input put in at this index may have.
fn moment(inputs: &Inputs, at: usize, rng: &mut Rng) -> u64 {
    let from = at.checked_sub(1).map_or(0, |before| inputs[before].0);
    let to = inputs.get(at).map_or(from + 30_000, |(at, _)| *at);
    match rng.u8(..4) {
        0 => from,
        1 => to,
        _ => rng.u64(from..=to),
    }
}

fn restart_somewhere(inputs: &mut Inputs, rng: &mut Rng) {
    let at = rng.usize(..=inputs.len());
    let now = moment(inputs, at, rng);
    inputs.insert(at, (now, Input::Restart));
}

/// The same bytes at the same times in other pieces: neighbours of one time joined, then cut anywhere.
fn recut(inputs: &Inputs, rng: &mut Rng) -> Inputs {
    let mut joined: Inputs = Vec::new();
    for (at, input) in inputs {
        match (joined.last_mut(), input) {
            (Some((before, Input::Bytes(bytes))), Input::Bytes(more)) if before == at => {
                bytes.extend(more);
            }
            _ => joined.push((*at, input.clone())),
        }
    }
    let mut cut: Inputs = Vec::new();
    for (at, input) in joined {
        let Input::Bytes(bytes) = input else {
            cut.push((at, input));
            continue;
        };
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rng.usize(1..=rest.len()));
            cut.push((at, Input::Bytes(piece.to_vec())));
            rest = after;
        }
    }
    cut
}

fn bytes_of(inputs: &Inputs) -> Vec<u8> {
    inputs
        .iter()
        .filter_map(|(_, input)| match input {
            Input::Bytes(bytes) => Some(bytes.as_slice()),
            _ => None,
        })
        .flatten()
        .copied()
        .collect()
}

/// Bits flipped; bytes doubled, dropped and swapped; squares and clocks that say something else.
fn mutated(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let rate = [1_000, 100, 20][rng.usize(..3)];
    let mut mutated = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if rng.usize(..rate) > 0 {
            mutated.push(byte);
            continue;
        }
        match rng.u8(..6) {
            0 => mutated.push(byte ^ 1 << rng.u8(..8)),
            1 => mutated.extend([byte, byte]),
            2 => {}
            3 => {
                mutated.push(byte);
                let last = mutated.len() - 1;
                mutated.swap(last, last.saturating_sub(1));
            }
            // A whole frame that says anything: a square, or the clock.
            4 => mutated.extend([0x8e, 0, 5, rng.u8(..64), rng.u8(..16)]),
            _ => {
                mutated.extend([0x8d, 0, 10]);
                mutated.extend(std::iter::repeat_with(|| rng.u8(..0x80)).take(7));
            }
        }
    }
    mutated
}

/// A command of any verb with arguments that fit or do not.
fn random_command(rng: &mut Rng) -> String {
    const SQUARES: &[&str] = &[
        "e2", "e4", "e7", "e5", "g1", "f3", "a7", "a8", "e1", "h8", "d5",
    ];
    const MOVES: &[&str] = &[
        "e2e4", "Nf3", "e7e5", "O-O", "a7a8q", "Kxe9", "", "exd5", "d7d5", "Nc6",
    ];
    const FENS: &[&str] = &[
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1",
        "4k3/4Q3/8/8/8/8/8/4K3 w - - 0 1",
        "8/8/8/8/8/8/8/8 w - - 0 1",
        "no position",
    ];
    const SIDES: &[&str] = &["white", "black"];
    const RESULTS: &[&str] = &["1-0", "0-1", "1/2-1/2", "0-0", "*", "2-0"];
    const WAYS: &[&str] = &["auto", "normal", "rotated", "sideways"];
    fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
        from[rng.usize(..from.len())]
    }
    let (verb, args) = match rng.u8(..14) {
        0 => {
            let armed = match rng.u8(..5) {
                0 => r#"{"adopt":true}"#.into(),
                1 => {
                    r#"{"game":"r3-12","white":{"name":"Weiß, A."},"time_control":"300+3"}"#.into()
                }
                2 => r#"{"ruleset":"fide-1997","variant":"blitz","supervised":false}"#.into(),
                3 => format!(
                    r#"{{"fen":"{}","chess960":{}}}"#,
                    pick(rng, FENS),
                    rng.bool()
                ),
                _ => r#"{"time_control":"soon"}"#.into(),
            };
            ("arm", armed)
        }
        1 | 2 => ("press", format!(r#"{{"side":"{}"}}"#, pick(rng, SIDES))),
        3 => (
            "press",
            format!(
                r#"{{"side":"{}","white_ms":{},"black_ms":{}}}"#,
                pick(rng, SIDES),
                rng.u64(..),
                rng.u64(..600_000)
            ),
        ),
        4 if rng.bool() => ("takeback", "{}".into()),
        4 => ("takeback", format!(r#"{{"keep_plies":{}}}"#, rng.u32(..6))),
        5 if rng.bool() => ("play", format!(r#"{{"move":"{}"}}"#, pick(rng, MOVES))),
        5 => (
            "play",
            format!(
                r#"{{"move":"{}{}","ply":{}}}"#,
                pick(rng, SQUARES),
                pick(rng, SQUARES),
                rng.u32(..6)
            ),
        ),
        6 => (
            "set_position",
            format!(r#"{{"fen":"{}"}}"#, pick(rng, FENS)),
        ),
        7 if rng.bool() => ("accept_position", "{}".into()),
        7 => (
            "accept_position",
            format!(r#"{{"turn":"{}"}}"#, pick(rng, SIDES)),
        ),
        8 if rng.bool() => ("accept_illegal", "{}".into()),
        8 => (
            "accept_illegal",
            format!(
                r#"{{"uci":"{}{}"}}"#,
                pick(rng, SQUARES),
                pick(rng, SQUARES)
            ),
        ),
        9 if rng.bool() => (
            "resolve",
            match rng.bool() {
                true => format!(r#"{{"ply":{},"promotion":"knight"}}"#, rng.u32(..6)),
                false => format!(
                    r#"{{"ply":{},"line":"{}{}"}}"#,
                    rng.u32(..6),
                    pick(rng, SQUARES),
                    pick(rng, SQUARES)
                ),
            },
        ),
        9 => (
            "result",
            format!(r#"{{"result":"{}"}}"#, pick(rng, RESULTS)),
        ),
        10 => ("resend", "{}".into()),
        11 => (
            "orientation",
            format!(r#"{{"orientation":"{}"}}"#, pick(rng, WAYS)),
        ),
        12 => ("ack", format!(r#"{{"alert":"a{}"}}"#, rng.u8(1..5))),
        _ => ("dismiss", format!(r#"{{"alert":"a{}"}}"#, rng.u8(1..5))),
    };
    let condition = match rng.u8(..10) {
        0 => format!(r#","expect_rev":{}"#, rng.u8(..12)),
        1 => r#","table":"2""#.into(),
        2 => r#","expires":"soon""#.into(),
        _ => String::new(),
    };
    format!(
        r#"{{"verb":"{verb}","args":{args},"id":"c{}"{condition}}}"#,
        rng.u8(..40)
    )
}

// --- what must hold of everything told ---

struct Schemas(BTreeMap<&'static str, jsonschema::Validator>);

impl Schemas {
    fn new() -> Schemas {
        Schemas(
            publish::schemas()
                .into_iter()
                .map(|(name, schema)| {
                    let validator =
                        jsonschema::validator_for(schema.as_value()).expect("a valid schema");
                    (name, validator)
                })
                .collect(),
        )
    }

    fn check(&self, publication: &Publication, text: &str) -> Result<(), String> {
        let name = match &publication.topic {
            Topic::BoardStatus { .. } => "board-status",
            Topic::Position { .. } => "position",
            Topic::Clock { .. } => "clock",
            Topic::Game { .. } => "game",
            Topic::Event { .. } => "event",
            Topic::Alert { .. } => "alert",
            topic => return Err(format!("JSON on {topic:?}")),
        };
        let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        self.0[name]
            .validate(&value)
            .map_err(|error| format!("{name}: {error} in {text}"))
    }
}

fn is_consistent(told: &Told, schemas: &Schemas) -> Result<(), String> {
    let mut seq = 0;
    let mut time = 0;
    let mut revs: HashMap<String, u64> = HashMap::new();
    for (publication, text) in told.json() {
        schemas.check(publication, &text)?;
        let envelope: publish::Envelope =
            serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if matches!(publication.topic, Topic::Event { .. }) {
            let event: Event = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            seq += 1;
            if event.id != format!("{}-{seq}", envelope.stream) {
                return Err(format!("id {} of event {seq}", event.id));
            }
            if let Some(game) = event.game {
                let before = revs.insert(game, event.rev).unwrap_or(0);
                if event.rev < before {
                    return Err(format!("rev {} after {before} in {text}", event.rev));
                }
            }
        }
        if envelope.seq != seq {
            return Err(format!("seq {} after {seq} in {text}", envelope.seq));
        }
        if envelope.mono_ms < time {
            return Err(format!("time runs backwards in {text}"));
        }
        time = envelope.mono_ms;
        if matches!(publication.topic, Topic::Game { .. }) {
            let game: Game = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            let before = revs.insert(game.game.clone(), game.rev).unwrap_or(0);
            if game.rev < before {
                return Err(format!("rev {} after {before} in {text}", game.rev));
            }
            is_playable(&game).map_err(|why| format!("{why} in {text}"))?;
        }
    }
    Ok(())
}

/// Every ply follows from the position before it, and the last one leads to the position that the record names.
fn is_playable(game: &Game) -> Result<(), String> {
    let mut position =
        Position::from_fen(&game.start_fen, game.chess960).map_err(|error| error.to_string())?;
    for (number, ply) in (1..).zip(&game.moves) {
        if ply.ply != number {
            return Err(format!("ply {} in place {number}", ply.ply));
        }
        let accepted = ply.doubt == Some(Doubt::IllegalAccepted);
        let m = position
            .parse_move(&ply.uci, accepted)
            .map_err(|error| format!("ply {number}: {error}"))?;
        if position.san(m) != ply.san {
            return Err(format!(
                "ply {number} is {}, not {}",
                position.san(m),
                ply.san
            ));
        }
        position = position.play(m);
    }
    if position.fen() != game.fen {
        return Err(format!(
            "the moves lead to {}, not {}",
            position.fen(),
            game.fen
        ));
    }
    Ok(())
}

// --- human hands ---

#[derive(Default)]
struct Tally {
    played: usize,
    exact: usize,
    false_alarms: usize,
    failures: Vec<String>,
}

impl Tally {
    /// Plays a game on a fast and a slow board, standing either way.
    fn play(&mut self, game: &SimGame, seed: u64, name: &str) {
        for (scan_ms, rotated) in [(40, seed.is_multiple_of(2)), (250, !seed.is_multiple_of(2))] {
            let options = TableOptions {
                control: Some("5400+30".parse().expect("a time control")),
                scan_ms,
                rotated,
                ..TableOptions::default()
            };
            let traced = sim::trace(game, Level::Human, seed, &options);
            let name = format!("{name}-{scan_ms}{}", if rotated { "-rotated" } else { "" });
            self.judge(&traced, &name);
        }
    }

    fn judge(&mut self, traced: &Traced, name: &str) {
        let trace = traced.to_trace();
        let settings = replay::settings(&trace, Settings::new("1")).expect("a DGT board");
        let told = run(&settings, &inputs(&trace), Driver::Punctual);
        let truth = &traced.games[0];
        let record =
            told.publications
                .iter()
                .rev()
                .find_map(|publication| match &publication.body {
                    Body::Payload(Payload::Game(game)) => Some(game),
                    _ => None,
                });
        let played: Vec<String> = record
            .iter()
            .flat_map(|game| game.moves.iter().map(|ply| ply.uci.clone()))
            .collect();
        self.played += 1;
        let exact = played == truth.uci();
        self.exact += usize::from(exact);
        let alarms: Vec<String> = told
            .json()
            .filter(|(publication, _)| matches!(publication.topic, Topic::Event { .. }))
            .filter_map(|(_, text)| serde_json::from_str::<Event>(&text).ok())
            .filter_map(|event| match event.kind {
                EventKind::AlertRaised { alert } | EventKind::AlertChanged { alert }
                    if alert.severity >= Severity::Warn && !FROM_HANDS.contains(&alert.kind) =>
                {
                    Some(format!("{} {}", event.envelope.mono_ms, alert.text))
                }
                _ => None,
            })
            .collect();
        self.false_alarms += alarms.len();
        if !exact || !alarms.is_empty() {
            let at = played
                .iter()
                .zip(truth.uci())
                .position(|(found, played)| found != played)
                .unwrap_or(played.len().min(truth.plies.len()));
            self.failures.push(format!(
                "{name}: ply {} {:?}, record has {:?}; alarms {alarms:?}; {}",
                at + 1,
                truth.plies.get(at),
                played.get(at),
                keep(&format!("human-{name}"), &trace, &inputs(&trace))
            ));
        }
    }

    fn close(self) {
        println!(
            "human: {} of {} games exact, {} false alarms",
            self.exact, self.played, self.false_alarms
        );
        assert!(self.failures.is_empty(), "{}", self.failures.join("\n"));
    }
}

/// Alerts about what hands do to men, which may well be true of human ones.
const FROM_HANDS: &[publish::AlertKind] = &[
    publish::AlertKind::TouchViolation,
    publish::AlertKind::ReleaseViolation,
];

/// The most that is kept of what a board of this family says: a frame (protocol sheet 3.1), or a line and the scan before it.
fn longest(family: Family) -> usize {
    match family {
        Family::Psb1 => 2 * 85,
        // Trademark and log may be as long as a header can announce.
        _ => 0x3fff,
    }
}

fn seeds(count: u64) -> u64 {
    count * number("JADOUBE_SEEDS").unwrap_or(1) as u64
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}
