//! A recording of a board that knows its men, as a board would have told it that only sees where men stand.

use crate::games::Recording;
use jadoube::trace::{Header, Trace};
use jadoube::wire::dgt::{BwTime, ClockMessage, Decoder, Item, Message, PieceCode, RawSquare};
use shakmaty::Color;

#[path = "presence.rs"]
mod presence;

use presence::Presence;

/// Occupied squares and presses, nothing else. The presses come from the lever in the clock's messages.
pub fn outline(recording: &Recording) -> Trace {
    let mut outline = Outline::default();
    outline.board.say_hello();
    for (at, bytes) in &recording.messages {
        outline.board.run_until(*at);
        let mut decoder = Decoder::default();
        decoder.push(bytes, |item| {
            if let Item::Message(message) = item {
                outline.take(&message);
            }
        });
    }
    outline.board.trace(Header::default())
}

#[derive(Default)]
struct Outline {
    board: Presence,
    /// Whether the board stands with White at its eighth rank; known from the first dump, which shows the array.
    rotated: Option<bool>,
    /// Whose time runs.
    to_move: Option<Color>,
}

impl Outline {
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
        self.board.look(seen.iter().map(|&(raw, code)| {
            let raw = if rotated { raw.turned() } else { raw };
            // From a8 along the ranks there, from a1 here.
            (raw.index() ^ 0b111_000, code != PieceCode::Empty)
        }));
    }

    fn clock(&mut self, times: &BwTime) {
        if !times.running {
            return;
        }
        let to_move = Color::from_white(times.right_up == self.rotated.unwrap_or(false));
        if self.to_move.replace(to_move) == Some(to_move.other()) {
            self.board.press(to_move.other().fold_wb("white", "black"));
        }
    }
}

/// The place of a1 in a dump.
const A1: usize = 56;
