//! A real server as schedulers see it: weight, thresholds and how many connections it carries.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};

/// Names one server for the life of the process; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(pub u64);

/// The load and limits of one server of one service, shared by all workers.
///
/// Counters are global, not one worker's, so that lc and wlc decide on the truth. They are
/// relaxed atomics: each is a statistic of its own.
#[derive(Debug)]
pub struct Server {
    id: ServerId,
    address: IpAddr,
    port: u16,
    weight: AtomicI32,
    last_weight: AtomicI32,
    upper_threshold: AtomicU32,
    lower_threshold: AtomicU32,
    active: AtomicU32,
    inactive: AtomicU32,
    overloaded: AtomicBool,
}

impl Server {
    /// A server without connections. `weight` 0 means quiesced.
    pub fn new(id: ServerId, address: IpAddr, port: u16, weight: i32) -> Server {
        Server {
            id,
            address,
            port,
            weight: AtomicI32::new(weight),
            last_weight: AtomicI32::new(weight),
            upper_threshold: AtomicU32::new(0),
            lower_threshold: AtomicU32::new(0),
            active: AtomicU32::new(0),
            inactive: AtomicU32::new(0),
            overloaded: AtomicBool::new(false),
        }
    }

    /// Which server this is.
    pub fn id(&self) -> ServerId {
        self.id
    }

    /// The server's address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The server's port, host order.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The weight, 0..=2147483647; 0 = quiesced.
    pub fn weight(&self) -> i32 {
        self.weight.load(Relaxed)
    }

    /// The last weight that was not 0 (0 if there never was one). Maglev keeps slots by it.
    pub fn last_weight(&self) -> i32 {
        self.last_weight.load(Relaxed)
    }

    /// Sets the weight; 0 = quiesced.
    pub fn set_weight(&self, weight: i32) {
        self.weight.store(weight, Relaxed);
        if weight != 0 {
            self.last_weight.store(weight, Relaxed);
        }
    }

    /// Sets the connection thresholds; `upper` 0 = no limit, `lower` 0 = three quarters of `upper`.
    pub fn set_thresholds(&self, upper: u32, lower: u32) {
        self.upper_threshold.store(upper, Relaxed);
        self.lower_threshold.store(lower, Relaxed);
        if upper == 0 {
            self.overloaded.store(false, Relaxed);
        }
        self.review_overload();
    }

    /// Upper connection threshold; 0 = none.
    pub fn upper_threshold(&self) -> u32 {
        self.upper_threshold.load(Relaxed)
    }

    /// Lower connection threshold; 0 = three quarters of the upper one.
    pub fn lower_threshold(&self) -> u32 {
        self.lower_threshold.load(Relaxed)
    }

    /// Connections in an active state.
    pub fn active(&self) -> u32 {
        self.active.load(Relaxed)
    }

    /// Connections in any other state; templates are not counted.
    pub fn inactive(&self) -> u32 {
        self.inactive.load(Relaxed)
    }

    /// Active and inactive connections together.
    pub fn connections(&self) -> u64 {
        u64::from(self.active()) + u64::from(self.inactive())
    }

    /// Whether the upper threshold has been reached and the lower not yet left again.
    pub fn is_overloaded(&self) -> bool {
        self.overloaded.load(Relaxed)
    }

    /// Whether new connections may come here: weight above 0 and not overloaded.
    pub fn is_eligible(&self) -> bool {
        self.weight() > 0 && !self.is_overloaded()
    }

    /// The load that lc and wlc compare: `active * 256 + total`, as kernels with the newest
    /// back-ports count it (`active * 257 + inactive`).
    pub fn overhead(&self) -> u64 {
        u64::from(self.active()) * 257 + u64::from(self.inactive())
    }

    /// A connection has been bound to this server; it starts as inactive, as in the kernel.
    pub fn connection_opened(&self) {
        self.inactive.fetch_add(1, Relaxed);
        self.review_overload();
    }

    /// A connection has changed between active and inactive.
    pub fn connection_moved(&self, to_active: bool) {
        if to_active {
            self.active.fetch_add(1, Relaxed);
            self.inactive.fetch_sub(1, Relaxed);
        } else {
            self.inactive.fetch_add(1, Relaxed);
            self.active.fetch_sub(1, Relaxed);
        }
    }

    /// A connection has expired that was active or not.
    pub fn connection_closed(&self, was_active: bool) {
        if was_active {
            self.active.fetch_sub(1, Relaxed);
        } else {
            self.inactive.fetch_sub(1, Relaxed);
        }
        self.review_overload();
    }

    /// Sets or clears the overload flag; between the thresholds it keeps its value (hysteresis).
    fn review_overload(&self) {
        let upper = self.upper_threshold();
        if upper == 0 {
            return;
        }
        let lower = match self.lower_threshold() {
            0 => upper - upper / 4,
            lower => lower,
        };
        let total = self.connections();
        if total >= u64::from(upper) {
            self.overloaded.store(true, Relaxed);
        } else if total < u64::from(lower) {
            self.overloaded.store(false, Relaxed);
        }
    }
}
