//! Whom errors have been sent to: a token bucket for each destination, in a table of fixed size.
//!
//! A destination has [`WAYS`] places, chosen by a keyed hash; when all are taken, the one that was
//! heard of longest ago gives way. It most likely has all its tokens again, so little is lost.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::Duration;

use foldhash::quality::RandomState;

/// Errors at once, after a rest (`XRLIM_BURST_FACTOR`).
const BURST: u32 = 6;

/// Places that a destination may have.
const WAYS: usize = 4;

/// Groups of so many places: 16384 destinations in all.
const SETS: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Peer {
    destination: IpAddr,
    /// Time that may be spent on errors, each of which costs an interval.
    credit: Duration,
    since: Duration,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Peers {
    hasher: RandomState,
    places: Box<[[Option<Peer>; WAYS]]>,
}

impl Default for Peers {
    fn default() -> Peers {
        Peers { hasher: RandomState::default(), places: vec![[None; WAYS]; SETS].into() }
    }
}

impl Peers {
    /// Whether an error may be sent to `destination`, of which one comes every `interval`.
    pub(super) fn allow(&mut self, destination: IpAddr, interval: Duration, now: Duration) -> bool {
        let most = interval.saturating_mul(BURST);
        let set = self.hasher.hash_one(destination) as usize % SETS;
        let set = &mut self.places[set];
        let known = |place: &Option<Peer>| place.is_some_and(|it| it.destination == destination);
        let index = set.iter().position(known).unwrap_or_else(|| {
            let oldest = (0..WAYS).min_by_key(|&way| set[way].map(|peer| peer.since)).unwrap_or(0);
            set[oldest] = None;
            oldest
        });
        let fresh = Peer { destination, credit: most, since: now };
        let peer = set[index].get_or_insert(fresh);
        let rested = now.saturating_sub(peer.since);
        peer.credit = peer.credit.saturating_add(rested).min(most);
        peer.since = now;
        let left = peer.credit.checked_sub(interval);
        peer.credit = left.unwrap_or(peer.credit);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn any_number_of_destinations_takes_no_more_places() {
        let mut peers = Peers::default();
        let second = Duration::from_secs(1);
        for number in 0..200_000u128 {
            let destination = Ipv6Addr::from_bits(number).into();
            assert!(peers.allow(destination, second, Duration::from_millis(number as u64)));
        }
        assert_eq!(peers.places.len(), SETS);
        // Who was heard of just now is remembered.
        let last = Ipv6Addr::from_bits(199_999).into();
        let now = Duration::from_secs(200);
        let more = (0..10).filter(|_| peers.allow(last, second, now)).count();
        assert!(more <= 6, "{more}");
    }
}
