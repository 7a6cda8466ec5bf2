//! The record as PGN.
