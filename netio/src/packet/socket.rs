//! The system calls of an AF_PACKET socket: opening, a batch in, a batch out.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::PacketOptions;
use super::virtio;
use crate::{Frame, HEADROOM, OpenError, Pool, sockopt};

/// Packets per system call at most.
pub(super) const BATCH: usize = 32;

/// The largest super-frame: an IP packet of 64 KiB, its Ethernet header, and tags.
pub(super) const LARGEST: usize = 17 * 4096;

/// What the kernel may queue for us, in bytes, if it lets us say: some 10 ms at 10 Gbit/s.
const RECEIVE_BUFFER: i32 = 16 << 20;

/// A packet as it came in.
#[derive(Debug)]
pub(super) struct Arrival {
    /// Holds the packet, or as much of it as fits; it begins at [`HEADROOM`].
    pub(super) frame: Frame,
    /// What the kernel says of it.
    pub(super) header: [u8; virtio::LEN],
    /// The packet's bytes: more than the frame's when the rest is in the overflow.
    pub(super) len: usize,
    /// Which part of the overflow the rest is in.
    pub(super) slot: usize,
    /// Whether bytes are missing even so.
    pub(super) truncated: bool,
    /// The VLAN tag that the kernel took off, as it was on the wire.
    pub(super) tag: Option<[u8; 4]>,
}

/// Where the bytes of packets larger than a chunk go: [`LARGEST`] bytes for each packet of a
/// batch, in which the place for what fits the chunk is left free at the start, so that the packet
/// can be made whole there. Pages that never see a super-frame are never touched.
#[derive(Debug)]
pub(super) struct Overflow(Box<[u8]>);

impl Overflow {
    pub(super) fn new() -> Overflow {
        Overflow(vec![0; BATCH * LARGEST].into())
    }

    /// The part of the packet of `slot`.
    pub(super) fn part(&mut self, slot: usize) -> &mut [u8] {
        &mut self.0[slot * LARGEST..][..LARGEST]
    }
}

/// Opens a socket for all packets of interface `index`.
pub(super) fn open(options: &PacketOptions, index: u32) -> Result<OwnedFd, OpenError> {
    let name = options.interface.as_str();
    // Protocol 0: nothing is received before everything is set and the socket is bound.
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        return Err(OpenError::of_socket("AF_PACKET", "CONFIG_PACKET", name, error));
    }
    // SAFETY: just opened, and ours alone.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let fd = socket.as_fd();
    let set = |option, value: i32| sockopt::set(fd, libc::SOL_PACKET, option, value);
    set(libc::PACKET_IGNORE_OUTGOING, 1).map_err(OpenError::at("PACKET_IGNORE_OUTGOING", name))?;
    set(libc::PACKET_VNET_HDR, 1).map_err(OpenError::at("PACKET_VNET_HDR", name))?;
    set(libc::PACKET_AUXDATA, 1).map_err(OpenError::at("PACKET_AUXDATA", name))?;
    set(libc::PACKET_QDISC_BYPASS, 1).map_err(OpenError::at("PACKET_QDISC_BYPASS", name))?;
    let buffer = |option| sockopt::set(fd, libc::SOL_SOCKET, option, RECEIVE_BUFFER);
    if buffer(libc::SO_RCVBUFFORCE).is_err() {
        // Without CAP_NET_ADMIN: as far as net.core.rmem_max allows.
        let _ = buffer(libc::SO_RCVBUF);
    }
    bind(fd, index).map_err(OpenError::at("bind", name))?;
    if let Some(group) = options.fanout {
        // What is said of outgoing packets above does not count in a group.
        let kind = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        let argument = u32::from(group) | kind << 16;
        sockopt::set(fd, libc::SOL_PACKET, libc::PACKET_FANOUT, argument)
            .map_err(OpenError::at("joining the fanout group", name))?;
    }
    Ok(socket)
}

fn bind(fd: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    // SAFETY: a C struct of integers; zero is a value of each.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: pointer and length are of `address`, which the kernel only reads during the call.
    let answer = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How many packets the kernel has dropped since it was last asked.
pub(super) fn take_drops(fd: BorrowedFd<'_>) -> u64 {
    let statistics = sockopt::get(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS);
    statistics.map_or(0, |statistics: libc::tpacket_stats| u64::from(statistics.tp_drops))
}

/// Room for the one control message that we asked for, aligned as the kernel wants.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// Receives up to `limit` (at most [`BATCH`]) packets that are there, and calls `arrived` with
/// each. Says how many.
pub(super) fn receive(
    fd: BorrowedFd<'_>,
    pool: &mut Pool,
    overflow: &mut Overflow,
    limit: usize,
    mut arrived: impl FnMut(Arrival),
) -> io::Result<usize> {
    let room = pool.chunk_size() - HEADROOM as usize;
    let mut frames: [Option<Frame>; BATCH] = [const { None }; BATCH];
    let mut headers = [[0; virtio::LEN]; BATCH];
    let mut controls = [Control([0; 64]); BATCH];
    // SAFETY: C structs of integers and pointers; zero is a value of each.
    let mut vectors: [[libc::iovec; 3]; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let mut count = 0;
    for part in overflow.0.chunks_exact_mut(LARGEST).take(limit) {
        let Some(mut frame) = pool.allocate() else {
            break;
        };
        let chunk = &mut pool.chunk_mut(&mut frame)[HEADROOM as usize..];
        vectors[count] = [vector(&mut headers[count]), vector(chunk), vector(&mut part[room..])];
        let message = &mut messages[count].msg_hdr;
        message.msg_iov = vectors[count].as_mut_ptr();
        message.msg_iovlen = 3;
        message.msg_control = controls[count].0.as_mut_ptr().cast();
        message.msg_controllen = controls[count].0.len() as _;
        frames[count] = Some(frame);
        count += 1;
    }
    // SAFETY: the first `count` messages point to vectors, and these to buffers, that are alive and
    // not otherwise used during the call: headers and controls are local, overflow is borrowed, and
    // the chunks are those of the frames held here.
    let answer = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            count as u32,
            libc::MSG_DONTWAIT as _,
            ptr::null_mut(),
        )
    };
    // Before anything else can change errno.
    let failed = (answer < 0).then(io::Error::last_os_error);
    let received = usize::try_from(answer).unwrap_or(0);
    for (slot, frame) in frames.into_iter().enumerate() {
        let Some(mut frame) = frame else { break };
        if slot >= received {
            pool.release(frame);
            continue;
        }
        let message = &messages[slot];
        let len = (message.msg_len as usize).saturating_sub(virtio::LEN);
        pool.reshape(&mut frame, HEADROOM as usize, len.min(room));
        arrived(Arrival {
            frame,
            header: headers[slot],
            len,
            slot,
            truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            tag: tag(&message.msg_hdr),
        });
    }
    failed.map_or(Ok(received), Err)
}

/// Sends up to [`BATCH`] of `frames`, from the first. Says how many the kernel took.
///
/// # Errors
/// What kept the kernel from taking the first one.
pub(super) fn send(fd: BorrowedFd<'_>, pool: &Pool, frames: &[Frame]) -> io::Result<usize> {
    let mut headers = [[0; virtio::LEN]; BATCH];
    // SAFETY: C structs of integers and pointers; zero is a value of each.
    let mut vectors: [[libc::iovec; 2]; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let count = frames.len().min(BATCH);
    for (place, frame) in frames[..count].iter().enumerate() {
        headers[place] = virtio::build(frame.partial);
        let bytes = pool.bytes(frame);
        let payload =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        vectors[place] = [vector(&mut headers[place]), payload];
        let message = &mut messages[place].msg_hdr;
        message.msg_iov = vectors[place].as_mut_ptr();
        message.msg_iovlen = 2;
    }
    // SAFETY: the first `count` messages point to vectors, and these to local headers and to bytes
    // of the borrowed pool, which the kernel only reads.
    let sent = unsafe {
        libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT as _)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn vector(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}

/// The VLAN tag that the kernel took off the packet, from the control message.
fn tag(message: &libc::msghdr) -> Option<[u8; 4]> {
    // SAFETY: the kernel has filled in the control buffer, whose owner is alive in the caller, and
    // set its length in `message`.
    let first = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if (first.cmsg_level, first.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    // SAFETY: the header is followed by its data, which for this type is a tpacket_auxdata.
    let data = unsafe { libc::CMSG_DATA(first).cast::<libc::tpacket_auxdata>().read_unaligned() };
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = if data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
        data.tp_vlan_tpid
    } else {
        libc::ETH_P_8021Q as u16
    };
    let ([k0, k1], [t0, t1]) = (kind.to_be_bytes(), data.tp_vlan_tci.to_be_bytes());
    Some([k0, k1, t0, t1])
}
