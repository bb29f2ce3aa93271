//! From Ethernet to the addresses of a packet: what [`nlb::filter`] reads of a frame, in its order.

use forwarding::wire::ethernet;
use netio::bpf::Register::{self, R0, R1, R2, R3, R10};
use netio::bpf::{Alu, Condition, Size, xdp};
use nlb::filter::{HEARTBEAT, Reason};

use super::Writer;
use super::stack::{
    CLOSING, CONTEXT, END, FIRST_FRAGMENT, FLOW, FRAGMENT, FRAGMENT_BITS, HEADER, NEXT, QUOTED, TO,
    To,
};
use crate::filter::layout::{FRAGMENT_KEY, IPV4, IPV6, flow, fragment};

/// A provider's tag, read like a customer's.
const QINQ: u16 = 0x88a8;

/// The protocol of what follows the headers, until the next call.
pub(super) const PROTOCOL: Register = R0;

impl Writer<'_> {
    /// From the frame to its addresses: client and virtual address are in the flow, with the family
    /// and the protocol that the IP header names; `NEXT` is what follows that header.
    pub(super) fn headers(&mut self) {
        let non_ip = self.reason(Reason::NonIp);
        let heartbeat = self.reason(Reason::HeartbeatConsumed);
        let (ipv4, ipv6) = (self.asm.label("IPv4"), self.asm.label("IPv6"));
        let addressed = self.asm.label("addressed");
        self.prologue();
        self.ethernet();
        for (ethertype, label) in
            [(ethernet::IPV4, ipv4), (ethernet::IPV6, ipv6), (HEARTBEAT, heartbeat)]
        {
            self.asm.jump_if(Condition::Equal, R1, network_order(ethertype), label);
        }
        self.asm.jump(non_ip);
        self.asm.place(ipv4);
        self.ipv4();
        self.asm.jump(addressed);
        self.asm.place(ipv6);
        self.ipv6();
        self.asm.place(addressed);
        self.asm.store(Size::Byte, R10, FLOW + flow::PROTOCOL, PROTOCOL);
    }

    /// The frame's borders, and what must hold something before it is read.
    fn prologue(&mut self) {
        let asm = &mut self.asm;
        asm.mov(CONTEXT, R1);
        asm.load(Size::Word, HEADER, CONTEXT, xdp::context::DATA);
        asm.load(Size::Word, END, CONTEXT, xdp::context::DATA_END);
        // Zeroes that the verifier does not know to be such: what it knows of a path keeps it from
        // seeing that it has been on the rest of it already.
        asm.load(Size::Word, R1, CONTEXT, xdp::context::RX_QUEUE_INDEX);
        asm.alu(Alu::Xor, R1, R1);
        for place in [FIRST_FRAGMENT, CLOSING, QUOTED] {
            asm.store(Size::Byte, R10, place, R1);
        }
        for place in (0..FRAGMENT_KEY as i16).step_by(4) {
            asm.store(Size::Word, R10, FRAGMENT + place, R1);
        }
        for place in [FLOW + flow::CLIENT_PORT, FLOW + flow::PROTOCOL] {
            asm.store(Size::Word, R10, place, R1);
        }
        asm.store(Size::Half, R10, FRAGMENT_BITS, R1);
    }

    /// Leaves at `TO` whom the frame was sent to, the Ethernet type in `r1` in network order, and
    /// `HEADER` behind the Ethernet header and a tag.
    fn ethernet(&mut self) {
        let malformed = self.reason(Reason::Malformed);
        let asm = &mut self.asm;
        let (known, cluster) = (asm.label("known whom to"), asm.label("to the cluster"));
        let (group, other) = (asm.label("to a group"), asm.label("not to the cluster"));
        let (tag, untagged) = (asm.label("tag"), asm.label("untagged"));
        asm.bound(HEADER, 14, END, R3, malformed);
        asm.load(Size::Word, R1, HEADER, 0);
        asm.load(Size::Half, R2, HEADER, 4);
        let [a, b, c, d, e, f] = self.settings.cluster_mac;
        asm.jump_if32(Condition::NotEqual, R1, i32::from_ne_bytes([a, b, c, d]), other);
        let rest = i32::from(u16::from_ne_bytes([e, f]));
        asm.jump_if(Condition::Equal, R2, rest, cluster);
        asm.place(other);
        asm.jump_if(Condition::AnyBitSet, R1, 1, group);
        for (label, to) in
            [(None, To::Host), (Some(group), To::Group), (Some(cluster), To::Cluster)]
        {
            if let Some(label) = label {
                asm.place(label);
            }
            asm.store(Size::Byte, R10, TO, to as i32);
            asm.jump(known);
        }
        asm.place(known);
        asm.load(Size::Half, R1, HEADER, 12);
        asm.alu(Alu::Add, HEADER, 14);
        for kind in [ethernet::VLAN, QINQ] {
            asm.jump_if(Condition::Equal, R1, network_order(kind), tag);
        }
        asm.jump(untagged);
        asm.place(tag);
        asm.bound(HEADER, 4, END, R3, malformed);
        asm.load(Size::Half, R1, HEADER, 2);
        asm.alu(Alu::Add, HEADER, 4);
        asm.place(untagged);
    }

    fn ipv4(&mut self) {
        let malformed = self.reason(Reason::Malformed);
        self.ipv4_header(malformed);
        let asm = &mut self.asm;
        for (place, from) in [(flow::CLIENT, 12), (flow::VIP, 16)] {
            asm.copy_to_stack(FLOW + place, HEADER, from, 4, R2);
            asm.store(Size::Word, R10, FLOW + place + 4, 0);
            asm.store(Size::Double, R10, FLOW + place + 8, 0);
        }
        asm.store(Size::Byte, R10, FLOW + flow::FAMILY, i32::from(IPV4));
        asm.load(Size::Half, R1, HEADER, 6);
        asm.store(Size::Half, R10, FRAGMENT_BITS, R1);
        asm.load(Size::Half, R1, HEADER, 4);
        asm.store(Size::Half, R10, FRAGMENT + fragment::ID + 2, R1);
    }

    fn ipv6(&mut self) {
        let malformed = self.reason(Reason::Malformed);
        self.ipv6_header(malformed);
        let asm = &mut self.asm;
        asm.copy_to_stack(FLOW + flow::CLIENT, HEADER, 8, 32, R2);
        asm.store(Size::Byte, R10, FLOW + flow::FAMILY, i32::from(IPV6));
    }

    /// `NEXT` behind the IPv4 header at `HEADER`, `PROTOCOL` its protocol. What is none goes to
    /// `otherwise`.
    pub(super) fn ipv4_header(&mut self, otherwise: netio::bpf::Label) {
        let asm = &mut self.asm;
        asm.bound(HEADER, 20, END, R3, otherwise);
        asm.load(Size::Byte, R1, HEADER, 0);
        asm.mov(R2, R1);
        asm.alu(Alu::ShiftRight, R2, 4);
        asm.jump_if(Condition::NotEqual, R2, 4, otherwise);
        asm.alu(Alu::And, R1, 0x0f);
        asm.alu(Alu::ShiftLeft, R1, 2);
        asm.jump_if(Condition::Less, R1, 20, otherwise);
        asm.mov(NEXT, HEADER);
        asm.alu(Alu::Add, NEXT, R1);
        asm.load(Size::Byte, PROTOCOL, HEADER, 9);
    }

    /// As [`ipv4_header`](Self::ipv4_header), of IPv6.
    pub(super) fn ipv6_header(&mut self, otherwise: netio::bpf::Label) {
        let asm = &mut self.asm;
        asm.bound(HEADER, 40, END, R3, otherwise);
        asm.load(Size::Byte, R1, HEADER, 0);
        asm.alu(Alu::ShiftRight, R1, 4);
        asm.jump_if(Condition::NotEqual, R1, 6, otherwise);
        asm.mov(NEXT, HEADER);
        asm.alu(Alu::Add, NEXT, 40);
        asm.load(Size::Byte, PROTOCOL, HEADER, 6);
    }
}

/// The constant that two bytes of a packet are compared with.
pub(super) fn network_order(value: u16) -> i32 {
    i32::from(value.to_be())
}
