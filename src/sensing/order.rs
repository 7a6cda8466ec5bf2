//! In which order several plies were played, and when each was seen, as far as the squares tell.

use super::explain::Lines;
use super::weigh::Weighed;
use super::*;

impl Sensing {
    /// Several plies were played while nobody looked. Their order is told by the squares, if by anything.
    pub(super) fn jumped(
        &mut self,
        tip: &Position,
        keep: usize,
        lines: Lines,
        now: Millis,
        cx: &Context<'_>,
    ) {
        let mut found = lines.found;
        // Of several that nothing tells apart, lesser men come first, and it is the same whoever plays them.
        let seen_by_mover = |m: &Move| {
            let squares = [m.from(), Some(m.to())];
            (m.role(), squares.map(|square| seen_by(tip.turn(), square)))
        };
        found.sort_by_cached_key(|line| line.iter().map(seen_by_mover).collect::<Vec<_>>());
        let told: Vec<&Vec<Move>> = found
            .iter()
            .filter(|line| self.order(tip, line) == Order::Told)
            .collect();
        let certain = lines.complete && (told.len() == 1 || found.len() == 1);
        let line = match told.first() {
            Some(line) if !self.is_poor() => (*line).clone(),
            _ => {
                let record = self.view(cx);
                let from = Standpoint {
                    position: tip,
                    ..record.standpoint(keep)
                };
                let weighed = self.weighed(&from, found.clone());
                weighed
                    .first()
                    .map_or_else(|| found[0].clone(), |line| line.moves.clone())
            }
        };
        let moves = self.seen(tip, &line, now);
        if let Some(mut tentative) = self.tentative.take()
            && let Some(kept) = keep.checked_sub(tentative.keep)
        {
            tentative.moves.truncate(kept);
            self.tell_tentative(tentative, cx);
        }
        let rivals = if certain || self.is_poor() {
            Vec::new()
        } else {
            found.into_iter().map(Weighed::from).collect()
        };
        self.tell_change(keep, moves, keep, CorrectionReason::Reread, rivals, cx);
    }

    /// What the squares that the men of this line left and came to say of its order.
    pub(super) fn order(&self, from: &Position, line: &[Move]) -> Order {
        let is_early = line.last().is_some_and(|m| self.is_early(*m));
        if is_early || self.is_castling_apart(from, line) {
            return Order::Against;
        }
        trail::order(&self.journeys(from, line), trail::SCAN_MS)
    }

    /// Whether the squares allow this order, be they told so much out of it: each man was put down after the one before.
    pub(super) fn is_in_turn(&self, from: &Position, line: &[Move], slack: Millis) -> bool {
        let journeys = self.journeys(from, line);
        let is_early = line.last().is_some_and(|m| self.is_early(*m));
        !is_early
            && trail::order(&journeys, slack) != Order::Against
            && trail::is_in_turn(&journeys, slack)
    }

    /// When the men of this line were on their way.
    fn journeys(&self, from: &Position, line: &[Move]) -> Vec<Journey> {
        let mut taken = Bitboard::EMPTY;
        let mut turn = from.turn();
        let mut journeys: Vec<Journey> = Vec::with_capacity(line.len());
        for m in line {
            let to = Castling::stop(*m, turn);
            journeys.push(
                m.from()
                    .map_or_else(Journey::default, |from| self.journey(from, to)),
            );
            turn = !turn;
        }
        // Where two arrived on one square only the later can be told, and of the other no more than when he left; who went on from where
        // he came tells nothing of the first step.
        for (index, m) in line.iter().enumerate().rev() {
            if taken.contains(m.to()) {
                let has_left = m.from().is_some_and(|from| !taken.contains(from));
                journeys[index] = match has_left {
                    true => journeys[index].only_begun(),
                    false => Journey::default(),
                };
            }
            taken.add(m.to());
            if let Some(from) = m.from() {
                taken.add(from);
            }
        }
        journeys
    }

    /// A man that stood astray, or moved before its turn, made its move at any time since.
    fn journey(&self, from: Square, to: Square) -> Journey {
        let mut journey = if self.is_poor() {
            self.trail.departure(from, to)
        } else {
            self.trail.journey(from, to)
        };
        let deed = self.faults.iter().find(|fault| {
            fault.squares.contains(from)
                && matches!(fault.kind, FaultKind::IllegalMove | FaultKind::OutOfTurn)
        });
        if let Some(fault) = deed {
            journey.begun = journey.begun.map(|begun| begun.min(fault.since));
            journey.ended = None;
        }
        journey
    }

    pub(super) fn seen(&self, from: &Position, line: &[Move], now: Millis) -> Vec<Seen> {
        let mut position = from.clone();
        let mut before = 0;
        line.iter()
            .map(|m| {
                // Told late, a ply is no later for that: what was lifted since belongs to the next.
                let at = if self.picture.is_exact() {
                    self.trail.at(m.to()).clamp(before, now)
                } else {
                    // Nor does one that was made too early come before the one that it answers.
                    self.shown_at(&position, *m, 0, now).max(before)
                };
                before = at;
                let seen = Seen::new(&position, *m, at);
                position = seen.after.clone();
                seen
            })
            .collect()
    }
}

/// The square as it lies before this side.
fn seen_by(side: Color, square: Option<Square>) -> Option<Square> {
    square.map(|square| match side {
        Color::White => square,
        Color::Black => square.flip_vertical(),
    })
}
