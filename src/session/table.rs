//! What a table makes of observations: games that open, grow and end, and the alerts on the way.

use super::alerts::{Notice, Source, named_in_text, way_back};
use super::{Array, NO_LINE, ResultByKings, Table, Watch};
use crate::Millis;
use crate::board;
use crate::clock::{self, ClockEvent, Wing};
use crate::command::{Arm, OrientationSetting};
use crate::game::{Line, Ply};
use crate::laws::position::Position;
use crate::laws::ruleset::Rules;
use crate::publish::{
    AlertDetail, AlertKind, AlertState, Audience, CloseReason, CompletedBy, CorrectionReason,
    Doubt, EventKind, IllegalReason, Link, MoveState, Phase, ResultBy, ResultState, Severity, Side,
};
use crate::sensing::{CENTRE, Fault, Level, Observation, Seen};
use crate::trace::Arming;
use shakmaty::{Bitboard, CastlingMode, Color, Move, Role, Square};

/// A game at this table.
#[derive(Debug, Clone)]
pub(super) struct Game {
    pub id: String,
    /// Whether it is told on the game's topics; play from the array that nobody armed is kept, and not told.
    pub armed: bool,
    pub arm: Arm,
    pub rules: Rules,
    pub time_control: Option<String>,
    pub line: Line,
    pub rev: u64,
    /// The start position has stood on the board.
    pub ready: bool,
    /// A clock has run, or was pressed, in this game.
    pub has_clock: bool,
    pub clock_stopped_at: Option<Millis>,
    pub started_at: Option<Millis>,
    pub last_move_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    pub result: String,
    pub result_by: Option<ResultBy>,
    pub result_state: Option<ResultState>,
    pub termination: Option<String>,
    pub reason: Option<String>,
    pub white_clock_ms: Option<u64>,
    pub black_clock_ms: Option<u64>,
    /// Since when the side to move has been thinking on a running clock, and what it had used before a stop.
    thinking: Option<(Color, Millis)>,
    thought_ms: Millis,
    /// The last press of each side: the mover's clock and the time he used, for the move that it completes.
    pressed: [Option<PressTimes>; 2],
    /// The record before a king stepped into the centre, and where to: it may be the result sign that begins.
    before_king_step: Option<(Line, Square)>,
    flags: [bool; 2],
    /// Presses in a row that fit the other side's move.
    wrong_presses: u32,
    /// How often each flag fell: the first fall ends the first period.
    falls: [usize; 2],
    /// Left aside by sensing when nobody answered within the time for tables without a clock.
    quiet_since: Option<Millis>,
    /// A game that is joined from a position: castling and en passant before it are unknown.
    pub joined: bool,
}

#[derive(Debug, Clone, Copy)]
struct PressTimes {
    clk_ms: Option<u64>,
    emt_ms: Option<u64>,
}

impl Game {
    pub fn is_followed(&self) -> bool {
        self.ready && self.ended_at.is_none()
    }

    /// Whether a move was made in this game, be it before the position that the record begins with.
    fn was_played(&self) -> bool {
        !self.line.is_empty() || (self.ready && (self.joined || plies_before(&self.line.start) > 0))
    }

    /// Takes over who plays and on what terms; what is not named stays as it is. The words were checked when the command came.
    pub fn take_terms(&mut self, arm: &Arm) {
        if let Some(ruleset) = arm.ruleset.as_deref().and_then(|text| text.parse().ok()) {
            self.rules.ruleset = ruleset;
        }
        if let Some(variant) = arm.variant.as_deref().and_then(|text| text.parse().ok()) {
            self.rules.variant = variant;
        }
        self.rules.supervised = arm.supervised.unwrap_or(self.rules.supervised);
        if arm.time_control.is_some() {
            self.time_control = arm.time_control.clone();
        }
        self.arm = arm.clone();
    }

    pub fn phase(&self) -> Phase {
        if self.ended_at.is_some() {
            Phase::Ended
        } else if !self.ready {
            Phase::Setup
        } else if self.clock_stopped_at.is_some() && self.has_clock {
            Phase::Paused
        } else if self.started_at.is_some() {
            Phase::Playing
        } else {
            Phase::Ready
        }
    }
}

/// The plies before a position, as its move number counts them.
fn plies_before(position: &Position) -> u32 {
    let setup = position.setup();
    (u32::from(setup.fullmoves) - 1)
        .saturating_mul(2)
        .saturating_add(setup.turn.fold_wb(0, 1))
}

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
}

fn slot(color: Color) -> usize {
    color.fold_wb(0, 1)
}

impl Table {
    // --- games ---

    /// Opens the game that is armed, or one as configured.
    pub(super) fn open_game(&mut self) {
        let armed = self.next.is_some() || !self.is_armed_by_hand();
        let arm = self.next.take().unwrap_or_default();
        let mode = CastlingMode::from_chess960(arm.chess960.unwrap_or(false));
        let start = match &arm.fen {
            Some(fen) => {
                Position::from_fen(fen, mode.is_chess960()).unwrap_or_else(|_| Position::initial())
            }
            None => Position::from_setup(shakmaty::Setup::initial(), mode),
        };
        self.games += 1;
        let id = arm.game.clone().unwrap_or_else(|| self.game_id());
        let rules = self.settings.rules;
        let time_control = self.settings.time_control.clone();
        self.close_alerts(
            |source| !matches!(source, Source::Board | Source::Clock),
            CloseReason::Ended,
        );
        let mut game = Game {
            id,
            armed,
            arm: Arm::default(),
            rules,
            time_control,
            line: Line::new(start),
            rev: 1,
            ready: false,
            has_clock: false,
            clock_stopped_at: None,
            started_at: None,
            last_move_at: None,
            ended_at: None,
            result: "*".into(),
            result_by: None,
            result_state: None,
            termination: None,
            reason: None,
            white_clock_ms: None,
            black_clock_ms: None,
            thinking: None,
            thought_ms: 0,
            pressed: [None; 2],
            before_king_step: None,
            flags: [false; 2],
            wrong_presses: 0,
            falls: [0; 2],
            quiet_since: None,
            joined: false,
        };
        game.take_terms(&arm);
        self.game = Some(game);
        self.array = Array::default();
        self.setup_judged = false;
        let now = self.now;
        if self.orientation_setting == OrientationSetting::Auto {
            self.find_orientation();
        }
        self.sensing.restart(
            self.raw.oriented(
                self.orientation
                    .unwrap_or(crate::publish::Orientation::Normal),
            ),
            now,
        );
        let start_fen = self.line().start.fen();
        self.event(EventKind::GameStarted { start_fen });
        self.show_clock_times();
        self.find_ready();
        self.changed();
    }

    /// Whether an array alone opens no game that is told.
    pub(super) fn is_armed_by_hand(&self) -> bool {
        match self.settings.arming {
            Some(arming) => arming == Arming::Manual,
            None => self.paired,
        }
    }

    /// Short, unique for the stream, and fit for a topic level.
    fn game_id(&self) -> String {
        let stream: String = self
            .settings
            .stream
            .chars()
            .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            .take(8)
            .collect();
        let table: String = self.settings.table.chars().take(16).collect();
        format!("{table}-{stream}-{}", self.games)
    }

    pub(super) fn line(&self) -> &Line {
        self.game.as_ref().map_or(&NO_LINE, |game| &game.line)
    }

    pub(super) fn changed(&mut self) {
        self.game_changed = true;
    }

    /// The start position stands on the board for the first time in this game: moves are followed from here on.
    pub(super) fn find_ready(&mut self) {
        let Some(game) = &mut self.game else { return };
        if game.ended_at.is_some() || !game.line.is_empty() {
            return;
        }
        let differing = self.sensing.picture().differing(game.line.start.board());
        let now = self.now;
        if !game.ready && differing.is_empty() && !self.raw.is_blank() {
            game.ready = true;
            let (sensing, cx) = self.sensing();
            sensing.follow(now, false, &cx);
            self.close_alert(Source::Setup, CloseReason::Restored);
            self.changed();
            // A clock that runs already runs for this game.
            if self.clock.is_running()
                && let Some(wing) = self.clock.to_move()
            {
                self.clock_started(wing);
            }
        } else if game.ready && !game.has_clock && differing.count() > 8 {
            // The men are being set up anew; this is no play.
            game.ready = false;
            self.sensing.restart(self.sensing.picture().clone(), now);
            self.changed();
        }
    }

    /// Which way round the board stands, as long as no move of this game was made on it.
    pub(super) fn find_orientation(&mut self) -> bool {
        let found = match self.orientation_setting {
            OrientationSetting::Normal => Some(crate::publish::Orientation::Normal),
            OrientationSetting::Rotated => Some(crate::publish::Orientation::Rotated),
            OrientationSetting::Auto => {
                let fresh = self
                    .game
                    .as_ref()
                    .is_none_or(|game| game.line.is_empty() || game.ended_at.is_some());
                if !fresh || !self.raw.is_complete() {
                    return false;
                }
                let start = self
                    .game
                    .as_ref()
                    .filter(|game| game.ended_at.is_none())
                    .map(|game| game.line.start.clone());
                board::find_orientation(&self.raw, start.unwrap_or_else(Position::initial).board())
            }
        };
        let Some(found) = found.filter(|found| self.orientation != Some(*found)) else {
            return false;
        };
        let first = self.orientation.is_none();
        self.orientation = Some(found);
        if first && found == crate::publish::Orientation::Normal {
            // The squares were read this way already.
            return false;
        }
        let now = self.now;
        if let Some(game) = &mut self.game
            && game.line.is_empty()
        {
            game.ready = false;
        }
        self.sensing.restart(self.raw.oriented(found), now);
        self.find_ready();
        true
    }

    /// The array on the board, in either orientation: a new game may be about to begin.
    pub(super) fn watch_array(&mut self) -> bool {
        let start = self.next_start();
        self.watch_clearing();
        let turned = self.raw.rotated().agrees_with(start.board());
        let stands = self.raw.is_complete() && (self.raw.agrees_with(start.board()) || turned);
        if stands {
            if self.array.since.is_none() {
                // A man that was only adjusted does not make it stand anew: `ripe` stays as it is.
                self.array.since = Some(self.now);
                let stands = if turned {
                    crate::publish::Orientation::Rotated
                } else {
                    crate::publish::Orientation::Normal
                };
                self.array.turned_round = self
                    .orientation
                    .is_some_and(|orientation| orientation != stands);
            }
            return false;
        }
        if let Some(since) = self.array.since.take() {
            self.array.ripe = self.may_open()
                && (self.array.ripe
                    || self.now.saturating_sub(since) >= self.settings.games.array_before_move);
        }
        if self.array.ripe && self.may_open() {
            // A legal first move from an array that stood begins the game.
            for orientation in [
                crate::publish::Orientation::Normal,
                crate::publish::Orientation::Rotated,
            ] {
                let picture = self.raw.oriented(orientation);
                let differing = picture.differing(start.board());
                let moves =
                    crate::sensing::explain::moves_to(&start, &picture, differing, Bitboard::EMPTY);
                if let [m] = moves.as_slice() {
                    self.begin_anew();
                    self.orientation = Some(orientation);
                    let now = self.now;

                    if let Some(game) = &mut self.game {
                        game.ready = true;
                    }
                    self.sensing.restart(picture, now);
                    self.moved(
                        0,
                        vec![Seen::new(&start, *m, now)],
                        CorrectionReason::Reread,
                        Vec::new(),
                    );
                    return true;
                }
            }
            if self.raw.differing(start.board()).count() > 4
                && self.raw.rotated().differing(start.board()).count() > 4
            {
                self.array.ripe = false;
            }
        }
        false
    }

    /// A board that differs from the game on so many squares is being cleared.
    fn watch_clearing(&mut self) {
        const MANY: usize = 16;
        let Some(game) = self
            .game
            .as_ref()
            .filter(|game| game.is_followed() && !game.line.is_empty())
        else {
            self.array.cleared = false;
            return;
        };
        let orientation = self
            .orientation
            .unwrap_or(crate::publish::Orientation::Normal);
        match self
            .raw
            .oriented(orientation)
            .differing(game.line.tip().board())
            .count()
        {
            0 => self.array.cleared = false,
            MANY.. => self.array.cleared = true,
            _ => {}
        }
    }

    /// Whether the next game's array stands on the board while the last game is still open.
    pub(super) fn stands_as_array(&self) -> bool {
        self.array.since.is_some() && self.may_open()
    }

    /// Whether an array on the board would be a new game: none is open, or the one that is has moves that an array does not explain
    /// as taken back.
    fn may_open(&self) -> bool {
        self.game
            .as_ref()
            .is_none_or(|game| game.ended_at.is_some() || self.is_left_for_array(game))
    }

    /// Whether an array on the board has left this game behind: it was reached neither by taking back nor by playing, as when all
    /// knights have gone home.
    fn is_left_for_array(&self, game: &Game) -> bool {
        // Before an attached clock runs, moves fall away when the array is set up again; it is the same game.
        if self.array.turned_round || self.array.cleared {
            // Nobody takes moves back by turning the board, or by clearing it.
            return true;
        }
        if game.line.len() <= 2 || self.is_unstarted() {
            return false;
        }
        let (tip, start) = (game.line.tip(), self.next_start());
        let plays_there = |m: Move| tip.play(m).board() == start.board();
        tip.board() != start.board() && !tip.moves().into_iter().any(plays_there)
    }

    /// Whether a clock is attached that has not run in this game.
    fn is_unstarted(&self) -> bool {
        self.clock.is_attached() && self.game.as_ref().is_some_and(|game| !game.has_clock)
    }

    /// Where the next game begins.
    fn next_start(&self) -> Position {
        match &self.next {
            Some(Arm {
                fen: Some(fen),
                chess960,
                ..
            }) => Position::from_fen(fen, chess960.unwrap_or(false))
                .unwrap_or_else(|_| Position::initial()),
            _ => Position::initial(),
        }
    }

    /// Closes what was not ended, unchanged, and opens the next game.
    fn begin_anew(&mut self) {
        let unfinished = self
            .game
            .as_ref()
            .filter(|game| game.ended_at.is_none() && !game.line.is_empty())
            .map(|game| game.id.clone());
        if unfinished.is_some() {
            self.end_game(
                "*",
                None,
                ResultState::Set,
                None,
                Some("left unfinished".into()),
            );
        }
        self.open_game();
        if let Some(old) = unfinished {
            let notice = Notice::new(
                AlertKind::ResultMissing,
                Audience::Operator,
                Severity::Info,
                format!("game {old} was left without a result."),
            );
            self.raise(Source::Result, notice);
        }
    }

    /// What is due between moves and between games, and when.
    fn timers(&self) -> [(Option<Millis>, Timer); 4] {
        let games = &self.settings.games;
        let game = self.game.as_ref().filter(|game| game.ended_at.is_none());
        let array = self.array.since.filter(|_| self.may_open());
        let setup = (!self.setup_judged && self.is_setting_up()).then_some(self.setup_still_since);
        let stands = game
            .filter(|game| game.has_clock && !game.line.is_empty())
            .filter(|_| self.settings.watch == Watch::Judge && !self.is_open(Source::Clock))
            .and_then(|game| game.clock_stopped_at);
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
                let notice = Notice::new(
                    AlertKind::ClockStopped,
                    Audience::Operator,
                    Severity::Info,
                    "the clock has stood for a minute.",
                );
                self.raise(Source::Clock, notice);
            }
            Timer::Quiet => {
                if let Some(game) = &mut self.game {
                    game.quiet_since = None;
                }
                self.complete(self.line().len(), CompletedBy::Quiet);
            }
        }
        true
    }

    fn is_setting_up(&self) -> bool {
        self.raw.is_complete()
            && self
                .game
                .as_ref()
                .is_some_and(|game| !game.ready && game.ended_at.is_none())
    }

    /// All men are there and some stand on each other's squares.
    fn judge_setup(&mut self) {
        let Some(game) = &self.game else { return };
        let board = game.line.start.board().clone();
        let picture = self.sensing.picture();
        let differing = picture.differing(&board);
        let same_men = shakmaty::Color::ALL.iter().all(|color| {
            Role::ALL.iter().all(|role| {
                let piece = role.of(*color);
                let shown = Square::ALL
                    .iter()
                    .filter(|square| picture.piece(**square) == Some(piece))
                    .count();
                shown == board.by_piece(piece).count()
            })
        });
        if differing.any() && differing.count() <= 8 && same_men {
            let mut notice = Notice::new(
                AlertKind::SetupWrong,
                Audience::Arbiter,
                Severity::Warn,
                format!(
                    "the start position differs ({}). Look at the board.",
                    named_in_text(differing)
                ),
            );
            notice.squares = differing;
            notice.detail.way_back = way_back(picture, &board);
            notice.detail.restore = Some(board.board_fen().to_string());
            self.raise(Source::Setup, notice);
        } else {
            self.close_alert(Source::Setup, CloseReason::Restored);
        }
    }

    // --- what sensing has seen ---

    pub(super) fn observe(&mut self, observation: Observation) {
        match observation {
            Observation::Moved {
                keep,
                moves,
                why,
                alternatives,
            } => self.moved(keep, moves, why, alternatives),
            Observation::Completed { side, by } => {
                let ply = (1..=self.line().len())
                    .rev()
                    .find(|ply| self.line().mover(*ply) == side);
                if let Some(ply) = ply {
                    self.complete(ply, by);
                }
            }
            Observation::PressWithoutMove { side } => self.tell_press_without_move(side),
            Observation::PromotionSeen { ply } => self.promotion_seen(ply),
            Observation::WrongSidePressed { side } => self.tell_clock_sides(side),
            Observation::Fault(fault) => self.tell_fault(&fault),
            Observation::FaultClosed { id, why } => self.close_alert(Source::Fault(id), why),
            Observation::Sync { in_sync } => {
                let squares = super::alerts::names(
                    self.sensing.picture().differing(self.line().tip().board()),
                );
                self.event(if in_sync {
                    EventKind::InSync
                } else {
                    EventKind::OutOfSync { squares }
                });
                self.changed();
                self.publish_position();
            }
            Observation::Stable => self.publish_position(),
            Observation::AskDump => self.ask_dump = true,
            Observation::ResultSign { result } => self.result_sign(result),
        }
    }

    /// The record reads otherwise from ply `keep` + 1 on.
    pub(super) fn moved(
        &mut self,
        keep: usize,
        moves: Vec<Seen>,
        why: CorrectionReason,
        alternatives: Vec<Vec<Move>>,
    ) {
        let now = self.now;
        let Some(game) = &mut self.game else { return };
        let keep = keep.min(game.line.len());
        remember_king_step(game, keep, &moves);
        let removed = game.line.len() - keep;
        let replaced = game.line.plies.split_off(keep);
        if removed > 0 {
            let keep_plies = keep as u32;
            let kind = match why {
                CorrectionReason::TakenBack | CorrectionReason::SetUpAgain => EventKind::Takeback {
                    keep_plies,
                    reason: why,
                },
                _ => EventKind::Correction {
                    keep_plies,
                    reason: why,
                },
            };
            self.event(kind);
        }
        let gap = moves.len().saturating_sub(removed);
        let told: Vec<String> = alternatives
            .iter()
            .map(|line| self.uci_line(keep, line))
            .collect();
        let ambiguous = told.len() > 1;
        if gap > 2 {
            self.event(EventKind::Gap {
                ply: keep as u32 + 1,
                plies: gap as u32,
                alternatives: told.clone(),
            });
        }
        for (index, seen) in moves.into_iter().enumerate() {
            let Some(game) = &mut self.game else { return };
            let mut ply = Ply::new(seen.mv, seen.after, seen.at);
            // The same move with another piece for the pawn, or after one: what completed it completed it.
            let same = |old: &&Ply| old.mv.from() == ply.mv.from() && old.mv.to() == ply.mv.to();
            if let Some(old) = replaced.get(index).filter(same) {
                (ply.state, ply.by, ply.pressed) = (old.state, old.by, old.pressed);
                (ply.clk_ms, ply.emt_ms) = (old.clk_ms, old.emt_ms);
            }
            if ambiguous {
                ply.doubt = Some(Doubt::Ambiguous);
                if index == 0 {
                    ply.alternatives = told.clone();
                }
            } else if gap > 2 {
                ply.doubt = Some(Doubt::Gap);
            }
            ply.doubt = seen.doubt.or(ply.doubt);
            game.started_at.get_or_insert(seen.at);
            game.last_move_at = Some(seen.at);
            game.line.plies.push(ply);
            let number = game.line.len();
            if number > 1 && !self.is_unstarted() {
                self.complete(number - 1, CompletedBy::Reply);
            }
            self.tell_move(number);
        }
        if ambiguous {
            let notice = Notice::new(
                AlertKind::Ambiguous,
                Audience::Operator,
                Severity::Warn,
                format!(
                    "{gap} plies were not seen singly; {} orders fit. Compare the score sheets.",
                    told.len()
                ),
            );
            self.raise(Source::Doubt, notice);
        }
        let Some(game) = &mut self.game else { return };
        let open = game.line.plies.last().is_some_and(|ply| ply.by.is_none());
        game.quiet_since = (open && !game.has_clock && !self.clock.is_attached()).then_some(now);
        self.changed();
        self.end_by_the_board();
    }

    /// UCI of a line that was not played, from the record's ply `keep`.
    fn uci_line(&self, keep: usize, line: &[Move]) -> String {
        let mut position = self.line().position(keep).clone();
        let mut words = Vec::new();
        for m in line {
            words.push(position.uci(*m));
            position = position.play(*m);
        }
        words.join(" ")
    }

    /// A ply is completed, by whatever came first.
    pub(super) fn complete(&mut self, ply: usize, by: CompletedBy) {
        let Some(game) = &mut self.game else { return };
        let Some(index) = ply.checked_sub(1).filter(|index| *index < game.line.len()) else {
            return;
        };
        let mover = game.line.mover(ply);
        let times = (by == CompletedBy::Press)
            .then(|| game.pressed[slot(mover)].take())
            .flatten();
        // Clock bytes lag (A17), but no whole think.
        let on_his_time =
            by == CompletedBy::Press
                && game.line.plies.get(ply).is_some_and(|reply| {
                    reply.seen_at >= game.line.plies[index].seen_at + THINK_MS
                });
        if on_his_time {
            self.tell_clock_sides(mover);
        } else if by == CompletedBy::Press {
            game.wrong_presses = 0;
            self.close_alert(Source::ClockSides, CloseReason::Restored);
        }
        let Some(game) = &mut self.game else { return };
        let entry = &mut game.line.plies[index];
        if by == CompletedBy::Press {
            entry.pressed = true;
        }
        if entry.by.is_some() {
            // A press after the reply completes nothing; it tells the time of the move that was answered.
            if let Some(times) = times.filter(|_| entry.clk_ms.is_none()) {
                entry.clk_ms = times.clk_ms;
                entry.emt_ms = times.emt_ms;
                self.changed();
            }
            return;
        }
        entry.state = MoveState::Final;
        entry.by = Some(by);
        if let Some(times) = times {
            entry.clk_ms = times.clk_ms;
            entry.emt_ms = times.emt_ms;
        }
        let (clk_ms, emt_ms) = (entry.clk_ms, entry.emt_ms);
        if by == CompletedBy::Press {
            game.before_king_step = None;
        }
        game.quiet_since = None;
        self.event(EventKind::Completed {
            ply: ply as u32,
            by,
            clk_ms,
            emt_ms,
        });
        self.changed();
    }

    /// Mate and stalemate end the game at once (5.1.1, 5.2.1).
    fn end_by_the_board(&mut self) {
        let Some(ending) = self
            .game
            .as_ref()
            .filter(|game| game.ended_at.is_none())
            .and_then(|game| game.line.tip().ending())
        else {
            return;
        };
        self.end_game(
            ending.result(),
            Some(ResultBy::Board),
            ResultState::Set,
            Some("normal".into()),
            Some(ending.to_string()),
        );
    }

    pub(super) fn end_game(
        &mut self,
        result: &str,
        by: Option<ResultBy>,
        state: ResultState,
        termination: Option<String>,
        reason: Option<String>,
    ) {
        let now = self.now;
        let last = self.line().len();
        let Some(game) = &mut self.game else { return };
        if last > 0 {
            let mover = game.line.mover(last);
            let shown = game_clock(game, mover);
            if let Some(ply) = game.line.plies.last_mut().filter(|ply| ply.by.is_none()) {
                ply.clk_ms = ply.clk_ms.or(shown);
            }
            self.complete(last, CompletedBy::End);
        }
        let Some(game) = &mut self.game else { return };
        for ply in &mut game.line.plies {
            ply.state = MoveState::Final;
        }
        game.result = result.to_owned();
        game.result_by = by;
        game.result_state = Some(state);
        game.termination = termination.clone();
        game.reason = reason.clone();
        game.ended_at = Some(now);
        game.quiet_since = None;
        self.event(EventKind::GameEnded {
            result: result.to_owned(),
            by,
            state,
            termination,
            reason,
        });
        self.sensing.finish();
        self.take_closed_faults();
        self.close_alerts(
            |source| !matches!(source, Source::Board | Source::Clock | Source::Result),
            CloseReason::Ended,
        );
        self.changed();
        self.publish_record();
        self.publish_archive();
        self.publish_position();
    }

    /// Faults that sensing closes while a game ends are told before the game's own alerts.
    fn take_closed_faults(&mut self) {
        let mut rest = Vec::new();
        while let Some(observation) = self.sensing.poll_observation() {
            match observation {
                Observation::FaultClosed { id, why } => self.close_alert(Source::Fault(id), why),
                other => rest.push(other),
            }
        }
        for observation in rest {
            if matches!(observation, Observation::Sync { .. } | Observation::Stable) {
                self.observe(observation);
            }
        }
    }

    /// A result token was put on the board (case A15): somebody says how the game ended.
    pub(super) fn token_placed(&mut self, result: &'static str) {
        let open = self
            .game
            .as_ref()
            .is_some_and(|game| game.ended_at.is_none() && !game.line.is_empty());
        if open {
            self.event(EventKind::ResultProposed {
                result: result.to_owned(),
                by: ResultBy::Board,
            });
            self.set_proposed(result, ResultBy::Board);
        }
    }

    /// Both kings stand in the centre.
    fn result_sign(&mut self, result: &'static str) {
        let propose = self.settings.kings == ResultByKings::Propose;
        let running = self.clock.is_running();
        let Some(game) = &mut self.game else { return };
        if !game.was_played() && game.before_king_step.is_none() {
            return;
        }
        if game.ended_at.is_some() {
            let by_kings = game.result_by == Some(ResultBy::Kings);
            if game.result == result {
                return;
            }
            if by_kings && !propose {
                self.correct_result(result);
            } else {
                let ended = game.result.clone();
                self.propose_result(result, &format!("the game ended {ended}"));
            }
            return;
        }
        if let Some((line, _)) = game.before_king_step.take() {
            let keep = line
                .plies
                .iter()
                .zip(&game.line.plies)
                .take_while(|(a, b)| a.mv == b.mv)
                .count();
            let removed = game.line.len() > keep;
            let again: Vec<Ply> = line.plies[keep..].to_vec();
            game.line = line;
            if removed {
                self.event(EventKind::Correction {
                    keep_plies: keep as u32,
                    reason: CorrectionReason::ResultSign,
                });
            }
            for index in 0..again.len() {
                self.tell_move(keep + index + 1);
            }
            self.changed();
        }
        let Some(game) = self.game.as_ref().filter(|game| game.was_played()) else {
            return;
        };
        let loser = match result {
            "1-0" => Some(Color::Black),
            "0-1" => Some(Color::White),
            _ => None,
        };
        let flag_against =
            loser.is_some_and(|loser| game.flags[slot(!loser)] && !game.flags[slot(loser)]);
        if flag_against {
            self.propose_result(result, "the flag of the other side is down");
        } else if running {
            self.propose_result(result, "the clock runs");
        } else if propose {
            self.event(EventKind::ResultProposed {
                result: result.to_owned(),
                by: ResultBy::Kings,
            });
            self.set_proposed(result, ResultBy::Kings);
        } else {
            let on_time = loser.is_some_and(|loser| game.flags[slot(loser)]);
            let termination = if on_time { "time forfeit" } else { "normal" };
            self.end_game(
                result,
                Some(ResultBy::Kings),
                ResultState::Set,
                Some(termination.into()),
                None,
            );
        }
    }

    fn correct_result(&mut self, result: &'static str) {
        let Some(game) = &mut self.game else { return };
        game.result = result.to_owned();
        let (state, termination) = (ResultState::Set, game.termination.clone());
        self.event(EventKind::GameEnded {
            result: result.to_owned(),
            by: Some(ResultBy::Kings),
            state,
            termination,
            reason: Some("the kings were placed anew".into()),
        });
        self.changed();
        self.publish_record();
        self.publish_archive();
    }

    fn set_proposed(&mut self, result: &str, by: ResultBy) {
        if let Some(game) = &mut self.game {
            game.result = result.to_owned();
            game.result_by = Some(by);
            game.result_state = Some(ResultState::Proposed);
        }
        self.changed();
    }

    fn propose_result(&mut self, result: &'static str, why: &str) {
        self.event(EventKind::ResultProposed {
            result: result.to_owned(),
            by: ResultBy::Kings,
        });
        if self
            .game
            .as_ref()
            .is_some_and(|game| game.ended_at.is_none())
        {
            self.set_proposed(result, ResultBy::Kings);
        }
        let notice = Notice::new(
            AlertKind::ResultMismatch,
            Audience::Arbiter,
            Severity::Warn,
            format!("the kings show {result}, but {why}. Ask the players."),
        );
        self.raise(Source::Result, notice);
    }

    // --- faults as alerts ---

    fn tell_fault(&mut self, fault: &Fault) {
        let (audience, severity, state) = match fault.level {
            Level::Noted => (Audience::Operator, Severity::Info, AlertState::Suspected),
            Level::Told if matches!(fault.kind, AlertKind::IllegalMove | AlertKind::OutOfTurn) => {
                (Audience::Arbiter, Severity::Warn, AlertState::Suspected)
            }
            Level::Told => (Audience::Arbiter, Severity::Warn, AlertState::Confirmed),
            Level::Confirmed => (Audience::Arbiter, Severity::Urgent, AlertState::Confirmed),
        };
        let picture = self.sensing.picture();
        let board = self.line().tip().board();
        let squares = named_in_text(fault.squares);
        let says = match fault.kind {
            AlertKind::IllegalMove if fault.level == Level::Confirmed => {
                format!("pressed; no legal move leads here ({squares}). Look at the board.")
            }
            AlertKind::IllegalMove if fault.shadow.len() > 1 => {
                format!("answered; no legal move leads here ({squares}). Look at the board.")
            }
            AlertKind::IllegalMove => {
                format!("no legal move leads here ({squares}). Look at the board.")
            }
            AlertKind::OutOfTurn => {
                format!("moved while the other side has the move ({squares}). Look.")
            }
            AlertKind::CastlingUnfinished => {
                format!(
                    "{} before the rook was moved ({squares}). Look at the board.",
                    ended_by(fault)
                )
            }
            AlertKind::PromotionUnfinished => {
                format!(
                    "{} with a pawn on the last rank ({squares}). Look at the board.",
                    ended_by(fault)
                )
            }
            _ => format!("these squares differ from the game: {squares}. Look at the board."),
        };
        let reason = match fault.kind {
            AlertKind::Displaced | AlertKind::CastlingUnfinished => fault.reason.filter(|reason| {
                matches!(
                    reason,
                    IllegalReason::PiecesSwapped | IllegalReason::OwnPieceCaptured
                )
            }),
            _ => fault.reason,
        };
        let detail = AlertDetail {
            uci: fault.uci.clone(),
            reason,
            way_back: way_back(picture, board),
            restore: Some(board.board_fen().to_string()),
            white_ms: self.clock_ms(Color::White),
            black_ms: self.clock_ms(Color::Black),
            ..AlertDetail::default()
        };
        let notice = Notice {
            kind: fault.kind,
            audience,
            severity,
            state,
            side: fault.side,
            squares: fault.squares,
            ply: fault.ply,
            says,
            detail,
        };
        self.raise(Source::Fault(fault.id), notice);
    }

    /// The exchange that the board had not shown stands there by now, and is what was recorded.
    fn promotion_seen(&mut self, ply: usize) {
        let Some(game) = &mut self.game else { return };
        if let Some(ply) = game.line.plies.get_mut(ply - 1) {
            ply.doubt = None;
            self.changed();
        }
    }

    /// The clock that ran is not that of the player who moved (case L1); it is told, and never put right in silence.
    fn tell_clock_sides(&mut self, side: Color) {
        let Some(game) = self.game.as_mut().filter(|_| self.clock.is_attached()) else {
            return;
        };
        // Once may be a message that came late; a whole think of each side is none.
        game.wrong_presses += 1;
        if game.wrong_presses < 2 || self.is_open(Source::ClockSides) {
            return;
        }
        let mut notice = Notice::new(
            AlertKind::ClockSides,
            Audience::Operator,
            Severity::Info,
            "moved on the other side's time. Does the clock stand the wrong way round?",
        );
        notice.side = Some(!side);
        self.raise(Source::ClockSides, notice);
    }

    fn tell_press_without_move(&mut self, side: Color) {
        if self.link != Link::Ok {
            return;
        }
        // Article 6.2.3 wants the clock pressed after a move; the first start, a resume and a press after the reply are none of this.
        let mut notice = Notice::new(
            AlertKind::PressWithoutMove,
            Audience::Arbiter,
            Severity::Warn,
            "pressed; the position is as before. Look at the board.",
        );
        notice.side = Some(side);
        notice.state = AlertState::Suspected;
        notice.detail.white_ms = self.clock_ms(Color::White);
        notice.detail.black_ms = self.clock_ms(Color::Black);
        self.raise(Source::Press, notice);
    }

    // --- the clock ---

    pub(super) fn apply_clock(&mut self, reading: clock::Reading) {
        let now = self.now;
        let events = self.clock.handle(now, reading);
        self.show_clock_times();
        for event in events {
            match event {
                ClockEvent::Started(wing) => self.clock_started(wing),
                ClockEvent::Stopped => self.clock_stopped(),
                ClockEvent::Pressed(wing) => {
                    let side = self.side(wing);
                    let clk = self.clock.display(wing).map(|display| display.ms);
                    self.pressed(side, clk);
                }
                ClockEvent::Flag(wing) => self.flag_fell(self.side(wing)),
                ClockEvent::Absent => {
                    if self
                        .game
                        .as_ref()
                        .is_some_and(|game| game.has_clock && game.ended_at.is_none())
                    {
                        let notice = Notice::new(
                            AlertKind::ClockAbsent,
                            Audience::Operator,
                            Severity::Info,
                            "the clock is no longer connected. Look at its cable.",
                        );
                        self.raise(Source::Clock, notice);
                        // A clock that is absent freezes nothing.
                        let (sensing, cx) = self.sensing();
                        sensing.handle_clock_running(now, &cx);
                        if let Some(game) = &mut self.game {
                            game.clock_stopped_at = None;
                        }
                    }
                }
                ClockEvent::Present => self.close_alert(Source::Clock, CloseReason::Restored),
                ClockEvent::Adjusted => {}
            }
        }
        self.rearm_flags();
        self.publish_clock();
    }

    /// What the clock shows goes into the record of the game.
    fn show_clock_times(&mut self) {
        let (white, black) = (self.clock_ms(Color::White), self.clock_ms(Color::Black));
        if let Some(game) = self.game.as_mut().filter(|game| game.ended_at.is_none())
            && self.clock.is_attached()
        {
            let changed = game.white_clock_ms != white || game.black_clock_ms != black;
            game.white_clock_ms = white;
            game.black_clock_ms = black;
            if changed {
                self.changed();
            }
        }
    }

    /// What a side's clock said last.
    pub(super) fn clock_ms(&self, color: Color) -> Option<u64> {
        let wing = if color == Color::White {
            self.white_wing()
        } else {
            self.white_wing().other()
        };
        match self.clock.display(wing) {
            Some(display) => Some(display.ms),
            None => self.game.as_ref().and_then(|game| game_clock(game, color)),
        }
    }

    pub(super) fn clock_started(&mut self, wing: Wing) {
        let now = self.now;
        let side = self.side(wing);
        let Some(game) = &mut self.game else { return };
        if game.ended_at.is_some() || !game.ready {
            return;
        }
        game.has_clock = true;
        game.quiet_since = None;
        game.clock_stopped_at = None;
        if game.thinking.is_none_or(|(thinker, _)| thinker != side) {
            game.thought_ms = 0;
        }
        game.thinking = Some((side, now));
        game.started_at.get_or_insert(now);
        // What was played before the clock ran was provisional until now.
        for ply in 1..game.line.len() {
            self.complete(ply, CompletedBy::Reply);
        }
        let (sensing, cx) = self.sensing();
        sensing.handle_clock_running(now, &cx);
        self.close_alert(Source::Clock, CloseReason::Restored);
        self.changed();
    }

    fn clock_stopped(&mut self) {
        let now = self.now;
        let Some(game) = &mut self.game else { return };
        if !game.has_clock || game.ended_at.is_some() {
            return;
        }
        if let Some((_, since)) = game.thinking {
            game.thought_ms += now.saturating_sub(since);
        }
        game.clock_stopped_at = Some(now);
        self.sensing.handle_clock_stopped(now);
        self.changed();
    }

    /// A player pressed; `clk_ms` is what his clock shows after it.
    pub(super) fn pressed(&mut self, side: Color, clk_ms: Option<u64>) {
        let now = self.now;
        let (white_ms, black_ms) = (self.clock_ms(Color::White), self.clock_ms(Color::Black));
        let Some(game) = &mut self.game else { return };
        if game.ended_at.is_some() || !game.ready {
            return;
        }
        let emt_ms = match game.thinking {
            Some((thinker, since)) if thinker == side && game.clock_stopped_at.is_none() => {
                Some(game.thought_ms + now.saturating_sub(since))
            }
            _ => None,
        };
        game.thinking = Some((!side, now));
        game.thought_ms = 0;
        game.has_clock = true;
        game.quiet_since = None;
        game.started_at.get_or_insert(now);
        game.pressed[slot(side)] = Some(PressTimes { clk_ms, emt_ms });

        self.event(EventKind::Press {
            side: side.into(),
            white_ms,
            black_ms,
        });
        let (sensing, cx) = self.sensing();
        sensing.handle_press(now, side, &cx);
        self.close_alert(Source::Press, CloseReason::Superseded);
        self.changed();
    }

    fn flag_fell(&mut self, side: Color) {
        let Some(game) = self.game.as_mut().filter(|game| game.ended_at.is_none()) else {
            return;
        };
        if game.flags[slot(side)] {
            return;
        }
        game.flags[slot(side)] = true;
        let period = game.falls[slot(side)];
        game.falls[slot(side)] += 1;
        let both = game.flags == [true; 2];
        self.event(EventKind::Flag {
            side: Side::from(side),
        });
        let line = self.line();
        let completed = line.plies.iter().filter(|ply| ply.by.is_some()).count();
        let plies = plies_before(&line.start).saturating_add(completed as u32);
        let completed = match side {
            Color::White => plies.div_ceil(2),
            Color::Black => plies / 2,
        };
        let control = self
            .game
            .as_ref()
            .and_then(|game| game.time_control.clone());
        let control = control.and_then(|text| text.parse::<clock::control::TimeControl>().ok());
        let required = control
            .as_ref()
            .and_then(|control| control.moves_by_end_of(period));
        let (severity, says) = match required {
            Some(required) if completed >= required => (
                Severity::Info,
                format!("flag down; {completed} moves of {required} completed."),
            ),
            Some(required) => (
                Severity::Urgent,
                format!("flag down; {completed} moves of {required} completed."),
            ),
            None => (
                Severity::Urgent,
                format!("flag down; {completed} moves completed."),
            ),
        };
        let mut notice = Notice::new(AlertKind::Flag, Audience::Arbiter, severity, says);
        notice.side = Some(side);
        notice.detail.white_ms = self.clock_ms(Color::White);
        notice.detail.black_ms = self.clock_ms(Color::Black);
        self.raise(Source::Flag(side.into()), notice);
        if severity == Severity::Info {
            self.close_alert(Source::Flag(side.into()), CloseReason::Lapsed);
        }
        if both {
            let notice = Notice::new(
                AlertKind::BothFlags,
                Audience::Arbiter,
                Severity::Urgent,
                "both flags are down. Look at the clock.",
            );
            self.raise(Source::BothFlags, notice);
        }
        self.changed();
    }

    /// A flag is armed again once its clock shows time and no sign (case L14).
    fn rearm_flags(&mut self) {
        for color in Color::ALL {
            let wing = if color == Color::White {
                self.white_wing()
            } else {
                self.white_wing().other()
            };
            let up = self
                .clock
                .display(wing)
                .is_some_and(|display| !display.flag && display.ms > 0);
            if up
                && self
                    .game
                    .as_ref()
                    .is_some_and(|game| game.flags[slot(color)])
            {
                if let Some(game) = &mut self.game {
                    game.flags[slot(color)] = false;
                }
                self.close_alert(Source::Flag(color.into()), CloseReason::Restored);
                self.close_alert(Source::BothFlags, CloseReason::Restored);
            }
        }
    }

    pub(super) fn flags(&self) -> [bool; 2] {
        self.game.as_ref().map_or([false; 2], |game| game.flags)
    }

    // --- the link ---

    pub(super) fn tell_link(&mut self) {
        match self.link {
            Link::Ok => self.close_alert(Source::Board, CloseReason::Restored),
            Link::Missing | Link::Silent | Link::Fault => {
                let playing = self.game.as_ref().is_some_and(|game| {
                    game.ended_at.is_none() && (game.started_at.is_some() || !game.line.is_empty())
                });
                let severity = if playing {
                    Severity::Warn
                } else {
                    Severity::Info
                };
                let (kind, says) = match self.link {
                    Link::Silent => (
                        AlertKind::BoardSilent,
                        "the board does not answer. Look at its cable and power.",
                    ),
                    Link::Fault => (
                        AlertKind::BoardMissing,
                        "what is on this port speaks no DGT. Look at what is plugged in.",
                    ),
                    _ => (
                        AlertKind::BoardMissing,
                        "the board is gone. Look at its cable and power.",
                    ),
                };
                self.raise(
                    Source::Board,
                    Notice::new(kind, Audience::Operator, severity, says),
                );
            }
        }
        self.publish_clock();
    }
}

/// The clock of a side as the record of the game has it.
fn game_clock(game: &Game, color: Color) -> Option<u64> {
    color.fold_wb(game.white_clock_ms, game.black_clock_ms)
}

/// What came before a move was finished.
fn ended_by(fault: &Fault) -> &'static str {
    if fault.answered {
        "answered"
    } else {
        "pressed"
    }
}

/// A reply that came after so long was thought about, all the time on the clock that ran.
const THINK_MS: Millis = 2_000;

/// A king that steps into the centre may be on its way to the result sign.
fn remember_king_step(game: &mut Game, keep: usize, moves: &[Seen]) {
    match moves {
        [
            Seen {
                mv:
                    Move::Normal {
                        role: Role::King,
                        to,
                        ..
                    },
                ..
            },
        ] if CENTRE.contains(to) => {
            let unpressed_again = game.before_king_step.is_some() && keep < game.line.len();
            if !unpressed_again {
                game.before_king_step = Some((game.line.clone(), *to));
            }
        }
        [] => {}
        _ => game.before_king_step = None,
    }
}
