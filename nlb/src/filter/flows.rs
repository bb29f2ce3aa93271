//! What the filter remembers and what it asks the kernel.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::Reason;
use crate::tuple::Tuple;

/// What the kernel's table of TCP sockets has for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Socket {
    /// Only one that waits for connections.
    Listening,
    /// The flow's own, in whatever state: half open and closing ones too.
    Flow,
}

/// What the fragments of one packet have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FragmentKey {
    /// IP source.
    pub source: IpAddr,
    /// IP destination.
    pub destination: IpAddr,
    /// Identification, host order: 16 bits in IPv4, 32 in IPv6.
    pub id: u32,
    /// IP protocol number; 0 in IPv6, whose identification stands for all protocols.
    pub protocol: u8,
}

/// The memory of the filter. In the kernel these are maps of bounded size whose oldest entries make
/// room for new ones, and the table of sockets.
pub trait Flows {
    /// What the kernel has for this TCP packet.
    fn socket(&mut self, tuple: &Tuple) -> Option<Socket>;
    /// Whether a flow is pinned to this host.
    fn is_pinned(&mut self, tuple: &Tuple) -> bool;
    /// Pins a flow to this host, or keeps it pinned.
    fn pin(&mut self, tuple: &Tuple);
    /// Forgets a pin.
    fn unpin(&mut self, tuple: &Tuple);
    /// Whether this host gave up a flow: its socket counts no more.
    fn is_retired(&mut self, tuple: &Tuple) -> bool;
    /// Gives up a flow.
    fn retire(&mut self, tuple: &Tuple);
    /// A flow begins again here.
    fn unretire(&mut self, tuple: &Tuple);
    /// What became of the first fragment of a packet.
    fn fragment(&mut self, key: &FragmentKey) -> Option<Reason>;
    /// Notes what became of a first fragment.
    fn note_fragment(&mut self, key: &FragmentKey, reason: Reason);
}

/// A memory without bound, of a process that decides for itself: `explain`, the simulation, tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The sockets there are.
    pub sockets: HashMap<Tuple, Socket>,
    /// The flows pinned here.
    pub pins: HashSet<Tuple>,
    /// The flows given up.
    pub retired: HashSet<Tuple>,
    /// What became of first fragments.
    pub fragments: HashMap<FragmentKey, Reason>,
}

impl Flows for Memory {
    fn socket(&mut self, tuple: &Tuple) -> Option<Socket> {
        self.sockets.get(tuple).copied()
    }

    fn is_pinned(&mut self, tuple: &Tuple) -> bool {
        self.pins.contains(tuple)
    }

    fn pin(&mut self, tuple: &Tuple) {
        self.pins.insert(*tuple);
    }

    fn unpin(&mut self, tuple: &Tuple) {
        self.pins.remove(tuple);
    }

    fn is_retired(&mut self, tuple: &Tuple) -> bool {
        self.retired.contains(tuple)
    }

    fn retire(&mut self, tuple: &Tuple) {
        self.retired.insert(*tuple);
    }

    fn unretire(&mut self, tuple: &Tuple) {
        self.retired.remove(tuple);
    }

    fn fragment(&mut self, key: &FragmentKey) -> Option<Reason> {
        self.fragments.get(key).copied()
    }

    fn note_fragment(&mut self, key: &FragmentKey, reason: Reason) {
        self.fragments.insert(*key, reason);
    }
}
