//! A network namespace for one test: a thread of its own, gone with all its interfaces when the
//! thread ends, however it ends.

// Each test file uses a part of this.
#![allow(dead_code)]

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::Mutex;

/// A child process has copies of all our descriptors until it executes its program, and a link or
/// an interface lives as long as one of them. So nobody forks while somebody closes.
static FORKING: Mutex<()> = Mutex::new(());

/// Closes something whose last descriptor must be gone afterwards.
pub(crate) fn close<T>(thing: T) {
    let _nobody_forks = FORKING.lock();
    drop(thing);
}

/// Runs the test in a new network namespace, or says that it cannot and skips it.
pub(crate) fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let result = std::thread::spawn(move || {
        // SAFETY: unshare(2) touches no memory; only this thread changes its namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            eprintln!("skipped: needs root for a network namespace");
            return;
        }
        ip("link set lo up");
        test();
    })
    .join();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// Runs `ip` with these arguments in this thread's namespace.
pub(crate) fn ip(arguments: &str) {
    let output = output_of_ip(arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {complaint}");
}

fn output_of_ip(arguments: &str) -> std::process::Output {
    let _nobody_closes = FORKING.lock();
    Command::new("ip").args(arguments.split_whitespace()).output().expect("iproute2 is installed")
}

/// A veth pair `near` (10.9.0.1/24) and `far` (no address), both up, of `queues` queues each.
pub(crate) struct Veth {
    pub(crate) near: u32,
    pub(crate) far: u32,
    pub(crate) near_mac: [u8; 6],
}

impl Veth {
    pub(crate) fn new(queues: u32) -> Veth {
        let q = format!("numrxqueues {queues} numtxqueues {queues}");
        ip(&format!("link add near {q} type veth peer name far {q}"));
        ip("addr add 10.9.0.1/24 dev near");
        ip("link set near up");
        ip("link set far up");
        Veth { near: index("near"), far: index("far"), near_mac: mac("near") }
    }
}

pub(crate) fn index(interface: &str) -> u32 {
    let name = std::ffi::CString::new(interface).unwrap();
    // SAFETY: the name ends with a zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    assert_ne!(index, 0, "no interface {interface}");
    index
}

/// From `ip`, which asks over netlink; /sys would show the namespace that mounted it.
pub(crate) fn mac(interface: &str) -> [u8; 6] {
    let output = output_of_ip(&format!("-o link show {interface}"));
    let text = String::from_utf8(output.stdout).unwrap();
    let mac = text.split("link/ether ").nth(1).expect("an Ethernet link");
    let mut bytes = [0; 6];
    for (byte, digits) in bytes.iter_mut().zip(mac[..17].split(':')) {
        *byte = u8::from_str_radix(digits, 16).unwrap();
    }
    bytes
}

/// A frame with a UDP datagram (no checksum) from 10.9.0.2 port 999.
pub(crate) fn udp_frame(mac: [u8; 6], to: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let mut frame = mac.to_vec();
    frame.extend([2, 0, 0, 0, 0, 2, 0x08, 0x00]);
    let total = 28 + payload.len() as u16;
    let mut header = vec![0x45, 0];
    header.extend(total.to_be_bytes());
    header.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 9, 0, 2]);
    header.extend(to.0.octets());
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&folded.to_be_bytes());
    frame.extend(header);
    frame.extend(999_u16.to_be_bytes());
    frame.extend(to.1.to_be_bytes());
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// An AF_PACKET socket on one interface.
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    address: libc::sockaddr_ll,
}

impl PacketSocket {
    pub(crate) fn new(ifindex: u32) -> PacketSocket {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: no memory is involved.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, protocol.into()) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the descriptor has just been opened for us alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: a structure of integers, for which zeroes are good values.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = ifindex as i32;
        // SAFETY: the address is a sockaddr_ll of the size given.
        let result = unsafe {
            libc::bind(
                fd.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        PacketSocket { fd, address }
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        // SAFETY: frame and address are of the sizes given.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                std::ptr::from_ref(&self.address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        };
        assert_eq!(sent, frame.len() as isize);
    }

    /// The next IPv4 frame; what the stack says of its own accord is skipped.
    pub(crate) fn receive(&self) -> Vec<u8> {
        loop {
            let mut buffer = vec![0; 4096];
            // SAFETY: the buffer is of the size given.
            let length = unsafe {
                libc::recv(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0)
            };
            assert!(length >= 14, "{}", std::io::Error::last_os_error());
            buffer.truncate(length as usize);
            if buffer[12..14] == [0x08, 0x00] {
                return buffer;
            }
        }
    }
}

/// Sends one frame out of an interface.
pub(crate) fn send(ifindex: u32, frame: &[u8]) {
    PacketSocket::new(ifindex).send(frame);
}
