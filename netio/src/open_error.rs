//! Why a port over a kernel socket could not be opened, and what the operator can do about it.

use std::io;

use crate::interface::InterfaceError;

/// Where privileges come from, the same for all errors of that kind, so that who follows one
/// message does not meet the next. CAP_PERFMON is for the verifier: without it, it allows no packet
/// pointer to move by a length read from the packet. CAP_IPC_LOCK is for packet memory beyond
/// RLIMIT_MEMLOCK.
pub(crate) const PRIVILEGES: &str = "run as root in the initial user namespace, or give the \
    process CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON and CAP_IPC_LOCK \
    (AmbientCapabilities= in its unit file)";

/// Why a socket port could not be opened. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such interface, or it could not be asked.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The process may not open such sockets.
    #[error("no permission to open an {family} socket: {PRIVILEGES}")]
    Permission {
        /// "AF_XDP" or "AF_PACKET".
        family: &'static str,
    },
    /// The kernel was built without such sockets.
    #[error(
        "this kernel has no {family} sockets: it needs {option}=y; the director can use another kind of port"
    )]
    NotInKernel {
        /// "AF_XDP" or "AF_PACKET".
        family: &'static str,
        /// The kernel's build option.
        option: &'static str,
    },
    /// The interface's driver cannot do AF_XDP zero-copy on that queue (`EOPNOTSUPP`, also with
    /// an MTU too large for it).
    #[error(
        "{interface} queue {queue}: the driver offers no AF_XDP zero-copy here; use copy mode, or lower the MTU \
         if the driver is known to offer it"
    )]
    ZeroCopyUnsupported {
        /// The interface's name.
        interface: String,
        /// Its queue.
        queue: u32,
    },
    /// Sockets that share a pool share the mode of the first.
    #[error(
        "{interface} queue {queue}: asked for {asked}, but the sockets that share this pool are in {shared} mode; \
         use one mode for all ports of a worker"
    )]
    ModeMismatch {
        /// The interface's name.
        interface: String,
        /// Its queue.
        queue: u32,
        /// The mode asked for.
        asked: crate::xsk::Bind,
        /// The mode that the pool's sockets have.
        shared: crate::xsk::Bind,
    },
    /// The interface has fewer queues.
    #[error("{interface} has no queue {queue}: it has {queues} (0..={})", queues.saturating_sub(1))]
    NoSuchQueue {
        /// The interface's name.
        interface: String,
        /// The queue asked for.
        queue: u32,
        /// How many there are.
        queues: u32,
    },
    /// Another socket is bound to the queue and stayed so for as long as we retried.
    #[error(
        "{interface} queue {queue} is held by another AF_XDP socket: another process (another director?) has it; \
         `ss --xdp` or `bpftool net` shows which, stop it first"
    )]
    Busy {
        /// The interface's name.
        interface: String,
        /// Its queue.
        queue: u32,
    },
    /// The pool's memory cannot be locked.
    #[error(
        "{needed} bytes of packet memory cannot be locked (RLIMIT_MEMLOCK is {limit}): raise it (LimitMEMLOCK=infinity \
         in the unit file, `ulimit -l unlimited`), or give the process CAP_IPC_LOCK, or use fewer frames"
    )]
    MemoryLimit {
        /// Bytes of the pool.
        needed: usize,
        /// Bytes allowed; `u64::MAX` is no limit.
        limit: u64,
    },
    /// AF_XDP wants a chunk to fit in a page.
    #[error("AF_XDP takes chunks of 2048 or 4096 bytes, not {chunk_size}")]
    ChunkSize {
        /// Of the pool.
        chunk_size: usize,
    },
    /// Ring sizes must be powers of two.
    #[error("a ring ({ring}) of {size} entries: the size must be a power of two from 64 to 32768")]
    RingSize {
        /// Which of them.
        ring: &'static str,
        /// As asked for.
        size: u32,
    },
    /// The pool has not enough free chunks to fill the socket's fill ring.
    #[error(
        "the fill ring needs {needed} chunks and the pool has {available} left: make the pool larger (a worker needs \
         the RX ring and two times the TX ring for every port) or the rings smaller"
    )]
    PoolExhausted {
        /// Chunks for the fill ring.
        needed: usize,
        /// Chunks that are free.
        available: usize,
    },
    /// Any other refusal.
    #[error("{step} on {interface}: {source}")]
    System {
        /// What was tried.
        step: &'static str,
        /// The interface's name.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl OpenError {
    /// Reads the error of socket(2).
    pub(crate) fn of_socket(
        family: &'static str,
        option: &'static str,
        interface: &str,
        source: io::Error,
    ) -> OpenError {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => OpenError::Permission { family },
            Some(libc::EAFNOSUPPORT | libc::ESOCKTNOSUPPORT) => {
                OpenError::NotInKernel { family, option }
            }
            _ => OpenError::System { step: "socket", interface: interface.to_owned(), source },
        }
    }

    /// Makes a function that says at which step the kernel refused.
    pub(crate) fn at(step: &'static str, interface: &str) -> impl FnOnce(io::Error) -> OpenError {
        let interface = interface.to_owned();
        move |source| OpenError::System { step, interface, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_socket_names_the_capability() {
        let refused = io::Error::from_raw_os_error(libc::EPERM);
        let error = OpenError::of_socket("AF_XDP", "CONFIG_XDP_SOCKETS", "eth0", refused);
        assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
        let lacking = io::Error::from_raw_os_error(libc::EAFNOSUPPORT);
        let error = OpenError::of_socket("AF_XDP", "CONFIG_XDP_SOCKETS", "eth0", lacking);
        assert!(error.to_string().contains("CONFIG_XDP_SOCKETS"), "{error}");
    }
}
