//! Moves that were answered before they were finished, or though they are none.

use super::deed::unfinished_fault;
use super::look::{capture_square, sole};
use super::*;

impl Sensing {
    /// Looks for a move that was answered before it was finished, or though it is none.
    pub(super) fn search_answered(
        &mut self,
        now: Millis,
        pressed: Option<Color>,
        cx: &Context<'_>,
    ) {
        let view = self.view(cx);
        let keep = view.len();
        if let Some((moves, fault)) = self.answered_unfinished(&view, pressed, now) {
            self.flush(cx);
            self.tell_moves(keep, moves, keep, CorrectionReason::MovedOn, cx);
            let known = self.faulty();
            if let Some(fault) = fault.filter(|fault| (fault.squares & !known).any()) {
                self.raise(fault);
            }
            return;
        }
        if self.read_over_dead(now, cx) || self.is_in_gap() {
            return;
        }
        let view = self.view(cx);
        let tip = view.tip();
        let open = self.picture.differing(tip.board()) & !self.mask(&view);
        if self.is_on_the_way_back(&view, open)
            || self.are_kings_going(tip)
            || (!self.grace_passed && self.is_answered_with_victim_about(tip, open))
            // In fast play a man may not have been seen where he was meanwhile: what follows tells.
            || (!self.grace_passed && self.are_men_put_down_fast(now))
        {
            return;
        }
        if let Some(fault) = self.answered_irregular_move(tip, open, pressed) {
            self.raise(fault);
        }
    }

    /// Castling, promotion or en passant that the opponent answered while part of it was still to do: both are recorded, and what
    /// is left to do is the fault, unless the rest may still come. A man of the opponent's that is only lifted answers nothing before he
    /// has pressed.
    pub(super) fn answered_unfinished(
        &self,
        view: &View<'_>,
        pressed: Option<Color>,
        now: Millis,
    ) -> Option<(Vec<Seen>, Option<Fault>)> {
        let (tip, keep) = (view.tip(), view.len());
        let differing = self.picture.differing(tip.board());
        if differing.count() < 3 || differing.count() > 8 {
            return None;
        }
        let us = tip.turn();
        let unfinished = |m: &Move| {
            matches!(m, Move::Castle { .. } | Move::EnPassant { .. })
                || m.promotion() == Some(Role::Queen)
        };
        for m in tip.moves().into_iter().filter(unfinished) {
            let mut first = Seen::new(tip, m, now);
            let wrong = self.picture.differing(first.after.board());
            let left = wrong & tip.squares(m);
            let old_or_pawn = |square: Square| {
                self.picture.at(square).is_some_and(|contents| {
                    let waits = m.promotion().is_some() && square == m.to();
                    contents.is_empty()
                        || explain::is_laid_down(tip, m, square, contents)
                        || contents.agrees(tip.board().piece_at(square))
                        || (waits && contents.agrees(Some(Role::Pawn.of(us))))
                })
            };
            let arrived = match m {
                Move::Castle { king, rook } => {
                    // Where men are not known, the rook alone may be the king, and the answer a captured man.
                    let castling = Castling::new(king, rook, us);
                    let is_missed = self.is_poor() && left.contains(castling.king_to);
                    !(is_missed || left.contains(king))
                        && explain::has_begun_to_castle(tip, &self.picture, castling)
                }
                Move::EnPassant { from, to } => {
                    let shown = self.picture.at(from);
                    let is_laid_down = |shown| explain::is_laid_down(tip, m, from, shown);
                    !left.contains(to)
                        && (!left.contains(from)
                            || (left.count() == 1 && shown.is_some_and(is_laid_down)))
                }
                m => m.from().is_some_and(|from| !left.contains(from)),
            };
            if left.is_empty() || !arrived || !left.into_iter().all(old_or_pawn) {
                continue;
            }
            let replies = explain::moves_to(&first.after, &self.picture, wrong, left);
            let is_seen = |reply: Move| {
                pressed == Some(!us) || self.is_put_down(&first.after, reply, view.seen_at(keep))
            };
            if let Some(reply) = sole(&replies).filter(|reply| is_seen(*reply)) {
                if m.promotion().is_some() {
                    first.doubt = Some(Doubt::PromotionUnseen);
                }
                let second = Seen::new(&first.after, reply, now);
                let fault = Fault {
                    ply: Some(keep + 1),
                    answered: true,
                    ..unfinished_fault(m, left, us, now)
                };
                // What is left of a castling is told with it.
                return Some((vec![first, second], Some(fault).filter(|_| !m.is_castle())));
            }
        }
        None
    }

    /// Whether this may be a capture and the answer to it, while the man that was taken still passes over a square beside.
    fn is_answered_with_victim_about(&self, tip: &Position, open: Bitboard) -> bool {
        let astray = (open & !tip.board().occupied()) & !self.picture.vacant();
        astray.into_iter().any(|square| {
            let passes = |line: &[Move]| {
                line.first().is_some_and(|m| {
                    let victim = m.capture().map(|role| role.of(!tip.turn()));
                    let shown = self.picture.at(square);
                    victim.is_some()
                        && shown.is_some_and(|shown| shown.agrees(victim))
                        && attacks::king_attacks(capture_square(*m)).contains(square)
                })
            };
            let lines = explain::lines_to(tip, &self.picture, Bitboard::from(square), 2, passes);
            !lines.found.is_empty()
        })
    }
}
