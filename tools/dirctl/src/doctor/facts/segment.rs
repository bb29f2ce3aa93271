//! Who answers for an address on a segment: asks, and listens for a moment.

use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

use director::network::{Network, ethertype, owner, question};
use netio::ethernet::{self, Wanted};

/// How long answers are waited for. The question is asked twice in that time.
const PATIENCE: Duration = Duration::from_millis(600);

/// Between two looks for answers.
const PAUSE: Duration = Duration::from_millis(10);

/// Addresses that are asked for on one interface, at most.
pub const MOST: usize = 256;

const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// Somebody says that an address is his.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The address.
    pub address: IpAddr,
    /// The interface whose segment he is on.
    pub interface: String,
    /// His Ethernet address.
    pub mac: [u8; 6],
}

/// Asks on these interfaces for these addresses. What this machine itself would answer is not heard.
///
/// # Errors
/// Why nobody could be asked, in words.
pub fn ask(
    network: &Network,
    interfaces: &[String],
    addresses: &[IpAddr],
) -> Result<Vec<Claim>, String> {
    let addresses = &addresses[..addresses.len().min(MOST)];
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = addresses.iter().partition(|it| it.is_ipv4());
    let mut asking = Vec::new();
    for name in interfaces {
        for (family, wanted) in [(&v4, Wanted::All), (&v6, Wanted::Icmpv6(NEIGHBOUR_ADVERTISEMENT))]
        {
            let (Some(first), Some(interface)) = (family.first(), network.interface_by_name(name))
            else {
                continue;
            };
            let socket = ethernet::open(name, ethertype(*first), wanted);
            let socket = socket.map_err(|error| error.to_string())?;
            let link_local = link_local(network, interface.index);
            let questions: Vec<Vec<u8>> = family
                .iter()
                .filter_map(|address| question(interface.mac, *address, link_local))
                .collect();
            asking.push(Asking { name, socket, questions, addresses: family });
        }
    }
    let mut claims = Vec::new();
    for _ in 0..2 {
        for asking in &asking {
            asking.questions.iter().for_each(|frame| drop(asking.socket.send(frame)));
        }
        let until = Instant::now() + PATIENCE / 2;
        while Instant::now() < until {
            asking.iter().for_each(|asking| asking.listen(&mut claims));
            std::thread::sleep(PAUSE);
        }
    }
    claims.sort();
    claims.dedup();
    claims.retain(|claim| network.interfaces().all(|own| own.mac != claim.mac));
    Ok(claims)
}

/// Questions on one interface about one family.
struct Asking<'a> {
    name: &'a str,
    socket: UdpSocket,
    questions: Vec<Vec<u8>>,
    addresses: &'a [IpAddr],
}

impl Asking<'_> {
    /// Takes what has come in. A flood is left for the next look.
    fn listen(&self, claims: &mut Vec<Claim>) {
        const AT_ONCE: usize = 256;
        let mut buffer = [0; 1514];
        for _ in 0..AT_ONCE {
            let Ok(length) = self.socket.recv(&mut buffer) else { return };
            for address in self.addresses {
                if let Some(mac) = owner(&buffer[..length], *address) {
                    let interface = self.name.to_owned();
                    let claim = Claim { address: *address, interface, mac };
                    if !claims.contains(&claim) && claims.len() < 4 * MOST {
                        claims.push(claim);
                    }
                }
            }
        }
    }
}

/// The address that solicitations are sent from.
pub fn link_local(network: &Network, interface: u32) -> Option<Ipv6Addr> {
    network.addresses().find_map(|it| match it.address {
        IpAddr::V6(address) if it.interface == interface && address.is_unicast_link_local() => {
            Some(address)
        }
        _ => None,
    })
}

/// `02:00:00:00:00:01`
pub fn show(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
