//! One table of a node: its session, the link to its board, and what becomes of what the session says.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::{debug, error, info, warn};

use super::outlets::Outlets;
use super::random_id;
use crate::Millis;
use crate::command::{Arm, Command, Player, Verb};
use crate::config;
use crate::daemon::backoff::Backoff;
use crate::daemon::desk::Held;
use crate::daemon::files::{Start, Tracing};
use crate::daemon::serial::{LinkEvent, LinkHandle};
use crate::game::{Arming, PairingError};
use crate::publish::topic::Address;
use crate::publish::{
    self, ActUntil, AlertDetail, AlertKind, AlertState, Audience, BoardInfo, Body, EventKind,
    MoveState, Payload, Phase, Publication, Severity, Topic,
};
use crate::session::{self, Session, Watch};
use crate::text::{one_line, shortened};
use crate::trace::{self, Header};

/// One table, with what only it has.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) session: Session,
    link: LinkHandle,
    pub(super) inbox: Option<mpsc::Receiver<LinkEvent>>,
    /// The time that the session was told last: it never runs backwards there.
    told: Millis,
    /// The board on the port that is open now.
    pub(super) board: Option<BoardInfo>,
    opened: Option<Millis>,
    /// Whether this silence was answered by opening the port anew.
    reopened: bool,
    reopen_after: Millis,
    reopening: Backoff,
    tracing: Option<Tracing>,
    /// Open alerts that the log has as warnings.
    warned: BTreeSet<String>,
    pub(super) delay_ms: Millis,
    /// PGN that is held back, in order.
    pub(super) delayed: VecDeque<(Millis, Publication)>,
    pub(super) keeping: Keeping,
    /// What the node itself has told the operator of this table: the alerts that are open, by id.
    told_operator: BTreeSet<&'static str>,
}

/// Whether the record that an earlier run has left with the broker is in danger. As long as nothing is stored here, it is the
/// only one there is, and an empty game that is armed at the start must not take its place.
pub(super) enum Keeping {
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
    pub(super) fn new(
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

    pub(super) fn due(&self) -> Option<Millis> {
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
    pub(super) fn handle_link(&mut self, event: Option<LinkEvent>, out: &mut Outlets) -> bool {
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

    pub(super) fn handle_wall(&mut self, out: &mut Outlets) {
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
    pub(super) fn handle_command(&mut self, command: Command, out: &mut Outlets) -> Option<String> {
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
    pub(super) fn handle_pairing(
        &mut self,
        arm: Box<Arm>,
        refusal: Option<PairingError>,
        out: &mut Outlets,
    ) {
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

    pub(super) fn refuse_pairing(&mut self, why: &str, out: &mut Outlets) {
        out.tell_refusal(&format!("table {}: {why}", self.name));
        let text = format!("{} · pairing refused · {why}", self.name);
        let kind = AlertKind::PairingRefused;
        self.raise(PAIRING, kind, text, out);
    }

    /// What the broker had kept of this table when we came.
    pub(super) fn handle_record(&mut self, game: publish::Game, out: &mut Outlets) {
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

    pub(super) fn lower(&mut self, id: &'static str, out: &mut Outlets) {
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
    pub(super) fn handle_due(&mut self, out: &mut Outlets) -> bool {
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
    pub(super) fn drain(&mut self, out: &mut Outlets) -> Option<String> {
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

    pub(super) fn publish(&mut self, publication: Publication, out: &mut Outlets) {
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
                let game = event.game.as_ref().and_then(|id| self.session.game(id));
                let start = game.map(|game| &game.line.start);
                let number = start.map_or("?".into(), |start| start.number_of(played.ply));
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

/// Whether a game is the one that this pairing names.
fn is_pairing_of(arm: &Arm, game: &publish::Game) -> bool {
    let name = |player: Option<&Player>| player.and_then(|player| player.name.clone());
    arm.game.as_ref().is_none_or(|id| *id == game.game)
        && arm.round == game.round
        && arm.board == game.board
        && name(arm.white.as_ref()) == name(Some(&game.white))
        && name(arm.black.as_ref()) == name(Some(&game.black))
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

/// Between two openings of a port whose board stays silent.
const REOPEN_FIRST: Duration = Duration::from_secs(10);
const REOPEN_MOST: Duration = Duration::from_secs(60);
/// A board that was heard for so long after an opening was not silent for want of one.
const HEARD_WELL_MS: Millis = 30_000;
/// Link events that are taken before a table's timers, at most.
const MOST_AT_ONCE: usize = 64;

/// The node's own alerts of a table.
const RECORD: &str = "record";
pub(super) const PAIRING: &str = "pairing";
