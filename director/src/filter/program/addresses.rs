//! Whose packet it is, by its addresses: only those to a virtual address are balanced.

use netio::bpf::Register::{R0, R1, R10};
use netio::bpf::{Condition, Size};
use nlb::filter::Reason;

use super::Writer;
use super::stack::{ADDRESS, FLOW, TO, To, VIP};
use crate::filter::layout::{IPV6, Owned, flow};

impl Writer<'_> {
    /// Goes on with packets to a virtual address, whose number is then at `VIP`, that some client
    /// may have sent.
    pub(super) fn addresses(&mut self) {
        self.destination();
        self.source();
    }

    fn destination(&mut self) {
        let own = self.reason(Reason::OwnDedicatedIp);
        let group = self.reason(Reason::BcastMcast);
        let foreign = self.reason(Reason::ForeignIp);
        let peer = self.reason(Reason::PeerDedicatedIp);
        self.find(flow::VIP);
        let asm = &mut self.asm;
        let (balanced, nobody) = (asm.label("balanced"), asm.label("nobody's"));
        let (ipv6, single) = (asm.label("IPv6 group"), asm.label("not a group's"));
        let not_cluster = asm.label("not to the cluster's MAC address");
        asm.store(Size::Word, R10, VIP, 0);
        asm.jump_if(Condition::Equal, R0, 0, nobody);
        asm.load(Size::Word, R1, R0, 4);
        asm.store(Size::Word, R10, VIP, R1);
        asm.load(Size::Word, R0, R0, 0);
        asm.jump_if(Condition::Equal, R0, Owned::Cluster as i32, balanced);
        asm.jump_if(Condition::Equal, R0, Owned::Own as i32, own);
        asm.place(nobody);
        // Here r0 is 0 or says that it is a peer's.
        asm.load(Size::Byte, R1, R10, FLOW + flow::FAMILY);
        asm.jump_if(Condition::Equal, R1, i32::from(IPV6), ipv6);
        asm.load(Size::Word, R1, R10, FLOW + flow::VIP);
        asm.jump_if32(Condition::Equal, R1, -1, group);
        asm.load(Size::Byte, R1, R10, FLOW + flow::VIP);
        asm.jump_if(Condition::Less, R1, 224, single);
        asm.jump_if(Condition::Less, R1, 240, group);
        asm.jump(single);
        asm.place(ipv6);
        asm.load(Size::Byte, R1, R10, FLOW + flow::VIP);
        asm.jump_if(Condition::Equal, R1, 0xff, group);
        asm.place(single);
        asm.load(Size::Byte, R1, R10, TO);
        asm.jump_if(Condition::NotEqual, R1, To::Cluster as i32, not_cluster);
        asm.jump_if(Condition::NotEqual, R0, 0, peer);
        asm.jump(foreign);
        asm.place(not_cluster);
        asm.jump_if(Condition::Equal, R1, To::Group as i32, group);
        self.end(Reason::NotCluster);
        self.asm.place(balanced);
    }

    /// Ends with packets that no client can have sent: from the virtual addresses themselves, from
    /// no address, from groups.
    fn source(&mut self) {
        let martian = self.reason(Reason::MartianSource);
        let asm = &mut self.asm;
        let (ipv6, may_be) = (asm.label("IPv6 source"), asm.label("a client's address"));
        asm.load(Size::Byte, R1, R10, FLOW + flow::FAMILY);
        asm.jump_if(Condition::Equal, R1, i32::from(IPV6), ipv6);
        asm.load(Size::Byte, R1, R10, FLOW + flow::CLIENT);
        asm.jump_if(Condition::Equal, R1, 0, martian);
        asm.jump_if(Condition::Equal, R1, 127, martian);
        asm.jump_if(Condition::GreaterOrEqual, R1, 224, martian);
        asm.jump(may_be);
        asm.place(ipv6);
        asm.load(Size::Byte, R1, R10, FLOW + flow::CLIENT);
        asm.jump_if(Condition::Equal, R1, 0xff, martian);
        asm.load(Size::Double, R1, R10, FLOW + flow::CLIENT);
        asm.jump_if(Condition::NotEqual, R1, 0, may_be);
        // :: and ::1
        asm.load(Size::Double, R1, R10, FLOW + flow::CLIENT + 8);
        asm.swap_network_order(R1, 64);
        asm.jump_if(Condition::LessOrEqual, R1, 1, martian);
        asm.place(may_be);
        self.find(flow::CLIENT);
        let asm = &mut self.asm;
        let unknown = asm.label("nobody we know");
        asm.jump_if(Condition::Equal, R0, 0, unknown);
        asm.load(Size::Word, R1, R0, 0);
        asm.jump_if(Condition::Equal, R1, Owned::Cluster as i32, martian);
        asm.place(unknown);
    }

    /// Looks for an address of the flow: `r0` is whose it is, or 0.
    fn find(&mut self, which: i16) {
        let asm = &mut self.asm;
        asm.copy_to_stack(ADDRESS, R10, FLOW + which, 16, R1);
        asm.load(Size::Byte, R1, R10, FLOW + flow::FAMILY);
        asm.store(Size::Word, R10, ADDRESS + 16, R1);
        asm.lookup(&self.tables.addresses, ADDRESS);
    }
}
