//! Which game comes next at a table, who opens it, and what becomes of a pairing that comes while one is played.

use super::{Arming, Game};
use crate::command::Arm;
use crate::laws::position::Position;
use crate::laws::ruleset::Rules;
use shakmaty::{CastlingMode, Setup};

/// What a game is played on, unless it is armed otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Terms {
    pub rules: Rules,
    pub time_control: Option<String>,
}

/// The games of a table, one after the other.
#[derive(Debug, Clone)]
pub struct Openings {
    /// How games begin; unless it is set, by the array until a pairing has armed one, and by pairings from then on.
    arming: Option<Arming>,
    terms: Terms,
    /// Armed for the game after this one.
    next: Option<Arm>,
    /// A game was armed by name: the table follows a pairing.
    paired: bool,
    opened: u32,
}

/// What arming came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Armed {
    /// The next game is to be opened now.
    Opens,
    /// The game that is open has these terms now.
    Open,
    /// It waits for the game that is open to end, or for the array.
    Waits,
}

impl Openings {
    pub fn new(arming: Option<Arming>, terms: Terms, next: Option<Arm>) -> Openings {
        Openings {
            arming,
            terms,
            next,
            paired: false,
            opened: 0,
        }
    }

    /// The table follows pairings.
    pub fn follow_pairings(&mut self) {
        self.paired = true;
    }

    /// Somebody who joins a running game arms it by that, if nobody has.
    pub fn arm_next(&mut self) {
        self.next.get_or_insert_default();
    }

    /// Takes a pairing, given the game that is open.
    pub fn arm(&mut self, arm: &Arm, game: Option<&mut Game>) -> Armed {
        self.paired = true;
        let Some(game) = game else {
            self.next = Some(arm.clone());
            return Armed::Opens;
        };
        let running = !game.is_over() && !game.line.is_empty();
        if arm.adopt && running && !game.armed {
            game.adopt(arm);
            return Armed::Open;
        }
        let same_game = arm.game.is_some() && arm.game == game.arm.game;
        // Players who sat down before anybody had told who they are.
        let names_it = is_named(arm)
            && !is_named(&game.arm)
            && arm.fen == game.arm.fen
            && (arm.game.is_none() || game.arm.game.is_none());
        if game.armed
            && !game.is_over()
            && (same_game
                || names_it
                || (!running && arm.fen == game.arm.fen)
                || (arm.adopt && game.arm.game.is_none()))
        {
            // The same game: names and numbers come late, or have been put right. What was told keeps its id.
            game.take_terms(arm);
            if let Some(id) = arm.game.clone().filter(|_| !running) {
                game.id = id;
            }
            return Armed::Open;
        }
        self.next = Some(arm.clone());
        if running { Armed::Waits } else { Armed::Opens }
    }

    /// Opens the game that is armed, or one as configured.
    pub fn open(&mut self, table: &str, stream: &str) -> Game {
        let armed = self.next.is_some() || !self.is_by_hand();
        let start = self.next_start();
        let arm = self.next.take().unwrap_or_default();
        self.opened += 1;
        let id = arm
            .game
            .clone()
            .unwrap_or_else(|| self.game_id(table, stream));
        Game::new(id, armed, start, self.terms.clone(), &arm)
    }

    /// Whether the next game is armed already.
    pub fn is_armed(&self) -> bool {
        self.next.is_some()
    }

    /// Where the next game begins.
    pub fn next_start(&self) -> Position {
        let mode = self.next.as_ref().and_then(|arm| arm.chess960);
        let mode = CastlingMode::from_chess960(mode.unwrap_or(false));
        match self.next.as_ref().and_then(|arm| arm.fen.as_deref()) {
            Some(fen) => {
                Position::from_fen(fen, mode.is_chess960()).unwrap_or_else(|_| Position::initial())
            }
            None => Position::from_setup(Setup::initial(), mode),
        }
    }

    /// Whether an array alone opens no game that is told.
    pub fn is_by_hand(&self) -> bool {
        match self.arming {
            Some(arming) => arming == Arming::Manual,
            None => self.paired,
        }
    }

    /// Short, unique for the stream, and fit for a topic level.
    fn game_id(&self, table: &str, stream: &str) -> String {
        let stream: String = stream
            .chars()
            .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            .take(8)
            .collect();
        let table: String = table.chars().take(16).collect();
        format!("{table}-{stream}-{}", self.opened)
    }
}

/// Whether a pairing names a player.
fn is_named(arm: &Arm) -> bool {
    let players = [&arm.white, &arm.black];
    players
        .into_iter()
        .flatten()
        .any(|player| player.name.is_some())
}
