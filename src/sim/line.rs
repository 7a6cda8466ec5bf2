//! A serial line: bytes leave one after the other and take their time.

use std::collections::VecDeque;

use crate::Millis;

/// The board's end of a line of 8 data bits, no parity, 1 stop bit (protocol sheet 1): ten bits a byte.
///
/// There is no flow control; what is written waits in the board until the line is free.
#[derive(Debug, Clone)]
pub struct Line {
    byte_us: u64,
    /// When the last byte written is through.
    free_us: u64,
    waiting: VecDeque<u8>,
}

impl Line {
    /// A line of this many baud; 0 for one that takes no time.
    pub fn new(baud: u32) -> Line {
        Line {
            byte_us: if baud == 0 {
                0
            } else {
                10_000_000 / u64::from(baud)
            },
            free_us: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Writes bytes at `now`.
    pub fn write(&mut self, now: Millis, bytes: &[u8]) {
        if self.waiting.is_empty() {
            self.free_us = self.free_us.max(now * 1000);
        }
        self.free_us += bytes.len() as u64 * self.byte_us;
        self.waiting.extend(bytes);
    }

    /// The bytes that are through by `now`.
    pub fn poll(&mut self, now: Millis) -> Vec<u8> {
        let outstanding = match (self.free_us.saturating_sub(now * 1000), self.byte_us) {
            (_, 0) | (0, _) => 0,
            (us, byte_us) => usize::try_from(us.div_ceil(byte_us)).unwrap_or(usize::MAX),
        };
        let through = self.waiting.len().saturating_sub(outstanding);
        self.waiting.drain(..through).collect()
    }

    /// When everything written so far is through; `None` when it is.
    pub fn poll_timeout(&self) -> Option<Millis> {
        (!self.waiting.is_empty()).then_some(self.free_us.div_ceil(1000))
    }

    /// Forgets what has not left yet.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.free_us = 0;
    }
}

/// The speed of every DGT board.
pub const BAUD: u32 = 9600;

/// The speed that PSB1 boards prefer.
pub const PSB1_BAUD: u32 = 115_200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_dump_takes_70_ms() {
        let mut line = Line::new(BAUD);
        line.write(1000, &[0; 67]);
        assert!(line.poll(1000).is_empty());
        assert_eq!(line.poll(1010).len(), 9);
        assert_eq!(line.poll_timeout(), Some(1070));
        assert_eq!(line.poll(1070).len(), 58);
        assert_eq!(line.poll_timeout(), None);
    }

    #[test]
    fn a_second_message_waits_for_the_first() {
        let mut line = Line::new(BAUD);
        line.write(0, &[1; 10]);
        line.write(0, &[2; 10]);
        assert_eq!(line.poll_timeout(), Some(21));
        assert_eq!(line.poll(11), [1; 10]);
        assert_eq!(line.poll(21), [2; 10]);
        line.write(100, &[3; 5]);
        assert_eq!(line.poll_timeout(), Some(106));
    }

    #[test]
    fn a_line_without_a_speed_takes_no_time() {
        let mut line = Line::new(0);
        line.write(5, &[1, 2]);
        assert_eq!(line.poll_timeout(), Some(5));
        assert_eq!(line.poll(5), [1, 2]);
    }
}
