//! Tells people what comes over MQTT, a line each.

use std::collections::HashMap;

use serde::Serialize;

use super::news::News;
use crate::Millis;
use crate::laws::position::Position;
use crate::publish::{
    AlertBody, BoardStatus, Clock, CompletedBy, Event, EventKind, Link, Move, Running, Severity,
};

/// Remembers as much of each table as its lines need.
#[derive(Debug)]
pub struct Narrator {
    colours: bool,
    /// The width of the longest table name.
    width: usize,
    tables: HashMap<String, Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Where the game begins, or goes on after a position was accepted.
    start: Option<Position>,
    moves: HashMap<u32, Move>,
    running: Option<Running>,
    link: Option<Link>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Faint,
    Good,
    Warn,
    Urgent,
}

impl Narrator {
    /// With colours, for terminals. All names are known from the start, so that the lines stand in columns.
    pub fn new<'a>(colours: bool, names: impl IntoIterator<Item = &'a str>) -> Narrator {
        let width = names.into_iter().map(str::len).max().unwrap_or(1);
        Narrator {
            colours,
            width,
            tables: HashMap::new(),
        }
    }

    /// The line for a message, if it is worth one.
    pub fn line(&mut self, news: &News) -> Option<String> {
        let name = news.table()?.to_owned();
        let table = self.tables.entry(name.clone()).or_default();
        let (tone, words) = match news {
            News::Event(event) => table.event(event)?,
            News::Clock(clock) => table.clock(clock)?,
            News::Status(status) => table.status(status)?,
            News::Game(game) => {
                table.begin(&game.start_fen);
                return None;
            }
            News::Pgn { .. } | News::Archive { .. } => return None,
        };
        let width = self.width;
        let line = format!("table {name:<width$}  {words}");
        Some(match (self.colours, tone) {
            (false, _) | (_, Tone::Plain) => line,
            (true, Tone::Faint) => format!("\x1b[2m{line}\x1b[0m"),
            (true, Tone::Good) => format!("\x1b[32m{line}\x1b[0m"),
            (true, Tone::Warn) => format!("\x1b[33m{line}\x1b[0m"),
            (true, Tone::Urgent) => format!("\x1b[1;31m{line}\x1b[0m"),
        })
    }
}

impl Table {
    fn event(&mut self, event: &Event) -> Option<(Tone, String)> {
        Some(match &event.kind {
            EventKind::GameStarted { start_fen } => {
                self.begin(start_fen);
                self.moves.clear();
                (Tone::Good, "a game begins".into())
            }
            // Shown once it is completed: before that it may still change, and its clock is not known.
            EventKind::Move(ply) => {
                self.moves.insert(ply.ply, ply.clone());
                return None;
            }
            EventKind::Completed {
                ply, by, clk_ms, ..
            } => {
                let san = self.moves.get(ply).map_or("?", |told| &told.san);
                let start = self.start.get_or_insert_with(Position::initial);
                let number = start.number_of(*ply);
                let (number, dots) = number.split_at(number.trim_end_matches('.').len());
                let by = match by {
                    CompletedBy::Press => "",
                    CompletedBy::Reply => "  by the reply",
                    CompletedBy::End => "  by the end of the game",
                    CompletedBy::Quiet => "  by standing still",
                };
                let words = format!("{number:>3}{dots:<3} {san:<7} {:>8}{by}", shown(*clk_ms));
                (Tone::Plain, words.trim_end().to_owned())
            }
            EventKind::Takeback { keep_plies, reason } => (
                Tone::Faint,
                format!("back to ply {keep_plies} ({})", word(reason)),
            ),
            EventKind::Gap { ply, plies, .. } => (
                Tone::Faint,
                format!("{plies} plies from ply {ply} on were not seen"),
            ),
            EventKind::Flag { side } => (Tone::Warn, format!("flag of {}", word(side))),
            EventKind::ResultProposed { result, by } => (
                Tone::Good,
                format!("result proposed: {result} ({})", word(by)),
            ),
            EventKind::GameEnded {
                result, by, reason, ..
            } => {
                let how = match (by, reason) {
                    (Some(by), _) => format!(" (by {})", word(by)),
                    (None, Some(reason)) => format!(" ({reason})"),
                    (None, None) => String::new(),
                };
                (Tone::Good, format!("the game is over: {result}{how}"))
            }
            EventKind::AlertRaised { alert } => (tone(alert.severity), told("alert", alert)),
            EventKind::AlertChanged { alert } => {
                (tone(alert.severity), told("alert changed", alert))
            }
            EventKind::AlertClosed { kind, why, .. } => (
                Tone::Good,
                format!("alert closed: {} ({})", word(kind), word(why)),
            ),
            _ => return None,
        })
    }

    fn begin(&mut self, start_fen: &str) {
        // Read so, any castling right is one; here only its numbers count.
        self.start = Position::from_fen(start_fen, true).ok();
    }

    /// A running clock changes sides with each move, which then shows its time. What is left is the clock's start and its stop.
    fn clock(&mut self, clock: &Clock) -> Option<(Tone, String)> {
        let before = self.running.replace(clock.running);
        let what = match (before, clock.running) {
            (None | Some(Running::None), Running::White) => "White's clock runs",
            (None | Some(Running::None), Running::Black) => "Black's clock runs",
            (Some(Running::White | Running::Black), Running::None) => "the clocks stand",
            _ => return None,
        };
        let words = format!(
            "{:>8} {:>8}  {what}",
            shown(clock.white_ms),
            shown(clock.black_ms)
        );
        Some((Tone::Faint, words))
    }

    fn status(&mut self, status: &BoardStatus) -> Option<(Tone, String)> {
        let before = self.link.replace(status.status);
        // At the start every board is still looked for.
        if before.unwrap_or(Link::Missing) == status.status {
            return None;
        }
        let serial = status.serial.as_deref();
        let board = serial.map_or("board".into(), |serial| format!("board {serial}"));
        let tone = match status.status {
            Link::Ok => Tone::Faint,
            Link::Missing | Link::Silent | Link::Fault => Tone::Warn,
        };
        Some((tone, format!("{board}: {}", word(&status.status))))
    }
}

/// An alert with all that helps to put things right.
fn told(what: &str, alert: &AlertBody) -> String {
    let mut line = format!(
        "{what}: {} {} for the {} ({})",
        word(&alert.kind),
        word(&alert.severity),
        word(&alert.audience),
        word(&alert.state)
    );
    line.push_str(": ");
    line.push_str(&alert.text);
    if !alert.squares.is_empty() {
        line.push_str("; squares ");
        line.push_str(&alert.squares.join(" "));
    }
    if !alert.detail.way_back.is_empty() {
        line.push_str("; way back ");
        line.push_str(&alert.detail.way_back.join(" "));
    }
    if let (Some(white), Some(black)) = (alert.detail.white_ms, alert.detail.black_ms) {
        line.push_str(&format!(
            "; clocks {} {}",
            shown(Some(white)),
            shown(Some(black))
        ));
    }
    line
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Info => Tone::Faint,
        Severity::Warn => Tone::Warn,
        Severity::Urgent => Tone::Urgent,
    }
}

/// A time as a clock shows it: hours, minutes, seconds.
fn shown(ms: Option<Millis>) -> String {
    let Some(ms) = ms else {
        return "-".into();
    };
    let seconds = ms.div_ceil(1000);
    format!(
        "{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// The word that stands for a value on the wire.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(narrator: &mut Narrator, topic: &str, payload: &str) -> Option<String> {
        narrator.line(&News::read(topic, payload.as_bytes())?)
    }

    const ENVELOPE: &str = r#""v":1,"stream":"s","seq":1,"boot":"b","at":"","mono_ms":0,"time_ok":true,"id":"s-1","table":"2","game":"g","rev":1"#;

    #[test]
    fn a_move_is_told_once_it_is_completed() {
        let mut narrator = Narrator::new(false, ["2", "10"]);
        let topic = "edge/demo/board/2/event";
        let seen = format!(
            r#"{{{ENVELOPE},"type":"move","ply":23,"uci":"g1f3","san":"Nf3","state":"provisional","by":null,"clk_ms":null,"emt_ms":null,"doubt":null}}"#
        );
        assert_eq!(heard(&mut narrator, topic, &seen), None);
        let completed = format!(
            r#"{{{ENVELOPE},"type":"completed","ply":23,"by":"press","clk_ms":151000,"emt_ms":null}}"#
        );
        assert_eq!(
            heard(&mut narrator, topic, &completed).as_deref(),
            Some("table 2    12.   Nf3      0:02:31")
        );
    }

    #[test]
    fn moves_are_numbered_from_where_the_game_begins() {
        let mut narrator = Narrator::new(false, ["2"]);
        let topic = "edge/demo/board/2/event";
        let started = format!(
            r#"{{{ENVELOPE},"type":"game_started","start_fen":"4k2r/8/8/8/8/8/8/4K3 b k - 0 40"}}"#
        );
        assert!(heard(&mut narrator, topic, &started).is_some());
        for (ply, number) in [(1, "40..."), (2, "41.")] {
            let completed = format!(
                r#"{{{ENVELOPE},"type":"completed","ply":{ply},"by":"press","clk_ms":151000,"emt_ms":null}}"#
            );
            let line = heard(&mut narrator, topic, &completed).unwrap();
            assert!(line.contains(&format!(" {number} ")), "{line}");
        }
    }

    #[test]
    fn the_end_of_an_alert_says_why() {
        let mut narrator = Narrator::new(true, ["2"]);
        let topic = "edge/demo/board/2/event";
        let closed = format!(
            r#"{{{ENVELOPE},"type":"alert_closed","alert":"a1","kind":"illegal_move","why":"restored"}}"#
        );
        assert_eq!(
            heard(&mut narrator, topic, &closed).as_deref(),
            Some("\x1b[32mtable 2  alert closed: illegal_move (restored)\x1b[0m")
        );
        assert_eq!(heard(&mut narrator, topic, "{"), None);
        assert_eq!(heard(&mut narrator, "edge/demo/health", &closed), None);
    }
}
