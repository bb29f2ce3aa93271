//! The clients and the servers: one socket towards each director.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netio::{Frame, PacketOptions, PacketPort, Pool, Port};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::arrival::Arrival;
use super::frames;
use super::pieces::Receivers;
use super::place::{self, Who};
use super::step::{Flow, From, Kind, Packet, Protocol};
use crate::lab::{Host, Mac};
use crate::topology::server_addresses;

/// How long a director may take for all that it was sent. The kernel in its guest is slow when
/// the machine is busy, and nothing depends on how long it takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A director may hold fragments back until the first one has come, and others overtake them.
const FRAGMENTS_WAIT: Duration = Duration::from_millis(20);

/// Everybody, as one director sees them.
pub(super) struct World {
    port: PacketPort,
    pool: Pool,
    director: Mac,
    sentinel: u16,
    /// Which server a flow went to, and as whom.
    servers: HashMap<Flow, (Who, SocketAddr)>,
    receivers: Receivers,
}

impl World {
    /// On `interface` of `host`, towards the director with this MAC address.
    pub(super) fn open(host: &Host, interface: &str, director: Mac) -> Result<World> {
        let port = host.run(|| PacketPort::open(PacketOptions::new(interface)))??;
        Ok(World {
            port,
            pool: Pool::new(1024, 2048)?,
            director,
            sentinel: 0,
            servers: HashMap::new(),
            receivers: Receivers::default(),
        })
    }

    /// Whether `flow` has reached a server.
    pub(super) fn server_of(&self, flow: &Flow) -> Option<Who> {
        self.servers.get(flow).map(|(who, _)| *who)
    }

    /// Sends `packets` and returns what the director has made of them, in order.
    ///
    /// # Errors
    /// When the director does not answer any more.
    pub(super) fn exchange(&mut self, packets: &[Packet], first_id: u16) -> Result<Vec<Arrival>> {
        let mut frames = Vec::new();
        for (packet, number) in packets.iter().zip(0..) {
            if let Some(bytes) = self.write(packet, first_id.wrapping_add(number)) {
                frames.push(self.frame(&bytes)?);
            }
        }
        if packets.iter().any(|packet| matches!(packet.kind, Kind::Piece(_))) {
            self.port.transmit(&mut self.pool, &mut frames).context("send")?;
            std::thread::sleep(FRAGMENTS_WAIT);
        }
        self.sentinel = self.sentinel.wrapping_add(1);
        let sentinel = Packet::new(sentinel_flow(), Kind::Datagram(18));
        let ends = (sentinel.flow.client, sentinel.flow.service);
        let bytes =
            frames::frame(&sentinel, ends, (place::CLIENTS.0, self.director.0), self.sentinel);
        frames.push(self.frame(&bytes)?);
        self.port.transmit(&mut self.pool, &mut frames).context("send")?;
        let arrivals = self.receive()?;
        let arrivals = self.receivers.put_together(arrivals);
        for packet in packets.iter().filter(|packet| packet.from == From::Client) {
            let found = arrivals.iter().rev().find(|arrival| arrival.is_of(&packet.flow));
            if let Some((to, (_, _, address))) = found.and_then(|a| Some((a.to, a.ends()?))) {
                self.servers.insert(packet.flow, (to, address));
            }
        }
        Ok(arrivals)
    }

    /// The frame of a packet; `None` for the answer of a server that never was asked.
    fn write(&self, packet: &Packet, id: u16) -> Option<Vec<u8>> {
        let Packet { flow, from, .. } = packet;
        let (ends, source) = match *from {
            From::Client => ((flow.client, flow.service), place::CLIENTS.0),
            From::Caller(number) => {
                let address = server_addresses(number)[usize::from(flow.client.is_ipv6())];
                let source = SocketAddr::new(address, flow.service.port());
                ((source, flow.client), place::server_mac(number).0)
            }
            From::Server => {
                let (who, address) = *self.servers.get(flow)?;
                let Who::Server(number) = who else { return None };
                ((address, flow.client), place::server_mac(number).0)
            }
            From::Opener { of, port } => {
                let (who, address) = *self.servers.get(&of)?;
                let Who::Server(number) = who else { return None };
                let from = SocketAddr::new(address.ip(), port);
                ((from, flow.client), place::server_mac(number).0)
            }
        };
        Some(frames::frame(packet, ends, (source, self.director.0), id))
    }

    fn frame(&mut self, bytes: &[u8]) -> Result<Frame> {
        let mut frame = self.pool.allocate().context("too many packets at once")?;
        let start = frame.start();
        self.pool.reshape(&mut frame, start, bytes.len());
        self.pool.bytes_mut(&mut frame).copy_from_slice(bytes);
        Ok(frame)
    }

    /// All that arrives until the sentinel does: directors keep the order.
    fn receive(&mut self) -> Result<Vec<Arrival>> {
        let deadline = Instant::now() + PATIENCE;
        let mut arrivals = Vec::new();
        let mut batch = Vec::new();
        loop {
            self.port.receive(&mut self.pool, &mut batch, 64).context("receive")?;
            let mut done = false;
            for frame in batch.drain(..) {
                let arrival = Arrival::read(self.pool.bytes(&frame));
                self.pool.release(frame);
                let Some(arrival) = arrival else { continue };
                if arrival.to == Who::Server(place::SENTINEL_SERVER) {
                    // Of an earlier exchange that was given up: not this one's end.
                    done |= arrival.packet[4..6] == self.sentinel.to_be_bytes();
                } else {
                    arrivals.push(arrival);
                }
            }
            if done {
                return Ok(arrivals);
            }
            ensure!(
                Instant::now() < deadline,
                "the director does not answer; so far: {arrivals:#?}"
            );
            if let Some(fd) = self.port.readiness() {
                poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::from(50u8))?;
            }
        }
    }
}

fn sentinel_flow() -> Flow {
    Flow { protocol: Protocol::Udp, client: place::SENTINEL_CLIENT, service: place::SENTINEL }
}
