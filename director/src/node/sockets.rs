//! The TCP connections that this host holds, as the kernel's socket table has them.
//!
//! Asked over netlink (`NETLINK_SOCK_DIAG`, what `ss` does), because the filter asks the same table
//! packet by packet: what is counted here is what it passes there. Knows sockets; which bucket one
//! belongs to is for `flows`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr as NetlinkAddr};

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

/// States that hold a connection: all but TIME_WAIT, CLOSE and LISTEN of net/tcp_states.h. What
/// waits in TIME_WAIT has nothing more to say.
const HELD: u32 = !((1 << 6) | (1 << 7) | (1 << 10));

/// A connection by its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    /// This host's end.
    pub local: SocketAddr,
    /// The client's.
    pub remote: SocketAddr,
}

/// All TCP connections of the calling thread's network namespace that are not closed, in no order.
/// Blocks: some ten milliseconds with 100,000 of them.
///
/// # Errors
/// When the kernel cannot be asked.
pub(super) fn held() -> io::Result<Vec<Held>> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&NetlinkAddr::new(0, 0))?;
    let mut found = Vec::new();
    for family in [nix::libc::AF_INET, nix::libc::AF_INET6] {
        socket.send(&request(family as u8), 0)?;
        // A dump that ran into a change of the table may tell a socket twice, which does no harm.
        while !read(&socket.recv_from_full()?.0, &mut found)? {}
    }
    Ok(found)
}

fn request(family: u8) -> [u8; HEADER + REQUEST] {
    let mut message = [0; HEADER + REQUEST];
    message[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    message[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    message[HEADER] = family;
    message[HEADER + 1] = nix::libc::IPPROTO_TCP as u8;
    message[HEADER + 4..HEADER + 8].copy_from_slice(&HELD.to_ne_bytes());
    message
}

/// Reads one datagram of the answer; whether it was the last.
fn read(mut rest: &[u8], found: &mut Vec<Held>) -> io::Result<bool> {
    while let Some(header) = rest.get(..HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let short = || io::Error::new(io::ErrorKind::InvalidData, "a cut message of the kernel");
        let message = rest.get(HEADER..length).ok_or_else(short)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = message.get(..4).ok_or_else(short)?;
                let code = i32::from_ne_bytes([code[0], code[1], code[2], code[3]]);
                return match code {
                    0 => Ok(true),
                    code => Err(io::Error::from_raw_os_error(-code)),
                };
            }
            BY_FAMILY => found.extend(message.get(..MESSAGE).and_then(one)),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Reads `struct inet_diag_msg`: family, three bytes, ports, addresses of 16 bytes, and more.
fn one(message: &[u8]) -> Option<Held> {
    let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = message[at..at + 16].try_into().ok()?;
        match i32::from(message[0]) {
            nix::libc::AF_INET => {
                Some(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into())
            }
            // A socket for both families has IPv4 peers as mapped addresses.
            nix::libc::AF_INET6 => Some(Ipv6Addr::from(bytes).to_canonical()),
            _ => None,
        }
    };
    Some(Held {
        local: SocketAddr::new(address(8)?, port(4)),
        remote: SocketAddr::new(address(24)?, port(6)),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_are_found_and_listeners_are_not() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let to: SocketAddr = match address {
                "[::]:0" => ([127, 0, 0, 1], port).into(),
                _ => listener.local_addr().unwrap(),
            };
            let client = TcpStream::connect(to).unwrap();
            let (_server, _) = listener.accept().unwrap();
            let found = held().unwrap();
            let server = Held { local: to, remote: client.local_addr().unwrap() };
            assert!(found.contains(&server), "{address}: {server:?} is not in {found:?}");
            assert!(found.iter().all(|held| held.remote.port() != 0), "{address}: a listener");
        }
    }

    #[test]
    fn a_cut_answer_is_an_error_and_not_a_panic() {
        let mut answer = Vec::new();
        answer.extend_from_slice(&((HEADER + MESSAGE) as u32).to_ne_bytes());
        answer.extend_from_slice(&BY_FAMILY.to_ne_bytes());
        answer.resize(HEADER + MESSAGE, 0);
        answer[HEADER] = nix::libc::AF_INET as u8;
        let mut found = Vec::new();
        assert!(!read(&answer, &mut found).unwrap());
        assert_eq!(found.len(), 1);
        for cut in HEADER..answer.len() {
            assert!(read(&answer[..cut], &mut found).is_err(), "{cut}");
        }
        for length in 0..HEADER as u32 {
            answer[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(read(&answer, &mut found).is_err(), "{length}");
        }
    }
}
