//! The way of a check to the VIP through a server: with direct routing and tunnels.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::network::{Network, Resolver};

/// The way to VIPs through servers, shared by all checks that go along it.
pub struct Path {
    network: Arc<ArcSwap<Network>>,
    resolver: Resolver,
}

impl Path {
    /// A way that follows these tables.
    pub fn new(network: Arc<ArcSwap<Network>>, resolver: Resolver) -> Path {
        Path { network, resolver }
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Path(..)")
    }
}
