//! The games of a table that are over, and behind which another one was opened: none of them begins again.

use super::Game;
use std::collections::VecDeque;

/// So many are kept whole, so that what is told late of who played them still enters their record.
const WHOLE: usize = 4;
/// So many are known by their ids.
const KNOWN: usize = 1000;

#[derive(Debug, Clone, Default)]
pub(super) struct Finished {
    games: VecDeque<Game>,
    /// Of older games too: their own ids, and those by which their pairings named them.
    ids: VecDeque<String>,
}

impl Finished {
    pub fn push(&mut self, mut game: Game) {
        game.before_king_step = None;
        self.ids.extend(game.ids().map(str::to_owned));
        while self.ids.len() > KNOWN {
            self.ids.pop_front();
        }
        self.games.push_back(game);
        if self.games.len() > WHOLE {
            self.games.pop_front();
        }
    }

    pub fn last(&self) -> Option<&Game> {
        self.games.back()
    }

    /// The game of this id, if its record is still here.
    pub fn game(&self, id: &str) -> Option<&Game> {
        self.games.iter().rev().find(|game| game.is_of(id))
    }

    pub fn game_mut(&mut self, id: &str) -> Option<&mut Game> {
        self.games.iter_mut().rev().find(|game| game.is_of(id))
    }

    pub fn knows(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{Pairing, Terms};

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut finished = Finished::default();
        for number in 0..2 * KNOWN {
            let pairing = Pairing {
                game: Some(format!("g{number}")),
                ..Pairing::default()
            };
            let id = format!("1-abc-{number}");
            finished.push(Game::new(id, true, Terms::default(), pairing));
        }
        assert_eq!((finished.games.len(), finished.ids.len()), (WHOLE, KNOWN));
        for (id, is_known, is_whole) in [
            ("g1999", true, true),
            ("1-abc-1999", true, true),
            ("g1990", true, false),
            ("g3", false, false),
        ] {
            assert_eq!(finished.knows(id), is_known, "{id}");
            assert_eq!(finished.game(id).is_some(), is_whole, "{id}");
        }
    }
}
