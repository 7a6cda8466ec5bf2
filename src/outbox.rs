//! What the broker has not yet acknowledged, in order. It does not know what the messages mean.
//!
//! The transport forgets what it was sending whenever the connection breaks, so it is not trusted with it: a message
//! stays here until its acknowledgement, and after a break everything that was in flight is offered again, oldest first.
//!
//! Answers wait apart and go after all else: anybody may cause as many as he likes, and that must neither hold up nor push out
//! what happens on the boards.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fmt;

use crate::publish::Delivery;

/// Names an entry. Rises with every entry and is never used again.
pub type Tag = u64;

/// One message as the broker will see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The whole topic.
    pub topic: String,
    pub payload: Vec<u8>,
    pub retain: bool,
    /// MQTT quality of service, 0 or 1. What goes out with 0 is never acknowledged and so never kept here.
    pub qos: u8,
    pub delivery: Delivery,
}

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    #[error("message of {size} bytes for {topic} is larger than the {most} allowed")]
    TooLarge {
        topic: String,
        size: usize,
        most: usize,
    },
    /// There was no room, and nothing less harmful to lose.
    #[error("no room in the outbox for {topic}")]
    Full { topic: String },
    /// Best effort means: now or not at all.
    #[error("messages for {topic} are not kept")]
    BestEffort { topic: String },
}

/// What becomes of an entry that the broker refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It waits in its place for another try.
    Again { times: u32 },
    /// It was refused too often and is out of the way of the others.
    Parked,
    /// A newer one of its topic waits, so this one is gone.
    Superseded,
}

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub entries: usize,
    /// Of them, answers.
    pub answers: usize,
    /// Of payloads and topics together.
    pub bytes: usize,
    /// Of one message: payload and topic.
    pub message: usize,
    /// After so many refusals an entry is parked.
    pub refusals: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            entries: 20_000,
            answers: 10_000,
            bytes: 32 * 1024 * 1024,
            message: 255 * 1024,
            refusals: 3,
        }
    }
}

/// The queue between the pipeline and the broker.
///
/// Calling contract: [`append`](Outbox::append) at any time. The sender asks for [`next_unsent`](Outbox::next_unsent),
/// hands it to the transport and says [`sent`](Outbox::sent); each entry then ends in [`acked`](Outbox::acked) or
/// [`refused`](Outbox::refused), or goes back to unsent with all others in [`rewind`](Outbox::rewind) when the
/// connection is lost. A tag that is no longer known is ignored everywhere: acknowledgements may come late.
///
/// Of one topic, `Latest` and `LatestUnstored` keep only the newest unsent entry, and a newer one goes to the end of the
/// queue: so an event always goes before the snapshot that contains it. What is in flight is never touched.
///
/// An `Answer` goes out only while nothing else is unsent, and is the first to be given up for lack of room.
pub trait Outbox {
    fn append(&mut self, message: Message) -> Result<Tag, NotKept>;

    fn sent(&mut self, tag: Tag);

    fn acked(&mut self, tag: Tag);

    /// The broker had the entry and did not want it.
    fn refused(&mut self, tag: Tag, reason: &str) -> Refusal;

    /// Puts an entry out of the way at once, because it can never be accepted.
    fn park(&mut self, tag: Tag, reason: &str);

    /// Nothing is in flight any more; all that was not acknowledged is unsent again, in its old place.
    fn rewind(&mut self);

    /// Puts parked entries back in their places, after the cause was removed, and says how many. What went out meanwhile
    /// is ahead of them: this is the one case in which entries of one topic can arrive out of order.
    fn release_parked(&mut self) -> usize;

    /// The oldest entry that is not in flight; an answer only where there is no other.
    fn next_unsent(&self) -> Option<(Tag, &Message)>;

    /// An entry that waits or is in flight.
    fn message(&self, tag: Tag) -> Option<&Message>;

    /// Whether an entry of this topic waits or is in flight.
    fn holds(&self, topic: &str) -> bool;

    /// Entries that wait or are in flight, without the parked ones.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Answers that wait or are in flight.
    fn answers(&self) -> usize;

    /// Entries that were given up for lack of room, since the start.
    fn dropped(&self) -> Dropped;

    /// A topic of which the newest value was given up for lack of room, each once: it is to be said again when there is some.
    fn poll_dropped(&mut self) -> Option<String>;

    fn parked(&self) -> usize;
}

/// What was given up for lack of room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Whoever asked can ask again.
    pub answers: u64,
    /// Newest values, which are replaced soon.
    pub values: u64,
    pub events: u64,
    /// Retained records and alerts.
    pub records: u64,
}

impl Dropped {
    pub fn total(&self) -> u64 {
        self.answers + self.values + self.events + self.records
    }

    /// What has come to it since.
    pub fn since(&self, earlier: &Dropped) -> Dropped {
        Dropped {
            answers: self.answers - earlier.answers,
            values: self.values - earlier.values,
            events: self.events - earlier.events,
            records: self.records - earlier.records,
        }
    }

    fn count(&mut self, message: &Message) {
        *match message.delivery {
            Delivery::Answer => &mut self.answers,
            Delivery::LatestUnstored | Delivery::BestEffort => &mut self.values,
            Delivery::Each if !message.retain => &mut self.events,
            Delivery::Latest | Delivery::Each => &mut self.records,
        } += 1;
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.answers, "answers to commands"),
            (self.values, "positions and clocks"),
            (self.events, "events"),
            (self.records, "records and alerts"),
        ];
        let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
        for (index, (count, what)) in kinds.enumerate() {
            let between = if index > 0 { ", " } else { "" };
            write!(f, "{between}{count} {what}")?;
        }
        Ok(())
    }
}

/// An outbox that ends with the process.
#[derive(Debug, Default)]
pub struct MemoryOutbox {
    limits: Limits,
    /// All but the answers, in rising order of tags, always.
    entries: VecDeque<Entry>,
    /// The answers, likewise.
    answers: VecDeque<Entry>,
    /// The dead letters, in rising order of tags.
    parked: VecDeque<Entry>,
    /// Topics of which the last answer was a refusal that led to parking: their next entry gets one try only, so that a
    /// wrong access list does not hold up the queue again and again.
    distrusted: HashSet<String>,
    last_tag: Tag,
    bytes: usize,
    dropped: Dropped,
    /// Topics of newest values among what was given up, until they are told.
    dropped_topics: BTreeSet<String>,
}

#[derive(Debug)]
struct Entry {
    tag: Tag,
    message: Message,
    in_flight: bool,
    refusals: u32,
    /// Why it was refused last.
    reason: String,
}

impl MemoryOutbox {
    pub fn new(limits: Limits) -> Self {
        MemoryOutbox {
            limits,
            ..MemoryOutbox::default()
        }
    }

    /// Bytes of all entries, the parked ones included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The dead letters with the reason that was given, oldest first.
    pub fn dead_letters(&self) -> impl Iterator<Item = (&Message, &str)> {
        self.parked
            .iter()
            .map(|entry| (&entry.message, entry.reason.as_str()))
    }

    fn entry(&self, tag: Tag) -> Option<&Entry> {
        let of = |queue: &VecDeque<Entry>| position(queue, tag);
        match of(&self.entries) {
            Some(at) => self.entries.get(at),
            None => self.answers.get(of(&self.answers)?),
        }
    }

    fn entry_mut(&mut self, tag: Tag) -> Option<&mut Entry> {
        match position(&self.entries, tag) {
            Some(at) => self.entries.get_mut(at),
            None => {
                let at = position(&self.answers, tag)?;
                self.answers.get_mut(at)
            }
        }
    }

    fn remove(&mut self, tag: Tag) -> Option<Entry> {
        let entry = match position(&self.entries, tag) {
            Some(at) => self.entries.remove(at),
            None => {
                let at = position(&self.answers, tag)?;
                self.answers.remove(at)
            }
        }?;
        self.bytes -= entry.size();
        Some(entry)
    }

    fn queue_for(&mut self, delivery: Delivery) -> &mut VecDeque<Entry> {
        match delivery {
            Delivery::Answer => &mut self.answers,
            _ => &mut self.entries,
        }
    }

    /// Forgets what a new message of this topic replaces.
    fn replace(&mut self, topic: &str) {
        let mut freed = 0;
        let mut outdated = |entry: &Entry| {
            let outdated = entry.is_latest() && !entry.in_flight && entry.message.topic == topic;
            freed += if outdated { entry.size() } else { 0 };
            outdated
        };
        self.entries.retain(|entry| !outdated(entry));
        self.parked.retain(|entry| !outdated(entry));
        self.bytes -= freed;
    }

    /// Gives up entries until the rest fits.
    fn make_room(&mut self) {
        loop {
            let is_full = self.len() + self.parked.len() > self.limits.entries
                || self.bytes > self.limits.bytes;
            let has_many_answers = self.answers.len() > self.limits.answers;
            let victim = if is_full && let Some(entry) = self.parked.pop_front() {
                self.bytes -= entry.size();
                Some(entry)
            } else if is_full || has_many_answers {
                let least = self.least(has_many_answers && !is_full);
                least.and_then(|tag| self.remove(tag))
            } else {
                None
            };
            let Some(entry) = victim else { return };
            self.dropped.count(&entry.message);
            if entry.is_latest() {
                self.dropped_topics.insert(entry.message.topic);
            }
        }
    }

    /// The entry that is least harmful to lose: the oldest answer, whose sender waits no longer; else by kind, then by age.
    fn least(&self, only_answers: bool) -> Option<Tag> {
        let answer = self.answers.iter().find(|e| !e.in_flight);
        let entries = || {
            let waiting = self.entries.iter().filter(|e| !e.in_flight);
            waiting.min_by_key(|e| (harm(&e.message), e.tag))
        };
        match (answer, only_answers) {
            (Some(answer), _) => Some(answer.tag),
            (None, true) => None,
            (None, false) => entries().map(|e| e.tag),
        }
    }

    fn put_aside(&mut self, tag: Tag, reason: &str) -> Refusal {
        let Some(mut entry) = self.remove(tag) else {
            return Refusal::Superseded;
        };
        // Alerts and archives have a topic each, so the set would grow without end.
        if self.distrusted.len() >= self.limits.entries {
            self.distrusted.clear();
        }
        self.distrusted.insert(entry.message.topic.clone());
        if entry.is_latest() && self.has_newer(&entry) {
            return Refusal::Superseded;
        }
        entry.in_flight = false;
        entry.reason = reason.to_owned();
        self.bytes += entry.size();
        let place = self.parked.partition_point(|e| e.tag < entry.tag);
        self.parked.insert(place, entry);
        Refusal::Parked
    }

    fn has_newer(&self, than: &Entry) -> bool {
        let newer = |e: &Entry| e.tag > than.tag && e.message.topic == than.message.topic;
        self.entries.iter().any(newer)
    }
}

impl Outbox for MemoryOutbox {
    fn append(&mut self, message: Message) -> Result<Tag, NotKept> {
        let size = message.topic.len() + message.payload.len();
        if message.qos == 0 || message.delivery == Delivery::BestEffort {
            return Err(NotKept::BestEffort {
                topic: message.topic,
            });
        }
        if size > self.limits.message {
            return Err(NotKept::TooLarge {
                topic: message.topic,
                size,
                most: self.limits.message,
            });
        }
        if is_latest(message.delivery) {
            self.replace(&message.topic);
        }
        self.last_tag += 1;
        let tag = self.last_tag;
        let topic = message.topic.clone();
        self.bytes += size;
        self.queue_for(message.delivery).push_back(Entry {
            tag,
            message,
            in_flight: false,
            refusals: 0,
            reason: String::new(),
        });
        self.make_room();
        match self.entry(tag) {
            Some(_) => Ok(tag),
            None => Err(NotKept::Full { topic }),
        }
    }

    fn sent(&mut self, tag: Tag) {
        if let Some(entry) = self.entry_mut(tag) {
            entry.in_flight = true;
        }
    }

    fn acked(&mut self, tag: Tag) {
        if let Some(entry) = self.remove(tag) {
            self.distrusted.remove(&entry.message.topic);
        }
    }

    fn refused(&mut self, tag: Tag, reason: &str) -> Refusal {
        let Some(entry) = self.entry_mut(tag) else {
            return Refusal::Superseded;
        };
        entry.in_flight = false;
        entry.refusals += 1;
        let times = entry.refusals;
        let is_superseded = self
            .entry(tag)
            .is_some_and(|entry| entry.is_latest() && self.has_newer(entry));
        let is_distrusted = self
            .entry(tag)
            .is_some_and(|entry| self.distrusted.contains(&entry.message.topic));
        if times >= self.limits.refusals || is_distrusted {
            return self.put_aside(tag, reason);
        }
        if is_superseded {
            self.remove(tag);
            return Refusal::Superseded;
        }
        Refusal::Again { times }
    }

    fn park(&mut self, tag: Tag, reason: &str) {
        self.put_aside(tag, reason);
    }

    fn rewind(&mut self) {
        // What is sent again must not be what a newer entry has replaced meanwhile.
        let mut seen = HashSet::new();
        let mut freed = 0;
        for at in (0..self.entries.len()).rev() {
            let entry = &mut self.entries[at];
            entry.in_flight = false;
            if entry.is_latest() && !seen.insert(entry.message.topic.clone()) {
                freed += entry.size();
                self.entries.remove(at);
            }
        }
        self.bytes -= freed;
        for answer in &mut self.answers {
            answer.in_flight = false;
        }
    }

    fn release_parked(&mut self) -> usize {
        let released = self.parked.len();
        self.distrusted.clear();
        for mut entry in std::mem::take(&mut self.parked) {
            entry.refusals = 0;
            let queue = self.queue_for(entry.message.delivery);
            let place = queue.partition_point(|e| e.tag < entry.tag);
            queue.insert(place, entry);
        }
        released
    }

    fn next_unsent(&self) -> Option<(Tag, &Message)> {
        let mut all = self.entries.iter().chain(&self.answers);
        let entry = all.find(|e| !e.in_flight)?;
        Some((entry.tag, &entry.message))
    }

    fn message(&self, tag: Tag) -> Option<&Message> {
        self.entry(tag).map(|entry| &entry.message)
    }

    fn holds(&self, topic: &str) -> bool {
        let mut all = self.entries.iter().chain(&self.answers);
        all.any(|e| e.message.topic == topic)
    }

    fn len(&self) -> usize {
        self.entries.len() + self.answers.len()
    }

    fn answers(&self) -> usize {
        self.answers.len()
    }

    fn dropped(&self) -> Dropped {
        self.dropped
    }

    fn poll_dropped(&mut self) -> Option<String> {
        self.dropped_topics.pop_first()
    }

    fn parked(&self) -> usize {
        self.parked.len()
    }
}

impl Entry {
    fn size(&self) -> usize {
        self.message.topic.len() + self.message.payload.len()
    }

    fn is_latest(&self) -> bool {
        is_latest(self.message.delivery)
    }
}

fn position(queue: &VecDeque<Entry>, tag: Tag) -> Option<usize> {
    queue.binary_search_by_key(&tag, |e| e.tag).ok()
}

fn is_latest(delivery: Delivery) -> bool {
    matches!(delivery, Delivery::Latest | Delivery::LatestUnstored)
}

/// How bad it is to lose a message, 0 the least. Retained snapshots are the truth and events are hints, so a hint goes
/// before a snapshot; what comes again by itself goes before both; a retained message that is said once goes last. Answers, which
/// their senders can ask for again, go before all of it.
fn harm(message: &Message) -> u8 {
    match (message.delivery, message.retain) {
        (Delivery::Answer, _) => 0,
        (Delivery::BestEffort | Delivery::LatestUnstored, _) => 1,
        (Delivery::Each, false) => 2,
        (Delivery::Latest, _) => 3,
        (Delivery::Each, true) => 4,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(topic: &str, payload: &str, delivery: Delivery) -> Message {
        Message {
            topic: topic.to_owned(),
            payload: payload.as_bytes().to_vec(),
            retain: is_latest(delivery),
            qos: 1,
            delivery,
        }
    }

    fn append(outbox: &mut MemoryOutbox, topic: &str, payload: &str, delivery: Delivery) -> Tag {
        outbox
            .append(message(topic, payload, delivery))
            .expect("there is room")
    }

    fn small(entries: usize) -> MemoryOutbox {
        MemoryOutbox::new(Limits {
            entries,
            answers: entries,
            bytes: 1000,
            message: 100,
            refusals: 3,
        })
    }

    /// All that waits, in the order in which it would go out.
    fn waiting(outbox: &MemoryOutbox) -> Vec<String> {
        let text = |e: &Entry| String::from_utf8_lossy(&e.message.payload).into_owned();
        let all = outbox.entries.iter().chain(&outbox.answers);
        all.map(text).collect()
    }

    #[test]
    fn each_is_kept_in_order() {
        let mut outbox = small(10);
        for payload in ["1", "2", "3"] {
            append(&mut outbox, "event", payload, Delivery::Each);
        }
        assert_eq!(waiting(&outbox), ["1", "2", "3"]);
    }

    #[test]
    fn a_newer_snapshot_goes_behind_the_event_it_contains() {
        let mut outbox = small(10);
        append(&mut outbox, "event", "e4", Delivery::Each);
        append(&mut outbox, "game", "e4", Delivery::Latest);
        append(&mut outbox, "event", "e5", Delivery::Each);
        append(&mut outbox, "game", "e4 e5", Delivery::Latest);
        assert_eq!(waiting(&outbox), ["e4", "e5", "e4 e5"]);
    }

    #[test]
    fn an_entry_in_flight_is_not_replaced_until_the_connection_is_lost() {
        let mut outbox = small(10);
        let old = append(&mut outbox, "game", "old", Delivery::Latest);
        outbox.sent(old);
        append(&mut outbox, "game", "new", Delivery::Latest);
        assert_eq!(waiting(&outbox), ["old", "new"]);
        outbox.rewind();
        assert_eq!(waiting(&outbox), ["new"]);
    }

    #[test]
    fn the_empty_message_replaces_the_alert_it_closes() {
        let mut outbox = small(10);
        append(&mut outbox, "alert/1", "look", Delivery::Latest);
        append(&mut outbox, "alert/1", "", Delivery::Latest);
        assert_eq!(waiting(&outbox), [""]);
    }

    #[test]
    fn a_refused_entry_waits_and_is_then_parked() {
        let mut outbox = small(10);
        let tag = append(&mut outbox, "denied", "1", Delivery::Each);
        append(&mut outbox, "event", "2", Delivery::Each);
        for times in 1..3 {
            outbox.sent(tag);
            assert_eq!(outbox.refused(tag, "acl"), Refusal::Again { times });
            assert_eq!(outbox.next_unsent().map(|(tag, _)| tag), Some(tag));
        }
        outbox.sent(tag);
        assert_eq!(outbox.refused(tag, "acl"), Refusal::Parked);
        assert_eq!(waiting(&outbox), ["2"]);
        let reasons: Vec<_> = outbox.dead_letters().map(|(_, reason)| reason).collect();
        assert_eq!(reasons, ["acl"]);

        let next = append(&mut outbox, "denied", "3", Delivery::Each);
        assert_eq!(outbox.refused(next, "acl"), Refusal::Parked, "one try only");

        assert_eq!(outbox.release_parked(), 2);
        assert_eq!(waiting(&outbox), ["1", "2", "3"]);
        assert_eq!(
            outbox.refused(tag, "acl"),
            Refusal::Again { times: 1 },
            "trusted again"
        );
    }

    #[test]
    fn a_refused_snapshot_gives_way_to_a_newer_one() {
        let mut outbox = small(10);
        let old = append(&mut outbox, "game", "old", Delivery::Latest);
        outbox.sent(old);
        append(&mut outbox, "game", "new", Delivery::Latest);
        assert_eq!(outbox.refused(old, "quota"), Refusal::Superseded);
        assert_eq!(waiting(&outbox), ["new"]);
    }

    #[test]
    fn what_is_least_harmful_to_lose_goes_first() {
        let mut outbox = small(4);
        append(&mut outbox, "event", "1", Delivery::Each);
        append(&mut outbox, "event", "2", Delivery::Each);
        append(&mut outbox, "position", "p", Delivery::LatestUnstored);
        append(&mut outbox, "game", "g", Delivery::Latest);
        append(&mut outbox, "event", "3", Delivery::Each);
        assert_eq!(
            waiting(&outbox),
            ["1", "2", "g", "3"],
            "the position comes again"
        );
        append(&mut outbox, "pgn", "q", Delivery::Latest);
        assert_eq!(
            waiting(&outbox),
            ["2", "g", "3", "q"],
            "then the oldest hint"
        );
        let refused = outbox.append(message("position", "p", Delivery::LatestUnstored));
        assert!(matches!(refused, Err(NotKept::Full { .. })));
        let dropped = outbox.dropped();
        assert_eq!((dropped.values, dropped.events), (2, 1));
        assert_eq!(dropped.to_string(), "2 positions and clocks, 1 events");
        assert_eq!(outbox.poll_dropped().as_deref(), Some("position"));
        assert_eq!(outbox.poll_dropped(), None);
    }

    #[test]
    fn answers_go_after_all_else_and_are_given_up_first() {
        let mut outbox = small(4);
        append(&mut outbox, "reply/a", "a1", Delivery::Answer);
        append(&mut outbox, "event", "1", Delivery::Each);
        append(&mut outbox, "reply/a", "a2", Delivery::Answer);
        append(&mut outbox, "position", "p", Delivery::LatestUnstored);
        assert_eq!(waiting(&outbox), ["1", "p", "a1", "a2"]);
        append(&mut outbox, "event", "2", Delivery::Each);
        append(&mut outbox, "reply/b", "b1", Delivery::Answer);
        assert_eq!(waiting(&outbox), ["1", "p", "2", "b1"]);
        append(&mut outbox, "event", "3", Delivery::Each);
        let refused = outbox.append(message("reply/b", "b2", Delivery::Answer));
        assert!(matches!(refused, Err(NotKept::Full { .. })));
        assert_eq!(waiting(&outbox), ["1", "p", "2", "3"]);
        assert_eq!(outbox.dropped().answers, 4);
        assert_eq!(outbox.dropped().total(), 4);
    }

    #[test]
    fn answers_alone_do_not_fill_the_outbox() {
        let mut outbox = MemoryOutbox::new(Limits {
            answers: 2,
            ..small(10).limits
        });
        let first = append(&mut outbox, "reply/a", "1", Delivery::Answer);
        outbox.sent(first);
        for payload in ["2", "3", "4"] {
            append(&mut outbox, "reply/a", payload, Delivery::Answer);
        }
        assert_eq!(waiting(&outbox), ["1", "4"], "what is in flight stays");
        assert_eq!(outbox.answers(), 2);
        outbox.rewind();
        assert_eq!(outbox.next_unsent().map(|(tag, _)| tag), Some(first));
    }

    #[test]
    fn too_large_and_best_effort_are_not_taken() {
        let mut outbox = small(4);
        let large = message("event", &"x".repeat(200), Delivery::Each);
        assert!(matches!(
            outbox.append(large),
            Err(NotKept::TooLarge { .. })
        ));
        let raw = message("raw", "x", Delivery::BestEffort);
        assert!(matches!(
            outbox.append(raw),
            Err(NotKept::BestEffort { .. })
        ));
        assert!(outbox.is_empty());
        assert_eq!(outbox.dropped().total(), 0);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Append(u8, Delivery),
        Send,
        Ack(usize),
        Refuse(usize),
        Lose,
    }

    fn step() -> impl Strategy<Value = Step> {
        let delivery = prop_oneof![
            Just(Delivery::Each),
            Just(Delivery::Answer),
            Just(Delivery::Latest),
            Just(Delivery::LatestUnstored)
        ];
        prop_oneof![
            4 => (0..3u8, delivery).prop_map(|(topic, delivery)| Step::Append(topic, delivery)),
            4 => Just(Step::Send),
            3 => (0..4usize).prop_map(Step::Ack),
            1 => (0..4usize).prop_map(Step::Refuse),
            1 => Just(Step::Lose),
        ]
    }

    proptest! {
        /// Whatever happens: bounded, in order, what was acknowledged never returns, nothing vanishes uncounted.
        #[test]
        fn keeps_its_promises(steps in prop::collection::vec(step(), 0..200)) {
            let mut outbox = small(8);
            let mut flight: Vec<Tag> = Vec::new();
            let mut done = HashSet::new();
            let mut each_in = 0usize;
            let mut each_out = 0usize;
            let mut number = 0u64;
            for step in steps {
                match step {
                    Step::Append(topic, delivery) => {
                        number += 1;
                        let topic = format!("{delivery:?}/{topic}");
                        let taken = outbox.append(message(&topic, &number.to_string(), delivery));
                        if !is_latest(delivery) && taken.is_ok() {
                            each_in += 1;
                        }
                    }
                    Step::Send => if let Some((tag, _)) = outbox.next_unsent() {
                        outbox.sent(tag);
                        flight.push(tag);
                    },
                    Step::Ack(at) => if at < flight.len() {
                        let tag = flight.remove(at);
                        let entry = outbox.entry(tag);
                        prop_assert!(entry.is_some_and(|e| e.in_flight), "in flight is never touched");
                        if entry.is_some_and(|e| !e.is_latest()) {
                            each_out += 1;
                        }
                        outbox.acked(tag);
                        done.insert(tag);
                    },
                    Step::Refuse(at) => if at < flight.len() {
                        outbox.refused(flight.remove(at), "no");
                    },
                    Step::Lose => {
                        outbox.rewind();
                        flight.clear();
                    }
                }
                prop_assert!(outbox.len() + outbox.parked.len() <= 8);
                let all = || outbox.entries.iter().chain(&outbox.answers);
                let size: usize = all().chain(&outbox.parked).map(Entry::size).sum();
                prop_assert_eq!(outbox.bytes(), size);
                prop_assert!(all().all(|e| !done.contains(&e.tag)));
                prop_assert!(outbox.parked.iter().all(|e| !done.contains(&e.tag)));
                prop_assert!(outbox.entries.iter().is_sorted_by_key(|e| e.tag));
                prop_assert!(outbox.answers.iter().is_sorted_by_key(|e| e.tag));

                // Payloads are numbered as they came: per topic they still stand in that order.
                for entry in &outbox.entries {
                    let later = outbox.entries.iter().filter(|e| e.tag > entry.tag);
                    for other in later.filter(|e| e.message.topic == entry.message.topic) {
                        let value = |e: &Entry| String::from_utf8_lossy(&e.message.payload).parse::<u64>().ok();
                        prop_assert!(value(other) > value(entry));
                        prop_assert!(!entry.is_latest() || entry.in_flight, "one unsent snapshot a topic");
                    }
                }
            }
            let kept = outbox.entries.iter().chain(&outbox.answers).chain(&outbox.parked);
            let each_kept = kept.filter(|e| !e.is_latest()).count();
            prop_assert!(each_in - each_out - each_kept <= outbox.dropped().total() as usize);
        }
    }
}
