//! Finding the boards of all tables of a process.
//!
//! A board can only be told from another by asking it, and asking means opening the port, which one party can do at a time. So one
//! finder asks for all tables, each port once, and hands the open port to the table that the answer belongs to. Ports that are of
//! no use are closed again and remembered until they are replugged.
//!
//! Who gets a board, first match wins:
//!
//! 1. the table that names its serial number;
//! 2. the table that names the port by a lasting link, such as one under `/dev/serial/by-path`: a promise about the place;
//! 3. the table that had this very board before the link was lost: names such as `/dev/ttyACM0` go to whoever is plugged in first,
//!    so two boards that come back together may have swapped them (cases A7, A8);
//! 4. the table that names the port as the kernel does;
//! 5. a table on `auto`, boards in the order of their ports. One that had another board waits for that first.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use super::devices::{Generation, NAMED, is_device, natural};
use super::port::is_claimed;
use super::{
    Chunk, Device, Devices, Holder, Identity, OpenError, Port, PortSpec, ProbeError, Refusal,
    Roots, Settings, open, probe,
};
use crate::daemon::desk::{Daemon, Held};
use crate::wire::Family;

/// Finds boards for the links of one process. Cloning it gives another handle; it ends with the last.
#[derive(Clone, Debug)]
pub struct Finder {
    requests: mpsc::UnboundedSender<Request>,
    next: Arc<AtomicU64>,
    settings: Arc<Settings>,
}

impl Finder {
    /// Starts looking; needs a tokio runtime.
    pub fn new(roots: Roots, settings: Settings) -> Finder {
        let (requests, inbox) = mpsc::unbounded_channel();
        let settings = Arc::new(settings);
        let actor = Actor {
            roots,
            settings: settings.clone(),
            members: BTreeMap::new(),
            seen: BTreeMap::new(),
            memory: BTreeMap::new(),
            probes: JoinSet::new(),
            asked: HashMap::new(),
            held: BTreeMap::new(),
            foreign: Vec::new(),
        };
        tokio::spawn(actor.run(inbox));
        Finder {
            requests,
            next: Arc::default(),
            settings,
        }
    }

    /// Times and limits.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Makes a table known. From now on nobody else gets what it names.
    pub(super) fn join(&self, spec: PortSpec, family: Option<Family>) -> Membership {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let membership = Membership {
            id,
            finder: self.clone(),
        };
        membership.send(Request::Join { id, spec, family });
        membership
    }
}

/// A table known to the finder, until dropped.
#[derive(Debug)]
pub(super) struct Membership {
    id: u64,
    finder: Finder,
}

impl Membership {
    /// Asks for the table's board. Whatever it had before is given up.
    pub(super) fn want(&self) -> mpsc::Receiver<Offer> {
        let (offers, inbox) = mpsc::channel(8);
        self.send(Request::Want {
            id: self.id,
            offers,
        });
        inbox
    }

    fn send(&self, request: Request) {
        // The finder runs as long as there is a handle; it is gone only while the runtime shuts down.
        let _ = self.finder.requests.send(request);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.send(Request::Leave { id: self.id });
    }
}

/// What the finder tells a waiting table.
#[derive(Debug)]
pub(super) enum Offer {
    /// The board is here, open.
    Found(Box<Found>),
    /// Not yet. Repeated at every look.
    Waiting(Refusal),
}

/// An open port with what answered on it.
#[derive(Debug)]
pub(super) struct Found {
    pub port: Port,
    /// As a person would write it: the configured path, or the kernel's name.
    pub path: PathBuf,
    /// Nothing, if a port was named and something speaks there that we do not know.
    pub identity: Option<Identity>,
    pub heard: Vec<Chunk>,
}

/// What one device says of itself.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// The device.
    pub device: Device,
    /// What came of asking.
    pub answer: Answer,
}

/// What came of asking a device.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A board.
    Board(Identity),
    /// Something speaks there that is no board we know.
    Stranger(Refusal),
    /// It did not open, or gave no answer.
    Refused(Refusal),
    /// Another process has it.
    Busy {
        /// Who, as far as we may see.
        holder: Option<Holder>,
        /// The same in words.
        refusal: Refusal,
    },
    /// A running daemon has it, and says what is there; nothing while it is finding that out.
    Served {
        /// Which daemon.
        by: String,
        /// The node that it is.
        node: String,
        /// What it says.
        held: Option<Box<Held>>,
    },
    /// Not asked: no board is known to have such a USB id.
    Foreign,
}

/// Asks every device that may be a board, and whatever is at the `named` paths, all at the same time. For a port that does not
/// open, or is not to be opened, the `daemons` speak; and for those of theirs that the system does not list.
pub async fn survey(
    roots: &Roots,
    settings: &Settings,
    named: &[PathBuf],
    daemons: &[Daemon],
) -> Vec<Surveyed> {
    let mut devices = Devices::scan(roots).0;
    // Links are resolved once: a configuration may name thousands of ports.
    let mut listed: HashSet<PathBuf> = devices.iter().map(Device::node).collect();
    let mut asked_for = HashSet::new();
    for path in named {
        let node = path.canonicalize().unwrap_or_else(|_| path.clone());
        if listed.insert(node.clone()) {
            let name = path.display().to_string();
            devices.push(Device {
                name,
                path: path.clone(),
                links: Vec::new(),
                usb: None,
            });
        }
        asked_for.insert(node);
    }
    let mut asking = JoinSet::new();
    for (place, device) in devices.into_iter().enumerate() {
        let settings = settings.clone();
        let node = device.node();
        let may_be = match device.may_be(&settings.extra_usb_ids) {
            [] if asked_for.contains(&node) => NAMED,
            may_be => may_be,
        };
        asking.spawn(async move {
            let outcome = match may_be {
                [] => None,
                _ => Some(ask(&device.path, &settings, may_be).await),
            };
            (place, device, node, outcome)
        });
    }
    let mut answers: BTreeMap<usize, Surveyed> = BTreeMap::new();
    while let Some(asked) = asking.join_next().await {
        // A task that panicked has no device to tell of.
        let Ok((place, device, node, outcome)) = asked else {
            continue;
        };
        let answer = answer_of(&device.path, &node, outcome, daemons);
        answers.insert(place, Surveyed { device, answer });
    }
    let mut surveyed: Vec<Surveyed> = answers.into_values().collect();
    for daemon in daemons {
        for held in &daemon.told.ports {
            let node = Path::new(&held.device);
            // A pseudo terminal; whatever is no device at all does not get a line because somebody says so.
            if is_device(node) && listed.insert(node.to_owned()) {
                surveyed.push(Surveyed {
                    device: Device {
                        name: held.port.clone(),
                        path: held.port.clone().into(),
                        links: Vec::new(),
                        usb: None,
                    },
                    answer: served(daemon, Some(held)),
                });
            }
        }
    }
    surveyed
}

fn answer_of(
    path: &Path,
    node: &Path,
    outcome: Option<Result<Found, Failure>>,
    daemons: &[Daemon],
) -> Answer {
    // What the port itself shows is better than anybody's word.
    let holder = match &outcome {
        Some(Ok(Found {
            identity: Some(identity),
            ..
        })) => return Answer::Board(identity.clone()),
        Some(Ok(Found { identity: None, .. })) => return Answer::Stranger(unintelligible(path)),
        Some(Err(Failure::Open(OpenError::Busy { holder, .. }))) => holder.clone(),
        Some(Err(Failure::Open(_))) | None => None,
        Some(Err(failure)) => return Answer::Refused(failure.refusal(path)),
    };
    let may_hold = |daemon: &&Daemon| match (&holder, daemon.pid) {
        (Some(holder), Some(pid)) => holder.pid == pid,
        _ => true,
    };
    let held = daemons.iter().filter(may_hold).find_map(|daemon| {
        let held = daemon.port(|held| node == Path::new(&held.device));
        held.map(|held| served(daemon, Some(held)))
    });
    if let Some(served) = held {
        return served;
    }
    let Some(Err(failure)) = outcome else {
        return Answer::Foreign;
    };
    let refusal = failure.refusal(path);
    match failure {
        Failure::Open(OpenError::Busy {
            holder: Some(holder),
            ..
        }) => {
            let is_asking = daemons.iter().find(|daemon| daemon.pid == Some(holder.pid));
            match is_asking {
                Some(daemon) => served(daemon, None),
                None => Answer::Busy {
                    holder: Some(holder),
                    refusal,
                },
            }
        }
        Failure::Open(OpenError::Busy { holder: None, .. }) => Answer::Busy {
            holder: None,
            refusal,
        },
        _ => Answer::Refused(refusal),
    }
}

fn served(daemon: &Daemon, held: Option<&Held>) -> Answer {
    Answer::Served {
        by: daemon.to_string(),
        node: daemon.told.node.clone(),
        held: held.cloned().map(Box::new),
    }
}

#[derive(Debug)]
enum Request {
    Join {
        id: u64,
        spec: PortSpec,
        family: Option<Family>,
    },
    Want {
        id: u64,
        offers: mpsc::Sender<Offer>,
    },
    Leave {
        id: u64,
    },
}

struct Actor {
    roots: Roots,
    settings: Arc<Settings>,
    members: BTreeMap<u64, Member>,
    /// Since when each plugging is known, by node.
    seen: BTreeMap<PathBuf, (Generation, Instant)>,
    /// What is known of ports that were asked, by node.
    memory: BTreeMap<PathBuf, Memory>,
    probes: JoinSet<Result<Found, Failure>>,
    /// Who is being asked, by task.
    asked: HashMap<tokio::task::Id, Asked>,
    /// Boards that answered and whose table is not yet decided, by node.
    held: BTreeMap<PathBuf, Found>,
    /// Devices that nobody asks, for the message.
    foreign: Vec<Device>,
}

struct Member {
    spec: PortSpec,
    /// What its board speaks, where that is known beforehand.
    family: Option<Family>,
    /// The serial number of the board that it had.
    had: Option<String>,
    lost_at: Option<Instant>,
    offers: Option<mpsc::Sender<Offer>>,
}

struct Memory {
    generation: Generation,
    state: State,
}

enum State {
    /// A board that no table wanted.
    Idle(Identity),
    /// Given to this member.
    Given(u64),
    Failed {
        refusal: Refusal,
        again_at: Instant,
        pause: Duration,
    },
}

struct Asked {
    node: PathBuf,
    generation: Generation,
    /// Named by a table. What answers there need not be known.
    named: bool,
    /// The last pause, if it failed before.
    pause: Option<Duration>,
}

enum Failure {
    Open(OpenError),
    Silent,
    Unintelligible,
    Gone,
}

impl Failure {
    fn refusal(&self, path: &Path) -> Refusal {
        match self {
            Failure::Open(error) => error.into(),
            Failure::Gone => (&OpenError::NotThere { path: path.into() }).into(),
            Failure::Unintelligible => unintelligible(path),
            Failure::Silent => Refusal {
                reason: format!("nothing answers on {}", path.display()),
                advice: "Switch the board on and check its cable; jadoube keeps asking.".to_owned(),
            },
        }
    }
}

fn unintelligible(path: &Path) -> Refusal {
    Refusal {
        reason: format!(
            "what answers on {} is no board that jadoube knows",
            path.display()
        ),
        advice: format!(
            "If it is the right one, name it: port = \"{}\".",
            path.display()
        ),
    }
}

/// Opens a port and asks who is there.
async fn ask(path: &Path, settings: &Settings, may_be: &[Family]) -> Result<Found, Failure> {
    let opening = path.to_owned();
    // Looking through /proc and setting up a USB adapter both take their time.
    let mut port = spawn_blocking(move || open(&opening))
        .await
        .map_err(|_| Failure::Gone)?
        .map_err(Failure::Open)?;
    let (identity, heard) = match probe(&mut port, settings, may_be).await {
        Ok(identified) => (Some(identified.identity), identified.heard),
        Err(ProbeError::Unintelligible { heard }) => (None, heard),
        Err(ProbeError::Silent) => return Err(Failure::Silent),
        Err(ProbeError::Gone(_)) => return Err(Failure::Gone),
    };
    Ok(Found {
        port,
        path: path.to_owned(),
        identity,
        heard,
    })
}

impl Actor {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Request>) {
        let mut poll = interval(self.settings.poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                request = inbox.recv() => match request {
                    Some(request) => self.handle(request).await,
                    None => return,
                },
                _ = poll.tick() => self.look().await,
                Some(ended) = self.probes.join_next_with_id() => match ended {
                    Ok((task, outcome)) => self.answered(task, outcome),
                    Err(error) => self.answered(error.id(), Err(Failure::Gone)),
                },
            }
        }
    }

    async fn handle(&mut self, request: Request) {
        match request {
            Request::Join { id, spec, family } => {
                self.members.insert(
                    id,
                    Member {
                        spec,
                        family,
                        had: None,
                        lost_at: None,
                        offers: None,
                    },
                );
            }
            Request::Want { id, offers } => {
                self.forget_given(id);
                // What is plugged in by now was so before the loss, as far as anybody can tell.
                self.sight().await;
                if let Some(member) = self.members.get_mut(&id) {
                    member.lost_at = member.had.is_some().then(Instant::now);
                    member.offers = Some(offers);
                }
                self.look().await;
            }
            Request::Leave { id } => {
                self.forget_given(id);
                self.members.remove(&id);
            }
        }
    }

    fn forget_given(&mut self, id: u64) {
        self.memory
            .retain(|_, memory| !matches!(memory.state, State::Given(to) if to == id));
    }

    /// Looks at what is plugged in, and asks what may be of use.
    async fn look(&mut self) {
        for member in self.members.values_mut() {
            if member.offers.as_ref().is_some_and(mpsc::Sender::is_closed) {
                member.offers = None;
            }
        }
        if self.members.values().all(|member| member.offers.is_none()) {
            return;
        }
        let known = self.sight().await;
        let named: Vec<PathBuf> = self
            .members
            .values()
            .filter(|member| member.offers.is_some())
            .filter_map(|member| match &member.spec {
                PortSpec::Path(path) => Some(path.clone()),
                _ => None,
            })
            .collect();
        for path in named {
            self.consider(&path, &[], true);
        }
        if self
            .members
            .values()
            .any(|member| member.offers.is_some() && member.seeks())
        {
            let wanted: Vec<Option<Family>> = self
                .members
                .values()
                .filter(|member| member.offers.is_some() && member.seeks())
                .map(|member| member.family)
                .collect();
            let is_wanted =
                |family: &Family| wanted.contains(&None) || wanted.contains(&Some(*family));
            for device in known {
                let may_be = device.may_be(&self.settings.extra_usb_ids).iter();
                let may_be: Vec<Family> = may_be.copied().filter(is_wanted).collect();
                if !may_be.is_empty() {
                    self.consider(&device.path, &may_be, false);
                }
            }
        }
        self.conclude();
    }

    /// Lists the devices that may be boards, and forgets what is no longer so.
    async fn sight(&mut self) -> Vec<Device> {
        self.memory
            .retain(|node, memory| Generation::of(node) == Some(memory.generation));
        self.seen
            .retain(|node, (generation, _)| Generation::of(node) == Some(*generation));
        let roots = self.roots.clone();
        let devices = spawn_blocking(move || Devices::scan(&roots))
            .await
            .unwrap_or_default();
        let (known, foreign): (Vec<_>, Vec<_>) = devices
            .0
            .into_iter()
            .partition(|device| device.known(&self.settings.extra_usb_ids).is_some());
        self.foreign = foreign;
        for device in &known {
            if let Ok(node) = device.path.canonicalize()
                && let Some(generation) = Generation::of(&node)
            {
                self.seen
                    .entry(node)
                    .or_insert_with(|| (generation, Instant::now()));
            }
        }
        known
    }

    /// Asks a port unless it is in use, was asked in vain, or has nothing to offer.
    fn consider(&mut self, path: &Path, may_be: &[Family], named: bool) {
        let Ok(node) = path.canonicalize() else {
            return;
        };
        let Some(generation) = Generation::of(&node) else {
            return;
        };
        if is_claimed(&node) || self.asked.values().any(|asked| asked.node == node) {
            return;
        }
        let mut pause = None;
        if let Some(memory) = self.memory.get(&node) {
            match &memory.state {
                State::Given(_) => return,
                State::Idle(identity) if self.taker(&node, Some(identity), true).is_none() => {
                    return;
                }
                State::Idle(_) => {}
                State::Failed { again_at, .. } if *again_at > Instant::now() => return,
                State::Failed { pause: last, .. } => pause = Some(*last),
            }
        }
        let may_be = match self.family_at(&node) {
            Some(family) => vec![family],
            None if named => NAMED.to_vec(),
            None => may_be.to_vec(),
        };
        let (path, settings) = (path.to_owned(), self.settings.clone());
        let task = self
            .probes
            .spawn(async move { ask(&path, &settings, &may_be).await });
        self.asked.insert(
            task.id(),
            Asked {
                node,
                generation,
                named,
                pause,
            },
        );
    }

    fn answered(&mut self, task: tokio::task::Id, outcome: Result<Found, Failure>) {
        let Some(Asked {
            node,
            generation,
            named,
            pause,
        }) = self.asked.remove(&task)
        else {
            return;
        };
        let outcome = match outcome {
            // A stranger speaks. Only who named the port can want that.
            Ok(Found { identity: None, .. }) if !named => Err(Failure::Unintelligible),
            other => other,
        };
        match outcome {
            Ok(found) => {
                let state = match &found.identity {
                    Some(identity) => State::Idle(identity.clone()),
                    None => failed(unintelligible(&found.path), self.settings.retry_named),
                };
                self.memory
                    .insert(node.clone(), Memory { generation, state });
                self.held.insert(node, found);
            }
            Err(Failure::Gone | Failure::Open(OpenError::NotThere { .. })) => {
                self.memory.remove(&node);
            }
            Err(failure) => {
                let longest = if named {
                    self.settings.retry_named
                } else {
                    self.settings.retry_guessed
                };
                let pause = pause
                    .map_or(self.settings.retry_min, |pause| pause * 2)
                    .min(longest);
                let state = failed(failure.refusal(&self.name_of(&node)), pause);
                self.memory.insert(node, Memory { generation, state });
            }
        }
        self.conclude();
    }

    /// Hands out what is decided, and tells the others why they wait.
    fn conclude(&mut self) {
        // `auto` takes what is left, and that is known when all have answered; and then the order does not hang on who answered first.
        let all_in = self.asked.is_empty();
        let mut held: Vec<_> = std::mem::take(&mut self.held).into_iter().collect();
        held.sort_by_key(|(_, found)| natural(&found.path.to_string_lossy()));
        for (node, found) in held {
            match self.taker(&node, found.identity.as_ref(), all_in) {
                Some(id) => self.give(id, node, found),
                None if all_in => {
                    tracing::debug!(port = %found.path.display(), "no table wants what is here")
                }
                None => {
                    self.held.insert(node, found);
                }
            }
        }
        if all_in {
            for member in self.members.values() {
                if let Some(offers) = &member.offers {
                    // A table that does not listen has enough to read already.
                    let _ = offers.try_send(Offer::Waiting(self.why(member)));
                }
            }
        }
    }

    fn give(&mut self, id: u64, node: PathBuf, mut found: Found) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        let Some(offers) = member.offers.take() else {
            return;
        };
        if let PortSpec::Path(path) = &member.spec
            && path.canonicalize().is_ok_and(|named| named == node)
        {
            found.path = path.clone();
        }
        let serial = found
            .identity
            .as_ref()
            .and_then(|identity| identity.serial.clone());
        if offers.try_send(Offer::Found(Box::new(found))).is_ok() {
            member.had = serial.or(member.had.take());
            if let Some(memory) = self.memory.get_mut(&node) {
                memory.state = State::Given(id);
            }
        } else {
            // Its channel is full of old news, or it went away. It asks again, or nobody does.
            self.memory.remove(&node);
        }
    }

    /// Which waiting table gets the board at `node`; see the head of this file.
    fn taker(&self, node: &Path, identity: Option<&Identity>, all_in: bool) -> Option<u64> {
        let fits = |member: &Member| {
            let (wanted, found) = (member.family, identity.map(|identity| identity.family));
            wanted.is_none_or(|wanted| found.is_none_or(|found| found == wanted))
        };
        let waiting = || {
            self.members
                .iter()
                .filter(|(_, member)| member.offers.is_some() && fits(member))
        };
        let serial = identity.and_then(|identity| identity.serial.as_deref());
        let names_it = |member: &Member| match &member.spec {
            PortSpec::Serial(serial) => {
                identity.is_some_and(|identity| identity.answers_to(serial))
            }
            _ => false,
        };
        if self.members.values().any(names_it) {
            return waiting()
                .find(|(_, member)| names_it(member))
                .map(|(id, _)| *id);
        }
        let names_place = |member: &Member| match &member.spec {
            PortSpec::Path(path) => path.canonicalize().is_ok_and(|named| named == node),
            _ => false,
        };
        if let Some((id, _)) =
            waiting().find(|(_, member)| names_place(member) && !member.wanders())
        {
            return Some(*id);
        }
        let had_it = |member: &Member| {
            member.wanders() && serial.is_some() && member.had.as_deref() == serial
        };
        // Boards without numbers of their own all have the same: then the place decides between those that had it.
        let back = waiting()
            .filter(|(_, member)| had_it(member))
            .min_by_key(|(_, member)| !names_place(member));
        if let Some((id, _)) = back {
            return Some(*id);
        }
        if let Some((id, _)) = waiting().find(|(_, member)| names_place(member)) {
            return Some(*id);
        }
        if !all_in || identity.is_none() || self.members.values().any(names_place) {
            return None;
        }
        let newer_than = |lost| self.seen.get(node).is_some_and(|(_, since)| *since > lost);
        waiting()
            .find(|(_, member)| {
                member.spec == PortSpec::Auto
                    && member.lost_at.is_none_or(|lost| {
                        lost.elapsed() > self.settings.loyalty && newer_than(lost)
                    })
            })
            .map(|(id, _)| *id)
    }

    /// Why a table still waits.
    fn why(&self, member: &Member) -> Refusal {
        if let PortSpec::Path(path) = &member.spec {
            return self.why_at(path);
        }
        let boards = self
            .memory
            .iter()
            .filter_map(|(node, memory)| match &memory.state {
                State::Idle(identity) => Some(format!(
                    "{} on {}",
                    identity.serial.as_deref().unwrap_or("unnumbered"),
                    node.display()
                )),
                _ => None,
            });
        let boards: Vec<String> = boards.collect();
        let failures = || {
            self.memory
                .values()
                .filter_map(|memory| match &memory.state {
                    State::Failed { refusal, .. } => Some(refusal),
                    _ => None,
                })
        };
        let elsewhere = |serial: &String| {
            self.members
                .values()
                .any(|other| other.offers.is_none() && other.had.as_ref() == Some(serial))
        };
        let missing = match (&member.spec, &member.had) {
            (PortSpec::Serial(serial), _) if elsewhere(serial) => {
                format!("board {serial} is in use by another table")
            }
            (PortSpec::Serial(serial), _) | (PortSpec::Auto, Some(serial)) => {
                format!("board {serial} is not connected")
            }
            _ => "no board is connected".to_owned(),
        };
        if let Some(failure) = failures().next() {
            let all: Vec<&str> = failures().map(|refusal| refusal.reason.as_str()).collect();
            return Refusal {
                reason: format!("{missing}: {}", all.join("; ")),
                advice: failure.advice.clone(),
            };
        }
        if !boards.is_empty() {
            return Refusal {
                reason: format!("{missing}; free: {}", boards.join(", ")),
                advice: "Plug it in, or put the number of another board into the configuration."
                    .to_owned(),
            };
        }
        if let Some(device) = self.foreign.first() {
            return Refusal {
                reason: missing,
                advice: format!(
                    "Plug it in. Devices of other kinds, such as {}, are not asked: name the port if one is a board.",
                    device.summary()
                ),
            };
        }
        Refusal {
            reason: missing,
            advice: "Plug it in, switch it on and check its cable.".to_owned(),
        }
    }

    fn why_at(&self, path: &Path) -> Refusal {
        let not_there = || Refusal::from(&OpenError::NotThere { path: path.into() });
        let Ok(node) = path.canonicalize() else {
            return not_there();
        };
        if !is_device(&node) {
            return (&OpenError::NotATty { path: path.into() }).into();
        }
        match self.memory.get(&node).map(|memory| &memory.state) {
            Some(State::Failed { refusal, .. }) => refusal.clone(),
            Some(State::Idle(identity)) => Refusal {
                reason: format!(
                    "{identity} is on {}, and belongs to another table",
                    path.display()
                ),
                advice: "Plug it in where its table is, or change the configuration.".to_owned(),
            },
            Some(State::Given(_)) => (&OpenError::HeldHere { path: path.into() }).into(),
            None if is_claimed(&node) => (&OpenError::HeldHere { path: path.into() }).into(),
            None => not_there(),
        }
    }

    /// What the table that names this place says its board speaks.
    fn family_at(&self, node: &Path) -> Option<Family> {
        self.members.values().find_map(|member| match &member.spec {
            PortSpec::Path(path) if path.canonicalize().is_ok_and(|named| named == node) => {
                member.family
            }
            _ => None,
        })
    }

    /// How the tables call a node.
    fn name_of(&self, node: &Path) -> PathBuf {
        let named = self.members.values().find_map(|member| match &member.spec {
            PortSpec::Path(path) if path.canonicalize().is_ok_and(|named| named == node) => {
                Some(path.clone())
            }
            _ => None,
        });
        named.unwrap_or_else(|| node.to_owned())
    }
}

impl Member {
    /// Whether it may find its board at a port that it does not name.
    fn seeks(&self) -> bool {
        match &self.spec {
            PortSpec::Serial(_) | PortSpec::Auto => true,
            PortSpec::Path(_) => self.had.is_some() && self.wanders(),
        }
    }

    /// Whether it follows its board to another port. A table that is named by a link stays where the link points.
    fn wanders(&self) -> bool {
        match &self.spec {
            PortSpec::Path(path) => !(path.is_symlink() || path.starts_with("/dev/serial")),
            PortSpec::Serial(_) | PortSpec::Auto => true,
        }
    }
}

fn failed(refusal: Refusal, pause: Duration) -> State {
    State::Failed {
        refusal,
        again_at: Instant::now() + pause,
        pause,
    }
}
