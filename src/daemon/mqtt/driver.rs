//! What the transport is given, and what becomes of what it tells.

use std::time::Duration;

use rumqttc::Outgoing;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    ConnAck, Filter, Packet, PubAck, PubAckReason, Publish, RetainForwardRule, SubAck,
    SubscribeReasonCode,
};
use rumqttc::v5::{Event, EventLoop, MqttState};
use tokio::time::Instant;
use tracing::{debug, error, warn};

use super::loss::Loss;
use super::{
    Driver, Ending, INFLIGHT, Incoming, Link, NotSent, PACKET, Status, Step, Ticket, is_topic,
    packet_size,
};
use crate::outbox::{Message, NotKept, Refusal};
use crate::publish::topic::{CORE, Topic, archives};
use crate::publish::{Delivery, Online};

impl Driver {
    pub(super) fn send(&mut self, message: Message) -> Result<(), NotSent> {
        if self.ending != Ending::No {
            return Err(NotSent::Closed);
        }
        if !is_topic(&message.topic) {
            return Err(NotSent::Topic(message.topic));
        }
        let size = packet_size(message.topic.len(), message.payload.len());
        let most = PACKET as usize;
        if size > most {
            let topic = message.topic;
            return Err(NotKept::TooLarge { topic, size, most }.into());
        }
        if message.qos == 0 || message.delivery == Delivery::BestEffort {
            self.send_loose(message, size);
            return Ok(());
        }
        let kept = message.retain.then(|| {
            let Message {
                topic,
                payload,
                delivery,
                ..
            } = message.clone();
            (topic, payload, delivery)
        });
        let taken = self.outbox.append(message);
        if let Some((topic, payload, delivery)) = kept
            && !matches!(taken, Err(NotKept::TooLarge { .. }))
        {
            self.remember(topic, payload, delivery);
        }
        self.handle_dropped();
        self.feed();
        self.report();
        taken?;
        Ok(())
    }

    /// Gives the transport what it may have: as many as the window allows, in order.
    pub(super) fn feed(&mut self) {
        while self.link == Link::Connected && self.outstanding() < self.window {
            let Some((ticket, topic, payload, retain)) = self.next_to_send() else {
                return;
            };
            let tag = match ticket {
                Ticket::Entry(tag) => Some(tag),
                _ => None,
            };
            match self
                .client
                .try_publish(topic, QoS::AtLeastOnce, retain, payload)
            {
                Ok(()) => {
                    self.handed.push_back(ticket);
                    if let Some(tag) = tag {
                        self.outbox.sent(tag);
                    }
                }
                Err(cause) => {
                    // Only with a full channel, and then the next event feeds again.
                    debug!(%cause, "the transport takes nothing");
                    match ticket {
                        Ticket::Retained(topic) => self.again.push_front(topic),
                        Ticket::Farewell => self.ending = Ending::Farewell,
                        Ticket::Entry(_) => {}
                    }
                    return;
                }
            }
        }
    }

    pub(super) fn next_to_send(&mut self) -> Option<(Ticket, String, Vec<u8>, bool)> {
        if self.ending >= Ending::Farewell {
            return self.farewell();
        }
        if let Some(next) = self.next_retained(|driver| driver.again.pop_front()) {
            return Some(next);
        }
        // What happens on the boards goes before any answer, and so do newest values that had found no room.
        let only_answers = self.outbox.len() == self.outbox.answers();
        if only_answers && let Some(next) = self.next_retained(|driver| driver.later.pop_front()) {
            return Some(next);
        }
        while !self.paused {
            let Some((tag, message)) = self.outbox.next_unsent() else {
                break;
            };
            let size = packet_size(message.topic.len(), message.payload.len());
            if size <= self.packet_limit {
                let (topic, payload) = (message.topic.clone(), message.payload.clone());
                return Some((Ticket::Entry(tag), topic, payload, message.retain));
            }
            let topic = message.topic.clone();
            let limit = self.packet_limit;
            let reason = format!("{size} bytes are more than the broker's limit of {limit}");
            self.outbox.park(tag, &reason);
            self.note_refusal(&topic, &reason, true);
        }
        if self.outbox.is_empty() {
            return self.next_retained(|driver| driver.later.pop_front());
        }
        None
    }

    pub(super) fn farewell(&mut self) -> Option<(Ticket, String, Vec<u8>, bool)> {
        if self.ending != Ending::Farewell {
            return None;
        }
        let Some(topic) = self.status_topic.clone() else {
            self.disconnect();
            return None;
        };
        self.ending = Ending::FarewellSent;
        let payload = self.settings.status(Online::Offline);
        Some((Ticket::Farewell, topic, payload, true))
    }

    pub(super) fn disconnect(&mut self) {
        self.ending = Ending::Disconnecting;
        if let Err(cause) = self.client.try_disconnect() {
            debug!(%cause, "the transport takes no farewell");
        }
    }

    pub(super) fn send_loose(&mut self, message: Message, size: usize) {
        if self.link != Link::Connected || self.loose >= LOOSE || size > self.packet_limit {
            return;
        }
        let Message {
            topic,
            payload,
            retain,
            ..
        } = message;
        let taken = self
            .client
            .try_publish(topic, QoS::AtMostOnce, retain, payload);
        if taken.is_ok() {
            self.loose += 1;
        }
    }

    pub(super) fn handle_event(&mut self, event: Event) -> Step {
        let step = match event {
            Event::Incoming(Packet::ConnAck(connack)) => {
                self.handle_connack(&connack);
                Step::Go
            }
            Event::Incoming(Packet::PubAck(puback)) => self.handle_puback(&puback),
            Event::Incoming(Packet::Publish(publish)) => self.handle_publish(publish),
            Event::Incoming(Packet::SubAck(suback)) => {
                self.handle_suback(&suback);
                Step::Go
            }
            Event::Outgoing(Outgoing::Publish(0)) => {
                self.loose = self.loose.saturating_sub(1);
                Step::Go
            }
            Event::Outgoing(Outgoing::Publish(id)) => {
                if let Some(ticket) = self.handed.pop_front() {
                    self.in_flight.push_back((id, ticket));
                }
                Step::Go
            }
            Event::Outgoing(Outgoing::PingReq) => self.handle_ping(),
            Event::Outgoing(Outgoing::Disconnect) => Step::Stop,
            _ => Step::Go,
        };
        self.feed();
        self.report();
        step
    }

    pub(super) fn handle_connack(&mut self, connack: &ConnAck) {
        let properties = connack.properties.as_ref();
        let at_once = properties.and_then(|p| p.receive_max).unwrap_or(u16::MAX);
        self.window = self.settings.window.min(at_once.max(1)).into();
        let largest = properties.and_then(|p| p.max_packet_size);
        self.packet_limit = largest.map_or(usize::MAX, |most| most as usize);
        self.link = Link::Connected;

        let all = self.retained.iter();
        let (once, state): (Vec<_>, Vec<_>) =
            all.partition(|(_, kept)| kept.delivery == Delivery::Each);
        let state = state.into_iter().map(|(topic, _)| topic.clone());
        self.again = self.status_topic.iter().cloned().chain(state).collect();
        self.later = once.into_iter().map(|(topic, _)| topic.clone()).collect();
        self.is_back = std::mem::replace(&mut self.was_connected, true);
        if self.is_back {
            // What stands as our status now was said by us, unless another daemon is the same node.
            self.subscribe();
            self.feed();
        } else {
            // Our own status goes first: what the subscription brings back is then what we said.
            self.feed();
            self.subscribe();
        }
    }

    pub(super) fn subscribe(&mut self) {
        self.subscribing.clear();
        let filters = self.filters();
        // A hall of tables does not fit one packet everywhere, and each packet takes an id.
        let at_once = FILTERS.max(filters.len().div_ceil(MOST_SUBSCRIBES));
        for filters in filters.chunks(at_once) {
            let paths = filters.iter().map(|filter| filter.path.clone()).collect();
            if let Err(cause) = self.client.try_subscribe_many(filters.to_vec()) {
                // The channel is empty after a new connection, so it can only be a filter that no broker would take.
                error!(%cause, "cannot subscribe; look at event, node and base in the configuration");
                continue;
            }
            self.subscribing.push_back(paths);
        }
    }

    pub(super) fn filters(&self) -> Vec<Filter> {
        let theirs = self.settings.subscriptions.iter().map(|below| Filter {
            path: format!("{}{below}", self.prefix),
            qos: QoS::AtLeastOnce,
            nolocal: false,
            // A command that was published as retained is refused; so we must see that it was.
            preserve_retain: true,
            retain_forward_rule: RetainForwardRule::OnEverySubscribe,
        });
        // What an earlier run has finished is asked for once, for it may be much. A game of which that is lost on the way could begin
        // again; its PGN file is moved aside then.
        let asks = self.settings.is_node && !self.is_back;
        let finished = asks.then(|| Filter {
            path: format!("{}{}", self.prefix, archives(&self.settings.node)),
            qos: QoS::AtMostOnce,
            nolocal: true,
            preserve_retain: true,
            retain_forward_rule: RetainForwardRule::OnEverySubscribe,
        });
        // We want to know what an earlier run has kept, and what somebody else leaves at the broker in our name.
        let own = self.own_states().map(|below| Filter {
            path: format!("{}{below}", self.prefix),
            qos: QoS::AtLeastOnce,
            nolocal: true,
            // What was kept must differ from what is said just now, or an earlier run could not be told from a twin, nor its record
            // from what somebody writes there.
            preserve_retain: !matches!(
                Topic::parse(&below),
                Some((_, Topic::NodeStatus | Topic::Game { .. }))
            ),
            retain_forward_rule: RetainForwardRule::OnEverySubscribe,
        });
        own.chain(finished).chain(theirs).collect()
    }

    pub(super) fn handle_puback(&mut self, puback: &PubAck) -> Step {
        let at = self.in_flight.iter().position(|(id, _)| *id == puback.pkid);
        let Some((_, ticket)) = at.and_then(|at| self.in_flight.remove(at)) else {
            debug!(id = puback.pkid, "acknowledgement of nothing that we sent");
            return Step::Go;
        };
        self.pings = 0;
        match puback.reason {
            PubAckReason::Success | PubAckReason::NoMatchingSubscribers => {
                self.accept(ticket);
                Step::Go
            }
            reason => {
                let reason = match reason {
                    PubAckReason::NotAuthorized => "not authorised".to_owned(),
                    PubAckReason::QuotaExceeded => "quota exceeded".to_owned(),
                    other => format!("{other:?}"),
                };
                self.refuse(ticket, &reason)
            }
        }
    }

    pub(super) fn accept(&mut self, ticket: Ticket) {
        match ticket {
            Ticket::Entry(tag) => {
                self.outbox.acked(tag);
                self.refusals.reset();
                if self.outbox.parked() == 0 {
                    self.refused = None;
                }
            }
            Ticket::Retained(topic) => {
                if let Some(kept) = self.retained.get_mut(&topic) {
                    kept.refusals = 0;
                }
            }
            Ticket::Farewell => self.disconnect(),
        }
    }

    pub(super) fn refuse(&mut self, ticket: Ticket, reason: &str) -> Step {
        match ticket {
            Ticket::Entry(tag) => {
                let topic = self.outbox.message(tag).map(|m| m.topic.clone());
                let refusal = self.outbox.refused(tag, reason);
                let parked = refusal == Refusal::Parked;
                self.note_refusal(&topic.unwrap_or_default(), reason, parked);
                if let Refusal::Again { .. } = refusal {
                    self.paused = true;
                    return Step::Pause(self.refusals.step());
                }
                self.refusals.reset();
                Step::Go
            }
            Ticket::Retained(topic) => {
                self.note_refusal(&topic, reason, false);
                Step::Go
            }
            // Then the broker shall say the last will instead.
            Ticket::Farewell => Step::Stop,
        }
    }

    pub(super) fn note_refusal(&mut self, topic: &str, reason: &str, parked: bool) {
        if self.noted.insert(format!("{reason} {parked}")) {
            let then = match parked {
                true => "it is set aside and the others go on",
                false => "it is kept",
            };
            warn!(
                topic,
                "the broker refuses a message: {reason}; {then}. Look at the broker's access list and limits"
            );
        }
        self.refused = Some(format!("{topic}: {reason}"));
    }

    pub(super) fn handle_publish(&mut self, publish: Publish) -> Step {
        let Ok(topic) = String::from_utf8(publish.topic.to_vec()) else {
            debug!("a topic that is not UTF-8");
            return Step::Go;
        };
        let is_record = self.is_record(&topic);
        // As long as we have told nothing there, a record is that of an earlier run.
        let is_earlier = is_record && !self.retained.contains_key(&topic);
        if self.is_own(&topic) && !is_earlier {
            let is_status = self.status_topic.as_ref() == Some(&topic);
            if is_status && self.is_of_twin(&publish.payload, publish.retain) {
                // It is no lie that the node is online.
                return Step::Go;
            }
            // What is not kept at the broker misleads nobody who comes later; of these two we are not told whether it is.
            return match publish.retain || is_status || is_record {
                true => self.handle_own(topic, &publish.payload),
                false => Step::Go,
            };
        }
        let below = topic.strip_prefix(&self.prefix);
        let is_state = below.is_some_and(|below| below.starts_with(CORE)) || is_record;
        let incoming = Incoming {
            topic,
            payload: publish.payload.to_vec(),
            retain: publish.retain,
        };
        // Who asks for an answer waits for those that were asked for before.
        let busy =
            |driver: &Driver, message: &Incoming| (driver.settings.busy)(&driver.prefix, message);
        let refused = if !is_state && self.outbox.answers() >= MOST_ANSWERS {
            busy(self, &incoming).map(Some)
        } else {
            None
        };
        let refused = refused.or_else(|| {
            let lost = self.incoming.put(incoming, is_state).err()?;
            Some(busy(self, &lost))
        });
        if let Some(answer) = refused {
            self.flooded += 1;
            self.say(|| {
                "commands arrive faster than they are carried out or answered; some are refused as busy"
                    .to_owned()
            });
            if let Some(answer) = answer
                && self.may_answer_busy(&answer.topic)
                && let Err(cause) = self.outbox.append(answer)
            {
                debug!(%cause, "an answer is lost");
            }
            self.handle_dropped();
        }
        Step::Go
    }

    /// Whoever sends far too much is not answered each time: one answer a second says it all.
    pub(super) fn may_answer_busy(&mut self, topic: &str) -> bool {
        let now = Instant::now();
        self.busy_said
            .retain(|_, said| now.duration_since(*said) < BUSY_EVERY);
        if self.busy_said.len() >= MOST_BUSY || self.busy_said.contains_key(topic) {
            return false;
        }
        self.busy_said.insert(topic.to_owned(), now);
        true
    }

    /// Remembers which newest values were given up for lack of room, and says once a minute what all was.
    pub(super) fn handle_dropped(&mut self) {
        while let Some(topic) = self.outbox.poll_dropped() {
            if self.retained.contains_key(&topic) && !self.later.contains(&topic) {
                self.later.push_back(topic);
            }
        }
        let dropped = self.outbox.dropped();
        let is_due = self
            .told_dropped_at
            .is_none_or(|at| at.elapsed() >= DROPPED_EVERY);
        if is_due && dropped != self.told_dropped {
            let new = dropped.since(&self.told_dropped);
            warn!(
                "no room for all that waits for the broker; given up: {new}. Look whether the broker keeps up"
            );
            self.told_dropped = dropped;
            self.told_dropped_at = Some(Instant::now());
        }
    }

    /// Says what others can cause as often as they like.
    pub(super) fn say(&mut self, text: impl FnOnce() -> String) {
        let text = text();
        if self.hush.may_say(&text, std::time::Instant::now()) {
            warn!("{text}");
        }
    }

    pub(super) fn handle_suback(&mut self, suback: &SubAck) {
        let filters = self.subscribing.pop_front().unwrap_or_default();
        for (filter, code) in filters.iter().zip(&suback.return_codes) {
            if !matches!(code, SubscribeReasonCode::Success(_)) {
                warn!(
                    filter,
                    "the broker refuses the subscription: {code:?}. Look at the broker's access list"
                );
            }
        }
    }

    /// Pings go out whatever else does, so they serve as the clock of a broker that answers but does not acknowledge.
    pub(super) fn handle_ping(&mut self) -> Step {
        self.handle_dropped();
        for kept in self.hush.poll(std::time::Instant::now()) {
            warn!("{} ({} more times)", kept.text, kept.times);
        }
        if self.outstanding() == 0 {
            self.pings = 0;
            return Step::Go;
        }
        self.pings += 1;
        if self.pings >= SILENT_PINGS {
            return Step::Abandon("the broker answers but acknowledges nothing");
        }
        Step::Go
    }

    /// Empties the transport, and takes back what it had. The order matters: acknowledgements that were read before the
    /// break count, and nothing of this connection may come out on the next. True where there shall be no next one.
    pub(super) fn handle_loss(&mut self, eventloop: &mut EventLoop, loss: &Loss) -> bool {
        self.link = match loss.refused {
            true => Link::Refused {
                reason: loss.reason.clone(),
            },
            false => Link::Disconnected {
                reason: loss.reason.clone(),
            },
        };
        while let Some(event) = eventloop.state.events.pop_front() {
            if !matches!(event, Event::Incoming(Packet::ConnAck(_))) {
                self.handle_event(event);
            }
        }
        eventloop.clean();
        eventloop.pending.clear();
        eventloop.state.collision = None;
        // The last packet id outlives `clean`; if the next broker allows fewer ids, it would count past the end.
        eventloop.state = MqttState::new(INFLIGHT, false);
        // Neither must an earlier broker's wish.
        eventloop.options.set_keep_alive(self.settings.keep_alive);

        if loss.by_message {
            self.blame_oldest(&loss.reason);
        }
        self.handed.clear();
        self.in_flight.clear();
        self.again.clear();
        self.later.clear();
        self.to_mend.clear();
        self.subscribing.clear();
        self.noted.clear();
        self.loose = 0;
        self.pings = 0;
        self.paused = false;
        self.outbox.rewind();
        self.report();
        self.ending >= Ending::Farewell
    }

    /// The connection ended because of what we sent: after a few times it is set aside, else it would never end.
    pub(super) fn blame_oldest(&mut self, reason: &str) {
        match self.in_flight.front().map(|(_, ticket)| ticket.clone()) {
            Some(Ticket::Entry(tag)) => {
                let message = self.outbox.message(tag);
                let topic = message.map(|m| m.topic.clone()).unwrap_or_default();
                let parked = self.outbox.refused(tag, reason) == Refusal::Parked;
                self.note_refusal(&topic, reason, parked);
                if parked && !self.outbox.holds(&topic) {
                    self.retained.remove(&topic);
                }
            }
            Some(Ticket::Retained(topic)) => {
                if let Some(kept) = self.retained.get_mut(&topic) {
                    kept.refusals += 1;
                    if kept.refusals >= RETAINED_REFUSALS {
                        self.retained.remove(&topic);
                        self.note_refusal(&topic, reason, false);
                    }
                }
            }
            Some(Ticket::Farewell) | None => {}
        }
    }

    pub(super) fn report(&self) {
        let now = Status {
            link: self.link.clone(),
            queued: self.outbox.len(),
            dropped: self.outbox.dropped().total(),
            parked: self.outbox.parked(),
            refused: self.refused.clone(),
            flooded: self.flooded,
            has_twin: self.has_twin,
        };
        self.status.send_if_modified(|status| {
            let is_new = *status != now;
            *status = now;
            is_new
        });
    }

    pub(super) fn outstanding(&self) -> usize {
        self.handed.len() + self.in_flight.len()
    }
}

/// Unsent messages of quality 0 beyond which further ones are dropped.
const LOOSE: usize = 16;
/// So often may a retained value end the connection before it is no longer said again.
const RETAINED_REFUSALS: u32 = 3;
/// Filters in one packet.
const FILTERS: usize = 200;
const MOST_SUBSCRIBES: usize = 8;
/// Answers that wait, beyond which commands that ask for more are refused.
const MOST_ANSWERS: usize = 500;
/// Between two refusals as busy under one topic, and the topics that are told at a time.
const BUSY_EVERY: Duration = Duration::from_secs(1);
const MOST_BUSY: usize = 64;
/// Between two lines about what was given up for lack of room.
const DROPPED_EVERY: Duration = Duration::from_secs(60);
/// Keep alive periods without an acknowledgement, while the broker answers pings, after which we connect anew.
const SILENT_PINGS: u32 = 3;
