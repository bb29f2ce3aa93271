//! The rules of firewall marks as instructions, one after the other, behind the look-ups of
//! addresses. Without rules there are none, and nothing is spent.
//!
//! What the rules compare is copied to the stack first, in halves of words and in host order where
//! it is a port: the verifier then takes every load for a number that it knows nothing of. If it
//! followed what one rule has found out into the next, it would look at a list of rules once for
//! every way through it, and refuse a long one.

use netio::bpf::Register::{R1, R10};
use netio::bpf::{Alu, Condition, Label, Size};

use super::decision::{DESTINATION, HEADER, KIND, NEXT, PROTOCOL_AT, SOURCE, Writer};
use super::keys::{DATA, Kind};
use super::marked::{Marked, Network};
use crate::fwmark::PortRange;

/// Where the copies lie on the stack, below the keys.
const FROM: i16 = -64;
const TO: i16 = -80;
const FROM_PORT: i16 = -82;
const TO_PORT: i16 = -84;

impl Writer<'_> {
    /// Goes to `hit` or `pass` by the mark of the packet whose ports are at `NEXT`.
    pub(super) fn marked(&mut self) {
        if self.marked.is_empty() {
            return self.asm.jump(self.pass);
        }
        let (straight, copied) = (self.asm.label("not quoted"), self.asm.label("copied"));
        // What an error quotes went the other way.
        self.asm.load(Size::Byte, R1, R10, DESTINATION + KIND);
        self.asm.alu(Alu::And, R1, !i32::from(DATA));
        self.asm.jump_if(Condition::Equal, R1, Kind::Service as i32, straight);
        self.copy(DESTINATION, SOURCE);
        self.copy_ports(2, 0);
        self.asm.jump(copied);
        self.asm.place(straight);
        self.copy(SOURCE, DESTINATION);
        self.copy_ports(0, 2);
        self.asm.place(copied);
        self.families(Writer::rule);
    }

    /// The same for a later fragment, of which only the addresses are known.
    pub(super) fn marked_fragment(&mut self) {
        if self.marked.is_empty() {
            return self.asm.jump(self.pass);
        }
        self.copy(SOURCE, DESTINATION);
        self.families(Writer::rule_of_fragments);
    }

    /// Copies the addresses of two keys.
    fn copy(&mut self, from: i16, to: i16) {
        for (key, copy) in [(from, FROM), (to, TO)] {
            for at in (0..16).step_by(2) {
                self.asm.load(Size::Half, R1, R10, key + at);
                self.asm.store(Size::Half, R10, copy + at, R1);
            }
        }
    }

    /// Copies the ports from behind `NEXT`.
    fn copy_ports(&mut self, from: i16, to: i16) {
        for (at, copy) in [(from, FROM_PORT), (to, TO_PORT)] {
            self.asm.load(Size::Half, R1, NEXT, at);
            self.asm.swap_network_order(R1, 16);
            self.asm.store(Size::Half, R10, copy, R1);
        }
    }

    /// Writes the rules of either family with `rule`, which says whether any packet goes on to the
    /// next one.
    fn families(&mut self, rule: impl Fn(&mut Self, &Marked, usize) -> bool) {
        let ipv6 = self.asm.label("marks of IPv6");
        self.asm.load(Size::Byte, R1, HEADER, 0);
        self.asm.alu(Alu::ShiftRight, R1, 4);
        self.asm.jump_if(Condition::Equal, R1, 6, ipv6);
        // Of an IPv4 address only the last word differs from another's.
        for (rules, first_word) in [(&self.marked.v4, 3), (&self.marked.v6, 0)] {
            if first_word == 0 {
                self.asm.place(ipv6);
            }
            if rules.iter().all(|marked| rule(self, marked, first_word)) {
                self.asm.jump(self.pass);
            }
        }
    }

    fn rule(&mut self, marked: &Marked, first_word: usize) -> bool {
        let next = self.asm.label("next rule");
        if let Some(protocol) = marked.protocol {
            self.asm.load(Size::Byte, R1, R10, DESTINATION + PROTOCOL_AT);
            self.asm.jump_if(Condition::NotEqual, R1, i32::from(protocol), next);
        }
        self.network(TO, marked.destination, first_word, next);
        self.network(FROM, marked.source, first_word, next);
        self.ports(TO_PORT, &marked.ports, next);
        self.ports(FROM_PORT, &marked.source_ports, next);
        self.asm.jump(if marked.taken { self.hit } else { self.pass });
        self.asm.place(next);
        true
    }

    fn rule_of_fragments(&mut self, marked: &Marked, first_word: usize) -> bool {
        if !marked.taken {
            return true;
        }
        let next = self.asm.label("next rule");
        let narrow = self.network(TO, marked.destination, first_word, next)
            | self.network(FROM, marked.source, first_word, next);
        self.asm.jump(self.hit);
        self.asm.place(next);
        narrow
    }

    /// Goes to `next` unless the address at `copy` is in the network; whether there are any that
    /// are not.
    fn network(&mut self, copy: i16, network: Network, first_word: usize, next: Label) -> bool {
        let word = |bits: u128, index: usize| ((bits >> (96 - 32 * index)) as u32).to_be() as i32;
        let mut narrow = false;
        for index in first_word..4 {
            let (value, mask) = (word(network.0, index), word(network.1, index));
            if mask == 0 {
                continue;
            }
            self.asm.load(Size::Word, R1, R10, copy + index as i16 * 4);
            if mask != -1 {
                self.asm.alu32(Alu::And, R1, mask);
            }
            self.asm.jump_if32(Condition::NotEqual, R1, value, next);
            narrow = true;
        }
        narrow
    }

    /// Goes to `next` unless the port at `port` is in one of the ranges, or there are none.
    fn ports(&mut self, port: i16, ranges: &[PortRange], next: Label) {
        if ranges.is_empty() {
            return;
        }
        let found = self.asm.label("port found");
        for range in ranges {
            self.asm.load(Size::Half, R1, R10, port);
            if range.first > 0 {
                self.asm.alu32(Alu::Sub, R1, i32::from(range.first));
            }
            // A port below the first has wrapped around to far above.
            let length = i32::from(range.last - range.first);
            self.asm.jump_if32(Condition::LessOrEqual, R1, length, found);
        }
        self.asm.jump(next);
        self.asm.place(found);
    }
}
