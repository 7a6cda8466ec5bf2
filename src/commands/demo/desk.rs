//! What the people in the hall tell the computer: the pairings of their rounds, and results that no board shows.

use serde_json::{Value, json};
use shakmaty::Outcome;

use super::NODE;
use super::programme::CONTROL;
use crate::daemon::mqtt::{Mqtt, NotSent};
use crate::outbox::Message;
use crate::publish::Delivery;
use crate::publish::topic::Address;

/// Speaks to the node over MQTT, as a hub and an arbiter do.
pub struct Desk {
    mqtt: Mqtt,
    /// What all topics begin with.
    prefix: String,
}

impl Desk {
    pub fn new(mqtt: Mqtt, prefix: String) -> Desk {
        Desk { mqtt, prefix }
    }

    /// Tells who plays at a table.
    pub fn pair(&self, table: &str, round: u8) -> Result<(), NotSent> {
        self.send(&Address::Pairing { table }, &pairing(table, round), true)
    }

    pub fn enter_result(&self, table: &str, outcome: Outcome) -> Result<(), NotSent> {
        let verb = "result";
        let address = Address::Command { node: NODE, verb };
        self.send(&address, &result(table, outcome), false)
    }

    fn send(&self, address: &Address, payload: &Value, retain: bool) -> Result<(), NotSent> {
        self.mqtt.send(Message {
            topic: format!("{}{address}", self.prefix),
            payload: payload.to_string().into_bytes(),
            retain,
            qos: 1,
            delivery: Delivery::Each,
        })
    }
}

/// The pairing of a round at a table, as it stands on `core/table/{table}`.
pub fn pairing(table: &str, round: u8) -> Value {
    let player = |side: &str| json!({"name": format!("Table {table}, {side}, Round {round}")});
    json!({
        "game": format!("r{round}-{table}"),
        "event": "An afternoon",
        "round": round.to_string(),
        "board": table,
        "white": player("White"),
        "black": player("Black"),
        "time_control": CONTROL,
    })
}

/// The command by which an arbiter enters a result.
pub fn result(table: &str, result: Outcome) -> Value {
    json!({"table": table, "args": {"result": result.to_string()}})
}
