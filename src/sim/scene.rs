//! What happens beside the moves: incidents that a person would have to look at, and what players do when the game is over.

use shakmaty::{
    Bitboard, Board, Chess, Color, Move, Outcome, Piece, Position, Role, Square, attacks,
};

use super::faults::{Fault, Situation, Slip};
use super::hands::Hands;
use super::pgn::SimGame;
use super::script::{Act, Incident, IncidentKind, Table};
use crate::Millis;

/// What to add to a game. Each method adds one thing; what stands before a ply that the game does not have is left out, and endings
/// come in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    moments: Vec<(usize, Moment)>,
    slips: Vec<(usize, Slip)>,
    /// Before this ply an illegal move is made that stands.
    stands: Option<usize>,
    /// The first move is made before the clock is started.
    early: bool,
    /// For the pawn of this ply the new man has to be fetched.
    fetched: Option<usize>,
    endings: Vec<Ending>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    IllegalThenCorrected(Option<Stray>),
    IllegalPressedThenRestored(Option<Stray>),
    KnockedOver,
    OneKnockedOver(Stray),
    Fault(Fault),
    Adjusted,
    Dispute,
}

/// A man that goes where it should not: from, to.
type Stray = (Square, Square);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Analysis,
    Reset,
    Kings(Outcome),
    Entered(Outcome),
    ForFun,
}

impl Scene {
    pub fn new() -> Scene {
        Scene::default()
    }

    /// Before `ply` its man is put where no legal move takes it; the player sees it himself and plays the right move.
    pub fn illegal_then_corrected_before_press(self, ply: usize) -> Scene {
        self.before(ply, Moment::IllegalThenCorrected(None))
    }

    /// Before `ply` the man on `from` is put on the empty square `to`, say a pinned one; the player sees it himself, puts it back and
    /// plays the right move.
    pub fn stray_then_corrected_before_press(self, ply: usize, from: Square, to: Square) -> Scene {
        self.before(ply, Moment::IllegalThenCorrected(Some((from, to))))
    }

    /// Before `ply` its man is put where no legal move takes it and the clock is pressed; the clock is stopped, the man put back, and
    /// the right move played (Article 7.5.1).
    pub fn illegal_pressed_then_restored(self, ply: usize) -> Scene {
        self.before(ply, Moment::IllegalPressedThenRestored(None))
    }

    /// Before `ply` the man on `from` is put on the empty square `to` and the clock is pressed; the clock is stopped, the man put back,
    /// and the right move played (Article 7.5.1).
    pub fn stray_pressed_then_restored(self, ply: usize, from: Square, to: Square) -> Scene {
        self.before(ply, Moment::IllegalPressedThenRestored(Some((from, to))))
    }

    /// Before `ply` some men fall and are put back a quarter of a minute later, in another order (Article 7.4).
    pub fn knocked_over_and_put_back(self, ply: usize) -> Scene {
        self.before(ply, Moment::KnockedOver)
    }

    /// Before `ply` the man on `from` is knocked onto the empty square `to`, and put back some seconds later (Article 7.4).
    pub fn one_knocked_over_and_put_back(self, ply: usize, from: Square, to: Square) -> Scene {
        self.before(ply, Moment::OneKnockedOver((from, to)))
    }

    /// After the game the players shake hands and move men about, the kings excepted.
    pub fn handshake_and_analysis(self) -> Scene {
        self.finally(Ending::Analysis)
    }

    /// After the game the men are set up again as it began.
    pub fn reset_to_start(self) -> Scene {
        self.finally(Ending::Reset)
    }

    /// After the game the kings are put into the centre to show the result: both on light squares White won, both on dark ones Black,
    /// one on each a draw. An unknown result shows nothing.
    pub fn result_kings(self, result: Outcome) -> Scene {
        if result.is_known() {
            self.finally(Ending::Kings(result))
        } else {
            self
        }
    }

    /// The first move is made before the clock is started.
    pub fn starts_early(mut self) -> Scene {
        self.early = true;
        self
    }

    /// Before `ply` some men are straightened on their squares, whosever they are (Article 4.2).
    pub fn men_adjusted(self, ply: usize) -> Scene {
        self.before(ply, Moment::Adjusted)
    }

    /// Before `ply` the clocks are stopped and the last moves taken back and made again, with another one in between, to show an
    /// arbiter what has happened; then the clocks run again.
    pub fn dispute(self, ply: usize) -> Scene {
        self.before(ply, Moment::Dispute)
    }

    /// At `ply`, a promotion, the pawn stands on the last rank and the clocks are stopped until the new man has been fetched
    /// (Article 6.11.2).
    pub fn man_fetched(mut self, ply: usize) -> Scene {
        self.fetched = Some(ply);
        self
    }

    /// After the game the arbiter enters its result.
    pub fn result_entered(self, result: Outcome) -> Scene {
        self.finally(Ending::Entered(result))
    }

    /// After the game the players set up again, play some moves with stopped clocks, and set up again (case J2).
    pub fn played_for_fun(self) -> Scene {
        self.finally(Ending::ForFun)
    }

    pub(super) fn fault(self, ply: usize, fault: Fault) -> Scene {
        self.before(ply, Moment::Fault(fault))
    }

    /// The move of this ply goes wrong.
    pub(super) fn slip(mut self, ply: usize, slip: Slip) -> Scene {
        self.slips.push((ply, slip));
        self
    }

    /// Before `ply` its side makes an illegal move to which nobody objects.
    pub(super) fn illegal_stands(mut self, ply: usize) -> Scene {
        self.stands = Some(ply);
        self
    }

    pub(super) fn has_dead_square(&self, ply: usize) -> bool {
        self.moments_before(ply)
            .contains(&Moment::Fault(Fault::DeadSquare))
    }

    pub(super) fn slip_at(&self, ply: usize) -> Option<Slip> {
        let (_, slip) = self.slips.iter().find(|(at, _)| *at == ply)?;
        Some(*slip)
    }

    pub(super) fn stands_at(&self, ply: usize) -> bool {
        self.stands == Some(ply)
    }

    pub(super) fn is_early(&self) -> bool {
        self.early
    }

    pub(super) fn is_fetched(&self, ply: usize) -> bool {
        self.fetched == Some(ply)
    }

    /// Whether nothing happens before this ply or in it but the move.
    pub(super) fn is_quiet(&self, ply: usize) -> bool {
        self.moments_before(ply).is_empty()
            && self.slip_at(ply).is_none()
            && !self.stands_at(ply)
            && !self.is_fetched(ply)
    }

    pub(super) fn moments_before(&self, ply: usize) -> Vec<Moment> {
        self.moments
            .iter()
            .filter(|(at, _)| *at == ply)
            .map(|&(_, moment)| moment)
            .collect()
    }

    pub(super) fn endings(&self) -> &[Ending] {
        &self.endings
    }

    fn before(mut self, ply: usize, moment: Moment) -> Scene {
        self.moments.push((ply, moment));
        self
    }

    fn finally(mut self, ending: Ending) -> Scene {
        self.endings.push(ending);
        self
    }
}

impl Hands {
    /// Acts out what happens before a move; `None` if the position gives no occasion.
    pub(super) fn moment(
        &mut self,
        table: &mut Table,
        moment: Moment,
        s: &Situation,
    ) -> Option<Incident> {
        let incident = match moment {
            Moment::IllegalThenCorrected(stray) => self.corrected(table, stray, s)?,
            Moment::IllegalPressedThenRestored(stray) => self.restored(table, stray, s)?,
            Moment::OneKnockedOver(stray) => self.one_knocked_over(table, stray, s)?,
            Moment::KnockedOver => self.knocked_over(table, s)?,
            Moment::Fault(fault) => self.fault(table, fault, s)?,
            Moment::Adjusted => {
                let from_ms = table.now;
                let squares = self.adjust(table, table.board.occupied());
                incident(IncidentKind::Adjusted, s, (from_ms, table.now), squares)
            }
            Moment::Dispute => self.dispute(table, s)?,
        };
        table.wait(self.between(1500, 3500));
        Some(incident)
    }

    fn corrected(
        &mut self,
        table: &mut Table,
        stray: Option<Stray>,
        s: &Situation,
    ) -> Option<Incident> {
        let from_ms = table.now;
        let (from, square, piece) = self.astray(table, stray, s)?;
        table.wait(self.between(2000, 4500));
        self.shift(table, square, from, piece);
        Some(Incident {
            side: Some(s.position.turn()),
            ..incident(
                IncidentKind::IllegalThenCorrected,
                s,
                (from_ms, table.now),
                vec![from, square],
            )
        })
    }

    fn restored(
        &mut self,
        table: &mut Table,
        stray: Option<Stray>,
        s: &Situation,
    ) -> Option<Incident> {
        let side = s.position.turn();
        let from_ms = table.now;
        let (from, square, piece) = self.astray(table, stray, s)?;
        table.wait(self.between(300, 900));
        table.act(Act::Press { side });
        let due_ms = table.now;
        table.wait(self.between(4000, 7000));
        table.act(Act::ClockStop);
        table.wait(self.between(2000, 4000));
        self.shift(table, square, from, piece);
        table.wait(self.between(2000, 4000));
        table.act(Act::ClockStart { side });
        Some(Incident {
            side: Some(side),
            due_ms: Some(due_ms),
            ..incident(
                IncidentKind::IllegalPressedThenRestored,
                s,
                (from_ms, table.now),
                vec![from, square],
            )
        })
    }

    /// Some of these men are straightened, one after the other.
    pub(super) fn adjust(&mut self, table: &mut Table, men: Bitboard) -> Vec<Square> {
        let mut squares: Vec<Square> = men.into_iter().collect();
        self.shuffle(&mut squares);
        squares.truncate(self.between(2, 4) as usize);
        for &square in &squares {
            if let Some(piece) = table.lift(square) {
                table.wait(self.between(100, 480));
                table.place(square, piece);
                table.wait(self.between(200, 800));
            }
        }
        squares
    }

    /// The last two moves are taken back, one is played that was not, and all is put back.
    fn dispute(&mut self, table: &mut Table, s: &Situation) -> Option<Incident> {
        let earlier = s.earlier?;
        let side = s.position.turn();
        let from_ms = table.now;
        table.act(Act::ClockStop);
        table.wait(self.between(1_500, 3_000));
        self.set_up(table, earlier.board());
        table.wait(self.between(500, 1_500));
        let moves: Vec<Move> = earlier.legal_moves().into_iter().collect();
        let mut quiet: Vec<Move> = moves
            .into_iter()
            .filter(|m| !m.is_capture() && !m.is_castle() && !m.is_promotion())
            .filter(|m| m.role() != Role::King)
            .collect();
        self.shuffle(&mut quiet);
        if let Some(m) = quiet.pop()
            && let Some(from) = m.from()
            && let Some(piece) = table.board.piece_at(from)
        {
            self.shift(table, from, m.to(), piece);
            table.wait(self.between(1_000, 2_000));
        }
        self.set_up(table, s.position.board());
        let to_ms = table.now;
        table.wait(self.between(1_500, 2_500));
        table.act(Act::ClockStart { side });
        Some(incident(
            IncidentKind::Dispute,
            s,
            (from_ms, to_ms),
            Vec::new(),
        ))
    }

    fn one_knocked_over(
        &mut self,
        table: &mut Table,
        (from, square): Stray,
        s: &Situation,
    ) -> Option<Incident> {
        if !table.is_free(square) {
            return None;
        }
        let from_ms = table.now;
        let piece = table.lift(from)?;
        table.wait(self.between(60, 200));
        table.place(square, piece);
        let due_ms = table.now;
        table.wait(self.between(5_000, 7_000));
        self.shift(table, square, from, piece);
        Some(Incident {
            due_ms: Some(due_ms),
            ..incident(
                IncidentKind::KnockedOver,
                s,
                (from_ms, table.now),
                vec![from, square],
            )
        })
    }

    fn knocked_over(&mut self, table: &mut Table, s: &Situation) -> Option<Incident> {
        let from_ms = table.now;
        let centre = self.pick(table.board.occupied())?;
        let mut near: Vec<Square> = table
            .board
            .occupied()
            .into_iter()
            .filter(|square| square.distance(centre) <= 2)
            .collect();
        self.shuffle(&mut near);
        near.truncate(5);
        let mut fallen: Vec<(Square, Piece)> = Vec::new();
        for &square in &near {
            if let Some(piece) = table.lift(square) {
                fallen.push((square, piece));
            }
            table.wait(self.between(20, 180));
        }
        // One man, or one of each side, can be in a hand.
        let due_ms = (near.len() > 2).then_some(table.now);
        table.wait(self.between(13_000, 17_000));
        self.shuffle(&mut fallen);
        for (square, piece) in fallen {
            table.place(square, piece);
            table.wait(self.between(400, 1100));
        }
        Some(Incident {
            due_ms,
            ..incident(IncidentKind::KnockedOver, s, (from_ms, table.now), near)
        })
    }

    pub(super) fn ending(
        &mut self,
        table: &mut Table,
        ending: &Ending,
        position: &Chess,
        game: &SimGame,
    ) -> Incident {
        table.wait(self.between(2000, 4000));
        let from_ms = table.now;
        let (kind, squares) = match *ending {
            Ending::Analysis => {
                self.analyse(table, position);
                (IncidentKind::Analysis, Vec::new())
            }
            Ending::Reset => {
                self.set_up(table, game.start.board());
                (IncidentKind::SetUp, Vec::new())
            }
            Ending::Kings(result) => (IncidentKind::ResultKings, self.show_result(table, result)),
            Ending::Entered(result) => {
                table.act(Act::Result { result });
                (IncidentKind::ResultEntered, Vec::new())
            }
            Ending::ForFun => {
                self.play_for_fun(table, &game.start);
                (IncidentKind::ForFun, Vec::new())
            }
        };
        let to_ms = table.now;
        table.wait(self.rest_ms());
        Incident {
            kind,
            ply: game.moves.len() + 1,
            side: None,
            squares,
            breach: None,
            from_ms,
            due_ms: None,
            to_ms: Some(to_ms),
            in_outline: true,
        }
    }

    /// Sets up `target` from whatever stands on the board: men that stand wrong are used first, the others come from the box.
    pub(super) fn set_up(&mut self, table: &mut Table, target: &Board) {
        let mut squares: Vec<Square> = target
            .occupied()
            .into_iter()
            .filter(|&square| target.piece_at(square) != table.board.piece_at(square))
            .collect();
        self.shuffle(&mut squares);
        for square in squares {
            let Some(piece) = target.piece_at(square) else {
                continue;
            };
            let source = table
                .board
                .by_piece(piece)
                .into_iter()
                .find(|&other| target.piece_at(other) != Some(piece));
            if let Some(source) = source {
                table.lift(source);
                table.wait(self.hand_ms() / 2);
            }
            if table.board.piece_at(square).is_some() {
                table.lift(square);
                table.wait(self.hand_ms() / 2);
            }
            table.place(square, piece);
            table.wait(self.hand_ms());
        }
        let leftover = table.board.occupied() & !target.occupied();
        for square in leftover {
            table.lift(square);
            table.wait(self.hand_ms());
        }
    }

    /// Puts a man where he was said to go wrong, or that of the move that is due where he cannot go: from, to, and the man.
    fn astray(
        &mut self,
        table: &mut Table,
        stray: Option<Stray>,
        s: &Situation,
    ) -> Option<(Square, Square, Piece)> {
        let Some((from, to)) = stray else {
            return self.stray(table, s.position, s.earlier, *s.coming.first()?);
        };
        let piece = table.board.piece_at(from)?;
        if !table.is_free(to) {
            return None;
        }
        self.shift(table, from, to, piece);
        Some((from, to, piece))
    }

    /// Puts the man of `m` where it cannot go: from, to, and the man.
    fn stray(
        &mut self,
        table: &mut Table,
        position: &Chess,
        earlier: Option<&Chess>,
        m: Move,
    ) -> Option<(Square, Square, Piece)> {
        let from = m.from()?;
        let piece = table.board.piece_at(from)?;
        let mut squares = !(targets(position, from) | table.board.occupied());
        // A man that arrived with its last move and now stands where that move could have gone looks like a correction of it.
        if let Some(earlier) = earlier {
            for origin in earlier.us() {
                if earlier.board().piece_at(origin) == Some(piece) {
                    squares &= !targets(earlier, origin);
                }
            }
        }
        if piece.role == Role::Pawn {
            // A pawn on the last rank only waits for its queen.
            squares &= !Bitboard::BACKRANKS;
        }
        // On the way to the right square it would only be a stop.
        squares &= !attacks::between(from, m.to());
        let free = squares
            .into_iter()
            .filter(|&square| table.is_free(square))
            .collect::<Bitboard>();
        let square = self.pick(free)?;
        self.shift(table, from, square, piece);
        Some((from, square, piece))
    }

    fn shift(&mut self, table: &mut Table, from: Square, to: Square, piece: Piece) {
        table.lift(from);
        table.wait(self.hand_ms());
        table.place(to, piece);
    }

    /// Some moves to and fro; where there is none without the king, men go anywhere.
    fn analyse(&mut self, table: &mut Table, position: &Chess) {
        let mut position = position.clone();
        for _ in 0..self.between(6, 12) {
            let legal = position.legal_moves();
            let mut moves: Vec<Move> = legal
                .into_iter()
                .filter(|m| m.role() != Role::King && !m.is_promotion() && !m.is_en_passant())
                .collect();
            self.shuffle(&mut moves);
            if let Some(m) = moves.pop()
                && let Some(from) = m.from()
                // A king that shows the result may stand there.
                && let Some(piece) = table.board.piece_at(from).filter(|p| p.role == m.role())
                && table.board.role_at(m.to()) != Some(Role::King)
            {
                self.shift(table, from, m.to(), piece);
                position.play_unchecked(m);
            } else {
                let movable = table.board.occupied() & !table.board.kings();
                let (Some(from), Some(to)) =
                    (self.pick(movable), self.pick(!table.board.occupied()))
                else {
                    return;
                };
                if let Some(piece) = table.board.piece_at(from) {
                    self.shift(table, from, to, piece);
                }
                // What stands there now is no position of the game's any more.
                return;
            }
            table.wait(self.between(600, 3000));
        }
    }

    /// From the array some moves that are no game's, and back to the array.
    fn play_for_fun(&mut self, table: &mut Table, start: &Chess) {
        self.set_up(table, start.board());
        table.wait(self.rest_ms());
        for (from, to) in FOR_FUN {
            let Some(piece) = table.board.piece_at(from) else {
                break;
            };
            self.shift(table, from, to, piece);
            table.wait(self.between(800, 1_800));
        }
        self.set_up(table, start.board());
    }

    fn show_result(&mut self, table: &mut Table, result: Outcome) -> Vec<Square> {
        let (mut light, mut dark) = ([Square::E4, Square::D5], [Square::D4, Square::E5]);
        self.shuffle(&mut light);
        self.shuffle(&mut dark);
        let (white, black) = match result.winner() {
            Some(Color::White) => (light[0], light[1]),
            Some(Color::Black) => (dark[0], dark[1]),
            None if self.chance(500) => (light[0], dark[0]),
            None => (dark[0], light[0]),
        };
        for square in [white, black] {
            if table
                .board
                .role_at(square)
                .is_some_and(|role| role != Role::King)
            {
                table.lift(square);
                table.wait(self.hand_ms());
            }
        }
        let wanted = [(Color::White, white), (Color::Black, black)];
        let mut lifted = Vec::new();
        for (side, square) in wanted {
            let king = table.board.king_of(side);
            if king != Some(square) {
                if let Some(from) = king {
                    table.lift(from);
                    table.wait(self.hand_ms());
                }
                lifted.push((side, square));
            }
        }
        for (side, square) in lifted {
            table.place(square, side.king());
            table.wait(self.hand_ms());
        }
        vec![white, black]
    }
}

/// Something that was put right and of which nobody need be told, whoever did it.
fn incident(
    kind: IncidentKind,
    s: &Situation,
    (from_ms, to_ms): (Millis, Millis),
    squares: Vec<Square>,
) -> Incident {
    Incident {
        kind,
        ply: s.ply,
        side: None,
        squares,
        breach: None,
        from_ms,
        due_ms: None,
        to_ms: Some(to_ms),
        in_outline: true,
    }
}

/// 1. d4 d5 2. Nf3.
const FOR_FUN: [(Square, Square); 3] = [
    (Square::D2, Square::D4),
    (Square::D7, Square::D5),
    (Square::G1, Square::F3),
];

/// Where the man on `from` can legally go, the square of a castling king included.
fn targets(position: &Chess, from: Square) -> Bitboard {
    position
        .legal_moves()
        .into_iter()
        .filter(|m| m.from() == Some(from))
        .flat_map(|m| {
            let castled = m
                .castling_side()
                .map(|castling| castling.king_to(position.turn()));
            [Some(m.to()), castled]
        })
        .flatten()
        .collect()
}
