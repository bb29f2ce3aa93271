//! Policies that nobody thought of, over the addresses and ports of the packets.

use nlb::buckets::{Bucket, BucketSet};
use nlb::filter::{Echo, HostState, Policy, SlotState};
use nlb::host::HostId;
use nlb::rules::{Affinity, Mode, Protocol, Rule, Rules, Scope};
use nlb::slot::SLOTS;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::bed::{self, PRIMARY, PRIMARY_IPV6, address};
use super::packets::{OTHER_VIP, OWNS, PEERS};

/// Scopes, protocols and ports that do not overlap.
fn places() -> Vec<(Scope, Protocol, u16, u16)> {
    let vip = |text| Scope::Vip(address(text));
    vec![
        (Scope::All, Protocol::Tcp, 80, 80),
        (Scope::All, Protocol::Both, 443, 443),
        (Scope::All, Protocol::Udp, 53, 53),
        (Scope::All, Protocol::Tcp, 1723, 1723),
        (Scope::All, Protocol::Tcp, 8000, 8999),
        (Scope::All, Protocol::Both, 5000, 5999),
        (vip(PRIMARY), Protocol::Tcp, 80, 80),
        (vip(PRIMARY), Protocol::Both, 8001, 9000),
        (vip(PRIMARY_IPV6), Protocol::Tcp, 80, 443),
        (vip(PRIMARY_IPV6), Protocol::Tcp, 1700, 1800),
        (vip(OTHER_VIP.0), Protocol::Both, 0, 65535),
        (vip(OTHER_VIP.1), Protocol::Udp, 53, 2504),
        (vip("192.0.2.77"), Protocol::Both, 1, 65535),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    let members = || vec![(HostId::new(1).unwrap(), 20), (HostId::new(2).unwrap(), 30)];
    let affinity = prop_oneof![
        3 => Just(Affinity::None),
        1 => Just(Affinity::SINGLE),
        1 => Just(Affinity::NETWORK),
        3 => (1_u8..=32, 1_u8..=128).prop_map(|(ipv4, ipv6)| Affinity::Prefix { ipv4, ipv6 }),
    ];
    prop_oneof![
        6 => affinity.prop_map(move |affinity| Mode::Multiple { affinity, weights: members() }),
        1 => Just(Mode::Single { priorities: members() }),
        1 => Just(Mode::Disabled),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let all = places();
    let count = all.len();
    (subsequence(all, 0..=count), proptest::collection::vec(mode(), count)).prop_map(
        |(places, modes)| {
            let rules = places.into_iter().zip(modes).map(
                |((scope, protocol, first_port, last_port), mode)| Rule {
                    scope,
                    protocol,
                    first_port,
                    last_port,
                    mode,
                },
            );
            Rules::new(rules.collect()).expect("right rules")
        },
    )
}

/// Buckets, each with the same chance, of `chance` in 255.
fn buckets(seed: u64, chance: u8) -> BucketSet {
    let random = |bucket: u16| {
        let mixed = (u64::from(bucket) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 56
    };
    Bucket::all().filter(|bucket| random(bucket.get()) < u64::from(chance)).collect()
}

/// What the host serves in every slot.
pub(super) fn slots() -> impl Strategy<Value = Box<[SlotState; SLOTS]>> {
    let chance = || select(&[0_u8, 64, 128, 255][..]);
    let slot = (any::<u64>(), chance(), chance()).prop_map(|(seed, serving, tainted)| SlotState {
        serving: buckets(seed, serving),
        tainted: buckets(!seed, tainted),
    });
    proptest::collection::vec(slot, SLOTS)
        .prop_map(|slots| Box::new(slots.try_into().expect("as many as there are slots")))
}

/// Mostly a host that takes part.
fn state() -> impl Strategy<Value = HostState> {
    prop_oneof![
        8 => Just(HostState::Active),
        1 => Just(HostState::Stopped),
        1 => Just(HostState::Quarantined),
    ]
}

pub(super) fn policies() -> impl Strategy<Value = Policy> {
    let own = |pair: (&str, &str)| vec![address(pair.0), address(pair.1)];
    let echo = select(&[Echo::One, Echo::One, Echo::All][..]);
    (rules(), slots(), state(), echo, any::<[bool; 2]>(), any::<[u64; 2]>()).prop_map(
        move |(rules, slots, state, echo, [track, udp_pin], [k0, k1])| {
            let mut policy = bed::policy(rules);
            policy.vips.extend(own(OTHER_VIP));
            policy.hash = nlb::key::HashKey { k0, k1 };
            Policy {
                state,
                // One of them is virtual too, and one is a peer's too: the first counts.
                own: [own(OWNS), own(OTHER_VIP)].concat(),
                peers: [own(PEERS), own(OWNS)].concat(),
                slots,
                echo,
                track,
                udp_pin,
                ..policy
            }
        },
    )
}
