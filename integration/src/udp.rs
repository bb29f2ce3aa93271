//! UDP echo: a server that puts its name before what it returns, and a client that counts the
//! names.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Answers every datagram with `<name> <datagram>`, for ever, from the address that it was sent
/// to: `listen` must name an address, for a wildcard socket would answer a VIP's client from
/// another one.
///
/// # Errors
/// When the address cannot be bound or the socket breaks.
pub fn serve_echo(name: &str, listen: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind(listen).with_context(|| format!("listen on {listen}/udp"))?;
    eprintln!("{name} echoes on {listen}/udp");
    let mut buffer = vec![0; 65536];
    let mut answer = Vec::new();
    loop {
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            // An earlier answer of ours met a closed port: not this datagram's fault.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(error).context("receive"),
        };
        answer.clear();
        answer.extend_from_slice(name.as_bytes());
        answer.push(b' ');
        answer.extend_from_slice(&buffer[..length]);
        // The client may be gone, or the answer too long: its loss, not ours.
        let _ = socket.send_to(&answer, from);
    }
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoTally {
    /// Answers by the server's name.
    pub by_server: BTreeMap<String, u64>,
    /// Datagrams without an answer in time, or with a wrong one.
    pub lost: u64,
}

/// Sends `count` datagrams of `size` bytes to `target`, one after the other, each from a new port
/// (so each is a new connection to a director) unless `same_port`, and waits up to `limit` for
/// each answer.
///
/// # Errors
/// When no socket can be had; what the network does is counted, not an error.
pub fn echo_many(
    target: SocketAddr,
    count: u64,
    size: usize,
    same_port: bool,
    limit: Duration,
) -> Result<EchoTally> {
    let open = || -> Result<UdpSocket> {
        let any: IpAddr = if target.is_ipv4() {
            std::net::Ipv4Addr::UNSPECIFIED.into()
        } else {
            std::net::Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((any, 0)).context("open a UDP socket")?;
        socket.set_read_timeout(Some(limit))?;
        socket.connect(target).with_context(|| format!("no route to {target}"))?;
        Ok(socket)
    };
    let mut tally = EchoTally::default();
    let mut socket = open()?;
    let mut answer = vec![0; 65536];
    for number in 0..count {
        if !same_port && number > 0 {
            socket = open()?;
        }
        let message: Vec<u8> = (0..size.max(8)).map(|at| number.to_be_bytes()[at % 8]).collect();
        let received = socket
            .send(&message)
            .and_then(|_| socket.recv(&mut answer))
            .ok()
            .and_then(|length| answer[..length].strip_suffix(message.as_slice()));
        match received {
            Some(name) => {
                let name = String::from_utf8_lossy(name).trim_end().to_owned();
                *tally.by_server.entry(name).or_default() += 1;
            }
            None => tally.lost += 1,
        }
    }
    Ok(tally)
}
