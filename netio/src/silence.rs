//! What lets a host keep quiet where its kernel would answer by itself.
//!
//! Knows socket options. Must not know why somebody wants that.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::sockopt;

/// Has the kernel throw away whatever comes in for `socket` from now on, and say nothing about it: no
/// RST for a TCP segment that belongs to no connection, no "port unreachable" for a datagram. The
/// port that the socket is bound to stays taken.
///
/// A listening TCP socket is asked before the kernel looks whether a segment fits it (`tcp_filter()`
/// in `tcp_v4_rcv()`), so that one is enough to keep a port silent.
///
/// # Errors
/// When it is no socket, or its filter is locked.
pub fn silence(socket: &impl AsFd) -> io::Result<()> {
    const RETURN: u16 = 0x06;
    let nothing = libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: 0 };
    attach(socket.as_fd(), &mut [nothing])
}

/// Has `socket`, which is to be connected, wait a while before it acknowledges the server's SYN: who
/// closes it at once, with a linger time of zero, takes the connection back before the server's
/// program has seen it.
///
/// # Errors
/// When it is no TCP socket.
pub fn acknowledge_late(socket: &impl AsFd) -> io::Result<()> {
    sockopt::set(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0i32)
}

/// Has the kernel ask `program` (classic BPF) which packets `socket` gets.
pub(crate) fn attach(fd: BorrowedFd<'_>, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let length = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: pointer and length are of `program`, which points to as many instructions as it says;
    // all that is alive during the call, and the kernel only reads it.
    let answer = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            length,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
    use std::time::Duration;

    use super::*;

    const SHORT: Duration = Duration::from_millis(100);

    fn loopbacks() -> [SocketAddr; 2] {
        [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].map(|ip| (ip, 0).into())
    }

    #[test]
    fn a_silenced_tcp_port_sends_no_reset_and_stays_taken() {
        for loopback in loopbacks() {
            let listener = TcpListener::bind(loopback).unwrap();
            let port = listener.local_addr().unwrap();
            silence(&listener).unwrap();
            let error = TcpStream::connect_timeout(&port, SHORT).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert_eq!(TcpListener::bind(port).unwrap_err().kind(), ErrorKind::AddrInUse);
            drop(listener);
            let error = TcpStream::connect_timeout(&port, SHORT).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        }
    }

    #[test]
    fn a_silenced_udp_port_sends_no_icmp_and_receives_nothing() {
        for loopback in loopbacks() {
            let receiver = UdpSocket::bind(loopback).unwrap();
            silence(&receiver).unwrap();
            receiver.set_nonblocking(true).unwrap();
            let sender = UdpSocket::bind(loopback).unwrap();
            sender.connect(receiver.local_addr().unwrap()).unwrap();
            sender.set_read_timeout(Some(SHORT)).unwrap();
            sender.send(b"hello").unwrap();
            assert_eq!(sender.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
            assert_eq!(receiver.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
            drop(receiver);
            sender.send(b"hello").unwrap();
            assert_eq!(sender.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        }
    }
}
