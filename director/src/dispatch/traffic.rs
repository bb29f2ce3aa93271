//! Counters of a service or a server, and the rates that the kernel's estimator makes of them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::control::api::Stats;

/// Workers add; the control plane reads, zeroes and estimates.
#[derive(Debug, Default)]
pub struct Traffic {
    connections: AtomicU64,
    picks: AtomicU64,
    in_packets: AtomicU64,
    in_bytes: AtomicU64,
    out_packets: AtomicU64,
    out_bytes: AtomicU64,
    estimate: Mutex<Estimate>,
}

/// What only the control plane touches. Rates are fixed point, as in `ip_vs_est.c`: connections
/// and packets per second times 1024, bytes per second times 32.
#[derive(Debug, Default)]
struct Estimate {
    /// Totals when they were last zeroed: zeroing only moves what is shown.
    zero: Stats,
    last: Stats,
    cps: i64,
    in_pps: i64,
    out_pps: i64,
    in_bps: i64,
    out_bps: i64,
}

/// Seconds between two estimates.
pub const ESTIMATE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(2);

impl Traffic {
    /// A connection has been scheduled.
    pub fn connection(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    /// A scheduler has chosen this server: not a template, and not an FTP control connection.
    pub fn pick(&self) {
        self.picks.fetch_add(1, Relaxed);
    }

    /// How often since start a scheduler has chosen it.
    pub fn picks(&self) -> u64 {
        self.picks.load(Relaxed)
    }

    /// Packets from clients, together `bytes` of IP.
    pub fn incoming(&self, packets: u64, bytes: u64) {
        self.in_packets.fetch_add(packets, Relaxed);
        self.in_bytes.fetch_add(bytes, Relaxed);
    }

    /// Packets to clients, together `bytes` of IP.
    pub fn outgoing(&self, packets: u64, bytes: u64) {
        self.out_packets.fetch_add(packets, Relaxed);
        self.out_bytes.fetch_add(bytes, Relaxed);
    }

    /// Locked before totals are read: so they are never less than those that it remembers.
    fn settled(&self) -> MutexGuard<'_, Estimate> {
        self.estimate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn totals(&self) -> Stats {
        Stats {
            connections: self.connections.load(Relaxed),
            in_packets: self.in_packets.load(Relaxed),
            in_bytes: self.in_bytes.load(Relaxed),
            out_packets: self.out_packets.load(Relaxed),
            out_bytes: self.out_bytes.load(Relaxed),
            ..Stats::default()
        }
    }

    /// Counts since the last zeroing, and rates.
    pub fn stats(&self) -> Stats {
        let estimate = self.settled();
        let total = self.totals();
        let packets = |rate: i64| ((rate + 0x1ff) >> 10) as u64;
        let bytes = |rate: i64| ((rate + 0xf) >> 5) as u64;
        Stats {
            connections: total.connections - estimate.zero.connections,
            in_packets: total.in_packets - estimate.zero.in_packets,
            out_packets: total.out_packets - estimate.zero.out_packets,
            in_bytes: total.in_bytes - estimate.zero.in_bytes,
            out_bytes: total.out_bytes - estimate.zero.out_bytes,
            cps: packets(estimate.cps),
            in_pps: packets(estimate.in_pps),
            out_pps: packets(estimate.out_pps),
            in_bps: bytes(estimate.in_bps),
            out_bps: bytes(estimate.out_bps),
        }
    }

    /// Starts the shown counts, and the rates, from zero.
    pub fn zero(&self) {
        let mut estimate = self.settled();
        let totals = self.totals();
        *estimate = Estimate { zero: totals, last: totals, ..Estimate::default() };
    }

    /// Moves each average a quarter of the way to the rate of the last two seconds. To be called
    /// every [`ESTIMATE_INTERVAL`].
    pub fn estimate(&self) {
        let mut guard = self.settled();
        let now = self.totals();
        let estimate = &mut *guard;
        let last = estimate.last;
        // Over two seconds: times 1024 / 2, times 32 / 2.
        let follow = |average: &mut i64, delta: u64, shift: u32| {
            let rate = (delta << shift) as i64;
            *average += (rate - *average) >> 2;
        };
        follow(&mut estimate.cps, now.connections - last.connections, 9);
        follow(&mut estimate.in_pps, now.in_packets - last.in_packets, 9);
        follow(&mut estimate.out_pps, now.out_packets - last.out_packets, 9);
        follow(&mut estimate.in_bps, now.in_bytes - last.in_bytes, 4);
        follow(&mut estimate.out_bps, now.out_bytes - last.out_bytes, 4);
        estimate.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_reached_and_forgotten_again() {
        let traffic = Traffic::default();
        for _ in 0..40 {
            for _ in 0..200 {
                traffic.incoming(1, 1000);
            }
            traffic.estimate();
        }
        // The average stops a fraction short, as the kernel's does.
        assert_eq!((traffic.stats().in_pps, traffic.stats().in_bps), (100, 99_999));
        for _ in 0..60 {
            traffic.estimate();
        }
        assert_eq!((traffic.stats().in_pps, traffic.stats().in_bps), (0, 0));
    }

    #[test]
    fn zeroing_hides_what_was_counted_before() {
        let traffic = Traffic::default();
        traffic.connection();
        traffic.incoming(1, 60);
        traffic.zero();
        traffic.incoming(1, 40);
        let stats = traffic.stats();
        assert_eq!((stats.connections, stats.in_packets, stats.in_bytes), (0, 1, 40));
    }

    #[test]
    fn counts_read_while_others_zero_and_estimate_never_run_below_nothing() {
        let traffic = Traffic::default();
        let is_over = || traffic.totals().in_packets >= 200_000;
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200_000).for_each(|_| traffic.incoming(1, 1)));
            scope.spawn(|| {
                while !is_over() {
                    traffic.zero();
                    traffic.estimate();
                }
            });
            while !is_over() {
                assert!(traffic.stats().in_packets <= 200_000);
            }
        });
    }
}
