//! Hosts of a cluster: their ids, sets of them, and the number that tells one boot from another.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

/// Most hosts in a cluster: a set of hosts is 32 bits.
pub const MAX_HOSTS: usize = 32;

/// The id of a host in its cluster, 1 to 32. The lowest id that is alive is the default host.
///
/// ```
/// use nlb::host::HostId;
///
/// let host: HostId = "7".parse().unwrap();
/// assert_eq!((host.get(), host.index()), (7, 6));
/// assert_eq!(
///     "33".parse::<HostId>().unwrap_err().to_string(),
///     "host id \"33\": give a number from 1 to 32"
/// );
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(NonZeroU8);

/// A host id that is not in 1 to 32.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host id {given:?}: give a number from 1 to {MAX_HOSTS}")]
pub struct BadHostId {
    /// What was given.
    pub given: String,
}

impl HostId {
    /// The host with this number.
    ///
    /// # Errors
    ///
    /// When `id` is not in 1 to 32.
    pub fn new(id: u8) -> Result<HostId, BadHostId> {
        NonZeroU8::new(id)
            .filter(|id| usize::from(id.get()) <= MAX_HOSTS)
            .map(HostId)
            .ok_or_else(|| BadHostId { given: id.to_string() })
    }

    /// The id, 1 to 32.
    #[inline]
    pub fn get(self) -> u8 {
        self.0.get()
    }

    /// Its place in an array by host, 0 to 31.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.get() - 1)
    }

    /// All ids, in order.
    pub fn all() -> impl Iterator<Item = HostId> {
        (1..=MAX_HOSTS as u8).filter_map(|id| HostId::new(id).ok())
    }
}

impl FromStr for HostId {
    type Err = BadHostId;

    fn from_str(text: &str) -> Result<HostId, BadHostId> {
        text.parse()
            .ok()
            .and_then(|id| HostId::new(id).ok())
            .ok_or_else(|| BadHostId { given: text.to_owned() })
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "h{}", self.0)
    }
}

/// A set of hosts.
///
/// ```
/// use nlb::host::{HostId, HostSet};
///
/// let set: HostSet = [3, 1].map(|id| HostId::new(id).unwrap()).into_iter().collect();
/// assert_eq!(set.to_string(), "1, 3");
/// assert_eq!(set.first(), HostId::new(1).ok());
/// assert_eq!(set.bits(), 0b101);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct HostSet(u32);

impl HostSet {
    /// No host.
    pub const EMPTY: HostSet = HostSet(0);
    /// All 32 hosts.
    pub const ALL: HostSet = HostSet(u32::MAX);

    /// The set whose host `id` is bit `id - 1`.
    pub const fn from_bits(bits: u32) -> HostSet {
        HostSet(bits)
    }

    /// Host `id` is bit `id - 1`.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Adds a host; whether it is new.
    pub fn insert(&mut self, host: HostId) -> bool {
        let before = self.0;
        self.0 |= 1 << host.index();
        self.0 != before
    }

    /// Takes a host out; whether it was there.
    pub fn remove(&mut self, host: HostId) -> bool {
        let before = self.0;
        self.0 &= !(1 << host.index());
        self.0 != before
    }

    /// Whether a host is in it.
    pub const fn contains(self, host: HostId) -> bool {
        self.0 >> (host.0.get() - 1) & 1 == 1
    }

    /// Number of hosts, 0 to 32.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether no host is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The host with the lowest id.
    pub fn first(self) -> Option<HostId> {
        self.iter().next()
    }

    /// The hosts, in order of their ids.
    pub fn iter(self) -> impl Iterator<Item = HostId> {
        HostId::all().filter(move |&host| self.contains(host))
    }

    /// The hosts in either.
    #[must_use]
    pub const fn union(self, other: HostSet) -> HostSet {
        HostSet(self.0 | other.0)
    }

    /// The hosts in both.
    #[must_use]
    pub const fn intersection(self, other: HostSet) -> HostSet {
        HostSet(self.0 & other.0)
    }

    /// The hosts that are not in `other`.
    #[must_use]
    pub const fn minus(self, other: HostSet) -> HostSet {
        HostSet(self.0 & !other.0)
    }

    /// Whether every host of it is in `other`.
    pub const fn is_subset(self, other: HostSet) -> bool {
        self.minus(other).is_empty()
    }
}

impl From<HostId> for HostSet {
    fn from(host: HostId) -> HostSet {
        HostSet(1 << host.index())
    }
}

impl FromIterator<HostId> for HostSet {
    fn from_iter<I: IntoIterator<Item = HostId>>(hosts: I) -> HostSet {
        hosts.into_iter().fold(HostSet::EMPTY, |set, host| set.union(host.into()))
    }
}

impl fmt::Display for HostSet {
    /// `1, 2, 5`; nothing for the empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, host) in self.iter().enumerate() {
            write!(f, "{}{host}", if place == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for HostSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// A number a host draws when it starts: two hosts with one id, or one host before and after a
/// restart, differ in it. 0 is never drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub u64);

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_outside_1_to_32_are_refused() {
        for id in 0..=255 {
            assert_eq!(HostId::new(id).is_ok(), (1..=32).contains(&id), "{id}");
        }
        for text in ["", "0", "33", "-1", "one", "1 ", "256", "+"] {
            assert!(text.parse::<HostId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_set_keeps_order_and_counts() {
        let mut set = HostSet::EMPTY;
        for host in HostId::all() {
            assert!(set.insert(host) && !set.insert(host));
            assert_eq!(set.len(), host.index() + 1);
        }
        assert_eq!(set, HostSet::ALL);
        assert!(set.iter().eq(HostId::all()));
        let first = HostId::new(1).unwrap();
        assert!(set.remove(first) && !set.remove(first) && !set.contains(first));
        assert_eq!(set.first(), HostId::new(2).ok());
        assert_eq!(HostSet::ALL.minus(set), first.into());
        assert!(set.is_subset(HostSet::ALL) && !HostSet::ALL.is_subset(set));
    }
}
