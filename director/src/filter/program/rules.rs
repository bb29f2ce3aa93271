//! From a flow to its slot by the port rules, and to its bucket by the hash.

use netio::bpf::Register::{R0, R1, R2, R3, R4, R5, R10};
use netio::bpf::{Alu, Condition, Label, Size};
use nlb::buckets::BUCKETS;
use nlb::filter::Reason;
use nlb::slot::Slot;
use nlb::tuple::PPTP;

use super::stack::{FLOW, INDEX, KIND, Kind, PORT, SERVING, SLOT, TAINTED, VIP, WORDS};
use super::{Shape, Writer};
use crate::filter::layout::{BLOCKED, IPV6, RANGE, flow, range, slot};
use crate::filter::siphash::siphash;

const TCP: i32 = forwarding::wire::protocol::TCP as i32;

impl Writer<'_> {
    /// Leaves the number of the slot at `INDEX`; a port of a disabled rule ends here.
    ///
    /// ```text
    ///   port of this address --> ranges, those of one address first --> port of all --> default
    /// ```
    ///
    /// What no rule has is not looked for.
    pub(super) fn rules(&mut self) {
        let blocked = self.reason(Reason::RuleBlocked);
        let asm = &mut self.asm;
        let (found, chosen) = (asm.label("rule found"), asm.label("slot chosen"));
        let (tunnel, key) = (asm.label("port of a tunnel"), asm.label("port key"));
        asm.load(Size::Byte, R1, R10, KIND);
        asm.jump_if(Condition::Equal, R1, Kind::Tunnel as i32, tunnel);
        asm.load(Size::Byte, R1, R10, FLOW + flow::PROTOCOL);
        asm.load(Size::Half, R2, R10, FLOW + flow::VIP_PORT);
        asm.jump(key);
        asm.place(tunnel);
        asm.mov(R1, TCP);
        asm.mov(R2, i32::from(PPTP.to_be()));
        asm.place(key);
        asm.load(Size::Word, R3, R10, VIP);
        asm.store(Size::Word, R10, PORT, R3);
        asm.store(Size::Half, R10, PORT + 4, R2);
        asm.store(Size::Byte, R10, PORT + 6, R1);
        asm.store(Size::Byte, R10, PORT + 7, 0);
        let Shape { ports_of_one, ports_of_all, ranges } = self.settings.rules;
        if ports_of_one {
            asm.lookup(&self.tables.ports, PORT);
            asm.jump_if(Condition::NotEqual, R0, 0, found);
        }
        if ranges > 0 {
            self.ranges(ranges, chosen);
        }
        let asm = &mut self.asm;
        if ports_of_all {
            asm.store(Size::Word, R10, PORT, 0);
            asm.lookup(&self.tables.ports, PORT);
            asm.jump_if(Condition::NotEqual, R0, 0, found);
        }
        asm.mov(R1, i32::from(Slot::DEFAULT.get()));
        asm.jump(chosen);
        if ports_of_one || ports_of_all {
            asm.place(found);
            asm.load(Size::Word, R1, R0, 0);
        }
        asm.place(chosen);
        asm.jump_if(Condition::Equal, R1, BLOCKED as i32, blocked);
        asm.store(Size::Word, R10, INDEX, R1);
    }

    /// Goes to `chosen` with the slot in `r1` if one of `count` entries fits to the key at `PORT`.
    fn ranges(&mut self, count: usize, chosen: Label) {
        let asm = &mut self.asm;
        let none = asm.label("no range");
        asm.store(Size::Word, R10, INDEX, 0);
        asm.lookup(&self.tables.ranges, INDEX);
        asm.jump_if(Condition::Equal, R0, 0, none);
        asm.load(Size::Word, R2, R10, PORT);
        asm.load(Size::Half, R3, R10, PORT + 4);
        asm.swap_network_order(R3, 16);
        asm.load(Size::Byte, R4, R10, PORT + 6);
        for place in 0..count {
            let at = (place * RANGE) as i16;
            let (next, mine) = (asm.label("next range"), asm.label("of this address"));
            asm.load(Size::Word, R5, R0, at + range::PROTOCOL);
            asm.jump_if(Condition::NotEqual, R5, R4, next);
            asm.load(Size::Half, R5, R0, at + range::FIRST);
            asm.jump_if(Condition::Greater, R5, R3, next);
            asm.load(Size::Half, R5, R0, at + range::LAST);
            asm.jump_if(Condition::Less, R5, R3, next);
            asm.load(Size::Word, R5, R0, at + range::VIP);
            asm.jump_if(Condition::Equal, R5, 0, mine);
            asm.jump_if(Condition::NotEqual, R5, R2, next);
            asm.place(mine);
            asm.load(Size::Word, R1, R0, at + range::SLOT);
            asm.jump(chosen);
            asm.place(next);
        }
        asm.place(none);
    }

    /// From the flow and the slot at `INDEX` to what this host has of its bucket: `SLOT` is the
    /// slot's map, `SERVING` and `TAINTED` are 0 or 1.
    pub(super) fn bucket(&mut self) {
        let impossible = self.reason(Reason::NotOwner);
        let asm = &mut self.asm;
        let (ports, no_ports) = (asm.label("with ports"), asm.label("without ports"));
        let (ipv6, hashed) = (asm.label("hash of IPv6"), asm.label("hashed"));
        asm.lookup(&self.tables.slots, INDEX);
        asm.jump_if(Condition::Equal, R0, 0, impossible);
        asm.mov(SLOT, R0);
        asm.load(Size::Word, R2, SLOT, slot::GROUP);
        asm.alu(Alu::ShiftLeft, R2, 32);
        asm.load(Size::Word, R1, SLOT, slot::PORTS);
        asm.jump_if(Condition::Equal, R1, 0, no_ports);
        asm.load(Size::Half, R3, R10, FLOW + flow::VIP_PORT);
        asm.swap_network_order(R3, 16);
        asm.jump_if(Condition::NotEqual, R3, i32::from(PPTP), ports);
        asm.load(Size::Byte, R1, R10, FLOW + flow::PROTOCOL);
        asm.jump_if(Condition::Equal, R1, TCP, no_ports);
        asm.place(ports);
        asm.alu(Alu::Or, R2, R3);
        asm.load(Size::Half, R3, R10, FLOW + flow::CLIENT_PORT);
        asm.swap_network_order(R3, 16);
        asm.alu(Alu::ShiftLeft, R3, 16);
        asm.alu(Alu::Or, R2, R3);
        asm.place(no_ports);
        asm.store(Size::Double, R10, WORDS, R2);
        asm.load(Size::Byte, R1, R10, FLOW + flow::FAMILY);
        asm.jump_if(Condition::Equal, R1, i32::from(IPV6), ipv6);

        self.words_of_ipv4();
        siphash(&mut self.asm, self.settings.hash, &[WORDS, WORDS + 8]);
        self.asm.jump(hashed);
        self.asm.place(ipv6);
        self.words_of_ipv6();
        let words: Vec<i16> = (0..5).map(|word| WORDS + 8 * word).collect();
        siphash(&mut self.asm, self.settings.hash, &words);

        self.asm.place(hashed);
        self.bits();
    }

    fn words_of_ipv4(&mut self) {
        let asm = &mut self.asm;
        asm.load(Size::Word, R1, R10, FLOW + flow::CLIENT);
        asm.swap_network_order(R1, 32);
        asm.load(Size::Word, R2, SLOT, slot::MASK4);
        asm.alu(Alu::And, R1, R2);
        asm.alu(Alu::ShiftLeft, R1, 32);
        asm.load(Size::Word, R2, R10, FLOW + flow::VIP);
        asm.swap_network_order(R2, 32);
        asm.alu(Alu::Or, R1, R2);
        asm.store(Size::Double, R10, WORDS + 8, R1);
    }

    fn words_of_ipv6(&mut self) {
        let asm = &mut self.asm;
        for half in [0, 8] {
            asm.load(Size::Double, R1, R10, FLOW + flow::CLIENT + half);
            asm.swap_network_order(R1, 64);
            asm.load(Size::Double, R2, SLOT, slot::MASK6 + half);
            asm.alu(Alu::And, R1, R2);
            asm.store(Size::Double, R10, WORDS + 8 + half, R1);
            asm.load(Size::Double, R1, R10, FLOW + flow::VIP + half);
            asm.swap_network_order(R1, 64);
            asm.store(Size::Double, R10, WORDS + 24 + half, R1);
        }
    }

    /// From the hash in `r0` to the two bits of its bucket.
    fn bits(&mut self) {
        let asm = &mut self.asm;
        asm.alu(Alu::And, R0, BUCKETS as i32 - 1);
        asm.mov(R1, R0);
        asm.alu(Alu::ShiftRight, R1, 3);
        asm.alu(Alu::And, R0, 7);
        asm.mov(R2, SLOT);
        asm.alu(Alu::Add, R2, R1);
        asm.load(Size::Byte, SERVING, R2, slot::SERVING);
        asm.load(Size::Byte, TAINTED, R2, slot::TAINTED);
        for bit in [SERVING, TAINTED] {
            asm.alu(Alu::ShiftRight, bit, R0);
            asm.alu(Alu::And, bit, 1);
        }
    }
}
