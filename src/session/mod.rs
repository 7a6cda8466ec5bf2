//! One table's whole pure pipeline behind one face: bytes, commands and time in; publications, writes and replies out.
//!
//! The calling contract, for a daemon and a replay alike:
//!
//! * `handle_*` takes something in, with the time; time never runs backwards. Everything that was due before is done first, as of its
//!   own deadline, so that a late caller gets what a punctual one gets.
//! * After each call `poll_publication`, `poll_write`, `poll_reply` and `poll_entry` are emptied.
//! * `poll_timeout` is the next time at which [`Session::handle_timeout`] has something to do; an early or repeated call is harmless.
//!
//! What a session knows is a fold over its [`Entry`]s. [`Session::restore`] runs the same fold over entries that were kept.

use crate::Millis;
use crate::board::{self, Driver, Orientation, OrientationSetting, Picture, Reading};
use crate::clock;
use crate::command::{Command, Reply};
use crate::game::{Game, Openings};
use crate::hush::Hush;
use crate::publish::{self, Link, Publication};
use crate::sensing::Sensing;
use crate::text::one_line;
use crate::wire::Family;
use std::collections::VecDeque;
use std::time::Duration;

pub mod alerts;
mod array;
mod clocks;
mod commands;
pub mod entry;
mod fold;
mod games;
mod link;
mod observed;
mod orientation;
mod output;
mod played_on;
mod resolve;
mod restless;
mod settings;
mod setup;
mod squares;

use board::driver::Unfinished;
pub use board::driver::Watch;
use entry::What;
pub use entry::{Entry, Wall};
pub use output::seconds as output_time;
pub use settings::{GameTiming, ResultByKings, Settings};

/// A board has one name. One that says another more often than that is not believed: each is told to the operator.
const RENAMED_MS: Millis = 1_000;

/// One table; see the module's page.
#[derive(Debug)]
pub struct Session {
    driver: Driver,
    table: Table,
    entries: VecDeque<Entry>,
    /// What a board says is wrong with it: a loose wire may have it say so at every look.
    hush: Hush<Duration>,
    /// When the board last said that its short number, or its long one, is another.
    named_at: [Option<Millis>; 2],
}

/// Everything that follows from the entries.
#[derive(Debug)]
struct Table {
    settings: Settings,
    now: Millis,
    wall: Wall,
    // --- the board ---
    abilities: board::Abilities,
    raw: Picture,
    /// When a square was last seen to change.
    changed_at: Option<Millis>,
    orientation: Option<Orientation>,
    orientation_setting: OrientationSetting,
    link: Link,
    names: link::Names,
    firmware: Option<String>,
    battery: Option<u8>,
    skipped_bytes: u64,
    // --- play ---
    sensing: Sensing,
    clock: clock::Tracker,
    game: Option<Game>,
    /// While the result that stands was set by somebody: the game as it would have gone on.
    played_on: Option<Box<played_on::PlayedOn>>,
    openings: Openings,
    array: array::Array,
    setup_still_since: Millis,
    setup_judged: bool,
    // --- what was told ---
    seq: u64,
    alerts: alerts::Alerts,
    misreads: squares::Misreads,
    restless: restless::Restless,
    unrest: Option<restless::Unrest>,
    commands_done: VecDeque<commands::Done>,
    /// What the answer to the command under way says besides.
    note: Option<String>,
    told_clock: Option<publish::ClockState>,
    told_position: Option<publish::PositionState>,
    told_status: Option<publish::BoardStatusState>,
    game_changed: bool,
    ask_dump: bool,
    publications: VecDeque<Publication>,
    replies: VecDeque<(Option<String>, Reply)>,
    stages: VecDeque<String>,
}

impl Session {
    pub fn new(settings: Settings, now: Millis) -> Session {
        let begun = Entry {
            at: now,
            what: What::Begun,
        };
        Session {
            driver: Driver::new(settings.family, settings.watch),
            table: Table::new(settings, now),
            entries: VecDeque::from([begun]),
            hush: Hush::default(),
            named_at: [None; 2],
        }
    }

    /// The session that these entries made. Until `told_until` it had run and told what followed, timers included, and does not tell
    /// it again; what fell due later is told when time is next handed in. Who is not sure passes the time of the last entry: a twin
    /// of what was told carries the same id.
    pub fn restore(settings: Settings, entries: &[Entry], told_until: Millis) -> Session {
        let begun = entries
            .first()
            .map_or(told_until, |entry| entry.at.min(told_until));
        let mut session = Session::new(settings, begun);
        session.entries.clear();
        for entry in entries {
            session.table.apply(entry);
            session.table.forget_output();
        }
        session.table.run_until(told_until);
        session.table.forget_output();
        session.driver.handle_family(session.table.settings.family);
        session
    }

    /// A board of this family is plugged in; told before the port is opened.
    pub fn handle_family(&mut self, now: Millis, family: Family) {
        if self.table.settings.family != family {
            self.driver.handle_family(family);
            self.enter(now, What::Family(family));
        }
    }

    /// The port is open, and the board will be asked what it is.
    pub fn handle_opened(&mut self, now: Millis) {
        self.named_at = [None; 2];
        self.driver.handle_opened(now);
        if self.table.settings.watch == Watch::Ignore {
            self.enter(now, What::Link(Link::Ok));
        } else {
            // Whether a board is there, it has to say itself.
            self.table.run_until(now);
            self.pass_on(now);
        }
    }

    /// The port is gone.
    pub fn handle_lost(&mut self, now: Millis) {
        self.driver.handle_lost();
        self.enter(now, What::Link(Link::Missing));
    }

    pub fn handle_bytes(&mut self, now: Millis, bytes: &[u8]) {
        self.table.run_until(now);
        let mut readings = Vec::new();
        self.driver
            .handle_bytes(now, bytes, |reading| readings.push(reading));
        let is_board = |reading: &Reading| {
            self.table.settings.watch == Watch::Ignore
                || !matches!(reading, Reading::Skipped { .. })
        };
        if self.table.link != Link::Ok && readings.iter().any(is_board) {
            self.enter(now, What::Link(Link::Ok));
        }
        for reading in readings {
            self.handle_reading(now, reading);
        }
        self.table.skipped_bytes = self.driver.skipped_bytes();
        self.table.publish_skipped();
        self.pass_on(now);
    }

    /// After [`Session::restore`]: the port stays as it was, and these bytes of a frame under way still wait in it.
    pub fn resume(&mut self, now: Millis, unfinished: &Unfinished, skipped_bytes: u64) {
        self.driver.resume(now, unfinished, skipped_bytes);
        self.table.skipped_bytes = skipped_bytes;
    }

    /// Carries out a command; the answer is polled.
    pub fn handle_command(&mut self, now: Millis, command: Command) {
        self.enter(now, What::Command(Box::new(command)));
    }

    /// The table follows pairings, though the one that stands was played to its end before this session began: an array opens
    /// no game that is told.
    pub fn handle_paired(&mut self, now: Millis) {
        self.enter(now, What::Paired);
    }

    /// The wall clock was set, or can be trusted from now on, or no longer.
    pub fn handle_wall(&mut self, now: Millis, wall: Wall) {
        if self.table.wall != wall {
            self.enter(now, What::Wall(wall));
        }
    }

    /// Does what is due until `now`.
    pub fn handle_timeout(&mut self, now: Millis) {
        self.table.run_until(now);
        self.driver.handle_timeout(now);
        if self.driver.is_foreign() && self.table.link != Link::Fault {
            self.enter(now, What::Link(Link::Fault));
        }
        if self.driver.is_silent() && !matches!(self.table.link, Link::Silent | Link::Fault) {
            self.enter(now, What::Link(Link::Silent));
        }
        self.pass_on(now);
    }

    pub fn poll_timeout(&self) -> Option<Millis> {
        self.table
            .next_timer()
            .into_iter()
            .chain(self.driver.poll_timeout())
            .min()
    }

    /// Bytes for the board.
    pub fn poll_write(&mut self) -> Option<Vec<u8>> {
        self.driver.poll_write()
    }

    pub fn poll_publication(&mut self) -> Option<Publication> {
        self.table.publications.pop_front()
    }

    /// An answer, and the topic that it was asked for on.
    pub fn poll_reply(&mut self) -> Option<(Option<String>, Reply)> {
        self.table.replies.pop_front()
    }

    /// An entry of the record, to be kept before anything that follows from it is sent.
    pub fn poll_entry(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }

    /// A line of the stages, where they are asked for.
    pub fn poll_stage(&mut self) -> Option<String> {
        self.table.stages.pop_front()
    }

    /// Whether the board has left our questions unanswered, so that the port had better be opened anew.
    pub fn is_silent(&self) -> bool {
        self.driver.is_silent()
    }

    /// What has come of a frame that is not complete yet. A restart hands it in again.
    pub fn unfinished_frame(&self) -> Unfinished {
        self.driver.unfinished()
    }

    /// Bytes that could not be read.
    pub fn skipped_bytes(&self) -> u64 {
        self.driver.skipped_bytes()
    }

    /// How often the board said something that could be read, since the session began or was restored.
    pub fn messages(&self) -> u64 {
        self.driver.messages()
    }

    /// All retained publications as they stand, for a broker that may have lost them.
    pub fn snapshot(&mut self) -> Vec<Publication> {
        self.table.snapshot()
    }

    /// The game that is not ended, with what was played of it as PGN, for a daemon that stops; none without a move.
    pub fn unfinished(&self) -> Option<(String, String)> {
        self.table.unfinished()
    }

    /// The game of this id, be it a former one whose record is still here.
    pub fn game(&self, id: &str) -> Option<&Game> {
        self.table.game_of(id)
    }

    /// Whether the game of this id has begun here and is not over.
    pub fn is_playing(&self, id: &str) -> bool {
        let game = self.table.open_game();
        game.is_some_and(|game| game.is_of(id) && game.was_played())
    }

    /// Whether an array alone opens no game that is told, as this table stands.
    pub fn is_armed_by_hand(&self) -> bool {
        self.table.openings.is_by_hand()
    }

    pub fn serial(&self) -> Option<&str> {
        self.table.names.serial()
    }

    fn handle_reading(&mut self, now: Millis, reading: Reading) {
        self.table.stage_input(now, &reading);
        match reading {
            Reading::Square { square, contents } => {
                if self.table.raw.at(square) != Some(contents) {
                    self.enter(
                        now,
                        What::Squares {
                            changes: vec![(entry::index(square), contents.into())],
                            dump: false,
                        },
                    );
                } else {
                    self.enter(now, What::Repeated(entry::index(square)));
                }
            }
            Reading::Scan { squares, gapless } => {
                let changes: Vec<(u8, entry::Code)> = squares
                    .iter()
                    .filter(|(square, contents)| self.table.raw.at(*square) != Some(*contents))
                    .map(|(square, contents)| (entry::index(*square), (*contents).into()))
                    .collect();
                // What shows a change for the first time does not bear it out.
                let second_look = !gapless || changes.is_empty();
                if !changes.is_empty() {
                    let dump = !gapless;
                    self.enter(now, What::Squares { changes, dump });
                }
                if second_look && self.table.awaits_dump() {
                    self.enter(now, What::Dump);
                }
            }
            Reading::Clock(reading) => {
                if self.table.takes_clock(now, &reading) {
                    self.enter(now, What::Clock(reading.into()));
                }
            }
            Reading::Serial { number, long } => {
                if !self
                    .table
                    .names
                    .is_known(self.table.settings.family, &number, long)
                    && self.named_at[usize::from(long)].is_none_or(|at| now >= at + RENAMED_MS)
                {
                    self.named_at[usize::from(long)] = Some(now);
                    self.enter(now, What::Serial { number, long });
                }
            }
            Reading::Firmware(version) => {
                if self.table.firmware.as_deref() != Some(&version) {
                    self.enter(now, What::Firmware(version));
                }
            }
            Reading::Battery(percent) => {
                if self.table.battery != Some(percent) {
                    self.enter(now, What::Battery(percent));
                }
            }
            Reading::Fault(what) => {
                let table = &self.table.settings.table;
                let what = format!("the board says: {}", one_line(&what, 80));
                let now = Duration::from_millis(now);
                for kept in self.hush.poll(now) {
                    tracing::warn!(table = %table, "{} ({} more times)", kept.text, kept.times);
                }
                if self.hush.may_say(&what, now) {
                    tracing::warn!(table = %table, "{what}");
                }
            }
            Reading::Missed | Reading::Other(_) | Reading::Skipped { .. } => {}
        }
    }

    fn enter(&mut self, now: Millis, what: What) {
        let entry = Entry { at: now, what };
        self.table.apply(&entry);
        self.entries.push_back(entry);
        self.pass_on(now);
    }

    /// The one arrow that runs back: sensing wants the board read anew.
    fn pass_on(&mut self, now: Millis) {
        if std::mem::take(&mut self.table.ask_dump) {
            self.driver.ask_dump(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Pairing;
    use crate::publish::{BoardStatus, Body, EventKind, Payload};
    use crate::wire::psb1::{Identity, VirtualBoard};

    /// A table with a game that is armed.
    fn session(watch: Watch) -> Session {
        let settings = Settings {
            armed: Some(Pairing::default()),
            watch,
            ..Settings::new("12")
        };
        Session::new(settings, 0)
    }

    fn ask(session: &mut Session, verb: &str, args: &str) -> Reply {
        let text = format!(r#"{{"args":{args}}}"#);
        let command = Command::parse(&text, Some(verb)).expect(&text);
        session.handle_command(session.table.now, command);
        session.poll_reply().expect("each command is answered").1
    }

    fn white(session: &Session) -> Option<&str> {
        let game = session.table.game.as_ref()?;
        game.pairing.white.as_ref()?.name.as_deref()
    }

    #[test]
    fn names_that_come_late_are_those_of_the_game_and_others_wait() {
        let mut session = session(Watch::Ignore);
        assert!(ask(&mut session, "play", r#"{"move":"e4"}"#).ok);
        let id = session.table.game.as_ref().unwrap().id.clone();
        let anna = ask(
            &mut session,
            "arm",
            r#"{"game":"r3-12","white":{"name":"Anna"}}"#,
        );
        assert_eq!((anna.ok, anna.note), (true, None));
        assert_eq!(white(&session), Some("Anna"));
        assert_eq!(session.table.game.as_ref().unwrap().id, id);
        let berta = ask(
            &mut session,
            "arm",
            r#"{"game":"r4-12","white":{"name":"Berta"}}"#,
        );
        assert!(berta.ok && berta.note.unwrap().contains("kept for the next game"));
        assert_eq!(white(&session), Some("Anna"));
    }

    #[test]
    fn the_wall_clock_is_rebuilt_with_the_session() {
        let mut session = session(Watch::Ignore);
        let wall = Wall {
            offset_ms: 1_806_000_000_000,
            time_ok: true,
        };
        session.handle_wall(500, wall);
        session.handle_wall(600, wall);
        assert!(ask(&mut session, "play", r#"{"move":"e4"}"#).ok);
        let entries: Vec<Entry> = std::iter::from_fn(|| session.poll_entry()).collect();
        assert_eq!(entries.len(), 3, "the same again is no entry");
        let now = session.table.now;
        let settings = session.table.settings.clone();
        let mut again = Session::restore(settings, &entries, now);
        let told = session.snapshot();
        for (told, again) in told.iter().zip(again.snapshot()) {
            assert_eq!(*told, again);
        }
        let game = told.iter().find_map(|publication| match &publication.body {
            Body::Payload(Payload::Game(game)) => game.started_at.as_deref(),
            _ => None,
        });
        assert!(game.is_some_and(|at| at.starts_with("2027-")), "{game:?}");
    }

    #[test]
    fn no_clock_shows_more_than_it_can() {
        let mut session = session(Watch::Ignore);
        for ms in [360_000_000, u64::MAX] {
            let args = format!(r#"{{"side":"black","white_ms":{ms}}}"#);
            let reply = ask(&mut session, "press", &args);
            assert!(reply.error.unwrap().contains("99:59:59"), "{args}");
        }
    }

    #[test]
    fn a_refusal_is_one_short_line() {
        let mut session = session(Watch::Ignore);
        let long = "x".repeat(1000);
        for alert in ["a\\n2027-04-02 ERROR b", &long] {
            let reply = ask(&mut session, "ack", &format!(r#"{{"alert":"{alert}"}}"#));
            let error = reply.error.unwrap();
            assert!(error.len() < 220 && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_board_has_no_new_name_at_every_line() {
        let settings = Settings {
            family: Family::Psb1,
            ..Settings::new("12")
        };
        let mut session = Session::new(settings, 0);
        session.handle_opened(0);
        let is_told = |publication: Publication| match publication.body {
            Body::Payload(Payload::Event(event)) => matches!(
                event.kind,
                EventKind::AlertRaised { .. } | EventKind::AlertChanged { .. }
            ),
            _ => false,
        };
        let mut told = 0;
        for n in 0..500u32 {
            let hello = Identity {
                id: format!("b{n}").parse().unwrap(),
                ..Identity::default()
            };
            let now = u64::from(n) * 10;
            let lines = VirtualBoard::new(hello).handle_host(now, b"?\n");
            session.handle_bytes(now, &lines.concat());
            while let Some(publication) = session.poll_publication() {
                told += u32::from(is_told(publication));
            }
        }
        // Five names in five seconds, each but the first in the place of another.
        assert_eq!(told, 4);
    }

    #[test]
    fn what_is_no_board_is_not_reported_as_one() {
        let mut session = session(Watch::Judge);
        session.handle_opened(0);
        let mut told: Vec<BoardStatus> = Vec::new();
        let mut hear = |session: &mut Session, now: Millis, bytes: &[u8]| {
            session.handle_timeout(now);
            session.handle_bytes(now, bytes);
            while let Some(publication) = session.poll_publication() {
                if let Body::Payload(Payload::BoardStatus(status)) = publication.body {
                    told.push(*status);
                }
            }
            told.last().cloned()
        };
        for now in (0..20_000).step_by(100) {
            let status = hear(&mut session, now, b"$GPGGA,123519\r\n");
            assert!(
                status.is_none_or(|status| status.status != Link::Ok),
                "{now}"
            );
        }
        let status = hear(&mut session, 20_000, b"$").unwrap();
        assert_eq!(status.status, Link::Fault);
        assert!(status.skipped_bytes > 1_000, "{status:?}");
        let (_, alert) = session.table.alerts.iter().next().unwrap();
        assert!(alert.text.contains("speaks no DGT. Look"), "{alert:?}");

        hear(&mut session, 21_000, &[0x93, 0, 5, 1, 7]);
        let status = hear(&mut session, 21_100, &[0x93, 0, 5, 1, 7]).unwrap();
        assert_eq!(status.status, Link::Ok);
        assert_eq!(session.table.alerts.iter().count(), 0);
        assert!(told.len() < 20, "{}", told.len());
    }

    #[test]
    fn a_board_of_a_version_that_nobody_knows_is_a_fault() {
        for takes_all in [true, false] {
            let settings = Settings {
                family: Family::Psb1,
                takes_all,
                watch: Watch::Judge,
                ..Settings::new("12")
            };
            let mut session = Session::new(settings, 0);
            session.handle_opened(0);
            for now in (0..20_000).step_by(500) {
                session.handle_timeout(now);
                let lines = b"$H,2,club-7,fw,*69\n$S,00,00000000,FFFF00000000FFFF*7F\n";
                session.handle_bytes(now, lines);
            }
            assert_eq!(session.table.link, Link::Fault);
            let (_, alert) = session.table.alerts.iter().next().unwrap();
            let says = match takes_all {
                true => "speaks no DGT and no PSB1.",
                false => "speaks no PSB1.",
            };
            assert!(alert.text.contains(says), "{alert:?}");
            assert!(alert.text.chars().count() <= 100, "{alert:?}");
        }
    }
}
