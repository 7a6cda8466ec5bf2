//! A session under a driver that can be unpunctual, and what came of it.

use fastrand::Rng;
use jadoube::Millis;
use jadoube::command::Command;
use jadoube::publish::{Body, Publication};
use jadoube::session::{Entry, Session, Settings};
use jadoube::trace::{self, Trace};
use std::fmt::Write as _;

/// Something that is handed to a session.
#[derive(Debug, Clone)]
pub enum Input {
    Bytes(Vec<u8>),
    Command(Box<Command>),
    Lost,
    Opened,
    Restart,
}

/// Inputs in order of time.
pub type Inputs = Vec<(Millis, Input)>;

/// When the driver comes to call `handle_timeout`.
#[derive(Debug, Clone)]
pub enum Driver {
    /// At every deadline.
    Punctual,
    /// Never before the next input comes.
    Asleep,
    /// Now and then, at a moment of its own.
    Unsteady(u64),
}

/// The inputs that a trace holds; lines that are no command are left out.
pub fn inputs(trace: &Trace) -> Inputs {
    trace
        .lines
        .iter()
        .filter_map(|line| {
            let input = match &line.event {
                trace::Event::FromBoard(bytes) => Input::Bytes(bytes.clone()),
                trace::Event::ToBoard(_) => return None,
                trace::Event::Command(text) => {
                    let mut command = Command::parse(text, None).ok()?;
                    if command.id.is_empty() {
                        command.id = line.number.to_string();
                    }
                    Input::Command(Box::new(command))
                }
                trace::Event::Unplugged(_) => Input::Lost,
                trace::Event::Opened(_) => Input::Opened,
                trace::Event::Restart => Input::Restart,
            };
            Some((line.at_ms, input))
        })
        .collect()
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Told {
    pub publications: Vec<Publication>,
    pub replies: Vec<String>,
}

impl Told {
    /// One line a publication; the name of the daemon's run is information only and left out.
    pub fn lines(&self) -> Vec<String> {
        self.publications
            .iter()
            .map(|publication| {
                let body = String::from_utf8_lossy(publication.body.as_bytes())
                    .replace("\"boot\":\"restarted\"", "\"boot\":\"replay\"");
                format!("{} {body}", publication.topic.path("node"))
            })
            .collect()
    }

    /// The JSON payloads.
    pub fn json(&self) -> impl Iterator<Item = (&Publication, &str)> {
        self.publications
            .iter()
            .filter_map(|publication| match &publication.body {
                Body::Json(text) => Some((publication, text.as_str())),
                _ => None,
            })
    }
}

/// Runs a session over the inputs, and on until no timer is left.
pub fn run(settings: &Settings, inputs: &[(Millis, Input)], driver: Driver) -> Told {
    let mut run = Run {
        session: Session::new(settings.clone(), 0),
        entries: Vec::new(),
        told: Told::default(),
    };
    run.session.handle_opened(0);
    run.drain();
    let mut rng = match driver {
        Driver::Unsteady(seed) => Rng::with_seed(seed),
        _ => Rng::with_seed(0),
    };
    let mut before = 0;
    for (at, input) in inputs {
        match driver {
            Driver::Punctual => run.advance(*at),
            Driver::Asleep => {}
            Driver::Unsteady(_) => {
                let mut now = before;
                while now < *at && rng.u8(..4) > 0 {
                    now = rng.u64(now..=*at);
                    run.session.handle_timeout(now);
                    run.drain();
                }
            }
        }
        run.take(settings, *at, input);
        run.drain();
        before = *at;
    }
    let end = before + RUN_ON_MS;
    if matches!(driver, Driver::Punctual) {
        run.advance(end);
    }
    run.session.handle_timeout(end);
    run.drain();
    run.told
}

struct Run {
    session: Session,
    entries: Vec<Entry>,
    told: Told,
}

impl Run {
    fn take(&mut self, settings: &Settings, at: Millis, input: &Input) {
        match input {
            Input::Bytes(bytes) => self.session.handle_bytes(at, bytes),
            Input::Command(command) => self.session.handle_command(at, (**command).clone()),
            Input::Lost => self.session.handle_lost(at),
            Input::Opened => self.session.handle_opened(at),
            Input::Restart => self.restart(settings, at),
        }
    }

    fn advance(&mut self, until: Millis) {
        while let Some(at) = self.session.poll_timeout().filter(|at| *at <= until) {
            self.session.handle_timeout(at);
            self.drain();
        }
    }

    fn drain(&mut self) {
        while self.session.poll_write().is_some() {}
        self.entries
            .extend(std::iter::from_fn(|| self.session.poll_entry()));
        let publications = std::iter::from_fn(|| self.session.poll_publication());
        self.told.publications.extend(publications);
        while let Some((_, reply)) = self.session.poll_reply() {
            self.told
                .replies
                .push(format!("{} {} {:?}", reply.id, reply.ok, reply.error));
        }
    }

    fn restart(&mut self, settings: &Settings, at: Millis) {
        let unfinished = self.session.unfinished_frame();
        let skipped = self.session.skipped_bytes();
        let settings = Settings {
            boot: "restarted".into(),
            ..settings.clone()
        };
        // The record goes through the form in which it is kept.
        let entries: Vec<Entry> = self
            .entries
            .iter()
            .map(|entry| {
                let text = serde_json::to_string(entry).expect("an entry is plain data");
                serde_json::from_str(&text).expect("an entry reads as it was written")
            })
            .collect();
        self.session = Session::restore(settings, &entries, at);
        self.session.resume(at, &unfinished, skipped);
    }
}

/// Where two runs part; `None` if they do not.
pub fn difference(expected: &Told, found: &Told) -> Option<String> {
    let (expected_lines, found_lines) = (expected.lines(), found.lines());
    let at = (0..expected_lines.len().max(found_lines.len()))
        .find(|&index| expected_lines.get(index) != found_lines.get(index));
    let Some(at) = at else {
        return (expected.replies != found.replies)
            .then(|| format!("replies {:?}, not {:?}", found.replies, expected.replies));
    };
    let none = "nothing".to_owned();
    Some(format!(
        "publication {at} is\n  {}\nnot\n  {}\nafter\n  {}",
        found_lines.get(at).unwrap_or(&none),
        expected_lines.get(at).unwrap_or(&none),
        at.checked_sub(1)
            .and_then(|before| expected_lines.get(before))
            .unwrap_or(&none)
    ))
}

/// The inputs as a trace that can be replayed, kept for whoever looks into a failure; tells where.
pub fn keep(name: &str, trace: &Trace, inputs: &[(Millis, Input)]) -> String {
    let mut text = String::new();
    let _ = write!(text, "{}", trace.header);
    for (at, input) in inputs {
        let event = match input {
            Input::Bytes(bytes) => trace::Event::FromBoard(bytes.clone()),
            Input::Command(command) => {
                trace::Event::Command(serde_json::to_string(command).unwrap_or_default())
            }
            Input::Lost => trace::Event::Unplugged(String::new()),
            Input::Opened => trace::Event::Opened(String::new()),
            Input::Restart => trace::Event::Restart,
        };
        let line = trace::Line {
            at_ms: *at,
            number: 0,
            event,
        };
        let _ = writeln!(text, "{line}");
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fail-{name}.trace"));
    match std::fs::write(&path, text) {
        Ok(()) => format!("trace: {}", path.display()),
        Err(error) => format!("trace not written: {error}"),
    }
}

/// As a replay: virtual time runs on after the last input.
const RUN_ON_MS: Millis = 600_000;
