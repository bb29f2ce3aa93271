//! Which buckets this host holds flows in: its TCP connections and the filter's pins, by slot.

use std::net::IpAddr;

use ::nlb::buckets::BucketSet;
use ::nlb::hash;
use ::nlb::key::HashKey;
use ::nlb::rules::{Found, Rules};
use ::nlb::slot::{SLOTS, Slot};
use ::nlb::tuple::{PPTP, Tuple};

use super::sockets::Held;

/// IP protocol numbers.
const TCP: u8 = 6;
const GRE: u8 = 47;

/// Flows of one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flows {
    /// Buckets with at least one.
    pub(super) buckets: BucketSet,
    /// How many.
    pub(super) count: u32,
}

/// The flow of a connection, if it is one of a virtual address.
pub(super) fn tuple(held: &Held, vips: &[IpAddr]) -> Option<Tuple> {
    let vip = held.local.ip();
    vips.contains(&vip).then(|| Tuple {
        protocol: TCP,
        client: held.remote.ip(),
        client_port: held.remote.port(),
        vip,
        vip_port: held.local.port(),
    })
}

/// The flows of every slot, by [`Slot::index`]. A flow that is named twice counts twice.
pub(super) fn count(
    tuples: impl IntoIterator<Item = Tuple>,
    rules: &Rules,
    key: HashKey,
) -> Vec<Flows> {
    let mut slots = vec![Flows::default(); SLOTS];
    for tuple in tuples {
        let Some((slot, bucket)) = place(&tuple, rules, key) else { continue };
        let flows = &mut slots[slot.index()];
        flows.buckets.insert(bucket);
        flows.count = flows.count.saturating_add(1);
    }
    slots
}

/// Where a flow is; `None` of one that no host takes. The tunnel of a PPTP client is where its
/// control connection is.
pub(super) fn place(
    tuple: &Tuple,
    rules: &Rules,
    key: HashKey,
) -> Option<(Slot, ::nlb::buckets::Bucket)> {
    let found = match tuple.protocol {
        GRE => rules.lookup(tuple.vip, TCP, PPTP),
        protocol => rules.lookup(tuple.vip, protocol, tuple.vip_port),
    };
    let Found::Choice(choice) = found else { return None };
    Some((choice.slot, hash::bucket(key, choice.group, choice.affinity, tuple)))
}

#[cfg(test)]
mod tests {
    use ::nlb::host::HostId;
    use ::nlb::rules::{Affinity, Mode, Protocol, Rule, Scope};

    use super::*;

    #[test]
    fn connections_of_virtual_addresses_are_counted_in_the_slot_of_their_rule() {
        let vip: IpAddr = "192.0.2.10".parse().unwrap();
        let rule = |port, mode| Rule {
            scope: Scope::Vip(vip),
            protocol: Protocol::Tcp,
            first_port: port,
            last_port: port,
            mode,
        };
        let weights = vec![(HostId::new(1).unwrap(), 1)];
        let shared = Mode::Multiple { affinity: Affinity::SINGLE, weights };
        let rules = Rules::new(vec![rule(80, shared), rule(81, Mode::Disabled)]).unwrap();
        let held = |local: &str, remote: &str| Held {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
        };
        let connections = [
            held("192.0.2.10:80", "203.0.113.1:1000"),
            held("192.0.2.10:80", "203.0.113.1:1001"),
            held("192.0.2.10:80", "203.0.113.2:1000"),
            held("192.0.2.10:81", "203.0.113.2:1000"),
            held("192.0.2.10:99", "203.0.113.2:1000"),
            held("10.0.0.11:80", "203.0.113.2:1000"),
        ];
        let tuples = connections.iter().filter_map(|held| tuple(held, &[vip]));
        let slots = count(tuples, &rules, HashKey { k0: 1, k1: 2 });
        let group = Slot::of_group(0).unwrap().index();
        assert_eq!((slots[group].count, slots[group].buckets.len()), (3, 2));
        assert_eq!(slots[Slot::DEFAULT.index()].count, 1);
        assert_eq!(slots.iter().map(|flows| flows.count).sum::<u32>(), 4);
    }
}
