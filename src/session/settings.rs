//! What a session is told once, at its beginning.

use super::Wall;
use crate::Millis;
use crate::board::OrientationSetting;
use crate::board::driver::Watch;
use crate::clock::control::TimeControl;
use crate::clock::{ClockKind, ClockSide};
use crate::game::{Arming, Pairing};
use crate::laws::ruleset::Rules;
use crate::sensing::Timing;
use crate::wire::Family;
use serde::Deserialize;

/// What a session is told once, at its beginning.
#[derive(Debug, Clone)]
pub struct Settings {
    pub table: String,
    /// What its board speaks, unless it is found to be another. Whoever begins asks [`crate::board::is_supported`] first: what this build
    /// cannot read is skipped whole.
    pub family: Family,
    /// A board of any other that this build reads may stand there too.
    pub takes_all: bool,
    /// Names the numbering of events; made with the store.
    pub stream: String,
    /// Names this run of the daemon.
    pub boot: String,
    /// What the wall clock shows at the beginning.
    pub wall: Wall,
    pub timing: Timing,
    pub games: GameTiming,
    pub orientation: OrientationSetting,
    pub white_clock_side: ClockSide,
    /// How games begin; unless it is set, by the array until a pairing has armed one, and by pairings from then on.
    pub arming: Option<Arming>,
    pub clock: ClockKind,
    /// What every game has unless it is armed otherwise.
    pub rules: Rules,
    pub time_control: Option<TimeControl>,
    /// The first game, where one is armed from the start.
    pub armed: Option<Pairing>,
    pub kings: ResultByKings,
    pub publish_touches: bool,
    /// Whether a silent board means anything; on a live board it does.
    pub watch: Watch,
    /// Whether the stages are written down, for goldens and bug reports.
    pub stages: bool,
}

/// What becomes of a result that the kings show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultByKings {
    /// The result is set.
    #[default]
    Accept,
    /// The result is proposed, and an arbiter sets it.
    Propose,
}

/// How long things must last between games (defaults; milliseconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GameTiming {
    /// The start array standing still for so long opens a new game.
    pub array: Millis,
    /// The same, where a legal first move follows.
    pub array_before_move: Millis,
    /// A set-up with all men on the board but not where they belong is told after this time.
    pub setup_wrong: Millis,
    /// What has stood for so long is no half of a move: `accept_position` takes it.
    pub accepted: Millis,
    /// A clock that stands for so long in a game is told to the operator.
    pub clock_stopped: Millis,
}

impl Default for GameTiming {
    fn default() -> GameTiming {
        GameTiming {
            array: 10_000,
            array_before_move: 2_000,
            setup_wrong: 5_000,
            accepted: 1_000,
            clock_stopped: 60_000,
        }
    }
}

impl Settings {
    pub fn new(table: impl Into<String>) -> Settings {
        Settings {
            table: table.into(),
            family: Family::default(),
            takes_all: false,
            stream: "replay".into(),
            boot: "replay".into(),
            wall: Wall::default(),
            timing: Timing::default(),
            games: GameTiming::default(),
            orientation: OrientationSetting::Auto,
            white_clock_side: ClockSide::Auto,
            arming: None,
            clock: ClockKind::Auto,
            rules: Rules::default(),
            time_control: None,
            armed: None,
            kings: ResultByKings::Accept,
            publish_touches: false,
            watch: Watch::Ignore,
            stages: false,
        }
    }
}
