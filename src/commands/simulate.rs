//! `jadoube simulate`: games on a virtual board behind a pty.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serialport::{SerialPort, TTYPort};
use shakmaty::Position;
use tokio::io::AsyncReadExt;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_serial::SerialStream;

use super::stop::Stop;
use super::{Failure, games, print_line};
use crate::Millis;
use crate::sim::afternoon;
use crate::sim::board::VirtualBoard;
use crate::sim::clock::ClockControl;
use crate::sim::hands::{self, Level, Pace};
use crate::sim::is_simulated;
use crate::sim::line::Line;
use crate::sim::pgn::SimGame;
use crate::sim::player::{self, Player, TableOptions};
use crate::sim::scene::Scene;
use crate::sim::script::Script;
use crate::wire::dgt::{self, Identity};
use crate::wire::{Family, psb1};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The games to play, one after the other; the first begins once somebody reads the board
    #[arg(long, value_name = "FILE", required_unless_present = "scene")]
    pub pgn: Option<PathBuf>,
    /// Instead of a file, what happens at a table in a scene; there is "afternoon", three games with all that comes between them.
    /// Board, hands and pace are the scene's own: not with --board, --hands, --speed, --serial, --time-control or --rotated
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["pgn", "board", "hands", "speed", "serial", "time_control", "rotated"]
    )]
    pub scene: Option<SceneName>,
    /// Which table of the scene, 1 to 8
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "scene",
        conflicts_with = "pgn",
        value_parser = clap::value_parser!(u16).range(1..=afternoon::TABLES as i64)
    )]
    pub table: u16,
    /// The make of the board
    #[arg(
        long,
        value_name = "FAMILY",
        default_value_t = Family::Dgt,
        value_parser = super::families(is_simulated)
    )]
    pub board: Family,
    /// A symbolic link to the pty, so that its name is known beforehand
    #[arg(long, value_name = "PATH")]
    pub link: Option<PathBuf>,
    /// How fast time goes, up to 1000: 1 is real time, 10 ten times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = super::speed)]
    pub speed: f64,
    /// How the players handle the men
    #[arg(long, value_name = "HANDS", value_enum, default_value_t = Hands::Human)]
    pub hands: Hands,
    /// Picks the chances; the same number plays the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The serial number that the virtual board tells: 5 digits, or 10 as newer DGT boards have; of a PSB1 board its name
    #[arg(long, value_name = "N")]
    pub serial: Option<String>,
    /// The time control, as in PGN; unless given, that of the first game that names one, else 5400+30, or 300 in blitz
    #[arg(long, value_name = "CONTROL")]
    pub time_control: Option<ClockControl>,
    /// Seconds that a move takes on average, where the game has no clock times; not in blitz
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    pub think: u32,
    /// The board stands the other way round
    #[arg(long)]
    pub rotated: bool,
    /// Seconds, however fast time goes, that the board still answers after the last game
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    pub linger: u32,
    /// Go on answering after the last game until interrupted
    #[arg(long, conflicts_with = "linger")]
    pub stay: bool,
}

/// A scene with games of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SceneName {
    Afternoon,
}

/// How the players handle the men.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Hands {
    /// Each man straight from square to square
    Clean,
    /// As people do: sliding, adjusting, captures in any order
    Human,
    /// In a hurry: 150 to 400 ms a ply, and 1 of 100 changes is never told
    Blitz,
    /// As people do, and with what goes wrong at a table: illegal moves, fallen men, takebacks, dead squares
    Faulty,
}

impl From<Hands> for Level {
    fn from(hands: Hands) -> Level {
        match hands {
            Hands::Clean => Level::Clean,
            Hands::Human => Level::Human,
            Hands::Blitz => Level::Blitz,
            Hands::Faulty => Level::Faulty,
        }
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    let mut player = player(&args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut port = VirtualPort::open().map_err(|error| {
            Failure::failed(error)
                .context("no pseudo-terminal to be had")
                .advise(
                    "See whether /dev/pts is mounted, and /proc/sys/kernel/pty/nr below its max.",
                )
        })?;
        // Whoever knows the path may end us, and the link is to go then too.
        let mut stop = Stop::new()?;
        if let Some(path) = &args.link {
            port = port.with_link(path).map_err(|error| {
                let in_use = error.kind() == io::ErrorKind::AlreadyExists;
                let failure = Failure::failed(error).context(format!("link {}", path.display()));
                match in_use {
                    true => {
                        failure.advise("Name another with --link, or remove it if it is left over.")
                    }
                    false => failure,
                }
            })?;
        }
        print_line(port.path())?;
        let serving = Serving {
            speed: args.speed,
            linger: (!args.stay).then(|| Duration::from_secs(args.linger.into())),
        };
        tokio::select! {
            served = port.serve_telling(&mut player, &serving, tell) => Ok(served?),
            () = stop.wanted() => Ok(()),
        }
    })
}

/// What happens beside the board, for the log.
fn tell(path: &str, event: player::Event) {
    match event {
        player::Event::Unplugged => tracing::info!("{path}: the board is unplugged"),
        player::Event::Plugged => tracing::info!("{path}: a board is plugged in"),
        player::Event::Paired { round } => {
            tracing::info!("{path}: now the pairing of round {round} would be told");
        }
        player::Event::Result { result } => {
            tracing::info!("{path}: now an arbiter would enter the result {result}");
        }
    }
}

/// A virtual serial port: the slave end of a pty, at whose other end a virtual board sits.
#[derive(Debug)]
pub struct VirtualPort {
    /// None while the board is unplugged.
    pty: Option<Pty>,
    link: Option<Link>,
    path: String,
}

#[derive(Debug)]
struct Pty {
    master: SerialStream,
    /// Kept open, or reading at our end would fail whenever no host is there.
    slave: TTYPort,
}

/// How time goes at a virtual port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Serving {
    /// 1 is real time, 10 ten times as fast.
    pub speed: f64,
    /// How long, in our own time, the board answers after its last game; `None` for until it is stopped.
    pub linger: Option<Duration>,
}

impl VirtualPort {
    /// A new pty in raw mode. It needs a running Tokio runtime.
    pub fn open() -> serialport::Result<VirtualPort> {
        let (pty, path) = Pty::open()?;
        Ok(VirtualPort {
            pty: Some(pty),
            link: None,
            path,
        })
    }

    /// With a symbolic link to it, which lives as long as the port and follows it where a board is plugged in anew.
    pub fn with_link(mut self, path: &Path) -> io::Result<VirtualPort> {
        self.link = Some(Link::new(path, &self.path)?);
        Ok(self)
    }

    /// What a host opens.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Lets the player play until it and its linger time are over; dropping the future ends it at any time.
    ///
    /// The player's time begins at 0. Bytes go out at the pace of the wire; what a host does not fetch is lost, as there is no flow
    /// control.
    pub async fn serve(&mut self, player: &mut Player, serving: &Serving) -> io::Result<()> {
        self.serve_telling(player, serving, |_, _| {}).await
    }

    /// The same, telling what else happens at the table, with the path of the port as it then is.
    pub async fn serve_telling(
        &mut self,
        player: &mut Player,
        serving: &Serving,
        mut told: impl FnMut(&str, player::Event),
    ) -> io::Result<()> {
        let begin = Instant::now();
        let table_ms =
            |at: Instant| ((at - begin).as_secs_f64() * 1000.0 * serving.speed) as Millis;
        let mut line = Line::new(player.board().baud());
        let mut heard = begin;
        let mut began = false;
        let mut end: Option<Instant> = None;
        let mut buffer = [0; 256];
        loop {
            // At a high speed there is always something due, and whoever would stop us must get a turn.
            yield_now().await;
            let now = table_ms(Instant::now());
            player.handle_timeout(now);
            while let Some(event) = player.poll_event() {
                match event {
                    player::Event::Unplugged => {
                        self.pty = None;
                        line.clear();
                    }
                    player::Event::Plugged => {
                        self.plug()?;
                        line = Line::new(player.board().baud());
                    }
                    player::Event::Paired { .. } | player::Event::Result { .. } => {}
                }
                told(&self.path, event);
            }
            while let Some(message) = player.poll_output() {
                line.write(now, &message);
            }
            self.write(&line.poll(now))?;

            if !began && player.began_ms().is_some() {
                began = true;
                tracing::info!("{}: the first game begins", self.path);
            }
            if end.is_none() && player.is_finished() && line.poll_timeout().is_none() {
                tracing::info!("{}: all games are played", self.path);
                end = Some(Instant::now());
            }
            if let (Some(end), Some(linger)) = (end, serving.linger)
                && end.elapsed() >= linger
            {
                return Ok(());
            }

            let flow = line
                .poll_timeout()
                .map(|through| through.min(now + FLOW_MS));
            let next = [player.poll_timeout(), flow].into_iter().flatten().min();
            let wait = next.map_or(LONGEST_WAIT, |next| {
                let seconds = next.saturating_sub(now) as f64 / 1000.0 / serving.speed;
                Duration::from_secs_f64(seconds.min(LONGEST_WAIT.as_secs_f64()))
            });
            let Some(pty) = &mut self.pty else {
                sleep(wait).await;
                continue;
            };
            if let Ok(read) = timeout(wait, pty.master.read(&mut buffer)).await {
                heard = Instant::now();
                player.handle_host(table_ms(heard), &buffer[..read?]);
            }
            if heard.elapsed() > SILENCE {
                heard = Instant::now();
                self.release()?;
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(pty) = self.pty.as_mut().filter(|_| !bytes.is_empty()) else {
            return Ok(());
        };
        match pty.master.try_write(bytes) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// A host that was killed has left its exclusive mark on the pty, which on a real port would have gone with its last handle; here
    /// ours keeps the pty, and with it the mark. Closing any handle of `serialport` takes it off.
    fn release(&self) -> io::Result<()> {
        if let Some(pty) = &self.pty {
            drop(pty.slave.try_clone_native()?);
        }
        Ok(())
    }

    /// A board is plugged in again, and its port may have another name.
    fn plug(&mut self) -> io::Result<()> {
        let (pty, path) = Pty::open()?;
        if let Some(link) = &mut self.link {
            link.point_to(&path)?;
        }
        (self.pty, self.path) = (Some(pty), path);
        Ok(())
    }
}

impl Pty {
    fn open() -> serialport::Result<(Pty, String)> {
        let (master, slave) = TTYPort::pair()?;
        let path = slave
            .name()
            .ok_or_else(|| io::Error::other("the pty has no name"))?;
        let master = SerialStream::try_from(master)?;
        Ok((Pty { master, slave }, path))
    }
}

/// A symbolic link that lives as long as this value.
#[derive(Debug)]
struct Link {
    path: PathBuf,
    target: PathBuf,
}

impl Link {
    /// Puts the link in place of an older one that leads nowhere any more. Whatever else is there is left alone.
    fn new(path: &Path, target: &str) -> io::Result<Link> {
        let mut link = Link {
            path: path.to_owned(),
            target: target.into(),
        };
        link.point_to(target)?;
        Ok(link)
    }

    /// While our board is unplugged the name may go to another.
    fn point_to(&mut self, target: &str) -> io::Result<()> {
        let in_use = |what: String| Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        match fs::read_link(&self.path) {
            Ok(old) if old != self.target && old != Path::new(target) && self.path.exists() => {
                return in_use(format!(
                    "it leads to {}, which is there: another board may be behind it",
                    old.display()
                ));
            }
            Err(_) if fs::symlink_metadata(&self.path).is_ok() => {
                return in_use("there is a file of this name that is no link".into());
            }
            _ => {}
        }
        place(&self.path, target)?;
        self.target = target.into();
        Ok(())
    }
}

/// A link is replaced in one step, so that there is one at any time.
fn place(path: &Path, target: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    std::os::unix::fs::symlink(target, &new)?;
    if let Err(error) = fs::rename(&new, path) {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    Ok(())
}

impl Drop for Link {
    fn drop(&mut self) {
        // By now it may be another simulator's.
        if fs::read_link(&self.path).is_ok_and(|target| target == self.target) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The table that the arguments describe.
fn player(args: &Args) -> Result<Player, Failure> {
    let Some(path) = &args.pgn else {
        return at_table_of_scene(args);
    };
    let games = games::load(path)?;
    let control = args
        .time_control
        .clone()
        .or_else(|| {
            games
                .iter()
                .find_map(|game| game.tag("TimeControl")?.parse().ok())
        })
        .map_or_else(|| default_control(args.hands), Ok)?;
    let mean_ms = u64::from(args.think) * 1000;
    // A host judges by its own clock how long men have stood.
    let watched = |ms: Millis| (ms as f64 * args.speed.max(1.0)) as Millis;
    let pace = if games.iter().any(|game| game.clocks.is_some()) {
        Pace::Recorded {
            increment_ms: u64::from(control.periods()[0].bonus.seconds()) * 1000,
            otherwise: mean_ms,
        }
    } else {
        Pace::Mean(mean_ms)
    };
    let script = hands::Hands::new(args.hands.into(), args.seed)
        .with_pace(pace)
        .with_rest(watched(REST_MS))
        .series(&games, scene)
        .ok_or_else(|| Failure::failed(format!("{}: there is no game in it", path.display())))?;
    let board = match board(args.board, args.serial.as_deref())? {
        // A host waits for signs of life by its own clock.
        VirtualBoard::Psb1(board) if args.speed < 1.0 => {
            let heartbeat_ms = (psb1::HEARTBEAT_MS as f64 * args.speed) as Millis;
            board.with_heartbeat(heartbeat_ms).into()
        }
        board => board,
    };
    let options = TableOptions {
        rotated: args.rotated,
        control: Some(control),
        lead_in_ms: watched(LEAD_IN_MS),
        unsent_per_mille: match args.hands {
            Hands::Blitz => UNSENT_IN_BLITZ,
            Hands::Clean | Hands::Human | Hands::Faulty => 0,
        },
        seed: args.seed,
        ..TableOptions::of(args.board)
    };
    Ok(Player::new(0, script, board, &options))
}

/// A table of the afternoon, the boards that come to it included.
fn at_table_of_scene(args: &Args) -> Result<Player, Failure> {
    let place = usize::from(args.table) - 1;
    let pace = Pace::Mean(u64::from(args.think) * 1000);
    let table = afternoon::table(place, args.seed, pace)
        .ok_or_else(|| Failure::usage(format!("there is no table {} in the scene", args.table)))?;
    let options = TableOptions {
        rotated: table.rotated,
        control: Some(default_control(Hands::Human)?),
        ..TableOptions::of(afternoon::BOARDS[place])
    };
    at_table(table.script, &table.boards, &options)
}

/// A table at which these boards of the demo or the scene stand one after the other, each named by the table at which it begins, from 0.
pub(super) fn at_table(
    script: Script,
    boards: &[(usize, Family)],
    options: &TableOptions,
) -> Result<Player, Failure> {
    let mut boards = (boards.iter()).map(|&(place, family)| {
        // Five digits, as the boards have them; the long number ends with them.
        let serial = format!("{:05}", 47_001 + place);
        let serial = match family {
            Family::Psb1 => format!("demo-{serial}"),
            _ => format!("30001{serial}"),
        };
        board(family, Some(&serial))
    });
    let first = boards
        .next()
        .unwrap_or_else(|| board(options.family, None))?;
    let spares = boards.collect::<Result<Vec<_>, Failure>>()?;
    Ok(Player::new(0, script, first, options).with_spares(spares))
}

/// Games that do not end on the board end with the kings in the centre, as far as the result is known.
fn scene(game: &SimGame) -> Scene {
    if game.moves.is_empty() || game.last_position().is_game_over() {
        Scene::new()
    } else {
        Scene::new().result_kings(game.result)
    }
}

/// The board of a family that is simulated, with its number.
pub(super) fn board(family: Family, serial: Option<&str>) -> Result<VirtualBoard, Failure> {
    match (family, serial) {
        (Family::Dgt, serial) => Ok(dgt::VirtualBoard::new(identity(serial)?).into()),
        (Family::Psb1, Some(serial)) => {
            let id = serial
                .parse()
                .map_err(|error| Failure::usage(error).advise("Give it a name such as club-7."))?;
            let identity = psb1::Identity {
                id,
                ..psb1::Identity::default()
            };
            Ok(psb1::VirtualBoard::new(identity).into())
        }
        (family, _) => VirtualBoard::of(family)
            .ok_or_else(|| Failure::usage(format!("there is no virtual {family} board"))),
    }
}

fn identity(serial: Option<&str>) -> Result<Identity, Failure> {
    let Some(serial) = serial else {
        return Ok(Identity::default());
    };
    let digits = serial.bytes().all(|byte| byte.is_ascii_digit());
    match (digits, serial.len()) {
        (true, 5) => Ok(Identity {
            serial: serial.to_owned(),
            ..Identity::default()
        }),
        (true, 10) => Ok(Identity {
            serial: serial[5..].to_owned(),
            long_serial: Some(serial.to_owned()),
            ..Identity::default()
        }),
        _ => Err(
            Failure::usage(format!("serial number \"{serial}\" is none of a board"))
                .advise("Give 5 digits, or 10 as newer boards have."),
        ),
    }
}

/// What the clock is set to where neither the command line nor the games say.
fn default_control(hands: Hands) -> Result<ClockControl, Failure> {
    let control = match hands {
        Hands::Blitz => "300",
        Hands::Clean | Hands::Human | Hands::Faulty => "5400+30",
    };
    Ok(control.parse::<ClockControl>()?)
}

/// Of 1000 changes that a board has noticed in blitz so many are not told.
const UNSENT_IN_BLITZ: u16 = 10;

/// How long the men stand still, in the time of whoever watches: before the first game, and where a script rests.
const LEAD_IN_MS: Millis = 3_000;
const REST_MS: Millis = 6_000;

/// Bytes leave in portions of about this length, so that a host reads messages in pieces, as it would from a wire.
const FLOW_MS: Millis = 8;

/// So often the loop looks whether its host has gone.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A host that has not asked anything for so long may be gone.
const SILENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_replaced_and_goes_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("board");
        let first = Link::new(&path, "/dev/pts/998").unwrap();
        let second = Link::new(&path, "/dev/pts/999").unwrap();
        drop(first);
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("/dev/pts/999"));
        drop(second);
        assert!(fs::symlink_metadata(&path).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_that_leads_to_a_board_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("board");
        let ports = ["one", "two", "three"].map(|name| folder.path().join(name));
        let [one, two, three] = ports.each_ref().map(|port| port.to_str().unwrap());
        fs::write(one, "").unwrap();
        fs::write(two, "").unwrap();
        let mut first = Link::new(&path, one).unwrap();
        let refused = Link::new(&path, two).unwrap_err();
        assert!(refused.to_string().contains(one), "{refused}");
        assert_eq!(fs::read_link(&path).unwrap(), ports[0]);
        // Its own board comes back under another name, or the same.
        first.point_to(one).unwrap();
        first.point_to(three).unwrap();
        let second = Link::new(&path, two).unwrap();
        assert!(first.point_to(one).is_err());
        drop(first);
        assert_eq!(fs::read_link(&path).unwrap(), ports[1]);
        drop(second);
        assert!(fs::symlink_metadata(&path).is_err());
    }

    #[test]
    fn a_file_is_not_replaced_by_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("board");
        fs::write(&path, "precious").unwrap();
        let error = Link::new(&path, "/dev/pts/999").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn serial_numbers_have_five_or_ten_digits() {
        assert_eq!(identity(Some("12345")).unwrap().serial, "12345");
        let identity_of_ten = identity(Some("3000147740")).unwrap();
        assert_eq!(identity_of_ten.long_serial.as_deref(), Some("3000147740"));
        assert_eq!(identity_of_ten.serial, "47740");
        for serial in ["", "1234", "123456", "abcde", "1234é"] {
            assert_eq!(identity(Some(serial)).unwrap_err().code(), 2, "{serial}");
        }
    }

    #[test]
    fn a_presence_board_has_a_name() {
        let named = board(Family::Psb1, Some("club-7")).unwrap();
        let VirtualBoard::Psb1(board) = named else {
            panic!("{named:?}")
        };
        assert_eq!(board.identity().id.to_string(), "club-7");
        for name in ["", "two words", "a-name-of-more-than-24-characters"] {
            let refused = super::board(Family::Psb1, Some(name)).unwrap_err();
            assert_eq!(refused.code(), 2, "{name}");
        }
        assert_eq!(super::board(Family::Certabo, None).unwrap_err().code(), 2);
    }

    #[test]
    fn the_default_control_is_one() {
        for hands in [Hands::Clean, Hands::Human, Hands::Blitz, Hands::Faulty] {
            assert!(default_control(hands).is_ok());
        }
    }
}
