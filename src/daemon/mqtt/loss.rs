//! Why there is no connection, and what the log says of it.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use rumqttc::v5::mqttbytes::Error as CodecError;
use rumqttc::v5::mqttbytes::v5::{ConnectReturnCode, DisconnectReasonCode};
use rumqttc::v5::{ConnectionError, StateError};
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use super::Settings;
use crate::text::one_line;

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct Loss {
    /// For a person; says what to do where that is known.
    pub(super) reason: String,
    /// In the transport's words, which may differ from time to time.
    pub(super) detail: Option<String>,
    /// The broker answered and refused us.
    pub(super) refused: bool,
    /// A message of ours is at fault, not the network.
    pub(super) by_message: bool,
    /// Another client came with our id (MQTT 5, reason 0x8E).
    pub(super) taken_over: bool,
}

impl Loss {
    pub(super) fn of(reason: &str) -> Self {
        Loss {
            reason: reason.to_owned(),
            detail: None,
            refused: false,
            by_message: false,
            taken_over: false,
        }
    }

    pub(super) fn from_error(error: &ConnectionError, client: &str) -> Self {
        match error {
            ConnectionError::ConnectionRefused(code) => Loss {
                refused: true,
                ..Loss::of(&advice(*code))
            },
            ConnectionError::Timeout(_) => Loss::of("no answer"),
            ConnectionError::Io(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
                Loss::of("nothing listens there: is the broker running, and the port right?")
            }
            ConnectionError::Io(cause) => Loss::of(&cause.to_string()),
            ConnectionError::MqttState(cause) => Loss::from_state(cause, client),
            other => Loss::of(&one_line(&other.to_string(), 200)),
        }
    }

    /// The same, where nothing has shown yet that a broker of our kind is there at all.
    pub(super) fn before_greeting(self, error: &ConnectionError) -> Self {
        match error {
            // A broker that knows 3.1.1 only answers in two bytes less than MQTT 5 asks for, and hangs up.
            ConnectionError::MqttState(
                StateError::ConnectionAborted | StateError::Deserialization(CodecError::Io(_)),
            ) if !self.reason.contains("os error") => Loss::of(
                "it hung up without a greeting: either it is no MQTT 5 broker (perhaps one for 3.1.1 only, or another service), or it takes no clients from here",
            ),
            ConnectionError::Timeout(_) => {
                Loss::of("no answer: the broker hangs, or it is no MQTT 5 broker")
            }
            ConnectionError::NotConnAck(_) => Loss::no_broker("it greets with another packet"),
            ConnectionError::MqttState(StateError::Deserialization(cause))
                if !matches!(cause, CodecError::Io(_)) =>
            {
                Loss::no_broker(&cause.to_string())
            }
            _ => self,
        }
    }

    pub(super) fn no_broker(detail: &str) -> Self {
        Loss {
            detail: Some(one_line(detail, 100)),
            ..Loss::of(
                "what answers there is no MQTT 5 broker: look at host and port of url under [mqtt]",
            )
        }
    }

    pub(super) fn from_state(error: &StateError, client: &str) -> Self {
        match error {
            StateError::AwaitPingResp | StateError::CollisionTimeout => {
                Loss::of("the broker no longer answers")
            }
            StateError::ConnectionAborted => Loss::of("the broker closed the connection"),
            StateError::Io(cause) | StateError::Deserialization(CodecError::Io(cause)) => {
                Loss::of(&cause.to_string())
            }
            StateError::ServerDisconnect { reason_code, .. } => {
                from_disconnect(*reason_code, client)
            }
            // Mosquitto acknowledges a message that it finds too large with a reason that the standard does not know
            // there (0x95), and the transport stumbles over it.
            StateError::Deserialization(CodecError::InvalidConnectReturnCode(code)) => Loss {
                by_message: true,
                ..Loss::of(&format!("the broker answered with reason {code:#04x}"))
            },
            StateError::OutgoingPacketTooLarge { .. } => Loss {
                by_message: true,
                ..Loss::of("a message is larger than the broker allows")
            },
            StateError::Deserialization(cause) => Loss {
                detail: Some(one_line(&cause.to_string(), 100)),
                ..Loss::of("the broker sent what is no MQTT 5")
            },
            other => Loss::of(&one_line(&other.to_string(), 200)),
        }
    }
}

fn from_disconnect(code: DisconnectReasonCode, client: &str) -> Loss {
    use DisconnectReasonCode as Code;
    match code {
        Code::SessionTakenOver => Loss {
            taken_over: true,
            ..Loss::of(&twin(client))
        },
        Code::ServerShuttingDown => Loss::of("the broker is shutting down"),
        Code::NotAuthorized
        | Code::TopicNameInvalid
        | Code::PacketTooLarge
        | Code::QuotaExceeded
        | Code::PayloadFormatInvalid
        | Code::RetainNotSupported
        | Code::QoSNotSupported
        | Code::MalformedPacket
        | Code::ImplementationSpecificError => Loss {
            by_message: true,
            ..Loss::of(&format!("the broker ended the connection: {code:?}"))
        },
        other => Loss::of(&format!("the broker ended the connection: {other:?}")),
    }
}

/// Two daemons as one node; each overwrites what the other says.
pub(super) fn twin(node: &str) -> String {
    format!(
        "another jadoube is connected as node {node}; give each a node of its own (the key node of the configuration)"
    )
}

fn advice(code: ConnectReturnCode) -> String {
    use ConnectReturnCode as Code;
    match code {
        Code::BadUserNamePassword | Code::NotAuthorized => {
            "the broker refuses this user: look at username and password_file under [mqtt]"
                .to_owned()
        }
        Code::RefusedProtocolVersion | Code::UnsupportedProtocolVersion => {
            "the broker does not speak MQTT 5: use a newer one".to_owned()
        }
        Code::BadClientId | Code::ClientIdentifierNotValid => {
            "the broker refuses the client id: choose another node name".to_owned()
        }
        Code::RetainNotSupported | Code::QoSNotSupported => {
            "the broker cannot keep messages, which is needed: use another".to_owned()
        }
        other => format!("the broker refuses the connection: {other:?}"),
    }
}

/// Log lines about the connection: one a cause, however often it is tried.
pub(super) struct Reporter {
    broker: String,
    pub(super) node: String,
    /// Another client with our id was told of.
    told_twin: bool,
    /// Causes that were told since the last steady connection.
    told: BTreeSet<String>,
    /// Since when there has been no steady connection.
    down: Option<Instant>,
    /// Connections that come and go for a known cause are not worth a line each.
    is_hushed: bool,
    is_loud: bool,
}

impl Reporter {
    pub(super) fn new(settings: &Settings) -> Self {
        Reporter {
            broker: format!("{}:{}", settings.host, settings.port),
            node: settings.node.clone(),
            told_twin: false,
            told: BTreeSet::new(),
            down: None,
            is_hushed: false,
            is_loud: false,
        }
    }

    pub(super) fn connected(&self) {
        let broker = &self.broker;
        match self.down {
            _ if self.is_hushed => debug!("connected to the broker at {broker}"),
            Some(down) => info!(
                "connected to the broker at {broker} after {} s",
                down.elapsed().as_secs()
            ),
            None => info!("connected to the broker at {broker}"),
        }
    }

    /// The connection has lasted.
    pub(super) fn steady(&mut self) {
        if std::mem::take(&mut self.is_hushed) {
            info!("the connection to the broker at {} holds", self.broker);
        }
        self.told.clear();
        self.down = None;
        self.is_loud = false;
    }

    pub(super) fn lost(&mut self, loss: &Loss, was_connected: bool) {
        let broker = &self.broker;
        let reason = &loss.reason;
        let down = self.down.get_or_insert_with(Instant::now).elapsed();
        if loss.taken_over {
            // Each of the two connections is a while of peace in between, and no reason to say it again.
            if !std::mem::replace(&mut self.told_twin, true) {
                error!("no connection to the broker at {broker}: {reason}");
            }
        } else if self.told.insert(reason.clone()) {
            self.is_hushed = false;
            let detail = loss.detail.iter().map(|detail| format!(" ({detail})"));
            let detail: String = detail.collect();
            warn!("no connection to the broker at {broker}: {reason}{detail}; trying again");
        } else if was_connected {
            self.is_hushed = true;
        }
        if !self.is_loud && down >= LOUD_AFTER {
            self.is_loud = true;
            error!(
                "no steady connection to the broker at {broker} for {} minutes: {reason}. What happens is kept and sent later",
                down.as_secs() / 60
            );
        }
    }
}

const LOUD_AFTER: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_is_blamed_for_what_a_message_did() {
        let loss = |error| Loss::from_state(&error, "id");
        let disconnect = |reason_code| StateError::ServerDisconnect {
            reason_code,
            reason_string: None,
        };
        assert!(loss(disconnect(DisconnectReasonCode::PacketTooLarge)).by_message);
        for innocent in [
            disconnect(DisconnectReasonCode::ServerShuttingDown),
            disconnect(DisconnectReasonCode::SessionTakenOver),
            StateError::ConnectionAborted,
            StateError::AwaitPingResp,
            StateError::Io(io::ErrorKind::ConnectionReset.into()),
        ] {
            let loss = loss(innocent);
            assert!(!loss.by_message, "{}", loss.reason);
        }
        let taken = loss(disconnect(DisconnectReasonCode::SessionTakenOver));
        assert!(taken.taken_over);
        assert!(
            taken.reason.contains("connected as node id;"),
            "{}",
            taken.reason
        );
    }
}
