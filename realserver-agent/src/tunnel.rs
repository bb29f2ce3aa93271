//! Takes the director's IP-in-IP packets from raw sockets and gives what is inside to the host.
//!
//! Four sockets, one for each outer family and protocol: 4in4, 6in4, 4in6, 6in6. That they are
//! open also keeps the kernel from answering "protocol unreachable".
//!
//! The outer header's ECN mark is not carried over to the inner packet (RFC 6040): a raw IPv6
//! socket does not show it.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use netio::raw::{self, RawFamily};
use tokio::net::UdpSocket;

use crate::decapsulation::{Buffer, IPIP, IPV6, Policy, Refusal};

/// Packets taken from one socket before the others have their turn.
const BATCH: usize = 64;
/// How often the counters are logged, if they have changed.
const REPORT: Duration = Duration::from_secs(60);

/// Where unpacked packets go: the host's IP stack.
pub trait Sink {
    /// Gives one IP packet, whose checksums are complete, to the host.
    ///
    /// # Errors
    /// When the host does not take it.
    fn write(&self, packet: &[u8]) -> io::Result<()>;
}

/// What has happened since the start, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Unpacked and given to the host.
    pub delivered: u64,
    /// Refused: not from a director.
    pub strangers: u64,
    /// Refused: broken headers.
    pub malformed: u64,
    /// Refused: not for one of our VIPs.
    pub not_served: u64,
    /// Unpacked, but the host did not take it.
    pub undelivered: u64,
}

/// A raw socket and what it receives.
#[derive(Debug)]
struct Arrival {
    socket: UdpSocket,
    family: RawFamily,
    protocol: u8,
}

impl Arrival {
    fn open(family: RawFamily, protocol: u8) -> Result<Arrival> {
        let socket = raw::open(family, protocol).with_context(|| {
            format!("open a raw socket for protocol {protocol}: CAP_NET_RAW is needed")
        })?;
        Ok(Arrival { socket: UdpSocket::from_std(socket)?, family, protocol })
    }
}

/// The four sockets, the policy and the counters. The counters are logged when it is dropped.
#[derive(Debug)]
pub struct Tunnel {
    arrivals: [Arrival; 4],
    policy: Policy,
    counters: Cell<Counters>,
}

impl Tunnel {
    /// Opens the sockets in the calling thread's network namespace. Needs a tokio runtime.
    ///
    /// # Errors
    /// When `CAP_NET_RAW` is missing.
    pub fn open(policy: Policy) -> Result<Tunnel> {
        Ok(Tunnel {
            arrivals: [
                Arrival::open(RawFamily::V4, IPIP)?,
                Arrival::open(RawFamily::V4, IPV6)?,
                Arrival::open(RawFamily::V6, IPIP)?,
                Arrival::open(RawFamily::V6, IPV6)?,
            ],
            policy,
            counters: Cell::default(),
        })
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.counters.get()
    }

    /// Unpacks until a socket breaks. Drop the future to stop.
    ///
    /// # Errors
    /// When a socket breaks.
    pub async fn run(&self, sink: &impl Sink) -> Result<()> {
        let [a, b, c, d] = &self.arrivals;
        tokio::select! {
            result = self.pump(a, sink) => result,
            result = self.pump(b, sink) => result,
            result = self.pump(c, sink) => result,
            result = self.pump(d, sink) => result,
            () = self.report() => Ok(()),
        }
    }

    async fn pump(&self, arrival: &Arrival, sink: &impl Sink) -> Result<()> {
        let Arrival { socket, family, protocol } = arrival;
        let mut buffer = Buffer::new();
        loop {
            socket.readable().await.context("wait for a raw socket")?;
            for _ in 0..BATCH {
                let (length, source) = match socket.try_recv_from(buffer.space(*family)) {
                    Ok(received) => received,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error).context("receive from a raw socket"),
                };
                let source = source.ip();
                let unpacked = buffer.unpack(*family, *protocol, length, source, &self.policy);
                if let Err(refusal) = unpacked {
                    tracing::debug!(%source, protocol, "refused a packet: {refusal}");
                }
                self.deliver(unpacked, sink);
            }
            tokio::task::yield_now().await;
        }
    }

    fn deliver(&self, unpacked: Result<&[u8], Refusal>, sink: &impl Sink) {
        let mut counters = self.counters.get();
        match unpacked.map(|packet| sink.write(packet)) {
            Ok(Ok(())) => counters.delivered += 1,
            Ok(Err(_)) => counters.undelivered += 1,
            Err(Refusal::Stranger) => counters.strangers += 1,
            Err(Refusal::Malformed) => counters.malformed += 1,
            Err(Refusal::NotServed) => counters.not_served += 1,
        }
        self.counters.set(counters);
    }

    async fn report(&self) {
        let mut last = self.counters();
        loop {
            tokio::time::sleep(REPORT).await;
            let now = self.counters();
            if now != last {
                tracing::info!(?now, "packets so far");
                last = now;
            }
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        tracing::info!(counters = ?self.counters(), "the tunnel has ended");
    }
}
