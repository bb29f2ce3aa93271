//! A real server as its connections see it: load, counters, and whether it still belongs to its
//! service.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use schedulers::{Server, ServerId};

use super::traffic::Traffic;

/// A real server of one service. It outlives its removal while connections refer to it, and is
/// revived with them when it is added again.
#[derive(Debug)]
pub struct RealServer {
    /// Load and limits, as schedulers see them.
    pub load: Arc<Server>,
    /// Counters.
    pub traffic: Traffic,
    available: AtomicBool,
    templates: AtomicU32,
}

impl RealServer {
    /// A server that may be scheduled to.
    pub fn new(load: Arc<Server>) -> RealServer {
        RealServer {
            load,
            traffic: Traffic::default(),
            available: AtomicBool::new(true),
            templates: AtomicU32::new(0),
        }
    }

    /// In place of a server, with the unspecified address and port 0; no scheduler sees it.
    pub fn nobody(ipv6: bool) -> RealServer {
        let address = match ipv6 {
            false => Ipv4Addr::UNSPECIFIED.into(),
            true => Ipv6Addr::UNSPECIFIED.into(),
        };
        // Never quiesced: no setting ends its connections for want of a server.
        RealServer::new(Arc::new(Server::new(ServerId(u64::MAX), address, 0, 1)))
    }

    /// Address and port.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.load.address(), self.load.port())
    }

    /// Persistence templates that point here.
    pub fn templates(&self) -> u32 {
        self.templates.load(Relaxed)
    }

    /// A template has been made.
    pub fn template_opened(&self) {
        self.templates.fetch_add(1, Relaxed);
    }

    /// A template is gone.
    pub fn template_closed(&self) {
        self.templates.fetch_sub(1, Relaxed);
    }

    /// Whether a connection or a template refers to it.
    pub fn has_connections(&self) -> bool {
        self.load.connections() > 0 || self.templates() > 0
    }

    /// False once it has been removed from its service.
    pub fn is_available(&self) -> bool {
        self.available.load(Relaxed)
    }

    /// Says whether it belongs to its service.
    pub fn set_available(&self, available: bool) {
        self.available.store(available, Relaxed);
    }
}
