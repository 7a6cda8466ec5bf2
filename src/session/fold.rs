//! The fold: what each entry makes of a table, and what falls due between them.

use super::entry::{self, Entry, What};
use super::{Settings, Table, Watch, alerts, array, link, restless, squares};
use crate::Millis;
use crate::board::{self, Contents, Picture};
use crate::clock::{self, Wing};
use crate::game::{Game, Line, Openings, Terms};
use crate::laws::position::Position;
use crate::publish::Link;
use crate::sensing::{Context, Look, Sensing};
use shakmaty::Square;
use std::collections::VecDeque;
use std::sync::LazyLock;

impl Table {
    pub(super) fn awaits_dump(&self) -> bool {
        self.sensing.awaits_dump(&self.context()) || self.awaits_dump_after_the_end()
    }

    pub(super) fn new(settings: Settings, now: Millis) -> Table {
        let mut table = Table {
            sensing: Sensing::new(settings.timing),
            orientation_setting: settings.orientation,
            openings: Openings::new(
                settings.arming,
                Terms {
                    rules: settings.rules,
                    time_control: settings.time_control.clone(),
                },
                settings.armed.clone(),
            ),
            wall: settings.wall,
            abilities: board::abilities(settings.family),
            settings,
            now,
            raw: Picture::default(),
            changed_at: None,
            orientation: None,
            link: Link::Missing,
            names: link::Names::default(),
            firmware: None,
            battery: None,
            skipped_bytes: 0,
            clock: clock::Tracker::default(),
            game: None,
            played_on: None,
            array: array::Array::default(),
            setup_still_since: now,
            setup_judged: true,
            seq: 0,
            alerts: alerts::Alerts::default(),
            misreads: squares::Misreads::default(),
            restless: restless::Restless::default(),
            unrest: None,
            commands_done: VecDeque::new(),
            note: None,
            told_clock: None,
            told_position: None,
            told_status: None,
            game_changed: false,
            ask_dump: false,
            publications: VecDeque::new(),
            replies: VecDeque::new(),
            stages: VecDeque::new(),
        };
        if table.openings.is_armed() {
            table.begin_game();
            table.settle();
        }
        table
    }

    /// The fold: what an entry makes of the table.
    pub(super) fn apply(&mut self, entry: &Entry) {
        self.run_until(entry.at);
        match &entry.what {
            What::Squares { changes, dump } => self.apply_squares(changes, Look::from_dump(*dump)),
            What::Repeated(index) => {
                if let Ok(square) = Square::try_from(u32::from(*index))
                    && !self.restless.contains(square)
                {
                    let square = board::oriented(square, self.stands());
                    self.sense(|sensing, _| sensing.handle_repeated(entry.at, square));
                }
            }
            What::Dump => self.sense(|sensing, cx| sensing.handle_dump(entry.at, cx)),
            What::Clock(code) => self.apply_clock((*code).into()),
            What::Command(command) => self.apply_command(command),
            What::Begun => {}
            What::Wall(wall) => self.wall = *wall,
            What::Paired => self.openings.follow_pairings(),
            What::Link(link) => self.apply_link(*link),
            What::Family(family) => {
                self.settings.family = *family;
                self.abilities = board::abilities(*family);
            }
            What::Serial { number, long } => self.board_named(number, *long),
            What::Firmware(firmware) => self.firmware = Some(firmware.clone()),
            What::Battery(percent) => self.battery = Some(*percent),
        }
        self.settle();
    }

    /// Fires everything that is due until `now`, each as of its own deadline.
    pub(super) fn run_until(&mut self, now: Millis) {
        let mut spins = 0;
        while let Some(at) = self.next_timer().filter(|at| *at <= now) {
            if at > self.now {
                spins = 0;
            }
            spins += 1;
            if spins > MOST_AT_ONCE {
                self.give_up(at);
                break;
            }
            self.now = self.now.max(at);
            self.fire();
            self.settle();
        }
        self.now = self.now.max(now);
    }

    fn fire(&mut self) {
        let now = self.now;
        if self.fire_between_games(now) {
            return;
        }
        if self.sensing_due(now).is_some() {
            self.fire_sensing(now);
        }
        self.fire_after_the_end();
    }

    /// When the table's sensing had something to do, if that is by `now`.
    fn sensing_due(&self, now: Millis) -> Option<Millis> {
        let at = self.sensing.poll_timeout(&self.context());
        at.filter(|at| *at <= now)
    }

    fn fire_sensing(&mut self, now: Millis) {
        let (sensing, cx) = self.sensing();
        let name = sensing.handle_timeout(now, &cx);
        self.stage(|| format!("  timer {name}"));
    }

    pub(super) fn next_timer(&self) -> Option<Millis> {
        let cx = self.context();
        self.sensing
            .poll_timeout(&cx)
            .into_iter()
            .chain(self.next_timer_between_games())
            .chain(self.next_timer_after_the_end())
            .min()
    }

    /// Takes what sensing has seen into the record, until nothing follows from anything any more.
    fn settle(&mut self) {
        let mut rounds = 0;
        loop {
            self.take_observations();
            let now = self.now;
            rounds += 1;
            let Some(at) = self.sensing_due(now) else {
                break;
            };
            if rounds > MOST_AT_ONCE {
                self.give_up(at);
                break;
            }
            self.fire_sensing(now);
        }
        self.settle_after_the_end();
        self.tell_dead_squares();
        self.tell_wrong_array();
        self.publish_changes();
    }

    /// A timer does not go off when it fires: it would stop the whole node, or tell the same for ever. The table lets go of what it waits
    /// for instead.
    fn give_up(&mut self, at: Millis) {
        tracing::error!(table = %self.settings.table, at, "a timer does not go off; it is dropped");
        self.sensing.disarm();
        self.disarm_after_the_end();
    }

    /// What sensing has to know of the rest.
    pub(super) fn context(&self) -> Context<'_> {
        let game = self.game.as_ref().filter(|_| !self.stands_as_array());
        let setting_up = self.array.is_set_up;
        context(
            &self.settings,
            self.abilities,
            game,
            setting_up,
            &self.clock,
        )
    }

    pub(super) fn sensing(&mut self) -> (&mut Sensing, Context<'_>) {
        // The next game's array is nothing that the last game's record could explain.
        let array = self.stands_as_array();
        let game = self.game.as_ref().filter(|_| !array);
        let setting_up = self.array.is_set_up;
        let cx = context(
            &self.settings,
            self.abilities,
            game,
            setting_up,
            &self.clock,
        );
        (&mut self.sensing, cx)
    }

    fn apply_squares(&mut self, changes: &[(u8, entry::Code)], look: Look) {
        let changes: Vec<(Square, Contents)> = changes
            .iter()
            .filter_map(|(index, code)| {
                Some((Square::try_from(u32::from(*index)).ok()?, code.contents()?))
            })
            .collect();
        let read = self.without_restless(&changes);
        self.watch_misreads(&read);
        // What is read for the first time may have stood there for long.
        if read
            .iter()
            .any(|(square, _)| self.raw.at(*square).is_some())
        {
            self.changed_at = Some(self.now);
        }
        for (square, contents) in &changes {
            self.raw.set(*square, *contents);
        }
        self.read_squares(&read, look);
    }

    /// These squares of the board show something else, and are believed.
    pub(super) fn read_squares(&mut self, changes: &[(Square, Contents)], look: Look) {
        if let Some(token) = changes.iter().find_map(|(_, contents)| match contents {
            Contents::Token(token) => Some(*token),
            _ => None,
        }) {
            self.token_placed(token.result());
        }
        if !changes.is_empty() {
            self.setup_still_since = self.now;
            self.note_unrest();
            self.setup_judged = false;
        }
        if self.find_orientation() {
            self.watch_array();
            return;
        }
        if self.watch_array() || self.turn_by_first_move(look) {
            // The game has begun with this change, and has taken it already.
            return;
        }
        let orientation = self.stands();
        let turned: Vec<(Square, Contents)> = changes
            .iter()
            .map(|(square, contents)| (board::oriented(*square, orientation), *contents))
            .collect();
        if self.settings.publish_touches {
            self.tell_touches(&turned);
        }
        let now = self.now;
        self.sense(|sensing, cx| sensing.handle_squares(now, &turned, look, cx));
        self.leave_cleared();
        self.find_ready();
    }
}

/// The record of a table where no game is open.
pub(super) static NO_LINE: LazyLock<Line> = LazyLock::new(|| Line::new(Position::initial()));

/// What sensing has to know of a table on which this game is open.
pub(super) fn context<'a>(
    settings: &Settings,
    abilities: board::Abilities,
    game: Option<&'a Game>,
    setting_up: bool,
    clock: &clock::Tracker,
) -> Context<'a> {
    const SHORT_MS: u64 = 20_000;
    let Some(game) = game else {
        return Context {
            line: &NO_LINE,
            following: false,
            setting_up,
            has_clock: false,
            unstarted: false,
            can_dump: false,
            time_trouble: false,
        };
    };
    let short = |wing: Wing| {
        clock
            .display(wing)
            .is_some_and(|display| display.ms < SHORT_MS)
    };
    Context {
        line: &game.line,
        following: game.is_followed(),
        setting_up,
        has_clock: game.clocks.used,
        unstarted: clock.is_attached() && !game.clocks.used,
        // A trace whose silence means nothing answers no question: what is waited for would never come.
        can_dump: abilities.dumps && settings.watch == Watch::Judge,
        time_trouble: clock.is_running() && clock.to_move().is_some_and(short),
    }
}

/// So many timers fire at one moment at most; each firing either disarms itself or moves on.
const MOST_AT_ONCE: u32 = 100;
