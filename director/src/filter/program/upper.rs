//! What an IP packet carries: extension headers are stepped over, and fragments known by their key.

use forwarding::wire::protocol;
use netio::bpf::Register::{R1, R3, R10};
use netio::bpf::{Alu, Condition, Label, Size, xdp};
use nlb::filter::{MAX_EXTENSIONS, Reason};

use super::Writer;
use super::headers::{PROTOCOL, network_order};
use super::stack::{CONTEXT, END, FIRST_FRAGMENT, FLOW, FRAGMENT, FRAGMENT_BITS, NEXT};
use crate::filter::layout::{IPV6, flow, fragment};

/// Fragment bits of IPv4: whether it is not the first; whether it is not the last.
const LATER_IPV4: u16 = 0x1fff;
const MORE_IPV4: u16 = 0x2000;
/// And of IPv6.
const LATER_IPV6: u16 = 0xfff8;
const MORE_IPV6: u16 = 0x0001;

/// More than all headers together may have, and all bits: 18 of Ethernet, 40 of IPv6, four extension
/// headers of 2048.
const FARTHEST: i32 = 0x3fff;

/// Headers with their length in the second byte.
const OPTIONS: [u8; 3] = [protocol::HOP_BY_HOP, protocol::ROUTING, protocol::DESTINATION_OPTIONS];

impl Writer<'_> {
    /// Leaves in `PROTOCOL` and the flow what the packet carries, and `NEXT` there. A later fragment
    /// goes to `later`; of a first one `FIRST_FRAGMENT` is 1. The key is complete for both.
    pub(super) fn upper(&mut self, later: Label) {
        let asm = &mut self.asm;
        let (ipv6, read) = (asm.label("IPv6 extensions"), asm.label("headers read"));
        let later_here = asm.label("a later fragment");
        asm.load(Size::Byte, PROTOCOL, R10, FLOW + flow::PROTOCOL);
        asm.load(Size::Byte, R1, R10, FLOW + flow::FAMILY);
        asm.jump_if(Condition::Equal, R1, i32::from(IPV6), ipv6);
        asm.store(Size::Byte, R10, FRAGMENT + fragment::PROTOCOL, PROTOCOL);
        asm.load(Size::Half, R1, R10, FRAGMENT_BITS);
        asm.jump_if(Condition::AnyBitSet, R1, network_order(LATER_IPV4), later_here);
        asm.alu(Alu::And, R1, network_order(MORE_IPV4));
        asm.jump_if(Condition::Equal, R1, 0, read);
        asm.store(Size::Byte, R10, FIRST_FRAGMENT, 1);
        asm.jump(read);
        asm.place(ipv6);
        self.extensions(read, later_here);
        self.asm.place(later_here);
        self.fragment_key();
        self.asm.jump(later);
        self.asm.place(read);
        self.first_fragment();
    }

    /// Steps over extension headers, as far as to a later fragment.
    fn extensions(&mut self, read: Label, later: Label) {
        for _ in 0..MAX_EXTENSIONS {
            self.extension(read, later);
        }
        let malformed = self.reason(Reason::Malformed);
        for kind in OPTIONS.into_iter().chain([protocol::FRAGMENT]) {
            self.asm.jump_if(Condition::Equal, PROTOCOL, i32::from(kind), malformed);
        }
        self.asm.jump(read);
    }

    /// Steps over one extension header at `NEXT`; if there is none, goes on at `read`.
    fn extension(&mut self, read: Label, later: Label) {
        let malformed = self.reason(Reason::Malformed);
        let asm = &mut self.asm;
        let (options, part) = (asm.label("options"), asm.label("fragment header"));
        let behind = asm.label("behind the extension header");
        for kind in OPTIONS {
            asm.jump_if(Condition::Equal, PROTOCOL, i32::from(kind), options);
        }
        asm.jump_if(Condition::Equal, PROTOCOL, i32::from(protocol::FRAGMENT), part);
        asm.jump(read);

        asm.place(options);
        asm.bound(NEXT, 8, END, R3, malformed);
        asm.load(Size::Byte, PROTOCOL, NEXT, 0);
        asm.load(Size::Byte, R1, NEXT, 1);
        asm.alu(Alu::ShiftLeft, R1, 3);
        asm.alu(Alu::Add, R1, 8);
        asm.alu(Alu::Add, NEXT, R1);
        asm.jump(behind);

        asm.place(part);
        asm.bound(NEXT, 8, END, R3, malformed);
        asm.load(Size::Byte, PROTOCOL, NEXT, 0);
        asm.load(Size::Word, R1, NEXT, 4);
        asm.store(Size::Word, R10, FRAGMENT + fragment::ID, R1);
        asm.load(Size::Half, R1, NEXT, 2);
        asm.alu(Alu::Add, NEXT, 8);
        asm.store(Size::Byte, R10, FIRST_FRAGMENT, 0);
        asm.jump_if(Condition::AnyBitSet, R1, network_order(LATER_IPV6), later);
        asm.alu(Alu::And, R1, network_order(MORE_IPV6));
        asm.jump_if(Condition::Equal, R1, 0, behind);
        asm.store(Size::Byte, R10, FIRST_FRAGMENT, 1);
        asm.place(behind);
    }

    /// Of a first fragment that others will follow, completes the key.
    fn first_fragment(&mut self) {
        let asm = &mut self.asm;
        let (whole, noted) = (asm.label("whole packet"), asm.label("will be noted"));
        asm.load(Size::Byte, R1, R10, FIRST_FRAGMENT);
        asm.jump_if(Condition::Equal, R1, 0, whole);
        self.jump_if_followed(noted);
        self.asm.store(Size::Byte, R10, FIRST_FRAGMENT, 0);
        self.asm.jump(whole);
        self.asm.place(noted);
        self.fragment_key();
        self.asm.place(whole);
        self.asm.store(Size::Byte, R10, FLOW + flow::PROTOCOL, PROTOCOL);
        self.one_way();
    }

    /// However `NEXT` has come about, from here on it is the beginning of the frame and a number:
    /// the verifier goes on from here once, not once for every chain of extension headers.
    fn one_way(&mut self) {
        let asm = &mut self.asm;
        asm.load(Size::Word, R1, CONTEXT, xdp::context::DATA);
        asm.alu(Alu::Sub, NEXT, R1);
        asm.alu(Alu::And, NEXT, FARTHEST);
        asm.alu(Alu::Add, R1, NEXT);
        asm.mov(NEXT, R1);
    }

    /// Goes to `followed` if later fragments of `PROTOCOL` need the first one to know where they
    /// belong. `r1` is lost.
    pub(super) fn jump_if_followed(&mut self, followed: Label) {
        let asm = &mut self.asm;
        let (ipv6, not) = (asm.label("IPv6 fragment"), asm.label("not followed"));
        for kind in [protocol::TCP, protocol::UDP] {
            asm.jump_if(Condition::Equal, PROTOCOL, i32::from(kind), followed);
        }
        asm.load(Size::Byte, R1, R10, FLOW + flow::FAMILY);
        asm.jump_if(Condition::Equal, R1, i32::from(IPV6), ipv6);
        asm.jump_if(Condition::Equal, PROTOCOL, i32::from(protocol::ICMP), followed);
        asm.jump(not);
        asm.place(ipv6);
        // Behind the fragment header destination options may come before the transport.
        for kind in [protocol::ICMPV6, protocol::DESTINATION_OPTIONS] {
            asm.jump_if(Condition::Equal, PROTOCOL, i32::from(kind), followed);
        }
        asm.place(not);
    }

    /// Puts the addresses into the key of the fragmented packet. Its other fields are there.
    fn fragment_key(&mut self) {
        let asm = &mut self.asm;
        for (place, from) in [(fragment::SOURCE, flow::CLIENT), (fragment::DESTINATION, flow::VIP)]
        {
            asm.copy_to_stack(FRAGMENT + place, R10, FLOW + from, 16, R1);
        }
        asm.load(Size::Byte, R1, R10, FLOW + flow::FAMILY);
        asm.store(Size::Byte, R10, FRAGMENT + fragment::FAMILY, R1);
    }
}
