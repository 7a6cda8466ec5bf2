//! What a table tells: events, snapshots, alerts, and the stages for whoever looks inside.

use super::alerts::{Notice, Place, Source, matter, names};
use super::{Table, Watch};
use crate::Millis;
use crate::board::{Contents, Reading};
use crate::game::pgn::{self, PgnTags, Scope};
use crate::game::snapshot::{self, Snapshot};
use crate::game::{self, Change, Game, Pairing, ResultState};
use crate::laws::Side;
use crate::publish::{
    self, Alert, AlertBody, AlertKind, Audience, BoardStatus, Body, ClockSource, CloseReason,
    Envelope, Event, EventKind, Flag, Law, Link, Missing, Payload, Phase, Publication, Ready,
    Running, Severity, Topic,
};
use crate::sensing::Observation;
use shakmaty::{Color, Square};

impl Table {
    /// Wall time as RFC 3339, in UTC.
    pub(super) fn wall_time(&self, at: Millis) -> String {
        publish::rfc3339(self.wall.unix_ms(at))
    }

    fn envelope(&self) -> Envelope {
        Envelope {
            v: publish::VERSION,
            stream: self.settings.stream.clone(),
            seq: self.seq,
            boot: self.settings.boot.clone(),
            at: self.wall_time(self.now),
            mono_ms: self.now,
            time_ok: self.wall.time_ok,
        }
    }

    fn table_name(&self) -> String {
        self.settings.table.clone()
    }

    fn publish(&mut self, topic: Topic, body: impl Into<Body>) {
        let body = body.into();
        self.publications.push_back(Publication { topic, body });
    }

    /// Publishes a state, unless that is what was told last. The envelope makes no news.
    fn publish_state<S: Clone + PartialEq>(
        &mut self,
        topic: Topic,
        state: S,
        told: fn(&mut Table) -> &mut Option<S>,
        stamped: fn(Envelope, S) -> Payload,
    ) {
        if told(self).as_ref() == Some(&state) {
            return;
        }
        let payload = stamped(self.envelope(), state.clone());
        *told(self) = Some(state);
        self.publish(topic, payload);
    }

    /// Something happened. Play that nobody armed is not told.
    pub(super) fn event(&mut self, kind: EventKind) {
        let game = self.game.as_ref().filter(|game| game.armed);
        let about_play = !matches!(
            kind,
            EventKind::AlertRaised { .. }
                | EventKind::AlertChanged { .. }
                | EventKind::AlertClosed { .. }
                | EventKind::Command { .. }
        );
        if about_play && self.game.as_ref().is_some_and(|game| !game.armed) {
            return;
        }
        // The rev of the record which will contain it: the one to come where there is something new, else the one told last.
        let news = u64::from(about_play || self.game_changed);
        let (id, rev) = (
            game.map(|game| game.id.clone()),
            game.map_or(0, |game| game.rev + news),
        );
        self.seq += 1;
        let event = Event {
            envelope: self.envelope(),
            id: format!("{}-{}", self.settings.stream, self.seq),
            table: self.table_name(),
            game: id,
            rev,
            kind,
        };
        self.publish(
            Topic::Event {
                table: self.table_name(),
            },
            Payload::Event(Box::new(event)),
        );
        if about_play {
            self.changed();
        }
    }

    /// What became of the game.
    pub(super) fn game_event(&mut self, event: game::Event) {
        self.event(match event {
            game::Event::Started => EventKind::GameStarted {
                start_fen: self.line().start.fen(),
            },
            game::Event::Move(told) => EventKind::Move(told),
            game::Event::Completed {
                ply,
                by,
                clk_ms,
                emt_ms,
            } => EventKind::Completed {
                ply: ply as u32,
                by,
                clk_ms,
                emt_ms,
            },
            game::Event::Correction { keep, reason } => EventKind::Correction {
                keep_plies: keep as u32,
                reason,
            },
            game::Event::Takeback { keep, reason } => EventKind::Takeback {
                keep_plies: keep as u32,
                reason,
            },
            game::Event::Gap {
                ply,
                plies,
                alternatives,
            } => EventKind::Gap {
                ply: ply as u32,
                plies: plies as u32,
                alternatives,
            },
            game::Event::Press { side, shown } => EventKind::Press {
                side: side.into(),
                white_ms: shown.white,
                black_ms: shown.black,
            },
            game::Event::Flag { side } => EventKind::Flag { side: side.into() },
            game::Event::ResultProposed { result, by } => EventKind::ResultProposed {
                result: result.to_string(),
                by,
            },
            game::Event::Ended(verdict) => EventKind::GameEnded {
                result: verdict.result.to_string(),
                by: verdict.by,
                state: verdict.state.unwrap_or(ResultState::Set),
                termination: verdict.termination,
                reason: verdict.reason.map(|reason| reason.to_string()),
            },
        });
    }

    /// What has changed since the last publication goes out: after the events, the record and its PGN.
    pub(super) fn publish_changes(&mut self) {
        self.publish_record();
        self.publish_status();
    }

    /// The record as it is now, if it has changed: one step of `rev` for all that came of one cause.
    pub(super) fn publish_record(&mut self) {
        if std::mem::take(&mut self.game_changed) {
            if let Some(game) = &mut self.game {
                game.rev += 1;
            }
            self.publish_game();
            // What stood on the board already may agree with the record only now.
            if self.is_at_rest() && self.told_position.is_some() {
                self.publish_position();
            }
        }
    }

    fn is_at_rest(&self) -> bool {
        self.now >= self.sensing.last_change() + self.settings.timing.settle
    }

    fn publish_game(&mut self) {
        if let Some(game) = self.game.as_ref().filter(|game| game.armed) {
            let (record, pgn) = (self.record_of(game), self.pgn_of(game, Scope::Live));
            self.publish_told(record, pgn);
        }
    }

    /// The game before the one that is open, if it is of this id and still the last one that was told.
    pub(super) fn publish_finished(&mut self, id: &str) {
        let is_told = |game: &&Game| game.armed && game.is_of(id);
        if self.game.as_ref().is_some_and(|game| !game.armed)
            && let Some(game) = self.openings.last_finished().filter(is_told)
        {
            let (record, pgn) = (self.record_of(game), self.pgn_of(game, Scope::Live));
            self.publish_told(record, pgn);
        }
    }

    fn publish_told(&mut self, record: Snapshot, pgn: String) {
        let payload = publish::Game {
            envelope: self.envelope(),
            record,
        };
        let table = self.table_name();
        self.publish(Topic::Game { table }, Payload::Game(Box::new(payload)));
        let table = self.table_name();
        self.publish(Topic::Pgn { table }, Body::Text(pgn));
    }

    /// The game of this id, be it a former one whose record is still here.
    pub(super) fn game_of(&self, id: &str) -> Option<&Game> {
        let current = self.game.as_ref().filter(|game| game.is_of(id));
        current.or_else(|| self.openings.finished(id))
    }

    /// The game of this id, which is over, as it is kept.
    pub(super) fn publish_archive(&mut self, id: &str) {
        let Some(game) = self.game_of(id).filter(|game| game.armed) else {
            return;
        };
        let pgn = self.pgn_of(game, Scope::Archive);
        let game = game.id.clone();
        self.publish(Topic::Archive { game }, Body::Text(pgn));
    }

    pub(super) fn unfinished(&self) -> Option<(String, String)> {
        let is_begun = |game: &&Game| !game.line.is_empty() || !game.earlier.is_empty();
        let game = self.open_game().filter(is_begun)?;
        Some((game.id.clone(), self.pgn_of(game, Scope::Archive)))
    }

    /// A record as PGN, behind what was played before it went on from another position.
    fn pgn_of(&self, game: &Game, scope: Scope) -> String {
        let tags = self.pgn_tags(&game.pairing);
        let record = self.record_of(game);
        // Who plays may have been put right since.
        let named = |played: &Snapshot| Snapshot {
            white: record.white.clone(),
            black: record.black.clone(),
            round: record.round.clone(),
            board: record.board.clone(),
            ..played.clone()
        };
        let mut games: Vec<String> = (game.earlier.iter())
            .map(|played| pgn::write(&named(played), &tags, scope))
            .collect();
        games.push(pgn::write(&record, &tags, scope));
        games.join("\n")
    }

    fn pgn_tags(&self, pairing: &Pairing) -> PgnTags {
        PgnTags {
            event: pairing.event.clone(),
            site: pairing.site.clone(),
            // A date that nobody is sure of is none.
            date: (pairing.date.clone())
                .or_else(|| (!self.wall.time_ok).then(|| "????.??.??".to_owned())),
            now: self.wall.time_ok.then(|| self.wall_time(self.now)),
        }
    }

    /// A record as it stands.
    pub(super) fn record_of(&self, game: &Game) -> Snapshot {
        let tip = game.line.tip();
        Snapshot {
            game: game.id.clone(),
            rev: game.rev,
            table: self.table_name(),
            phase: game.phase(),
            ruleset: game.terms.rules.ruleset.to_string(),
            variant: game.terms.rules.variant.to_string(),
            supervised: game.terms.rules.supervised,
            start_fen: game.line.start.fen(),
            chess960: game.line.start.castling_mode().is_chess960(),
            fen: tip.fen(),
            turn: Side::from(tip.turn()),
            moves: (0..game.line.len())
                .map(|index| snapshot::Move::of(&game.line, index))
                .collect(),
            round: game.pairing.round.clone(),
            board: game.pairing.board.clone(),
            white: game.pairing.white.clone().unwrap_or_default(),
            black: game.pairing.black.clone().unwrap_or_default(),
            time_control: game.terms.time_control.as_ref().map(ToString::to_string),
            started_at: game.started_at.map(|at| self.wall_time(at)),
            last_move_at: game.last_move_at.map(|at| self.wall_time(at)),
            ended_at: game.ended_at.map(|at| self.wall_time(at)),
            white_clock_ms: game.clocks.shown.white,
            black_clock_ms: game.clocks.shown.black,
            result: game.verdict.result.to_string(),
            result_by: game.verdict.by,
            result_state: game.verdict.state,
            termination: game.verdict.termination.clone(),
            reason: game.verdict.reason.as_ref().map(ToString::to_string),
            // What is done after the end concerns it no more.
            in_sync: game.is_over() || self.sensing.is_in_sync(),
        }
    }

    pub(super) fn publish_position(&mut self) {
        let live = !self.game.as_ref().is_some_and(game::Game::is_over);
        if !live && self.told_position.as_ref().is_some_and(|told| !told.live) {
            return;
        }
        // A square that is not believed is told as it shows, and stops nobody; that another man stands there than should is believed.
        let picture = self.sensing.shown();
        let differing = match &self.game {
            Some(game) if !game.is_over() => picture.differing(game.line.tip().board()),
            _ => shakmaty::Bitboard::EMPTY,
        };
        let believed = differing & (!self.sensing.unread_squares() | self.squares_astray());
        let placement = match &self.game {
            // The position of the end, whatever is done with the men afterwards.
            Some(game) if game.is_over() => game.line.tip().placement(),
            _ => picture.placement(),
        };
        let state = publish::PositionState {
            table: self.table_name(),
            placement,
            stable: self.is_at_rest() && !self.is_restless(),
            in_sync: self.sensing.is_in_sync() && believed.is_empty(),
            differing: names(differing),
            live,
        };
        self.publish_state(
            Topic::Position {
                table: self.table_name(),
            },
            state,
            |table| &mut table.told_position,
            |envelope, state| Payload::Position(publish::Position { envelope, state }),
        );
    }

    pub(super) fn publish_clock(&mut self) {
        let (shown, flags) = (self.clock_times(), self.flags());
        let running = match (self.clock.is_running(), self.clock.to_move()) {
            (true, Some(wing)) => match self.side(wing) {
                Color::White => Running::White,
                Color::Black => Running::Black,
            },
            _ => Running::None,
        };
        let has_commands =
            self.game.as_ref().is_some_and(|game| game.clocks.used) && !self.clock.is_attached();
        let state = publish::ClockState {
            table: self.table_name(),
            white_ms: shown.white,
            black_ms: shown.black,
            running,
            flag: match (flags.white, flags.black) {
                (true, true) => Flag::Both,
                (true, false) => Flag::White,
                (false, true) => Flag::Black,
                (false, false) => Flag::None,
            },
            source: if self.clock.is_attached() {
                self.abilities.clock
            } else if has_commands {
                ClockSource::External
            } else {
                ClockSource::None
            },
            stale: self.link != Link::Ok && self.settings.watch == Watch::Judge,
        };
        self.publish_state(
            Topic::Clock {
                table: self.table_name(),
            },
            state,
            |table| &mut table.told_clock,
            |envelope, state| Payload::Clock(publish::Clock { envelope, state }),
        );
    }

    fn publish_status(&mut self) {
        let mut state = self.status();
        if let Some(told) = &self.told_status {
            let counted = std::mem::replace(&mut state.skipped_bytes, told.skipped_bytes);
            // A count that rises is no news of its own.
            if state == *told {
                return;
            }
            state.skipped_bytes = counted;
        }
        self.publish_state(
            Topic::BoardStatus {
                table: self.table_name(),
            },
            state,
            |table| &mut table.told_status,
            |envelope, state| Payload::BoardStatus(Box::new(BoardStatus { envelope, state })),
        );
    }

    /// The count of unreadable bytes, each time that it has doubled. In a trace it is told at the end.
    pub(super) fn publish_skipped(&mut self) {
        let told = self.told_status.as_ref();
        let told = told.map_or(0, |status| status.skipped_bytes);
        if self.settings.watch == Watch::Judge
            && self.skipped_bytes.checked_ilog2() > told.checked_ilog2()
        {
            self.told_status = None;
            self.publish_status();
        }
    }

    fn status(&self) -> publish::BoardStatusState {
        publish::BoardStatusState {
            table: self.table_name(),
            status: self.link,
            serial: self.names.serial().map(str::to_owned),
            firmware: self.firmware.clone(),
            orientation: self.orientation,
            battery: self.battery,
            ready: self.ready(),
            skipped_bytes: self.skipped_bytes,
        }
    }

    /// Whether a game can begin. While one is played nothing is lacking but the board.
    fn ready(&self) -> Ready {
        let mut missing = Vec::new();
        let mut squares = Vec::new();
        if self.link != Link::Ok || self.is_restless() {
            missing.push(Missing::Board);
        }
        let phase = self.game.as_ref().map(|game| game.phase());
        if let (Some(game), Some(Phase::Setup)) = (&self.game, phase) {
            missing.push(Missing::StartArray);
            let differing = self.sensing.picture().differing(game.line.start.board());
            if self.raw.is_complete() && differing.count() <= 8 {
                squares = names(differing);
            }
        }
        if self.orientation.is_none() && matches!(phase, None | Some(Phase::Setup)) {
            missing.push(Missing::Orientation);
        }
        if self.game.as_ref().is_none_or(|game| !game.armed) {
            missing.push(Missing::Armed);
        }
        Ready {
            ok: missing.is_empty(),
            missing,
            squares,
        }
    }

    pub(super) fn tell_touches(&mut self, changes: &[(Square, Contents)]) {
        if self.game.as_ref().is_none_or(|game| !game.is_followed()) {
            return;
        }
        for (square, contents) in changes {
            let before = self.sensing.picture().at(*square);
            let letter =
                |contents: Option<Contents>| contents.and_then(Contents::letter).map(String::from);
            let square = square.to_string();
            let kind = if contents.is_empty() {
                EventKind::Lift {
                    square,
                    piece: letter(before),
                }
            } else {
                EventKind::Place {
                    square,
                    piece: letter(Some(*contents)),
                }
            };
            self.event(kind);
        }
    }

    /// Everything retained, as it stands.
    pub(super) fn snapshot(&mut self) -> Vec<Publication> {
        let kept = std::mem::take(&mut self.publications);
        self.told_position = None;
        self.told_clock = None;
        self.told_status = None;
        self.publish_game();
        self.publish_position();
        self.publish_clock();
        self.publish_status();
        let open: Vec<AlertBody> = self.alerts.iter().map(|(_, body)| body.clone()).collect();
        for body in open {
            self.publish_alert(&body);
        }
        std::mem::replace(&mut self.publications, kept).into()
    }

    /// What was published while entries were folded that were published before.
    pub(super) fn forget_output(&mut self) {
        self.publications.clear();
        self.replies.clear();
        self.stages.clear();
        self.ask_dump = false;
    }

    // --- alerts ---

    pub(super) fn is_open(&self, source: Source) -> bool {
        self.alerts.of(source).is_some()
    }

    /// Raises an alert, or changes the one that this source has.
    pub(super) fn raise(&mut self, source: Source, notice: Notice) {
        let known = self.alerts.of(source).cloned();
        let id = match &known {
            Some(known) => known.id.clone(),
            None => self.alerts.next_id(),
        };
        let game = self.game.as_ref().map(|game| game.id.clone());
        // What outlasts its game is told anew in the words of this one.
        let told_here = known.as_ref().filter(|known| known.game == game);
        let ply = match (told_here, notice.ply) {
            (Some(known), None) => known.ply as usize,
            (_, Some(ply)) => ply,
            (None, None) => self.line().len() + 1,
        };
        let place = Place {
            table: self.table_name(),
            game,
            ply: ply as u32,
            move_number: self
                .line()
                .position(ply.saturating_sub(1))
                .setup()
                .fullmoves
                .get(),
            since: known
                .as_ref()
                .map_or_else(|| self.wall_time(self.now), |known| known.since.clone()),
            law: self.law(notice.kind),
        };
        let mut body = notice.into_body(id.clone(), place);
        if let Some(old) = &known {
            body.ack = old.ack.clone();
            if body == *old {
                return;
            }
            if old.audience != body.audience {
                let topic = Topic::Alert {
                    table: self.table_name(),
                    audience: old.audience,
                    id: id.clone(),
                };
                self.publish(topic, Body::Clear);
            }
        }
        self.alerts.set(source, body.clone());
        self.event(match known {
            Some(_) => EventKind::AlertChanged {
                alert: body.clone(),
            },
            None => EventKind::AlertRaised {
                alert: body.clone(),
            },
        });
        self.publish_alert(&body);
        let louder =
            known.is_none_or(|old| old.severity < body.severity || old.audience != body.audience);
        if louder && body.audience == Audience::Arbiter && body.severity >= Severity::Warn {
            self.publish(Topic::AlertLine, Body::Text(body.text));
        }
    }

    fn law(&self, kind: AlertKind) -> Option<Law> {
        let rules = self
            .game
            .as_ref()
            .map_or(self.settings.rules, |game| game.terms.rules);
        let article = rules.article(matter(kind)?)?;
        Some(Law {
            ruleset: rules.ruleset.to_string(),
            article: article.to_owned(),
        })
    }

    pub(super) fn publish_alert(&mut self, body: &publish::AlertBody) {
        let topic = Topic::Alert {
            table: self.table_name(),
            audience: body.audience,
            id: body.id.clone(),
        };
        let alert = Alert {
            envelope: self.envelope(),
            alert: body.clone(),
        };
        self.publish(topic, Payload::Alert(Box::new(alert)));
    }

    pub(super) fn close_alert(&mut self, source: Source, why: CloseReason) {
        self.close_alerts(|of, _| *of == source, why);
    }

    pub(super) fn close_alerts(
        &mut self,
        which: impl Fn(&Source, &AlertBody) -> bool,
        why: CloseReason,
    ) {
        let sources: Vec<Source> = self
            .alerts
            .iter()
            .filter(|(source, body)| which(source, body))
            .map(|(source, _)| source)
            .collect();
        for source in sources {
            let Some(body) = self.alerts.close(source) else {
                continue;
            };
            self.event(EventKind::AlertClosed {
                alert: body.id.clone(),
                kind: body.kind,
                why,
            });
            let topic = Topic::Alert {
                table: self.table_name(),
                audience: body.audience,
                id: body.id,
            };
            self.publish(topic, Body::Clear);
        }
    }

    // --- stages ---

    pub(super) fn stage(&mut self, line: impl FnOnce() -> String) {
        if self.settings.stages {
            self.stages.push_back(line());
        }
    }

    pub(super) fn stage_input(&mut self, now: Millis, reading: &Reading) {
        if !self.settings.stages {
            return;
        }
        let mut words = read(reading);
        if let Reading::Scan {
            squares,
            gapless: true,
        } = reading
        {
            for (square, contents) in squares.iter() {
                if self.raw.at(*square) != Some(*contents) {
                    words.push_str(&format!(" {square} {contents}"));
                }
            }
        }
        self.stage(|| format!("{} {words}", seconds(now)));
    }
}

/// A time of the stages: as in a trace.
pub fn seconds(ms: Millis) -> String {
    crate::trace::Seconds(ms).to_string()
}

/// A frame in words.
fn read(reading: &Reading) -> String {
    match reading {
        Reading::Square { square, contents } => format!("square {square} {contents}"),
        // What differs is told beside it.
        Reading::Scan { gapless: true, .. } => "scan".into(),
        Reading::Scan { squares, .. } => {
            let mut picture = crate::board::Picture::default();
            for (square, contents) in squares.iter() {
                picture.set(*square, *contents);
            }
            format!("dump {}", picture.placement())
        }
        Reading::Clock(crate::clock::Reading::Absent) => "clock absent".into(),
        Reading::Clock(crate::clock::Reading::Times {
            left,
            right,
            running,
            to_move,
        }) => {
            let flag = |display: &crate::clock::Display| if display.flag { " flag" } else { "" };
            let state = if *running { "runs" } else { "stands" };
            format!(
                "clock left {}{} right {}{} {state} {to_move:?}",
                seconds(left.ms),
                flag(left),
                seconds(right.ms),
                flag(right)
            )
        }
        Reading::Serial { number, .. } => format!("serial {number}"),
        Reading::Firmware(version) => format!("firmware {version}"),
        Reading::Battery(percent) => format!("battery {percent}"),
        Reading::Missed => "changes after others that were lost".into(),
        Reading::Fault(what) => format!("fault {what}"),
        Reading::Other(what) => format!("other {what}"),
        Reading::Skipped { bytes, reason, .. } => format!("skipped {bytes}: {reason}"),
    }
}

/// An observation in words.
pub(super) fn observed(observation: &Observation) -> String {
    match observation {
        Observation::Moved(Change {
            keep,
            moves,
            why,
            readings,
        }) => {
            let words: Vec<String> = moves
                .iter()
                .map(|seen| shakmaty::uci::UciMove::from_standard(seen.mv).to_string())
                .collect();
            let more = match readings {
                Some(readings) if readings.lines.is_empty() => " beyond doubt".to_owned(),
                Some(readings) => format!(" or {} others", readings.lines.len() - 1),
                None => String::new(),
            };
            format!("moved keep {keep} [{}]{more} ({why:?})", words.join(" "))
        }
        Observation::Completed { side, by } => format!("completed {side} by {by:?}"),
        Observation::PressWithoutMove { side } => format!("press without move {side}"),
        Observation::PromotionSeen { ply } => format!("promotion of ply {ply} seen"),
        Observation::WrongSidePressed { side } => format!("wrong side pressed {side}"),
        Observation::Fault(fault) => {
            format!(
                "fault {} {:?} {:?} {}",
                fault.id,
                fault.kind,
                fault.level,
                names(fault.squares).join(" ")
            )
        }
        Observation::FaultClosed { id, why } => format!("fault {id} closed {why:?}"),
        Observation::Sync { in_sync } => format!("in_sync {in_sync}"),
        Observation::Stable => "stable".into(),
        Observation::AskDump => "ask for a dump".into(),
        Observation::ResultSign {
            result,
            may_be_play,
            ..
        } => {
            let or = if *may_be_play { " or play" } else { "" };
            format!("result sign {result}{or}")
        }
    }
}
