//! Whether the board is there, and who is told when it is not.

use super::alerts::{Notice, Source};
use super::{Settings, Table};
use crate::board::is_supported;
use crate::publish::{AlertKind, Audience, CloseReason, Link, Severity};
use crate::wire::Family;

/// What the board on the table calls itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// Since the link is up.
    now: Name,
    /// And the board that was on it before, if it may be the same.
    before: Name,
    /// The board that belongs here, while another one stands in its place.
    missing: Option<String>,
}

/// Boards of DGT answer with two numbers; the long one is on the label.
#[derive(Debug, Clone, Default)]
struct Name {
    family: Family,
    long: Option<String>,
    short: Option<String>,
}

impl Name {
    fn of(&self, long: bool) -> Option<&str> {
        match long {
            true => self.long.as_deref(),
            false => self.short.as_deref(),
        }
    }

    fn is_blank(&self) -> bool {
        self.long.is_none() && self.short.is_none()
    }
}

impl Names {
    pub fn serial(&self) -> Option<&str> {
        [
            &self.now.long,
            &self.before.long,
            &self.now.short,
            &self.before.short,
        ]
        .into_iter()
        .find_map(|name| name.as_deref())
    }

    /// Whether the board has said so since the link is up.
    pub fn is_known(&self, family: Family, number: &str, long: bool) -> bool {
        self.now.family == family && self.now.of(long) == Some(number)
    }

    /// The link is up again: it may be another board.
    fn reconnect(&mut self) {
        let now = std::mem::take(&mut self.now);
        if !now.is_blank() {
            let before = std::mem::take(&mut self.before);
            self.before = Name {
                family: now.family,
                long: now.long.or(before.long),
                short: now.short.or(before.short),
            };
        }
    }

    /// Whether the board that says this may be the one that was there before.
    fn is_same(&self, family: Family, number: &str, long: bool) -> bool {
        let known = self.before.of(long).or(self.now.of(long));
        known.is_none_or(|known| known == number)
            && (self.before.is_blank() || self.before.family == family)
    }

    /// The board says what it is called. Tells whether it is another one than before.
    fn take(&mut self, family: Family, number: &str, long: bool) -> bool {
        let is_other = !self.is_same(family, number, long);
        if is_other {
            self.missing = self.missing.take().or(self.serial().map(str::to_owned));
            self.before = Name::default();
        }
        self.now.family = family;
        let slot = match long {
            true => &mut self.now.long,
            false => &mut self.now.short,
        };
        *slot = Some(number.to_owned());
        is_other
    }
}

impl Table {
    pub(super) fn apply_link(&mut self, link: Link) {
        let before = std::mem::replace(&mut self.link, link);
        if before != self.link {
            if self.link == Link::Ok {
                self.names.reconnect();
                let now = self.now;
                self.restless.wait_anew(now);
                self.sense(|sensing, _| sensing.handle_heard(now));
            } else if before == Link::Ok {
                self.sense(|sensing, _| sensing.handle_silence());
            }
            self.tell_link();
        }
    }

    /// The board says what it is called. Where another stood before, boards may have changed their tables (case N2).
    pub(super) fn board_named(&mut self, number: &str, long: bool) {
        let (family, playing) = (self.settings.family, self.game.as_ref());
        let played = playing.filter(|game| !game.line.is_empty());
        if let Some(id) = played.map(|game| game.id.clone())
            && !self.names.is_same(family, number, long)
        {
            self.keep_board(Some(&id));
        }
        let is_other = self.names.take(family, number, long);
        let serial = self.names.serial().unwrap_or(number);
        let missing = self.names.missing.as_deref();
        if missing == Some(serial) {
            self.names.missing = None;
            self.close_alert(Source::Swapped, CloseReason::Restored);
        } else if let Some(missing) = missing.filter(|_| is_other) {
            let notice = Notice::new(
                AlertKind::BoardSwapped,
                Audience::Operator,
                Severity::Info,
                format!("board {serial} stands where {missing} was. Is it meant to?"),
            );
            self.raise(Source::Swapped, notice);
        }
    }

    /// A game has been played on the board that stands here now: it belongs here.
    pub(super) fn keep_board(&mut self, before: Option<&str>) {
        let is_kept = self
            .alerts
            .of(Source::Swapped)
            .is_some_and(|alert| alert.game.as_deref() != before);
        if is_kept {
            self.names.missing = None;
            self.close_alert(Source::Swapped, CloseReason::Stands);
        }
    }

    /// What a board would have to speak that may stand here, for a sentence that it does not.
    fn none_of_its_tongues(&self) -> String {
        let Settings {
            family, takes_all, ..
        } = self.settings;
        let may_stand = |other: &&Family| **other == family || takes_all && is_supported(**other);
        let tongues = Family::ALL.iter().filter(may_stand);
        let none: Vec<String> = tongues
            .map(|family| format!("no {}", family.tongue()))
            .collect();
        none.join(" and ")
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
                            "what is on this port speaks {}. Look at what is plugged in.",
                            self.none_of_its_tongues()
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
