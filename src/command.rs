//! What people may ask of a table: the commands that come over MQTT or stand in a trace.
//!
//! A command that parses is well-formed; whether it fits the game just now is for [`crate::session`] to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A command as it travels: who asks, until when it holds, and the verb with its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// Chosen by the sender; the same id is carried out once.
    #[serde(default)]
    pub id: String,
    /// Who asks, for the record: `arbiter:anna`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was given, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued: Option<String>,
    /// After this time it is refused, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The table it is for; needless where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Refused if the game's `rev` is another by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_rev: Option<u64>,
    /// The topic for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    #[serde(flatten)]
    pub verb: Verb,
}

/// One side of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    White,
    Black,
}

/// What is asked for, with its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verb", content = "args", rename_all = "snake_case")]
pub enum Verb {
    /// Who plays what next at this table, or adoption of an unarmed game.
    Arm(Box<Arm>),
    /// A player pressed the clock (tables whose clock is not connected).
    Press(Press),
    /// Remove the last plies from the record.
    Takeback(Takeback),
    /// Enter a move, or replace one.
    Play(Play),
    /// The game goes on from this position.
    SetPosition(SetPosition),
    /// The position on the board is right.
    AcceptPosition(AcceptPosition),
    /// The irregular move on the board stands.
    AcceptIllegal(AcceptIllegal),
    /// The result of the game.
    Result(ResultArgs),
    /// Publish all retained topics again.
    Resend(Empty),
    /// Which way round the board stands.
    Orientation(OrientationArgs),
    /// An alert has been seen.
    Ack(AlertRef),
    /// An alert is no concern.
    Dismiss(AlertRef),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// A player as the pairing names him.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Player {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fide_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elo: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

/// What `core/table/{table}` holds. Everything is optional; what is missing stays as configured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub white: Option<Player>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub black: Option<Player>,
    /// PGN Round: "3".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    /// PGN Board: "12".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// PGN Event, the name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// PGN Site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// PGN Date, `2027.04.02`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_control: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruleset: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervised: Option<bool>,
    /// Start position, if not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fen: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chess960: Option<bool>,
    /// Take over the game that was begun from the start array without being armed.
    #[serde(default)]
    pub adopt: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Press {
    /// Who pressed, that is, whose move is completed.
    pub side: Side,
    /// What the clocks show after the press, if somebody read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub white_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub black_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Takeback {
    /// How many plies of the record stay. Default: all but the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_plies: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Play {
    /// The move in UCI (`e1g1` for castling), or in SAN.
    #[serde(rename = "move", alias = "uci", alias = "san")]
    pub mv: String,
    /// The ply that it becomes; what stood there and after it is removed. Default: the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ply: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPosition {
    pub fen: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptPosition {
    /// Who moves next. Default: whoever the record says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Side>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptIllegal {
    /// The move that stands, in UCI. Default: the one that the open alert names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uci: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultArgs {
    /// `1-0`, `0-1`, `1/2-1/2`, `0-0`, or `*` to reopen the game.
    pub result: String,
    /// PGN Termination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrientationArgs {
    pub orientation: OrientationSetting,
}

/// How the board stands: found from the array, or told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrientationSetting {
    #[default]
    Auto,
    Normal,
    Rotated,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertRef {
    /// The `id` of the alert.
    pub alert: String,
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    pub id: String,
    pub ok: bool,
    /// Why it was refused, in words.
    pub error: Option<String>,
    /// What the sender had better know though it was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Why a command could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseCommandError {
    #[error("the command is not JSON: {0}")]
    NotJson(String),
    #[error("unknown verb {0:?}")]
    UnknownVerb(String),
    #[error("bad arguments for {verb}: {error}")]
    BadArguments { verb: String, error: String },
    #[error("bad command field: {0}")]
    BadField(String),
}

impl Command {
    /// Reads a command. `verb` names the verb where the text does not (the last level of the topic).
    pub fn parse(text: &str, verb: Option<&str>) -> Result<Command, ParseCommandError> {
        let mut value: Value = serde_json::from_str(text)
            .map_err(|error| ParseCommandError::NotJson(error.to_string()))?;
        let Some(object) = value.as_object_mut() else {
            return Err(ParseCommandError::NotJson("not an object".into()));
        };
        if let Some(verb) = verb {
            match object.get("verb").and_then(Value::as_str) {
                Some(named) if named != verb => {
                    return Err(ParseCommandError::BadField(format!(
                        "verb {named:?} came on the topic of {verb:?}"
                    )));
                }
                _ => object.insert("verb".into(), Value::from(verb)),
            };
        }
        let named = match object.get("verb") {
            Some(Value::String(verb)) => verb.clone(),
            _ => return Err(ParseCommandError::BadField("verb is missing".into())),
        };
        let args = object.remove("args").filter(|args| !args.is_null());
        let args = args.unwrap_or_else(|| Value::Object(Default::default()));
        let verb: Verb = serde_json::from_value(serde_json::json!({ "verb": named, "args": args }))
            .map_err(|error| {
                let error = error.to_string();
                if error.starts_with("unknown variant") {
                    ParseCommandError::UnknownVerb(named.clone())
                } else {
                    ParseCommandError::BadArguments {
                        verb: named.clone(),
                        error,
                    }
                }
            })?;
        // The envelope is read with a verb that cannot fail, so that an error names the field at fault.
        object.insert("verb".into(), Value::from("resend"));
        object.insert("args".into(), Value::Object(Default::default()));
        let command: Command = serde_json::from_value(value)
            .map_err(|error| ParseCommandError::BadField(error.to_string()))?;
        Ok(Command { verb, ..command })
    }

    /// A command as a trace or a test gives it: nothing but the verb.
    pub fn of(verb: Verb) -> Command {
        Command {
            id: String::new(),
            by: None,
            issued: None,
            expires: None,
            table: None,
            expect_rev: None,
            reply_to: None,
            verb,
        }
    }
}
