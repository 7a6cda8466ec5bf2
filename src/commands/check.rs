//! `jadoube check`: would `run` work with this configuration?

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::ports::is_jadoube;
use super::{DEFAULT_CONFIG, Failure, Lines};
use crate::config::{self, BrokerUrl, Config, Mqtt, Table, read_password};
use crate::daemon::desk::{self, Held};
use crate::daemon::files::try_folder;
use crate::daemon::mqtt::{self, Connection, Link};
use crate::daemon::node::{self, StartError};
use crate::daemon::serial::{Answer, Device, Identity, Refusal, Roots, Settings, Surveyed, survey};
use crate::laws::ruleset::Variant;
use crate::outbox::MemoryOutbox;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CONFIG)]
    pub config: PathBuf,
}

/// Everything is tried even after a failure: whoever sets up a hall wants the whole list.
pub fn run(args: Args) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    let tables = match config.tables.len() {
        1 => "one table".to_owned(),
        n => format!("{n} tables"),
    };
    let mut report = Report::default();
    report.add(
        "configuration",
        Finding::Ok(format!("{}, {tables}", args.config.display())),
    )?;
    for finding in refusals(&config) {
        report.add("configuration", finding)?;
    }
    report.add("state", state_dir(&config.state_dir))?;
    for (what, finding) in secrets(&config.mqtt) {
        report.add(what, finding)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    report.add("broker", runtime.block_on(broker(&config)))?;
    let named = config
        .tables
        .iter()
        .filter_map(|table| match &table.device {
            config::Device::Port(path) => Some(path.clone()),
            _ => None,
        });
    let named: Vec<PathBuf> = named.collect();
    let seen = runtime.block_on(async {
        let daemons = desk::ask().await;
        survey(&Roots::default(), &Settings::default(), &named, &daemons).await
    });
    let seen = Seen::new(&config.node, &seen);
    for table in &config.tables {
        let what = format!("table {}", table.name);
        report.add(&what, board(table, &config.tables, &seen))?;
        if let Some((words, hint)) = control(table) {
            report.add(&what, Finding::Ok(format!("time control {words}")))?;
            if let Some(hint) = hint {
                report.add(&what, Finding::Hint(hint))?;
            }
        }
    }
    report.end()
}

/// How long the broker may take to be found and to accept.
const PATIENCE: Duration = Duration::from_secs(5);
/// For taking leave of it.
const FAREWELL: Duration = Duration::from_millis(500);

#[derive(Debug, PartialEq)]
enum Finding {
    Ok(String),
    /// Could not be tried now, for a reason that is no fault.
    Untried(String),
    /// Works, but is hardly meant so.
    Hint(String),
    Fail(Refusal),
    /// `run` would not even start.
    Misconfigured(Refusal),
}

fn fail(reason: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding::Fail(Refusal {
        reason: reason.into(),
        advice: advice.into(),
    })
}

#[derive(Default)]
struct Report {
    failures: usize,
    misconfigured: bool,
    lines: Lines,
}

impl Report {
    fn add(&mut self, what: &str, finding: Finding) -> Result<(), Failure> {
        self.misconfigured |= matches!(finding, Finding::Misconfigured(_));
        match finding {
            Finding::Ok(how) => self.lines.print(format_args!("ok    {what}: {how}")),
            Finding::Untried(why) => self.lines.print(format_args!("-     {what}: {why}")),
            Finding::Hint(what_of_it) => {
                self.lines.print(format_args!("?     {what}: {what_of_it}"))
            }
            Finding::Fail(Refusal { reason, advice })
            | Finding::Misconfigured(Refusal { reason, advice }) => {
                self.failures += 1;
                self.lines
                    .print(format_args!("FAIL  {what}: {reason}\n      {advice}"))
            }
        }
    }

    fn end(self) -> Result<(), Failure> {
        let failed = match self.failures {
            0 => return Ok(()),
            1 => "one check failed".to_owned(),
            n => format!("{n} checks failed"),
        };
        // As `run` would end.
        Err(match self.misconfigured {
            true => Failure::config(failed),
            false => Failure::failed(failed),
        })
    }
}

/// Where the record will be.
fn state_dir(dir: &Path) -> Finding {
    let shown = dir.display();
    match try_folder(dir) {
        Ok(true) => Finding::Ok(format!("{shown} can be written")),
        Ok(false) => Finding::Ok(format!("{shown} can be made")),
        Err(refusal) => Finding::Fail(refusal),
    }
}

/// What `run` refuses to begin with, in its words.
fn refusals(config: &Config) -> Vec<Finding> {
    let refused = |error: StartError| {
        Finding::Misconfigured(Refusal {
            reason: error.to_string(),
            advice: error.advice(),
        })
    };
    node::refusals(config).into_iter().map(refused).collect()
}

/// The time control in words: seconds that were meant as minutes are seen here.
fn control(table: &Table) -> Option<(String, Option<String>)> {
    let settings = &table.settings;
    let control = settings.time_control.as_ref()?;
    let base = control.periods().first().map(|period| period.seconds);
    let hint = base
        .filter(|base| *base < SHORT_S && settings.variant == Variant::Standard)
        .map(|_| {
            format!(
                "{} is short for standard play: time_control counts in seconds (5400+30 is 90 min + 30 s a move); for blitz and rapid set variant too",
                control.in_words()
            )
        });
    Some((control.in_words(), hint))
}

/// A first period below this is hardly meant for standard play.
const SHORT_S: u32 = 300;

/// The files that the connection to the broker needs.
fn secrets(mqtt: &Mqtt) -> Vec<(&'static str, Finding)> {
    let mut findings = Vec::new();
    // One that cannot be read is among what `run` refuses.
    if let Some(path) = &mqtt.password_file
        && read_password(path).is_ok()
    {
        let finding = Finding::Ok(format!("{} can be read", path.display()));
        findings.push(("password", finding));
    }
    let files = [
        ("certificate", &mqtt.cert_file),
        ("key", &mqtt.key_file),
        ("authority", &mqtt.ca_file),
    ];
    for (what, path) in files {
        let Some(path) = path else { continue };
        let finding = match fs::read(path) {
            Ok(_) => Finding::Ok(format!("{} can be read", path.display())),
            Err(error) => fail(
                format!("{} cannot be read: {error}", path.display()),
                "Put the file there, and let the user that runs jadoube read it.",
            ),
        };
        findings.push((what, finding));
    }
    findings
}

/// Whether the broker is where it should be, and takes us.
async fn broker(config: &Config) -> Finding {
    if let Some(finding) = unreachable(&config.mqtt.url).await {
        return finding;
    }
    let BrokerUrl { host, port } = &config.mqtt.url;
    let Ok(Connection { mqtt, .. }) = node::visitor_settings(config)
        .and_then(|settings| Ok(mqtt::connect(settings, MemoryOutbox::default())?))
    else {
        // What is wrong stands among what `run` refuses.
        return Finding::Untried(format!("{host} port {port} accepts connections"));
    };
    let mut status = mqtt.status();
    let answered = timeout(
        PATIENCE * 2,
        status.wait_for(|status| status.link != Link::Connecting),
    );
    let link = match answered.await {
        Ok(Ok(status)) => status.link.clone(),
        _ => Link::Connecting,
    };
    mqtt.shutdown(FAREWELL).await;
    match link {
        Link::Connected => Finding::Ok(format!("{host} port {port} takes us as an MQTT 5 client")),
        Link::Refused { reason } => fail(
            format!("{host} port {port}: {reason}"),
            "The broker's log says more (journalctl -u mosquitto).",
        ),
        Link::Disconnected { reason } => fail(
            format!("{host} port {port}: {reason}"),
            "Correct url under [mqtt], or see the broker's log (journalctl -u mosquitto).",
        ),
        Link::Connecting | Link::Closed => fail(
            format!("{host} port {port} accepts connections, but does not answer"),
            "Restart the broker (systemctl restart mosquitto), or correct url under [mqtt].",
        ),
    }
}

/// Why nothing can be reached where the broker should listen; nothing if something can.
async fn unreachable(url: &BrokerUrl) -> Option<Finding> {
    let BrokerUrl { host, port } = url;
    let addresses = match timeout(PATIENCE, lookup_host((host.as_str(), *port))).await {
        Ok(Ok(addresses)) => addresses.collect::<Vec<_>>(),
        Ok(Err(_)) => Vec::new(),
        Err(_) => {
            return Some(fail(
                format!("nobody says what address {host} has"),
                "Check the network and its name server, or give the address in mqtt.url.",
            ));
        }
    };
    if addresses.is_empty() {
        return Some(fail(
            format!("no host is called {host}"),
            "Correct mqtt.url, or give the address instead of the name.",
        ));
    }
    let failed = match timeout(PATIENCE, TcpStream::connect(addresses.as_slice())).await {
        Ok(Ok(_)) => return None,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => fail(
            format!("{host} is there, but nothing listens at its port {port}"),
            "Start the broker (systemctl start mosquitto), or correct mqtt.url. Without a listener line, mosquitto listens to its own machine only.",
        ),
        Ok(Err(error)) => fail(
            format!("{host} port {port} cannot be reached: {error}"),
            "Check the network cable or WiFi of this machine, and mqtt.url.",
        ),
        Err(_) => fail(
            format!("{host} port {port} does not answer"),
            "Check that the broker's machine is switched on, and that no firewall is between.",
        ),
    };
    Some(failed)
}

/// What answered, in the order in which thousands of tables ask for it.
struct Seen<'a> {
    /// As which node the configuration runs: a daemon of another name is not the one whose boards these are.
    node: &'a str,
    all: &'a [Surveyed],
    by_node: HashMap<PathBuf, &'a Surveyed>,
    /// A daemon at work has its boards open, and they cannot be asked past it.
    daemon: Option<By<'a>>,
}

/// A program of ours that has a port.
#[derive(Debug, Clone)]
struct By<'a> {
    name: String,
    /// The node, where it is a daemon that says so.
    node: Option<&'a str>,
}

impl<'a> Seen<'a> {
    fn new(node: &'a str, all: &'a [Surveyed]) -> Seen<'a> {
        let daemons = all.iter().filter_map(|surveyed| match &surveyed.answer {
            Answer::Busy {
                holder: Some(holder),
                ..
            } if is_jadoube(&Some(holder.clone())) => Some(By {
                name: holder.to_string(),
                node: None,
            }),
            Answer::Served { by, node, .. } => Some(By {
                name: by.clone(),
                node: Some(node),
            }),
            _ => None,
        });
        // Its own one explains best what it lacks.
        let daemon = daemons.max_by_key(|by| match by.node {
            Some(of) if of == node => 2,
            None => 1,
            Some(_) => 0,
        });
        Seen {
            node,
            all,
            by_node: all
                .iter()
                .map(|surveyed| (surveyed.device.node(), surveyed))
                .collect(),
            daemon,
        }
    }
}

/// Whether a table's board is there, going by what answered.
fn board(table: &Table, tables: &[Table], seen: &Seen) -> Finding {
    let found = |identity: &Identity, path: &Path| match table.settings.board {
        Some(family) if family != identity.family => fail(
            format!("{identity}, on {}, is no {family} board", path.display()),
            "Say board = \"auto\", or plug in the board that the table has.",
        ),
        _ => Finding::Ok(format!("{identity}, on {}", path.display())),
    };
    let boards = || {
        seen.all
            .iter()
            .filter_map(|surveyed| match &surveyed.answer {
                Answer::Board(identity) => Some((&surveyed.device, identity)),
                _ => None,
            })
    };
    let serving = |is_it: &dyn Fn(&Held, &str) -> bool| {
        seen.all.iter().find_map(|surveyed| match &surveyed.answer {
            Answer::Served {
                by,
                node,
                held: Some(held),
            } if is_it(held, node) => Some(told(table, held, by, node == seen.node)),
            _ => None,
        })
    };
    match &table.device {
        config::Device::Port(path) => {
            let node = path.canonicalize().unwrap_or_else(|_| path.clone());
            let Some(surveyed) = seen.by_node.get(&node) else {
                return fail(
                    format!("{} is not there", path.display()),
                    "Plug the board in.",
                );
            };
            match &surveyed.answer {
                Answer::Board(identity) => found(identity, path),
                Answer::Stranger(_) => fail(
                    format!(
                        "what answers on {} is no board that jadoube knows",
                        path.display()
                    ),
                    "See `jadoube ports` for the board's port, and name that.",
                ),
                Answer::Busy {
                    holder: Some(holder),
                    ..
                } if is_jadoube(&Some(holder.clone())) => Finding::Untried(format!(
                    "{} is in use by the running {holder}; stop it if it is not this table's",
                    path.display()
                )),
                Answer::Served {
                    by,
                    node,
                    held: Some(held),
                } => told(table, held, by, node == seen.node),
                Answer::Served { by, held: None, .. } => Finding::Untried(format!(
                    "{} is in use by the running {by}, which is finding out what it is",
                    path.display()
                )),
                Answer::Busy { refusal, .. } | Answer::Refused(refusal) => {
                    Finding::Fail(refusal.clone())
                }
                Answer::Foreign => fail(
                    format!("{} was not asked", path.display()),
                    "Run the check again.",
                ),
            }
        }
        config::Device::Serial(serial) => {
            if let Some((device, identity)) =
                boards().find(|(_, identity)| identity.answers_to(serial))
            {
                return found(identity, &device.path);
            }
            serving(&|held, _| held.answers_to(serial))
                .unwrap_or_else(|| absent(format!("board {serial} is not connected"), seen))
        }
        config::Device::Auto => {
            let named = |device: &Device, identity: &Identity| {
                tables.iter().any(|other| match &other.device {
                    config::Device::Auto => false,
                    config::Device::Serial(serial) => identity.answers_to(serial),
                    config::Device::Port(path) => {
                        path.canonicalize().is_ok_and(|node| device.is_at(&node))
                    }
                })
            };
            // The tables on auto take what is left in the order in which they stand.
            let place = tables
                .iter()
                .filter(|other| other.device == config::Device::Auto)
                .position(|other| other.name == table.name)
                .unwrap_or(0);
            let fits = |identity: &Identity| {
                let family = table.settings.board;
                family.is_none_or(|family| family == identity.family)
            };
            match boards()
                .filter(|(device, identity)| !named(device, identity) && fits(identity))
                .nth(place)
            {
                Some((device, identity)) => found(identity, &device.path),
                None => {
                    serving(&|held, node| node == seen.node && held.table == table.name.as_str())
                        .unwrap_or_else(|| {
                            let missing = match boards().next() {
                                Some(_) => "no board is left for it",
                                None => "no board is connected",
                            };
                            absent(missing.to_owned(), seen)
                        })
                }
            }
        }
    }
}

/// A board as the daemon that has it open sees it.
fn told(table: &Table, held: &Held, by: &str, is_own: bool) -> Finding {
    let told = format!("{held}, on {}: in use by the running {by}", held.port);
    if !is_own {
        return fail(
            told,
            "That is another node: stop it, or give this table a board of its own; `jadoube ports` lists them.",
        );
    }
    if held.table != table.name.as_str() {
        // It was started with another configuration than this one.
        return Finding::Untried(format!("{told}; restart that one to give it to this table"));
    }
    match held.status.as_deref() {
        // Noise has been taken for a board before.
        Some("ok") | None if held.family.is_none() => fail(
            told,
            "See `jadoube ports` for the board's port, and name that; if it is this one, check its cable.",
        ),
        Some("ok") | None => Finding::Ok(told),
        Some(_) => fail(
            told,
            "Switch the board on and check its cable; see the log of that jadoube.",
        ),
    }
}

/// A board that did not answer, and the likeliest cause.
fn absent(missing: String, seen: &Seen) -> Finding {
    if let Some(by) = &seen.daemon {
        let told = format!("{missing}, unless the running {} has it", by.name);
        return match by.node.is_none_or(|node| node == seen.node) {
            true => Finding::Untried(told),
            false => fail(
                told,
                "Plug it in and switch it on, or stop that other node if the board is its own; `jadoube ports` lists both.",
            ),
        };
    }
    let refused = seen.all.iter().find_map(|surveyed| match &surveyed.answer {
        Answer::Refused(refusal) | Answer::Busy { refusal, .. } => Some(refusal),
        _ => None,
    });
    match refused {
        Some(refusal) => fail(format!("{missing}: {}", refusal.reason), &refusal.advice),
        None => fail(
            missing,
            "Plug it in and switch it on; `jadoube ports` lists what is there.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    use crate::daemon::serial::{Holder, Usb};

    fn config(tables: &str) -> Config {
        Config::parse(tables, Path::new("/nowhere")).unwrap()
    }

    fn at(path: &str, answer: Answer) -> Surveyed {
        let id = "045b:8111".parse().unwrap();
        let usb = Usb {
            id,
            product: None,
            serial: None,
        };
        Surveyed {
            device: Device {
                name: path.into(),
                path: path.into(),
                links: Vec::new(),
                usb: Some(usb),
            },
            answer,
        }
    }

    fn dgt(serial: &str) -> Answer {
        Answer::Board(Identity {
            family: crate::wire::Family::Dgt,
            serial: Some(serial.into()),
            short_serial: None,
            version: None,
        })
    }

    fn busy(name: &str) -> Answer {
        let refusal = Refusal {
            reason: "/dev/c is in use".into(),
            advice: "Close it.".into(),
        };
        Answer::Busy {
            holder: Some(Holder {
                pid: 7,
                name: name.into(),
            }),
            refusal,
        }
    }

    fn findings(tables: &str, seen: &[Surveyed]) -> Vec<String> {
        let config = config(tables);
        let seen = Seen::new(&config.node, seen);
        let say = |table| match board(table, &config.tables, &seen) {
            Finding::Ok(how) => format!("ok {how}"),
            Finding::Untried(why) => format!("- {why}"),
            Finding::Fail(refusal) => format!("FAIL {}", refusal.reason),
            other => panic!("{other:?}"),
        };
        config.tables.iter().map(say).collect()
    }

    #[test]
    fn each_table_finds_its_own_board() {
        let tables = "[[table]]\nname = \"1\"\nserial = \"3000000002\"\n\
            [[table]]\nname = \"2\"\nport = \"/dev/c\"\n\
            [[table]]\nname = \"3\"\nport = \"auto\"\n\
            [[table]]\nname = \"4\"\nserial = \"3000000009\"";
        let seen = [
            at("/dev/a", dgt("3000000001")),
            at("/dev/b", dgt("3000000002")),
            at("/dev/c", dgt("3000000003")),
            at("/dev/d", Answer::Foreign),
        ];
        assert_eq!(
            findings(tables, &seen),
            [
                "ok dgt board 3000000002, on /dev/b",
                "ok dgt board 3000000003, on /dev/c",
                "ok dgt board 3000000001, on /dev/a",
                "FAIL board 3000000009 is not connected",
            ]
        );
        assert_eq!(findings(tables, &[])[1], "FAIL /dev/c is not there");
    }

    #[test]
    fn a_table_has_a_board_of_its_own_make() {
        let tables = "[[table]]\nname = \"1\"\nport = \"/dev/a\"\nboard = \"psb1\"\n\
            [[table]]\nname = \"2\"\nport = \"auto\"\nboard = \"psb1\"";
        let presence = Answer::Board(Identity {
            family: crate::wire::Family::Psb1,
            serial: Some("club-7".into()),
            short_serial: None,
            version: None,
        });
        let seen = [at("/dev/a", dgt("3000000001")), at("/dev/b", presence)];
        assert_eq!(
            findings(tables, &seen),
            [
                "FAIL dgt board 3000000001, on /dev/a, is no psb1 board",
                "ok psb1 board club-7, on /dev/b",
            ]
        );
    }

    #[test]
    fn a_running_daemon_is_no_fault_but_another_program_is() {
        let tables = "[[table]]\nname = \"1\"\nport = \"/dev/c\"\n\
            [[table]]\nname = \"2\"\nserial = \"5\"";
        assert_eq!(
            findings(tables, &[at("/dev/c", busy("jadoube"))]),
            [
                "- /dev/c is in use by the running jadoube (pid 7); stop it if it is not this table's",
                "- board 5 is not connected, unless the running jadoube (pid 7) has it",
            ]
        );
        assert_eq!(
            findings(tables, &[at("/dev/c", busy("minicom"))]),
            [
                "FAIL /dev/c is in use",
                "FAIL board 5 is not connected: /dev/c is in use"
            ]
        );
    }

    #[test]
    fn a_board_that_another_node_has_is_not_well() {
        let tables = "node = \"pi07\"\n[[table]]\nname = \"1\"\nport = \"/dev/c\"\n\
            [[table]]\nname = \"2\"\nserial = \"5\"\n[[table]]\nname = \"3\"\nport = \"auto\"";
        let served = |node: &str| {
            at(
                "/dev/c",
                Answer::Served {
                    by: format!("jadoube (pid 7, node {node})"),
                    node: node.into(),
                    held: Some(Box::new(Held {
                        port: "/dev/c".into(),
                        device: "/dev/c".into(),
                        table: "3".into(),
                        status: Some("ok".into()),
                        family: Some("dgt".into()),
                        serial: Some("5".into()),
                        ..Held::default()
                    })),
                },
            )
        };
        let held =
            "dgt board 5, table 3, ok, on /dev/c: in use by the running jadoube (pid 7, node";
        assert_eq!(
            findings(tables, &[served("pi08")]),
            [
                format!("FAIL {held} pi08)"),
                format!("FAIL {held} pi08)"),
                "FAIL no board is connected, unless the running jadoube (pid 7, node pi08) has it"
                    .to_owned(),
            ]
        );
        // The node's own daemon may have been started with another configuration.
        let restart = "restart that one to give it to this table";
        assert_eq!(
            findings(tables, &[served("pi08"), served("pi07")])[2],
            format!("ok {held} pi07)")
        );
        assert_eq!(
            findings(tables, &[served("pi07")])[0],
            format!("- {held} pi07); {restart}")
        );
    }

    #[test]
    fn the_auto_table_is_told_whether_anything_is_there() {
        let tables = "[[table]]\nname = \"1\"\nport = \"auto\"\n\
            [[table]]\nname = \"2\"\nserial = \"3000000001\"";
        assert_eq!(findings(tables, &[])[0], "FAIL no board is connected");
        let seen = [at("/dev/a", dgt("3000000001"))];
        assert_eq!(findings(tables, &seen)[0], "FAIL no board is left for it");
    }

    #[test]
    fn what_the_daemon_does_not_know_is_not_well() {
        let held = Held {
            port: "/dev/c".into(),
            device: "/dev/c".into(),
            table: "1".into(),
            status: Some("ok".into()),
            family: None,
            serial: None,
            short_serial: None,
            firmware: None,
        };
        let config = config("[[table]]\nname = \"1\"\nport = \"/dev/c\"");
        let table = &config.tables[0];
        let Finding::Fail(refusal) = told(table, &held, "jadoube (pid 7)", true) else {
            panic!("nobody knows what it is");
        };
        assert!(refusal.reason.starts_with("no board that jadoube knows"));
        let known = Held {
            family: Some("dgt".into()),
            ..held
        };
        assert!(matches!(told(table, &known, "", true), Finding::Ok(_)));
    }

    /// What the check says of something that answers like this, and `hangs_up` or stays.
    async fn tried(answer: Option<&'static [u8]>, hangs_up: bool) -> Finding {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stub = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(answer) = answer else {
                    held.push(socket);
                    continue;
                };
                let mut buffer = [0; 4096];
                let _ = socket.read(&mut buffer).await;
                let _ = socket.write_all(answer).await;
                if hangs_up {
                    let _ = socket.shutdown().await;
                }
                // Until the other end has seen it, and leaves.
                while socket.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
            }
        });
        let finding = broker(&at_port(port)).await;
        stub.abort();
        finding
    }

    fn at_port(port: u16) -> Config {
        config(&format!(
            "[mqtt]\nurl = \"mqtt://127.0.0.1:{port}\"\n[[table]]\nname = \"1\"\nport = \"auto\""
        ))
    }

    #[tokio::test]
    async fn a_broker_is_asked_to_take_us() {
        let finding = tried(Some(&[0x20, 3, 0, 0, 0]), false).await;
        assert!(matches!(&finding, Finding::Ok(_)), "{finding:?}");
        for (answer, what) in [
            (None, "hangs"),
            (
                Some(&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..]),
                "is no MQTT 5 broker",
            ),
            // The 3.1.1 way of saying: unacceptable protocol version.
            (Some(&[0x20, 2, 0, 1]), "3.1.1 only"),
            // Bad user name or password (MQTT 5, 3.2.2.2).
            (
                Some(&[0x20, 3, 0, 0x86, 0]),
                "refuses this user: look at username and password_file",
            ),
            (Some(&[0x20, 3, 0, 0x84, 0]), "does not speak MQTT 5"),
        ] {
            let finding = tried(answer, true).await;
            let Finding::Fail(refusal) = &finding else {
                panic!("{what}: {finding:?}");
            };
            assert!(refusal.reason.contains(what), "{what}: {refusal:?}");
        }
    }

    #[tokio::test]
    async fn a_broker_that_is_not_there_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let Finding::Fail(refusal) = broker(&at_port(port)).await else {
            panic!("nothing listens");
        };
        assert!(
            refusal
                .reason
                .contains(&format!("nothing listens at its port {port}"))
        );
        assert!(refusal.advice.contains("systemctl start mosquitto"));
    }

    #[test]
    fn the_state_folder_is_tried_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            matches!(state_dir(folder.path()), Finding::Ok(how) if how.ends_with("can be written"))
        );
        let below = folder.path().join("a/b");
        assert!(matches!(state_dir(&below), Finding::Ok(how) if how.ends_with("can be made")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        for dir in [file.clone(), file.join("below")] {
            assert!(
                matches!(state_dir(&dir), Finding::Fail(refusal) if refusal.reason.ends_with("is not a folder"))
            );
        }
    }

    #[test]
    fn files_for_the_broker_are_tried() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("password"), "secret\n").unwrap();
        let mqtt = Mqtt {
            password_file: Some(folder.path().join("password")),
            ca_file: Some(folder.path().join("ca.pem")),
            ..Mqtt::default()
        };
        let findings = secrets(&mqtt);
        assert!(matches!(findings[0], ("password", Finding::Ok(_))));
        assert!(matches!(findings[1], ("authority", Finding::Fail(_))));
        assert!(!format!("{findings:?}").contains("secret"));
    }

    #[test]
    fn seconds_meant_as_minutes_are_hinted_at() {
        let control = |text: &str| {
            let config = config(&format!("[[table]]\nname = \"1\"\nport = \"auto\"\n{text}"));
            control(&config.tables[0])
        };
        assert_eq!(control(""), None);
        let (words, hint) = control("time_control = \"90+30\"").unwrap();
        assert_eq!(words, "90 s + 30 s a move");
        assert!(hint.unwrap().contains("5400+30"));
        let blitz = control("time_control = \"180+2\"\nvariant = \"blitz\"").unwrap();
        assert_eq!(blitz, ("3 min + 2 s a move".into(), None));
        assert_eq!(control("time_control = \"5400+30\"").unwrap().1, None);
    }
}
