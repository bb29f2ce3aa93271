//! The steering program and the guard, which share every decision.
//!
//! ```text
//!   Ethernet ---- our mark as source address ------------------------------------> pass
//!      | one VLAN tag or none
//!      +---- neither IPv4 nor IPv6 ----------------------------------------------> pass
//!   IP header (options; up to four IPv6 extension headers)
//!      |
//!      +---- later fragment of a transport --> addresses: service? server? ------> hit / pass
//!      |
//!      +---- ICMP error ----> quoted IP header
//!      |                         |     +---- a tunnel's --> tunnel server? ------> hit / pass
//!      |                         |
//!      |      destination: service    source: service        (what is looked for where)
//!      |      source: server          destination: server
//!      |                         |
//!      +--------> transport <----+
//!                    |  TCP, UDP, SCTP: ports, then four look-ups
//!                    +---- {destination, port} {destination, 0} {source, port} {source, 0}
//!                    |                                                      ----> hit / pass
//!                    |  TCP, ports from 1024 on: may it be a data connection of FTP?
//!                    +---- {destination, data} {source, data} --------------------> hit / pass
//!   steering: hit = to the socket of the receive queue, pass = XDP_PASS, untouched
//!   guard:    hit = drop,                               pass = next program
//! ```
//!
//! The middle of the chart is in `decision.rs`; here are the two programs around it.

use netio::bpf::Register::{R0, R1, R2, R3};
use netio::bpf::{Alu, Condition, Helper, Insn, Map, Size, tcx, xdp};

use super::Mark;
use super::decision::{CONTEXT, END, HEADER, Writer};

/// The guard sees to it that this much of a packet lies in one piece: the longest headers that
/// are worth reading.
const LINEAR: i32 = 256;

/// Writes the XDP program. `keys` is the map of [`Steering`](super::Steering), `sockets` one of
/// AF_XDP sockets by receive queue. A frame that hits while its queue has no socket gets the
/// verdict `without_socket`: [`xdp::PASS`] in earnest, [`xdp::ABORTED`] in tests, to tell it from a
/// frame that does not hit. Frames that bear `mark` pass.
pub fn steering(keys: &Map, sockets: &Map, mark: Option<Mark>, without_socket: i32) -> Vec<Insn> {
    let mut writer = Writer::new(keys);
    writer.asm.mov(CONTEXT, R1);
    writer.packet(xdp::context::DATA, xdp::context::DATA_END);
    writer.decision(mark, None);

    let Writer { mut asm, hit, pass, .. } = writer;
    asm.place(hit);
    asm.load_map(R1, sockets);
    asm.load(Size::Word, R2, CONTEXT, xdp::context::RX_QUEUE_INDEX);
    asm.mov(R3, without_socket);
    asm.call(Helper::RedirectMap);
    asm.exit();
    asm.place(pass);
    asm.mov(R0, xdp::PASS);
    asm.exit();
    asm.assemble().expect("every label is placed, none is far")
}

/// Writes the tcx program that keeps the host's stack from answering, or forwarding, what the
/// director reads over AF_PACKET: it drops what steering would take.
pub fn guard(keys: &Map, mark: Option<Mark>) -> Vec<Insn> {
    let mut writer = Writer::new(keys);
    let asm = &mut writer.asm;
    asm.mov(CONTEXT, R1);
    let short = asm.label("short");
    asm.load(Size::Word, R2, CONTEXT, tcx::context::LEN);
    asm.jump_if(Condition::LessOrEqual, R2, LINEAR, short);
    asm.mov(R2, LINEAR);
    asm.place(short);
    writer.packet(tcx::context::DATA, tcx::context::DATA_END);
    let asm = &mut writer.asm;
    let linear = asm.label("linear");
    asm.mov(R3, HEADER);
    asm.alu(Alu::Add, R3, R2);
    asm.jump_if(Condition::LessOrEqual, R3, END, linear);
    asm.mov(R1, CONTEXT);
    asm.call(Helper::SkbPullData);
    writer.packet(tcx::context::DATA, tcx::context::DATA_END);
    writer.asm.place(linear);
    // The tag of the wire is kept beside the packet here; a second one is not looked through.
    writer.decision(mark, Some(tcx::context::VLAN_PRESENT));

    let Writer { mut asm, hit, pass, .. } = writer;
    asm.place(hit);
    asm.mov(R0, tcx::DROP);
    asm.exit();
    asm.place(pass);
    asm.mov(R0, tcx::NEXT);
    asm.exit();
    asm.assemble().expect("every label is placed, none is far")
}
