//! Looks further afield, once the placement is quiet: asks one question after the other, and reads several plies at once.

use super::look::{capture_square, castles_by, is_continued};
use super::*;

impl Sensing {
    /// Looks further afield, once the placement is quiet: older positions, several plies at once.
    /// A press that is being judged ends the presser's move, whatever the opponent has in his hand.
    pub(super) fn search(&mut self, now: Millis, pressed: Option<Color>, cx: &Context<'_>) {
        if self.waiting.is_some()
            || self.has_changed_frozen()
            || self.sign.is_some()
            || self.settle_promotion(cx)
        {
            return;
        }
        // What was answered before its press could be judged is judged first.
        let waits = self.presses.front().copied();
        if pressed.is_none() && waits.is_some_and(|press| self.is_answered(press, cx)) {
            return;
        }
        if self.picture.agrees_with(self.view(cx).tip().board()) {
            return;
        }
        let is_accident = self.is_pushed(&self.view(cx));
        if self.is_swapped_with_victim(&self.view(cx))
            || (!is_accident && self.heal(now, cx))
            || self.is_back_from_faults(cx)
        {
            return;
        }
        let view = self.view(cx);
        let tip = view.tip();
        let differing = self.unexplained(&view);
        // Who has pressed has no man in his hand that he was moving.
        let has_gone_on = view.last().is_some_and(|last| {
            pressed == Some(!tip.turn()) && !view.moves.is_empty() && differing.contains(last.to())
        });
        if differing.is_empty() || self.is_en_passant_laid_down(&view) {
            return;
        }
        if self.reread_as_castling(now, false, cx)
            || (pressed.is_none() && self.suppose_glimpsed(now, cx))
        {
            return;
        }
        let view = self.view(cx);
        let tip = view.tip();
        if explain::only_hands(tip, &self.picture, differing) {
            if has_gone_on && !self.is_poor() {
                self.read_several(2, now, pressed, cx);
            }
            return;
        }
        if self.is_castling_in_hand(cx) {
            self.tell_castling_begun(now, cx);
            return;
        }
        if pressed.is_some() && self.read_over_dead(now, cx) {
            return;
        }
        let view = self.view(cx);
        let older = self.older(&view, now, cx);
        if older.is_none() && self.look_further_back(now, cx) {
            return;
        }
        let view = self.view(cx);
        let tip = view.tip();
        if let Some((keep, moves)) = older {
            self.take_back_once_at_rest(keep, moves);
            return;
        }
        if let Some(m) = self.made_with_victim_about(&view, differing) {
            let moves = vec![Seen::new(tip, m, self.last_change)];
            self.arrived_by(moves, now, cx);
            return;
        }
        // A man that stands still passes over no square if what else may have been played explains him.
        if self.is_poor() && !explain::is_only_missing(tip, &self.picture, differing) {
            let behind = match explain::is_in_progress(tip, &self.picture, differing) {
                true => rivals::PASSING,
                false => rivals::KEPT,
            };
            if self.match_rivals_within(behind, now, cx) {
                return;
            }
        }
        let view = self.view(cx);
        let tip = view.tip();
        if let Some(m) = self.begun_castling(tip, differing) {
            // Nobody stands there otherwise: it is told at once, and the other man may take his time (case C4).
            let moves = vec![Seen::new(tip, m, self.last_change)];
            self.arrived_by(moves, now, cx);
            return;
        }
        // Whoever presses once more has moved once more, so that the other side's move is on its way no longer.
        let is_over = pressed == Some(!tip.turn()) && view.is_pressed(view.len().wrapping_sub(1));
        let is_on_its_way = !is_over && explain::is_in_progress(tip, &self.picture, differing);
        if is_on_its_way || self.is_victim_about(&view) {
            return;
        }
        let deepest = if is_accident || explain::is_only_missing(tip, &self.picture, differing) {
            0
        } else {
            MISSED
        };
        if self.read_last_anew(now, cx)
            || self.read_rivals_anew(now, cx)
            || self.read_exchanged(now, cx)
            || self.read_taken_first(now, cx)
        {
            return;
        }
        let view = self.view(cx);
        let beside = self.beside_hands(&view, 1, pressed, now);
        // Nobody moves one man with another in his hand if that one may have captured, and was answered.
        let holds_another = self.is_poor() && self.holds_another(&view, beside.as_deref());
        if holds_another
            && ((deepest >= EXCHANGED && self.read_several(EXCHANGED, now, pressed, cx))
                || (!cx.has_clock && self.read_onward(now, cx)))
        {
            return;
        }
        if let Some(moves) = beside {
            self.arrived_by(moves, now, cx);
            return;
        }
        for depth in 2..=deepest {
            if self.read_several(depth, now, pressed, cx) {
                return;
            }
            if depth == 2 {
                let view = self.view(cx);
                if let Some(moves) = self.beside_hands(&view, depth, pressed, now) {
                    self.arrived_by(moves, now, cx);
                    return;
                }
                if self.read_in_any_order(now, pressed, cx) {
                    return;
                }
            }
        }
        self.search_answered(now, pressed, cx);
    }

    /// Whether the side that makes the first of these moves has another man in the air besides.
    fn holds_another(&self, view: &View<'_>, moves: Option<&[Seen]>) -> bool {
        let Some(first) = moves.and_then(<[Seen]>::first) else {
            return false;
        };
        let after = first.after.board();
        let own = after.by_color(view.tip().turn()) & self.picture.vacant();
        (own & self.picture.differing(after) & !self.mask(view)).any()
    }

    /// Several plies at once that explain the board, from where the game stands or with its last ply read otherwise.
    fn read_several(
        &mut self,
        depth: usize,
        now: Millis,
        pressed: Option<Color>,
        cx: &Context<'_>,
    ) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let mask = self.mask(&view);
        let tip = view.tip();
        let since = view.seen_at(n);
        let onward = explain::lines_to(tip, &self.picture, mask, depth, |line| {
            self.fits(tip, line, since)
        });
        // What was completed stands, unless the order in which the men arrived speaks against all that could follow it.
        let contradicted = onward.refused && onward.found.is_empty();
        let is_completed = n > 0 && self.is_completed(n, cx);
        if is_completed && contradicted && depth == 2 && self.read_in_any_order(now, pressed, cx) {
            return true;
        }
        let view = self.view(cx);
        let tip = view.tip();
        if n > 0 && (!is_completed || contradicted) {
            let before = view.position(n - 1);
            let since = view.seen_at(n - 1);
            let lines = explain::lines_to(before, &self.picture, mask, depth, |line| {
                !self.is_done(&view, line[0])
                    && (is_continued(view.mv(n - 1).unwrap_or(line[0]), line[0])
                        || self.may_have_gone_back(&view, n - 1, line[0]))
                    && self.fits(before, line, since)
            });
            if let Some(line) = lines.sole() {
                let moves = self.seen(before, line, now);
                self.otherwise(n - 1, moves, now, cx);
                return true;
            }
        }
        if !onward.explain() {
            return false;
        }
        let tip = tip.clone();
        self.jumped(&tip, n, onward, now, cx);
        true
    }

    /// A move and its reply that was made before it: whatever the hands did on the way, the board shows both.
    fn read_in_any_order(&mut self, now: Millis, pressed: Option<Color>, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let (n, tip) = (view.len(), view.tip());
        let since = view.seen_at(n);
        let lines = explain::lines_to(tip, &self.picture, self.mask(&view), 2, |line| {
            self.may_have_passed(tip, line, since) && self.may_be_taken_there(line)
        });
        let Some(line) = self.likeliest(&view.standpoint(view.len()), &lines) else {
            return false;
        };
        let early = self.early_reply(tip, &line, pressed, cx);
        let mut moves = self.seen(tip, &line, now);
        if let Some(early) = early {
            moves.truncate(1);
            self.arrived_by(moves, now, cx);
            self.flush(cx);
            self.raise(early);
        } else {
            self.arrived_by(moves, now, cx);
        }
        true
    }

    /// Whether the first of these men can have been taken where he went: he had left before his taker came.
    fn may_be_taken_there(&self, line: &[Move]) -> bool {
        let [m, reply] = line else { return true };
        let left = m.from().and_then(|from| self.left_at(from));
        m.to() != reply.to() || left.is_none_or(|left| left <= self.trail.at(reply.to()))
    }

    /// Whether what was seen of the squares allows this line.
    pub(super) fn fits(&self, from: &Position, line: &[Move], since: Millis) -> bool {
        self.may_have_passed(from, line, since) && self.order(from, line) != Order::Against
    }

    /// Whether the men of this line can have been where it leads them: a board whose changes came singly showed each square on the
    /// way. A look after a while in which nobody looked tells of others that nobody saw.
    pub(super) fn may_have_passed(&self, from: &Position, line: &[Move], since: Millis) -> bool {
        if self.was_never_there(from, line) {
            return false;
        }
        let differing = self.picture.differing(from.board());
        if (differing & self.trail.unwatched()).any() {
            return true;
        }
        if self.has_come_before(from, line) {
            return false;
        }
        let mut position = from.clone();
        let mut reached = Bitboard::EMPTY;
        line.iter().all(|m| {
            // A man that arrived and was taken again stood on a square that changed once, as far as that was followed. Where men are not
            // known, it did not need to where he had taken one himself.
            let was_followed = !self.stood.contains(&self.trail.at(m.to()));
            let taken_again =
                line.len() > 2 && m.is_capture() && reached.contains(m.to()) && was_followed;
            let is_unseen = self.is_poor() && m.is_capture() && !m.is_en_passant();
            // Nor does who stands there tell of another one, who left his square later.
            let is_of_former = self.is_poor() && !m.is_capture() && reached.contains(m.to()) && {
                let from = m.from().filter(|_| !self.picture.is_empty(m.to()));
                from.is_some_and(|from| !self.trail.came_after_leaving(from, m.to()))
            };
            reached.set(m.to(), !is_unseen);
            let mut passed = position.squares(*m) & !differing;
            passed.set(m.to(), passed.contains(m.to()) && !is_unseen);
            position = position.play(*m);
            !(taken_again || is_of_former)
                && passed
                    .into_iter()
                    .all(|square| self.trail.at(square) > since)
        })
    }

    /// Whether somebody who stands where this line leads had come there long before the man that it leads there left. Where the man before
    /// him had stood it was that man then, put back.
    pub(super) fn has_come_before(&self, from: &Position, line: &[Move]) -> bool {
        let mut position = from.clone();
        let mut left = None;
        self.is_poor()
            && line.iter().any(|m| {
                let has_come = self.came_before(&position, *m)
                    || (left == Some(m.to()) && self.stood_before(&position, *m, trail::SCAN_MS));
                left = m.from();
                position = position.play_playable(*m);
                has_come
            })
    }

    /// A pawn that was answered on the last rank has been exchanged since: the doubt is settled by what stands there.
    pub(super) fn settle_promotion(&mut self, cx: &Context<'_>) -> bool {
        if self.promotions_seen {
            return false;
        }
        let doubtful = |ply: &Ply| ply.doubt == Some(Doubt::PromotionUnseen);
        let Some(index) = cx.line.plies.iter().rposition(doubtful) else {
            // What was told of the record and not taken yet may bring one.
            self.promotions_seen = self.ahead.is_none();
            return false;
        };
        let ply = &cx.line.plies[index];
        let before = cx.line.position(index);
        let square = ply.mv.to();
        // Once it has moved or was taken, nothing on this square speaks of it.
        if cx.line.tip().board().piece_at(square)
            != ply.mv.promotion().map(|role| role.of(before.turn()))
        {
            return false;
        }
        let Some(man) = self
            .picture
            .piece(square)
            .filter(|man| man.color == before.turn())
        else {
            return false;
        };
        if Some(man.role) == ply.mv.promotion() {
            self.observations
                .push_back(Observation::PromotionSeen { ply: index + 1 });
            return false;
        }
        let exchanged = before
            .moves_from(ply.mv.from().unwrap_or(square))
            .find(|m| m.to() == square && m.promotion() == Some(man.role));
        let Some(exchanged) = exchanged else {
            return false;
        };
        let mut moves = vec![Seen::new(before, exchanged, ply.seen_at)];
        for later in &cx.line.plies[index + 1..] {
            let from = moves[moves.len() - 1].after.clone();
            if !from.is_playable(later.mv) {
                return false;
            }
            moves.push(Seen::new(&from, later.mv, later.seen_at));
        }
        self.tentative = None;
        let why = CorrectionReason::Reread;
        self.tell_change(index, moves, cx.line.len(), why, Vec::new(), cx);
        self.look_due = true;
        true
    }

    /// Moves that the board shows beside a man of either side in a hand. A man that the mover could take, or that he may be castling
    /// with, is part of a move on its way instead.
    pub(super) fn beside_hands(
        &self,
        view: &View<'_>,
        depth: usize,
        pressed: Option<Color>,
        now: Millis,
    ) -> Option<Vec<Seen>> {
        let tip = view.tip();
        let may_still_take = pressed != Some(tip.turn());
        let board = tip.board();
        let mask = self.mask(view);
        let open = self.picture.differing(board) & !mask;
        let gone = |color: Color| -> Bitboard {
            (open & board.by_color(color))
                .into_iter()
                .filter(|square| self.picture.is_empty(*square))
                .collect()
        };
        let (own, theirs) = (gone(tip.turn()), gone(!tip.turn()));
        // With both kings in the hands the next squares that are filled may be theirs.
        if board.kings().is_subset(own | theirs) && self.is_poor() {
            return None;
        }
        let one_of = |squares: Bitboard| -> Vec<Bitboard> {
            std::iter::once(Bitboard::EMPTY)
                .chain(squares.into_iter().map(Bitboard::from))
                .collect()
        };
        let since = view.seen_at(view.len());
        let last = Some(own).filter(|own| own.count() > 1);
        let last = last.and_then(|own| self.last_lifted(own));
        let mut found: Option<Vec<Move>> = None;
        for own in one_of(own) {
            for theirs in one_of(theirs) {
                let hands = own | theirs;
                if hands.is_empty() {
                    continue;
                }
                // Who went before the other side had moved is not the one that moved, where another has gone since.
                let is_late = |square: Square| self.trail.at(square) >= since;
                let moved = |line: &[Move]| {
                    let from = line.first().and_then(|m| m.from());
                    from.is_none_or(is_late) || !own.into_iter().any(is_late)
                };
                let mut lines =
                    explain::lines_to(tip, &self.picture, mask | hands, depth, |line| {
                        moved(line)
                            && self.ends_put_down(tip, line, since)
                            && !self.may_be_pushed_there(tip, line[0], hands)
                    });
                if !lines.complete {
                    return None;
                }
                let is_on_its_way = |line: &[Move]| {
                    line.first().is_some_and(|m| {
                        let from = m.from();
                        // Once he has pressed, a king beside whom a rook is missing has made his step.
                        let castles = match m.role() {
                            Role::King => {
                                let castles = |castling: Castling| {
                                    Some(castling.king) == from && own.contains(castling.rook)
                                };
                                may_still_take && tip.castlings().any(castles)
                            }
                            Role::Rook => {
                                (own & board.kings()).any()
                                    && from.is_some_and(|from| castles_by(tip, from, m.to()))
                            }
                            _ => false,
                        };
                        let takes = |other: &Move| {
                            other.from() == from
                                && theirs.contains(capture_square(*other))
                                && other.is_capture()
                        };
                        castles || (may_still_take && tip.moves().iter().any(takes))
                    })
                };
                lines.found.retain(|line| !is_on_its_way(line));
                let Some(line) = self.likeliest(&view.standpoint(view.len()), &lines) else {
                    if lines.found.is_empty() {
                        continue;
                    }
                    return None;
                };
                // Who went long before the one that moves was knocked off.
                let is_last = |line: &[Move]| last.is_some() && line[0].from() == last;
                match &found {
                    Some(known) if *known == line || is_last(known) => {}
                    Some(_) if !is_last(&line) => return None,
                    _ => found = Some(line),
                }
            }
        }
        found.map(|line| self.seen(tip, &line, now))
    }
}

/// A capture, the capture that answers it, and a move: so many plies leave one man put down.
const EXCHANGED: usize = 3;

/// The most plies that are read at once.
pub(super) const MISSED: usize = 4;
