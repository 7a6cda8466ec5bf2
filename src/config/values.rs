//! The values that stand in a configuration, each read into its own type.

use std::fmt;
use std::net::Ipv6Addr;
use std::ops::Deref;
use std::str::FromStr;

use serde::Deserialize;

use crate::text::shortened;

/// A level of a topic: the event, a node, a table. Lower-case letters, digits and hyphens, at most 32 of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(pub(super) String);

/// Where the broker listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerUrl {
    /// Name or address, an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MqttVersion {
    V4,
    #[default]
    V5,
}

impl Name {
    const LONGEST: usize = 32;

    /// Makes a name of any text; `fallback`, which must itself be a name, where nothing is left of it.
    pub(super) fn fitted(text: &str, fallback: &str) -> Name {
        let fitted: String = text
            .to_lowercase()
            .chars()
            .map(|c| if is_name_char(c) { c } else { '-' })
            .take(Name::LONGEST)
            .collect();
        let fitted = fitted.trim_matches('-');
        Name(if fitted.is_empty() { fallback } else { fitted }.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        if (1..=Name::LONGEST).contains(&text.len()) && text.chars().all(is_name_char) {
            Ok(Name(text.to_owned()))
        } else {
            Err(NameError(text.chars().take(40).collect()))
        }
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Name, NameError> {
        text.parse()
    }
}

/// The text cannot be a level of a topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name: 1 to 32 lower-case letters a-z, digits and hyphens are expected")]
pub struct NameError(String);

impl BrokerUrl {
    /// The port of MQTT without TLS.
    const PORT: u16 = 1883;
}

impl Default for BrokerUrl {
    fn default() -> BrokerUrl {
        BrokerUrl {
            host: "127.0.0.1".into(),
            port: BrokerUrl::PORT,
        }
    }
}

impl FromStr for BrokerUrl {
    type Err = BrokerUrlError;

    fn from_str(text: &str) -> Result<BrokerUrl, BrokerUrlError> {
        let shown = |text: &str| shortened(text, 60);
        // Before anything is shown of it: it may hold a password.
        if text.contains('@') {
            return Err(BrokerUrlError::Credentials);
        }
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("mqtt") => rest,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("mqtts") => {
                return Err(BrokerUrlError::NoTls);
            }
            _ => return Err(BrokerUrlError::NotMqtt(shown(text))),
        };
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if !matches!(path, "" | "/") {
            return Err(BrokerUrlError::Path(shown(path)));
        }
        let bad_host = || BrokerUrlError::BadHost(shown(text));
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(bad_host)?;
                host.parse::<Ipv6Addr>().map_err(|_| bad_host())?;
                match rest.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if rest.is_empty() => (host, None),
                    None => return Err(bad_host()),
                }
            }
            None => {
                let (host, port) = match authority.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (authority, None),
                };
                let is_host = !host.is_empty()
                    && host
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
                if !is_host {
                    return Err(bad_host());
                }
                (host, port)
            }
        };
        let port = match port {
            None => BrokerUrl::PORT,
            Some(digits) => match digits.parse() {
                Ok(port) if port > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()) => port,
                _ => return Err(BrokerUrlError::BadPort(shown(digits))),
            },
        };
        Ok(BrokerUrl {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "mqtt://[{}]:{}", self.host, self.port),
            false => write!(f, "mqtt://{}:{}", self.host, self.port),
        }
    }
}

/// Why a text does not say where a broker is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokerUrlError {
    #[error("{0:?} is no address of a broker: mqtt://host:1883 is expected")]
    NotMqtt(String),
    #[error("mqtts:// is known, but this build has no TLS yet")]
    NoTls,
    #[error("the address of a broker must not hold a user or a password")]
    Credentials,
    #[error("the address {0:?} names no host that could exist")]
    BadHost(String),
    #[error("{0:?} is no port: a number from 1 to 65535 is expected")]
    BadPort(String),
    #[error("the address of a broker ends with the port; {0:?} follows")]
    Path(String),
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_brokers() {
        for (text, host, port) in [
            ("mqtt://127.0.0.1", "127.0.0.1", 1883),
            (
                "MQTT://Broker.example.org:8883/",
                "Broker.example.org",
                8883,
            ),
            ("mqtt://[fe80::1]", "fe80::1", 1883),
        ] {
            let url: BrokerUrl = text.parse().unwrap();
            assert_eq!((url.host.as_str(), url.port), (host, port));
            assert_eq!(url.to_string().parse(), Ok(url));
        }
        for text in [
            "",
            "mqtt",
            "mqtt://",
            "mqtt://:1883",
            "mqtt://x:",
            "mqtt://x:0",
            "mqtt://x:65536",
            "mqtt://x:+1",
            "mqtt://x/topic",
            "mqtt://x?y",
            "mqtt://[::1",
            "mqtt://[x]",
            "mqtt://[::1]1",
            "mqtt://::1",
            "mqtt://a b",
            "tcp://x",
            "x:1883",
            "mqtts://x",
            "mqtt://u:p@x",
        ] {
            assert!(text.parse::<BrokerUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn host_names_are_made_to_fit() {
        for (host, wanted) in [
            ("pi07", "pi07"),
            ("Hall_2.Pi", "hall-2-pi"),
            ("-- ", "node"),
            ("", "node"),
            ("größe", "gr--e"),
        ] {
            let name = Name::fitted(host, "node");
            assert_eq!(name.as_str(), wanted);
        }
    }
}
