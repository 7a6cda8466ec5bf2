//! `jadoube replay`: traces through the pipeline in virtual time.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::{Failure, others, print_with};
use crate::config::Config;
use crate::publish::Severity;
use crate::replay::{self, JsonLine, Replayed, Summary};
use crate::session::{self, Settings};
use crate::trace::Trace;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "At most one of --json, --stages, --summary and --pgn can be given; without any a few lines for people are printed for each trace.\n\
    A trace goes by its file name without folder and without .trace. Where several are given, each line of --json names it, and --stages\n\
    puts it in front; --summary always names it, and --pgn never.\n\
    A trace that cannot be read does not keep the others from being replayed, but ends with exit code 1.\n\
    Commands in a trace that could not be carried out are told on standard error."
)]
pub struct Args {
    /// The traces, replayed one after the other, each from a clean state; - reads standard input
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    /// Print each publication as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// Print every stage, interleaved
    #[arg(long, conflicts_with_all = ["json", "summary", "pgn"])]
    pub stages: bool,
    /// Print one line of JSON a trace: games, alerts, plies, counts
    #[arg(long, conflicts_with_all = ["json", "pgn"])]
    pub summary: bool,
    /// Print the games as PGN
    #[arg(long, conflicts_with = "json")]
    pub pgn: bool,
    /// The language of the letters for the pieces; so far only en
    #[arg(long, value_name = "LANG", default_value = "en", value_parser = notation)]
    pub notation: String,
    /// Take what the traces do not say, and the topics, from this configuration
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let place = Place::new(args.config.as_deref())?;
    let several = args.traces.len() > 1;
    let mut failed = 0;
    let mut first = true;
    for path in &args.traces {
        let replayed = load(path).and_then(|trace| {
            let mut settings =
                replay::settings(&trace, place.settings.clone()).map_err(|error| {
                    Failure::failed(error)
                        .advise("Mend the head of the trace: its lines that begin with #.")
                })?;
            settings.stages = args.stages;
            Ok((trace.header.board, replay::replay(&trace, settings)))
        });
        let (family, replayed) = match replayed.map_err(|failure| failure.context(shown(path))) {
            Ok(replayed) => replayed,
            Err(failure) if !several => return Err(failure),
            Err(failure) => {
                failed += 1;
                tracing::error!("{}", failure.chain().unwrap_or_default());
                continue;
            }
        };
        if replayed.received_bytes > 0 && replayed.messages == 0 {
            tracing::warn!(
                "{}: none of its {} bytes can be read as {family}; if the board was of another make ({}), say so in its line # board:",
                shown(path),
                replayed.received_bytes,
                others(family)
            );
        }
        for refused in &replayed.refused {
            tracing::warn!("{}: {refused}", shown(path));
        }
        let name = name(path);
        print_with(|out| {
            if args.json {
                json(out, several.then_some(&*name), &place, &replayed)
            } else if args.stages {
                stages(out, several.then_some(&*name), &replayed)
            } else if args.summary {
                serde_json::to_writer(&mut *out, &replay::summarise(&name, &replayed))?;
                writeln!(out)
            } else if args.pgn {
                games(out, &mut first, &replayed)
            } else {
                words(out, &replay::summarise(&name, &replayed))
            }
        })?;
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::failed(format!(
            "{failed} of {} traces could not be replayed",
            args.traces.len()
        ))
        .advise("The lines above say which, and what is wrong with each.")),
    }
}

/// Where the publications belong, and what the traces leave open.
struct Place {
    /// Base and event, in front of every topic.
    prefix: String,
    node: String,
    settings: Settings,
}

impl Place {
    fn new(config: Option<&Path>) -> Result<Place, Failure> {
        let Some(path) = config else {
            return Ok(Place {
                prefix: "jadoube/v1/replay".into(),
                node: "replay".into(),
                settings: Settings::new(TABLE),
            });
        };
        let config = Config::load(path)?;
        Ok(Place {
            prefix: format!("{}/{}", config.mqtt.base, config.event.as_str()),
            node: config.node.as_str().to_owned(),
            settings: config.defaults.session(TABLE),
        })
    }

    fn topic(&self, topic: &crate::publish::Topic) -> String {
        format!("{}/{}", self.prefix, topic.path(&self.node))
    }
}

/// A trace does not say which table it comes from.
const TABLE: &str = "1";

fn load(path: &Path) -> Result<Trace, Failure> {
    let bytes = if is_stdin(path) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let bytes = bytes?;
    Trace::from_bytes(&bytes).map_err(|error| {
        Failure::failed(error)
            .advise("Mend that line, or record the trace anew with jadoube record.")
    })
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn shown(path: &Path) -> String {
    match is_stdin(path) {
        true => "standard input".into(),
        false => path.display().to_string(),
    }
}

/// What a trace goes by in the output.
fn name(path: &Path) -> String {
    if is_stdin(path) {
        return "stdin".into();
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    name.strip_suffix(".trace")
        .filter(|stem| !stem.is_empty())
        .unwrap_or(&name)
        .to_owned()
}

fn json(
    out: &mut dyn Write,
    name: Option<&str>,
    place: &Place,
    replayed: &Replayed,
) -> io::Result<()> {
    for (at, publication) in &replayed.publications {
        let topic = place.topic(&publication.topic);
        serde_json::to_writer(&mut *out, &JsonLine::new(name, *at, topic, publication))?;
        writeln!(out)?;
    }
    Ok(())
}

fn stages(out: &mut dyn Write, name: Option<&str>, replayed: &Replayed) -> io::Result<()> {
    if let Some(name) = name {
        writeln!(out, "== {name}")?;
    }
    for line in &replayed.stages {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The games of a trace; `first` is whether none was printed before.
fn games(out: &mut dyn Write, first: &mut bool, replayed: &Replayed) -> io::Result<()> {
    for game in replay::pgn(replayed) {
        // PGN 8.2.6: an empty line stands between games.
        if !std::mem::take(first) {
            writeln!(out)?;
        }
        writeln!(out, "{}", game.trim_end())?;
    }
    Ok(())
}

fn words(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    writeln!(out, "{}", summary.trace)?;
    for game in &summary.games {
        let moves: Vec<&str> = game.moves.iter().map(|ply| ply.san.as_str()).collect();
        writeln!(
            out,
            "  game {}: {} plies, result {}{}",
            game.game,
            moves.len(),
            game.result,
            if game.in_sync {
                ""
            } else {
                ", board and record differ"
            }
        )?;
        if !moves.is_empty() {
            writeln!(out, "    {}", moves.join(" "))?;
        }
    }
    if summary.alerts.is_empty() {
        writeln!(out, "  no alerts")?;
    }
    for told in &summary.alerts {
        let closed = match told.closed_ms {
            Some(at) => format!("to {}", session::output_time(at)),
            None => "still open".into(),
        };
        writeln!(
            out,
            "  {} {} for the {}, from {} {closed}: {}",
            severity(told.alert.severity),
            word(&told.alert.kind),
            told.alert.audience.as_str(),
            session::output_time(told.raised_ms),
            told.alert.text,
        )?;
    }
    if summary.skipped_bytes > 0 {
        writeln!(out, "  {} bytes could not be read", summary.skipped_bytes)?;
    }
    Ok(())
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warn => "warn",
        Severity::Urgent => "urgent",
    }
}

/// A unit variant as the payloads write it.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Reads the argument of `--notation`.
fn notation(text: &str) -> Result<String, String> {
    match text {
        "en" => Ok(text.to_owned()),
        _ => Err("only en is known so far: K Q R B N".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_by_their_file_names() {
        let table = [
            ("games/round-1.table-2.trace", "round-1.table-2"),
            ("x.txt", "x.txt"),
            (".trace", ".trace"),
            ("-", "stdin"),
        ];
        for (path, expected) in table {
            assert_eq!(name(Path::new(path)), expected);
        }
    }

    #[test]
    fn topics_are_those_of_the_configuration() {
        let game = crate::publish::Topic::Game {
            table: TABLE.into(),
        };
        let place = Place::new(None).expect("no file is read");
        assert_eq!(
            place.topic(&game),
            "jadoube/v1/replay/edge/replay/board/1/game"
        );
    }
}
