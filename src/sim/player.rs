//! A board and a clock on a virtual table, with the hands at work: script in, bytes out.

use std::collections::VecDeque;

use fastrand::Rng;
use shakmaty::{Outcome, Piece, Square};

use super::board::VirtualBoard;
use super::clock::{ChessClock, ClockControl};
use super::scan::{Scanner, Sweep};
use super::script::{Act, GameTruth, Script};
use crate::Millis;
use crate::wire::Family;

/// How a virtual table is furnished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// What the board speaks, where no board is given.
    pub family: Family,
    /// Black sits with the connector at his left hand, so that the board counts its squares from the other end.
    pub rotated: bool,
    /// The control that the clock is set to; `None` for a table without a clock at the board. Boards that know of no clock leave it
    /// aside.
    pub control: Option<ClockControl>,
    /// How long the board takes for a scan: 200 to 250 ms as the boards on the market, 20 ms as boards of one's own make, or 0 to
    /// notice everything at once.
    pub scan_ms: Millis,
    /// In which order it looks.
    pub sweep: Sweep,
    /// How often the board asks the clock; real ones do so two or three times a second (protocol sheet 1).
    pub clock_poll_ms: Millis,
    /// How long the men stand still, watched by a host, before the game begins.
    pub lead_in_ms: Millis,
    /// Of 1000 changes that the board has noticed so many are never told; the next dump or scan has them.
    pub unsent_per_mille: u16,
    /// Picks the changes that are not told.
    pub seed: u64,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions::of(Family::Dgt)
    }
}

impl TableOptions {
    /// As boards of this family do it.
    pub fn of(family: Family) -> TableOptions {
        let (scan_ms, sweep) = match family {
            Family::Psb1 => (20, Sweep::Whole),
            Family::Dgt | Family::DgtBus | Family::Certabo | Family::Chesslink => {
                (220, Sweep::Rolling)
            }
        };
        TableOptions {
            family,
            rotated: false,
            control: None,
            scan_ms,
            sweep,
            clock_poll_ms: 400,
            lead_in_ms: 3_000,
            unsent_per_mille: 0,
            seed: 0,
        }
    }
}

/// Plays a script on a board.
///
/// The game begins once a host watches the board and the men have stood for the lead-in; from then on it goes
/// on whether the host listens or not, as players do not wait for a computer.
///
/// Feed it [`handle_host`](Player::handle_host) and [`handle_timeout`](Player::handle_timeout), and after each of them drain
/// [`poll_output`](Player::poll_output) and ask [`poll_timeout`](Player::poll_timeout) when to come back. A timeout that comes early
/// is harmless, one that comes late does everything as of its own time; time never runs backwards.
#[derive(Debug)]
pub struct Player {
    script: Script,
    /// The action that comes next.
    next: usize,
    phase: Phase,
    board: VirtualBoard,
    /// The boards that come to this table later, the next one first.
    spares: VecDeque<VirtualBoard>,
    plugged: bool,
    rotated: bool,
    /// What stands on the table, whoever sees it.
    men: [Option<Piece>; 64],
    lead_in_ms: Millis,
    /// How the table's own boards look at it.
    looks: Looks,
    scanner: Scanner<Option<Piece>>,
    clock: Option<Clock>,
    unsent_per_mille: u16,
    chance: Rng,
    output: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
}

/// What happens at a table beside the squares and the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The line is cut; what was on it is lost.
    Unplugged,
    /// There is a line again, perhaps to another board, which waits to be asked.
    Plugged,
    /// The hall's computer is told the pairing of this round.
    Paired { round: u8 },
    /// The arbiter enters a result there.
    Result { result: Outcome },
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Nobody watches the board.
    Unwatched,
    /// The game begins at this time unless the host turns away.
    Waiting { begin_ms: Millis },
    /// The script's time 0.
    Playing { origin_ms: Millis },
}

/// How boards of one family look at their squares on this table.
#[derive(Debug, Clone, Copy)]
struct Looks {
    family: Family,
    sweep: Sweep,
    scan_ms: Millis,
}

impl Looks {
    fn of(family: Family, options: &TableOptions) -> Looks {
        let TableOptions { sweep, scan_ms, .. } = *options;
        Looks {
            family,
            sweep,
            scan_ms,
        }
    }

    fn scanner<T: Copy + PartialEq>(self, squares: [T; 64]) -> Scanner<T> {
        Scanner::new(self.sweep, self.scan_ms, squares)
    }
}

#[derive(Debug)]
struct Clock {
    clock: ChessClock,
    poll_ms: Millis,
    next_poll_ms: Millis,
}

impl Player {
    /// A table with the script's men standing on `board`.
    pub fn new(
        now: Millis,
        script: Script,
        board: impl Into<VirtualBoard>,
        options: &TableOptions,
    ) -> Player {
        let mut board = board.into();
        let mut men = [None; 64];
        for square in Square::ALL {
            men[square.to_usize()] = script.start.piece_at(square);
        }
        let numbered = numbered(&board, &men, options.rotated);
        let told = board.set_up(now, &numbered);
        let control = options.control.clone();
        let looks = Looks::of(board.family(), options);
        let mut player = Player {
            looks,
            scanner: looks.scanner(numbered),
            next: 0,
            phase: Phase::Unwatched,
            board,
            spares: VecDeque::new(),
            plugged: true,
            rotated: options.rotated,
            men,
            lead_in_ms: options.lead_in_ms,
            clock: control.map(|control| Clock {
                clock: ChessClock::new(control),
                poll_ms: options.clock_poll_ms.max(1),
                next_poll_ms: now,
            }),
            unsent_per_mille: options.unsent_per_mille,
            chance: Rng::with_seed(options.seed),
            output: VecDeque::new(),
            events: VecDeque::new(),
            script,
        };
        player.tell(told);
        player.poll_clock(now);
        player
    }

    /// With the boards that are put on this table one after the other; where none is left, the same one is plugged in again.
    pub fn with_spares(mut self, spares: impl IntoIterator<Item = VirtualBoard>) -> Player {
        self.spares = spares.into_iter().collect();
        self
    }

    /// Takes what the host sent.
    pub fn handle_host(&mut self, now: Millis, bytes: &[u8]) {
        self.handle_timeout(now);
        if !self.plugged {
            return;
        }
        let answer = self.board.handle_host(now, bytes);
        self.tell(answer);
        let watched = self.board.is_watched();
        self.phase = match self.phase {
            Phase::Unwatched if watched => Phase::Waiting {
                begin_ms: now + self.lead_in_ms,
            },
            Phase::Waiting { .. } if !watched => Phase::Unwatched,
            phase => phase,
        };
    }

    /// Does everything that is due by `now`, each at its own time.
    pub fn handle_timeout(&mut self, now: Millis) {
        while let Some(due) = self.poll_timeout().filter(|&due| due <= now) {
            self.fire(due);
        }
    }

    /// When something happens next, unless the host sends something.
    pub fn poll_timeout(&self) -> Option<Millis> {
        let action = match self.phase {
            Phase::Unwatched => None,
            Phase::Waiting { begin_ms } => Some(begin_ms),
            Phase::Playing { origin_ms } => self
                .script
                .actions
                .get(self.next)
                .map(|action| origin_ms + action.at_ms),
        };
        let clock = self.clock.as_ref().map(|clock| clock.next_poll_ms);
        let board = self.board.poll_timeout();
        [action, self.scanner.poll_timeout(), clock, board]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next message of the board to its host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.output.pop_front()
    }

    /// What else has happened at the table.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the script has been played to its end and the board has seen all of it. The board goes on answering.
    pub fn is_finished(&self) -> bool {
        self.next == self.script.actions.len()
            && matches!(self.phase, Phase::Playing { .. })
            && self.scanner.poll_timeout().is_none()
    }

    /// When the script's time 0 was; `None` before.
    pub fn began_ms(&self) -> Option<Millis> {
        match self.phase {
            Phase::Playing { origin_ms } => Some(origin_ms),
            Phase::Unwatched | Phase::Waiting { .. } => None,
        }
    }

    /// What is really played, in the script's time.
    pub fn truth(&self) -> &[GameTruth] {
        &self.script.games
    }

    pub fn board(&self) -> &VirtualBoard {
        &self.board
    }

    fn fire(&mut self, now: Millis) {
        if let Phase::Waiting { begin_ms } = self.phase
            && begin_ms <= now
        {
            self.phase = Phase::Playing {
                origin_ms: begin_ms,
            };
        }
        if let Phase::Playing { origin_ms } = self.phase {
            while let Some(action) = self.script.actions.get(self.next)
                && origin_ms + action.at_ms <= now
            {
                let kind = action.kind;
                self.next += 1;
                self.act(now, kind);
            }
        }
        while let Some(look) = self.scanner.poll_look(now) {
            let mut told = self.board.handle_look(now, &look);
            told.retain(|_| self.chance.u16(..1000) >= self.unsent_per_mille);
            self.tell(told);
        }
        if self.board.poll_timeout().is_some_and(|due| due <= now) {
            let told = self.board.handle_timeout(now);
            self.tell(told);
        }
        if self
            .clock
            .as_ref()
            .is_some_and(|clock| clock.next_poll_ms <= now)
        {
            self.poll_clock(now);
        }
    }

    fn act(&mut self, now: Millis, act: Act) {
        match act {
            Act::Square { square, piece } => {
                self.men[square.to_usize()] = piece;
                let number = self.board.number(square, self.rotated);
                self.scanner.change(now, number, piece);
            }
            Act::Press { side } => self.with_clock(|clock| clock.press(now, side)),
            Act::ClockStop => self.with_clock(|clock| clock.stop(now)),
            Act::ClockStart { side } => self.with_clock(|clock| clock.start(now, side)),
            Act::ClockReset => self.with_clock(|clock| clock.reset(now)),
            Act::Unplugged => {
                self.plugged = false;
                self.output.clear();
                self.events.push_back(Event::Unplugged);
            }
            Act::Plugged { rotated } => self.plug(now, rotated),
            Act::Paired { round } => self.events.push_back(Event::Paired { round }),
            Act::Result { result } => self.events.push_back(Event::Result { result }),
        }
    }

    fn with_clock(&mut self, act: impl FnOnce(&mut ChessClock)) {
        if let Some(Clock { clock, .. }) = &mut self.clock {
            act(clock);
        }
    }

    /// The next board stands on the table, and the men on it.
    fn plug(&mut self, now: Millis, rotated: bool) {
        if let Some(board) = self.spares.pop_front() {
            self.board = board;
        }
        self.rotated = rotated;
        let men = numbered(&self.board, &self.men, rotated);
        let family = self.board.family();
        let looks = match family == self.looks.family {
            true => self.looks,
            false => Looks::of(family, &TableOptions::of(family)),
        };
        self.scanner = looks.scanner(men);
        let told = self.board.set_up(now, &men);
        self.plugged = true;
        self.events.push_back(Event::Plugged);
        self.tell(told);
    }

    /// The board asks the clock what it shows.
    fn poll_clock(&mut self, now: Millis) {
        let Some(clock) = &mut self.clock else {
            return;
        };
        clock.next_poll_ms = now + clock.poll_ms;
        clock.clock.advance(now);
        let told = self.board.handle_clock(clock.clock.face(self.rotated));
        self.tell(vec![told]);
    }

    fn tell(&mut self, messages: Vec<Vec<u8>>) {
        if !self.plugged {
            return;
        }
        let messages = messages.into_iter().filter(|bytes| !bytes.is_empty());
        self.output.extend(messages);
    }
}

/// The men as a board that stands this way round numbers its squares.
fn numbered(board: &VirtualBoard, men: &[Option<Piece>; 64], rotated: bool) -> [Option<Piece>; 64] {
    let mut numbered = [None; 64];
    for square in Square::ALL {
        numbered[board.number(square, rotated)] = men[square.to_usize()];
    }
    numbered
}
