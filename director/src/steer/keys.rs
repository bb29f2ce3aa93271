//! What steering looks for: the keys that user space writes and the programs look up.

use std::net::IpAddr;

use hashbrown::HashSet;

use super::marked::MarkedSet;
use super::protocol::TCP;

/// Bytes of a key as it lies in the map.
pub const KEY_SIZE: usize = 20;

/// Where in a packet a key is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A virtual service: the destination of a packet, the source of a packet quoted in an error.
    Service = 1,
    /// A NAT server: the source of a packet, the destination of a packet quoted in an error.
    Server = 2,
    /// A tunnel server: the destination of an encapsulated packet quoted in an error.
    TunnelServer = 3,
    /// The address of an FTP service, as [`Service`](Kind::Service), for TCP to or from ports above
    /// 1023: its data connections.
    ServiceData = 1 | DATA,
    /// A NAT server of an FTP service, likewise.
    ServerData = 2 | DATA,
}

/// Makes the kind of data connections from that of their control connections.
pub(super) const DATA: u8 = 4;

impl Kind {
    /// The kind of the data connections of what is of this kind.
    pub(super) fn data(self) -> Option<Kind> {
        match self {
            Kind::Service => Some(Kind::ServiceData),
            Kind::Server => Some(Kind::ServerData),
            Kind::TunnelServer | Kind::ServiceData | Kind::ServerData => None,
        }
    }
}

/// One entry: an address and, unless they are 0, a port and a protocol.
///
/// ```text
///  0               16    18  19   20
///  | address        | port | p | k |
///    IPv4 as          big    |   Kind
///    ::ffff:a.b.c.d   endian IP protocol number
/// ```
///
/// Port 0 stands for every port of the protocol. Port 0 and protocol 0 stand for later fragments,
/// which have no ports, and for tunnel servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The address; IPv4 mapped into IPv6.
    pub address: [u8; 16],
    /// The port, or 0.
    pub port: u16,
    /// The IP protocol number, or 0.
    pub protocol: u8,
    /// Where to look for it.
    pub kind: Kind,
}

impl Key {
    /// What is at an address, with a port and a protocol. Port 0 means all ports of the protocol.
    pub fn new(kind: Kind, protocol: u8, address: IpAddr, port: u16) -> Key {
        Key { address: mapped(address), port, protocol, kind }
    }

    /// The data connections at the address of an FTP service or server: `kind` is theirs.
    pub fn of_data(kind: Kind, address: IpAddr) -> Key {
        Key::new(kind, TCP, address, 0)
    }

    /// A tunnel server.
    pub fn of_tunnel(address: IpAddr) -> Key {
        Key::new(Kind::TunnelServer, 0, address, 0)
    }

    /// The key of later fragments, which show only the address.
    pub fn of_fragments(self) -> Key {
        Key { port: 0, protocol: 0, ..self }
    }

    /// The key as the programs see it.
    pub fn to_bytes(self) -> [u8; KEY_SIZE] {
        let mut bytes = [0; KEY_SIZE];
        bytes[..16].copy_from_slice(&self.address);
        bytes[16..18].copy_from_slice(&self.port.to_be_bytes());
        bytes[18] = self.protocol;
        bytes[19] = self.kind as u8;
        bytes
    }
}

/// IPv4 as `::ffff:a.b.c.d`, IPv6 as it is.
fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// All keys of a configuration. [`Wanted`](super::Wanted) follows one that changes.
///
/// ```
/// use director::steer::KeySet;
///
/// let mut keys = KeySet::new();
/// keys.add_service(6, "192.0.2.10".parse().unwrap(), 80);
/// assert_eq!(keys.len(), 2); // the service, and its address for later fragments
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    keys: HashSet<Key, foldhash::quality::RandomState>,
    marked: MarkedSet,
}

impl KeySet {
    /// Nothing: every packet is the kernel's.
    pub fn new() -> KeySet {
        KeySet::default()
    }

    /// A virtual service. Port 0 means all ports of the protocol.
    pub fn add_service(&mut self, protocol: u8, address: IpAddr, port: u16) {
        self.add(Kind::Service, protocol, address, port);
    }

    /// A server whose replies need their addresses translated. Port 0 means all ports of the
    /// protocol (the server of a port 0 service).
    pub fn add_nat_server(&mut self, protocol: u8, address: IpAddr, port: u16) {
        self.add(Kind::Server, protocol, address, port);
    }

    /// The address of an FTP service, for passive data connections.
    pub fn add_ftp_service(&mut self, address: IpAddr) {
        self.add_data(Kind::ServiceData, address);
    }

    /// A NAT server of an FTP service, for passive data connections.
    pub fn add_ftp_server(&mut self, address: IpAddr) {
        self.add_data(Kind::ServerData, address);
    }

    /// A server to which packets go encapsulated; errors on their way there come back to us.
    pub fn add_tunnel_server(&mut self, address: IpAddr) {
        self.keys.insert(Key::of_tunnel(address));
    }

    /// Which packets are ours for their firewall mark. Returns what was set before.
    pub fn set_marked(&mut self, marked: MarkedSet) -> MarkedSet {
        std::mem::replace(&mut self.marked, marked)
    }

    /// What [`set_marked`](KeySet::set_marked) has set.
    pub fn marked(&self) -> &MarkedSet {
        &self.marked
    }

    /// Entries that these keys take in the kernel's map.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether every packet is the kernel's.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.marked.is_empty()
    }

    /// Whether there is this entry.
    pub fn contains(&self, key: &Key) -> bool {
        self.keys.contains(key)
    }

    /// The entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter()
    }

    fn add_data(&mut self, kind: Kind, address: IpAddr) {
        self.keys.insert(Key::of_data(kind, address));
    }

    fn add(&mut self, kind: Kind, protocol: u8, address: IpAddr, port: u16) {
        let key = Key::new(kind, protocol, address, port);
        self.keys.insert(key);
        self.keys.insert(key.of_fragments());
    }

    /// One entry: for those who know what they want by key.
    pub(crate) fn insert_key(&mut self, key: Key) {
        self.keys.insert(key);
    }

    /// See [`insert_key`](Self::insert_key).
    pub(super) fn remove_key(&mut self, key: &Key) {
        self.keys.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_lies_in_the_map_as_the_programs_read_it() {
        let key = Key {
            address: mapped("192.0.2.10".parse().unwrap()),
            port: 80,
            protocol: 6,
            kind: Kind::Server,
        };
        assert_eq!(
            key.to_bytes(),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 10, 0, 80, 6, 2]
        );
    }

    #[test]
    fn services_on_one_address_share_its_entry_for_fragments() {
        let mut keys = KeySet::new();
        let vip = "2001:db8::10".parse().unwrap();
        keys.add_service(6, vip, 80);
        keys.add_service(6, vip, 443);
        keys.add_service(17, vip, 443);
        assert_eq!(keys.len(), 4);
    }
}
