//! What a node says and hears on its segment beside traffic: heartbeats, and the answers to who has
//! a virtual address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use ::nlb::delivery::Delivery;
use ::nlb::heartbeat::{ETHERTYPE, MAX_PAYLOAD};
use anyhow::{Context, Result};
use netio::ethernet::{self, Wanted};
use tracing::debug;

use super::identity::Identity;
use crate::network::{answer, cluster_announcement};

const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const BROADCAST: [u8; 6] = [0xff; 6];
const ETHERNET: usize = 14;
/// Frames taken in one turn: a flood of questions does not keep heartbeats waiting.
const MOST_FRAMES: usize = 64;

/// The node's sockets on its segment.
#[derive(Debug)]
pub(super) struct Segment {
    heartbeats: tokio::net::UdpSocket,
    arp: tokio::net::UdpSocket,
    solicitations: tokio::net::UdpSocket,
    /// Keeps the membership in the multicast group.
    _group: Option<UdpSocket>,
    own: [u8; 6],
    cluster: [u8; 6],
    /// Where heartbeats go.
    to: [u8; 6],
    vips: Vec<IpAddr>,
}

impl Segment {
    /// Opens the sockets, and has the card let the cluster's frames in.
    ///
    /// # Errors
    /// When `CAP_NET_RAW` is missing, or the card cannot take a further address.
    pub(super) fn open(
        identity: &Identity,
        delivery: Delivery,
        primary: IpAddr,
        vips: &[IpAddr],
    ) -> Result<Segment> {
        let name = identity.interface.as_str();
        let cluster = delivery.cluster_mac(primary);
        let open = |ethertype, wanted| -> Result<tokio::net::UdpSocket> {
            Ok(tokio::net::UdpSocket::from_std(ethernet::open(name, ethertype, wanted)?)?)
        };
        let heartbeats = open(ETHERTYPE, Wanted::All)?;
        let arp = open(ARP, Wanted::All)?;
        let solicitations = open(IPV6, Wanted::Icmpv6(NEIGHBOUR_SOLICITATION))?;
        ethernet::join(&heartbeats, name, cluster)
            .with_context(|| format!("let frames to {} in on {name}", show(cluster)))?;
        for vip in vips {
            if let IpAddr::V6(vip) = vip {
                let mac = solicited_node(*vip);
                let joined = ethernet::join(&solicitations, name, mac);
                joined.with_context(|| format!("let frames to {} in on {name}", show(mac)))?;
            }
        }
        let group = delivery.group(primary).map(|group| join(group, identity)).transpose()?;
        let to = if delivery == Delivery::Unicast { BROADCAST } else { cluster };
        let vips = vips.to_vec();
        let own = identity.mac;
        Ok(Segment { heartbeats, arp, solicitations, _group: group, own, cluster, to, vips })
    }

    /// The cluster's Ethernet address.
    pub(super) fn cluster(&self) -> [u8; 6] {
        self.cluster
    }

    /// Waits until something has come in: a heartbeat is given to `heard`, a question is answered
    /// when `answering`.
    ///
    /// # Errors
    /// When the interface is gone.
    pub(super) async fn turn(
        &self,
        answering: bool,
        heard: &mut impl FnMut(&[u8]),
    ) -> io::Result<()> {
        tokio::select! {
            ready = self.heartbeats.readable() => {
                ready?;
                let mut buffer = [0; ETHERNET + MAX_PAYLOAD];
                for _ in 0..MOST_FRAMES {
                    let Some(frame) = receive(&self.heartbeats, &mut buffer)? else { break };
                    if let Some(payload) = frame.get(ETHERNET..) {
                        heard(payload);
                    }
                }
                Ok(())
            }
            ready = self.arp.readable() => {
                ready?;
                self.answer(&self.arp, answering)
            }
            ready = self.solicitations.readable() => {
                ready?;
                self.answer(&self.solicitations, answering)
            }
        }
    }

    fn answer(&self, socket: &tokio::net::UdpSocket, answering: bool) -> io::Result<()> {
        let mut buffer = [0; 256];
        for _ in 0..MOST_FRAMES {
            let Some(frame) = receive(socket, &mut buffer)? else { break };
            let is_vip = |address| answering && self.vips.contains(&address);
            if let Some(reply) = answer(frame, self.own, self.cluster, is_vip) {
                self.send(&reply);
            }
        }
        Ok(())
    }

    /// Sends a heartbeat's payload to all hosts.
    pub(super) fn beat(&self, payload: &[u8]) {
        let mut frame = Vec::with_capacity(ETHERNET + payload.len());
        frame.extend_from_slice(&self.to);
        frame.extend_from_slice(&self.own);
        frame.extend_from_slice(&ETHERTYPE.to_be_bytes());
        frame.extend_from_slice(payload);
        self.send(&frame);
    }

    /// Tells the segment where the virtual addresses are.
    pub(super) fn announce(&self) {
        for vip in &self.vips {
            self.send(&cluster_announcement(self.own, self.cluster, *vip));
        }
    }

    /// A frame that cannot be sent is lost as one on the wire is: the next one says the same.
    fn send(&self, frame: &[u8]) {
        if let Err(error) = self.heartbeats.try_send(frame) {
            debug!("a frame of {} bytes could not be sent: {error}", frame.len());
        }
    }
}

/// The next frame that has come in. That the interface is switched off is told as its link is.
fn receive<'a>(
    socket: &tokio::net::UdpSocket,
    buffer: &'a mut [u8],
) -> io::Result<Option<&'a [u8]>> {
    match socket.try_recv(buffer) {
        Ok(length) => Ok(Some(&buffer[..length])),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NetworkDown => Ok(None),
        Err(error) => Err(error),
    }
}

/// Joins the group for as long as the socket lives; the kernel tells the switch.
fn join(group: Ipv4Addr, identity: &Identity) -> Result<UdpSocket> {
    let own = identity.addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    });
    let own = own.context("delivery = \"igmp\" needs an IPv4 address of this host in the file")?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket
        .join_multicast_v4(&group, &own)
        .with_context(|| format!("join {group} on {}", identity.interface))?;
    Ok(socket)
}

/// Where solicitations for an address go (RFC 4291 §2.7.1, RFC 2464 §7).
fn solicited_node(address: Ipv6Addr) -> [u8; 6] {
    let [.., a, b, c] = address.octets();
    [0x33, 0x33, 0xff, a, b, c]
}

/// `02-BF-0A-00-00-01`
pub(super) fn show(mac: [u8; 6]) -> String {
    mac.map(|octet| format!("{octet:02X}")).join("-")
}
