//! Which host of the cluster this machine is, and on which interface the others hear it.

use std::net::IpAddr;

use ::nlb::host::HostId;

use crate::network::Network;

/// This machine in its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// Its id: its place in the file.
    pub host: HostId,
    /// Name of the interface that has its address.
    pub interface: String,
    /// Index of that interface.
    pub index: u32,
    /// Ethernet address of that interface.
    pub mac: [u8; 6],
    /// Its addresses that the file names.
    pub addresses: Vec<IpAddr>,
}

/// Why a machine is no host of the cluster.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say it.
pub(super) enum NoHost {
    #[error(
        "none of this machine's addresses is a host of the cluster: hosts are {hosts}; \
         give this machine one of these addresses, or add one of its own ({own}) to nlb.hosts \
         or to the servers of a service"
    )]
    Unknown { hosts: String, own: String },
    #[error(
        "this machine is host {first} by {first_address} and host {second} by {second_address}: \
         name both addresses as one host under nlb.hosts"
    )]
    Several { first: HostId, first_address: IpAddr, second: HostId, second_address: IpAddr },
    #[error(
        "this machine's addresses {first_address} and {second_address} are on different interfaces: \
         name only those of the cluster's segment in the file"
    )]
    Interfaces { first_address: IpAddr, second_address: IpAddr },
}

impl Identity {
    /// What a service manager shows beside the state.
    pub(super) fn about(&self) -> String {
        format!("host {} on {}", self.host, self.interface)
    }

    /// Finds this machine among `hosts` (addresses of each, in the order of their ids).
    ///
    /// # Errors
    /// When it is none of them, or more than one.
    pub(super) fn find(network: &Network, hosts: &[Vec<IpAddr>]) -> Result<Identity, NoHost> {
        let mut found: Option<Identity> = None;
        let mut known: Option<IpAddr> = None;
        for (host, addresses) in HostId::all().zip(hosts) {
            for &address in addresses {
                let Some(mine) = network.addresses().find(|it| it.address == address) else {
                    continue;
                };
                let Some(interface) = network.interface(mine.interface) else { continue };
                match (&mut found, known) {
                    (Some(identity), Some(first)) if identity.host != host => {
                        return Err(NoHost::Several {
                            first: identity.host,
                            first_address: first,
                            second: host,
                            second_address: address,
                        });
                    }
                    (Some(identity), Some(first)) if identity.index != interface.index => {
                        let (first_address, second_address) = (first, address);
                        return Err(NoHost::Interfaces { first_address, second_address });
                    }
                    (Some(identity), _) => identity.addresses.push(address),
                    (None, _) => {
                        known = Some(address);
                        found = Some(Identity {
                            host,
                            interface: interface.name.clone(),
                            index: interface.index,
                            mac: interface.mac,
                            addresses: vec![address],
                        });
                    }
                }
            }
        }
        found.ok_or_else(|| {
            let own = network.addresses().map(|it| it.address).filter(|it| !it.is_loopback());
            NoHost::Unknown { hosts: list(hosts.iter().flatten()), own: list(own) }
        })
    }
}

fn list<T: ToString>(addresses: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = addresses.into_iter().map(|address| address.to_string()).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Address, Change, Interface};

    fn network(addresses: &[(u32, &str)]) -> Network {
        let mut network = Network::default();
        for index in [2, 3] {
            network.apply(Change::Interface(Interface {
                index,
                name: format!("eth{index}"),
                mac: [2, 0, 0, 0, 0, index as u8],
                mtu: 1500,
                up: true,
                carrier: true,
                vlan: None,
            }));
        }
        for (interface, address) in addresses {
            let subnet: ipnet::IpNet = address.parse().unwrap();
            network.apply(Change::Address(Address {
                interface: *interface,
                address: subnet.addr(),
                subnet,
                scope: 0,
                secondary: false,
                deprecated: false,
                tentative: false,
                protocol: 0,
            }));
        }
        network
    }

    fn hosts(texts: &[&[&str]]) -> Vec<Vec<IpAddr>> {
        texts.iter().map(|host| host.iter().map(|it| it.parse().unwrap()).collect()).collect()
    }

    #[test]
    fn a_host_is_known_by_its_addresses_and_its_place_is_its_id() {
        let network =
            network(&[(2, "192.168.1.1/24"), (3, "10.0.0.12/24"), (3, "2001:db8::12/64")]);
        let hosts = hosts(&[&["10.0.0.11"], &["10.0.0.12", "2001:db8::12"], &["10.0.0.13"]]);
        let identity = Identity::find(&network, &hosts).unwrap();
        assert_eq!((identity.host.get(), identity.interface.as_str()), (2, "eth3"));
        assert_eq!(identity.addresses, hosts[1]);
    }

    #[test]
    fn a_machine_that_is_no_host_or_several_is_told_so() {
        let network = network(&[(2, "10.0.0.1/24"), (2, "10.0.0.2/24"), (3, "10.1.0.2/24")]);
        let error = Identity::find(&network, &hosts(&[&["10.0.0.11"]])).unwrap_err().to_string();
        assert!(error.contains("hosts are 10.0.0.11;"), "{error}");
        assert!(error.contains("10.0.0.1, 10.0.0.2, 10.1.0.2"), "{error}");
        let error = Identity::find(&network, &hosts(&[&["10.0.0.1"], &["10.0.0.2"]])).unwrap_err();
        assert!(error.to_string().contains("host 1 by 10.0.0.1 and host 2 by 10.0.0.2"), "{error}");
        let error = Identity::find(&network, &hosts(&[&["10.0.0.1", "10.1.0.2"]])).unwrap_err();
        assert!(error.to_string().contains("different interfaces"), "{error}");
    }
}
