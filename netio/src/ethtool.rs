//! Offloads of an interface, by the legacy `SIOCETHTOOL` ioctl: what `ethtool -K` switches.
//!
//! Needed where frames are looked at between two kernels that trust each other: on a veth the
//! sender leaves checksums and segmentation to a network card that does not exist.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Something that an interface can do in the kernel's stead. The names in backquotes are those of
/// `ethtool -K`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Checksums of transmitted packets, `tx`. Off: the kernel sends complete checksums.
    TxChecksum,
    /// Checks of received packets, `rx`.
    RxChecksum,
    /// Scatter-gather, `sg`.
    ScatterGather,
    /// TCP segmentation on transmit, `tso`. Off: no frame is larger than the MTU (together with
    /// [`GenericSegmentation`](Self::GenericSegmentation)).
    TcpSegmentation,
    /// Segmentation at the last moment, `gso`.
    GenericSegmentation,
    /// Joining received packets of one connection, `gro`.
    GenericReceive,
}

impl Offload {
    /// The commands that get and set it (`linux/ethtool.h`).
    fn commands(self) -> (u32, u32) {
        match self {
            Offload::RxChecksum => (0x14, 0x15),
            Offload::TxChecksum => (0x16, 0x17),
            Offload::ScatterGather => (0x18, 0x19),
            Offload::TcpSegmentation => (0x1e, 0x1f),
            Offload::GenericSegmentation => (0x23, 0x24),
            Offload::GenericReceive => (0x2b, 0x2c),
        }
    }
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Whether the interface of this name, in the calling thread's network namespace, does it.
///
/// # Errors
/// When there is no such interface, or it knows no such offload.
pub fn offload(interface: &str, offload: Offload) -> io::Result<bool> {
    let (get, _) = offload.commands();
    ethtool(interface, get, 0).map(|value| value != 0)
}

/// Switches it on or off, as `ethtool -K` does. Needs `CAP_NET_ADMIN`.
///
/// # Errors
/// When there is no such interface, it is not permitted, or the driver does not let it be changed.
pub fn set_offload(interface: &str, offload: Offload, on: bool) -> io::Result<()> {
    let (_, set) = offload.commands();
    ethtool(interface, set, on.into()).map(drop)
}

/// What a card does to frames before anybody here sees them. The names in backquotes are those of
/// `ethtool -K`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receiving {
    /// `lro`: it joins the segments of a connection, and nobody can tell any more where they were
    /// parted.
    pub joins_segments: bool,
    /// `rxvlan`: it takes the VLAN tag off, so that XDP programs do not see it.
    pub strips_tags: bool,
}

/// What the interface of this name does to what it receives.
///
/// # Errors
/// When there is no such interface, or it does not say.
pub fn receiving(interface: &str) -> io::Result<Receiving> {
    /// `ETHTOOL_GFLAGS`, `ETH_FLAG_LRO` and `ETH_FLAG_RXVLAN` of linux/ethtool.h.
    const GET_FLAGS: u32 = 0x25;
    const LRO: u32 = 1 << 15;
    const RX_VLAN: u32 = 1 << 8;
    let flags = ethtool(interface, GET_FLAGS, 0)?;
    Ok(Receiving { joins_segments: flags & LRO != 0, strips_tags: flags & RX_VLAN != 0 })
}

fn ethtool(interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    // SAFETY: a structure of plain bytes and integers, for which zeroes are good values.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    write_name(&mut request.ifr_name, interface)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
    let socket = control_socket()?;
    // SAFETY: the request points to a `Value`, which is what the commands above read and write;
    // both outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value.data)
}

/// Any socket will do for questions about interfaces; it fixes the network namespace.
fn control_socket() -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Writes an interface's name with the zero that ends it.
pub(crate) fn write_name(
    field: &mut [libc::c_char; libc::IFNAMSIZ],
    interface: &str,
) -> io::Result<()> {
    if interface.is_empty() || interface.len() >= field.len() || interface.contains('\0') {
        let message = format!("{interface:?} is no interface name (1 to 15 bytes)");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    for (to, from) in field.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_refused_and_not_cut() {
        let error = offload("sixteen-letters-", Offload::TxChecksum).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(offload("", Offload::TxChecksum).is_err());
    }

    #[test]
    fn an_interface_that_does_not_exist_is_an_error() {
        let error = offload("no-such-if", Offload::GenericReceive).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn the_loopback_neither_joins_segments_nor_strips_tags() {
        assert_eq!(receiving("lo").unwrap(), Receiving::default());
        assert_eq!(receiving("no-such-if").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn reading_an_offload_needs_no_privilege() {
        // The loopback interface always leaves checksums out.
        assert!(offload("lo", Offload::TxChecksum).expect("lo exists everywhere"));
    }
}
