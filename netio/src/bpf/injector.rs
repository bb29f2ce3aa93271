//! Frames from us to the kernel's stack, as if they had just come in by an interface.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::assembler::Assembler;
use super::error::LoadError;
use super::insn::Register::{R0, R1, R2, R7, R8};
use super::insn::Size;
use super::program::{Program, ProgramType};
use super::syscall::{self, Command, bpf};
use super::test_run::XdpContext;
use super::xdp;

/// `BPF_F_TEST_XDP_LIVE_FRAMES`: what the program answers is really done to the frame.
const LIVE_FRAMES: u32 = 1 << 1;

/// Gives frames to the kernel's stack as if they had come in by an interface.
///
/// It runs a program that answers "pass" over the frame as a live test (Linux 5.18), with the
/// interface as where it comes from. Tried on Linux 6.18 with veth:
///
/// * The frame enters the stack behind native XDP, so a native program that took it does not see
///   it again; the destination address is compared with the interface's, as on the wire.
/// * A *generic* XDP program, tcx programs and AF_PACKET sockets do see it (again). They have to
///   know it by the [`mark`](Self::with_mark), or the frame goes round in circles.
/// * The frame fits into one page: 14 to [`MAX_FRAME`](Self::MAX_FRAME) bytes.
/// * A checksum that is still to be completed is not known as such: complete it before.
/// * It costs about ten microseconds; that is for the odd packet, not for traffic.
/// * The interface may be down, the frame is then lost without an error.
#[derive(Debug)]
pub struct Injector {
    program: Program,
    ifindex: u32,
}

impl Injector {
    /// Bytes of the longest frame that can be passed up: a page less the headroom of XDP and what
    /// the kernel keeps in front and behind (4 KiB pages).
    pub const MAX_FRAME: usize = 3392;

    /// For frames that seem to come in by this interface of this network namespace.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn new(ifindex: u32) -> Result<Injector, LoadError> {
        Injector::running(ifindex, None)
    }

    /// As [`new`](Self::new), and the frames bear `mark` as their Ethernet source address, which
    /// the network layer does not look at. Programs on the same interface know by it what to let
    /// pass.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn with_mark(ifindex: u32, mark: [u8; 6]) -> Result<Injector, LoadError> {
        Injector::running(ifindex, Some(mark))
    }

    fn running(ifindex: u32, mark: Option<[u8; 6]>) -> Result<Injector, LoadError> {
        let mut asm = Assembler::new();
        if let Some([a, b, c, d, e, f]) = mark {
            let pass = asm.label("pass");
            asm.load(Size::Word, R7, R1, xdp::context::DATA);
            asm.load(Size::Word, R8, R1, xdp::context::DATA_END);
            asm.bound(R7, 14, R8, R2, pass);
            asm.store(Size::Word, R7, 6, i32::from_ne_bytes([a, b, c, d]));
            asm.store(Size::Half, R7, 10, i32::from(u16::from_ne_bytes([e, f])));
            asm.place(pass);
        }
        asm.mov(R0, xdp::PASS);
        asm.exit();
        let insns = asm.assemble().expect("the only label is placed");
        let program = Program::load(ProgramType::Xdp, "inject", &insns)?;
        Ok(Injector { program, ifindex })
    }

    /// Passes one frame up, Ethernet header first.
    ///
    /// # Errors
    /// When the frame is too short or too long, or the interface is gone (ENODEV).
    pub fn inject(&self, frame: &[u8]) -> io::Result<()> {
        let context = XdpContext {
            data: 0,
            data_end: frame.len() as u32,
            data_meta: 0,
            ingress_ifindex: self.ifindex,
            rx_queue_index: 0,
            egress_ifindex: 0,
        };
        let mut attributes = syscall::ProgTestRun {
            prog_fd: self.program.as_fd().as_raw_fd() as u32,
            data_size_in: frame.len() as u32,
            data_in: frame.as_ptr() as u64,
            repeat: 1,
            ctx_size_in: size_of::<XdpContext>() as u32,
            ctx_in: std::ptr::from_ref(&context) as u64,
            flags: LIVE_FRAMES,
            batch_size: 1,
            ..Default::default()
        };
        // SAFETY: frame and context are read within the length given and outlive the call.
        unsafe { bpf(Command::ProgTestRun, &mut attributes) }.map(drop)
    }
}
