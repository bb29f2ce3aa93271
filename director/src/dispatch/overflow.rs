//! When the connection table is full.
//!
//! Room is made first (`connections/eviction.rs`). Where none can be made, a packet goes to a server that
//! its ends alone decide on, and nothing is remembered: as long as no server comes or goes, all
//! packets of the flow go there (rendezvous hashing: Thaler and Ravishankar 1998). What needs a memory cannot be had
//! that way: NAT, whose answers must be translated back; its packets are dropped. Flows that have
//! begun without a memory go on so while the table may have been full when they began.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use forwarding::Headers;

use super::connections::{Binding, Way};
use super::persistence::masked;
use super::policy::MssLimit;
use super::service::Service;
use super::signal::Signal;
use super::transmitter::Transmitter;
use super::verdict::{DropReason, Stop};
use super::witness::Decision;
use super::{Dispatcher, Target};

/// How long flows without a memory are provided for after the last one began: as long as an
/// established connection may be idle.
const AFTERMATH: Duration = Duration::from_secs(900);

/// What has come of a full table.
#[derive(Debug, Default)]
pub struct Overflow {
    /// Connections that had to go for others.
    evicted: AtomicU64,
    /// Packets that were sent by hash.
    hashed: AtomicU64,
    /// When a flow last began so, in nanoseconds since start; 0 = never.
    last: AtomicU64,
}

impl Overflow {
    /// The same aftermath, apart from this one.
    pub(super) fn fork(&self) -> Overflow {
        Overflow { last: AtomicU64::new(self.last.load(Relaxed)), ..Overflow::default() }
    }

    /// Name, meaning and count of what is counted.
    pub fn rows(&self) -> [(&'static str, &'static str, u64); 2] {
        [
            (
                "evicted",
                "Connections removed because the table was full (`max_connections`).",
                self.evicted.load(Relaxed),
            ),
            (
                "sent_by_hash",
                "Sent to a server chosen by hash alone, because the connection table was full; counted with its method too.",
                self.hashed.load(Relaxed),
            ),
        ]
    }
}

impl Dispatcher {
    /// Whether there is room for another connection, or could be made.
    pub(super) fn has_room(&self, now: Duration) -> bool {
        let connections = &self.shared.connections;
        if !connections.is_full() {
            return true;
        }
        let made = connections.make_room(now, &self.shared.timeouts);
        if made {
            self.shared.overflow.evicted.fetch_add(1, Relaxed);
        }
        made
    }

    /// Whether a packet that opens nothing and belongs to no connection may be of a flow that has
    /// begun when the table was full.
    pub(super) fn may_be_by_hash(&self, now: Duration, signal: Signal) -> bool {
        let last = self.shared.overflow.last.load(Relaxed);
        last != 0
            && matches!(signal, Signal::Tcp(_))
            && now < Duration::from_nanos(last) + AFTERMATH
    }

    /// The target of a packet for which there is no room; `opens`: a flow begins with it.
    pub(super) fn by_hash(
        &self,
        now: Duration,
        service: &Arc<Service>,
        headers: &Headers,
        opens: bool,
    ) -> Result<Target, Stop> {
        let port = match service.persistence() {
            Some(_) => 0,
            None => headers.source_port,
        };
        let prefix = service.persistence().map_or(128, |(_, prefix)| prefix);
        let client = (masked(headers.source, prefix), port);
        let hash = |server| self.shared.connections.flow_hash(client, server);
        let is_stateless = |binding: &Binding| {
            matches!(binding.transmitter, Transmitter::Direct | Transmitter::Tunnel(_))
        };
        let binding = service
            .choose_by(|member| {
                let is_taken = member.server.load.weight() > 0 && is_stateless(&member.binding);
                is_taken.then(|| hash((member.spec.address.ip(), member.spec.address.port())))
            })
            .ok_or(Stop::Drop(DropReason::TableFull))?;
        self.witness.note(|| Decision::ByHash { server: binding.server.address() });
        let overflow = &self.shared.overflow;
        overflow.hashed.fetch_add(1, Relaxed);
        if opens {
            overflow.last.store((now.as_nanos() as u64).max(1), Relaxed);
        }
        binding.counted(headers.ip_len(), true);
        let virtual_endpoint = (headers.destination, headers.destination_port);
        Ok(Target {
            way: Way::In,
            transmitter: binding.transmitter,
            client: (headers.source, headers.source_port),
            virtual_endpoint,
            server: (
                binding.address,
                service.port_at_server(binding.server.load.port(), virtual_endpoint.1),
            ),
            mss: MssLimit::default(),
            is_helped: false,
        })
    }
}
