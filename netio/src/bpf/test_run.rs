//! Running a program on one packet, without an interface (`BPF_PROG_TEST_RUN`).

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use super::program::{Program, ProgramType};
use super::syscall::{self, Command, bpf};

/// Where the packet pretends to have come from. The default is nowhere: index 0, queue 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestContext {
    /// Interface of this network namespace, or 0 (XDP only).
    pub ingress_ifindex: u32,
    /// Receive queue of that interface; must exist (XDP only).
    pub rx_queue: u32,
    /// How many times to run, for timing; 0 counts as 1.
    pub repeat: u32,
}

impl Default for TestContext {
    fn default() -> TestContext {
        TestContext { ingress_ifindex: 0, rx_queue: 0, repeat: 1 }
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// What the program answered: a constant of [`xdp`](super::xdp) or [`tcx`](super::tcx).
    pub verdict: i32,
    /// The packet afterwards.
    pub data: Vec<u8>,
    /// Time that one run took, the mean over all.
    pub duration: Duration,
}

/// `struct xdp_md`.
#[repr(C)]
pub(super) struct XdpContext {
    pub(super) data: u32,
    pub(super) data_end: u32,
    pub(super) data_meta: u32,
    pub(super) ingress_ifindex: u32,
    pub(super) rx_queue_index: u32,
    pub(super) egress_ifindex: u32,
}

/// By how much a test program may lengthen the packet.
const GROWTH: usize = 256;

impl Program {
    /// Runs the program on a frame of at least 14 bytes. Nothing is transmitted or redirected;
    /// maps are read and written.
    ///
    /// # Errors
    /// When the kernel refuses: frame too short or longer than about 3500 bytes, no such interface
    /// or queue, or not permitted.
    pub fn test_run(&self, frame: &[u8], context: &TestContext) -> io::Result<TestRun> {
        let mut data = vec![0; frame.len() + GROWTH];
        let xdp = XdpContext {
            data: 0,
            data_end: frame.len() as u32,
            data_meta: 0,
            ingress_ifindex: context.ingress_ifindex,
            rx_queue_index: context.rx_queue,
            egress_ifindex: 0,
        };
        loop {
            let mut attributes = syscall::ProgTestRun {
                prog_fd: self.as_fd().as_raw_fd() as u32,
                data_size_in: frame.len() as u32,
                data_size_out: data.len() as u32,
                data_in: frame.as_ptr() as u64,
                data_out: data.as_mut_ptr() as u64,
                repeat: context.repeat.max(1),
                ..Default::default()
            };
            if self.kind() != ProgramType::SchedCls {
                attributes.ctx_size_in = size_of::<XdpContext>() as u32;
                attributes.ctx_in = std::ptr::from_ref(&xdp) as u64;
            }
            // SAFETY: frame and context are read, `data` is written, each within the length given;
            // all outlive the call.
            match unsafe { bpf(Command::ProgTestRun, &mut attributes) } {
                Ok(_) => {
                    data.truncate(attributes.data_size_out as usize);
                    return Ok(TestRun {
                        verdict: attributes.retval as i32,
                        data,
                        duration: Duration::from_nanos(attributes.duration.into()),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
