//! What becomes of a packet on this host: the filter's own decision, made once more by its plain
//! twin over what the kernel and the filter remember now. Nothing is changed by asking.

use std::net::IpAddr;

use ::nlb::buckets::Bucket;
use ::nlb::filter::{Memory, Policy, Socket, decide};
use ::nlb::hash;
use ::nlb::rules::{Choice, Rule, Rules, Scope};
use ::nlb::tuple::{PPTP, Tuple};
use forwarding::wire::{ethernet, protocol, tcp};

use super::{Refused, Scene};
use crate::control::nlb::views::FilterView;
use crate::control::nlb::{FilterQuestion, FlowProtocol, TcpFlag};
use crate::node::flows;
use crate::node::host::Host;

/// Explains a packet.
pub(super) fn explain(
    host: &Host,
    question: &FilterQuestion,
    scene: &Scene<'_>,
) -> Result<FilterView, Refused> {
    let policy = host.policy();
    if question.client.is_ipv4() != question.vip.is_ipv4() {
        return Err(Refused::bad("client and virtual address are of different families"));
    }
    if !policy.vips.contains(&question.vip) {
        let vips: Vec<String> = policy.vips.iter().map(ToString::to_string).collect();
        let all = vips.join(", ");
        let message = format!("{} is no virtual address: there are {all}", question.vip);
        return Err(Refused::bad(message));
    }
    let mut memory = remembered(host, scene)?;
    let tuple = tuple(question);
    let held = match memory.sockets.contains_key(&tuple) {
        true => Some("socket"),
        false if memory.pins.contains(&tuple) => Some("pin"),
        false => None,
    };
    let decision = decide(&frame(question, policy.cluster_mac), policy, &mut memory);
    let place = place(policy, question, &tuple);
    let owner = place.and_then(|(choice, bucket)| {
        let map = host.membership.maps().nth(choice.slot.index())?;
        map.target.owner(bucket)
    });
    Ok(FilterView {
        passes: decision.passes(),
        reason: decision.reason.label().to_owned(),
        meaning: decision.reason.explanation().to_owned(),
        rule: rule(host.rules(), question).map(ToString::to_string),
        slot: place.map(|(choice, _)| choice.slot.get()),
        bucket: place.map(|(_, bucket)| bucket.get()),
        owner: owner.map(::nlb::host::HostId::get),
        serving: place.is_some_and(|(choice, bucket)| policy.serves(choice.slot, bucket)),
        tainted: place.is_some_and(|(choice, bucket)| policy.is_tainted(choice.slot, bucket)),
        held: held.map(str::to_owned),
    })
}

/// What kernel and filter remember of flows.
fn remembered(host: &Host, scene: &Scene<'_>) -> Result<Memory, Refused> {
    let vips = &host.policy().vips;
    let mut memory = Memory::default();
    let sockets = scene.held.iter().filter_map(|held| flows::tuple(held, vips));
    memory.sockets.extend(sockets.map(|tuple| (tuple, Socket::Flow)));
    let pins = host.filter.pins(scene.now).map_err(Refused::failed)?;
    memory.pins.extend(pins.into_iter().map(|pin| pin.tuple));
    memory.retired.extend(host.filter.retired().map_err(Refused::failed)?);
    Ok(memory)
}

fn number(protocol: FlowProtocol, is_ipv4: bool) -> u8 {
    match (protocol, is_ipv4) {
        (FlowProtocol::Tcp, _) => protocol::TCP,
        (FlowProtocol::Udp, _) => protocol::UDP,
        (FlowProtocol::Gre, _) => protocol::GRE,
        (FlowProtocol::Icmp, true) => protocol::ICMP,
        (FlowProtocol::Icmp, false) => protocol::ICMPV6,
    }
}

fn has_ports(protocol: FlowProtocol) -> bool {
    matches!(protocol, FlowProtocol::Tcp | FlowProtocol::Udp)
}

fn tuple(question: &FilterQuestion) -> Tuple {
    let port = |port| if has_ports(question.protocol) { port } else { 0 };
    Tuple {
        protocol: number(question.protocol, question.vip.is_ipv4()),
        client: question.client,
        client_port: port(question.client_port),
        vip: question.vip,
        vip_port: port(question.port),
    }
}

fn place(policy: &Policy, question: &FilterQuestion, tuple: &Tuple) -> Option<(Choice, Bucket)> {
    match question.protocol {
        FlowProtocol::Icmp => {
            let Choice { group, affinity, .. } = Choice::ECHO;
            Some((Choice::ECHO, hash::bucket(policy.hash, group, affinity, tuple)))
        }
        _ => policy.place(tuple),
    }
}

/// The rule that covers the packet; of GRE that of its control connection.
fn rule<'a>(rules: &'a Rules, question: &FilterQuestion) -> Option<&'a Rule> {
    let (wanted, port) = match question.protocol {
        FlowProtocol::Tcp => (protocol::TCP, question.port),
        FlowProtocol::Udp => (protocol::UDP, question.port),
        FlowProtocol::Gre => (protocol::TCP, PPTP),
        FlowProtocol::Icmp => return None,
    };
    let entry = [Scope::Vip(question.vip), Scope::All].into_iter().find_map(|scope| {
        rules.entries().iter().find(|entry| {
            entry.scope == scope
                && entry.protocol == wanted
                && (entry.first_port..=entry.last_port).contains(&port)
        })
    })?;
    rules.rules().get(entry.rule)
}

/// A frame such as the question describes; as long as the filter reads, without checksums, which it
/// does not look at.
pub(super) fn frame(question: &FilterQuestion, to: ethernet::Address) -> Vec<u8> {
    let payload = payload(question);
    let number = number(question.protocol, question.vip.is_ipv4());
    let mut frame = to.to_vec();
    frame.extend([2, 0, 0, 0, 0, 1]);
    match (question.client, question.vip) {
        (IpAddr::V4(client), IpAddr::V4(vip)) => {
            frame.extend(ethernet::IPV4.to_be_bytes());
            let length = (20 + payload.len() as u16).to_be_bytes();
            frame.extend([0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, number, 0, 0]);
            frame.extend(client.octets());
            frame.extend(vip.octets());
        }
        (client, vip) => {
            frame.extend(ethernet::IPV6.to_be_bytes());
            let length = (payload.len() as u16).to_be_bytes();
            frame.extend([0x60, 0, 0, 0, length[0], length[1], number, 64]);
            frame.extend(mapped(client));
            frame.extend(mapped(vip));
        }
    }
    frame.extend(payload);
    frame
}

fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn payload(question: &FilterQuestion) -> Vec<u8> {
    let mut ports = question.client_port.to_be_bytes().to_vec();
    ports.extend(question.port.to_be_bytes());
    match question.protocol {
        FlowProtocol::Tcp => {
            let flags = question.flags.iter().fold(0, |all, flag| all | bit(*flag));
            let flags = if flags == 0 { tcp::SYN } else { flags };
            let mut header = ports;
            header.extend([0; 8]);
            header.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
            header
        }
        FlowProtocol::Udp => [ports, vec![0, 8, 0, 0]].concat(),
        FlowProtocol::Gre => vec![0x20, 0x01, 0x88, 0x0b, 0, 0, 0, 0],
        FlowProtocol::Icmp if question.vip.is_ipv4() => vec![8, 0, 0, 0, 0, 1, 0, 1],
        FlowProtocol::Icmp => vec![128, 0, 0, 0, 0, 1, 0, 1],
    }
}

fn bit(flag: TcpFlag) -> u8 {
    match flag {
        TcpFlag::Syn => tcp::SYN,
        TcpFlag::Ack => tcp::ACK,
        TcpFlag::Fin => tcp::FIN,
        TcpFlag::Rst => tcp::RST,
    }
}

#[cfg(test)]
mod tests {
    use ::nlb::filter::{HostState, Reason};
    use ::nlb::key::HashKey;

    use super::*;

    /// The frame must be what the filter reads as the packet that was asked about.
    #[test]
    fn frames_are_read_as_the_packets_that_were_asked_about() {
        use FlowProtocol::{Gre, Icmp, Tcp, Udp};
        for (client, vip) in [("203.0.113.7", "192.0.2.10"), ("2001:db8::7", "2001:db8:1::10")] {
            let (client, vip): (IpAddr, IpAddr) = (client.parse().unwrap(), vip.parse().unwrap());
            let key = HashKey { k0: 1, k1: 2 };
            let mac = [2, 0xbf, 192, 0, 2, 10];
            let mut policy = Policy::new([2; 6], mac, vip, Rules::none(), key);
            policy.state = HostState::Active;
            for (protocol, port, flags, without, with) in [
                (Tcp, 80, vec![], Reason::NotOwner, Reason::DefaultHost),
                (Tcp, 80, vec![TcpFlag::Ack], Reason::NotOwner, Reason::DefaultHost),
                (Udp, 53, vec![], Reason::NotOwner, Reason::DefaultHost),
                (Udp, 2504, vec![], Reason::ControlConsumed, Reason::ControlConsumed),
                (Gre, 0, vec![], Reason::NotOwner, Reason::DefaultHost),
                (Icmp, 0, vec![], Reason::NotOwner, Reason::OwnBucket),
            ] {
                let question =
                    FilterQuestion { protocol, client, client_port: 40000, vip, port, flags };
                let frame = frame(&question, mac);
                let tuple = tuple(&question);
                let (choice, bucket) = place(&policy, &question, &tuple).unwrap();
                let mut memory = Memory::default();
                assert_eq!(decide(&frame, &policy, &mut memory).reason, without, "{question:?}");
                let mut policy = policy.clone();
                policy.slots[choice.slot.index()].serving.insert(bucket);
                assert_eq!(decide(&frame, &policy, &mut memory).reason, with, "{question:?}");
            }
            let held = FilterQuestion {
                protocol: Tcp,
                client,
                client_port: 40000,
                vip,
                port: 80,
                flags: vec![TcpFlag::Fin, TcpFlag::Ack],
            };
            let mut memory = Memory::default();
            memory.sockets.insert(tuple(&held), Socket::Flow);
            let reason = decide(&frame(&held, mac), &policy, &mut memory).reason;
            assert_eq!(reason, Reason::FlowPinned);
        }
    }
}
