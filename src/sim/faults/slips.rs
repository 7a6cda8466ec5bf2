//! Moves that are legal but not carried out as they should be when the clock is pressed.

use shakmaty::{Bitboard, CastlingSide, Move, Piece, Position, Role, Square, attacks};

use super::illegal::{Explained, with};
use super::{Situation, Slip};
use crate::sim::hands::Hands;
use crate::sim::script::{Act, Incident, IncidentKind, Played, Table};

/// A slip that was made and pressed over, with what is left to do.
#[derive(Debug)]
pub(in crate::sim) struct Slipped {
    kind: IncidentKind,
    squares: Vec<Square>,
    mend: Vec<(Square, Option<Piece>)>,
    in_outline: bool,
    /// Whether the clock has to be stopped for it.
    stops_clock: bool,
}

impl Hands {
    /// Plays a move with a slip in it; `None`, and nothing done, where it has no room for that.
    pub(in crate::sim) fn slip(
        &mut self,
        table: &mut Table,
        slip: Slip,
        s: &Situation,
    ) -> Option<Slipped> {
        let m = *s.coming.first()?;
        let side = s.position.turn();
        let from = m.from()?;
        let mut stops_clock = false;
        let (kind, squares, first, mend) = match (slip, m) {
            (
                Slip::BesideSquare,
                Move::Normal {
                    role,
                    to,
                    capture,
                    promotion: None,
                    ..
                },
            ) => {
                let man = role.of(side);
                let explained = Explained::new(s);
                let mut first = vec![(from, None)];
                first.extend(capture.map(|_| (to, None)));
                let beside = attacks::king_attacks(to)
                    .into_iter()
                    .filter(|&square| square != from && table.is_free(square))
                    .filter(|&square| {
                        let waits = role == Role::Pawn && Bitboard::BACKRANKS.contains(square);
                        let mut there = first.clone();
                        there.push((square, Some(man)));
                        !waits && !explained.has(&with(s.position.board(), &there))
                    })
                    .collect();
                let beside = self.pick(beside)?;
                first.push((beside, Some(man)));
                let mend = vec![(beside, None), (to, Some(man))];
                (
                    IncidentKind::BesideSquare,
                    vec![from, beside, to],
                    first,
                    mend,
                )
            }
            (Slip::HalfCastled, Move::Castle { king, rook }) => {
                let castling = CastlingSide::from_king_side(king < rook);
                let (king_to, rook_to) = (castling.king_to(side), castling.rook_to(side));
                let first = vec![(king, None), (king_to, Some(side.king()))];
                let mend = vec![(rook, None), (rook_to, Some(side.rook()))];
                let explained = Explained::new(s).has(&with(s.position.board(), &first));
                if king == king_to || rook == rook_to || king_to == rook || explained {
                    return None;
                }
                let squares = vec![king, king_to, rook, rook_to];
                (IncidentKind::HalfCastled, squares, first, mend)
            }
            (
                Slip::PawnLeft | Slip::WrongColour,
                Move::Normal {
                    to,
                    capture,
                    promotion: Some(role),
                    ..
                },
            ) => {
                stops_clock = true;
                let (kind, man) = match slip {
                    Slip::PawnLeft => (IncidentKind::PawnLeftOnLastRank, side.pawn()),
                    _ => (IncidentKind::WrongColour, role.of(side.other())),
                };
                let mut first = vec![(from, None), (to, Some(man))];
                if capture.is_some() {
                    first.insert(1, (to, None));
                }
                let mend = vec![(to, None), (to, Some(role.of(side)))];
                (kind, vec![from, to], first, mend)
            }
            (Slip::VictimForgotten, Move::EnPassant { to, .. }) => {
                let victim = Square::from_coords(to.file(), from.rank());
                let first = vec![(from, None), (to, Some(side.pawn()))];
                let squares = vec![from, to, victim];
                (
                    IncidentKind::VictimForgotten,
                    squares,
                    first,
                    vec![(victim, None)],
                )
            }
            _ => return None,
        };
        let in_outline = !Explained::new(s).has_outline(&with(s.position.board(), &first));
        self.change(table, &first);
        Some(Slipped {
            kind,
            squares,
            mend,
            in_outline,
            stops_clock,
        })
    }

    /// Puts right what was pressed over.
    pub(in crate::sim) fn mend(
        &mut self,
        table: &mut Table,
        slipped: Slipped,
        played: &Played,
    ) -> Incident {
        let pressed_ms = played.pressed_ms.unwrap_or(table.now);
        let until = pressed_ms + self.between(5_500, 8_000);
        table.now = table.now.max(until);
        if slipped.stops_clock {
            table.act(Act::ClockStop);
            table.wait(self.between(2_000, 4_000));
        }
        self.change(table, &slipped.mend);
        let to_ms = table.now;
        if slipped.stops_clock {
            table.wait(self.between(2_000, 4_000));
            table.act(Act::ClockStart {
                side: played.side.other(),
            });
        }
        Incident {
            kind: slipped.kind,
            ply: played.ply,
            side: Some(played.side),
            squares: slipped.squares,
            breach: None,
            from_ms: played.touched_ms,
            due_ms: Some(pressed_ms),
            to_ms: Some(to_ms),
            in_outline: slipped.in_outline,
        }
    }
}
