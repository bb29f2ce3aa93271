//! Addresses and ports as numbers that can be hashed.
//!
//! Knows byte order. Must not know tables or servers.
//!
//! The kernel keeps addresses as network-order words, folds an IPv6 address by XOR of its four
//! words, and turns the result to host order before hashing. XOR and byte swap commute, so the
//! big-endian value of each word gives the same number on every machine.

use crate::Key;
use crate::placement::HashBy;
use std::net::IpAddr;

/// 2^32 divided by the golden ratio, negated: the multiplier of the kernel's `hash_32`
/// (`include/linux/hash.h`).
const GOLDEN_RATIO_32: u32 = 0x61C8_8647;

/// One 32-bit number for an address: the IPv4 address itself, or the XOR of the IPv6 words.
///
/// An IPv4-mapped IPv6 address is an IPv6 address here, as it is in the kernel.
pub(crate) fn fold(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            (bits >> 96) as u32 ^ (bits >> 64) as u32 ^ (bits >> 32) as u32 ^ bits as u32
        }
    }
}

/// Multiplicative hash to a number of `bits` bits (1..=32): the product's top bits.
pub(crate) fn spread(value: u32, bits: u32) -> usize {
    (value.wrapping_mul(GOLDEN_RATIO_32) >> (32 - bits)) as usize
}

/// The client's port for the `sh-port` and `mh-port` flags; 0 for protocols without ports.
pub(crate) fn client_port(key: &Key) -> u16 {
    if has_ports(key.protocol) { key.source_port } else { 0 }
}

/// The port that was asked for; 0 for protocols without ports.
pub(crate) fn destination_port(key: &Key) -> u16 {
    if has_ports(key.protocol) { key.destination_port } else { 0 }
}

fn has_ports(protocol: u8) -> bool {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    const SCTP: u8 = 132;
    matches!(protocol, TCP | UDP | SCTP)
}

/// The number of a client that sh and mh hash: by themselves the kernel's, otherwise the lower half
/// of the key's hash.
pub(crate) fn client_number(key: &Key, by: HashBy, uses_port: bool) -> u32 {
    match by {
        HashBy::OfScheduler if uses_port => fold_with_port(key.source, client_port(key)),
        HashBy::OfScheduler => fold(key.source),
        by => key.hash_by(by) as u32,
    }
}

/// Port plus folded address, the number that sh and mh hash; wraps at 32 bits.
pub(crate) fn fold_with_port(address: IpAddr, port: u16) -> u32 {
    fold(address).wrapping_add(u32::from(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn folding_reads_addresses_in_network_order() {
        assert_eq!(fold("192.0.2.1".parse().unwrap()), 0xC000_0201);
        assert_eq!(
            fold("2001:db8::1:2:3".parse().unwrap()),
            0x2001_0db8 ^ 0x0000_0001 ^ 0x0002_0003
        );
    }

    #[test]
    fn a_mapped_address_folds_as_ipv6() {
        assert_eq!(fold("::ffff:192.0.2.1".parse().unwrap()), 0x0000_ffff ^ 0xC000_0201);
    }

    #[test]
    fn spreading_keeps_the_top_bits_of_the_product() {
        assert_eq!(spread(1, 8), 0x61);
        assert_eq!(spread(2, 8), 0xC3);
        assert_eq!(spread(0xC000_0201, 32), {
            (0xC000_0201_u64 * 0x61C8_8647 % (1 << 32)) as usize
        });
    }

    #[test]
    fn ports_count_only_for_protocols_that_have_them() {
        let mut key = testing::client("198.51.100.1", 4000);
        for (protocol, port) in [(6, 4000), (17, 4000), (132, 4000), (1, 0), (47, 0)] {
            key.protocol = protocol;
            assert_eq!(client_port(&key), port, "protocol {protocol}");
        }
    }
}
