//! How the broker is reached, and what this client is to it.

use std::fmt::Display;
use std::time::Duration;

use super::{Incoming, is_topic};
use crate::outbox::Message;
use crate::publish::topic::Address;
use crate::publish::{NodeStatus, Online, VERSION};

/// How the broker is reached, and what this client is to it.
#[derive(Clone)]
pub struct Settings {
    pub host: String,
    pub port: u16,
    pub username: Option<String>,
    pub password: Option<String>,
    /// First levels of every topic.
    pub base: String,
    pub event: String,
    pub node: String,
    /// Names this run of the daemon in the node's status.
    pub boot: String,
    /// A dead broker is noticed after twice this.
    pub keep_alive: Duration,
    /// Messages that may be unacknowledged at a time, 1 to 16. With 1 the order holds even over a reconnect.
    pub window: u16,
    /// MQTT version; only 5 so far.
    pub version: u8,
    /// Else made of the node's name and the machine's id.
    pub client_id: Option<String>,
    /// Filters below `{base}/{event}/`, of what others publish. What comes below `core/` is a state, of which only the newest is
    /// handed on.
    pub subscriptions: Vec<String>,
    /// What is said to whoever sent a message that found no room. It gets the prefix of all topics.
    pub busy: fn(&str, &Incoming) -> Option<Message>,
    /// Whether this client is the node `node`: it then says so in the node's retained status, has a last will there, and
    /// empties the node's alerts that nobody closed. A mere reader does none of it.
    pub is_node: bool,
}

impl Settings {
    /// A node that takes its commands.
    pub fn node(host: &str, port: u16, event: &str, node: &str) -> Self {
        Settings {
            subscriptions: vec![Address::Command { node, verb: "#" }.to_string()],
            is_node: true,
            ..Settings::reader(host, port, event, node)
        }
    }

    /// Takes the pairings of these tables too. Those of other tables are none of its business: at a large event their number alone
    /// would drown its own.
    pub fn with_tables(mut self, tables: impl IntoIterator<Item = impl Display>) -> Self {
        let pairings = tables
            .into_iter()
            .map(|table| table.to_string())
            .map(|table| Address::Pairing { table: &table }.to_string());
        self.subscriptions.extend(pairings);
        self
    }

    /// A client that watches, with no subscriptions yet.
    pub fn reader(host: &str, port: u16, event: &str, name: &str) -> Self {
        Settings {
            host: host.to_owned(),
            port,
            username: None,
            password: None,
            base: "jadoube/v1".to_owned(),
            event: event.to_owned(),
            node: name.to_owned(),
            boot: String::new(),
            keep_alive: Duration::from_secs(5),
            window: 1,
            version: 5,
            client_id: None,
            subscriptions: Vec::new(),
            busy: |_, _| None,
            is_node: false,
        }
    }

    /// What all topics of this event begin with.
    pub fn prefix(&self) -> String {
        format!("{}/{}/", self.base, self.event)
    }

    /// Whether these settings can work at all.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.version != 5 {
            return Err(SettingsError::Version(self.version));
        }
        if self.host.is_empty() {
            return Err(SettingsError::Host);
        }
        if !(1..=MOST_WINDOW).contains(&self.window) {
            return Err(SettingsError::Window(self.window));
        }
        if !(5..=60).contains(&self.keep_alive.as_secs()) {
            return Err(SettingsError::KeepAlive(self.keep_alive));
        }
        for name in [&self.base, &self.event, &self.node] {
            let wild = self.is_node && !is_topic(name);
            if name.is_empty() || wild || name.starts_with('/') || name.ends_with('/') {
                return Err(SettingsError::Name(name.clone()));
            }
        }
        Ok(())
    }

    pub(super) fn client_id(&self) -> String {
        if let Some(id) = &self.client_id {
            return id.clone();
        }
        // A node keeps its id over a restart: the broker then ends the old connection, with its last will, before it
        // greets the new one. With a new id the old will could come later and say offline of a node that is back.
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let mark = match machine.trim() {
            id if self.is_node && !id.is_empty() => fnv1a(&format!("{id} {}", self.prefix())),
            _ => fastrand::u64(..),
        };
        format!("jadoube-{}-{:012x}", self.node, mark >> 16)
    }

    pub(super) fn status(&self, status: Online) -> Vec<u8> {
        let status = NodeStatus {
            v: VERSION,
            status,
            boot: self.boot.clone(),
        };
        serde_json::to_vec(&status).expect("numbers and text have a JSON form")
    }
}

/// Settings that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("mqtt version {0} is not supported yet: use version = 5")]
    Version(u8),
    #[error("the broker's host is empty: give url = \"mqtt://HOST:1883\"")]
    Host,
    #[error("mqtt window {0} is out of range: use 1 to {MOST_WINDOW}")]
    Window(u16),
    #[error("mqtt keep alive of {0:?} is out of range: use 5 to 60 seconds")]
    KeepAlive(Duration),
    #[error("\"{0}\" cannot be part of a topic: use a to z, 0 to 9 and -")]
    Name(String),
}

/// FNV-1a: the same in every release, unlike the standard library's hash.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(super) const MOST_WINDOW: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_never_share_an_id_and_a_node_keeps_its_own() {
        let id = |node: &str| Settings::node("localhost", 1883, "open", node).client_id();
        let reader = || Settings::reader("localhost", 1883, "open", "watch").client_id();
        assert_ne!(id("pi07"), id("pi08"));
        assert_ne!(reader(), reader());
        if std::fs::read_to_string("/etc/machine-id").is_ok_and(|id| !id.trim().is_empty()) {
            assert_eq!(id("pi07"), id("pi07"));
        }
    }
}
