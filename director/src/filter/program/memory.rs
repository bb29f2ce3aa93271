//! What the program asks the kernel and its own memory about a flow, and what it notes.

use netio::bpf::Register::{R0, R1, R2, R3, R4, R5, R10};
use netio::bpf::{Alu, Condition, Helper, Label, Map, Size};

use super::Writer;
use super::stack::{CLOSING, CONTEXT, FLOW, FRAGMENT, INDEX, QUOTED, REASON, SOCKET, VALUE};
use crate::filter::layout::{IPV6, flow};

/// The state of a socket that waits for connections (`TCP_LISTEN`).
const LISTENING: i32 = 10;
/// Of `struct bpf_sock`, as programs see a socket.
const SOCKET_STATE: i16 = 72;
/// `BPF_F_CURRENT_NETNS`: sockets of the interface's namespace.
const CURRENT_NAMESPACE: i32 = -1;

/// Bytes of what sockets are looked for by: two addresses and two ports.
const SOCKET_IPV4: i32 = 12;
const SOCKET_IPV6: i32 = 36;

impl Writer<'_> {
    /// Goes to `held` if this host holds the TCP flow and has not given it up. What is remembered
    /// of given up flows is only asked when there is something to give up.
    pub(super) fn held(&mut self, held: Label) {
        let (maybe, not) = (self.asm.label("socket"), self.asm.label("not held"));
        self.socket(maybe);
        self.pinned(not);
        self.asm.place(maybe);
        self.asm.lookup(&self.memory.retired, FLOW);
        self.asm.jump_if(Condition::Equal, R0, 0, held);
        self.asm.place(not);
    }

    /// Goes to `there` if the kernel has a socket for the flow, other than one that only waits for
    /// connections. The reference to it is released at once: its state is all that is asked.
    pub(super) fn socket(&mut self, there: Label) {
        let asm = &mut self.asm;
        let (ipv6, ask, none) = (asm.label("IPv6 socket"), asm.label("ask"), asm.label("none"));
        asm.load(Size::Byte, R1, R10, FLOW + flow::FAMILY);
        asm.mov(R2, R10);
        asm.jump_if(Condition::Equal, R1, i32::from(IPV6), ipv6);
        for (place, from) in [(0, flow::CLIENT), (4, flow::VIP), (8, flow::CLIENT_PORT)] {
            asm.load(Size::Word, R1, R10, FLOW + from);
            asm.store(Size::Word, R10, SOCKET + place, R1);
        }
        asm.alu(Alu::Add, R2, i32::from(SOCKET));
        asm.mov(R3, SOCKET_IPV4);
        asm.jump(ask);
        asm.place(ipv6);
        asm.alu(Alu::Add, R2, i32::from(FLOW));
        asm.mov(R3, SOCKET_IPV6);
        asm.place(ask);
        asm.mov(R1, CONTEXT);
        asm.mov(R4, CURRENT_NAMESPACE);
        asm.mov(R5, 0);
        asm.call(Helper::SkcLookupTcp);
        asm.jump_if(Condition::Equal, R0, 0, none);
        asm.load(Size::Word, R1, R0, SOCKET_STATE);
        asm.store(Size::Word, R10, INDEX, R1);
        asm.mov(R1, R0);
        asm.call(Helper::SkRelease);
        asm.load(Size::Word, R1, R10, INDEX);
        asm.jump_if(Condition::NotEqual, R1, LISTENING, there);
        asm.place(none);
    }

    /// Goes to `not` if the flow is not pinned; a pin that is there is as good as
    /// new afterwards and knows whether the flow ends, unless the packet is only quoted in an error.
    pub(super) fn pinned(&mut self, not: Label) {
        self.asm.lookup(&self.memory.pins, FLOW);
        self.asm.jump_if(Condition::Equal, R0, 0, not);
        let asm = &mut self.asm;
        let goes_on = asm.label("goes on");
        asm.load(Size::Byte, R1, R10, QUOTED);
        asm.jump_if(Condition::NotEqual, R1, 0, goes_on);
        // The address must outlive the call for the time.
        asm.store(Size::Double, R10, VALUE, R0);
        asm.call(Helper::KtimeGetNs);
        asm.load(Size::Double, R1, R10, VALUE);
        asm.store(Size::Double, R1, 0, R0);
        asm.load(Size::Byte, R2, R10, CLOSING);
        asm.jump_if(Condition::Equal, R2, 0, goes_on);
        asm.store(Size::Double, R1, 8, R2);
        asm.place(goes_on);
    }

    /// Pins the flow.
    pub(super) fn pin(&mut self) {
        self.asm.store(Size::Double, R10, VALUE + 8, 0);
        note(&mut self.asm, &self.memory.pins, FLOW);
    }

    /// Notes that the flow was given up.
    pub(super) fn retire(&mut self) {
        self.asm.store(Size::Double, R10, VALUE + 8, 0);
        note(&mut self.asm, &self.memory.retired, FLOW);
    }

    /// Forgets the flow if it is in the map. Most are not, and looking takes no lock.
    pub(super) fn forget(&mut self, map: &Map) {
        let asm = &mut self.asm;
        let none = asm.label("nothing to forget");
        asm.lookup(map, FLOW);
        asm.jump_if(Condition::Equal, R0, 0, none);
        asm.load_map(R1, map);
        asm.mov(R2, R10);
        asm.alu(Alu::Add, R2, i32::from(FLOW));
        asm.call(Helper::MapDeleteElem);
        asm.place(none);
    }

    /// Notes the reason for what became of a first fragment.
    pub(super) fn note_fragment(&mut self) {
        self.asm.store(Size::Double, R10, VALUE + 8, REASON);
        note(&mut self.asm, &self.memory.fragments, FRAGMENT);
    }

    /// One more in the counter whose number is at `INDEX`.
    pub(super) fn count(&mut self, counters: &Map) {
        let asm = &mut self.asm;
        let none = asm.label("no counter");
        asm.lookup(counters, INDEX);
        asm.jump_if(Condition::Equal, R0, 0, none);
        asm.mov(R1, 1);
        asm.atomic_add(Size::Double, R0, 0, R1);
        asm.place(none);
    }
}

/// Puts the time, and what else lies in the value behind it, under a key.
fn note(asm: &mut netio::bpf::Assembler, map: &Map, key: i16) {
    asm.call(Helper::KtimeGetNs);
    asm.store(Size::Double, R10, VALUE, R0);
    asm.load_map(R1, map);
    asm.mov(R2, R10);
    asm.alu(Alu::Add, R2, i32::from(key));
    asm.mov(R3, R10);
    asm.alu(Alu::Add, R3, i32::from(VALUE));
    asm.mov(R4, 0);
    asm.call(Helper::MapUpdateElem);
}
