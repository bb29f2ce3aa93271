//! Nothing that comes from the network makes the decision panic, and what it says of garbage is
//! consistent.

use proptest::prelude::*;

use super::cluster::*;
use super::frames::{Fragment, Spec};
use crate::filter::{Echo, HostState, Memory, Policy, Reason, decide};
use crate::rules::Affinity;

fn any_policy() -> impl Strategy<Value = Policy> {
    let state = prop_oneof![
        Just(HostState::Active),
        Just(HostState::Stopped),
        Just(HostState::Quarantined)
    ];
    let start = prop_oneof![
        Just(alone()),
        Just(idle()),
        Just(tainted(alone())),
        Just(cluster(Affinity::NETWORK, 3).remove(1)),
    ];
    (start, state, any::<[bool; 3]>()).prop_map(|(start, state, [track, udp_pin, all])| Policy {
        state,
        track,
        udp_pin,
        echo: if all { Echo::All } else { Echo::One },
        ..start
    })
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let make = prop_oneof![
        Just(syn as fn(bool, u16) -> Spec),
        Just(ack as fn(bool, u16) -> Spec),
        Just(udp as fn(bool, u16) -> Spec),
        Just((|ipv6, _| ping(ipv6)) as fn(bool, u16) -> Spec),
        Just((|ipv6, _| gre(ipv6)) as fn(bool, u16) -> Spec),
        Just((|ipv6, port| ack(ipv6, port).error(client(ipv6))) as fn(bool, u16) -> Spec),
    ];
    let port = prop_oneof![Just(SHARED), Just(SINGLE), Just(BLOCKED), any::<u16>()];
    let fragment = prop::option::weighted(0.3, (0u32..4, 0u16..3, any::<bool>()));
    let extensions = prop::collection::vec(prop_oneof![Just(0), Just(43), Just(60)], 0..6);
    let tag = prop_oneof![3 => Just(None), 1 => Just(Some(0x8100)), 1 => Just(Some(0x88a8))];
    let changes = prop::collection::vec((0usize..200, any::<u8>()), 0..4);
    (any::<bool>(), make, port, fragment, extensions, tag, changes, 0usize..300).prop_map(
        |(ipv6, make, port, fragment, extensions, tag, changes, len)| {
            let fragment = fragment.map(|(id, offset, more)| Fragment { id, offset, more });
            let mut frame = Spec { fragment, extensions, tag, ..make(ipv6, port) }.build();
            for (place, byte) in changes {
                if let Some(found) = frame.get_mut(place) {
                    *found = byte;
                }
            }
            frame.truncate(len);
            frame
        },
    )
}

/// A frame may come to any host: no panic, and the promises of a decision hold.
fn check(frame: &[u8], policy: &Policy, memory: &mut Memory) -> Result<Reason, TestCaseError> {
    let decision = decide(frame, policy, memory);
    let to_cluster = frame.get(..6) == Some(&policy.cluster_mac);
    prop_assert_eq!(decision.to_own_mac, to_cluster && decision.reason.claims());
    Ok(decision.reason)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn mutated_frames_do_not_panic(
        frames in prop::collection::vec(any_frame(), 1..8),
        policy in any_policy(),
    ) {
        let mut memory = Memory::default();
        for frame in frames {
            check(&frame, &policy, &mut memory)?;
            prop_assert!(memory.pins.len() <= 16 && memory.fragments.len() <= 8);
        }
    }

    #[test]
    fn random_bytes_do_not_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        policy in any_policy(),
        ether_type in prop_oneof![Just(0x0800u16), Just(0x86dd), Just(0x8100), any::<u16>()],
    ) {
        let mut frame = bytes;
        if let Some(place) = frame.get_mut(12..14) {
            place.copy_from_slice(&ether_type.to_be_bytes());
        }
        check(&frame, &policy, &mut Memory::default())?;
    }

    /// What follows the headers must not count.
    #[test]
    fn bytes_behind_the_headers_change_nothing(frame in any_frame(), policy in any_policy()) {
        let longer = [&frame[..], &[0xa5; 64]].concat();
        let reason = check(&frame, &policy, &mut Memory::default())?;
        let again = check(&longer, &policy, &mut Memory::default())?;
        // Of these a header, or a quote, may have been cut.
        if !matches!(reason, Reason::Malformed | Reason::UnmanagedProto) {
            prop_assert_eq!(again, reason);
        }
    }
}
