//! How a game ends: by the board, by the kings, by the arbiter.

use super::record::{Event, Game};
use super::{CompletedBy, CorrectionReason, Ply, Seen};
use crate::Millis;
use crate::laws::position::Ending;
use crate::laws::result::{CENTRE, GameResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shakmaty::{Move, Role};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResultBy {
    Kings,
    Board,
    Arbiter,
    Import,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResultState {
    Proposed,
    Set,
}

/// How a game stands: its result, who says so, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    pub result: GameResult,
    pub by: Option<ResultBy>,
    pub state: Option<ResultState>,
    /// PGN Termination.
    pub termination: Option<String>,
    pub reason: Option<Reason>,
}

/// Why a game stands as it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Mate or stalemate is on the board, or may be.
    Board(Ending),
    /// Men in the hand would look as the kings do that show the result.
    KingsInHand,
    /// The kings have shown another result than before.
    KingsAnew,
    /// The next game was set up.
    LeftUnfinished,
    /// In somebody's words.
    Told(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Board(ending) => ending.fmt(f),
            Reason::KingsInHand => f.write_str("the kings may only be in the hand"),
            Reason::KingsAnew => f.write_str("the kings were placed anew"),
            Reason::LeftUnfinished => f.write_str("left unfinished"),
            Reason::Told(words) => f.write_str(words),
        }
    }
}

/// What speaks against a result that the kings show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contradiction {
    FlagOfTheOther,
    ClockRuns,
    Ended(GameResult),
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contradiction::FlagOfTheOther => f.write_str("the flag of the other side is down"),
            Contradiction::ClockRuns => f.write_str("the clock runs"),
            Contradiction::Ended(result) => write!(f, "the game ended {result}"),
        }
    }
}

/// What became of a result that the kings showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// Nothing was played, or the game has this result already.
    Nothing,
    /// It is proposed.
    Proposed,
    /// It is only proposed, because something contradicts it.
    Contradicted(Contradiction),
    /// The game ends so.
    Ends(Verdict),
    /// The game had ended otherwise, by the kings too.
    Corrected,
}

impl Verdict {
    /// A result that is set.
    pub fn set(result: GameResult, by: Option<ResultBy>) -> Verdict {
        Verdict {
            result,
            by,
            state: Some(ResultState::Set),
            termination: None,
            reason: None,
        }
    }

    pub fn termination(self, termination: impl Into<String>) -> Verdict {
        Verdict {
            termination: Some(termination.into()),
            ..self
        }
    }

    pub fn reason(self, reason: Reason) -> Verdict {
        Verdict {
            reason: Some(reason),
            ..self
        }
    }
}

impl Game {
    /// What mate and stalemate make of the game, at once (5.1.1, 5.2.1). Where the record may read otherwise, and would be no mate
    /// then, that is only proposed.
    pub fn ended_by_the_board(&self) -> Option<Verdict> {
        let ending = self.line.tip().ending().filter(|_| !self.is_over())?;
        let verdict = Verdict::set(ending.result(), Some(ResultBy::Board))
            .termination("normal")
            .reason(Reason::Board(ending));
        let ends_otherwise = |(keep, line): (usize, &str)| {
            let read = self.line.reading(keep, line);
            let tip = read.as_ref().and_then(|read| read.last());
            tip.is_some_and(|seen| seen.after.ending() != Some(ending))
        };
        let state = match self.line.alternatives().any(ends_otherwise) {
            true => ResultState::Proposed,
            false => ResultState::Set,
        };
        Some(Verdict {
            state: Some(state),
            ..verdict
        })
    }

    /// What the board shows may be mate, or not.
    pub fn propose_ending(&mut self, verdict: Option<Verdict>) {
        match verdict {
            Some(verdict) if verdict != self.verdict => {
                let result = verdict.result;
                self.verdict = verdict;
                let by = ResultBy::Board;
                self.tell(Event::ResultProposed { result, by });
                self.change();
            }
            // The game has gone on, or reads otherwise by now.
            None if self.is_ending_proposed() || self.likely_sign().is_some() => {
                self.verdict = Verdict::default();
                self.change();
            }
            _ => {}
        }
    }

    fn is_ending_proposed(&self) -> bool {
        let verdict = &self.verdict;
        verdict.state == Some(ResultState::Proposed)
            && matches!(verdict.reason, Some(Reason::Board(_)))
    }

    /// The result that the kings may have shown, or men that were only in the hand.
    pub fn likely_sign(&self) -> Option<Verdict> {
        let verdict = &self.verdict;
        let is_likely = verdict.state == Some(ResultState::Proposed)
            && verdict.reason == Some(Reason::KingsInHand);
        let shown = Verdict::set(verdict.result, Some(ResultBy::Kings));
        is_likely.then(|| shown.termination("normal"))
    }

    /// The game is over; its last move is completed by that.
    pub fn end(&mut self, now: Millis, verdict: Verdict) {
        let last = self.line.len();
        if last > 0 {
            let mover = self.line.mover(last);
            if let Some(ply) = self
                .line
                .plies
                .last_mut()
                .filter(|ply| ply.by.is_none() && ply.clk_ms.is_none())
            {
                let times = self.clocks.times_at(mover, ply.seen_at);
                (ply.clk_ms, ply.emt_ms) = (times.clk_ms, times.emt_ms);
            }
            self.complete(last, CompletedBy::End);
        }
        self.ended_at = Some(now);
        self.quiet_since = None;
        self.set_result(verdict);
    }

    /// The result of a game that is over, be it for the first time or put right.
    pub fn set_result(&mut self, verdict: Verdict) {
        self.make_final();
        self.verdict = verdict.clone();
        self.tell(Event::Ended(verdict));
        self.change();
    }

    /// Somebody says how the game ends or should have ended; what has a result keeps it.
    pub fn propose_result(&mut self, result: GameResult, by: ResultBy) {
        self.tell(Event::ResultProposed { result, by });
        if !self.is_over() {
            self.verdict.result = result;
            self.verdict.by = Some(by);
            self.verdict.state = Some(ResultState::Proposed);
            self.verdict.reason = None;
            self.change();
        }
    }

    /// Whether the kings have shown a result that is only proposed: nothing that the board shows is play before somebody says so. Kings
    /// that may only be in the hands hold nothing.
    pub fn is_held(&self) -> bool {
        self.verdict.state == Some(ResultState::Proposed)
            && self.verdict.by == Some(ResultBy::Kings)
            && self.verdict.reason != Some(Reason::KingsInHand)
    }

    /// The game goes on, as if nobody had said how it ended.
    pub fn reopen(&mut self, reason: Option<Reason>) {
        self.verdict = Verdict {
            reason,
            ..Verdict::default()
        };
        self.ended_at = None;
        self.change();
    }

    /// Both kings stand in the centre.
    pub fn handle_sign(
        &mut self,
        result: GameResult,
        may_be_play: bool,
        propose: bool,
        clock_runs: bool,
    ) -> Sign {
        if !self.was_played() && self.before_king_step.is_none() {
            return Sign::Nothing;
        }
        if self.is_over() {
            return self.handle_later_sign(result, propose || may_be_play);
        }
        if !may_be_play {
            self.remove_king_steps();
        }
        if !self.was_played() {
            return Sign::Nothing;
        }
        let flags = &self.clocks.flags;
        let flag = |color| *flags.get(color);
        let loser = result.loser();
        let on_time = loser.is_some_and(flag);
        let contradiction = if loser.is_some_and(|loser| flag(!loser)) && !on_time {
            Some(Contradiction::FlagOfTheOther)
        } else if clock_runs {
            Some(Contradiction::ClockRuns)
        } else {
            None
        };
        if contradiction.is_some() && may_be_play {
            return Sign::Nothing;
        }
        if let Some(why) = contradiction {
            self.propose_result(result, ResultBy::Kings);
            return Sign::Contradicted(why);
        }
        if propose || may_be_play {
            self.propose_result(result, ResultBy::Kings);
            self.verdict.reason = may_be_play.then_some(Reason::KingsInHand);
            return Sign::Proposed;
        }
        let termination = if on_time { "time forfeit" } else { "normal" };
        Sign::Ends(Verdict::set(result, Some(ResultBy::Kings)).termination(termination))
    }

    /// A second sign corrects the first; it corrects nothing else.
    fn handle_later_sign(&mut self, result: GameResult, propose: bool) -> Sign {
        let ended = self.verdict.result;
        if ended == result {
            return Sign::Nothing;
        }
        if propose || self.verdict.by != Some(ResultBy::Kings) {
            self.propose_result(result, ResultBy::Kings);
            return Sign::Contradicted(Contradiction::Ended(ended));
        }
        self.set_result(Verdict {
            result,
            reason: Some(Reason::KingsAnew),
            ..self.verdict.clone()
        });
        Sign::Corrected
    }

    /// The kings set out for the centre then: no step since was a move, if nobody pressed it.
    pub fn remove_walk(&mut self, set_out: Millis) {
        if self.is_over() {
            return;
        }
        self.remove_king_steps();
        // On a board that knows no men he may have been read as another man.
        let is_kings = |m: &Move| m.role() == Role::King || CENTRE.contains(&m.to());
        let is_step = |ply: &&Ply| ply.seen_at >= set_out && !ply.pressed && is_kings(&ply.mv);
        let steps = self.line.plies.iter().rev().take_while(is_step).count();
        if steps > 0 {
            let keep = self.line.len() - steps;
            self.line.truncate(keep);
            let reason = CorrectionReason::ResultSign;
            self.tell(Event::Correction { keep, reason });
            self.change();
        }
    }

    /// Kings that walked to the centre have made no moves, if nobody pressed.
    pub fn remove_king_steps(&mut self) {
        let Some((line, _)) = self.before_king_step.take() else {
            return;
        };
        let keep = line
            .plies
            .iter()
            .zip(&self.line.plies)
            .take_while(|(a, b)| a.mv == b.mv)
            .count();
        let removed = self.line.len() > keep;
        let again: Vec<Ply> = line.plies[keep..].to_vec();
        self.line = line;
        if removed {
            self.tell(Event::Correction {
                keep,
                reason: CorrectionReason::ResultSign,
            });
        }
        for index in 0..again.len() {
            self.tell_move(keep + index + 1);
        }
        self.change();
    }

    /// A king that steps into the centre may be on its way to the result sign.
    pub(super) fn remember_king_step(&mut self, keep: usize, moves: &[Seen]) {
        match moves {
            [
                Seen {
                    mv:
                        Move::Normal {
                            role: Role::King,
                            to,
                            ..
                        },
                    ..
                },
            ] if CENTRE.contains(to) => {
                let unpressed_again = self.before_king_step.is_some() && keep < self.line.len();
                if !unpressed_again {
                    self.before_king_step = Some((self.line.clone(), *to));
                }
            }
            [] => {}
            _ => self.before_king_step = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{Change, Pairing, Terms};
    use crate::laws::position::Position;
    use shakmaty::Color;

    /// A game in which White has moved.
    fn game() -> Game {
        let start = Position::initial();
        let e4 = start.parse_move("e4", false).expect("a legal move");
        let change = Change {
            keep: 0,
            moves: vec![Seen::new(&start, e4, 1_000)],
            why: CorrectionReason::Reread,
            readings: None,
        };
        let mut game = Game::new("g".into(), true, Terms::default(), Pairing::default());
        game.ready = true;
        assert_eq!(game.take(1_000, change, false), None);
        game
    }

    fn told(game: &mut Game) -> Option<Event> {
        std::iter::from_fn(|| game.poll_event()).last()
    }

    #[test]
    fn kings_placed_anew_are_told_as_they_are_recorded() {
        let mut game = game();
        let sign = game.handle_sign(GameResult::WhiteWins, false, false, false);
        let Sign::Ends(verdict) = sign else {
            panic!("{sign:?}");
        };
        game.end(9_000, verdict);
        assert_eq!(told(&mut game), Some(Event::Ended(game.verdict.clone())));
        let again = game.handle_sign(GameResult::Draw, false, false, false);
        assert_eq!(again, Sign::Corrected);
        assert_eq!(game.verdict.result, GameResult::Draw);
        assert!(game.verdict.reason.is_some());
        assert_eq!(told(&mut game), Some(Event::Ended(game.verdict.clone())));
    }

    #[test]
    fn men_in_the_hand_are_told_from_words_and_from_other_proposals() {
        let mut game = game();
        let told = game.handle_sign(GameResult::Draw, true, false, false);
        assert_eq!(told, Sign::Proposed);
        assert!(game.likely_sign().is_some());
        // Somebody says otherwise.
        game.propose_result(GameResult::WhiteWins, ResultBy::Board);
        assert_eq!((game.likely_sign(), &game.verdict.reason), (None, &None));
        // The arbiter may say the same words.
        let words = Reason::KingsInHand.to_string();
        game.propose_result(GameResult::Draw, ResultBy::Kings);
        game.verdict.reason = Some(Reason::Told(words));
        assert_eq!(game.likely_sign(), None);
    }

    #[test]
    fn what_contradicts_a_sign_makes_it_a_proposal() {
        for (flag, clock_runs, proposed) in [
            (None, false, false),
            (None, true, true),
            (Some(Color::White), false, true),
            (Some(Color::Black), false, false),
        ] {
            let mut game = game();
            if let Some(side) = flag {
                assert!(game.handle_flag(side).is_some());
            }
            let sign = game.handle_sign(GameResult::WhiteWins, false, false, clock_runs);
            assert_eq!(
                matches!(sign, Sign::Contradicted(_)),
                proposed,
                "{flag:?} {sign:?}"
            );
            let state = proposed.then_some(ResultState::Proposed);
            assert_eq!(game.verdict.state, state);
        }
    }
}
