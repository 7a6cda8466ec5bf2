//! Files that follow the games: a trace of each, and the PGN of each that is closed.
//!
//! A card that is dying or full may keep a writer waiting for seconds, and no board may wait for that: one thread of its own
//! writes, and what it cannot take any more is given up. A failure is said once, and the daemon goes on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::{error, warn};

use super::serial::Refusal;
use crate::Millis;
use crate::board;
use crate::clock::control::TimeControl;
use crate::game::{Arming, Game};
use crate::laws::position::Position;
use crate::laws::ruleset::{Ruleset, Variant};
use crate::trace::{Event, Header, Writer};
use crate::wire::Family;

/// The way to the writing thread.
#[derive(Debug)]
pub struct Files {
    jobs: Option<SyncSender<Job>>,
    ended: oneshot::Receiver<()>,
    is_full: bool,
}

impl Files {
    /// Starts the thread. Folders below `state_dir` are made when they are needed.
    pub fn new(state_dir: &Path) -> io::Result<Files> {
        let (jobs, inbox) = sync_channel(JOBS);
        let (end, ended) = oneshot::channel();
        let mut desk = Desk {
            state_dir: state_dir.to_owned(),
            traces: BTreeMap::new(),
            pgn_failed: false,
            written: BTreeSet::new(),
            trace_failed: false,
        };
        std::thread::Builder::new()
            .name("files".into())
            .spawn(move || {
                desk.run(&inbox);
                // Nobody waits any more where the daemon was in a hurry.
                let _ = end.send(());
            })?;
        Ok(Files {
            jobs: Some(jobs),
            ended,
            is_full: false,
        })
    }

    /// Keeps the PGN of a closed game as `pgn/{game}.pgn`, in place of what this run has kept there; an earlier run's is moved aside.
    pub fn keep_pgn(&mut self, game: &str, text: &str) {
        self.send(Job::Pgn {
            game: game.to_owned(),
            text: text.to_owned(),
        });
    }

    /// Ends the thread once it has written everything, or after a while without waiting for it.
    pub async fn finish(mut self, within: Duration) {
        self.jobs = None;
        if tokio::time::timeout(within, &mut self.ended).await.is_err() {
            warn!("the last lines of traces and PGN files may not have been written");
        }
    }

    fn send(&mut self, job: Job) {
        let Some(jobs) = &self.jobs else { return };
        match jobs.try_send(job) {
            Ok(()) => self.is_full = false,
            Err(TrySendError::Full(_)) if self.is_full => {}
            Err(TrySendError::Full(_)) => {
                self.is_full = true;
                error!(
                    "files are written too slowly and lines of traces are lost: look at the disk under state_dir"
                );
            }
            // The thread ended before us only if it panicked, which is in the log.
            Err(TrySendError::Disconnected(_)) => self.jobs = None,
        }
    }
}

/// Tries to write where the record will be, and leaves no trace. What is not there must be possible to make; says whether it is
/// there.
pub fn try_folder(dir: &Path) -> Result<bool, Refusal> {
    let shown = dir.display();
    let existing = dir
        .ancestors()
        .find(|folder| folder.exists())
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let probe = existing.join(format!(".jadoube-check-{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&probe)
        .and_then(|mut file| file.write_all(b"check"));
    // Made by the line above, so there is nothing else to lose; if it was not made, this fails, which is as well.
    let _ = fs::remove_file(&probe);
    let existing_shown = existing.display();
    let (reason, advice) = match written {
        Ok(()) => return Ok(existing == dir),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => (
            format!("no permission to write to {existing_shown}"),
            format!(
                "Let the user that runs jadoube own {shown}, or set state_dir to another folder."
            ),
        ),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => (
            format!("{existing_shown} is not a folder"),
            "Set state_dir to a folder.".to_owned(),
        ),
        Err(error) => (
            format!("{existing_shown} cannot be written: {error}"),
            "Make room on the disk, or set state_dir to another folder.".to_owned(),
        ),
    };
    Err(Refusal { reason, advice })
}

/// One table's traces: a file a game, which begins with what the board last said of all its squares.
#[derive(Debug)]
pub struct Tracing {
    table: String,
    /// What asks the board for all its squares.
    question: Option<Vec<u8>>,
    /// How many bytes are kept that came before a game.
    most_before: usize,
    header: Header,
    /// What came since the last dump but one was asked for, while no game is open.
    before: VecDeque<(Millis, Event)>,
    before_bytes: usize,
    /// The game whose file is open, and the time at which it begins.
    open: Option<(String, Millis)>,
}

impl Tracing {
    pub fn new(table: &str, header: Header) -> Tracing {
        let mut tracing = Tracing {
            table: table.to_owned(),
            question: None,
            most_before: MOST_BEFORE,
            header,
            before: VecDeque::new(),
            before_bytes: 0,
            open: None,
        };
        tracing.speak(tracing.header.board);
        tracing
    }

    /// A board of this family is plugged in from now on; what another one said is none of its.
    pub fn family(&mut self, family: Family) {
        if self.header.board != family {
            self.header.board = family;
            self.before.clear();
            self.before_bytes = 0;
            self.speak(family);
        }
    }

    fn speak(&mut self, family: Family) {
        let dialect = board::dialect(family);
        let dialect = dialect.as_ref();
        self.question = dialect.and_then(|dialect| dialect.ask_squares());
        self.most_before = match dialect.and_then(|dialect| dialect.silent_after()) {
            Some(_) => MOST_BEFORE_UNASKED,
            None => MOST_BEFORE,
        };
    }

    /// Takes an event down, for the open game and for a next one.
    pub fn event(&mut self, files: &mut Files, at: Millis, event: Event) {
        if let Some((_, begin)) = &self.open {
            files.send(Job::Line {
                table: self.table.clone(),
                at: at.saturating_sub(*begin),
                event: event.clone(),
            });
        }
        if self.is_question(&event) {
            self.forget_before_last_dump();
        }
        self.before_bytes += size(&event);
        self.before.push_back((at, event));
        while self.before_bytes > self.most_before {
            self.forget_oldest();
        }
    }

    /// A game is open now; the first time it is named its file begins.
    pub fn game(&mut self, files: &mut Files, now: Millis, game: &str, start: Start) {
        if self.open.as_ref().is_some_and(|(open, _)| open == game) {
            return;
        }
        let begin = self.before.front().map_or(now, |(at, _)| *at);
        let table = self.header.clone();
        let header = Header {
            fen: start.fen,
            chess960: start.chess960,
            ruleset: start.ruleset.or(table.ruleset),
            variant: start.variant.or(table.variant),
            supervised: start.supervised.or(table.supervised),
            time_control: start.time_control.or(table.time_control),
            arming: start.arming.or(table.arming),
            ..table
        };
        // Names made here begin with the table; those of a pairing need not.
        let short = game.strip_prefix(&format!("{}-", self.table));
        let events = self.before.iter();
        files.send(Job::Begin {
            table: self.table.clone(),
            name: format!("{}-{}", self.table, short.unwrap_or(game)),
            header: Box::new(header),
            events: events
                .map(|(at, event)| (at.saturating_sub(begin), event.clone()))
                .collect(),
        });
        self.open = Some((game.to_owned(), begin));
    }

    /// The dump that is asked for now may come when the first move is made already, so the one before it is kept too.
    fn forget_before_last_dump(&mut self) {
        let last = self
            .before
            .iter()
            .rposition(|(_, event)| self.is_question(event));
        if let Some(last) = last {
            for _ in 0..last {
                self.forget_oldest();
            }
        }
    }

    /// Whether all squares are asked for here.
    fn is_question(&self, event: &Event) -> bool {
        matches!(event, Event::ToBoard(bytes) if self.question.as_ref() == Some(bytes))
    }

    fn forget_oldest(&mut self) {
        if let Some((_, event)) = self.before.pop_front() {
            self.before_bytes = self.before_bytes.saturating_sub(size(&event));
        }
    }
}

/// What a game is played by; a pairing may have said so long before it began.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// Where it starts, if not in the usual position.
    pub fen: Option<String>,
    pub chess960: bool,
    /// `None`, here and below: as at this table.
    pub ruleset: Option<Ruleset>,
    pub variant: Option<Variant>,
    pub supervised: Option<bool>,
    pub time_control: Option<TimeControl>,
    pub arming: Option<Arming>,
}

impl Start {
    pub fn of(game: &Game, arming: Option<Arming>) -> Start {
        let (start, rules) = (&game.line.start, &game.terms.rules);
        let fen = start.fen();
        Start {
            fen: (fen != Position::initial().fen()).then_some(fen),
            chess960: start.castling_mode().is_chess960(),
            ruleset: Some(rules.ruleset),
            variant: Some(rules.variant),
            supervised: Some(rules.supervised),
            time_control: game.terms.time_control.clone(),
            arming,
        }
    }
}

/// Jobs that may wait for the thread.
const JOBS: usize = 4096;
/// A trace of one game. A day of a board that sends its clock's time without a pause comes to less.
const MOST_TRACE: usize = 64 << 20;
/// A board that says so much between two dumps has something else to tell than moves.
const MOST_BEFORE: usize = 64 * 1024;
/// A board that tells all its squares unasked does so every second; a minute or two of that is enough.
const MOST_BEFORE_UNASKED: usize = 4 * 1024;

#[derive(Debug)]
enum Job {
    Begin {
        table: String,
        name: String,
        header: Box<Header>,
        events: Vec<(Millis, Event)>,
    },
    Line {
        table: String,
        at: Millis,
        event: Event,
    },
    Pgn {
        game: String,
        text: String,
    },
}

/// The thread's own side.
struct Desk {
    state_dir: PathBuf,
    traces: BTreeMap<String, Kept>,
    pgn_failed: bool,
    trace_failed: bool,
    /// The games whose PGN this run has written.
    written: BTreeSet<String>,
}

/// A trace that is being written.
struct Kept {
    writer: Writer<File>,
    /// Bytes that it may still grow by.
    left: usize,
}

impl Desk {
    fn run(&mut self, inbox: &Receiver<Job>) {
        while let Ok(job) = inbox.recv() {
            match job {
                Job::Begin {
                    table,
                    name,
                    header,
                    events,
                } => {
                    self.traces.remove(&table);
                    match self.begin(&name, &header, &events) {
                        Ok(writer) => {
                            self.trace_failed = false;
                            let left = MOST_TRACE;
                            self.traces.insert(table, Kept { writer, left });
                        }
                        Err(error) => self.tell_trace(&name, &error),
                    }
                }
                Job::Line { table, at, event } => {
                    let Some(kept) = self.traces.get_mut(&table) else {
                        continue;
                    };
                    let Some(left) = kept.left.checked_sub(written(&event)) else {
                        self.traces.remove(&table);
                        warn!(
                            "table {table}: the trace of this game has {} MiB, and ends here. No board says so much; look at what is on its port",
                            MOST_TRACE >> 20
                        );
                        continue;
                    };
                    kept.left = left;
                    if let Err(error) = kept.writer.event(at, &event) {
                        // After half a line the rest could not be read any more.
                        self.traces.remove(&table);
                        self.tell_trace(&table, &error);
                    }
                }
                Job::Pgn { game, text } => match self.keep_pgn(&game, &text) {
                    Ok(()) => self.pgn_failed = false,
                    Err(error) => {
                        if !std::mem::replace(&mut self.pgn_failed, true) {
                            error!(
                                "the PGN of game {game} is not kept in {}: {error}. Let the user that runs jadoube write there, and see whether the disk is full",
                                self.state_dir.display()
                            );
                        }
                    }
                },
            }
        }
    }

    fn begin(
        &self,
        name: &str,
        header: &Header,
        events: &[(Millis, Event)],
    ) -> io::Result<Writer<File>> {
        let folder = self.state_dir.join("traces");
        fs::create_dir_all(&folder)?;
        let mut writer = Writer::new(create(&folder, name)?, header)?;
        for (at, event) in events {
            writer.event(*at, event)?;
        }
        Ok(writer)
    }

    fn tell_trace(&mut self, name: &str, error: &io::Error) {
        if !std::mem::replace(&mut self.trace_failed, true) {
            error!(
                "the trace {name} is not kept in {}: {error}. Let the user that runs jadoube write there, and see whether the disk is full",
                self.state_dir.display()
            );
        }
    }

    /// A reader of the folder finds the old file or the new one, never half of it; and for a moment none, where that of an earlier run is
    /// moved aside.
    fn keep_pgn(&mut self, game: &str, text: &str) -> io::Result<()> {
        let folder = self.state_dir.join("pgn");
        fs::create_dir_all(&folder)?;
        let part = folder.join(format!("{game}.pgn.part"));
        let mut file = File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        let path = folder.join(format!("{game}.pgn"));
        if !self.written.contains(game) {
            move_aside(&folder, game, &path)?;
            if self.written.len() >= MOST_WRITTEN {
                self.written.clear();
            }
            self.written.insert(game.to_owned());
        }
        fs::rename(&part, path)
    }
}

/// The names of games come again at the next event.
fn move_aside(folder: &Path, game: &str, path: &Path) -> io::Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let mut asides =
        (1..MOST_SAME).map(|number| folder.join(format!("{game}-earlier-{number}.pgn")));
    match asides.find(|aside| !aside.exists()) {
        Some(aside) => fs::rename(path, aside),
        None => Err(io::Error::other(format!(
            "there are {MOST_SAME} files of game {game} in {}; clear that folder",
            folder.display()
        ))),
    }
}

/// A new file; a pairing's name for a game comes again where the daemon restarts in it.
fn create(folder: &Path, name: &str) -> io::Result<File> {
    let mut number = 1;
    loop {
        let path = match number {
            1 => folder.join(format!("{name}.trace")),
            _ => folder.join(format!("{name}.{number}.trace")),
        };
        match OpenOptions::new().append(true).create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_SAME => {
                number += 1;
            }
            other => return other,
        }
    }
}

/// Files of one game.
const MOST_SAME: u32 = 1000;
/// Games that a run is known to have written.
const MOST_WRITTEN: usize = 10_000;

/// About what an event takes in the file: three characters a byte, and the time.
fn written(event: &Event) -> usize {
    match event {
        Event::FromBoard(bytes) | Event::ToBoard(bytes) => 3 * bytes.len() + 16,
        other => size(other),
    }
}

fn size(event: &Event) -> usize {
    match event {
        Event::FromBoard(bytes) | Event::ToBoard(bytes) => bytes.len() + 16,
        Event::Command(text) | Event::Unplugged(text) | Event::Opened(text) => text.len() + 16,
        Event::Restart => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::trace::Trace;

    const DEADLINE: Duration = Duration::from_secs(20);

    fn asked() -> Event {
        Event::ToBoard(vec![0x42])
    }

    fn said(byte: u8) -> Event {
        Event::FromBoard(vec![byte])
    }

    #[tokio::test]
    async fn a_trace_begins_with_the_last_dump_but_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path()).unwrap();
        let mut tracing = Tracing::new("12", Header::default());
        for (at, event) in [
            (10, asked()),
            (20, said(1)),
            (30, asked()),
            (40, said(2)),
            (50, asked()),
            (60, said(3)),
        ] {
            tracing.event(&mut files, at, event);
        }
        tracing.game(&mut files, 60, "12-abc-1", Start::default());
        tracing.game(&mut files, 60, "12-abc-1", Start::default());
        tracing.event(&mut files, 70, said(4));
        tracing.game(&mut files, 80, "final", Start::default());
        let start = Start {
            time_control: "180+2".parse().ok(),
            ..Start::default()
        };
        tracing.game(&mut files, 80, "12-final", start);
        files.finish(DEADLINE).await;
        let read = |name: &str| {
            let text = fs::read_to_string(folder.path().join("traces").join(name)).unwrap();
            let lines = Trace::parse(&text).unwrap().lines.into_iter();
            lines
                .map(|line| (line.at_ms, line.event))
                .collect::<Vec<_>>()
        };
        let wanted = [
            (0, asked()),
            (10, said(2)),
            (20, asked()),
            (30, said(3)),
            (40, said(4)),
        ];
        assert_eq!(read("12-abc-1.trace"), wanted);
        assert_eq!(read("12-final.trace").len(), 5);
        assert_eq!(read("12-final.2.trace").len(), 5);
        let path = folder.path().join("traces/12-final.2.trace");
        let head = Trace::parse(&fs::read_to_string(path).unwrap())
            .unwrap()
            .header;
        assert_eq!(head.time_control, "180+2".parse().ok());
    }

    #[test]
    fn what_is_kept_for_a_next_game_has_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path()).unwrap();
        let mut tracing = Tracing::new("12", Header::default());
        for at in 0..1000 {
            tracing.event(&mut files, at, Event::FromBoard(vec![0; 1000]));
        }
        assert!(tracing.before_bytes <= MOST_BEFORE);
        assert!(tracing.before.len() > 50);
    }

    #[test]
    fn a_trace_has_a_limit_and_the_next_game_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut desk = Desk {
            state_dir: folder.path().to_owned(),
            traces: BTreeMap::new(),
            pgn_failed: false,
            written: BTreeSet::new(),
            trace_failed: false,
        };
        let (jobs, inbox) = sync_channel(100);
        let begin = |name: &str| Job::Begin {
            table: "12".into(),
            name: name.into(),
            header: Box::new(Header::default()),
            events: Vec::new(),
        };
        let line = |bytes: usize| Job::Line {
            table: "12".into(),
            at: 0,
            event: Event::FromBoard(vec![0; bytes]),
        };
        for job in [
            begin("a"),
            line(1),
            line(MOST_TRACE / 3),
            line(1),
            begin("b"),
            line(1),
        ] {
            jobs.send(job).unwrap();
        }
        drop(jobs);
        desk.run(&inbox);
        let lines = |name: &str| {
            let text = fs::read_to_string(folder.path().join("traces").join(name)).unwrap();
            Trace::parse(&text).unwrap().lines.len()
        };
        assert_eq!(lines("a.trace"), 1);
        assert_eq!(lines("b.trace"), 1);
    }

    #[tokio::test]
    async fn a_pgn_is_replaced_whole_and_a_failure_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path()).unwrap();
        files.keep_pgn("g1", "1. e4 *\n");
        // A folder of this name cannot be replaced by a file.
        fs::create_dir_all(folder.path().join("pgn/g2.pgn/x")).unwrap();
        files.keep_pgn("g2", "*\n");
        files.keep_pgn("g1", "1. e4 e5 *\n");
        files.finish(DEADLINE).await;
        let text = fs::read_to_string(folder.path().join("pgn/g1.pgn")).unwrap();
        assert_eq!(text, "1. e4 e5 *\n");
        assert!(!folder.path().join("pgn/g1.pgn.part").exists());
    }

    #[tokio::test]
    async fn the_pgn_of_an_earlier_run_stays() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["1. e4 *\n", "1. d4 *\n", "1. c4 *\n"] {
            let mut files = Files::new(folder.path()).unwrap();
            files.keep_pgn("g1", "*\n");
            files.keep_pgn("g1", text);
            files.finish(DEADLINE).await;
        }
        let read = |name: &str| fs::read_to_string(folder.path().join("pgn").join(name)).unwrap();
        assert_eq!(read("g1-earlier-1.pgn"), "1. e4 *\n");
        assert_eq!(read("g1-earlier-2.pgn"), "1. d4 *\n");
        assert_eq!(read("g1.pgn"), "1. c4 *\n");
    }

    #[tokio::test]
    async fn where_nothing_can_be_written_nothing_ends() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        fs::write(&file, "precious").unwrap();
        let mut files = Files::new(&file).unwrap();
        let mut tracing = Tracing::new("12", Header::default());
        tracing.game(&mut files, 0, "12-abc-1", Start::default());
        tracing.event(&mut files, 10, said(1));
        files.keep_pgn("g1", "*\n");
        files.finish(DEADLINE).await;
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    }
}
