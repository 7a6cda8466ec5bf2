//! What arrives from the broker: commands, and what the pairings say of our tables.
//!
//! Whether a command fits the game is for the session to say. Here is decided whether it is one, whose it is, and where the
//! answer may go: a node's rights at the broker must not be lent to whoever sends commands, so replies go below
//! `{base}/{event}/reply/` only.

use std::collections::BTreeMap;

use serde_json::Value;

use super::mqtt::Incoming;
use crate::command::{Arm, Command, Reply};
use crate::outbox::Message;
use crate::publish::Delivery;
use crate::publish::topic::Address;
use crate::text::{one_line, shortened};

/// Payloads above this are not read.
pub const MOST_BYTES: usize = 64 * 1024;

/// What a message comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// For this table; `reply_to` is where the answer goes, if anywhere.
    Command {
        table: String,
        command: Box<Command>,
    },
    /// The pairing of this table is new or changed.
    Pairing { table: String, arm: Box<Arm> },
    /// The pairing of this table cannot be read.
    BadPairing { table: String, why: String },
    /// The pairing of this table was taken away.
    NoPairing { table: String },
    Refused {
        why: String,
        reply: Option<(String, Reply)>,
    },
    /// Not for us, or known already.
    Nothing,
}

/// The answer to a command for which there was no room.
pub fn busy(prefix: &str, message: &Incoming) -> Option<Message> {
    if message.payload.len() > MOST_BYTES || message.retain {
        return None;
    }
    let command: Value = serde_json::from_slice(&message.payload).ok()?;
    let topic = answer_topic(prefix, &command)?;
    let reply = Reply {
        id: id_of(&command),
        ok: false,
        error: Some("busy: too many commands at once; send it again".to_owned()),
        note: None,
    };
    Some(answer(topic, &reply))
}

/// An answer as it goes to the broker.
pub fn answer(topic: String, reply: &Reply) -> Message {
    Message {
        topic,
        payload: serde_json::to_vec(reply).expect("text has a JSON form"),
        retain: false,
        qos: 1,
        delivery: Delivery::Answer,
    }
}

/// Reads messages for the tables of one node.
#[derive(Debug)]
pub struct Orders {
    /// `{base}/{event}/`
    prefix: String,
    node: String,
    tables: Vec<String>,
    /// The last pairing of each table; brokers tell it again at each connection.
    pairings: BTreeMap<String, Arm>,
    /// The last one that could not be read.
    unread: BTreeMap<String, Vec<u8>>,
}

impl Orders {
    pub fn new(prefix: &str, node: &str, tables: Vec<String>) -> Orders {
        Orders {
            prefix: prefix.to_owned(),
            node: node.to_owned(),
            tables,
            pairings: BTreeMap::new(),
            unread: BTreeMap::new(),
        }
    }

    pub fn read(&mut self, message: &Incoming) -> Order {
        let Some(below) = message.topic.strip_prefix(&self.prefix) else {
            return Order::Nothing;
        };
        match Address::parse(below) {
            Some(Address::Pairing { table }) => self.read_pairing(table.to_owned(), message),
            // Empty is how a message that was left at the broker is taken away again.
            Some(Address::Command { .. }) if message.payload.is_empty() && message.retain => {
                Order::Nothing
            }
            Some(Address::Command { node, verb }) if node == self.node => {
                self.read_command(verb, message)
            }
            _ => Order::Nothing,
        }
    }

    fn read_command(&self, verb: &str, message: &Incoming) -> Order {
        if message.payload.len() > MOST_BYTES {
            let size = message.payload.len();
            return Order::Refused {
                why: format!(
                    "{:?}: the command has {size} bytes, and more than {MOST_BYTES} are not read",
                    shortened(verb, MOST_SHOWN)
                ),
                reply: None,
            };
        }
        let text = String::from_utf8_lossy(&message.payload);
        // Read loosely at first: a command that is wrong elsewhere still gets its answer.
        let loose: Value = serde_json::from_str(&text).unwrap_or_default();
        let field = |name: &str| loose.get(name).and_then(Value::as_str);
        let id = id_of(&loose);
        let reply_to = field("reply_to").filter(|topic| may_answer(&self.prefix, topic));
        let answer = answer_topic(&self.prefix, &loose);
        let refused = |why: String| {
            // It may quote what was sent.
            let why = one_line(&why, MOST_WHY);
            Order::Refused {
                reply: answer.clone().map(|topic| {
                    let reply = Reply {
                        id: shortened(&id, MOST_WHY),
                        ok: false,
                        error: Some(why.clone()),
                        note: None,
                    };
                    (topic, reply)
                }),
                why: format!("{:?}: {why}", shortened(verb, MOST_SHOWN)),
            }
        };
        if message.retain {
            return refused(
                "the command was left at the broker (retained) and may be old; send it without retain"
                    .into(),
            );
        }
        if std::str::from_utf8(&message.payload).is_err() {
            return refused("the command is not UTF-8".into());
        }
        if let (Some(wanted), None) = (field("reply_to"), reply_to) {
            return refused(format!(
                "reply_to {:?} must be a topic below {}reply/",
                shortened(wanted, MOST_SHOWN),
                self.prefix
            ));
        }
        let command = match Command::parse(&text, Some(verb)) {
            Ok(command) => command,
            Err(error) => return refused(error.to_string()),
        };
        let table = match (&command.table, &self.tables[..]) {
            (Some(table), tables) if tables.contains(table) => table.clone(),
            (Some(table), tables) => {
                let why = format!(
                    "table {:?} is not one of this node's: {}",
                    shortened(table, MOST_SHOWN),
                    tables.join(", ")
                );
                return refused(why);
            }
            (None, [only]) => only.clone(),
            (None, tables) => {
                return refused(format!(
                    "table is missing; this node has {}",
                    tables.join(", ")
                ));
            }
        };
        Order::Command {
            table,
            command: Box::new(Command {
                reply_to: answer,
                ..command
            }),
        }
    }

    fn read_pairing(&mut self, table: String, message: &Incoming) -> Order {
        // A broker may send what nobody asked for.
        if !self.tables.contains(&table) {
            return Order::Nothing;
        }
        if message.payload.is_empty() {
            self.unread.remove(&table);
            return Order::NoPairing { table };
        }
        if self.unread.get(&table) == Some(&message.payload) {
            return Order::Nothing;
        }
        let read = match message.payload.len() {
            ..=MOST_BYTES => match std::str::from_utf8(&message.payload) {
                Ok(text) => Arm::parse(text),
                Err(_) => Err("not UTF-8".to_owned()),
            },
            size => Err(format!(
                "{size} bytes, and more than {MOST_BYTES} are not read"
            )),
        };
        match read {
            Ok(arm) if self.pairings.get(&table) == Some(&arm) => Order::Nothing,
            Ok(arm) => {
                self.unread.remove(&table);
                self.pairings.insert(table.clone(), arm.clone());
                Order::Pairing {
                    table,
                    arm: Box::new(arm),
                }
            }
            Err(error) => {
                let error = one_line(&error, MOST_WHY);
                let why = format!(
                    "{} is no pairing: {error}",
                    Address::Pairing { table: &table }
                );
                let mut kept = message.payload.clone();
                kept.truncate(MOST_BYTES + 1);
                self.unread.insert(table.clone(), kept);
                Order::BadPairing { table, why }
            }
        }
    }
}

fn id_of(command: &Value) -> String {
    match command.get("id") {
        Some(Value::Number(id)) => id.to_string(),
        Some(Value::String(id)) => id.clone(),
        _ => String::new(),
    }
}

/// Where the answer to a command goes, if anywhere.
fn answer_topic(prefix: &str, command: &Value) -> Option<String> {
    let field = |name: &str| command.get(name).and_then(Value::as_str);
    match field("reply_to") {
        Some(topic) if may_answer(prefix, topic) => Some(topic.to_owned()),
        // Whoever gave an id waits for an answer.
        None if id_of(command).is_empty() => None,
        _ => {
            let client = client(field("by").unwrap_or_default());
            Some(format!("{prefix}{}", Address::Reply { client: &client }))
        }
    }
}

/// Whether an answer may go to this topic.
fn may_answer(prefix: &str, topic: &str) -> bool {
    let Some(Address::Reply { client }) = topic.strip_prefix(prefix).and_then(Address::parse)
    else {
        return false;
    };
    let is_strange = |c: char| matches!(c, '+' | '#') || c.is_control();
    !client.is_empty() && client.len() <= 200 && !client.contains(is_strange)
}

/// The last level of the reply's topic for a sender who names none: `arbiter:anna` is answered under `arbiter-anna`.
fn client(by: &str) -> String {
    let fitted: String = by
        .to_lowercase()
        .chars()
        .map(|c| match c {
            'a'..='z' | '0'..='9' => c,
            _ => '-',
        })
        .take(32)
        .collect();
    match fitted.trim_matches('-') {
        "" => "anyone".to_owned(),
        fitted => fitted.to_owned(),
    }
}

/// Characters of a name from outside that are quoted, and of a whole refusal.
const MOST_SHOWN: usize = 60;
const MOST_WHY: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Orders {
        Orders::new("jadoube/v1/open/", "pi07", vec!["12".into(), "13".into()])
    }

    fn message(below: &str, payload: &str) -> Incoming {
        Incoming {
            topic: format!("jadoube/v1/open/{below}"),
            payload: payload.as_bytes().to_vec(),
            retain: false,
        }
    }

    fn refusal(order: Order) -> (String, Option<(String, Reply)>) {
        match order {
            Order::Refused { why, reply } => (why, reply),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_finds_its_table_and_its_answer() {
        let mut orders = orders();
        for (text, answer) in [
            (r#"{"id":"1","table":"12"}"#, Some("anyone")),
            (
                r#"{"id":"1","table":"12","by":"arbiter:Anna"}"#,
                Some("arbiter-anna"),
            ),
            (
                r#"{"id":"1","table":"12","reply_to":"jadoube/v1/open/reply/ui-3"}"#,
                Some("ui-3"),
            ),
            (r#"{"table":"12","by":"arbiter:anna"}"#, None),
        ] {
            let order = orders.read(&message("cmd/pi07/takeback", text));
            let Order::Command { table, command } = order else {
                panic!("{order:?}");
            };
            assert_eq!(table, "12");
            let answer = answer.map(|client| format!("jadoube/v1/open/reply/{client}"));
            assert_eq!(command.reply_to, answer, "{text}");
        }
        let mut only = Orders::new("jadoube/v1/open/", "pi07", vec!["12".into()]);
        let order = only.read(&message("cmd/pi07/takeback", "{}"));
        assert!(matches!(order, Order::Command { table, .. } if table == "12"));
    }

    #[test]
    fn what_is_no_command_of_ours_is_refused_with_an_answer() {
        let mut orders = orders();
        for (verb, text, what) in [
            ("takeback", r#"{"id":"1"}"#, "this node has 12, 13"),
            (
                "takeback",
                r#"{"id":"1","table":"14"}"#,
                "is not one of this node's: 12, 13",
            ),
            ("dance", r#"{"id":"1","table":"12"}"#, "unknown verb"),
            ("takeback/x", r#"{"id":"1","table":"12"}"#, "unknown verb"),
            (
                "takeback",
                r#"{"id":"1","table":"12","args":{"x":1}}"#,
                "bad arguments",
            ),
            (
                "takeback",
                r#"{"id":"1","table":"12","verb":"press"}"#,
                "came on the topic of",
            ),
            (
                "takeback",
                r#"{"id":"1","table":"12","reply_to":"jadoube/v1/open/edge/pi08/status"}"#,
                "must be a topic below jadoube/v1/open/reply/",
            ),
            (
                "takeback",
                r#"{"id":"1","table":"12","reply_to":"jadoube/v1/open/reply/#"}"#,
                "must be a topic below",
            ),
        ] {
            let (why, reply) = refusal(orders.read(&message(&format!("cmd/pi07/{verb}"), text)));
            assert!(why.contains(what), "{text}: {why}");
            let (topic, reply) = reply.unwrap();
            assert_eq!(topic, "jadoube/v1/open/reply/anyone");
            assert_eq!((reply.id.as_str(), reply.ok), ("1", false));
            assert!(reply.error.unwrap().contains(what));
        }
        let forged = r#"{"id":"1","table":"12","args":{"x\n2027 ERROR y":1}}"#;
        let (why, reply) = refusal(orders.read(&message("cmd/pi07/takeback", forged)));
        assert!(!why.contains('\n'), "{why}");
        assert!(!reply.unwrap().1.error.unwrap().contains('\n'));
        let retained = Incoming {
            retain: true,
            ..message("cmd/pi07/takeback", r#"{"id":"1","table":"12"}"#)
        };
        let (why, reply) = refusal(orders.read(&retained));
        assert!(why.contains("retained") && reply.is_some(), "{why}");

        for payload in ["", "not json", "[]", "\"x\"", "null"] {
            let (_, reply) = refusal(orders.read(&message("cmd/pi07/takeback", payload)));
            assert_eq!(reply, None, "{payload}");
        }
        let long = format!("{{\"id\":\"1\",\"by\":\"{}\"}}", "x".repeat(MOST_BYTES));
        let (why, _) = refusal(orders.read(&message("cmd/pi07/takeback", &long)));
        assert!(why.contains("65536"), "{why}");
        let verb = "x".repeat(1000);
        let order = orders.read(&message(&format!("cmd/pi07/{verb}"), r#"{"id":"1"}"#));
        let (why, reply) = refusal(order);
        assert!(why.len() < 400, "{why}");
        assert!(reply.unwrap().1.error.unwrap().len() <= 300);
        let latin = Incoming {
            payload: b"{\"id\":\"1\",\"by\":\"M\xfcller\"}".to_vec(),
            ..message("cmd/pi07/takeback", "")
        };
        let (why, reply) = refusal(orders.read(&latin));
        assert!(why.contains("not UTF-8") && reply.is_some(), "{why}");
    }

    #[test]
    fn who_finds_no_room_is_told_so_where_he_waits_for_it() {
        let ask = |text: &str| busy("jadoube/v1/open/", &message("cmd/pi07/press", text));
        let reply = ask(r#"{"id":"7","by":"ui"}"#).unwrap();
        assert_eq!(reply.topic, "jadoube/v1/open/reply/ui");
        let read: Reply = serde_json::from_slice(&reply.payload).unwrap();
        assert_eq!((read.id.as_str(), read.ok), ("7", false));
        assert!(read.error.unwrap().contains("send it again"));
        for nobody in ["{}", "", "[]", r#"{"by":"ui"}"#] {
            assert_eq!(ask(nobody), None, "{nobody}");
        }
        let elsewhere = ask(r#"{"reply_to":"jadoube/v1/open/reply/a\nb"}"#).unwrap();
        assert_eq!(elsewhere.topic, "jadoube/v1/open/reply/anyone");
    }

    #[test]
    fn other_topics_are_left_alone() {
        let mut orders = orders();
        for topic in [
            "cmd/pi08/takeback",
            "cmd/pi0",
            "core/status",
            "core/table/99",
        ] {
            assert_eq!(
                orders.read(&message(topic, "{}")),
                Order::Nothing,
                "{topic}"
            );
        }
        let cleared = Incoming {
            retain: true,
            ..message("cmd/pi07/takeback", "")
        };
        assert_eq!(orders.read(&cleared), Order::Nothing);
    }

    #[test]
    fn a_pairing_counts_when_it_changes() {
        let mut orders = orders();
        let anna = message(
            "core/table/12",
            r#"{"white":{"name":"Anna"},"node":"pi07"}"#,
        );
        let same = message("core/table/12", r#"{ "white": {"name": "Anna"} }"#);
        let berta = message("core/table/12", r#"{"white":{"name":"Berta"}}"#);
        let is_pairing = |order| matches!(order, Order::Pairing { table, .. } if table == "12");
        assert!(is_pairing(orders.read(&anna)));
        assert_eq!(orders.read(&anna), Order::Nothing);
        assert_eq!(orders.read(&same), Order::Nothing);
        assert!(matches!(
            orders.read(&message("core/table/12", "")),
            Order::NoPairing { table } if table == "12"
        ));
        assert!(is_pairing(orders.read(&berta)));
        assert!(is_pairing(orders.read(&anna)));
        let wrong = message("core/table/12", "Anna");
        let order = orders.read(&wrong);
        assert!(
            matches!(&order, Order::BadPairing { table, why } if table == "12" && why.contains("no pairing")),
            "{order:?}"
        );
        // Said once, though the broker tells it at each connection.
        assert_eq!(orders.read(&wrong), Order::Nothing);
        assert_eq!(orders.read(&anna), Order::Nothing);
    }
}
