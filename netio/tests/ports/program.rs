//! The smallest XDP program: everything to the socket of its queue, or on to the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const BPF_MAP_CREATE: i64 = 0;
const BPF_MAP_UPDATE_ELEM: i64 = 2;
const BPF_PROG_LOAD: i64 = 5;
const BPF_LINK_CREATE: i64 = 28;

const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const HELPER_REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;

/// `XDP_FLAGS_SKB_MODE`: before the network stack.
pub(crate) const GENERIC: u32 = 1 << 1;
/// `XDP_FLAGS_DRV_MODE`: in the driver.
pub(crate) const NATIVE: u32 = 1 << 2;

/// The program on one interface, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Redirect {
    map: OwnedFd,
    _link: OwnedFd,
}

impl Redirect {
    /// Loads the program and attaches it in `mode`.
    pub(crate) fn attach(interface: u32, mode: u32) -> Redirect {
        // Type, key size, value size, entries.
        let map = bpf(BPF_MAP_CREATE, &words(&[MAP_TYPE_XSKMAP, 4, 4, 64])).unwrap();
        let instructions: [u64; 6] = [
            instruction(0x61, 2, 1, 16, 0), // r2 = ctx->rx_queue_index
            instruction(0x18, 1, 1, 0, map.as_raw_fd()), // r1 = map
            0,                              // (its other half)
            instruction(0xb7, 3, 0, 0, XDP_PASS), // r3 = XDP_PASS
            instruction(0x85, 0, 0, 0, HELPER_REDIRECT_MAP),
            instruction(0x95, 0, 0, 0, 0), // return r0
        ];
        let mut attributes = words(&[PROG_TYPE_XDP, 6]);
        attributes.extend((instructions.as_ptr() as u64).to_ne_bytes());
        attributes.extend((c"GPL".as_ptr() as u64).to_ne_bytes());
        attributes.resize(128, 0);
        let program = bpf(BPF_PROG_LOAD, &attributes).unwrap();
        let attributes = words(&[program.as_raw_fd() as u32, interface, ATTACH_XDP, mode]);
        let link = bpf(BPF_LINK_CREATE, &attributes).unwrap();
        Redirect { map, _link: link }
    }

    /// Sends the packets of `queue` to the socket.
    pub(crate) fn set(&self, queue: u32, socket: BorrowedFd<'_>) {
        let key = queue.to_ne_bytes();
        let value = socket.as_raw_fd().to_ne_bytes();
        let mut attributes = words(&[self.map.as_raw_fd() as u32, 0]);
        attributes.extend((key.as_ptr() as u64).to_ne_bytes());
        attributes.extend((value.as_ptr() as u64).to_ne_bytes());
        attributes.extend([0; 8]);
        let answer = call(BPF_MAP_UPDATE_ELEM, &attributes);
        assert_eq!(answer, 0, "{}", io::Error::last_os_error());
    }
}

fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    let [o0, o1] = offset.to_ne_bytes();
    let [v0, v1, v2, v3] = value.to_ne_bytes();
    u64::from_ne_bytes([code, to | from << 4, o0, o1, v0, v1, v2, v3])
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn bpf(command: i64, attributes: &[u8]) -> io::Result<OwnedFd> {
    let fd = call(command, attributes);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn call(command: i64, attributes: &[u8]) -> i64 {
    // SAFETY: pointer and length are of `attributes`, whose pointers the callers keep alive.
    unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), attributes.len()) }
}
