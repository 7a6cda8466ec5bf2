//! Where other programs of this machine ask a running node what it has: who wants to list the ports cannot open those that are open
//! already, and would otherwise know of them only that they are busy.
//!
//! The desk is a unix socket with an abstract name: no file that a crash leaves behind, and no folder that both users must be
//! allowed to write and read. Whoever connects gets one line of JSON, [`Told`], and the end; nothing is read from him, so there is
//! nothing that he could say wrong or late. All local users may ask, as with `ps`: names of tables and numbers of boards are no
//! secret.
//!
//! Anybody may open such a name too, and say what he likes. So what was told is never taken for more than words: it explains a port
//! that was found busy, it keeps nobody from opening one. The number of the process comes from the kernel.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::publish::Link;
use crate::text::one_line;

/// What a node tells of itself. Readers ignore unknown fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub node: String,
    pub ports: Vec<Held>,
}

/// A port that a node has open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// As it is configured, or was found.
    pub port: String,
    /// Its node, links resolved.
    pub device: String,
    pub table: String,
    /// As the retained `status` of the board has it; none before the board was judged.
    pub status: Option<String>,
    /// The board's family; none where something speaks that is no known board.
    pub family: Option<String>,
    pub serial: Option<String>,
    pub short_serial: Option<String>,
    pub firmware: Option<String>,
}

impl Held {
    /// Whether the board here is the one that a person calls `serial`.
    pub fn answers_to(&self, serial: &str) -> bool {
        let serial = Some(serial.trim());
        serial == self.serial.as_deref() || serial == self.short_serial.as_deref()
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.family, &self.serial) {
            (None, _) => f.write_str("no board that jadoube knows")?,
            (Some(family), Some(serial)) => write!(f, "{family} board {serial}")?,
            (Some(family), None) => write!(f, "{family} board without a serial number")?,
        }
        if let Some(firmware) = &self.firmware {
            write!(f, ", firmware {firmware}")?;
        }
        write!(f, ", table {}", self.table)?;
        match &self.status {
            Some(status) => write!(f, ", {status}"),
            None => Ok(()),
        }
    }
}

/// The desk of one node. It closes with the value.
#[derive(Debug)]
pub struct Desk {
    node: String,
    /// By table.
    held: BTreeMap<String, Held>,
    line: watch::Sender<String>,
}

impl Desk {
    /// Opens it; needs a runtime. Where that does not work, the node goes without.
    pub fn open(node: &str) -> Desk {
        // The number is for whoever looks at a list of sockets. Random digits, as anybody might have taken a name that is foreseen.
        let name = format!("{NAME}{}-{:08x}", std::process::id(), fastrand::u32(..));
        let (line, told) = watch::channel(String::new());
        match UnixListener::bind(format!("\0{name}")) {
            Ok(listener) => {
                tokio::spawn(serve(listener, told));
            }
            Err(error) => warn!(
                "no socket for `jadoube ports` can be opened ({error}); it will call this node's ports busy"
            ),
        }
        let desk = Desk {
            node: node.to_owned(),
            held: BTreeMap::new(),
            line,
        };
        desk.tell();
        desk
    }

    pub fn hold(&mut self, held: Held) {
        self.held.insert(held.table.clone(), held);
        self.tell();
    }

    pub fn release(&mut self, table: &str) {
        if self.held.remove(table).is_some() {
            self.tell();
        }
    }

    /// The board of this table was judged, and may have told more of itself by now.
    pub fn judge(&mut self, table: &str, status: Link, firmware: Option<&str>) {
        let Some(held) = self.held.get_mut(table) else {
            return;
        };
        let status = match status {
            Link::Ok => "ok",
            Link::Missing => "missing",
            Link::Silent => "silent",
            Link::Fault => "fault",
        };
        let firmware = firmware.map(str::to_owned).or(held.firmware.clone());
        if held.status.as_deref() != Some(status) || held.firmware != firmware {
            held.status = Some(status.to_owned());
            held.firmware = firmware;
            self.tell();
        }
    }

    fn tell(&self) {
        let told = Told {
            node: self.node.clone(),
            ports: self.held.values().cloned().collect(),
        };
        let mut line = serde_json::to_string(&told).expect("text has a JSON form");
        line.push('\n');
        self.line.send_replace(line);
    }
}

/// Serves one after the other: a line fits the buffer of a socket, so that a client who does not read keeps nobody waiting for long.
async fn serve(listener: UnixListener, told: watch::Receiver<String>) {
    let mut closed = told.clone();
    let mut closed = std::pin::pin!(closed.wait_for(|_| false));
    loop {
        let accepted = tokio::select! {
            _ = &mut closed => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((mut client, _)) => {
                let line = told.borrow().clone();
                let wrote = timeout(MOST_WRITING, client.write_all(line.as_bytes())).await;
                if !matches!(wrote, Ok(Ok(()))) {
                    debug!("who asked for this node's ports did not hear the answer out");
                }
                drop(client);
                // Who asks without end shall not keep the machine busy.
                sleep(PACE).await;
            }
            Err(error) => {
                debug!("nobody can ask for this node's ports just now: {error}");
                sleep(MOST_WRITING).await;
            }
        }
    }
}

/// A node that runs on this machine, as it says itself. All text is fit for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    /// The process that listens, as the kernel says; unknown where it is in a container whose processes we do not see.
    pub pid: Option<u32>,
    pub told: Told,
}

impl fmt::Display for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "jadoube (pid {pid}, node {})", self.told.node),
            None => write!(f, "jadoube (node {})", self.told.node),
        }
    }
}

impl Daemon {
    /// The port of this device, if it has it.
    pub fn port(&self, is_it: impl Fn(&Held) -> bool) -> Option<&Held> {
        self.told.ports.iter().find(|held| is_it(held))
    }
}

/// Asks every node of this machine. Who does not answer properly, and at once, is left out.
pub async fn ask() -> Vec<Daemon> {
    // The kernel makes this file up; reading it waits for nothing.
    let table = File::open("/proc/net/unix").and_then(|file| {
        let mut table = Vec::new();
        file.take(MOST_TABLE).read_to_end(&mut table)?;
        Ok(table)
    });
    let table = table
        .inspect_err(|error| debug!("running daemons cannot be found: {error}"))
        .unwrap_or_default();
    let mut asking = JoinSet::new();
    for name in names(&String::from_utf8_lossy(&table)) {
        asking.spawn(async move {
            match timeout(MOST_ASKING, ask_one(&name)).await {
                Ok(Ok(daemon)) => Some(daemon),
                Ok(Err(error)) => {
                    debug!("{name} is no node: {error}");
                    None
                }
                Err(_) => {
                    debug!("{name} does not answer");
                    None
                }
            }
        });
    }
    let mut daemons: Vec<Daemon> = asking.join_all().await.into_iter().flatten().collect();
    daemons.sort_by(|a, b| (&a.told.node, a.pid).cmp(&(&b.told.node, b.pid)));
    daemons
}

async fn ask_one(name: &str) -> io::Result<Daemon> {
    let stream = UnixStream::connect(format!("\0{name}")).await?;
    let pid = stream.peer_cred()?.pid();
    let mut line = Vec::new();
    stream.take(MOST_LINE).read_to_end(&mut line).await?;
    let told: Told = serde_json::from_slice(&line)?;
    Ok(Daemon {
        // 0 is what the kernel says of a process that we cannot see.
        pid: pid
            .and_then(|pid| u32::try_from(pid).ok())
            .filter(|pid| *pid != 0),
        told: told.fit_for_a_line(),
    })
}

impl Told {
    fn fit_for_a_line(self) -> Told {
        let text = |text: String| one_line(&text, MOST_TEXT);
        let some = |some: Option<String>| some.map(text);
        let held = |held: Held| Held {
            port: text(held.port),
            // Never shown, only compared.
            device: held.device,
            table: text(held.table),
            status: some(held.status),
            family: some(held.family),
            serial: some(held.serial),
            short_serial: some(held.short_serial),
            firmware: some(held.firmware),
        };
        Told {
            node: text(self.node),
            ports: self.ports.into_iter().map(held).collect(),
        }
    }
}

/// The names of nodes in the text of `/proc/net/unix`: abstract ones, which it shows with an `@` before them, that are listened to.
fn names(table: &str) -> Vec<String> {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    table
        .lines()
        .filter_map(|line| {
            // Num, RefCount, Protocol, Flags, Type, St, Inode, Path; of the flags, __SO_ACCEPTCON is that of a listener.
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, _, _, flags, "0001", _, _, path] = fields[..] else {
                return None;
            };
            let name = path.strip_prefix('@')?;
            let rest = name.strip_prefix(NAME)?;
            let fits = rest.len() <= 40 && rest.chars().all(is_of_name);
            (flags == "00010000" && fits).then(|| name.to_owned())
        })
        .take(MOST_NAMES)
        .collect()
}

/// How the names of all desks begin.
const NAME: &str = "jadoube-";
/// Many more than a machine has nodes.
const MOST_NAMES: usize = 256;
/// Bytes of the kernel's table that are read, of an answer, and characters of any text in it.
const MOST_TABLE: u64 = 16 * 1024 * 1024;
const MOST_LINE: u64 = 128 * 1024;
const MOST_TEXT: usize = 80;
/// Until the whole answer is there.
const MOST_ASKING: Duration = Duration::from_secs(2);
const MOST_WRITING: Duration = Duration::from_secs(1);
/// Between two answers.
const PACE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn held(table: &str) -> Held {
        Held {
            port: "/dev/ttyACM0".into(),
            device: "/dev/ttyACM0".into(),
            table: table.into(),
            ..Held::default()
        }
    }

    /// Asks until the node says what is awaited.
    async fn told(node: &str, is_it: impl Fn(&Daemon) -> bool) -> Daemon {
        let asking = async {
            loop {
                let daemons = ask().await;
                let found = daemons
                    .into_iter()
                    .find(|d| d.told.node == node && is_it(d));
                if let Some(found) = found {
                    return found;
                }
            }
        };
        timeout(Duration::from_secs(20), asking).await.expect(node)
    }

    #[tokio::test]
    async fn a_node_tells_what_it_has() {
        let mut desk = Desk::open("desk-tells");
        desk.hold(held("12"));
        desk.hold(held("13"));
        desk.judge("12", Link::Silent, Some("3.10"));
        desk.judge("99", Link::Ok, None);
        desk.release("13");
        let daemon = told("desk-tells", |_| true).await;
        assert_eq!(daemon.pid, Some(std::process::id()));
        let [port] = &daemon.told.ports[..] else {
            panic!("{daemon:?}");
        };
        assert_eq!(port.status.as_deref(), Some("silent"));
        assert_eq!(port.firmware.as_deref(), Some("3.10"));
        drop(desk);
        let gone = async {
            while ask().await.iter().any(|d| d.told.node == "desk-tells") {
                sleep(PACE).await;
            }
        };
        timeout(Duration::from_secs(20), gone)
            .await
            .expect("it closes");
    }

    #[tokio::test]
    async fn many_ports_fit_and_who_does_not_read_keeps_nobody_waiting() {
        let mut desk = Desk::open("desk-many");
        for table in 0..300 {
            desk.hold(held(&format!("{table:a>30}")));
        }
        let table = std::fs::read("/proc/net/unix").unwrap();
        let names = names(&String::from_utf8_lossy(&table));
        let own = format!("{NAME}{}-", std::process::id());
        let mut idle = Vec::new();
        for name in names.iter().filter(|name| name.starts_with(&own)) {
            for _ in 0..20 {
                idle.push(UnixStream::connect(format!("\0{name}")).await.unwrap());
            }
        }
        assert!(!idle.is_empty());
        let daemon = told("desk-many", |_| true).await;
        assert_eq!(daemon.told.ports.len(), 300);
    }

    #[tokio::test]
    async fn liars_are_left_out_and_keep_nobody_waiting_for_long() {
        let listen = |name: &str| {
            let name = format!("\0{NAME}{}-liar-{name}", std::process::id());
            UnixListener::bind(name).unwrap()
        };
        // One never accepts, one never answers, one never ends, one talks nonsense, one draws on the screen.
        let _deaf = listen("deaf");
        let answer = |listener: UnixListener, text: Vec<u8>, again: bool| {
            tokio::spawn(async move {
                while let Ok((mut client, _)) = listener.accept().await {
                    while client.write_all(&text).await.is_ok() && again {
                        tokio::task::yield_now().await;
                    }
                    if text.is_empty() {
                        std::future::pending::<()>().await;
                    }
                }
            })
        };
        let escape = r#"{"node":"\u001b[2Jliar","ports":[],"more":1}"#;
        let tasks = [
            answer(listen("mute"), Vec::new(), false),
            answer(listen("endless"), b"[[[[[[[[".to_vec(), true),
            answer(listen("nonsense"), b"\xff{\"node\":1}".to_vec(), false),
            answer(listen("escape"), escape.into(), false),
        ];
        let begin = std::time::Instant::now();
        let daemons = ask().await;
        assert!(begin.elapsed() < MOST_ASKING * 5);
        let ours = Some(std::process::id());
        let liars: Vec<&str> = daemons
            .iter()
            .filter(|daemon| daemon.pid == ours)
            .map(|daemon| daemon.told.node.as_str())
            .filter(|node| !node.starts_with("desk-"))
            .collect();
        assert_eq!(liars, ["\\u{1b}[2Jliar"]);
        tasks.iter().for_each(|task| task.abort());
    }

    #[test]
    fn only_desks_that_are_open_are_named() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000: 00000002 00000000 00010000 0001 01 123 @jadoube-812-0a1b2c3d\n\
            0000: 00000003 00000000 00000000 0001 03 124 @jadoube-813-0a1b2c3d\n\
            0000: 00000002 00000000 00010000 0005 01 125 @jadoube-814-0a1b2c3d\n\
            0000: 00000002 00000000 00010000 0001 01 126 /run/jadoube-815\n\
            0000: 00000002 00000000 00010000 0001 01 127 @jadoube-../etc\n\
            0000: 00000002 00000000 00010000 0001 01 128 @jadoube-8 16\n\
            0000: 00000002 00000000 00010000 0001 01 129 @other\n\
            0000: 00000002 00000000 00010000 0001 01 130\n\
            \n";
        assert_eq!(names(table), ["jadoube-812-0a1b2c3d"]);
        assert_eq!(names(&table.repeat(2000)).len(), MOST_NAMES);
    }
}
