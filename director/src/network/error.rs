//! What can go wrong between the director and the kernel's network tables.

use std::io;
use std::net::IpAddr;

/// What can go wrong between the director and the kernel's network tables.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// No netlink socket.
    #[error(
        "cannot open a netlink socket ({0}): raise the limit of open files, and allow AF_NETLINK \
         where the service is confined (RestrictAddressFamilies of its systemd unit)"
    )]
    Open(#[source] io::Error),
    /// The kernel does not answer, or not what was asked for.
    #[error("cannot read the kernel's network tables over netlink: {0}")]
    Read(#[source] rtnetlink::Error),
    /// An address cannot be put on an interface.
    #[error(
        "cannot put {address} on {interface} ({source}): run the director with CAP_NET_ADMIN, or \
         set own_addresses = false and add the address by other means"
    )]
    Address {
        /// The address.
        address: IpAddr,
        /// Name of the interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// An interface that the configuration names does not exist.
    #[error(
        "there is no interface {0}: correct interfaces in the configuration; `ip link` lists them"
    )]
    NoInterface(String),
}
