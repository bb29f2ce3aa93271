//! What kind of packet is on its way to a virtual address, and of which flow.

use forwarding::wire::icmp::{v4, v6};
use forwarding::wire::{protocol, tcp};
use netio::bpf::Register::{R1, R2, R3, R10};
use netio::bpf::{Alu, Condition, Label, Size};
use nlb::filter::{CONTROL_PORT, Reason};

use super::Writer;
use super::headers::{PROTOCOL, network_order};
use super::stack::{CLOSING, END, FLOW, HEADER, KIND, Kind, NEXT, QUOTED, VIP};
use crate::filter::layout::{IPV4, flow};

/// ICMP and ICMPv6 types of echo requests.
const ECHO_IPV4: i32 = 8;
const ECHO_IPV6: i32 = 128;
/// ICMPv6 types of neighbour discovery, router solicitation to redirect.
const DISCOVERY: [i32; 2] = [133, 137];
/// Types that quote the packet they are an error about.
const ERRORS_IPV4: &[u8] =
    &[v4::UNREACHABLE, v4::SOURCE_QUENCH, v4::TIME_EXCEEDED, v4::PARAMETER_PROBLEM];
const ERRORS_IPV6: &[u8] =
    &[v6::UNREACHABLE, v6::TOO_BIG, v6::TIME_EXCEEDED, v6::PARAMETER_PROBLEM];

impl Writer<'_> {
    /// From the packet at `NEXT`, and `PROTOCOL`, to the kind at `KIND` and the flow. What is not
    /// balanced ends here; what is too short for its protocol too.
    pub(super) fn classify(&mut self, later: Label, classified: Label) {
        let asm = &mut self.asm;
        let (tcp, udp) = (asm.label("TCP"), asm.label("UDP"));
        let (gre, message) = (asm.label("GRE"), asm.label("ICMP"));
        for (number, label) in [
            (protocol::TCP, tcp),
            (protocol::UDP, udp),
            (protocol::GRE, gre),
            (protocol::ICMP, message),
            (protocol::ICMPV6, message),
        ] {
            asm.jump_if(Condition::Equal, PROTOCOL, i32::from(number), label);
        }
        self.end(Reason::UnmanagedProto);

        self.asm.place(tcp);
        self.segment(classified);
        self.asm.place(udp);
        self.ports(8);
        self.control();
        self.kind(Kind::Datagram, classified);
        self.asm.place(message);
        self.message(classified);
        self.asm.place(later);
        self.later(gre, classified);
        self.asm.place(gre);
        self.kind(Kind::Tunnel, classified);
    }

    fn kind(&mut self, kind: Kind, then: Label) {
        self.asm.store(Size::Byte, R10, KIND, kind as i32);
        self.asm.jump(then);
    }

    /// Ports of a transport whose header has `length` bytes.
    fn ports(&mut self, length: i32) {
        let malformed = self.reason(Reason::Malformed);
        self.asm.bound(NEXT, length, END, R3, malformed);
        self.asm.copy_to_stack(FLOW + flow::CLIENT_PORT, NEXT, 0, 4, R1);
    }

    fn segment(&mut self, classified: Label) {
        self.ports(20);
        let asm = &mut self.asm;
        let begins = asm.label("begins");
        asm.load(Size::Byte, R1, NEXT, 13);
        asm.mov(R2, R1);
        asm.alu(Alu::And, R2, i32::from(tcp::FIN | tcp::RST));
        asm.store(Size::Byte, R10, CLOSING, R2);
        asm.alu(Alu::And, R1, i32::from(tcp::SYN | tcp::ACK));
        asm.jump_if(Condition::Equal, R1, i32::from(tcp::SYN), begins);
        self.kind(Kind::Segment, classified);
        self.asm.place(begins);
        self.kind(Kind::Syn, classified);
    }

    /// Remote commands are for every host.
    fn control(&mut self) {
        let command = self.reason(Reason::ControlConsumed);
        let asm = &mut self.asm;
        let other = asm.label("not a command");
        asm.load(Size::Half, R1, R10, FLOW + flow::VIP_PORT);
        asm.jump_if(Condition::NotEqual, R1, network_order(CONTROL_PORT), other);
        asm.load(Size::Word, R1, R10, VIP);
        asm.jump_if(Condition::Equal, R1, self.settings.primary as i32, command);
        asm.place(other);
    }

    /// A later fragment, which may tell where it belongs.
    fn later(&mut self, gre: Label, classified: Label) {
        let followed = self.asm.label("follows");
        self.jump_if_followed(followed);
        self.asm.store(Size::Byte, R10, FLOW + flow::PROTOCOL, PROTOCOL);
        self.asm.jump_if(Condition::Equal, PROTOCOL, i32::from(protocol::GRE), gre);
        self.end(Reason::UnmanagedProto);
        self.asm.place(followed);
        self.kind(Kind::Fragment, classified);
    }

    fn message(&mut self, classified: Label) {
        let malformed = self.reason(Reason::Malformed);
        let unmanaged = self.reason(Reason::UnmanagedProto);
        let discovery = self.reason(Reason::NonIp);
        let asm = &mut self.asm;
        let (ipv4, ipv6) = (asm.label("ICMP of IPv4"), asm.label("ICMPv6"));
        let echo = asm.label("echo request");
        asm.load(Size::Byte, R1, R10, FLOW + flow::FAMILY);
        asm.jump_if(Condition::Equal, R1, i32::from(IPV4), ipv4);

        asm.jump_if(Condition::NotEqual, PROTOCOL, i32::from(protocol::ICMPV6), unmanaged);
        asm.bound(NEXT, 8, END, R3, malformed);
        asm.load(Size::Byte, R1, NEXT, 0);
        asm.jump_if(Condition::Equal, R1, ECHO_IPV6, echo);
        for kind in ERRORS_IPV6 {
            asm.jump_if(Condition::Equal, R1, i32::from(*kind), ipv6);
        }
        let [first, last] = DISCOVERY;
        asm.jump_if(Condition::Less, R1, first, unmanaged);
        asm.jump_if(Condition::LessOrEqual, R1, last, discovery);
        asm.jump(unmanaged);

        asm.place(ipv4);
        asm.jump_if(Condition::NotEqual, PROTOCOL, i32::from(protocol::ICMP), unmanaged);
        asm.bound(NEXT, 8, END, R3, malformed);
        asm.load(Size::Byte, R1, NEXT, 0);
        asm.jump_if(Condition::Equal, R1, ECHO_IPV4, echo);
        let quote = asm.label("IPv4 quote");
        for kind in ERRORS_IPV4 {
            asm.jump_if(Condition::Equal, R1, i32::from(*kind), quote);
        }
        asm.jump(unmanaged);
        asm.place(echo);
        self.kind(Kind::Echo, classified);

        let quoted = self.asm.label("quoted flow");
        self.asm.place(quote);
        self.quote_of_ipv4(unmanaged);
        self.asm.jump(quoted);
        self.asm.place(ipv6);
        self.quote_of_ipv6(unmanaged);
        self.asm.place(quoted);
        self.quoted_ports(unmanaged, classified);
    }

    /// The packet that an error quotes: one that this side has sent. Its destination is the client.
    fn quote_of_ipv4(&mut self, unmanaged: Label) {
        self.step_into_quote();
        self.ipv4_header(unmanaged);
        let asm = &mut self.asm;
        asm.load(Size::Half, R1, HEADER, 6);
        asm.jump_if(Condition::AnyBitSet, R1, network_order(0x1fff), unmanaged);
        asm.load(Size::Word, R1, HEADER, 12);
        asm.load(Size::Word, R2, R10, FLOW + flow::VIP);
        asm.jump_if(Condition::NotEqual, R1, R2, unmanaged);
        asm.copy_to_stack(FLOW + flow::CLIENT, HEADER, 16, 4, R1);
    }

    /// As [`quote_of_ipv4`](Self::quote_of_ipv4). Extension headers in a quote are not stepped over.
    fn quote_of_ipv6(&mut self, unmanaged: Label) {
        self.step_into_quote();
        self.ipv6_header(unmanaged);
        let asm = &mut self.asm;
        for word in (0..16).step_by(4) {
            asm.load(Size::Word, R1, HEADER, 8 + word);
            asm.load(Size::Word, R2, R10, FLOW + flow::VIP + word);
            asm.jump_if(Condition::NotEqual, R1, R2, unmanaged);
        }
        asm.copy_to_stack(FLOW + flow::CLIENT, HEADER, 24, 16, R1);
    }

    fn step_into_quote(&mut self) {
        self.asm.mov(HEADER, NEXT);
        self.asm.alu(Alu::Add, HEADER, 8);
    }

    fn quoted_ports(&mut self, unmanaged: Label, classified: Label) {
        let asm = &mut self.asm;
        let known = asm.label("quoted transport");
        asm.store(Size::Byte, R10, KIND, Kind::Segment as i32);
        asm.jump_if(Condition::Equal, PROTOCOL, i32::from(protocol::TCP), known);
        asm.jump_if(Condition::NotEqual, PROTOCOL, i32::from(protocol::UDP), unmanaged);
        asm.store(Size::Byte, R10, KIND, Kind::Datagram as i32);
        asm.place(known);
        asm.bound(NEXT, 8, END, R3, unmanaged);
        asm.store(Size::Byte, R10, QUOTED, 1);
        asm.store(Size::Byte, R10, FLOW + flow::PROTOCOL, PROTOCOL);
        for (place, from) in [(flow::VIP_PORT, 0), (flow::CLIENT_PORT, 2)] {
            asm.load(Size::Half, R1, NEXT, from);
            asm.store(Size::Half, R10, FLOW + place, R1);
        }
        asm.jump(classified);
    }
}
