//! One table's board: found, identified, kept open, and found again.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{Instant as Deadline, MissedTickBehavior, interval, sleep, sleep_until};

use super::finder::{Finder, Found, Membership, Offer};
use super::{Identity, Port, PortSpec, Refusal, Settings};
use crate::wire::Family;

/// The writing end of a link. The link ends when its events have no reader any more, or at shutdown; not with its handles.
#[derive(Clone, Debug)]
pub struct LinkHandle {
    /// Commands to the board, each a whole one: a pause of [`Settings::spacing`] is kept between two of them. What is sent while no
    /// board is there, or before the last [`LinkEvent::Opened`], is dropped: a board that comes back has forgotten it all.
    pub write: mpsc::Sender<Vec<u8>>,
    reopen: mpsc::Sender<()>,
}

impl LinkHandle {
    /// Closes the port and begins anew: for a board that has stopped answering though its port is open (case A6).
    pub fn reopen(&self) {
        // Full means that somebody else has asked already.
        let _ = self.reopen.try_send(());
    }
}

/// What happens on a link. `Opened` comes first; `Bytes` and then one `Lost` follow it; `Waiting` comes between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The board is there. What it said while it was asked follows as `Bytes`.
    Opened {
        /// The port.
        path: PathBuf,
        /// Who answered. Nothing where the port was named in the configuration and something unknown speaks there.
        identity: Option<Identity>,
    },
    /// Bytes from the board, as they came.
    Bytes(Vec<u8>, Instant),
    /// The board is gone; the link looks for it.
    Lost {
        /// One line, for the trace.
        reason: String,
    },
    /// No board yet. Said once for each cause.
    Waiting {
        /// One line that names the thing at fault.
        reason: String,
        /// What to do, as a sentence.
        advice: String,
    },
}

/// Starts a link. It ends when `shutdown` does. What the board speaks is found out where no `family` is given.
pub fn spawn(
    spec: PortSpec,
    family: Option<Family>,
    finder: &Finder,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> (LinkHandle, mpsc::Receiver<LinkEvent>) {
    let (write, commands) = mpsc::channel(64);
    let (events, inbox) = mpsc::channel(256);
    let (reopen, reopenings) = mpsc::channel(1);
    // Joined before this returns: tables that are started one after the other must not take each other's boards.
    let membership = finder.join(spec, family);
    let settings = finder.settings().clone();
    let mut link = Link {
        membership,
        settings,
        commands,
        events,
        reopenings,
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = shutdown => {}
            // Ends with an error when nobody listens any more.
            _ = link.run() => {}
        }
    });
    (LinkHandle { write, reopen }, inbox)
}

struct Link {
    membership: Membership,
    settings: Settings,
    commands: mpsc::Receiver<Vec<u8>>,
    events: mpsc::Sender<LinkEvent>,
    reopenings: mpsc::Receiver<()>,
}

/// The reader of the events went away.
struct Unheard;

impl Link {
    /// Dropping this future at any point closes the port and leaves the finder.
    async fn run(&mut self) -> Result<(), Unheard> {
        let mut pause = self.settings.retry_min;
        loop {
            let found = self.find().await?;
            let opened = Instant::now();
            while self.commands.try_recv().is_ok() || self.reopenings.try_recv().is_ok() {}
            self.say(LinkEvent::Opened {
                path: found.path,
                identity: found.identity,
            })
            .await?;
            for (bytes, at) in found.heard {
                self.say(LinkEvent::Bytes(bytes, at)).await?;
            }
            let reason = self.stream(found.port).await?;
            self.say(LinkEvent::Lost { reason }).await?;
            // A contact that comes and goes must not be asked all day.
            if opened.elapsed() >= self.settings.steady {
                pause = self.settings.retry_min;
            } else {
                self.idle(pause).await?;
                pause = (pause * 2).min(self.settings.retry_named);
            }
        }
    }

    /// Waits for the finder, saying what is in the way.
    async fn find(&mut self) -> Result<Found, Unheard> {
        let mut offers = self.membership.want();
        let mut said: Option<Refusal> = None;
        let mut listening = true;
        loop {
            tokio::select! {
                offer = offers.recv() => match offer {
                    Some(Offer::Found(found)) => return Ok(*found),
                    Some(Offer::Waiting(refusal)) => {
                        if said.as_ref() != Some(&refusal) {
                            said = Some(refusal.clone());
                            self.say(LinkEvent::Waiting { reason: refusal.reason, advice: refusal.advice }).await?;
                        }
                    }
                    // The finder had the board but could not hand it over.
                    None => offers = self.membership.want(),
                },
                command = self.commands.recv(), if listening => listening = command.is_some(),
                _ = self.events.closed() => return Err(Unheard),
            }
        }
    }

    /// Carries bytes both ways until the board is gone; says why it is.
    async fn stream(&mut self, mut port: Port) -> Result<String, Unheard> {
        let node = port.node().to_owned();
        let mut buffer = vec![0; 4096];
        let mut queue: VecDeque<Vec<u8>> = VecDeque::new();
        let mut listening = true;
        // The last question of the finder was at least one spacing ago.
        let mut free_at = Deadline::now();
        let mut presence = interval(self.settings.poll);
        presence.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                read = port.read(&mut buffer) => match read {
                    Ok(length) => self.say(LinkEvent::Bytes(buffer[..length].to_vec(), Instant::now())).await?,
                    Err(error) => return Ok(error.to_string()),
                },
                command = self.commands.recv(), if listening && queue.is_empty() => match command {
                    Some(command) => queue.push_back(command),
                    None => listening = false,
                },
                _ = sleep_until(free_at), if !queue.is_empty() => {
                    let Some(command) = queue.pop_front() else { continue };
                    if let Err(error) = port.write(&command, self.settings.write_timeout).await {
                        return Ok(error.to_string());
                    }
                    free_at = Deadline::now() + self.settings.spacing;
                }
                // Some drivers keep a reader waiting after the device is gone; its node is not there for long.
                _ = presence.tick() => if !node.exists() {
                    return Ok("unplugged".to_owned());
                },
                Some(()) = self.reopenings.recv() => return Ok("closed to begin anew".to_owned()),
                _ = self.events.closed() => return Err(Unheard),
            }
        }
    }

    /// Lets time pass. Commands for a board that is gone fall on the floor.
    async fn idle(&mut self, pause: Duration) -> Result<(), Unheard> {
        let mut end = pin!(sleep(pause));
        let mut listening = true;
        loop {
            tokio::select! {
                _ = &mut end => return Ok(()),
                command = self.commands.recv(), if listening => listening = command.is_some(),
                _ = self.events.closed() => return Err(Unheard),
            }
        }
    }

    async fn say(&self, event: LinkEvent) -> Result<(), Unheard> {
        self.events.send(event).await.map_err(|_| Unheard)
    }
}
