//! Memory shared with the kernel: a pool becomes a UMEM with its first AF_XDP socket.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

use super::Bind;
use super::metadata::METADATA;
use crate::{Pool, sockopt};

/// The sockets that have a pool for their UMEM. The first registers the memory; the others bind to
/// it by way of any that is still open.
#[derive(Debug, Default)]
pub(crate) struct Sharers {
    sockets: Vec<Sharer>,
    metadata: bool,
}

#[derive(Debug)]
struct Sharer {
    socket: Weak<OwnedFd>,
    interface: u32,
    queue: u32,
    mode: Bind,
}

/// How a new socket gets at the pool's memory.
#[derive(Debug)]
pub(crate) struct Umem {
    /// The socket to share with; `None` when the memory has just been registered with the new one.
    pub(crate) shared: Option<(Arc<OwnedFd>, Bind)>,
    /// Whether there is TX metadata before frames.
    pub(crate) metadata: bool,
}

impl Umem {
    /// Registers the memory of `pool` with `fd`, unless another socket already has.
    ///
    /// # Errors
    /// `ENOBUFS` when more memory would be locked than the process may.
    pub(crate) fn of(pool: &mut Pool, fd: BorrowedFd<'_>) -> io::Result<Umem> {
        if let Some(shared) = pool.sharers.any() {
            return Ok(Umem { shared: Some(shared), metadata: pool.sharers.metadata });
        }
        raise_memory_limit();
        let metadata = register(pool, fd)?;
        pool.sharers.metadata = metadata;
        Ok(Umem { shared: None, metadata })
    }
}

impl Sharers {
    fn any(&mut self) -> Option<(Arc<OwnedFd>, Bind)> {
        self.sockets.retain(|sharer| sharer.socket.strong_count() > 0);
        self.sockets.iter().find_map(|sharer| Some((sharer.socket.upgrade()?, sharer.mode)))
    }

    /// Whether an open socket of this pool has that queue.
    pub(crate) fn have(&self, interface: u32, queue: u32) -> bool {
        self.sockets.iter().any(|sharer| {
            (sharer.interface, sharer.queue) == (interface, queue)
                && sharer.socket.strong_count() > 0
        })
    }

    /// Notes a socket that has been bound.
    pub(crate) fn add(&mut self, socket: &Arc<OwnedFd>, interface: u32, queue: u32, mode: Bind) {
        self.sockets.push(Sharer { socket: Arc::downgrade(socket), interface, queue, mode });
    }
}

/// Registers with TX metadata if the kernel takes that (Linux 6.8 and later), else without; says which.
fn register(pool: &Pool, fd: BorrowedFd<'_>) -> io::Result<bool> {
    let bytes = pool.capacity() * pool.chunk_size();
    let plain = libc::xdp_umem_reg {
        addr: pool.area().at(0, bytes).as_ptr() as u64,
        // Whole pages, as older kernels want; the mapping has them.
        len: bytes.next_multiple_of(page_size()) as u64,
        chunk_size: pool.chunk_size() as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    let with_metadata = libc::xdp_umem_reg {
        flags: libc::XDP_UMEM_TX_METADATA_LEN,
        tx_metadata_len: METADATA,
        ..plain
    };
    let set =
        |registration| sockopt::set(fd.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, registration);
    match set(with_metadata) {
        Ok(()) => Ok(true),
        Err(refused) if refused.raw_os_error() == Some(libc::EINVAL) => set(plain).map(|()| false),
        Err(refused) => Err(refused),
    }
}

/// Bytes in a page: also the largest chunk that AF_XDP takes.
pub(crate) fn page_size() -> usize {
    // SAFETY: no pointers; the answer is a constant of the machine.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Bytes that the process may lock; `u64::MAX` is no limit.
pub(crate) fn memory_limit() -> u64 {
    limits().rlim_cur
}

fn limits() -> libc::rlimit {
    // SAFETY: a C struct of integers; zero is a value.
    let mut limits: libc::rlimit = unsafe { mem::zeroed() };
    // SAFETY: the kernel fills in `limits` during the call.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limits) };
    limits
}

/// Lifts the limit on locked memory as far as the process may. No error: with CAP_IPC_LOCK the
/// limit does not matter, and if it does, the registration says so.
fn raise_memory_limit() {
    let set = |limits: libc::rlimit| {
        // SAFETY: the kernel reads `limits` during the call.
        unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limits) == 0 }
    };
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    if !set(unlimited) {
        let hard = limits().rlim_max;
        set(libc::rlimit { rlim_cur: hard, rlim_max: hard });
    }
}
