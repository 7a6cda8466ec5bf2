//! The games of this table: opened, told, and ended.

use super::alerts::{Notice, Source};
use super::array::Array;
use super::fold::NO_LINE;
use super::output;
use super::{Table, Watch};
use crate::Millis;
use crate::board::OrientationSetting;
use crate::game::{Change, CompletedBy, Game, Line, Reason, ResultBy, ResultState, Sign, Verdict};
use crate::laws::result::GameResult;
use crate::publish::{AlertKind, Audience, CloseReason, Severity};
use crate::sensing::Observation;

/// What a table waits for between moves and between games.
#[derive(Debug, Clone, Copy)]
enum Timer {
    /// The start array has stood long enough to open a new game.
    Array,
    /// A set-up that is not the start position has stood long enough to be told.
    Setup,
    /// A clock that has run in this game has stood for long.
    ClockStopped,
    /// A move at a table without a clock has stood long enough to be completed.
    Quiet,
    /// A restless square has shown the same for long.
    Calm,
    /// The board has not stood still for long.
    Unrest,
}

impl Table {
    /// The record of the game, be it over or not.
    pub(super) fn line(&self) -> &Line {
        self.game.as_ref().map_or(&NO_LINE, |game| &game.line)
    }

    /// The game that is not over.
    pub(super) fn open_game(&self) -> Option<&Game> {
        self.game.as_ref().filter(|game| !game.is_over())
    }

    pub(super) fn changed(&mut self) {
        self.game_changed = true;
    }

    /// Tells what became of the game.
    pub(super) fn tell_game(&mut self) {
        while let Some(event) = self.game.as_mut().and_then(Game::poll_event) {
            self.game_event(event);
        }
        if self.game.as_mut().is_some_and(Game::take_changed) {
            self.changed();
        }
    }

    /// Opens the game that is armed, or one as configured.
    pub(super) fn begin_game(&mut self) {
        let before = self.game.as_ref().map(|game| game.id.clone());
        self.close_alerts(
            // That the game before has no result is for the operator to see while the next one is played.
            |source, body| {
                let is_last_result = *source == Source::ResultMissing && body.game == before;
                !source.is_of_the_table() && !is_last_result
            },
            CloseReason::Ended,
        );
        self.keep_board(before.as_deref());
        if let Some(game) = self.game.take_if(|game| game.is_over()) {
            self.openings.finish(game);
        }
        let (table, stream) = (&self.settings.table, &self.settings.stream);
        self.game = Some(self.openings.open(table, stream));
        self.played_on = None;
        self.array = Array::default();
        self.setup_judged = false;
        if self.orientation_setting == OrientationSetting::Auto {
            self.find_orientation();
        }
        let orientation = self.stands();
        self.sense_from(self.believed().oriented(orientation));
        self.tell_game();
        self.show_clock_times();
        self.find_ready();
    }

    /// Closes what was not ended, unchanged, and opens the next game.
    pub(super) fn begin_anew(&mut self) {
        if let Some(game) = self.game.as_mut().filter(|game| !game.is_over()) {
            self.openings.leave(game);
        }
        let shown = self
            .open_game()
            .and_then(Game::likely_sign)
            .filter(|_| self.settings.kings == super::ResultByKings::Accept);
        if let Some(shown) = shown {
            // Nobody sets up the next game with the last one's kings in his hand.
            self.tell_last_capture();
            if let Some(game) = &mut self.game {
                game.remove_king_steps();
            }
            self.end_game(shown);
        }
        let unfinished = self
            .open_game()
            .filter(|game| !game.line.is_empty())
            .map(|game| game.id.clone());
        if let Some(old) = unfinished {
            let left = Verdict::set(GameResult::Unknown, None).reason(Reason::LeftUnfinished);
            self.end_game(left);
            // That of a game before.
            self.close_alert(Source::ResultMissing, CloseReason::Ended);
            let notice = Notice::new(
                AlertKind::ResultMissing,
                Audience::Operator,
                Severity::Info,
                format!("game {old} was left without a result."),
            );
            self.raise(Source::ResultMissing, notice);
        }
        self.begin_game();
    }

    /// The record reads otherwise.
    pub(super) fn change_record(&mut self, change: Change) {
        let (now, attached) = (self.now, self.clock.is_attached());
        let Some(game) = &mut self.game else { return };
        if !game.can_take(&change) {
            // What the board shows beside the record is told as soon as it is looked at again.
            tracing::error!(table = %self.settings.table, keep = change.keep, "this cannot follow the record, which stays as it is");
            self.follow_record(false);
            return;
        }
        let plies = game.line.len();
        let goes_on = !change.moves.is_empty();
        let orders = game.take(now, change, attached);
        if game.line.len() > plies {
            self.openings.go_on(game);
        }
        self.tell_game();
        match orders {
            Some(doubt) if doubt.orders == 0 => {
                self.close_alert(Source::Doubt, CloseReason::Restored);
            }
            Some(doubt) if doubt.plies > 2 => {
                let says = format!(
                    "{} plies were not seen singly; {} orders fit. Compare the score sheets.",
                    doubt.plies, doubt.orders
                );
                self.tell_doubt(Severity::Warn, says);
            }
            // The next moves will tell.
            Some(doubt) if !self.is_open(Source::Doubt) => {
                let which = match goes_on {
                    true => "the last move",
                    false => "a move of the record",
                };
                let says = format!("{which} may be one of {}.", doubt.orders);
                self.tell_doubt(Severity::Info, says);
            }
            Some(_) => {}
            // What nobody had seen singly was taken back, or has been read anew.
            None => self.close_doubt(),
        }
        self.end_by_the_board();
        if self.gives_way() {
            self.begin_game();
        }
    }

    /// Mate and stalemate end the game, whatever way the record came to them.
    pub(super) fn end_by_the_board(&mut self) {
        match self.game.as_ref().and_then(Game::ended_by_the_board) {
            Some(verdict) if verdict.state == Some(ResultState::Set) => {
                self.watch_on(true);
                self.end_game(verdict);
            }
            proposed => {
                if let Some(game) = &mut self.game {
                    game.propose_ending(proposed);
                }
                self.tell_game();
            }
        }
    }

    /// The game is about to end by something else than a move: what is still to be told of its last plies, as a capture of which the
    /// board shows no more than that the man has gone, is told now, or never.
    pub(super) fn tell_last_capture(&mut self) {
        let now = self.now;
        let (sensing, cx) = self.sensing();
        sensing.handle_end(now, &cx);
        self.take_observations();
    }

    /// What sensing has to say is taken into the record before anything else is done.
    pub(super) fn take_observations(&mut self) {
        while let Some(observation) = self.sensing.poll_observation() {
            self.stage(|| format!("  {}", output::observed(&observation)));
            self.observe(observation);
        }
    }

    /// Whether the game that is open has no moves any more, so that the one that is armed need not wait for it: players moved for fun
    /// while the pairing came (case J2). A game that is armed gives way only before its clock runs.
    fn gives_way(&self) -> bool {
        let is_empty = |game: &Game| game.line.is_empty() && !(game.armed && game.clocks.used);
        self.openings.is_armed() && self.open_game().is_some_and(is_empty)
    }

    /// What may have been played otherwise is told as long as the record says so.
    pub(super) fn close_doubt(&mut self) {
        if !self.line().has_alternatives() {
            self.close_alert(Source::Doubt, CloseReason::Superseded);
        }
    }

    fn tell_doubt(&mut self, severity: Severity, says: String) {
        let notice = Notice::new(AlertKind::Ambiguous, Audience::Operator, severity, says);
        self.raise(Source::Doubt, notice);
    }

    /// The game is over: it is told as it stands, and what was open about it is closed.
    pub(super) fn end_game(&mut self, verdict: Verdict) {
        let now = self.now;
        let Some(game) = &mut self.game else { return };
        let mut last: Vec<Observation> =
            std::iter::from_fn(|| self.sensing.poll_observation()).collect();
        for observation in &last {
            // The press that came before the last move was seen tells its time.
            if let Observation::Completed { side, by } = observation
                && *by == CompletedBy::Press
            {
                game.time_last_move(*side);
            }
        }
        game.end(now, verdict);
        self.tell_game();
        self.sensing.finish();
        last.extend(std::iter::from_fn(|| self.sensing.poll_observation()));
        self.take_last_observations(last);
        self.close_alerts(
            |source, _| {
                !source.is_of_the_table()
                    && !matches!(source, Source::ResultMissing | Source::ResultMismatch)
            },
            CloseReason::Ended,
        );
        self.tell_ended();
        self.publish_position();
    }

    /// The record of a game that is over has been set or put right.
    pub(super) fn tell_ended(&mut self) {
        self.tell_game();
        self.changed();
        self.publish_record();
        if let Some(id) = self.game.as_ref().map(|game| game.id.clone()) {
            self.publish_archive(&id);
        }
    }

    /// What sensing had seen before it heard of the end, and what it closes at it: faults are told before the game's own alerts.
    fn take_last_observations(&mut self, last: Vec<Observation>) {
        let is_closed =
            |observation: &Observation| matches!(observation, Observation::FaultClosed { .. });
        let (closed, rest): (Vec<_>, Vec<_>) = last.into_iter().partition(is_closed);
        for observation in closed.into_iter().chain(rest) {
            match &observation {
                // Of a game that is over: no move is played in it, and nothing of it has to be put right.
                Observation::Moved(_)
                | Observation::Fault(_)
                | Observation::PressWithoutMove { .. }
                | Observation::WrongSidePressed { .. }
                | Observation::AskDump => {}
                Observation::Completed { .. }
                | Observation::PromotionSeen { .. }
                | Observation::FaultClosed { .. }
                | Observation::Sync { .. }
                | Observation::Stable
                | Observation::ResultSign { .. } => self.observe(observation),
            }
        }
    }

    /// A result token was put on the board (case A15): somebody says how the game ended.
    pub(super) fn token_placed(&mut self, result: GameResult) {
        let game = self.game.as_mut();
        if let Some(game) = game.filter(|game| !game.is_over() && !game.line.is_empty()) {
            game.propose_result(result, ResultBy::Board);
            self.tell_game();
        }
    }

    /// Both kings stand in the centre.
    pub(super) fn result_sign(
        &mut self,
        result: GameResult,
        may_be_play: bool,
        set_out: Option<Millis>,
    ) {
        let running = self.clock.is_running();
        let propose = self.settings.kings == super::ResultByKings::Propose;
        if !may_be_play {
            self.tell_last_capture();
        }
        let Some(game) = &mut self.game else { return };
        let plies = game.line.len();
        if let Some(since) = set_out {
            game.remove_walk(since);
        }
        let sign = game.handle_sign(result, may_be_play, propose, running);
        if game.line.len() < plies {
            let (sensing, cx) = self.sensing();
            sensing.recall(&cx);
            self.take_observations();
        }
        self.tell_game();
        if self.game.as_ref().is_some_and(Game::is_held) {
            self.hold_game();
        }
        match sign {
            Sign::Nothing => self.ask_for_the_game_before(result),
            Sign::Proposed => {}
            Sign::Corrected => self.tell_ended(),
            Sign::Ends(verdict) => self.end_game(verdict),
            Sign::Contradicted(why) => {
                let notice = Notice::new(
                    AlertKind::ResultMismatch,
                    Audience::Arbiter,
                    Severity::Warn,
                    format!("the kings show {result}, but {why}. Ask the players."),
                );
                self.raise(Source::ResultMismatch, notice);
            }
        }
    }

    /// What looked like kings in the centre were men in the hand, who are back.
    pub(super) fn withdraw_sign(&mut self) {
        let Some(game) = &mut self.game else { return };
        let board = game.line.tip().board();
        if game.likely_sign().is_some() && self.sensing.picture().agrees_with(board) {
            game.propose_ending(None);
            self.tell_game();
        }
    }

    /// The kings stand in the centre of an array from which nothing was played: somebody puts the result of the last game right, for
    /// which the array came too soon (case K6).
    fn ask_for_the_game_before(&mut self, result: GameResult) {
        const KINGS: usize = 4;
        let Some(game) = self.game.as_ref().filter(|game| !game.was_played()) else {
            return;
        };
        let Some(before) = self.openings.last_finished() else {
            return;
        };
        let by_kings = before.verdict.by == Some(ResultBy::Kings);
        let (before, ended) = (&before.id, &before.verdict.result);
        let differing = self.sensing.picture().differing(game.line.start.board());
        if !by_kings || *ended == result || differing.count() > KINGS {
            return;
        }
        let notice = Notice::new(
            AlertKind::ResultMismatch,
            Audience::Arbiter,
            Severity::Warn,
            format!("the kings show {result}, but game {before} ended {ended}. Ask the players."),
        );
        self.raise(Source::ResultMismatch, notice);
    }

    /// What is due between moves and between games, and when.
    fn timers(&self) -> [(Option<Millis>, Timer); 6] {
        let games = &self.settings.games;
        let game = self.open_game();
        let array = self.array.since.filter(|_| self.may_open());
        let setup = (!self.setup_judged && self.is_setting_up()).then_some(self.setup_still_since);
        let stands = game
            .filter(|game| game.clocks.used && !game.line.is_empty())
            .filter(|game| self.settings.watch == Watch::Judge && !game.clocks.stop_told)
            .and_then(|game| game.clocks.stopped_at);
        let quiet = game.and_then(|game| game.quiet_since);
        [
            (array.map(|since| since + games.array), Timer::Array),
            (setup.map(|since| since + games.setup_wrong), Timer::Setup),
            (
                stands.map(|since| since + games.clock_stopped),
                Timer::ClockStopped,
            ),
            (
                quiet.map(|since| since + self.settings.timing.quiet),
                Timer::Quiet,
            ),
            (self.calm_due(), Timer::Calm),
            (self.unrest_due(), Timer::Unrest),
        ]
    }

    pub(super) fn next_timer_between_games(&self) -> Option<Millis> {
        self.timers().into_iter().filter_map(|(at, _)| at).min()
    }

    /// Fires a timer of this part, if one is due.
    pub(super) fn fire_between_games(&mut self, now: Millis) -> bool {
        let due = |(at, _): &(Option<Millis>, Timer)| at.is_some_and(|at| at <= now);
        let Some((_, timer)) = self.timers().into_iter().find(due) else {
            return false;
        };
        match timer {
            Timer::Array => {
                self.begin_anew();
                self.array.since = None;
            }
            Timer::Setup => {
                self.setup_judged = true;
                self.judge_setup();
            }
            Timer::ClockStopped => {
                if let Some(game) = &mut self.game {
                    game.clocks.stop_told = true;
                }
                let notice = Notice::new(
                    AlertKind::ClockStopped,
                    Audience::Operator,
                    Severity::Info,
                    "the clock has stood for a minute.",
                );
                self.raise(Source::ClockStopped, notice);
            }
            Timer::Quiet => {
                if let Some(game) = &mut self.game {
                    game.quiet_since = None;
                    game.complete(game.line.len(), CompletedBy::Quiet);
                }
                self.tell_game();
            }
            Timer::Calm => self.read_calm(),
            Timer::Unrest => self.tell_unrest(),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::publish::{AlertKind, Body, Payload, Topic};
    use crate::replay;
    use crate::session::Settings;
    use crate::trace::Trace;

    #[test]
    fn mate_takes_the_time_of_the_press_that_came_before_it_was_seen() {
        let trace = include_str!("../../tests/traces/mate-press-before-scan.trace");
        let trace = Trace::parse(trace).expect("a trace");
        let settings = replay::settings(&trace, Settings::new("1")).expect("a DGT board");
        let replayed = replay::replay(&trace, settings);
        let game = replayed
            .publications
            .iter()
            .rev()
            .find_map(|(_, told)| match &told.body {
                Body::Payload(Payload::Game(game)) => Some(game),
                _ => None,
            });
        let mate = game.and_then(|game| game.moves.last()).expect("a move");
        assert_eq!(mate.san, "Qh4#");
        assert_eq!((mate.clk_ms, mate.emt_ms), (Some(57_500), Some(2_500)));
    }

    /// The moves of the game that was told last, and what is open at the end.
    fn played_unarmed(trace: &str) -> (Vec<String>, Vec<AlertKind>) {
        let trace = Trace::parse(trace).expect("a trace");
        let settings = replay::settings(&trace, Settings::new("1")).expect("a DGT board");
        let unarmed = Settings {
            armed: None,
            ..settings
        };
        let replayed = replay::replay(&trace, unarmed);
        let mut moves = Vec::new();
        let mut open: Vec<(Topic, AlertKind)> = Vec::new();
        for (_, told) in &replayed.publications {
            match &told.body {
                Body::Payload(Payload::Game(game)) => {
                    moves = game.moves.iter().map(|ply| ply.uci.clone()).collect();
                }
                Body::Payload(Payload::Alert(alert)) => {
                    open.retain(|(topic, _)| *topic != told.topic);
                    open.push((told.topic.clone(), alert.alert.kind));
                }
                Body::Clear => open.retain(|(topic, _)| *topic != told.topic),
                Body::Payload(_) | Body::Text(_) => {}
            }
        }
        (moves, open.into_iter().map(|(_, kind)| kind).collect())
    }

    #[test]
    fn a_wrong_array_is_played_from_where_nobody_has_armed_a_game() {
        let put_right =
            include_str!("../../tests/traces/setup-wrong-put-right-after-two-plies.trace");
        let (moves, open) = played_unarmed(put_right);
        assert_eq!((moves.len(), open), (8, Vec::new()));
        let (moves, open) = played_unarmed(include_str!(
            "../../tests/traces/setup-wrong-never-found.trace"
        ));
        assert_eq!((moves.len(), open), (10, vec![AlertKind::SetupWrong]));
    }

    #[test]
    fn a_game_begins_over_a_square_that_does_not_rest() {
        let piece = include_str!("../../tests/traces/restless-square-of-the-array.trace");
        let presence =
            include_str!("../../tests/traces/presence-restless-square-of-the-array.trace");
        for (trace, plies) in [(piece, 14), (presence, 6)] {
            let (moves, open) = played_unarmed(trace);
            assert_eq!((moves.len(), open), (plies, Vec::new()));
        }
    }

    #[test]
    fn an_alert_is_of_the_game_that_it_was_raised_for() {
        let trace = include_str!("../../tests/traces/result-missing-next-game.trace");
        let trace = Trace::parse(trace).expect("a trace");
        let settings = replay::settings(&trace, Settings::new("1")).expect("a DGT board");
        let replayed = replay::replay(&trace, settings);
        let alerts: Vec<_> = replayed
            .publications
            .iter()
            .filter_map(|(_, told)| match &told.body {
                Body::Payload(Payload::Alert(alert)) => Some(&alert.alert),
                _ => None,
            })
            .map(|alert| (alert.kind, alert.game.as_deref(), alert.ply))
            .collect();
        assert_eq!(
            alerts,
            [
                (AlertKind::ResultMissing, Some("1-replay-1"), 5),
                (AlertKind::ResultMismatch, Some("1-replay-2"), 3),
            ]
        );
    }
}
