//! A real server as its connections see it: load, counters, and whether it still belongs to its
//! service.
//!
//! A server has *lives*. When it has failed its life is over, and with it all connections and
//! templates that refer to it, at once and without looking for any of them: a new life, which
//! counts from 0, takes the place of the old one in the service.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use schedulers::placement::Member as Placed;
use schedulers::{Server, ServerId};

use super::traffic::Traffic;
use crate::control::api::ServerSpec;
use crate::health::servers::Standing;

/// What has become of a server.
const SERVING: u8 = 0;
const REMOVED: u8 = 1;
const LOST: u8 = 2;

/// A life of a real server of one service. It outlives its removal while connections refer to it,
/// and is revived with them when it is added again; one that is lost never is.
#[derive(Debug)]
pub struct RealServer {
    /// Load and limits, as schedulers see them.
    pub load: Arc<Server>,
    /// Counters: of all its lives.
    pub traffic: Arc<Traffic>,
    fate: AtomicU8,
    templates: AtomicU32,
    /// How it stands, in one word: permille, and [`ADMITTED`].
    standing: AtomicU32,
}

/// Bit of the word for a standing.
const ADMITTED: u32 = 1 << 16;

impl RealServer {
    /// A server that may be scheduled to, and that nobody has judged.
    pub fn new(load: Arc<Server>) -> RealServer {
        RealServer {
            load,
            traffic: Arc::default(),
            fate: AtomicU8::new(SERVING),
            templates: AtomicU32::new(0),
            standing: AtomicU32::new(word(Standing::UNCHECKED)),
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

    /// The same server, as it goes on when this life of it is over: without connections.
    #[must_use]
    pub fn next_life(&self) -> RealServer {
        let old = &self.load;
        // Born with the last weight that was not 0: Maglev keeps its slots by that.
        let load = Server::new(old.id(), old.address(), old.port(), old.last_weight());
        load.set_weight(old.weight());
        load.set_thresholds(old.upper_threshold(), old.lower_threshold());
        load.report(old.reported());
        RealServer {
            load: Arc::new(load),
            traffic: self.traffic.clone(),
            fate: AtomicU8::new(SERVING),
            templates: AtomicU32::new(0),
            standing: AtomicU32::new(self.standing.load(Relaxed)),
        }
    }

    /// A copy of this life, with counters of its own: what happens to one does not concern the other.
    #[must_use]
    pub fn fork(&self) -> RealServer {
        RealServer {
            load: Arc::new(self.load.fork()),
            traffic: Arc::default(),
            fate: AtomicU8::new(self.fate.load(Relaxed)),
            templates: AtomicU32::new(self.templates()),
            standing: AtomicU32::new(self.standing.load(Relaxed)),
        }
    }

    /// Address and port.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.load.address(), self.load.port())
    }

    /// What health makes of its weight.
    pub fn standing(&self) -> Standing {
        let word = self.standing.load(Relaxed);
        Standing { is_admitted: word & ADMITTED != 0, permille: word as u16 }
    }

    /// Health has come to another opinion. Schedulers go by it from the next
    /// [`weigh`](RealServer::weigh) on.
    pub fn set_standing(&self, standing: Standing) {
        self.standing.store(word(standing), Relaxed);
    }

    /// Gives schedulers the limits that were asked for, and the weight as health judges it.
    pub fn weigh(&self, spec: &ServerSpec) {
        self.load.set_weight(self.standing().effective(spec.weight));
        self.load.set_thresholds(spec.upper_threshold, spec.lower_threshold);
    }

    /// As the tables of hashing schedulers will have it once it has been given `spec`.
    pub fn placed_with(&self, spec: &ServerSpec) -> Placed {
        self.placed_as(spec, self.standing())
    }

    /// The same, when health judges it so.
    pub fn placed_as(&self, spec: &ServerSpec, standing: Standing) -> Placed {
        Placed::of(&self.load).weighing(standing.effective(spec.weight))
    }

    /// A connection may have come into the states of a handshake, or out of them.
    pub fn handshake_moved(&self, before: bool, after: bool) {
        match (before, after) {
            (false, true) => self.load.handshake_begun(),
            (true, false) => self.load.handshake_ended(),
            _ => {}
        }
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

    /// False once it has been removed from its service, or is lost.
    pub fn is_available(&self) -> bool {
        self.fate.load(Relaxed) == SERVING
    }

    /// Whether this life of it is over: its connections are dead.
    pub fn is_lost(&self) -> bool {
        self.fate.load(Relaxed) == LOST
    }

    /// Says whether it belongs to its service. Without effect on a life that is over.
    pub fn set_available(&self, available: bool) {
        let (before, after) = if available { (REMOVED, SERVING) } else { (SERVING, REMOVED) };
        // It fails where it is so already, or lost.
        let _ = self.fate.compare_exchange(before, after, Relaxed, Relaxed);
    }

    /// This life of it is over.
    pub fn lose(&self) {
        self.fate.store(LOST, Relaxed);
    }
}

fn word(standing: Standing) -> u32 {
    let admitted = if standing.is_admitted { ADMITTED } else { 0 };
    u32::from(standing.permille) | admitted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> RealServer {
        let address = Ipv4Addr::new(10, 0, 0, 1).into();
        RealServer::new(Arc::new(Server::new(ServerId(7), address, 80, 5)))
    }

    #[test]
    fn a_standing_comes_out_as_it_went_in() {
        let server = server();
        assert_eq!(server.standing(), Standing::UNCHECKED);
        for is_admitted in [false, true] {
            for permille in [1, 1000, 10_000] {
                let standing = Standing { is_admitted, permille };
                server.set_standing(standing);
                assert_eq!(server.standing(), standing);
            }
        }
    }

    #[test]
    fn the_next_life_has_all_but_the_connections() {
        let first = server();
        first.load.set_weight(0);
        first.load.set_thresholds(9, 4);
        first.load.report(Some(4321));
        first.load.connection_opened();
        first.template_opened();
        first.traffic.connection();
        first.set_standing(Standing { is_admitted: false, permille: 500 });
        let next = first.next_life();
        first.lose();
        assert!(!next.has_connections() && next.is_available());
        assert_eq!((next.load.id(), next.address()), (first.load.id(), first.address()));
        assert_eq!((next.load.weight(), next.load.last_weight()), (0, 5));
        assert_eq!((next.load.upper_threshold(), next.load.lower_threshold()), (9, 4));
        assert_eq!((next.standing(), next.load.reported()), (first.standing(), Some(4321)));
        next.traffic.connection();
        assert_eq!(first.traffic.stats().connections, 2);
    }

    #[test]
    fn a_life_that_is_over_does_not_come_back() {
        let server = server();
        server.set_available(false);
        server.set_available(true);
        assert!(server.is_available());
        server.lose();
        server.set_available(false);
        server.set_available(true);
        assert!(server.is_lost() && !server.is_available());
    }
}
