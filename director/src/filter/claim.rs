//! What makes the host's stack take a frame whose MAC address the filter has changed, on veth.
//!
//! On most drivers the kernel looks at a frame's MAC address after the filter has run. On veth it
//! has looked before, found the cluster's address, which is nobody's or a group's, and would drop the
//! frame (or TCP would: it takes nothing that came to a group) although the address is right now.
//! This program, at the entry to traffic control, says once more that a frame to the interface's
//! own address is the host's.

use netio::bpf::Register::{R0, R1, R2, R6, R7, R8};
use netio::bpf::{Assembler, Condition, Helper, Insn, Size, tcx};

/// `PACKET_HOST`: for this host.
const FOR_THIS_HOST: i32 = 0;

/// Writes the tcx program.
pub(super) fn claim(own_mac: [u8; 6]) -> Vec<Insn> {
    let [a, b, c, d, e, f] = own_mac;
    let mut asm = Assembler::new();
    let next = asm.label("next program");
    asm.mov(R6, R1);
    asm.load(Size::Word, R1, R6, tcx::context::PKT_TYPE);
    asm.jump_if(Condition::Equal, R1, FOR_THIS_HOST, next);
    asm.load(Size::Word, R7, R6, tcx::context::DATA);
    asm.load(Size::Word, R8, R6, tcx::context::DATA_END);
    asm.bound(R7, 14, R8, R2, next);
    asm.load(Size::Word, R1, R7, 0);
    asm.jump_if32(Condition::NotEqual, R1, i32::from_ne_bytes([a, b, c, d]), next);
    asm.load(Size::Half, R1, R7, 4);
    asm.jump_if(Condition::NotEqual, R1, i32::from(u16::from_ne_bytes([e, f])), next);
    asm.mov(R1, R6);
    asm.mov(R2, FOR_THIS_HOST);
    asm.call(Helper::SkbChangeType);
    asm.place(next);
    asm.mov(R0, tcx::NEXT);
    asm.exit();
    asm.assemble().expect("every label is placed, none is far")
}
