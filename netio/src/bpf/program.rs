//! Loading a program: the verifier looks at it, and keeps it or says why not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::error::LoadError;
use super::insn::Insn;
use super::link::attach_type;
use super::syscall::{self, Command, bpf_create};

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramType {
    /// On each frame that an interface receives, before the kernel's stack; frames in one buffer.
    Xdp,
    /// As `Xdp`, also for frames in several buffers (large MTUs); the program sees the first.
    XdpFragments,
    /// On each packet at the tcx (traffic control) hook.
    SchedCls,
}

/// `BPF_F_XDP_HAS_FRAGS`.
const XDP_HAS_FRAGS: u32 = 1 << 5;
/// Room for the verifier's log.
const LOG_SIZE: usize = 1 << 20;
/// How many of its lines an error shows: the last instructions tried and the verdict on them.
const LOG_LINES: usize = 16;
/// The verifier gives way to signals; that many times we ask again, as libbpf does.
const ATTEMPTS: usize = 5;
/// None of the helpers we use is reserved for GPL programs.
const LICENSE: &std::ffi::CStr = c"MIT OR Apache-2.0";

impl ProgramType {
    fn number(self) -> u32 {
        match self {
            ProgramType::SchedCls => 3,
            ProgramType::Xdp | ProgramType::XdpFragments => 6,
        }
    }

    fn expected_attach_type(self) -> u32 {
        match self {
            ProgramType::SchedCls => attach_type::TCX_INGRESS,
            ProgramType::Xdp | ProgramType::XdpFragments => attach_type::XDP,
        }
    }
}

/// A program that the kernel has verified; unloaded when dropped, unless a link holds it.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
    kind: ProgramType,
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Program {
    /// Loads a program. `name` is what `bpftool prog` shows (15 characters).
    ///
    /// # Errors
    /// When it is not permitted, or the verifier refuses; then the error holds the end of its log.
    pub fn load(kind: ProgramType, name: &str, insns: &[Insn]) -> Result<Program, LoadError> {
        let error = match load(kind, name, insns, &mut []) {
            Ok(fd) => return Ok(Program { fd, kind }),
            Err(error) => error,
        };
        let name = name.to_owned();
        match error.raw_os_error() {
            Some(libc::EPERM) => Err(LoadError::NotPermitted { name }),
            Some(libc::EINVAL | libc::EACCES | libc::E2BIG | libc::EFAULT) => {
                // Only now pay for the log.
                let mut log = vec![0; LOG_SIZE];
                match load(kind, &name, insns, &mut log) {
                    Ok(fd) => Ok(Program { fd, kind }),
                    Err(source) => {
                        let log = last_lines(&log, LOG_LINES);
                        // What the verifier says of all that CAP_PERFMON would allow.
                        if log.ends_with("prohibited for !root") {
                            return Err(LoadError::NotPermitted { name });
                        }
                        Err(LoadError::Refused { name, source, log })
                    }
                }
            }
            _ => Err(LoadError::Kernel { name, source: error }),
        }
    }

    /// Where it runs.
    pub fn kind(&self) -> ProgramType {
        self.kind
    }
}

fn load(kind: ProgramType, name: &str, insns: &[Insn], log: &mut [u8]) -> io::Result<OwnedFd> {
    let mut attempts = 1..;
    loop {
        let mut attributes = syscall::ProgLoad {
            prog_type: kind.number(),
            insn_cnt: insns.len() as u32,
            insns: insns.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            prog_flags: match kind {
                ProgramType::XdpFragments => XDP_HAS_FRAGS,
                _ => 0,
            },
            prog_name: syscall::name(name),
            expected_attach_type: kind.expected_attach_type(),
            ..Default::default()
        };
        if !log.is_empty() {
            attributes.log_level = 1;
            attributes.log_size = log.len() as u32;
            attributes.log_buf = log.as_mut_ptr() as u64;
        }
        // SAFETY: instructions and licence are read, the log is written, each within the length
        // given; all outlive the call.
        match unsafe { bpf_create(Command::ProgLoad, &mut attributes) } {
            Err(error)
                if error.raw_os_error() == Some(libc::EAGAIN)
                    && attempts.next() < Some(ATTEMPTS) => {}
            result => return result,
        }
    }
}

/// The end of a log that a zero byte ends.
fn last_lines(log: &[u8], count: usize) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    // The very last lines are statistics.
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("processed ") && !line.starts_with("verification time"))
        .collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tail_ends_with_the_verdict_and_not_with_statistics() {
        let log = b"0: r0 = r1\n1: exit\nR0 leaks addr\nprocessed 2 insns (limit 1000000)\n\0\0";
        assert_eq!(last_lines(log, 2), "1: exit\nR0 leaks addr");
    }
}
