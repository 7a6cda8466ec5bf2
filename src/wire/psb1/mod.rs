#![doc = include_str!("psb1.md")]
//!
//! # In this module
//!
//! The host's side is [`Decoder`], which turns bytes into [`Message`]s, and [`Command`], which is all a host may say. The board's side
//! is [`VirtualBoard`].

mod decoder;
mod message;
mod virtual_board;

pub use decoder::{Decoder, Item, SkipReason, Skipped};
pub use message::{BoardId, Change, Command, Hello, Letters, Message, Squares, Text, UnfitId};
pub use virtual_board::{Identity, VirtualBoard};

/// The most characters between `$` and `*`.
pub const MAX_BODY: usize = 80;

/// A board that reports nothing else repeats its squares at least so often, in milliseconds.
pub const HEARTBEAT_MS: u64 = 1_000;

/// A board from which no valid line came for so long is gone, in milliseconds.
pub const SILENT_MS: u64 = 3_000;

/// The version of the format, as a board names it in its hello.
const VERSION: &str = "1";

/// Whether all of it can be seen on paper, the space included.
fn is_printable(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| (0x20..0x7f).contains(byte))
}

/// The check of a body: all its characters by exclusive or.
fn check(body: &[u8]) -> u8 {
    body.iter().fold(0, |sum, byte| sum ^ byte)
}

/// A body as a line: `$`, the body, `*`, its check, LF.
fn frame(body: &str, out: &mut Vec<u8>) {
    let sum = check(body.as_bytes());
    out.extend(format!("${body}*{sum:02X}\n").into_bytes());
}

#[cfg(test)]
mod tests;
