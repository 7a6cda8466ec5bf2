//! A recording of a board that knows its men, as a board would have told it that only sees where men stand.

use crate::games::Recording;
use jadoube::Millis;
use jadoube::trace::{Event, Header, Line, Trace};
use jadoube::wire::Family;
use jadoube::wire::dgt::{BwTime, ClockMessage, Decoder, Item, Message, PieceCode, RawSquare};
use jadoube::wire::psb1::VirtualBoard;
use shakmaty::Color;

/// Occupied squares and presses, nothing else. The presses come from the lever in the clock's messages.
pub fn outline(recording: &Recording) -> Trace {
    let mut outline = Outline::default();
    outline.say_hello();
    for (at, bytes) in &recording.messages {
        outline.now = *at;
        outline.heartbeat();
        let mut decoder = Decoder::default();
        decoder.push(bytes, |item| {
            if let Item::Message(message) = item {
                outline.take(&message);
            }
        });
    }
    Trace {
        header: Header {
            board: Family::Psb1,
            ..Header::default()
        },
        lines: outline.lines,
    }
}

#[derive(Default)]
struct Outline {
    now: Millis,
    board: VirtualBoard,
    /// Whether the board stands with White at its eighth rank; known from the first dump, which shows the array.
    rotated: Option<bool>,
    /// Whose time runs.
    to_move: Option<Color>,
    lines: Vec<Line>,
}

impl Outline {
    fn say_hello(&mut self) {
        let told = self.board.handle_host(0, b"\n?\n");
        self.tell(told);
    }

    fn heartbeat(&mut self) {
        while self.board.poll_timeout() <= self.now {
            let due = self.board.poll_timeout();
            let told = self.board.handle_timeout(due);
            let now = std::mem::replace(&mut self.now, due);
            self.tell(told);
            self.now = now;
        }
    }

    fn take(&mut self, message: &Message) {
        match message {
            Message::BoardDump(dump) => {
                self.rotated.get_or_insert(dump[A1] == PieceCode::BlackRook);
                let seen: Vec<(RawSquare, PieceCode)> =
                    RawSquare::all().zip(dump.iter().copied()).collect();
                self.look(&seen);
            }
            Message::FieldUpdate { square, piece } => self.look(&[(*square, *piece)]),
            Message::Clock(ClockMessage::Times(times)) => self.clock(times),
            _ => {}
        }
    }

    fn look(&mut self, seen: &[(RawSquare, PieceCode)]) {
        let rotated = self.rotated.unwrap_or(false);
        let seen: Vec<(u8, Option<bool>)> = seen
            .iter()
            .map(|&(raw, code)| {
                let raw = if rotated { raw.turned() } else { raw };
                // From a8 along the ranks there, from a1 here.
                let number = raw.index() ^ 0b111_000;
                let white = code.letter().is_some_and(|letter| letter.is_uppercase());
                (number, (code != PieceCode::Empty).then_some(white))
            })
            .collect();
        let told = self.board.set_squares(self.now, &seen);
        self.tell(told);
    }

    fn clock(&mut self, times: &BwTime) {
        if !times.running {
            return;
        }
        let to_move = Color::from_white(times.right_up == self.rotated.unwrap_or(false));
        if self.to_move.replace(to_move) == Some(to_move.other()) {
            let pressed = to_move.other().fold_wb("white", "black");
            let command = format!(r#"{{"verb":"press","args":{{"side":"{pressed}"}}}}"#);
            self.note(Event::Command(command));
        }
    }

    fn tell(&mut self, lines: Vec<Vec<u8>>) {
        for bytes in lines.into_iter().filter(|bytes| !bytes.is_empty()) {
            self.note(Event::FromBoard(bytes));
        }
    }

    fn note(&mut self, event: Event) {
        let number = self.lines.len() + 1;
        self.lines.push(Line {
            at_ms: self.now,
            number,
            event,
        });
    }
}

/// The place of a1 in a dump.
const A1: usize = 56;
