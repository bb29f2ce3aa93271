//! Longest prefix match: a hash of (length, masked address) and the list of lengths in use.
//!
//! A look-up costs one probe for each length that some prefix of the table has, longest first; a
//! host has a handful of lengths, a full BGP table some thirty. Building costs one insertion per
//! prefix, whatever the order. A trie would save probes and cost a hundred lines that can be wrong.

use std::net::IpAddr;

use hashbrown::HashMap;

/// Values by prefixes of one address family.
#[derive(Clone, Debug)]
pub(super) struct PrefixMap<T> {
    values: HashMap<(u8, u128), T, foldhash::fast::RandomState>,
    /// Length and how many prefixes have it; longest first, no zero counts.
    lengths: Vec<(u8, usize)>,
}

impl<T> Default for PrefixMap<T> {
    fn default() -> PrefixMap<T> {
        PrefixMap { values: HashMap::default(), lengths: Vec::new() }
    }
}

/// The bits of an address from the left, so that both families are masked alike.
pub(super) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The first `length` of the bits, the others zero.
fn mask(bits: u128, length: u8) -> u128 {
    match length {
        0 => 0,
        length => bits & (u128::MAX << (128 - u32::from(length.min(128)))),
    }
}

impl<T> PrefixMap<T> {
    /// The first that `choose` finds in the values whose prefixes hold `address`, from the longest
    /// prefix to the shortest, with the length of the prefix.
    pub(super) fn find<'a, R>(
        &'a self,
        address: u128,
        mut choose: impl FnMut(&'a T) -> Option<R>,
    ) -> Option<(u8, R)> {
        self.lengths.iter().find_map(|(length, _)| {
            let value = self.values.get(&(*length, mask(address, *length)))?;
            choose(value).map(|found| (*length, found))
        })
    }

    /// The value of exactly this prefix, to be changed.
    pub(super) fn get_mut(&mut self, address: u128, length: u8) -> Option<&mut T> {
        self.values.get_mut(&(length, mask(address, length)))
    }

    /// The value of exactly this prefix, made when it is not there.
    pub(super) fn entry(&mut self, address: u128, length: u8) -> &mut T
    where
        T: Default,
    {
        let key = (length, mask(address, length));
        if !self.values.contains_key(&key) {
            match self.lengths.binary_search_by(|(known, _)| length.cmp(known)) {
                Ok(place) => self.lengths[place].1 += 1,
                Err(place) => self.lengths.insert(place, (length, 1)),
            }
        }
        self.values.entry(key).or_default()
    }

    /// Takes a prefix out.
    pub(super) fn remove(&mut self, address: u128, length: u8) -> Option<T> {
        let value = self.values.remove(&(length, mask(address, length)))?;
        if let Ok(place) = self.lengths.binary_search_by(|(known, _)| length.cmp(known)) {
            self.lengths[place].1 -= 1;
            if self.lengths[place].1 == 0 {
                self.lengths.remove(place);
            }
        }
        Some(value)
    }

    /// How many prefixes there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{PrefixMap, bits, mask};

    #[test]
    fn masks_of_both_ends_do_not_overflow() {
        assert_eq!(mask(u128::MAX, 0), 0);
        assert_eq!(mask(u128::MAX, 128), u128::MAX);
        assert_eq!(mask(u128::MAX, 255), u128::MAX);
        assert_eq!(mask(bits([10, 1, 2, 3].into()), 8), bits([10, 0, 0, 0].into()));
    }

    /// Few distinct addresses, so that prefixes nest and collide.
    fn address() -> impl Strategy<Value = u128> {
        prop_oneof![any::<u128>(), (0u128..16).prop_map(|n| n << 124), Just(0)]
    }

    proptest! {
        #[test]
        fn the_longest_prefix_wins_as_in_a_scan_of_all(
            changes in prop::collection::vec((address(), 0u8..=128, any::<bool>()), 0..60),
            probes in prop::collection::vec(address(), 1..20),
        ) {
            let mut map: PrefixMap<Vec<usize>> = PrefixMap::default();
            let mut plain: BTreeMap<(u8, u128), usize> = BTreeMap::new();
            for (number, (address, length, add)) in changes.into_iter().enumerate() {
                if add {
                    *map.entry(address, length) = vec![number];
                    plain.insert((length, mask(address, length)), number);
                } else {
                    let gone = map.remove(address, length).map(|value| value[0]);
                    prop_assert_eq!(gone, plain.remove(&(length, mask(address, length))));
                }
            }
            prop_assert_eq!(map.len(), plain.len());
            for probe in probes {
                let expected = plain
                    .iter()
                    .rev()
                    .find(|((length, prefix), _)| mask(probe, *length) == *prefix)
                    .map(|(_, number)| *number);
                let found = map.find(probe, |value| Some(value[0])).map(|(_, number)| number);
                prop_assert_eq!(found, expected);
            }
        }
    }
}
