//! What there is to know about a network interface: index, MTU, queues, address, state.
//!
//! Asked by ioctl, not read from sysfs: `/sys` shows the network namespace of whoever mounted it,
//! which is not always ours. Must not change anything; that is the business of `ethtool` and of
//! the control plane.

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

/// `ETHTOOL_GCHANNELS` of linux/ethtool.h.
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// `ETHTOOL_GDRVINFO`, likewise.
const ETHTOOL_GDRVINFO: u32 = 0x03;

/// Why an interface could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// No interface of that name in this network namespace.
    #[error(
        "there is no interface {name:?} in this network namespace: `ip link` lists those there are"
    )]
    Missing {
        /// The name.
        name: String,
    },
    /// No interface with that index in this network namespace.
    #[error("there is no interface with index {index} in this network namespace")]
    MissingIndex {
        /// The index.
        index: u32,
    },
    /// The kernel answered something else.
    #[error("asking interface {name:?} for its {what}: {source}")]
    System {
        /// The name.
        name: String,
        /// What was asked.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// How many queues of each direction are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Queues that receive, 1 or more. A port is needed on each to see all traffic.
    pub receive: u32,
    /// Queues that transmit, 1 or more.
    pub transmit: u32,
}

/// Whether an interface can carry traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Switched off by the administrator: `ip link set dev NAME up`.
    Down,
    /// Switched on, but without carrier: no cable, or the peer is down.
    NoCarrier,
    /// Up, with carrier.
    Up,
}

/// The index of the interface called `name`, which is never 0.
///
/// # Errors
/// [`InterfaceError::Missing`] when there is none.
pub fn index(name: &str) -> Result<u32, InterfaceError> {
    let missing = || InterfaceError::Missing { name: name.to_owned() };
    let c_name = CString::new(name).map_err(|_| missing())?;
    // SAFETY: a valid C string that outlives the call.
    let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
    if index == 0 { Err(missing()) } else { Ok(index) }
}

/// The name of the interface with `index`.
///
/// # Errors
/// [`InterfaceError::MissingIndex`] when there is none.
pub fn name(index: u32) -> Result<String, InterfaceError> {
    let mut buffer = [0; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the IF_NAMESIZE bytes that the call may write.
    let answer = unsafe { libc::if_indextoname(index, buffer.as_mut_ptr()) };
    if answer.is_null() {
        return Err(InterfaceError::MissingIndex { index });
    }
    // SAFETY: the call succeeded, so the buffer holds a terminated string.
    let name = unsafe { CStr::from_ptr(buffer.as_ptr()) };
    Ok(name.to_string_lossy().into_owned())
}

/// The MTU in bytes: the largest network-layer packet, without the Ethernet header.
///
/// # Errors
/// When there is no such interface.
pub fn mtu(name: &str) -> Result<u32, InterfaceError> {
    let request = ask(name, "MTU", libc::SIOCGIFMTU, request(name)?)?;
    // SAFETY: SIOCGIFMTU fills in this member of the union.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(mtu.max(0) as u32)
}

/// The Ethernet address; all zero for an interface that has none (a TUN).
///
/// # Errors
/// When there is no such interface.
pub fn mac(name: &str) -> Result<[u8; 6], InterfaceError> {
    let request = ask(name, "hardware address", libc::SIOCGIFHWADDR, request(name)?)?;
    // SAFETY: SIOCGIFHWADDR fills in this member of the union.
    let data = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    Ok(std::array::from_fn(|byte| data[byte] as u8))
}

/// Whether the interface is up and has carrier. A change of carrier shows within about a second.
///
/// # Errors
/// When there is no such interface.
pub fn state(name: &str) -> Result<State, InterfaceError> {
    let request = ask(name, "state", libc::SIOCGIFFLAGS, request(name)?)?;
    // SAFETY: SIOCGIFFLAGS fills in this member of the union.
    let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
    Ok(match (flags & libc::IFF_UP != 0, flags & libc::IFF_RUNNING != 0) {
        (false, _) => State::Down,
        (true, false) => State::NoCarrier,
        (true, true) => State::Up,
    })
}

/// How many queues are in use, as `ethtool -l` shows them; of an interface that does not say (a
/// bridge, a TUN), as sysfs counts them; else one.
///
/// # Errors
/// When there is no such interface.
pub fn queues(name: &str) -> Result<Queues, InterfaceError> {
    /// `struct ethtool_channels` of linux/ethtool.h.
    #[repr(C)]
    #[derive(Default)]
    struct Channels {
        cmd: u32,
        max_rx: u32,
        max_tx: u32,
        max_other: u32,
        max_combined: u32,
        rx: u32,
        tx: u32,
        other: u32,
        combined: u32,
    }
    let mut channels = Channels { cmd: ETHTOOL_GCHANNELS, ..Channels::default() };
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    match ask(name, "queues", libc::SIOCETHTOOL, request) {
        Ok(_) => Ok(Queues {
            receive: (channels.rx + channels.combined).max(1),
            transmit: (channels.tx + channels.combined).max(1),
        }),
        Err(InterfaceError::System { source, .. })
            if source.raw_os_error() == Some(libc::EOPNOTSUPP) =>
        {
            Ok(queues_in_sysfs(name))
        }
        Err(error) => Err(error),
    }
}

/// Where the card sits, as its driver names it ("0000:03:00.0"); `None` when it says nothing (veth).
///
/// # Errors
/// When there is no such interface.
pub fn bus(name: &str) -> Result<Option<String>, InterfaceError> {
    Ok(driver_info(name)?.and_then(|info| text(&info.bus)))
}

/// The name of the interface's driver ("virtio_net", "veth"); `None` when there is none to ask.
///
/// # Errors
/// When there is no such interface.
pub fn driver(name: &str) -> Result<Option<String>, InterfaceError> {
    Ok(driver_info(name)?.and_then(|info| text(&info.driver)))
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    cmd: u32,
    driver: [u8; 32],
    versions: [[u8; 32]; 2],
    bus: [u8; 32],
    behind: [u8; 64],
}

fn driver_info(name: &str) -> Result<Option<DriverInfo>, InterfaceError> {
    let mut info = DriverInfo {
        cmd: ETHTOOL_GDRVINFO,
        driver: [0; 32],
        versions: [[0; 32]; 2],
        bus: [0; 32],
        behind: [0; 64],
    };
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    match ask(name, "driver", libc::SIOCETHTOOL, request) {
        Ok(_) => Ok(Some(info)),
        Err(InterfaceError::System { source, .. })
            if source.raw_os_error() == Some(libc::EOPNOTSUPP) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A name that ends at the first zero; `None` of an empty one.
fn text(bytes: &[u8]) -> Option<String> {
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Counts the queues in sysfs, if what sysfs shows under that name has our interface's index.
fn queues_in_sysfs(name: &str) -> Queues {
    let folder = PathBuf::from("/sys/class/net").join(name);
    let theirs = std::fs::read_to_string(folder.join("ifindex")).unwrap_or_default();
    let ours = index(name).ok();
    let count = |prefix: &str| {
        let entries = std::fs::read_dir(folder.join("queues")).ok()?;
        let named = |entry: &std::fs::DirEntry| {
            entry.file_name().to_str().is_some_and(|file| file.starts_with(prefix))
        };
        u32::try_from(entries.flatten().filter(named).count()).ok()
    };
    let same = ours.is_some() && theirs.trim().parse().ok() == ours;
    let count = |prefix| {
        if same { count(prefix).unwrap_or(1).max(1) } else { 1 }
    };
    Queues { receive: count("rx-"), transmit: count("tx-") }
}

fn request(name: &str) -> Result<libc::ifreq, InterfaceError> {
    if name.is_empty() || name.len() >= libc::IF_NAMESIZE || name.contains('\0') {
        return Err(InterfaceError::Missing { name: name.to_owned() });
    }
    // SAFETY: a C struct of integers, arrays and a union of such; zero is a value of each.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn ask(
    name: &str,
    what: &'static str,
    question: libc::c_ulong,
    mut request: libc::ifreq,
) -> Result<libc::ifreq, InterfaceError> {
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(libc::ENODEV) => InterfaceError::Missing { name: name.to_owned() },
        _ => InterfaceError::System { name: name.to_owned(), what, source },
    };
    // SAFETY: no pointers. Any socket will do to carry an ioctl to the network stack.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    // SAFETY: just opened, and ours alone.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: `request` is an ifreq with a terminated name; where the question has it point to more
    // (SIOCETHTOOL), the caller put there a pointer to a struct of its own that is alive.
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), question as _, &raw mut request) };
    if answer < 0 { Err(failed(io::Error::last_os_error())) } else { Ok(request) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_found_by_name_and_by_index() {
        let found = index("lo").unwrap();
        assert_eq!(name(found).unwrap(), "lo");
        assert_eq!(mac("lo").unwrap(), [0; 6]);
        assert!(mtu("lo").unwrap() >= 1500);
        assert_eq!(queues("lo").unwrap(), Queues { receive: 1, transmit: 1 });
    }

    #[test]
    fn a_missing_interface_is_named_in_the_error() {
        for name in ["no-such-iface", "", "much-too-long-for-an-interface", "nul\0"] {
            assert!(matches!(index(name), Err(InterfaceError::Missing { .. })), "{name:?}");
            assert!(matches!(mtu(name), Err(InterfaceError::Missing { .. })), "{name:?}");
        }
        assert!(mtu("no-such-iface").unwrap_err().to_string().contains("no-such-iface"));
        assert!(name(u32::MAX >> 1).is_err());
    }
}
