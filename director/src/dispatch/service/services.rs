//! All services, as workers look them up.
//!
//! A snapshot is immutable. The next one is made of a copy, which shares with it whatever has not
//! changed.

use std::net::IpAddr;
use std::sync::Arc;

use forwarding::Headers;

use super::Service;
use super::sharded::Sharded;
use crate::control::api::{Forwarding, ServerSpec, ServiceKey};
use crate::dispatch::ftp::{self, FTP};
use crate::dispatch::sip::Callers;
use crate::dispatch::{SCTP, TCP, UDP};
use crate::fwmark::Classifier;

/// Protocol number, address and port.
type Place = (u8, IpAddr, u16);

/// All services: an immutable snapshot that workers load once per breath.
#[derive(Clone, Default)]
pub struct Services {
    classifier: Arc<Classifier>,
    /// By mark, and whether it is of IPv6.
    by_mark: Sharded<(u32, bool), Arc<Service>>,
    by_address: Sharded<Place, Arc<Service>>,
    /// Servers that may call clients.
    pub(in crate::dispatch) callers: Arc<Callers>,
    /// Whether there is, or was, one on the port of FTP.
    have_ftp: bool,
    /// How many servers are there; filled only for those who ask.
    nat_servers: Sharded<Place, u32>,
}

impl Services {
    /// Which marks packets have from now on.
    pub fn classify_by(&mut self, classifier: Arc<Classifier>) {
        self.classifier = classifier;
    }

    /// The service for a packet: by its firewall mark, else by address. A mark that no service has
    /// is as good as none.
    pub fn of(&self, headers: &Headers) -> Option<&Arc<Service>> {
        let (protocol, to) = (headers.protocol, (headers.destination, headers.destination_port));
        if !self.by_mark.is_empty()
            && let from = (headers.source, headers.source_port)
            && let Some(mark) = self.classifier.mark(protocol, from, to)
            && let Some(service) = self.by_mark.get(&(mark, headers.destination.is_ipv6()))
        {
            return Some(service);
        }
        self.find(protocol, to.0, to.1)
    }

    /// The service for a packet to `address` and `port`: the exact one, else the FTP service if the
    /// packet can be of a data connection, else the one for any port.
    pub fn find(&self, protocol: u8, address: IpAddr, port: u16) -> Option<&Arc<Service>> {
        let at = |port| self.by_address.get(&(protocol, address, port));
        let ftp = || match self.have_ftp && protocol == TCP && ftp::is_data_port(port) {
            true => at(FTP),
            false => None,
        };
        at(port).or_else(ftp).or_else(|| at(0))
    }

    /// Adds or replaces a service. Who may call clients has to be said by
    /// [`set_callers`](Services::set_callers).
    pub fn insert(&mut self, service: Arc<Service>) {
        match service.key {
            ServiceKey::Address { protocol, address } => {
                self.have_ftp |= address.port() == FTP;
                let place = (protocol.number(), address.ip(), address.port());
                self.by_address.insert(place, service);
            }
            ServiceKey::Fwmark { fwmark, ipv6 } => {
                self.by_mark.insert((fwmark, ipv6), service);
            }
        }
    }

    /// Takes a service out.
    pub fn remove(&mut self, key: &ServiceKey) {
        match *key {
            ServiceKey::Address { protocol, address } => {
                self.by_address.remove(&(protocol.number(), address.ip(), address.port()));
            }
            ServiceKey::Fwmark { fwmark, ipv6 } => {
                self.by_mark.remove(&(fwmark, ipv6));
            }
        }
    }

    /// From now on, the servers of these services may call clients, if they are such; of two with
    /// one address the later.
    pub fn set_callers<'a>(&mut self, services: impl Iterator<Item = &'a Arc<Service>>) {
        let mut callers = Callers::default();
        services.for_each(|service| callers.add(service));
        self.callers = Arc::new(callers);
    }

    /// Notes a server of the service `key`, if it is one by NAT, for
    /// [`has_nat_server`](Services::has_nat_server).
    pub fn note_nat_server(&mut self, key: &ServiceKey, server: &ServerSpec) {
        for place in nat_places(key, server) {
            let others = self.nat_servers.get(&place).copied().unwrap_or(0);
            self.nat_servers.insert(place, others + 1);
        }
    }

    /// Takes back one note of a server.
    pub fn forget_nat_server(&mut self, key: &ServiceKey, server: &ServerSpec) {
        for place in nat_places(key, server) {
            match self.nat_servers.get(&place).copied() {
                None => {}
                Some(1) => _ = self.nat_servers.remove(&place),
                Some(notes) => _ = self.nat_servers.insert(place, notes - 1),
            }
        }
    }

    /// Takes back all notes.
    pub fn forget_nat_servers(&mut self) {
        self.nat_servers = Sharded::default();
    }

    /// Whether a noted server answers from this address and port.
    pub fn has_nat_server(&self, protocol: u8, address: IpAddr, port: u16) -> bool {
        self.nat_servers.get(&(protocol, address, port)).is_some()
    }
}

/// Where a server of the service `key` answers from, if it does by NAT.
fn nat_places(key: &ServiceKey, server: &ServerSpec) -> impl Iterator<Item = Place> {
    let (protocols, count) = match *key {
        ServiceKey::Address { protocol, .. } => ([protocol.number(), 0, 0], 1),
        ServiceKey::Fwmark { .. } => ([TCP, UDP, SCTP], 3),
    };
    let count = if server.forwarding == Forwarding::Nat { count } else { 0 };
    let address = server.address;
    protocols.into_iter().take(count).map(move |protocol| (protocol, address.ip(), address.port()))
}
