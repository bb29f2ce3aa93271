//! From a packet to its bucket: SipHash-1-3 over little-endian words of 64 bits.
//!
//! | word | IPv4 | IPv6 |
//! |---|---|---|
//! | 0 | group << 32, client port << 16, virtual port | the same |
//! | 1 | client << 32, virtual address | client, high half |
//! | 2 | | client, low half |
//! | 3, 4 | | virtual address, high and low half |
//!
//! Addresses are numbers, their first octet the highest. With affinity the client is cut to its
//! prefix and both ports are 0; so they are for TCP port 1723, whatever the affinity, so that the
//! GRE packets of a PPTP client, which have no ports, are in the bucket of its control connection.
//! The bucket is the low 12 bits. All words are whole, so a program in the kernel can compute it
//! with additions, rotations and exclusive ors alone.

use std::net::IpAddr;

use forwarding::wire::protocol;
use siphasher::sip::SipHasher13;

use crate::buckets::Bucket;
use crate::key::HashKey;
use crate::rules::Affinity;
use crate::slot::GroupId;
use crate::tuple::{PPTP, Tuple};

/// The bucket of a flow in the map of a group.
///
/// ```
/// use nlb::hash::bucket;
/// use nlb::key::HashKey;
/// use nlb::rules::Affinity;
/// use nlb::slot::GroupId;
/// use nlb::tuple::Tuple;
///
/// let key = HashKey { k0: 1, k1: 2 };
/// let flow = |client: &str, client_port| Tuple {
///     protocol: 6,
///     client: client.parse().unwrap(),
///     client_port,
///     vip: "198.51.100.10".parse().unwrap(),
///     vip_port: 80,
/// };
/// let network = |flow| bucket(key, GroupId(7), Affinity::NETWORK, &flow);
/// assert_eq!(network(flow("192.0.2.1", 40000)), network(flow("192.0.2.99", 50000)));
/// assert_ne!(network(flow("192.0.2.1", 40000)), network(flow("192.0.3.1", 40000)));
/// ```
pub fn bucket(key: HashKey, group: GroupId, affinity: Affinity, tuple: &Tuple) -> Bucket {
    let ports = match affinity {
        Affinity::None if !is_pptp(tuple) => {
            u64::from(tuple.client_port) << 16 | u64::from(tuple.vip_port)
        }
        _ => 0,
    };
    let first = u64::from(group.0) << 32 | ports;
    let hash = match (tuple.client, tuple.vip) {
        (IpAddr::V4(client), IpAddr::V4(vip)) => {
            let client = client.to_bits() & mask4(affinity);
            sip(key, &[first, u64::from(client) << 32 | u64::from(vip.to_bits())])
        }
        (client, vip) => {
            let client = to_bits(client) & mask6(affinity);
            let vip = to_bits(vip);
            let halves = [client >> 64, client, vip >> 64, vip].map(|half| half as u64);
            sip(key, &[first, halves[0], halves[1], halves[2], halves[3]])
        }
    };
    Bucket::of_hash(hash)
}

/// Whether a flow is the control connection of PPTP.
pub(crate) fn is_pptp(tuple: &Tuple) -> bool {
    tuple.protocol == protocol::TCP && tuple.vip_port == PPTP
}

/// The bits of an IPv4 client that count: all without affinity.
pub fn mask4(affinity: Affinity) -> u32 {
    match affinity {
        Affinity::None => u32::MAX,
        Affinity::Prefix { ipv4, .. } => !u32::MAX.checked_shr(ipv4.into()).unwrap_or(0),
    }
}

/// The bits of an IPv6 client that count: all without affinity.
pub fn mask6(affinity: Affinity) -> u128 {
    match affinity {
        Affinity::None => u128::MAX,
        Affinity::Prefix { ipv6, .. } => !u128::MAX.checked_shr(ipv6.into()).unwrap_or(0),
    }
}

fn to_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// SipHash-1-3 of at most five words.
fn sip(key: HashKey, words: &[u64]) -> u64 {
    let mut bytes = [0; 40];
    for (eight, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *eight = word.to_le_bytes();
    }
    SipHasher13::new_with_keys(key.k0, key.k1).hash(&bytes[..words.len() * 8])
}

#[cfg(test)]
mod tests;
