//! Takes the director's packets from the sockets they arrive at and gives what is inside to the host.
//!
//! There is a socket for each outer family and, of IPIP, for each inner one. That raw sockets are
//! open also keeps the kernel from answering "protocol unreachable"; not so a kernel with modules for
//! tunnels, which asks those first (`kernel_tunnel`).
//!
//! The outer header's ECN mark is not carried over to the inner packet (RFC 6040): a raw IPv6
//! socket does not show it.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;

use crate::arrival::Arrival;
use crate::decapsulation::{Buffer, Policy, Refusal};
use crate::kind::Kind;

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

/// The sockets, the policy and the counters. The counters are logged when it is dropped.
#[derive(Debug)]
pub struct Tunnel {
    arrivals: Vec<Arrival>,
    policy: Policy,
    counters: Cell<Counters>,
}

impl Tunnel {
    /// Opens the sockets for these types of tunnel in the calling thread's network namespace. Needs
    /// a tokio runtime.
    ///
    /// # Errors
    /// When `CAP_NET_RAW` is missing (IPIP, GRE), or the UDP port is taken (GUE).
    pub fn open(kinds: &[Kind], policy: Policy) -> Result<Tunnel> {
        let mut arrivals = Vec::new();
        for (place, kind) in kinds.iter().enumerate() {
            if !kinds[..place].iter().any(|earlier| earlier.comes_as(*kind)) {
                arrivals.extend(Arrival::open(*kind)?);
            }
        }
        Ok(Tunnel { arrivals, policy, counters: Cell::default() })
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
        let pumps = try_join_all(self.arrivals.iter().map(|arrival| self.pump(arrival, sink)));
        tokio::select! {
            result = pumps => result.map(|_| ()),
            () = self.report() => Ok(()),
        }
    }

    async fn pump(&self, arrival: &Arrival, sink: &impl Sink) -> Result<Infallible> {
        let carrier = arrival.carrier();
        let mut buffer = Buffer::new();
        loop {
            arrival.readable().await.context("wait for a tunnel's socket")?;
            for _ in 0..BATCH {
                let received = arrival.receive(&mut buffer);
                let Some((length, source)) = received.context("receive from a tunnel")? else {
                    break;
                };
                let unpacked = buffer.unpack(carrier, length, source, &self.policy);
                if let Err(refusal) = unpacked {
                    tracing::debug!(%source, ?carrier, "refused a packet: {refusal}");
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
