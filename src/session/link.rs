//! Whether the board is there, and who is told when it is not.

use super::Table;
use super::alerts::{Notice, Source};
use super::entry::LinkState;
use crate::publish::{AlertKind, Audience, CloseReason, Link, Severity};

impl Table {
    pub(super) fn apply_link(&mut self, state: LinkState) {
        let before = self.link;
        self.link = match state {
            LinkState::Up => Link::Ok,
            LinkState::Down => Link::Missing,
            LinkState::Silent => Link::Silent,
            LinkState::Fault => Link::Fault,
        };
        if before != self.link {
            self.tell_link();
        }
    }

    fn tell_link(&mut self) {
        match self.link {
            Link::Ok => self.close_alert(Source::Board, CloseReason::Restored),
            Link::Missing | Link::Silent | Link::Fault => {
                let playing = self
                    .open_game()
                    .is_some_and(|game| game.started_at.is_some() || !game.line.is_empty());
                let severity = if playing {
                    Severity::Warn
                } else {
                    Severity::Info
                };
                let (kind, says) = match self.link {
                    Link::Silent => (
                        AlertKind::BoardSilent,
                        "the board does not answer. Look at its cable and power.".to_owned(),
                    ),
                    Link::Fault => (
                        AlertKind::BoardMissing,
                        format!(
                            "what is on this port speaks no {}. Look at what is plugged in.",
                            self.settings.family.tongue()
                        ),
                    ),
                    _ => (
                        AlertKind::BoardMissing,
                        "the board is gone. Look at its cable and power.".to_owned(),
                    ),
                };
                self.raise(
                    Source::Board,
                    Notice::new(kind, Audience::Operator, severity, says),
                );
            }
        }
        self.publish_clock();
    }
}
