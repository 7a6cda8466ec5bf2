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
use crate::board::{self, Contents, Driver, Orientation, OrientationSetting, Picture, Reading};
use crate::clock::control::TimeControl;
use crate::clock::{self, ClockKind, ClockSide, Wing};
use crate::command::{Command, Reply};
use crate::game::{Arming, Game, Line, Openings, Pairing, Terms};
use crate::hush::Hush;
use crate::laws::position::Position;
use crate::laws::ruleset::Rules;
use crate::publish::{self, Link, Publication};
use crate::sensing::{Context, Look, Sensing, Timing};
use crate::text::one_line;
use crate::wire::Family;
use serde::Deserialize;
use shakmaty::Square;
use std::collections::VecDeque;
use std::time::Duration;

pub mod alerts;
mod array;
mod clocks;
mod commands;
pub mod entry;
mod games;
mod link;
mod observed;
mod output;
mod played_on;
mod resolve;
mod squares;

use board::driver::Unfinished;
pub use board::driver::Watch;
use entry::What;
pub use entry::{Entry, Wall};
pub use output::seconds as output_time;

/// What a session is told once, at its beginning.
#[derive(Debug, Clone)]
pub struct Settings {
    pub table: String,
    /// What its board speaks, unless it is found to be another. Whoever begins asks [`board::is_supported`] first: what this build cannot read is skipped whole.
    pub family: Family,
    /// Names the numbering of events; made with the store.
    pub stream: String,
    /// Names this run of the daemon.
    pub boot: String,
    /// What the wall clock shows at the beginning.
    pub wall: Wall,
    pub timing: Timing,
    pub games: GameTiming,
    pub orientation: OrientationSetting,
    pub white_clock_side: ClockSide,
    /// How games begin; unless it is set, by the array until a pairing has armed one, and by pairings from then on.
    pub arming: Option<Arming>,
    pub clock: ClockKind,
    /// What every game has unless it is armed otherwise.
    pub rules: Rules,
    pub time_control: Option<TimeControl>,
    /// The first game, where one is armed from the start.
    pub armed: Option<Pairing>,
    pub kings: ResultByKings,
    pub publish_touches: bool,
    /// Whether a silent board means anything; on a live board it does.
    pub watch: Watch,
    /// Whether the stages are written down, for goldens and bug reports.
    pub stages: bool,
}

/// What becomes of a result that the kings show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultByKings {
    /// The result is set.
    #[default]
    Accept,
    /// The result is proposed, and an arbiter sets it.
    Propose,
}

/// How long things must last between games (defaults; milliseconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GameTiming {
    /// The start array standing still for so long opens a new game.
    pub array: Millis,
    /// The same, where a legal first move follows.
    pub array_before_move: Millis,
    /// A set-up with all men on the board but not where they belong is told after this time.
    pub setup_wrong: Millis,
    /// A clock that stands for so long in a game is told to the operator.
    pub clock_stopped: Millis,
}

impl Default for GameTiming {
    fn default() -> GameTiming {
        GameTiming {
            array: 10_000,
            array_before_move: 2_000,
            setup_wrong: 5_000,
            clock_stopped: 60_000,
        }
    }
}

impl Settings {
    pub fn new(table: impl Into<String>) -> Settings {
        Settings {
            table: table.into(),
            family: Family::default(),
            stream: "replay".into(),
            boot: "replay".into(),
            wall: Wall::default(),
            timing: Timing::default(),
            games: GameTiming::default(),
            orientation: OrientationSetting::Auto,
            white_clock_side: ClockSide::Auto,
            arming: None,
            clock: ClockKind::Auto,
            rules: Rules::default(),
            time_control: None,
            armed: None,
            kings: ResultByKings::Accept,
            publish_touches: false,
            watch: Watch::Ignore,
            stages: false,
        }
    }
}

/// A board has one name. One that says another more often than that is not believed: each is told to the operator.
const RENAMED_MS: Millis = 1_000;

/// So many timers fire at one moment at most; each firing either disarms itself or moves on.
const MOST_AT_ONCE: u32 = 100;

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

impl Table {
    fn awaits_dump(&mut self) -> bool {
        let (sensing, cx) = self.sensing();
        sensing.awaits_dump(&cx)
    }

    fn new(settings: Settings, now: Millis) -> Table {
        let mut table = Table {
            sensing: Sensing::new(settings.timing),
            orientation_setting: settings.orientation,
            openings: Openings::new(
                settings.arming,
                Terms {
                    rules: settings.rules,
                    time_control: settings.time_control.clone(),
                },
                settings.armed.clone(),
            ),
            wall: settings.wall,
            abilities: board::abilities(settings.family),
            settings,
            now,
            raw: Picture::default(),
            orientation: None,
            link: Link::Missing,
            names: link::Names::default(),
            firmware: None,
            battery: None,
            skipped_bytes: 0,
            clock: clock::Tracker::default(),
            game: None,
            played_on: None,
            array: array::Array::default(),
            setup_still_since: now,
            setup_judged: true,
            seq: 0,
            alerts: alerts::Alerts::default(),
            misreads: squares::Misreads::default(),
            commands_done: VecDeque::new(),
            note: None,
            told_clock: None,
            told_position: None,
            told_status: None,
            game_changed: false,
            ask_dump: false,
            publications: VecDeque::new(),
            replies: VecDeque::new(),
            stages: VecDeque::new(),
        };
        if table.openings.is_armed() {
            table.begin_game();
            table.settle();
        }
        table
    }

    /// The fold: what an entry makes of the table.
    fn apply(&mut self, entry: &Entry) {
        self.run_until(entry.at);
        match &entry.what {
            What::Squares { changes, dump } => self.apply_squares(changes, Look::from_dump(*dump)),
            What::Repeated(index) => {
                if let Ok(square) = Square::try_from(u32::from(*index)) {
                    let square = board::oriented(square, self.stands());
                    self.sensing.handle_repeated(entry.at, square);
                }
            }
            What::Dump => {
                let (sensing, cx) = self.sensing();
                let now = entry.at;
                sensing.handle_dump(now, &cx);
            }
            What::Clock(code) => self.apply_clock((*code).into()),
            What::Command(command) => self.apply_command(command),
            What::Begun => {}
            What::Wall(wall) => self.wall = *wall,
            What::Paired => self.openings.follow_pairings(),
            What::Link(link) => self.apply_link(*link),
            What::Family(family) => {
                self.settings.family = *family;
                self.abilities = board::abilities(*family);
            }
            What::Serial { number, long } => self.board_named(number, *long),
            What::Firmware(firmware) => self.firmware = Some(firmware.clone()),
            What::Battery(percent) => self.battery = Some(*percent),
        }
        self.settle();
    }

    /// Fires everything that is due until `now`, each as of its own deadline.
    fn run_until(&mut self, now: Millis) {
        let mut spins = 0;
        while let Some(at) = self.next_timer().filter(|at| *at <= now) {
            if at > self.now {
                spins = 0;
            }
            spins += 1;
            if spins > MOST_AT_ONCE {
                self.give_up(at);
                break;
            }
            self.now = self.now.max(at);
            self.fire();
            self.settle();
        }
        self.now = self.now.max(now);
    }

    fn fire(&mut self) {
        let now = self.now;
        if self.fire_between_games(now) {
            return;
        }
        let (sensing, cx) = self.sensing();
        let due = sensing.poll_timeout(&cx).is_some_and(|at| at <= now);
        if due {
            let name = sensing.handle_timeout(now, &cx);
            self.stage(|| format!("  timer {name}"));
        }
        self.fire_after_the_end();
    }

    fn next_timer(&self) -> Option<Millis> {
        let cx = self.context();
        self.sensing
            .poll_timeout(&cx)
            .into_iter()
            .chain(self.next_timer_between_games())
            .chain(self.next_timer_after_the_end())
            .min()
    }

    /// Takes what sensing has seen into the record, until nothing follows from anything any more.
    fn settle(&mut self) {
        let mut rounds = 0;
        loop {
            while let Some(observation) = self.sensing.poll_observation() {
                self.stage(|| format!("  {}", output::observed(&observation)));
                self.observe(observation);
            }
            let now = self.now;
            let (sensing, cx) = self.sensing();
            rounds += 1;
            let Some(at) = sensing.poll_timeout(&cx).filter(|at| *at <= now) else {
                break;
            };
            if rounds > MOST_AT_ONCE {
                self.give_up(at);
                break;
            }
            let name = sensing.handle_timeout(now, &cx);
            self.stage(|| format!("  timer {name}"));
        }
        self.settle_after_the_end();
        self.tell_dead_squares();
        self.tell_wrong_array();
        self.publish_changes();
    }

    /// A timer does not go off when it fires: it would stop the whole node, or tell the same for ever. The table lets go of what it waits
    /// for instead.
    fn give_up(&mut self, at: Millis) {
        tracing::error!(table = %self.settings.table, at, "a timer does not go off; it is dropped");
        self.sensing.disarm();
        self.disarm_after_the_end();
    }

    /// What sensing has to know of the rest.
    fn context(&self) -> Context<'_> {
        // The next game's array is nothing that the last game's record could explain.
        let array = self.stands_as_array();
        context(
            &self.settings,
            self.abilities,
            self.game.as_ref().filter(|_| !array),
            &self.clock,
            &NO_LINE,
        )
    }

    fn sensing(&mut self) -> (&mut Sensing, Context<'_>) {
        // The next game's array is nothing that the last game's record could explain.
        let array = self.stands_as_array();
        (
            &mut self.sensing,
            context(
                &self.settings,
                self.abilities,
                self.game.as_ref().filter(|_| !array),
                &self.clock,
                &NO_LINE,
            ),
        )
    }

    fn apply_squares(&mut self, changes: &[(u8, entry::Code)], look: Look) {
        let changes: Vec<(Square, Contents)> = changes
            .iter()
            .filter_map(|(index, code)| {
                Some((Square::try_from(u32::from(*index)).ok()?, code.contents()?))
            })
            .collect();
        self.watch_misreads(&changes);
        for (square, contents) in &changes {
            self.raw.set(*square, *contents);
        }
        if let Some(token) = changes.iter().find_map(|(_, contents)| match contents {
            Contents::Token(token) => Some(*token),
            _ => None,
        }) {
            self.token_placed(token.result());
        }
        self.setup_still_since = self.now;
        self.setup_judged = false;
        if self.find_orientation() {
            self.watch_array();
            return;
        }
        if self.watch_array() || self.turn_by_first_move(look) {
            // The game has begun with this change, and has taken it already.
            return;
        }
        let orientation = self.stands();
        let turned: Vec<(Square, Contents)> = changes
            .iter()
            .map(|(square, contents)| (board::oriented(*square, orientation), *contents))
            .collect();
        if self.settings.publish_touches {
            self.tell_touches(&turned);
        }
        let now = self.now;
        let (sensing, cx) = self.sensing();
        sensing.handle_squares(now, &turned, look, &cx);
        self.squares_after_the_end(&turned, look);
        self.find_ready();
    }
}

/// The record of a table where no game is open.
static NO_LINE: std::sync::LazyLock<Line> =
    std::sync::LazyLock::new(|| Line::new(Position::initial()));

fn context<'a>(
    settings: &Settings,
    abilities: board::Abilities,
    game: Option<&'a Game>,
    clock: &clock::Tracker,
    none: &'a Line,
) -> Context<'a> {
    const SHORT_MS: u64 = 20_000;
    let Some(game) = game else {
        return Context {
            line: none,
            following: false,
            has_clock: false,
            unstarted: false,
            can_dump: false,
            time_trouble: false,
        };
    };
    let short = |wing: Wing| {
        clock
            .display(wing)
            .is_some_and(|display| display.ms < SHORT_MS)
    };
    Context {
        line: &game.line,
        following: game.is_followed(),
        has_clock: game.clocks.used,
        unstarted: clock.is_attached() && !game.clocks.used,
        // A trace whose silence means nothing answers no question: what is waited for would never come.
        can_dump: abilities.dumps && settings.watch == Watch::Judge,
        time_trouble: clock.is_running() && clock.to_move().is_some_and(short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert!(alert.text.contains("speaks no DGT"), "{alert:?}");

        hear(&mut session, 21_000, &[0x93, 0, 5, 1, 7]);
        let status = hear(&mut session, 21_100, &[0x93, 0, 5, 1, 7]).unwrap();
        assert_eq!(status.status, Link::Ok);
        assert_eq!(session.table.alerts.iter().count(), 0);
        assert!(told.len() < 20, "{}", told.len());
    }
}
