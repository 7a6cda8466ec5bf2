//! A line of `cases.txt` as a trace, and what must come of it.

use jadoube::game::ResultState;
use jadoube::laws::Side;
use jadoube::replay::{self, Summary};
use jadoube::session::Settings;
use jadoube::trace::{Event as Told, Header, Seconds, Trace};
use jadoube::wire::dgt::{Message, PieceCode, RawSquare};
use shakmaty::san::SanPlus;
use shakmaty::{Board, CastlingMode, Chess, Color, Position as _, Square};
use std::fmt::Write as _;

#[path = "presence.rs"]
mod presence;

use presence::Presence;

/// How a press reaches the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Press {
    /// As a command, where the clock is not connected.
    Command,
    /// In the clock's bytes.
    Clock,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub id: String,
    pub fen: String,
    pub events: Vec<Event>,
    pub moves: Vec<String>,
    pub marks: Vec<String>,
    pub open: bool,
    pub ambiguous: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Square(Square, Option<char>),
    ScanBegin,
    ScanEnd,
    Wait(u64),
    Press,
}

impl Case {
    pub fn parse(line: &str) -> Case {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let (id, fen, ev, exp) = (fields[0], fields[1], fields[2], fields[3]);
        let mut case = Case {
            id: id.to_owned(),
            fen: fen.trim_start_matches("fen ").to_owned(),
            events: Vec::new(),
            moves: Vec::new(),
            marks: Vec::new(),
            open: false,
            ambiguous: false,
        };
        for word in ev.trim_start_matches("ev ").split_whitespace() {
            let square = |text: &str| text[1..3].parse::<Square>().expect("square");
            case.events.push(match word.as_bytes()[0] {
                b'-' => Event::Square(square(word), None),
                b'+' => Event::Square(square(word), word.chars().nth(3)),
                b'[' => Event::ScanBegin,
                b']' => Event::ScanEnd,
                b'~' => Event::Wait(word[1..].parse().expect("milliseconds")),
                _ => Event::Press,
            });
        }
        case.expect(exp.trim_start_matches("exp "));
        case
    }

    /// Takes what must come of it, in the words of the table.
    pub fn expect(&mut self, exp: &str) {
        (self.moves, self.marks) = (Vec::new(), Vec::new());
        (self.open, self.ambiguous) = (false, false);
        for word in exp.split_whitespace() {
            match word {
                "-" => {}
                "/open" => self.open = true,
                "/amb" => self.ambiguous = true,
                mark if mark.starts_with('!') => self.marks.push(mark.to_owned()),
                san => self.moves.push(san.to_owned()),
            }
        }
    }

    /// The same with White and Black exchanged.
    pub fn mirrored(&self) -> Case {
        let swap = |c: char| {
            if c.is_ascii_lowercase() {
                c.to_ascii_uppercase()
            } else {
                c.to_ascii_lowercase()
            }
        };
        let flip = |square: Square| square.flip_vertical();
        let fields: Vec<&str> = self.fen.split(' ').collect();
        let placement: Vec<String> = fields[0]
            .split('/')
            .rev()
            .map(|rank| rank.chars().map(swap).collect())
            .collect();
        let rights: String = fields[2]
            .chars()
            .map(|c| if c == '-' { c } else { swap(c) })
            .collect();
        let ep = match fields[3].parse::<Square>() {
            Ok(square) => flip(square).to_string(),
            Err(_) => "-".into(),
        };
        let turn = if fields[1] == "w" { "b" } else { "w" };
        let fen = format!(
            "{} {turn} {rights} {ep} {} {}",
            placement.join("/"),
            fields[4],
            fields[5]
        );
        let events = self
            .events
            .iter()
            .map(|event| match *event {
                Event::Square(square, man) => Event::Square(flip(square), man.map(swap)),
                other => other,
            })
            .collect();
        let rank = |san: &String| {
            san.chars()
                .map(|c| {
                    c.to_digit(10)
                        .filter(|d| *d > 0)
                        .map_or(c, |d| char::from_digit(9 - d, 10).expect("rank"))
                })
                .collect()
        };
        Case {
            fen,
            events,
            moves: self.moves.iter().map(rank).collect(),
            marks: self.marks.iter().map(rank).collect(),
            ..self.clone()
        }
    }

    /// The case as a trace of a DGT board.
    pub fn trace(&self, press: Press) -> String {
        let mut text = format!("# jadoube-trace: 1\n# board: dgt\n# fen: {}\n", self.fen);
        let start: shakmaty::fen::Fen = self.fen.parse().expect("fen");
        let board = start.as_setup().board.clone();
        let mut turn = start.as_setup().turn;
        let mut now = 0;
        let line = |text: &mut String, now: u64, bytes: Vec<u8>| {
            let _ = writeln!(text, "{} {}", Seconds(now), Told::FromBoard(bytes));
        };
        line(&mut text, now, dump(&board));
        let has_press = self.events.contains(&Event::Press);
        if press == Press::Clock && has_press {
            line(&mut text, now, clock(turn, false));
            now += 1_000;
            line(&mut text, now, clock(turn, true));
        }
        now += 1_000;
        let mut scanning = false;
        for (index, event) in self.events.iter().enumerate() {
            match *event {
                Event::Square(square, man) => {
                    line(&mut text, now, update(square, man));
                    // A wait that is written down takes the place of the usual one.
                    let waits = matches!(self.events.get(index + 1), Some(Event::Wait(_)));
                    if !scanning && !waits {
                        now += USUAL_MS;
                    }
                }
                Event::ScanBegin => scanning = true,
                Event::ScanEnd => {
                    scanning = false;
                    now += USUAL_MS;
                }
                Event::Wait(ms) => now += ms,
                Event::Press => {
                    match press {
                        Press::Clock => line(&mut text, now, clock(!turn, true)),
                        Press::Command => {
                            let side = Side::from(turn);
                            let side = if side == Side::White {
                                "white"
                            } else {
                                "black"
                            };
                            let _ = writeln!(
                                text,
                                "{} ! {{\"verb\":\"press\",\"args\":{{\"side\":\"{side}\"}}}}",
                                Seconds(now)
                            );
                        }
                    }
                    turn = !turn;
                    now += USUAL_MS;
                }
            }
        }
        text
    }

    /// The case as a trace of a board that sees no more than that something stands on a square; presses come as commands.
    pub fn outline(&self) -> String {
        let start: shakmaty::fen::Fen = self.fen.parse().expect("fen");
        let start = start.as_setup();
        let mut turn = start.turn;
        let mut board = Presence::default();
        let number = |square: Square| square.to_u32() as u8;
        board.look(Square::ALL.map(|square| {
            let man = start.board.piece_at(square);
            (number(square), man.is_some())
        }));
        board.say_hello();
        let mut now = 1_000;
        let mut scan: Option<Vec<(u8, bool)>> = None;
        for (index, event) in self.events.iter().enumerate() {
            board.run_until(now);
            match *event {
                Event::Square(square, man) => {
                    let seen = (number(square), man.is_some());
                    if let Some(scan) = &mut scan {
                        scan.push(seen);
                        continue;
                    }
                    board.look([seen]);
                    let waits = matches!(self.events.get(index + 1), Some(Event::Wait(_)));
                    now += if waits { 0 } else { USUAL_MS };
                }
                Event::ScanBegin => scan = Some(Vec::new()),
                Event::ScanEnd => {
                    board.look(scan.take().unwrap_or_default());
                    now += USUAL_MS;
                }
                Event::Wait(ms) => now += ms,
                Event::Press => {
                    board.press(turn.fold_wb("white", "black"));
                    turn = !turn;
                    now += USUAL_MS;
                }
            }
        }
        board.run_until(now);
        let header = Header {
            fen: Some(self.fen.clone()),
            ..Header::default()
        };
        board.trace(header).to_string()
    }

    /// Runs the case; says what is wrong with what came of it.
    pub fn run(&self, press: Press) -> Result<(), String> {
        self.judge(&self.trace(press))
    }

    /// Runs the case on a board that sees no more than that something stands on a square. What was played is the record, or one of
    /// the lines that it names beside itself, where the case allows for that.
    pub fn run_outline(&self) -> Result<(), String> {
        let summary = self.replay(&self.outline())?;
        let game = summary.game.as_ref().ok_or("no game")?;
        let first = game.moves.iter().position(|ply| ply.doubt.is_some());
        if self.ambiguous {
            let first = first.ok_or("several explanations, and no doubt")?;
            let ply = &game.moves[first];
            let played = self.uci()?;
            let read: Vec<&str> = game.moves.iter().map(|ply| &*ply.uci).collect();
            let holds = |line: &str| {
                let line: Vec<&str> = line.split(' ').collect();
                let rest = read.get(first + line.len()..).unwrap_or_default();
                [&read[..first], &line, rest].concat() == played
            };
            let lines = &ply.alternatives;
            if !lines.iter().any(|line| holds(line)) {
                return Err(format!("{lines:?} of {read:?} does not hold {played:?}"));
            }
        }
        self.judge_told(&summary, !self.ambiguous)
    }

    /// The moves in UCI.
    fn uci(&self) -> Result<Vec<String>, String> {
        let fen: shakmaty::fen::Fen = self.fen.parse().expect("fen");
        let mode = CastlingMode::Standard;
        let mut position: Chess = fen.into_position(mode).map_err(|error| error.to_string())?;
        let mut played = Vec::new();
        for san in &self.moves {
            let san: SanPlus = san.parse().expect("SAN");
            let m = san
                .san
                .to_move(&position)
                .map_err(|error| error.to_string())?;
            played.push(m.to_uci(mode).to_string());
            position.play_unchecked(m);
        }
        Ok(played)
    }

    /// Runs the case as this trace has it.
    pub fn judge(&self, text: &str) -> Result<(), String> {
        self.judge_told(&self.replay(text)?, true)
    }

    fn replay(&self, text: &str) -> Result<Summary, String> {
        let trace = Trace::parse(text).map_err(|error| error.to_string())?;
        let settings =
            replay::settings(&trace, Settings::new("1")).map_err(|error| error.to_string())?;
        let replayed = replay::replay(&trace, settings);
        Ok(replay::summarise(&self.id, &replayed))
    }

    /// What is wrong with what came of the case. The record need not be what was played where that is looked at by itself.
    fn judge_told(&self, summary: &Summary, exact: bool) -> Result<(), String> {
        let game = summary.game.as_ref().ok_or("no game")?;
        let plain = |san: &str| san.trim_end_matches(['+', '#']).to_owned();
        let played: Vec<String> = game.moves.iter().map(|ply| plain(&ply.san)).collect();
        let expected: Vec<String> = self.moves.iter().map(|san| plain(san)).collect();
        if exact && played != expected {
            return Err(format!("record is {played:?}, not {expected:?}"));
        }
        let doubtful = game.moves.iter().any(|ply| ply.doubt.is_some());
        if doubtful && !self.ambiguous {
            return Err("a doubt that is none".into());
        }
        if self.ambiguous && !doubtful && self.is_one_scan() {
            return Err("several explanations, and no doubt".into());
        }
        // What must be told.
        let mut allowed = Vec::new();
        for mark in &self.marks {
            let kind = match mark.split('(').next().unwrap_or(mark) {
                "!illegal" => "illegal_move",
                "!irregular" => "displaced",
                "!retracted" => {
                    if summary
                        .events
                        .get("takeback")
                        .or(summary.events.get("correction"))
                        .is_none()
                    {
                        return Err("no takeback was told".into());
                    }
                    continue;
                }
                // Judgements of the Laws that are still to come.
                "!touch" | "!touch_rook_first" | "!moved_again" | "!promotion_check" => continue,
                other => return Err(format!("unknown mark {other}")),
            };
            let told = summary
                .alerts
                .iter()
                .find(|alert| name(&alert.alert.kind) == kind);
            let Some(told) = told else {
                let kinds: Vec<String> = summary
                    .alerts
                    .iter()
                    .map(|alert| name(&alert.alert.kind))
                    .collect();
                return Err(format!("no alert {kind}, but {kinds:?}"));
            };
            if name(&told.alert.severity) == "info" {
                return Err(format!("{kind} is no louder than info"));
            }
            if kind == "illegal_move" {
                if name(&told.alert.severity) != "urgent" {
                    return Err(format!("{kind} at a press is no more than a warning"));
                }
                let squares = self.squares_before_press();
                let mut told = told.alert.squares.clone();
                told.sort_unstable();
                if told != squares {
                    return Err(format!("squares are {told:?}, not {squares:?}"));
                }
            }
            if mark.contains("wrong_colour")
                && told.alert.detail.reason.as_ref().map(name).as_deref()
                    != Some("wrong_colour_promotion")
            {
                return Err(format!("reason is {:?}", told.alert.detail.reason));
            }
            if let Some(squares) = mark.strip_prefix("!irregular(") {
                let squares: Vec<&str> = squares.trim_end_matches(')').split(',').collect();
                let mut told: Vec<&str> = told.alert.squares.iter().map(String::as_str).collect();
                told.sort_unstable();
                let mut squares = squares;
                squares.sort_unstable();
                if told != squares {
                    return Err(format!("squares are {told:?}, not {squares:?}"));
                }
            }
            allowed.push(kind);
        }
        if self.ambiguous {
            allowed.push("ambiguous");
        }
        if game.result_state == Some(ResultState::Proposed) {
            // The kings stand in the centre while the clock runs: somebody has to be asked.
            allowed.push("result_mismatch");
        }
        // And nothing else.
        for alert in &summary.alerts {
            let kind = name(&alert.alert.kind);
            if name(&alert.alert.severity) != "info" && !allowed.contains(&kind.as_str()) {
                return Err(format!("alert {kind}: {}", alert.alert.text));
            }
        }
        if !self.open && game.result == "*" && !game.in_sync {
            return Err("out of sync at the end".into());
        }
        Ok(())
    }

    /// Whether all squares change within one scan, where their order says nothing.
    fn is_one_scan(&self) -> bool {
        let scans = self.events.split(|event| *event == Event::ScanBegin);
        scans.count() == 2
            && self.events.first() == Some(&Event::ScanBegin)
            && self.events.last() == Some(&Event::ScanEnd)
    }

    /// The squares that change before the first press, in order.
    fn squares_before_press(&self) -> Vec<String> {
        let mut squares: Vec<String> = self
            .events
            .iter()
            .take_while(|event| **event != Event::Press)
            .filter_map(|event| match event {
                Event::Square(square, _) => Some(square.to_string()),
                _ => None,
            })
            .collect();
        squares.sort_unstable();
        squares.dedup();
        squares
    }
}

/// Between two events, where nothing else is written down.
const USUAL_MS: u64 = 120;

fn name(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn raw(square: Square) -> RawSquare {
    RawSquare::new(square.to_u32() as u8 ^ 56).expect("a square")
}

fn code(letter: Option<char>) -> PieceCode {
    letter.map_or(PieceCode::Empty, |letter| {
        PieceCode::from_letter(letter).expect("a man")
    })
}

pub fn dump(board: &Board) -> Vec<u8> {
    let mut codes = [PieceCode::Empty; 64];
    for (square, piece) in board.iter() {
        codes[usize::from(raw(square).index())] = code(Some(piece.char()));
    }
    Message::BoardDump(Box::new(codes)).encode()
}

pub fn update(square: Square, man: Option<char>) -> Vec<u8> {
    Message::FieldUpdate {
        square: raw(square),
        piece: code(man),
    }
    .encode()
}

/// A clock of an hour each; White is left.
fn clock(turn: Color, running: bool) -> Vec<u8> {
    let status = match (turn, running) {
        (Color::White, false) => 0x08,
        (Color::White, true) => 0x09,
        (Color::Black, false) => 0x12,
        (Color::Black, true) => 0x13,
    };
    vec![0x8d, 0x00, 0x0a, 0x01, 0x00, 0x00, 0x01, 0x00, 0x00, status]
}
