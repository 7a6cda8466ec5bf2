//! Reads electronic chess boards, works out what the players did, and publishes it.
//!
//! Data flows one way, and the modules below stand in that order:
//!
//! bytes → frames → square events → observations → game record → publications → outbox → broker
//!
//! * [`wire`] turns bytes into frames and back, one file a board family. It knows neither chess nor time.
//! * [`trace`] reads and writes the text format in which recorders, tests and bug reports share such bytes.
//! * [`board`] turns frames into what each square shows, whichever way round the board stands. It does not know what is legal.
//! * [`sensing`] turns squares, presses and time into observations: moved, taken back, irregular. It knows no topic and no file.
//! * [`laws`] judges positions: is it legal, why not, has it ended. It holds no state and sees no sensor.
//! * [`clock`] turns clock readings into the state of the clock. It knows no board.
//! * [`command`] is what people may ask for, and on what terms a game is armed.
//! * [`reading`] reads what they have written, and says in their words what is wrong with it.
//! * [`game`] keeps the record as it grows, and writes it as PGN. It sees no sensor and no topic.
//! * [`publish`] holds the payloads that others read, and their topics. It knows no broker.
//! * [`outbox`] keeps what is not yet acknowledged, in order. It does not know what it means.
//! * [`session`] is one table's whole pure pipeline behind one face.
//! * [`replay`] runs traces through a session in virtual time.
//! * [`text`] makes what comes from outside fit for a line of the log, and [`hush`] says whether it is worth one.
//! * [`sim`] plays games on virtual boards; it knows nothing of the pipeline it tests.
//! * `daemon` (feature `io`) does all input and output of `run`.
//!
//! Everything but `daemon`, `config` and the commands is pure: no clock, no file, no socket, no randomness; time arrives as an argument.
//!
//! # What comments refer to
//!
//! * *Article*, or a number such as 7.5.1 or A.5.2 alone: the FIDE Laws of Chess of 2023, unless another edition is named.
//! * *Protocol sheet 3.5*: the protocol of DGT's boards, as its headers `dgtbrd13.h` (version 1.03 of 1998) and of
//!   2012 give it and boards were seen to do it. Its sections: 1 the line and its times, 2 commands of the host, 3 messages of the
//!   board (3.1 framing, 3.2 identifiers, 3.3 squares, 3.4 men, 3.5 clock times, 3.6 clock acknowledgements), 4 the board's memory,
//!   5 the clock, 6 the bus, 7 orientation and oddities (7.4 a link that falls silent).
//! * *Case A5*: what users of other programs reported, and what should come of it. `tests/cases.txt` has them, by group and number;
//!   those that are no row of moves stand at its end in words, with tests that name them.

#![forbid(unsafe_code)]

pub mod wire;

pub mod trace;

pub mod board;

pub mod sensing;

pub mod laws;

pub mod clock;

pub mod command;

pub mod reading;

pub mod game;

pub mod publish;

pub mod outbox;

pub mod session;

pub mod replay;

pub mod text;

pub mod hush;

pub mod sim;

#[cfg(feature = "io")]
pub mod config;

#[cfg(feature = "io")]
pub mod daemon;

#[cfg(feature = "io")]
pub mod commands;

/// Milliseconds on a clock that only goes forward. In a daemon it starts with the process, in a replay with the trace.
pub type Millis = u64;
