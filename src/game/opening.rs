//! Which game comes next at a table, who opens it, and what becomes of a pairing that comes while one is played.

use super::finished::Finished;
use super::{Arming, Game, Pairing, PairingError, Place};
use crate::clock::control::TimeControl;
use crate::laws::position::Position;
use crate::laws::ruleset::Rules;

/// What a game is played on, unless it is armed otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Terms {
    pub rules: Rules,
    pub time_control: Option<TimeControl>,
}

/// The games of a table, one after the other.
#[derive(Debug, Clone)]
pub struct Openings {
    /// How games begin; unless it is set, by the array until a pairing has armed one, and by pairings from then on.
    arming: Option<Arming>,
    terms: Terms,
    /// Armed for the game after this one.
    next: Option<Pairing>,
    /// A game was armed by name: the table follows a pairing.
    paired: bool,
    opened: u32,
    finished: Finished,
}

/// What arming came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Armed {
    /// The next game is to be opened now.
    Opens,
    /// The game that is open has these terms now.
    Open,
    /// It waits for the game that is open to end, or for the array.
    Waits,
    /// It is of the game of this id that is over, and has put right who played it.
    Finished(String),
}

impl Openings {
    pub fn new(arming: Option<Arming>, terms: Terms, next: Option<Pairing>) -> Openings {
        Openings {
            arming,
            terms,
            next,
            paired: false,
            opened: 0,
            finished: Finished::default(),
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

    /// Takes a pairing, given the game of the table, and whether that looks as if nobody played it any more. A game that is over does
    /// not begin again: who played it may still be put right.
    pub fn arm(&mut self, pairing: Pairing, game: Option<&mut Game>, is_left: bool) -> Armed {
        self.paired = true;
        let id = pairing.game.clone();
        // What it says holds from now on, whatever was told of that game before.
        self.next.take_if(|next| id.is_some() && next.game == id);
        if let Some(id) = &id
            && let Some(game) = self.finished.game_mut(id)
        {
            game.take_terms(pairing);
            game.rev += 1;
            return Armed::Finished(id.clone());
        }
        let Some(game) = game else {
            self.next = Some(pairing);
            return Armed::Opens;
        };
        let running = !game.is_over() && !game.line.is_empty();
        if pairing.adopt && running && !game.armed {
            game.adopt(pairing);
            return Armed::Open;
        }
        let id = id.filter(|id| game.is_of(id));
        let same_game = id.is_some();
        if let Some(id) = id.filter(|_| game.is_over()) {
            game.take_terms(pairing);
            return Armed::Finished(id);
        }
        // Players who sat down before anybody had told who they are.
        let names_it = game.may_be_named_by(&pairing) && !(running && is_left);
        if game.armed
            && !game.is_over()
            && (same_game
                || names_it
                || (!running && pairing.start == game.pairing.start)
                || (pairing.adopt && game.pairing.game.is_none()))
        {
            // The same game: names and numbers come late, or have been put right. What was told keeps its id.
            if let Some(id) = pairing.game.clone().filter(|_| !running) {
                game.id = id;
            }
            match running && names_it {
                true => game.name(pairing),
                false => game.take_terms(pairing),
            }
            return Armed::Open;
        }
        self.next = Some(pairing);
        if running { Armed::Waits } else { Armed::Opens }
    }

    /// A game that looked left is played on: a pairing that waits says who plays it, if nobody has.
    pub fn go_on(&mut self, game: &mut Game) {
        let named =
            |pairing: &mut Pairing| game.armed && !game.is_over() && game.may_be_named_by(pairing);
        if let Some(pairing) = self.next.take_if(named) {
            game.take_terms(pairing);
        }
    }

    /// The next game begins, and this one was left: names that came after its last move are those of the next.
    pub fn leave(&mut self, game: &mut Game) {
        if self.next.is_none() {
            self.next = game.give_back_names();
        }
    }

    /// Opens the game that is armed, or one as configured.
    pub fn open(&mut self, table: &str, stream: &str) -> Game {
        let armed = self.next.is_some() || !self.is_by_hand();
        let pairing = self.next.take().unwrap_or_default();
        self.opened += 1;
        let id = pairing
            .game
            .clone()
            .unwrap_or_else(|| self.game_id(table, stream));
        Game::new(id, armed, self.terms.clone(), pairing)
    }

    /// A game is over, and another one takes its place.
    pub fn finish(&mut self, game: Game) {
        self.finished.push(game);
    }

    /// The last game here that was ended, but for the one that is open.
    pub fn last_finished(&self) -> Option<&Game> {
        self.finished.last()
    }

    /// The game of this id, if it is one before the one that is open and its record is still here.
    pub fn finished(&self, id: &str) -> Option<&Game> {
        self.finished.game(id)
    }

    /// Refuses the pairing of a game that was played so long ago that only those who read along have its record.
    pub fn refuse_forgotten(&self, pairing: &Pairing) -> Result<(), PairingError> {
        let is_gone = |id: &&String| self.finished.knows(id) && self.finished(id).is_none();
        match pairing.game.as_ref().filter(is_gone) {
            Some(id) => Err(PairingError::Played {
                game: id.clone(),
                place: Place::Here,
            }),
            None => Ok(()),
        }
    }

    /// Whether the next game is armed already.
    pub fn is_armed(&self) -> bool {
        self.next.is_some()
    }

    /// Where the next game begins.
    pub fn next_start(&self) -> Position {
        let next = self.next.as_ref();
        next.map_or_else(Position::initial, |pairing| pairing.start.clone())
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
