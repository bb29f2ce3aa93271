//! Frames from us to the kernel's stack, as if they had just come in by an interface.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::assembler::Assembler;
use super::error::LoadError;
use super::insn::Register::R0;
use super::program::{Program, ProgramType};
use super::syscall::{self, Command, bpf};
use super::test_run::XdpContext;
use super::xdp;

/// `BPF_F_TEST_XDP_LIVE_FRAMES`: what the program answers is really done to the frame.
const LIVE_FRAMES: u32 = 1 << 1;

/// Gives frames to the kernel's stack as if they had come in by an interface.
///
/// It runs a program that answers "pass" over the frame as a live test (Linux 5.18), with the
/// interface as where it comes from.
#[derive(Debug)]
pub struct Injector {
    program: Program,
    ifindex: u32,
}

impl Injector {
    /// For frames that seem to come in by this interface of this network namespace.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn new(ifindex: u32) -> Result<Injector, LoadError> {
        let mut asm = Assembler::new();
        asm.mov(R0, xdp::PASS);
        asm.exit();
        let insns = asm.assemble().expect("no labels, so none is missing");
        let program = Program::load(ProgramType::Xdp, "inject", &insns)?;
        Ok(Injector { program, ifindex })
    }

    /// Passes one frame up, Ethernet header first.
    ///
    /// # Errors
    /// When the frame is shorter than 14 bytes or longer than about 3400, or the interface is gone.
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
