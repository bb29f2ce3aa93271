//! TUN and TAP: an interface of the kernel whose other end is a file descriptor.
//!
//! What is written to it, the stack receives; what the stack sends out of it, is read from it.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::ethtool::write_name;

/// What goes in and out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// TUN: IP packets without a link header.
    Ip,
    /// TAP: Ethernet frames.
    Ethernet,
}

/// Bytes of `struct virtio_net_hdr`, which leads every packet when asked for.
pub const VNET_HEADER: usize = 10;

/// `TUN_F_CSUM`: whoever reads completes checksums.
const CHECKSUM_OFFLOAD: libc::c_ulong = 1;

/// A TUN or TAP interface, which is gone when this is dropped. Never blocks: where there is
/// nothing to read the answer is [`WouldBlock`](io::ErrorKind::WouldBlock).
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    vnet_header: bool,
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Tun {
    /// Makes an interface of this name in the calling thread's network namespace, or takes over a
    /// persistent one. `%d` in the name stands for the first number that is free. It is down and
    /// has no address yet.
    ///
    /// With `vnet_header` each packet is led by [`VNET_HEADER`] bytes (`struct virtio_net_hdr`,
    /// native byte order), and the stack may leave checksums to us: it says so there. Segmentation
    /// it does itself.
    ///
    /// # Errors
    /// When the kernel has no TUN (`/dev/net/tun`, module `tun`), it is not permitted
    /// (`CAP_NET_ADMIN`), or the name is taken (EBUSY).
    pub fn open(name: &str, layer: Layer, vnet_header: bool) -> io::Result<Tun> {
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        let mut flags = libc::IFF_NO_PI;
        flags |= match layer {
            Layer::Ip => libc::IFF_TUN,
            Layer::Ethernet => libc::IFF_TAP,
        };
        if vnet_header {
            flags |= libc::IFF_VNET_HDR;
        }
        // SAFETY: a structure of plain bytes and integers, for which zeroes are good values.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        write_name(&mut request.ifr_name, name)?;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        if vnet_header {
            // SAFETY: TUNSETOFFLOAD takes its flags in place of an address.
            let result = unsafe {
                libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, CHECKSUM_OFFLOAD)
            };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // SAFETY: the kernel has ended the name with a zero within the field.
        let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
        Ok(Tun { file, name: name.to_string_lossy().into_owned(), vnet_header })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether packets are led by a [`VNET_HEADER`].
    pub fn has_vnet_header(&self) -> bool {
        self.vnet_header
    }

    /// Reads one packet that the stack has sent and says how long it is. What does not fit into
    /// `buffer` is lost.
    ///
    /// # Errors
    /// `WouldBlock` when there is none; anything else when the interface is gone.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }

    /// Gives one packet to the stack; `packet` begins with the virtio header if there is one.
    ///
    /// # Errors
    /// EIO while the interface is down, EINVAL when the stack can make nothing of the packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        // One write is one packet; the driver takes all of it or none.
        (&self.file).write(packet).map(drop)
    }

    /// Gives one packet to the stack in two parts, so that a header need not be copied in front.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_parts(&self, head: &[u8], tail: &[u8]) -> io::Result<()> {
        let parts = [IoSlice::new(head), IoSlice::new(tail)];
        (&self.file).write_vectored(&parts).map(drop)
    }
}
