//! Hashes of the two ends of a packet, made once, from which everything else follows: the shard and
//! the place in either index. And which addresses servers have.

use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use foldhash::quality::SeedableRandomState;
use hashbrown::HashMap;

use crate::dispatch::connection::Endpoint;

/// The keyed hash of an end: protocol, address and port.
#[inline(always)]
pub(super) fn hash_end(hasher: &SeedableRandomState, protocol: u8, end: Endpoint) -> u64 {
    let address = match end.0 {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    hash_bits(hasher, protocol, (address, end.1))
}

/// The same of an address that is a number.
#[inline(always)]
pub(super) fn hash_bits(hasher: &SeedableRandomState, protocol: u8, end: (u128, u16)) -> u64 {
    let (address, port) = end;
    let mut state = hasher.build_hasher();
    state.write_u128(address);
    state.write_u32(u32::from(protocol) << 16 | u32::from(port));
    state.finish()
}

/// The hash of a tuple from those of its ends. Both are keyed and mixed already, so a rotation is
/// all it takes to tell one end from the other.
#[inline(always)]
pub(super) fn hash_both(client: u64, peer: u64) -> u64 {
    client ^ peer.rotate_left(32)
}

/// Bits in [`Servers`]: 8 KiB, many more than a director has servers.
const BITS: usize = 1 << 16;

/// Which addresses are those of servers. A server's answer is told by it from a client's packet
/// before anything is looked up. When it says no, it is no; who shares a bit with a server costs a
/// look-up.
#[derive(Debug)]
pub(super) struct Servers {
    bits: Box<[AtomicU64]>,
    /// How many servers share each bit that is set.
    counts: Mutex<HashMap<usize, u32, foldhash::fast::RandomState>>,
}

impl Servers {
    pub(super) fn new() -> Servers {
        Servers {
            bits: (0..BITS / 64).map(|_| AtomicU64::new(0)).collect(),
            counts: Mutex::default(),
        }
    }

    /// There is a server of this address.
    pub(super) fn add(&self, address: IpAddr) {
        let bit = bit(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(bit).or_default() += 1;
        self.bits[bit / 64].fetch_or(1 << (bit % 64), Relaxed);
    }

    /// That server is gone.
    pub(super) fn remove(&self, address: IpAddr) {
        let bit = bit(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = counts.get_mut(&bit) else { return };
        *count -= 1;
        if *count == 0 {
            counts.remove(&bit);
            self.bits[bit / 64].fetch_and(!(1 << (bit % 64)), Relaxed);
        }
    }

    /// Whether this may be a server.
    #[inline(always)]
    pub(super) fn may_have(&self, address: IpAddr) -> bool {
        self.has(bit(address))
    }

    /// The same of an address that is a number.
    #[inline(always)]
    pub(super) fn may_have_bits(&self, address: u128) -> bool {
        self.has(bit_of(address))
    }

    #[inline(always)]
    fn has(&self, bit: usize) -> bool {
        self.bits[bit / 64].load(Relaxed) & 1 << (bit % 64) != 0
    }
}

/// The bit of an address. Who chooses addresses that share one gains nothing but a second look-up
/// for each of their packets, so no key is needed.
#[inline(always)]
fn bit(address: IpAddr) -> usize {
    bit_of(match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    })
}

#[inline(always)]
fn bit_of(address: u128) -> usize {
    let folded = address as u64 ^ ((address >> 64) as u64).rotate_left(23);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_differ_in_anything_have_different_hashes() {
        let hasher = SeedableRandomState::fixed();
        let at = |text: &str, port| (text.parse().unwrap(), port);
        let hashes = [
            hash_end(&hasher, 6, at("10.0.0.1", 80)),
            hash_end(&hasher, 17, at("10.0.0.1", 80)),
            hash_end(&hasher, 6, at("10.0.0.1", 81)),
            hash_end(&hasher, 6, at("10.0.0.2", 80)),
            hash_end(&hasher, 6, at("fd00::1", 80)),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..index].contains(hash), "end {index}");
        }
        assert_ne!(hash_both(hashes[0], hashes[1]), hash_both(hashes[1], hashes[0]));
    }

    #[test]
    fn a_server_is_known_until_its_address_has_been_taken_away_as_often_as_added() {
        let servers = Servers::new();
        let at = |text: &str| text.parse().unwrap();
        servers.add(at("10.0.0.1"));
        servers.add(at("10.0.0.1"));
        servers.remove(at("10.0.0.1"));
        assert!(servers.may_have(at("10.0.0.1")) && !servers.may_have(at("10.0.0.2")));
        servers.remove(at("10.0.0.1"));
        servers.remove(at("10.0.0.1"));
        assert!(!servers.may_have(at("10.0.0.1")));
    }

    #[test]
    fn few_addresses_share_a_bit() {
        let servers = Servers::new();
        (0..1000u32)
            .for_each(|it| servers.add(std::net::Ipv4Addr::from_bits(10 << 24 | it).into()));
        let strangers = (0..100_000u32).map(|it| std::net::Ipv4Addr::from_bits(198 << 24 | it));
        let taken = strangers.filter(|it| servers.may_have((*it).into())).count();
        assert!(taken < 3000, "{taken}");
        let v6 = |it: u64| std::net::Ipv6Addr::from_bits(0xfd << 120 | u128::from(it));
        let taken = (0..100_000).filter(|&it| servers.may_have(v6(it).into())).count();
        assert!(taken < 3000, "{taken}");
    }
}
