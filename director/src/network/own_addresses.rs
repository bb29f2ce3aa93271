//! VIPs on an interface: put there at start, taken away at exit, and only those.
//!
//! Uses one blocking socket of its own rather than the follower's: an exchange takes microseconds,
//! and addresses must go away also when no runtime is left to wait in.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressMessage, AddressProtocol, CacheInfo,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use super::{Interface, Network, NetworkError};

/// Marks addresses as ours (`ip address` shows `proto 0x53`), so that those of a director that was
/// killed are known again by the next one. The kernel has kept the mark since 5.18; older ones
/// ignore it.
const MARK: u8 = 0x53;

const EEXIST: i32 = 17;
const EADDRNOTAVAIL: i32 = 99;
const ENODEV: i32 = 19;

/// The addresses that this director has put on interfaces. They go away when this is dropped.
#[derive(Debug)]
pub struct OwnAddresses {
    socket: Socket,
    added: Vec<(u32, IpAddr)>,
}

impl OwnAddresses {
    /// None yet.
    ///
    /// # Errors
    /// When there is no netlink socket to be had.
    pub fn new() -> Result<OwnAddresses, NetworkError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        Ok(OwnAddresses { socket: open().map_err(NetworkError::Open)?, added: Vec::new() })
    }

    /// Puts those of `vips` on an interface that this machine does not have yet, and takes those of
    /// ours away that are not among `vips`. Each goes to that one of `interfaces`, or of the VLAN
    /// devices on them, whose subnet holds it, else to the first. An address that was there before stays
    /// whatever happens later, unless it bears the mark of a director that did not come to take it away:
    /// such a one is ours from now on, wanted or not. One of ours that has vanished (the kernel takes IPv6
    /// addresses off an interface that is switched off) is put back.
    ///
    /// Returns what has been added (interface index, address): announce those.
    ///
    /// # Errors
    /// When one of `interfaces` does not exist (nothing is changed then), or at the first address
    /// that the kernel refuses; those before it are in place.
    pub fn set(
        &mut self,
        network: &Network,
        interfaces: &[String],
        vips: &[IpAddr],
    ) -> Result<Vec<(u32, IpAddr)>, NetworkError> {
        let interfaces = interfaces
            .iter()
            .map(|name| {
                network
                    .interface_by_name(name)
                    .ok_or_else(|| NetworkError::NoInterface(name.clone()))
            })
            .collect::<Result<Vec<_>, _>>()?;
        // There may be ten thousand of each: sets, so that none is looked for among all.
        let wanted: HashSet<IpAddr> = vips.iter().copied().collect();
        self.adopt(network, &interfaces, &wanted);
        self.remove(|address| !wanted.contains(&address));
        let ours: HashSet<IpAddr> = self.added.iter().map(|(_, address)| *address).collect();
        let there: HashSet<IpAddr> = network.addresses().map(|known| known.address).collect();
        let mut new = Vec::new();
        for vip in vips {
            let is_ours = ours.contains(vip);
            if there.contains(vip) {
                continue;
            }
            let Some(interface) = home(network, &interfaces, *vip) else {
                continue;
            };
            match self.exchange(message(interface.index, *vip), true) {
                Ok(()) => {
                    if is_ours {
                        self.added.retain(|(_, address)| address != vip);
                    }
                    self.added.push((interface.index, *vip));
                    new.push((interface.index, *vip));
                }
                // Ours: `network` is older than our adding it. Else somebody was faster; then it
                // is theirs.
                Err(error) if error.raw_os_error() == Some(EEXIST) => {}
                Err(source) => {
                    return Err(NetworkError::Address {
                        address: *vip,
                        interface: interface.name.clone(),
                        source,
                    });
                }
            }
        }
        Ok(new)
    }

    /// The addresses that are ours: (interface index, address).
    pub fn added(&self) -> &[(u32, IpAddr)] {
        &self.added
    }

    /// Takes all of them away. Dropping does the same; this is for those who want it done at a
    /// certain time.
    pub fn remove_all(&mut self) {
        self.remove(|_| true);
    }

    /// Takes over what a director that was killed has left on these interfaces and on VLAN devices on
    /// them, and what is wanted of it wherever it is.
    fn adopt(&mut self, network: &Network, interfaces: &[&Interface], wanted: &HashSet<IpAddr>) {
        let ours: HashSet<(u32, IpAddr)> = self.added.iter().copied().collect();
        let homes: HashSet<u32> = interfaces
            .iter()
            .copied()
            .chain(vlans(network, interfaces))
            .map(|interface| interface.index)
            .collect();
        let left = network.addresses().filter(|known| {
            known.protocol == MARK
                && known.subnet.prefix_len() == full_length(known.address)
                && (homes.contains(&known.interface) || wanted.contains(&known.address))
                && !ours.contains(&(known.interface, known.address))
        });
        self.added.extend(left.map(|known| (known.interface, known.address)));
    }

    fn remove(&mut self, which: impl Fn(IpAddr) -> bool) {
        let (gone, kept) =
            std::mem::take(&mut self.added).into_iter().partition(|(_, address)| which(*address));
        self.added = kept;
        let gone: Vec<(u32, IpAddr)> = gone;
        for (interface, address) in gone {
            match self.exchange(message(interface, address), false) {
                Ok(()) => {}
                // Gone already, by itself or with its interface.
                Err(error) if matches!(error.raw_os_error(), Some(EADDRNOTAVAIL | ENODEV)) => {}
                Err(error) => tracing::warn!(
                    %address, interface, %error,
                    "cannot take away an address; do it with `ip address del`"
                ),
            }
        }
    }

    /// Adds or deletes, and waits for the kernel's word.
    fn exchange(&self, message: AddressMessage, add: bool) -> io::Result<()> {
        let (inner, flags) = if add {
            (RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
        } else {
            (RouteNetlinkMessage::DelAddress(message), 0)
        };
        let mut request = NetlinkMessage::from(inner);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            _ => Ok(()),
        }
    }
}

impl Drop for OwnAddresses {
    fn drop(&mut self) {
        self.remove_all();
    }
}

/// The interface that a VIP goes to.
fn home<'a>(
    network: &'a Network,
    interfaces: &[&'a Interface],
    vip: IpAddr,
) -> Option<&'a Interface> {
    let holds = |interface: &&Interface| {
        network
            .addresses()
            .any(|known| known.interface == interface.index && known.subnet.contains(&vip))
    };
    let mut all = interfaces.iter().copied().chain(vlans(network, interfaces));
    all.find(holds).or(interfaces.first().copied())
}

/// The VLAN devices on these interfaces.
fn vlans<'a>(
    network: &'a Network,
    interfaces: &[&'a Interface],
) -> impl Iterator<Item = &'a Interface> {
    network.interfaces().filter(move |device| {
        let below = device.vlan.map(|(below, _)| below);
        interfaces.iter().any(|interface| below == Some(interface.index))
    })
}

fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address as the kernel is asked for it: alone (/32, /128), without a route of its own. An
/// IPv6 one is in use at once (no duplicate address detection: while it runs, nobody would answer)
/// and deprecated from the start, so that the machine's own connections never leave with a VIP.
fn message(interface: u32, address: IpAddr) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = interface;
    message.header.prefix_len = full_length(address);
    let mut flags = AddressFlags::Noprefixroute;
    message.header.family = match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => {
            flags |= AddressFlags::Nodad;
            let mut lifetime = CacheInfo::default();
            lifetime.ifa_valid = u32::MAX;
            message.attributes.push(AddressAttribute::CacheInfo(lifetime));
            AddressFamily::Inet6
        }
    };
    message.attributes.extend([
        AddressAttribute::Local(address),
        AddressAttribute::Address(address),
        AddressAttribute::Flags(flags),
        AddressAttribute::Protocol(AddressProtocol::from(MARK)),
    ]);
    message
}
