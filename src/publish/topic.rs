//! Where things are said: the topics of the contract, spelled and read here and nowhere else.

use std::fmt;

use super::Audience;

/// The topics of the contract below `{base}/{event}/edge/{node}/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// The node's own state; last will.
    NodeStatus,
    Info,
    Health,
    AlertLine,
    /// The final PGN of a closed game.
    Archive {
        game: String,
    },
    BoardStatus {
        table: String,
    },
    Position {
        table: String,
    },
    Clock {
        table: String,
    },
    Game {
        table: String,
    },
    Pgn {
        table: String,
    },
    Event {
        table: String,
    },
    Alert {
        table: String,
        audience: Audience,
        id: String,
    },
    Raw {
        table: String,
    },
}

/// What may happen to a message that waits for the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Every one is sent, in order.
    Each,
    /// A newer one of the same topic takes the place of an unsent older one.
    Latest,
    /// As `Latest`, and it is not worth keeping over a restart.
    LatestUnstored,
    /// Sent if there is a connection, else dropped.
    BestEffort,
    /// Every one is sent, after all else, and as long as there is room: whoever asked can ask again.
    Answer,
}

impl Topic {
    /// The topic below `{base}/{event}/`, for this node.
    pub fn path(&self, node: &str) -> String {
        match self {
            Topic::NodeStatus => format!("edge/{node}/status"),
            Topic::Info => format!("edge/{node}/info"),
            Topic::Health => format!("edge/{node}/health"),
            Topic::AlertLine => format!("edge/{node}/alertline"),
            Topic::Archive { game } => format!("edge/{node}/archive/{game}"),
            Topic::BoardStatus { table } => format!("edge/{node}/board/{table}/status"),
            Topic::Position { table } => format!("edge/{node}/board/{table}/position"),
            Topic::Clock { table } => format!("edge/{node}/board/{table}/clock"),
            Topic::Game { table } => format!("edge/{node}/board/{table}/game"),
            Topic::Pgn { table } => format!("edge/{node}/board/{table}/pgn"),
            Topic::Event { table } => format!("edge/{node}/board/{table}/event"),
            Topic::Alert {
                table,
                audience,
                id,
            } => {
                format!("edge/{node}/board/{table}/alert/{}/{id}", audience.as_str())
            }
            Topic::Raw { table } => format!("edge/{node}/board/{table}/raw"),
        }
    }

    /// The node and the topic of this path below `{base}/{event}/`.
    pub fn parse(below: &str) -> Option<(&str, Topic)> {
        let mut levels = below.split('/');
        if levels.next() != Some("edge") {
            return None;
        }
        let node = levels.next()?;
        let levels: Vec<&str> = levels.collect();
        let own = |level: &str| level.to_owned();
        let topic = match levels[..] {
            ["status"] => Topic::NodeStatus,
            ["info"] => Topic::Info,
            ["health"] => Topic::Health,
            ["alertline"] => Topic::AlertLine,
            ["archive", game] => Topic::Archive { game: own(game) },
            ["board", table, "alert", audience, id] => Topic::Alert {
                table: own(table),
                audience: audience.parse().ok()?,
                id: own(id),
            },
            ["board", table, last] => {
                let table = own(table);
                match last {
                    "status" => Topic::BoardStatus { table },
                    "position" => Topic::Position { table },
                    "clock" => Topic::Clock { table },
                    "game" => Topic::Game { table },
                    "pgn" => Topic::Pgn { table },
                    "event" => Topic::Event { table },
                    "raw" => Topic::Raw { table },
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some((node, topic))
    }

    /// Whether what stands there is a state, which nobody but the node may say: retained, and not said once for all.
    pub fn is_state(&self) -> bool {
        self.retain() && !matches!(self, Topic::Archive { .. })
    }

    /// Whether the broker keeps the last message for whoever comes later.
    pub fn retain(&self) -> bool {
        !matches!(
            self,
            Topic::Health | Topic::AlertLine | Topic::Event { .. } | Topic::Raw { .. }
        )
    }

    /// MQTT quality of service: 1, but for what comes again soon.
    pub fn qos(&self) -> u8 {
        match self {
            Topic::Health | Topic::Raw { .. } => 0,
            _ => 1,
        }
    }

    pub fn delivery(&self) -> Delivery {
        match self {
            Topic::Event { .. } | Topic::AlertLine | Topic::Archive { .. } => Delivery::Each,
            // An alert that is raised and closed while the broker is away need not be shown.
            Topic::Alert { .. } | Topic::Game { .. } | Topic::Pgn { .. } => Delivery::Latest,
            Topic::BoardStatus { .. } | Topic::NodeStatus | Topic::Info => Delivery::Latest,
            Topic::Position { .. } | Topic::Clock { .. } => Delivery::LatestUnstored,
            Topic::Health | Topic::Raw { .. } => Delivery::BestEffort,
        }
    }
}

/// Filters for all that [`Topic::is_state`] of a node, below `{base}/{event}/`. The records first: what an earlier run has kept there
/// must be known before a pairing arms a game over it.
pub fn states(node: &str) -> [String; 8] {
    let table = || "+".to_owned();
    [
        Topic::Game { table: table() }.path(node),
        alerts(node),
        Topic::BoardStatus { table: table() }.path(node),
        Topic::Position { table: table() }.path(node),
        Topic::Clock { table: table() }.path(node),
        Topic::Pgn { table: table() }.path(node),
        Topic::Info.path(node),
        Topic::NodeStatus.path(node),
    ]
}

/// A filter for the finished games of a node.
pub fn archives(node: &str) -> String {
    let game = "+".to_owned();
    Topic::Archive { game }.path(node)
}

/// A filter for the alerts of a node, also for an audience that only an earlier version knew.
pub fn alerts(node: &str) -> String {
    format!("edge/{node}/board/+/alert/#")
}

/// Whether a topic is one of those that a filter means (MQTT 5, 4.7).
pub fn matches(filter: &str, topic: &str) -> bool {
    let mut levels = topic.split('/');
    for wanted in filter.split('/') {
        match (wanted, levels.next()) {
            // Also the level above.
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (wanted, Some(level)) if wanted == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// A topic under which others speak to a node, or are answered, below `{base}/{event}/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address<'a> {
    Command { node: &'a str, verb: &'a str },
    Pairing { table: &'a str },
    Reply { client: &'a str },
}

/// What all topics of the hub begin with. They are states: of several messages under one of them only the newest counts.
pub const CORE: &str = "core/";

impl<'a> Address<'a> {
    /// The last part is taken as it stands, whatever is in it: who reads it says what is wrong with it.
    pub fn parse(below: &'a str) -> Option<Address<'a>> {
        if let Some(table) = below.strip_prefix("core/table/") {
            return Some(Address::Pairing { table });
        }
        if let Some(client) = below.strip_prefix("reply/") {
            return Some(Address::Reply { client });
        }
        let (node, verb) = below.strip_prefix("cmd/")?.split_once('/')?;
        Some(Address::Command { node, verb })
    }
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Command { node, verb } => write!(f, "cmd/{node}/{verb}"),
            Address::Pairing { table } => write!(f, "{CORE}table/{table}"),
            Address::Reply { client } => write!(f, "reply/{client}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each. A new topic does not compile until it stands here too.
    fn all() -> Vec<Topic> {
        let table = || "12".to_owned();
        let all = vec![
            Topic::NodeStatus,
            Topic::Info,
            Topic::Health,
            Topic::AlertLine,
            Topic::Archive {
                game: "12-a-1".to_owned(),
            },
            Topic::BoardStatus { table: table() },
            Topic::Position { table: table() },
            Topic::Clock { table: table() },
            Topic::Game { table: table() },
            Topic::Pgn { table: table() },
            Topic::Event { table: table() },
            Topic::Alert {
                table: table(),
                audience: Audience::Request,
                id: "a7".to_owned(),
            },
            Topic::Raw { table: table() },
        ];
        let index = |topic: &Topic| match topic {
            Topic::NodeStatus => 0,
            Topic::Info => 1,
            Topic::Health => 2,
            Topic::AlertLine => 3,
            Topic::Archive { .. } => 4,
            Topic::BoardStatus { .. } => 5,
            Topic::Position { .. } => 6,
            Topic::Clock { .. } => 7,
            Topic::Game { .. } => 8,
            Topic::Pgn { .. } => 9,
            Topic::Event { .. } => 10,
            Topic::Alert { .. } => 11,
            Topic::Raw { .. } => 12,
        };
        assert!(all.iter().map(index).eq(0..13));
        all
    }

    #[test]
    fn topics_come_back() {
        for topic in all() {
            let path = topic.path("pi07");
            assert_eq!(Topic::parse(&path), Some(("pi07", topic)), "{path}");
        }
        for path in [
            "",
            "edge",
            "edge/pi07",
            "edge/pi07/board/12",
            "edge/pi07/board/12/game/x",
            "edge/pi07/board/12/alert/public/a7",
            "core/table/12",
        ] {
            assert_eq!(Topic::parse(path), None, "{path}");
        }
    }

    #[test]
    fn every_state_is_watched_and_nothing_else() {
        for topic in all() {
            let path = topic.path("pi07");
            let watched = states("pi07");
            let by = watched.iter().filter(|filter| matches(filter, &path));
            assert_eq!(by.count(), usize::from(topic.is_state()), "{path}");
            assert!(!states("pi08").iter().any(|filter| matches(filter, &path)));
        }
    }

    #[test]
    fn filters_mean_whole_levels() {
        for (filter, topic, is_meant) in [
            ("a/+/c", "a/b/c", true),
            ("a/+/c", "a/b/c/d", false),
            ("a/+/c", "a/c", false),
            ("a/#", "a/b/c", true),
            ("a/#", "a", true),
            ("a/#", "ab", false),
            ("a/b", "a/bc", false),
        ] {
            assert_eq!(matches(filter, topic), is_meant, "{filter} {topic}");
        }
    }

    #[test]
    fn addresses_come_back() {
        for path in [
            "cmd/pi07/takeback",
            "cmd/pi07/a/b",
            "core/table/12",
            "reply/anna",
        ] {
            let address = Address::parse(path).map(|address| address.to_string());
            assert_eq!(address.as_deref(), Some(path));
        }
        for path in ["cmd/pi07", "core/round", "edge/pi07/info"] {
            assert_eq!(Address::parse(path), None, "{path}");
        }
    }
}
