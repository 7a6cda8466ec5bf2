//! Looks further afield, once the placement is quiet: older positions, several plies at once, moves that were answered before they
//! were finished.

use super::deed::unfinished_fault;
use super::explain::Lines;
use super::look::{capture_square, castles_by, deepest_takeback, is_continued, sole};
use super::weigh::Weighed;
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
    fn fits(&self, from: &Position, line: &[Move], since: Millis) -> bool {
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
            let mut passed = position.effects(*m).squares() & !differing;
            passed.set(m.to(), passed.contains(m.to()) && !is_unseen);
            position = position.play(*m);
            !(taken_again || is_of_former)
                && passed
                    .into_iter()
                    .all(|square| self.trail.at(square) > since)
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
            let left = wrong & tip.effects(m).squares();
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

    /// Looks past what was told already: plies that went missing may explain all of it by now, also such as were played before some
    /// that were followed beside the fault.
    fn heal(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if self.faults.is_empty() {
            return false;
        }
        let view = self.view(cx);
        let n = view.len();
        let tip = view.tip();
        let differing = self.picture.differing(tip.board());
        if differing.is_empty() || explain::is_only_missing(tip, &self.picture, differing) {
            return false;
        }
        let healed = (n.saturating_sub(1)..=n + MISSED).find_map(|plies| self.healed(plies, &view));
        self.read_anew(healed, now, cx)
    }

    /// The same where one more ply would explain the board: it was no ply if fewer explain it too.
    pub(super) fn heal_with_fewer(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        let n = view.len();
        let healed = (n.saturating_sub(1)..=n).find_map(|plies| self.healed(plies, &view));
        self.read_anew(healed, now, cx)
    }

    fn read_anew(&mut self, healed: Option<Healed>, now: Millis, cx: &Context<'_>) -> bool {
        let Some((keep, from, lines)) = healed else {
            return false;
        };
        self.jumped(&from, keep, lines, now, cx);
        // The record has to be brought up to date before it can be seen that nothing is wrong any more.
        self.look_due = true;
        true
    }

    /// Games of so many plies that end with what the board shows: what was recorded, continued, or with more plies before what was
    /// seen of it.
    fn healed(&self, plies: usize, view: &View<'_>) -> Option<Healed> {
        let n = view.len();
        let shortest = plies.saturating_sub(MISSED);
        (shortest..=n.min(plies.checked_sub(1)?))
            .rev()
            .filter(|keep| (2..=MISSED).contains(&(plies - keep)) || *keep < n)
            .find_map(|keep| {
                let from = view.position(keep);
                let recorded: Vec<Recorded> = (keep..n)
                    .filter_map(|index| {
                        let mv = view.mv(index)?;
                        // He may have gone on if he had left where he stopped before the answer came, and had not been let go of.
                        let answered = (index + 1 < n).then(|| view.seen_at(index + 2));
                        let left = self.trail.at(mv.to());
                        let may_go_on = self.picture.is_empty(mv.to())
                            && answered.is_none_or(|at| left <= at)
                            && !self.was_pressed_before(view, index, left);
                        Some(Recorded { mv, may_go_on })
                    })
                    .collect();
                let since = view.seen_at(keep);
                let depth = plies - keep;
                let lines =
                    explain::lines_to(from, &self.picture, Bitboard::EMPTY, depth, |line| {
                        self.fits(from, line, since) && holds_what_was_seen(line, &recorded)
                    });
                lines.explain().then(|| (keep, from.clone(), lines))
            })
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

    /// Men on their way back to an older position can have been told as a fault; once that position stands, all of it was a takeback.
    fn is_back_from_faults(&mut self, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        if self.faults.is_empty() || self.picture.agrees_with(view.tip().board()) {
            return false;
        }
        let stands = |keep: &usize| self.picture.agrees_with(view.position(*keep).board());
        let Some(keep) = self.takebacks(&view, cx).rev().find(stands) else {
            return false;
        };
        self.take_back_once_at_rest(keep, Vec::new());
        true
    }

    /// Whether men go back to where they stood a few plies ago: each of these squares shows what it showed then, or nothing yet.
    pub(super) fn is_on_the_way_back(&self, view: &View<'_>, open: Bitboard) -> bool {
        let placed = open & !self.picture.vacant();
        placed.any() && self.stood_there(view, placed, 2 * MISSED)
    }

    /// Whether all these squares show what stood there after one of so many plies ago.
    pub(super) fn stood_there(&self, view: &View<'_>, placed: Bitboard, plies: usize) -> bool {
        let n = view.len();
        (n.saturating_sub(plies)..n).any(|keep| {
            let board = view.position(keep).board();
            (self.picture.differing(board) & placed).is_empty()
        })
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

    fn take_back_once_at_rest(&mut self, keep: usize, moves: Vec<Seen>) {
        let (since, hold) = (self.last_change, self.timing.takeback);
        let why = CorrectionReason::TakenBack;
        self.tentative = Some(Tentative::new(keep, moves, since, hold, why));
    }

    /// How many plies a takeback can leave.
    fn takebacks(&self, view: &View<'_>, cx: &Context<'_>) -> std::ops::Range<usize> {
        let n = view.len();
        let deepest = if cx.unstarted {
            0
        } else if cx.has_clock {
            deepest_takeback(cx.line, n)
        } else {
            // Without a clock nobody can tell a long takeback from analysis.
            cx.line.len().saturating_sub(2).min(n)
        };
        deepest..n
    }

    /// A position of the game so far, or one move from one, that the board shows on every square.
    pub(super) fn older(
        &self,
        view: &View<'_>,
        now: Millis,
        cx: &Context<'_>,
    ) -> Option<(usize, Vec<Seen>)> {
        let n = view.len();
        let is_one_deed = self.picture.differing(view.tip().board()).count() <= 2;
        let before_shown = cx.has_clock.then(|| retrace::shown_and_put_back(view));
        for keep in self.takebacks(view, cx).rev() {
            let position = view.position(keep);
            if self.picture.agrees_with(position.board()) {
                return Some((keep, Vec::new()));
            }
            // Men that wander about leave positions that differ by one man from many earlier ones. Who goes further back than his own
            // last move and plays on moves more of them, unless all had been put back.
            if is_one_deed && keep + 2 < n && before_shown.flatten() != Some(keep) {
                continue;
            }
            let differing = self.picture.differing(position.board());
            let found = explain::moves_to(position, &self.picture, differing, Bitboard::EMPTY);
            if let Some(m) = sole(&found)
                && !(keep + 1 == n && self.is_done(view, m))
                && self.may_have_gone_back(view, keep, m)
            {
                return Some((keep, vec![Seen::new(position, m, now)]));
            }
        }
        // What was told already may have been part of a longer way back; only where none explains it does it stay aside. While an
        // irregular move stands that was pressed over, a man that goes back answers it.
        let stands =
            |fault: &Fault| fault.level == Level::Confirmed && fault.kind == FaultKind::IllegalMove;
        // And whoever pressed has answered what would be taken back, be his man missing.
        if self.faults.iter().any(stands) || self.pressed_missing(view.tip()).is_some() {
            return None;
        }
        let set_aside = self.faulty();
        if set_aside.is_empty() {
            return None;
        }
        let beside = |keep: &usize| {
            let position = view.position(*keep);
            (self.picture.differing(position.board()) & !set_aside).is_empty()
        };
        let keep = self.takebacks(view, cx).rev().find(beside)?;
        Some((keep, Vec::new()))
    }

    /// Whether men can have gone back to where they stood after so many plies, and `m` been played from there: where two men have stood on
    /// one square the later of them came there after the other had left, unless he took him.
    pub(super) fn may_have_gone_back(&self, view: &View<'_>, keep: usize, m: Move) -> bool {
        if !self.is_poor() {
            return true;
        }
        let before = view.position(keep);
        let after = before.play(m);
        let (was, is) = (view.tip().board(), after.board());
        (keep..view.len()).all(|index| {
            let Some(played) = view.mv(index) else {
                return true;
            };
            let effects = view.position(index).effects(played);
            effects.iter().all(|(to, man)| {
                let has_other_man = man.is_some()
                    && is.piece_at(to).is_some()
                    && is.piece_at(to) != was.piece_at(to);
                let takes = m.to() == to && m.is_capture();
                // Who took unseen may not have been there at all.
                let was_seen = self.trail.at(to) > view.seen_at(index);
                let has_changed = self.trail.at(to) > view.seen_at(index + 1);
                !has_other_man || takes || !was_seen || has_changed
            })
        })
    }

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

/// How many plies stand, and the lines of several plies from there that lead to what the board shows.
type Healed = (usize, Position, Lines);

/// A capture, the capture that answers it, and a move: so many plies leave one man put down.
const EXCHANGED: usize = 3;

/// The most plies that are read at once.
pub(super) const MISSED: usize = 4;

/// The square as it lies before this side.
fn seen_by(side: Color, square: Option<Square>) -> Option<Square> {
    square.map(|square| match side {
        Color::White => square,
        Color::Black => square.flip_vertical(),
    })
}

/// A ply that was read, and whether its man may have gone on from there.
struct Recorded {
    mv: Move,
    may_go_on: bool,
}

/// Whether a line tells of all that was recorded, in its order, but for one man that went on.
fn holds_what_was_seen(line: &[Move], recorded: &[Recorded]) -> bool {
    let mut seen = recorded.iter().peekable();
    let mut gone_on = false;
    for m in line {
        let Some(next) = seen.peek() else { break };
        if next.mv == *m {
            seen.next();
        } else if !gone_on && next.may_go_on && is_continued(next.mv, *m) {
            gone_on = true;
            seen.next();
        }
    }
    seen.peek().is_none()
}
