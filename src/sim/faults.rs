//! What goes wrong at a table where hands are faulty, and how it is put right.
//!
//! A fault of a [`Fault`] kind comes before a move, while its player thinks; a [`Slip`] is in the move itself, and the clock is pressed
//! over it. Whatever it is, what then stands on the board is no position that legal play could have led to, or nobody could say
//! afterwards what was played.

mod illegal;
mod slips;

use shakmaty::{
    Board, CastlingMode, Chess, Color, FromSetup, Move, Piece, Position, Rank, Role, Setup, Square,
};

use super::hands::Hands;
use super::pgn::SimGame;
use super::scene::Scene;
use super::script::{Act, GameTruth, Incident, IncidentKind, Table};
use illegal::{Explained, with};

/// What goes wrong before a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    IllegalPressed,
    OutOfTurn,
    Displaced,
    PressedWithoutMove,
    Retracted,
    TakenBack,
    Flicker,
    Misread,
    DeadSquare,
}

/// What goes wrong in a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slip {
    BesideSquare,
    HalfCastled,
    PawnLeft,
    VictimForgotten,
    WrongColour,
}

/// Where a game is when something goes wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation<'a> {
    pub position: &'a Chess,
    /// The position before the last move.
    pub before: Option<&'a Chess>,
    /// The one before that.
    pub earlier: Option<&'a Chess>,
    /// The last move.
    pub last: Option<Move>,
    /// The moves to come; the first is due.
    pub coming: &'a [Move],
    pub ply: usize,
}

impl Hands {
    /// The game's scene with faults strewn in. None comes so soon after another that one could take the blame for the other.
    pub(super) fn with_faults(&mut self, scene: &Scene, game: &SimGame) -> Scene {
        let mut scene = scene.clone();
        let plies = game.moves.len();
        let stands = (plies > 12 && self.chance(STANDING))
            .then(|| self.between(plies as u64 / 3, plies as u64) as usize);
        let mut free = FIRST_FAULT;
        for (i, m) in game.moves.iter().enumerate() {
            let ply = i + 1;
            if stands == Some(ply) {
                return scene.illegal_stands(ply);
            }
            if ply < free || stands.is_some_and(|stands| ply + DEAD_PLIES + SPACING > stands) {
                continue;
            }
            let slip = self.slip_for(*m);
            if let Some(slip) = slip {
                scene = scene.slip(ply, slip);
            } else if self.chance(FAULTS) {
                scene = self.strew(scene, ply);
            } else {
                continue;
            }
            free = ply + SPACING;
            if scene.has_dead_square(ply) {
                free += DEAD_PLIES;
            }
        }
        scene
    }

    /// The slip that a move invites.
    fn slip_for(&mut self, m: Move) -> Option<Slip> {
        if m.is_castle() && self.chance(400) {
            Some(Slip::HalfCastled)
        } else if m.is_en_passant() && self.chance(500) {
            Some(Slip::VictimForgotten)
        } else if m.is_promotion() && self.chance(500) {
            Some(if self.chance(600) {
                Slip::PawnLeft
            } else {
                Slip::WrongColour
            })
        } else if !m.is_castle() && !m.is_en_passant() && !m.is_promotion() && self.chance(BESIDE) {
            Some(Slip::BesideSquare)
        } else {
            None
        }
    }

    fn strew(&mut self, scene: Scene, ply: usize) -> Scene {
        let fault = self.choose(&[
            (240, Some(Fault::IllegalPressed)),
            (120, Some(Fault::OutOfTurn)),
            (120, Some(Fault::Displaced)),
            (80, Some(Fault::PressedWithoutMove)),
            (110, Some(Fault::Retracted)),
            (90, Some(Fault::TakenBack)),
            (60, Some(Fault::Flicker)),
            (50, Some(Fault::Misread)),
            (40, Some(Fault::DeadSquare)),
            (90, None),
        ]);
        match fault {
            Some(fault) => scene.fault(ply, fault),
            None if self.chance(400) => scene.illegal_then_corrected_before_press(ply),
            None => scene.knocked_over_and_put_back(ply),
        }
    }

    /// Acts out a fault; `None` if the position gives no occasion.
    pub(super) fn fault(
        &mut self,
        table: &mut Table,
        fault: Fault,
        s: &Situation,
    ) -> Option<Incident> {
        match fault {
            Fault::IllegalPressed => self.illegal_pressed(table, s),
            Fault::OutOfTurn => self.out_of_turn(table, s),
            Fault::Displaced => self.displaced(table, s),
            Fault::PressedWithoutMove => self.pressed_without_move(table, s),
            Fault::Retracted => self.retracted(table, s),
            Fault::TakenBack => self.taken_back(table, s),
            Fault::Flicker => self.flicker(table, s, IncidentKind::Flicker),
            Fault::Misread => self.flicker(table, s, IncidentKind::Misread),
            Fault::DeadSquare => self.dead_square(table, s),
        }
    }

    fn illegal_pressed(&mut self, table: &mut Table, s: &Situation) -> Option<Incident> {
        let side = s.position.turn();
        let illegal = self.illegal(table, s)?;
        let outline = !Explained::new(s).has_outline(&illegal.board);
        let from_ms = table.now;
        self.change(table, &illegal.changes);
        table.wait(self.between(300, 900));
        table.act(Act::Press { side });
        let due_ms = table.now;
        table.wait(self.between(5_500, 8_000));
        table.act(Act::ClockStop);
        table.wait(self.between(2_000, 4_000));
        self.set_up(table, s.position.board());
        let to_ms = table.now;
        table.wait(self.between(2_000, 4_000));
        table.act(Act::ClockStart { side });
        Some(Incident {
            kind: IncidentKind::IllegalPressedThenRestored,
            ply: s.ply,
            side: Some(side),
            squares: illegal.squares(),
            breach: Some(illegal.breach),
            from_ms,
            due_ms: Some(due_ms),
            to_ms: Some(to_ms),
            in_outline: outline,
        })
    }

    /// An illegal move that nobody objects to, and some more moves from there; the game's own moves are played no more.
    pub(super) fn illegal_that_stands(
        &mut self,
        table: &mut Table,
        s: &Situation,
    ) -> Option<Incident> {
        let side = s.position.turn();
        let illegal = self.illegal(table, s)?;
        let from_ms = table.now;
        self.change(table, &illegal.changes);
        table.wait(self.between(300, 900));
        table.act(Act::Press { side });
        let due_ms = table.now;
        let mode = s.position.castles().mode();
        let mut position = played_on(&illegal.board, side.other(), mode);
        for _ in 0..self.between(2, 8) {
            table.wait(self.between(1_500, 6_000));
            let Some(next) = position.take() else { break };
            let Some(m) = self.any(next.legal_moves().into_iter().collect()) else {
                break;
            };
            self.play(table, &next, m, &mut Vec::new());
            table.wait(self.between(150, 1_200));
            table.act(Act::Press { side: next.turn() });
            let mut after = next;
            after.play_unchecked(m);
            position = Some(after);
        }
        table.wait(self.between(5_000, 7_000));
        Some(Incident {
            kind: IncidentKind::IllegalStands,
            ply: s.ply,
            side: Some(side),
            squares: illegal.squares(),
            breach: Some(illegal.breach),
            from_ms,
            due_ms: Some(due_ms),
            to_ms: None,
            in_outline: !Explained::new(s).has_outline(&illegal.board),
        })
    }

    fn out_of_turn(&mut self, table: &mut Table, s: &Situation) -> Option<Incident> {
        let other = s.position.clone().swap_turn().ok()?;
        let explained = Explained::new(s);
        let moves = other
            .legal_moves()
            .into_iter()
            .filter(|m| !m.is_capture() && !m.is_promotion() && !m.is_castle())
            .filter_map(|m| Some((m.from()?, m.to())))
            .filter(|&(from, to)| {
                s.last.is_none_or(|last| last.to() != from)
                    && !explained.has(&moved(table, from, to))
                    && table.is_free(to)
            })
            .collect();
        let (from, to) = self.any(moves)?;
        self.there_and_back(
            table,
            s,
            (from, to),
            IncidentKind::OutOfTurn,
            Some(other.turn()),
        )
    }

    fn displaced(&mut self, table: &mut Table, s: &Situation) -> Option<Incident> {
        let explained = Explained::new(s);
        let mut ways: Vec<(Square, Square)> = Vec::new();
        for (from, piece) in table.board.clone() {
            for to in !table.board.occupied() {
                let waits =
                    piece.role == Role::Pawn && [Rank::First, Rank::Eighth].contains(&to.rank());
                if !waits && table.is_free(to) && !explained.has(&moved(table, from, to)) {
                    ways.push((from, to));
                }
            }
        }
        let way = self.any(ways)?;
        self.there_and_back(table, s, way, IncidentKind::Displaced, None)
    }

    /// A man goes somewhere, is noticed there, and goes back.
    fn there_and_back(
        &mut self,
        table: &mut Table,
        s: &Situation,
        (from, to): (Square, Square),
        kind: IncidentKind,
        side: Option<Color>,
    ) -> Option<Incident> {
        let in_outline = !Explained::new(s).has_outline(&moved(table, from, to));
        let from_ms = table.now;
        let piece = table.lift(from)?;
        table.wait(self.hand_ms());
        table.place(to, piece);
        let due_ms = table.now;
        table.wait(self.between(6_000, 9_000));
        table.lift(to);
        table.wait(self.hand_ms());
        table.place(from, piece);
        Some(Incident {
            kind,
            ply: s.ply,
            side,
            squares: vec![from, to],
            breach: None,
            from_ms,
            due_ms: Some(due_ms),
            to_ms: Some(table.now),
            in_outline,
        })
    }

    fn pressed_without_move(&mut self, table: &mut Table, s: &Situation) -> Option<Incident> {
        let side = s.position.turn();
        let from_ms = table.now;
        table.act(Act::Press { side });
        table.wait(self.between(3_000, 5_000));
        table.act(Act::ClockStop);
        table.wait(self.between(2_000, 4_000));
        table.act(Act::ClockStart { side });
        Some(Incident {
            kind: IncidentKind::PressedWithoutMove,
            ply: s.ply,
            side: Some(side),
            squares: Vec::new(),
            breach: None,
            from_ms,
            due_ms: Some(from_ms),
            to_ms: Some(table.now),
            in_outline: true,
        })
    }

    fn retracted(&mut self, table: &mut Table, s: &Situation) -> Option<Incident> {
        let due = *s.coming.first()?;
        let moves = s
            .position
            .legal_moves()
            .into_iter()
            .filter(|m| !m.is_capture() && !m.is_promotion() && !m.is_castle())
            .filter(|m| m.from() != due.from() && table.is_free(m.to()))
            .collect();
        let m: Move = self.any(moves)?;
        let from = m.from()?;
        let from_ms = table.now;
        let piece = table.lift(from)?;
        table.wait(self.hand_ms());
        table.place(m.to(), piece);
        table.wait(self.between(700, 2_500));
        table.lift(m.to());
        table.wait(self.hand_ms());
        table.place(from, piece);
        Some(Incident {
            kind: IncidentKind::Retracted,
            ply: s.ply,
            side: Some(s.position.turn()),
            squares: vec![from, m.to()],
            breach: None,
            from_ms,
            due_ms: None,
            to_ms: Some(table.now),
            in_outline: false,
        })
    }

    /// One or two completed plies that do not stay.
    fn taken_back(&mut self, table: &mut Table, s: &Situation) -> Option<Incident> {
        let due = *s.coming.first()?;
        let side = s.position.turn();
        let from_ms = table.now;
        let mut position = s.position.clone();
        let mut squares = Vec::new();
        for _ in 0..self.between(1, 2) {
            let moves = position
                .legal_moves()
                .into_iter()
                .filter(|m| !m.is_promotion() && (m.from(), m.to()) != (due.from(), due.to()))
                .collect();
            let Some(m) = self.any(moves) else { break };
            self.play(table, &position, m, &mut Vec::new());
            table.wait(self.between(150, 1_200));
            table.act(Act::Press {
                side: position.turn(),
            });
            squares.extend(m.from());
            squares.push(m.to());
            position.play_unchecked(m);
            table.wait(self.between(2_000, 5_000));
        }
        if squares.is_empty() {
            return None;
        }
        table.act(Act::ClockStop);
        table.wait(self.between(1_000, 3_000));
        self.set_up(table, s.position.board());
        table.wait(self.between(2_000, 3_500));
        table.act(Act::ClockStart { side });
        Some(Incident {
            kind: IncidentKind::TakenBack,
            ply: s.ply,
            side: Some(side),
            squares,
            breach: None,
            from_ms,
            due_ms: None,
            to_ms: Some(table.now),
            in_outline: false,
        })
    }

    /// A square shows for a moment what is not there; the men have not moved.
    fn flicker(
        &mut self,
        table: &mut Table,
        s: &Situation,
        kind: IncidentKind,
    ) -> Option<Incident> {
        let square = self.pick(table.board.occupied())?;
        let piece = table.board.piece_at(square)?;
        let shown = match kind {
            IncidentKind::Misread => {
                let others = [
                    Role::Pawn,
                    Role::Knight,
                    Role::Bishop,
                    Role::Rook,
                    Role::Queen,
                ];
                let others: Vec<Piece> = others
                    .into_iter()
                    .flat_map(|role| [role.of(Color::White), role.of(Color::Black)])
                    .filter(|&other| other != piece)
                    .collect();
                self.any(others)
            }
            _ => None,
        };
        let from_ms = table.now;
        table.act(Act::Square {
            square,
            piece: shown,
        });
        table.wait(self.between(40, 180));
        table.act(Act::Square {
            square,
            piece: Some(piece),
        });
        Some(Incident {
            kind,
            ply: s.ply,
            side: None,
            squares: vec![square],
            breach: None,
            from_ms,
            due_ms: None,
            to_ms: Some(table.now),
            in_outline: false,
        })
    }

    /// A man that nothing can take and that stands still for some moves is seen no more.
    fn dead_square(&mut self, table: &mut Table, s: &Situation) -> Option<Incident> {
        if s.coming.len() <= DEAD_PLIES {
            return None;
        }
        let mut still = table.board.occupied();
        let mut position = s.position.clone();
        for &m in &s.coming[..DEAD_PLIES] {
            for turned in [Some(position.clone()), position.clone().swap_turn().ok()] {
                let Some(turned) = turned else { continue };
                for taking in turned.legal_moves().into_iter().filter(|m| m.is_capture()) {
                    still.discard(taking.to());
                }
            }
            still.discard(m.to());
            if let Some(from) = m.from() {
                still.discard(from);
            }
            position.play_unchecked(m);
            still &= position.board().occupied();
        }
        let square = self.pick(still)?;
        let side = table.board.color_at(square);
        let from_ms = table.now;
        table.go_dead(square);
        Some(Incident {
            kind: IncidentKind::DeadSquare,
            ply: s.ply,
            side,
            squares: vec![square],
            breach: None,
            from_ms,
            due_ms: None,
            to_ms: None,
            in_outline: true,
        })
    }

    /// Squares that have been dead for long enough are well again. A man that is gone can be in a hand, until his side has completed
    /// another move without him.
    pub(super) fn heal(&mut self, table: &mut Table, truth: &mut GameTruth, ply: usize) {
        let GameTruth {
            plies, incidents, ..
        } = truth;
        let dead = incidents.iter_mut().filter(|incident| {
            incident.kind == IncidentKind::DeadSquare
                && incident.to_ms.is_none()
                && incident.ply + DEAD_PLIES <= ply
        });
        for incident in dead {
            for &square in &incident.squares {
                table.come_alive(square);
            }
            incident.to_ms = Some(table.now);
            incident.due_ms = plies
                .iter()
                .filter(|played| {
                    incident.side == Some(played.side) && played.touched_ms > incident.from_ms
                })
                .filter_map(|played| played.pressed_ms)
                .nth(1);
        }
    }

    /// Makes changes one after the other, as a hand does.
    fn change(&mut self, table: &mut Table, changes: &[(Square, Option<Piece>)]) {
        for (i, &(square, piece)) in changes.iter().enumerate() {
            if i > 0 {
                table.wait(self.hand_ms());
            }
            match piece {
                Some(piece) => table.place(square, piece),
                None => {
                    table.lift(square);
                }
            }
        }
    }

    fn any<T>(&mut self, mut from: Vec<T>) -> Option<T> {
        let count = from.len() as u64;
        (count > 0).then(|| {
            let index = self.between(0, count - 1) as usize;
            from.swap_remove(index)
        })
    }
}

/// The game as it goes on from a board; none where the king of the side that has not the move could be taken.
fn played_on(board: &Board, turn: Color, mode: CastlingMode) -> Option<Chess> {
    let setup = Setup {
        board: board.clone(),
        turn,
        ..Setup::empty()
    };
    Chess::from_setup(setup, mode).ok()
}

fn moved(table: &Table, from: Square, to: Square) -> Board {
    with(
        &table.board,
        &[(from, None), (to, table.board.piece_at(from))],
    )
}

/// No fault before this ply: the first press of all may come late, and the first moves are often played at once.
const FIRST_FAULT: usize = 4;

/// So many plies lie between one fault and the next.
const SPACING: usize = 4;

/// Of 1000 moves between them so many have a fault before them.
const FAULTS: u64 = 60;

/// Of 1000 moves that are neither castling nor promotion nor en passant so many end beside their square.
const BESIDE: u64 = 8;

/// Of 1000 games so many have an illegal move that stands.
const STANDING: u64 = 200;

/// A dead square comes back after so many plies.
const DEAD_PLIES: usize = 6;
