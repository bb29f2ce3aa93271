//! What lblc and lblcr share: a bounded memory of destination addresses, and when a remembered
//! server is given up.
//!
//! Knows ages and limits. Must not know what is remembered for an address. Has no timer: it is told
//! the time, and does the kernel's periodic work when that is due ([`Destinations::review`]).
//!
//! The kernel clears up bucket by bucket, going on where it left off. Here idle entries go in the
//! order of the hash map, which is as arbitrary.

use crate::Server;
use foldhash::quality::FixedState;
use hashbrown::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How many addresses are kept without pressure: 16 for each of the kernel's 1024 buckets.
const COMFORTABLE: usize = 1024 * 16;
/// How many addresses there may be; then no more are taken in.
const MOST: usize = COMFORTABLE + COMFORTABLE / 2;
/// Time between reviews.
const INTERVAL: Duration = Duration::from_secs(60);
/// After how long without use an address may go when there are more than is comfortable.
const IDLE: Duration = Duration::from_secs(6 * 60);
/// Every so many reviews without pressure, all addresses past their expiration are forgotten.
const FULL_EVERY: u32 = 30;

/// Whether a server has more active connections than its weight while some server has less than
/// half its own weight.
pub(crate) fn is_swamped(server: &Server, servers: &[Arc<Server>]) -> bool {
    let active = |server: &Server| i64::from(server.active());
    let weight = |server: &Server| i64::from(server.weight());
    active(server) > weight(server) && servers.iter().any(|other| active(other) * 2 < weight(other))
}

/// Destination addresses and what is remembered for each.
///
/// All the room there can ever be is reserved at the start (the memory is touched only when used),
/// so that no packet has to wait for an allocation.
pub(crate) struct Destinations<T> {
    entries: HashMap<IpAddr, Entry<T>, FixedState>,
    /// Addresses that are remembered beside these: those of which this is a fork.
    elsewhere: usize,
    /// After how long without use an address is forgotten.
    expiration: Duration,
    next_review: Option<Duration>,
    quiet_reviews: u32,
}

struct Entry<T> {
    value: T,
    last_use: Duration,
}

impl<T> Destinations<T> {
    /// None yet. The seed keys the hash: clients choose the addresses.
    pub(crate) fn new(seed: u64, expiration: Duration) -> Destinations<T> {
        Destinations {
            entries: HashMap::with_capacity_and_hasher(MOST, FixedState::with_seed(seed)),
            elsewhere: 0,
            expiration,
            next_review: None,
            quiet_reviews: 1,
        }
    }

    /// What is remembered for an address, without use.
    pub(crate) fn peek(&self, address: IpAddr) -> Option<&T> {
        self.entries.get(&address).map(|entry| &entry.value)
    }

    /// The same for one address only; of the others it is remembered how many they are. `copy` makes
    /// another value.
    pub(crate) fn fork(&self, address: IpAddr, copy: impl FnOnce(&T) -> T) -> Destinations<T> {
        let mut entries = HashMap::with_hasher(FixedState::default());
        if let Some(entry) = self.entries.get(&address) {
            let value = copy(&entry.value);
            entries.insert(address, Entry { value, last_use: entry.last_use });
        }
        Destinations {
            elsewhere: self.elsewhere + self.entries.len() - entries.len(),
            entries,
            expiration: self.expiration,
            next_review: self.next_review,
            quiet_reviews: self.quiet_reviews,
        }
    }

    /// After how long without use an address is forgotten.
    pub(crate) fn expiration(&self) -> Duration {
        self.expiration
    }

    /// Forgets addresses after `expiration` from now on.
    pub(crate) fn set_expiration(&mut self, expiration: Duration) {
        self.expiration = expiration;
    }

    /// What is remembered for an address, which is thereby used.
    pub(crate) fn get(&mut self, address: IpAddr, now: Duration) -> Option<&mut T> {
        let entry = self.entries.get_mut(&address)?;
        entry.last_use = now;
        Some(&mut entry.value)
    }

    /// Whether another address can be remembered.
    pub(crate) fn has_room(&self) -> bool {
        self.entries.len() + self.elsewhere < MOST
    }

    /// Remembers something for an address; not when there is no room.
    pub(crate) fn insert(&mut self, address: IpAddr, value: T, now: Duration) {
        if self.has_room() {
            self.entries.insert(address, Entry { value, last_use: now });
        }
    }

    /// Does the periodic work that has come due by `now`; the first is due a minute after the first
    /// call. `forget` sees each value that goes.
    pub(crate) fn review(&mut self, now: Duration, mut forget: impl FnMut(&mut T)) {
        let due = *self.next_review.get_or_insert(now.saturating_add(INTERVAL));
        let Some(late) = now.checked_sub(due) else {
            return;
        };
        self.next_review = Some(now.saturating_add(INTERVAL));
        // Reviews missed while no packet came are made up, at most one full round of them.
        let missed = late.as_secs() / INTERVAL.as_secs();
        for _ in 0..=missed.min(u64::from(FULL_EVERY)) {
            self.review_once(now, &mut forget);
        }
    }

    fn review_once(&mut self, now: Duration, forget: &mut impl FnMut(&mut T)) {
        let surplus = self.entries.len().saturating_sub(COMFORTABLE);
        if self.quiet_reviews >= FULL_EVERY {
            self.forget_idle(now, self.expiration, usize::MAX, forget);
            self.quiet_reviews = 1;
        } else if surplus == 0 {
            self.quiet_reviews += 1;
        } else {
            let goal = (surplus * 4 / 3).min(COMFORTABLE / 2);
            self.forget_idle(now, IDLE, goal, forget);
        }
    }

    /// Forgets up to `goal` addresses that have not been used for `idle`.
    fn forget_idle(
        &mut self,
        now: Duration,
        idle: Duration,
        mut goal: usize,
        forget: &mut impl FnMut(&mut T),
    ) {
        self.entries.retain(|_, entry| {
            if goal == 0 || now.saturating_sub(entry.last_use) < idle {
                return true;
            }
            goal -= 1;
            forget(&mut entry.value);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{load, servers};
    use std::net::Ipv4Addr;

    const EXPIRATION: Duration = Duration::from_secs(24 * 60 * 60);
    const MINUTE: Duration = Duration::from_secs(60);
    const START: Duration = Duration::from_secs(5);

    fn address(number: usize) -> IpAddr {
        Ipv4Addr::from_bits(number as u32).into()
    }

    fn filled(count: usize) -> Destinations<usize> {
        let mut destinations = Destinations::new(1, EXPIRATION);
        destinations.review(START, |_| ());
        for number in 0..count {
            destinations.insert(address(number), number, START);
        }
        destinations
    }

    #[test]
    fn swamped_needs_both_a_full_server_and_a_half_idle_one() {
        let list = servers(&[2, 3]);
        load(&list[0], 2, 9);
        assert!(!is_swamped(&list[0], &list), "not above its weight");
        load(&list[0], 1, 0);
        assert!(is_swamped(&list[0], &list));
        load(&list[1], 2, 0);
        assert!(!is_swamped(&list[0], &list), "nobody is below half");
    }

    #[test]
    fn memory_is_bounded_and_never_grows_after_the_start() {
        let mut destinations = filled(0);
        let reserved = destinations.entries.capacity();
        for number in 0..MOST + 10 {
            destinations.insert(address(number), number, START);
        }
        assert_eq!(destinations.entries.len(), 24_576);
        assert!(!destinations.has_room());
        assert_eq!(destinations.entries.capacity(), reserved);
    }

    #[test]
    fn a_comfortable_number_is_kept_for_a_day() {
        let mut destinations = filled(COMFORTABLE);
        let mut now = START;
        while now < START + EXPIRATION - MINUTE {
            now += MINUTE;
            destinations.review(now, |_| ());
        }
        assert_eq!(destinations.entries.len(), COMFORTABLE);
        destinations.get(address(3), now).unwrap();
        for _ in 0..FULL_EVERY {
            now += MINUTE;
            destinations.review(now, |_| ());
        }
        assert_eq!(destinations.entries.len(), 1, "only the one that was used");
    }

    #[test]
    fn a_shorter_expiration_holds_for_what_is_remembered_already() {
        let mut destinations = filled(100);
        destinations.set_expiration(MINUTE * 10);
        for minute in 1..=FULL_EVERY {
            destinations.review(START + MINUTE * minute, |_| ());
        }
        assert!(destinations.entries.is_empty());
    }

    #[test]
    fn the_full_sweep_comes_every_half_hour() {
        let mut destinations = filled(0);
        let mut sweeps = Vec::new();
        for minute in 1..=90 {
            // Something that is always past its day.
            let now = START + EXPIRATION + MINUTE * minute;
            destinations.insert(address(0), 0, START);
            destinations.next_review = Some(now);
            destinations.review(now, |_| sweeps.push(minute));
        }
        assert_eq!(sweeps, [30, 60, 90]);
    }

    #[test]
    fn a_surplus_goes_once_it_has_been_idle_for_six_minutes() {
        let mut destinations = filled(COMFORTABLE + 300);
        let mut gone = Vec::new();
        for minute in 1..6 {
            destinations.review(START + MINUTE * minute, |value| gone.push(*value));
        }
        assert!(gone.is_empty());
        for number in 0..1000 {
            destinations.get(address(number), START + MINUTE * 5);
        }
        destinations.review(START + MINUTE * 6, |value| gone.push(*value));
        assert_eq!(gone.len(), 400, "four thirds of the surplus");
        assert!(gone.iter().all(|&number| number >= 1000), "one in use was forgotten");
        assert_eq!(destinations.entries.len(), COMFORTABLE - 100);
    }

    #[test]
    fn one_review_forgets_at_most_half_the_comfortable_number() {
        let mut destinations = filled(MOST);
        let mut gone = 0;
        for minute in 1..=6 {
            destinations.review(START + MINUTE * minute, |_| gone += 1);
        }
        assert_eq!(gone, COMFORTABLE / 2);
    }

    #[test]
    fn reviews_missed_in_a_lull_are_made_up() {
        let mut destinations = filled(100);
        destinations.review(START + EXPIRATION * 2, |_| ());
        assert!(destinations.entries.is_empty());
        destinations.review(Duration::MAX, |_| ());
        destinations.review(Duration::ZERO, |_| ());
    }
}
