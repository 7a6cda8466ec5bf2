//! Where things are said: the topics of the contract, spelled and read here and nowhere else.

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
