//! `jadoube record`: the raw trace of a port.
//!
//! The board is asked to report, and whatever it sends is written down with the time at which it came. Nothing is decoded, so
//! that the trace also holds what no program understands yet.

use std::fs::OpenOptions;
use std::future::Future;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::stop::Stop;
use super::{Failure, others};
use crate::Millis;
use crate::board::{self, Driver, Watch};
use crate::daemon::serial::{self, Devices, OpenError, Port, Roots, speeds};
use crate::trace::{Event, Header, Writer};
use crate::wire::Family;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The serial port of the board
    #[arg(long, value_name = "P")]
    pub port: String,
    /// The make of the board; unless given, what is known to have the port's USB id, or else dgt
    #[arg(long, value_name = "FAMILY", value_parser = super::families(board::is_supported))]
    pub board: Option<Family>,
    /// The trace to write; must not exist yet
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(record(&args))
}

async fn record(args: &Args) -> Result<(), Failure> {
    let (path, out) = (args.port.as_str(), args.out.as_path());
    // From here on a signal ends the recording, and no longer the process.
    let mut stop = Stop::new()?;
    let stop = async move { stop.wanted().await };
    // The port first, so that a mistyped one leaves no empty file behind.
    let mut port = open(path)?;
    let family = args.board.unwrap_or_else(|| likely_family(&port));
    let speed = speeds(family)[0];
    port.set_speed(speed).map_err(|error| {
        Failure::failed(error)
            .context(format!("{path}: the speed of its line"))
            .advise("Unplug the board and plug it in again.")
    })?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(out)
        .map_err(|error| uncreated(error, out))?;
    let header = Header {
        board: family,
        notes: vec![format!(
            "recorded from {path} by jadoube {}",
            env!("CARGO_PKG_VERSION")
        )],
        ..Header::default()
    };
    let unwritten = |error: io::Error| Failure::failed(error).context(out.display().to_string());
    let writer = Writer::new(&file, &header).map_err(unwritten)?;
    tracing::info!("recording {path} into {}; Ctrl-C ends it", out.display());
    let mut recorder = Recorder::new(writer, family, Pace::default());
    let mut reopen = || {
        let mut port = serial::open(Path::new(path)).map_err(io::Error::other)?;
        port.set_speed(speed)?;
        Ok(port)
    };
    let recorded = recorder.run(port, &mut reopen, stop).await;
    // What was recorded is kept, whatever ended it.
    file.sync_all().map_err(unwritten)?;
    recorded.map_err(unwritten)?;
    tracing::info!("{} bytes recorded", recorder.received);
    match recorder.is_unread() {
        true => Err(Failure::failed(recorder.unread())
            .context(out.display().to_string())
            .advise(another_make(family))),
        false => Ok(()),
    }
}

fn another_make(family: Family) -> String {
    format!(
        "If the board is of another make, name it with --board ({}); jadoube ports tells what answers there.",
        others(family)
    )
}

/// What is asked first at such a port. Nothing is tried out: a recording is to show what one board says to one opening.
fn likely_family(port: &Port) -> Family {
    let devices = Devices::scan(&Roots::default()).0;
    let device = devices.iter().find(|device| device.is_at(port.node()));
    let may_be = device.map_or(&[][..], |device| device.may_be(&[]));
    may_be.first().copied().unwrap_or_default()
}

/// Writes what comes from a port, and what is sent there to make it come.
struct Recorder<W> {
    writer: Writer<W>,
    /// Reads along, to tell whether there is anything to read.
    driver: Driver,
    family: Family,
    /// What makes the board report.
    opening: Vec<Vec<u8>>,
    pace: Pace,
    start: Instant,
    received: u64,
    /// It was said that nothing can be read.
    is_told: bool,
}

/// How long is waited for what.
struct Pace {
    /// After opening: boards that get their power from the port are not ready at once (protocol sheet 1).
    ready: Duration,
    /// Between two commands, as the board's buffer is small (protocol sheet 1).
    spacing: Duration,
    /// Between two attempts to open a port that has gone.
    retry: Duration,
    /// For a write that a full or dead line takes no more.
    write: Duration,
    /// For something that can be read, until it is said that there is nothing.
    patience: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            ready: Duration::from_millis(500),
            spacing: Duration::from_millis(100),
            retry: Duration::from_secs(1),
            write: Duration::from_secs(1),
            patience: Duration::from_secs(10),
        }
    }
}

impl<W: Write> Recorder<W> {
    fn new(writer: Writer<W>, family: Family, pace: Pace) -> Recorder<W> {
        let opening = board::dialect(family).map_or_else(Vec::new, |dialect| dialect.opening());
        Recorder {
            writer,
            driver: Driver::new(family, Watch::Ignore),
            family,
            opening,
            pace,
            start: Instant::now(),
            received: 0,
            is_told: false,
        }
    }

    /// Records until `stop`, over any number of times that the link is lost and found again. Only a failing file ends it early.
    async fn run<P: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        port: P,
        reopen: &mut dyn FnMut() -> io::Result<P>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let mut stop = pin!(stop);
        let mut port = Some(port);
        loop {
            let now = match port.take() {
                Some(port) => port,
                None => {
                    tokio::select! {
                        () = &mut stop => return Ok(()),
                        () = sleep(self.pace.retry) => {}
                    }
                    let Ok(port) = reopen() else {
                        continue;
                    };
                    tracing::info!("the port is back");
                    self.write(Event::Opened(String::new()))?;
                    port
                }
            };
            let lost = tokio::select! {
                () = &mut stop => return Ok(()),
                lost = self.listen(now) => lost?,
            };
            tracing::warn!("the port has gone ({lost}); waiting for it");
            self.write(Event::Unplugged(lost))?;
        }
    }

    /// Sends the opening commands and records until the link is lost, which it says why.
    async fn listen<P: AsyncRead + AsyncWrite + Unpin>(&mut self, port: P) -> io::Result<String> {
        let (mut from_board, mut to_board) = tokio::io::split(port);
        let mut buffer = [0; 1024];
        let mut commands = self.opening.clone().into_iter();
        let mut next = Some(Instant::now() + self.pace.ready);
        loop {
            // A far time stands for none.
            let due = next.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
            let patient_until = self.start + self.pace.patience;
            tokio::select! {
                read = from_board.read(&mut buffer) => match read {
                    // A serial port has no end: this is how a plug that is pulled reads.
                    Ok(0) => return Ok("unplugged".into()),
                    Ok(count) => {
                        let bytes = buffer.get(..count).unwrap_or(&buffer).to_vec();
                        self.received += bytes.len() as u64;
                        self.driver.handle_bytes(self.now(), &bytes, |_| {});
                        self.write(Event::FromBoard(bytes))?;
                    }
                    Err(error) => return Ok(error.to_string()),
                },
                () = sleep_until(patient_until), if self.is_unread() && !self.is_told => {
                    self.is_told = true;
                    tracing::warn!("{}. {}", self.unread(), another_make(self.family));
                }
                () = sleep_until(due) => {
                    let Some(command) = next.and_then(|_| commands.next()) else {
                        next = None;
                        continue;
                    };
                    let written = timeout(self.pace.write, to_board.write_all(&command)).await;
                    match written {
                        Ok(Ok(())) => self.write(Event::ToBoard(command))?,
                        Ok(Err(error)) => return Ok(error.to_string()),
                        Err(_) => return Ok("takes no bytes".into()),
                    }
                    next = Some(Instant::now() + self.pace.spacing);
                }
            }
        }
    }

    /// Writes one line and sends it off at once: whatever happens next, it is recorded.
    fn write(&mut self, event: Event) -> io::Result<()> {
        self.writer.event(self.now(), &event)?;
        self.writer.flush()
    }

    fn now(&self) -> Millis {
        Millis::try_from(self.start.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    fn is_unread(&self) -> bool {
        self.driver.messages() == 0
    }

    /// What is wrong where nothing can be read.
    fn unread(&self) -> String {
        match self.received {
            0 => format!("nothing has come from the board, asked as {}", self.family),
            count => format!("none of {count} bytes can be read as {}", self.family),
        }
    }
}

/// The port, and for us alone.
fn open(path: &str) -> Result<Port, Failure> {
    serial::open(Path::new(path)).map_err(|error| {
        let advice = match &error {
            OpenError::Busy { .. } => {
                "jadoube ports lists the ports and who holds them; only one program can read a board."
                    .to_owned()
            }
            _ => error.advice(),
        };
        Failure::failed(error).advise(advice)
    })
}

fn uncreated(error: io::Error, out: &Path) -> Failure {
    let advice = match error.kind() {
        io::ErrorKind::AlreadyExists => "A recording replaces nothing: name a new file with --out.",
        _ => "Name a file that you may write with --out.",
    };
    Failure::failed(error)
        .context(out.display().to_string())
        .advise(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::io::DuplexStream;
    use tokio::sync::oneshot;

    use crate::trace::Trace;

    const DEADLINE: Duration = Duration::from_secs(20);

    fn opening() -> Vec<Vec<u8>> {
        board::dialect(Family::Dgt).unwrap().opening()
    }

    fn quick() -> Pace {
        Pace {
            ready: Duration::from_millis(1),
            spacing: Duration::from_millis(1),
            retry: Duration::from_millis(1),
            write: Duration::from_secs(5),
            patience: Duration::from_millis(1),
        }
    }

    /// The other end: takes the opening, answers with `answer`, and hangs up once that is read.
    async fn answering(mut line: DuplexStream, answer: &[u8]) {
        let wanted = opening().concat();
        let mut heard = vec![0; wanted.len()];
        line.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, wanted);
        line.write_all(answer).await.unwrap();
    }

    #[tokio::test]
    async fn all_that_comes_is_recorded_over_a_lost_link() {
        let (first, first_board) = tokio::io::duplex(64);
        let (second, second_board) = tokio::io::duplex(64);
        let mut ports = vec![Ok(second), Err(io::ErrorKind::NotFound.into())];
        let (stop, stopped) = oneshot::channel::<()>();
        let writer = Writer::new(Vec::new(), &Header::default()).unwrap();
        let mut recorder = Recorder::new(writer, Family::Dgt, quick());
        // The last one is refused until the end, which is told once it is asked for.
        let mut stop = Some(stop);
        let mut reopen = || {
            ports.pop().unwrap_or_else(|| {
                drop(stop.take());
                Err(io::ErrorKind::NotFound.into())
            })
        };
        let stop = async {
            let _ = stopped.await;
        };
        let ((), (), recorded) = timeout(DEADLINE, async {
            tokio::join!(
                answering(first_board, &[0x8e, 0x00, 0x05]),
                answering(second_board, &[0x34, 0x00]),
                recorder.run(first, &mut reopen, stop)
            )
        })
        .await
        .unwrap();
        recorded.unwrap();
        assert_eq!(recorder.received, 5);
        let text = String::from_utf8(recorder.writer.into_inner()).unwrap();
        let trace = Trace::parse(&text).unwrap();
        let opening: Vec<Event> = opening().into_iter().map(Event::ToBoard).collect();
        let gone = || Event::Unplugged("unplugged".into());
        let mut wanted = opening.clone();
        wanted.extend([Event::FromBoard(vec![0x8e, 0x00, 0x05]), gone()]);
        wanted.push(Event::Opened(String::new()));
        wanted.extend(opening);
        wanted.extend([Event::FromBoard(vec![0x34, 0x00]), gone()]);
        let events: Vec<Event> = trace.lines.into_iter().map(|line| line.event).collect();
        assert_eq!(events, wanted);
    }

    #[tokio::test]
    async fn a_file_that_fails_ends_it() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                match bytes.starts_with(b"#") {
                    true => Ok(bytes.len()),
                    false => Err(io::ErrorKind::StorageFull.into()),
                }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (port, _board) = tokio::io::duplex(64);
        let writer = Writer::new(Full, &Header::default()).unwrap();
        let mut recorder = Recorder::new(writer, Family::Dgt, quick());
        let mut reopen = || Err(io::ErrorKind::NotFound.into());
        let recorded = recorder.run(port, &mut reopen, std::future::pending());
        let recorded = timeout(DEADLINE, recorded).await.unwrap();
        assert_eq!(recorded.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
