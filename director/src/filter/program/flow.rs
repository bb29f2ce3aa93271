//! What becomes of a flow's packet, once it is known who sent what to whom.
//!
//! ```text
//!   TCP, not a SYN ---- held by this host and not given up -------------> flow-pinned
//!   all                 port rule; disabled ----------------------------> rule-blocked
//!                       bucket of the rule's slot: serving? tainted?
//!
//!                  | not serving                     | serving            | serving, tainted
//!   ---------------+---------------------------------+--------------------+------------------
//!   TCP SYN        | not-owner; a flow that is held: | begins: pass       | begins, pinned: pass
//!                  | given up, pinned-elsewhere      |                    |
//!   TCP other      | not-owner                       | pass               | bucket-tainted
//!   UDP (no pin)   | not-owner                       | pass               | pass
//!   GRE            | related pin: related; not-owner | pass               | bucket-tainted
//!   echo           | not-owner                       | pass               | pass
//! ```
//!
//! *Pass* is the rule's: own-bucket, single-host-rule or default-host.

use netio::bpf::Register::{R1, R10};
use netio::bpf::{Condition, Size};
use nlb::filter::Reason;
use nlb::tuple::PPTP;

use super::Writer;
use super::stack::{FLOW, KIND, Kind, SERVING, TAINTED};
use crate::filter::layout::flow;

const GRE: i32 = forwarding::wire::protocol::GRE as i32;

impl Writer<'_> {
    /// From the flow and the kind of packet to a reason.
    pub(super) fn flow(&mut self) {
        let pinned = self.reason(Reason::FlowPinned);
        let not_owner = self.reason(Reason::NotOwner);
        let by_rule = self.asm.label("by rule");
        self.when(Kind::Segment, |writer| writer.held(pinned));
        self.asm.place(by_rule);
        self.rules();
        let bucket = self.bucket;
        self.asm.place(bucket);
        self.bucket();
        self.when(Kind::Syn, Writer::beginning);
        self.when(Kind::Datagram, Writer::datagram);
        self.when(Kind::Tunnel, Writer::tunnel);
        self.asm.jump_if(Condition::Equal, SERVING, 0, not_owner);
        self.when(Kind::Segment, Writer::unless_tainted);
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

    fn unless_tainted(&mut self) {
        let tainted = self.reason(Reason::BucketTainted);
        self.asm.jump_if(Condition::NotEqual, TAINTED, 0, tainted);
    }

    /// A TCP SYN: it follows the map and never a pin.
    fn beginning(&mut self) {
        let memory = self.memory;
        let asm = &mut self.asm;
        let (serving, no_pin) = (asm.label("begins here"), asm.label("begins unpinned"));
        let give_up = asm.label("give up");
        asm.jump_if(Condition::NotEqual, SERVING, 0, serving);
        let none = asm.label("nothing to give up");
        self.socket(give_up);
        self.pinned(none);
        self.asm.place(give_up);
        self.forget(&memory.pins);
        self.retire();
        self.end(Reason::PinnedElsewhere);
        self.asm.place(none);
        self.end(Reason::NotOwner);

        self.asm.place(serving);
        self.forget(&memory.retired);
        self.count(&memory.opened);
        if !self.settings.track {
            self.asm.jump_if(Condition::Equal, TAINTED, 0, no_pin);
        }
        self.pin();
        self.asm.place(no_pin);
        self.relate();
        self.pass_by_rule();
    }

    /// When a PPTP control connection begins, its client's tunnel is pinned too.
    fn relate(&mut self) {
        let asm = &mut self.asm;
        let other = asm.label("not PPTP");
        asm.load(Size::Half, R1, R10, FLOW + flow::VIP_PORT);
        asm.jump_if(Condition::NotEqual, R1, i32::from(PPTP.to_be()), other);
        asm.store(Size::Word, R10, FLOW + flow::CLIENT_PORT, 0);
        asm.store(Size::Byte, R10, FLOW + flow::PROTOCOL, GRE);
        self.pin();
        self.asm.place(other);
    }

    /// UDP: each datagram by the map, unless flows are pinned.
    fn datagram(&mut self) {
        let not_owner = self.reason(Reason::NotOwner);
        let by_map = self.asm.label("datagram by the map");
        if self.settings.udp_pin {
            self.pinned(by_map);
            self.end(Reason::FlowPinned);
        }
        self.asm.place(by_map);
        self.asm.jump_if(Condition::Equal, SERVING, 0, not_owner);
        if self.settings.udp_pin {
            self.pin();
        }
        self.pass_by_rule();
    }

    /// GRE: with the control connection of the client.
    fn tunnel(&mut self) {
        let not_owner = self.reason(Reason::NotOwner);
        let unrelated = self.asm.label("unrelated");
        self.pinned(unrelated);
        self.end(Reason::Related);
        self.asm.place(unrelated);
        self.asm.jump_if(Condition::Equal, SERVING, 0, not_owner);
        self.unless_tainted();
        self.pass_by_rule();
    }
}
