//! Attaching programs to interfaces, for as long as we live.
//!
//! A link belongs to its file descriptor: when it is dropped, or the process dies however it dies,
//! the program is detached and traffic returns to the kernel's stack at once.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::error::AttachError;
use super::program::{Program, ProgramType};
use super::syscall::{self, Command, bpf, bpf_create};

/// Numbers of `enum bpf_attach_type`.
pub(super) mod attach_type {
    pub(crate) const XDP: u32 = 37;
    pub(crate) const TCX_INGRESS: u32 = 46;
}

/// How an XDP program gets its packets. The discriminant is the kernel's flag (`linux/if_link.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum XdpMode {
    /// In the driver, before an skb is made (`XDP_FLAGS_DRV_MODE`).
    Native = 1 << 2,
    /// At the entry to the stack, for any driver (`XDP_FLAGS_SKB_MODE`).
    Generic = 1 << 1,
}

impl std::fmt::Display for XdpMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        })
    }
}

/// A program at work on an interface. Detaches it when dropped.
#[derive(Debug)]
pub struct Link {
    fd: OwnedFd,
    ifindex: u32,
}

impl Link {
    /// Attaches an XDP program to an interface of this network namespace.
    ///
    /// # Errors
    /// When another program holds the interface, the driver or its MTU do not allow it, or it is
    /// not permitted.
    pub fn attach_xdp(program: &Program, ifindex: u32, mode: XdpMode) -> Result<Link, AttachError> {
        Link::create(program, ifindex, attach_type::XDP, mode as u32)
    }

    /// Attaches a [`SchedCls`](ProgramType::SchedCls) program to the packets that an interface of
    /// this network namespace receives, behind the programs already there. It runs after
    /// AF_PACKET sockets have had their copy and before the network layer.
    ///
    /// # Errors
    /// When the kernel is older than 6.6, or it is not permitted.
    pub fn attach_tcx_ingress(program: &Program, ifindex: u32) -> Result<Link, AttachError> {
        Link::create(program, ifindex, attach_type::TCX_INGRESS, 0)
    }

    /// Puts another program of the same type in place of the present one. No packet meets neither.
    ///
    /// # Errors
    /// When the kernel refuses, for example because the interface has been removed.
    pub fn update(&mut self, program: &Program) -> Result<(), AttachError> {
        let mut attributes = syscall::LinkUpdate {
            link_fd: self.fd.as_raw_fd() as u32,
            new_prog_fd: program.as_fd().as_raw_fd() as u32,
            ..Default::default()
        };
        // SAFETY: the block holds no addresses.
        unsafe { bpf(Command::LinkUpdate, &mut attributes) }
            .map(drop)
            .map_err(|source| self.failure(source))
    }

    /// The interface that it was attached to.
    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    fn create(
        program: &Program,
        ifindex: u32,
        attach_type: u32,
        flags: u32,
    ) -> Result<Link, AttachError> {
        let wanted = match attach_type {
            attach_type::TCX_INGRESS => program.kind() == ProgramType::SchedCls,
            _ => program.kind() != ProgramType::SchedCls,
        };
        assert!(wanted, "{:?} program attached elsewhere", program.kind());
        let mut attributes = syscall::LinkCreate {
            prog_fd: program.as_fd().as_raw_fd() as u32,
            target_ifindex: ifindex,
            attach_type,
            flags,
            ..Default::default()
        };
        // SAFETY: the block holds no addresses.
        let fd = unsafe { bpf_create(Command::LinkCreate, &mut attributes) }
            .map_err(|source| AttachError::new(ifindex, source))?;
        Ok(Link { fd, ifindex })
    }

    /// When the interface goes away, the kernel cuts the link (ENOLINK).
    fn failure(&self, source: io::Error) -> AttachError {
        match source.raw_os_error() {
            Some(libc::ENOLINK) => AttachError::NoDevice { ifindex: self.ifindex },
            _ => AttachError::new(self.ifindex, source),
        }
    }
}
