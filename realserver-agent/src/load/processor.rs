//! Processors and memory, as `/proc/stat` and `/proc/meminfo` have them (proc(5)).

use crate::protocol::FULL;

/// How much the latest second counts in the smoothed value.
const LATEST: f64 = 0.5;

/// Follows the share of time that the processors were not idle. Waiting for a disk is idle; what
/// the hypervisor gave to others is not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Processor {
    last: Option<Times>,
    smoothed: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    busy: u64,
    all: u64,
}

impl Processor {
    /// The share since the last time, smoothed, 0..=10000; `None` at first.
    pub fn sample(&mut self) -> Option<u16> {
        std::fs::read_to_string("/proc/stat").ok().and_then(|stat| self.take(&stat))
    }

    fn take(&mut self, stat: &str) -> Option<u16> {
        let now = times(stat)?;
        let last = self.last.replace(now);
        if let Some(last) = last
            && now.all > last.all
        {
            // A counter that went back (a processor was taken away) is no time at all.
            let busy = now.busy.saturating_sub(last.busy) as f64;
            let share = (busy / (now.all - last.all) as f64).min(1.0);
            let before = self.smoothed.unwrap_or(share);
            self.smoothed = Some(before + (share - before) * LATEST);
        }
        self.smoothed.map(|share| (share * f64::from(FULL)).round() as u16)
    }
}

/// `cpu  user nice system idle iowait irq softirq steal guest guest_nice`; guests are in user and
/// nice already.
fn times(stat: &str) -> Option<Times> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> =
        line.split_whitespace().take(8).map_while(|it| it.parse().ok()).collect();
    let all = fields.iter().fold(0, |sum: u64, field| sum.saturating_add(*field));
    let idle = fields.get(3)?.saturating_add(*fields.get(4).unwrap_or(&0));
    Some(Times { busy: all.saturating_sub(idle), all })
}

/// The share of memory that is not available to new programs, 0..=10000.
pub fn memory() -> Option<u16> {
    std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_of(&text))
}

fn memory_of(text: &str) -> Option<u16> {
    let of = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let (total, available) = (of("MemTotal:")?, of("MemAvailable:")?);
    let used = u128::from(total.saturating_sub(available)) * u128::from(FULL);
    u16::try_from(used.checked_div(u128::from(total))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_was_not_idle_is_followed_and_smoothed() {
        let mut processor = Processor::default();
        assert_eq!(processor.take("cpu  100 0 0 900 0 0 0 0 0 0\ncpu0 1 2"), None);
        // Of the next 100, 30 user, 10 system, 10 stolen; 20 waited for a disk.
        assert_eq!(processor.take("cpu  130 0 10 930 20 0 0 10 7 7\n"), Some(5000));
        assert_eq!(processor.take("cpu  130 0 10 1030 20 0 0 10 7 7\n"), Some(2500));
        assert_eq!(processor.take("cpu  130 0 10 1030 20 0 0 10 7 7\n"), Some(2500), "no time");
        for broken in ["", "cpu", "cpu  x", "cpu 1 2", "intr 5"] {
            assert_eq!(Processor::default().take(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn memory_is_what_is_not_available() {
        let text = "MemTotal:       1000 kB\nMemFree: 5 kB\nMemAvailable:    250 kB\n";
        assert_eq!(memory_of(text), Some(7500));
        assert_eq!(memory_of("MemTotal: 0 kB\nMemAvailable: 0 kB"), None);
        assert_eq!(memory_of("MemTotal: 5 kB"), None);
        assert!(memory().is_some());
    }
}
