//! How what the program reads and remembers lies in its maps: the bytes that both sides agree on.
//!
//! | map | key | value |
//! |---|---|---|
//! | `addresses` | [`ADDRESS_KEY`] bytes: address, family | [`Owned`]: whose it is; a virtual address has a number |
//! | `ports` | number of a virtual address or 0, port, protocol | slot, or [`BLOCKED`] |
//! | `ranges` | 0 | one entry of [`RANGE`] bytes after the other |
//! | `slots` | slot | how a packet is hashed for it, serving and tainted buckets |
//! | `state` | 0 | [`ACTIVE`] or the number of the reason for which nothing is passed |
//! | `pins`, `retired` | [`FLOW_KEY`] bytes: client, virtual address, ports, protocol, family | when it was last seen, whether it ends |
//! | `fragments` | source, destination, identification, protocol, family | when, and the reason of the first |
//! | `counters` | number of a reason | packets, by CPU |
//! | `opened` | slot | TCP flows begun, by CPU |
//!
//! Addresses take 16 bytes, IPv4 the first four of them; the family tells them apart. What comes
//! from packets is in network order, numbers of ours in the machine's.

use std::net::IpAddr;

use nlb::tuple::Tuple;

/// Families, as in a key.
pub(super) const IPV4: u8 = 4;
pub(super) const IPV6: u8 = 6;

/// An address: 16 bytes, family, three zeroes.
pub(super) const ADDRESS_KEY: usize = 20;
/// Whose an address is, and the number of a virtual address (from 1), four bytes each.
pub(super) const ADDRESS_VALUE: usize = 8;

/// Whose an address is, as `addresses` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Owned {
    /// A virtual address.
    Cluster = 1,
    /// This host's.
    Own = 2,
    /// Another host's.
    Peer = 3,
}

/// Number of the virtual address (4 bytes, 0: all), port (2, network order), protocol, a zero.
pub(super) const PORT_KEY: usize = 8;
/// Stands for the slot of a disabled rule.
pub(super) const BLOCKED: u32 = 0xff;

/// An entry of `ranges`, virtual addresses of their own first.
pub(super) const RANGE: usize = 16;
/// Fields of an entry: number of the virtual address or 0, protocol, first and last port (host
/// order), slot.
pub(super) mod range {
    pub(crate) const VIP: i16 = 0;
    pub(crate) const PROTOCOL: i16 = 4;
    pub(crate) const FIRST: i16 = 8;
    pub(crate) const LAST: i16 = 10;
    pub(crate) const SLOT: i16 = 12;
}

/// Fields of a slot.
pub(super) mod slot {
    use nlb::buckets::BUCKET_BYTES;

    /// Enters the hash, 4 bytes.
    pub(crate) const GROUP: i16 = 0;
    /// Not 0 if ports enter the hash, 4 bytes.
    pub(crate) const PORTS: i16 = 4;
    /// The bits of an IPv4 client that count, host order, 4 bytes.
    pub(crate) const MASK4: i16 = 8;
    /// The number of the reason for which its packets pass, 4 bytes.
    pub(crate) const REASON: i16 = 12;
    /// The bits of an IPv6 client that count: two halves of 8 bytes, host order, high one first.
    pub(crate) const MASK6: i16 = 16;
    /// Buckets in which new flows pass: bit `b % 8` of byte `b / 8`.
    pub(crate) const SERVING: i16 = 32;
    /// Buckets in which another host holds flows.
    pub(crate) const TAINTED: i16 = SERVING + BUCKET_BYTES as i16;
    /// Bytes in all.
    pub(crate) const SIZE: usize = 32 + 2 * BUCKET_BYTES;
}

/// In `state`: this host takes part.
pub(super) const ACTIVE: u32 = 0;

/// A flow: two addresses, two ports, protocol, family, two zeroes.
pub(super) const FLOW_KEY: usize = 40;
/// Fields of a flow's key.
pub(super) mod flow {
    pub(crate) const CLIENT: i16 = 0;
    pub(crate) const VIP: i16 = 16;
    pub(crate) const CLIENT_PORT: i16 = 32;
    pub(crate) const VIP_PORT: i16 = 34;
    pub(crate) const PROTOCOL: i16 = 36;
    pub(crate) const FAMILY: i16 = 37;
}
/// Nanoseconds of the monotonic clock when the flow was last seen, 8 bytes; then 8 bytes that are not
/// 0 once the client has sent FIN or RST.
pub(super) const FLOW_VALUE: usize = 16;

/// A fragmented packet: two addresses, identification, protocol, family, two zeroes.
pub(super) const FRAGMENT_KEY: usize = 40;
/// Fields of a fragmented packet's key.
pub(super) mod fragment {
    pub(crate) const SOURCE: i16 = 0;
    pub(crate) const DESTINATION: i16 = 16;
    /// Four bytes, network order; in IPv4 the first two are 0.
    pub(crate) const ID: i16 = 32;
    pub(crate) const PROTOCOL: i16 = 36;
    pub(crate) const FAMILY: i16 = 37;
}
/// When (as in [`FLOW_VALUE`]), then the number of the reason in 8 bytes.
pub(super) const FRAGMENT_VALUE: usize = 16;

/// An address as it lies in a key, and its family.
pub(super) fn address(address: IpAddr) -> ([u8; 16], u8) {
    match address {
        IpAddr::V4(v4) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&v4.octets());
            (bytes, IPV4)
        }
        IpAddr::V6(v6) => (v6.octets(), IPV6),
    }
}

/// The key of an address.
pub(super) fn address_key(owned: IpAddr) -> [u8; ADDRESS_KEY] {
    let mut key = [0; ADDRESS_KEY];
    let (bytes, family) = address(owned);
    key[..16].copy_from_slice(&bytes);
    key[16] = family;
    key
}

/// The key of a port of a virtual address; number 0 stands for all.
pub(super) fn port_key(vip: u32, protocol: u8, port: u16) -> [u8; PORT_KEY] {
    let [v0, v1, v2, v3] = vip.to_ne_bytes();
    let [high, low] = port.to_be_bytes();
    [v0, v1, v2, v3, high, low, protocol, 0]
}

/// The key of a flow.
pub(super) fn flow_key(tuple: &Tuple) -> [u8; FLOW_KEY] {
    let mut key = [0; FLOW_KEY];
    let (client, family) = address(tuple.client);
    let (vip, _) = address(tuple.vip);
    key[..16].copy_from_slice(&client);
    key[16..32].copy_from_slice(&vip);
    key[32..34].copy_from_slice(&tuple.client_port.to_be_bytes());
    key[34..36].copy_from_slice(&tuple.vip_port.to_be_bytes());
    key[36] = tuple.protocol;
    key[37] = family;
    key
}

/// The flow of a key.
pub(super) fn tuple(key: &[u8; FLOW_KEY]) -> Tuple {
    let address = |at: usize| -> IpAddr {
        let bytes: [u8; 16] = key[at..at + 16].try_into().expect("16 bytes");
        match key[37] {
            IPV6 => bytes.into(),
            _ => [bytes[0], bytes[1], bytes[2], bytes[3]].into(),
        }
    };
    let port = |at: usize| u16::from_be_bytes([key[at], key[at + 1]]);
    Tuple {
        protocol: key[36],
        client: address(0),
        client_port: port(32),
        vip: address(16),
        vip_port: port(34),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_comes_out_of_its_key_as_it_went_in() {
        for (client, vip) in [("192.0.2.7", "198.51.100.10"), ("2001:db8::7", "::ffff:1.2.3.4")] {
            let flow = Tuple {
                protocol: 17,
                client: client.parse().unwrap(),
                client_port: 40_000,
                vip: vip.parse().unwrap(),
                vip_port: 53,
            };
            assert_eq!(tuple(&flow_key(&flow)), flow);
        }
    }

    #[test]
    fn an_ipv4_address_is_never_the_key_of_an_ipv6_one() {
        let [v4, v6] = ["1.2.3.4", "102:304::"].map(|text| address_key(text.parse().unwrap()));
        assert_eq!(v4[..16], v6[..16]);
        assert_ne!(v4, v6);
    }
}
