//! Traces through the very pipeline of a live table, in virtual time: no sleeping, the same input gives the same output.

use crate::Millis;
use crate::board;
use crate::command::Command;
use crate::game::Pairing;
use crate::laws::position::Position;
use crate::publish::{AlertBody, Body, EventKind, Game, Payload, Publication, Topic};
use crate::session::output_time as seconds;
use crate::session::{Entry, Session, Settings};
use crate::trace::{Event as Line, Trace};
use crate::wire::Family;
use serde::Serialize;
use std::collections::BTreeMap;

/// After the last line virtual time runs on until no timer is left, but no longer than this.
const RUN_ON_MS: Millis = 600_000;

/// What a trace came to.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Everything published, with its virtual time.
    pub publications: Vec<(Millis, Publication)>,
    /// Every stage, where the settings ask for them.
    pub stages: Vec<String>,
    /// Commands that could not be carried out, and lines that could not be read as commands.
    pub refused: Vec<String>,
    pub skipped_bytes: u64,
    /// Bytes that came from the board, and what could be read of them.
    pub received_bytes: u64,
    pub messages: u64,
}

/// A trace asks for something that is not a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("this build cannot read boards of family {0}")]
    Family(Family),
    #[error("bad fen in the head: {0}")]
    Fen(String),
}

/// The settings that the head of a trace asks for, on top of `base`. It arms exactly one game, at time 0.
pub fn settings(trace: &Trace, mut base: Settings) -> Result<Settings, HeaderError> {
    let header = &trace.header;
    if !board::is_supported(header.board) {
        return Err(HeaderError::Family(header.board));
    }
    base.family = header.board;
    let start = Position::start(header.fen.as_deref(), header.chess960)
        .map_err(|error| HeaderError::Fen(error.to_string()))?;
    if let Some(ruleset) = header.ruleset {
        base.rules.ruleset = ruleset;
    }
    if let Some(variant) = header.variant {
        base.rules.variant = variant;
    }
    base.time_control = header.time_control.clone().or(base.time_control);
    base.rules.supervised = header.supervised.unwrap_or(base.rules.supervised);
    base.orientation = header.orientation.unwrap_or(base.orientation);
    base.white_clock_side = header.white_clock_side.unwrap_or(base.white_clock_side);
    base.arming = header.arming.or(base.arming);
    base.clock = header.clock;
    base.watch = header.silence;
    base.armed = Some(Pairing {
        start,
        time_control: header.time_control.clone(),
        ..Pairing::default()
    });
    Ok(base)
}

/// Runs a trace.
pub fn replay(trace: &Trace, settings: Settings) -> Replayed {
    let mut run = Run {
        session: Session::new(settings.clone(), 0),
        entries: Vec::new(),
        done: Replayed::default(),
        stages: settings.stages,
        source: String::new(),
    };
    run.session.handle_opened(0);
    run.drain(0);
    for line in &trace.lines {
        let at = line.at_ms;
        run.advance(at);
        match &line.event {
            Line::FromBoard(bytes) => {
                run.done.received_bytes += bytes.len() as u64;
                run.session.handle_bytes(at, bytes);
            }
            Line::ToBoard(_) => {}
            Line::Command(text) => match Command::parse(text, None) {
                Ok(mut command) => {
                    run.source = match &*command.id {
                        "" => format!("line {}", line.number),
                        id => format!("line {} (command {id})", line.number),
                    };
                    if command.id.is_empty() {
                        command.id = line.number.to_string();
                    }
                    run.session.handle_command(at, command);
                }
                Err(error) => run.refuse(format!("line {}: {error}", line.number)),
            },
            Line::Unplugged(_) => {
                run.stage(at, "link lost");
                run.session.handle_lost(at);
            }
            Line::Opened(_) => {
                run.stage(at, "link back");
                run.session.handle_opened(at);
            }
            Line::Restart => {
                run.stage(at, "restart");
                run.restart(&settings, at);
            }
        }
        run.drain(at);
    }
    let end = trace.end_ms() + RUN_ON_MS;
    run.advance(end);
    run.done.skipped_bytes = run.session.skipped_bytes();
    run.done.messages += run.session.messages();
    run.done
}

struct Run {
    session: Session,
    entries: Vec<Entry>,
    done: Replayed,
    /// Whether the stages are written down.
    stages: bool,
    /// Where the last command stands; it is answered before the next line.
    source: String,
}

impl Run {
    /// Lets every timer go off that is due until `until`.
    fn advance(&mut self, until: Millis) {
        while let Some(at) = self.session.poll_timeout().filter(|at| *at <= until) {
            self.session.handle_timeout(at);
            self.drain(at);
        }
    }

    /// What comes from the trace and not from the board.
    fn stage(&mut self, now: Millis, what: &str) {
        if self.stages {
            self.done.stages.push(format!("{} {what}", seconds(now)));
        }
    }

    fn refuse(&mut self, why: String) {
        if self.stages {
            self.done.stages.push(format!("  refused {why}"));
        }
        self.done.refused.push(why);
    }

    fn drain(&mut self, now: Millis) {
        while self.session.poll_write().is_some() {}
        while let Some(entry) = self.session.poll_entry() {
            self.entries.push(entry);
        }
        while let Some(stage) = self.session.poll_stage() {
            self.done.stages.push(stage);
        }
        while let Some(publication) = self.session.poll_publication() {
            if let Some(words) = in_words(&publication).filter(|_| self.stages) {
                self.done.stages.push(format!("    {words}"));
            }
            // What was due before the last event is told after it.
            let last = self.done.publications.last().map_or(0, |(at, _)| *at);
            let at = time_of(&publication).unwrap_or(now.max(last));
            self.done.publications.push((at, publication));
        }
        while let Some((_, reply)) = self.session.poll_reply() {
            if let Some(error) = reply.error {
                self.refuse(format!("{}: {error}", self.source));
            }
        }
    }

    /// The daemon restarts: the session is rebuilt from its record. The bytes of a frame that was under way wait at the port.
    fn restart(&mut self, settings: &Settings, now: Millis) {
        let unfinished = self.session.unfinished_frame();
        let skipped = self.session.skipped_bytes();
        let mut session = Session::restore(settings.clone(), &self.entries, now);
        session.resume(now, &unfinished, skipped);
        self.done.messages += self.session.messages();
        self.session = session;
    }
}

/// The virtual time that a payload names; a text has none of its own.
fn time_of(publication: &Publication) -> Option<Millis> {
    match &publication.body {
        Body::Payload(payload) => Some(payload.envelope().mono_ms),
        Body::Text(_) | Body::Clear => None,
    }
}

/// One line of `--json`.
#[derive(Debug, Serialize)]
pub struct JsonLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<&'a str>,
    pub t_ms: Millis,
    pub topic: String,
    pub retain: bool,
    pub payload: serde_json::Value,
}

impl<'a> JsonLine<'a> {
    pub fn new(
        trace: Option<&'a str>,
        at: Millis,
        topic: String,
        publication: &Publication,
    ) -> JsonLine<'a> {
        let payload = match &publication.body {
            Body::Payload(payload) => serde_json::to_value(payload).unwrap_or_default(),
            Body::Text(text) => serde_json::Value::from(text.as_str()),
            Body::Clear => serde_json::Value::from(""),
        };
        JsonLine {
            trace,
            t_ms: at,
            topic,
            retain: publication.topic.retain(),
            payload,
        }
    }
}

/// One line of `--summary`.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub trace: String,
    /// The last payload of the first game.
    pub game: Option<Game>,
    /// The last payload of each.
    pub games: Vec<Game>,
    pub alerts: Vec<SummaryAlert>,
    /// The plies of the first game.
    pub plies: Vec<SummaryPly>,
    /// How often each type of event came.
    pub events: BTreeMap<String, u32>,
    pub skipped_bytes: u64,
}

#[derive(Debug, Serialize)]
pub struct SummaryAlert {
    #[serde(flatten)]
    pub alert: AlertBody,
    pub raised_ms: Millis,
    pub closed_ms: Option<Millis>,
}

#[derive(Debug, Serialize)]
pub struct SummaryPly {
    pub uci: String,
    /// When it was first told as this ply.
    pub seen_ms: Millis,
    pub final_ms: Option<Millis>,
}

/// Adds up what a trace came to.
pub fn summarise(name: &str, replayed: &Replayed) -> Summary {
    let mut games: Vec<Game> = Vec::new();
    let mut alerts: Vec<SummaryAlert> = Vec::new();
    let mut events: BTreeMap<String, u32> = BTreeMap::new();
    let mut told: Vec<(String, u32, String, Millis)> = Vec::new();
    let mut completed: Vec<(String, u32, Millis)> = Vec::new();
    for (at, publication) in &replayed.publications {
        let Body::Payload(payload) = &publication.body else {
            continue;
        };
        match payload {
            Payload::Game(game) => {
                let game = Game::clone(game);
                match games.iter_mut().find(|known| known.game == game.game) {
                    Some(known) => *known = game,
                    None => games.push(game),
                }
            }
            Payload::Event(event) => {
                *events.entry(event.kind.name().to_owned()).or_default() += 1;
                let game = event.game.clone().unwrap_or_default();
                match event.kind.clone() {
                    EventKind::AlertRaised { alert } => {
                        alerts.push(SummaryAlert {
                            alert,
                            raised_ms: *at,
                            closed_ms: None,
                        });
                    }
                    EventKind::AlertChanged { alert } => {
                        if let Some(known) =
                            alerts.iter_mut().find(|known| known.alert.id == alert.id)
                        {
                            known.alert = alert;
                        }
                    }
                    EventKind::AlertClosed { alert, .. } => {
                        if let Some(known) = alerts.iter_mut().find(|known| known.alert.id == alert)
                        {
                            known.closed_ms = Some(*at);
                        }
                    }
                    EventKind::Move(told_move) => {
                        told.push((game, told_move.ply, told_move.uci, *at))
                    }
                    EventKind::Completed { ply, .. } => completed.push((game, ply, *at)),
                    EventKind::GameEnded { .. } => completed.push((game, u32::MAX, *at)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    let game = games.first().cloned();
    let plies = game.as_ref().map_or_else(Vec::new, |game| {
        game.moves
            .iter()
            .map(|ply| {
                let of = |id: &str| id == game.game || id.is_empty();
                let seen = told
                    .iter()
                    .rev()
                    .find(|(id, number, uci, _)| of(id) && *number == ply.ply && *uci == ply.uci)
                    .map_or(0, |(_, _, _, at)| *at);
                let closing = completed
                    .iter()
                    .find(|(id, number, at)| {
                        of(id) && (*number == ply.ply || *number == u32::MAX) && *at >= seen
                    })
                    .map(|(_, _, at)| *at);
                SummaryPly {
                    uci: ply.uci.clone(),
                    seen_ms: seen,
                    final_ms: closing,
                }
            })
            .collect()
    });
    Summary {
        trace: name.to_owned(),
        game,
        games,
        alerts,
        plies,
        events,
        skipped_bytes: replayed.skipped_bytes,
    }
}

/// The final PGN of each game: its archive if it was closed, else what was last told.
pub fn pgn(replayed: &Replayed) -> Vec<String> {
    let mut games: Vec<(String, String)> = Vec::new();
    let mut current: Option<String> = None;
    for (_, publication) in &replayed.publications {
        match (&publication.topic, &publication.body) {
            (_, Body::Payload(Payload::Game(game))) => current = Some(game.game.clone()),
            (Topic::Pgn { .. }, Body::Text(text)) => {
                if let Some(id) = &current {
                    keep(&mut games, id, text);
                }
            }
            (Topic::Archive { game }, Body::Text(text)) => keep(&mut games, game, text),
            _ => {}
        }
    }
    games.into_iter().map(|(_, text)| text).collect()
}

fn keep(games: &mut Vec<(String, String)>, id: &str, text: &str) {
    match games.iter_mut().find(|(known, _)| known == id) {
        Some((_, kept)) => *kept = text.to_owned(),
        None => games.push((id.to_owned(), text.to_owned())),
    }
}

/// A publication as a line of the stages; what repeats the record in full is left out.
fn in_words(publication: &Publication) -> Option<String> {
    match (&publication.topic, &publication.body) {
        (_, Body::Payload(Payload::Event(event))) => {
            let details = match &event.kind {
                EventKind::Move(ply) => format!(
                    "{} {} {:?} doubt {:?}",
                    ply.ply, ply.uci, ply.state, ply.doubt
                ),
                EventKind::Completed {
                    ply, by, clk_ms, ..
                } => {
                    format!("{ply} by {by:?} clk {}", clk_ms.map_or("-".into(), seconds))
                }
                EventKind::Correction { keep_plies, reason }
                | EventKind::Takeback { keep_plies, reason } => {
                    format!("keep {keep_plies} {reason:?}")
                }
                EventKind::AlertRaised { alert } | EventKind::AlertChanged { alert } => format!(
                    "{} {:?} {:?} {:?} {:?} {:?} [{}] {}",
                    alert.id,
                    alert.kind,
                    alert.audience,
                    alert.severity,
                    alert.state,
                    alert.detail.reason,
                    alert.squares.join(" "),
                    alert.text
                ),
                EventKind::AlertClosed { alert, kind, why } => format!("{alert} {kind:?} {why:?}"),
                EventKind::GameEnded {
                    result,
                    by,
                    state,
                    reason,
                    ..
                } => format!("{result} {by:?} {state:?} {reason:?}"),
                EventKind::Command { command, verb, .. } => format!("{command} {verb}"),
                EventKind::OutOfSync { squares } => squares.join(" "),
                EventKind::Press { side, .. } | EventKind::Flag { side } => format!("{side:?}"),
                EventKind::Gap {
                    ply,
                    plies,
                    alternatives,
                } => format!("{ply} {plies} [{}]", alternatives.join(" | ")),
                _ => String::new(),
            };
            Some(
                format!(
                    "event {} {} {details}",
                    event.envelope.seq,
                    event.kind.name()
                )
                .trim_end()
                .to_owned(),
            )
        }
        (_, Body::Payload(Payload::Position(position))) => Some(format!(
            "position {} in_sync {}",
            position.placement, position.in_sync
        )),
        (Topic::AlertLine, Body::Text(text)) => Some(format!("alertline {text}")),
        (Topic::Archive { game }, _) => Some(format!("archive {game}")),
        _ => None,
    }
}
