//! `jadoube demo`: everything on one machine, with nothing installed.
//!
//! Virtual boards on ptys → the real node, with its serial drivers, sessions and MQTT client → an embedded broker → a reader like
//! any other, which tells people what it hears, and with `--once` compares that with what was really played.

mod broker;
mod desk;
mod judge;
mod narrator;
mod news;
mod programme;
#[cfg(test)]
mod rehearsal;

use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout, timeout_at};

use super::simulate::{self, Serving, VirtualPort};
use super::stop::Stop;
use super::{Failure, Lines, games};
use crate::Millis;
use crate::config::{Config, Device, Name, Table};
use crate::daemon::mqtt::{self, Connection, Link};
use crate::daemon::node::{self, Parts};
use crate::daemon::serial::Roots;
use crate::outbox::MemoryOutbox;
use crate::sim::afternoon;
use crate::sim::is_simulated;
use crate::sim::player::{self, Player, TableOptions};
use crate::wire::Family;
use broker::Ports;
use desk::Desk;
use judge::{Judge, Truth};
use narrator::Narrator;
use news::News;
use programme::{Choice, ProgrammeError, TableProgramme};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many boards play, up to 100; 3 unless given, and all 8 of the afternoon
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub boards: Option<u16>,
    /// The make of the boards; unless given, boards of both makes play the built-in games, and dgt boards those of a file. The
    /// afternoon has its own
    #[arg(long, value_name = "FAMILY", value_parser = super::families(is_simulated))]
    pub board: Option<Family>,
    /// What is shown: "incidents" beside the moves of the built-in games, or an "afternoon" in a hall: 8 boards, 3 rounds, and all
    /// that happens between them, in some 4 minutes. Not with --pgn
    #[arg(long, value_name = "NAME", conflicts_with = "pgn")]
    pub scene: Option<String>,
    /// How fast the players think, up to 1000: 1 is the usual, 2 twice as fast; everything else takes its real time
    #[arg(long, value_name = "X", value_parser = super::speed)]
    pub speed: Option<f64>,
    /// Play the games of this file, without incidents
    #[arg(long, value_name = "FILE")]
    pub pgn: Option<PathBuf>,
    /// End after the games, and fail if a record differs from the game played
    #[arg(long)]
    pub once: bool,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let tables = tables(&args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let result = runtime.block_on(show(tables, args.once));
    // Nothing that is still blocked somewhere is worth waiting for; the broker's threads end with the process.
    runtime.shutdown_background();
    result
}

/// What the arguments ask for.
fn tables(args: &Args) -> Result<Vec<TableProgramme>, Failure> {
    let speed = args.speed.unwrap_or(1.0);
    match args.scene.as_deref() {
        None | Some(INCIDENTS) => {}
        Some(AFTERNOON) => {
            let most = afternoon::TABLES;
            let boards = args.boards.map_or(most, usize::from);
            if boards > most {
                return Err(Failure::usage(format!(
                    "the afternoon has {most} boards, not {boards}"
                ))
                .advise("Say --boards with a smaller number, or leave it out."));
            }
            if args.board.is_some() {
                return Err(Failure::usage("the afternoon has boards of several makes")
                    .advise("Leave --board out."));
            }
            return Ok(programme::afternoon(boards, AFTERNOON_SEED, speed));
        }
        Some(scene) => {
            return Err(
                Failure::usage(format!("there is no scene \"{scene}\"")).advise(format!(
                    "Leave --scene out, or say --scene {INCIDENTS} or --scene {AFTERNOON}."
                )),
            );
        }
    }
    let told = |failure: Failure| match &args.pgn {
        Some(path) => failure.context(path.display().to_string()),
        None => failure,
    };
    let choice = match &args.pgn {
        Some(path) => games::load(path)
            .and_then(|games| {
                programme::from_the_array(games).map_err(|error| told(refused(error)))
            })
            .map(Choice::Games)?,
        None => Choice::BuiltIn {
            rounds: if args.once { 1 } else { ROUNDS },
        },
    };
    let boards = args.boards.map_or(BOARDS, usize::from);
    programme::programme(&choice, boards, args.board, speed).map_err(|error| told(refused(error)))
}

/// Where something of our own has failed.
const LOOK_CLOSER: &str = "Try again with JADOUBE_LOG=info, and report what it says.";

fn refused(error: ProgrammeError) -> Failure {
    let advice = match &error {
        ProgrammeError::Start(_) => {
            Some("Take it out: the tables begin a game when the men stand in their array.")
        }
        _ => None,
    };
    let failure = Failure::failed(error);
    match advice {
        Some(advice) => failure.advise(advice),
        None => failure,
    }
}

/// Plays, tells, and judges.
async fn show(tables: Vec<TableProgramme>, once: bool) -> Result<(), Failure> {
    let mut stop_signal = Stop::new()?;
    let ports =
        broker::start().map_err(|error| Failure::failed(error).context("the embedded broker"))?;
    let Connection {
        mqtt: reader,
        mut incoming,
        ..
    } = mqtt::connect(reader_settings(ports), MemoryOutbox::default())?;
    let mut link = reader.status();
    let connected = timeout(
        BROKER_WAIT,
        link.wait_for(|status| status.link == Link::Connected),
    );
    let connected = tokio::select! {
        connected = connected => matches!(connected, Ok(Ok(_))),
        () = stop_signal.wanted() => return Ok(()),
    };
    if !connected {
        return Err(Failure::failed(format!(
            "the embedded broker does not answer on port {}",
            ports.v5
        ))
        .advise("Perhaps another program took the port just then; try again."));
    }

    let desk = Desk::new(reader.clone(), reader_settings(ports).prefix());
    let mut state = StateDir::new()?;
    let epoch = Instant::now();
    let (stop, stopped) = watch::channel(());
    let mut boards = Vec::new();
    let mut devices = Vec::new();
    let (happens, mut happened) = mpsc::unbounded_channel();
    for (index, table) in tables.iter().enumerate() {
        let mut port = VirtualPort::open().map_err(|error| {
            Failure::failed(error)
                .context("no pseudo-terminal to be had")
                .advise(
                    "See whether /dev/pts is mounted, and /proc/sys/kernel/pty/nr below its max, or say --boards with a \
                     smaller number.",
                )
        })?;
        let mut device = PathBuf::from(port.path());
        if table.boards.len() > 1 {
            // Where a board is put on another table, what is plugged in there gets a port of a new name.
            device = state.path().join(format!("board-{}", table.name));
            port = port.with_link(&device)?;
        }
        devices.push((table.name.clone(), device));
        let board = Board::new(table, port)?;
        let happens = happens.clone();
        let tell = move |event| {
            // Nobody listens any more once the demo is over.
            let _ = happens.send((index, event));
        };
        boards.push(tokio::spawn(board.play(epoch, stopped.clone(), tell)));
        if table.paired {
            desk.pair(&table.name, 1)?;
        }
    }
    let mut lines = Lines::default();
    announce(&mut lines, ports, &tables)?;
    let config = config(ports, &devices, state.path())?;
    let parts = Parts {
        // Not a single port of this machine is looked at.
        roots: Roots {
            sys: state.path().join("no-sys"),
            dev: state.path().join("no-dev"),
        },
        ..Parts::default()
    };
    let mut node = tokio::spawn(node::run(config, parts, until_dropped(stopped)));

    let mut narrator = Narrator::new(colours(), tables.iter().map(|table| table.name.as_str()));
    let mut judge = Judge::default();
    // Whether more is to come does not depend on when the scripts began.
    let unplaced = truths(&tables, &[]);
    let boards = all(boards);
    let limit = epoch + AROUND + length(&tables);
    let mut complete: Option<Instant> = None;
    let interrupted = loop {
        let settled = complete.map_or(limit, |since| limit.min(since + AFTERWARDS));
        tokio::select! {
            biased;
            () = stop_signal.wanted() => break true,
            ended = &mut node => {
                ended??;
                return Err(Failure::failed("the node ended by itself").advise(LOOK_CLOSER));
            }
            message = incoming.recv() => {
                let Some(message) = message else {
                    return Err(Failure::failed("the connection to the embedded broker ended").advise(LOOK_CLOSER));
                };
                let now = millis(epoch.elapsed());
                let Some(below) = reader.below(&message.topic) else { continue };
                let Some(news) = News::read(below, &message.payload) else { continue };
                if once {
                    judge.hear(now, &news);
                    complete = judge
                        .is_complete(&unplaced)
                        .then(|| complete.unwrap_or_else(Instant::now));
                }
                if let Some(line) = narrator.line(&news) {
                    lines.print(line)?;
                }
            }
            Some((index, event)) = happened.recv() => {
                let table = &tables[index].name;
                match event {
                    player::Event::Paired { round } => desk.pair(table, round)?,
                    player::Event::Result { result } => desk.enter_result(table, result)?,
                    player::Event::Unplugged | player::Event::Plugged => {}
                }
            }
            () = sleep_until(settled.into()) => break false,
        }
        if lines.is_reader_gone && !once {
            break true;
        }
    };

    drop(stop);
    let deadline = tokio::time::Instant::now() + FAREWELL;
    let began = timeout_at(deadline, boards).await.unwrap_or_default();
    match timeout_at(deadline, &mut node).await {
        Ok(ended) => ended??,
        Err(_) => node.abort(),
    }
    reader.shutdown(READER_FAREWELL).await;
    if interrupted || !once {
        return Ok(());
    }

    let verdict = judge.verdict(&truths(&tables, &began));
    for difference in &verdict.differences {
        lines.print(difference)?;
    }
    let (equal, games) = (verdict.equal, verdict.games);
    lines.print(match games {
        1 => format!("{equal} of 1 record equals the game played"),
        _ => format!("{equal} of {games} records equal the games played"),
    })?;
    if verdict.differences.is_empty() {
        return Ok(());
    }
    state.keep();
    Err(Failure::failed("not all went as it should").advise(format!(
        "The traces of the boards are in {}; please report them.",
        state.path().display()
    )))
}

/// A virtual board at its port.
struct Board {
    player: Player,
    port: VirtualPort,
}

impl Board {
    fn new(table: &TableProgramme, port: VirtualPort) -> Result<Board, Failure> {
        let options = TableOptions {
            control: Some(programme::control()),
            lead_in_ms: LEAD_IN_MS,
            rotated: table.rotated,
            ..TableOptions::of(table.family)
        };
        Ok(Board {
            player: simulate::at_table(table.script.clone(), &table.boards, &options)?,
            port,
        })
    }

    /// Plays, and goes on answering, until it is stopped. Says when its script began.
    async fn play(
        mut self,
        epoch: Instant,
        mut stopped: watch::Receiver<()>,
        mut tell: impl FnMut(player::Event),
    ) -> Option<Millis> {
        let start = millis(epoch.elapsed());
        let serving = Serving {
            speed: 1.0,
            linger: None,
        };
        tokio::select! {
            served = self.port.serve_telling(&mut self.player, &serving, |_, event| tell(event)) => {
                if let Err(error) = served {
                    tracing::error!("{}: {error}", self.port.path());
                }
            }
            _ = stopped.changed() => {}
        }
        Some(start + self.player.began_ms()?)
    }
}

/// A folder for what the node keeps, gone with the demo.
#[derive(Debug)]
struct StateDir {
    path: PathBuf,
    keep: bool,
}

impl StateDir {
    fn new() -> Result<StateDir, Failure> {
        let path = std::env::temp_dir().join(format!("jadoube-demo-{}", std::process::id()));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| {
                Failure::failed(error)
                    .context(path.display().to_string())
                    .advise("Name a folder that can be written with TMPDIR.")
            })?;
        Ok(StateDir { path, keep: false })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn announce(lines: &mut Lines, ports: Ports, tables: &[TableProgramme]) -> Result<(), Failure> {
    let Ports { v5, v4 } = ports;
    lines.print(format_args!(
        "broker     mqtt://127.0.0.1:{v5} (MQTT 5), mqtt://127.0.0.1:{v4} (MQTT 3.1.1)"
    ))?;
    lines.print(format_args!(
        "subscribe  mosquitto_sub -h 127.0.0.1 -p {v4} -v -t 'jadoube/v1/{EVENT}/edge/#'"
    ))?;
    for table in tables {
        lines.print(format_args!(
            "table {}    {}",
            table.name,
            table.announced.join("; ")
        ))?;
    }
    lines.print("a line      table, move number, move, its player's clock after the press")?;
    lines.print("")
}

fn reader_settings(ports: Ports) -> mqtt::Settings {
    mqtt::Settings {
        subscriptions: vec!["edge/#".to_owned()],
        ..mqtt::Settings::reader("127.0.0.1", ports.v5, EVENT, "narrator")
    }
}

/// The configuration of a node with these tables, as its file would say it.
fn config(ports: Ports, devices: &[(String, PathBuf)], state: &Path) -> Result<Config, Failure> {
    let broker = format!("mqtt://127.0.0.1:{}", ports.v5);
    let mut config = Config::from_args(None, None, Some(&broker))?;
    let name = |text: &str| text.parse::<Name>().map_err(Failure::failed);
    config.event = name(EVENT)?;
    config.node = name(NODE)?;
    config.state_dir = state.to_owned();
    config.defaults.time_control = programme::CONTROL.parse().ok();
    config.tables = devices
        .iter()
        .map(|(table, path)| {
            Ok(Table {
                name: name(table)?,
                device: Device::Port(path.clone()),
                settings: config.defaults.clone(),
            })
        })
        .collect::<Result<_, Failure>>()?;
    Ok(config)
}

/// What was really played; `began` tells when.
fn truths<'a>(tables: &'a [TableProgramme], began: &[Option<Millis>]) -> Vec<Truth<'a>> {
    tables
        .iter()
        .enumerate()
        .map(|(index, table)| {
            let began = began.get(index).copied().flatten().unwrap_or_default();
            Truth::new(&table.name, &table.script, began)
        })
        .collect()
}

/// Waits until the sender of `stopped` is dropped.
async fn until_dropped(mut stopped: watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}

/// How long the longest programme takes.
fn length(tables: &[TableProgramme]) -> Duration {
    let last = |table: &TableProgramme| table.script.actions.last().map(|action| action.at_ms);
    Duration::from_millis(LEAD_IN_MS + tables.iter().filter_map(last).max().unwrap_or_default())
}

/// When each board's script began; nothing for one that never did.
async fn all(boards: Vec<JoinHandle<Option<Millis>>>) -> Vec<Option<Millis>> {
    let mut began = Vec::new();
    for board in boards {
        began.push(board.await.ok().flatten());
    }
    began
}

fn colours() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}

/// Levels of the topics.
const EVENT: &str = "demo";
const NODE: &str = "demo";

/// The scenes: what happens in the built-in games, and in a hall.
const INCIDENTS: &str = "incidents";
const AFTERNOON: &str = "afternoon";

/// So many boards play unless somebody says otherwise.
const BOARDS: usize = 3;

/// Players who are done in time.
const AFTERNOON_SEED: u64 = 17;

/// Without `--once` it plays on and on; so many rounds take longer than anybody watches, some eight hours.
const ROUNDS: usize = 300;

/// The array has to stand for two seconds before the first move.
const LEAD_IN_MS: Millis = 3_500;

/// The broker starts in a moment, but on a busy machine a moment may be long.
const BROKER_WAIT: Duration = Duration::from_secs(20);

/// What the longest programme may take beyond itself: the boards are looked for first, and after the last game an array has to stand
/// for 10 s to count as a new one.
const AROUND: Duration = Duration::from_secs(30);

/// Once all is as it should be: what should not come has this long to come.
const AFTERWARDS: Duration = Duration::from_secs(3);

/// Together below two seconds, which is how long Ctrl-C may take.
const FAREWELL: Duration = Duration::from_millis(1_300);
const READER_FAREWELL: Duration = Duration::from_millis(300);
