//! The hosts of a cluster of `mode = "nlb"`, made from the configuration file alone: all of them are
//! there, agreed, and at the beginning of time, so no host holds flows of another's buckets.
//!
//! Knows the file, and the file with the cluster's key that it names. Must not know the machine: which
//! host this one is does not matter here.

use std::net::IpAddr;

use ::nlb::filter::{Decision, Echo, HostState, Memory, Policy, SlotState, decide};
use ::nlb::host::HostId;
use ::nlb::map::Member;
use ::nlb::slot::SLOTS;

use super::NoWorld;
use crate::config::Config;
use crate::node;

/// What a host remembers of flows, in entries of each kind; then it begins anew.
const MOST_REMEMBERED: usize = 1 << 18;

/// See the module.
pub struct Cluster {
    hosts: Vec<Host>,
    mac: [u8; 6],
}

/// One host.
struct Host {
    id: HostId,
    address: Option<IpAddr>,
    policy: Policy,
    memory: Memory,
}

/// A host of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterHost {
    /// Its id.
    pub id: HostId,
    /// Its first address.
    pub address: Option<IpAddr>,
}

impl Cluster {
    /// All hosts of the file.
    ///
    /// # Errors
    /// When there is no key, or what a node would refuse when it starts.
    pub fn from_config(config: &Config) -> Result<Cluster, NoWorld> {
        let refuse = |error: &dyn std::fmt::Display| NoWorld(error.to_string());
        let nlb = &config.nlb;
        let key = node::secret(nlb).map_err(|error| refuse(&format!("{error:#}")))?;
        let rules = node::plan::rules(config).map_err(|error| refuse(&error))?;
        let vips = node::plan::vips(config);
        let primary = nlb.primary.ok_or_else(|| refuse(&"there is no virtual address"))?;
        let mac = nlb.delivery.cluster_mac(primary);
        let ids: Vec<HostId> = (1..=nlb.hosts.len())
            .filter_map(|id| HostId::new(u8::try_from(id).ok()?).ok())
            .collect();
        let mut slots: Vec<Box<[SlotState; SLOTS]>> =
            ids.iter().map(|_| Box::new(std::array::from_fn(|_| SlotState::default()))).collect();
        for slot in rules.slots() {
            let declared = rules.members(slot);
            let number = |id: HostId| match declared {
                None => 1,
                Some(members) => members.iter().find(|it| it.0 == id).map_or(0, |it| it.1),
            };
            let members: Vec<Member> = ids.iter().map(|&id| (id, number(id))).collect();
            let target = rules.target(key.map(), slot, &members);
            for (id, slots) in ids.iter().zip(&mut slots) {
                slots[slot.index()].serving = target.of(*id);
            }
        }
        let hosts = ids.iter().zip(slots).zip(&nlb.hosts).map(|((&id, slots), own)| {
            let own_mac = [2, 0, 0, 0, 1, id.get()];
            let mut policy = Policy::new(own_mac, mac, primary, rules.clone(), key.hash());
            let others = nlb.hosts.iter().flatten().filter(|address| !own.contains(address));
            policy.state = HostState::Active;
            policy.vips.clone_from(&vips);
            policy.own.clone_from(own);
            policy.peers = others.copied().collect();
            policy.echo = if nlb.echo_by_all { Echo::All } else { Echo::One };
            policy.track = nlb.track;
            policy.udp_pin = !nlb.udp_pin.is_zero();
            policy.slots = slots;
            Host { id, address: own.first().copied(), policy, memory: Memory::default() }
        });
        Ok(Cluster { hosts: hosts.collect(), mac })
    }

    /// The MAC address that all hosts receive.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The hosts, in the order of their ids.
    pub fn hosts(&self) -> impl Iterator<Item = ClusterHost> + '_ {
        self.hosts.iter().map(|host| ClusterHost { id: host.id, address: host.address })
    }

    /// What each host does with a frame, in the order of their ids.
    pub fn decide<'a>(
        &'a mut self,
        frame: &'a [u8],
    ) -> impl Iterator<Item = (ClusterHost, Decision)> + 'a {
        self.hosts.iter_mut().map(move |host| {
            let Memory { pins, retired, fragments, .. } = &host.memory;
            if pins.len().max(retired.len()).max(fragments.len()) > MOST_REMEMBERED {
                host.memory = Memory::default();
            }
            let decision = decide(frame, &host.policy, &mut host.memory);
            (ClusterHost { id: host.id, address: host.address }, decision)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        mode = "nlb"
        interfaces = ["eth0"]
        [nlb]
        key = "0123456789abcdef"
        [[service]]
        listen = "192.0.2.10:80/tcp"
            [[service.server]]
            address = "10.0.0.11"
            weight = 50
            [[service.server]]
            address = "10.0.0.12"
            weight = 50
            [[service.server]]
            address = "10.0.0.13"
            weight = 0
    "#;

    fn syn(port: u16) -> Vec<u8> {
        let mut frame = Vec::new();
        etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([198, 51, 100, 7], [192, 0, 2, 10], 64)
            .tcp(port, 80, 1, 1000)
            .syn()
            .write(&mut frame, &[])
            .unwrap();
        frame
    }

    #[test]
    fn every_packet_is_one_hosts_and_weights_count() {
        let config = crate::config::parse(FILE, "test.toml").unwrap();
        let mut cluster = Cluster::from_config(&config).unwrap();
        assert_eq!(cluster.hosts().count(), 3);
        let mut taken = [0; 3];
        for port in 1..2000 {
            let frame = syn(port);
            let takers: Vec<u8> = cluster
                .decide(&frame)
                .filter(|(_, decision)| decision.passes())
                .map(|(host, _)| host.id.get())
                .collect();
            let [taker] = takers[..] else { panic!("port {port} is taken by {takers:?}") };
            taken[usize::from(taker) - 1] += 1;
        }
        assert_eq!(taken[2], 0, "weight 0");
        assert!(taken[0] > 800 && taken[1] > 800, "{taken:?}");
    }
}
