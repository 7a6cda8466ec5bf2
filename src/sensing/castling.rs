//! Castling takes two men, one after the other, and the other player may reply before both stand: what is on its way, what is still to
//! do, and what was played while it was made.

use super::deed::unfinished_fault;
use super::look::{is_continued, sole};
use super::*;

impl Sensing {
    /// What is still to do of a castling that was the last move, or the one before, and of whose men one stands already: the other is
    /// where he was, or in the hand.
    pub(super) fn half_castled(&self, view: &View<'_>) -> Bitboard {
        let n = view.len();
        [n, n.saturating_sub(1)]
            .into_iter()
            .filter_map(|plies| Some(self.left_of_ply(view, plies)?.1))
            .fold(Bitboard::EMPTY, |all, left| all | left)
    }

    /// Whoever made the last of so many plies has pressed over a castling that is not finished: his own, or the one that he answered.
    pub(super) fn half_castled_at_press(
        &self,
        view: &View<'_>,
        plies: usize,
        now: Millis,
    ) -> Option<Fault> {
        [plies, plies.saturating_sub(1)]
            .into_iter()
            .find_map(|ply| {
                let (m, left) = self.left_of_ply(view, ply)?;
                let left = left & !self.faulty();
                let mover = view.mover(ply)?;
                left.any().then(|| Fault {
                    ply: Some(ply),
                    answered: ply < plies,
                    ..unfinished_fault(m, left, mover, now)
                })
            })
    }

    fn left_of_ply(&self, view: &View<'_>, plies: usize) -> Option<(Move, Bitboard)> {
        let m = view.last_of(plies).filter(|m| m.is_castle())?;
        Some((m, self.left_of_castling(view.position(plies - 1), m)))
    }

    pub(super) fn left_of_castling(&self, before: &Position, m: Move) -> Bitboard {
        let Some(castling) = Castling::of(m, before.turn()) else {
            return Bitboard::EMPTY;
        };
        // Who has been where he belongs is only adjusted, or moves on.
        let has_been = |from: Square, to: Square| {
            let is_in_hand = self.picture.is_empty(from) && self.picture.is_empty(to);
            is_in_hand && self.trail.filled_since(to, self.trail.at(from))
        };
        if has_been(castling.rook, castling.rook_to) || has_been(castling.king, castling.king_to) {
            return Bitboard::EMPTY;
        }
        let open = self.picture.differing(before.board());
        let only = before.squares(m);
        explain::left_of(before, m, &self.picture, open & only).unwrap_or_default()
    }

    /// A move whose man has arrived while the rest of it is still to do, and what that is. Where men are not known, a rook that came
    /// before the rook had left his corner was the king, who made a step.
    pub(super) fn unfinished(&self, tip: &Position, open: Bitboard) -> Option<(Move, Bitboard)> {
        let is_step = |m: Move| {
            Castling::of(m, tip.turn()).is_some_and(|castling| !self.may_have_castled(castling))
        };
        explain::unfinished(tip, &self.picture, open).filter(|(m, _)| !is_step(*m))
    }

    /// Whether who stands where castling puts king and rook can be these two: each came after he had left. Where men are not known,
    /// whoever came before the rook had left his corner was the king, who made a step, and the rook went elsewhere later.
    fn may_have_castled(&self, castling: Castling) -> bool {
        let journeys = [
            (castling.king, castling.king_to),
            (castling.rook, castling.rook_to),
        ];
        let unread = self.picture.unread();
        journeys.into_iter().all(|(from, to)| {
            from == to
                || !self.is_poor()
                || self.picture.is_empty(to)
                || unread.contains(to)
                || self.trail.came_after_leaving(from, to)
        })
    }

    /// The same if it is castling: of king and rook the one stands where he goes, and the other does not yet.
    pub(super) fn begun_castling(&self, tip: &Position, open: Bitboard) -> Option<Move> {
        let (m, _) = self.unfinished(tip, open)?;
        m.is_castle().then_some(m)
    }

    /// What is left of a castling that these moves answer, or follow, if one of its men is still to move.
    pub(super) fn answered_castling(
        &self,
        keep: usize,
        moves: &[Seen],
        stem: usize,
        cx: &Context<'_>,
    ) -> Option<Fault> {
        let n = keep + moves.len();
        if moves.is_empty() || stem >= n {
            return None;
        }
        let record = self.record(cx);
        let told = View::new(record.line, keep.min(record.len()), moves);
        let (m, reply) = (told.last_of(n.checked_sub(1)?), told.last()?);
        let (ply, left) = match m.filter(|m| m.is_castle()) {
            Some(m) => {
                let (_, left) = self.left_of_ply(&told, n - 1)?;
                // A rook in the hand is on its way, however soon the answer comes.
                let stands = (left & !self.picture.vacant()).any();
                let is_answered =
                    stands && self.is_answer_to_castling(told.position(n - 2), m, reply);
                (n - 1, if is_answered { left } else { Bitboard::EMPTY })
            }
            // Whoever plays on himself, and with another man, has left his rook where it is.
            None => (n.checked_sub(2)?, self.left_of_ply(&told, n - 2)?.1),
        };
        // On his own squares he has moved on from where it stood, or to where it had stood.
        let is_there = told.position(n - 1).squares(reply) & left;
        let left = left & !self.faulty();
        let (m, mover) = (told.last_of(ply)?, told.mover(ply)?);
        (left.any() && is_there.is_empty()).then(|| Fault {
            ply: Some(ply),
            answered: true,
            ..unfinished_fault(m, left, mover, self.last_change)
        })
    }

    /// Whether the king stood where he castles to when the man of `reply` was put down. What stood there before was played too early,
    /// and answers nothing.
    fn is_answer_to_castling(&self, before: &Position, m: Move, reply: Move) -> bool {
        Castling::of(m, before.turn()).is_some_and(|castling| {
            let answered = self.trail.at(reply.to());
            !self.trail.came_since(castling.king_to, answered)
        })
    }

    /// Whether a king and a rook that may castle have both left their squares, and do not both stand where they go: nobody lifts the
    /// two for anything else, so that nothing is read from the board until they stand.
    pub(super) fn is_castling_in_hand(&self, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let is_in_hand = |keep: usize, castling: Move| {
            self.is_in_hand(view.position(keep), castling, view.seen_at(keep))
        };
        // One of them may have been read as a move of its own.
        let begun = n.checked_sub(1).filter(|keep| !view.is_pressed(*keep));
        // Asked at each change: on a board that knows its men the king has to be away.
        let tip = view.tip();
        let king = Role::King.of(tip.turn());
        let stands = |at| self.picture.agrees_at(at, Some(king));
        let at = tip.board().king_of(king.color);
        let may_be = at.is_some_and(|at| self.is_poor() || !stands(at));
        let tip_castles = || tip.castling_moves().into_iter();
        (may_be && tip_castles().any(|castling| is_in_hand(n, castling)))
            || begun.is_some_and(|keep| {
                let mut castlings = begun_castlings(&view, keep).into_iter();
                castlings.any(|castling| is_in_hand(keep, castling))
            })
    }

    /// The man that moved last stands where he castles to, and the other one has left since: it was castling. Where men are not known he
    /// may be either of the two until they have had the time to come down.
    pub(super) fn reread_as_castling(
        &mut self,
        now: Millis,
        has_come_down: bool,
        cx: &Context<'_>,
    ) -> bool {
        let view = self.view(cx);
        let last = view.len().checked_sub(1);
        let is_told = has_come_down || !self.is_poor();
        let Some(keep) = last.filter(|keep| is_told && !view.is_pressed(*keep)) else {
            return false;
        };
        let before = view.position(keep);
        let begun = begun_castlings(&view, keep);
        if begun.is_empty() {
            return false;
        }
        let differing = self.picture.differing(before.board());
        let castling = self.begun_castling(before, differing);
        let Some(m) = castling.filter(|m| begun.contains(m)) else {
            return false;
        };
        let moves = vec![Seen::new(before, m, self.last_change)];
        self.otherwise(keep, moves, now, cx);
        true
    }

    /// One of king and rook stands where he castles to, and the other is in the hand: nobody does that otherwise, so that it is told
    /// already, with what was replied.
    pub(super) fn tell_castling_begun(&mut self, now: Millis, cx: &Context<'_>) {
        let view = self.view(cx);
        let (keep, tip) = (view.len(), view.tip());
        let differing = self.unexplained(&view);
        if let Some(m) = self.begun_castling(tip, differing) {
            let moves = vec![Seen::new(tip, m, self.last_change)];
            self.arrived_by(moves, now, cx);
        } else if let Some((moves, None)) = self.answered_unfinished(&view, None, now) {
            self.flush(cx);
            self.tell_moves(keep, moves, keep, CorrectionReason::MovedOn, cx);
        }
    }

    /// Whether the last move of this side, be it answered, may have been part of a castling whose other man is in the hand by now.
    pub(super) fn is_castling_begun(&self, view: &View<'_>, side: Color) -> bool {
        self.castling_with(view, side).any()
    }

    /// Where that other man stood.
    pub(super) fn castling_with(&self, view: &View<'_>, side: Color) -> Bitboard {
        let his = view.plies_of(side).checked_sub(1);
        let Some(index) = his.filter(|index| !view.is_pressed(*index)) else {
            return Bitboard::EMPTY;
        };
        let is_king = || view.mv(index).is_some_and(|m| m.role() == Role::King);
        let other = |castling| match castling {
            Move::Castle { king, rook } => Some(if is_king() { rook } else { king }),
            _ => None,
        };
        let others = begun_castlings(view, index).into_iter().filter_map(other);
        others
            .filter(|square| self.picture.is_empty(*square))
            .collect()
    }

    fn is_in_hand(&self, position: &Position, castling: Move, since: Millis) -> bool {
        let Some(men) = Castling::of(castling, position.turn()) else {
            return false;
        };
        let effects = position.effects(castling);
        let squares = effects.squares();
        // In Chess960 one of them may stay; and who is told to be gone is in no hand.
        if !men.from().is_subset(squares & !self.faulty()) {
            return false;
        }
        let board = position.board();
        let has_left = |square: Square| {
            let man = board.piece_at(square);
            // Where the other one comes to stand, a board that knows no men shows only that something happened.
            let may_be_the_other = self.is_poor()
                && effects
                    .iter()
                    .any(|(to, man)| to == square && man.is_some());
            !self.picture.agrees_at(square, man)
                || (may_be_the_other && self.trail.at(square) > since)
        };
        let open = self.picture.differing(board) & squares;
        men.from().into_iter().all(has_left)
            && !effects
                .iter()
                .all(|(square, man)| self.picture.agrees_at(square, man))
            && explain::may_pass(position, castling, &self.picture, open)
    }

    /// A man that was read as a move of its own was castling, and the board shows that by now, with the reply to it: the one that
    /// was read already, or one that stands and was not.
    pub(super) fn match_castled(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.frozen_since.is_some() || self.waiting.is_some() {
            return false;
        }
        let view = self.view(cx);
        let Some((keep, line)) = self.castled(&view) else {
            return false;
        };
        let is_known = keep + 2 == view.len();
        let mut moves = self.seen(view.position(keep), &line, now);
        let is_answered = moves.len() > 1;
        let reply = moves.pop_if(|_| is_answered && !is_known);
        let (base, mut told) = self.take_held_back(keep);
        told.append(&mut moves);
        self.tell_moves(base, told, keep, CorrectionReason::MovedOn, cx);
        if let Some(reply) = reply {
            let (hold, why) = (self.timing.settle, CorrectionReason::MovedOn);
            self.tentative = Some(Tentative::new(keep + 1, vec![reply], now, hold, why));
        }
        true
    }

    /// Whether all that differs is a man whom the player to move has lifted.
    fn is_in_other_hand(&self, position: &Position, open: Bitboard) -> bool {
        let own = position.board().by_color(position.turn()) & self.picture.vacant();
        open.count() == 1 && open.is_subset(own)
    }

    /// After how many plies a man that was read as a move of its own has castled, and what was played from there.
    fn castled(&self, view: &View<'_>) -> Option<(usize, Vec<Move>)> {
        let n = view.len();
        let with_reply = |keep: usize, castling: Move| {
            let after = view.position(keep).play_playable(castling);
            let differing = self.picture.differing(after.board());
            let reply = match view.mv(keep + 1) {
                Some(reply) => played_from(&after, reply)?,
                None if self.is_in_other_hand(&after, differing) => {
                    return Some((keep, vec![castling]));
                }
                None => sole(&explain::moves_to(
                    &after,
                    &self.picture,
                    differing,
                    Bitboard::EMPTY,
                ))?,
            };
            let is_shown = self.picture.agrees_with(after.play_playable(reply).board());
            is_shown.then(|| (keep, vec![castling, reply]))
        };
        let begun = (n.saturating_sub(2)..n)
            .rev()
            .take_while(|keep| !view.is_pressed(*keep));
        let may_have_castled = |(keep, m): &(usize, Move)| {
            let castling = Castling::of(*m, view.position(*keep).turn());
            castling.is_some_and(|castling| self.may_have_castled(castling))
        };
        begun
            .flat_map(|keep| {
                begun_castlings(view, keep)
                    .into_iter()
                    .map(move |castling| (keep, castling))
            })
            .filter(may_have_castled)
            .find_map(|(keep, castling)| with_reply(keep, castling))
    }

    /// Whether two plies of this line together leave the same squares and fill the same ones as castling does: where men are not known
    /// that was one ply, unless the squares tell otherwise.
    pub(super) fn is_castling_apart(&self, from: &Position, line: &[Move]) -> bool {
        let mut position = from.clone();
        self.is_poor()
            && line.windows(3).any(|plies| {
                let is_apart = self.are_castling(&position, plies[0], plies[2]);
                position = position.play(plies[0]);
                is_apart
            })
    }

    fn are_castling(&self, position: &Position, one: Move, other: Move) -> bool {
        let (Some(first), Some(second)) = (one.from(), other.from()) else {
            return false;
        };
        let left = Bitboard::from(first).with(second);
        let may_castle = position.may_castle_with(first) && !one.is_castle() && !other.is_castle();
        may_castle
            && position.castlings().any(|castling| {
                let filled = Bitboard::from(one.to()).with(other.to());
                castling.from() == left
                    && castling.to() == filled
                    && self.may_have_castled(castling)
            })
    }
}

/// The castlings of which the move at this index may have been a part.
fn begun_castlings(view: &View<'_>, index: usize) -> Vec<Move> {
    let is_part = |m: &Move| !m.is_castle() && matches!(m.role(), Role::King | Role::Rook);
    let Some(begun) = view.mv(index).filter(is_part) else {
        return Vec::new();
    };
    let mut castlings = view.position(index).castling_moves();
    castlings.retain(|castling| is_continued(begun, *castling));
    castlings
}

/// The same journey from here. What seemed to take the castling man takes nobody once he has gone on.
fn played_from(position: &Position, m: Move) -> Option<Move> {
    let same = |other: &Move| other.promotion() == m.promotion();
    match position.is_playable(m) {
        true => Some(m),
        false => position
            .moves_between(m.from()?, m.to())
            .into_iter()
            .find(same),
    }
}
