//! The other end of the cable: a board made of software that answers as a real one does.

use super::{Ack, Battery, BwTime, ClockMessage, FORBIDDEN, Message, PieceCode, RawSquare, START};

/// A board in single-board mode with, perhaps, a clock. It knows no time: whoever plays it says what changes when.
///
/// Bytes from the host go into [`handle_host`](Self::handle_host); what each method returns goes to the host.
#[derive(Debug, Clone)]
pub struct VirtualBoard {
    identity: Identity,
    squares: [PieceCode; 64],
    clock: Option<BwTime>,
    mode: Mode,
    /// What the host was last told of the clock in the present mode.
    clock_told: Option<ClockMessage>,
    /// A clock message of the host that is not complete yet.
    unfinished: Vec<u8>,
    forbidden_seen: u64,
}

/// What a board unasked reports (section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Nothing.
    #[default]
    Idle,
    /// Squares as they change, and the clock always.
    Update,
    /// Squares as they change.
    UpdateBoard,
    /// Squares and the clock as they change.
    UpdateNice,
}

/// What a board tells of itself. A question to which there is `None` stays unanswered, as with old boards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Five digits. Their value is also the bus address, as far as 14 bits hold it.
    pub serial: String,
    /// Ten digits.
    pub long_serial: Option<String>,
    pub trademark: String,
    pub version: (u8, u8),
    pub hardware_version: Option<(u8, u8)>,
    pub battery: Option<Battery>,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            serial: "01025".to_owned(),
            long_serial: None,
            trademark: "Virtual chess board\r\nNo wood involved\r\n".to_owned(),
            version: (3, 1),
            hardware_version: None,
            battery: None,
        }
    }
}

impl Default for VirtualBoard {
    fn default() -> Self {
        Self::new(Identity::default())
    }
}

impl VirtualBoard {
    /// A board that has just got power: start position, no clock, nothing reported.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            squares: START,
            clock: None,
            mode: Mode::Idle,
            clock_told: None,
            unfinished: Vec::new(),
            forbidden_seen: 0,
        }
    }

    /// Takes what the host sent, in whatever pieces, and answers.
    pub fn handle_host(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for &byte in bytes {
            if self.unfinished.is_empty() && byte != CLOCK_MESSAGE {
                self.handle_opcode(byte, &mut out);
                continue;
            }
            self.unfinished.push(byte);
            if let [_, size, message @ ..] = self.unfinished.as_slice()
                && message.len() >= usize::from(*size)
            {
                let command = message.get(1).copied();
                self.unfinished.clear();
                self.handle_clock_command(command, &mut out);
            }
        }
        out
    }

    /// Somebody puts a piece on a square or takes it away.
    pub fn set_square(&mut self, square: RawSquare, piece: PieceCode) -> Vec<u8> {
        let here = &mut self.squares[usize::from(square.index())];
        // The boards of all known recordings are silent about a square that has not changed.
        if *here == piece {
            return Vec::new();
        }
        *here = piece;
        if self.mode == Mode::Idle {
            Vec::new()
        } else {
            Message::FieldUpdate { square, piece }.encode()
        }
    }

    /// The clock shows something, the same as before or not; `None` while it is unplugged. Call it at least once a second.
    pub fn set_clock(&mut self, clock: Option<BwTime>) -> Vec<u8> {
        self.clock = clock;
        let mut out = Vec::new();
        let told = self.clock_told == Some(self.clock_message());
        match self.mode {
            Mode::Update => self.tell_clock(&mut out),
            Mode::UpdateNice if !told => self.tell_clock(&mut out),
            Mode::UpdateNice | Mode::UpdateBoard | Mode::Idle => {}
        }
        out
    }

    /// All 64 squares in the board's order.
    pub fn squares(&self) -> &[PieceCode; 64] {
        &self.squares
    }

    pub fn clock(&self) -> Option<BwTime> {
        self.clock
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How many commands came that a host must never send.
    pub fn forbidden_seen(&self) -> u64 {
        self.forbidden_seen
    }

    fn handle_opcode(&mut self, opcode: u8, out: &mut Vec<u8>) {
        let version = |(major, minor)| Message::HardwareVersion { major, minor };
        let answer = match opcode {
            0x40 => return self.enter(Mode::Idle, out),
            0x43 => return self.enter(Mode::Update, out),
            0x44 => return self.enter(Mode::UpdateBoard, out),
            0x4b => return self.enter(Mode::UpdateNice, out),
            0x41 => Some(Message::Clock(self.clock_message())),
            0x42 => Some(Message::BoardDump(Box::new(self.squares))),
            0x45 => Some(Message::SerialNumber(self.identity.serial.clone())),
            0x46 => Some(Message::BusAddress(self.bus_address())),
            0x47 => Some(Message::Trademark(self.identity.trademark.clone())),
            0x48 => self.identity.hardware_version.map(version),
            0x49 => Some(Message::EeMoves(self.log())),
            0x4c => self.identity.battery.map(Message::Battery),
            0x4d => {
                let (major, minor) = self.identity.version;
                Some(Message::Version { major, minor })
            }
            0x55 => self
                .identity
                .long_serial
                .clone()
                .map(Message::LongSerialNumber),
            _ => {
                self.forbidden_seen += u64::from(FORBIDDEN.contains(&opcode));
                None
            }
        };
        if let Some(message) = answer {
            message.encode_into(out);
        }
    }

    fn handle_clock_command(&mut self, command: Option<u8>, out: &mut Vec<u8>) {
        let Some(command) = command else { return };
        if self.clock.is_none() || !matches!(self.mode, Mode::Update | Mode::UpdateNice) {
            return;
        }
        let (ack0, ack2) = match command {
            // The clock here is never in remote mode.
            0x0a => (0x40, 0),
            0x09 => (0x10, 0x20),
            _ => (0x10, 0),
        };
        Message::Clock(ClockMessage::Ack(Ack {
            ack0,
            ack1: command & 0x7f,
            ack2,
            ack3: 0,
        }))
        .encode_into(out);
    }

    /// The first report of the clock comes at once in both modes that have one, as in all known recordings.
    fn enter(&mut self, mode: Mode, out: &mut Vec<u8>) {
        self.mode = mode;
        self.clock_told = None;
        if matches!(mode, Mode::Update | Mode::UpdateNice) {
            self.tell_clock(out);
        }
    }

    fn tell_clock(&mut self, out: &mut Vec<u8>) {
        let message = self.clock_message();
        self.clock_told = Some(message);
        Message::Clock(message).encode_into(out);
    }

    fn clock_message(&self) -> ClockMessage {
        self.clock.map_or(ClockMessage::Absent, ClockMessage::Times)
    }

    fn bus_address(&self) -> u16 {
        let digits = self.identity.serial.chars().map_while(|c| c.to_digit(10));
        digits.fold(0u16, |value, digit| {
            value.wrapping_mul(10).wrapping_add(digit as u16)
        }) & 0x3fff
    }

    /// The least that section 4 allows: power, what stands where, the tag of a start position, the marks of the reading.
    fn log(&self) -> Vec<u8> {
        let mut log = vec![0x7f, 0x7f, 0x7f, 0x6a];
        for (square, &piece) in RawSquare::all().zip(&self.squares) {
            if piece != PieceCode::Empty {
                log.extend([0x40 | u8::from(piece), square.index()]);
            }
        }
        if self.squares == START {
            log.push(0x6f);
        } else if self.squares.iter().eq(START.iter().rev()) {
            log.push(0x7a);
        }
        log.extend([0x6e, 0x6b]);
        log
    }
}

/// Opens a message to the clock; its size follows.
const CLOCK_MESSAGE: u8 = 0x2b;
