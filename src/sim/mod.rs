//! Virtual boards: games, the hands that play them, and the board and clock that see it.
//!
//! game → hands → square changes and presses → scanner and chess clock → a family's bytes
//!
//! * [`pgn`] reads the games.
//! * [`hands`] turns moves into men lifted and put down, [`scene`] adds what else happens at a table; both write a [`script`].
//! * [`clock`] is the chess clock on the table.
//! * [`scan`] is how a board looks at its squares.
//! * [`line`] is the serial line, with its time.

pub mod clock;
pub mod hands;
pub mod line;
pub mod pgn;
pub mod scan;
pub mod scene;
pub mod script;
