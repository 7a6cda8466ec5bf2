//! What a host may say to a board.
//!
//! Some single bytes do lasting harm: one starts the boot loader, others rewrite the board's memory. A board that does not
//! know a command of several bytes takes each of them for a command of its own (section 2). So it is not enough that the
//! harmful ones have no name here: the types below let none of these bytes appear anywhere in an encoded command.

use super::FORBIDDEN;

/// A command to a board in single-board mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Fall silent: nothing is reported until the next update command.
    Reset,
    /// Send the clock once.
    Clock,
    /// Send the whole board once.
    Board,
    /// Report changed squares, and the clock at least once a second.
    Update,
    /// Report changed squares only.
    UpdateBoard,
    SerialNumber,
    BusAddress,
    Trademark,
    HardwareVersion,
    /// Send the board's log. On some boards that marks it as read.
    EeMoves,
    /// Report changed squares, and the clock when it changes.
    UpdateNice,
    Battery,
    Version,
    LongSerialNumber,
    /// Passed on to the clock.
    ToClock(ClockCommand),
}

/// A command to the clock (section 5). Acknowledged only in update modes that report the clock; one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockCommand {
    /// Show six characters made of segments.
    Display {
        segments: Segments,
        icons: Icons,
        beep: bool,
    },
    /// Show the times again.
    End,
    /// Tell the version.
    Version,
    /// Set both times, and who runs. Only in the clock's remote mode.
    SetNRun {
        left: ClockSetting,
        right: ClockSetting,
        mode: RunMode,
    },
    /// Sound.
    Beep(Beeps),
    /// Show a text; DGT3000 only.
    Ascii { text: ClockText, beep: Beeps },
}

/// What runs after the times are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RunMode {
    LeftRuns = 0x01,
    RightRuns = 0x02,
    Pause = 0x04,
    FollowLever = 0x08,
}

/// A time to set, at most 9:59:59.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClockSetting {
    hours: u8,
    minutes: u8,
    seconds: u8,
}

impl ClockSetting {
    /// None if a clock cannot show this.
    pub fn new(hours: u8, minutes: u8, seconds: u8) -> Option<Self> {
        (hours < 10 && minutes < 60 && seconds < 60).then_some(Self {
            hours,
            minutes,
            seconds,
        })
    }
}

/// How long to beep, in sixteenths of a second, 0 to 15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Beeps(u8);

impl Beeps {
    pub const SILENT: Self = Self(0);

    /// The longest there is, if this is longer.
    pub fn new(sixteenths: u8) -> Self {
        Self(sixteenths.min(15))
    }
}

/// Dots and colons between the segments (5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Icons {
    pub left_dot: bool,
    pub left_colon: bool,
    pub left_one: bool,
    pub right_dot: bool,
    pub right_colon: bool,
    pub right_one: bool,
}

/// Six characters in seven segments each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Segments([u8; 6]);

impl Segments {
    /// The first six characters as well as segments can show them; what they cannot is left blank.
    pub fn new(text: &str) -> Self {
        let mut segments = [0; 6];
        for (segment, c) in segments.iter_mut().zip(text.chars()) {
            *segment = segments_of(c);
        }
        Self(segments)
    }
}

/// Eight characters for the DGT3000. A letter whose code is a harmful command appears in the other case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClockText([u8; 8]);

impl ClockText {
    /// The first eight characters, blanks behind; what is not printable ASCII becomes a blank.
    pub fn new(text: &str) -> Self {
        let mut bytes = [b' '; 8];
        for (byte, c) in bytes.iter_mut().zip(text.chars()) {
            *byte = harmless(c);
        }
        Self(bytes)
    }
}

impl Command {
    /// The bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        let opcode = match self {
            Command::Reset => 0x40,
            Command::Clock => 0x41,
            Command::Board => 0x42,
            Command::Update => 0x43,
            Command::UpdateBoard => 0x44,
            Command::SerialNumber => 0x45,
            Command::BusAddress => 0x46,
            Command::Trademark => 0x47,
            Command::HardwareVersion => 0x48,
            Command::EeMoves => 0x49,
            Command::UpdateNice => 0x4b,
            Command::Battery => 0x4c,
            Command::Version => 0x4d,
            Command::LongSerialNumber => 0x55,
            Command::ToClock(command) => return command.encode(),
        };
        vec![opcode]
    }
}

impl From<ClockCommand> for Command {
    fn from(command: ClockCommand) -> Self {
        Command::ToClock(command)
    }
}

impl ClockCommand {
    fn encode(&self) -> Vec<u8> {
        match self {
            ClockCommand::Display {
                segments: Segments([a, b, c, d, e, f]),
                icons,
                beep,
            } => message(
                0x01,
                &[
                    *c,
                    *b,
                    *a,
                    *f,
                    *e,
                    *d,
                    icons.bits(),
                    if *beep { 0x03 } else { 0x01 },
                ],
            ),
            ClockCommand::End => message(0x03, &[]),
            ClockCommand::Version => message(0x09, &[]),
            ClockCommand::SetNRun { left, right, mode } => message(
                0x0a,
                &[
                    left.hours,
                    left.minutes,
                    left.seconds,
                    right.hours,
                    right.minutes,
                    right.seconds,
                    *mode as u8,
                ],
            ),
            ClockCommand::Beep(Beeps(sixteenths)) => message(0x0b, &[*sixteenths]),
            ClockCommand::Ascii {
                text: ClockText(text),
                beep,
            } => {
                let mut data = text.to_vec();
                data.push(beep.0);
                message(0x0c, &data)
            }
        }
    }
}

impl Icons {
    fn bits(&self) -> u8 {
        u8::from(self.right_dot)
            | u8::from(self.right_colon) << 1
            | u8::from(self.right_one) << 2
            | u8::from(self.left_dot) << 3
            | u8::from(self.left_colon) << 4
            | u8::from(self.left_one) << 5
    }
}

/// Wraps a clock message: the size counts what comes after it.
fn message(id: u8, data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x2b, data.len() as u8 + 3, 0x03, id];
    out.extend_from_slice(data);
    out.push(0x00);
    out
}

fn harmless(c: char) -> u8 {
    if !matches!(c, ' '..='~') {
        return b' ';
    }
    let byte = c as u8;
    match byte {
        _ if !FORBIDDEN.contains(&byte) => byte,
        b'`' => b'\'',
        upper if upper.is_ascii_uppercase() => upper.to_ascii_lowercase(),
        lower => lower.to_ascii_uppercase(),
    }
}

/// Segment bits, from the top clockwise 01 02 04 08 10 20, the middle 40 (5.1).
fn segments_of(c: char) -> u8 {
    match c.to_ascii_lowercase() {
        '0' | 'o' => 0x3f,
        '1' | 'i' => 0x06,
        '2' | 'z' => 0x5b,
        '3' => 0x4f,
        '4' => 0x66,
        '5' | 's' => 0x6d,
        '6' => 0x7d,
        '7' => 0x07,
        '8' => 0x7f,
        '9' | 'g' => 0x6f,
        'a' => 0x77,
        'b' => 0x7c,
        'c' => 0x39,
        'd' => 0x5e,
        'e' => 0x79,
        'f' => 0x71,
        'h' => 0x76,
        'j' => 0x1e,
        'l' => 0x38,
        // The usual shapes of n and a hook-shaped q are harmful bytes.
        'n' | 'm' => 0x37,
        'p' => 0x73,
        'q' => 0x67,
        'r' => 0x50,
        't' => 0x78,
        'u' | 'v' | 'w' => 0x3e,
        'y' | 'x' => 0x6e,
        '-' => 0x40,
        '_' => 0x08,
        '=' => 0x48,
        _ => 0x00,
    }
}
