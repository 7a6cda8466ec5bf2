//! What the hands did: square events, presses and time become observations.
//!
//! The placement is looked up among the positions that can be reached from the record. A hit explains the board, whatever the hands
//! did on the way: slides, second thoughts, victims dragged along cost nothing. What is seen is told once it has stood still for as
//! long as the move may be unfinished; what nothing explains becomes a fault with its squares. The calling contract:
//!
//! * time never runs backwards; [`Sensing::handle_timeout`] is called for every deadline before anything later is handed in;
//! * after each call the observations are taken with [`Sensing::poll_observation`] and the record is changed as they say;
//! * whoever else changes the record says so with [`Sensing::follow`].

use crate::Millis;
use crate::board::{Contents, Picture};
use crate::game::Line;
use crate::laws::illegal::Attempt;
use crate::laws::position::Position;
use crate::publish::{AlertKind, CloseReason, CompletedBy, CorrectionReason, Doubt, IllegalReason};
use shakmaty::{Bitboard, CastlingSide, Color, Move, Role, Square, attacks};
use std::collections::VecDeque;

pub mod explain;

/// How long things must last (defaults; milliseconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Quiet for so long, a placement is taken for what it is.
    pub settle: Millis,
    /// A slider, king step or pawn step that can go on is held for so long.
    pub hold: Millis,
    /// The same two while the mover is short of time.
    pub settle_short: Millis,
    pub hold_short: Millis,
    /// A rook beside its king is held for so long: castling may follow.
    pub hold_rook: Millis,
    /// An older position must stand for so long to count as a takeback.
    pub takeback: Millis,
    /// A press is judged at most so long after it.
    pub press: Millis,
    /// A dump that was asked for must come within this time of the press.
    pub dump: Millis,
    /// What nothing explains is told to the operator after this time.
    pub grace: Millis,
    /// And to the arbiter after this one.
    pub displaced: Millis,
    /// The same where men are only missing.
    pub missing: Millis,
    /// An opponent who lifts a man over an irregular move has this time to show that he is only the mover's other hand.
    pub reply_lift: Millis,
    /// Without a clock a move counts as completed after this time.
    pub quiet: Millis,
    /// The kings stand in the centre for so long.
    pub sign: Millis,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            settle: 250,
            hold: 350,
            settle_short: 100,
            hold_short: 200,
            hold_rook: 3_000,
            takeback: 1_000,
            press: 500,
            dump: 1_500,
            grace: 3_500,
            displaced: 10_000,
            missing: 12_000,
            reply_lift: 1_000,
            quiet: 10_000,
            sign: 5_000,
        }
    }
}

/// What sensing has to know of the rest, at each call.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub line: &'a Line,
    /// Whether moves are followed: a game stands ready or is being played.
    pub following: bool,
    /// Whether a clock has run, or was pressed, in this game.
    pub has_clock: bool,
    /// Whether a clock is attached that has not run yet: the first moves may fall away again.
    pub unstarted: bool,
    /// Whether the board can be asked for a dump.
    pub can_dump: bool,
    /// Whether the player who has the move is short of time.
    pub time_trouble: bool,
}

/// What happened on the board.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// The record reads: its first `keep` plies, then these.
    Moved {
        keep: usize,
        moves: Vec<Seen>,
        why: CorrectionReason,
        alternatives: Vec<Vec<Move>>,
    },
    /// The last move of this side is completed.
    Completed {
        side: Color,
        by: CompletedBy,
    },
    /// This side pressed, and no move of his was there to complete.
    PressWithoutMove {
        side: Color,
    },
    /// The exchange of this ply, which the board had not shown, is the one recorded.
    PromotionSeen {
        ply: usize,
    },
    /// This side's clock was pressed over a move of the other side: the clock may stand the wrong way round.
    WrongSidePressed {
        side: Color,
    },
    /// Something that no legal play explains has begun, or become louder.
    Fault(Fault),
    FaultClosed {
        id: u32,
        why: CloseReason,
    },
    /// Whether the board agrees with the record by now, and where not.
    Sync {
        in_sync: bool,
    },
    /// The placement has stood still.
    Stable,
    /// The board should be read anew.
    AskDump,
    /// Both kings have stood on two of d4 e4 d5 e5.
    ResultSign {
        result: &'static str,
    },
}

/// A move, and when the board first showed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub mv: Move,
    pub after: Position,
    pub at: Millis,
    /// What the board did not show of it.
    pub doubt: Option<Doubt>,
}

impl Seen {
    /// `mv`, played from `before`.
    pub fn new(before: &Position, mv: Move, at: Millis) -> Seen {
        Seen {
            mv,
            after: before.play(mv),
            at,
            doubt: None,
        }
    }
}

/// A placement that no legal play explains.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub id: u32,
    pub kind: AlertKind,
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
}

/// How loud a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Suspected; the operator may look.
    Noted,
    /// The arbiter should look.
    Told,
    /// Pressed over, and a second look at the board agrees.
    Confirmed,
}

/// A board that differs on more squares is being cleared or set up; no accident looks like that.
const CLEARED: usize = 20;

/// The machine; see the module's page.
#[derive(Debug, Clone)]
pub struct Sensing {
    timing: Timing,
    picture: Picture,
    /// When each square last changed, and the how-manieth change that was.
    changed: [(Millis, u64); 64],
    changes: u64,
    /// Squares that changed together in a dump: nothing tells their order.
    unordered: Bitboard,
    last_change: Millis,
    /// The search that waits for quiet has been made for this placement.
    searched: bool,
    dump_asked: bool,
    grace_passed: bool,
    tentative: Option<Tentative>,
    faults: Vec<Fault>,
    next_fault: u32,
    /// Presses that are not judged yet, the oldest first.
    presses: VecDeque<Press>,
    /// A press that was judged while this side's move was not on the board yet; it completes the move when it comes.
    unspent: Option<Color>,
    /// Without a clock: a position of the game so far that stands on the board again, from further back than a takeback goes.
    away: Option<usize>,
    /// The placement was not looked up since it changed: the record had to be brought up to date first.
    look_due: bool,
    /// After a command: the placement that stood when the record was changed over it.
    waiting: Option<Picture>,
    frozen_since: Option<Millis>,
    resumed_at: Millis,
    sign: Option<(Millis, &'static str)>,
    sign_told: bool,
    lift_over_fault: Option<(Millis, Square)>,
    in_sync: bool,
    observations: VecDeque<Observation>,
}

/// A reading of the board that has not stood long enough to be told.
#[derive(Debug, Clone)]
struct Tentative {
    keep: usize,
    moves: Vec<Seen>,
    /// Since when the board shows it.
    since: Millis,
    hold: Millis,
    /// Whether the board shows it just now.
    shown: bool,
    why: CorrectionReason,
}

#[derive(Debug, Clone, Copy)]
struct Press {
    side: Color,
    at: Millis,
    /// It has completed his move already; what is left to judge is the rest of the board.
    spent: bool,
    /// The other side has pressed since.
    overtaken: bool,
    /// Nothing on the board explained it when it was quiet; a slow scan may still bring the move.
    waits: bool,
    /// The placement was not explained, and a dump was asked for.
    dump_asked: bool,
    dump_seen: bool,
}

impl Sensing {
    pub fn new(timing: Timing) -> Sensing {
        Sensing {
            timing,
            picture: Picture::default(),
            changed: [(0, 0); 64],
            changes: 1,
            unordered: Bitboard::EMPTY,
            last_change: 0,
            searched: true,
            dump_asked: false,
            grace_passed: false,
            tentative: None,
            faults: Vec::new(),
            next_fault: 1,
            presses: VecDeque::new(),
            unspent: None,
            away: None,
            look_due: false,
            waiting: None,
            frozen_since: None,
            resumed_at: 0,
            sign: None,
            sign_told: false,
            lift_over_fault: None,
            in_sync: true,
            observations: VecDeque::new(),
        }
    }

    /// Squares that now read differently, all found in one look at the board.
    pub fn handle_squares(
        &mut self,
        now: Millis,
        changes: &[(Square, Contents)],
        cx: &Context<'_>,
    ) {
        let mut lifted = Bitboard::EMPTY;
        let mut changed = Bitboard::EMPTY;
        let shown_before = self
            .tentative
            .as_ref()
            .is_some_and(|tentative| tentative.shown);
        for (square, contents) in changes {
            if self.picture.set(*square, *contents).is_none() {
                continue;
            }
            changed.add(*square);
            if contents.is_empty() {
                lifted.add(*square);
            }
            // All changes of one look have one number: nothing tells their order.
            self.changed[square.to_usize()] = (now, self.changes);
            self.unordered.set(*square, changes.len() > 1);
        }
        if changed.is_empty() {
            return;
        }
        self.changes += 1;
        self.last_change = now;
        self.searched = false;
        self.dump_asked = false;
        self.grace_passed = false;
        self.watch_kings(now);
        if !cx.following {
            return;
        }
        self.note_lift_over_fault(now, lifted, cx);
        if shown_before && self.end_waiting_at_opponents_lift(lifted, cx) {
            self.look_due = true;
        } else {
            self.look(now, cx);
        }
    }

    /// A dump came that was waited for; its changes, if any, were handed in before.
    pub fn handle_dump(&mut self, now: Millis, cx: &Context<'_>) {
        if let Some(press) = self.presses.front_mut()
            && press.dump_asked
        {
            press.dump_seen = true;
            self.judge_press_if_due(now, cx);
        }
    }

    /// Whether a dump would settle something, even one that changes nothing.
    pub fn awaits_dump(&self) -> bool {
        self.presses
            .front()
            .is_some_and(|press| press.dump_asked && !press.dump_seen)
    }

    /// This side pressed the clock.
    pub fn handle_press(&mut self, now: Millis, side: Color, cx: &Context<'_>) {
        if !cx.following {
            return;
        }
        self.unspent = None;
        // The bytes of a clock lag: a press that comes when the reply stands already belongs to the move that was answered.
        let view = View::new(cx.line, self.tentative.as_ref());
        let n = view.len();
        let recorded = |ply: usize| cx.line.plies.get(ply - 1).filter(|_| ply <= view.keep);
        if n >= 2
            && view.position(n - 1).turn() != side
            && recorded(n - 1).is_some_and(|ply| !ply.pressed)
            && recorded(n).is_none_or(|ply| !ply.pressed)
        {
            self.observations.push_back(Observation::Completed {
                side,
                by: CompletedBy::Press,
            });
            return;
        }
        // His move stands and is told: this completes it, whatever is seen before the press is judged.
        let in_place = (self.picture.differing(view.tip().board())
            & view.tip().board().by_color(side))
        .is_empty();
        let spent = in_place
            && n >= 1
            && view.position(n - 1).turn() == side
            && recorded(n).is_some_and(|ply| !ply.pressed);
        if spent {
            self.observations.push_back(Observation::Completed {
                side,
                by: CompletedBy::Press,
            });
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
            waits: false,
            dump_asked: false,
            dump_seen: false,
        });
    }

    /// The clock stopped: what happens on the board from now on is no play.
    pub fn handle_clock_stopped(&mut self, now: Millis) {
        self.frozen_since.get_or_insert(now);
    }

    /// The clock runs: the placement is matched once.
    pub fn handle_clock_running(&mut self, now: Millis, cx: &Context<'_>) {
        if self.frozen_since.take().is_some() && cx.following {
            self.searched = false;
            self.look_due = true;
            self.resumed_at = now;
        }
    }

    /// The record was changed by a command or a new game: sensing stands on it from here on. With `wait` the board may differ from
    /// the record, and is left alone until it agrees or a move is made by hand.
    pub fn follow(&mut self, now: Millis, wait: bool, cx: &Context<'_>) {
        self.tentative = None;
        self.presses.clear();
        self.unspent = None;
        self.away = None;
        self.look_due = false;
        self.lift_over_fault = None;
        self.close_faults(CloseReason::Superseded);
        self.waiting = (wait && !self.picture.agrees_with(cx.line.tip().board()))
            .then(|| self.picture.clone());
        self.searched = false;
        self.grace_passed = false;
        if cx.following && !wait {
            self.last_change = self.last_change.max(now.saturating_sub(self.timing.settle));
            self.look(now, cx);
        }
        self.tell_sync();
    }

    /// A new game begins on this board: nothing of the last one counts.
    pub fn restart(&mut self, picture: Picture, now: Millis) {
        self.close_faults(CloseReason::Ended);
        self.picture = picture;
        self.tentative = None;
        self.presses.clear();
        self.unspent = None;
        self.away = None;
        self.look_due = false;
        self.waiting = None;
        self.frozen_since = None;
        self.lift_over_fault = None;
        self.sign_told = false;
        // It has stood still once it has stood still in this game.
        self.last_change = now;
        self.searched = false;
        self.grace_passed = true;
        self.sign = None;
        self.watch_kings(now);
        if !self.in_sync {
            self.in_sync = true;
            self.observations
                .push_back(Observation::Sync { in_sync: true });
        }
    }

    /// The game has ended: only the result sign is looked for.
    pub fn finish(&mut self) {
        self.tentative = None;
        self.presses.clear();
        self.unspent = None;
        self.away = None;
        self.look_due = false;
        self.waiting = None;
        self.lift_over_fault = None;
        self.close_faults(CloseReason::Ended);
        if !self.in_sync {
            self.in_sync = true;
            self.observations
                .push_back(Observation::Sync { in_sync: true });
        }
    }

    /// Fires what is due at `now`, which is the earliest deadline; tells the name of the timer.
    pub fn handle_timeout(&mut self, now: Millis, cx: &Context<'_>) -> &'static str {
        if self.look_due {
            self.look_due = false;
            self.look(now, cx);
            return "look";
        }
        if let Some((since, result)) = self.sign
            && !self.sign_told
            && now >= since + self.timing.sign
        {
            self.sign_told = true;
            self.observations
                .push_back(Observation::ResultSign { result });
            return "sign";
        }
        if !self.searched && now >= self.quiet_at() {
            self.searched = true;
            if cx.following {
                self.search(now, cx);
                self.tell_sync();
            }
            self.observations.push_back(Observation::Stable);
            return "settle";
        }
        if !cx.following {
            return "none";
        }
        if self
            .tentative
            .as_ref()
            .is_some_and(|tentative| tentative.shown && now >= tentative.since + tentative.hold)
        {
            self.flush();
            return "hold";
        }
        if self
            .presses
            .front()
            .is_some_and(|press| now >= self.press_due(press))
        {
            self.judge_press_if_due(now, cx);
            return "press";
        }
        let name = if let Some((at, square)) = self.lift_over_fault
            && now >= at + self.timing.reply_lift
        {
            self.lift_over_fault = None;
            if !self.is_put_back(square, cx) {
                self.tell_irregular_move(now, cx);
            }
            "reply_lift"
        } else if !self.dump_asked && cx.can_dump && now >= self.last_change + self.timing.takeback
        {
            self.dump_asked = true;
            if self.is_unexplained(cx) {
                self.observations.push_back(Observation::AskDump);
            }
            "dump"
        } else if !self.grace_passed && now >= self.last_change + self.timing.grace {
            self.grace_passed = true;
            // What is noted is set aside, and the rest looked at again.
            let mut told = usize::MAX;
            while self.faults.len() != told
                && self
                    .observations
                    .iter()
                    .all(|told| !matches!(told, Observation::Moved { .. }))
            {
                told = self.faults.len();
                self.note_fault(Level::Noted, cx);
            }
            "grace"
        } else {
            self.escalate_by_time(now, cx);
            "displaced"
        };
        self.tell_sync();
        name
    }

    pub fn poll_observation(&mut self) -> Option<Observation> {
        self.observations.pop_front()
    }

    /// The next moment at which [`Sensing::handle_timeout`] has something to do.
    pub fn poll_timeout(&self, cx: &Context<'_>) -> Option<Millis> {
        let mut next: Option<Millis> = None;
        let mut add = |at: Millis| next = Some(next.map_or(at, |next| next.min(at)));
        if let Some((since, _)) = self.sign
            && !self.sign_told
        {
            add(since + self.timing.sign);
        }
        if !self.searched {
            add(self.quiet_at());
        }
        if !cx.following {
            return next;
        }
        if let Some(tentative) = self.tentative.as_ref().filter(|tentative| tentative.shown) {
            add(tentative.since + tentative.hold);
        }
        if let Some(press) = self.presses.front() {
            add(self.press_due(press));
        }
        if self.look_due {
            add(self.last_change);
        }
        if let Some((at, _)) = self.lift_over_fault {
            add(at + self.timing.reply_lift);
        }
        if !self.dump_asked && cx.can_dump {
            add(self.last_change + self.timing.takeback);
        }
        if !self.grace_passed {
            add(self.last_change + self.timing.grace);
        }
        for fault in &self.faults {
            if let Some(at) = self.escalation_at(fault, cx) {
                add(at);
            }
        }
        next
    }

    /// Lets go of everything that waits for a time. For whoever finds that a timer does not go off.
    pub fn disarm(&mut self) {
        self.presses.clear();
        self.tentative = None;
        self.lift_over_fault = None;
        self.look_due = false;
        self.searched = true;
        self.dump_asked = true;
        self.grace_passed = true;
        for fault in &mut self.faults {
            fault.level = fault.level.max(Level::Told);
        }
    }

    pub fn picture(&self) -> &Picture {
        &self.picture
    }

    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    pub fn is_in_sync(&self) -> bool {
        self.in_sync
    }

    pub fn last_change(&self) -> Millis {
        self.last_change
    }

    /// Since when the kings stand as a result sign.
    pub fn shows_sign(&self) -> bool {
        self.sign.is_some()
    }

    // --- looking the placement up ---

    /// Looks the placement up; called at every change.
    fn look(&mut self, now: Millis, cx: &Context<'_>) {
        if let Some(tentative) = &mut self.tentative {
            tentative.shown = false;
        }
        if self.waiting.is_some() && !self.end_of_waiting(cx) {
            return;
        }
        if self.match_near(now, cx) {
            self.away = None;
        }
        self.close_restored(cx);
        self.tell_sync();
    }

    /// Looks among the positions next to where the game stands: the same, one move on, the last move otherwise or not at all.
    fn match_near(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        let view = View::new(cx.line, self.tentative.as_ref());
        let differing = self.picture.differing(view.tip().board());
        let none = Bitboard::EMPTY;
        let mask = self.mask(&view);
        if differing.is_empty() {
            self.arrived_again(now);
            return true;
        }
        if self.follow_shadow(now) {
            return true;
        }
        let masks = if mask.is_empty() { 1 } else { 2 };
        for mask in [none, mask].into_iter().take(masks) {
            let view = View::new(cx.line, self.tentative.as_ref());
            let tip = view.tip();
            if (differing & !mask).is_empty() {
                self.arrived_again(now);
                return true;
            }
            let found = explain::moves_to(tip, &self.picture, differing, mask);
            if let Some(m) = self.sole(&found) {
                if self.may_play(tip, m) {
                    let next = Seen::new(tip, m, now);
                    self.arrived_by(vec![next], now, cx);
                    return true;
                }
                return false;
            }
            if self.frozen_since.is_none()
                && let Some(moves) = self.two_plies(&view, differing, mask, now)
            {
                self.arrived_by(moves, now, cx);
                return true;
            }
            let n = view.len();
            if n > 0 && mask.is_empty() {
                let before = view.position(n - 1);
                let differing = self.picture.differing(before.board());
                if differing.is_empty() {
                    if self.frozen_since.is_none() {
                        self.retracted_to(n - 1, now, cx);
                        return true;
                    }
                    return false;
                }
                let found = explain::moves_to(before, &self.picture, differing, none);
                if let Some(m) = self.sole(&found)
                    && self.may_play(before, m)
                    && (m.is_castle() || self.may_move_on(tip))
                {
                    let next = Seen::new(before, m, now);
                    self.otherwise(n - 1, vec![next], now, cx);
                    return true;
                }
            }
        }
        false
    }

    /// Capture and recapture, or move and reply, in one look at the board.
    fn two_plies(
        &self,
        view: &View<'_>,
        differing: Bitboard,
        mask: Bitboard,
        now: Millis,
    ) -> Option<Vec<Seen>> {
        let tip = view.tip();
        let open = differing & !mask;
        let left = |color: Color| {
            (open & tip.board().by_color(color))
                .into_iter()
                .any(|square| {
                    self.picture
                        .piece(square)
                        .is_none_or(|shown| shown.color != color)
                })
        };
        if open.count() < 3 || open.count() > 8 || !left(tip.turn()) || !left(!tip.turn()) {
            return None;
        }
        let found = explain::lines_to(tip, &self.picture, mask, 2, 2);
        let [line] = found.as_slice() else {
            return None;
        };
        // The man that moved last may have gone on before the reply: fewer plies explain the board then.
        if view
            .last()
            .is_some_and(|last| line.get(1).is_some_and(|m| m.from() == Some(last.to())))
        {
            return None;
        }
        Some(self.seen(tip, line, now))
    }

    /// The board shows where the game stands: whatever the hands did in between was nothing.
    fn arrived_again(&mut self, now: Millis) {
        if let Some(tentative) = &mut self.tentative {
            tentative.since = now;
            tentative.shown = true;
        }
    }

    /// Moves were made from where the game stands. All but the last have been answered, and are told at once.
    fn arrived_by(&mut self, mut moves: Vec<Seen>, now: Millis, cx: &Context<'_>) {
        let mut tentative = self.tentative.take().unwrap_or(Tentative {
            keep: cx.line.len(),
            moves: Vec::new(),
            since: now,
            hold: 0,
            shown: true,
            why: CorrectionReason::MovedOn,
        });
        let waited = if tentative.moves.is_empty() && tentative.keep < cx.line.len() {
            tentative.hold
        } else {
            0
        };
        tentative.moves.append(&mut moves);
        let before = match tentative.moves.len() {
            0 | 1 => cx.line.position(tentative.keep).clone(),
            n => tentative.moves[n - 2].after.clone(),
        };
        let Some(last) = tentative.moves.pop() else {
            return;
        };
        if !tentative.moves.is_empty() {
            let answered = std::mem::take(&mut tentative.moves);
            let count = answered.len();
            self.tell_moves(tentative.keep, answered, tentative.why);
            tentative.keep += count;
        }
        tentative.hold = self
            .hold(&before, last.mv, cx)
            .max(if tentative.keep < cx.line.len() {
                waited.min(self.rest(tentative.keep, cx))
            } else {
                0
            });
        tentative.moves.push(last);
        tentative.since = now;
        tentative.shown = true;
        self.tentative = Some(tentative);
    }

    /// The board shows an earlier position.
    fn retracted_to(&mut self, keep: usize, now: Millis, cx: &Context<'_>) {
        if keep >= cx.line.len() {
            // It was never told, so there is nothing to take back.
            self.tentative = match self.tentative.take() {
                Some(mut tentative) if keep > tentative.keep => {
                    tentative.moves.truncate(keep - tentative.keep);
                    tentative.since = now;
                    tentative.shown = true;
                    Some(tentative)
                }
                _ => None,
            };
            return;
        }
        if self.is_too_far_back(keep, cx) {
            self.tentative = None;
            return;
        }
        self.tentative = Some(Tentative {
            keep,
            moves: Vec::new(),
            since: now,
            hold: self.timing.takeback,
            shown: true,
            why: CorrectionReason::TakenBack,
        });
    }

    /// Without a clock nobody can tell a long takeback from analysis: more than two plies back is neither.
    fn is_too_far_back(&self, keep: usize, cx: &Context<'_>) -> bool {
        !cx.has_clock && !cx.unstarted && cx.line.len() > keep + 2
    }

    /// Whether an earlier position of the game stands on the board, from further back than a takeback goes; two further plies from
    /// there are play again.
    fn look_further_back(&mut self, now: Millis, cx: &Context<'_>) -> bool {
        if cx.has_clock || cx.unstarted {
            return false;
        }
        if let Some(keep) = self.away.filter(|keep| *keep < cx.line.len()) {
            let from = cx.line.position(keep);
            let found = explain::lines_to(from, &self.picture, Bitboard::EMPTY, 2, 2);
            if let [line] = found.as_slice() {
                let moves = self.seen(from, line, now);
                self.away = None;
                self.tentative = None;
                self.observations.push_back(Observation::Moved {
                    keep,
                    moves,
                    why: CorrectionReason::TakenBack,
                    alternatives: Vec::new(),
                });
                return true;
            }
            if self.picture.agrees_with(from.board())
                || !explain::moves_to(
                    from,
                    &self.picture,
                    self.picture.differing(from.board()),
                    Bitboard::EMPTY,
                )
                .is_empty()
            {
                return true;
            }
        }
        let deepest = cx.line.len().saturating_sub(2);
        let far = (1..deepest)
            .rev()
            .find(|keep| self.picture.agrees_with(cx.line.position(*keep).board()));
        if far.is_some() {
            self.away = far;
            self.tell_sync();
        }
        far.is_some()
    }

    /// The board shows the last plies otherwise than they were read so far.
    fn otherwise(&mut self, keep: usize, moves: Vec<Seen>, now: Millis, cx: &Context<'_>) {
        let Some(last) = moves.last() else { return };
        let before = if moves.len() > 1 {
            moves[moves.len() - 2].after.clone()
        } else {
            View::new(cx.line, self.tentative.as_ref())
                .position(keep)
                .clone()
        };
        let hold = self.hold(&before, last.mv, cx).max(self.rest(keep, cx));
        let same_man = cx.line.plies.get(keep).is_some_and(|ply| {
            moves
                .first()
                .is_some_and(|seen| is_continued(ply.mv, seen.mv))
        });
        let why = if same_man || keep >= cx.line.len() {
            CorrectionReason::MovedOn
        } else {
            CorrectionReason::TakenBack
        };
        let (base, mut told) = match self.tentative.take() {
            Some(tentative) if tentative.keep <= keep => (tentative.keep, tentative.moves),
            _ => (keep, Vec::new()),
        };
        told.truncate(keep - base);
        told.extend(moves);
        self.tentative = Some(Tentative {
            keep: base,
            moves: told,
            since: now,
            hold,
            shown: true,
            why,
        });
    }

    /// Looks further afield, once the placement is quiet: older positions, several plies at once.
    fn search(&mut self, now: Millis, cx: &Context<'_>) {
        if self.waiting.is_some()
            || self.frozen_since.is_some()
            || self.sign.is_some()
            || self.settle_promotion(cx)
        {
            return;
        }
        if !self.is_unexplained(cx) {
            return;
        }
        let view = View::new(cx.line, self.tentative.as_ref());
        let mask = self.mask(&view);
        let tip = view.tip();
        let differing = self.picture.differing(tip.board()) & !mask;
        if explain::only_hands(tip, &self.picture, differing) {
            return;
        }
        let older = self.older(&view, now, cx);
        if older.is_none() && self.look_further_back(now, cx) {
            return;
        }
        let view = View::new(cx.line, self.tentative.as_ref());
        let tip = view.tip();
        if let Some((keep, moves)) = older {
            self.tentative = Some(Tentative {
                keep,
                moves,
                since: self.last_change,
                hold: self.timing.takeback,
                shown: true,
                why: CorrectionReason::TakenBack,
            });
            return;
        }
        if explain::is_in_progress(tip, &self.picture, differing) || self.is_victim_about(&view) {
            return;
        }
        if let Some(moves) = self.beside_hands(&view, 1, now) {
            self.arrived_by(moves, now, cx);
            return;
        }
        let deepest = if explain::is_only_missing(tip, &self.picture, differing) {
            0
        } else {
            4
        };
        for depth in 2..=deepest {
            let n = view.len();
            if n > 0 && !self.is_completed(n, cx) {
                let before = view.position(n - 1);
                let since = view.seen_at(n - 1);
                let mut found = explain::lines_to(before, &self.picture, mask, depth, 2);
                found.retain(|line| self.may_have_passed(before, line, since));
                if let [line] = found.as_slice() {
                    let moves = self.seen(before, line, now);
                    self.otherwise(n - 1, moves, now, cx);
                    return;
                }
            }
            let since = view.seen_at(n);
            let mut found = explain::lines_to(tip, &self.picture, mask, depth, 16);
            found.retain(|line| self.may_have_passed(tip, line, since));
            if !found.is_empty() {
                let (tip, keep) = (tip.clone(), n);
                self.jumped(&tip, keep, found, now);
                return;
            }
            if let Some(moves) = self.beside_hands(&view, depth, now).filter(|_| depth == 2) {
                self.arrived_by(moves, now, cx);
                return;
            }
        }
        self.search_answered(now, cx);
    }

    /// Whether the men of this line can have been where it leads them: a board whose changes came singly showed each square on the
    /// way. A look with many changes tells of others that nobody saw.
    fn may_have_passed(&self, from: &Position, line: &[Move], since: Millis) -> bool {
        let differing = self.picture.differing(from.board());
        if (differing & self.unordered).any() {
            return true;
        }
        let mut position = from.clone();
        let mut reached = Bitboard::EMPTY;
        line.iter().all(|m| {
            // A man that arrived and was taken again stood on a square that changed once.
            let taken_again = line.len() > 2 && m.is_capture() && reached.contains(m.to());
            reached.add(m.to());
            let passed = position.effects(*m).squares() & !differing;
            position = position.play(*m);
            !taken_again
                && passed
                    .into_iter()
                    .all(|square| self.changed[square.to_usize()].0 > since)
        })
    }

    /// A pawn that was answered on the last rank has been exchanged since: the doubt is settled by what stands there.
    fn settle_promotion(&mut self, cx: &Context<'_>) -> bool {
        let doubtful = |ply: &crate::game::Ply| ply.doubt == Some(Doubt::PromotionUnseen);
        let Some(index) = cx.line.plies.iter().rposition(doubtful) else {
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
        let mut moves = vec![Seen {
            at: ply.seen_at,
            ..Seen::new(before, exchanged, ply.seen_at)
        }];
        for later in &cx.line.plies[index + 1..] {
            let from = moves[moves.len() - 1].after.clone();
            if !from.is_playable(later.mv) {
                return false;
            }
            moves.push(Seen::new(&from, later.mv, later.seen_at));
        }
        self.tentative = None;
        self.observations.push_back(Observation::Moved {
            keep: index,
            moves,
            why: CorrectionReason::Reread,
            alternatives: Vec::new(),
        });
        self.look_due = true;
        true
    }

    /// Looks for a move that was answered before it was finished, or though it is none.
    fn search_answered(&mut self, now: Millis, cx: &Context<'_>) {
        let view = View::new(cx.line, self.tentative.as_ref());
        let tip = view.tip();
        let keep = view.len();
        if let Some((moves, fault)) = self.answered_unfinished(tip, keep, now) {
            self.flush();
            self.tell_moves(keep, moves, CorrectionReason::MovedOn);
            let known = self
                .faults
                .iter()
                .any(|known| (fault.squares & !known.squares).is_empty());
            if !known {
                self.raise(fault);
            }
            return;
        }
        let open = self.picture.differing(tip.board()) & !self.mask(&view);
        if let Some(fault) = self.answered_irregular_move(tip, open) {
            self.raise(fault);
        }
    }

    /// Castling, promotion or en passant that the opponent answered while part of it was still to do: both are recorded, and what
    /// is left to do is the fault.
    fn answered_unfinished(
        &self,
        tip: &Position,
        keep: usize,
        now: Millis,
    ) -> Option<(Vec<Seen>, Fault)> {
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
                        || contents.agrees(tip.board().piece_at(square))
                        || (waits && contents.agrees(Some(Role::Pawn.of(us))))
                })
            };
            let arrived = match m {
                Move::Castle { king, rook } => {
                    let side = CastlingSide::from_king_side(king < rook);
                    !left.contains(king) && !left.contains(side.king_to(us))
                }
                Move::EnPassant { from, to } => !left.contains(from) && !left.contains(to),
                m => m.from().is_some_and(|from| !left.contains(from)),
            };
            if left.is_empty() || !arrived || !left.into_iter().all(old_or_pawn) {
                continue;
            }
            if let [reply] = explain::moves_to(&first.after, &self.picture, wrong, left).as_slice()
            {
                if m.promotion().is_some() {
                    first.doubt = Some(Doubt::PromotionUnseen);
                }
                let second = Seen::new(&first.after, *reply, now);
                let mut fault = unfinished_fault(m, left, us, now);
                fault.ply = Some(keep + 1);
                fault.answered = true;
                return Some((vec![first, second], fault));
            }
        }
        None
    }

    /// Moves that the board shows beside a man of either side in a hand. A man that the mover could take, or that he may be castling
    /// with, is part of a move on its way instead.
    fn beside_hands(&self, view: &View<'_>, depth: usize, now: Millis) -> Option<Vec<Seen>> {
        let tip = view.tip();
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
        let one_of = |squares: Bitboard| -> Vec<Bitboard> {
            std::iter::once(Bitboard::EMPTY)
                .chain(squares.into_iter().map(Bitboard::from))
                .collect()
        };
        let mut found: Option<Vec<Move>> = None;
        for own in one_of(own) {
            for theirs in one_of(theirs) {
                let hands = own | theirs;
                if hands.is_empty() {
                    continue;
                }
                for line in explain::lines_to(tip, &self.picture, mask | hands, depth, 2) {
                    let on_its_way = line.first().is_some_and(|m| {
                        let from = m.from();
                        let castles = matches!(m.role(), Role::King | Role::Rook)
                            && (own & (board.kings() | board.rooks())).any();
                        castles
                            || tip.moves().into_iter().any(|other| {
                                other.from() == from
                                    && theirs.contains(capture_square(other))
                                    && other.is_capture()
                            })
                    });
                    if on_its_way {
                        continue;
                    }
                    if found.as_ref().is_some_and(|known| *known != line) {
                        return None;
                    }
                    found = Some(line);
                }
            }
        }
        found.map(|line| self.seen(tip, &line, now))
    }

    /// A position of the game so far, or one move from one, that the board shows on every square.
    fn older(&self, view: &View<'_>, now: Millis, cx: &Context<'_>) -> Option<(usize, Vec<Seen>)> {
        let n = view.len();
        let deepest = if cx.unstarted {
            0
        } else if cx.has_clock && n > 2 {
            // The start, from further away, is the next game's array and no takeback.
            1
        } else {
            // Without a clock nobody can tell a long takeback from analysis.
            cx.line.len().saturating_sub(2).min(n)
        };
        for keep in (deepest..n).rev() {
            let position = view.position(keep);
            let differing = self.picture.differing(position.board());
            if differing.is_empty() {
                return Some((keep, Vec::new()));
            }
            let found = explain::moves_to(position, &self.picture, differing, Bitboard::EMPTY);
            if let Some(m) = self.sole(&found) {
                return Some((keep, vec![Seen::new(position, m, now)]));
            }
        }
        None
    }

    /// Several plies were played while nobody looked. Their order is told by the squares, if by anything.
    fn jumped(&mut self, tip: &Position, keep: usize, found: Vec<Vec<Move>>, now: Millis) {
        let in_order: Vec<&Vec<Move>> = found
            .iter()
            .filter(|line| self.is_in_order(tip, line))
            .collect();
        let line = (*in_order.first().unwrap_or(&&found[0])).clone();
        let certain = in_order.len() == 1 || found.len() == 1;
        let moves = self.seen(tip, &line, now);
        if let Some(tentative) = self.tentative.take() {
            self.tell_moves(tentative.keep, tentative.moves, tentative.why);
        }
        let alternatives = if certain { Vec::new() } else { found };
        self.observations.push_back(Observation::Moved {
            keep,
            moves,
            why: CorrectionReason::Reread,
            alternatives,
        });
    }

    /// Whether the squares where the men of this line arrived were seen to change in its order.
    fn is_in_order(&self, from: &Position, line: &[Move]) -> bool {
        let mut last = 0;
        let mut position = from.clone();
        for m in line {
            let to = match m {
                Move::Castle { king, rook } => {
                    CastlingSide::from_king_side(king < rook).king_to(position.turn())
                }
                m => m.to(),
            };
            let (_, order) = self.changed[to.to_usize()];
            if order <= last || self.unordered.contains(to) {
                return false;
            }
            last = order;
            position = position.play(*m);
        }
        true
    }

    fn seen(&self, from: &Position, line: &[Move], now: Millis) -> Vec<Seen> {
        let mut position = from.clone();
        line.iter()
            .map(|m| {
                let seen = Seen::new(&position, *m, now);
                position = seen.after.clone();
                seen
            })
            .collect()
    }

    /// The only move that explains the board. Among several that look alike a poorer sensor decides nothing.
    fn sole(&self, found: &[Move]) -> Option<Move> {
        match found {
            [m] => Some(*m),
            _ => None,
        }
    }

    /// While the record is frozen only a move whose man was lifted before the stop may finish.
    fn may_play(&self, before: &Position, m: Move) -> bool {
        let Some(stopped) = self.frozen_since else {
            return true;
        };
        before
            .effects(m)
            .iter()
            .filter(|(_, man)| man.is_none())
            .any(|(square, _)| self.changed[square.to_usize()].0 < stopped)
    }

    /// While the record is frozen a man that has arrived goes on only if it was lifted again before the stop. The square that it came
    /// from tells nothing: it has been empty since the move.
    fn may_move_on(&self, tip: &Position) -> bool {
        let Some(stopped) = self.frozen_since else {
            return true;
        };
        let left = self.picture.differing(tip.board()) & tip.board().occupied();
        left.into_iter()
            .all(|square| self.changed[square.to_usize()].0 < stopped)
    }

    /// How long a move is held before it is told: it may not be finished.
    fn hold(&self, before: &Position, m: Move, cx: &Context<'_>) -> Millis {
        let (settle, hold) = match cx.time_trouble {
            true => (self.timing.settle_short, self.timing.hold_short),
            false => (self.timing.settle, self.timing.hold),
        };
        let Move::Normal { role, from, to, .. } = m else {
            return settle;
        };
        if role == Role::Rook && castles_by(before, from, to) {
            return self.timing.hold_rook;
        }
        if goes_on(before, role, from, to) {
            hold
        } else {
            settle
        }
    }

    /// How long a placement must rest that rewrites what is in the record.
    fn rest(&self, keep: usize, cx: &Context<'_>) -> Millis {
        let rewrites_completed =
            cx.line.len() > keep && (cx.line.len() > keep + 1 || cx.line.plies[keep].by.is_some());
        if rewrites_completed {
            self.timing.takeback
        } else {
            0
        }
    }

    fn is_completed(&self, ply: usize, cx: &Context<'_>) -> bool {
        cx.line
            .plies
            .get(ply - 1)
            .is_some_and(|ply| ply.by.is_some())
    }

    /// The opponent lifts a man: the mover has finished, unless that man can be what he is about to take.
    fn end_waiting_at_opponents_lift(&mut self, lifted: Bitboard, cx: &Context<'_>) -> bool {
        let Some(tentative) = &self.tentative else {
            return false;
        };
        let Some(last) = tentative.moves.last() else {
            return false;
        };
        if tentative.keep < cx.line.len() && self.rest(tentative.keep, cx) > 0 {
            return false;
        }
        let theirs = last.after.board().by_color(last.after.turn());
        if (lifted & theirs).is_empty() {
            return false;
        }
        let before = match tentative.moves.len() {
            0 | 1 => cx.line.position(tentative.keep),
            n => &tentative.moves[n - 2].after,
        };
        let from = last.mv.from();
        let victims: Bitboard = before
            .moves()
            .into_iter()
            .filter(|m| m.from() == from && m.is_capture())
            .map(capture_square)
            .collect();
        let ends = (lifted & theirs & !victims).any();
        if ends {
            self.flush();
        }
        ends
    }

    /// Tells what was held back.
    fn flush(&mut self) {
        if let Some(tentative) = self.tentative.take() {
            self.tell_moves(tentative.keep, tentative.moves, tentative.why);
        }
    }

    fn tell_moves(&mut self, keep: usize, moves: Vec<Seen>, why: CorrectionReason) {
        let mover = moves.last().map(|seen| !seen.after.turn());
        let pressed = |press: &Press| mover == Some(press.side) && !press.spent;
        let completed = self
            .presses
            .front()
            .is_some_and(pressed)
            .then(|| self.presses.pop_front())
            .flatten();
        self.observations.push_back(Observation::Moved {
            keep,
            moves,
            why,
            alternatives: Vec::new(),
        });
        // A press before its move was seen belongs to that move.
        let side = completed
            .map(|press| press.side)
            .or(self.unspent.take_if(|side| mover == Some(*side)));
        if let Some(side) = side {
            self.observations.push_back(Observation::Completed {
                side,
                by: CompletedBy::Press,
            });
        }
    }

    // --- presses ---

    fn press_due(&self, press: &Press) -> Millis {
        if press.overtaken || press.dump_seen {
            return press.at;
        }
        if press.dump_asked {
            return press.at + self.timing.dump;
        }
        if press.waits {
            // A board that still moves then is given as long again: what it shows in passing is nobody's deed.
            let due = press.at + self.timing.press;
            return self.quiet_at().clamp(due, due + self.timing.press);
        }
        self.quiet_at()
            .clamp(press.at, press.at + self.timing.press)
    }

    fn judge_press_if_due(&mut self, now: Millis, cx: &Context<'_>) {
        if self
            .presses
            .front()
            .is_some_and(|press| now >= self.press_due(press))
            && let Some(press) = self.presses.pop_front()
        {
            self.judge_press(now, press, cx);
            self.tell_sync();
        }
    }

    /// Judges a press against the placement. Whenever the record has to change first, the press is put back and judged again on the
    /// record as it then is.
    fn judge_press(&mut self, now: Millis, press: Press, cx: &Context<'_>) {
        if self.waiting.is_some() {
            return;
        }
        let told = self.observations.len();
        if !self.searched && now >= self.quiet_at() {
            self.search(now, cx);
        }
        let side = press.side;
        let mover = |view: &View<'_>, ply: usize| (ply > 0).then(|| view.position(ply - 1).turn());
        let view = View::new(cx.line, self.tentative.as_ref());
        let his_is_pending = !view.moves.is_empty() && mover(&view, view.len()) == Some(side);
        if self.observations.len() == told && his_is_pending {
            self.flush();
        }
        if self.observations.len() > told {
            self.presses.push_front(press);
            return;
        }
        let view = View::new(cx.line, self.tentative.as_ref());
        let n = view.len();
        // His last move: the last of all, or answered already without the press.
        let his = if mover(&view, n) == Some(side) {
            n
        } else {
            n.saturating_sub(1)
        };
        let not_pressed = cx
            .line
            .plies
            .get(his.wrapping_sub(1))
            .is_some_and(|ply| !ply.pressed);
        if his > 0 && his <= view.keep && not_pressed && !press.spent {
            self.observations.push_back(Observation::Completed {
                side,
                by: CompletedBy::Press,
            });
        } else if mover(&view, n) != Some(side) && !press.spent {
            if self
                .tentative
                .as_ref()
                .is_some_and(|tentative| tentative.moves.is_empty())
            {
                // A move is being taken back; there is nothing to judge yet.
                return;
            }
            let tip = view.tip();
            let his_turn = tip.turn() == side;
            let mut open = self.picture.differing(tip.board()) & !self.mask(&view);
            let adjusting = open & tip.board().by_color(!side);
            if explain::only_hands(tip, &self.picture, open) && adjusting.count() <= 1 {
                // The opponent's hand is no part of this press.
                open &= !adjusting;
            }
            let quiet = self.sign.is_none() && self.frozen_since.is_none() && !press.overtaken;
            if open.is_empty() {
                if his_turn && self.faults.is_empty() && self.away.is_none() && quiet {
                    if n > 0 && !self.is_completed(n, cx) {
                        // The opponent has moved and not pressed, so that this clock cannot have run for him.
                        self.observations
                            .push_back(Observation::WrongSidePressed { side });
                    } else if self.has_second_look(now, press, cx) {
                        self.observations
                            .push_back(Observation::PressWithoutMove { side });
                    } else {
                        return;
                    }
                }
            } else if let Some((m, left)) =
                explain::unfinished(tip, &self.picture, open).filter(|_| his_turn && quiet)
            {
                let tip = tip.clone();
                if self.has_second_look(now, press, cx) {
                    self.press_over_unfinished(now, &tip, m, left, side, cx);
                }
                return;
            }
        }

        // Where the other side has pressed since, the board shows what came after, and says nothing of this press.
        if self.sign.is_some() || self.frozen_since.is_some() || press.overtaken {
            return;
        }
        if self.is_loud_pending(side, cx) {
            if !self.has_second_look(now, press, cx) {
                return;
            }
            let level = if press.dump_seen || !cx.can_dump {
                Level::Confirmed
            } else {
                Level::Told
            };
            self.raise_levels(level, side);
            self.note_fault_at_press(level, side, cx);
        }
    }

    /// Whether something stands that this press would make loud.
    fn is_loud_pending(&self, side: Color, cx: &Context<'_>) -> bool {
        self.faults.iter().any(|fault| {
            fault.level < Level::Told
                && (fault.side.is_none_or(|of| of == side) || fault.kind == AlertKind::OutOfTurn)
        }) || self.new_fault(cx).is_some()
            || self.own_men_missing(side, cx).any()
    }

    /// Before anything is told to the arbiter the board has had the time of a scan to show what was done before the press, and is
    /// read once more, where it can be.
    fn has_second_look(&mut self, now: Millis, press: Press, cx: &Context<'_>) -> bool {
        if press.overtaken {
            // Nothing is waited for any more.
            return true;
        }
        let waiting = Press {
            waits: true,
            ..press
        };
        if !press.dump_seen && !press.dump_asked && now < self.press_due(&waiting) {
            self.presses.push_front(waiting);
            return false;
        }
        if !cx.can_dump || press.dump_seen || now >= press.at + self.timing.dump {
            return true;
        }
        if !press.dump_asked {
            self.observations.push_back(Observation::AskDump);
        }
        self.presses.push_front(Press {
            dump_asked: true,
            ..press
        });
        false
    }

    /// Pressed with the rook still in its corner, the pawn on the last rank, or the pawn taken en passant still there.
    fn press_over_unfinished(
        &mut self,
        now: Millis,
        tip: &Position,
        m: Move,
        left: Bitboard,
        side: Color,
        cx: &Context<'_>,
    ) {
        let mut fault = unfinished_fault(m, left, side, now);
        if fault.kind != AlertKind::PromotionUnfinished {
            // What he played is plain; what is left to do is set aside.
            let keep = View::new(cx.line, self.tentative.as_ref()).len();
            self.flush();
            self.tell_moves(
                keep,
                vec![Seen::new(tip, m, now)],
                CorrectionReason::MovedOn,
            );
            fault.ply = Some(keep + 1);
            self.observations.push_back(Observation::Completed {
                side,
                by: CompletedBy::Press,
            });
        }
        if fault.kind == AlertKind::PromotionUnfinished {
            self.unspent = Some(side);
        }
        self.raise(fault);
    }

    // --- faults ---

    /// Squares set aside: those of standing faults that still differ, and of men that were gone already when the last move was made.
    fn mask(&self, view: &View<'_>) -> Bitboard {
        let differing = self.picture.differing(view.tip().board());
        if differing.is_empty() {
            return differing;
        }
        (self.faulty() | self.gone_before(view, view.len(), None)) & differing
    }

    /// The squares of all standing faults.
    fn faulty(&self) -> Bitboard {
        self.faults.iter().fold(Bitboard::EMPTY, |all, fault| {
            all | fault.squares | fault.over
        })
    }

    /// Men that were off the board before ply `ply` was seen, of one side or of both.
    fn gone_before(&self, view: &View<'_>, ply: usize, color: Option<Color>) -> Bitboard {
        if ply == 0 {
            return Bitboard::EMPTY;
        }
        let board = view.tip().board();
        let seen_at = view.seen_at(ply);
        (self.picture.differing(board) & board.occupied())
            .into_iter()
            .filter(|square| self.picture.is_empty(*square))
            .filter(|square| color.is_none_or(|color| board.color_at(*square) == Some(color)))
            .filter(|square| self.changed[square.to_usize()].0 < seen_at)
            .collect()
    }

    /// Men that are in no hand any more: their own side has made a move since they went.
    fn forgotten(&self, view: &View<'_>) -> Bitboard {
        let n = view.len();
        (n.saturating_sub(1)..=n)
            .filter(|ply| *ply > 0)
            .map(|ply| self.gone_before(view, ply, Some(view.position(ply - 1).turn())))
            .fold(Bitboard::EMPTY, |all, squares| all | squares)
            & !self.faulty()
    }

    /// Whether the placement is something that no legal play, no hand and no fault told already explains.
    fn is_unexplained(&self, cx: &Context<'_>) -> bool {
        let view = View::new(cx.line, self.tentative.as_ref());
        let differing = self.picture.differing(view.tip().board());
        if self.shadow_shown() {
            return false;
        }
        (differing & !self.mask(&view)).any()
    }

    /// Whether all that differs is the man that was captured last, passing over another square on its way off the board, and perhaps
    /// a man of the opponent, who has begun to answer.
    fn is_victim_about(&self, view: &View<'_>) -> bool {
        let Some(last) = view.last().filter(|m| m.is_capture()) else {
            return false;
        };
        let before = view.position(view.len() - 1);
        let tip = view.tip();
        let mut open = self.picture.differing(before.board());
        let lifted: Bitboard = (open & tip.board().by_color(tip.turn()))
            .into_iter()
            .filter(|square| self.picture.is_empty(*square))
            .collect();
        if let Some(square) = lifted.single_square() {
            open &= !lifted;
            // A man of the same kind that left its own square is where it went, and not the one that was taken.
            let man = tip.board().piece_at(square);
            if open
                .into_iter()
                .any(|stray| self.picture.piece(stray) == man)
            {
                return false;
            }
        }
        explain::may_pass(before, last, &self.picture, open)
    }

    /// Things that are never told, however long: men in the hands, a move on its way.
    fn is_patient(&self, view: &View<'_>, open: Bitboard, cx: &Context<'_>) -> bool {
        let tip = view.tip();
        if explain::only_hands(tip, &self.picture, open)
            || explain::is_in_progress(tip, &self.picture, open)
        {
            return true;
        }
        let n = view.len();
        if n == 0 || self.is_completed(n, cx) {
            return false;
        }
        let before = view.position(n - 1);
        let open = self.picture.differing(before.board());
        explain::only_hands(before, &self.picture, open)
            || explain::is_in_progress(before, &self.picture, open)
    }

    /// What stands on the board that nothing explains, as a fault.
    fn new_fault(&self, cx: &Context<'_>) -> Option<(Option<Seen>, Fault)> {
        if self.waiting.is_some()
            || self.frozen_since.is_some()
            || self.sign.is_some()
            || self.away.is_some()
        {
            return None;
        }
        let view = View::new(cx.line, self.tentative.as_ref());
        let tip = view.tip();
        let forgotten = self.forgotten(&view);
        if forgotten.any() && forgotten.count() <= CLEARED {
            return Some((None, self.classify(tip, forgotten)));
        }
        if !self.is_unexplained(cx) {
            return None;
        }
        let mask = self.mask(&view);
        let open = self.picture.differing(tip.board()) & !mask;
        if open.count() > CLEARED
            || self.is_patient(&view, open, cx)
            || (!self.grace_passed && self.is_victim_about(&view))
        {
            return None;
        }
        // One deed that the board shows whole is that deed, even if half of it would be a legal move.
        let whole = self.classify(tip, open);
        if whole.side.is_some() {
            return Some((None, whole));
        }
        // Deeds of both sides on squares that have nothing to do with each other are faults of their own.
        if let Some(part) = self.part_of_one_side(tip, open) {
            let fault = self.classify(tip, part);
            if fault.side.is_some() {
                return Some((None, fault));
            }
        }
        // A move was made and something else is wrong: the move is followed, the rest is the fault.
        let made: Vec<(Move, Bitboard)> = tip
            .moves()
            .into_iter()
            .filter_map(|m| {
                let effects = tip.effects(m);
                let squares = effects.squares();
                let made = squares.is_subset(open)
                    && effects.iter().all(|(square, man)| {
                        self.picture
                            .at(square)
                            .is_none_or(|contents| contents.agrees(man))
                    });
                made.then(|| (m, open & !squares))
            })
            .collect();
        let (seen, position, open) = match made.as_slice() {
            [(m, rest)] if rest.any() => {
                let after = tip.play(*m);
                (Some(Seen::new(tip, *m, self.last_change)), after, *rest)
            }
            // Two men of his stand where each could have gone: nothing tells which of them is the move.
            _ => (None, tip.clone(), open),
        };
        if seen.is_some() && explain::only_hands(&position, &self.picture, open) {
            return None;
        }
        let fault = self.classify(&position, open);
        if fault.kind == AlertKind::Displaced
            && let Some(answered) = self.answered_irregular_move(&position, open)
        {
            return Some((seen, answered));
        }
        Some((seen, fault))
    }

    /// An irregular move that was answered before anybody could tell: one man gone astray, and a reply that fits behind it.
    fn answered_irregular_move(&self, position: &Position, open: Bitboard) -> Option<Fault> {
        let own = open & position.board().by_color(position.turn());
        for from in own
            .into_iter()
            .filter(|square| self.picture.is_empty(*square))
        {
            let man = position.board().piece_at(from)?;
            for to in open
                .into_iter()
                .filter(|square| self.picture.piece(*square) == Some(man))
            {
                let mut fault = self.classify(position, Bitboard::from(from) | Bitboard::from(to));
                let Some(after) = fault.shadow.last().map(|seen| seen.after.clone()) else {
                    continue;
                };
                let differing = self.picture.differing(after.board());
                if let [reply] =
                    explain::moves_to(&after, &self.picture, differing, Bitboard::EMPTY).as_slice()
                {
                    fault
                        .shadow
                        .push(Seen::new(&after, *reply, self.last_change));
                    fault.over = open & !fault.squares;
                    fault.level = Level::Told;
                    return Some(fault);
                }
            }
        }
        None
    }

    fn classify(&self, position: &Position, open: Bitboard) -> Fault {
        let attempt = Attempt::read(position, open, |square| self.picture.piece(square));
        let mut fault = Fault {
            id: 0,
            kind: AlertKind::Displaced,
            squares: open,
            over: Bitboard::EMPTY,
            side: None,
            reason: None,
            uci: None,
            level: Level::Noted,
            since: self.last_change,
            shadow: Vec::new(),
            ply: None,
            answered: false,
        };
        if let Some(attempt) = attempt {
            let own_turn = attempt.color() == position.turn();
            fault.side = Some(attempt.color());
            fault.reason = Some(attempt.reason(position));
            fault.uci = attempt.uci(position);
            fault.kind = match attempt {
                Attempt::Swapped { .. } => AlertKind::Displaced,
                _ if attempt.takes_own_man(position) => AlertKind::Displaced,
                _ if own_turn => AlertKind::IllegalMove,
                attempt if is_playable_on_turn(position, attempt) => AlertKind::OutOfTurn,
                // A man of the side that has not the move, where it could not go if it had: nobody moved it there.
                _ => AlertKind::Displaced,
            };
            if let Some(m) = attempt
                .as_move(position)
                .filter(|_| fault.kind == AlertKind::IllegalMove)
            {
                fault.shadow = vec![Seen::new(position, m, self.last_change)];
            }
        }
        fault
    }

    /// At a press a man of the presser's that is nowhere is no longer in his hand.
    fn note_fault_at_press(&mut self, level: Level, side: Color, cx: &Context<'_>) {
        let told = self.faults.len();
        self.note_fault(level, cx);
        let missing = self.own_men_missing(side, cx);
        if self.faults.len() == told && missing.any() {
            let view = View::new(cx.line, self.tentative.as_ref());
            let mut fault = self.classify(view.tip(), missing);
            fault.level = Level::Told;
            self.raise(fault);
            self.unspent = Some(side);
        }
    }

    /// The squares of men of the presser's that are nowhere on the board, if that is all that is wrong.
    fn own_men_missing(&self, side: Color, cx: &Context<'_>) -> Bitboard {
        let view = View::new(cx.line, self.tentative.as_ref());
        let tip = view.tip();
        let open = self.picture.differing(tip.board()) & !self.faulty();
        if !explain::is_only_missing(tip, &self.picture, open) {
            return Bitboard::EMPTY;
        }
        open & tip.board().by_color(side)
    }

    /// The squares of one side's deed, where the other side's stands on others.
    fn part_of_one_side(&self, position: &Position, open: Bitboard) -> Option<Bitboard> {
        let board = position.board();
        let concerns = |color: Color| -> Bitboard {
            open.into_iter()
                .filter(|square| {
                    board.color_at(*square) == Some(color)
                        || self
                            .picture
                            .piece(*square)
                            .is_some_and(|man| man.color == color)
                })
                .collect()
        };
        let (white, black) = (concerns(Color::White), concerns(Color::Black));
        (white.any() && black.any() && (white & black).is_empty()).then_some(white)
    }

    /// Raises what is not explained, at this level; nothing if all is explained.
    fn note_fault(&mut self, level: Level, cx: &Context<'_>) {
        let Some((seen, mut fault)) = self.new_fault(cx) else {
            return;
        };
        if let Some(seen) = seen {
            let keep = View::new(cx.line, self.tentative.as_ref()).len();
            self.flush();
            self.tell_moves(keep, vec![seen], CorrectionReason::MovedOn);
        }
        if level >= Level::Told && takes_over_own_man(&fault) {
            fault.kind = AlertKind::IllegalMove;
        }
        fault.level = cap(fault.kind, level.max(fault.level));
        self.raise(fault);
    }

    fn raise(&mut self, mut fault: Fault) {
        fault.id = self.next_fault;
        self.next_fault += 1;
        self.faults.push(fault.clone());
        self.observations.push_back(Observation::Fault(fault));
    }

    /// A press makes what stands loud: the presser's own irregular move, and anything displaced.
    fn raise_levels(&mut self, level: Level, side: Color) {
        for fault in &mut self.faults {
            // Who moved out of turn does not press: his opponent's press shows that play goes on over it.
            let concerns = fault.side.is_none_or(|of| of == side)
                || matches!(fault.kind, AlertKind::Displaced | AlertKind::OutOfTurn);
            if !concerns {
                continue;
            }
            let taken_over = fault.side == Some(side) && takes_over_own_man(fault);
            if taken_over {
                fault.kind = AlertKind::IllegalMove;
            }
            let level = cap(fault.kind, level);
            if fault.level < level {
                fault.level = level;
                self.observations
                    .push_back(Observation::Fault(fault.clone()));
            }
        }
    }

    fn escalation_at(&self, fault: &Fault, cx: &Context<'_>) -> Option<Millis> {
        if fault.level > Level::Noted {
            return None;
        }
        match fault.kind {
            AlertKind::IllegalMove | AlertKind::OutOfTurn if cx.has_clock => None,
            AlertKind::Displaced => {
                let missing = fault
                    .squares
                    .into_iter()
                    .all(|square| self.picture.is_empty(square));
                Some(
                    fault.since
                        + if missing {
                            self.timing.missing
                        } else {
                            self.timing.displaced
                        },
                )
            }
            _ => Some(fault.since + self.timing.displaced),
        }
    }

    fn escalate_by_time(&mut self, now: Millis, cx: &Context<'_>) {
        for index in 0..self.faults.len() {
            if self
                .escalation_at(&self.faults[index], cx)
                .is_some_and(|at| now >= at)
            {
                self.faults[index].level = Level::Told;
                self.observations
                    .push_back(Observation::Fault(self.faults[index].clone()));
            }
        }
    }

    /// Faults whose squares all agree with the record again are over; so is an irregular move that was replaced by a legal one.
    fn close_restored(&mut self, cx: &Context<'_>) {
        if self.faults.is_empty() {
            return;
        }
        let view = View::new(cx.line, self.tentative.as_ref());
        let differing = self.picture.differing(view.tip().board());
        let (over, open): (Vec<Fault>, Vec<Fault>) = self
            .faults
            .drain(..)
            .partition(|fault| ((fault.squares | fault.over) & differing).is_empty());
        self.faults = open;
        for fault in over {
            self.observations.push_back(Observation::FaultClosed {
                id: fault.id,
                why: CloseReason::Restored,
            });
        }
    }

    fn close_faults(&mut self, why: CloseReason) {
        for fault in self.faults.drain(..) {
            self.observations
                .push_back(Observation::FaultClosed { id: fault.id, why });
        }
    }

    /// Takes a fault off the list because somebody has decided on it.
    pub fn settle_fault(&mut self, id: u32) -> Option<Fault> {
        let index = self.faults.iter().position(|fault| fault.id == id)?;
        Some(self.faults.remove(index))
    }

    // --- irregular moves that are played over ---

    /// Whether the board shows an irregular move and what was played after it.
    fn shadow_shown(&self) -> bool {
        self.faults
            .iter()
            .filter_map(|fault| fault.shadow.last())
            .any(|seen| self.picture.agrees_with(seen.after.board()))
    }

    /// The opponent plays on over an irregular move: it is followed by geometry, beside the record.
    fn follow_shadow(&mut self, now: Millis) -> bool {
        for index in 0..self.faults.len() {
            let Some(last) = self.faults[index].shadow.last() else {
                continue;
            };
            let differing = self.picture.differing(last.after.board());
            if differing.is_empty() {
                return true;
            }
            let found = explain::moves_to(&last.after, &self.picture, differing, Bitboard::EMPTY);
            if let [m] = found.as_slice() {
                let seen = Seen::new(&last.after, *m, now);
                let fault = &mut self.faults[index];
                fault.shadow.push(seen);
                fault.over |= differing;
                // The reply is the last moment: it was not stopped at the press, or there is no clock to press.
                fault.level = fault.level.max(Level::Told);
                let fault = fault.clone();
                self.lift_over_fault = None;
                self.observations.push_back(Observation::Fault(fault));
                self.tell_sync();
                return true;
            }
        }
        false
    }

    /// With a clock, an opponent who lifts a man over an irregular move has begun to answer it.
    fn note_lift_over_fault(&mut self, now: Millis, lifted: Bitboard, cx: &Context<'_>) {
        if !cx.has_clock || self.frozen_since.is_some() || self.waiting.is_some() {
            return;
        }
        let view = View::new(cx.line, self.tentative.as_ref());
        let tip = view.tip();
        let theirs = lifted & tip.board().by_color(!tip.turn());
        let Some(square) = theirs.first() else { return };
        let stood = |since: Millis| now.saturating_sub(since) >= self.timing.settle;
        let quiet_before = self
            .changed
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != square.to_usize())
            .map(|(_, (at, _))| *at)
            .max()
            .is_some_and(stood);
        let open = self.picture.differing(tip.board()).without(square);
        let attempt = Attempt::read(tip, open, |square| self.picture.piece(square));
        let irregular = attempt
            .is_some_and(|attempt| attempt.color() == tip.turn() && !attempt.takes_own_man(tip));
        if irregular
            && quiet_before
            && self.faults.iter().all(|fault| fault.level == Level::Noted)
            && !explain::is_in_progress(tip, &self.picture, open)
        {
            self.lift_over_fault = Some((now, square));
        }
    }

    fn is_put_back(&self, square: Square, cx: &Context<'_>) -> bool {
        let view = View::new(cx.line, self.tentative.as_ref());
        let man = view.tip().board().piece_at(square);
        self.picture
            .at(square)
            .is_none_or(|contents| contents.agrees(man))
    }

    /// The opponent has begun to answer an irregular move: suspected, and told.
    fn tell_irregular_move(&mut self, now: Millis, cx: &Context<'_>) {
        let view = View::new(cx.line, self.tentative.as_ref());
        let tip = view.tip().clone();
        if let Some(fault) = self
            .faults
            .iter_mut()
            .find(|fault| fault.side == Some(tip.turn()) && fault.level == Level::Noted)
        {
            fault.level = Level::Told;
            let fault = fault.clone();
            self.observations.push_back(Observation::Fault(fault));
            return;
        }
        let theirs = tip.board().by_color(!tip.turn());
        let in_hand: Bitboard = theirs
            .into_iter()
            .filter(|square| self.picture.is_empty(*square))
            .collect();
        let open = self.picture.differing(tip.board()) & !self.mask(&view);
        // The lifted man is the opponent's move on its way; the rest must still be the irregular move.
        let lifted = in_hand & open;
        if lifted.count() != 1 {
            return;
        }
        let mut fault = self.classify(&tip, open & !lifted);
        if fault.kind == AlertKind::IllegalMove {
            fault.level = Level::Told;
            fault.since = now;
            self.raise(fault);
        }
    }

    // --- the rest ---

    /// After a command: whether the board agrees by now, or a move was made by hand.
    fn end_of_waiting(&mut self, cx: &Context<'_>) -> bool {
        let tip = cx.line.tip();
        let differing = self.picture.differing(tip.board());
        let stands = self.waiting.as_ref() == Some(&self.picture);
        let over = differing.is_empty()
            || (!stands
                && explain::moves_to(tip, &self.picture, differing, Bitboard::EMPTY).len() == 1);
        if over {
            self.waiting = None;
        }
        over
    }

    fn tell_sync(&mut self) {
        let in_sync = self.faults.is_empty() && self.waiting.is_none() && self.away.is_none();
        if in_sync != self.in_sync {
            self.in_sync = in_sync;
            self.observations.push_back(Observation::Sync { in_sync });
        }
    }

    fn quiet_at(&self) -> Millis {
        self.last_change + self.timing.settle
    }

    /// Both kings on two of d4 e4 d5 e5 can be no position of play: those squares all touch.
    fn watch_kings(&mut self, now: Millis) {
        const CENTRE: [Square; 4] = [Square::D4, Square::E4, Square::D5, Square::E5];
        let king = |color: Color| {
            CENTRE
                .into_iter()
                .find(|square| self.picture.piece(*square) == Some(Role::King.of(color)))
        };
        let result = match (king(Color::White), king(Color::Black)) {
            (Some(white), Some(black)) => Some(match (white.is_light(), black.is_light()) {
                (true, true) => "1-0",
                (false, false) => "0-1",
                _ => "1/2-1/2",
            }),
            _ => None,
        };
        match (self.sign, result) {
            (Some((_, old)), Some(new)) if old == new => {}
            (_, new) => {
                self.sign = new.map(|result| (now, result));
                self.sign_told = false;
            }
        }
    }
}

/// What is left to do of a move that was pressed or answered too early.
fn unfinished_fault(m: Move, left: Bitboard, side: Color, since: Millis) -> Fault {
    let kind = match m {
        Move::Castle { .. } => AlertKind::CastlingUnfinished,
        Move::EnPassant { .. } => AlertKind::Displaced,
        _ => AlertKind::PromotionUnfinished,
    };
    Fault {
        id: 0,
        kind,
        squares: left,
        over: Bitboard::EMPTY,
        side: Some(side),
        reason: (kind == AlertKind::PromotionUnfinished).then_some(IllegalReason::PawnOnLastRank),
        uci: None,
        level: Level::Told,
        since,
        shadow: Vec::new(),
        ply: None,
        answered: false,
    }
}

/// Whether this would be a move if it were this side's turn.
fn is_playable_on_turn(position: &Position, attempt: Attempt) -> bool {
    let turned = position.with_turn(attempt.color());
    attempt
        .as_move(&turned)
        .is_some_and(|m| turned.is_playable(m))
}

/// An own man's square taken over: displaced until a press makes it an irregular move.
fn takes_over_own_man(fault: &Fault) -> bool {
    fault.kind == AlertKind::Displaced && fault.reason == Some(IllegalReason::OwnPieceCaptured)
}

/// What each kind of fault can become at its loudest: only an irregular move is confirmed.
fn cap(kind: AlertKind, level: Level) -> Level {
    match kind {
        AlertKind::IllegalMove | AlertKind::OutOfTurn => level,
        _ => level.min(Level::Told),
    }
}

/// Whether `later` is the same man going on, or castling begun with the rook or the king.
fn is_continued(earlier: Move, later: Move) -> bool {
    match later {
        Move::Castle { king, rook } => earlier.from() == Some(king) || earlier.from() == Some(rook),
        later => earlier.from() == later.from(),
    }
}

/// Whether the rook that went from `from` to `to` may be about to castle.
fn castles_by(before: &Position, from: Square, to: Square) -> bool {
    let us = before.turn();
    before.may_castle_with(from)
        && before.moves().into_iter().any(|other| match other {
            Move::Castle { king, rook } => {
                rook == from && CastlingSide::from_king_side(king < rook).rook_to(us) == to
            }
            _ => false,
        })
}

/// Whether the man that went from `from` to `to` can go on the same way: one square more, or the king to where he castles.
fn goes_on(before: &Position, role: Role, from: Square, to: Square) -> bool {
    match role {
        Role::Knight => false,
        Role::King => {
            let us = before.turn();
            before.may_castle_with(from)
                && before.moves().into_iter().any(|other| match other {
                    Move::Castle { king, rook } => {
                        let side = CastlingSide::from_king_side(king < rook);
                        king == from && attacks::between(king, side.king_to(us)).contains(to)
                    }
                    _ => false,
                })
        }
        // What may go further may also go one square further: it can be stopped by nothing but a man there.
        Role::Pawn | Role::Bishop | Role::Rook | Role::Queen => {
            let ray = attacks::ray(from, to);
            let beyond = (attacks::king_attacks(to) & ray).into_iter();
            beyond
                .filter(|next| attacks::between(from, *next).contains(to))
                .any(|next| !before.moves_between(from, next).is_empty())
        }
    }
}

fn capture_square(m: Move) -> Square {
    match m {
        Move::EnPassant { from, to } => Square::from_coords(to.file(), from.rank()),
        m => m.to(),
    }
}

/// The record, continued by what was seen and not told yet.
struct View<'a> {
    line: &'a Line,
    keep: usize,
    moves: &'a [Seen],
}

impl<'a> View<'a> {
    fn new(line: &'a Line, tentative: Option<&'a Tentative>) -> View<'a> {
        match tentative {
            Some(tentative) => View {
                line,
                keep: tentative.keep,
                moves: &tentative.moves,
            },
            None => View {
                line,
                keep: line.len(),
                moves: &[],
            },
        }
    }

    fn len(&self) -> usize {
        self.keep + self.moves.len()
    }

    fn position(&self, plies: usize) -> &'a Position {
        match plies
            .checked_sub(self.keep + 1)
            .and_then(|index| self.moves.get(index))
        {
            Some(seen) => &seen.after,
            None => self.line.position(plies.min(self.keep)),
        }
    }

    fn tip(&self) -> &'a Position {
        self.position(self.len())
    }

    /// The move that led to the tip.
    fn last(&self) -> Option<Move> {
        match self.moves.last() {
            Some(seen) => Some(seen.mv),
            None => Some(self.line.plies.get(self.keep.checked_sub(1)?)?.mv),
        }
    }

    /// When the last of these plies was seen.
    fn seen_at(&self, plies: usize) -> Millis {
        match plies
            .checked_sub(self.keep + 1)
            .and_then(|index| self.moves.get(index))
        {
            Some(seen) => seen.at,
            None => plies
                .min(self.keep)
                .checked_sub(1)
                .and_then(|index| self.line.plies.get(index))
                .map_or(0, |ply| ply.seen_at),
        }
    }
}
