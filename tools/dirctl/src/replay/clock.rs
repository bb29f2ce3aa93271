//! The packets' own time, as a director would have lived through it.
//!
//! A director's clock runs forwards. That of a capture may not: several cards, a clock that was set,
//! files put together. So a time that goes back counts as no time, and what is longer than a day
//! counts as a day; both are counted, and told.

use std::time::Duration;

/// Longer than this nothing happens.
pub const LONGEST_GAP: Duration = Duration::from_secs(24 * 3600);

/// Then the clock stands still: timers of connections count up to some years.
const END: Duration = Duration::from_secs(366 * 24 * 3600);

/// When the first packet comes: nothing is due at 0.
const BEGIN: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    last: Option<Duration>,
    first: Duration,
    now: Duration,
    /// Times that were before the one before.
    pub backwards: u64,
    /// Gaps longer than [`LONGEST_GAP`].
    pub jumps: u64,
}

impl Clock {
    /// What time it is for a director when a packet comes that was captured at `time`.
    pub fn at(&mut self, time: Duration) -> Duration {
        let Some(last) = self.last.replace(time) else {
            self.first = time;
            self.now = BEGIN;
            return self.now;
        };
        let gap = match time.checked_sub(last) {
            Some(gap) if gap > LONGEST_GAP => {
                self.jumps += 1;
                LONGEST_GAP
            }
            Some(gap) => gap,
            None => {
                self.backwards += 1;
                Duration::ZERO
            }
        };
        self.now = (self.now + gap).min(END);
        self.now
    }

    /// Seconds from the first packet to the one captured at `time`; negative before it.
    pub fn shown(&self, time: Duration) -> f64 {
        match time.checked_sub(self.first) {
            Some(after) => after.as_secs_f64(),
            None => -(self.first - time).as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_forwards_whatever_the_capture_says() {
        let at = Duration::from_secs_f64;
        let mut clock = Clock::default();
        assert_eq!(clock.at(at(1e9)), BEGIN);
        assert_eq!(clock.at(at(1e9 + 2.5)), BEGIN + at(2.5));
        assert_eq!(clock.at(at(5.0)), BEGIN + at(2.5));
        assert_eq!(clock.at(at(1e9)), BEGIN + at(2.5) + LONGEST_GAP);
        assert_eq!((clock.backwards, clock.jumps), (1, 1));
        assert!(clock.shown(at(5.0)) < 0.0);
        for time in 0..2000_u64 {
            assert!(clock.at(Duration::from_secs(time << 40)) <= END);
        }
        assert!(clock.at(Duration::MAX) <= END);
    }
}
