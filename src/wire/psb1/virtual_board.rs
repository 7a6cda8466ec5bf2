//! The other end of the cable: a board made of software that behaves as the format asks a board to.

use super::message::bit;
use super::{
    BoardId, Change, Command, HEARTBEAT_MS, Hello, Letters, MAX_BODY, Message, Squares, Text,
};

/// A presence board. It has no time of its own: whoever plays it says when what happens, in milliseconds that never run backwards.
///
/// Bytes from the host go into [`handle_host`](Self::handle_host); what each method returns goes to the host, a line each. After
/// each call [`poll_timeout`](Self::poll_timeout) says when [`handle_timeout`](Self::handle_timeout) has something to say.
#[derive(Debug, Clone)]
pub struct VirtualBoard {
    identity: Identity,
    squares: Squares,
    seq: u8,
    heartbeat_ms: u64,
    /// When it got power: its clock counts from here.
    booted_ms: u64,
    /// When it last told its squares; never yet, if none.
    told_ms: Option<u64>,
    asked: bool,
    lamps: u64,
    /// A line of the host that is not complete yet.
    unfinished: Vec<u8>,
}

/// What a board is and can do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    pub id: BoardId,
    pub firmware: Text,
    pub lamps: bool,
    /// Percent and millivolts.
    pub battery: Option<(u8, u32)>,
    /// It sees whose men stand on it.
    pub colours: bool,
    /// It tells changes as such, and all squares only for life and when it is asked.
    pub deltas: bool,
}

impl Default for Identity {
    fn default() -> Identity {
        Identity {
            id: "virtual-1".parse().expect("a name of fitting characters"),
            firmware: Text::word("sim1"),
            lamps: false,
            battery: None,
            colours: false,
            deltas: false,
        }
    }
}

impl Identity {
    fn hello(&self) -> Message {
        let letters = [
            ('L', self.lamps),
            ('B', self.battery.is_some()),
            ('C', self.colours),
            ('D', self.deltas),
        ];
        let can: String = letters
            .iter()
            .filter_map(|(letter, can)| can.then_some(*letter))
            .collect();
        Message::Hello(Hello {
            id: self.id.clone(),
            firmware: self.firmware.clone(),
            can: Letters::new(&can),
        })
    }
}

impl Default for VirtualBoard {
    fn default() -> VirtualBoard {
        VirtualBoard::new(Identity::default())
    }
}

impl VirtualBoard {
    /// A board that has just got power, with nothing on it.
    pub fn new(identity: Identity) -> VirtualBoard {
        VirtualBoard {
            squares: Squares {
                occupied: 0,
                white: identity.colours.then_some(0),
            },
            identity,
            seq: 0,
            heartbeat_ms: HEARTBEAT_MS,
            booted_ms: 0,
            told_ms: None,
            asked: false,
            lamps: 0,
            unfinished: Vec::new(),
        }
    }

    /// The same with another time between two signs of life, for whoever plays it slower than time goes.
    pub fn with_heartbeat(self, heartbeat_ms: u64) -> VirtualBoard {
        VirtualBoard {
            heartbeat_ms: heartbeat_ms.max(1),
            ..self
        }
    }

    /// Takes what the host sent, in whatever pieces, and answers.
    pub fn handle_host(&mut self, now: u64, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for &byte in bytes {
            if byte != b'\n' {
                // A host that talks without end says nothing to a board.
                if self.unfinished.len() <= MAX_BODY {
                    self.unfinished.push(byte);
                }
                continue;
            }
            match Command::decode(&self.unfinished) {
                Some(Command::Ask) => {
                    self.asked = true;
                    out.push(self.identity.hello().encode());
                    out.push(self.scan(now));
                }
                Some(Command::Lamps(squares)) if self.identity.lamps => self.lamps = squares,
                Some(Command::Lamps(_)) | None => {}
            }
            self.unfinished.clear();
        }
        out
    }

    /// The board notices these squares in one look: what stands there now, and whether it is white; `None` for nothing.
    pub fn set_squares(&mut self, now: u64, seen: &[(u8, Option<bool>)]) -> Vec<Vec<u8>> {
        let before = self.squares;
        let mut changes = Vec::new();
        for &(square, man) in seen {
            let occupied = man.is_some();
            if self.squares.is_occupied(square) != occupied {
                changes.push(Change { square, occupied });
            }
            self.squares.set_occupied(square, occupied);
            if let Some(white) = &mut self.squares.white {
                match man {
                    Some(true) => *white |= bit(square),
                    _ => *white &= !bit(square),
                }
            }
        }
        if self.squares == before {
            return Vec::new();
        }
        // A change without a colour says too little of a board that sees colours, and a line holds just so many.
        let fits = !changes.is_empty() && changes.len() <= MOST_CHANGES;
        if self.identity.deltas && !self.identity.colours && fits {
            let seq = self.next_seq();
            let ms = self.clock(now);
            return vec![Message::Delta { seq, ms, changes }.encode()];
        }
        vec![self.scan(now)]
    }

    /// When the board next says something of itself.
    pub fn poll_timeout(&self) -> u64 {
        match self.told_ms {
            Some(told_ms) => told_ms + self.heartbeat_ms,
            None => self.booted_ms,
        }
    }

    /// Says what is due: its hello after it got power, and its squares once a second.
    pub fn handle_timeout(&mut self, now: u64) -> Vec<Vec<u8>> {
        if now < self.poll_timeout() {
            return Vec::new();
        }
        let mut out = Vec::new();
        if self.told_ms.is_none() {
            out.push(self.identity.hello().encode());
            out.extend(self.tell_battery());
        }
        out.push(self.scan(now));
        out
    }

    /// The power fails and comes back: the men stand, all else is forgotten. It says hello at the next timeout.
    pub fn power_cycle(&mut self, now: u64) {
        self.seq = 0;
        self.booted_ms = now;
        self.told_ms = None;
        self.asked = false;
        self.lamps = 0;
        self.unfinished.clear();
    }

    /// What the board says when something is wrong with it.
    pub fn report_fault(&self, text: &str) -> Vec<u8> {
        Message::Fault(Text::line(text)).encode()
    }

    pub fn squares(&self) -> Squares {
        self.squares
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether a host has asked since it got power.
    pub fn is_asked(&self) -> bool {
        self.asked
    }

    /// The squares whose lamps are lit.
    pub fn lamps(&self) -> u64 {
        self.lamps
    }

    fn tell_battery(&self) -> Option<Vec<u8>> {
        self.identity.battery.map(|(percent, millivolts)| {
            Message::Battery {
                percent,
                millivolts: Some(millivolts),
            }
            .encode()
        })
    }

    fn scan(&mut self, now: u64) -> Vec<u8> {
        self.told_ms = Some(now);
        let seq = self.next_seq();
        Message::Scan {
            seq,
            ms: self.clock(now),
            squares: self.squares,
        }
        .encode()
    }

    fn next_seq(&mut self) -> u8 {
        let seq = self.seq;
        self.seq = seq.wrapping_add(1);
        seq
    }

    /// Its clock has 32 bits and starts anew after 49 days.
    fn clock(&self, now: u64) -> u32 {
        now.saturating_sub(self.booted_ms) as u32
    }
}

/// As many changes as a body holds beside its letter, its number and its time.
const MOST_CHANGES: usize = (MAX_BODY - "D,00,00000000,".len()) / "+e4".len();
