//! Where the record of each table is kept.

use std::io;

use crate::session::Entry;

/// Keeps entries, in order.
///
/// An entry is appended before anything that follows from it is sent, so that what a reader has seen is never lost here.
pub trait Store {
    fn append(&mut self, table: &str, entry: &Entry) -> io::Result<()>;
}

/// Keeps nothing: a session then begins anew with each start of the daemon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgetful;

impl Store for Forgetful {
    fn append(&mut self, _table: &str, _entry: &Entry) -> io::Result<()> {
        Ok(())
    }
}
