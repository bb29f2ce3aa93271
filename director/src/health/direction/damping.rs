//! A link that is lost and back again and again is held lost for a while.

use std::time::Duration;

/// So many losses ...
const LOSSES: usize = 3;
/// ... within so long are too many.
const WITHIN: Duration = Duration::from_secs(60);
/// How long it is held the first time; each further time twice as long ...
const FIRST: Duration = Duration::from_secs(30);
/// ... up to this.
const MOST: Duration = Duration::from_secs(600);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Damping {
    losses: Vec<Duration>,
    holds: u32,
    until: Duration,
}

impl Damping {
    /// Notes that the link is lost: how long it is held so, if at all.
    pub(super) fn lost(&mut self, now: Duration) -> Option<Duration> {
        if self.holds > 0 && now > self.until + MOST {
            // It has been well for long: a new story.
            self.holds = 0;
        }
        self.losses.retain(|then| *then + WITHIN > now);
        self.losses.push(now);
        if self.losses.len() < LOSSES {
            return None;
        }
        self.losses.clear();
        let hold = (FIRST * (1 << self.holds.min(8))).min(MOST);
        self.holds += 1;
        self.until = now + hold;
        Some(hold)
    }

    /// Whether it is held lost.
    pub(super) fn holds(&self, now: Duration) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_loss_within_a_minute_holds_and_each_hold_is_twice_as_long() {
        let mut damping = Damping::default();
        let mut now = Duration::ZERO;
        let mut three = |damping: &mut Damping, apart: u64| {
            let held = [(); 3].map(|()| {
                now += Duration::from_secs(apart);
                damping.lost(now).map(|hold| hold.as_secs())
            });
            let is_held = damping.holds(now);
            now += Duration::from_secs(held[2].unwrap_or(61));
            assert!(!damping.holds(now));
            assert_eq!(is_held, held[2].is_some());
            held
        };
        assert_eq!(three(&mut damping, 31), [None; 3], "not within a minute");
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            assert_eq!(three(&mut damping, 29)[2], Some(seconds), "{seconds}");
        }
        now += Duration::from_secs(601);
        let held = [(); 3].map(|()| damping.lost(now).map(|hold| hold.as_secs()));
        assert_eq!(held, [None, None, Some(30)], "a new story");
    }
}
