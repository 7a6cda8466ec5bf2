//! What all tables of a node share on their way out.

use std::collections::BTreeSet;
use std::time::Instant;

use tracing::{error, warn};

use super::clock::Clock;
use crate::command::{Command, Reply};
use crate::daemon::archives::Archives;
use crate::daemon::desk::Desk;
use crate::daemon::files::Files;
use crate::daemon::mqtt::{self, Mqtt};
use crate::daemon::orders;
use crate::daemon::store::Store;
use crate::hush::Hush;
use crate::publish::{self, Publication, VERSION};
use crate::session;
use crate::text::one_line;

/// What all tables share on their way out.
pub(super) struct Outlets {
    pub(super) clock: Clock,
    pub(super) mqtt: Mqtt,
    pub(super) desk: Desk,
    pub(super) files: Option<Files>,
    pub(super) store: Box<dyn Store + Send>,
    pub(super) store_failed: bool,
    /// Why messages were not taken; each reason is said once.
    pub(super) not_sent: BTreeSet<String>,
    pub(super) refusals: Hush<Instant>,
    pub(super) archives: Archives,
    /// Names what the node itself publishes; it numbers no events.
    pub(super) stream: String,
    /// Names this run.
    pub(super) boot: String,
}

impl Outlets {
    pub(super) fn publish(&mut self, publication: &Publication) {
        let sent = self.mqtt.publish(publication);
        self.note(sent);
    }

    /// For what the node itself publishes.
    pub(super) fn envelope(&self) -> publish::Envelope {
        publish::Envelope {
            v: VERSION,
            stream: self.stream.clone(),
            seq: 0,
            boot: self.boot.clone(),
            at: self.clock.wall(),
            mono_ms: self.clock.now(),
            time_ok: self.clock.time_ok,
        }
    }

    pub(super) fn reply(&mut self, topic: String, reply: &Reply) {
        let sent = self.mqtt.send(orders::answer(topic, reply));
        self.note(sent);
    }

    /// A command that does not come as far as its table's session.
    pub(super) fn refuse(&mut self, table: &str, command: Command, why: &str) {
        let why = one_line(why, 200);
        self.tell_refusal(&format!("table {table}: {why}"));
        if let Some(topic) = command.reply_to {
            let reply = Reply {
                id: command.id,
                ok: false,
                error: Some(why),
                note: None,
            };
            self.reply(topic, &reply);
        }
    }

    pub(super) fn tell_refusal(&mut self, why: &str) {
        if self.refusals.may_say(why, Instant::now()) {
            warn!("refused: {why}");
        }
    }

    /// What was not worth a line of its own.
    pub(super) fn tell_kept(&mut self) {
        for kept in self.refusals.poll(Instant::now()) {
            warn!("refused {} more times: {}", kept.times, kept.text);
        }
    }

    fn note(&mut self, sent: Result<(), mqtt::NotSent>) {
        if let Err(error) = sent {
            let reason = one_line(&error.to_string(), 200);
            if self.not_sent.len() < MOST_REASONS && self.not_sent.insert(reason.clone()) {
                warn!("not published: {reason}");
            }
        }
    }

    pub(super) fn keep(&mut self, table: &str, entry: &session::Entry) {
        match self.store.append(table, entry) {
            Ok(()) => self.store_failed = false,
            Err(error) => {
                if !std::mem::replace(&mut self.store_failed, true) {
                    error!(
                        "the record of table {table} is not kept: {error}. Look at the disk under state_dir; play goes on"
                    );
                }
            }
        }
    }
}

/// Different reasons why messages were not taken, before they are no longer told apart.
const MOST_REASONS: usize = 100;
