//! Bytes to messages.
//!
//! Bytes come in whatever pieces the port hands over: half frames, several at once, rubbish before the first. The length
//! in the header says where a frame ends; single-board mode has no checksum, but only the first byte of a frame has its
//! top bit set (3.1). So there is one rule for every fault: whatever cannot be, is skipped and told, and the next byte
//! with the top bit set begins a frame, wherever it stands.

use super::{HEADER, MAX_FRAME, Message, PieceCode, RawSquare, id};

/// Cuts a stream of bytes into messages.
///
/// Every byte pushed ends up exactly once: in a message, in a [`Skipped`], or in [`buffered`](Self::buffered). What comes
/// out does not depend on how the stream was cut into pushes. At most one frame is held in memory.
///
/// The decoder knows no time. A frame that stops half-way stays [`buffered`](Self::buffered) until more bytes come, or
/// until the caller has waited long enough and says [`abandon`](Self::abandon); [`missing`](Self::missing) tells how much
/// there is to wait for.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    /// The beginning of a frame; empty, or its first byte is a header.
    partial: Vec<u8>,
    /// The last byte was skipped, so a byte outside a frame belongs to the same fault.
    in_fault: bool,
}

/// What comes out of a stream, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Item {
    Message(Message),
    Skipped(Skipped),
}

/// Bytes that made no message.
///
/// Noise is told byte by byte, so that nothing is withheld and nothing depends on how the bytes arrive. To count faults
/// rather than bytes, leave out [`SkipReason::MoreNoise`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Skipped {
    /// How many; at least one.
    pub bytes: u32,
    pub reason: SkipReason,
}

/// Why bytes were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SkipReason {
    /// The first byte that lies outside any frame.
    #[error("byte outside a frame")]
    Noise,
    /// A further byte outside any frame, after noise or after a frame that was given up.
    #[error("further byte outside a frame")]
    MoreNoise,
    /// The next header came before the frame was complete: bytes were lost.
    #[error("frame {id:02x} cut short by a new header")]
    CutShort { id: u8 },
    /// The frame would be shorter than its own header.
    #[error("frame {id:02x} with impossible length {length}")]
    ImpossibleLength { id: u8, length: u16 },
    /// Messages with this identifier have another length.
    #[error("frame {id:02x} with wrong length {length}")]
    WrongLength { id: u8, length: u16 },
    #[error("no square has number {0}")]
    NoSuchSquare(u8),
    #[error("no piece has code {0:02x}")]
    NoSuchPiece(u8),
    /// Ten hours or more, or minutes or seconds that are not two decimal digits below sixty.
    #[error("no clock shows {hours:02x} {minutes:02x} {seconds:02x}")]
    NoSuchTime { hours: u8, minutes: u8, seconds: u8 },
    /// A serial number with control characters.
    #[error("unprintable text in frame {id:02x}")]
    UnprintableText { id: u8 },
    /// The caller gave the frame up.
    #[error("frame {id:02x} abandoned unfinished")]
    Abandoned { id: u8 },
}

impl Decoder {
    /// Takes bytes in and hands out all that they complete.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(Item)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            // By far the most frequent message of a busy board.
            if self.partial.is_empty()
                && let [id::FIELD_UPDATE, 0, 5, square, piece, after @ ..] = rest
                && let (Some(square), Some(piece)) =
                    (RawSquare::new(*square), PieceCode::new(*piece))
            {
                self.in_fault = false;
                sink(Item::Message(Message::FieldUpdate { square, piece }));
                rest = after;
                continue;
            }
            rest = self.advance(rest, &mut sink);
        }
    }

    /// The bytes of the unfinished frame.
    pub fn buffered(&self) -> &[u8] {
        &self.partial
    }

    /// How many bytes the unfinished frame still lacks, as far as known: until its header is in, those of the header. None
    /// if there is no unfinished frame.
    pub fn missing(&self) -> Option<usize> {
        (!self.partial.is_empty()).then(|| goal(&self.partial) - self.partial.len())
    }

    /// Gives the unfinished frame up, because the rest of it has not come in time (3.1: after about half a second).
    pub fn abandon(&mut self) -> Option<Skipped> {
        let &id = self.partial.first()?;
        let bytes = self.partial.len() as u32;
        self.partial.clear();
        self.in_fault = true;
        Some(Skipped {
            bytes,
            reason: SkipReason::Abandoned { id },
        })
    }

    /// One step with `rest`, which is not empty: bytes of it are taken, or a header in it ends the unfinished frame. Returns
    /// the bytes not taken.
    fn advance<'a>(&mut self, rest: &'a [u8], sink: &mut impl FnMut(Item)) -> &'a [u8] {
        if !self.partial.is_empty() {
            let known = self.partial.len();
            let wanted = (goal(&self.partial) - known).min(rest.len());
            self.partial.extend_from_slice(&rest[..wanted]);
            let Some((end, outcome)) = examine(&self.partial, known) else {
                return &rest[wanted..];
            };
            self.partial.clear();
            self.emit(end, outcome, sink);
            return &rest[end - known..];
        }
        if rest[0] < HEADER {
            let reason = if self.in_fault {
                SkipReason::MoreNoise
            } else {
                SkipReason::Noise
            };
            self.emit(1, Err(reason), sink);
            return &rest[1..];
        }
        match examine(rest, 1) {
            Some((end, outcome)) => {
                self.emit(end, outcome, sink);
                &rest[end..]
            }
            None => {
                self.partial.extend_from_slice(rest);
                &[]
            }
        }
    }

    fn emit(
        &mut self,
        bytes: usize,
        outcome: Result<Message, SkipReason>,
        sink: &mut impl FnMut(Item),
    ) {
        self.in_fault = outcome.is_err();
        sink(match outcome {
            Ok(message) => Item::Message(message),
            Err(reason) => Item::Skipped(Skipped {
                bytes: bytes as u32,
                reason,
            }),
        });
    }
}

/// Looks at bytes that begin with a header, of which the first `known` are known to be good so far. If they decide the fate
/// of a frame: how many bytes it takes, and what becomes of it.
fn examine(bytes: &[u8], known: usize) -> Option<(usize, Result<Message, SkipReason>)> {
    let id = bytes[0];
    let next_header = |from: usize, to: usize| {
        let to = to.min(bytes.len());
        let from = from.min(to);
        bytes[from..to]
            .iter()
            .position(|&byte| byte >= HEADER)
            .map(|at| from + at)
    };
    if let Some(at) = next_header(known, 3) {
        return Some((at, Err(SkipReason::CutShort { id })));
    }
    if bytes.len() < 3 {
        return None;
    }
    let length = announced(bytes);
    if let Err(reason) = Message::check_length(id, length) {
        return Some((3, Err(reason)));
    }
    if let Some(at) = next_header(known.max(3), length) {
        return Some((at, Err(SkipReason::CutShort { id })));
    }
    let data = bytes.get(3..length)?;
    Some((length, Message::decode(id, data)))
}

/// The length at which an unfinished frame can be judged next.
fn goal(partial: &[u8]) -> usize {
    if partial.len() < 3 {
        3
    } else {
        announced(partial)
    }
}

/// The length that a header announces, itself included.
fn announced(header: &[u8]) -> usize {
    ((usize::from(header[1]) << 7) | usize::from(header[2])) & MAX_FRAME
}
