//! The short way: a plain packet of an established connection, which is nearly every packet.
//!
//! It changes nothing but the connection's time, takes no lock, and what is looked up for it does
//! not depend on what is done with the packets before it, so a batch is taken through each step
//! together (see the worker). It decides exactly as the long way does ([`handle`](Dispatcher::handle));
//! whatever is not plain and simple it leaves to that, untouched: a test holds the two to each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use arc_swap::Cache;
use forwarding::Family;
use forwarding::checksum::Partial;
use forwarding::plain::{End, Plain};
use forwarding::tunnel::Outer;
use forwarding::wire::ethernet;

use super::connections::{Binding, Probe, Sight, Way, ticks};
use super::forward::flow_source;
use super::settings::Setting;
use super::state::State;
use super::tallies::Tallies;
use super::transmitter::{Transmitter, encapsulation};
use super::verdict::Method;
use super::{Dispatcher, Packet, TCP};
use crate::control::api::Tunnel;

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
#[derive(Clone, Copy, Debug, Default)]
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
    /// MAC addresses as a frame has them: of the next hop, of the interface.
    pub addresses: [u8; 12],
}

/// Where packets leave whose next hop is known and which need no tag.
pub trait Exits {
    /// The way to a server.
    fn to_server(&mut self, binding: &Binding) -> Option<Exit>;
    /// The way to a client.
    fn to_client(&mut self, client: IpAddr) -> Option<Exit>;
}

/// A packet that goes out, rewritten.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// How it was forwarded, for counters.
    pub method: Method,
    /// Number of the port that it leaves by.
    pub port: usize,
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
        self.passages.refresh(self.bindings.len());
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
        let Dispatcher { shared, bindings, passages, tallies, next_id, .. } = self;
        let connections = &shared.connections;
        let is_v6 = plain.family == Family::V6;
        let mut sight = connections.see(probe, plain);
        if let Some(Sight { way: Way::Out, .. }) = sight {
            // Only its binding knows whether it is the right server.
            sight = sight.filter(|sight| {
                let passage = passages.get(sight.binding(), bindings, &shared.timeouts, exits);
                passage.is_some_and(|it| it.bits == plain.source && it.is_v6 == is_v6)
            });
        }
        let sight = sight.or_else(|| connections.search(probe, plain, bindings))?;
        let passage = passages.get(sight.binding(), bindings, &shared.timeouts, exits)?;
        if plain.ttl <= 1 || sight.expires() <= moment.by {
            return None;
        }
        let lifetime = match (sight.state(), plain.protocol == TCP) {
            (State::Established, true) => passage.established,
            (State::Udp, false) => passage.udp,
            _ => return None,
        };
        let expires = moment.from + lifetime;
        let is_in = sight.way == Way::In;
        let (method, port, partial, end) = match (passage.transmitter, is_in) {
            (Transmitter::Nat | Transmitter::Direct, true) => {
                let exit = passage.exit.as_ref()?;
                let fits = passage.is_v6 == is_v6 && plain.ip_len() <= exit.mtu as usize;
                if !fits || !sight.renew(expires) {
                    return None;
                }
                let bytes = packet.bytes_mut();
                ethernet::put_addresses(bytes, &exit.addresses);
                let method = if passage.transmitter == Transmitter::Nat {
                    plain.translate(bytes, End::Destination, passage.bits, sight.server_port());
                    Method::Nat
                } else {
                    plain.lower_ttl(bytes);
                    Method::Direct
                };
                (method, exit.port, plain.partial(), plain.end())
            }
            (Transmitter::Nat, false) if !passage.is_lost => {
                let exit = exits.to_client(plain.destination_address())?;
                if plain.ip_len() > exit.mtu as usize || !sight.renew(expires) {
                    return None;
                }
                let (address, port) = sight.virtual_end();
                let bytes = packet.bytes_mut();
                ethernet::put_addresses(bytes, &exit.addresses);
                plain.translate(bytes, End::Source, address, port);
                (Method::NatReply, exit.port, plain.partial(), plain.end())
            }
            (Transmitter::Tunnel(tunnel), true) => {
                let exit = passage.exit.as_ref()?;
                let server = match passage.is_v6 {
                    false => Ipv4Addr::from_bits(passage.bits as u32).into(),
                    true => Ipv6Addr::from_bits(passage.bits).into(),
                };
                let around = encapsulation(tunnel);
                let overhead = around.overhead(server, plain.is_partial);
                let source = exit.source?;
                let fits = plain.ip_len() + overhead <= exit.mtu as usize;
                if !fits || packet.start() < HEADROOM || !sight.renew(expires) {
                    return None;
                }
                plain.lower_ttl(packet.bytes_mut());
                let outer = Outer {
                    source,
                    destination: server,
                    id: *next_id,
                    path_mtu_discovery: shared.settings.is_on(Setting::PmtuDisc),
                };
                *next_id = next_id.wrapping_add(1);
                let (end, partial) = match tunnel {
                    Tunnel::Ipip => plain.put_into_ipip(packet, &outer)?,
                    _ => {
                        let headers = plain.headers();
                        let client = (headers.source, headers.source_port);
                        let vip = (headers.destination, headers.destination_port);
                        let flow = flow_source(connections, around, client, vip);
                        let partial = plain.partial();
                        let made = around.encapsulate(packet, &headers, partial, flow, &outer)?;
                        (made.headers.end, made.partial)
                    }
                };
                ethernet::put_addresses(packet.bytes_mut(), &exit.addresses);
                (Method::Tunnel, exit.port, partial, end)
            }
            _ => return None,
        };
        tallies.count(sight.binding() as usize, plain.ip_len(), is_in);
        Some(Carried { method, port, partial, end })
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
