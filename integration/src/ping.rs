//! Ping: ICMP echo over the kernel's ping sockets (no raw socket, no program).

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

/// Sends one echo request with `payload` bytes of data and waits for its reply. Returns the time
/// it took.
///
/// # Errors
/// When no reply comes within `limit`, the network says that the target cannot be reached, or the
/// setting `net.ipv4.ping_group_range` does not include our group (the lab's hosts allow root).
pub fn ping(target: IpAddr, payload: usize, limit: Duration) -> Result<Duration> {
    let (family, protocol, request, reply) = match target {
        IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp, ECHO_REQUEST, ECHO_REPLY),
        IpAddr::V6(_) => {
            (AddressFamily::Inet6, SockProtocol::IcmpV6, ECHO_REQUEST_V6, ECHO_REPLY_V6)
        }
    };
    let socket = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, protocol)
        .context("open a ping socket: see sysctl net.ipv4.ping_group_range")?;
    // A ping socket is a datagram socket to everybody but the kernel's ICMP code.
    let socket = UdpSocket::from(socket);
    socket.connect(SocketAddr::new(target, 0)).with_context(|| format!("no route to {target}"))?;
    socket.set_read_timeout(Some(limit))?;
    // Type, code, checksum and identifier (both the kernel's business), sequence, data.
    let mut message = vec![request, 0, 0, 0, 0, 0, 0, 1];
    message.extend((0..payload).map(|byte| byte as u8));
    let start = Instant::now();
    socket.send(&message).with_context(|| format!("ping {target}"))?;
    let mut answer = vec![0; message.len() + 1];
    let length = socket
        .recv(&mut answer)
        .with_context(|| format!("no echo reply from {target} within {limit:?}"))?;
    ensure!(
        length == message.len() && answer[0] == reply && answer[8..length] == message[8..],
        "{target} did not return what it was sent"
    );
    Ok(start.elapsed())
}
