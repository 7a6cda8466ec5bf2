//! The embedded broker. It ends with the process: rumqttd has no way to be stopped.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;

use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};

/// Where the broker listens: it has a port for each version of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    pub v5: u16,
    pub v4: u16,
}

/// Starts a broker on two free ports of the loopback interface. It accepts connections a moment later.
pub fn start() -> io::Result<Ports> {
    // The broker wants numbers, so the ports are free again for the blink of an eye in between. Both are held until then, or
    // they could be the same one.
    let (one, other) = (free_port()?, free_port()?);
    let (v5, v4) = (one.local_addr()?, other.local_addr()?);
    drop((one, other));
    let config = Config {
        router: RouterConfig {
            max_connections: 1000,
            max_outgoing_packet_count: 200,
            // Kept for each filter, so that the default of a gigabyte would grow all day long.
            max_segment_size: 1024 * 1024,
            max_segment_count: 4,
            ..RouterConfig::default()
        },
        v5: Some(server("v5", v5)),
        v4: Some(server("v4", v4)),
        ..Config::default()
    };
    thread::Builder::new()
        .name("broker".to_owned())
        .spawn(move || {
            let mut broker = Broker::new(config);
            // It returns only if neither port could be had, and then nobody answers, which is noticed.
            if let Err(error) = broker.start() {
                tracing::error!("the embedded broker ended: {error}");
            }
        })?;
    Ok(Ports {
        v5: v5.port(),
        v4: v4.port(),
    })
}

fn free_port() -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

fn server(name: &str, listen: SocketAddr) -> HashMap<String, ServerSettings> {
    let settings = ServerSettings {
        name: name.to_owned(),
        listen,
        tls: None,
        next_connection_delay_ms: 1,
        connections: ConnectionSettings {
            connection_timeout_ms: 5_000,
            max_payload_size: 256 * 1024,
            max_inflight_count: 100,
            auth: None,
            external_auth: None,
            dynamic_filters: true,
        },
    };
    HashMap::from([(name.to_owned(), settings)])
}
