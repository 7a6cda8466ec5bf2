//! A real broker as a child process, on a free port of the loopback, and a client that writes down what it reads.
#![allow(dead_code)]

#[path = "skip.rs"]
mod skip;
#[path = "wait.rs"]
pub mod wait;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::Packet;
use rumqttc::v5::{AsyncClient, Event, MqttOptions};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use wait::until_blocking;

/// What any test waits at most.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// Debian's broker. Ends with the value.
pub struct Mosquitto {
    pub port: u16,
    dir: TempDir,
    child: Option<Child>,
}

impl Mosquitto {
    /// A broker that keeps everything at once and lets everyone in. None, with a line that says so, where it is not
    /// installed.
    pub fn start() -> Option<Self> {
        Self::with("allow_anonymous true\n")
    }

    /// The same with other lines about who may do what.
    pub fn with(lines: &str) -> Option<Self> {
        let mut broker = Self::stopped(lines)?;
        broker.restart();
        Some(broker)
    }

    /// One that does not run yet.
    pub fn stopped(lines: &str) -> Option<Self> {
        if binary().is_none() {
            skip::skipped("no mosquitto");
            return None;
        }
        let dir = tempfile::tempdir().expect("a temporary folder can be made");
        let broker = Mosquitto {
            port: free_port(),
            dir,
            child: None,
        };
        let folder = broker.dir.path().display();
        // As root the broker becomes another user, who could not write to the folder.
        let text = format!(
            "listener {port} 127.0.0.1\n\
             user root\n\
             persistence true\n\
             persistence_location {folder}/\n\
             autosave_interval 1\n\
             autosave_on_changes true\n\
             set_tcp_nodelay true\n\
             log_dest file {folder}/log\n\
             log_type all\n\
             {lines}",
            port = broker.port
        );
        fs::write(broker.dir.path().join("conf"), text).expect("the folder is writable");
        Some(broker)
    }

    /// Writes a file beside the configuration, which may name it as `path`.
    pub fn file(&self, name: &str, text: &str) {
        fs::write(self.dir.path().join(name), text).expect("the folder is writable");
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Adds lines to the configuration; they count from the next start.
    pub fn configure(&self, lines: &str) {
        let path = self.dir.path().join("conf");
        let text = fs::read_to_string(&path).expect("it was written");
        fs::write(path, format!("{text}\n{lines}\n")).expect("the folder is writable");
    }

    pub fn restart(&mut self) {
        self.kill();
        let child = Command::new(binary().expect("looked up before"))
            .arg("-c")
            .arg(self.dir.path().join("conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mosquitto starts");
        self.child = Some(child);
        let port = self.port;
        until_blocking("the broker", PATIENCE, || {
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
    }

    /// As a power cut: nothing is said, nothing more is saved.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Alive, but silent.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("it runs").id().to_string();
        let status = Command::new("kill").args([name, &id]).status();
        assert!(status.expect("kill starts").success());
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One message as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub topic: String,
    pub text: String,
    pub retain: bool,
}

/// A client that writes down what it reads, in one session for as long as it lives.
pub struct Reader {
    client: AsyncClient,
    read: watch::Receiver<Vec<Read>>,
    task: JoinHandle<()>,
}

impl Reader {
    /// Returns when the broker has confirmed the subscription.
    pub async fn subscribe(port: u16, filter: &str) -> Self {
        let id = format!("reader-{}", fastrand::u64(..));
        let mut options = MqttOptions::new(id, "127.0.0.1", port);
        options.set_clean_start(false);
        options.set_session_expiry_interval(Some(3600));
        options.set_max_packet_size(Some(512 * 1024));
        let (client, mut eventloop) = AsyncClient::new(options, 1000);
        client
            .try_subscribe(filter, QoS::AtLeastOnce)
            .expect("the channel is empty");
        let (write, read) = watch::channel(Vec::new());
        let (ready_in, mut ready) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut pace = tokio::time::interval(Duration::from_millis(20));
            loop {
                match eventloop.poll().await {
                    Ok(Event::Incoming(Packet::Publish(publish))) => {
                        let message = Read {
                            topic: String::from_utf8_lossy(&publish.topic).into_owned(),
                            text: String::from_utf8_lossy(&publish.payload).into_owned(),
                            retain: publish.retain,
                        };
                        write.send_modify(|all: &mut Vec<Read>| all.push(message));
                    }
                    Ok(Event::Incoming(Packet::SubAck(_))) => {
                        ready_in.send_replace(true);
                    }
                    Ok(_) => {}
                    // The broker is away: this is a pace, nothing waits for it.
                    Err(_) => drop(pace.tick().await),
                }
            }
        });
        let subscribed = ready.wait_for(|ready| *ready);
        let subscribed = tokio::time::timeout(PATIENCE, subscribed).await;
        subscribed
            .expect("the broker answers")
            .expect("the task runs");
        Reader { client, read, task }
    }

    /// What was read so far.
    pub fn all(&self) -> Vec<Read> {
        self.read.borrow().clone()
    }

    /// The texts read under one topic.
    pub fn texts(&self, topic: &str) -> Vec<String> {
        let all = self.read.borrow();
        let those = all.iter().filter(|read| read.topic == topic);
        those.map(|read| read.text.clone()).collect()
    }

    /// Waits until what was read satisfies the condition.
    pub async fn until(&self, what: &str, condition: impl FnMut(&Vec<Read>) -> bool) {
        self.until_within(PATIENCE, what, condition).await;
    }

    /// The same for what may take longer, or must not.
    pub async fn until_within(
        &self,
        most: Duration,
        what: &str,
        condition: impl FnMut(&Vec<Read>) -> bool,
    ) {
        let mut read = self.read.clone();
        let met = tokio::time::timeout(most, read.wait_for(condition)).await;
        let met = met.is_ok_and(|met| met.is_ok());
        let all = self.all();
        let last = &all[all.len().saturating_sub(10)..];
        assert!(met, "never: {what}; {} read, the last {last:#?}", all.len());
    }

    pub fn publish(&self, topic: &str, text: &str, retain: bool) {
        let taken = self
            .client
            .try_publish(topic, QoS::AtLeastOnce, retain, text.to_owned());
        taken.expect("there is room in the channel");
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A port of the loopback that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

fn binary() -> Option<&'static str> {
    let places = ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto"];
    places.into_iter().find(|path| Path::new(path).exists())
}
