//! Board families: bytes to frames and back. One file a family; a new make of board begins with a new file here.

pub mod dgt;
