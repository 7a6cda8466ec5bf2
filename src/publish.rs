//! The payloads that others read, the topics they stand under, and their JSON Schemas.
//!
//! The types are the contract: their field names are the wire's. Readers ignore fields they do not know, so a field may be
//! added; it may not change its meaning.

use crate::text::words;
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub mod topic;

pub use topic::{Delivery, Topic};

// Words of the payloads that belong to the layers they come from.
pub use crate::board::Orientation;
pub use crate::clock::{ClockSource, Flag, Running};
pub use crate::command::{Player, Reply};
pub use crate::game::snapshot::{Move, Snapshot};
pub use crate::game::{
    CompletedBy, CorrectionReason, Doubt, MoveState, Phase, ResultBy, ResultState,
};
pub use crate::laws::Side;
pub use crate::laws::illegal::IllegalReason;

/// Version of all payloads here.
pub const VERSION: u32 = 1;

/// One message for the broker, or for a file: where, what, and whether it stays.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    pub topic: Topic,
    pub body: Body,
}

/// What a message holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// JSON when it is sent.
    Payload(Payload),
    /// Plain text: PGN, a line for a phone.
    Text(String),
    /// Nothing: the retained message of this topic goes away.
    Clear,
}

/// One of the payloads of this page.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Payload {
    Info(Info),
    BoardStatus(Box<BoardStatus>),
    Position(Position),
    Clock(Clock),
    Game(Box<Game>),
    Event(Box<Event>),
    Alert(Box<Alert>),
}

impl Body {
    /// What is sent.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Body::Payload(payload) => Cow::Owned(payload.to_json()),
            Body::Text(text) => Cow::Borrowed(text),
            Body::Clear => Cow::Borrowed(""),
        }
    }
}

impl Payload {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("text and numbers have a JSON form")
    }

    pub fn envelope(&self) -> &Envelope {
        match self {
            Payload::Info(info) => &info.envelope,
            Payload::BoardStatus(status) => &status.envelope,
            Payload::Position(position) => &position.envelope,
            Payload::Clock(clock) => &clock.envelope,
            Payload::Game(game) => &game.envelope,
            Payload::Event(event) => &event.envelope,
            Payload::Alert(alert) => &alert.envelope,
        }
    }
}

impl From<Payload> for Body {
    fn from(payload: Payload) -> Body {
        Body::Payload(payload)
    }
}

/// What every JSON payload carries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Version of the payload.
    pub v: u32,
    /// Names the numbering; random, made with the store.
    pub stream: String,
    /// An event's own number in the stream, without gaps; in every other payload that of the last event it contains.
    pub seq: u64,
    /// Names the run of the daemon; information only.
    pub boot: String,
    /// Wall time, RFC 3339 in UTC.
    pub at: String,
    /// Monotonic time in milliseconds.
    pub mono_ms: u64,
    /// Whether the wall time can be trusted.
    pub time_ok: bool,
}

/// `edge/{node}/status`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeStatus {
    pub v: u32,
    pub status: Online,
    pub boot: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Online {
    Online,
    Offline,
}

/// `edge/{node}/info`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Info {
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The program's version.
    pub version: String,
    pub boards: Vec<BoardInfo>,
    pub tables: Vec<String>,
}

/// A board that was found on a port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardInfo {
    pub port: String,
    pub family: String,
    pub serial: Option<String>,
    pub table: Option<String>,
}

/// `…/{table}/status`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardStatus {
    #[serde(flatten)]
    pub envelope: Envelope,
    #[serde(flatten)]
    pub state: BoardStatusState,
}

/// What is known of a board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardStatusState {
    pub table: String,
    pub status: Link,
    pub serial: Option<String>,
    pub firmware: Option<String>,
    pub orientation: Option<Orientation>,
    /// Charge in percent, of boards that have a battery.
    pub battery: Option<u8>,
    pub ready: Ready,
    /// Bytes that could not be read since the daemon began.
    pub skipped_bytes: u64,
}

/// Whether a board is there: it speaks on an open port, there is no port, nothing comes from it, or what speaks there is no board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    Ok,
    Missing,
    Silent,
    Fault,
}

/// Whether the game can begin, and what is lacking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    pub ok: bool,
    pub missing: Vec<Missing>,
    /// The squares of `start_array`, where the set-up is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub squares: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    Board,
    StartArray,
    Orientation,
    Clock,
    Times,
    Lever,
    Pairing,
    Armed,
}

/// `…/{table}/position`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    #[serde(flatten)]
    pub envelope: Envelope,
    #[serde(flatten)]
    pub state: PositionState,
}

/// What stands on a board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PositionState {
    pub table: String,
    /// What stands on the board, as the first field of a FEN; `x` for a man that the board cannot tell, `?` for a square not yet read.
    pub placement: String,
    /// Whether it has stood still.
    pub stable: bool,
    /// Whether it agrees with the record.
    pub in_sync: bool,
    /// The squares that differ from the record.
    pub differing: Vec<String>,
    /// False once the game is over: the placement is that of the end.
    pub live: bool,
}

/// `…/{table}/clock`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    #[serde(flatten)]
    pub envelope: Envelope,
    #[serde(flatten)]
    pub state: ClockState,
}

/// What a clock shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockState {
    pub table: String,
    pub white_ms: Option<u64>,
    pub black_ms: Option<u64>,
    pub running: Running,
    /// Whose flag has fallen.
    pub flag: Flag,
    pub source: ClockSource,
    /// True when no reading can be expected just now: the times are old.
    pub stale: bool,
}

/// `…/{table}/game`: the whole record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Game {
    #[serde(flatten)]
    pub envelope: Envelope,
    #[serde(flatten)]
    pub record: Snapshot,
}

/// The payload is what it tells; the envelope only says where that belongs.
macro_rules! tells {
    ($($payload:ident: $told:ident $field:ident;)*) => {$(
        impl std::ops::Deref for $payload {
            type Target = $told;

            fn deref(&self) -> &$told {
                &self.$field
            }
        }
    )*};
}

tells! {
    BoardStatus: BoardStatusState state;
    Position: PositionState state;
    Clock: ClockState state;
    Game: Snapshot record;
}

/// `…/{table}/event`: one thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    #[serde(flatten)]
    pub envelope: Envelope,
    /// `stream` and `seq` in one; the same after any restart.
    pub id: String,
    pub table: String,
    pub game: Option<String>,
    pub rev: u64,
    #[serde(flatten)]
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    GameStarted {
        start_fen: String,
    },
    Lift {
        square: String,
        piece: Option<String>,
    },
    Place {
        square: String,
        piece: Option<String>,
    },
    Touched {
        side: Side,
        square: String,
    },
    Move(Move),
    Completed {
        ply: u32,
        by: CompletedBy,
        clk_ms: Option<u64>,
        emt_ms: Option<u64>,
    },
    Correction {
        keep_plies: u32,
        reason: CorrectionReason,
    },
    Takeback {
        keep_plies: u32,
        reason: CorrectionReason,
    },
    Gap {
        ply: u32,
        plies: u32,
        alternatives: Vec<String>,
    },
    Press {
        side: Side,
        white_ms: Option<u64>,
        black_ms: Option<u64>,
    },
    OutOfSync {
        squares: Vec<String>,
    },
    InSync,
    Flag {
        side: Side,
    },
    ClaimPossible {
        claim: String,
    },
    ResultProposed {
        result: String,
        by: ResultBy,
    },
    GameEnded {
        result: String,
        by: Option<ResultBy>,
        state: ResultState,
        termination: Option<String>,
        reason: Option<String>,
    },
    AlertRaised {
        alert: AlertBody,
    },
    AlertChanged {
        alert: AlertBody,
    },
    AlertClosed {
        alert: String,
        kind: AlertKind,
        why: CloseReason,
    },
    /// A command was carried out; `command` is its id.
    Command {
        command: String,
        by: Option<String>,
        verb: String,
    },
}

impl EventKind {
    /// The word in the payload's `type`.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::GameStarted { .. } => "game_started",
            EventKind::Lift { .. } => "lift",
            EventKind::Place { .. } => "place",
            EventKind::Touched { .. } => "touched",
            EventKind::Move(_) => "move",
            EventKind::Completed { .. } => "completed",
            EventKind::Correction { .. } => "correction",
            EventKind::Takeback { .. } => "takeback",
            EventKind::Gap { .. } => "gap",
            EventKind::Press { .. } => "press",
            EventKind::OutOfSync { .. } => "out_of_sync",
            EventKind::InSync => "in_sync",
            EventKind::Flag { .. } => "flag",
            EventKind::ClaimPossible { .. } => "claim_possible",
            EventKind::ResultProposed { .. } => "result_proposed",
            EventKind::GameEnded { .. } => "game_ended",
            EventKind::AlertRaised { .. } => "alert_raised",
            EventKind::AlertChanged { .. } => "alert_changed",
            EventKind::AlertClosed { .. } => "alert_closed",
            EventKind::Command { .. } => "command",
        }
    }
}

/// `…/alert/{audience}/{id}`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    #[serde(flatten)]
    pub envelope: Envelope,
    #[serde(flatten)]
    pub alert: AlertBody,
}

/// Something that a person should look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertBody {
    pub kind: AlertKind,
    pub id: String,
    pub table: String,
    pub game: Option<String>,
    pub audience: Audience,
    pub severity: Severity,
    pub state: AlertState,
    /// Until when the arbiter may act.
    pub act_until: ActUntil,
    pub ack: Option<Ack>,
    /// When it was raised, RFC 3339.
    pub since: String,
    /// The ply that it is about: the next one, where no move was made.
    pub ply: u32,
    pub side: Option<Side>,
    pub squares: Vec<String>,
    pub law: Option<Law>,
    /// At most 100 characters, neutral.
    pub text: String,
    pub detail: AlertDetail,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertDetail {
    /// The move that the board shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uci: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<IllegalReason>,
    /// How the board is put right, one step an entry: `b5-f1`, `-d7`, `+Qd1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub way_back: Vec<String>,
    /// The placement to go back to, as the first field of a FEN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_play: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub white_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub black_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ack {
    pub by: Option<String>,
    pub at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Law {
    pub ruleset: String,
    pub article: String,
}

words! {
    #[derive(PartialOrd, Ord, JsonSchema)]
    Audience {
        /// Pushed to the arbiter.
        Arbiter = "arbiter",
        /// Shown when the arbiter asks.
        Request = "request",
        /// Whoever runs the boards.
        Operator = "operator",
    }
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warn,
    Urgent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlertState {
    Suspected,
    Confirmed,
    Lapsed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActUntil {
    OpponentTouch,
    OpponentMove,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    IllegalMove,
    TouchViolation,
    ReleaseViolation,
    Displaced,
    OutOfTurn,
    SetupWrong,
    PromotionUnfinished,
    PromotionCheck,
    CastlingUnfinished,
    PressWithoutMove,
    Ambiguous,
    Gap,
    Flag,
    BothFlags,
    Repetition,
    FiftyMoves,
    ArbiterMustRecord,
    TimeTrouble,
    ClockMismatch,
    ClockSides,
    ClockStopped,
    ClockAbsent,
    Late,
    Fivefold,
    Seventyfive,
    DeadPosition,
    IllegalPosition,
    ResultMissing,
    ResultMismatch,
    BoardMissing,
    BoardSilent,
    BoardSwapped,
    SquareFaulty,
    StoreFull,
    /// The record of a running game did not outlive a restart of the daemon.
    RecordLost,
    /// A pairing cannot be read, or does not fit.
    PairingRefused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    Restored,
    Lapsed,
    Stands,
    Dismissed,
    Ended,
    Superseded,
}

/// Wall time as payloads write it: RFC 3339, in UTC. What lies outside the calendar is the epoch.
pub fn rfc3339(unix_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(unix_ms).unwrap_or_default();
    format!("{time:.3}")
}

/// The schemas of all payloads, by file name.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("node-status", schema_for!(NodeStatus)),
        ("info", schema_for!(Info)),
        ("board-status", schema_for!(BoardStatus)),
        ("position", schema_for!(Position)),
        ("clock", schema_for!(Clock)),
        ("game", schema_for!(Game)),
        ("event", schema_for!(Event)),
        ("alert", schema_for!(Alert)),
        ("command", crate::command::schema()),
        ("pairing", schema_for!(crate::command::Arm)),
        ("reply", schema_for!(Reply)),
    ]
}
