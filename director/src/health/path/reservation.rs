//! A port of ours that the kernel keeps silent about, and what arrives there.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::random;

/// The ports that checks ask from: above those that the kernel gives out by itself.
pub(super) const PORTS: RangeInclusive<u16> = 61_000..=61_999;

/// Packets that may wait for a check; more are lost.
const WAITING: usize = 64;

/// What a check speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

/// What has come for a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// A packet from the VIP.
    Packet(Vec<u8>),
    /// By ICMP: a packet of its own does not get where it goes, in words.
    Refused(&'static str),
}

/// Who is to get what arrives at which port.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(Arc<Mutex<HashMap<u16, Asker>>>);

/// The VIP that a check asks, and its channel.
type Asker = (IpAddr, mpsc::Sender<Arrival>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<u16, Asker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands what comes from `vip`, or is about it, to the check that asks from this port, if one asks that VIP.
    pub(super) fn deliver(&self, port: u16, vip: IpAddr, arrival: Arrival) {
        if let Some((asked, channel)) = self.lock().get(&port)
            && *asked == vip
        {
            // Full: lost, as on any network.
            let _ = channel.try_send(arrival);
        }
    }

    /// Takes a port of `source` for a check of `vip`.
    ///
    /// # Errors
    /// `AddrInUse` when all are taken; another when `source` is not ours.
    pub(super) fn reserve(
        &self,
        source: IpAddr,
        vip: SocketAddr,
        transport: Transport,
    ) -> io::Result<Reservation> {
        let count = u64::from(PORTS.end() - PORTS.start()) + 1;
        let first = random() % count;
        for step in 0..count {
            let port = PORTS.start() + ((first + step) % count) as u16;
            if self.lock().contains_key(&port) {
                continue;
            }
            let address = SocketAddr::new(source, port);
            let socket = match silent(address, transport) {
                Ok(socket) => socket,
                Err(error) if error.kind() == ErrorKind::AddrInUse => continue,
                Err(error) => return Err(error),
            };
            let (sender, packets) = mpsc::channel(WAITING);
            self.lock().insert(port, (vip.ip(), sender));
            return Ok(Reservation { address, packets, waiting: self.clone(), _socket: socket });
        }
        Err(ErrorKind::AddrInUse.into())
    }
}

/// A socket that has this port and throws away what comes.
fn silent(address: SocketAddr, transport: Transport) -> io::Result<OwnedFd> {
    let socket: OwnedFd = match transport {
        Transport::Tcp => TcpListener::bind(address)?.into(),
        Transport::Udp => UdpSocket::bind(address)?.into(),
    };
    netio::silence::silence(&socket)?;
    Ok(socket)
}

/// A port that is a check's, until it is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    address: SocketAddr,
    packets: mpsc::Receiver<Arrival>,
    waiting: Waiting,
    _socket: OwnedFd,
}

impl Reservation {
    /// Address and port.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for what comes. May be dropped and called again.
    pub(super) async fn receive(&mut self) -> Arrival {
        match self.packets.recv().await {
            Some(arrival) => arrival,
            // The sender is in the table, until this is dropped.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.address.port());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: &[u8]) -> Arrival {
        Arrival::Packet(bytes.to_vec())
    }

    #[test]
    fn a_port_is_one_checks_until_it_is_dropped_and_gets_what_its_vip_sends() {
        let waiting = Waiting::default();
        let (source, vip) = (IpAddr::from([127, 0, 0, 1]), ([192, 0, 2, 1], 80).into());
        let mut one = waiting.reserve(source, vip, Transport::Tcp).unwrap();
        let port = one.address().port();
        assert!(PORTS.contains(&port));
        assert_eq!(TcpListener::bind(one.address()).unwrap_err().kind(), ErrorKind::AddrInUse);
        waiting.deliver(port, [192, 0, 2, 2].into(), packet(b"a stranger's"));
        waiting.deliver(port, vip.ip(), packet(b"the answer"));
        assert_eq!(one.packets.try_recv().unwrap(), packet(b"the answer"));
        for _ in 0..2 * WAITING {
            waiting.deliver(port, vip.ip(), packet(b"a flood"));
        }
        assert_eq!(std::iter::from_fn(|| one.packets.try_recv().ok()).count(), WAITING);
        let address = one.address();
        drop(one);
        waiting.deliver(port, vip.ip(), packet(b"too late"));
        TcpListener::bind(address).unwrap();
    }

    #[test]
    fn no_two_checks_get_the_same_port() {
        let waiting = Waiting::default();
        let vip = ([192, 0, 2, 1], 80).into();
        let reserve = |transport| waiting.reserve([127, 0, 0, 3].into(), vip, transport).unwrap();
        let taken: Vec<Reservation> = (0..200)
            .map(|n| reserve(if n % 2 == 0 { Transport::Tcp } else { Transport::Udp }))
            .collect();
        let ports: std::collections::HashSet<u16> =
            taken.iter().map(|it| it.address().port()).collect();
        assert_eq!(ports.len(), taken.len());
    }

    #[test]
    fn an_address_of_others_is_refused() {
        let vip = ([192, 0, 2, 1], 80).into();
        let refused = Waiting::default().reserve([192, 0, 2, 9].into(), vip, Transport::Udp);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    }
}
