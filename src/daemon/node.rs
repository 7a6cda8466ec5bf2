//! One node: its tables' sessions, the links to their boards, and the broker, in one loop.
//!
//! The loop is the only one that touches sessions, and it waits for nobody: links, broker and files have tasks or threads of
//! their own, and what one of them cannot take is its own loss. So a board that is absent, a broker that hangs and a disk that
//! is full never stop another table.

use std::collections::{BTreeSet, VecDeque};
use std::future::{self, Future};
use std::path::Path;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep_until, timeout};
use tracing::{debug, error, info, warn};

use super::archives::Archives;
use super::backoff::Backoff;
use super::desk::{Desk, Held};
use super::files::{Files, Start, Tracing, try_folder};
use super::mqtt::{self, Connection, Mqtt, SettingsError};
use super::orders::{self, Order, Orders};
use super::serial::{self, Finder, LinkEvent, LinkHandle, PortSpec, Roots};
use super::store::{Forgetful, Store};
use crate::Millis;
use crate::board;
use crate::command::{Arm, Command, Player, Reply, Verb};
use crate::config::{self, Config, ConfigError};
use crate::game::{Arming, PairingError};
use crate::hush::Hush;
use crate::outbox::{Limits, MemoryOutbox};
use crate::publish::topic::Address;
use crate::publish::{
    self, ActUntil, AlertDetail, AlertKind, AlertState, Audience, BoardInfo, Body, EventKind,
    MoveState, Payload, Phase, Publication, Severity, Topic, VERSION,
};
use crate::session::{self, Session, Wall, Watch};
use crate::text::{one_line, shortened};
use crate::trace::{self, Header};
use crate::wire::Family;

/// What a node stands on, besides its configuration. The default is a machine as it is.
pub struct Parts {
    /// Where the system shows its devices.
    pub roots: Roots,
    /// Times and limits of the serial links.
    pub serial: serial::Settings,
    /// Where the record is kept.
    pub store: Box<dyn Store + Send>,
    /// Whether the kernel says that the wall clock can be trusted; asked now and then.
    pub time_ok: fn() -> bool,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts {
            roots: Roots::default(),
            serial: serial::Settings::default(),
            store: Box::new(Forgetful),
            time_ok: is_time_set,
        }
    }
}

/// Why a node does not start. All of it is in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("[mqtt]: {0}")]
    Mqtt(#[from] SettingsError),
    #[error("no table is configured")]
    NoTable,
    #[error("table {table}: boards of family {family} cannot be read yet")]
    Family { table: String, family: Family },
}

impl StartError {
    /// What to do about it, as a sentence.
    pub fn advice(&self) -> String {
        match self {
            StartError::Config(error) => error.advice().to_owned(),
            StartError::Mqtt(_) => "Correct the section [mqtt] of the configuration.".to_owned(),
            StartError::NoTable => {
                "Add a [[table]] with its name, or say --port auto --table 1.".to_owned()
            }
            StartError::Family { .. } => {
                let all = Family::ALL.iter();
                all.filter(|family| board::is_supported(**family))
                    .fold("Say board = \"auto\"".to_owned(), |advice, family| {
                        format!("{advice} or board = \"{family}\"")
                    })
                    + "."
            }
        }
    }
}

/// Runs a node until `shutdown`. Needs a tokio runtime with time and I/O.
///
/// Returns early only for a configuration that cannot work; what fails later is in the log, and tried again.
pub async fn run(
    config: Config,
    parts: Parts,
    shutdown: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let boot = random_id();
    let settings = mqtt_settings(&config, &boot)?;
    if let Some(refusal) = refusals(&config).into_iter().next() {
        return Err(refusal);
    }
    tell_beginning(&config, &settings);
    let prefix = settings.prefix();
    let orders = Orders::new(
        &prefix,
        &config.node,
        config.tables.iter().map(|t| t.name.to_string()).collect(),
    );
    let Connection {
        mqtt,
        mut incoming,
        mut task,
    } = mqtt::connect(settings, MemoryOutbox::new(Limits::default()))?;
    let mut out = Outlets {
        clock: Clock::new(parts.time_ok),
        mqtt,
        desk: Desk::open(&config.node),
        files: open_files(&config.state_dir),
        store: parts.store,
        store_failed: false,
        not_sent: BTreeSet::new(),
        refusals: Hush::default(),
        archives: Archives::default(),
        stream: random_id(),
        boot,
    };
    let mut link = out.mqtt.status();
    let finder = Finder::new(parts.roots, parts.serial);
    let (stop_links, links_stopped) = watch::channel(());
    let tables = config.tables.iter().map(|table| {
        let mut stopped = links_stopped.clone();
        // Resolves when the sender goes.
        let stopped = async move { drop(stopped.changed().await) };
        let (link, inbox) = serial::spawn(
            PortSpec::from(&table.device),
            table.settings.board,
            &finder,
            stopped,
        );
        Table::new(table, link, inbox, &out)
    });
    let mut node = Node {
        orders,
        tables: tables.collect(),
        last: 0,
        wall_at: Instant::now() + WALL_EVERY,
        prefix,
    };
    node.start(&mut out);

    let mut shutdown = pin!(shutdown);
    let mut is_cut_off = false;
    let mut was_connected = false;
    loop {
        let due = node.due(&out.clock);
        tokio::select! {
            () = &mut shutdown => break,
            (index, event) = next_event(&mut node.tables, node.last) => node.handle_link(index, event, &mut out),
            Some(message) = incoming.recv() => node.handle_message(&message, &mut out),
            () = sleep_until(due.into()) => {}
            Ok(_) = link.wait_for(|status| status.link == mqtt::Link::Connected), if !was_connected => {
                was_connected = true;
                node.expect_records(&out);
            }
            _ = &mut task, if !is_cut_off => {
                is_cut_off = true;
                error!("the connection to the broker ended for good; restart jadoube to publish again");
            }
        }
        node.handle_due(&mut out);
    }

    info!("stopping");
    drop(stop_links);
    node.finish(&mut out);
    let left = out.mqtt.shutdown(MOST_FAREWELL).await;
    if left > 0 {
        warn!("{left} messages were not taken by the broker and are lost");
    }
    // It ends by itself now; a transport that is stuck in a write is not waited for.
    if !is_cut_off && timeout(MOST_ENDING, task).await.is_err() {
        debug!("the connection to the broker did not end in time");
    }
    if let Some(files) = out.files {
        files.finish(MOST_WRITING).await;
    }
    Ok(())
}

/// For the last messages and the farewell to the broker.
const MOST_FAREWELL: Duration = Duration::from_secs(3);
const MOST_ENDING: Duration = Duration::from_millis(200);
/// For the last lines of files.
const MOST_WRITING: Duration = Duration::from_secs(1);
/// Between two looks at the wall clock.
const WALL_EVERY: Duration = Duration::from_secs(10);
/// A wall clock that has moved by less has not been set, only slewed.
const WALL_SET_MS: u64 = 500;
/// Between two openings of a port whose board stays silent.
const REOPEN_FIRST: Duration = Duration::from_secs(10);
const REOPEN_MOST: Duration = Duration::from_secs(60);
/// A board that was heard for so long after an opening was not silent for want of one.
const HEARD_WELL_MS: Millis = 30_000;
/// The broker tells what it has kept right after the subscription; a table without a record there by then has none.
const RECORDS_MS: Millis = 2_000;
/// Link events that are taken before a table's timers, at most.
const MOST_AT_ONCE: usize = 64;

/// The next event of any link, with the table's index; `None` once, where a link has ended. Nothing is lost when it is cancelled.
///
/// The table after the one that was served last comes first, so that a board which never stops talking silences no other.
async fn next_event(tables: &mut [Table], last: usize) -> (usize, Option<LinkEvent>) {
    let count = tables.len();
    future::poll_fn(|context| {
        for index in (1..=count).map(|step| (last + step) % count) {
            let Some(inbox) = &mut tables[index].inbox else {
                continue;
            };
            if let Poll::Ready(event) = inbox.poll_recv(context) {
                return Poll::Ready((index, event));
            }
        }
        Poll::Pending
    })
    .await
}

struct Node {
    orders: Orders,
    tables: Vec<Table>,
    /// The table whose link was heard last.
    last: usize,
    /// The next look at the wall clock.
    wall_at: Instant,
    /// `{base}/{event}/`
    prefix: String,
}

impl Node {
    fn start(&mut self, out: &mut Outlets) {
        self.publish_info(out);
        for table in &mut self.tables {
            for publication in table.session.snapshot() {
                table.publish(publication, out);
            }
            table.drain(out);
        }
        // Every session begins anew, so no alert but those just published is open.
        out.mqtt.sweep_alerts();
    }

    /// When something is to be done, whatever happens until then.
    fn due(&self, clock: &Clock) -> Instant {
        let tables = self.tables.iter().filter_map(Table::due).min();
        let due = tables.map(|at| clock.instant(at));
        // A timer that did not go off must not keep the machine busy.
        let soonest = Instant::now() + Duration::from_millis(1);
        due.map_or(self.wall_at, |due| due.min(self.wall_at))
            .max(soonest)
    }

    fn handle_link(&mut self, index: usize, event: Option<LinkEvent>, out: &mut Outlets) {
        self.last = index;
        let Some(table) = self.tables.get_mut(index) else {
            return;
        };
        if table.handle_link(event, out) {
            self.publish_info(out);
        }
    }

    /// The broker is there, and tells now what an earlier run has left with it.
    fn expect_records(&mut self, out: &Outlets) {
        let until = out.clock.now() + RECORDS_MS;
        for table in &mut self.tables {
            if let Keeping::Waiting { until: wait, .. } = &mut table.keeping {
                *wait = Some(until);
            }
        }
    }

    /// Our own record of a table as the broker has it.
    fn handle_record(&mut self, message: &mqtt::Incoming, out: &mut Outlets) -> bool {
        let below = message.topic.strip_prefix(&self.prefix);
        let Some((_, Topic::Game { table: name })) = below.and_then(Topic::parse) else {
            return false;
        };
        if let Some(table) = named(&mut self.tables, &name)
            && message.retain
        {
            match serde_json::from_slice::<publish::Game>(&message.payload) {
                // What we said ourselves comes back after each reconnection.
                Ok(game) if game.envelope.boot != out.boot => {
                    table.handle_record(game, out);
                }
                Ok(_) => {}
                Err(error) => debug!("table {name}: its retained record cannot be read: {error}"),
            }
        }
        true
    }

    /// A game that an earlier run has finished.
    fn handle_archive(&self, message: &mqtt::Incoming, out: &mut Outlets) -> bool {
        let below = message.topic.strip_prefix(&self.prefix);
        let Some((_, Topic::Archive { game })) = below.and_then(Topic::parse) else {
            return false;
        };
        if message.retain && !message.payload.is_empty() {
            out.archives.find(&game);
        }
        true
    }

    /// Why this table cannot be armed with that: the game is another table's, or was an earlier run's. What the table itself has played
    /// is for its session to judge.
    fn refusal(&self, name: &str, arm: &Arm, out: &Outlets) -> Option<PairingError> {
        let game = arm.game.as_deref()?;
        let is_elsewhere = |table: &&Table| table.name != name && table.session.is_playing(game);
        let playing = self.tables.iter().find(is_elsewhere);
        let playing = playing.map(|table| PairingError::Playing {
            game: game.to_owned(),
            table: table.name.clone(),
        });
        playing.or_else(|| out.archives.refusal(game, name))
    }

    fn handle_message(&mut self, message: &mqtt::Incoming, out: &mut Outlets) {
        if self.handle_record(message, out) || self.handle_archive(message, out) {
            return;
        }
        let order = self.orders.read(message);
        let armed = match &order {
            Order::Pairing { table, arm } => Some((table, arm)),
            Order::Command { table, command } => match &command.verb {
                Verb::Arm(arm) => Some((table, arm)),
                _ => None,
            },
            _ => None,
        };
        let refusal = armed.and_then(|(table, arm)| self.refusal(table, arm, out));
        let tables = &mut self.tables;
        match order {
            Order::Command {
                table: name,
                command,
            } => {
                if let Some(why) = refusal {
                    out.refuse(&name, *command, &why.to_string());
                } else if let Some(table) = named(tables, &name) {
                    table.handle_command(*command, out);
                }
            }
            Order::Pairing { table: name, arm } => {
                if let Some(table) = named(tables, &name) {
                    table.handle_pairing(arm, refusal, out);
                }
            }
            Order::BadPairing { table: name, why } => {
                if let Some(table) = named(tables, &name) {
                    table.refuse_pairing(&why, out);
                }
            }
            Order::NoPairing { table: name } => {
                if let Some(table) = named(tables, &name) {
                    table.lower(PAIRING, out);
                }
            }
            Order::Refused { why, reply } => {
                out.tell_refusal(&why);
                if let Some((topic, reply)) = reply {
                    out.reply(topic, &reply);
                }
            }
            Order::Nothing => {}
        }
    }

    fn handle_due(&mut self, out: &mut Outlets) {
        let mut boards_changed = false;
        let now = out.clock.now();
        for table in &mut self.tables {
            if table.due().is_some_and(|due| due <= now) {
                boards_changed |= table.handle_due(out);
            }
        }
        if Instant::now() >= self.wall_at {
            self.wall_at = Instant::now() + WALL_EVERY;
            out.tell_kept();
            if out.clock.look() {
                boards_changed = true;
                for table in &mut self.tables {
                    table.handle_wall(out);
                }
            }
        }
        if boards_changed {
            self.publish_info(out);
        }
    }

    /// What is known of the node itself.
    fn publish_info(&mut self, out: &mut Outlets) {
        let info = publish::Info {
            envelope: out.envelope(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            boards: self.tables.iter().filter_map(|t| t.board.clone()).collect(),
            tables: self.tables.iter().map(|t| t.name.clone()).collect(),
        };
        out.publish(&Publication {
            topic: Topic::Info,
            body: Payload::Info(info).into(),
        });
    }

    /// What is still held back, and what was begun.
    fn finish(&mut self, out: &mut Outlets) {
        for table in &mut self.tables {
            table.inbox = None;
            if let (Some((game, text)), Some(files)) = (table.session.unfinished(), &mut out.files)
            {
                // A name of its own: the game may go on after the start, under the same id.
                let file = format!("{game}-unfinished-{}", out.boot);
                warn!(
                    "table {}: game {game} is not ended; what was played is kept as pgn/{file}.pgn",
                    table.name
                );
                files.keep_pgn(&file, &text);
            }
            if !table.delayed.is_empty() {
                warn!(
                    "table {}: the PGN of the last {} s was held back (pgn_delay_s) and is not published; that of closed games lies under state_dir",
                    table.name,
                    table.delay_ms / 1000
                );
            }
        }
    }
}

fn named<'a>(tables: &'a mut [Table], name: &str) -> Option<&'a mut Table> {
    tables.iter_mut().find(|table| table.name == name)
}

/// What all tables share on their way out.
struct Outlets {
    clock: Clock,
    mqtt: Mqtt,
    desk: Desk,
    files: Option<Files>,
    store: Box<dyn Store + Send>,
    store_failed: bool,
    /// Why messages were not taken; each reason is said once.
    not_sent: BTreeSet<String>,
    refusals: Hush<Instant>,
    archives: Archives,
    /// Names what the node itself publishes; it numbers no events.
    stream: String,
    /// Names this run.
    boot: String,
}

impl Outlets {
    fn publish(&mut self, publication: &Publication) {
        let sent = self.mqtt.publish(publication);
        self.note(sent);
    }

    /// For what the node itself publishes.
    fn envelope(&self) -> publish::Envelope {
        publish::Envelope {
            v: VERSION,
            stream: self.stream.clone(),
            seq: 0,
            boot: self.boot.clone(),
            at: self.clock.wall(),
            mono_ms: self.clock.now(),
            time_ok: self.clock.time_ok,
        }
    }

    fn reply(&mut self, topic: String, reply: &Reply) {
        let sent = self.mqtt.send(orders::answer(topic, reply));
        self.note(sent);
    }

    /// A command that does not come as far as its table's session.
    fn refuse(&mut self, table: &str, command: Command, why: &str) {
        let why = one_line(why, 200);
        self.tell_refusal(&format!("table {table}: {why}"));
        if let Some(topic) = command.reply_to {
            let reply = Reply {
                id: command.id,
                ok: false,
                error: Some(why),
                note: None,
            };
            self.reply(topic, &reply);
        }
    }

    fn tell_refusal(&mut self, why: &str) {
        if self.refusals.may_say(why, Instant::now()) {
            warn!("refused: {why}");
        }
    }

    /// What was not worth a line of its own.
    fn tell_kept(&mut self) {
        for kept in self.refusals.poll(Instant::now()) {
            warn!("refused {} more times: {}", kept.times, kept.text);
        }
    }

    fn note(&mut self, sent: Result<(), mqtt::NotSent>) {
        if let Err(error) = sent {
            let reason = one_line(&error.to_string(), 200);
            if self.not_sent.len() < MOST_REASONS && self.not_sent.insert(reason.clone()) {
                warn!("not published: {reason}");
            }
        }
    }

    fn keep(&mut self, table: &str, entry: &session::Entry) {
        match self.store.append(table, entry) {
            Ok(()) => self.store_failed = false,
            Err(error) => {
                if !std::mem::replace(&mut self.store_failed, true) {
                    error!(
                        "the record of table {table} is not kept: {error}. Look at the disk under state_dir; play goes on"
                    );
                }
            }
        }
    }
}

/// Different reasons why messages were not taken, before they are no longer told apart.
const MOST_REASONS: usize = 100;

/// One table, with what only it has.
struct Table {
    name: String,
    session: Session,
    link: LinkHandle,
    inbox: Option<mpsc::Receiver<LinkEvent>>,
    /// The time that the session was told last: it never runs backwards there.
    told: Millis,
    /// The board on the port that is open now.
    board: Option<BoardInfo>,
    opened: Option<Millis>,
    /// Whether this silence was answered by opening the port anew.
    reopened: bool,
    reopen_after: Millis,
    reopening: Backoff,
    tracing: Option<Tracing>,
    /// Half moves before the game's first ply, for its numbers in the log.
    before: u32,
    /// Open alerts that the log has as warnings.
    warned: BTreeSet<String>,
    delay_ms: Millis,
    /// PGN that is held back, in order.
    delayed: VecDeque<(Millis, Publication)>,
    keeping: Keeping,
    /// What the node itself has told the operator of this table: the alerts that are open, by id.
    told_operator: BTreeSet<&'static str>,
}

/// Whether the record that an earlier run has left with the broker is in danger. As long as nothing is stored here, it is the
/// only one there is, and an empty game that is armed at the start must not take its place.
enum Keeping {
    /// Not asked yet, or not answered. Publications of a game whose array was not on the board are held until then.
    Waiting {
        until: Option<Millis>,
        held: Vec<Publication>,
    },
    /// A record is kept there until a game really begins; how it ended, and whose it is.
    Kept(Box<publish::Game>),
    /// There was none, or a game has begun since.
    Done,
}

impl Table {
    fn new(
        config: &config::Table,
        link: LinkHandle,
        inbox: mpsc::Receiver<LinkEvent>,
        out: &Outlets,
    ) -> Table {
        let settings = session_settings(config, out);
        let header = header(&settings, config);
        let now = out.clock.now();
        Table {
            name: config.name.to_string(),
            session: Session::new(settings, now),
            link,
            inbox: Some(inbox),
            told: now,
            board: None,
            opened: None,
            reopened: false,
            reopen_after: 0,
            reopening: Backoff::new(REOPEN_FIRST, REOPEN_MOST),
            tracing: (config.settings.record).then(|| Tracing::new(&config.name, header)),
            before: 0,
            warned: BTreeSet::new(),
            delay_ms: Millis::from(config.settings.pgn_delay_s) * 1000,
            delayed: VecDeque::new(),
            keeping: Keeping::Waiting {
                until: None,
                held: Vec::new(),
            },
            told_operator: BTreeSet::new(),
        }
    }

    fn due(&self) -> Option<Millis> {
        let delayed = self.delayed.front().map(|(at, _)| *at);
        let reopen = self.wants_reopening().then_some(self.reopen_after);
        let record = match &self.keeping {
            Keeping::Waiting { until, .. } => *until,
            _ => None,
        };
        [self.session.poll_timeout(), delayed, reopen, record]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes something from the link; says whether the boards of the node have changed.
    fn handle_link(&mut self, event: Option<LinkEvent>, out: &mut Outlets) -> bool {
        let name = &self.name;
        let Some(event) = event else {
            self.inbox = None;
            error!("table {name}: its link has ended; restart jadoube to read this board again");
            return self.handle_lost("the link has ended".into(), out);
        };
        match event {
            LinkEvent::Opened { path, identity } => {
                let family = identity
                    .as_ref()
                    .map_or("unknown", |found| found.family.as_str());
                let port = path.display().to_string();
                let node = path.canonicalize().unwrap_or(path);
                out.desk.hold(Held {
                    port: port.clone(),
                    device: node.display().to_string(),
                    table: name.clone(),
                    status: None,
                    family: identity.as_ref().map(|found| found.family.to_string()),
                    serial: identity.as_ref().and_then(|found| found.serial.clone()),
                    short_serial: identity
                        .as_ref()
                        .and_then(|found| found.short_serial.clone()),
                    firmware: identity.as_ref().and_then(|found| found.version.clone()),
                });
                let found_family = identity.as_ref().map(|found| found.family);
                let serial = identity.and_then(|found| found.serial);
                info!(
                    "table {name}: board {} on {port}",
                    serial.as_deref().unwrap_or("without a number")
                );
                self.board = Some(BoardInfo {
                    port: port.clone(),
                    family: family.to_owned(),
                    serial,
                    table: Some(name.clone()),
                });
                let now = self.now(out.clock.now());
                self.opened = Some(now);
                self.reopened = false;
                if let Some(family) = found_family {
                    self.session.handle_family(now, family);
                    if let Some(tracing) = &mut self.tracing {
                        tracing.family(family);
                    }
                }
                self.trace(now, trace::Event::Opened(port), out);
                self.session.handle_opened(now);
                self.drain(out);
                true
            }
            LinkEvent::Bytes(bytes, at) => {
                let now = self.now(out.clock.millis(at));
                if self.opened.is_some_and(|at| now >= at + HEARD_WELL_MS) {
                    self.reopening.reset();
                }
                self.trace(now, trace::Event::FromBoard(bytes.clone()), out);
                self.session.handle_bytes(now, &bytes);
                self.drain(out);
                false
            }
            LinkEvent::Lost { reason } => {
                warn!("table {name}: the board is gone: {reason}; it is looked for");
                self.handle_lost(reason, out)
            }
            LinkEvent::Waiting { reason, advice } => {
                warn!("table {name}: {reason}. {advice}");
                false
            }
        }
    }

    fn handle_wall(&mut self, out: &mut Outlets) {
        let now = self.now(out.clock.now());
        self.session.handle_wall(now, out.clock.setting());
        self.drain(out);
    }

    fn handle_lost(&mut self, reason: String, out: &mut Outlets) -> bool {
        out.desk.release(&self.name);
        let now = self.now(out.clock.now());
        self.opened = None;
        self.trace(now, trace::Event::Unplugged(reason), out);
        self.session.handle_lost(now);
        self.drain(out);
        self.board.take().is_some()
    }

    /// Hands a command to the session; gives its refusal.
    fn handle_command(&mut self, command: Command, out: &mut Outlets) -> Option<String> {
        let now = self.now(out.clock.now());
        // In a trace there is one table, and nobody to answer.
        let bare = Command {
            table: None,
            reply_to: None,
            ..command.clone()
        };
        let text = serde_json::to_string(&bare).expect("a command was read from JSON");
        self.trace(now, trace::Event::Command(text), out);
        self.session.handle_command(now, command);
        self.drain(out)
    }

    /// Arms the pairing, unless its game has been seen to its end already: by an earlier run, or at another table.
    fn handle_pairing(&mut self, arm: Box<Arm>, refusal: Option<PairingError>, out: &mut Outlets) {
        let refuse = |table: &mut Table, why: String, out: &mut Outlets| {
            let why = format!("{}: {why}", Address::Pairing { table: &table.name });
            table.refuse_pairing(&why, out);
        };
        if let Keeping::Kept(game) = &self.keeping
            && game.phase == Phase::Ended
            && is_pairing_of(&arm, game)
        {
            info!(
                "table {}: the pairing on {} was played before this start ({}); it is not armed anew",
                self.name,
                Address::Pairing { table: &self.name },
                game.result
            );
            self.follow_pairings(out);
            return;
        }
        if let Some(why) = refusal {
            self.follow_pairings(out);
            refuse(self, why.to_string(), out);
            return;
        }
        // The next game's names are awaited on its topics; the last one's record is in the archive.
        if matches!(&self.keeping, Keeping::Kept(game) if game.phase == Phase::Ended) {
            self.keeping = Keeping::Done;
        }
        let refused = self.handle_command(Command::of(Verb::Arm(arm)), out);
        match refused {
            Some(why) => refuse(self, why, out),
            None => self.lower(PAIRING, out),
        }
    }

    /// A pairing stands for this table, though it arms no game.
    fn follow_pairings(&mut self, out: &mut Outlets) {
        let now = self.now(out.clock.now());
        self.session.handle_paired(now);
        self.drain(out);
    }

    fn refuse_pairing(&mut self, why: &str, out: &mut Outlets) {
        out.tell_refusal(&format!("table {}: {why}", self.name));
        let text = format!("{} · pairing refused · {why}", self.name);
        let kind = AlertKind::PairingRefused;
        self.raise(PAIRING, kind, text, out);
    }

    /// What the broker had kept of this table when we came.
    fn handle_record(&mut self, game: publish::Game, out: &mut Outlets) {
        if !matches!(self.keeping, Keeping::Waiting { .. }) || game.moves.is_empty() {
            return;
        }
        let running = matches!(game.phase, Phase::Playing | Phase::Paused | Phase::Ready);
        let (name, plies) = (self.name.clone(), game.moves.len());
        if running {
            warn!(
                "table {name}: game {} was running when jadoube stopped, and its record of {plies} plies is not kept over a restart; \
                 what the broker has of it stays there until a game begins. To go on: arm, then accept_position with the side to move",
                one_line(&game.game, 40)
            );
            let text = format!(
                "{name} · restart · record of {plies} plies lost. To go on: arm, accept_position with turn."
            );
            self.raise(RECORD, AlertKind::RecordLost, text, out);
        }
        match running {
            true => out.archives.reopen(&game.game, &name),
            false if game.phase == Phase::Ended => out.archives.find(&game.game),
            false => {}
        }
        if running || game.phase == Phase::Ended {
            self.keeping = Keeping::Kept(Box::new(game));
        }
    }

    /// Tells the operator something that is no matter of the session.
    fn raise(&mut self, id: &'static str, kind: AlertKind, text: String, out: &mut Outlets) {
        let envelope = out.envelope();
        let since = envelope.at.clone();
        let alert = publish::Alert {
            envelope,
            alert: publish::AlertBody {
                kind,
                id: id.to_owned(),
                table: self.name.clone(),
                game: None,
                audience: Audience::Operator,
                severity: Severity::Warn,
                state: AlertState::Confirmed,
                act_until: ActUntil::None,
                ack: None,
                since,
                ply: 0,
                side: None,
                squares: Vec::new(),
                law: None,
                text: shortened(&text, 100),
                detail: AlertDetail::default(),
            },
        };
        self.told_operator.insert(id);
        out.publish(&Publication {
            topic: self.operator_topic(id),
            body: Payload::Alert(Box::new(alert)).into(),
        });
    }

    fn lower(&mut self, id: &'static str, out: &mut Outlets) {
        if self.told_operator.remove(id) {
            out.publish(&Publication {
                topic: self.operator_topic(id),
                body: Body::Clear,
            });
        }
    }

    fn operator_topic(&self, id: &str) -> Topic {
        Topic::Alert {
            table: self.name.clone(),
            audience: Audience::Operator,
            id: id.to_owned(),
        }
    }

    /// Does what is due; says whether the boards of the node have changed.
    fn handle_due(&mut self, out: &mut Outlets) -> bool {
        let mut boards_changed = false;
        // What the board said before a timer went off counts before it.
        for _ in 0..MOST_AT_ONCE {
            let Some(Ok(event)) = self.inbox.as_mut().map(mpsc::Receiver::try_recv) else {
                break;
            };
            boards_changed |= self.handle_link(Some(event), out);
        }
        let now = self.now(out.clock.now());
        self.session.handle_timeout(now);
        self.drain(out);
        while let Some((_, publication)) = self.delayed.pop_front_if(|(at, _)| *at <= now) {
            out.publish(&publication);
        }
        if let Keeping::Waiting {
            until: Some(until),
            held,
        } = &mut self.keeping
            && *until <= now
        {
            let held = std::mem::take(held);
            self.keeping = Keeping::Done;
            for publication in held {
                self.publish(publication, out);
            }
        }
        if self.wants_reopening() && now >= self.reopen_after {
            self.reopened = true;
            self.reopen_after = now + self.reopening.step().as_millis() as Millis;
            warn!(
                "table {}: the board does not answer; its port is opened anew",
                self.name
            );
            self.link.reopen();
        }
        boards_changed
    }

    fn wants_reopening(&self) -> bool {
        self.opened.is_some() && !self.reopened && self.session.is_silent()
    }

    /// A time that may be told to the session.
    fn now(&mut self, at: Millis) -> Millis {
        self.told = self.told.max(at);
        self.told
    }

    /// Takes everything out of the session; gives the refusal of a command, if there was one.
    fn drain(&mut self, out: &mut Outlets) -> Option<String> {
        while let Some(entry) = self.session.poll_entry() {
            out.keep(&self.name, &entry);
        }
        while let Some(bytes) = self.session.poll_write() {
            match self.link.write.try_send(bytes.clone()) {
                Ok(()) => self.trace(self.told, trace::Event::ToBoard(bytes), out),
                // The session asks again for what gets no answer.
                Err(error) => debug!(
                    "table {}: a command to the board is lost: {error}",
                    self.name
                ),
            }
        }
        while let Some(publication) = self.session.poll_publication() {
            self.follow(&publication, out);
            self.publish(publication, out);
        }
        let mut refusal = None;
        while let Some((topic, reply)) = self.session.poll_reply() {
            if let Some(error) = &reply.error {
                out.tell_refusal(&format!("table {}: {error}", self.name));
                refusal = reply.error.clone();
            }
            if let Some(note) = &reply.note {
                info!("table {}: {note}", self.name);
            }
            if let Some(topic) = topic {
                out.reply(topic, &reply);
            }
        }
        refusal
    }

    /// Whether this must not be published now, for it would take the place of an earlier run's record. A game has begun once its
    /// array was on the board, or an arbiter has said where it stands.
    fn holds_back(&mut self, publication: &Publication, out: &mut Outlets) -> bool {
        if matches!(self.keeping, Keeping::Done) {
            return false;
        }
        match (&publication.topic, &publication.body) {
            (Topic::Game { .. }, Body::Payload(Payload::Game(game))) => {
                if game.phase != Phase::Setup {
                    self.keeping = Keeping::Done;
                    self.lower(RECORD, out);
                    return false;
                }
            }
            // It follows its game.
            (Topic::Pgn { .. }, _) => {}
            _ => return false,
        }
        if let Keeping::Waiting { held, .. } = &mut self.keeping {
            held.retain(|older| older.topic != publication.topic);
            held.push(publication.clone());
        }
        true
    }

    fn publish(&mut self, publication: Publication, out: &mut Outlets) {
        if self.holds_back(&publication, out) {
            return;
        }
        if let (Topic::Archive { game }, Body::Text(text)) = (&publication.topic, &publication.body)
        {
            let has_place = out.archives.keep(game, &self.name);
            let file = match has_place {
                true => game.clone(),
                false => format!("{game}-{}-{}", self.name, out.boot),
            };
            if let Some(files) = &mut out.files {
                files.keep_pgn(&file, text);
            }
            if !has_place {
                error!(
                    "table {}: another game {game} is in the archive already, and stays there; this one is kept as pgn/{file}.pgn. Give each game an id of its own",
                    self.name
                );
                return;
            }
        }
        let is_pgn = matches!(publication.topic, Topic::Pgn { .. } | Topic::Archive { .. });
        if is_pgn && self.delay_ms > 0 {
            self.delayed
                .push_back((self.told + self.delay_ms, publication));
        } else {
            out.publish(&publication);
        }
    }

    fn trace(&mut self, at: Millis, event: trace::Event, out: &mut Outlets) {
        if let (Some(tracing), Some(files)) = (&mut self.tracing, &mut out.files) {
            tracing.event(files, at, event);
        }
    }

    /// Reads what the session says of its game, for the log and the trace.
    fn follow(&mut self, publication: &Publication, out: &mut Outlets) {
        match &publication.body {
            Body::Payload(Payload::Event(event)) => {
                if let EventKind::GameStarted { .. } = &event.kind {
                    let game = event.game.as_ref().and_then(|id| self.session.game(id));
                    self.before = game.map_or(0, |game| game.line.start.plies_before());
                }
                self.log(event);
            }
            Body::Payload(Payload::Game(game)) => {
                if let (Some(tracing), Some(files), Some(game)) = (
                    &mut self.tracing,
                    &mut out.files,
                    self.session.game(&game.game),
                ) {
                    // What armed the table stands in an earlier trace.
                    let arming = self.session.is_armed_by_hand().then_some(Arming::Manual);
                    tracing.game(files, self.told, &game.id, Start::of(game, arming));
                }
            }
            Body::Payload(Payload::BoardStatus(board)) => {
                out.desk
                    .judge(&self.name, board.status, board.firmware.as_deref());
            }
            _ => {}
        }
    }

    fn log(&mut self, event: &publish::Event) {
        let name = &self.name;
        match &event.kind {
            EventKind::GameStarted { .. } => {
                info!(
                    "table {name}: game {}",
                    event.game.as_deref().unwrap_or("?")
                );
            }
            EventKind::Move(played) => {
                let state = match played.state {
                    MoveState::Provisional => "provisional",
                    MoveState::Final => "final",
                };
                let number = number_of(self.before, played.ply);
                info!("table {name}: {number} {} ({state})", played.san);
            }
            EventKind::Takeback { keep_plies, .. } => {
                info!("table {name}: taken back to ply {keep_plies}");
            }
            EventKind::Correction { keep_plies, .. } => {
                info!("table {name}: corrected from ply {}", keep_plies + 1);
            }
            EventKind::GameEnded { result, .. } => info!("table {name}: {result}"),
            EventKind::AlertRaised { alert } if alert.severity == Severity::Info => {
                info!("{}", alert.text);
            }
            // Most are raised quietly and become loud at the press.
            EventKind::AlertRaised { alert } | EventKind::AlertChanged { alert }
                if alert.severity > Severity::Info && self.warned.insert(alert.id.clone()) =>
            {
                warn!("{}", alert.text);
            }
            EventKind::AlertClosed { alert, .. } => {
                self.warned.remove(alert);
            }
            _ => {}
        }
    }
}

/// The node's own alerts of a table.
const RECORD: &str = "record";
const PAIRING: &str = "pairing";

/// Whether a game is the one that this pairing names.
fn is_pairing_of(arm: &Arm, game: &publish::Game) -> bool {
    let name = |player: Option<&Player>| player.and_then(|player| player.name.clone());
    arm.game.as_ref().is_none_or(|id| *id == game.game)
        && arm.round == game.round
        && arm.board == game.board
        && name(arm.white.as_ref()) == name(Some(&game.white))
        && name(arm.black.as_ref()) == name(Some(&game.black))
}

/// The number of a ply as people write it: `23.` or `23...`
fn number_of(before: u32, ply: u32) -> String {
    let half = before.saturating_add(ply.saturating_sub(1));
    let dots = if half.is_multiple_of(2) { "." } else { "..." };
    format!("{}{dots}", half / 2 + 1)
}

/// Both clocks: the one that only goes forward, and the one on the wall.
#[derive(Debug)]
struct Clock {
    start: Instant,
    /// Unix time in milliseconds when the other clock began.
    wall_ms: i64,
    time_ok: bool,
    is_ok: fn() -> bool,
}

impl Clock {
    fn new(is_ok: fn() -> bool) -> Clock {
        let mut clock = Clock {
            start: Instant::now(),
            wall_ms: 0,
            time_ok: false,
            is_ok,
        };
        clock.look();
        clock
    }

    fn now(&self) -> Millis {
        self.millis(Instant::now())
    }

    fn millis(&self, at: Instant) -> Millis {
        at.saturating_duration_since(self.start).as_millis() as Millis
    }

    fn instant(&self, at: Millis) -> Instant {
        self.start + Duration::from_millis(at)
    }

    /// Looks at the wall clock; says whether it was set since the last time.
    fn look(&mut self) -> bool {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix = since_1970.map_or(0, |since| since.as_millis() as i64);
        let wall_ms = unix - self.now() as i64;
        let time_ok = (self.is_ok)();
        let is_set = self.time_ok != time_ok || self.wall_ms.abs_diff(wall_ms) > WALL_SET_MS;
        if is_set {
            self.wall_ms = wall_ms;
            self.time_ok = time_ok;
        }
        is_set
    }

    /// What a session is told of it.
    fn setting(&self) -> Wall {
        Wall {
            offset_ms: self.wall_ms,
            time_ok: self.time_ok,
        }
    }

    /// Now, RFC 3339.
    fn wall(&self) -> String {
        let unix = self.wall_ms + self.now() as i64;
        publish::rfc3339(unix)
    }
}

/// Whether the wall clock can be trusted.
///
/// Asking the kernel itself (`adjtimex`) needs unsafe code. Where systemd-timesyncd runs, it leaves a file once it has heard a
/// time server. Without it, any other service may have set the clock; then a year in which this program exists has to do, which
/// at least finds out a machine without a clock of its own that woke up in 1970.
fn is_time_set() -> bool {
    let timesyncd = Path::new("/run/systemd/timesync");
    if timesyncd.is_dir() {
        return timesyncd.join("synchronized").exists();
    }
    const YEAR_2025: Duration = Duration::from_secs(1_735_689_600);
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .is_ok_and(|since| since >= YEAR_2025)
}

/// How the broker is reached for a moment, beside a daemon that may be at work: with its credentials, but not as the node.
pub fn visitor_settings(config: &Config) -> Result<mqtt::Settings, StartError> {
    let settings = mqtt::Settings {
        subscriptions: Vec::new(),
        is_node: false,
        ..mqtt_settings(config, "")?
    };
    settings.check()?;
    Ok(settings)
}

fn mqtt_settings(config: &Config, boot: &str) -> Result<mqtt::Settings, StartError> {
    let url = &config.mqtt.url;
    let password = match &config.mqtt.password_file {
        Some(path) => Some(config::read_password(path)?),
        None => None,
    };
    Ok(mqtt::Settings {
        base: config.mqtt.base.clone(),
        boot: boot.to_owned(),
        username: config.mqtt.username.clone(),
        password,
        version: match config.mqtt.version {
            config::MqttVersion::V4 => 4,
            config::MqttVersion::V5 => 5,
        },
        busy: orders::busy,
        ..mqtt::Settings::node(&url.host, url.port, &config.event, &config.node)
            .with_tables(config.tables.iter().map(|table| &table.name))
    })
}

/// Everything in a configuration for which [`run`] would not start, found before anything is opened.
pub fn refusals(config: &Config) -> Vec<StartError> {
    let mut refusals = Vec::new();
    match mqtt_settings(config, "") {
        Ok(settings) => refusals.extend(settings.check().err().map(StartError::Mqtt)),
        Err(error) => refusals.push(error),
    }
    if config.tables.is_empty() {
        refusals.push(StartError::NoTable);
    }
    for table in &config.tables {
        let family = table.settings.board;
        if let Some(family) = family.filter(|family| !board::is_supported(*family)) {
            refusals.push(StartError::Family {
                table: table.name.to_string(),
                family,
            });
        }
    }
    refusals
}

/// What somebody who reads along needs to know, and what will not work.
fn tell_beginning(config: &Config, settings: &mqtt::Settings) {
    let prefix = settings.prefix();
    let node = &config.node;
    info!(
        "node {node}, broker {}:{}, records under {}",
        settings.host,
        settings.port,
        config.state_dir.display()
    );
    info!(
        "read along: mosquitto_sub -h {} -p {} -v -t '{prefix}edge/{node}/#'",
        settings.host, settings.port
    );
    for table in &config.tables {
        let name = &table.name;
        info!(
            "table {name}: {prefix}edge/{node}/board/{name}/…, its pairing {prefix}core/table/{name}"
        );
        if table.settings.clock_control {
            warn!("table {name}: clock_control has no effect yet: the clock is only read");
        }
    }
    if let Err(refusal) = try_folder(&config.state_dir) {
        error!(
            "{}: no trace and no PGN file is kept. {}",
            refusal.reason, refusal.advice
        );
    }
}

fn session_settings(config: &config::Table, out: &Outlets) -> session::Settings {
    session::Settings {
        stream: random_id(),
        boot: out.boot.clone(),
        wall: out.clock.setting(),
        watch: Watch::Judge,
        ..config.settings.session(config.name.as_str())
    }
}

/// The head of the table's traces: what a replay needs to judge as we did.
fn header(settings: &session::Settings, config: &config::Table) -> Header {
    Header {
        board: settings.family,
        ruleset: Some(settings.rules.ruleset),
        variant: Some(settings.rules.variant),
        supervised: Some(settings.rules.supervised),
        time_control: config.settings.time_control.clone(),
        orientation: Some(settings.orientation),
        white_clock_side: Some(settings.white_clock_side),
        silence: Watch::Judge,
        arming: settings.arming,
        clock: settings.clock,
        notes: vec![format!(
            "table {}, jadoube {}",
            config.name,
            env!("CARGO_PKG_VERSION")
        )],
        ..Header::default()
    }
}

fn open_files(state_dir: &Path) -> Option<Files> {
    Files::new(state_dir)
        .inspect_err(|error| {
            error!("no thread for files can be started: {error}; no trace and no PGN file is kept")
        })
        .ok()
}

/// Eight hexadecimal digits.
fn random_id() -> String {
    format!("{:08x}", fastrand::u32(..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::position::Position;

    #[test]
    fn plies_are_numbered_from_the_start_position() {
        let plies_before = |fen: &str| {
            let position = Position::from_fen(fen, false);
            position.expect("a test's position").plies_before()
        };
        assert_eq!(plies_before(&Position::initial().fen()), 0);
        assert_eq!(number_of(0, 1), "1.");
        assert_eq!(number_of(0, 46), "23...");
        let late = plies_before("8/8/8/8/8/k7/8/K6R b - - 0 40");
        assert_eq!(number_of(late, 1), "40...");
        assert_eq!(number_of(late, 2), "41.");
        assert_eq!(
            plies_before("8/8/8/8/8/k7/8/K6R b - - 0 4294967295"),
            u32::MAX
        );
    }

    #[test]
    fn the_wall_clock_is_set_only_when_it_jumps() {
        let mut clock = Clock::new(|| true);
        assert!(clock.time_ok);
        assert!(!clock.look());
        clock.wall_ms -= 10_000;
        assert!(clock.look());
        clock.is_ok = || false;
        assert!(clock.look());
        assert!(clock.wall().ends_with('Z'));
    }
}
