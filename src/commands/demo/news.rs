//! What comes over MQTT, read into the payload types.

use crate::publish::{BoardStatus, Clock, Event, Game};

/// A message of the node that says something of a table or a game.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    Event(Box<Event>),
    Game(Box<Game>),
    Clock(Clock),
    Status(BoardStatus),
    Pgn { table: String, text: String },
    Archive { game: String, text: String },
}

impl News {
    /// Reads a message by its topic below `{base}/{event}/`. Nothing where it is of no interest here, or cannot be read.
    pub fn read(topic: &str, payload: &[u8]) -> Option<News> {
        let levels: Vec<&str> = topic.split('/').collect();
        let text = std::str::from_utf8(payload)
            .ok()
            .filter(|text| !text.is_empty())?;
        match levels[..] {
            ["edge", _, "board", _, "event"] => {
                json(text).map(|event| News::Event(Box::new(event)))
            }
            ["edge", _, "board", _, "game"] => json(text).map(|game| News::Game(Box::new(game))),
            ["edge", _, "board", _, "clock"] => json(text).map(News::Clock),
            ["edge", _, "board", _, "status"] => json(text).map(News::Status),
            ["edge", _, "board", table, "pgn"] => Some(News::Pgn {
                table: table.to_owned(),
                text: text.to_owned(),
            }),
            ["edge", _, "archive", game] => Some(News::Archive {
                game: game.to_owned(),
                text: text.to_owned(),
            }),
            _ => None,
        }
    }

    /// The table it is about, where it names one.
    pub fn table(&self) -> Option<&str> {
        match self {
            News::Event(event) => Some(&event.table),
            News::Game(game) => Some(&game.table),
            News::Clock(clock) => Some(&clock.table),
            News::Status(status) => Some(&status.table),
            News::Pgn { table, .. } => Some(table),
            News::Archive { .. } => None,
        }
    }
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}
