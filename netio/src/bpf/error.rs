//! What can go wrong between us and `bpf(2)`, and what the operator can do about it.

use std::io;

use crate::open_error::PRIVILEGES;

/// Why a map could not be made, read or written.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The process may not use `bpf(2)`.
    #[error("eBPF map {name}: not permitted: {PRIVILEGES}")]
    NotPermitted {
        /// The map.
        name: String,
    },
    /// No room for another key.
    #[error("eBPF map {name} is full ({capacity} entries); create it with a larger capacity")]
    Full {
        /// The map.
        name: String,
        /// Entries that it holds at most.
        capacity: u32,
    },
    /// A key or value of the wrong size: a mistake in the calling code.
    #[error("eBPF map {name}: {what} has {got} bytes, but the map's have {expected}")]
    WrongSize {
        /// The map.
        name: String,
        /// "key" or "value".
        what: &'static str,
        /// Bytes that the map was made with.
        expected: usize,
        /// Bytes given.
        got: usize,
    },
    /// Anything else the kernel said.
    #[error("eBPF map {name}: cannot {action}: {source}")]
    Kernel {
        /// The map.
        name: String,
        /// What was tried.
        action: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Why a program was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The process may not load programs.
    #[error("cannot load eBPF program {name}: not permitted: {PRIVILEGES}")]
    NotPermitted {
        /// The program.
        name: String,
    },
    /// The verifier could not prove that the program is safe: a mistake in it, or a kernel that
    /// knows less than 5.18 does.
    #[error("the kernel's verifier refused eBPF program {name} ({source}):\n{log}")]
    Refused {
        /// The program.
        name: String,
        /// The kernel's answer.
        source: io::Error,
        /// The last lines of the verifier's log; they name the instruction, as numbered by
        /// [`Listing`](super::Listing).
        log: String,
    },
    /// Anything else the kernel said.
    #[error("cannot load eBPF program {name}: {source}")]
    Kernel {
        /// The program.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Why a program was not attached to an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Someone else's XDP program holds the interface.
    #[error(
        "interface {interface} already has an XDP program: another director, or `ip link show \
         dev {interface}` names it; stop it, or remove it with `ip link set dev {interface} xdp off`"
    )]
    Busy {
        /// The interface.
        interface: String,
    },
    /// The driver has no native XDP.
    #[error(
        "the driver of interface {interface} has no native XDP (or not with its present offloads: \
         try `ethtool -K {interface} lro off gro-hw off`); use generic mode"
    )]
    NotSupported {
        /// The interface.
        interface: String,
    },
    /// Frames of this MTU do not fit into one page behind the XDP headroom.
    #[error(
        "the MTU of interface {interface} is too large for XDP with frames in one buffer \
         (limit 3506 on veth): lower it with `ip link set dev {interface} mtu 1500`, or use a \
         program for fragmented frames or generic mode"
    )]
    MtuTooLarge {
        /// The interface.
        interface: String,
    },
    /// The process may not attach programs.
    #[error("cannot attach to interface {interface}: not permitted: {PRIVILEGES}")]
    NotPermitted {
        /// The interface.
        interface: String,
    },
    /// No such interface in this network namespace.
    #[error(
        "no interface has index {ifindex} in this network namespace: it was removed, or the \
         process runs in another namespace than it"
    )]
    NoDevice {
        /// The index.
        ifindex: u32,
    },
    /// The kernel does not know this kind of link.
    #[error(
        "the kernel refused the link on interface {interface} ({source}): XDP links need Linux \
         5.9, tcx links 6.6"
    )]
    Refused {
        /// The interface.
        interface: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Anything else the kernel said.
    #[error("cannot attach to interface {interface}: {source}")]
    Kernel {
        /// The interface.
        interface: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl AttachError {
    /// Sorts the kernel's answer to an attempt to attach to an interface.
    pub(super) fn new(ifindex: u32, source: io::Error) -> AttachError {
        let Some(interface) = interface_name(ifindex) else {
            return AttachError::NoDevice { ifindex };
        };
        match source.raw_os_error() {
            // EEXIST: a program is there in the other mode (native or generic).
            Some(libc::EBUSY | libc::EEXIST) => AttachError::Busy { interface },
            Some(libc::EOPNOTSUPP) => AttachError::NotSupported { interface },
            Some(libc::ERANGE) => AttachError::MtuTooLarge { interface },
            Some(libc::EPERM | libc::EACCES) => AttachError::NotPermitted { interface },
            Some(libc::ENODEV) => AttachError::NoDevice { ifindex },
            Some(libc::EINVAL) => AttachError::Refused { interface, source },
            _ => AttachError::Kernel { interface, source },
        }
    }
}

/// The interface's name in the calling thread's network namespace.
fn interface_name(ifindex: u32) -> Option<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the size that if_indextoname(3) demands.
    let found = unsafe { libc::if_indextoname(ifindex, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return None;
    }
    let text = std::ffi::CStr::from_bytes_until_nul(&name).ok()?;
    Some(text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_loopback(errno: i32) -> AttachError {
        AttachError::new(1, io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn every_refusal_names_the_interface_and_a_remedy() {
        for (errno, remedy) in [
            (libc::EBUSY, "ip link set dev lo xdp off"),
            (libc::EEXIST, "stop it"),
            (libc::EOPNOTSUPP, "use generic mode"),
            (libc::ERANGE, "3506"),
            (libc::EPERM, "CAP_NET_ADMIN"),
            (libc::EINVAL, "need Linux 5.9"),
        ] {
            let message = on_loopback(errno).to_string();
            assert!(message.contains(remedy), "{message}");
            assert!(message.contains("interface lo"), "{message}");
        }
    }

    #[test]
    fn an_interface_that_is_gone_is_said_to_be_gone_whatever_the_kernel_answers() {
        // For an unknown index an XDP link answers EINVAL, a tcx link ENODEV.
        let error = AttachError::new(0x7fff_fff0, io::Error::from_raw_os_error(libc::EINVAL));
        assert!(matches!(error, AttachError::NoDevice { .. }), "{error}");
    }
}
