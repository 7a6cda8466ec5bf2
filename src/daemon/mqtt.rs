//! The connection to the broker: at least once, in order, whatever the broker or the network does.
//!
//! `rumqttc` is a bare transport here. On a reconnect it loses, repeats or reorders what it was sending, so the outbox
//! owns every message until its acknowledgement, and after each break the transport is emptied and the outbox sent again
//! from the oldest entry. All MQTT types stay in this file; what stands retained under our topics is watched in `retained`.
//!
//! [`connect`] gives a cloneable stub, the messages that arrive, and the task that polls the transport. That task does
//! nothing else, because polling cannot be cancelled without losing packets; whoever appends feeds the transport himself,
//! under the same lock, never waiting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rumqttc::Outgoing;
use rumqttc::v5::mqttbytes::v5::{
    ConnAck, ConnectReturnCode, DisconnectReasonCode, Filter, LastWill, Packet, PubAck,
    PubAckReason, Publish, RetainForwardRule, SubAck, SubscribeReasonCode,
};
use rumqttc::v5::mqttbytes::{Error as CodecError, QoS};
use rumqttc::v5::{
    AsyncClient, ConnectionError, Event, EventLoop, MqttOptions, MqttState, StateError,
};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{debug, error, info, warn};

mod retained;

use self::retained::{Retained, Stale};
use super::backoff::Backoff;
use super::inbox::{Inbox, Slot, inbox};
use crate::hush::Hush;
use crate::outbox::{Dropped, Message, NotKept, Outbox, Refusal, Tag};
use crate::publish::topic::{Address, CORE, Topic, archives};
use crate::publish::{Delivery, NodeStatus, Online, Publication, VERSION};
use crate::text::one_line;

/// How the broker is reached, and what this client is to it.
#[derive(Clone)]
pub struct Settings {
    pub host: String,
    pub port: u16,
    pub username: Option<String>,
    pub password: Option<String>,
    /// First levels of every topic.
    pub base: String,
    pub event: String,
    pub node: String,
    /// Names this run of the daemon in the node's status.
    pub boot: String,
    /// A dead broker is noticed after twice this.
    pub keep_alive: Duration,
    /// Messages that may be unacknowledged at a time, 1 to 16. With 1 the order holds even over a reconnect.
    pub window: u16,
    /// MQTT version; only 5 so far.
    pub version: u8,
    /// Else made of the node's name and the machine's id.
    pub client_id: Option<String>,
    /// Filters below `{base}/{event}/`, of what others publish. What comes below `core/` is a state, of which only the newest is
    /// handed on.
    pub subscriptions: Vec<String>,
    /// What is said to whoever sent a message that found no room. It gets the prefix of all topics.
    pub busy: fn(&str, &Incoming) -> Option<Message>,
    /// Whether this client is the node `node`: it then says so in the node's retained status, has a last will there, and
    /// empties the node's alerts that nobody closed. A mere reader does none of it.
    pub is_node: bool,
}

impl Settings {
    /// A node that takes its commands.
    pub fn node(host: &str, port: u16, event: &str, node: &str) -> Self {
        Settings {
            subscriptions: vec![Address::Command { node, verb: "#" }.to_string()],
            is_node: true,
            ..Settings::reader(host, port, event, node)
        }
    }

    /// Takes the pairings of these tables too. Those of other tables are none of its business: at a large event their number alone
    /// would drown its own.
    pub fn with_tables(mut self, tables: impl IntoIterator<Item = impl Display>) -> Self {
        let pairings = tables
            .into_iter()
            .map(|table| table.to_string())
            .map(|table| Address::Pairing { table: &table }.to_string());
        self.subscriptions.extend(pairings);
        self
    }

    /// A client that watches, with no subscriptions yet.
    pub fn reader(host: &str, port: u16, event: &str, name: &str) -> Self {
        Settings {
            host: host.to_owned(),
            port,
            username: None,
            password: None,
            base: "jadoube/v1".to_owned(),
            event: event.to_owned(),
            node: name.to_owned(),
            boot: String::new(),
            keep_alive: Duration::from_secs(5),
            window: 1,
            version: 5,
            client_id: None,
            subscriptions: Vec::new(),
            busy: |_, _| None,
            is_node: false,
        }
    }

    /// What all topics of this event begin with.
    pub fn prefix(&self) -> String {
        format!("{}/{}/", self.base, self.event)
    }

    /// Whether these settings can work at all.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.version != 5 {
            return Err(SettingsError::Version(self.version));
        }
        if self.host.is_empty() {
            return Err(SettingsError::Host);
        }
        if !(1..=MOST_WINDOW).contains(&self.window) {
            return Err(SettingsError::Window(self.window));
        }
        if !(5..=60).contains(&self.keep_alive.as_secs()) {
            return Err(SettingsError::KeepAlive(self.keep_alive));
        }
        for name in [&self.base, &self.event, &self.node] {
            let wild = self.is_node && !is_topic(name);
            if name.is_empty() || wild || name.starts_with('/') || name.ends_with('/') {
                return Err(SettingsError::Name(name.clone()));
            }
        }
        Ok(())
    }

    fn client_id(&self) -> String {
        if let Some(id) = &self.client_id {
            return id.clone();
        }
        // A node keeps its id over a restart: the broker then ends the old connection, with its last will, before it
        // greets the new one. With a new id the old will could come later and say offline of a node that is back.
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let mark = match machine.trim() {
            id if self.is_node && !id.is_empty() => fnv1a(&format!("{id} {}", self.prefix())),
            _ => fastrand::u64(..),
        };
        format!("jadoube-{}-{:012x}", self.node, mark >> 16)
    }
}

/// Settings that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("mqtt version {0} is not supported yet: use version = 5")]
    Version(u8),
    #[error("the broker's host is empty: give url = \"mqtt://HOST:1883\"")]
    Host,
    #[error("mqtt window {0} is out of range: use 1 to {MOST_WINDOW}")]
    Window(u16),
    #[error("mqtt keep alive of {0:?} is out of range: use 5 to 60 seconds")]
    KeepAlive(Duration),
    #[error("\"{0}\" cannot be part of a topic: use a to z, 0 to 9 and -")]
    Name(String),
}

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
const MOST_WINDOW: u16 = 16;
/// More than the window, the subscriptions and `LOOSE`, so that the transport always takes what it is given.
const REQUESTS: usize = 64;
/// Unsent messages of quality 0 beyond which further ones are dropped.
const LOOSE: usize = 16;
/// So often may a retained value end the connection before it is no longer said again.
const RETAINED_REFUSALS: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const MOST_WAIT: Duration = Duration::from_secs(30);
/// Between two rounds of saying again what others have overwritten.
const MEND_WAIT: Duration = Duration::from_secs(5);
/// Filters in one packet.
const FILTERS: usize = 200;
const MOST_SUBSCRIBES: usize = 8;
/// Answers that wait, beyond which commands that ask for more are refused.
const MOST_ANSWERS: usize = 500;
/// Between two refusals as busy under one topic, and the topics that are told at a time.
const BUSY_EVERY: Duration = Duration::from_secs(1);
const MOST_BUSY: usize = 64;
/// Between two lines about what was given up for lack of room.
const DROPPED_EVERY: Duration = Duration::from_secs(60);
const REFUSAL_WAIT: Duration = Duration::from_millis(500);
/// A connection that lasted so long was a success: the next wait is short again.
const LASTED: Duration = Duration::from_secs(10);
const LOUD_AFTER: Duration = Duration::from_secs(300);
/// After another client took our place: long enough that the log of either can be read.
const TWIN_WAIT: Duration = Duration::from_secs(60);
const MOST_TWIN_WAIT: Duration = Duration::from_secs(600);
/// Keep alive periods without an acknowledgement, while the broker answers pings, after which we connect anew.
const SILENT_PINGS: u32 = 3;

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

impl Driver {
    fn send(&mut self, message: Message) -> Result<(), NotSent> {
        if self.ending != Ending::No {
            return Err(NotSent::Closed);
        }
        if !is_topic(&message.topic) {
            return Err(NotSent::Topic(message.topic));
        }
        let size = packet_size(message.topic.len(), message.payload.len());
        let most = PACKET as usize;
        if size > most {
            let topic = message.topic;
            return Err(NotKept::TooLarge { topic, size, most }.into());
        }
        if message.qos == 0 || message.delivery == Delivery::BestEffort {
            self.send_loose(message, size);
            return Ok(());
        }
        let kept = message.retain.then(|| {
            let Message {
                topic,
                payload,
                delivery,
                ..
            } = message.clone();
            (topic, payload, delivery)
        });
        let taken = self.outbox.append(message);
        if let Some((topic, payload, delivery)) = kept
            && !matches!(taken, Err(NotKept::TooLarge { .. }))
        {
            self.remember(topic, payload, delivery);
        }
        self.handle_dropped();
        self.feed();
        self.report();
        taken?;
        Ok(())
    }

    /// Gives the transport what it may have: as many as the window allows, in order.
    fn feed(&mut self) {
        while self.link == Link::Connected && self.outstanding() < self.window {
            let Some((ticket, topic, payload, retain)) = self.next_to_send() else {
                return;
            };
            let tag = match ticket {
                Ticket::Entry(tag) => Some(tag),
                _ => None,
            };
            match self
                .client
                .try_publish(topic, QoS::AtLeastOnce, retain, payload)
            {
                Ok(()) => {
                    self.handed.push_back(ticket);
                    if let Some(tag) = tag {
                        self.outbox.sent(tag);
                    }
                }
                Err(cause) => {
                    // Only with a full channel, and then the next event feeds again.
                    debug!(%cause, "the transport takes nothing");
                    match ticket {
                        Ticket::Retained(topic) => self.again.push_front(topic),
                        Ticket::Farewell => self.ending = Ending::Farewell,
                        Ticket::Entry(_) => {}
                    }
                    return;
                }
            }
        }
    }

    fn next_to_send(&mut self) -> Option<(Ticket, String, Vec<u8>, bool)> {
        if self.ending >= Ending::Farewell {
            return self.farewell();
        }
        if let Some(next) = self.next_retained(|driver| driver.again.pop_front()) {
            return Some(next);
        }
        // What happens on the boards goes before any answer, and so do newest values that had found no room.
        let only_answers = self.outbox.len() == self.outbox.answers();
        if only_answers && let Some(next) = self.next_retained(|driver| driver.later.pop_front()) {
            return Some(next);
        }
        while !self.paused {
            let Some((tag, message)) = self.outbox.next_unsent() else {
                break;
            };
            let size = packet_size(message.topic.len(), message.payload.len());
            if size <= self.packet_limit {
                let (topic, payload) = (message.topic.clone(), message.payload.clone());
                return Some((Ticket::Entry(tag), topic, payload, message.retain));
            }
            let topic = message.topic.clone();
            let limit = self.packet_limit;
            let reason = format!("{size} bytes are more than the broker's limit of {limit}");
            self.outbox.park(tag, &reason);
            self.note_refusal(&topic, &reason, true);
        }
        if self.outbox.is_empty() {
            return self.next_retained(|driver| driver.later.pop_front());
        }
        None
    }

    fn farewell(&mut self) -> Option<(Ticket, String, Vec<u8>, bool)> {
        if self.ending != Ending::Farewell {
            return None;
        }
        let Some(topic) = self.status_topic.clone() else {
            self.disconnect();
            return None;
        };
        self.ending = Ending::FarewellSent;
        let payload = self.settings.status(Online::Offline);
        Some((Ticket::Farewell, topic, payload, true))
    }

    fn disconnect(&mut self) {
        self.ending = Ending::Disconnecting;
        if let Err(cause) = self.client.try_disconnect() {
            debug!(%cause, "the transport takes no farewell");
        }
    }

    fn send_loose(&mut self, message: Message, size: usize) {
        if self.link != Link::Connected || self.loose >= LOOSE || size > self.packet_limit {
            return;
        }
        let Message {
            topic,
            payload,
            retain,
            ..
        } = message;
        let taken = self
            .client
            .try_publish(topic, QoS::AtMostOnce, retain, payload);
        if taken.is_ok() {
            self.loose += 1;
        }
    }

    fn handle_event(&mut self, event: Event) -> Step {
        let step = match event {
            Event::Incoming(Packet::ConnAck(connack)) => {
                self.handle_connack(&connack);
                Step::Go
            }
            Event::Incoming(Packet::PubAck(puback)) => self.handle_puback(&puback),
            Event::Incoming(Packet::Publish(publish)) => self.handle_publish(publish),
            Event::Incoming(Packet::SubAck(suback)) => {
                self.handle_suback(&suback);
                Step::Go
            }
            Event::Outgoing(Outgoing::Publish(0)) => {
                self.loose = self.loose.saturating_sub(1);
                Step::Go
            }
            Event::Outgoing(Outgoing::Publish(id)) => {
                if let Some(ticket) = self.handed.pop_front() {
                    self.in_flight.push_back((id, ticket));
                }
                Step::Go
            }
            Event::Outgoing(Outgoing::PingReq) => self.handle_ping(),
            Event::Outgoing(Outgoing::Disconnect) => Step::Stop,
            _ => Step::Go,
        };
        self.feed();
        self.report();
        step
    }

    fn handle_connack(&mut self, connack: &ConnAck) {
        let properties = connack.properties.as_ref();
        let at_once = properties.and_then(|p| p.receive_max).unwrap_or(u16::MAX);
        self.window = self.settings.window.min(at_once.max(1)).into();
        let largest = properties.and_then(|p| p.max_packet_size);
        self.packet_limit = largest.map_or(usize::MAX, |most| most as usize);
        self.link = Link::Connected;

        let all = self.retained.iter();
        let (once, state): (Vec<_>, Vec<_>) =
            all.partition(|(_, kept)| kept.delivery == Delivery::Each);
        let state = state.into_iter().map(|(topic, _)| topic.clone());
        self.again = self.status_topic.iter().cloned().chain(state).collect();
        self.later = once.into_iter().map(|(topic, _)| topic.clone()).collect();
        self.is_back = std::mem::replace(&mut self.was_connected, true);
        if self.is_back {
            // What stands as our status now was said by us, unless another daemon is the same node.
            self.subscribe();
            self.feed();
        } else {
            // Our own status goes first: what the subscription brings back is then what we said.
            self.feed();
            self.subscribe();
        }
    }

    fn subscribe(&mut self) {
        self.subscribing.clear();
        let filters = self.filters();
        // A hall of tables does not fit one packet everywhere, and each packet takes an id.
        let at_once = FILTERS.max(filters.len().div_ceil(MOST_SUBSCRIBES));
        for filters in filters.chunks(at_once) {
            let paths = filters.iter().map(|filter| filter.path.clone()).collect();
            if let Err(cause) = self.client.try_subscribe_many(filters.to_vec()) {
                // The channel is empty after a new connection, so it can only be a filter that no broker would take.
                error!(%cause, "cannot subscribe; look at event, node and base in the configuration");
                continue;
            }
            self.subscribing.push_back(paths);
        }
    }

    fn filters(&self) -> Vec<Filter> {
        let theirs = self.settings.subscriptions.iter().map(|below| Filter {
            path: format!("{}{below}", self.prefix),
            qos: QoS::AtLeastOnce,
            nolocal: false,
            // A command that was published as retained is refused; so we must see that it was.
            preserve_retain: true,
            retain_forward_rule: RetainForwardRule::OnEverySubscribe,
        });
        // What an earlier run has finished is asked for once, for it may be much. A game of which that is lost on the way could begin
        // again; its PGN file is moved aside then.
        let asks = self.settings.is_node && !self.is_back;
        let finished = asks.then(|| Filter {
            path: format!("{}{}", self.prefix, archives(&self.settings.node)),
            qos: QoS::AtMostOnce,
            nolocal: true,
            preserve_retain: true,
            retain_forward_rule: RetainForwardRule::OnEverySubscribe,
        });
        // We want to know what an earlier run has kept, and what somebody else leaves at the broker in our name.
        let own = self.own_states().map(|below| Filter {
            path: format!("{}{below}", self.prefix),
            qos: QoS::AtLeastOnce,
            nolocal: true,
            // What was kept must differ from what is said just now, or an earlier run could not be told from a twin, nor its record
            // from what somebody writes there.
            preserve_retain: !matches!(
                Topic::parse(&below),
                Some((_, Topic::NodeStatus | Topic::Game { .. }))
            ),
            retain_forward_rule: RetainForwardRule::OnEverySubscribe,
        });
        own.chain(finished).chain(theirs).collect()
    }

    fn handle_puback(&mut self, puback: &PubAck) -> Step {
        let at = self.in_flight.iter().position(|(id, _)| *id == puback.pkid);
        let Some((_, ticket)) = at.and_then(|at| self.in_flight.remove(at)) else {
            debug!(id = puback.pkid, "acknowledgement of nothing that we sent");
            return Step::Go;
        };
        self.pings = 0;
        match puback.reason {
            PubAckReason::Success | PubAckReason::NoMatchingSubscribers => {
                self.accept(ticket);
                Step::Go
            }
            reason => {
                let reason = match reason {
                    PubAckReason::NotAuthorized => "not authorised".to_owned(),
                    PubAckReason::QuotaExceeded => "quota exceeded".to_owned(),
                    other => format!("{other:?}"),
                };
                self.refuse(ticket, &reason)
            }
        }
    }

    fn accept(&mut self, ticket: Ticket) {
        match ticket {
            Ticket::Entry(tag) => {
                self.outbox.acked(tag);
                self.refusals.reset();
                if self.outbox.parked() == 0 {
                    self.refused = None;
                }
            }
            Ticket::Retained(topic) => {
                if let Some(kept) = self.retained.get_mut(&topic) {
                    kept.refusals = 0;
                }
            }
            Ticket::Farewell => self.disconnect(),
        }
    }

    fn refuse(&mut self, ticket: Ticket, reason: &str) -> Step {
        match ticket {
            Ticket::Entry(tag) => {
                let topic = self.outbox.message(tag).map(|m| m.topic.clone());
                let refusal = self.outbox.refused(tag, reason);
                let parked = refusal == Refusal::Parked;
                self.note_refusal(&topic.unwrap_or_default(), reason, parked);
                if let Refusal::Again { .. } = refusal {
                    self.paused = true;
                    return Step::Pause(self.refusals.step());
                }
                self.refusals.reset();
                Step::Go
            }
            Ticket::Retained(topic) => {
                self.note_refusal(&topic, reason, false);
                Step::Go
            }
            // Then the broker shall say the last will instead.
            Ticket::Farewell => Step::Stop,
        }
    }

    fn note_refusal(&mut self, topic: &str, reason: &str, parked: bool) {
        if self.noted.insert(format!("{reason} {parked}")) {
            let then = match parked {
                true => "it is set aside and the others go on",
                false => "it is kept",
            };
            warn!(
                topic,
                "the broker refuses a message: {reason}; {then}. Look at the broker's access list and limits"
            );
        }
        self.refused = Some(format!("{topic}: {reason}"));
    }

    fn handle_publish(&mut self, publish: Publish) -> Step {
        let Ok(topic) = String::from_utf8(publish.topic.to_vec()) else {
            debug!("a topic that is not UTF-8");
            return Step::Go;
        };
        let is_record = self.is_record(&topic);
        // As long as we have told nothing there, a record is that of an earlier run.
        let is_earlier = is_record && !self.retained.contains_key(&topic);
        if self.is_own(&topic) && !is_earlier {
            let is_status = self.status_topic.as_ref() == Some(&topic);
            if is_status && self.is_of_twin(&publish.payload, publish.retain) {
                // It is no lie that the node is online.
                return Step::Go;
            }
            // What is not kept at the broker misleads nobody who comes later; of these two we are not told whether it is.
            return match publish.retain || is_status || is_record {
                true => self.handle_own(topic, &publish.payload),
                false => Step::Go,
            };
        }
        let below = topic.strip_prefix(&self.prefix);
        let is_state = below.is_some_and(|below| below.starts_with(CORE)) || is_record;
        let incoming = Incoming {
            topic,
            payload: publish.payload.to_vec(),
            retain: publish.retain,
        };
        // Who asks for an answer waits for those that were asked for before.
        let busy =
            |driver: &Driver, message: &Incoming| (driver.settings.busy)(&driver.prefix, message);
        let refused = if !is_state && self.outbox.answers() >= MOST_ANSWERS {
            busy(self, &incoming).map(Some)
        } else {
            None
        };
        let refused = refused.or_else(|| {
            let lost = self.incoming.put(incoming, is_state).err()?;
            Some(busy(self, &lost))
        });
        if let Some(answer) = refused {
            self.flooded += 1;
            self.say(|| {
                "commands arrive faster than they are carried out or answered; some are refused as busy"
                    .to_owned()
            });
            if let Some(answer) = answer
                && self.may_answer_busy(&answer.topic)
                && let Err(cause) = self.outbox.append(answer)
            {
                debug!(%cause, "an answer is lost");
            }
            self.handle_dropped();
        }
        Step::Go
    }

    /// Whoever sends far too much is not answered each time: one answer a second says it all.
    fn may_answer_busy(&mut self, topic: &str) -> bool {
        let now = Instant::now();
        self.busy_said
            .retain(|_, said| now.duration_since(*said) < BUSY_EVERY);
        if self.busy_said.len() >= MOST_BUSY || self.busy_said.contains_key(topic) {
            return false;
        }
        self.busy_said.insert(topic.to_owned(), now);
        true
    }

    /// Remembers which newest values were given up for lack of room, and says once a minute what all was.
    fn handle_dropped(&mut self) {
        while let Some(topic) = self.outbox.poll_dropped() {
            if self.retained.contains_key(&topic) && !self.later.contains(&topic) {
                self.later.push_back(topic);
            }
        }
        let dropped = self.outbox.dropped();
        let is_due = self
            .told_dropped_at
            .is_none_or(|at| at.elapsed() >= DROPPED_EVERY);
        if is_due && dropped != self.told_dropped {
            let new = dropped.since(&self.told_dropped);
            warn!(
                "no room for all that waits for the broker; given up: {new}. Look whether the broker keeps up"
            );
            self.told_dropped = dropped;
            self.told_dropped_at = Some(Instant::now());
        }
    }

    /// Says what others can cause as often as they like.
    fn say(&mut self, text: impl FnOnce() -> String) {
        let text = text();
        if self.hush.may_say(&text, std::time::Instant::now()) {
            warn!("{text}");
        }
    }

    fn handle_suback(&mut self, suback: &SubAck) {
        let filters = self.subscribing.pop_front().unwrap_or_default();
        for (filter, code) in filters.iter().zip(&suback.return_codes) {
            if !matches!(code, SubscribeReasonCode::Success(_)) {
                warn!(
                    filter,
                    "the broker refuses the subscription: {code:?}. Look at the broker's access list"
                );
            }
        }
    }

    /// Pings go out whatever else does, so they serve as the clock of a broker that answers but does not acknowledge.
    fn handle_ping(&mut self) -> Step {
        self.handle_dropped();
        for kept in self.hush.poll(std::time::Instant::now()) {
            warn!("{} ({} more times)", kept.text, kept.times);
        }
        if self.outstanding() == 0 {
            self.pings = 0;
            return Step::Go;
        }
        self.pings += 1;
        if self.pings >= SILENT_PINGS {
            return Step::Abandon("the broker answers but acknowledges nothing");
        }
        Step::Go
    }

    /// Empties the transport, and takes back what it had. The order matters: acknowledgements that were read before the
    /// break count, and nothing of this connection may come out on the next. True where there shall be no next one.
    fn handle_loss(&mut self, eventloop: &mut EventLoop, loss: &Loss) -> bool {
        self.link = match loss.refused {
            true => Link::Refused {
                reason: loss.reason.clone(),
            },
            false => Link::Disconnected {
                reason: loss.reason.clone(),
            },
        };
        while let Some(event) = eventloop.state.events.pop_front() {
            if !matches!(event, Event::Incoming(Packet::ConnAck(_))) {
                self.handle_event(event);
            }
        }
        eventloop.clean();
        eventloop.pending.clear();
        eventloop.state.collision = None;
        // The last packet id outlives `clean`; if the next broker allows fewer ids, it would count past the end.
        eventloop.state = MqttState::new(INFLIGHT, false);
        // Neither must an earlier broker's wish.
        eventloop.options.set_keep_alive(self.settings.keep_alive);

        if loss.by_message {
            self.blame_oldest(&loss.reason);
        }
        self.handed.clear();
        self.in_flight.clear();
        self.again.clear();
        self.later.clear();
        self.to_mend.clear();
        self.subscribing.clear();
        self.noted.clear();
        self.loose = 0;
        self.pings = 0;
        self.paused = false;
        self.outbox.rewind();
        self.report();
        self.ending >= Ending::Farewell
    }

    /// The connection ended because of what we sent: after a few times it is set aside, else it would never end.
    fn blame_oldest(&mut self, reason: &str) {
        match self.in_flight.front().map(|(_, ticket)| ticket.clone()) {
            Some(Ticket::Entry(tag)) => {
                let message = self.outbox.message(tag);
                let topic = message.map(|m| m.topic.clone()).unwrap_or_default();
                let parked = self.outbox.refused(tag, reason) == Refusal::Parked;
                self.note_refusal(&topic, reason, parked);
                if parked && !self.outbox.holds(&topic) {
                    self.retained.remove(&topic);
                }
            }
            Some(Ticket::Retained(topic)) => {
                if let Some(kept) = self.retained.get_mut(&topic) {
                    kept.refusals += 1;
                    if kept.refusals >= RETAINED_REFUSALS {
                        self.retained.remove(&topic);
                        self.note_refusal(&topic, reason, false);
                    }
                }
            }
            Some(Ticket::Farewell) | None => {}
        }
    }

    fn report(&self) {
        let now = Status {
            link: self.link.clone(),
            queued: self.outbox.len(),
            dropped: self.outbox.dropped().total(),
            parked: self.outbox.parked(),
            refused: self.refused.clone(),
            flooded: self.flooded,
            has_twin: self.has_twin,
        };
        self.status.send_if_modified(|status| {
            let is_new = *status != now;
            *status = now;
            is_new
        });
    }

    fn outstanding(&self) -> usize {
        self.handed.len() + self.in_flight.len()
    }
}

impl Settings {
    fn status(&self, status: Online) -> Vec<u8> {
        let status = NodeStatus {
            v: VERSION,
            status,
            boot: self.boot.clone(),
        };
        serde_json::to_vec(&status).expect("numbers and text have a JSON form")
    }
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

/// Why there is no connection.
#[derive(Debug)]
struct Loss {
    /// For a person; says what to do where that is known.
    reason: String,
    /// In the transport's words, which may differ from time to time.
    detail: Option<String>,
    /// The broker answered and refused us.
    refused: bool,
    /// A message of ours is at fault, not the network.
    by_message: bool,
    /// Another client came with our id (MQTT 5, reason 0x8E).
    taken_over: bool,
}

impl Loss {
    fn of(reason: &str) -> Self {
        Loss {
            reason: reason.to_owned(),
            detail: None,
            refused: false,
            by_message: false,
            taken_over: false,
        }
    }

    fn from_error(error: &ConnectionError, client: &str) -> Self {
        match error {
            ConnectionError::ConnectionRefused(code) => Loss {
                refused: true,
                ..Loss::of(&advice(*code))
            },
            ConnectionError::Timeout(_) => Loss::of("no answer"),
            ConnectionError::Io(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
                Loss::of("nothing listens there: is the broker running, and the port right?")
            }
            ConnectionError::Io(cause) => Loss::of(&cause.to_string()),
            ConnectionError::MqttState(cause) => Loss::from_state(cause, client),
            other => Loss::of(&one_line(&other.to_string(), 200)),
        }
    }

    /// The same, where nothing has shown yet that a broker of our kind is there at all.
    fn before_greeting(self, error: &ConnectionError) -> Self {
        match error {
            // A broker that knows 3.1.1 only answers in two bytes less than MQTT 5 asks for, and hangs up.
            ConnectionError::MqttState(
                StateError::ConnectionAborted | StateError::Deserialization(CodecError::Io(_)),
            ) if !self.reason.contains("os error") => Loss::of(
                "it hung up without a greeting: either it is no MQTT 5 broker (perhaps one for 3.1.1 only, or another service), or it takes no clients from here",
            ),
            ConnectionError::Timeout(_) => {
                Loss::of("no answer: the broker hangs, or it is no MQTT 5 broker")
            }
            ConnectionError::NotConnAck(_) => Loss::no_broker("it greets with another packet"),
            ConnectionError::MqttState(StateError::Deserialization(cause))
                if !matches!(cause, CodecError::Io(_)) =>
            {
                Loss::no_broker(&cause.to_string())
            }
            _ => self,
        }
    }

    fn no_broker(detail: &str) -> Self {
        Loss {
            detail: Some(one_line(detail, 100)),
            ..Loss::of(
                "what answers there is no MQTT 5 broker: look at host and port of url under [mqtt]",
            )
        }
    }

    fn from_state(error: &StateError, client: &str) -> Self {
        match error {
            StateError::AwaitPingResp | StateError::CollisionTimeout => {
                Loss::of("the broker no longer answers")
            }
            StateError::ConnectionAborted => Loss::of("the broker closed the connection"),
            StateError::Io(cause) | StateError::Deserialization(CodecError::Io(cause)) => {
                Loss::of(&cause.to_string())
            }
            StateError::ServerDisconnect { reason_code, .. } => {
                from_disconnect(*reason_code, client)
            }
            // Mosquitto acknowledges a message that it finds too large with a reason that the standard does not know
            // there (0x95), and the transport stumbles over it.
            StateError::Deserialization(CodecError::InvalidConnectReturnCode(code)) => Loss {
                by_message: true,
                ..Loss::of(&format!("the broker answered with reason {code:#04x}"))
            },
            StateError::OutgoingPacketTooLarge { .. } => Loss {
                by_message: true,
                ..Loss::of("a message is larger than the broker allows")
            },
            StateError::Deserialization(cause) => Loss {
                detail: Some(one_line(&cause.to_string(), 100)),
                ..Loss::of("the broker sent what is no MQTT 5")
            },
            other => Loss::of(&one_line(&other.to_string(), 200)),
        }
    }
}

fn from_disconnect(code: DisconnectReasonCode, client: &str) -> Loss {
    use DisconnectReasonCode as Code;
    match code {
        Code::SessionTakenOver => Loss {
            taken_over: true,
            ..Loss::of(&twin(client))
        },
        Code::ServerShuttingDown => Loss::of("the broker is shutting down"),
        Code::NotAuthorized
        | Code::TopicNameInvalid
        | Code::PacketTooLarge
        | Code::QuotaExceeded
        | Code::PayloadFormatInvalid
        | Code::RetainNotSupported
        | Code::QoSNotSupported
        | Code::MalformedPacket
        | Code::ImplementationSpecificError => Loss {
            by_message: true,
            ..Loss::of(&format!("the broker ended the connection: {code:?}"))
        },
        other => Loss::of(&format!("the broker ended the connection: {other:?}")),
    }
}

/// Two daemons as one node; each overwrites what the other says.
fn twin(node: &str) -> String {
    format!(
        "another jadoube is connected as node {node}; give each a node of its own (the key node of the configuration)"
    )
}

fn advice(code: ConnectReturnCode) -> String {
    use ConnectReturnCode as Code;
    match code {
        Code::BadUserNamePassword | Code::NotAuthorized => {
            "the broker refuses this user: look at username and password_file under [mqtt]"
                .to_owned()
        }
        Code::RefusedProtocolVersion | Code::UnsupportedProtocolVersion => {
            "the broker does not speak MQTT 5: use a newer one".to_owned()
        }
        Code::BadClientId | Code::ClientIdentifierNotValid => {
            "the broker refuses the client id: choose another node name".to_owned()
        }
        Code::RetainNotSupported | Code::QoSNotSupported => {
            "the broker cannot keep messages, which is needed: use another".to_owned()
        }
        other => format!("the broker refuses the connection: {other:?}"),
    }
}

/// Log lines about the connection: one a cause, however often it is tried.
struct Reporter {
    broker: String,
    node: String,
    /// Another client with our id was told of.
    told_twin: bool,
    /// Causes that were told since the last steady connection.
    told: BTreeSet<String>,
    /// Since when there has been no steady connection.
    down: Option<Instant>,
    /// Connections that come and go for a known cause are not worth a line each.
    is_hushed: bool,
    is_loud: bool,
}

impl Reporter {
    fn new(settings: &Settings) -> Self {
        Reporter {
            broker: format!("{}:{}", settings.host, settings.port),
            node: settings.node.clone(),
            told_twin: false,
            told: BTreeSet::new(),
            down: None,
            is_hushed: false,
            is_loud: false,
        }
    }

    fn connected(&self) {
        let broker = &self.broker;
        match self.down {
            _ if self.is_hushed => debug!("connected to the broker at {broker}"),
            Some(down) => info!(
                "connected to the broker at {broker} after {} s",
                down.elapsed().as_secs()
            ),
            None => info!("connected to the broker at {broker}"),
        }
    }

    /// The connection has lasted.
    fn steady(&mut self) {
        if std::mem::take(&mut self.is_hushed) {
            info!("the connection to the broker at {} holds", self.broker);
        }
        self.told.clear();
        self.down = None;
        self.is_loud = false;
    }

    fn lost(&mut self, loss: &Loss, was_connected: bool) {
        let broker = &self.broker;
        let reason = &loss.reason;
        let down = self.down.get_or_insert_with(Instant::now).elapsed();
        if loss.taken_over {
            // Each of the two connections is a while of peace in between, and no reason to say it again.
            if !std::mem::replace(&mut self.told_twin, true) {
                error!("no connection to the broker at {broker}: {reason}");
            }
        } else if self.told.insert(reason.clone()) {
            self.is_hushed = false;
            let detail = loss.detail.iter().map(|detail| format!(" ({detail})"));
            let detail: String = detail.collect();
            warn!("no connection to the broker at {broker}: {reason}{detail}; trying again");
        } else if was_connected {
            self.is_hushed = true;
        }
        if !self.is_loud && down >= LOUD_AFTER {
            self.is_loud = true;
            error!(
                "no steady connection to the broker at {broker} for {} minutes: {reason}. What happens is kept and sent later",
                down.as_secs() / 60
            );
        }
    }
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

/// FNV-1a: the same in every release, unlike the standard library's hash.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_never_share_an_id_and_a_node_keeps_its_own() {
        let id = |node: &str| Settings::node("localhost", 1883, "open", node).client_id();
        let reader = || Settings::reader("localhost", 1883, "open", "watch").client_id();
        assert_ne!(id("pi07"), id("pi08"));
        assert_ne!(reader(), reader());
        if std::fs::read_to_string("/etc/machine-id").is_ok_and(|id| !id.trim().is_empty()) {
            assert_eq!(id("pi07"), id("pi07"));
        }
    }

    #[test]
    fn packet_sizes_are_never_underestimated() {
        for length in [0, 100, 20_000, 200_000] {
            let mut publish = Publish::new("a/b", QoS::AtLeastOnce, vec![0; length], None);
            publish.pkid = 1;
            assert!(publish.size() <= packet_size(3, length));
        }
    }

    #[test]
    fn only_a_message_is_blamed_for_what_a_message_did() {
        let loss = |error| Loss::from_state(&error, "id");
        let disconnect = |reason_code| StateError::ServerDisconnect {
            reason_code,
            reason_string: None,
        };
        assert!(loss(disconnect(DisconnectReasonCode::PacketTooLarge)).by_message);
        for innocent in [
            disconnect(DisconnectReasonCode::ServerShuttingDown),
            disconnect(DisconnectReasonCode::SessionTakenOver),
            StateError::ConnectionAborted,
            StateError::AwaitPingResp,
            StateError::Io(io::ErrorKind::ConnectionReset.into()),
        ] {
            let loss = loss(innocent);
            assert!(!loss.by_message, "{}", loss.reason);
        }
        let taken = loss(disconnect(DisconnectReasonCode::SessionTakenOver));
        assert!(taken.taken_over);
        assert!(
            taken.reason.contains("connected as node id;"),
            "{}",
            taken.reason
        );
    }
}
