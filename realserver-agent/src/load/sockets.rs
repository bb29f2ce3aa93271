//! Connections and accept queues of the services, as the kernel's socket table has them.
//!
//! Asked over netlink (`NETLINK_SOCK_DIAG`, what `ss` does): a listener is one message, a
//! connection is one; when all services have one port, the kernel leaves out the other ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr as NetlinkAddress};

use crate::role::Served;

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections over which data may still go.
    pub connections: u32,
    /// Of these, connections that wait to be accepted.
    pub queue: u32,
}

/// `SOCK_DIAG_BY_FAMILY` of linux/sock_diag.h.
const BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x0301;
const HEADER: usize = 16;
/// `struct inet_diag_req_v2`.
const REQUEST: usize = 56;
/// `struct inet_diag_msg`.
const MESSAGE: usize = 72;
/// By net/tcp_states.h: ESTABLISHED, FIN_WAIT1 (our last data may be on its way), CLOSE_WAIT (the
/// client has said all and waits for its answer); LISTEN.
const ALIVE: u32 = 1 << 1 | 1 << 4 | 1 << 8;
const LISTEN: u8 = 10;

/// Counts what belongs to these services in the calling thread's network namespace. Blocks: some 15
/// milliseconds of processor time with 10,000 connections.
///
/// # Errors
/// When the kernel cannot be asked.
pub fn count(served: &[Served]) -> io::Result<Counts> {
    let mut counts = Counts::default();
    if served.is_empty() {
        return Ok(counts);
    }
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&NetlinkAddress::new(0, 0))?;
    let first = served[0].port;
    let port = first.filter(|_| served.iter().all(|it| it.port == first)).unwrap_or(0);
    for family in [nix::libc::AF_INET, nix::libc::AF_INET6] {
        socket.send(&request(family as u8, port), 0)?;
        let mut note = |message: &[u8]| note(message, served, &mut counts);
        while !read(&socket.recv_from_full()?.0, &mut note)? {}
    }
    Ok(counts)
}

fn request(family: u8, port: u16) -> [u8; HEADER + REQUEST] {
    let mut message = [0; HEADER + REQUEST];
    message[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    message[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    message[HEADER] = family;
    message[HEADER + 1] = nix::libc::IPPROTO_TCP as u8;
    message[HEADER + 4..HEADER + 8].copy_from_slice(&(ALIVE | 1 << LISTEN).to_ne_bytes());
    // `idiag_sport`; 0 = any.
    message[HEADER + 8..HEADER + 10].copy_from_slice(&port.to_be_bytes());
    message
}

/// Reads one datagram of the answer; whether it was the last.
fn read(mut rest: &[u8], note: &mut impl FnMut(&[u8])) -> io::Result<bool> {
    let cut = || io::Error::new(io::ErrorKind::InvalidData, "a cut message of the kernel");
    while let Some(header) = rest.get(..HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let message = rest.get(HEADER..length).ok_or_else(cut)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = message.get(..4).ok_or_else(cut)?;
                let code = i32::from_ne_bytes([code[0], code[1], code[2], code[3]]);
                return if code == 0 { Ok(true) } else { Err(io::Error::from_raw_os_error(-code)) };
            }
            BY_FAMILY => note(message.get(..MESSAGE).ok_or_else(cut)?),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// `struct inet_diag_msg`: family, state, two bytes; ports, addresses of 16 bytes each, interface,
/// cookie; then expires, rqueue.
fn note(message: &[u8], served: &[Served], counts: &mut Counts) {
    let port = u16::from_be_bytes([message[4], message[5]]);
    let mut octets = [0; 16];
    octets.copy_from_slice(&message[8..24]);
    let address: IpAddr = if i32::from(message[0]) == nix::libc::AF_INET {
        Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into()
    } else {
        // A socket for both families has IPv4 peers as mapped addresses.
        Ipv6Addr::from(octets).to_canonical()
    };
    let local = SocketAddr::new(address, port);
    if !served.iter().any(|served| served.has(local)) {
        return;
    }
    if message[1] == LISTEN {
        let queue = [message[56], message[57], message[58], message[59]];
        counts.queue = counts.queue.saturating_add(u32::from_ne_bytes(queue));
    } else {
        counts.connections = counts.connections.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::settings::Protocol;

    fn served(address: SocketAddr) -> Served {
        let (address, port) = (address.ip(), Some(address.port()));
        Served { address, port, protocol: Some(Protocol::Tcp) }
    }

    #[test]
    fn connections_and_those_that_nobody_has_accepted_are_counted_for_their_service_alone() {
        for bind in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(bind) else { continue };
            let mut to = listener.local_addr().unwrap();
            if to.ip().is_unspecified() {
                to = ([127, 0, 0, 1], to.port()).into();
            }
            let clients: Vec<_> = (0..5).map(|_| TcpStream::connect(to).unwrap()).collect();
            let _accepted: Vec<_> = (0..2).map(|_| listener.accept().unwrap()).collect();
            let own = served(to);
            let other = served(SocketAddr::new(to.ip(), 1));
            let expected = Counts { connections: 5, queue: 3 };
            assert_eq!(count(&[own]).unwrap(), expected, "{bind}");
            assert_eq!(count(&[other, own]).unwrap(), expected, "{bind}, several ports");
            assert_eq!(count(&[other]).unwrap(), Counts::default(), "{bind}");
            drop(clients);
        }
    }

    #[test]
    fn a_cut_answer_is_an_error_and_not_a_panic() {
        let mut answer = Vec::new();
        answer.extend_from_slice(&((HEADER + MESSAGE) as u32).to_ne_bytes());
        answer.extend_from_slice(&BY_FAMILY.to_ne_bytes());
        answer.resize(HEADER + MESSAGE, 0);
        let mut seen = 0;
        assert!(!read(&answer, &mut |_| seen += 1).unwrap());
        for cut in HEADER..answer.len() {
            assert!(read(&answer[..cut], &mut |_| seen += 1).is_err(), "{cut}");
        }
        for length in 0..(HEADER + MESSAGE) as u32 {
            answer[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(read(&answer, &mut |_| seen += 1).is_err(), "{length}");
        }
        assert_eq!(seen, 1);
    }
}
