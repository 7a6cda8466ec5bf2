//! What a board says: each message of section 3 as a type, out of the data of a frame and back into one.

use super::{HEADER, MAX_FRAME, PieceCode, RawSquare, SkipReason, id};

/// A message of the board. One that exists is well-formed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Message {
    /// All 64 squares in the board's order.
    BoardDump(Box<[PieceCode; 64]>),
    /// One square has changed; the piece is the one that stands there now.
    FieldUpdate { square: RawSquare, piece: PieceCode },
    /// The clock's times, or its answer to a command.
    Clock(ClockMessage),
    /// The address on a bus, 14 bits; often the numeric value of the serial number.
    BusAddress(u16),
    /// Usually five digits; 1998 boards append a space and a version. Printable as it stands.
    SerialNumber(String),
    /// Ten characters, digits on all boards known so far.
    LongSerialNumber(String),
    /// Text for people, in lines.
    Trademark(String),
    /// Firmware. Minor is a number of its own: 1.80 is older than 3.1, and 3.1 older than 3.10.
    Version { major: u8, minor: u8 },
    /// Of newer boards only.
    HardwareVersion { major: u8, minor: u8 },
    /// Of boards with a battery.
    Battery(Battery),
    /// The board's own log (section 4), not yet taken apart.
    EeMoves(Vec<u8>),
    /// A frame whose identifier this program does not know, or a dump of a draughts board, kept whole.
    Unknown { id: u8, data: Vec<u8> },
}

/// Identifier 8d: times and acknowledgements share it (3.5, 3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockMessage {
    /// What the clock shows.
    Times(BwTime),
    /// Not a time: an answer to a command, or the clock's own notice.
    Ack(Ack),
    /// All bytes zero. Some boards send it after a clock command; it says nothing, least of all that both flags fell.
    Null,
    /// No clock is plugged in.
    Absent,
}

/// The times on both displays. Left and right are as seen from the clock's front, whichever way it faces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BwTime {
    pub right: SideTime,
    pub left: SideTime,
    /// One of the sides counts.
    pub running: bool,
    /// The lever is up on the right, so the right side is to move; otherwise the left one is.
    pub right_up: bool,
    /// The clock shows its own battery as low.
    pub battery_low: bool,
}

/// One display of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SideTime {
    /// 0 to 9.
    pub hours: u8,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// The flag has fallen and the clock halted at zero.
    pub flag_halted: bool,
    /// The sign for an increment or delay is lit.
    pub increment: bool,
    /// The flag is shown, but the clock may still run: the next period has begun.
    pub flag_shown: bool,
}

impl SideTime {
    /// A plain time without any sign.
    pub fn new(hours: u8, minutes: u8, seconds: u8) -> Self {
        Self {
            hours,
            minutes,
            seconds,
            ..Self::default()
        }
    }

    /// The time shown, in milliseconds. The clock tells no less than whole seconds.
    pub fn millis(&self) -> u64 {
        ((u64::from(self.hours) * 60 + u64::from(self.minutes)) * 60 + u64::from(self.seconds))
            * 1000
    }
}

/// The four bytes of an acknowledgement (3.6), their top bits in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ack {
    pub ack0: u8,
    pub ack1: u8,
    pub ack2: u8,
    pub ack3: u8,
}

impl Ack {
    /// Whether the clock did as told.
    pub fn outcome(&self) -> AckOutcome {
        match self.ack0 {
            0x10 => AckOutcome::Done,
            0x20 => AckOutcome::Failed,
            0x40 => AckOutcome::Refused,
            other => AckOutcome::Unknown(other),
        }
    }

    /// What it acknowledges, or which notice of the clock's own it is.
    pub fn kind(&self) -> AckKind {
        match self.ack1 {
            command if command < 0x80 => AckKind::Answer(command),
            0x81 => AckKind::Ready,
            0x88 => AckKind::Buttons(ClockButtons {
                held: self.ack2,
                last: self.ack3,
            }),
            0x8a => AckKind::Mode(self.ack3),
            0x90 => AckKind::NotRemote,
            other => AckKind::Unknown(other),
        }
    }

    /// The clock's version, if this answers the question for it: 1.x is a DGT XL, 2.x a DGT3000.
    pub fn clock_version(&self) -> Option<(u8, u8)> {
        (self.ack1 == 0x09 && self.outcome() == AckOutcome::Done)
            .then_some((self.ack2 >> 4, self.ack2 & 0x0f))
    }
}

/// The verdict of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AckOutcome {
    Done,
    /// Seen with a DGT XL, reason unknown.
    Failed,
    /// The clock is not in the mode that the command needs.
    Refused,
    Unknown(u8),
}

/// The occasion of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AckKind {
    /// To the clock command of this number.
    Answer(u8),
    /// The clock has become ready.
    Ready,
    /// Buttons were pressed.
    Buttons(ClockButtons),
    /// The clock reports its mode number.
    Mode(u8),
    /// The clock is not in remote mode.
    NotRemote,
    Unknown(u8),
}

/// Which buttons a notice tells of (5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClockButtons {
    held: u8,
    last: u8,
}

impl ClockButtons {
    /// The button that decides; of two pressed together the right-hand one.
    pub fn pressed(&self) -> Option<ClockButton> {
        Some(match self.last {
            0x31 => ClockButton::Back,
            0x34 => ClockButton::Minus,
            0x33 => ClockButton::RunPause,
            0x32 => ClockButton::Plus,
            0x35 => ClockButton::Ok,
            _ => return None,
        })
    }

    /// Is this button down?
    pub fn is_held(&self, button: ClockButton) -> bool {
        let bit = match button {
            ClockButton::Back => 0x04,
            ClockButton::Minus => 0x20,
            ClockButton::RunPause => 0x10,
            ClockButton::Plus => 0x08,
            ClockButton::Ok => 0x40,
        };
        self.held & bit != 0
    }
}

/// The buttons of a clock from left to right. The lever is none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClockButton {
    Back,
    Minus,
    RunPause,
    Plus,
    Ok,
}

/// The state of a board's battery (3.7). What the board does not tell is `None`; boards differ in how much they tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Battery {
    /// 0 to 100.
    pub percent: Option<u8>,
    pub hours_left: Option<u8>,
    pub minutes_left: Option<u8>,
    pub hours_on: Option<u8>,
    pub minutes_on: Option<u8>,
    pub standby_days: Option<u8>,
    pub standby_hours: Option<u8>,
    pub standby_minutes: Option<u8>,
    pub charging: bool,
    pub discharging: bool,
}

impl Message {
    /// The frame for this message. Data that no frame can hold is cut to fit: seven bits a byte, and 16 383 bytes a frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    /// As [`encode`](Self::encode), appended to what is there.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Message::BoardDump(board) => frame(out, id::BOARD_DUMP, &board.map(u8::from)),
            Message::FieldUpdate { square, piece } => {
                frame(out, id::FIELD_UPDATE, &[square.index(), u8::from(*piece)])
            }
            Message::Clock(clock) => frame(out, id::BWTIME, &clock.data()),
            Message::BusAddress(address) => frame(
                out,
                id::BUS_ADDRESS,
                &[(address >> 7) as u8, *address as u8],
            ),
            Message::SerialNumber(text) => frame(out, id::SERIAL_NUMBER, text.as_bytes()),
            Message::LongSerialNumber(text) => frame(out, id::LONG_SERIAL_NUMBER, text.as_bytes()),
            Message::Trademark(text) => frame(out, id::TRADEMARK, text.as_bytes()),
            Message::Version { major, minor } => frame(out, id::VERSION, &[*major, *minor]),
            Message::HardwareVersion { major, minor } => {
                frame(out, id::HARDWARE_VERSION, &[*major, *minor])
            }
            Message::Battery(battery) => frame(out, id::BATTERY, &battery.data()),
            Message::EeMoves(log) => frame(out, id::EE_MOVES, log),
            Message::Unknown { id, data } => frame(out, *id, data),
        }
    }

    /// May a frame with this identifier have this length? Checked as soon as the header is in, before any data.
    pub(super) fn check_length(id: u8, length: usize) -> Result<(), SkipReason> {
        if length < 3 {
            return Err(SkipReason::ImpossibleLength {
                id,
                length: length as u16,
            });
        }
        let fits = match id {
            // The longer one is a draughts board.
            id::BOARD_DUMP => length == 67 || length == 103,
            id::BWTIME => length == 10,
            id::FIELD_UPDATE | id::BUS_ADDRESS | id::VERSION | id::HARDWARE_VERSION => length == 5,
            id::LONG_SERIAL_NUMBER => length == 13,
            id::SERIAL_NUMBER | id::BATTERY => length >= 4,
            _ => true,
        };
        if fits {
            Ok(())
        } else {
            Err(SkipReason::WrongLength {
                id,
                length: length as u16,
            })
        }
    }

    /// The message in the data of a frame whose length has passed [`check_length`](Self::check_length).
    pub(super) fn decode(id: u8, data: &[u8]) -> Result<Self, SkipReason> {
        match (id, data) {
            (id::FIELD_UPDATE, &[square, piece]) => Ok(Message::FieldUpdate {
                square: square.try_into()?,
                piece: piece.try_into()?,
            }),
            (id::BWTIME, &[b3, b4, b5, b6, b7, b8, b9]) => {
                ClockMessage::decode([b3, b4, b5, b6, b7, b8, b9]).map(Message::Clock)
            }
            (id::BOARD_DUMP, codes) if codes.len() == 64 => {
                let mut board = Box::new([PieceCode::Empty; 64]);
                for (square, &code) in board.iter_mut().zip(codes) {
                    *square = code.try_into()?;
                }
                Ok(Message::BoardDump(board))
            }
            (id::BUS_ADDRESS, &[high, low]) => {
                Ok(Message::BusAddress((u16::from(high) << 7) | u16::from(low)))
            }
            (id::VERSION, &[major, minor]) => Ok(Message::Version { major, minor }),
            (id::HARDWARE_VERSION, &[major, minor]) => {
                Ok(Message::HardwareVersion { major, minor })
            }
            (id::SERIAL_NUMBER, text) => printable(id, text).map(Message::SerialNumber),
            (id::LONG_SERIAL_NUMBER, text) => printable(id, text).map(Message::LongSerialNumber),
            (id::TRADEMARK, text) => Ok(Message::Trademark(
                text.iter().copied().map(char::from).collect(),
            )),
            (id::BATTERY, data) => Ok(Message::Battery(Battery::decode(data))),
            (id::EE_MOVES, log) => Ok(Message::EeMoves(log.to_vec())),
            (id, data) => Ok(Message::Unknown {
                id,
                data: data.to_vec(),
            }),
        }
    }
}

impl ClockMessage {
    /// Bytes 3 to 9. The order of the tests is that of the checklist (section 8, 2).
    fn decode(bytes: [u8; 7]) -> Result<Self, SkipReason> {
        let [b3, b4, b5, b6, b7, b8, status] = bytes;
        // Ten hours do not exist, so this nibble cannot be a time. The bits above it carry the answer's top bits.
        if b3 & 0x0f == 0x0a || b6 & 0x0f == 0x0a {
            return Ok(ClockMessage::Ack(Ack {
                ack0: b4 | ((b6 << 3) & 0x80),
                ack1: b5 | ((b6 << 2) & 0x80),
                ack2: b7 | ((b3 << 3) & 0x80),
                ack3: b8 | ((b3 << 2) & 0x80),
            }));
        }
        if bytes == [0; 7] {
            return Ok(ClockMessage::Null);
        }
        if status & 0x20 != 0 {
            return Ok(ClockMessage::Absent);
        }
        // Bits 3 and 4 of the status tell whose turn it is, but the sources contradict each other which is which.
        Ok(ClockMessage::Times(BwTime {
            right: SideTime::decode(b3, b4, b5)?,
            left: SideTime::decode(b6, b7, b8)?,
            running: status & 0x01 != 0,
            right_up: status & 0x02 != 0,
            battery_low: status & 0x04 != 0,
        }))
    }

    fn data(&self) -> [u8; 7] {
        match self {
            ClockMessage::Null => [0; 7],
            ClockMessage::Absent => [0, 0, 0, 0, 0, 0, 0x20],
            ClockMessage::Ack(Ack {
                ack0,
                ack1,
                ack2,
                ack3,
            }) => {
                let b3 = 0x0a | ((ack2 & 0x80) >> 3) | ((ack3 & 0x80) >> 2);
                let b6 = ((ack0 & 0x80) >> 3) | ((ack1 & 0x80) >> 2);
                [b3, *ack0, *ack1, b6, *ack2, *ack3, 0]
            }
            ClockMessage::Times(times) => {
                let [b3, b4, b5] = times.right.data();
                let [b6, b7, b8] = times.left.data();
                // Bits 3 and 4 as the boards of all known recordings set them.
                let lever = if times.right_up { 0x12 } else { 0x08 };
                [
                    b3,
                    b4,
                    b5,
                    b6,
                    b7,
                    b8,
                    lever | u8::from(times.running) | (u8::from(times.battery_low) << 2),
                ]
            }
        }
    }
}

impl SideTime {
    fn decode(hours: u8, minutes: u8, seconds: u8) -> Result<Self, SkipReason> {
        if hours & 0x0f > 9 {
            return Err(SkipReason::NoSuchTime {
                hours,
                minutes,
                seconds,
            });
        }
        match (bcd(minutes), bcd(seconds)) {
            (Some(m), Some(s)) => Ok(Self {
                hours: hours & 0x0f,
                minutes: m,
                seconds: s,
                flag_halted: hours & 0x10 != 0,
                increment: hours & 0x20 != 0,
                flag_shown: hours & 0x40 != 0,
            }),
            _ => Err(SkipReason::NoSuchTime {
                hours,
                minutes,
                seconds,
            }),
        }
    }

    /// Anything above 9:59:59 is shown as if it stopped there, as a clock with four digits would.
    fn data(&self) -> [u8; 3] {
        let to_bcd = |n: u8| {
            let n = n.min(59);
            ((n / 10) << 4) | (n % 10)
        };
        let signs = (u8::from(self.flag_halted) << 4)
            | (u8::from(self.increment) << 5)
            | (u8::from(self.flag_shown) << 6);
        [
            self.hours.min(9) | signs,
            to_bcd(self.minutes),
            to_bcd(self.seconds),
        ]
    }
}

/// The number in the text of a serial number, if it begins with one: 1998 boards append a space and a version (3.2).
pub fn serial_digits(text: &str) -> Option<&str> {
    let number = text.split_ascii_whitespace().next()?;
    number
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(number)
}

/// What the board writes where it does not know a value.
const NOT_TOLD: u8 = 0x7f;

impl Battery {
    fn decode(data: &[u8]) -> Self {
        let told = |at: usize| data.get(at).copied().filter(|&value| value != NOT_TOLD);
        let status = data.get(8).copied().unwrap_or(0);
        Self {
            percent: told(0).filter(|&percent| percent <= 100),
            hours_left: told(1),
            minutes_left: told(2),
            hours_on: told(3),
            minutes_on: told(4),
            standby_days: told(5),
            standby_hours: told(6),
            standby_minutes: told(7),
            charging: status & 0x01 != 0,
            discharging: status & 0x02 != 0,
        }
    }

    fn data(&self) -> [u8; 9] {
        let tell = |value: Option<u8>| value.unwrap_or(NOT_TOLD);
        [
            tell(self.percent),
            tell(self.hours_left),
            tell(self.minutes_left),
            tell(self.hours_on),
            tell(self.minutes_on),
            tell(self.standby_days),
            tell(self.standby_hours),
            tell(self.standby_minutes),
            u8::from(self.charging) | (u8::from(self.discharging) << 1),
        ]
    }
}

fn frame(out: &mut Vec<u8>, id: u8, data: &[u8]) {
    let data = &data[..data.len().min(MAX_FRAME - 3)];
    let length = data.len() + 3;
    out.reserve(length);
    out.extend([id | HEADER, (length >> 7) as u8, (length & 0x7f) as u8]);
    out.extend(data.iter().map(|byte| byte & 0x7f));
}

/// Two decimal digits, 00 to 59.
fn bcd(byte: u8) -> Option<u8> {
    let (tens, ones) = (byte >> 4, byte & 0x0f);
    (tens < 6 && ones < 10).then_some(tens * 10 + ones)
}

/// A serial number becomes a name in files and topics, so nothing invisible may get into it.
fn printable(id: u8, text: &[u8]) -> Result<String, SkipReason> {
    if text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        Ok(text.iter().copied().map(char::from).collect())
    } else {
        Err(SkipReason::UnprintableText { id })
    }
}
