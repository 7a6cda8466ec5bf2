//! The hands of two players: how a move on paper becomes men lifted and put down.
//!
//! The shares of the `human` level follow what three recordings of real games show (of 36 captures 26 without an empty square, 7
//! victim first, 3 own man first; 5 captured men dragged over a neighbouring square; 9 of 199 men seen on their way; 2 seen on the
//! new square first) and what users of other programs reported (cases C to I). All arithmetic is in whole numbers, so that a seed gives
//! the same script on every machine.

mod moves;
mod presses;

use fastrand::Rng;
use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;
use shakmaty::{Bitboard, Chess, EnPassantMode, Move, Outcome, Position, Square};

use super::faults::{Situation, Slip};
use super::pgn::SimGame;
use super::scene::{Ending, Scene};
use super::script::{Act, GameTruth, Incident, IncidentKind, Manner, Played, Script, Table};
use crate::Millis;
use crate::text::words;
use presses::{Care, Presses};

words! {
    /// How the players handle the men.
    Level {
        /// Each man straight from square to square, victims first, king first, all at one pace.
        Clean = "clean",
        /// As people do.
        Human = "human",
        /// In a hurry: 150 to 400 ms a ply in all, with both players' hands over the board.
        Blitz = "blitz",
        /// As people do, and with what goes wrong at a table.
        Faulty = "faulty",
    }
}

/// How long the players think. In blitz they do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// This long on average.
    Mean(Millis),
    /// As the game's clock times tell, with this increment a move; `otherwise` on average where they say nothing.
    Recorded {
        increment_ms: Millis,
        otherwise: Millis,
    },
}

/// Two players who turn games into scripts. The same level, seed and games give the same scripts.
#[derive(Debug, Clone)]
pub struct Hands {
    level: Level,
    pace: Pace,
    rest_ms: Millis,
    rng: Rng,
}

impl Hands {
    pub fn new(level: Level, seed: u64) -> Hands {
        Hands {
            level,
            pace: Pace::Mean(4_000),
            rest_ms: 6_000,
            rng: Rng::with_seed(seed),
        }
    }

    pub fn with_pace(mut self, pace: Pace) -> Hands {
        self.pace = pace;
        self
    }

    /// How long men stand still where that means something: the array before a game, the kings that show a result. It has to outlast
    /// what a watcher waits for, five seconds unless time goes faster for the table than for him.
    pub fn with_rest(mut self, rest_ms: Millis) -> Hands {
        self.rest_ms = rest_ms;
        self
    }

    /// Plays one game. The script ends with the position after the last move on the board.
    pub fn script(&mut self, game: &SimGame) -> Script {
        self.script_with(game, &Scene::new())
    }

    /// Plays one game with what the scene adds to it.
    pub fn script_with(&mut self, game: &SimGame, scene: &Scene) -> Script {
        let mut table = Table::new(game.start.board().clone());
        let truth = self.play_game(&mut table, game, scene);
        table.finish(vec![truth])
    }

    /// Plays games one after the other at the same table; between them the men are set up and the clock is set again. `None` if there
    /// are no games.
    pub fn series(
        &mut self,
        games: &[SimGame],
        mut scene: impl FnMut(&SimGame) -> Scene,
    ) -> Option<Script> {
        let mut table = Table::new(games.first()?.start.board().clone());
        let mut truths = Vec::new();
        for (i, game) in games.iter().enumerate() {
            if i > 0 {
                table.wait(BETWEEN_GAMES_MS);
                self.set_up(&mut table, game.start.board());
                table.act(Act::ClockReset);
                table.wait(self.rest_ms);
            }
            truths.push(self.play_game(&mut table, game, &scene(game)));
        }
        Some(table.finish(truths))
    }

    pub(super) fn play_game(
        &mut self,
        table: &mut Table,
        game: &SimGame,
        scene: &Scene,
    ) -> GameTruth {
        let faulty = (self.level == Level::Faulty).then(|| self.with_faults(scene, game));
        let scene = faulty.as_ref().unwrap_or(scene);
        let mut position = game.start.clone();
        let mut truth = GameTruth {
            number: game.number,
            start_fen: Fen::from_position(&position, EnPassantMode::Legal).to_string(),
            chess960: game.chess960,
            from_ms: table.now,
            to_ms: table.now,
            plies: Vec::with_capacity(game.moves.len()),
            incidents: Vec::new(),
            result: game.result,
        };
        if !scene.is_early() {
            table.act(Act::ClockStart {
                side: position.turn(),
            });
        }
        // Where irregular moves must not lead: to what the moves before could have been.
        let mut earlier: Option<Chess> = None;
        let mut before: Option<Chess> = None;
        let mut presses = Presses::default();
        for (i, &m) in game.moves.iter().enumerate() {
            let ply = i + 1;
            let stood_ms = table.now;
            table.wait(self.think(game, i));
            table.now = table.now.max(presses.hand_is_back(position.turn()));
            table.settle_before(ply.saturating_sub(1));
            self.heal(table, &mut truth, ply);
            if !scene.is_quiet(ply) {
                table.settle_before(ply);
            }
            let situation = Situation {
                position: &position,
                before: before.as_ref(),
                earlier: earlier.as_ref(),
                last: i.checked_sub(1).map(|last| game.moves[last]),
                coming: &game.moves[i..],
                ply,
            };
            for moment in scene.moments_before(ply) {
                truth
                    .incidents
                    .extend(self.moment(table, moment, &situation));
            }
            if scene.stands_at(ply)
                && let Some(incident) = self.illegal_that_stands(table, &situation)
            {
                truth.incidents.push(incident);
                truth.result = Outcome::Unknown;
                break;
            }
            let otherwise = match scene.slip_at(ply) {
                Some(slip) => {
                    self.play_with_slip(table, slip, &situation, &mut presses, &mut truth)
                }
                None if ply == 1 && scene.is_early() => {
                    self.start_early(table, &situation, &mut presses, &mut truth)
                }
                None if scene.is_fetched(ply) => {
                    self.play_with_man_fetched(table, &situation, &mut presses, &mut truth)
                }
                None => false,
            };
            if !otherwise {
                self.play_ply(table, &situation, scene, stood_ms, &mut presses, &mut truth);
            }
            let mut next = position.clone();
            next.play_unchecked(m);
            earlier = before.replace(std::mem::replace(&mut position, next));
        }
        self.heal(table, &mut truth, usize::MAX);
        table.settle_before(usize::MAX);
        table.wait(self.between(500, 3000));
        table.act(Act::ClockStop);
        truth.to_ms = table.now;
        for ending in scene.endings() {
            // Nobody can tell any more who has won.
            if truth.ends_irregularly() && matches!(ending, Ending::Kings(_)) {
                continue;
            }
            truth
                .incidents
                .push(self.ending(table, ending, &position, game));
        }
        truth
    }

    /// Plays the move that is due and presses the clock, or not yet.
    fn play_ply(
        &mut self,
        table: &mut Table,
        s: &Situation,
        scene: &Scene,
        stood_ms: Millis,
        presses: &mut Presses,
        truth: &mut GameTruth,
    ) {
        let Some((&m, later)) = s.coming.split_first() else {
            return;
        };
        let side = s.position.turn();
        let mut manners = Vec::new();
        self.fidget(table, s.position, m, &mut manners);
        let (mark, first) = (table.mark(), table.now);
        let mut touched_ms = self
            .play(table, s.position, m, &mut manners)
            .unwrap_or(first);
        if self.level == Level::Blitz
            && s.ply > 1
            && self.chance(OVERLAPS)
            && let Some(from) = m.from()
        {
            let before = stood_ms.saturating_sub(self.between(10, 120));
            let early_ms = before.max(presses.hand_is_back(side));
            if early_ms < stood_ms && table.lift_earlier(mark, from, early_ms) {
                manners.push(Manner::Overlapped);
                touched_ms = early_ms;
            }
        }
        let placed_ms = table.now;
        let undisturbed = scene.is_quiet(s.ply + 1);
        if undisturbed && scene.is_quiet(s.ply + 2) {
            self.drag_victim(table, s.position, m, s.ply, later, &mut manners);
        }
        if m.is_castle() {
            self.straighten(table, s.position, m, &mut manners);
        }
        let played = Played {
            ply: s.ply,
            side,
            uci: uci(s.position, m),
            touched_ms,
            placed_ms,
            pressed_ms: None,
            manners,
        };
        let care = Care::Usual {
            may_forget: undisturbed,
            is_last: later.is_empty(),
        };
        let played = self.complete(table, presses, &mut truth.plies, played, care);
        truth.plies.push(played);
    }

    /// Plays the move that is due with something wrong in it, presses, and puts it right; whether there was room for that.
    fn play_with_slip(
        &mut self,
        table: &mut Table,
        slip: Slip,
        s: &Situation,
        presses: &mut Presses,
        truth: &mut GameTruth,
    ) -> bool {
        let touched_ms = table.now;
        let (Some(&m), Some(slipped)) = (s.coming.first(), self.slip(table, slip, s)) else {
            return false;
        };
        let played = Played {
            ply: s.ply,
            side: s.position.turn(),
            uci: uci(s.position, m),
            touched_ms,
            placed_ms: table.now,
            pressed_ms: None,
            manners: Vec::new(),
        };
        let mut played = self.complete(table, presses, &mut truth.plies, played, Care::Surely);
        let incident = self.mend(table, slipped, &played);
        played.placed_ms = incident.to_ms.unwrap_or(table.now);
        truth.plies.push(played);
        truth.incidents.push(incident);
        true
    }

    /// Makes the first move before the clock is started, and presses once it runs.
    fn start_early(
        &mut self,
        table: &mut Table,
        s: &Situation,
        presses: &mut Presses,
        truth: &mut GameTruth,
    ) -> bool {
        let Some(&m) = s.coming.first() else {
            return false;
        };
        let mut played = self.begin_ply(table, s, m);
        let from_ms = played.touched_ms;
        table.wait(self.between(3_000, 5_000));
        let side = s.position.turn();
        table.act(Act::ClockStart { side });
        truth.from_ms = table.now;
        truth.incidents.push(Incident {
            kind: IncidentKind::EarlyStart,
            ply: s.ply,
            side: Some(side),
            squares: Vec::new(),
            breach: None,
            from_ms,
            due_ms: None,
            to_ms: Some(table.now),
            in_outline: true,
        });
        table.wait(self.between(600, 1_500));
        played = self.complete(table, presses, &mut truth.plies, played, Care::Surely);
        truth.plies.push(played);
        true
    }

    /// Puts the pawn on the last rank and stops the clocks until the new man is there; then presses.
    fn play_with_man_fetched(
        &mut self,
        table: &mut Table,
        s: &Situation,
        presses: &mut Presses,
        truth: &mut GameTruth,
    ) -> bool {
        let Some(&m) = s.coming.first() else {
            return false;
        };
        let (Some(from), Some(role)) = (m.from(), m.promotion()) else {
            return false;
        };
        let side = s.position.turn();
        let touched_ms = table.now;
        table.lift(from);
        table.wait(self.hand_ms());
        if m.is_capture() {
            table.lift(m.to());
            table.wait(self.hand_ms());
        }
        table.place(m.to(), side.pawn());
        table.wait(self.between(400, 1_200));
        table.act(Act::ClockStop);
        let from_ms = table.now;
        table.wait(self.between(5_000, 8_000));
        table.lift(m.to());
        table.wait(self.hand_ms());
        table.place(m.to(), role.of(side));
        let placed_ms = table.now;
        table.wait(self.between(1_000, 2_000));
        table.act(Act::ClockStart { side });
        truth.incidents.push(Incident {
            kind: IncidentKind::Fetched,
            ply: s.ply,
            side: Some(side),
            squares: vec![from, m.to()],
            breach: None,
            from_ms,
            due_ms: None,
            to_ms: Some(table.now),
            in_outline: true,
        });
        table.wait(self.between(300, 900));
        let played = Played {
            ply: s.ply,
            side,
            uci: uci(s.position, m),
            touched_ms,
            placed_ms,
            pressed_ms: None,
            manners: vec![Manner::PawnFirst],
        };
        let played = self.complete(table, presses, &mut truth.plies, played, Care::Surely);
        truth.plies.push(played);
        true
    }

    /// Carries the move out, without a press.
    fn begin_ply(&mut self, table: &mut Table, s: &Situation, m: Move) -> Played {
        let mut manners = Vec::new();
        let first = table.now;
        let touched_ms = self
            .play(table, s.position, m, &mut manners)
            .unwrap_or(first);
        Played {
            ply: s.ply,
            side: s.position.turn(),
            uci: uci(s.position, m),
            touched_ms,
            placed_ms: table.now,
            pressed_ms: None,
            manners,
        }
    }

    fn think(&mut self, game: &SimGame, ply_index: usize) -> Millis {
        if self.level == Level::Blitz {
            return self.between(80, 220);
        }
        let mean = match self.pace {
            Pace::Mean(mean) => mean,
            Pace::Recorded {
                increment_ms,
                otherwise,
            } => match recorded_ms(game, ply_index, increment_ms) {
                Some(ms) => return ms.saturating_sub(HANDLING_MS).max(LEAST_THINK_MS),
                None => otherwise,
            },
        };
        let ms = match self.level {
            Level::Clean => mean,
            _ => {
                let place = self.rng.usize(..THINK_PER_MILLE.len() - 1);
                let (low, high) = (THINK_PER_MILLE[place], THINK_PER_MILLE[place + 1]);
                mean * self.between(low, high) / 1000
            }
        };
        ms.max(LEAST_THINK_MS)
    }

    /// From lifting a man to putting it down.
    pub(super) fn hand_ms(&mut self) -> Millis {
        if !self.human() {
            HAND_MS
        } else if self.level == Level::Blitz {
            self.between(70, 180)
        } else if self.chance(250) {
            self.between(500, 900)
        } else {
            self.between(150, 500)
        }
    }

    pub(super) fn rest_ms(&self) -> Millis {
        self.rest_ms
    }

    pub(super) fn human(&self) -> bool {
        self.level != Level::Clean
    }

    /// The first of two where the players have time, the second where they have none.
    pub(super) fn unless_hurried<T>(&self, unhurried: T, hurried: T) -> T {
        match self.level {
            Level::Blitz => hurried,
            _ => unhurried,
        }
    }

    pub(super) fn chance(&mut self, per_mille: u64) -> bool {
        self.rng.u64(..1000) < per_mille
    }

    /// A number from `low` to `high`; clean hands know no chance and take the middle.
    pub(super) fn between(&mut self, low: Millis, high: Millis) -> Millis {
        match self.level {
            Level::Clean => (low + high) / 2,
            _ => self.rng.u64(low..=high),
        }
    }

    pub(super) fn pick(&mut self, squares: Bitboard) -> Option<Square> {
        let count = squares.count();
        (count > 0)
            .then(|| squares.into_iter().nth(self.rng.usize(..count)))
            .flatten()
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.rng.shuffle(items);
    }

    /// One of several, each with its share of 1000.
    pub(super) fn choose<T: Copy>(&mut self, shares: &[(u64, T)]) -> T {
        let total: u64 = shares.iter().map(|(share, _)| share).sum();
        let mut drawn = self.rng.u64(..total);
        for &(share, item) in shares {
            if drawn < share {
                return item;
            }
            drawn -= share;
        }
        shares[shares.len() - 1].1
    }
}

/// Castling in Chess960 as king takes rook.
fn uci(position: &Chess, m: Move) -> String {
    UciMove::from_move(m, position.castles().mode()).to_string()
}

/// Time that the game's own clock times leave for a move.
fn recorded_ms(game: &SimGame, ply_index: usize, increment_ms: Millis) -> Option<Millis> {
    let clocks = game.clocks.as_ref()?;
    let before = (*clocks.get(ply_index.checked_sub(2)?)?)?;
    let after = (*clocks.get(ply_index)?)?;
    Some((before + increment_ms).saturating_sub(after).min(3_600_000))
}

/// Thinking times in thousandths of their mean, at eight equal shares: many quick moves, few long ones, as in real games.
const THINK_PER_MILLE: [u64; 9] = [100, 240, 370, 520, 700, 950, 1350, 2050, 3540];

/// Of 1000 moves in a hurry so many begin before the opponent's stands on the board.
const OVERLAPS: u64 = 400;

/// Nobody answers faster.
const LEAST_THINK_MS: Millis = 250;

/// What lifting, placing and pressing take of a recorded move's time.
const HANDLING_MS: Millis = 900;

/// How long clean hands carry a man.
const HAND_MS: Millis = 300;

/// The players talk about it before they set up again.
const BETWEEN_GAMES_MS: Millis = 5_000;
