//! The way of a check to the VIP through a server: with direct routing and tunnels.
//!
//! The VIP is mostly an address of the director's own, so that its kernel would never send a packet
//! for it to a server, nor take one from it. A check along the path therefore has a TCP/IP stack of
//! its own, which lives as long as the check:
//!
//! ```text
//!   check ──> stack ──> exit    the packet as a client's would be: to the server's MAC address, or in
//!                               its tunnel                                        AF_PACKET, raw IP
//!   check <── stack <── arrivals  from VIP to one of the ports 61000..=61999: before the kernel's
//!                               stack throws it away, for it comes from an address of its own  AF_PACKET
//! ```
//!
//! Where the VIP is not the director's own (another one holds it), the kernel would take answers for
//! stray and reset them, towards the VIP: to the other director, which knows no such connection, or to
//! the server itself, whose answer would be lost. So each check takes its port with a socket that the
//! kernel gives everything to and that throws it all away ([`netio::silence`]).
//!
//! Knows packets and the kernel's tables. Must not know what is checked.

mod arrivals;
mod datagram;
mod device;
mod exit;
mod reservation;
mod stack;
mod stream;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::io::DuplexStream;

use super::checks::{Deadline, trouble};
use super::outcome::Outcome;
use crate::control::api::ServerSpec;
use crate::network::{Network, Resolver};
use arrivals::Arrivals;
use exit::{Exit, Obstacle};
use reservation::{Reservation, Transport};
use stack::Ends;

/// How long to wait before the tables are looked at again for a neighbour that has been asked for.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The way to VIPs through servers, shared by all checks that go along it.
pub struct Path {
    network: Arc<ArcSwap<Network>>,
    resolver: Resolver,
    arrivals: Arrivals,
}

/// One VIP through one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Address and port that the server answers at.
    pub vip: SocketAddr,
    /// Whom packets are sent to, and how.
    pub server: ServerSpec,
}

/// What a check has of the path, as long as it lasts.
struct Lease {
    ends: Ends,
    exit: Exit,
    reservation: Reservation,
}

impl Path {
    /// A way that follows these tables. Sockets are opened with the first check that needs them.
    pub fn new(network: Arc<ArcSwap<Network>>, resolver: Resolver) -> Path {
        Path { network, resolver, arrivals: Arrivals::default() }
    }

    /// Whether the director's own stack is this server.
    pub(super) fn is_local(&self, server: IpAddr) -> bool {
        self.network.load().is_local(server)
    }

    /// Opens a TCP connection. When the stream is dropped the connection ends with RST.
    pub(super) async fn connect(
        &self,
        passage: &Passage,
        deadline: Deadline,
    ) -> Result<DuplexStream, Outcome> {
        let lease = self.lease(passage, Transport::Tcp, deadline).await?;
        stream::connect(lease, deadline).await
    }

    /// Sends `payload` in a datagram, and gives each that comes back to `accept` until that makes
    /// something of one. `None` when that is not so before the deadline.
    pub(super) async fn exchange<T>(
        &self,
        passage: &Passage,
        payload: &[u8],
        deadline: Deadline,
        accept: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Outcome> {
        let lease = self.lease(passage, Transport::Udp, deadline).await?;
        datagram::exchange(lease, payload, deadline, accept).await
    }

    /// All that a check needs.
    async fn lease(
        &self,
        passage: &Passage,
        transport: Transport,
        deadline: Deadline,
    ) -> Result<Lease, Outcome> {
        let route = self.route(passage, deadline).await?;
        let unable = |error: std::io::Error| {
            Outcome::Unable(format!("no check along the path: {}", trouble::words(&error)))
        };
        let receiver = self.arrivals.receiver(passage.vip.is_ipv4()).map_err(unable)?;
        let reservation = receiver.reserve(route.source, passage.vip, transport).map_err(unable)?;
        let ends = Ends { local: reservation.address(), vip: passage.vip, mtu: route.mtu };
        let exit = Exit::open(route, receiver.socket(), random() as u32).map_err(unable)?;
        Ok(Lease { ends, exit, reservation })
    }

    /// The way as the tables say it now, or as soon as they do.
    async fn route(&self, passage: &Passage, deadline: Deadline) -> Result<exit::Route, Outcome> {
        loop {
            match exit::route(&self.network.load(), passage) {
                Ok(route) => return Ok(route),
                Err(Obstacle::Unable(why)) => return Err(Outcome::Unable(why)),
                Err(Obstacle::Failed(why)) => return Err(Outcome::Failed(why)),
                Err(Obstacle::NoNeighbour { interface, address }) => {
                    self.resolver.request(interface, address);
                    if deadline.wait(tokio::time::sleep(LOOK_AGAIN)).await.is_none() {
                        let why = format!("no neighbour: nobody answers for {address}");
                        return Err(Outcome::Failed(why));
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Path(..)")
    }
}

/// Keyed at random by the system.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests;
