//! A board and a clock on a virtual table, with the hands at work: script in, bytes out.

use std::collections::VecDeque;

use fastrand::Rng;
use shakmaty::{Color, Piece, Role, Square};

use super::clock::{ChessClock, ClockControl, ClockFace, SideFace};
use super::scan::Scanner;
use super::script::{Act, GameTruth, Script};
use crate::Millis;
use crate::wire::dgt::{BwTime, Mode, PieceCode, RawSquare, SideTime, VirtualBoard};

/// How a virtual table is furnished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// Black sits with the connector at his left hand, so that the board counts its squares from the other end.
    pub rotated: bool,
    /// The control that the clock is set to; `None` for a table without a clock at the board.
    pub control: Option<ClockControl>,
    /// How long the board takes for a scan: 200 to 250 ms as the boards on the market, or 0 to notice everything at once.
    pub scan_ms: Millis,
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
        TableOptions {
            rotated: false,
            control: None,
            scan_ms: 220,
            clock_poll_ms: 400,
            lead_in_ms: 3_000,
            unsent_per_mille: 0,
            seed: 0,
        }
    }
}

/// Plays a script on a board.
///
/// The game begins once the host has put the board into an update mode and the men have stood for the lead-in; from then on it goes
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
    rotated: bool,
    lead_in_ms: Millis,
    scanner: Scanner<PieceCode>,
    clock: Option<Clock>,
    unsent_per_mille: u16,
    chance: Rng,
    output: VecDeque<Vec<u8>>,
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

#[derive(Debug)]
struct Clock {
    clock: ChessClock,
    poll_ms: Millis,
    next_poll_ms: Millis,
}

impl Player {
    /// A table with the script's men standing on `board`.
    pub fn new(now: Millis, script: Script, board: VirtualBoard, options: &TableOptions) -> Player {
        let mut player = Player {
            scanner: Scanner::new(options.scan_ms, [PieceCode::Empty; 64]),
            next: 0,
            phase: Phase::Unwatched,
            board,
            rotated: options.rotated,
            lead_in_ms: options.lead_in_ms,
            clock: options.control.clone().map(|control| Clock {
                clock: ChessClock::new(control),
                poll_ms: options.clock_poll_ms.max(1),
                next_poll_ms: now,
            }),
            unsent_per_mille: options.unsent_per_mille,
            chance: Rng::with_seed(options.seed),
            output: VecDeque::new(),
            script,
        };
        let mut squares = [PieceCode::Empty; 64];
        for square in Square::ALL {
            let raw = player.raw(square);
            let piece = code(player.script.start.piece_at(square));
            squares[usize::from(raw.index())] = piece;
            let told = player.board.set_square(raw, piece);
            player.tell(told);
        }
        player.scanner = Scanner::new(options.scan_ms, squares);
        player.poll_clock(now);
        player
    }

    /// Takes what the host sent.
    pub fn handle_host(&mut self, now: Millis, bytes: &[u8]) {
        self.handle_timeout(now);
        let answer = self.board.handle_host(bytes);
        self.tell(answer);
        let watched = self.board.mode() != Mode::Idle;
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
        [action, self.scanner.poll_timeout(), clock]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next message of the board to its host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.output.pop_front()
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
        while let Some((square, piece)) = self.scanner.poll(now) {
            let raw = u8::try_from(square).ok().and_then(RawSquare::new);
            let told = self
                .board
                .set_square(raw.expect("the scanner has 64 squares"), piece);
            if self.chance.u16(..1000) >= self.unsent_per_mille {
                self.tell(told);
            }
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
        if let Act::Square { square, piece } = act {
            let raw = usize::from(self.raw(square).index());
            self.scanner.change(now, raw, code(piece));
            return;
        }
        let Some(Clock { clock, .. }) = &mut self.clock else {
            return;
        };
        match act {
            Act::Press { side } => clock.press(now, side),
            Act::ClockStop => clock.stop(now),
            Act::ClockStart { side } => clock.start(now, side),
            Act::ClockReset => clock.reset(now),
            Act::Square { .. } => {}
        }
    }

    /// The board asks the clock what it shows.
    fn poll_clock(&mut self, now: Millis) {
        let Some(clock) = &mut self.clock else {
            return;
        };
        clock.next_poll_ms = now + clock.poll_ms;
        clock.clock.advance(now);
        let told = self
            .board
            .set_clock(Some(clock.clock.face(self.rotated).into()));
        self.tell(told);
    }

    fn tell(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.output.push_back(bytes);
        }
    }

    /// The board counts from a8 along the ranks, or from h1 if it is turned (protocol sheet 3.3).
    fn raw(&self, square: Square) -> RawSquare {
        let index = u8::try_from(square.flip_vertical().to_u32()).ok();
        let raw = index
            .and_then(RawSquare::new)
            .expect("a board has 64 squares");
        if self.rotated { raw.turned() } else { raw }
    }
}

impl From<ClockFace> for BwTime {
    fn from(face: ClockFace) -> BwTime {
        BwTime {
            right: face.right.into(),
            left: face.left.into(),
            running: face.running,
            right_up: face.right_up,
            battery_low: false,
        }
    }
}

impl From<SideFace> for SideTime {
    fn from(face: SideFace) -> SideTime {
        SideTime {
            hours: face.hours,
            minutes: face.minutes,
            seconds: face.seconds,
            flag_halted: face.halted,
            increment: face.increment,
            flag_shown: face.flag_shown,
        }
    }
}

fn code(piece: Option<Piece>) -> PieceCode {
    let Some(Piece { color, role }) = piece else {
        return PieceCode::Empty;
    };
    match (color, role) {
        (Color::White, Role::Pawn) => PieceCode::WhitePawn,
        (Color::White, Role::Knight) => PieceCode::WhiteKnight,
        (Color::White, Role::Bishop) => PieceCode::WhiteBishop,
        (Color::White, Role::Rook) => PieceCode::WhiteRook,
        (Color::White, Role::Queen) => PieceCode::WhiteQueen,
        (Color::White, Role::King) => PieceCode::WhiteKing,
        (Color::Black, Role::Pawn) => PieceCode::BlackPawn,
        (Color::Black, Role::Knight) => PieceCode::BlackKnight,
        (Color::Black, Role::Bishop) => PieceCode::BlackBishop,
        (Color::Black, Role::Rook) => PieceCode::BlackRook,
        (Color::Black, Role::Queen) => PieceCode::BlackQueen,
        (Color::Black, Role::King) => PieceCode::BlackKing,
    }
}
