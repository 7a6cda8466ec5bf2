//! Whose the finished games are that this node keeps: for each there is a topic and a file, and no other game may take their place.

use std::collections::BTreeMap;

use crate::game::{PairingError, Place};

/// The finished games of one node, by id.
#[derive(Debug, Default)]
pub struct Archives {
    /// The table that has played it since this run began; none where it was played before.
    tables: BTreeMap<String, Option<String>>,
}

/// So many are remembered; a node has not played more than that in one event.
const KNOWN: usize = 10_000;

impl Archives {
    /// An earlier run has finished this game.
    pub fn find(&mut self, game: &str) {
        if self.tables.len() < KNOWN {
            self.tables.entry(game.to_owned()).or_insert(None);
        }
    }

    /// This game goes on at that table, whatever an earlier run has kept of it.
    pub fn reopen(&mut self, game: &str, table: &str) {
        if self.tables.len() < KNOWN || self.tables.contains_key(game) {
            self.tables.insert(game.to_owned(), Some(table.to_owned()));
        }
    }

    /// Keeps a game that this table has finished, or put right; false if another one has that place.
    pub fn keep(&mut self, game: &str, table: &str) -> bool {
        let known = self.tables.get(game);
        let has_place = known.is_none_or(|by| by.as_deref() == Some(table));
        if has_place {
            self.reopen(game, table);
        }
        has_place
    }

    /// Why this table cannot begin a game of this id: one has been played to its end elsewhere.
    pub fn refusal(&self, game: &str, table: &str) -> Option<PairingError> {
        let place = match self.tables.get(game)?.as_deref() {
            Some(by) if by == table => return None,
            Some(by) => Place::Table(by.to_owned()),
            None => Place::EarlierRun,
        };
        let game = game.to_owned();
        Some(PairingError::Played { game, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_game_keeps_its_place() {
        let mut archives = Archives::default();
        archives.find("g1");
        archives.find("g2");
        archives.reopen("g2", "12");
        assert!(archives.keep("g3", "12"));
        for (game, table, keeps) in [
            ("g1", "12", false),
            ("g2", "12", true),
            ("g2", "13", false),
            ("g3", "12", true),
            ("g3", "13", false),
        ] {
            assert_eq!(archives.refusal(game, table).is_none(), keeps, "{game}");
            assert_eq!(archives.keep(game, table), keeps, "{game} {table}");
        }
        // What was kept in this run comes back from the broker.
        archives.find("g3");
        assert_eq!(archives.refusal("g3", "12"), None);
        assert_eq!(archives.refusal("g4", "13"), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut archives = Archives::default();
        for number in 0..KNOWN + 10 {
            archives.find(&format!("old-{number}"));
            archives.keep(&format!("new-{number}"), "12");
        }
        assert_eq!(archives.tables.len(), KNOWN);
    }
}
