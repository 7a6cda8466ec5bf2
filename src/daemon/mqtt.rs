//! The connection to the broker: at least once, in order, whatever the broker or the network does.
//!
//! `rumqttc` is a bare transport here. On a reconnect it loses, repeats or reorders what it was sending, so the outbox
//! owns every message until its acknowledgement, and after each break the transport is emptied and the outbox sent again
//! from the oldest entry. All MQTT types stay in this file and those below it; what stands retained under our topics is watched in `retained`.
//!
//! [`connect`] gives a cloneable stub, the messages that arrive, and the task that polls the transport. That task does
//! nothing else, because polling cannot be cancelled without losing packets; whoever appends feeds the transport himself,
//! under the same lock, never waiting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{LastWill, Packet};
use rumqttc::v5::{AsyncClient, Event, EventLoop, MqttOptions};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep, timeout, timeout_at};

mod driver;
mod loss;
mod retained;
mod settings;

use self::loss::{Loss, Reporter, twin};
use self::retained::{Retained, Stale};
pub use self::settings::{Settings, SettingsError};
use super::backoff::Backoff;
use super::inbox::{Inbox, Slot, inbox};
use crate::hush::Hush;
use crate::outbox::{Dropped, Message, NotKept, Outbox, Tag};
use crate::publish::topic::Topic;
use crate::publish::{Online, Publication};

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The whole topic; [`Mqtt::below`] takes the prefix off.
    pub topic: String,
    pub payload: Vec<u8>,
    /// Whether its publisher asked the broker to keep it, or it was kept: it may be old.
    pub retain: bool,
}

/// How the connection is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Link {
    /// The first try is under way.
    #[default]
    Connecting,
    Connected,
    /// Another try follows by itself.
    Disconnected {
        reason: String,
    },
    /// The broker answered and said no. Another try follows, but only a person can help.
    Refused {
        reason: String,
    },
    /// Shut down.
    Closed,
}

/// What is known about the connection and the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    pub link: Link,
    /// Messages that the broker has not acknowledged.
    pub queued: usize,
    /// Messages that were given up for lack of room.
    pub dropped: u64,
    /// Messages that the broker refuses.
    pub parked: usize,
    /// Why the broker refused the last message that it refused; none once it takes messages again and none is parked.
    pub refused: Option<String>,
    /// Incoming messages for which there was no room.
    pub flooded: u64,
    /// Another daemon says that it is this node.
    pub has_twin: bool,
}

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    #[error("\"{0}\" is no topic")]
    Topic(String),
    #[error(transparent)]
    Outbox(#[from] NotKept),
    #[error("the connection is shut down")]
    Closed,
}

/// What [`connect`] returns.
pub struct Connection {
    pub mqtt: Mqtt,
    pub incoming: Inbox,
    /// Ends after [`Mqtt::shutdown`]; aborting it is as if the process were killed.
    pub task: JoinHandle<()>,
}

/// Starts to connect, and goes on until [`Mqtt::shutdown`]. Must be called inside a runtime.
pub fn connect(
    settings: Settings,
    outbox: impl Outbox + Send + 'static,
) -> Result<Connection, SettingsError> {
    settings.check()?;
    let options = options(&settings);
    let (client, eventloop) = AsyncClient::new(options, REQUESTS);
    let (incoming_in, incoming) = inbox();
    let prefix = settings.prefix();
    let driver = Driver {
        status_topic: settings
            .is_node
            .then(|| format!("{prefix}{}", Topic::NodeStatus.path(&settings.node))),
        prefix,
        outbox: Box::new(outbox),
        client,
        incoming: incoming_in,
        status: watch::Sender::new(Status::default()),
        link: Link::Connecting,
        window: settings.window.into(),
        packet_limit: usize::MAX,
        handed: VecDeque::new(),
        in_flight: VecDeque::new(),
        loose: 0,
        retained: BTreeMap::new(),
        once: VecDeque::new(),
        again: VecDeque::new(),
        later: VecDeque::new(),
        paused: false,
        refusals: Backoff::new(REFUSAL_WAIT, REFUSAL_WAIT * 4),
        refused: None,
        noted: BTreeSet::new(),
        pings: 0,
        stale: Stale::Held(BTreeSet::new()),
        subscribing: VecDeque::new(),
        to_mend: BTreeSet::new(),
        is_mending: false,
        twin_is_up: false,
        hush: Hush::default(),
        was_connected: false,
        is_back: false,
        has_twin: false,
        flooded: 0,
        busy_said: BTreeMap::new(),
        told_dropped: Dropped::default(),
        told_dropped_at: None,
        ending: Ending::No,
        settings: settings.clone(),
    };
    let shared = Arc::new(Shared {
        driver: Mutex::new(driver),
    });
    let reporter = Reporter::new(&settings);
    let task = tokio::spawn(run(shared.clone(), eventloop, reporter));
    let mqtt = Mqtt {
        shared,
        task: task.abort_handle(),
    };
    Ok(Connection {
        mqtt,
        incoming,
        task,
    })
}

/// The stub through which the rest of the daemon speaks to the broker. Nothing here waits for the network but `shutdown`.
#[derive(Clone)]
pub struct Mqtt {
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Mqtt {
    /// Publishes below `{base}/{event}/`, as this node.
    pub fn publish(&self, publication: &Publication) -> Result<(), NotSent> {
        let mut driver = self.shared.lock();
        let topic = publication.topic.path(&driver.settings.node);
        let message = Message {
            topic: format!("{}{topic}", driver.prefix),
            payload: publication.body.to_text().into_owned().into_bytes(),
            retain: publication.topic.retain(),
            qos: publication.topic.qos(),
            delivery: publication.topic.delivery(),
        };
        driver.send(message)
    }

    /// Publishes under any topic, for replies.
    pub fn send(&self, message: Message) -> Result<(), NotSent> {
        self.shared.lock().send(message)
    }

    /// Says that all alerts which are open have been published: from now on every other retained alert of this node is
    /// stale, left over from an earlier run, and is emptied. Those seen so far are emptied now.
    pub fn sweep_alerts(&self) {
        self.shared.lock().sweep_alerts();
    }

    /// Offers parked messages to the broker once more, after a person removed the cause. Says how many.
    pub fn release_parked(&self) -> usize {
        let mut driver = self.shared.lock();
        let released = driver.outbox.release_parked();
        driver.feed();
        driver.report();
        released
    }

    /// Publishes the node's retained `offline` once all else is acknowledged, or most of the time is over, and ends. Says
    /// what was left unacknowledged. Where even `offline` finds no way, the connection is cut instead, so that the broker
    /// publishes the last will.
    pub async fn shutdown(&self, within: Duration) -> usize {
        let deadline = Instant::now() + within;
        let mut status = {
            let mut driver = self.shared.lock();
            driver.ending = driver.ending.max(Ending::Draining);
            driver.status.subscribe()
        };
        let drained = status.wait_for(|s| s.queued == 0 || s.link != Link::Connected);
        let _ = timeout(within * 2 / 3, drained).await;
        {
            let mut driver = self.shared.lock();
            driver.ending = driver.ending.max(Ending::Farewell);
            driver.feed();
            driver.report();
        }
        // Without a connection there is nobody to say farewell to, and the last will has been or will be published.
        let ended = status.wait_for(|s| s.link != Link::Connected);
        let _ = timeout_at(deadline, ended).await;
        self.task.abort();
        let mut driver = self.shared.lock();
        driver.link = Link::Closed;
        driver.ending = Ending::Done;
        driver.report();
        driver.outbox.len()
    }

    pub fn status(&self) -> watch::Receiver<Status> {
        self.shared.lock().status.subscribe()
    }

    /// The part of a topic below `{base}/{event}/`.
    pub fn below<'a>(&self, topic: &'a str) -> Option<&'a str> {
        topic.strip_prefix(self.shared.lock().prefix.as_str())
    }
}

/// The packet limit that we tell the broker, and the largest packet that we send.
const PACKET: u32 = 256 * 1024;
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// More than `MOST_WINDOW` and the subscriptions, which take packet ids from the same counter.
const INFLIGHT: u16 = 32;
/// More than the window, the subscriptions and `LOOSE`, so that the transport always takes what it is given.
const REQUESTS: usize = 64;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const MOST_WAIT: Duration = Duration::from_secs(30);
/// Between two rounds of saying again what others have overwritten.
const MEND_WAIT: Duration = Duration::from_secs(5);
const REFUSAL_WAIT: Duration = Duration::from_millis(500);
/// A connection that lasted so long was a success: the next wait is short again.
const LASTED: Duration = Duration::from_secs(10);
/// After another client took our place: long enough that the log of either can be read.
const TWIN_WAIT: Duration = Duration::from_secs(60);
const MOST_TWIN_WAIT: Duration = Duration::from_secs(600);
struct Shared {
    driver: Mutex<Driver>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Driver> {
        // Every change of the driver is complete before anything that can panic.
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything but the transport itself, behind one lock that is never held while waiting.
struct Driver {
    settings: Settings,
    prefix: String,
    status_topic: Option<String>,
    outbox: Box<dyn Outbox + Send>,
    client: AsyncClient,
    incoming: Slot,
    status: watch::Sender<Status>,
    link: Link,
    window: usize,
    /// The broker's.
    packet_limit: usize,
    /// Given to the transport, without a packet id as yet. The transport names the ids in the same order.
    handed: VecDeque<Ticket>,
    in_flight: VecDeque<(u16, Ticket)>,
    /// Messages of quality 0 that the transport has not written yet.
    loose: usize,
    /// What we said last under each retained topic.
    retained: BTreeMap<String, Retained>,
    /// Those of `retained` that are said once, oldest first.
    once: VecDeque<String>,
    /// Retained topics to be said again on this connection: before the outbox, and after it.
    again: VecDeque<String>,
    later: VecDeque<String>,
    /// After a refusal, until a timer has run.
    paused: bool,
    refusals: Backoff,
    refused: Option<String>,
    /// Refusals that were logged on this connection.
    noted: BTreeSet<String>,
    /// Pings since the last acknowledgement that we wait for.
    pings: u32,
    stale: Stale,
    /// The filters of each request that the broker has not answered, in order.
    subscribing: VecDeque<Vec<String>>,
    /// Retained topics of ours on which somebody else has spoken.
    to_mend: BTreeSet<String>,
    /// Whether some were said again a moment ago, so that further ones wait.
    is_mending: bool,
    /// Another daemon is this node, as far as we know: what it says is not put right.
    twin_is_up: bool,
    hush: Hush<std::time::Instant>,
    /// There was a connection before, and before this one.
    was_connected: bool,
    is_back: bool,
    has_twin: bool,
    flooded: u64,
    /// When a topic of answers was last told that we are busy.
    busy_said: BTreeMap<String, Instant>,
    /// What the log has of what was given up, and since when.
    told_dropped: Dropped,
    told_dropped_at: Option<Instant>,
    ending: Ending,
}

/// Stands for one publish of quality 1 inside the transport.
#[derive(Debug, Clone, PartialEq)]
enum Ticket {
    Entry(Tag),
    Retained(String),
    Farewell,
}

impl Ticket {
    /// Whether it stands for what we say again under this topic.
    fn is_of(&self, topic: &str) -> bool {
        matches!(self, Ticket::Retained(of) if of == topic)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    No,
    /// Nothing new is taken.
    Draining,
    /// Only the farewell is still to be sent.
    Farewell,
    FarewellSent,
    Disconnecting,
    Done,
}

/// What the poll task does after an event.
enum Step {
    Go,
    /// Let the driver rest from what the broker refuses.
    Pause(Duration),
    /// Let what was said again rest for a while.
    Mend,
    Abandon(&'static str),
    Stop,
}

/// Polls the transport until the end. Nothing may share this task: see the head of the file.
async fn run(shared: Arc<Shared>, mut eventloop: EventLoop, mut reporter: Reporter) {
    let mut backoff = Backoff::new(FIRST_WAIT, MOST_WAIT);
    // Two that take each other's place would go on for ever, so this one is not shortened by a while of success.
    let mut twins = Backoff::new(TWIN_WAIT, MOST_TWIN_WAIT);
    let mut since = None;
    loop {
        // The transport pings, so each poll ends within a keep alive. One that does not is stuck in a write to a peer that
        // reads nothing; only then is it cancelled, and all it had is thrown away.
        let stuck = CONNECT_WAIT + eventloop.options.keep_alive() * 3;
        let loss = match timeout(stuck, eventloop.poll()).await {
            Ok(Ok(event)) => {
                if let Event::Incoming(Packet::ConnAck(_)) = event {
                    since = Some(Instant::now());
                    reporter.connected();
                }
                if since.is_some_and(|since: Instant| since.elapsed() >= LASTED) {
                    reporter.steady();
                    backoff.reset();
                }
                let (step, keep_alive) = {
                    let mut driver = shared.lock();
                    (driver.handle_event(event), driver.settings.keep_alive)
                };
                // A broker may ask for none, and the transport would ping without a pause.
                if eventloop.options.keep_alive().is_zero() {
                    eventloop.options.set_keep_alive(keep_alive);
                }
                match step {
                    Step::Go => continue,
                    Step::Pause(wait) => {
                        rest(Arc::downgrade(&shared), wait);
                        continue;
                    }
                    Step::Mend => {
                        mend(Arc::downgrade(&shared));
                        continue;
                    }
                    Step::Abandon(reason) => Loss::of(reason),
                    Step::Stop => break,
                }
            }
            Ok(Err(error)) => {
                let loss = Loss::from_error(&error, &reporter.node);
                match since {
                    Some(_) => loss,
                    None => loss.before_greeting(&error),
                }
            }
            Err(_) => Loss::of("the broker reads nothing"),
        };
        if shared.lock().handle_loss(&mut eventloop, &loss) {
            break;
        }
        let was_connected = since.take().is_some();
        let has_twin = was_connected && shared.lock().has_twin;
        reporter.lost(&loss, was_connected);
        let wait = match loss.taken_over || has_twin {
            true => twins.step(),
            false => backoff.step(),
        };
        sleep(wait).await;
    }
    // The socket closes before anyone is told.
    drop(eventloop);
    let mut driver = shared.lock();
    driver.link = Link::Closed;
    driver.ending = Ending::Done;
    driver.report();
}

/// Ends the driver's pause after a while.
fn rest(shared: Weak<Shared>, wait: Duration) {
    tokio::spawn(async move {
        sleep(wait).await;
        if let Some(shared) = shared.upgrade() {
            let mut driver = shared.lock();
            driver.paused = false;
            driver.feed();
            driver.report();
        }
    });
}

/// Says again, in a while and then now and then, what others overwrite. Two nodes of one name would else go on for ever as fast as
/// the broker lets them.
fn mend(shared: Weak<Shared>) {
    tokio::spawn(async move {
        loop {
            sleep(MEND_WAIT).await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let mut driver = shared.lock();
            if !driver.mend() {
                return;
            }
            driver.feed();
            driver.report();
        }
    });
}

fn options(settings: &Settings) -> MqttOptions {
    // The transport puts host and port together by itself, and an IPv6 address needs brackets there.
    let host = match settings.host.contains(':') && !settings.host.starts_with('[') {
        true => format!("[{}]", settings.host),
        false => settings.host.clone(),
    };
    let mut options = MqttOptions::new(settings.client_id(), host, settings.port);
    options
        .set_clean_start(true)
        .set_keep_alive(settings.keep_alive)
        .set_connection_timeout(CONNECT_WAIT.as_secs())
        .set_max_packet_size(Some(PACKET))
        .set_outgoing_inflight_upper_limit(INFLIGHT);
    if let Some(username) = &settings.username {
        options.set_credentials(username, settings.password.clone().unwrap_or_default());
    }
    if settings.is_node {
        let status = Topic::NodeStatus.path(&settings.node);
        let topic = format!("{}{status}", settings.prefix());
        let offline = settings.status(Online::Offline);
        options.set_last_will(LastWill::new(topic, offline, QoS::AtLeastOnce, true, None));
    }
    options
}

/// An upper bound of a PUBLISH packet: fixed header, topic length, packet id and empty properties (MQTT 5, 3.3).
fn packet_size(topic: usize, payload: usize) -> usize {
    5 + 2 + topic + 2 + 1 + payload
}

fn is_topic(topic: &str) -> bool {
    !topic.is_empty() && topic.len() <= 1024 && !topic.contains(['+', '#', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rumqttc::v5::mqttbytes::v5::Publish;

    #[test]
    fn packet_sizes_are_never_underestimated() {
        for length in [0, 100, 20_000, 200_000] {
            let mut publish = Publish::new("a/b", QoS::AtLeastOnce, vec![0; length], None);
            publish.pkid = 1;
            assert!(publish.size() <= packet_size(3, length));
        }
    }
}
