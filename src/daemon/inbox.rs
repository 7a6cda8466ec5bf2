//! What has come from the broker and waits to be handled.
//!
//! Two kinds wait here. A command counts once, so each has a place of its own, up to a limit; who finds no place is told at once.
//! A pairing is a state: of each topic only the newest matters, and that one is never lost.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::mqtt::Incoming;

/// Both ends of a new inbox.
pub fn inbox() -> (Slot, Inbox) {
    let shared = Arc::new(Shared::default());
    (Slot(shared.clone()), Inbox(shared))
}

/// Where messages are put in. With it the inbox ends.
#[derive(Debug)]
pub struct Slot(Arc<Shared>);

impl Slot {
    /// Gives the message back where there is no room.
    pub fn put(&self, message: Incoming, is_state: bool) -> Result<(), Incoming> {
        let mut waiting = self.0.lock();
        if is_state {
            if let Some(older) = waiting.states.get_mut(&message.topic) {
                *older = message;
                return Ok(());
            }
            if waiting.states.len() >= MOST_STATES {
                return Err(message);
            }
            waiting.order.push_back(Place::State(message.topic.clone()));
            waiting.states.insert(message.topic.clone(), message);
        } else {
            let size = message.topic.len() + message.payload.len();
            if waiting.messages >= MOST_MESSAGES || waiting.bytes + size > MOST_BYTES {
                return Err(message);
            }
            waiting.messages += 1;
            waiting.bytes += size;
            waiting.order.push_back(Place::Message(message));
        }
        drop(waiting);
        self.0.changed.notify_one();
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_one();
    }
}

/// Where messages are taken out, in the order in which they came.
#[derive(Debug)]
pub struct Inbox(Arc<Shared>);

impl Inbox {
    /// The next message; none once no more can come. Nothing is lost when it is cancelled.
    pub async fn recv(&mut self) -> Option<Incoming> {
        loop {
            {
                let mut waiting = self.0.lock();
                if let Some(message) = waiting.pop() {
                    return Some(message);
                }
                if waiting.is_closed {
                    return None;
                }
            }
            // What is put in between is remembered by the notice.
            self.0.changed.notified().await;
        }
    }
}

/// Commands of a burst, such as presses told for a whole hall.
const MOST_MESSAGES: usize = 4096;
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// More topics than a node has tables; only a broker that sends what nobody asked for comes so far.
const MOST_STATES: usize = 4096;

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that holds it can panic half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Waiting {
    order: VecDeque<Place>,
    states: BTreeMap<String, Incoming>,
    messages: usize,
    bytes: usize,
    is_closed: bool,
}

#[derive(Debug)]
enum Place {
    Message(Incoming),
    State(String),
}

impl Waiting {
    fn pop(&mut self) -> Option<Incoming> {
        match self.order.pop_front()? {
            Place::Message(message) => {
                self.messages -= 1;
                self.bytes -= message.topic.len() + message.payload.len();
                Some(message)
            }
            Place::State(topic) => self.states.remove(&topic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(topic: &str, payload: &str) -> Incoming {
        Incoming {
            topic: topic.into(),
            payload: payload.into(),
            retain: false,
        }
    }

    #[tokio::test]
    async fn states_are_replaced_and_messages_are_not() {
        let (slot, mut inbox) = inbox();
        slot.put(message("core/table/1", "old"), true).unwrap();
        slot.put(message("cmd/x", "1"), false).unwrap();
        slot.put(message("cmd/x", "2"), false).unwrap();
        slot.put(message("core/table/1", "new"), true).unwrap();
        drop(slot);
        let mut payloads = Vec::new();
        while let Some(message) = inbox.recv().await {
            payloads.push(String::from_utf8(message.payload).unwrap());
        }
        assert_eq!(payloads, ["new", "1", "2"]);
    }

    #[tokio::test]
    async fn a_full_inbox_gives_back_and_still_takes_states() {
        let (slot, mut inbox) = inbox();
        for _ in 0..MOST_MESSAGES {
            slot.put(message("cmd/x", ""), false).unwrap();
        }
        let more = message("cmd/x", "more");
        assert_eq!(slot.put(more.clone(), false), Err(more.clone()));
        slot.put(message("core/table/1", "a"), true).unwrap();
        inbox.recv().await.unwrap();
        slot.put(more, false).unwrap();
        let large = message("cmd/x", &"x".repeat(MOST_BYTES));
        inbox.recv().await.unwrap();
        assert!(slot.put(large, false).is_err());
    }
}
