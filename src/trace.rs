//! The text format in which recorders, tests and bug reports share what went over a board's cable.
//!
//! A trace is UTF-8 text: a header of `# key: value` lines, then one event a line, each with its time in seconds, a sign and
//! what belongs to it.
//!
//! ```text
//! # jadoube-trace: 1
//! # board: dgt
//! # time-control: 40/5400+30:1800+30
//! 0.000 > 40 42 4b                                   to the board: information only
//! 0.310 < 86 00 43 08 09                             from the board, in any chunks
//! 9.500 ! {"verb":"press","args":{"side":"white"}}   a command, as over MQTT
//! 12.000 x unplugged                                 the link is lost
//! 12.900 o opened                                    and back
//! 20.000 r                                           the daemon restarts
//! # a comment
//! ```
//!
//! The explanations on the right are not part of the format; but whatever follows a `#` after bytes, after a command or after
//! `r` is a comment.
//!
//! The reader is strict, since a trace is evidence: what it does not understand it refuses, and says in which line. It allows
//! what editors and mail do to a file: CR LF, a byte order mark, blank lines, tabs. The header takes no unknown key, lest a
//! mistyped one changes what a trace proves; a comment in the header is therefore one that does not look like `key: value`. A line
//! has no more than a mebibyte.

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::Millis;
use crate::board::OrientationSetting;
use crate::board::driver::Watch;
use crate::clock::control::TimeControl;
use crate::clock::{ClockKind, ClockSide};
use crate::game::Arming;
use crate::laws::ruleset::{Ruleset, Variant};
use crate::reading::not_json;
use crate::text::shortened;
use crate::wire::Family;

/// The version of the format that is read and written.
pub const VERSION: u32 = 1;

/// A whole trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    pub header: Header,
    /// In the order of the file, which is that of time.
    pub lines: Vec<Line>,
}

/// What the head of a trace says about the game and the board. `None` where it says nothing, so that a configuration may.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    pub board: Family,
    /// Start position, if not the usual one. Its letters are checked here, its sense is not.
    pub fen: Option<String>,
    pub chess960: bool,
    pub ruleset: Option<Ruleset>,
    pub variant: Option<Variant>,
    pub supervised: Option<bool>,
    /// Without it nothing is compared with a control, and no period is counted.
    pub time_control: Option<TimeControl>,
    pub orientation: Option<OrientationSetting>,
    pub white_clock_side: Option<ClockSide>,
    pub silence: Watch,
    pub arming: Option<Arming>,
    pub clock: ClockKind,
    pub firmware: Option<String>,
    /// For people: who recorded it, when, what happens. May be given several times.
    pub notes: Vec<String>,
}

/// One event of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub at_ms: Millis,
    /// Where it stands in the file, counted from 1.
    pub number: usize,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `<`: bytes that the board sent, at least one.
    FromBoard(Vec<u8>),
    /// `>`: bytes that were sent to the board, at least one. A replay ignores them.
    ToBoard(Vec<u8>),
    /// `!`: a command, as the text of a JSON object without line breaks.
    Command(String),
    /// `x`: the link is lost, and why.
    Unplugged(String),
    /// `o`: the link is back.
    Opened(String),
    /// `r`: the daemon restarts here; the session is rebuilt from its record.
    Restart,
}

/// Why a text is no trace: the line, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct ParseTraceError {
    /// Counted from 1.
    pub line: usize,
    pub fault: Fault,
}

/// What is wrong in a line of a trace. Each says what is expected instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("this is no trace; its first line must be \"# jadoube-trace: {VERSION}\"")]
    NoTrace,
    #[error("version {0:?} of the format is unknown; this program reads version {VERSION}")]
    OtherVersion(String),
    #[error("not UTF-8")]
    NotUtf8,
    #[error("{0} bytes long; a line of a trace has no more than {MOST_LINE}")]
    TooLong(usize),
    #[error(
        "unknown key {0:?}; known are {known}, and a comment here must not look like a key",
        known = KEYS.join(", ")
    )]
    UnknownKey(String),
    #[error("{0} was given before, in line {1}")]
    TwiceGiven(&'static str, usize),
    #[error("{0} has no value")]
    NoValue(&'static str),
    #[error("{key} {value:?}: {expected}")]
    BadValue {
        key: &'static str,
        value: String,
        expected: String,
    },
    #[error(
        "bad time {0:?}: seconds with at most three decimals are expected, as 12.345, and no more than ten years"
    )]
    BadTime(String),
    #[error("the time {} is before that of the event above, {}", Seconds(*.at_ms), Seconds(*.before_ms))]
    TimeRunsBack { at_ms: Millis, before_ms: Millis },
    #[error("a sign is expected after the time: {SIGNS}")]
    NoSign,
    #[error("unknown sign {0:?}: expected is {SIGNS}")]
    UnknownSign(String),
    #[error("bytes are expected after {0}, as 86 00 43")]
    NoBytes(char),
    #[error("{0:?} is no byte: two hexadecimal digits each are expected, as 86 00 43")]
    BadByte(String),
    #[error("a command is expected after !, as a JSON object")]
    NoCommand,
    #[error("the command is no JSON object: {0}")]
    BadCommand(String),
    #[error("{0:?} after r: nothing but a comment is expected there")]
    AfterRestart(String),
}

impl Trace {
    /// Reads a whole trace.
    pub fn parse(text: &str) -> Result<Trace, ParseTraceError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut parser = Parser::default();
        for (index, line) in text.lines().enumerate() {
            parser
                .take(index + 1, line.trim())
                .map_err(|fault| ParseTraceError {
                    line: index + 1,
                    fault,
                })?;
        }
        if !parser.version_seen {
            return Err(ParseTraceError {
                line: 1,
                fault: Fault::NoTrace,
            });
        }
        Ok(parser.trace)
    }

    /// Reads a whole trace as it lies in a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Trace, ParseTraceError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Trace::parse(text),
            Err(error) => Err(ParseTraceError {
                line: 1 + bytes[..error.valid_up_to()]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count(),
                fault: Fault::NotUtf8,
            }),
        }
    }

    /// The time of the last event.
    pub fn end_ms(&self) -> Millis {
        self.lines.last().map_or(0, |line| line.at_ms)
    }
}

impl FromStr for Trace {
    type Err = ParseTraceError;

    fn from_str(text: &str) -> Result<Trace, ParseTraceError> {
        Trace::parse(text)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.header)?;
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

/// The lines of the head, each with its line break.
impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn line(
            f: &mut fmt::Formatter<'_>,
            key: &str,
            value: Option<impl fmt::Display>,
        ) -> fmt::Result {
            let Some(value) = value else {
                return Ok(());
            };
            let value = without_controls(&value.to_string());
            if value.is_empty() {
                return Ok(());
            }
            writeln!(f, "# {key}: {value}")
        }
        line(f, "jadoube-trace", Some(VERSION))?;
        line(f, "board", Some(self.board))?;
        line(f, "fen", self.fen.as_ref())?;
        line(f, "chess960", self.chess960.then_some("yes"))?;
        line(f, "ruleset", self.ruleset)?;
        line(f, "variant", self.variant)?;
        line(f, "supervised", self.supervised.map(yes_or_no))?;
        line(f, "time-control", self.time_control.as_ref())?;
        line(f, "orientation", self.orientation)?;
        line(f, "white-clock-side", self.white_clock_side)?;
        line(f, "silence", unless_default(self.silence))?;
        line(f, "arming", self.arming)?;
        line(f, "clock", unless_default(self.clock))?;
        line(f, "firmware", self.firmware.as_ref())?;
        for note in self.notes.iter().flat_map(|note| note.lines()) {
            line(f, "note", Some(note))?;
        }
        Ok(())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Seconds(self.at_ms), self.event)
    }
}

/// The sign, and what belongs to it.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |f: &mut fmt::Formatter<'_>, sign: char, text: &str| {
            let text = without_controls(text);
            match text.is_empty() {
                true => write!(f, "{sign}"),
                false => write!(f, "{sign} {text}"),
            }
        };
        match self {
            Event::FromBoard(bytes) => write_bytes(f, '<', bytes),
            Event::ToBoard(bytes) => write_bytes(f, '>', bytes),
            // In JSON a raw line break stands between tokens only, where a space does as well.
            Event::Command(json) => text(f, '!', json),
            Event::Unplugged(reason) => text(f, 'x', reason),
            Event::Opened(reason) => text(f, 'o', reason),
            Event::Restart => f.write_str("r"),
        }
    }
}

/// Writes a trace while it happens, a line at a time. What it has written without an error can be read again.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// The time of the last event; none is written while this is `None`.
    last_ms: Option<Millis>,
}

impl<W: io::Write> Writer<W> {
    /// Begins a trace with its head. A head that could not be read again (a FEN that is none) is refused with
    /// [`io::ErrorKind::InvalidInput`].
    pub fn new(mut out: W, header: &Header) -> io::Result<Writer<W>> {
        let head = header.to_string();
        Trace::parse(&head).map_err(|error| invalid(error.fault))?;
        out.write_all(head.as_bytes())?;
        Ok(Writer { out, last_ms: None })
    }

    /// Goes on with a trace that was begun before and whose last event was at `last_ms`.
    pub fn resume(out: W, last_ms: Millis) -> Writer<W> {
        Writer {
            out,
            last_ms: Some(last_ms),
        }
    }

    /// Writes one event, as one call to the writer below.
    ///
    /// A time before that of the last event is written as that one's: whoever gives a time late has still seen it in this order.
    /// An event without bytes is left out. A command that is no JSON object, and what makes too long a line, is refused with
    /// [`io::ErrorKind::InvalidInput`]: it would make the trace unreadable.
    pub fn event(&mut self, at_ms: Millis, event: &Event) -> io::Result<()> {
        match event {
            Event::FromBoard(bytes) | Event::ToBoard(bytes) if bytes.is_empty() => return Ok(()),
            Event::Command(json) => {
                command(&without_controls(json)).map_err(invalid)?;
            }
            _ => {}
        }
        let at_ms = at_ms.max(self.last_ms.unwrap_or(0));
        let line = format!("{} {event}\n", Seconds(at_ms));
        may_be_line(line.trim_end()).map_err(invalid)?;
        self.last_ms = Some(at_ms);
        self.out.write_all(line.as_bytes())
    }

    /// Writes a comment for people, a line for each of its lines; as a note where the header would take it for a key.
    pub fn comment(&mut self, text: &str) -> io::Result<()> {
        let mut lines = String::new();
        for line in text.lines() {
            let line = without_controls(line);
            let is_key = self.last_ms.is_none() && key_and_value(&line).is_some();
            let line = format!("{}{line}", if is_key { "# note: " } else { "# " });
            may_be_line(&line).map_err(invalid)?;
            lines.push_str(&line);
            lines.push('\n');
        }
        self.out.write_all(lines.as_bytes())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub fn into_inner(self) -> W {
        self.out
    }
}

/// Reads line after line.
#[derive(Default)]
struct Parser {
    trace: Trace,
    version_seen: bool,
    /// Which keys stood in which line.
    given: Vec<(&'static str, usize)>,
}

impl Parser {
    fn take(&mut self, number: usize, line: &str) -> Result<(), Fault> {
        if line.is_empty() {
            return Ok(());
        }
        if !self.version_seen {
            let version = line
                .strip_prefix('#')
                .and_then(|line| line.trim_start().strip_prefix("jadoube-trace:"))
                .ok_or(Fault::NoTrace)?
                .trim();
            if version != VERSION.to_string() {
                return Err(Fault::OtherVersion(shortened(version, EXCERPT)));
            }
            self.version_seen = true;
            self.given.push(("jadoube-trace", number));
            return Ok(());
        }
        may_be_line(line)?;
        match line.strip_prefix('#') {
            Some(comment) if self.trace.lines.is_empty() => self.take_header(number, comment),
            Some(_) => Ok(()),
            None => {
                let line = self.event(number, line)?;
                self.trace.lines.push(line);
                Ok(())
            }
        }
    }

    fn take_header(&mut self, number: usize, line: &str) -> Result<(), Fault> {
        let Some((word, value)) = key_and_value(line) else {
            return Ok(());
        };
        let Some(key) = KEYS.iter().copied().find(|key| *key == word) else {
            return Err(Fault::UnknownKey(shortened(word, EXCERPT)));
        };
        if key != "note" {
            if let Some((_, before)) = self.given.iter().find(|(given, _)| *given == key) {
                return Err(Fault::TwiceGiven(key, *before));
            }
            self.given.push((key, number));
        }
        if value.is_empty() {
            return Err(Fault::NoValue(key));
        }
        self.trace
            .header
            .set(key, value)
            .map_err(|expected| Fault::BadValue {
                key,
                value: shortened(value, EXCERPT),
                expected: shortened(&expected, 240),
            })
    }

    fn event(&self, number: usize, line: &str) -> Result<Line, Fault> {
        let (time, rest) = split_word(line);
        let at_ms = parse_seconds(time).ok_or_else(|| Fault::BadTime(shortened(time, EXCERPT)))?;
        let before_ms = self.trace.end_ms();
        if at_ms < before_ms {
            return Err(Fault::TimeRunsBack { at_ms, before_ms });
        }
        let (sign, rest) = split_word(rest);
        let event = match sign {
            "<" => Event::FromBoard(bytes('<', rest)?),
            ">" => Event::ToBoard(bytes('>', rest)?),
            "!" => Event::Command(command(rest)?.to_owned()),
            "x" => Event::Unplugged(rest.to_owned()),
            "o" => Event::Opened(rest.to_owned()),
            "r" if rest.is_empty() || rest.starts_with('#') => Event::Restart,
            "r" => return Err(Fault::AfterRestart(shortened(rest, EXCERPT))),
            "" => return Err(Fault::NoSign),
            _ => return Err(Fault::UnknownSign(shortened(sign, EXCERPT))),
        };
        Ok(Line {
            at_ms,
            number,
            event,
        })
    }
}

impl Header {
    /// Takes the value of a key in [`KEYS`]; the error says what is expected.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn word<T: FromStr<Err: fmt::Display>>(value: &str) -> Result<T, String> {
            value.parse().map_err(|error: T::Err| error.to_string())
        }
        match key {
            "board" => self.board = word(value)?,
            "fen" => self.fen = Some(fen(value)?),
            "chess960" => self.chess960 = parse_yes_or_no(value)?,
            "ruleset" => self.ruleset = Some(word(value)?),
            "variant" => self.variant = Some(word(value)?),
            "supervised" => self.supervised = Some(parse_yes_or_no(value)?),
            "time-control" => self.time_control = Some(word(value)?),
            "orientation" => self.orientation = Some(word(value)?),
            "white-clock-side" => self.white_clock_side = Some(word(value)?),
            "silence" => self.silence = word(value)?,
            "arming" => self.arming = Some(word(value)?),
            "clock" => self.clock = word(value)?,
            "firmware" => self.firmware = Some(value.to_owned()),
            "note" => self.notes.push(value.to_owned()),
            _ => return Err("only the first line says this".into()),
        }
        Ok(())
    }
}

/// Refuses a line that is too long.
fn may_be_line(line: &str) -> Result<(), Fault> {
    match line.len() {
        ..=MOST_LINE => Ok(()),
        length => Err(Fault::TooLong(length)),
    }
}

/// Splits `key: value`. What does not look like it is a comment: the colon must follow one word at once, and be followed by a
/// space or nothing, so that an address or a sentence is none.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim().split_once(':')?;
    let is_word = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let apart = value.is_empty() || value.starts_with(char::is_whitespace);
    (is_word && apart).then(|| (key, value.trim()))
}

/// The first word, and what follows without the space between.
fn split_word(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

fn parse_seconds(text: &str) -> Option<Millis> {
    let (whole, decimals) = match text.split_once('.') {
        Some((_, decimals)) if decimals.is_empty() || decimals.len() > 3 => return None,
        Some((whole, decimals)) => (whole, decimals),
        None => (text, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) {
        return None;
    }
    // "5" after the point means 500 ms.
    let millis: Millis = format!("{decimals:0<3}").parse().ok()?;
    let seconds: Millis = whole.parse().ok()?;
    let at_ms = seconds.checked_mul(1000)?.checked_add(millis)?;
    (at_ms <= MOST_MS).then_some(at_ms)
}

/// Ten years. Later than that is a slip of the pen, and timers are added to it.
const MOST_MS: Millis = 10 * 366 * 24 * 3600 * 1000;

fn bytes(sign: char, text: &str) -> Result<Vec<u8>, Fault> {
    let text = text.split_once('#').map_or(text, |(bytes, _)| bytes);
    let mut bytes = Vec::with_capacity(text.len() / 3 + 1);
    for word in text.split_whitespace() {
        let digits: Option<Vec<u8>> = word
            .chars()
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect();
        match digits {
            Some(digits) if digits.len() % 2 == 0 => {
                bytes.extend(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]));
            }
            _ => return Err(Fault::BadByte(shortened(word, EXCERPT))),
        }
    }
    if bytes.is_empty() {
        return Err(Fault::NoBytes(sign));
    }
    Ok(bytes)
}

/// The JSON object at the begin of the text; only a comment may follow.
fn command(text: &str) -> Result<&str, Fault> {
    if text.is_empty() {
        return Err(Fault::NoCommand);
    }
    let bad = |error: serde_json::Error| Fault::BadCommand(not_json(&error));
    let mut values =
        serde_json::Deserializer::from_str(text).into_iter::<serde_json::Map<String, _>>();
    let _: serde_json::Map<String, serde_json::Value> =
        values.next().ok_or(Fault::NoCommand)?.map_err(bad)?;
    let (json, rest) = text.split_at(values.byte_offset());
    let rest = rest.trim_start();
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err(Fault::BadCommand(format!(
            "{:?} follows it",
            shortened(rest, EXCERPT)
        )));
    }
    Ok(json)
}

/// Whether a text has the form of a FEN (PGN standard 16.1), from the placement alone to all six fields.
fn fen(text: &str) -> Result<String, String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let placement = fields.first().copied().unwrap_or_default();
    let ranks: Vec<&str> = placement.split('/').collect();
    let rank_ok = |rank: &&str| {
        let squares: Option<u32> = rank
            .chars()
            .map(|c| match c {
                '1'..='8' => c.to_digit(10),
                _ => "pnbrqkPNBRQK".contains(c).then_some(1),
            })
            .sum();
        squares == Some(8)
    };
    let turn_ok = fields.get(1).is_none_or(|turn| matches!(*turn, "w" | "b"));
    if ranks.len() == 8 && ranks.iter().all(rank_ok) && turn_ok && fields.len() <= 6 {
        Ok(fields.join(" "))
    } else {
        Err("a FEN is expected: eight ranks of eight squares, then w or b, castling rights, en passant square, two counts".into())
    }
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

fn parse_yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes | no is expected".into()),
    }
}

fn unless_default<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// The text on one line, without anything that a terminal or a reader of lines would act on.
fn without_controls(text: &str) -> String {
    let text = text.replace(|c: char| c.is_control(), " ");
    text.trim().to_owned()
}

fn invalid(fault: Fault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, fault.to_string())
}

fn write_bytes(f: &mut fmt::Formatter<'_>, sign: char, bytes: &[u8]) -> fmt::Result {
    write!(f, "{sign}")?;
    for byte in bytes {
        write!(f, " {byte:02x}")?;
    }
    Ok(())
}

/// A time as it stands in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds(pub Millis);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Far more than a board says between two looks at its port, or than anybody commands.
const MOST_LINE: usize = 1 << 20;

/// So many characters of a text that an error message stays readable.
const EXCERPT: usize = 40;

/// The keys of the header.
const KEYS: [&str; 15] = [
    "jadoube-trace",
    "board",
    "fen",
    "chess960",
    "ruleset",
    "variant",
    "supervised",
    "time-control",
    "orientation",
    "white-clock-side",
    "silence",
    "arming",
    "clock",
    "firmware",
    "note",
];

const SIGNS: &str = "< > ! x o r";

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    const WHOLE: &str = r#"# jadoube-trace: 1
# board: dgt-bus
# fen: 4k3/8/8/8/8/8/8/4K2R w K - 0 1
# chess960: yes
# ruleset: fide-2009
# variant: rapid
# supervised: no
# time-control: 40/5400+30:1800+30
# orientation: rotated
# white-clock-side: left
# silence: judge
# arming: manual
# clock: external
# firmware: 1.80
# note: first note
# note: second: note
0.000 > 4b
0.010 < 86 00 43
9.500 ! {"verb":"press","args":{"side":"white"}}
12.000 x unplugged by hand
12.900 o
20.000 r
"#;

    #[test]
    fn a_whole_trace_is_read_and_written_again() {
        let trace = Trace::parse(WHOLE).unwrap();
        let header = &trace.header;
        assert_eq!(header.board, Family::DgtBus);
        assert_eq!(
            header.fen.as_deref(),
            Some("4k3/8/8/8/8/8/8/4K2R w K - 0 1")
        );
        assert!(header.chess960);
        assert_eq!(header.ruleset, Some(Ruleset::Fide2009));
        assert_eq!(header.variant, Some(Variant::Rapid));
        assert_eq!(header.supervised, Some(false));
        assert_eq!(header.time_control, "40/5400+30:1800+30".parse().ok());
        assert_eq!(header.orientation, Some(OrientationSetting::Rotated));
        assert_eq!(header.white_clock_side, Some(ClockSide::Left));
        assert_eq!(header.silence, Watch::Judge);
        assert_eq!(header.arming, Some(Arming::Manual));
        assert_eq!(header.clock, ClockKind::External);
        assert_eq!(header.firmware.as_deref(), Some("1.80"));
        assert_eq!(header.notes, ["first note", "second: note"]);
        let lines: Vec<_> = trace
            .lines
            .iter()
            .map(|line| (line.number, line.at_ms, &line.event))
            .collect();
        let press = r#"{"verb":"press","args":{"side":"white"}}"#;
        assert_eq!(
            lines,
            [
                (17, 0, &Event::ToBoard(vec![0x4b])),
                (18, 10, &Event::FromBoard(vec![0x86, 0x00, 0x43])),
                (19, 9_500, &Event::Command(press.into())),
                (20, 12_000, &Event::Unplugged("unplugged by hand".into())),
                (21, 12_900, &Event::Opened(String::new())),
                (22, 20_000, &Event::Restart),
            ]
        );
        assert_eq!(trace.to_string(), WHOLE);
        for key in KEYS {
            assert!(WHOLE.contains(&format!("# {key}: ")), "{key}");
        }
    }

    #[test]
    fn an_empty_game_is_a_trace() {
        let trace = Trace::parse("# jadoube-trace: 1").unwrap();
        assert_eq!(trace, Trace::default());
        assert_eq!(
            trace.to_string(),
            "# jadoube-trace: 1\n# board: dgt\n",
            "the family is always said"
        );
    }

    #[test]
    fn what_editors_and_mail_do_to_a_file_is_tolerated() {
        let plain = "# jadoube-trace: 1\n# note: x\n\n1 < 01 02\n# later: comment\n2.5 r\n";
        let wanted = Trace::parse(plain).unwrap();
        assert_eq!(wanted.lines[1].at_ms, 2_500);
        let windows = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
        assert_eq!(Trace::parse(&windows).unwrap(), wanted);
        assert_eq!(Trace::from_bytes(windows.as_bytes()).unwrap(), wanted);
        let tabs =
            "#jadoube-trace:  1\n  #\tnote:\tx \n\n1\t<\t0102 \n# later: comment\n 2.500  r ";
        assert_eq!(Trace::parse(tabs).unwrap(), wanted);
    }

    #[test]
    fn comments_may_follow_and_may_stand_in_the_header() {
        let trace = Trace::parse(
            "# jadoube-trace: 1\n# recorded by hand\n# see https://example.org/a:b\n# at 12: no key\n#\n\
             0 < 86 # half a dump\n1 ! {\"verb\":\"resend\"}  # again\n2 r # off and on\n# unknown: fine here\n",
        )
        .unwrap();
        let events: Vec<_> = trace.lines.into_iter().map(|line| line.event).collect();
        assert_eq!(
            events,
            [
                Event::FromBoard(vec![0x86]),
                Event::Command(r#"{"verb":"resend"}"#.into()),
                Event::Restart
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, wanted) in [
            ("", 1, "its first line must be \"# jadoube-trace: 1\""),
            ("0.000 < 86", 1, "this is no trace"),
            ("# board: dgt\n# jadoube-trace: 1", 1, "first line must be"),
            ("\n# jadoube-trace: 2", 2, "version \"2\""),
            ("# jadoube-trace: 1\n# jadoube-trace: 1", 2, "in line 1"),
            (
                "H\n# colour: red",
                2,
                "unknown key \"colour\"; known are jadoube-trace, board",
            ),
            ("H\n# Board: dgt", 2, "unknown key \"Board\""),
            ("H\n# fen:", 2, "fen has no value"),
            (
                "H\n# variant: rapid\n# variant: rapid",
                3,
                "variant was given before, in line 2",
            ),
            (
                "H\n# board: abacus",
                2,
                "board \"abacus\": dgt | dgt-bus | psb1 | certabo | chesslink is expected",
            ),
            (
                "H\n# fen: 8/8/8/8/8/8/8/7 w - - 0 1",
                2,
                "a FEN is expected",
            ),
            ("H\n# fen: startpos", 2, "a FEN is expected"),
            ("H\n# fen: 8/8/8/8/8/8/8/8 x", 2, "a FEN is expected"),
            ("H\n# chess960: true", 2, "yes | no is expected"),
            ("H\n# supervised: maybe", 2, "yes | no is expected"),
            (
                "H\n# ruleset: FIDE 2023",
                2,
                "unknown ruleset \"FIDE 2023\"; known are fide-1997",
            ),
            (
                "H\n# variant: bullet",
                2,
                "known are standard, rapid, blitz",
            ),
            (
                "H\n# time-control: 90 minutes",
                2,
                "written as in 40/5400+30:1800+30",
            ),
            (
                "H\n# orientation: left",
                2,
                "auto | normal | rotated is expected",
            ),
            (
                "H\n# white-clock-side: top",
                2,
                "auto | left | right is expected",
            ),
            ("H\n# silence: golden", 2, "ignore | judge is expected"),
            ("H\n# arming: yes", 2, "auto | manual is expected"),
            (
                "H\n# clock: sand",
                2,
                "auto | none | dgt | external is expected",
            ),
            ("H\nzero < 86", 2, "bad time \"zero\""),
            ("H\n1. < 86", 2, "bad time \"1.\""),
            ("H\n.5 < 86", 2, "bad time \".5\""),
            ("H\n-1 < 86", 2, "bad time \"-1\""),
            ("H\n+1 < 86", 2, "bad time \"+1\""),
            ("H\n1.0000 < 86", 2, "at most three decimals"),
            ("H\n1.+5 < 86", 2, "bad time \"1.+5\""),
            ("H\n99999999999999999999 < 86", 2, "bad time"),
            ("H\n316224000 < 86\n316224000.001 r", 3, "bad time"),
            (
                "H\n1.5 < 86\n1.499 r",
                3,
                "the time 1.499 is before that of the event above, 1.500",
            ),
            (
                "H\n1.5",
                2,
                "a sign is expected after the time: < > ! x o r",
            ),
            ("H\n1.5 ? 86", 2, "unknown sign \"?\""),
            ("H\n1.5 <86", 2, "unknown sign \"<86\""),
            ("H\n1.5 <", 2, "bytes are expected after <"),
            ("H\n1.5 > # none", 2, "bytes are expected after >"),
            ("H\n1.5 < 86 0", 2, "\"0\" is no byte"),
            ("H\n1.5 < 86 0x00", 2, "\"0x00\" is no byte"),
            ("H\n1.5 < 86 é0", 2, "\"é0\" is no byte"),
            ("H\n1.5 !", 2, "a command is expected after !"),
            ("H\n1.5 ! press", 2, "the command is no JSON object"),
            ("H\n1.5 ! [1]", 2, "the command is no JSON object"),
            (
                "H\n1.5 ! {\"verb\":\"press\"",
                2,
                "the command is no JSON object",
            ),
            ("H\n1.5 ! {} {}", 2, "\"{}\" follows it"),
            ("H\n1.5 r now", 2, "\"now\" after r"),
        ] {
            let text = text.replace("H\n", "# jadoube-trace: 1\n");
            let error = Trace::parse(&text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(
                error.to_string().contains(wanted),
                "{text:?}: {error}, wanted {wanted}"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_said_with_their_line() {
        let error = Trace::from_bytes(b"# jadoube-trace: 1\n# note: \xff\n").unwrap_err();
        assert_eq!((error.line, error.fault), (2, Fault::NotUtf8));
    }

    #[test]
    fn long_nonsense_makes_a_short_message() {
        for line in [
            "0 < ",
            "0 ",
            "",
            "# ruleset: ",
            "# board: ",
            "# time-control: ",
            "# fen: ",
        ] {
            let text = format!("# jadoube-trace: 1\n{line}{}", "ä".repeat(10_000));
            let error = Trace::parse(&text).unwrap_err().to_string();
            assert!(error.chars().count() < 400, "{error}");
        }
    }

    #[test]
    fn no_line_is_longer_than_a_mebibyte() {
        let event = |count: usize| Event::FromBoard(vec![0x93; count]);
        let (most, more) = (event(MOST_LINE / 3 - 10), event(MOST_LINE / 3));
        let mut writer = Writer::new(Vec::new(), &Header::default()).unwrap();
        writer.event(0, &most).unwrap();
        let refused = writer.event(1, &more).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        let refused = writer.comment(&"x".repeat(MOST_LINE)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        let mut text = String::from_utf8(writer.into_inner()).unwrap();
        assert_eq!(Trace::parse(&text).unwrap().lines.len(), 1);
        for line in [
            format!("2.000 {more}"),
            format!("# {}", "x".repeat(MOST_LINE)),
        ] {
            let whole = text.len();
            text.push_str(&line);
            let error = Trace::parse(&text).unwrap_err();
            assert_eq!((error.line, error.fault), (4, Fault::TooLong(line.len())));
            text.truncate(whole);
        }
    }

    #[test]
    fn the_writer_writes_what_can_be_read() {
        let header = Header {
            firmware: Some("1.80\n# board: psb1".into()),
            notes: vec!["one\ntwo".into(), " ".into()],
            ..Header::default()
        };
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        writer.comment("by hand\ndate: today").unwrap();
        writer.event(500, &Event::FromBoard(vec![1, 2])).unwrap();
        writer.event(400, &Event::ToBoard(vec![3])).unwrap();
        writer.event(600, &Event::ToBoard(vec![])).unwrap();
        writer.comment("a\nb: c").unwrap();
        writer
            .event(700, &Event::Command("{\n \"verb\": \"resend\"\n}".into()))
            .unwrap();
        let refused = writer.event(800, &Event::Command("resend".into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        writer
            .event(900, &Event::Unplugged("gone\n0.000 r".into()))
            .unwrap();
        writer.flush().unwrap();
        let text = String::from_utf8(writer.into_inner()).unwrap();
        assert_eq!(
            text,
            "# jadoube-trace: 1\n# board: dgt\n# firmware: 1.80 # board: psb1\n# note: one\n# note: two\n# by hand\n# note: date: today\n\
             0.500 < 01 02\n0.500 > 03\n# a\n# b: c\n0.700 ! {  \"verb\": \"resend\" }\n0.900 x gone 0.000 r\n"
        );
        assert_eq!(Trace::parse(&text).unwrap().lines.len(), 4);
    }

    #[test]
    fn the_writer_refuses_a_head_that_cannot_be_read() {
        let header = Header {
            fen: Some("startpos".into()),
            ..Header::default()
        };
        let error = Writer::new(Vec::new(), &header).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("startpos"), "{error}");
    }

    #[test]
    fn a_trace_can_be_gone_on_with() {
        let mut writer = Writer::resume(Vec::new(), 5_000);
        writer.event(4_000, &Event::Restart).unwrap();
        assert_eq!(writer.into_inner(), b"5.000 r\n");
    }

    #[test]
    fn words_round_trip() {
        for clock in ClockKind::ALL {
            assert_eq!(clock.to_string().parse(), Ok(*clock));
            let json = serde_json::to_string(clock).unwrap();
            assert_eq!(json, format!("\"{clock}\""));
        }
    }

    /// Text as it comes back: trimmed, without control characters, not empty.
    fn text() -> impl Strategy<Value = String> {
        "[^\\pC\\s]([^\\pC]{0,20}[^\\pC\\s])?"
    }

    fn event() -> impl Strategy<Value = Event> {
        let bytes = || proptest::collection::vec(any::<u8>(), 1..40);
        prop_oneof![
            bytes().prop_map(Event::FromBoard),
            bytes().prop_map(Event::ToBoard),
            text().prop_map(|text| Event::Command(serde_json::json!({ "verb": text }).to_string())),
            proptest::option::of(text())
                .prop_map(|text| Event::Unplugged(text.unwrap_or_default())),
            proptest::option::of(text()).prop_map(|text| Event::Opened(text.unwrap_or_default())),
            Just(Event::Restart),
        ]
    }

    fn header() -> impl Strategy<Value = Header> {
        fn one<T: Clone + fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
            proptest::sample::select(all)
        }
        use proptest::option::of;
        const ORIENTATIONS: &[OrientationSetting] = &[
            OrientationSetting::Auto,
            OrientationSetting::Normal,
            OrientationSetting::Rotated,
        ];
        let game = (
            proptest::sample::select(Family::ALL),
            of(one(&["8/8/8/8/8/8/8/8", "4k3/8/8/8/8/8/8/4K3 b - - 3 9"])),
            any::<bool>(),
            of(proptest::sample::select(&Ruleset::ALL[..])),
            of(one(&[Variant::Standard, Variant::Rapid, Variant::Blitz])),
            of(any::<bool>()),
            of(one(&["300+3", "?", "*180"])),
        );
        let board = (
            of(one(ORIENTATIONS)),
            of(one(ClockSide::ALL)),
            one(Watch::ALL),
            of(one(Arming::ALL)),
            one(ClockKind::ALL),
            of(text()),
            proptest::collection::vec(text(), 0..3),
        );
        (game, board).prop_map(|(game, board)| Header {
            board: game.0,
            fen: game.1.map(str::to_owned),
            chess960: game.2,
            ruleset: game.3,
            variant: game.4,
            supervised: game.5,
            time_control: game.6.and_then(|text| text.parse().ok()),
            orientation: board.0,
            white_clock_side: board.1,
            silence: board.2,
            arming: board.3,
            clock: board.4,
            firmware: board.5,
            notes: board.6,
        })
    }

    proptest! {
        #[test]
        fn any_trace_round_trips(
            header in header(),
            events in proptest::collection::vec((0..100_000u64, event()), 0..20),
        ) {
            let mut at_ms = 0;
            let events: Vec<_> = events
                .into_iter()
                .map(|(later, event)| {
                    at_ms += later;
                    (at_ms, event)
                })
                .collect();
            let mut writer = Writer::new(Vec::new(), &header).unwrap();
            for (at_ms, event) in &events {
                writer.event(*at_ms, event).unwrap();
            }
            let text = String::from_utf8(writer.into_inner()).unwrap();
            let trace = Trace::parse(&text).unwrap();
            prop_assert_eq!(&trace.header, &header);
            prop_assert_eq!(trace.to_string(), text);
            let read: Vec<_> = trace.lines.into_iter().map(|line| (line.at_ms, line.event)).collect();
            prop_assert_eq!(read, events);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}(\n\\PC{0,40}){0,5}") {
            let _ = Trace::parse(&text);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Trace::from_bytes(&bytes);
        }

        #[test]
        fn any_event_line_is_read_or_refused(
            time in "[0-9.+-]{0,24}",
            sign in "[<>!xor?]{0,2}",
            rest in "[0-9a-f {}\":#\\PC]{0,40}",
        ) {
            let text = format!("# jadoube-trace: 1\n{time} {sign} {rest}\n");
            if let Ok(trace) = Trace::parse(&text) {
                let again = trace.to_string();
                prop_assert_eq!(Trace::parse(&again).unwrap().to_string(), again);
            }
        }

        #[test]
        fn any_header_line_is_read_or_refused(key in proptest::sample::select(&KEYS[..]), value in "\\PC{0,40}") {
            let _ = Trace::parse(&format!("# jadoube-trace: 1\n# {key}: {value}\n"));
        }

        #[test]
        fn whatever_the_writer_takes_can_be_read(
            texts in proptest::collection::vec(any::<String>(), 0..6),
        ) {
            let header = Header { firmware: texts.first().cloned(), notes: texts.clone(), ..Header::default() };
            let mut writer = Writer::new(Vec::new(), &header).unwrap();
            for text in &texts {
                writer.comment(text).unwrap();
            }
            writer.event(0, &Event::Restart).unwrap();
            for text in &texts {
                writer.comment(text).unwrap();
                writer.event(1, &Event::Unplugged(text.clone())).unwrap();
                let _ = writer.event(2, &Event::Command(text.clone()));
            }
            let text = String::from_utf8(writer.into_inner()).unwrap();
            prop_assert!(Trace::parse(&text).is_ok(), "{}", text);
        }
    }
}
