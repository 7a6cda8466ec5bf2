//! Judges presses: each belongs to the move of its side that lacks one, and makes loud what else is wrong.

use super::deed::unfinished_fault;
use super::look::LET_GO_MS;
use super::*;

/// What a clock tells comes at most so long after it happened.
pub(super) const CLOCK_LAG_MS: Millis = 1_000;
/// And mostly within this time. What was done so shortly before it was told may have been done after it.
const USUAL_LAG_MS: Millis = 800;

/// A deed of one player's shows on so many squares; of more, part is an accident.
const DEED: usize = 2;

/// What was pushed or knocked off at a press, besides the presser's move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pushed {
    Nothing,
    /// The move is known, so that this is the rest.
    Apart,
    /// Which part of what is wrong it is cannot be told.
    Mixed,
}

impl Sensing {
    /// This side pressed the clock.
    pub fn handle_press(&mut self, now: Millis, side: Color, cx: &Context<'_>) {
        if !cx.following {
            return;
        }
        self.film.note(now, Scene::Press(side));
        self.count_press(side, cx);
        self.unspent = None;
        if self.pressed_from_away(now, side, cx) {
            return;
        }
        self.leave_swapped(side, cx);
        // The bytes of a clock lag: a press that comes when the reply stands already belongs to the move that was answered.
        let view = self.view(cx);
        let n = view.len();
        let recorded = |ply: usize| cx.line.plies.get(ply - 1).filter(|_| ply <= view.keep);
        let in_place = self
            .picture
            .differing(view.tip().board())
            .into_iter()
            .all(|square| !self.concerns(square, side, view.tip()));
        if in_place
            && n >= 2
            && view.mover(n) != Some(side)
            && recorded(n - 1).is_some_and(|ply| !ply.pressed)
            && recorded(n).is_none_or(|ply| !ply.pressed)
        {
            self.tell_completed(side);
            return;
        }
        // His move stands and is told: this completes it, whatever is seen before the press is judged.
        // The man that he lifts next may be in his hand already.
        let stands = view.last().is_some_and(|last| {
            let man = view.tip().board().piece_at(last.to());
            man.is_some_and(|man| self.picture.piece(last.to()) == Some(man))
                && !self.is_castling_begun(&view, side)
        });
        let spent = (in_place || stands)
            && view.mover(n) == Some(side)
            && recorded(n).is_some_and(|ply| !ply.pressed);
        if spent {
            self.tell_completed(side);
        }
        if self.silent {
            return;
        }
        // Two presses within half a second: the first is judged by what is known now.
        if let Some(earlier) = self.presses.back_mut() {
            earlier.overtaken = true;
        }
        self.presses.push_back(Press {
            side,
            at: now,
            spent,
            overtaken: false,
            answered: false,
            waits_for: Wait::Quiet,
            held: None,
            read: false,
        });
    }

    /// A press has completed the last move of this side.
    pub(super) fn tell_completed(&mut self, side: Color) {
        let by = CompletedBy::Press;
        self.observations
            .push_back(Observation::Completed { side, by });
    }

    pub(super) fn press_due(&self, press: &Press) -> Millis {
        if press.overtaken {
            return press.at;
        }
        if press.held == Some(self.last_change) {
            return press.at + self.timing.dump;
        }
        let (at, quiet_at) = (press.at, self.quiet_at());
        let (soon, late) = (at + self.timing.press, at + self.timing.dump);
        match press.waits_for {
            Wait::Quiet => quiet_at.clamp(at, soon),
            // A board that still moves then is given as long again: what it shows in passing is nobody's deed.
            Wait::Scan => quiet_at.clamp(soon, soon + self.timing.press),
            Wait::NextScan => soon + trail::SCAN_MS,
            Wait::Dump => late,
            // What came with the dump, or after it, is looked at once it stands still.
            Wait::Nothing => quiet_at.clamp(at, late),
        }
    }

    pub(super) fn judge_press_if_due(&mut self, now: Millis, cx: &Context<'_>) {
        if self
            .presses
            .front()
            .is_some_and(|press| now >= self.press_due(press))
            && let Some(press) = self.presses.pop_front()
        {
            self.judge_press(now, press, cx);
            self.retraced |= self.retraced(cx).is_some();
            self.tell_sync();
        }
    }

    /// Whether the presser's move is not on the board, and there are other readings from which it may be.
    fn is_for_rivals(&self, side: Color, cx: &Context<'_>) -> bool {
        // What was seen on the way, and is no more, was no move of his.
        let tip = match self.is_gone_by(cx) {
            true => cx.line.tip(),
            false => self.view(cx).tip(),
        };
        self.is_poor()
            && !self.rivals.is_empty()
            && tip.turn() == side
            && self.waiting.is_none()
            && !self.picture.agrees_with(tip.board())
    }

    /// Whether a man was seen for a moment where he does not stand any more, and nothing of it was told.
    fn is_gone_by(&self, cx: &Context<'_>) -> bool {
        self.tentative.as_ref().is_some_and(|tentative| {
            !tentative.shown && tentative.keep == cx.line.len() && tentative.moves.len() == 1
        })
    }

    /// Whether the presser's man was seen on the way, and has not stayed there or come down elsewhere, as far as a board can tell that
    /// knows no men: whoever else stands astray came from another square.
    fn has_passed_and_taken(&self, side: Color, cx: &Context<'_>) -> bool {
        if !self.is_poor() || !self.is_gone_by(cx) {
            return false;
        }
        let view = self.view(cx);
        let from = view.last().and_then(Move::from);
        let open = self.picture.differing(cx.line.tip().board());
        let (left, came) = (open & self.picture.vacant(), open & !self.picture.vacant());
        self.has_gone_on(&view)
            && view.mover(view.len()) == Some(side)
            && from.is_some_and(|from| came.count() <= left.without(from).count())
    }

    /// What the presser did from where the record does not stand: what looked like a move on its way was one, or he has captured.
    fn read_rivals_at_press(&mut self, now: Millis, pressed: Pressed, cx: &Context<'_>) -> bool {
        let gone_by = match self.is_gone_by(cx) {
            true => self.tentative.take(),
            false => None,
        };
        if self.match_rivals(now, cx) {
            self.flush(cx);
            return true;
        }
        let is_read = self.try_rivals(cx, |sensing| sensing.read_unseen(now, pressed, cx));
        if !is_read && gone_by.is_some() {
            self.tentative = gone_by;
        }
        is_read
    }

    /// Whether the man that this side has moved last is in the air again, or its king beside a rook that may have been castling.
    fn is_held(&self, view: &View<'_>, side: Color) -> bool {
        let n = view.len();
        if self.is_castling_begun(view, side) {
            return true;
        }
        if view.mover(n) != Some(side) {
            return false;
        }
        !view.is_pressed(n - 1) && self.has_gone_on(view)
    }

    /// Whether a press of who made this ply, which was answered, is for what he has done since: long after the reply was seen, it was
    /// pressed, so that his clock has run again, or he has put a man down.
    fn is_for_next(&self, press: Press, his: usize, view: &View<'_>) -> bool {
        let n = view.len();
        if his == n || press.at <= view.seen_at(n) + CLOCK_LAG_MS {
            return false;
        }
        let tip = view.tip();
        let open = self.picture.differing(tip.board()) & !self.mask(view);
        let has_put_down = || {
            (open & !self.picture.vacant())
                .into_iter()
                .any(|square| self.concerns(square, press.side, tip))
        };
        view.is_pressed(n - 1) || has_put_down()
    }

    /// Whether a man of this side should stand on this square, or is shown there.
    pub(super) fn concerns(&self, square: Square, side: Color, position: &Position) -> bool {
        position.board().color_at(square) == Some(side)
            || self
                .picture
                .piece(square)
                .is_some_and(|man| man.color == side)
    }

    /// Judges a press against the placement. Whenever the record has to change first, the press is put back and judged again on the
    /// record as it then is.
    pub(super) fn judge_press(&mut self, now: Millis, press: Press, cx: &Context<'_>) {
        if self.waiting.is_some() {
            return;
        }
        match self.is_answered(press, cx) {
            true => self.judge_before_answer(now, press, cx),
            false => self.judge_as_shown(now, press, cx),
        }
    }

    /// Judges it against what the picture and the trail hold now.
    pub(super) fn judge_as_shown(&mut self, now: Millis, press: Press, cx: &Context<'_>) {
        if self.read_at_press(now, press, cx) {
            return;
        }
        if let Some(press) = self.complete_at_press(now, press, cx) {
            self.make_loud_at_press(now, press, cx);
        }
    }

    /// Reads what the presser did, where the record does not say it yet. Whether anything was read, or may be when more is seen: the
    /// press is put back then.
    fn read_at_press(&mut self, now: Millis, press: Press, cx: &Context<'_>) -> bool {
        if let Some(early) = self.early_move(press.side, cx) {
            self.arrived_by(vec![early], now, cx);
            self.presses.push_front(press);
            self.flush(cx);
            self.look_due = true;
            return true;
        }
        let told = self.observations.len();
        if press.waits_for == Wait::Nothing || now >= self.quiet_at() {
            self.search(now, Some(press.side), cx);
        }
        let word_lost = match self.observations.len() == told && !press.overtaken {
            true => self.word_lost(press.side, cx),
            false => None,
        };
        if let Some(word_lost) = word_lost {
            // Who has put down a queen, or taken, may still have to take his own man away.
            if press.may_wait() {
                self.wait_for_scan(press);
                return true;
            }
            self.read_word_lost(now, word_lost, cx);
            self.presses.push_front(press);
            return true;
        }
        if self.observations.len() == told
            && (self.read_unseen_for(now, press, cx) || self.tell_pending_for(now, press, cx))
        {
            return true;
        }
        if self.observations.len() > told {
            self.presses.push_front(press);
            return true;
        }
        self.read_beside_record(now, press, cx)
    }

    /// Reads what the presser did of which the board does not show all, be it supposed already. Whether there is such a thing.
    fn read_unseen_for(&mut self, now: Millis, press: Press, cx: &Context<'_>) -> bool {
        let is_supposed = |tentative: &Tentative| tentative.supposed;
        let supposed = self.tentative.as_ref().is_some_and(is_supposed)
            && self.view(cx).tip().turn() != press.side;
        if !supposed && !self.is_unseen_at_press(now, press.pressed(), cx) {
            return false;
        }
        // A slow scan may still show him elsewhere.
        if press.may_wait() {
            self.wait_for_scan(press);
            return true;
        }
        let has_time = press.waits_for < Wait::Nothing && now < press.at + self.timing.dump;
        if has_time && !press.overtaken && self.is_passing(cx) {
            self.presses.push_front(press.waiting_for(Wait::Dump));
            return true;
        }
        self.presses.push_front(press);
        if supposed {
            self.flush(cx);
            return true;
        }
        self.read_unseen(now, press.pressed(), cx);
        true
    }

    /// Tells the presser's move that was held back, if it stands. Whether it is waited for.
    fn tell_pending_for(&mut self, now: Millis, press: Press, cx: &Context<'_>) -> bool {
        let view = self.view(cx);
        // A man that stopped on a square and went on did not move there.
        let stands = |last: Move| {
            let has_left =
                last.is_castle() || last.from().is_none_or(|from| self.picture.is_empty(from));
            let is_taken_up = !press.overtaken && self.is_gone_since(press, last.to());
            let has_gone_on = self.has_gone_on(&view) && !is_taken_up;
            !self.is_poor() || (has_left && !has_gone_on)
        };
        // Whoever moved first of two that are read together has moved, whatever the other one does.
        let is_pending = match view.mover(view.len()) == Some(press.side) {
            true => !view.moves.is_empty() && view.last().is_some_and(stands),
            false => view.moves.len() > 1,
        };
        let is_held = self.is_held(&view, press.side);
        if is_held && press.may_wait() {
            // Pressed with the other hand: the man in this one may go on, or castle.
            self.wait_for_scan(press);
            return true;
        }
        if (is_held && self.reread_as_castling(now, true, cx)) || is_pending {
            self.flush(cx);
        }
        false
    }

    /// Reads what the presser did from where the record does not stand: his last move contradicts that, or his next is not on the board.
    fn read_beside_record(&mut self, now: Millis, press: Press, cx: &Context<'_>) -> bool {
        let pressed = press.pressed();
        if self.is_poor() && !press.spent && !press.may_wait() && self.waiting.is_none() {
            // Who has put his man back, and gone on, has taken back what he had not pressed.
            let taken_back = self
                .tentative
                .take_if(|tentative| !tentative.shown && tentative.moves.is_empty());
            if self.try_past_rivals(cx, |sensing| sensing.read_unseen(now, pressed, cx)) {
                self.presses.push_front(press);
                return true;
            }
            if taken_back.is_some() {
                self.tentative = taken_back;
            }
        }
        if !self.is_for_rivals(press.side, cx) {
            return false;
        }
        if press.may_wait() {
            self.wait_for_scan(press);
            return true;
        }
        let is_read = self.read_rivals_at_press(now, pressed, cx);
        if is_read {
            self.presses.push_front(press);
        }
        is_read
    }

    /// Says which move the press completes, and what of it is still to be done. None once that is all there is to the press, or while
    /// it waits.
    fn complete_at_press(&mut self, now: Millis, press: Press, cx: &Context<'_>) -> Option<Press> {
        let side = press.side;
        let view = self.view(cx);
        let n = view.len();
        // His last move: the last of all, or answered already without the press.
        let his = view.plies_of(side);
        let not_pressed = cx
            .line
            .plies
            .get(his.wrapping_sub(1))
            .is_some_and(|ply| !ply.pressed);
        let completed = his > 0
            && his <= view.keep
            && not_pressed
            && !press.spent
            && !self.is_for_next(press, his, &view);
        if (completed || press.spent)
            && !press.overtaken
            && let Some(fault) = self.half_castled_at_press(&view, his, now)
        {
            if self.may_come_down(now, press, fault.squares) {
                self.wait_for_hand(press);
            } else if self.has_second_look(now, press, cx) {
                if completed {
                    self.tell_completed(side);
                }
                self.raise(fault);
            }
            return None;
        }
        if completed {
            self.tell_completed(side);
        } else if view.mover(n) != Some(side)
            && !press.spent
            && self.judge_without_move(now, press, cx)
        {
            return None;
        }

        // It has completed his move, however often it is judged.
        Some(Press {
            spent: press.spent || completed,
            ..press
        })
    }

    /// Judges the press of who has made no move that is seen, or has not finished it. Whether that is all there is to it, or it waits.
    fn judge_without_move(&mut self, now: Millis, press: Press, cx: &Context<'_>) -> bool {
        let is_retracted = |tentative: &Tentative| tentative.moves.is_empty();
        if self.tentative.as_ref().is_some_and(is_retracted) {
            // A move is being taken back; there is nothing to judge yet.
            return true;
        }
        let side = press.side;
        let view = self.view(cx);
        let (n, tip) = (view.len(), view.tip());
        let mut open = self.picture.differing(tip.board()) & !self.mask(&view);
        let adjusting = open & tip.board().by_color(!side);
        if explain::only_hands(tip, &self.picture, open) && adjusting.count() <= 1 {
            // The opponent's hand is no part of this press.
            open &= !adjusting;
        }
        let is_open = open.any() || (self.is_poor() && adjusting.any());
        let is_quiet = !self.is_no_play(cx) && self.frozen_since.is_none() && !press.overtaken;
        if tip.turn() != side || !is_quiet {
            return false;
        }
        if is_open {
            let Some((m, left)) = self.unfinished(tip, open) else {
                return false;
            };
            if self.may_come_down(now, press, left) {
                self.wait_for_hand(press);
                return true;
            }
            let tip = tip.clone();
            if self.has_second_look(now, press, cx) {
                self.press_over_unfinished(now, &tip, m, left, press, cx);
            }
            return true;
        }
        if !self.faults.is_empty() || self.away.is_some() {
            return false;
        }
        if n > 0 && !self.is_completed(n, cx) {
            // The opponent has moved and not pressed, so that this clock cannot have run for him.
            self.observations
                .push_back(Observation::WrongSidePressed { side });
        } else if self.has_second_look(now, press, cx) {
            self.observations
                .push_back(Observation::PressWithoutMove { side });
        } else {
            return true;
        }
        self.tally.settle(n);
        false
    }

    /// Makes loud what else is wrong.
    fn make_loud_at_press(&mut self, now: Millis, press: Press, cx: &Context<'_>) {
        let side = press.side;
        // What a board that is gone had not shown yet is completed once it shows it.
        if self.silent && !press.spent && self.view(cx).tip().turn() == side {
            self.unspent = Some(press);
        }
        if let Some(second) = self.second_man_at(press, cx) {
            // It may have been set aside, to be put straight.
            self.faults.retain(|fault| fault.squares != second.squares);
            self.raise(second);
        }
        // Where the other side has pressed since, the board shows what came after, and says nothing of this press.
        if self.is_no_play(cx) || self.frozen_since.is_some() || press.overtaken {
            return;
        }
        if self.has_passed_and_taken(side, cx) {
            self.tentative = None;
        }
        // What the record explains by now is not made loud.
        self.close_restored(cx);
        if self.faults.is_empty() && self.picture.agrees_with(self.view(cx).tip().board()) {
            return;
        }
        // A press that completed an earlier move says nothing of men that are in the hand for the next.
        let his_turn = !press.spent && self.view(cx).tip().turn() == side;
        if self.is_loud_pending(press, his_turn, cx) {
            // What is on its way off the board has left it by then.
            let passed = self.victim_about(&self.view(cx)).unwrap_or_default();
            let held = self.in_hand_under_answer(press, cx);
            if (passed | held).any() && now < press.at + self.timing.dump {
                self.wait_for_hand(press);
                return;
            }
            // And a slow board that cannot be asked has shown where the man went who was in the hand.
            let in_hand = self.own_men_missing(side, his_turn, Bitboard::EMPTY, cx);
            let scanned = press.waiting_for(Wait::NextScan);
            if in_hand.any() && !cx.can_dump && now < self.press_due(&scanned) {
                self.presses.push_front(scanned);
                return;
            }
            if !self.has_second_look(now, press, cx) {
                return;
            }
            // In fast play what was seen is read once more, as it soon would be.
            let reads_stretch = self.check_at.is_some() && !self.has_changed_frozen();
            if !press.read
                && (self.read_at_last(now, side, cx)
                    || (reads_stretch && self.read_stretch(now, cx)))
            {
                self.presses.push_front(Press {
                    read: true,
                    ..press
                });
                return;
            }
            // What stood before the answer is put straight no more.
            let has_time = !press.answered && now < press.at + self.timing.dump;
            let straightens = has_time && self.is_lifted_since(press, &self.view(cx));
            let pushed = match has_time {
                true => self.pushed_at(press, cx),
                false => Pushed::Nothing,
            };
            let after = match press.spent {
                true if has_time => self.begun_after(press, &self.view(cx)),
                true => self.left_undone_after(press, &self.view(cx)),
                false => Bitboard::EMPTY,
            };
            if straightens || pushed != Pushed::Nothing {
                // It is set aside meanwhile, so that the answer can be read; not with what is on its way.
                if pushed == Pushed::Apart && !straightens {
                    self.note_fault_at_press(Level::Unsaid, press, his_turn, after, cx);
                }
                self.presses.push_front(Press {
                    held: Some(self.last_change),
                    ..press
                });
                return;
            }
            let is_agreed = press.waits_for == Wait::Nothing && !press.answered;
            let level = if is_agreed || !cx.can_dump {
                Level::Confirmed
            } else {
                Level::Told
            };
            self.raise_levels(level, press, cx);
            self.note_fault_at_press(level, press, his_turn, after, cx);
        }
    }

    /// What the presser has moved besides, if the board had shown all of it by the press, and the answer begins after that: it is no
    /// move made before its turn in fast play.
    fn second_man_at(&self, press: Press, cx: &Context<'_>) -> Option<Fault> {
        let is_still = self.sign.is_some() || self.frozen_since.is_some();
        // Where men are not known, what was read in fast play may be somebody else's move.
        if !(press.overtaken && press.spent) || is_still || !self.picture.is_exact() {
            return None;
        }
        let view = self.view(cx);
        let after = view.position(view.plies_of(press.side));
        let told = self
            .faults
            .iter()
            .filter(|fault| fault.level > Level::Unsaid);
        let told = told.fold(Bitboard::EMPTY, |all, fault| all | fault.squares);
        let open = self.picture.differing(after.board()) & !told;
        let answer = open & self.trail.changed_since(press.at);
        let theirs = after.board().by_color(!press.side);
        if (answer & theirs & self.picture.vacant()).is_empty() {
            return None;
        }
        let deed = open & !answer;
        let fault = self.classify(after, deed);
        let is_his = fault.side == Some(press.side) && (deed & !self.picture.vacant()).any();
        is_his.then(|| Fault {
            level: Level::Told,
            until_press: fault.kind == FaultKind::OutOfTurn,
            ..fault
        })
    }

    /// Squares of what may have been done after this press, which completed a move: it says nothing of them. The clock may have been
    /// struck long before it told. Who came from off the board was in a hand then.
    fn begun_after(&self, press: Press, view: &View<'_>) -> Bitboard {
        let board = view.tip().board();
        let since = press.at.saturating_sub(USUAL_LAG_MS);
        let moved = view.seen_at(view.len());
        let last = view.last().map(Move::to);
        let is_late = |square: &Square| {
            // Who has just moved may not have been let go of; but who is gone since the press is in the opponent's hand.
            let held = if last == Some(*square) { LET_GO_MS } else { 0 };
            self.trail.at(*square) > since.max(moved + held) || self.is_gone_since(press, *square)
        };
        let differing = self.picture.differing(board);
        let late: Bitboard = differing.into_iter().filter(is_late).collect();
        let left = late & board.occupied();
        let came_from_there = |square: &Square| {
            let shown = self.picture.at(*square);
            left.into_iter()
                .any(|from| shown.is_none_or(|shown| shown.agrees(board.piece_at(from))))
        };
        let came = (late & !left).into_iter().filter(came_from_there);
        left | came.collect::<Bitboard>()
    }

    /// Whether the man of this square stood there when this was pressed, and is gone since.
    fn is_gone_since(&self, press: Press, square: Square) -> bool {
        self.picture.is_empty(square)
            && self.trail.left(square) > press.at
            && self.trail.filled(square) <= press.at
    }

    /// The same once whoever did it has had his time: what the board had shown by the press is part of it, if it was the presser's own
    /// man that was moved, or one of the opponent's that cannot go there next, and whose move was not begun long after this one.
    fn left_undone_after(&self, press: Press, view: &View<'_>) -> Bitboard {
        let after = self.begun_after(press, view);
        let by_press = |square: &Square| self.trail.at(*square) <= press.at + LOOK_MS;
        let deed: Bitboard = after.into_iter().filter(by_press).collect();
        let stands = (deed & !self.picture.vacant()).any();
        let fault = self.classify(view.tip(), deed);
        let begun = |square: Square| self.trail.left(square).max(self.trail.filled(square));
        let at_once = view.seen_at(view.len()) + LET_GO_MS;
        let is_wrong = match fault.side {
            Some(side) if side == press.side => stands,
            Some(_) => stands && deed.into_iter().any(|square| begun(square) <= at_once),
            None => false,
        };
        if is_wrong { after & !deed } else { after }
    }

    /// Whether something stands that this press would make loud.
    fn is_loud_pending(&self, press: Press, his_turn: bool, cx: &Context<'_>) -> bool {
        let (none, side) = (Bitboard::EMPTY, press.side);
        let view = self.view(cx);
        let turn = view.tip().turn();
        let is_louder = |fault: &Fault| {
            let is_told = fault.level >= Level::Told;
            !is_told || self.moved_with(fault, press, &view).is_some()
        };
        self.faults
            .iter()
            .any(|fault| fault.is_made_loud_by(side, turn) && is_louder(fault))
            || self.new_fault(none, Some(side), cx).is_some()
            || self.own_men_missing(side, his_turn, none, cx).any()
            || (his_turn && self.is_unexplained(cx))
    }

    /// Whether a man that is none of the opponent's was lifted after this press, and is not down yet: whoever presses early still puts
    /// his men straight.
    fn is_lifted_since(&self, press: Press, view: &View<'_>) -> bool {
        let theirs = view.tip().board().by_color(!press.side);
        let lifted = self.picture.vacant() & self.trail.changed_since(press.at);
        (lifted & !theirs).any()
    }

    /// What was pushed or knocked off so shortly before this press that it may be put straight yet. What was wrong for longer is not
    /// waited for, and neither is a deed that the board shows alone.
    fn pushed_at(&self, press: Press, cx: &Context<'_>) -> Pushed {
        let view = self.view(cx);
        let wrong = self.picture.differing(view.tip().board()) & !self.faulty();
        let since = press.at.saturating_sub(CLOCK_LAG_MS);
        let is_set_aside = |fault: &Fault| {
            fault.level == Level::Unsaid
                && self.trail.changed_since(since).is_superset(fault.squares)
        };
        if self.faults.iter().any(is_set_aside) {
            return Pushed::Mixed;
        }
        let is_pushed = (wrong & self.trail.changed_since(since)).any();
        if !is_pushed || wrong.count() > ACCIDENT {
            return Pushed::Nothing;
        }
        let fault = self.new_fault(Bitboard::EMPTY, Some(press.side), cx);
        let is_made = |fault: &(Option<Seen>, Fault)| fault.0.is_some();
        if press.spent || fault.as_ref().is_some_and(is_made) {
            return Pushed::Apart;
        }
        let is_deed = fault.is_some_and(|(_, fault)| fault.side.is_some());
        match wrong.count() > DEED && !is_deed {
            true => Pushed::Mixed,
            false => Pushed::Nothing,
        }
    }

    /// What is in the hand is put down with the press, as near as that can be told.
    fn may_come_down(&self, now: Millis, press: Press, left: Bitboard) -> bool {
        left.is_subset(self.picture.vacant()) && now < press.at + self.timing.dump
    }

    /// The press is judged again when the board is quiet: a slow scan may still bring the move.
    fn wait_for_scan(&mut self, press: Press) {
        self.presses.push_front(press.waiting_for(Wait::Scan));
    }

    /// The press is judged again once it is down, or has had its time.
    fn wait_for_hand(&mut self, press: Press) {
        self.presses.push_front(Press {
            waits_for: Wait::Dump,
            ..press
        });
    }

    /// Before anything is told to the arbiter the board has had the time of a scan to show what was done before the press, and is
    /// read once more, where it can be.
    pub(super) fn has_second_look(&mut self, now: Millis, press: Press, cx: &Context<'_>) -> bool {
        if press.overtaken {
            // Nothing is waited for any more.
            return true;
        }
        let waiting = press.waiting_for(Wait::Scan);
        if waiting.waits_for < Wait::Dump && now < self.press_due(&waiting) {
            self.presses.push_front(waiting);
            return false;
        }
        let is_over = press.waits_for == Wait::Nothing || now >= press.at + self.timing.dump;
        if !cx.can_dump || is_over {
            return true;
        }
        if press.waits_for < Wait::Dump {
            self.observations.push_back(Observation::AskDump);
        }
        self.presses.push_front(press.waiting_for(Wait::Dump));
        false
    }

    /// Pressed with one of the castling men still on his way, the pawn on the last rank, or the pawn taken en passant still there.
    pub(super) fn press_over_unfinished(
        &mut self,
        now: Millis,
        tip: &Position,
        m: Move,
        left: Bitboard,
        press: Press,
        cx: &Context<'_>,
    ) {
        let side = press.side;
        let mut fault = unfinished_fault(m, left, side, now);
        if fault.kind != FaultKind::PromotionUnfinished {
            // What he played is plain; what is left to do is set aside.
            let keep = self.view(cx).len();
            self.flush(cx);
            let moves = vec![Seen::new(tip, m, now)];
            self.tell_moves(keep, moves, keep, CorrectionReason::MovedOn, cx);
            fault.ply = Some(keep + 1);
            self.tell_completed(side);
        }
        if fault.kind == FaultKind::PromotionUnfinished {
            self.unspent = Some(press);
        }
        self.raise(fault);
    }
}
