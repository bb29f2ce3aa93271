//! What health tells the table of services, and asks of it.

use std::net::SocketAddr;
use std::time::Duration;

use crate::control::api::{ServerSpec, ServiceKey};

/// What health makes of a server's configured weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it may get new connections.
    pub is_admitted: bool,
    /// Share of the configured weight, per mille; 1..=10000.
    pub permille: u16,
}

impl Standing {
    /// As if nobody had looked: the configured weight.
    pub const UNCHECKED: Standing = Standing { is_admitted: true, permille: 1000 };

    /// The weight that schedulers go by: 0 if it is not admitted or quiesced, else at least 1.
    ///
    /// ```
    /// use director::health::servers::Standing;
    ///
    /// let half = Standing { is_admitted: true, permille: 500 };
    /// assert_eq!((half.effective(100), half.effective(1), half.effective(0)), (50, 1, 0));
    /// assert_eq!(Standing { is_admitted: false, ..half }.effective(100), 0);
    /// ```
    pub fn effective(self, weight: i32) -> i32 {
        if !self.is_admitted || weight <= 0 {
            return 0;
        }
        let share = (i64::from(weight) * i64::from(self.permille) + 500) / 1000;
        i32::try_from(share.max(1)).unwrap_or(i32::MAX)
    }
}

/// A service with its servers, as far as health knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Servers as they were asked for, newest first.
    pub servers: Vec<ServerSpec>,
}

/// The table of services, seen from health. What is told of a service or server that is not there is
/// forgotten, and `None` or `false` the answer.
pub trait Servers {
    /// The servers of a service.
    fn pool(&self, service: &ServiceKey) -> Option<Pool>;

    /// From now on the server's weight is judged so. It holds over edits and reloads, until the
    /// server is removed. The effective weights before and after.
    fn stand(
        &self,
        service: &ServiceKey,
        server: SocketAddr,
        standing: Standing,
    ) -> Option<(i32, i32)>;

    /// The server's connections and templates are dead, as of now: a packet of one is answered as the
    /// service's [`Teardown`](crate::control::api::Teardown) says, and the server's counts begin at 0.
    /// With `Teardown::None` nothing happens, unless `is_certain`: the host has started anew and
    /// knows nothing of them.
    fn lose(
        &self,
        service: &ServiceKey,
        server: SocketAddr,
        is_certain: bool,
        now: Duration,
    ) -> bool;

    /// The load that a server reports, 0..=10000; `None`: it is not known any more.
    fn report(&self, service: &ServiceKey, server: SocketAddr, load: Option<u16>) -> bool;

    /// Whether new connections of the service go to its fallback server.
    fn fall_back(&self, service: &ServiceKey, on: bool) -> bool;
}
