//! What comes back from VIPs: one socket per family for all checks, opened with the first. To open
//! and close one for each check would have the kernel wait each time until no processor is in it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use forwarding::wire::{self, ethernet, protocol};
use forwarding::{Headers, checksum, icmp};
use netio::cooked::{self, Family};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::exit::write_ether_type;
use super::reservation::{Arrival, PORTS, Reservation, Transport, Waiting};

/// The longest packet: the kernel puts segments together.
const LONGEST: usize = 65_535;

/// Both families.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    receivers: Mutex<[Option<Arc<Receiver>>; 2]>,
}

impl Arrivals {
    /// The receiver of this family. Needs a tokio runtime, which must live as long as `self`.
    pub(super) fn receiver(&self, is_v4: bool) -> io::Result<Arc<Receiver>> {
        let mut receivers = self.receivers.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = &mut receivers[usize::from(!is_v4)];
        match receiver {
            Some(receiver) if !receiver.task.is_finished() => Ok(Arc::clone(receiver)),
            _ => {
                let family = if is_v4 { Family::V4 } else { Family::V6 };
                let opened = Arc::new(Receiver::open(family)?);
                Ok(Arc::clone(receiver.insert(opened)))
            }
        }
    }
}

/// One family.
#[derive(Debug)]
pub(super) struct Receiver {
    socket: Arc<UdpSocket>,
    waiting: Waiting,
    task: JoinHandle<()>,
}

impl Receiver {
    fn open(family: Family) -> io::Result<Receiver> {
        let socket = Arc::new(UdpSocket::from_std(cooked::open(family, PORTS)?)?);
        let waiting = Waiting::default();
        let task = tokio::spawn(receive(Arc::clone(&socket), waiting.clone()));
        Ok(Receiver { socket, waiting, task })
    }

    /// The socket, to send with.
    pub(super) fn socket(&self) -> Arc<UdpSocket> {
        Arc::clone(&self.socket)
    }

    /// Takes a port; see [`Waiting::reserve`].
    pub(super) fn reserve(
        &self,
        source: IpAddr,
        vip: SocketAddr,
        transport: Transport,
    ) -> io::Result<Reservation> {
        self.waiting.reserve(source, vip, transport)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Hands out what arrives. An error of the socket's is that of an interface which has gone down, and
/// over with that.
async fn receive(socket: Arc<UdpSocket>, waiting: Waiting) {
    let mut buffer = vec![0; ethernet::LEN + LONGEST];
    loop {
        match socket.recv(&mut buffer[ethernet::LEN..]).await {
            Ok(length) => sort(&mut buffer[..ethernet::LEN + length], &waiting),
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ENETDOWN as i32) => {}
            Err(_) => return,
        }
    }
}

/// Hands out one packet, which begins behind room for an Ethernet header. One from the same host is
/// without its checksum still, and gets it.
pub(super) fn sort(frame: &mut [u8], waiting: &Waiting) {
    write_ether_type(frame);
    let Ok(headers) = forwarding::parse(frame) else { return };
    if let Some(partial) = checksum::partial(frame, &headers) {
        checksum::complete(frame, partial, headers.end);
    }
    let Some(packet) = frame.get(headers.l3..headers.end) else { return };
    match headers.protocol {
        protocol::TCP | protocol::UDP => {
            let arrival = Arrival::Packet(packet.to_vec());
            waiting.deliver(headers.destination_port, headers.source, arrival);
        }
        // An error about a packet of ours is for whoever has sent that.
        _ => {
            if let Some(why) = refusal(frame, &headers)
                && let Some(quote) = icmp::quoted(frame, &headers)
            {
                waiting.deliver(quote.source_port, quote.destination, Arrival::Refused(why));
            }
        }
    }
}

/// What an ICMP message "unreachable" says (RFC 792, RFC 1812 section 5.2.7.1, RFC 4443 section 3.1);
/// `None` of those that are about the length of a
/// packet, or damaged.
fn refusal(frame: &[u8], headers: &Headers) -> Option<&'static str> {
    if !icmp::has_right_sum(frame, headers) {
        return None;
    }
    let code = wire::icmp::Header::at(frame, headers.l4)?.code();
    Some(match (headers.family, code) {
        (forwarding::Family::V4, 4) => return None,
        (forwarding::Family::V4, 3) | (forwarding::Family::V6, 4) => "port unreachable",
        (forwarding::Family::V4, 2) => "protocol unreachable",
        (forwarding::Family::V4, 9 | 10 | 13) | (forwarding::Family::V6, 1 | 5 | 6) => {
            "administratively prohibited"
        }
        _ => "host unreachable",
    })
}

#[cfg(test)]
mod tests;
