//! AF_PACKET sockets: the port that works everywhere, through the kernel's own path.
//!
//! Knows one socket on one interface. Must not know that the kernel's stack sees every packet too
//! and would answer it (a SYN with a RST): a guard has to be set up by whoever opens this port,
//! such as a tcx program on ingress that drops what is for the virtual addresses: it acts after
//! this socket has had its copy.
//!
//! Three things that a network card does not show come along with each packet here: whether its
//! checksum is still partial, the VLAN tag that was taken off (it is put back), and whether it is
//! a super-frame of many segments (it is cut, see `segment`).

mod port;
mod socket;
mod virtio;

pub use port::PacketPort;

/// What [`PacketPort::open`] needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOptions {
    /// The interface's name, in the network namespace of the calling thread.
    pub interface: String,
    /// The number of the group of sockets that share the interface's packets, the same for all
    /// workers and used for no other interface; the kernel divides by a hash that is the same for
    /// both directions of a flow. `None`: this socket gets all packets.
    pub fanout: Option<u16>,
}

impl PacketOptions {
    /// One socket that gets all packets of `interface`.
    pub fn new(interface: impl Into<String>) -> PacketOptions {
        PacketOptions { interface: interface.into(), fanout: None }
    }

    /// One of several sockets that share the packets.
    pub fn in_group(interface: impl Into<String>, group: u16) -> PacketOptions {
        PacketOptions { interface: interface.into(), fanout: Some(group) }
    }
}
