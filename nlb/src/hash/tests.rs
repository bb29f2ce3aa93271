use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;
use crate::key::ClusterKey;

const GROUP: GroupId = GroupId(0x0a0b_0c0d);

fn tuple(client: &str, client_port: u16, vip: &str, vip_port: u16) -> Tuple {
    let [client, vip] = [client, vip].map(|address| address.parse().unwrap());
    Tuple { protocol: 6, client, client_port, vip, vip_port }
}

fn numbers(affinity: Affinity) -> [u16; 4] {
    let key = ClusterKey::new(b"sixteen bytes ok").unwrap().hash();
    [
        tuple("192.0.2.7", 40000, "198.51.100.10", 80),
        tuple("192.0.2.7", 40000, "198.51.100.10", 1723),
        tuple("2001:db8::7", 40000, "2001:db8:1::10", 80),
        tuple("2001:db8::7", 40000, "2001:db8:1::10", 1723),
    ]
    .map(|tuple| bucket(key, GROUP, affinity, &tuple).get())
}

/// Computed by a separate SipHash-1-3 in another language. Whoever changes the hash moves every client, and
/// splits a cluster during its upgrade.
#[test]
fn buckets_are_the_same_in_every_version() {
    assert_eq!(numbers(Affinity::None), [1990, 2617, 1115, 3682]);
    assert_eq!(numbers(Affinity::SINGLE), [2617, 2617, 3682, 3682]);
    assert_eq!(numbers(Affinity::NETWORK), [3149, 3149, 1558, 1558]);
}

fn any_tuple() -> impl Strategy<Value = Tuple> {
    let addresses = prop_oneof![
        any::<(u32, u32)>().prop_map(|(a, b)| [a, b].map(|bits| Ipv4Addr::from(bits).into())),
        any::<(u128, u128)>().prop_map(|(a, b)| [a, b].map(|bits| Ipv6Addr::from(bits).into())),
    ];
    (addresses, any::<(u16, u16)>(), prop_oneof![Just(6), Just(17), Just(47)]).prop_map(
        |([client, vip], (client_port, vip_port), protocol)| Tuple {
            protocol,
            client,
            client_port,
            vip,
            vip_port,
        },
    )
}

/// The tuple with the client's bits from `prefix` on turned.
fn neighbour(tuple: Tuple, prefix: u8) -> Tuple {
    let client = match tuple.client {
        IpAddr::V4(client) => {
            let rest = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            Ipv4Addr::from(client.to_bits() ^ rest).into()
        }
        IpAddr::V6(client) => {
            let rest = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
            Ipv6Addr::from(client.to_bits() ^ rest).into()
        }
    };
    Tuple { client, ..tuple }
}

proptest! {
    #[test]
    fn a_client_of_the_prefix_is_in_the_same_bucket_whatever_its_ports(
        tuple in any_tuple(),
        prefix in 1u8..=32,
        ports in any::<(u16, u16)>(),
        keys in any::<(u64, u64)>(),
    ) {
        let key = HashKey { k0: keys.0, k1: keys.1 };
        let affinity = Affinity::Prefix { ipv4: prefix, ipv6: prefix };
        let other = Tuple { client_port: ports.0, vip_port: ports.1, ..neighbour(tuple, prefix) };
        prop_assert_eq!(
            bucket(key, GROUP, affinity, &tuple),
            bucket(key, GROUP, affinity, &other)
        );
    }

    #[test]
    fn gre_is_in_the_bucket_of_its_control_connection(tuple in any_tuple(), port in any::<u16>()) {
        let key = HashKey { k0: 5, k1: 6 };
        let control = Tuple { protocol: 6, client_port: port, vip_port: PPTP, ..tuple };
        let tunnel = Tuple { protocol: 47, client_port: 0, vip_port: 0, ..tuple };
        for affinity in [Affinity::None, Affinity::SINGLE, Affinity::NETWORK] {
            prop_assert_eq!(
                bucket(key, GROUP, affinity, &control),
                bucket(key, GROUP, affinity, &tunnel)
            );
        }
    }
}

/// A change of what counts must change the bucket, except for one in 4096.
#[test]
fn every_bit_that_counts_changes_the_bucket() {
    let key = HashKey { k0: 1, k1: 2 };
    for start in [
        tuple("192.0.2.7", 40000, "198.51.100.10", 80),
        tuple("2001:db8::7", 40000, "2001:db8:1::10", 80),
    ] {
        let of = |tuple: &Tuple| bucket(key, GROUP, Affinity::None, tuple);
        let bits = if start.client.is_ipv4() { 32 } else { 128 };
        let mut changed = vec![];
        for bit in 0..16 {
            changed.push(Tuple { client_port: start.client_port ^ 1 << bit, ..start });
            changed.push(Tuple { vip_port: start.vip_port ^ 1 << bit, ..start });
        }
        for bit in 0..bits {
            changed.push(neighbour(neighbour(start, bit), bit + 1));
            let turned = Tuple { client: start.vip, vip: start.client, ..start };
            let turned = neighbour(neighbour(turned, bit), bit + 1);
            changed.push(Tuple { client: start.client, vip: turned.client, ..start });
        }
        let same = changed.iter().filter(|tuple| of(tuple) == of(&start)).count();
        assert!(same <= 2, "{same} of {} changes did not count", changed.len());
        assert_ne!(bucket(key, GroupId(1), Affinity::None, &start), of(&start));
    }
}
