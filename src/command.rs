//! What people may ask of a table: the commands that come over MQTT or stand in a trace.
//!
//! A command that parses is well-formed; whether it fits the game just now is for [`crate::session`] to say.

use std::fmt;

use schemars::{JsonSchema, Schema, schema_for};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use shakmaty::Role;

use crate::board::OrientationSetting;
use crate::laws::Side;
use crate::reading::{self, either};
use crate::text::shortened;

/// A command as it travels: who asks, until when it holds, and the verb with its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// Chosen by the sender; the same id is carried out once.
    #[serde(default, deserialize_with = "text")]
    #[schemars(with = "TextForm")]
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
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_text"
    )]
    #[schemars(with = "Option<TextForm>")]
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
    /// Say what was played where the record is in doubt.
    Resolve(Resolve),
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

impl Verb {
    /// All of them, as on the wire.
    pub const NAMES: &[&str] = &[
        "arm",
        "press",
        "takeback",
        "play",
        "set_position",
        "accept_position",
        "accept_illegal",
        "resolve",
        "result",
        "resend",
        "orientation",
        "ack",
        "dismiss",
    ];

    /// The word on the wire, the last level of the topic.
    pub fn name(&self) -> &'static str {
        match self {
            Verb::Arm(_) => "arm",
            Verb::Press(_) => "press",
            Verb::Takeback(_) => "takeback",
            Verb::Play(_) => "play",
            Verb::SetPosition(_) => "set_position",
            Verb::AcceptPosition(_) => "accept_position",
            Verb::AcceptIllegal(_) => "accept_illegal",
            Verb::Resolve(_) => "resolve",
            Verb::Result(_) => "result",
            Verb::Resend(_) => "resend",
            Verb::Orientation(_) => "orientation",
            Verb::Ack(_) => "ack",
            Verb::Dismiss(_) => "dismiss",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// A player as the pairing names him. In a pairing the name alone will do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
    #[schemars(with = "Option<PlayerForm>")]
    pub white: Option<Player>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PlayerForm>")]
    pub black: Option<Player>,
    /// PGN Round: "3".
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_text"
    )]
    #[schemars(with = "Option<TextForm>")]
    pub round: Option<String>,
    /// PGN Board: "12".
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_text"
    )]
    #[schemars(with = "Option<TextForm>")]
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

/// Either `line` or `promotion`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// A ply whose `doubt` is set, counted from 1.
    pub ply: u32,
    /// The moves from this ply on, in UCI: one of the record's `alternatives`, or as much of it as tells it from the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// What the pawn became that was promoted with this ply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Exchange>,
}

/// What a pawn can become (Article 3.7.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exchange {
    Queen,
    Rook,
    Bishop,
    Knight,
}

impl From<Exchange> for Role {
    fn from(exchange: Exchange) -> Role {
        match exchange {
            Exchange::Queen => Role::Queen,
            Exchange::Rook => Role::Rook,
            Exchange::Bishop => Role::Bishop,
            Exchange::Knight => Role::Knight,
        }
    }
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
    #[error("unknown verb {0:?}; {known} is expected", known = either(Verb::NAMES))]
    UnknownVerb(String),
    #[error("bad arguments for {verb}: {error}")]
    BadArguments { verb: String, error: String },
    #[error("bad command: {0}")]
    BadField(String),
}

impl Command {
    /// Reads a command. `verb` names the verb where the text does not (the last level of the topic).
    pub fn parse(text: &str, verb: Option<&str>) -> Result<Command, ParseCommandError> {
        let mut value = reading::json(text).map_err(ParseCommandError::NotJson)?;
        let Some(object) = value.as_object_mut() else {
            return Err(ParseCommandError::BadField(
                "an object in braces is expected, as {\"args\": {}}".into(),
            ));
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
            Some(other) => {
                return Err(ParseCommandError::BadField(format!(
                    "verb is {}; its name in double quotes is expected",
                    shortened(&other.to_string(), MOST_SHOWN)
                )));
            }
            None => return Err(ParseCommandError::BadField("verb is missing".into())),
        };
        if !Verb::NAMES.contains(&named.as_str()) {
            return Err(ParseCommandError::UnknownVerb(shortened(
                &named, MOST_SHOWN,
            )));
        }
        let args = object.remove("args").filter(|args| !args.is_null());
        let args = args.unwrap_or_else(|| Value::Object(Default::default()));
        let asked = serde_json::json!({ "verb": named, "args": args });
        let verb: Verb =
            reading::read(&asked).map_err(|error| ParseCommandError::BadArguments {
                verb: named,
                error: error.to_string(),
            })?;
        // The envelope is read with a verb that cannot fail, so that an error names the field at fault.
        object.insert("verb".into(), Value::from("resend"));
        object.insert("args".into(), Value::Object(Default::default()));
        let command: Command = reading::read(&value)
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

impl Arm {
    /// Reads a pairing.
    pub fn parse(text: &str) -> Result<Arm, String> {
        let value = reading::json(text).map_err(|error| {
            format!("not JSON, as {{\"white\": \"Name\", \"black\": \"Name\"}} is: {error}")
        })?;
        reading::read(&value).map_err(|error| error.to_string())
    }
}

/// Characters of a text from outside that are quoted.
const MOST_SHOWN: usize = 60;

/// The schema of a command as it comes over MQTT: the topic names the verb, and a verb may do without arguments.
pub fn schema() -> Schema {
    let mut schema = schema_for!(Command);
    if let Some(object) = schema.as_object_mut() {
        // Without the verb in the text, arguments may suit several.
        if let Some(mut verbs) = object.remove("oneOf") {
            for verb in verbs.as_array_mut().into_iter().flatten() {
                if let Some(verb) = verb.as_object_mut() {
                    verb.remove("required");
                }
            }
            object.insert("anyOf".into(), verbs);
        }
    }
    schema
}

// --- what people and their tools write ---

/// Text, or a number that stands for it: who writes by hand leaves out the quotes, and some libraries do too.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum TextForm {
    Text(String),
    Number(i64),
}

/// A player, or nothing but his name.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum PlayerForm {
    Name(String),
    Player(Player),
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    struct Text;

    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("text or a whole number")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }

    from.deserialize_any(Text)
}

fn some_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Text(#[serde(deserialize_with = "text")] String);

    Ok(Option::<Text>::deserialize(from)?.map(|Text(text)| text))
}

impl<'de> Deserialize<'de> for Player {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Player, D::Error> {
        struct Who;

        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Fields {
            name: Option<String>,
            fide_id: Option<u64>,
            title: Option<String>,
            elo: Option<u32>,
            team: Option<String>,
        }

        impl<'de> Visitor<'de> for Who {
            type Value = Player;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a player, as \"Name\" or {\"name\": \"Name\"}")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Player, E> {
                Ok(Player {
                    name: Some(name.to_owned()),
                    ..Player::default()
                })
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Player, M::Error> {
                let Fields {
                    name,
                    fide_id,
                    title,
                    elo,
                    team,
                } = Fields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Player {
                    name,
                    fide_id,
                    title,
                    elo,
                    team,
                })
            }
        }

        from.deserialize_any(Who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pairing_is_read_as_people_write_it() {
        let arm: Arm = serde_json::from_str(
            r#"{"round":3,"board":"12","white":"Muster, Anna","black":{"name":"Beispiel, Berta","elo":2100}}"#,
        )
        .unwrap();
        assert_eq!(arm.round.as_deref(), Some("3"));
        assert_eq!(arm.board.as_deref(), Some("12"));
        let name = |player: Option<Player>| player.and_then(|player| player.name);
        assert_eq!(name(arm.white).as_deref(), Some("Muster, Anna"));
        assert_eq!(arm.black.as_ref().and_then(|black| black.elo), Some(2100));
        let none: Arm = serde_json::from_str(r#"{"round":null,"white":null}"#).unwrap();
        assert_eq!(none, Arm::default());
        for (text, what) in [
            (r#"{"white":5}"#, "a player, as \"Name\""),
            (r#"{"round":[1]}"#, "text or a whole number"),
            (
                r#"{"white":{"elo":"high"}}"#,
                "white.elo is \"high\"; a whole number from",
            ),
            ("Anna", "not JSON, as"),
        ] {
            let error = Arm::parse(text).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_table_may_be_a_number() {
        let command = Command::parse(r#"{"id":7,"table":1}"#, Some("takeback")).unwrap();
        assert_eq!(command.table.as_deref(), Some("1"));
        assert_eq!(command.id, "7");
        assert_eq!(command.verb.name(), "takeback");
        let text = serde_json::to_string(&command).unwrap();
        assert_eq!(Command::parse(&text, None).unwrap(), command);
    }

    #[test]
    fn refusals_are_in_the_words_of_who_wrote() {
        let keys = [
            "side",
            "white_ms",
            "keep_plies",
            "move",
            "ply",
            "fen",
            "turn",
            "uci",
            "result",
            "reason",
            "orientation",
            "alert",
            "white",
            "round",
            "supervised",
            "adopt",
            "x",
            "white_name",
        ];
        let values = [
            "5",
            "-1",
            "1.5",
            "1e300",
            "99999999999999999999",
            "true",
            "null",
            "\"x\"",
            "[]",
            "[3]",
            "{}",
            "{\"name\":5}",
            "{\"elo\":-1}",
        ];
        let of_keys = keys.iter().flat_map(|key| {
            let text = move |value: &&str| format!("{{\"args\":{{\"{key}\":{value}}}}}");
            values.iter().map(text).collect::<Vec<_>>()
        });
        let of_args = values.iter().map(|value| format!("{{\"args\":{value}}}"));
        let of_fields = [
            "id",
            "by",
            "issued",
            "expires",
            "table",
            "expect_rev",
            "reply_to",
        ]
        .iter()
        .flat_map(|key| {
            let text = move |value: &&str| format!("{{\"{key}\":{value}}}");
            values.iter().map(text).collect::<Vec<_>>()
        });
        let texts: Vec<String> = of_keys.chain(of_args).chain(of_fields).collect();
        let ours = [
            "u32",
            "u64",
            "i64",
            "f64",
            "struct",
            "variant",
            "enum ",
            "field",
            "invalid",
            "sequence",
            "map",
            "expected a",
            "boolean",
            "string",
        ];
        for verb in Verb::NAMES {
            for text in &texts {
                let Err(error) = Command::parse(text, Some(verb)) else {
                    continue;
                };
                let error = error.to_string();
                println!("{verb} {text}: {error}");
                let jargon = ours.iter().find(|word| error.contains(*word));
                assert_eq!(jargon, None, "{verb} {text}: {error}");
            }
        }
    }

    #[test]
    fn verbs_are_called_as_on_the_wire() {
        for verb in Verb::NAMES {
            let args = match *verb {
                "press" => r#"{"args":{"side":"white"}}"#,
                "play" => r#"{"args":{"move":"e4"}}"#,
                "set_position" => r#"{"args":{"fen":""}}"#,
                "resolve" => r#"{"args":{"ply":1}}"#,
                "result" => r#"{"args":{"result":"*"}}"#,
                "orientation" => r#"{"args":{"orientation":"auto"}}"#,
                "ack" | "dismiss" => r#"{"args":{"alert":"a1"}}"#,
                _ => "{}",
            };
            let command = Command::parse(args, Some(verb)).unwrap();
            let written = serde_json::to_value(&command.verb).unwrap();
            assert_eq!(
                (command.verb.name(), &written["verb"]),
                (*verb, &Value::from(*verb))
            );
        }
    }
}
