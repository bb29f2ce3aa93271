//! A host that refuses datagrams: what a packet filter between director and server would do.

use anyhow::{Context, Result};
use netio::bpf::Register::{R0, R1, R2, R3, R4};
use netio::bpf::{Assembler, Condition, Insn, Link, Program, ProgramType, Size, XdpMode, xdp};

use super::{Host, netlink};

/// Datagrams to a port do not arrive on an interface of a host, until this is dropped.
#[derive(Debug)]
pub struct Refusal {
    _link: Link,
}

/// Where what is read stands in an IPv4 packet without options behind an Ethernet header.
const ETHERTYPE: i16 = 12;
const PROTOCOL: i16 = 23;
const PORT: i16 = 36;
const END: i32 = 38;

impl Host {
    /// Drops UDP over IPv4 to `port` as it arrives on `interface`, without a word to the sender.
    ///
    /// # Errors
    /// When another XDP program holds the interface, or the kernel refuses.
    pub fn refuse_udp(&self, interface: &str, port: u16) -> Result<Refusal> {
        let insns = program(port);
        self.run(|| -> Result<Refusal> {
            let program = Program::load(ProgramType::Xdp, "refuse_udp", &insns)?;
            let index = netlink::index(interface)?;
            Ok(Refusal { _link: Link::attach_xdp(&program, index, XdpMode::Generic)? })
        })?
        .with_context(|| format!("{}: refuse UDP to port {port}", self.name()))
    }
}

fn program(port: u16) -> Vec<Insn> {
    let order = |value: u16| i32::from(u16::from_ne_bytes(value.to_be_bytes()));
    let mut asm = Assembler::new();
    let pass = asm.label("pass");
    asm.load(Size::Word, R2, R1, xdp::context::DATA);
    asm.load(Size::Word, R3, R1, xdp::context::DATA_END);
    asm.bound(R2, END, R3, R4, pass);
    asm.load(Size::Half, R4, R2, ETHERTYPE);
    asm.jump_if(Condition::NotEqual, R4, order(0x0800), pass);
    asm.load(Size::Byte, R4, R2, PROTOCOL);
    asm.jump_if(Condition::NotEqual, R4, 17, pass);
    asm.load(Size::Half, R4, R2, PORT);
    asm.jump_if(Condition::NotEqual, R4, order(port), pass);
    asm.mov(R0, xdp::DROP);
    asm.exit();
    asm.place(pass);
    asm.mov(R0, xdp::PASS);
    asm.exit();
    asm.assemble().expect("every label is placed, none is far")
}
