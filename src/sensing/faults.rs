//! Which faults stand, how loud they are, and when they are over.

use super::*;

/// A placement that no legal play explains.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub id: u32,
    pub kind: FaultKind,
    pub squares: Bitboard,
    /// The squares of what was played over it: they too must be put back before it is restored.
    pub over: Bitboard,
    /// Whose deed it was, where that can be told.
    pub side: Option<Color>,
    pub reason: Option<IllegalReason>,
    pub uci: Option<String>,
    pub level: Level,
    pub since: Millis,
    /// The irregular move and what was played after it, by geometry: what the record becomes if it stands.
    pub shadow: Vec<Seen>,
    /// The ply that it is about, where that is not the next one.
    pub ply: Option<usize>,
    /// It was answered, where nobody had pressed.
    pub answered: bool,
    /// It may be the next move of its side, made before its turn: that side's press tells, or the answer.
    pub until_press: bool,
}

/// What a fault is; session makes the alert of this name from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    IllegalMove,
    OutOfTurn,
    Displaced,
    CastlingUnfinished,
    PromotionUnfinished,
    /// Nobody's deed: more was played than can be told from what was seen. Nothing is set aside for it, because the record does not
    /// lead to where play goes on.
    Gap,
    /// More plies were pressed for than were seen.
    PliesMissing,
}

/// What ended a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultEnd {
    /// The squares were put right.
    Restored,
    /// The record was changed, and sensing begins anew from it.
    Superseded,
    /// So was the game.
    Ended,
}

impl Fault {
    /// Something on these squares that has begun now, and is nobody's deed yet.
    pub(super) fn new(kind: FaultKind, squares: Bitboard, since: Millis) -> Fault {
        Fault {
            id: 0,
            kind,
            squares,
            over: Bitboard::EMPTY,
            side: None,
            reason: None,
            uci: None,
            level: Level::Noted,
            since,
            shadow: Vec::new(),
            ply: None,
            answered: false,
            until_press: false,
        }
    }

    /// The same as nobody's move: men stand where they should not.
    fn as_displaced(&self) -> Fault {
        Fault {
            id: self.id,
            level: self.level,
            ply: self.ply,
            ..Fault::new(FaultKind::Displaced, self.squares, self.since)
        }
    }

    /// It becomes as loud as that, where these squares differ by now: who has been put back is displaced no more.
    fn rise(&mut self, level: Level, differing: Bitboard) {
        let open = self.squares & differing;
        if self.kind == FaultKind::Displaced && open.any() {
            self.squares = open;
        }
        self.level = level;
    }

    /// Whether it is nobody's deed, but something that was not seen.
    pub fn is_gap(&self) -> bool {
        matches!(self.kind, FaultKind::Gap | FaultKind::PliesMissing)
    }

    /// Whether this was pressed over, and is nobody's move.
    pub(super) fn is_told_displaced(&self) -> bool {
        self.kind == FaultKind::Displaced && self.level >= Level::Told
    }

    /// The square where one man stands, or is missing, by nobody's move.
    pub(super) fn beside_play(&self) -> Option<Square> {
        let is_so = self.kind == FaultKind::Displaced && self.side.is_none();
        self.squares.single_square().filter(|_| is_so)
    }

    /// Whether a press of this side, after which `turn` has the move, shows that play goes on over it: the presser's own deed, or one
    /// that nobody's clock would end. Who moved out of turn does not press; his opponent does, unless it is a move by now.
    pub(super) fn is_made_loud_by(&self, side: Color, turn: Color) -> bool {
        let is_move_by_now = self.until_press && self.side == Some(turn) && side != turn;
        let concerns = self.side.is_none_or(|of| of == side)
            || matches!(self.kind, FaultKind::Displaced | FaultKind::OutOfTurn);
        concerns && !is_move_by_now
    }
}

/// How loud a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Known, and nobody is told yet.
    Unsaid,
    /// Suspected; the operator may look.
    Noted,
    /// The arbiter should look.
    Told,
    /// Pressed over, and a second look at the board agrees.
    Confirmed,
}

/// A board that differs on more squares is being cleared or set up; no accident looks like that.
pub(crate) const CLEARED: usize = 20;
/// So many differ after an accident. After more plies than can be inferred more do.
pub(crate) const ACCIDENT: usize = 6;

impl Sensing {
    /// Whether it is told already that the record does not lead to what the board shows.
    pub(super) fn is_in_gap(&self) -> bool {
        self.faults.iter().any(|fault| fault.kind == FaultKind::Gap)
    }

    /// At a press a man of the presser's that is nowhere is no longer in his hand. What was done `after` it is none of its business.
    pub(super) fn note_fault_at_press(
        &mut self,
        level: Level,
        press: Press,
        his_turn: bool,
        after: Bitboard,
        cx: &Context<'_>,
    ) {
        if self.is_in_gap() {
            return;
        }
        let side = press.side;
        let told = self.faults.len();
        // A move that is found beside what is wrong is completed by this press.
        self.unspent = his_turn.then_some(press);
        // Whoever answered has not moved out of turn.
        let held = self.in_hand_under_answer(press, cx);
        if held.single_square().is_some() {
            let mut fault = self.classify(self.view(cx).tip(), held);
            fault.level = level.min(Level::Told);
            self.raise(fault);
            // The answer may tell where he went.
            self.searched = false;
            return;
        }
        self.note_fault_by(level, Some(side), after, cx);
        if self
            .faults
            .last()
            .is_some_and(|fault| fault.kind == FaultKind::IllegalMove)
        {
            self.unspent = None;
        }
        let missing = self.own_men_missing(side, his_turn, after, cx);
        if self.faults.len() == told && missing.any() {
            let view = self.view(cx);
            let mut fault = self.classify(view.tip(), missing);
            fault.level = level.min(Level::Told);
            self.raise(fault);
            self.unspent = Some(press);
        } else if self.faults.len() == told && his_turn {
            // Nothing was played, and something stands where nothing should: the press leaves it no more time.
            let view = self.view(cx);
            let tip = view.tip();
            let open = self.picture.differing(tip.board()) & !self.mask(&view);
            if open.is_empty() || explain::is_only_missing(tip, &self.picture, open) {
                return;
            }
            let gap = match self.unheard || open.count() > CLEARED {
                true => self.missed(open, self.last_change),
                false => None,
            };
            let mut fault = gap.unwrap_or_else(|| self.classify(tip, open));
            fault.level = level.min(Level::Told);
            if fault.kind != FaultKind::Gap || view.len() > 0 {
                self.raise(fault);
            }
        }
    }

    /// Notes what is not explained: what is noted is set aside, and the rest looked at again.
    pub(super) fn note_all_faults(&mut self, cx: &Context<'_>) {
        for fault in &mut self.faults {
            if fault.level == Level::Unsaid {
                fault.level = Level::Noted;
                tell(&mut self.observations, fault);
            }
        }
        let mut noted = usize::MAX;
        while self.faults.len() != noted
            && self
                .observations
                .iter()
                .all(|told| !matches!(told, Observation::Moved(_)))
        {
            noted = self.faults.len();
            self.note_fault_by(Level::Noted, None, Bitboard::EMPTY, cx);
        }
    }

    /// Raises what is not explained, at this level, where this side has pressed; nothing if all is explained.
    fn note_fault_by(
        &mut self,
        level: Level,
        pressed: Option<Color>,
        aside: Bitboard,
        cx: &Context<'_>,
    ) {
        let Some((seen, mut fault)) = self.new_fault(aside, pressed, cx) else {
            return;
        };
        // Where a man of the other side stands that could not go there next, it is nobody's move at this press.
        if fault.kind == FaultKind::IllegalMove
            && pressed.is_some_and(|side| fault.side != Some(side))
        {
            fault = fault.as_displaced();
        }
        // The answer to a move that was told is no deed of its own, even where that move cannot be played on by geometry, or is none.
        let view = self.view(cx);
        let tip = view.tip();
        let turn = tip.turn();
        let missing = self.pressed_missing(tip).map(Bitboard::from);
        let has_pressed = self.film.has_pressed_since(turn, view.seen_at(view.len()));
        let over = self.faults.iter().position(|known| {
            let is_his_deed = known.side == Some(turn) && known.reason.is_some();
            let mut squares = known.squares.into_iter();
            let is_his = known.kind == FaultKind::Displaced
                && has_pressed
                && squares.all(|square| self.concerns(square, turn, tip));
            known.level >= Level::Told && (is_his_deed || is_his || missing == Some(known.squares))
        });
        if fault.kind == FaultKind::OutOfTurn
            && let Some(known) = over.map(|index| &mut self.faults[index])
        {
            known.over |= fault.squares;
            tell(&mut self.observations, known);
            return;
        }
        if let Some(seen) = seen {
            let keep = self.view(cx).len();
            self.flush(cx);
            self.tell_moves(keep, vec![seen], keep, CorrectionReason::MovedOn, cx);
        }
        if self.is_gone_on_astray(&fault, cx) {
            return;
        }
        if level >= Level::Told && takes_over_own_man(&fault) {
            fault.kind = FaultKind::IllegalMove;
        }
        fault.level = match level {
            Level::Unsaid => level,
            _ => cap(fault.kind, level.max(fault.level)),
        };
        fault.until_press = fault.kind == FaultKind::OutOfTurn && cx.has_clock;
        self.raise(fault);
    }

    /// A man that stood astray has gone on to another wrong square: the same irregularity, on other squares.
    fn is_gone_on_astray(&mut self, fault: &Fault, cx: &Context<'_>) -> bool {
        let tip = self.view(cx).tip();
        let differing = self.picture.differing(tip.board());
        let found = self.faults.iter().enumerate().find_map(|(index, known)| {
            let deed = self.classify(tip, (known.squares | fault.squares) & differing);
            let same = deed.side.is_some() && deed.side == known.side && deed.kind == known.kind;
            same.then_some((index, deed))
        });
        let Some((index, deed)) = found else {
            return false;
        };
        let known = &mut self.faults[index];
        known.squares |= deed.squares;
        (known.reason, known.uci, known.shadow) = (deed.reason, deed.uci, deed.shadow);
        known.level = known.level.max(Level::Noted);
        tell(&mut self.observations, known);
        true
    }

    pub(super) fn raise(&mut self, mut fault: Fault) {
        fault.id = self.next_fault;
        self.next_fault += 1;
        tell(&mut self.observations, &fault);
        self.faults.push(fault);
        // What was played beside it can be read now.
        self.look_due = true;
    }

    /// Tells once more of what stands on these squares. For whoever kept it back.
    pub fn tell_faults_on(&mut self, squares: Bitboard) {
        let is_there =
            |fault: &&Fault| (fault.squares & squares).any() && fault.level > Level::Unsaid;
        for fault in self.faults.iter().filter(is_there) {
            tell(&mut self.observations, fault);
        }
    }

    /// A press makes what stands loud: the presser's own irregular move, and anything displaced.
    pub(super) fn raise_levels(&mut self, level: Level, press: Press, cx: &Context<'_>) {
        let side = press.side;
        let view = self.view(cx);
        let turn = view.tip().turn();
        let moves: Vec<Option<Fault>> = self
            .faults
            .iter()
            .map(|fault| self.moved_with(fault, press, &view))
            .collect();
        let differing = self.picture.differing(view.tip().board());
        let has_moved_at = (turn != side).then(|| view.seen_at(view.len()));
        for (fault, moved) in self.faults.iter_mut().zip(moves) {
            if !fault.is_made_loud_by(side, turn) {
                continue;
            }
            // Who has made his move after that had only displaced the man.
            let is_his = fault.kind == FaultKind::IllegalMove && fault.side == Some(side);
            if is_his && fault.level < Level::Told && has_moved_at > Some(fault.since) {
                *fault = fault.as_displaced();
            }
            let taken_over = fault.side == Some(side) && takes_over_own_man(fault);
            if taken_over {
                fault.kind = FaultKind::IllegalMove;
            }
            if let Some(moved) = moved {
                (fault.kind, fault.shadow) = (moved.kind, moved.shadow);
                (fault.side, fault.reason, fault.uci) = (moved.side, moved.reason, moved.uci);
            }
            let level = cap(fault.kind, level);
            if fault.level < level {
                fault.rise(level, differing);
                tell(&mut self.observations, fault);
            }
        }
    }

    /// What was displaced when the other side pressed, as the irregular move that it is now that this side has pressed over it.
    pub(super) fn moved_with(&self, fault: &Fault, press: Press, view: &View<'_>) -> Option<Fault> {
        // Who has pressed his move has not pressed over that.
        if press.spent {
            return None;
        }
        let side = press.side;
        let is_displaced = fault.kind == FaultKind::Displaced;
        let deed = is_displaced.then(|| self.classify(view.tip(), fault.squares))?;
        (deed.kind == FaultKind::IllegalMove && deed.side == Some(side)).then_some(deed)
    }

    pub(super) fn escalation_at(&self, fault: &Fault, cx: &Context<'_>) -> Option<Millis> {
        // Before the clock was started men are still being set up.
        let setting_up = cx.setting_up || (cx.unstarted && cx.line.is_empty());
        if fault.level > Level::Noted || setting_up {
            return None;
        }
        let since = fault.since.max(self.heard_since);
        match fault.kind {
            FaultKind::IllegalMove | FaultKind::OutOfTurn if cx.has_clock => None,
            FaultKind::Displaced => {
                // Who has been put back is missing no more.
                let open = self.still_open(fault, cx);
                let missing = open.is_subset(self.picture.vacant());
                if missing && self.may_be_in_hand(open, cx) {
                    return None;
                }
                Some(
                    since
                        + if missing {
                            self.timing.missing
                        } else {
                            self.timing.displaced
                        },
                )
            }
            _ => Some(since + self.timing.displaced),
        }
    }

    pub(super) fn escalate_by_time(&mut self, now: Millis, cx: &Context<'_>) {
        for index in 0..self.faults.len() {
            if self
                .escalation_at(&self.faults[index], cx)
                .is_some_and(|at| now >= at)
            {
                let open = self.still_open(&self.faults[index], cx);
                let fault = &mut self.faults[index];
                fault.rise(Level::Told, open);
                tell(&mut self.observations, fault);
            }
        }
    }

    /// The squares of a fault that still differ from the record.
    fn still_open(&self, fault: &Fault, cx: &Context<'_>) -> Bitboard {
        fault.squares & self.picture.differing(self.view(cx).tip().board())
    }

    /// Faults whose squares all agree with the record again are over; so is an irregular move that was replaced by a legal one.
    pub(super) fn close_restored(&mut self, cx: &Context<'_>) {
        self.reconsider_unread(cx);
        if self.faults.is_empty() && !self.unheard {
            return;
        }
        let view = self.view(cx);
        let tip = view.tip();
        let differing = self.picture.differing(tip.board());
        let is_led_to = explain::only_hands(tip, &self.picture, differing);
        let in_question = differing | self.squares_in_question();
        let plies = view.len();
        self.unheard &= differing.any();
        let (over, open): (Vec<Fault>, Vec<Fault>) =
            self.faults.drain(..).partition(|fault| match fault.kind {
                FaultKind::Gap => is_led_to,
                FaultKind::PliesMissing => !self.tally.is_ahead_of(plies),
                _ => ((fault.squares | fault.over) & in_question).is_empty(),
            });
        self.faults = open;
        // What was pressed over an irregularity says nothing of other plies.
        if over
            .iter()
            .any(|fault| fault.kind != FaultKind::PliesMissing)
        {
            self.tally.settle(plies);
        }
        self.note_dead(&over, cx);
        for fault in over {
            self.tell_closed(&fault, FaultEnd::Restored);
        }
    }

    pub(super) fn close_faults(&mut self, why: FaultEnd) {
        for fault in std::mem::take(&mut self.faults) {
            self.tell_closed(&fault, why);
        }
    }

    pub(super) fn tell_closed(&mut self, fault: &Fault, why: FaultEnd) {
        if fault.level > Level::Unsaid {
            let id = fault.id;
            self.observations
                .push_back(Observation::FaultClosed { id, why });
        }
    }

    /// Takes a fault off the list because somebody has decided on it.
    pub fn settle_fault(&mut self, id: u32) -> Option<Fault> {
        let index = self.faults.iter().position(|fault| fault.id == id)?;
        Some(self.faults.remove(index))
    }
}

/// Tells of a fault as it is by now, unless nobody is to know of it yet.
pub(super) fn tell(observations: &mut VecDeque<Observation>, fault: &Fault) {
    if fault.level > Level::Unsaid {
        observations.push_back(Observation::Fault(fault.clone()));
    }
}

/// An own man's square taken over: displaced until a press makes it an irregular move.
pub(super) fn takes_over_own_man(fault: &Fault) -> bool {
    fault.kind == FaultKind::Displaced && fault.reason == Some(IllegalReason::OwnPieceCaptured)
}

/// What each kind of fault can become at its loudest: only an irregular move is confirmed.
pub(super) fn cap(kind: FaultKind, level: Level) -> Level {
    match kind {
        FaultKind::IllegalMove | FaultKind::OutOfTurn => level,
        _ => level.min(Level::Told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also where what stands is told once more.
    #[test]
    fn nobody_hears_of_what_is_not_said_yet() {
        let mut sensing = Sensing::new(Timing::default());
        let fault = Fault::new(FaultKind::OutOfTurn, Bitboard::from(Square::A6), 1_000);
        let unsaid = Fault {
            level: Level::Unsaid,
            ..fault.clone()
        };
        for (fault, told) in [(unsaid, 0), (fault, 1)] {
            sensing.raise(fault);
            assert_eq!(sensing.observations.len(), told);
            sensing.tell_again();
            assert_eq!(sensing.observations.len(), 2 * told);
            sensing.close_faults(FaultEnd::Ended);
            assert_eq!(sensing.observations.len(), 3 * told);
        }
    }
}
