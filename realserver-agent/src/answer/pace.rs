//! A token bucket: so many per second, and a tenth of a second's worth at once.

use std::time::Duration;

use tokio::time::Instant;

/// How many are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    per_second: u32,
    /// When the bucket would have been empty.
    empty: Option<Instant>,
}

impl Pace {
    pub(super) fn new(per_second: u32) -> Pace {
        Pace { per_second, empty: None }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        const BURST: Duration = Duration::from_millis(100);
        let one = Duration::from_secs(1) / self.per_second;
        let start = now.checked_sub(BURST).unwrap_or(now);
        let after = self.empty.map_or(start, |empty| empty.max(start)) + one;
        if after > now {
            return false;
        }
        self.empty = Some(after);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_gets_its_rate_and_a_pause_gives_no_more_than_a_tenth_of_a_second() {
        let (mut pace, start) = (Pace::new(1000), Instant::now() + Duration::from_secs(3600));
        let mut taken = 0;
        for millisecond in 0..1000 {
            let now = start + Duration::from_millis(millisecond);
            taken += (0..50).filter(|_| pace.take(now)).count();
        }
        assert!((1000..=1100).contains(&taken), "{taken} in a second");
        let later = start + Duration::from_secs(60);
        assert_eq!((0..5000).filter(|_| pace.take(later)).count(), 100);
    }
}
