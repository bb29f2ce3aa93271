//! `bpf(2)`: one call, one command number, one block of attributes per command.
//!
//! The blocks are prefixes of the kernel's `union bpf_attr` (`linux/bpf.h`), written without
//! padding so that every byte the kernel reads is one we set.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Command numbers.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(super) enum Command {
    MapCreate = 0,
    MapLookupElem = 1,
    MapUpdateElem = 2,
    MapDeleteElem = 3,
    MapGetNextKey = 4,
    ProgLoad = 5,
    ProgTestRun = 10,
    LinkCreate = 28,
    LinkUpdate = 29,
}

/// Bytes in a name, with the zero that ends it.
const NAME_LEN: usize = 16;

/// The name as the kernel wants it: at most 15 of letters, digits, `_` and `.`.
pub(super) fn name(text: &str) -> [u8; NAME_LEN] {
    let mut name = [0; NAME_LEN];
    for (to, from) in name[..NAME_LEN - 1].iter_mut().zip(text.bytes()) {
        let allowed = from.is_ascii_alphanumeric() || from == b'_' || from == b'.';
        *to = if allowed { from } else { b'_' };
    }
    name
}

#[derive(Default)]
#[repr(C)]
pub(super) struct MapCreate {
    pub(super) map_type: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) map_flags: u32,
    pub(super) inner_map_fd: u32,
    pub(super) numa_node: u32,
    pub(super) map_name: [u8; NAME_LEN],
}

#[derive(Default)]
#[repr(C)]
pub(super) struct MapElem {
    pub(super) map_fd: u32,
    pub(super) pad: u32,
    pub(super) key: u64,
    /// The value, or for `MapGetNextKey` where the next key goes.
    pub(super) value: u64,
    pub(super) flags: u64,
}

#[derive(Default)]
#[repr(C)]
pub(super) struct ProgLoad {
    pub(super) prog_type: u32,
    pub(super) insn_cnt: u32,
    pub(super) insns: u64,
    pub(super) license: u64,
    pub(super) log_level: u32,
    pub(super) log_size: u32,
    pub(super) log_buf: u64,
    pub(super) kern_version: u32,
    pub(super) prog_flags: u32,
    pub(super) prog_name: [u8; NAME_LEN],
    pub(super) prog_ifindex: u32,
    pub(super) expected_attach_type: u32,
}

#[derive(Default)]
#[repr(C)]
pub(super) struct ProgTestRun {
    pub(super) prog_fd: u32,
    pub(super) retval: u32,
    pub(super) data_size_in: u32,
    pub(super) data_size_out: u32,
    pub(super) data_in: u64,
    pub(super) data_out: u64,
    pub(super) repeat: u32,
    /// Nanoseconds of one run, the mean of all.
    pub(super) duration: u32,
    pub(super) ctx_size_in: u32,
    pub(super) ctx_size_out: u32,
    pub(super) ctx_in: u64,
    pub(super) ctx_out: u64,
    pub(super) flags: u32,
    pub(super) cpu: u32,
    pub(super) batch_size: u32,
    pub(super) pad: u32,
}

#[derive(Default)]
#[repr(C)]
pub(super) struct LinkCreate {
    pub(super) prog_fd: u32,
    pub(super) target_ifindex: u32,
    pub(super) attach_type: u32,
    pub(super) flags: u32,
    /// The part that depends on the attach type; all zero is the default order for tcx.
    pub(super) rest: [u64; 2],
}

#[derive(Default)]
#[repr(C)]
pub(super) struct LinkUpdate {
    pub(super) link_fd: u32,
    pub(super) new_prog_fd: u32,
    pub(super) flags: u32,
    pub(super) old_prog_fd: u32,
}

/// Makes the call and gives its non-negative result.
///
/// # Safety
/// `attributes` is the block that belongs to `command`, and every address in it is that of memory
/// of the size the block says, readable or writable as the command needs, until the call returns.
pub(super) unsafe fn bpf<T>(command: Command, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the block is `size_of::<T>()` initialised bytes without padding; the addresses in
    // it are good by this function's contract.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_long,
            std::ptr::from_mut(attributes),
            size_of::<T>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// As [`bpf`], for the commands whose result is a new file descriptor.
///
/// # Safety
/// As for [`bpf`]; `command` is one that creates something.
pub(super) unsafe fn bpf_create<T>(command: Command, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: same contract.
    let fd = unsafe { bpf(command, attributes)? };
    // SAFETY: the kernel has just opened this descriptor (close-on-exec) for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
