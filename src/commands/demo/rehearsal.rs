//! The afternoon in virtual time: each table's board, line and session, and the judge of the demo.

use shakmaty::Square;

use super::AFTERNOON_SEED;
use super::desk;
use super::judge::{Judge, Truth, Verdict};
use super::news::News;
use super::programme::{self, TableProgramme};
use crate::Millis;
use crate::command::Command;
use crate::commands::simulate;
use crate::session::{Session, Settings, Watch};
use crate::sim::afternoon;
use crate::sim::line::Line;
use crate::sim::player::{Event, Player, TableOptions};
use crate::sim::script::{Act, Incident, IncidentKind, Script};
use crate::trace::{self, Header, Trace};

/// A table and the session that reads it.
struct Table<'a> {
    programme: &'a TableProgramme,
    player: Player,
    line: Line,
    /// When the port is opened again.
    reopened_ms: Option<Millis>,
    session: Session,
    judge: Judge,
    /// What came and went, for whoever looks for a fault.
    trace: Trace,
}

impl<'a> Table<'a> {
    fn new(programme: &'a TableProgramme) -> Table<'a> {
        let options = TableOptions {
            control: Some(programme::control()),
            rotated: programme.rotated,
            ..TableOptions::of(programme.family)
        };
        let mut settings = Settings::new(&programme.name);
        settings.family = programme.family;
        settings.watch = Watch::Judge;
        settings.time_control = programme::CONTROL.parse().ok();
        let script = programme.script.clone();
        let player = simulate::at_table(script, &programme.boards, &options).unwrap();
        Table {
            line: Line::new(player.board().baud()),
            player,
            programme,
            reopened_ms: None,
            session: Session::new(settings, 0),
            judge: Judge::default(),
            trace: Trace {
                header: Header {
                    board: programme.family,
                    silence: Watch::Judge,
                    time_control: programme::CONTROL.parse().ok(),
                    ..Header::default()
                },
                lines: Vec::new(),
            },
        }
    }

    fn note(&mut self, at_ms: Millis, event: trace::Event) {
        let number = self.trace.lines.len() + 1;
        self.trace.lines.push(trace::Line {
            at_ms,
            number,
            event,
        });
    }

    fn command(&mut self, now: Millis, verb: &str, body: &serde_json::Value) {
        let mut whole = body.clone();
        whole["verb"] = verb.into();
        let text = whole.to_string();
        let mut command = Command::parse(&text, None).unwrap();
        command.id = format!("{verb}-{now}");
        self.note(now, trace::Event::Command(text));
        self.session.handle_command(now, command);
        let (_, reply) = self.session.poll_reply().unwrap();
        assert!(reply.ok, "{verb}: {reply:?}");
    }

    fn pair(&mut self, now: Millis, round: u8) {
        let pairing = desk::pairing(&self.programme.name, round);
        self.command(now, "arm", &serde_json::json!({ "args": pairing }));
    }

    fn run(&mut self) {
        let mut now = 0;
        if self.programme.paired {
            self.pair(now, 1);
        }
        self.session.handle_opened(now);
        let mut end = None;
        loop {
            self.hear();
            while let Some(bytes) = self.session.poll_write() {
                self.note(now, trace::Event::ToBoard(bytes.clone()));
                self.player.handle_host(now, &bytes);
            }
            self.events(now);
            while let Some(message) = self.player.poll_output() {
                self.line.write(now, &message);
            }
            if self.player.is_finished() && end.is_none() {
                end = Some(now + 30_000);
            }
            let next = [
                self.line.poll_timeout(),
                self.player.poll_timeout(),
                self.session.poll_timeout(),
                self.reopened_ms,
            ];
            match next.into_iter().flatten().min() {
                Some(next) if end.is_none_or(|end| next <= end) => now = next.max(now),
                _ => break,
            }
            let bytes = self.line.poll(now);
            if !bytes.is_empty() {
                self.note(now, trace::Event::FromBoard(bytes.clone()));
                self.session.handle_bytes(now, &bytes);
            }
            if self.reopened_ms.is_some_and(|at| at <= now) {
                self.reopened_ms = None;
                let family = self.player.board().family();
                self.note(now, trace::Event::Opened(String::new()));
                self.session.handle_family(now, family);
                self.session.handle_opened(now);
            }
            self.player.handle_timeout(now);
            self.session.handle_timeout(now);
        }
        self.hear();
    }

    fn events(&mut self, now: Millis) {
        while let Some(event) = self.player.poll_event() {
            match event {
                Event::Unplugged => {
                    self.line.clear();
                    self.note(now, trace::Event::Unplugged(String::new()));
                    self.session.handle_lost(now);
                }
                Event::Plugged => {
                    self.line = Line::new(self.player.board().baud());
                    // A port is looked for once a second.
                    self.reopened_ms = Some(now + 700);
                }
                Event::Paired { round } => self.pair(now, round),
                Event::Result { result } => {
                    let body = desk::result(&self.programme.name, result);
                    self.command(now, "result", &body);
                }
            }
        }
    }

    fn hear(&mut self) {
        while self.session.poll_entry().is_some() {}
        while let Some(publication) = self.session.poll_publication() {
            let topic = publication.topic.path("demo");
            let text = publication.body.to_text();
            let now = match &publication.body {
                crate::publish::Body::Payload(payload) => payload.envelope().mono_ms,
                _ => 0,
            };
            if let Some(news) = News::read(&topic, text.as_bytes()) {
                self.judge.hear(now, &news);
            }
        }
    }
}

fn judged(programme: &TableProgramme) -> (Vec<String>, Trace) {
    let mut table = Table::new(programme);
    table.run();
    let began_ms = table.player.began_ms().unwrap();
    let truth = [Truth::new(&programme.name, &programme.script, began_ms)];
    let Verdict {
        games,
        equal,
        mut differences,
    } = table.judge.verdict(&truth);
    if equal != games {
        differences.push(format!("{equal} of {games} records are equal"));
    }
    if !table.judge.is_complete(&truth) {
        differences.push("something is still awaited".into());
    }
    (differences, table.trace)
}

/// Those of the demo first. `JADOUBE_SEEDS=N` tries N more.
#[test]
fn every_table_passes() {
    let more = std::env::var("JADOUBE_SEEDS").map_or(SEEDS, |text| text.parse().unwrap());
    let mut wrong = String::new();
    for seed in std::iter::once(AFTERNOON_SEED).chain(1..=more) {
        let tables = programme::afternoon(afternoon::TABLES, seed, 1.0);
        assert_eq!(tables.len(), 8);
        for programme in tables {
            let name = &programme.name;
            assert_eq!(programme.script.games.len(), afternoon::ROUNDS);
            let (differences, trace) = judged(&programme);
            if !differences.is_empty() {
                let path = std::env::temp_dir().join(format!("afternoon-{seed}-{name}.trace"));
                std::fs::write(&path, trace.to_string()).unwrap();
                let path = path.display();
                wrong += &format!("seed {seed}, table {name}, {path}: {differences:#?}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What stands on the list is there to be told, and told it is; a judge without the list has something against it.
#[test]
fn what_is_wrong_in_the_afternoon_is_told() {
    let mut tables = programme::afternoon(1, AFTERNOON_SEED, 1.0);
    let mut programme = tables.remove(0);
    let mut table = Table::new(&programme);
    table.run();
    let began_ms = table.player.began_ms().unwrap();
    let judge = table.judge;
    let differences = |programme: &TableProgramme| {
        let truth = [Truth::new(&programme.name, &programme.script, began_ms)];
        judge.verdict(&truth).differences.join("\n")
    };
    assert_eq!(differences(&programme), "");

    // A set-up that was right is no cause for the alert.
    let incidents = &mut programme.script.games[1].incidents;
    let wrong = incidents
        .iter()
        .position(|incident| incident.kind == IncidentKind::SetUpWrong);
    let wrong = incidents.remove(wrong.unwrap());
    assert!(differences(&programme).contains("an alert without a cause: 1 · 1 · the start"));

    // One that was wrong elsewhere has to be told with its squares.
    let elsewhere = Incident {
        squares: vec![Square::A1, Square::H8],
        ..wrong
    };
    programme.script.games[1].incidents.push(elsewhere);
    assert!(differences(&programme).contains("the alert names the squares b1 c1"));

    // The last moves of the second game, had they been analysis.
    let game = &mut programme.script.games[1];
    game.plies.truncate(8);
    game.to_ms = game.plies[7].placed_ms;
    let told = differences(&programme);
    assert!(
        told.contains("was told as ply 9 while nobody played"),
        "{told}"
    );
    assert!(told.contains("game 2 differs from ply 9"), "{told}");
}

/// Chance makes a round longer than its place in the timetable; the demo's players keep to it.
#[test]
fn the_demo_keeps_to_its_timetable() {
    let tables = programme::afternoon(afternoon::TABLES, AFTERNOON_SEED, 1.0);
    let at = |script: &Script, act: fn(&Act) -> bool| {
        let action = script.actions.iter().find(|action| act(&action.kind));
        action.map(|action| action.at_ms)
    };
    let mut swapped = 0;
    for table in &tables {
        let last = table.script.actions.last().unwrap().at_ms;
        assert!(last < MOST_MS, "table {} takes {last} ms", table.name);
        let Some(&(other, family)) = table.boards.get(1) else {
            continue;
        };
        // Both boards are off their tables before either is plugged in.
        let other = &tables[other];
        assert_eq!(family, other.family);
        assert_eq!(tables[other.boards[1].0].name, table.name);
        let unplugged = at(&other.script, |act| *act == Act::Unplugged).unwrap();
        let plugged = at(&table.script, |act| matches!(act, Act::Plugged { .. })).unwrap();
        assert!(unplugged < plugged, "table {}", table.name);
        swapped += 1;
    }
    assert_eq!(swapped, 4);
}

/// So long the afternoon takes at most, that all is over within four minutes.
const MOST_MS: Millis = 217_000;

/// How many afternoons there are besides the demo's.
const SEEDS: u64 = 6;
