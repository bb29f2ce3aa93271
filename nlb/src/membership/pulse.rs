//! When the next heartbeat is due.
//!
//! A heartbeat follows within each interval, and soon after every event: at once, and a few times
//! more in case it is lost. Whatever happens, two heartbeats are a twentieth of a period apart.

use std::time::Duration;

/// Heartbeats that repeat an event's. Every host must hear every other's: of 32 hosts at 5 % loss,
/// one pair in three million misses five in a row, and a convergence of them waits for the next
/// period once in a thousand.
const REPEATS: u8 = 4;

#[derive(Clone, Copy, Debug)]
pub(super) struct Pulse {
    next: Option<Duration>,
    last: Option<Duration>,
    repeats: u8,
    farewell: bool,
    gap: Duration,
    repeat_after: Duration,
}

impl Pulse {
    pub(super) fn new(period: Duration) -> Pulse {
        Pulse {
            next: None,
            last: None,
            repeats: 0,
            farewell: false,
            gap: period / 20,
            repeat_after: period / 16,
        }
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.next
    }

    /// Something happened that all should know at once.
    pub(super) fn prompt(&mut self, now: Duration) {
        self.repeats = REPEATS;
        self.soon(now);
    }

    /// One heartbeat soon.
    pub(super) fn soon(&mut self, now: Duration) {
        if self.farewell {
            return;
        }
        let earliest = self.last.map_or(now, |last| now.max(last + self.gap));
        self.next = Some(self.next.map_or(earliest, |next| next.min(earliest)));
    }

    /// The last one could not say all: one more after a repeat's time.
    pub(super) fn go_on(&mut self, now: Duration) {
        let then = now + self.repeat_after;
        self.next = self.next.map(|next| next.min(then));
    }

    /// From now on heartbeats are sent.
    pub(super) fn begin(&mut self, now: Duration) {
        self.farewell = false;
        self.prompt(now);
    }

    /// The last ones, then none.
    pub(super) fn end(&mut self, now: Duration) {
        self.prompt(now);
        self.farewell = true;
    }

    /// Whether one is due; then it is taken for sent.
    pub(super) fn take(&mut self, now: Duration, interval: Duration) -> bool {
        if self.next.is_none_or(|next| now < next) {
            return false;
        }
        self.last = Some(now);
        self.next = match self.repeats.checked_sub(1) {
            Some(left) => {
                self.repeats = left;
                Some(now + self.repeat_after.min(interval))
            }
            None if self.farewell => None,
            None => Some(now + interval),
        };
        true
    }
}
