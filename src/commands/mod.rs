//! The commands, one a file: what each takes, and what it does.
//!
//! A command prints data to standard output by [`print_line`] or [`print_with`] and tells people things through `tracing`; it
//! ends with a [`Failure`] or without.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};

use crate::config::ConfigError;
use crate::wire::Family;

pub mod check;
#[cfg(feature = "demo")]
pub mod demo;
mod games;
pub mod ports;
pub mod record;
pub mod replay;
pub mod run;
pub mod schema;
pub mod simulate;
mod stop;

/// Where the configuration is looked for unless the command line says otherwise.
pub const DEFAULT_CONFIG: &str = "/etc/jadoube/jadoube.toml";

/// Reads electronic chess boards, works out what the players did, and publishes it over MQTT.
#[derive(Debug, Parser)]
#[command(name = "jadoube", version, arg_required_else_help = true)]
#[command(
    after_help = "JADOUBE_LOG sets what is logged to standard error: error, warn, info (default; in demo error), debug, trace.\n\
    Exit codes: 0 ok, 1 failed, 2 wrong usage, 78 bad configuration."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show everything on this machine with nothing installed: virtual boards, the real pipeline, a broker
    #[cfg(feature = "demo")]
    Demo(demo::Args),
    /// Read the boards of this machine and publish what happens on them
    Run(run::Args),
    /// Play games on a virtual board, for a program that reads boards
    Simulate(simulate::Args),
    /// Write down what a board sends, and do nothing else with it
    Record(record::Args),
    /// Run recorded traces through the pipeline and print what it makes of them
    Replay(replay::Args),
    /// List the serial devices, and what answers on them; of those in use a running daemon is asked
    Ports(ports::Args),
    /// Try the configuration: broker, ports, files
    Check(check::Args),
    /// Write the JSON Schemas of all payloads, of commands and of pairings
    Schema(schema::Args),
}

/// Takes the families of boards for which a command works, and lists them; those that only have a name yet are none.
fn families(works: fn(Family) -> bool) -> impl TypedValueParser<Value = Family> {
    let all = Family::ALL.iter().copied();
    let working = all.filter(move |family| works(*family));
    PossibleValuesParser::new(working.map(Family::as_str)).try_map(|word| word.parse::<Family>())
}

/// The other makes of boards that this build reads.
fn others(family: Family) -> String {
    let all = Family::ALL.iter().copied();
    let others = all.filter(|other| *other != family && crate::board::is_supported(*other));
    others.map(Family::as_str).collect::<Vec<_>>().join(", ")
}

impl Command {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            #[cfg(feature = "demo")]
            Command::Demo(args) => demo::run(args),
            Command::Run(args) => run::run(args),
            Command::Simulate(args) => simulate::run(args),
            Command::Record(args) => record::run(args),
            Command::Replay(args) => replay::run(args),
            Command::Ports(args) => ports::run(args),
            Command::Check(args) => check::run(args),
            Command::Schema(args) => schema::run(args),
        }
    }

    /// What is logged unless `JADOUBE_LOG` says otherwise.
    pub fn default_log(&self) -> &'static str {
        match self {
            // It tells all that happens on standard output itself, and the embedded broker takes goodbyes for errors.
            #[cfg(feature = "demo")]
            Command::Demo(_) => "error,rumqttd=off,rumqttc=error",
            // What the connection to the broker came to is among its findings.
            Command::Check(_) => "info,rumqttc=error,jadoube::daemon::mqtt=off",
            // The transport's own words about a broker come besides ours.
            _ => "info,rumqttc=error",
        }
    }

    /// Whether it runs until it is stopped, so that its log lines need a time.
    pub fn is_long_running(&self) -> bool {
        matches!(self, Command::Run(_))
    }
}

/// How a command ended without doing what it was asked: the cause for people, and the exit code for programs.
///
/// Every error turns into one by `?`: with exit code 78 that of a configuration, with 1 any other. It is no [`Error`] itself,
/// so that `?` can do that.
#[derive(Debug)]
pub struct Failure(Box<Kind>);

#[derive(Debug)]
enum Kind {
    Error {
        code: u8,
        error: Box<dyn Error + Send + Sync>,
        advice: Option<String>,
    },
    /// Nobody reads standard output any more. He who closed it knows, so nothing is said.
    ReaderGone,
}

impl Failure {
    /// It was tried and did not work: exit code 1.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure::new(1, error)
    }

    /// The arguments do not make sense: exit code 2, as that of clap's own complaints.
    pub fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure::new(2, error)
    }

    /// The configuration does not make sense: exit code 78, `EX_CONFIG` of sysexits; no restart helps. A
    /// [`ConfigError`] brings its own advice, here and in the others.
    pub fn config(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure::new(78, error)
    }

    /// For a failed write to standard output: that its reader has gone away is the end, but no error.
    pub fn output(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure(Box::new(Kind::ReaderGone))
        } else {
            Failure::failed(error).context("standard output")
        }
    }

    /// What was being done, or with what, put in front of the cause.
    pub fn context(mut self, what: impl Into<String>) -> Failure {
        if let Kind::Error { error, .. } = &mut *self.0 {
            let source = std::mem::replace(error, "".into());
            *error = Box::new(Context {
                what: what.into(),
                source,
            });
        }
        self
    }

    /// What to do about it, as a sentence.
    pub fn advise(mut self, what: impl Into<String>) -> Failure {
        if let Kind::Error { advice, .. } = &mut *self.0 {
            *advice = Some(what.into());
        }
        self
    }

    /// Whether nothing failed but that nobody reads standard output any more.
    pub fn is_reader_gone(&self) -> bool {
        matches!(&*self.0, Kind::ReaderGone)
    }

    pub fn code(&self) -> u8 {
        match &*self.0 {
            Kind::Error { code, .. } => *code,
            Kind::ReaderGone => 0,
        }
    }

    /// All causes on one line, the outermost first; nothing where nothing is to be said.
    pub fn chain(&self) -> Option<String> {
        let Kind::Error { error, .. } = &*self.0 else {
            return None;
        };
        let mut line = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            line.push_str(": ");
            line.push_str(&cause.to_string());
            source = cause.source();
        }
        Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    pub fn advice(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Error { advice, .. } => advice.as_deref(),
            Kind::ReaderGone => None,
        }
    }

    fn new(code: u8, error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        let error = error.into();
        let advice = if let Some(error) = error.downcast_ref::<ConfigError>() {
            Some(error.advice().to_owned())
        } else {
            let error = error.downcast_ref::<io::Error>();
            error.map(|error| advice_for(error.kind()).to_owned())
        };
        Failure(Box::new(Kind::Error {
            code,
            error,
            advice,
        }))
    }
}

/// What to do about an error of the system, where nothing better is known of what was being done.
fn advice_for(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::NotFound => "Correct the name, or put there what it names.",
        io::ErrorKind::PermissionDenied => {
            "Give this user the right to it (ls -l shows who has it), or name another."
        }
        io::ErrorKind::IsADirectory => "Name a file, not a folder.",
        io::ErrorKind::NotADirectory => "Correct the name: a part of it is a file, not a folder.",
        io::ErrorKind::AlreadyExists => "Name another, or take away what is there.",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "Make room on the disk (df shows which is full)."
        }
        io::ErrorKind::ReadOnlyFilesystem => "Name a place that can be written.",
        _ => "Try again; if it stays so, the kernel's messages may say why (dmesg).",
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        match error.is::<ConfigError>() {
            true => Failure::config(error),
            false => Failure::failed(error),
        }
    }
}

/// Writes one line of data and sends it off at once, so that whoever reads along sees it.
pub fn print_line(line: impl fmt::Display) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(Failure::output)
}

/// Prints lines until nobody reads them any more. For what ends with more than lines: the exit code still tells.
#[derive(Debug, Default)]
struct Lines {
    is_reader_gone: bool,
}

impl Lines {
    fn print(&mut self, line: impl fmt::Display) -> Result<(), Failure> {
        if self.is_reader_gone {
            return Ok(());
        }
        match print_line(line) {
            Err(failure) if failure.is_reader_gone() => {
                self.is_reader_gone = true;
                Ok(())
            }
            printed => printed,
        }
    }
}

/// Writes much data at once.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    write(&mut stdout)
        .and_then(|()| stdout.flush())
        .map_err(Failure::output)
}

/// Reads the argument of `--speed`: a factor above nought.
fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor <= MOST_SPEED => Ok(factor),
        _ => Err(format!(
            "a number above 0 is expected, at most {MOST_SPEED}: 1 is real time, 10 ten times as fast"
        )),
    }
}

/// A board's line alone takes milliseconds a message: what plays faster than this is no board any more.
const MOST_SPEED: f64 = 1000.0;

/// An error with what was being done in front of it.
#[derive(Debug)]
struct Context {
    what: String,
    source: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for Context {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_failure_tells_its_whole_chain_on_one_line() {
        let failure = Failure::config(io::Error::other("first line\n  second line"))
            .context("reading the key")
            .context("x.toml")
            .advise("Look at it.");
        assert_eq!(
            failure.chain().as_deref(),
            Some("x.toml: reading the key: first line second line")
        );
        assert_eq!(failure.advice(), Some("Look at it."));
        assert_eq!(failure.code(), 78);
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let failure = Failure::output(io::ErrorKind::BrokenPipe.into()).context("anything");
        assert_eq!(failure.chain(), None);
        assert_eq!(failure.code(), 0);
        let failure = Failure::output(io::ErrorKind::StorageFull.into());
        assert_eq!(failure.code(), 1);
        assert!(failure.chain().is_some());
    }

    #[test]
    fn a_bad_configuration_brings_its_code_and_its_advice() {
        let read = || -> Result<(), Failure> {
            crate::config::Config::parse("x = 1", std::path::Path::new(""))?;
            Ok(())
        };
        let failure = read().unwrap_err();
        assert_eq!(failure.code(), 78);
        assert!(
            failure
                .chain()
                .is_some_and(|chain| chain.starts_with("line 1, column 1: "))
        );
        assert!(failure.advice().is_some());
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn speeds_are_above_nought() {
        assert_eq!(speed("2.5"), Ok(2.5));
        assert_eq!(speed("1000"), Ok(1000.0));
        for text in ["0", "-1", "nan", "inf", "fast", "", "1001", "1e300"] {
            assert!(speed(text).is_err(), "{text}");
        }
    }
}
