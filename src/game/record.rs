//! The game itself: what is seen enters it, and what became of it is polled.

use super::opening::Terms;
use super::snapshot::{self, Snapshot};
use super::{
    Clocks, CompletedBy, CorrectionReason, Doubt, Line, MoveState, Pairing, Ply, ResultBy, Seen,
    Verdict,
};
use crate::Millis;
use crate::laws::position::Position;
use crate::laws::result::GameResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{ByColor, Color, Move, Square};
use std::collections::VecDeque;
use std::ops::Range;

/// A game at a table.
///
/// Whatever changes it is followed by [`Game::poll_event`] until nothing is left, and [`Game::take_changed`].
#[derive(Debug, Clone)]
pub struct Game {
    pub id: String,
    /// Whether it is told to others; play from the array that nobody armed is kept, and not told.
    pub armed: bool,
    /// Who plays, and what else was said of it.
    pub pairing: Pairing,
    pub terms: Terms,
    pub line: Line,
    /// Rises with every change that is told.
    pub rev: u64,
    /// The start position has stood on the board.
    pub ready: bool,
    pub clocks: Clocks,
    pub started_at: Option<Millis>,
    pub last_move_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    pub verdict: Verdict,
    /// At a table without a clock: since when the last move waits for an answer.
    pub quiet_since: Option<Millis>,
    /// A game that is joined from a position: castling and en passant before it are unknown.
    pub joined: bool,
    /// What was played before the game went on from another position, each stretch as the record stood then.
    pub earlier: Vec<Snapshot>,
    /// Its names came when so many plies had been played; what it was armed with before.
    named_late: Option<Box<(usize, Pairing, Terms)>>,
    /// The record before a king stepped into the centre, and where to: it may be the result sign that begins.
    pub(super) before_king_step: Option<(Line, Square)>,
    events: VecDeque<Event>,
    changed: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    #[default]
    Setup,
    Ready,
    Playing,
    Paused,
    Ended,
}

/// The record reads otherwise from ply `keep` + 1 on.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub keep: usize,
    pub moves: Vec<Seen>,
    pub why: CorrectionReason,
    /// What the record may read instead, where that has changed.
    pub readings: Option<Readings>,
}

/// Lines that fit what the board showed about as well as the record does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Readings {
    /// They begin after so many plies.
    pub keep: usize,
    /// All of the same length, the record's own first; none where nothing is in doubt.
    pub lines: Vec<Vec<Move>>,
}

/// Plies that nobody saw singly, and how many orders of them fit; none where nothing is in doubt any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Orders {
    pub plies: usize,
    pub orders: usize,
}

/// What became of a game.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Started,
    Move(snapshot::Move),
    Completed {
        ply: usize,
        by: CompletedBy,
        clk_ms: Option<u64>,
        emt_ms: Option<u64>,
    },
    Correction {
        keep: usize,
        reason: CorrectionReason,
    },
    Takeback {
        keep: usize,
        reason: CorrectionReason,
    },
    /// Plies that nobody saw, from this one on.
    Gap {
        ply: usize,
        plies: usize,
        alternatives: Vec<String>,
    },
    Press {
        side: Color,
        /// What the clocks show after it: a board tells a press and the new times in one message.
        shown: ByColor<Option<u64>>,
    },
    Flag {
        side: Color,
    },
    ResultProposed {
        result: GameResult,
        by: ResultBy,
    },
    Ended(Verdict),
}

impl Game {
    pub fn new(id: String, armed: bool, terms: Terms, pairing: Pairing) -> Game {
        let mut game = Game {
            id,
            armed,
            terms,
            line: Line::new(pairing.start.clone()),
            pairing: Pairing::default(),
            rev: 1,
            ready: false,
            clocks: Clocks::default(),
            started_at: None,
            last_move_at: None,
            ended_at: None,
            verdict: Verdict::default(),
            quiet_since: None,
            joined: false,
            earlier: Vec::new(),
            named_late: None,
            before_king_step: None,
            events: VecDeque::new(),
            changed: true,
        };
        game.take_terms(pairing);
        game.tell(Event::Started);
        game
    }

    /// Takes over who plays and on what terms; what is not named stays as it is.
    pub fn take_terms(&mut self, pairing: Pairing) {
        let rules = &mut self.terms.rules;
        rules.ruleset = pairing.ruleset.unwrap_or(rules.ruleset);
        rules.variant = pairing.variant.unwrap_or(rules.variant);
        rules.supervised = pairing.supervised.unwrap_or(rules.supervised);
        if pairing.time_control.is_some() {
            self.terms.time_control = pairing.time_control.clone();
        }
        self.pairing = pairing;
        self.change();
    }

    /// What it is called: by its own id, and by its pairing, which may have come when it had one already.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let paired = self.pairing.game.as_deref();
        [self.id.as_str()]
            .into_iter()
            .chain(paired.filter(|id| *id != self.id))
    }

    /// Whether this is the game of that id.
    pub fn is_of(&self, id: &str) -> bool {
        self.ids().any(|own| own == id)
    }

    /// Whether this pairing may say who plays it: nobody had told so far.
    pub(super) fn may_be_named_by(&self, pairing: &Pairing) -> bool {
        pairing.is_named()
            && !self.pairing.is_named()
            && pairing.start == self.pairing.start
            && (pairing.game.is_none() || self.pairing.game.is_none())
    }

    /// It is told now who plays it.
    pub(super) fn name(&mut self, pairing: Pairing) {
        let before = (self.line.len(), self.pairing.clone(), self.terms.clone());
        self.named_late = Some(Box::new(before));
        self.take_terms(pairing);
    }

    /// The names that came after its last move: those of the next game, if that is set up before anybody has moved again.
    pub(super) fn give_back_names(&mut self) -> Option<Pairing> {
        let (_, pairing, terms) = *self
            .named_late
            .take_if(|before| before.0 == self.line.len())?;
        self.terms = terms;
        self.change();
        Some(std::mem::replace(&mut self.pairing, pairing))
    }

    /// Somebody armed it after it had begun: it is told from its start.
    pub fn adopt(&mut self, pairing: Pairing) {
        self.armed = true;
        if let Some(id) = &pairing.game {
            self.id = id.clone();
        }
        self.take_terms(pairing);
        self.tell(Event::Started);
        for ply in 1..=self.line.len() {
            self.tell_move(ply);
        }
    }

    /// Whether the record can be changed so.
    pub fn can_take(&self, change: &Change) -> bool {
        self.line.can_go_on(change.keep, &change.moves)
    }

    /// Takes a change of the record; one that cannot be played leaves it as it is. Where several orders of what was not seen fit, they
    /// are told.
    pub fn take(&mut self, now: Millis, change: Change, clock_attached: bool) -> Option<Orders> {
        if !self.can_take(&change) {
            return None;
        }
        let Change {
            keep,
            moves,
            why,
            readings,
        } = change;
        let reread = match why {
            CorrectionReason::Reread => true,
            CorrectionReason::Command => readings.is_some(),
            _ => false,
        };
        self.remember_king_step(keep, &moves);
        let had_alternatives = self.line.has_alternatives();
        let removed = self.line.len() - keep;
        let replaced = self.line.plies.split_off(keep);
        self.line.truncate(keep);
        if removed > 0 {
            let is_takeback = match why {
                CorrectionReason::TakenBack | CorrectionReason::SetUpAgain => true,
                CorrectionReason::Command => moves.is_empty(),
                _ => false,
            };
            self.tell(if is_takeback {
                Event::Takeback { keep, reason: why }
            } else {
                Event::Correction { keep, reason: why }
            });
        }
        let plies = moves.len();
        let gap = plies.saturating_sub(removed);
        // What was pressed had been seen, however it is read now.
        let pressed = replaced.iter().filter(|ply| ply.pressed).count();
        let unseen = plies.saturating_sub(pressed);
        let told = self.line.len() + 1;
        for (index, seen) in moves.into_iter().enumerate() {
            let mut ply = Ply::new(seen.mv, seen.after, seen.at);
            // The same move with another piece for the pawn, or after one, or a move that is read otherwise: what completed it
            // completed it.
            let same = |old: &&Ply| {
                old.mv.from() == ply.mv.from() && (reread || old.mv.to() == ply.mv.to())
            };
            let pressed = |old: &&Ply| old.pressed && old.mv == ply.mv;
            let old = replaced.get(index).filter(same);
            if let Some(old) = old.or_else(|| replaced.last().filter(pressed)) {
                (ply.state, ply.by, ply.pressed) = (old.state, old.by, old.pressed);
                (ply.clk_ms, ply.emt_ms) = (old.clk_ms, old.emt_ms);
            }
            if gap > 2 {
                ply.doubt = Some(Doubt::Gap);
            }
            ply.doubt = seen.doubt.or(ply.doubt);
            self.push(ply);
        }
        let settled = readings.as_ref().is_some_and(|now| now.lines.is_empty());
        if let Some(readings) = readings {
            self.take_readings(&readings);
        }
        let alternatives = self
            .line
            .plies
            .get(keep)
            .map_or_else(Vec::new, |ply| ply.alternatives.clone());
        // Where a later ply is gone that had settled it, an earlier one may be in doubt once more.
        let ambiguous = match alternatives.len() {
            0 if plies == 0 && !had_alternatives => self.line.most_alternatives(),
            orders => orders,
        };
        if gap > 2 {
            self.tell(Event::Gap {
                ply: keep + 1,
                plies: gap,
                alternatives,
            });
        }
        for number in told..=self.line.len() {
            // Before an attached clock runs, moves may still fall away.
            if number > 1 && (self.clocks.used || !clock_attached) {
                self.complete(number - 1, CompletedBy::Reply);
            }
            self.tell_move(number);
        }
        let open = self.line.plies.last().is_some_and(|ply| ply.by.is_none());
        self.quiet_since = (open && !self.clocks.used && !clock_attached).then_some(now);
        self.change();
        match ambiguous {
            0 if settled => Some(Orders::default()),
            0 => None,
            orders => Some(Orders {
                plies: unseen,
                orders,
            }),
        }
    }

    /// Marks the plies that may read otherwise, and no others.
    fn take_readings(&mut self, readings: &Readings) {
        for ply in &mut self.line.plies {
            if std::mem::take(&mut ply.may_read_otherwise) {
                ply.doubt = None;
                ply.alternatives.clear();
            }
        }
        let Some((own, others)) = readings.lines.split_first() else {
            return;
        };
        // They may begin alike; what they are from the first ply on that differs is told there.
        let alike = (0..own.len())
            .take_while(|index| {
                others
                    .iter()
                    .all(|line| line.get(*index) == own.get(*index))
            })
            .count();
        let keep = readings.keep + alike;
        let told: Vec<String> = readings
            .lines
            .iter()
            .map(|line| {
                self.line
                    .uci_of(keep, line.get(alike..).unwrap_or_default())
            })
            .collect();
        let mut told = Some(told);
        for (index, m) in own.iter().enumerate() {
            let differing = others.iter().filter(|line| line.get(index) != Some(m));
            let exchange_only = |other: &Move| {
                (other.from(), other.to()) == (m.from(), m.to())
                    && other.promotion() != m.promotion()
            };
            let mut doubt = None;
            for line in differing {
                let is_exchange = line.get(index).is_some_and(exchange_only);
                doubt = match (doubt, is_exchange) {
                    (None | Some(Doubt::PromotionUnseen), true) => Some(Doubt::PromotionUnseen),
                    _ => Some(Doubt::Ambiguous),
                };
            }
            let Some(ply) = self.line.plies.get_mut(readings.keep + index) else {
                break;
            };
            if let Some(doubt) = doubt {
                ply.may_read_otherwise = true;
                ply.doubt = Some(doubt);
                ply.alternatives = told.take().unwrap_or_default();
            }
        }
    }

    /// An irregular move stands, with what was played over it.
    pub fn accept_illegal(&mut self, moves: Vec<Seen>) {
        for (index, seen) in moves.into_iter().enumerate() {
            let mut ply = Ply::new(seen.mv, seen.after, seen.at);
            if index == 0 {
                ply.doubt = Some(Doubt::IllegalAccepted);
            }
            self.push(ply);
        }
        let from = self
            .line
            .plies
            .iter()
            .rposition(|ply| ply.doubt == Some(Doubt::IllegalAccepted))
            .unwrap_or(0);
        for number in from + 1..=self.line.len() {
            if number > 1 {
                self.complete(number - 1, CompletedBy::Reply);
            }
            self.tell_move(number);
        }
    }

    /// The game was held to be over while it went on like this.
    pub fn play_on(&mut self, on: Game) {
        let plies = self.line.plies.iter().zip(&on.line.plies);
        let keep = plies.take_while(|(held, on)| held.mv == on.mv).count();
        if keep < self.line.len() {
            self.line.truncate(keep);
            let reason = CorrectionReason::Reread;
            self.tell(Event::Correction { keep, reason });
        }
        self.clocks = on.clocks;
        self.quiet_since = on.quiet_since;
        for (index, ply) in on.line.plies.into_iter().enumerate() {
            if index >= keep {
                self.push(ply);
                self.tell_move(index + 1);
            } else if ply.by.is_some() {
                self.line.plies[index] = ply;
            }
        }
        self.change();
    }

    /// The game goes on from another position; what was played before it, as the record tells it, is kept for the PGN.
    pub fn go_on_from(&mut self, now: Millis, position: Position, played: Option<Snapshot>) {
        self.line = Line::new(position);
        self.joined = true;
        self.started_at.get_or_insert(now);
        if let Some(mut played) = played.filter(|played| !played.moves.is_empty()) {
            for ply in &mut played.moves {
                ply.state = MoveState::Final;
            }
            self.earlier.push(played);
            self.tell(Event::Correction {
                keep: 0,
                reason: CorrectionReason::Command,
            });
        }
        self.change();
    }

    /// A ply is completed, by whatever came first.
    pub fn complete(&mut self, ply: usize, by: CompletedBy) {
        let Some(index) = ply.checked_sub(1).filter(|index| *index < self.line.len()) else {
            return;
        };
        let mover = self.line.mover(ply);
        let pressed = by == CompletedBy::Press;
        let times = if pressed {
            self.clocks.take_press(mover)
        } else {
            None
        };
        let entry = &mut self.line.plies[index];
        entry.pressed |= pressed;
        if entry.by.is_some() {
            // A press after the reply completes nothing; it tells the time of the move that was answered.
            if let Some(times) = times.filter(|_| entry.clk_ms.is_none()) {
                entry.clk_ms = times.clk_ms;
                entry.emt_ms = times.emt_ms;
                self.change();
            }
            return;
        }
        entry.state = MoveState::Final;
        entry.by = Some(by);
        if let Some(times) = times {
            entry.clk_ms = times.clk_ms;
            entry.emt_ms = times.emt_ms;
        }
        let (clk_ms, emt_ms) = (entry.clk_ms, entry.emt_ms);
        if pressed {
            self.before_king_step = None;
        }
        self.quiet_since = None;
        self.tell(Event::Completed {
            ply,
            by,
            clk_ms,
            emt_ms,
        });
        self.change();
    }

    /// This side has pressed after the last move, which something else completes.
    pub fn time_last_move(&mut self, side: Color) {
        if self.line.is_empty() || self.line.mover(self.line.len()) != side {
            return;
        }
        let times = self.clocks.take_press(side);
        if let Some(ply) = self.line.plies.last_mut().filter(|ply| ply.by.is_none()) {
            ply.pressed = true;
            if let Some(times) = times {
                (ply.clk_ms, ply.emt_ms) = (times.clk_ms, times.emt_ms);
            }
        }
    }

    /// The last move of this side is completed.
    pub fn complete_last_of(&mut self, side: Color, by: CompletedBy) {
        if let Some(ply) = self.line.last_of(side) {
            self.complete(ply, by);
        }
    }

    /// The exchange that the board had not shown stands there by now, and is what was recorded.
    pub fn settle_promotion(&mut self, ply: usize) {
        if let Some(ply) = ply
            .checked_sub(1)
            .and_then(|index| self.line.plies.get_mut(index))
        {
            ply.doubt = None;
            self.change();
        }
    }

    /// What these plies are is beyond doubt; an irregular move that stands is one for all that.
    pub fn settle_doubts(&mut self, plies: Range<usize>) {
        for ply in self.line.plies.iter_mut().take(plies.end).skip(plies.start) {
            ply.doubt = ply.doubt.filter(|doubt| *doubt == Doubt::IllegalAccepted);
            ply.may_read_otherwise = false;
            ply.alternatives.clear();
        }
        self.change();
    }

    /// The game is over, and so no ply of it is provisional.
    pub fn make_final(&mut self) {
        for ply in &mut self.line.plies {
            ply.state = MoveState::Final;
        }
        self.quiet_since = None;
    }

    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the record changed since this was asked last.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    pub fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }

    pub fn is_followed(&self) -> bool {
        self.ready && !self.is_over() && !self.is_held()
    }

    /// Whether a move was made in this game, be it before the position that the record begins with.
    pub fn was_played(&self) -> bool {
        !self.line.is_empty() || (self.ready && (self.joined || self.line.start.plies_before() > 0))
    }

    /// Whether an array like this on the board can be this game still: reached by taking back, or by playing, as when all knights
    /// have gone home.
    pub fn explains_array(&self, start: &Position) -> bool {
        if self.line.len() <= 2 + self.line.steps_back() {
            return true;
        }
        let tip = self.line.tip();
        let plays_there = |m: Move| tip.play(m).board() == start.board();
        tip.board() == start.board() || tip.moves().into_iter().any(plays_there)
    }

    pub fn phase(&self) -> Phase {
        if self.is_over() {
            Phase::Ended
        } else if !self.ready {
            Phase::Setup
        } else if self.clocks.stopped_at.is_some() && self.clocks.used {
            Phase::Paused
        } else if self.started_at.is_some() {
            Phase::Playing
        } else {
            Phase::Ready
        }
    }

    fn push(&mut self, ply: Ply) {
        self.started_at.get_or_insert(ply.seen_at);
        self.last_move_at = Some(ply.seen_at);
        self.line.plies.push(ply);
    }

    /// A ply of the record as an event.
    pub(super) fn tell_move(&mut self, ply: usize) {
        if let Some(told) = ply
            .checked_sub(1)
            .filter(|index| *index < self.line.len())
            .map(|index| snapshot::Move::of(&self.line, index))
        {
            self.tell(Event::Move(told));
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(super) fn change(&mut self) {
        self.changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moves of this line, from the array.
    fn moves(line: &str) -> Vec<Seen> {
        let mut position = Position::initial();
        let seen = |(word, at): (&str, Millis)| {
            let mv = position.parse_uci(word, false).expect("a legal move");
            let seen = Seen::new(&position, mv, at);
            position = seen.after.clone();
            seen
        };
        line.split(' ').zip(1..).map(seen).collect()
    }

    fn change(keep: usize, moves: Vec<Seen>) -> Change {
        Change {
            keep,
            moves,
            why: CorrectionReason::Reread,
            readings: None,
        }
    }

    fn game(line: &str) -> Game {
        let mut game = Game::new("g".into(), true, Terms::default(), Pairing::default());
        game.ready = true;
        game.take(1_000, change(0, moves(line)), false);
        while game.poll_event().is_some() {}
        game
    }

    #[test]
    fn what_cannot_follow_the_record_leaves_it_as_it_is() {
        let before = game("e2e4 e7e5");
        let onward = moves("e2e4 e7e5 g1f3 b8c6");
        let irregular = Position::initial().play(onward[2].mv);
        for (keep, moves) in [
            // Further than the record goes.
            (3, onward[3..].to_vec()),
            (3, Vec::new()),
            // By the side that does not have the move.
            (2, onward[3..].to_vec()),
            // The second of them by the same side again.
            (2, vec![onward[2].clone(), onward[2].clone()]),
            // From somewhere else.
            (
                2,
                vec![Seen {
                    after: irregular,
                    ..onward[2].clone()
                }],
            ),
            // No man stands there any more.
            (2, onward[..1].to_vec()),
        ] {
            let mut game = before.clone();
            assert!(!game.can_take(&change(keep, moves.clone())), "{moves:?}");
            assert_eq!(game.take(2_000, change(keep, moves), false), None);
            assert_eq!(game.line, before.line);
            assert_eq!(game.poll_event(), None);
        }
        let mut game = before.clone();
        game.take(2_000, change(2, onward[2..].to_vec()), false);
        assert_eq!(game.line.len(), 4);
    }

    #[test]
    fn an_irregular_move_is_taken_where_it_is_said_to_be_one() {
        let mut game = game("e2e4 e7e5");
        let tip = game.line.tip().clone();
        let mv = tip
            .parse_uci("a1a3", true)
            .expect("a man that can be moved");
        let mut seen = Seen::new(&tip, mv, 3);
        game.take(2_000, change(2, vec![seen.clone()]), false);
        assert_eq!(game.line.len(), 2);
        seen.doubt = Some(Doubt::IllegalAccepted);
        game.take(2_000, change(2, vec![seen.clone()]), false);
        assert_eq!(game.line.len(), 3);
        // What stands already may stand again.
        seen.doubt = None;
        game.take(2_000, change(2, vec![seen]), false);
        assert_eq!(game.line.len(), 3);
    }

    #[test]
    fn lines_are_told_from_the_first_ply_that_differs() {
        let mut game = game("e2e4 e7e5 g1f3 b8c6");
        let line = |line: &str| moves(line).into_iter().map(|seen| seen.mv).collect();
        game.take_readings(&Readings {
            keep: 0,
            lines: vec![
                line("e2e4 e7e5 g1f3 b8c6"),
                line("e2e4 e7e5 f1c4 b8c6"),
                line("e2e4 e7e5 g1f3 g8f6"),
            ],
        });
        let told: Vec<(usize, &str)> = game.line.alternatives().collect();
        assert_eq!(told, [(2, "g1f3 b8c6"), (2, "f1c4 b8c6"), (2, "g1f3 g8f6")]);
        let doubts: Vec<Option<Doubt>> = game.line.plies.iter().map(|ply| ply.doubt).collect();
        assert_eq!(doubts[..2], [Some(Doubt::Gap), Some(Doubt::Gap)]);
        assert_eq!(
            doubts[2..],
            [Some(Doubt::Ambiguous), Some(Doubt::Ambiguous)]
        );
    }
}
