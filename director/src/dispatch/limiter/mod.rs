//! How many ICMP errors the director sends of its own: the kernel's rules for those that it sends,
//! per destination (`inet_peer_xrlim_allow`) and in all (`icmp_global_allow`).
//!
//! What tells the MTU of a path is never limited: connections would hang.

mod peers;

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use forwarding::icmp::Error;
use forwarding::wire::icmp::v4;

use super::settings::{Setting, Settings};
use peers::Peers;

/// See the module. Shared by all workers; only who has an error to send comes here.
#[derive(Debug, Default)]
pub struct Limiter {
    state: Mutex<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    peers: Peers,
    all: Bucket,
}

impl Limiter {
    /// The same allowances, apart from these.
    pub(super) fn fork(&self) -> Limiter {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Limiter { state: Mutex::new(state.clone()) }
    }

    /// Whether `error` may be sent to `destination` now.
    pub(super) fn allow(
        &self,
        now: Duration,
        settings: &Settings,
        destination: IpAddr,
        error: Error,
    ) -> bool {
        if !is_limited(error, destination, settings.get(Setting::IcmpRatemask)) {
            return true;
        }
        let interval = settings.get(match destination {
            IpAddr::V4(_) => Setting::IcmpRatelimit,
            IpAddr::V6(_) => Setting::Icmpv6Ratelimit,
        });
        let interval = Duration::from_millis(interval.into());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (interval.is_zero() || state.peers.allow(destination, interval, now))
            && state.all.take(now, settings)
    }

    /// Whether a TCP reset of our own may be sent now. There is the limit for all together: each
    /// connection of a client is to hear of its end.
    pub(super) fn allow_reset(&self, now: Duration, settings: &Settings) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.all.take(now, settings)
    }
}

/// Whether the limits are for this type of error. Over IPv6 they are for all but packet too big.
fn is_limited(error: Error, destination: IpAddr, mask: u32) -> bool {
    let kind = match error {
        Error::TooBig { .. } => return false,
        Error::TimeExceeded => v4::TIME_EXCEEDED,
        Error::PortUnreachable | Error::Unreachable { .. } => v4::UNREACHABLE,
    };
    destination.is_ipv6() || mask & (1 << kind) != 0
}

/// Tokens that come with time, so many per second, and are kept up to a number.
#[derive(Clone, Debug, Default)]
struct Bucket {
    tokens: u64,
    /// Up to when what has been earned is counted.
    since: Duration,
}

impl Bucket {
    fn take(&mut self, now: Duration, settings: &Settings) -> bool {
        let per_second = u64::from(settings.get(Setting::IcmpMsgsPerSec));
        let most = u64::from(settings.get(Setting::IcmpMsgsBurst));
        let elapsed = now.saturating_sub(self.since).min(Duration::from_secs(1));
        let earned = elapsed.as_micros() as u64 * per_second / 1_000_000;
        if earned > 0 {
            // What is less than a token stays earned.
            let counted = Duration::from_micros(earned * 1_000_000 / per_second);
            self.since = (now - elapsed) + counted;
        }
        self.tokens = self.tokens.saturating_add(earned).min(most);
        let taken = self.tokens.checked_sub(1);
        self.tokens = taken.unwrap_or(0);
        taken.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from_bits(0xc633_6400 + number))
    }

    fn at(micros: u64) -> Duration {
        Duration::from_secs(5) + Duration::from_micros(micros)
    }

    #[test]
    fn a_flood_from_everywhere_is_answered_at_most_a_thousand_times_a_second() {
        let (limiter, settings) = (Limiter::default(), Settings::default());
        let error = Error::PortUnreachable;
        let sent = (0..100_000)
            .filter(|&n| limiter.allow(at(n * 10), &settings, client(n as u32), error))
            .count();
        assert!((1000..=1060).contains(&sent), "{sent}");
    }

    #[test]
    fn a_flood_from_one_is_answered_six_times_and_then_once_a_second() {
        let (limiter, settings) = (Limiter::default(), Settings::default());
        for to in [client(1), "2001:db8::1".parse().unwrap()] {
            let sent = |from: u64, count: u64| {
                let times = (0..count).map(|n| from + n * 1000);
                times.filter(|&t| limiter.allow(at(t), &settings, to, Error::TimeExceeded)).count()
            };
            assert_eq!(sent(0, 900), 6);
            assert_eq!(sent(900_000, 2000), 2);
            assert_eq!(sent(60_000_000, 900), 6, "after a rest");
        }
    }

    #[test]
    fn what_stays_below_both_rates_is_always_answered() {
        let (limiter, settings) = (Limiter::default(), Settings::default());
        let error = Error::PortUnreachable;
        assert!((1..10_000).all(|n| limiter.allow(
            at(n * 1500),
            &settings,
            client(n as u32),
            error
        )));
    }

    #[test]
    fn the_mtu_is_told_always_and_what_the_mask_spares_too() {
        let (limiter, settings) = (Limiter::default(), Settings::default());
        let all = |error| (0..1000).all(|_| limiter.allow(at(0), &settings, client(1), error));
        assert!(all(Error::TooBig { mtu: 1400 }));
        assert!(!all(Error::TimeExceeded));
        settings.set(Setting::IcmpRatemask, 1 << v4::UNREACHABLE);
        assert!(all(Error::TimeExceeded));
        assert!(!all(Error::PortUnreachable));
    }

    #[test]
    fn no_interval_leaves_the_limit_for_all_and_no_rate_allows_nothing() {
        let (limiter, settings) = (Limiter::default(), Settings::default());
        settings.set(Setting::IcmpRatelimit, 0);
        let error = Error::PortUnreachable;
        let sent = (0..90).filter(|_| limiter.allow(at(0), &settings, client(1), error)).count();
        assert_eq!(sent, 50);
        settings.set(Setting::IcmpMsgsPerSec, 0);
        assert!(!limiter.allow(at(9_000_000), &settings, client(1), error));
    }
}
