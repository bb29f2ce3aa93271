//! What a service does beyond the kernel's IPVS, as workers read it: packet by packet, without a
//! lock. An edit counts from the next packet on, for connections that exist too.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use forwarding::{Family, mss};

use super::TCP;
use super::state::{State, Timeouts};
use super::verdict::DropReason;
use crate::control::api::{Extras, GoneServer, MssClamp, NoDestination, Teardown};

/// See the module. Each value is a word by itself: they do not depend on each other.
#[derive(Debug, Default)]
pub struct Policy {
    /// Seconds; 0 = the director's.
    established: AtomicU32,
    fin_wait: AtomicU32,
    udp: AtomicU32,
    /// 0 = none, [`BY_ROUTE`], or bytes.
    mss: AtomicU32,
    switches: AtomicU8,
}

/// The value of `mss` that means what the packet's way carries: above every number of bytes.
const BY_ROUTE: u32 = u32::MAX;

/// Bits of `switches`.
const RST_WHEN_GONE: u8 = 1;
const RESCHEDULE_WHEN_GONE: u8 = 2;
const RST_WITHOUT_DESTINATION: u8 = 4;
const LEAVE_QUIESCED: u8 = 8;
const KEEP_WHEN_LOST: u8 = 16;
const ROUSE_WHEN_LOST: u8 = 32;

impl Policy {
    /// What was asked for.
    pub fn new(extras: &Extras) -> Policy {
        let policy = Policy::default();
        policy.set(extras);
        policy
    }

    /// Replaces what was asked for.
    pub fn set(&self, extras: &Extras) {
        let Extras { timeouts, gone_server, no_destination, leave_quiesced, mss_clamp, .. } =
            *extras;
        let teardown = extras.teardown;
        self.established.store(timeouts.tcp, Relaxed);
        self.fin_wait.store(timeouts.tcp_fin, Relaxed);
        self.udp.store(timeouts.udp, Relaxed);
        let mss = match mss_clamp {
            MssClamp::ByRoute(false) => 0,
            MssClamp::ByRoute(true) => BY_ROUTE,
            MssClamp::Bytes(bytes) => u32::from(bytes),
        };
        self.mss.store(mss, Relaxed);
        let mut switches = match gone_server {
            GoneServer::Drop => 0,
            GoneServer::Rst => RST_WHEN_GONE,
            GoneServer::Reschedule => RESCHEDULE_WHEN_GONE,
        };
        if no_destination == NoDestination::Rst {
            switches |= RST_WITHOUT_DESTINATION;
        }
        if leave_quiesced {
            switches |= LEAVE_QUIESCED;
        }
        switches |= match teardown {
            Teardown::Lazy => 0,
            Teardown::Eager => ROUSE_WHEN_LOST,
            Teardown::None => KEEP_WHEN_LOST,
        };
        self.switches.store(switches, Relaxed);
    }

    fn has(&self, switch: u8) -> bool {
        self.switches.load(Relaxed) & switch != 0
    }

    /// How long a connection lives after its last packet: `director` says it for all services.
    pub fn timeout(&self, state: State, director: &Timeouts) -> Duration {
        Duration::from_secs(self.seconds(state, director).into())
    }

    /// The same in seconds.
    #[inline]
    pub fn seconds(&self, state: State, director: &Timeouts) -> u32 {
        let own = match state {
            State::Established => self.established.load(Relaxed),
            State::FinWait => self.fin_wait.load(Relaxed),
            State::Udp => self.udp.load(Relaxed),
            _ => 0,
        };
        match own {
            0 => director.seconds(state),
            seconds => seconds,
        }
    }

    /// What becomes of a client's packet whose server has been removed; `opens`: it may make a
    /// connection.
    pub(super) fn when_gone(&self, opens: bool) -> Lost {
        match self.switches.load(Relaxed) {
            switches if switches & RESCHEDULE_WHEN_GONE != 0 && opens => Lost::Over,
            switches if switches & (RST_WHEN_GONE | RESCHEDULE_WHEN_GONE) != 0 => Lost::Told,
            _ => Lost::Waits,
        }
    }

    /// Why a packet is dropped that no server can take, which says what its client is told.
    pub(super) fn no_server(&self, protocol: u8) -> DropReason {
        if protocol == TCP && self.has(RST_WITHOUT_DESTINATION) {
            DropReason::NoServerReset
        } else {
            DropReason::NoServer
        }
    }

    /// Whether a template whose server is quiesced is not followed.
    pub fn leaves_quiesced(&self) -> bool {
        self.has(LEAVE_QUIESCED)
    }

    /// Whether the connections of a server that has failed stay.
    pub fn keeps_lost(&self) -> bool {
        self.has(KEEP_WHEN_LOST)
    }

    /// Whether silent clients of a server that has failed are roused.
    pub fn rouses_lost(&self) -> bool {
        self.has(ROUSE_WHEN_LOST)
    }

    /// What a SYN may announce.
    pub(super) fn mss_limit(&self) -> MssLimit {
        MssLimit(self.mss.load(Relaxed))
    }
}

/// Why a packet does not go the way of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The connection waits for its server; the client hears nothing.
    Waits,
    /// The client is told, and the connection is over.
    Told,
    /// The connection is over, and the packet may open another one.
    Over,
    /// Its server has failed: the client is told, and the connection is over.
    Dead,
    /// Its server has failed, or had, and goes on all the same: it is told, the client is not heard of.
    Unheard,
}

impl Lost {
    /// The same in words.
    pub(super) fn why(self) -> &'static str {
        match self {
            Lost::Waits => "its server has been removed, and it waits for that to return",
            Lost::Told => "its server has been removed, and the client is told",
            Lost::Over => "it is over, and this packet may open another one",
            Lost::Dead => "its server has failed, and the client is told",
            Lost::Unheard => "its server had failed, and is told that it is over",
        }
    }
}

/// The largest segment that a SYN may announce; by default there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MssLimit(u32);

impl MssLimit {
    /// In bytes, on a way that takes packets of `mtu` bytes.
    pub(super) fn bytes(self, family: Family, mtu: impl FnOnce() -> u32) -> Option<u16> {
        match self.0 {
            0 => None,
            BY_ROUTE => Some(mss::that_fits(family, mtu())),
            bytes => u16::try_from(bytes).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::api::OwnTimeouts;

    #[test]
    fn a_service_that_asks_for_nothing_behaves_as_the_kernels() {
        let (policy, timeouts) = (Policy::default(), Timeouts::default());
        for state in [State::Established, State::FinWait, State::Udp, State::SynRecv] {
            assert_eq!(policy.timeout(state, &timeouts), timeouts.of(state));
        }
        assert_eq!((policy.when_gone(true), policy.when_gone(false)), (Lost::Waits, Lost::Waits));
        assert_eq!(policy.no_server(6), DropReason::NoServer);
        assert!(!policy.leaves_quiesced());
        assert_eq!(policy.mss_limit().bytes(Family::V4, || 1480), None);
    }

    #[test]
    fn a_timeout_that_is_not_given_is_the_directors() {
        let timeouts = OwnTimeouts { tcp: 7200, tcp_fin: 0, udp: 0 };
        let policy = Policy::new(&Extras { timeouts, ..Extras::default() });
        let seconds = |state| policy.timeout(state, &Timeouts::default()).as_secs();
        assert_eq!((seconds(State::Established), seconds(State::FinWait)), (7200, 120));
        assert_eq!((seconds(State::Udp), seconds(State::SynRecv)), (300, 60));
        policy.set(&Extras::default());
        assert_eq!(policy.timeout(State::Established, &Timeouts::default()).as_secs(), 900);
    }

    #[test]
    fn only_what_may_open_a_connection_is_rescheduled() {
        let gone_server = GoneServer::Reschedule;
        let policy = Policy::new(&Extras { gone_server, ..Extras::default() });
        assert_eq!((policy.when_gone(true), policy.when_gone(false)), (Lost::Over, Lost::Told));
        policy.set(&Extras { gone_server: GoneServer::Rst, ..Extras::default() });
        assert_eq!((policy.when_gone(true), policy.when_gone(false)), (Lost::Told, Lost::Told));
    }

    #[test]
    fn a_clamp_by_route_follows_the_route_and_one_by_number_does_not() {
        let limit = |mss_clamp| Policy::new(&Extras { mss_clamp, ..Extras::default() }).mss_limit();
        assert_eq!(limit(MssClamp::ByRoute(true)).bytes(Family::V4, || 1480), Some(1440));
        assert_eq!(limit(MssClamp::ByRoute(true)).bytes(Family::V6, || 1460), Some(1400));
        assert_eq!(limit(MssClamp::Bytes(1300)).bytes(Family::V6, || 1460), Some(1300));
    }
}
