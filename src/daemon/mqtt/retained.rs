//! What stands retained under this node's topics: what we said last, and what others leave there in our name.
//!
//! The broker may lose what it kept, so it is said again after each connection. What somebody else overwrites is put right, in rounds;
//! an alert of an earlier run is emptied; and another daemon that says it is this node is told apart from both.

use std::collections::BTreeSet;

use tracing::{debug, error, info};

use super::{Driver, Ending, Step, Ticket, packet_size, twin};
use crate::outbox::Message;
use crate::publish::topic::{Topic, alerts, matches, states};
use crate::publish::{Delivery, NodeStatus, Online};

pub(super) struct Retained {
    pub(super) payload: Vec<u8>,
    pub(super) delivery: Delivery,
    pub(super) refusals: u32,
}

/// Retained alerts at the broker that this run did not publish.
pub(super) enum Stale {
    /// It is not known yet which alerts are open.
    Held(BTreeSet<String>),
    Swept,
}

impl Driver {
    pub(super) fn sweep_alerts(&mut self) {
        if let Stale::Held(topics) = std::mem::replace(&mut self.stale, Stale::Swept) {
            for topic in topics {
                self.empty_if_stale(topic);
            }
        }
        self.feed();
        self.report();
    }

    /// A retained value to say again, unless a newer one waits: the older one must never follow it.
    pub(super) fn next_retained(
        &mut self,
        pop: impl Fn(&mut Driver) -> Option<String>,
    ) -> Option<(Ticket, String, Vec<u8>, bool)> {
        while let Some(topic) = pop(self) {
            if self.outbox.holds(&topic) {
                continue;
            }
            let payload = if self.status_topic.as_ref() == Some(&topic) {
                self.settings.status(Online::Online)
            } else if let Some(kept) = self.retained.get(&topic) {
                kept.payload.clone()
            } else {
                continue;
            };
            if packet_size(topic.len(), payload.len()) <= self.packet_limit {
                return Some((Ticket::Retained(topic.clone()), topic, payload, true));
            }
        }
        None
    }

    pub(super) fn remember(&mut self, topic: String, payload: Vec<u8>, delivery: Delivery) {
        if payload.is_empty() && self.is_alert(&topic) {
            // If the broker loses the emptying, the alert comes back to us as a stale one.
            self.retained.remove(&topic);
            return;
        }
        let kept = Retained {
            payload,
            delivery,
            refusals: 0,
        };
        let is_new = self.retained.insert(topic.clone(), kept).is_none();
        if is_new && delivery == Delivery::Each {
            self.once.push_back(topic);
            if self.once.len() > ONCE
                && let Some(oldest) = self.once.pop_front()
            {
                self.retained.remove(&oldest);
            }
        }
    }

    /// A retained message under a topic that is this node's. With every broker that knows MQTT 5 it is from somebody else; one that
    /// sends us our own must not make us answer ourselves for ever.
    pub(super) fn handle_own(&mut self, topic: String, payload: &[u8]) -> Step {
        if self.is_on_the_way(&topic) || self.ending != Ending::No {
            // What we say comes after it.
            return Step::Go;
        }
        let is_status = self.status_topic.as_ref() == Some(&topic);
        let known = match is_status {
            true => Some(self.settings.status(Online::Online)),
            false => self.retained.get(&topic).map(|kept| kept.payload.clone()),
        };
        match known {
            Some(ours) if ours == payload => return Step::Go,
            // Which of the two is right nobody can say; to answer each other for ever helps nobody.
            Some(_) if self.twin_is_up && !is_status => return Step::Go,
            Some(_) => {}
            None => {
                if self.is_alert(&topic) && !payload.is_empty() {
                    self.handle_retained_alert(topic);
                }
                return Step::Go;
            }
        }
        // The last will of an earlier connection can come after our greeting.
        let is_farewell = serde_json::from_slice::<NodeStatus>(payload)
            .is_ok_and(|status| status.status == Online::Offline);
        if !(is_status && is_farewell) {
            self.say(|| {
                format!(
                    "somebody else publishes under {topic:?}, which is this node's; it is put right. Let the broker's access list keep others out"
                )
            });
        }
        self.to_mend.insert(topic);
        if std::mem::replace(&mut self.is_mending, true) {
            return Step::Go;
        }
        self.mend();
        Step::Mend
    }

    /// Whether a message of ours on this topic waits, or is not acknowledged yet.
    pub(super) fn is_on_the_way(&self, topic: &str) -> bool {
        self.outbox.holds(topic)
            || self.again.iter().any(|of| of == topic)
            || self.handed.iter().any(|ticket| ticket.is_of(topic))
            || self.in_flight.iter().any(|(_, of)| of.is_of(topic))
    }

    /// Whether this status says that another daemon is up as this node; the first time that is told.
    pub(super) fn is_of_twin(&mut self, payload: &[u8], is_retained: bool) -> bool {
        let Ok(status) = serde_json::from_slice::<NodeStatus>(payload) else {
            return false;
        };
        // A twin on this machine has our client id, and the broker ends the older connection, often without a reason; one on
        // another machine has an id of its own, and the broker lets both be. What is retained may be of an earlier run, the
        // first time; what comes later is not.
        let is_online = status.status == Online::Online;
        // Once our own greeting is acknowledged, whatever else comes was said after it, kept or not.
        let is_greeted = self
            .status_topic
            .as_ref()
            .is_some_and(|topic| !self.is_on_the_way(topic));
        let is_later = match is_retained {
            true => self.is_back || (is_online && is_greeted),
            false => is_online,
        };
        let is_other = status.boot != self.settings.boot;
        if is_later && is_other && !std::mem::replace(&mut self.has_twin, true) {
            error!("{}", twin(&self.settings.node));
        }
        if is_later && is_other && is_online {
            self.twin_is_up = true;
        } else if is_other && !is_online && std::mem::take(&mut self.twin_is_up) {
            // It leaves behind what it said last.
            let all = self.retained.iter();
            let states = all.filter(|(_, kept)| kept.delivery != Delivery::Each);
            self.to_mend.extend(states.map(|(topic, _)| topic.clone()));
        }
        is_online && is_other
    }

    /// Says again what others have overwritten; false if nothing was.
    pub(super) fn mend(&mut self) -> bool {
        let topics = std::mem::take(&mut self.to_mend);
        self.is_mending = !topics.is_empty();
        for topic in topics {
            if !self.again.contains(&topic) {
                self.again.push_back(topic);
            }
        }
        self.is_mending
    }

    pub(super) fn handle_retained_alert(&mut self, topic: String) {
        match &mut self.stale {
            Stale::Held(topics) => {
                if topics.len() < HELD {
                    topics.insert(topic);
                }
            }
            Stale::Swept => self.empty_if_stale(topic),
        }
    }

    pub(super) fn empty_if_stale(&mut self, topic: String) {
        if self.retained.contains_key(&topic) || self.outbox.holds(&topic) {
            return;
        }
        let text = format!("emptied an alert that is not of this run: {topic:?}");
        if self.hush.may_say(&text, std::time::Instant::now()) {
            info!("{text}");
        }
        let emptying = Message {
            topic,
            payload: Vec::new(),
            retain: true,
            qos: 1,
            delivery: Delivery::Latest,
        };
        if let Err(cause) = self.outbox.append(emptying) {
            debug!(%cause, "an alert that is not of this run stays");
        }
    }

    /// Whether the topic is one that we watch for what others put there.
    pub(super) fn is_own(&self, topic: &str) -> bool {
        topic
            .strip_prefix(&self.prefix)
            .is_some_and(|below| self.own_states().any(|filter| matches(&filter, below)))
    }

    pub(super) fn own_states(&self) -> impl Iterator<Item = String> {
        let node = self.settings.is_node.then_some(&self.settings.node);
        node.into_iter().flat_map(|node| states(node))
    }

    pub(super) fn is_record(&self, topic: &str) -> bool {
        let own = topic.strip_prefix(&self.prefix).and_then(Topic::parse);
        matches!(own, Some((node, Topic::Game { .. })) if self.settings.is_node && node == self.settings.node)
    }

    pub(super) fn is_alert(&self, topic: &str) -> bool {
        let below = topic.strip_prefix(&self.prefix);
        self.settings.is_node
            && below.is_some_and(|below| matches(&alerts(&self.settings.node), below))
    }
}

/// Retained topics under which one thing is said once; the newest so many are said again to a broker that lost them.
const ONCE: usize = 256;
/// Stale alerts that are remembered before `sweep_alerts`.
const HELD: usize = 1000;
