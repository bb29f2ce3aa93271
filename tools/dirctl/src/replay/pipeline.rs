//! Packets through a director that is made from a file: the dispatcher's own pipeline, step by step.
//!
//! What a worker does after the pipeline's verdict (Ethernet header, completing a checksum, pieces that
//! fit the way out) is done here for the packets that are to be written; see `worker/egress.rs`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use director::config::Config;
use director::control::api::ServiceKey;
use director::dispatch::Dispatcher;
use director::dispatch::service::Services;
use director::dispatch::verdict::{Method, PassReason, Path, Verdict as Decided};
use director::steer::KeySet;
use director::world::{Assumed, NoWorld, World};
use forwarding::checksum::{self, Partial};
use forwarding::fragment::Fragmenter;
use forwarding::wire::ethernet;
use forwarding::{Family, Headers, Packet};

use super::fate::{Fate, Target, Verdict};

/// How often timers are looked at: as often as a worker does.
const TICK: Duration = Duration::from_millis(100);

/// A long time without a packet is passed in so many steps.
const STEPS: u32 = 100;

/// Room before a packet, for a tunnel's headers.
pub const HEADROOM: usize = 256;

/// Bytes of a piece of a packet that is cut: no MTU is larger.
const PIECE: usize = 65_535 + 64;

/// See the module.
pub struct Pipeline {
    world: World,
    dispatcher: Dispatcher,
    keys: KeySet,
    services: Arc<Services>,
    routes: Assumed,
    /// Up to when time has passed.
    passed: Duration,
    piece: Vec<u8>,
    next_id: u32,
}

/// Who is shown what leaves.
pub type Sink<'a> = dyn FnMut(&[u8]) + 'a;

/// A frame in a larger room.
pub struct Room<'a> {
    /// With [`HEADROOM`] before the frame, and as much behind it.
    pub chunk: &'a mut [u8],
    /// Bytes of the frame.
    pub length: usize,
}

impl Pipeline {
    /// A director that has just started, with paths of `mtu` bytes.
    ///
    /// # Errors
    /// What of the file a director would refuse.
    pub fn new(config: &Config, mtu: u32) -> Result<Pipeline, NoWorld> {
        let world = World::from_config(config)?;
        Ok(Pipeline {
            dispatcher: world.dispatcher(),
            keys: world.steering(),
            services: world.services(),
            routes: Assumed { mtu, ..Assumed::default() },
            passed: Duration::ZERO,
            piece: vec![0; PIECE],
            next_id: 1,
            world,
        })
    }

    /// The table, with what its services and servers have counted.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Decides on a frame that comes at `now`. What leaves for it is shown to `out`.
    pub fn judge(
        &mut self,
        now: Duration,
        room: Room<'_>,
        headers: Option<&Headers>,
        out: Option<&mut Sink<'_>>,
    ) -> Fate {
        self.pass(now);
        let Room { chunk, length } = room;
        if !self.keys.wants(&chunk[HEADROOM..HEADROOM + length]) {
            return fate(Verdict::Passed, "not_steered", NOT_STEERED);
        }
        let mut packet = Packet::new(chunk, HEADROOM, length);
        let routes = &mut self.routes;
        let decided = self.dispatcher.handle(now, &self.services, routes, &mut packet);
        let mut fate = self.told(&decided, headers);
        match decided {
            Decided::Transmit { method, path, partial, headers } => {
                if headers.ip_len() > path.mtu as usize {
                    let may_be_cut = match headers.family {
                        Family::V4 => !headers.dont_fragment,
                        Family::V6 => method == Method::Tunnel,
                    };
                    if !may_be_cut {
                        let reason = director::dispatch::verdict::DropReason::TooBig;
                        fate.verdict = Verdict::Dropped;
                        (fate.reason, fate.meaning) = (reason.label(), reason.meaning());
                        return fate;
                    }
                }
                if let Some(out) = out {
                    self.send(packet, path, partial, headers, out);
                }
            }
            Decided::Answer { .. } => {
                if let (Some(out), Some((reply, headers))) = (out, self.dispatcher.reply()) {
                    let mut frame = reply.to_vec();
                    let to = Assumed::mac(headers.destination);
                    ethernet::set_addresses(&mut frame, to, Assumed::MAC);
                    out(&frame);
                }
            }
            Decided::Pass(_) | Decided::Drop(_) => {}
        }
        fate
    }

    /// Lets time pass until `now`.
    fn pass(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.passed);
        if gap < TICK {
            return;
        }
        let step = (gap / STEPS).max(TICK);
        while self.passed + step <= now {
            self.passed += step;
            self.world.pass(self.passed);
        }
    }

    /// The verdict in words.
    fn told(&self, decided: &Decided, headers: Option<&Headers>) -> Fate {
        let service = |headers: &Headers| self.services.of(headers).map(|service| service.key);
        match decided {
            Decided::Transmit { method, path, headers: sent, .. } => {
                let (service, server) = self.whom(*method, path, sent, headers);
                Fate {
                    service,
                    target: Some(Target::Server(server)),
                    is_clients: *method != Method::NatReply,
                    ..fate(Verdict::Forwarded, method.label(), meaning(*method))
                }
            }
            Decided::Answer { reason } => Fate {
                answered: true,
                service: headers.and_then(service),
                ..fate(Verdict::Dropped, reason.label(), reason.meaning())
            },
            Decided::Drop(reason) => Fate {
                service: headers.and_then(service),
                ..fate(Verdict::Dropped, reason.label(), reason.meaning())
            },
            Decided::Pass(reason) => {
                let service = match reason {
                    PassReason::NoService | PassReason::NotIp => None,
                    _ => headers.and_then(service),
                };
                Fate { service, ..fate(Verdict::Passed, reason.label(), reason.meaning()) }
            }
        }
    }

    /// Service and server of a packet that was forwarded: its connection's, else what the packet shows.
    fn whom(
        &self,
        method: Method,
        path: &Path,
        sent: &Headers,
        came: Option<&Headers>,
    ) -> (Option<ServiceKey>, SocketAddr) {
        let found = came.and_then(|came| {
            let (source, destination) =
                ((came.source, came.source_port), (came.destination, came.destination_port));
            let connections = &self.world.shared().connections;
            connections.peek(came.protocol, source, destination, |_, connection| {
                (connection.service().key, SocketAddr::from(connection.server_endpoint))
            })
        });
        if let Some((service, server)) = found {
            return (Some(service), server);
        }
        let service = came.and_then(|came| self.services.of(came)).map(|service| service.key);
        let server = match (method, came) {
            (Method::NatReply, Some(came)) => SocketAddr::new(came.source, came.source_port),
            (Method::Nat, _) => SocketAddr::new(sent.destination, sent.destination_port),
            (_, Some(came)) => SocketAddr::new(path.next_hop, came.destination_port),
            (_, None) => SocketAddr::new(path.next_hop, 0),
        };
        (service, server)
    }

    /// What is left to do when a packet is to go out.
    fn send(
        &mut self,
        mut packet: Packet<'_>,
        path: Path,
        partial: Option<Partial>,
        mut headers: Headers,
        out: &mut Sink<'_>,
    ) {
        let before = headers.l3;
        let fits = packet.resize(headers.end)
            && (headers.vlan.is_none() || ethernet::set_vlan(&mut packet, &mut headers, None));
        if !fits {
            return;
        }
        let frame = packet.bytes_mut();
        ethernet::set_addresses(frame, Assumed::mac(path.next_hop), Assumed::MAC);
        if let Some(partial) = partial {
            let shift = headers.l3.wrapping_sub(before);
            let partial = Partial { start: partial.start.wrapping_add(shift), ..partial };
            checksum::complete(frame, partial, headers.end);
        }
        if headers.ip_len() <= path.mtu as usize {
            return out(frame);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let Some(mut pieces) = Fragmenter::new(frame, &headers, path.mtu, id) else { return };
        while let Some(piece) = pieces.next(frame, &mut self.piece) {
            out(&self.piece[..piece.end]);
        }
    }
}

const NOT_STEERED: &str =
    "Steering leaves it to the kernel: it concerns no service, no server and no mark.";

fn fate(verdict: Verdict, reason: &'static str, meaning: &'static str) -> Fate {
    Fate {
        verdict,
        reason,
        meaning,
        answered: false,
        service: None,
        target: None,
        is_clients: false,
    }
}

fn meaning(method: Method) -> &'static str {
    match method {
        Method::Nat => "Forwarded to a server by NAT.",
        Method::NatReply => "A server's answer, translated back for the client.",
        Method::Tunnel => "Forwarded to a server through a tunnel.",
        Method::Direct => "Forwarded to a server by direct routing.",
        Method::Bypass => "Forwarded past all servers (`cache_bypass`).",
    }
}
