//! Hashes of the two ends of a packet, made once, from which everything else follows: the shard,
//! the place in either index, and whether the sender can be a server that answers.

use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use foldhash::quality::SeedableRandomState;

use crate::dispatch::connection::Endpoint;

/// The keyed hash of an end: protocol, address and port.
pub(super) fn hash_end(hasher: &SeedableRandomState, protocol: u8, end: Endpoint) -> u64 {
    let address = match end.0 {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    let mut state = hasher.build_hasher();
    state.write_u128(address);
    state.write_u32(u32::from(protocol) << 16 | u32::from(end.1));
    state.finish()
}

/// The hash of a tuple from those of its ends. Both are keyed and mixed already, so a rotation is
/// all it takes to tell one end from the other.
pub(super) fn hash_both(client: u64, peer: u64) -> u64 {
    client ^ peer.rotate_left(32)
}

/// Counters in [`Servers`]: 16 KiB, many more than a director has servers.
const COUNTERS: usize = 4096;

/// Which ends are servers of connections: a counting filter. A server's answer is told by it from
/// a client's packet before any shard is locked. When it says no, it is no; two ends that share a
/// counter cost each other a look-up.
#[derive(Debug)]
pub(super) struct Servers(Box<[AtomicU32]>);

impl Servers {
    pub(super) fn new() -> Servers {
        Servers((0..COUNTERS).map(|_| AtomicU32::new(0)).collect())
    }

    /// A connection has the server whose end has this hash.
    pub(super) fn add(&self, end: u64) {
        self.counter(end).fetch_add(1, Relaxed);
    }

    /// That connection is gone.
    pub(super) fn remove(&self, end: u64) {
        self.counter(end).fetch_sub(1, Relaxed);
    }

    /// Whether this may be a server with a connection.
    pub(super) fn may_have(&self, end: u64) -> bool {
        self.counter(end).load(Relaxed) != 0
    }

    fn counter(&self, end: u64) -> &AtomicU32 {
        // Other bits than those that choose the shard and the place in an index.
        &self.0[(end >> 32) as usize % COUNTERS]
    }
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
    fn a_server_is_known_until_its_last_connection_is_gone() {
        let servers = Servers::new();
        servers.add(7 << 32);
        servers.add(7 << 32);
        servers.remove(7 << 32);
        assert!(servers.may_have(7 << 32) && !servers.may_have(8 << 32));
        servers.remove(7 << 32);
        assert!(!servers.may_have(7 << 32));
    }
}
