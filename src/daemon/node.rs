//! One node: its tables' sessions, the links to their boards, and the broker, in one loop.
//!
//! The loop is the only one that touches sessions, and it waits for nobody: links, broker and files have tasks or threads of
//! their own, and what one of them cannot take is its own loss. So a board that is absent, a broker that hangs and a disk that
//! is full never stop another table.

use std::collections::BTreeSet;
use std::future::{self, Future};
use std::path::Path;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tracing::{debug, error, info, warn};

use super::archives::Archives;
use super::desk::Desk;
use super::files::Files;
use super::mqtt::{self, Connection};
use super::orders::{Order, Orders};
use super::serial::{self, Finder, LinkEvent, PortSpec, Roots};
use super::store::{Forgetful, Store};
use crate::Millis;
use crate::command::{Arm, Verb};
use crate::config::Config;
use crate::game::PairingError;
use crate::hush::Hush;
use crate::outbox::{Limits, MemoryOutbox};
use crate::publish::{self, Payload, Publication, Topic};

mod clock;
mod outlets;
mod start;
mod table;

use clock::{Clock, is_time_set};
use outlets::Outlets;
pub use start::{StartError, refusals, visitor_settings};
use start::{mqtt_settings, tell_beginning};
use table::{Keeping, PAIRING, Table};

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
/// The broker tells what it has kept right after the subscription; a table without a record there by then has none.
const RECORDS_MS: Millis = 2_000;

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
