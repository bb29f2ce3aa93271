//! The traffic: connections that have been established through the director, and new ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use pnet::packet::tcp::TcpFlags::{ACK, SYN};

use super::director::{Director, Setup};
use super::frames::tcp;
use super::{ROUND, Side, Traffic};
use ::director::control::api::Forwarding;

/// Clients and the VIP they talk to. Every client has an address of its own: nothing is shared
/// between two connections but the service and its servers.
pub(super) struct Ends {
    vip: SocketAddr,
}

impl Ends {
    pub(super) fn of(setup: &Setup) -> Ends {
        Ends { vip: setup.vip() }
    }

    /// Client `number`; numbers repeat after 16 million.
    fn client(&self, number: u32) -> SocketAddr {
        let number = number & 0x00ff_ffff;
        let address = match self.vip {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(0x1400_0000 | number)),
            SocketAddr::V6(_) => {
                let base = u128::from(Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0));
                IpAddr::V6(Ipv6Addr::from_bits(base | u128::from(number)))
            }
        };
        SocketAddr::new(address, 1024 + (number % 50_000) as u16)
    }
}

/// Established connections, visited in an order in which no two neighbours follow each other.
pub(super) struct Established {
    /// One ACK for each flow, in the order of visits.
    frames: Vec<Vec<u8>>,
    next: usize,
    /// The frames of a round that goes over the end of the list.
    wrapped: Vec<Vec<u8>>,
}

impl Established {
    /// Opens so many connections as client and servers would.
    pub(super) fn open(
        director: &mut Director,
        ends: &Ends,
        setup: &Setup,
        flows: usize,
        side: Side,
    ) -> Result<Established> {
        let mut frames = Vec::with_capacity(flows);
        let clients: Vec<_> = (0..flows as u32).map(|number| ends.client(number)).collect();
        for clients in clients.chunks(ROUND) {
            let from_client = |flags| -> Vec<Vec<u8>> {
                clients.iter().map(|client| tcp(*client, ends.vip, flags)).collect()
            };
            let requests = director.exchange(&from_client(SYN))?;
            ensure!(requests.len() == clients.len(), "a SYN was not sent on");
            if setup.forwarding != Forwarding::Nat {
                director.exchange(&from_client(ACK))?;
                frames.extend(from_client(ACK));
                continue;
            }
            let from_server = |flags| -> Result<Vec<Vec<u8>>> {
                let reply = |request: &netio::Packet| {
                    let headers = forwarding::parse(&request.bytes)?;
                    let server = SocketAddr::new(headers.destination, headers.destination_port);
                    let client = SocketAddr::new(headers.source, headers.source_port);
                    Ok(tcp(server, client, flags))
                };
                requests.iter().map(reply).collect()
            };
            director.exchange(&from_server(SYN | ACK)?)?;
            director.exchange(&from_client(ACK))?;
            frames.extend(match side {
                Side::Client => from_client(ACK),
                Side::Server => from_server(ACK)?,
            });
        }
        let frames = (0..flows).map(|visit| frames[visit * STRIDE % flows].clone()).collect();
        Ok(Established { frames, next: 0, wrapped: Vec::new() })
    }
}

/// From one flow to the next one visited: a prime, so every flow has its turn.
const STRIDE: usize = 48_271;

impl Traffic for Established {
    fn round(&mut self, _: &mut Director) -> Result<&[Vec<u8>]> {
        let start = self.next;
        self.next = (start + ROUND) % self.frames.len();
        if start + ROUND <= self.frames.len() {
            return Ok(&self.frames[start..start + ROUND]);
        }
        self.wrapped = self.frames.iter().cycle().skip(start).take(ROUND).cloned().collect();
        Ok(&self.wrapped)
    }
}

/// SYNs that nobody has sent before. Those of the last round are forgotten first, so that the
/// table does not grow.
pub(super) struct NewConnections {
    ends: Ends,
    next: u32,
    frames: Vec<Vec<u8>>,
}

impl NewConnections {
    pub(super) fn new(ends: Ends) -> NewConnections {
        NewConnections { ends, next: 0, frames: Vec::new() }
    }
}

impl Traffic for NewConnections {
    fn round(&mut self, director: &mut Director) -> Result<&[Vec<u8>]> {
        // SYN_RECV lasts a minute.
        director.skip(Duration::from_secs(62))?;
        let numbers = self.next..self.next + ROUND as u32;
        self.next = numbers.end;
        self.frames = numbers.map(|it| tcp(self.ends.client(it), self.ends.vip, SYN)).collect();
        let open = director.connections();
        ensure!(open == 0, anyhow!("{open} connections of the last round are still there"));
        Ok(&self.frames)
    }
}
