//! Just enough eBPF: programs written in Rust, loaded with `bpf(2)`, no compiler and no ELF.
//!
//! ```text
//! Assembler --assemble--> Vec<Insn> --Program::load--> Program --Link::attach_xdp--> Link
//!     labels, named registers,            verifier        |          detaches when dropped
//!     one method per instruction                          +--test_run--> TestRun   (no interface)
//! Map (hash, array, per-cpu array, sockets): bytes in, bytes out; sizes are checked
//! ```
//!
//! A program is a pure function from its maps to instructions, so that what it does can be read
//! as a listing ([`Listing`]) and tested packet by packet ([`Program::test_run`]) before any
//! interface sees it. [`Assembler`] has one rule that keeps such programs readable: every packet
//! access is visibly preceded by its proof, [`Assembler::bound`].
//!
//! [`Injector`] goes the other way: it gives a frame to the kernel's stack as if it had just
//! arrived on an interface.
//!
//! Knows the instruction set and the system call. Must not know what a program decides.

mod assembler;
mod error;
mod injector;
mod insn;
mod link;
mod listing;
mod map;
mod program;
mod syscall;
mod test_run;

pub use assembler::{AssembleError, Assembler, Label};
pub use error::{AttachError, LoadError, MapError};
pub use injector::Injector;
pub use insn::{Alu, Condition, Helper, Insn, Operand, Register, Size};
pub use link::{Link, XdpMode};
pub use listing::Listing;
pub use map::{Map, MapKind};
pub use program::{Program, ProgramType};
pub use test_run::{TestContext, TestRun};

/// What an XDP program answers. Source: `enum xdp_action` in `linux/bpf.h`.
pub mod xdp {
    /// The program failed; the packet is dropped and a tracepoint fires.
    pub const ABORTED: i32 = 0;
    /// Drop the packet.
    pub const DROP: i32 = 1;
    /// Up to the kernel's stack.
    pub const PASS: i32 = 2;
    /// Out of the interface it came in by.
    pub const TX: i32 = 3;
    /// To where a redirect helper said.
    pub const REDIRECT: i32 = 4;

    /// Offsets into the context, `struct xdp_md`; each field has four bytes.
    pub mod context {
        /// First byte of the packet (a packet pointer).
        pub const DATA: i16 = 0;
        /// One past the last byte (a packet end pointer).
        pub const DATA_END: i16 = 4;
        /// First byte of metadata; equal to `DATA` when there is none.
        pub const DATA_META: i16 = 8;
        /// Index of the interface that the packet came in by.
        pub const INGRESS_IFINDEX: i16 = 12;
        /// Receive queue that the packet came in by.
        pub const RX_QUEUE_INDEX: i16 = 16;
    }
}

/// What a traffic control (tcx) program answers. Source: `linux/pkt_cls.h`, `enum tcx_action_base`.
pub mod tcx {
    /// No opinion: the next program, then the stack.
    pub const NEXT: i32 = -1;
    /// Up to the stack, whatever later programs think.
    pub const PASS: i32 = 0;
    /// Drop the packet.
    pub const DROP: i32 = 2;

    /// Offsets into the context, `struct __sk_buff`; each field has four bytes.
    pub mod context {
        /// Bytes in the packet, link header and non-linear part included.
        pub const LEN: i16 = 0;
        /// `PACKET_HOST` (0), `PACKET_OTHERHOST` (3) ...
        pub const PKT_TYPE: i16 = 4;
        /// Whether a VLAN tag is kept beside the packet.
        pub const VLAN_PRESENT: i16 = 20;
        /// First byte of the packet (a packet pointer).
        pub const DATA: i16 = 76;
        /// One past the last byte of the linear part (a packet end pointer).
        pub const DATA_END: i16 = 80;
    }
}
