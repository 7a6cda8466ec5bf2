//! The command line: reads the arguments, hands over to the command, and says how it ended.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use jadoube::commands::{Cli, Failure};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_log(cli.command.is_long_running(), cli.command.default_log());
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::from(failure.code())
        }
    }
}

/// Prints the whole chain of causes on one line, and on a second what to do about it.
fn report(failure: &Failure) {
    let Some(chain) = failure.chain() else {
        return;
    };
    // Where standard error is closed too, the exit code has to be enough.
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "jadoube: {chain}");
    if let Some(advice) = failure.advice() {
        let _ = writeln!(stderr, "{advice}");
    }
}

/// A word alone is a level. The library would take any other for the name of a module, and log nothing else.
fn filter(wanted: &str) -> Result<EnvFilter, String> {
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let mut words = wanted.split(',').map(str::trim);
    match words.find(|word| !word.is_empty() && !word.contains(['=', '[']) && !is_level(word)) {
        Some(word) => Err(format!("{word:?} is no level")),
        None => EnvFilter::try_new(wanted).map_err(|error| error.to_string()),
    }
}

/// Log lines go to standard error, standard output is for data.
///
/// systemd sets `JOURNAL_STREAM` where standard error is the journal, which stamps and colours the lines itself; and the
/// commands that are over in a moment need no times either.
fn start_log(long_running: bool, default: &str) {
    const VARIABLE: &str = "JADOUBE_LOG";
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let wanted = if wanted.trim().is_empty() {
        default
    } else {
        &wanted
    };
    let (filter, refused) = match filter(wanted) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(default), Some(error)),
    };
    let journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let terminal = io::IsTerminal::is_terminal(&io::stderr());
    let lines = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(terminal && !journal && std::env::var_os("NO_COLOR").is_none())
        // The complaint about a closed standard error would itself go there, and panic.
        .log_internal_errors(false);
    if long_running && !journal {
        lines.init();
    } else {
        lines.without_time().init();
    }
    if let Some(error) = refused {
        tracing::warn!("{VARIABLE} is not a log filter ({error}); logging at {default}");
    }
}
