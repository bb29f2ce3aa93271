//! What becomes of a packet of a flow, once it is known what it is and of which flow.
//!
//! ```text
//!   host stopped or quarantined ------------------------------------------> drop
//!   later fragment ---- as the first one ---------------------------------> frag-follow / drop
//!   TCP, not a SYN ---- held by this host and not given up ---------------> flow-pinned
//!   GRE --------------- its control connection began here ----------------> related
//!   all --------------- port rule; disabled ------------------------------> rule-blocked
//!                       bucket of the rule's slot: serving? tainted?
//!
//!                | not serving                     | serving        | serving, tainted
//!   -------------+---------------------------------+----------------+-------------------
//!   TCP SYN      | not-owner; a flow that is held: | begins: pass   | begins, pinned: pass
//!                | given up, pinned-elsewhere      |                |
//!   TCP other    | not-owner                       | pass           | bucket-tainted
//!   GRE          | not-owner                       | pass           | bucket-tainted
//!   UDP          | not-owner                       | pass           | pass
//!   UDP, pins    | pinned: flow-pinned; not-owner  | pass, pinned   | pinned: flow-pinned;
//!                |                                 |                | bucket-tainted
//!   echo         | not-owner                       | pass           | pass
//! ```
//!
//! *Pass* is for the rule's reason: own-bucket, single-host-rule or default-host. UDP goes by pins
//! only where the rule has no affinity.

use forwarding::wire::protocol;
use netio::bpf::Register::{R0, R1, R10};
use netio::bpf::{Condition, Size};
use nlb::filter::{Echo, Reason};
use nlb::slot::Slot;
use nlb::tuple::PPTP;

use super::Writer;
use super::headers::network_order;
use super::stack::{
    FLOW, FRAGMENT, INDEX, KIND, Kind, QUOTED, REASON, SERVING, SLOT, SOCKET, TAINTED,
};
use crate::filter::layout::{ACTIVE, flow, slot};

impl Writer<'_> {
    /// From the flow and the kind of packet to a reason.
    pub(super) fn flow(&mut self) {
        let not_owner = self.reason(Reason::NotOwner);
        let bucket = self.asm.label("bucket");
        self.active();
        self.when(Kind::Fragment, Writer::later_fragment);
        self.when(Kind::Echo, |writer| match writer.settings.echo {
            Echo::All => writer.end(Reason::UnmanagedProto),
            Echo::One => {
                writer.asm.store(Size::Word, R10, INDEX, i32::from(Slot::ECHO.get()));
                writer.asm.jump(bucket);
            }
        });
        self.when(Kind::Segment, |writer| {
            let pinned = writer.reason(Reason::FlowPinned);
            writer.held(pinned);
        });
        self.when(Kind::Tunnel, |writer| {
            let unrelated = writer.asm.label("unrelated");
            writer.pinned(unrelated);
            writer.end(Reason::Related);
            writer.asm.place(unrelated);
        });
        self.rules();
        self.asm.place(bucket);
        self.bucket();
        self.when(Kind::Syn, Writer::beginning);
        self.when(Kind::Datagram, Writer::datagram);
        self.asm.jump_if(Condition::Equal, SERVING, 0, not_owner);
        self.when(Kind::Segment, Writer::unless_tainted);
        self.when(Kind::Tunnel, Writer::unless_tainted);
        self.pass_by_rule();
    }

    /// Writes what is done with one kind of packet only.
    fn when(&mut self, kind: Kind, body: impl FnOnce(&mut Self)) {
        let other = self.asm.label("another kind");
        self.asm.load(Size::Byte, R1, R10, KIND);
        self.asm.jump_if(Condition::NotEqual, R1, kind as i32, other);
        body(self);
        self.asm.place(other);
    }

    /// Ends here unless the host takes part.
    fn active(&mut self) {
        let verdict = self.verdict;
        let asm = &mut self.asm;
        let active = asm.label("active");
        asm.store(Size::Word, R10, INDEX, 0);
        asm.lookup(&self.tables.state, INDEX);
        asm.jump_if(Condition::Equal, R0, 0, active);
        asm.load(Size::Word, REASON, R0, 0);
        asm.jump_if(Condition::NotEqual, REASON, ACTIVE as i32, verdict);
        asm.place(active);
    }

    fn later_fragment(&mut self) {
        let unknown = self.reason(Reason::FragUnknown);
        self.asm.lookup(&self.memory.fragments, FRAGMENT);
        self.asm.jump_if(Condition::Equal, R0, 0, unknown);
        self.follow();
    }

    fn unless_tainted(&mut self) {
        let tainted = self.reason(Reason::BucketTainted);
        self.asm.jump_if(Condition::NotEqual, TAINTED, 0, tainted);
    }

    /// A TCP SYN: it follows the map and never a pin.
    fn beginning(&mut self) {
        let memory = self.memory;
        let asm = &mut self.asm;
        let (serving, unpinned) = (asm.label("begins here"), asm.label("begins unpinned"));
        let (give_up, nothing) = (asm.label("give up"), asm.label("nothing to give up"));
        asm.jump_if(Condition::NotEqual, SERVING, 0, serving);
        self.if_pptp(|writer| writer.forget(&memory.pins));
        self.socket(give_up);
        self.pinned(nothing);
        self.asm.place(give_up);
        self.forget(&memory.pins);
        self.retire();
        self.end(Reason::PinnedElsewhere);
        self.asm.place(nothing);
        self.end(Reason::NotOwner);

        self.asm.place(serving);
        self.forget(&memory.retired);
        self.count(&memory.opened);
        if !self.settings.track {
            self.asm.jump_if(Condition::Equal, TAINTED, 0, unpinned);
        }
        self.pin();
        self.asm.place(unpinned);
        self.if_pptp(Writer::pin);
        self.pass_by_rule();
    }

    /// If a control connection of PPTP begins: does something with the flow of its tunnel, and
    /// comes back to that of the connection.
    fn if_pptp(&mut self, body: impl FnOnce(&mut Self)) {
        let ports = FLOW + flow::CLIENT_PORT;
        let asm = &mut self.asm;
        let other = asm.label("not PPTP");
        asm.load(Size::Half, R1, R10, FLOW + flow::VIP_PORT);
        asm.jump_if(Condition::NotEqual, R1, network_order(PPTP), other);
        asm.load(Size::Word, R1, R10, ports);
        asm.store(Size::Word, R10, SOCKET, R1);
        asm.store(Size::Word, R10, ports, 0);
        asm.store(Size::Byte, R10, FLOW + flow::PROTOCOL, i32::from(protocol::GRE));
        body(self);
        let asm = &mut self.asm;
        asm.load(Size::Word, R1, R10, SOCKET);
        asm.store(Size::Word, R10, ports, R1);
        asm.store(Size::Byte, R10, FLOW + flow::PROTOCOL, i32::from(protocol::TCP));
        asm.place(other);
    }

    /// UDP: each datagram by the map, unless flows are pinned.
    fn datagram(&mut self) {
        let not_owner = self.reason(Reason::NotOwner);
        let tainted = self.reason(Reason::BucketTainted);
        if !self.settings.udp_pin {
            self.asm.jump_if(Condition::Equal, SERVING, 0, not_owner);
            self.pass_by_rule();
            return;
        }
        let asm = &mut self.asm;
        let (by_map, quoted) = (asm.label("datagram by the map"), asm.label("quoted datagram"));
        let unpinned = asm.label("datagram without pin");
        asm.load(Size::Word, R1, SLOT, slot::PORTS);
        asm.jump_if(Condition::Equal, R1, 0, by_map);
        self.pinned(unpinned);
        self.end(Reason::FlowPinned);
        let asm = &mut self.asm;
        asm.place(unpinned);
        asm.jump_if(Condition::Equal, SERVING, 0, not_owner);
        asm.jump_if(Condition::NotEqual, TAINTED, 0, tainted);
        asm.place(by_map);
        asm.jump_if(Condition::Equal, SERVING, 0, not_owner);
        asm.load(Size::Byte, R1, R10, QUOTED);
        asm.jump_if(Condition::NotEqual, R1, 0, quoted);
        self.pin();
        self.asm.place(quoted);
        self.pass_by_rule();
    }
}
