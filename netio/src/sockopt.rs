//! Socket options as values: the unsafe half of setsockopt(2) and getsockopt(2), once.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Types that the kernel may read or fill byte by byte.
///
/// # Safety
/// Every bit pattern must be a valid value, and there must be no padding whose content matters.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers, and C structs of integers without padding.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above: four u32 after two u64.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above: sixteen u64.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above: six u64.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: as above: two u32.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: as above: an i32, two u16 and eight u8.
unsafe impl Plain for libc::packet_mreq {}

/// Sets option `name` of `level`.
///
/// # Errors
/// As of setsockopt(2).
pub(crate) fn set<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32, value: T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and length are of `value`, which the kernel only reads during the call.
    let answer =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), len) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks for option `name` of `level`. What an older kernel does not fill in is zero.
///
/// # Errors
/// As of getsockopt(2).
pub(crate) fn get<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and length are of `value`, and the kernel writes no more than `len` bytes.
    let answer = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut len)
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed before the call, and `Plain` says that any bytes are a value.
    Ok(unsafe { value.assume_init() })
}
