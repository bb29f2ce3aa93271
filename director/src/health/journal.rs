//! What has happened, for those who ask afterwards and those who follow.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::control::events::{Event, EventKind};

/// Events that are remembered.
const REMEMBERED: usize = 4096;

/// The events of this run of the director, numbered from 1. Each is also a line of the log.
#[derive(Debug)]
pub struct Journal {
    events: Mutex<VecDeque<Event>>,
    /// Number of the newest event; 0 before the first.
    newest: watch::Sender<u64>,
}

impl Default for Journal {
    fn default() -> Journal {
        Journal { events: Mutex::default(), newest: watch::Sender::new(0) }
    }
}

impl Journal {
    /// Notes an event. Its number and time are set here; the oldest one is forgotten when there are
    /// too many.
    pub fn note(&self, kind: EventKind, mut event: Event) {
        let mut events = self.lock();
        event.kind = kind;
        event.number = *self.newest.borrow() + 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        event.time = now.as_millis().try_into().unwrap_or(u64::MAX);
        let number = event.number;
        event.log();
        if events.len() == REMEMBERED {
            events.pop_front();
        }
        events.push_back(event);
        // Under the lock, so that who hears the number finds the event.
        self.newest.send_replace(number);
    }

    /// Events with numbers above `number`, the oldest first. If the first of them is not the next, the
    /// ones between are forgotten.
    pub fn after(&self, number: u64) -> Vec<Event> {
        let events = self.lock();
        events.iter().filter(|event| event.number > number).cloned().collect()
    }

    /// At most `most` of them.
    pub fn some_after(&self, number: u64, most: usize) -> Vec<Event> {
        let events = self.lock();
        let first = events.partition_point(|event| event.number <= number);
        events.iter().skip(first).take(most).cloned().collect()
    }

    /// The number of the newest event, to be awaited.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_seen_some_gets_the_rest_and_the_oldest_are_forgotten() {
        let journal = Journal::default();
        for _ in 0..REMEMBERED + 2 {
            journal.note(EventKind::ServerUp, Event::default());
        }
        let numbers = |after| -> Vec<u64> {
            journal.after(after).into_iter().map(|event| event.number).collect()
        };
        let last = REMEMBERED as u64 + 2;
        assert_eq!(numbers(last - 2), [last - 1, last]);
        assert_eq!(numbers(0).first(), Some(&3));
        let some = journal.some_after(last - 3, 2);
        assert_eq!(some.iter().map(|event| event.number).collect::<Vec<_>>(), [last - 2, last - 1]);
        assert_eq!(journal.some_after(0, 1)[0].number, 3);
        assert_eq!(journal.some_after(last, 1), []);
        assert_eq!(*journal.newest().borrow(), last);
    }
}
