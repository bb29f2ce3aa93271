//! The short way: a plain packet of an established connection, which is nearly every packet.
//!
//! It changes nothing but the connection's time, takes no lock, and what is looked up for it does
//! not depend on what is done with the packets before it, so a batch is taken through each step
//! together (see the worker). It decides exactly as the long way does ([`handle`](Dispatcher::handle));
//! whatever is not plain and simple it leaves to that, untouched: a test holds the two to each other.

use std::net::IpAddr;
use std::time::Duration;

use arc_swap::Cache;
use forwarding::Family;
use forwarding::checksum::Partial;
use forwarding::plain::{End, Plain};
use forwarding::tunnel::Outer;

use super::connections::{Binding, Probe, Sight, Way, ticks};
use super::forward::flow_source;
use super::settings::Setting;
use super::state::State;
use super::tallies::Tallies;
use super::transmitter::{Transmitter, encapsulation};
use super::verdict::Method;
use super::{Dispatcher, Packet, TCP};

/// FIN, SYN, RST and ACK.
const SIGNIFICANT: u8 = 0x17;
/// ACK alone of those: established connections stay so, in every direction and table.
const ACK: u8 = 0x10;

/// Room before a frame that any tunnel header fits into.
const HEADROOM: usize = 96;

/// The time of a breath, as connections count it.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Since start, rounded up: from here on timeouts run.
    from: u32,
    /// Rounded down: what has expired by then is over.
    by: u32,
}

impl Moment {
    /// Of `now`, time since start.
    pub fn of(now: Duration) -> Moment {
        let from = ticks(now);
        // Rounding up and down differ by one, or not at all.
        let by = if super::connections::time(from) > now { from.wrapping_sub(1) } else { from };
        Moment { from, by }
    }
}

/// A plain packet and what is known of its connection so far.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    plain: Plain,
    probe: Probe,
}

/// The way out to one address, ready to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// MTU of the path, bytes of IP packet.
    pub mtu: u32,
    /// Source address the kernel would use.
    pub source: Option<IpAddr>,
    /// Number of the port.
    pub port: usize,
    /// MAC address of the interface.
    pub from: [u8; 6],
    /// MAC address of the next hop.
    pub to: [u8; 6],
}

/// Where packets leave whose next hop is known and which need no tag.
pub trait Exits {
    /// The way to a server.
    fn to_server(&mut self, binding: &Binding) -> Option<Exit>;
    /// The way to a client.
    fn to_client(&mut self, client: IpAddr) -> Option<Exit>;
}

/// A packet that goes out: rewritten, but for its Ethernet addresses.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// How it was forwarded, for counters.
    pub method: Method,
    /// Where it leaves.
    pub exit: Exit,
    /// The transport checksum, when it is still to be completed.
    pub partial: Option<Partial>,
    /// Bytes of the frame, without padding.
    pub end: usize,
}

impl Dispatcher {
    /// Before a breath: takes the newest bindings. Whether they have changed.
    pub fn refresh(&mut self) -> bool {
        let newest = Cache::load(&mut self.newest_bindings);
        let changed = !std::sync::Arc::ptr_eq(newest, &self.bindings);
        if changed {
            self.bindings = newest.clone();
            self.tallies.make_room(self.bindings.len());
        }
        changed
    }

    /// Numbers of bindings are below this.
    pub fn bindings(&self) -> usize {
        self.bindings.len()
    }

    /// Reads a frame and asks for the memory that tells its connection. `None` when it has to go the
    /// long way.
    #[inline(always)]
    pub fn sight(&self, frame: &[u8]) -> Option<Sighting> {
        let plain = Plain::read(frame)?;
        // Who goes the long way needs the index's memory too.
        let probe = self.shared.connections.probe(&plain);
        let is_quiet = plain.protocol != TCP || plain.tcp_flags & SIGNIFICANT == ACK;
        is_quiet.then_some(Sighting { plain, probe })
    }

    /// Asks for the memory of the connection itself.
    #[inline(always)]
    pub fn locate(&self, sighting: &mut Sighting) {
        self.shared.connections.locate(&mut sighting.probe);
    }

    /// Decides on the packet, and rewrites it. `None`, and nothing has changed, when it has to go
    /// the long way.
    #[inline(always)]
    pub fn carry(
        &mut self,
        moment: Moment,
        exits: &mut impl Exits,
        packet: &mut Packet<'_>,
        sighting: &Sighting,
    ) -> Option<Carried> {
        let Sighting { plain, probe } = sighting;
        let sight = self.shared.connections.see(probe, plain, &self.bindings)?;
        let binding = sight.binding;
        if plain.ttl <= 1 || sight.expires() <= moment.by {
            return None;
        }
        let expires = moment.from + self.lifetime(plain, &sight)? * ticks(Duration::from_secs(1));
        let is_in = sight.way == Way::In;
        let carried = match (binding.transmitter, is_in) {
            (Transmitter::Nat | Transmitter::Direct, true) => {
                let exit = self.exit_to_server(exits, binding)?;
                let is_of_family = binding.address.is_ipv4() == (plain.family == Family::V4);
                if !is_of_family || plain.ip_len() > exit.mtu as usize || !sight.renew(expires) {
                    return None;
                }
                let method = if binding.transmitter == Transmitter::Nat {
                    let (address, port) = (binding.address_bits(), sight.server_port());
                    plain.translate(packet.bytes_mut(), End::Destination, address, port);
                    Method::Nat
                } else {
                    plain.lower_ttl(packet.bytes_mut());
                    Method::Direct
                };
                Carried { method, exit, partial: plain.partial(), end: plain.end() }
            }
            (Transmitter::Nat, false) => {
                let exit = exits.to_client(plain.destination_address())?;
                if plain.ip_len() > exit.mtu as usize || !sight.renew(expires) {
                    return None;
                }
                let (address, port) = sight.virtual_end();
                plain.translate(packet.bytes_mut(), End::Source, address, port);
                let partial = plain.partial();
                Carried { method: Method::NatReply, exit, partial, end: plain.end() }
            }
            (Transmitter::Tunnel(tunnel), true) => {
                let exit = self.exit_to_server(exits, binding)?;
                let tunnel = encapsulation(tunnel);
                let partial = plain.partial();
                let overhead = tunnel.overhead(binding.address, partial.is_some());
                let source = exit.source?;
                let fits = plain.ip_len() + overhead <= exit.mtu as usize;
                if !fits || packet.start() < HEADROOM || !sight.renew(expires) {
                    return None;
                }
                plain.lower_ttl(packet.bytes_mut());
                let headers = plain.headers();
                let outer = Outer {
                    source,
                    destination: binding.address,
                    id: self.next_id,
                    path_mtu_discovery: self.shared.settings.is_on(Setting::PmtuDisc),
                };
                self.next_id = self.next_id.wrapping_add(1);
                let client = (headers.source, headers.source_port);
                let vip = (headers.destination, headers.destination_port);
                let flow = flow_source(&self.shared.connections, tunnel, client, vip);
                let made = tunnel.encapsulate(packet, &headers, partial, flow, &outer)?;
                let end = made.headers.end;
                Carried { method: Method::Tunnel, exit, partial: made.partial, end }
            }
            _ => return None,
        };
        self.tallies.count(binding.id(), plain.ip_len(), is_in);
        Some(carried)
    }

    /// Seconds that the connection lives after this packet, if it stays in its state.
    #[inline(always)]
    fn lifetime(&self, plain: &Plain, sight: &Sight<'_>) -> Option<u32> {
        let state = match (sight.state(), plain.protocol == TCP) {
            (State::Established, true) => State::Established,
            (State::Udp, false) => State::Udp,
            _ => return None,
        };
        Some(sight.binding.service.policy.seconds(state, &self.shared.timeouts))
    }

    /// The way to a server that still belongs to its service.
    #[inline(always)]
    fn exit_to_server(&self, exits: &mut impl Exits, binding: &Binding) -> Option<Exit> {
        if !binding.server.is_available() {
            return None;
        }
        exits.to_server(binding)
    }

    /// Tells services and servers what has been counted since the last time.
    pub fn settle(&mut self) {
        self.tallies.settle(&self.bindings);
    }
}

impl Tallies {
    /// Adds what has been counted to the counters of services and servers.
    fn settle(&mut self, bindings: &super::connections::Bindings) {
        self.drain(|id, tally| {
            let Some(binding) = bindings.get(id) else { return };
            binding.counted_all(tally.in_packets, tally.in_bytes, true);
            binding.counted_all(tally.out_packets, tally.out_bytes, false);
        });
    }
}
