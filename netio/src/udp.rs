//! What std has no name for about UDP sockets.

use std::io;
use std::os::fd::AsFd;

use crate::sockopt;

/// Lets an IPv6 UDP socket receive datagrams whose checksum is 0, "none", as tunnels may send them
/// (RFC 6935). Without this the kernel drops them; over IPv4 it never does.
///
/// # Errors
/// When it is not a UDP socket.
pub fn accept_without_checksum(socket: &impl AsFd) -> io::Result<()> {
    sockopt::set(socket.as_fd(), libc::IPPROTO_UDP, libc::UDP_NO_CHECK6_RX, 1i32)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, UdpSocket};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_datagram_without_checksum_arrives_only_where_that_is_allowed() {
        let sender = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        let level = libc::IPPROTO_UDP;
        sockopt::set(sender.as_fd(), level, libc::UDP_NO_CHECK6_TX, 1i32).unwrap();
        let receiver = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let arrives = || {
            sender.send_to(b"hello", receiver.local_addr().unwrap()).unwrap();
            receiver.recv(&mut [0; 10]).ok()
        };
        assert_eq!(arrives(), None);
        accept_without_checksum(&receiver).unwrap();
        assert_eq!(arrives(), Some(5));
    }
}
