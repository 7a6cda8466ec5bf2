//! The conditions under which games are read, and which games those are.

use crate::games;
use crate::live::{self, Conditions, Live};
use jadoube::sim::hands::Level;
use jadoube::sim::pgn::SimGame;
use jadoube::sim::scan::Sweep;
use jadoube::wire::Family;
use std::sync::LazyLock;

/// Where a game is from. Random moves are what people hardly play: a knight instead of a queen, taken before it has moved.
#[derive(Debug, Clone, Copy)]
pub enum Origin {
    Corpus,
    Random,
}

/// A row of the table.
pub struct Kind {
    pub name: &'static str,
    conditions: Conditions,
}

impl Kind {
    /// The game of this number, played under these conditions.
    pub fn play(&self, number: u64) -> (Origin, Live) {
        let (origin, game) = game(number);
        (origin, live::play(&game, &self.conditions, number))
    }
}

pub fn names() -> String {
    KINDS
        .iter()
        .map(|kind| kind.name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Three of four games are of the corpus, one of them in Chess960 where there are eight, the fourth is random.
fn game(number: u64) -> (Origin, SimGame) {
    let [standard, chess960] = &*CORPUS;
    let from = |games: &[SimGame], number: u64| -> Option<SimGame> {
        let index = usize::try_from(number).ok()?.checked_rem(games.len())?;
        games.get(index).cloned()
    };
    let chosen = match number % 8 {
        3 | 7 => None,
        6 => from(chess960, number / 8),
        _ => from(standard, number * 7),
    };
    match chosen {
        Some(game) => (Origin::Corpus, game),
        None => (Origin::Random, games::random_game(number, 120)),
    }
}

/// The games of the corpus from the usual position, and those in Chess960.
static CORPUS: LazyLock<[Vec<SimGame>; 2]> = LazyLock::new(|| {
    let (chess960, standard): (Vec<SimGame>, Vec<SimGame>) = games::corpus_games()
        .into_iter()
        .filter(|game| game.moves.len() > 8)
        .filter(|game| game.chess960 || game.start == Default::default())
        .partition(|game| game.chess960);
    [standard, chess960]
});

const PLAIN: Conditions = Conditions::USUAL;

/// A board that sees only where men stand; its presses come as commands.
const PRESENCE: Conditions = Conditions {
    family: Family::Psb1,
    scan_ms: 20,
    sweep: Sweep::Whole,
    ..PLAIN
};

const BLITZ: Conditions = Conditions {
    level: Level::Blitz,
    control: Some("300"),
    unsent: 10,
    ..PLAIN
};

pub const KINDS: &[Kind] = &[
    Kind {
        name: "clean",
        conditions: Conditions {
            level: Level::Clean,
            ..PLAIN
        },
    },
    Kind {
        name: "human-40ms",
        conditions: Conditions {
            scan_ms: 40,
            ..PLAIN
        },
    },
    Kind {
        name: "human-250ms",
        conditions: Conditions {
            scan_ms: 250,
            ..PLAIN
        },
    },
    Kind {
        name: "blitz-40ms",
        conditions: Conditions {
            scan_ms: 40,
            ..BLITZ
        },
    },
    Kind {
        name: "blitz-250ms",
        conditions: Conditions {
            scan_ms: 250,
            ..BLITZ
        },
    },
    Kind {
        name: "blitz-no-dump",
        conditions: Conditions {
            scan_ms: 40,
            asks: false,
            ..BLITZ
        },
    },
    Kind {
        name: "blitz-all-told",
        conditions: Conditions {
            scan_ms: 40,
            unsent: 0,
            ..BLITZ
        },
    },
    Kind {
        name: "faulty",
        conditions: Conditions {
            level: Level::Faulty,
            ..PLAIN
        },
    },
    Kind {
        name: "presence-clean",
        conditions: Conditions {
            level: Level::Clean,
            ..PRESENCE
        },
    },
    Kind {
        name: "presence-human-40ms",
        conditions: Conditions {
            scan_ms: 40,
            ..PRESENCE
        },
    },
    Kind {
        name: "presence-human-250ms",
        conditions: Conditions {
            scan_ms: 250,
            sweep: Sweep::Rolling,
            ..PRESENCE
        },
    },
    Kind {
        name: "presence-blitz",
        conditions: Conditions {
            level: Level::Blitz,
            scan_ms: 40,
            unsent: 10,
            ..PRESENCE
        },
    },
    Kind {
        name: "presence-faulty",
        conditions: Conditions {
            level: Level::Faulty,
            ..PRESENCE
        },
    },
    Kind {
        name: "presence-no-clock",
        conditions: Conditions {
            scan_ms: 40,
            pressed: false,
            ..PRESENCE
        },
    },
    Kind {
        name: "colours-human-40ms",
        conditions: Conditions {
            scan_ms: 40,
            colours: true,
            ..PRESENCE
        },
    },
    Kind {
        name: "colours-blitz",
        conditions: Conditions {
            level: Level::Blitz,
            scan_ms: 40,
            unsent: 10,
            colours: true,
            ..PRESENCE
        },
    },
    Kind {
        name: "human-at-once",
        conditions: Conditions {
            scan_ms: 0,
            ..PLAIN
        },
    },
    Kind {
        name: "human-no-clock",
        conditions: Conditions {
            control: None,
            ..PLAIN
        },
    },
    Kind {
        name: "unsent-1%",
        conditions: Conditions {
            unsent: 10,
            ..PLAIN
        },
    },
    Kind {
        name: "lost-0.3%",
        conditions: Conditions { lost: 3, ..PLAIN },
    },
    Kind {
        name: "unsent-no-clock",
        conditions: Conditions {
            unsent: 10,
            control: None,
            ..PLAIN
        },
    },
    Kind {
        name: "unsent-no-dump",
        conditions: Conditions {
            unsent: 10,
            asks: false,
            ..PLAIN
        },
    },
];
