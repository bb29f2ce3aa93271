//! The packet pipeline: what becomes of a packet and why. Sans-IO: time is an argument, a packet is
//! a slice of bytes, the answer is a [`Verdict`].
//!
//! ```text
//! parse ── not IP ─────────────────────────────────────────────> pass up
//!   │── ICMP error ── icmp.rs ── about one of our connections? ─> follow it, else pass up
//!   │                   └─ tunnel_errors.rs ── about our tunnel's packet? ─> tell the client
//!   │── later fragment ── fragments.rs: the ports of the first ── not seen ──> pass up
//!   │── any fragment ──── fragments.rs: over what has gone on, past the end ──> drop
//!   v
//! find the connection ── none ── schedule.rs: service? may it open one? ask the scheduler
//!   │  (reuse.rs: does it end?      no service: pass up    no server: refusal.rs, tell the client,
//!   │   lost.rs: is it dead?)       or bypass.rs, past the servers
//!   │                               one-packet scheduling: one_packet.rs
//!   v
//! advance its state, timer and counters (connection.rs, signal.rs, tcp.rs, sctp.rs)
//!   v
//! forward.rs: route, TTL, MTU, rewrite by the connection's method ──> transmit
//!   │── FTP control connection ── ftp.rs ── what it announces goes into the table
//! ```
//!
//! Most packets go a shorter way, where the same is decided with fewer questions: established.rs.
//!
//! The same code carries traffic, is fuzzed, and is stepped through in virtual time by tests.

pub mod connection;
pub mod connections;
pub mod counters;
pub mod defence;
pub mod established;
pub mod fork;
pub mod fragments;
pub mod ftp;
pub mod limiter;
pub mod sctp;
pub mod service;
pub mod settings;
pub mod signal;
pub mod sip;
pub mod state;
pub mod tcp;
pub mod traffic;
pub mod transmitter;
pub mod verdict;
pub mod witness;

mod bypass;
mod forward;
mod icmp;
mod lost;
mod one_packet;
pub mod overflow;
mod passage;
mod persistence;
mod policy;
mod real_server;
mod refusal;
mod reuse;
mod schedule;
mod stray;
mod tallies;
#[cfg(test)]
mod tcp_cells;
#[cfg(test)]
mod tests;
mod tunnel_errors;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Cache};
use forwarding::{Fragment, Headers, Malformed, Packet, parse};

use connection::{Connection, Endpoint, Tuple};
use connections::{Bindings, Connections, Way};
use defence::Defence;
use fragments::Fragments;
use limiter::Limiter;
use overflow::Overflow;
use passage::Passages;
use policy::{Lost, MssLimit};
use service::Services;
use settings::Settings;
use signal::Signal;
use state::Timeouts;
use tallies::Tallies;
use transmitter::Transmitter;
use verdict::{DropReason, PassReason, Path, Verdict};
use witness::{Decision, Witness};

/// IP protocol numbers the pipeline knows.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;

/// Room for an ICMP error with its quote: Ethernet, VLAN tag, 1280 bytes of IPv6.
const REPLY_SIZE: usize = 2048;

/// Where packets for an address leave. The worker answers from the kernel's routing table.
pub trait Routes {
    /// The path to `destination`, or `None` when there is none.
    fn path(&mut self, destination: IpAddr) -> Option<Path>;
}

/// What all workers' dispatchers share.
pub struct Shared {
    /// The connection table.
    pub connections: Connections,
    /// Timeouts by state.
    pub timeouts: Timeouts,
    /// Ports of fragmented datagrams.
    pub fragments: Fragments,
    /// Whose connections are FTP control connections.
    pub ftp: ftp::Ports,
    /// The settings.
    pub settings: Settings,
    /// How many ICMP errors of our own may be sent.
    pub limiter: Limiter,
    /// What is done against floods of connections.
    pub defence: Defence,
    /// What has come of a full table.
    pub overflow: Overflow,
}

impl Shared {
    /// Empty tables; at most `max_connections` connections.
    pub fn new(max_connections: usize) -> Shared {
        Shared::of(Connections::new(max_connections))
    }

    /// Empty tables that behave the same in every run: see [`Connections::with_seed`].
    pub fn with_seed(max_connections: usize, seed: u64) -> Shared {
        Shared::of(Connections::with_seed(max_connections, seed))
    }

    fn of(connections: Connections) -> Shared {
        Shared {
            connections,
            timeouts: Timeouts::default(),
            fragments: Fragments::default(),
            ftp: ftp::Ports::default(),
            settings: Settings::default(),
            limiter: Limiter::default(),
            defence: Defence::default(),
            overflow: Overflow::default(),
        }
    }

    /// The same with these ports for FTP.
    #[must_use]
    pub fn with_ftp(self, ftp: ftp::Ports) -> Shared {
        Shared { ftp, ..self }
    }
}

/// What a packet's connection says about it.
#[derive(Clone, Copy, Debug)]
struct Target {
    way: Way,
    transmitter: Transmitter,
    client: Endpoint,
    virtual_endpoint: Endpoint,
    server: Endpoint,
    /// Of a packet with SYN: what it may announce.
    mss: MssLimit,
    /// An FTP control connection.
    is_helped: bool,
}

/// The pipeline of one worker.
pub struct Dispatcher {
    shared: Arc<Shared>,
    reply: Box<[u8; REPLY_SIZE]>,
    /// Length and headers of what is in `reply`.
    replied: Option<(usize, Headers)>,
    /// Identification of the next outer IPv4 header.
    next_id: u16,
    newest_bindings: Cache<Arc<ArcSwap<Bindings>>, Arc<Bindings>>,
    /// As of the beginning of the breath.
    bindings: Arc<Bindings>,
    /// What is at hand of each of them.
    passages: Passages,
    tallies: Tallies,
    /// Is told what is decided on the long way.
    witness: Witness,
}

impl Dispatcher {
    /// A pipeline on shared tables. `seed` is where IPv4 identifications of tunnel packets start.
    pub fn new(shared: Arc<Shared>, seed: u16) -> Dispatcher {
        let newest_bindings = Cache::new(shared.connections.bindings());
        Dispatcher {
            shared,
            reply: Box::new([0; REPLY_SIZE]),
            replied: None,
            next_id: seed,
            newest_bindings,
            bindings: Arc::default(),
            passages: Passages::default(),
            tallies: Tallies::default(),
            witness: Witness::default(),
        }
    }

    /// The ICMP error or TCP reset that goes with the last [`Verdict::Answer`]: an Ethernet frame
    /// and its headers.
    pub fn reply(&self) -> Option<(&[u8], Headers)> {
        self.replied.map(|(len, headers)| (&self.reply[..len], headers))
    }

    /// Decides on one packet, and rewrites it when it is to be transmitted. `now` is monotonic
    /// time since the process's start.
    pub fn handle(
        &mut self,
        now: Duration,
        services: &Services,
        routes: &mut impl Routes,
        packet: &mut Packet<'_>,
    ) -> Verdict {
        let mut headers = match parse(packet.bytes()) {
            Ok(headers) => headers,
            Err(Malformed::NotIp) => return Verdict::Pass(PassReason::NotIp),
            Err(Malformed::Truncated) => return Verdict::Drop(DropReason::Truncated),
            Err(Malformed::BadHeader) => return Verdict::Drop(DropReason::BadHeader),
            Err(Malformed::BadChecksum) => return Verdict::Drop(DropReason::BadChecksum),
            Err(Malformed::Overlap) => return Verdict::Drop(DropReason::FragmentOverlap),
        };
        match headers.protocol {
            TCP | UDP | SCTP => {}
            ICMP | ICMPV6 => return self.handle_icmp(now, services, routes, packet, headers),
            _ => return Verdict::Pass(PassReason::NoService),
        }
        match headers.fragment {
            Fragment::Whole => {}
            Fragment::First { .. } => {
                if let Err(reason) = self.shared.fragments.first(&headers, now) {
                    return Verdict::Drop(reason);
                }
            }
            Fragment::Later { .. } => match self.shared.fragments.later(&headers, now) {
                Ok(Some(ports)) => (headers.source_port, headers.destination_port) = ports,
                // It looks like a packet of a service or a NAT server by its address alone. It may
                // be one of the kernel's own, or the first fragment is still to come.
                Ok(None) => return Verdict::Pass(PassReason::Fragment),
                Err(reason) => return Verdict::Drop(reason),
            },
        }
        let signal = Signal::read(packet.bytes(), &headers);
        let target = match self.follow(now, &headers, signal) {
            Followed::Known(target) => target,
            Followed::Refused(reason) => return Verdict::Drop(reason),
            Followed::Gone(reason, tuple) => {
                return self.refuse_gone(now, packet, &headers, reason, &tuple).into();
            }
            Followed::Unheard => return self.refuse_lost(now, packet, &headers).into(),
            Followed::Unknown => {
                match self.begin(now, services, routes, packet, &headers, signal) {
                    Ok(target) => target,
                    Err(stop) => return stop.into(),
                }
            }
        };
        // What goes to the host's stack is for that to judge.
        if headers.fragment != Fragment::Whole
            && target.onward().is_ok()
            && let Err(reason) = self.shared.fragments.admit(&headers, now)
        {
            return Verdict::Drop(reason);
        }
        self.forward(now, routes, packet, headers, &target)
    }

    /// What has been noted since the last call; nothing, unless this one is [`on`](Self::on) a fork.
    pub fn decisions(&self) -> Vec<Decision> {
        self.witness.take()
    }

    /// Finds the packet's connection and moves it on.
    fn follow(&self, now: Duration, headers: &Headers, signal: Signal) -> Followed {
        let source = (headers.source, headers.source_port);
        let destination = (headers.destination, headers.destination_port);
        let bytes = headers.ip_len();
        let (timeouts, settings) = (&self.shared.timeouts, &self.shared.settings);
        let has_portless = self.shared.connections.has_portless();
        let found = self.shared.connections.with(
            headers.protocol,
            source,
            destination,
            |way, connection| {
                if way == Way::In {
                    let is_over = connection.expires <= now && connection.reprieve().is_none();
                    if connection.server().is_lost() && !is_over {
                        return Err((lost::of_client(signal, settings), connection.tuple));
                    }
                    if is_over || reuse::ends(connection, signal.opens(), settings) {
                        return Err((Lost::Over, connection.tuple));
                    }
                    if !connection.server().is_available() {
                        let policy = &connection.service().policy;
                        let lost = policy.when_gone(signal.may_be_scheduled(settings));
                        return Err((lost, connection.tuple));
                    }
                }
                let before = (connection.state, connection.expires);
                if way == Way::Out
                    && let Some(lost) = lost::of_server(connection)
                {
                    return Err((lost, connection.tuple));
                }
                match way {
                    Way::In => connection.incoming(signal, bytes, now, timeouts),
                    // A router drops it before it is ours to translate: it neither counts nor
                    // moves the connection.
                    Way::Out if headers.ttl <= 1 => {}
                    Way::Out => connection.outgoing(signal, bytes, now, timeouts),
                }
                self.witness.note(|| Decision::followed(way, connection, before, now));
                Ok(Target::of(way, connection).announcing(headers, connection))
            },
        );
        match found {
            None if has_portless && self.is_awaited(headers) => self.follow(now, headers, signal),
            None => {
                self.witness.note(|| Decision::NoConnection);
                Followed::Unknown
            }
            Some(Ok(target)) => Followed::Known(target),
            Some(Err((lost, tuple))) => self.lose(lost, &tuple),
        }
    }

    /// What becomes of a packet that does not go the way of its connection.
    fn lose(&self, lost: Lost, tuple: &Tuple) -> Followed {
        self.witness.note(|| Decision::Ended { why: lost.why() });
        match lost {
            Lost::Waits => Followed::Refused(DropReason::ServerRemoved),
            Lost::Told => Followed::Gone(DropReason::ServerGone, *tuple),
            Lost::Dead => Followed::Gone(DropReason::ServerLost, *tuple),
            Lost::Unheard => Followed::Unheard,
            Lost::Over => {
                self.shared.connections.remove(tuple);
                Followed::Unknown
            }
        }
    }
}

/// What came of looking for a packet's connection.
enum Followed {
    Known(Target),
    Unknown,
    Refused(DropReason),
    /// Its server is gone for this reason, which the client shall hear of.
    Gone(DropReason, Tuple),
    /// It comes from a server that had failed.
    Unheard,
}

impl Target {
    fn of(way: Way, connection: &Connection) -> Target {
        Target {
            way,
            transmitter: connection.transmitter(),
            client: connection.tuple.client,
            virtual_endpoint: connection.tuple.peer,
            server: connection.server_endpoint,
            mss: MssLimit::default(),
            is_helped: connection.is_helped(),
        }
    }

    /// The same for a packet that may announce the largest segment its sender takes.
    fn announcing(mut self, headers: &Headers, connection: &Connection) -> Target {
        if tcp::opens(headers.tcp_flags) {
            self.mss = connection.service().policy.mss_limit();
        }
        self
    }
}
