//! A presence board that is played by hand, and all that it says as lines of a trace.

use jadoube::Millis;
use jadoube::trace::{Event, Header, Line, Trace};
use jadoube::wire::Family;
use jadoube::wire::psb1::VirtualBoard;

/// It says hello, tells of changes, and gives its sign of life; presses come as commands.
#[derive(Default)]
pub struct Presence {
    now: Millis,
    board: VirtualBoard,
    lines: Vec<Line>,
}

impl Presence {
    pub fn say_hello(&mut self) {
        let told = self.board.handle_host(self.now, b"\n?\n");
        self.tell(told);
    }

    /// It is this late now.
    pub fn run_until(&mut self, now: Millis) {
        while self.board.poll_timeout() <= now {
            self.now = self.board.poll_timeout();
            let told = self.board.handle_timeout(self.now);
            self.tell(told);
        }
        self.now = now;
    }

    /// One look at the board; squares are numbered from a1 along the ranks.
    pub fn look(&mut self, occupied: impl IntoIterator<Item = (u8, bool)>) {
        let seen: Vec<(u8, Option<bool>)> = occupied
            .into_iter()
            .map(|(square, occupied)| (square, occupied.then_some(true)))
            .collect();
        let told = self.board.set_squares(self.now, &seen);
        self.tell(told);
    }

    /// This side presses its clock.
    pub fn press(&mut self, side: &str) {
        let command = format!(r#"{{"verb":"press","args":{{"side":"{side}"}}}}"#);
        self.note(Event::Command(command));
    }

    /// All of it.
    pub fn trace(self, header: Header) -> Trace {
        Trace {
            header: Header {
                board: Family::Psb1,
                ..header
            },
            lines: self.lines,
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
