//! The system calls of an AF_XDP socket, safe to call and without policy.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::sockopt;

/// `XDP_MAX_TX_SKB_BUDGET` of linux/if_xdp.h (Linux 6.17), which libc does not have yet.
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;

/// `SO_PREFER_BUSY_POLL` and `SO_BUSY_POLL_BUDGET` of asm-generic/socket.h (Linux 5.11), which libc
/// does not have for every architecture.
const SO_PREFER_BUSY_POLL: i32 = 69;
const SO_BUSY_POLL_BUDGET: i32 = 70;

/// Anything but 0 switches it on; our calls never wait, so that it does not matter how much.
const BUSY_POLL_MICROSECONDS: i32 = 20;

/// What a wakeup has come to.
#[derive(Debug)]
pub(crate) enum Wakeup {
    /// The kernel did what it could do.
    Done,
    /// It stopped half-way (32 frames sent, completion ring or send buffer full): ask again.
    Again,
    /// The socket has lost its interface.
    Gone(io::Error),
}

/// An unbound socket.
pub(crate) fn open() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Where the parts of the rings lie in their mappings.
pub(crate) fn offsets(fd: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    sockopt::get(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)
}

/// Binds to a queue; with `shared`, to the UMEM of that socket, which must be bound.
pub(crate) fn bind(
    fd: BorrowedFd<'_>,
    interface: u32,
    queue: u32,
    flags: u16,
    shared: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared.map_or(0, |fd| fd.as_raw_fd() as u32),
    };
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: pointer and length are of `address`, which the kernel only reads during the call.
    let answer = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets one wakeup in copy mode send up to `frames` frames instead of 32. Older kernels refuse;
/// then more wakeups are needed.
pub(crate) fn raise_budget(fd: BorrowedFd<'_>, frames: u32) {
    let _ = sockopt::set(fd, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, frames);
}

/// Has calls that wake the kernel ([`wake_receive`], [`wake_transmit`]) do the work of the card's
/// interrupt, up to `budget` packets each, and the kernel prefer that to interrupts.
///
/// # Errors
/// When the kernel does not know that (before Linux 5.11), or does not permit it.
pub(crate) fn prefer_busy_poll(fd: BorrowedFd<'_>, budget: i32) -> io::Result<()> {
    sockopt::set(fd, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, 1_i32)?;
    sockopt::set(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL, BUSY_POLL_MICROSECONDS)?;
    sockopt::set(fd, libc::SOL_SOCKET, SO_BUSY_POLL_BUDGET, budget)
}

/// The kernel's counters.
pub(crate) fn statistics(fd: BorrowedFd<'_>) -> io::Result<libc::xdp_statistics> {
    sockopt::get(fd, libc::SOL_XDP, libc::XDP_STATISTICS)
}

/// The error that waits on the socket: `ENETDOWN` once its interface has been removed.
pub(crate) fn pending_error(fd: BorrowedFd<'_>) -> io::Result<()> {
    match sockopt::get::<i32>(fd, libc::SOL_SOCKET, libc::SO_ERROR)? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Has the kernel look at the TX ring.
pub(crate) fn wake_transmit(fd: BorrowedFd<'_>) -> Wakeup {
    // SAFETY: an empty message: no bytes are read at the null pointers.
    let sent =
        unsafe { libc::sendto(fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    woken(sent)
}

/// Has the kernel look at the fill ring.
pub(crate) fn wake_receive(fd: BorrowedFd<'_>) -> Wakeup {
    // SAFETY: an empty buffer: no bytes are written at the null pointers.
    let received = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    woken(received)
}

fn woken(answer: isize) -> Wakeup {
    if answer >= 0 {
        return Wakeup::Done;
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Unbound: the interface has been unregistered.
        Some(libc::ENXIO | libc::ENODEV | libc::EBADF) => Wakeup::Gone(error),
        // Only switched off: frames wait in the ring until it is on again.
        Some(libc::ENETDOWN) => Wakeup::Done,
        _ => Wakeup::Again,
    }
}
