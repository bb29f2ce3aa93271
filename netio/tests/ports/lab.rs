//! A network namespace with veth pairs in it, made by raw netlink and gone with its thread.

use std::fs::File;
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;

/// `VETH_INFO_PEER` of linux/veth.h, the same number as `IFLA_INFO_KIND`.
const VETH_INFO_PEER: u16 = 1;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;

/// Runs `test` in a thread that is in a network namespace of its own, or says why not.
pub(crate) fn alone<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: needs root to make a network namespace");
        return None;
    }
    Some(in_namespace(test))
}

/// As `alone`, for whoever knows to be root.
pub(crate) fn in_namespace<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    let thread = thread::spawn(|| {
        // SAFETY: no pointers; moves this thread alone.
        let answer = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(answer, 0, "unshare: {}", io::Error::last_os_error());
        test()
    });
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The network namespace of the calling thread.
pub(crate) fn namespace() -> File {
    File::open("/proc/thread-self/ns/net").unwrap()
}

/// Makes a veth pair with `queues` queues at each end, both ends up.
pub(crate) fn veth(ours: &str, peer: &str, queues: u32) {
    let mut message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, 0);
    message.string(libc::IFLA_IFNAME, ours);
    message.attribute(libc::IFLA_NUM_TX_QUEUES, &queues.to_ne_bytes());
    message.attribute(libc::IFLA_NUM_RX_QUEUES, &queues.to_ne_bytes());
    message.nested(libc::IFLA_LINKINFO, |message| {
        message.string(IFLA_INFO_KIND, "veth");
        message.nested(IFLA_INFO_DATA, |message| {
            message.nested(VETH_INFO_PEER, |message| {
                message.bytes.extend([0; 16]);
                message.string(libc::IFLA_IFNAME, peer);
                message.attribute(libc::IFLA_NUM_TX_QUEUES, &queues.to_ne_bytes());
                message.attribute(libc::IFLA_NUM_RX_QUEUES, &queues.to_ne_bytes());
            });
        });
    });
    message.send().unwrap();
    up(ours);
    up(peer);
}

/// Moves an interface into another namespace; it is down there.
pub(crate) fn move_to(name: &str, namespace: &File) {
    let index = netio::interface::index(name).unwrap();
    let mut message = Message::new(libc::RTM_NEWLINK, 0, index);
    message.attribute(libc::IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
    message.send().unwrap();
}

/// Removes an interface (and the other end of its pair).
pub(crate) fn remove(name: &str) {
    let index = netio::interface::index(name).unwrap();
    Message::new(libc::RTM_DELLINK, 0, index).send().unwrap();
}

/// Switches an interface on.
pub(crate) fn up(name: &str) {
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    ioctl(libc::SIOCSIFFLAGS, &raw mut request);
}

/// Switches an interface off.
pub(crate) fn down(name: &str) {
    let mut request = request(name);
    ioctl(libc::SIOCSIFFLAGS, &raw mut request);
}

/// Sets the MTU.
pub(crate) fn set_mtu(name: &str, mtu: i32) {
    let mut request = request(name);
    request.ifr_ifru.ifru_mtu = mtu;
    ioctl(libc::SIOCSIFMTU, &raw mut request);
}

/// Gives an interface an address in a network of 24 bits.
pub(crate) fn set_address(name: &str, address: Ipv4Addr) {
    let mut request = request(name);
    request.ifr_ifru.ifru_addr = socket_address(address);
    ioctl(libc::SIOCSIFADDR, &raw mut request);
    request.ifr_ifru.ifru_netmask = socket_address(Ipv4Addr::new(255, 255, 255, 0));
    ioctl(libc::SIOCSIFNETMASK, &raw mut request);
}

/// Tells the kernel where `address` is, so that it need not ask.
pub(crate) fn set_neighbour(name: &str, address: Ipv4Addr, mac: [u8; 6]) {
    // SAFETY: a C struct of integers and arrays; zero is a value of each.
    let mut entry: libc::arpreq = unsafe { mem::zeroed() };
    entry.arp_pa = socket_address(address);
    entry.arp_ha.sa_family = libc::ARPHRD_ETHER;
    for (to, from) in entry.arp_ha.sa_data.iter_mut().zip(mac) {
        *to = from as libc::c_char;
    }
    entry.arp_flags = 0x02 | 0x04; // ATF_COM | ATF_PERM
    entry.arp_dev = request(name).ifr_name;
    ioctl(libc::SIOCSARP, &raw mut entry);
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: a C struct of integers and arrays; zero is a value of each.
    let mut generic: libc::sockaddr = unsafe { mem::zeroed() };
    generic.sa_family = libc::AF_INET as u16;
    for (to, from) in generic.sa_data[2..6].iter_mut().zip(address.octets()) {
        *to = from as libc::c_char;
    }
    generic
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: a C struct of integers, arrays and a union of such; zero is a value of each.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn ioctl<T>(question: libc::c_ulong, argument: *mut T) {
    let socket = open(libc::AF_INET, libc::SOCK_DGRAM, 0);
    // SAFETY: `argument` points to the struct that the callers above know the question takes.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), question as _, argument) };
    assert_eq!(answer, 0, "ioctl {question:#x}: {}", io::Error::last_os_error());
}

fn open(family: i32, kind: i32, protocol: i32) -> OwnedFd {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    assert!(fd >= 0, "socket: {}", io::Error::last_os_error());
    // SAFETY: just opened, and ours alone.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A netlink request about a link.
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn new(kind: u16, flags: i32, index: u32) -> Message {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 8]);
        // struct ifinfomsg: family, type, index, flags, change.
        bytes.extend([0; 4]);
        bytes.extend(index.to_ne_bytes());
        bytes.extend([0; 8]);
        Message { bytes }
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |message| message.bytes.extend(value));
    }

    fn string(&mut self, kind: u16, value: &str) {
        self.nested(kind, |message| {
            message.bytes.extend(value.bytes().chain([0]));
        });
    }

    fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Message)) {
        let start = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend(kind.to_ne_bytes());
        fill(self);
        let len = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn send(mut self) -> io::Result<()> {
        let len = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&len.to_ne_bytes());
        let socket = open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE);
        let fd = socket.as_raw_fd();
        // SAFETY: pointer and length are of `bytes`.
        let sent = unsafe { libc::send(fd, self.bytes.as_ptr().cast(), self.bytes.len(), 0) };
        assert_eq!(sent, self.bytes.len() as isize, "{}", io::Error::last_os_error());
        let mut answer = [0; 1024];
        // SAFETY: pointer and length are of `answer`.
        let len = unsafe { libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0) };
        assert!(len >= 20, "{}", io::Error::last_os_error());
        match i32::from_ne_bytes(answer[16..20].try_into().unwrap()) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}
