//! The decision that steering and guard share, as instructions: from Ethernet to hit or pass.
//!
//! Registers: `r6` context, `r7` the header being read, `r8` the packet's end, `r9` what follows
//! the header, `r0` its protocol; `r1`..`r5` are scratch. Two keys lie on the stack. The chart is
//! in `program.rs`.

use netio::bpf::Register::{self, R0, R1, R2, R3, R6, R7, R8, R9, R10};
use netio::bpf::{Alu, Assembler, Condition, Label, Map, Size};

use super::Mark;
use super::keys::{DATA, KEY_SIZE, Kind};
use super::protocol::{
    DATA_PORTS, DESTINATION_OPTIONS, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_QINQ,
    ETHERTYPE_VLAN, FRAGMENT, HOP_BY_HOP, ICMP, ICMP_ERRORS, ICMPV6, ICMPV6_ERRORS,
    LATER_FRAGMENTS, MAX_EXTENSIONS, ROUTING, TCP, TRANSPORTS, TUNNELS,
};

pub(super) const CONTEXT: Register = R6;
pub(super) const HEADER: Register = R7;
pub(super) const END: Register = R8;
const NEXT: Register = R9;
const PROTOCOL: Register = R0;

/// Where the keys lie on the stack; see [`Key`](super::Key) for what is in them.
const DESTINATION: i16 = -24;
const SOURCE: i16 = -48;
const PORT: i16 = 16;
const PROTOCOL_AT: i16 = 18;
const KIND: i16 = 19;
const _: () = assert!(KEY_SIZE == 20);

/// Writes the decision; the program around it says what a hit and a pass are.
pub(super) struct Writer<'a> {
    pub(super) asm: Assembler,
    keys: &'a Map,
    pub(super) hit: Label,
    pub(super) pass: Label,
}

impl<'a> Writer<'a> {
    pub(super) fn new(keys: &'a Map) -> Writer<'a> {
        let mut asm = Assembler::new();
        let (hit, pass) = (asm.label("hit"), asm.label("pass"));
        Writer { asm, keys, hit, pass }
    }

    /// The packet's borders, from the context.
    pub(super) fn packet(&mut self, data: i16, data_end: i16) {
        self.asm.load(Size::Word, HEADER, CONTEXT, data);
        self.asm.load(Size::Word, END, CONTEXT, data_end);
    }

    /// Goes to `hit` or `pass`, which are still to be placed. Frames that bear `mark` pass. Where
    /// the kernel keeps a VLAN tag beside the packet, `tag_beside_packet` is the field of the
    /// context that says so.
    pub(super) fn decision(&mut self, mark: Option<Mark>, tag_beside_packet: Option<i16>) {
        let asm = &mut self.asm;
        let (ipv4, ipv6) = (asm.label("ipv4"), asm.label("ipv6"));
        let (transport, later) = (asm.label("transport"), asm.label("later fragment"));
        let (icmp, icmpv6) = (asm.label("icmp"), asm.label("icmpv6"));
        let tunnel = asm.label("tunnel");
        let pass = self.pass;

        self.kinds(Kind::Server, Kind::Service);
        self.ethernet(mark, tag_beside_packet);
        self.jump_if_half(ETHERTYPE_IPV4, ipv4);
        self.jump_if_half(ETHERTYPE_IPV6, ipv6);
        self.asm.jump(pass);

        self.asm.place(ipv4);
        self.ipv4_header(later);
        self.jump_if_protocol(&[ICMP], icmp);
        self.asm.jump(transport);

        self.asm.place(icmp);
        self.error_message(ICMP_ERRORS);
        self.ipv4_header(pass);
        self.jump_if_protocol(TUNNELS, tunnel);
        self.asm.jump(transport);

        self.asm.place(ipv6);
        self.ipv6_header(later);
        self.jump_if_protocol(&[ICMPV6], icmpv6);
        self.asm.jump(transport);

        self.asm.place(icmpv6);
        self.error_message(ICMPV6_ERRORS);
        self.ipv6_header(pass);
        self.jump_if_protocol(TUNNELS, tunnel);
        self.asm.jump(transport);

        self.asm.place(transport);
        self.transport();
        self.asm.place(later);
        self.later_fragment();
        self.asm.place(tunnel);
        self.tunnel();
    }

    /// Leaves the Ethernet type in `r1`, in network order, and `HEADER` behind it.
    fn ethernet(&mut self, mark: Option<Mark>, tag_beside_packet: Option<i16>) {
        let (pass, asm) = (self.pass, &mut self.asm);
        let (tag, untagged) = (asm.label("tag"), asm.label("untagged"));
        asm.bound(HEADER, 14, END, R3, pass);
        if let Some(Mark([a, b, c, d, e, f])) = mark {
            let other = asm.label("not our mark");
            asm.load(Size::Word, R1, HEADER, 6);
            asm.jump_if32(Condition::NotEqual, R1, i32::from_ne_bytes([a, b, c, d]), other);
            asm.load(Size::Half, R1, HEADER, 10);
            let rest = i32::from(u16::from_ne_bytes([e, f]));
            asm.jump_if(Condition::Equal, R1, rest, pass);
            asm.place(other);
        }
        asm.load(Size::Half, R1, HEADER, 12);
        asm.alu(Alu::Add, HEADER, 14);
        if let Some(present) = tag_beside_packet {
            asm.load(Size::Word, R2, CONTEXT, present);
            asm.jump_if(Condition::NotEqual, R2, 0, untagged);
        }
        self.jump_if_half(ETHERTYPE_VLAN, tag);
        self.jump_if_half(ETHERTYPE_QINQ, tag);
        self.asm.jump(untagged);
        self.asm.place(tag);
        self.asm.bound(HEADER, 4, END, R3, pass);
        self.asm.load(Size::Half, R1, HEADER, 2);
        self.asm.alu(Alu::Add, HEADER, 4);
        self.asm.place(untagged);
    }

    /// Reads the IPv4 header at `HEADER`: addresses and protocol go into the keys, `NEXT` and
    /// `PROTOCOL` are set. A later fragment goes to `later`.
    fn ipv4_header(&mut self, later: Label) {
        let (pass, asm) = (self.pass, &mut self.asm);
        asm.bound(HEADER, 20, END, R3, pass);
        asm.load(Size::Byte, R1, HEADER, 0);
        asm.mov(R2, R1);
        asm.alu(Alu::ShiftRight, R2, 4);
        asm.jump_if(Condition::NotEqual, R2, 4, pass);
        asm.alu(Alu::And, R1, 0x0f);
        asm.alu(Alu::ShiftLeft, R1, 2);
        asm.jump_if(Condition::Less, R1, 20, pass);
        for (key, address) in [(SOURCE, 12), (DESTINATION, 16)] {
            asm.store(Size::Double, R10, key, 0);
            let mapped = i32::from_ne_bytes([0, 0, 0xff, 0xff]);
            asm.store(Size::Word, R10, key + 8, mapped);
            asm.copy_to_stack(key + 12, HEADER, address, 4, R2);
        }
        asm.mov(NEXT, HEADER);
        asm.alu(Alu::Add, NEXT, R1);
        asm.load(Size::Byte, PROTOCOL, HEADER, 9);
        asm.load(Size::Half, R1, HEADER, 6);
        asm.jump_if(Condition::AnyBitSet, R1, network_order(0x1fff), later);
        self.store_protocol();
    }

    /// As [`ipv4_header`](Self::ipv4_header), and follows extension headers.
    fn ipv6_header(&mut self, later: Label) {
        let (pass, asm) = (self.pass, &mut self.asm);
        asm.bound(HEADER, 40, END, R3, pass);
        asm.load(Size::Byte, R1, HEADER, 0);
        asm.alu(Alu::ShiftRight, R1, 4);
        asm.jump_if(Condition::NotEqual, R1, 6, pass);
        asm.copy_to_stack(SOURCE, HEADER, 8, 16, R2);
        asm.copy_to_stack(DESTINATION, HEADER, 24, 16, R2);
        asm.load(Size::Byte, PROTOCOL, HEADER, 6);
        asm.mov(NEXT, HEADER);
        asm.alu(Alu::Add, NEXT, 40);
        let done = asm.label("end of extension headers");
        for _ in 0..MAX_EXTENSIONS {
            self.extension_header(later, done);
        }
        self.asm.place(done);
        self.store_protocol();
    }

    /// Steps over one extension header at `NEXT`; if there is none, goes on at `done`.
    fn extension_header(&mut self, later: Label, done: Label) {
        let asm = &mut self.asm;
        let (options, fragment) = (asm.label("options"), asm.label("fragment header"));
        let behind = asm.label("behind the extension header");
        self.jump_if_protocol(&[HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS], options);
        self.jump_if_protocol(&[FRAGMENT], fragment);
        let (pass, asm) = (self.pass, &mut self.asm);
        asm.jump(done);

        asm.place(options);
        asm.bound(NEXT, 8, END, R3, pass);
        asm.load(Size::Byte, PROTOCOL, NEXT, 0);
        asm.load(Size::Byte, R1, NEXT, 1);
        asm.alu(Alu::ShiftLeft, R1, 3);
        asm.alu(Alu::Add, R1, 8);
        asm.alu(Alu::Add, NEXT, R1);
        asm.jump(behind);

        asm.place(fragment);
        asm.bound(NEXT, 8, END, R3, pass);
        asm.load(Size::Byte, PROTOCOL, NEXT, 0);
        asm.load(Size::Half, R1, NEXT, 2);
        asm.jump_if(Condition::AnyBitSet, R1, network_order(0xfff8), later);
        asm.alu(Alu::Add, NEXT, 8);
        asm.place(behind);
    }

    /// Passes unless an error message is at `NEXT`; `HEADER` is then the packet that it quotes,
    /// in which services and servers are looked for the other way round.
    fn error_message(&mut self, errors: &[u8]) {
        let (pass, asm) = (self.pass, &mut self.asm);
        let error = asm.label("error message");
        asm.bound(NEXT, 8, END, R3, pass);
        asm.load(Size::Byte, R1, NEXT, 0);
        for kind in errors {
            asm.jump_if(Condition::Equal, R1, i32::from(*kind), error);
        }
        asm.jump(pass);
        asm.place(error);
        asm.mov(HEADER, NEXT);
        asm.alu(Alu::Add, HEADER, 8);
        self.kinds(Kind::Service, Kind::Server);
    }

    /// Looks for both keys, with their ports at `NEXT` and for all ports.
    fn transport(&mut self) {
        let known = self.asm.label("known transport");
        self.jump_if_protocol(TRANSPORTS, known);
        let (pass, asm) = (self.pass, &mut self.asm);
        asm.jump(pass);
        asm.place(known);
        asm.bound(NEXT, 4, END, R3, pass);
        for (key, port) in [(SOURCE, 0), (DESTINATION, 2)] {
            asm.load(Size::Half, R1, NEXT, port);
            asm.store(Size::Half, R10, key + PORT, R1);
        }
        for key in [DESTINATION, SOURCE] {
            self.find(key);
            self.asm.store(Size::Half, R10, key + PORT, 0);
            self.find(key);
        }
        self.data_connection();
        self.asm.jump(pass);
    }

    /// Looks for both addresses, of TCP packets, as those of FTP's data connections, if their ports
    /// can be such.
    fn data_connection(&mut self) {
        let (pass, asm) = (self.pass, &mut self.asm);
        asm.load(Size::Byte, R1, R10, DESTINATION + PROTOCOL_AT);
        asm.jump_if(Condition::NotEqual, R1, i32::from(TCP), pass);
        for (key, port) in [(DESTINATION, 2), (SOURCE, 0)] {
            let asm = &mut self.asm;
            let privileged = asm.label("privileged port");
            asm.load(Size::Byte, R1, NEXT, port);
            asm.jump_if(Condition::Less, R1, i32::from(DATA_PORTS), privileged);
            asm.load(Size::Byte, R1, R10, key + KIND);
            asm.alu(Alu::Or, R1, i32::from(DATA));
            asm.store(Size::Byte, R10, key + KIND, R1);
            self.find(key);
            self.asm.place(privileged);
        }
    }

    /// Looks for both addresses alone.
    fn later_fragment(&mut self) {
        let known = self.asm.label("fragment of a transport");
        self.jump_if_protocol(LATER_FRAGMENTS, known);
        self.asm.jump(self.pass);
        self.asm.place(known);
        self.asm.mov(PROTOCOL, 0);
        self.store_protocol();
        for key in [DESTINATION, SOURCE] {
            self.asm.store(Size::Half, R10, key + PORT, 0);
            self.find(key);
        }
        self.asm.jump(self.pass);
    }

    /// Looks for the quoted destination as a tunnel server.
    fn tunnel(&mut self) {
        self.asm.mov(PROTOCOL, 0);
        self.store_protocol();
        self.kinds(Kind::Service, Kind::TunnelServer);
        self.asm.store(Size::Half, R10, DESTINATION + PORT, 0);
        self.find(DESTINATION);
        self.asm.jump(self.pass);
    }

    /// Goes to `hit` if the key is in the map.
    fn find(&mut self, key: i16) {
        self.asm.lookup(self.keys, key);
        self.asm.jump_if(Condition::NotEqual, R0, 0, self.hit);
    }

    fn kinds(&mut self, source: Kind, destination: Kind) {
        for (key, kind) in [(SOURCE, source), (DESTINATION, destination)] {
            self.asm.store(Size::Byte, R10, key + KIND, kind as i32);
        }
    }

    fn store_protocol(&mut self) {
        for key in [SOURCE, DESTINATION] {
            self.asm.store(Size::Byte, R10, key + PROTOCOL_AT, PROTOCOL);
        }
    }

    fn jump_if_protocol(&mut self, protocols: &[u8], to: Label) {
        for protocol in protocols {
            self.asm.jump_if(Condition::Equal, PROTOCOL, i32::from(*protocol), to);
        }
    }

    /// Compares the two bytes of the packet in `r1`.
    fn jump_if_half(&mut self, value: u16, to: Label) {
        self.asm.jump_if(Condition::Equal, R1, network_order(value), to);
    }
}

/// The constant that two bytes of a packet are compared with.
fn network_order(value: u16) -> i32 {
    i32::from(value.to_be())
}
