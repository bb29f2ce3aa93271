//! How many ICMP errors a worker may send: a token bucket, as the kernel's `icmp_msgs_per_sec`
//! (1000) and `icmp_msgs_burst` (50) are.

use std::time::Duration;

const PER_SECOND: u64 = 1000;
const BURST: u64 = 50;

/// See the module.
#[derive(Debug)]
pub(super) struct Limiter {
    tokens: u64,
    since: Duration,
}

impl Limiter {
    pub(super) fn new() -> Limiter {
        Limiter { tokens: BURST, since: Duration::ZERO }
    }

    /// Whether one more may be sent now.
    pub(super) fn allow(&mut self, now: Duration) -> bool {
        let elapsed = now.saturating_sub(self.since);
        let earned = elapsed.as_micros() as u64 * PER_SECOND / 1_000_000;
        if earned > 0 {
            self.tokens = (self.tokens + earned).min(BURST);
            // What is less than a token stays earned.
            self.since += Duration::from_micros(earned * 1_000_000 / PER_SECOND);
        }
        if self.tokens == 0 {
            return false;
        }
        self.tokens -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_answered_at_most_a_thousand_times_a_second() {
        let mut limiter = Limiter::new();
        let sent = (0..100_000u64)
            .filter(|&i| limiter.allow(Duration::from_micros(1_000_000 + i * 10)))
            .count();
        assert!((1000..=1060).contains(&sent), "{sent}");
    }

    #[test]
    fn what_stays_below_the_rate_is_always_answered() {
        let mut limiter = Limiter::new();
        let interval = Duration::from_micros(1500);
        assert!((1..10_000u32).all(|i| limiter.allow(interval * i)));
    }
}
