//! A server as far as its place is concerned.

use crate::Server;
use std::net::IpAddr;

/// What decides which keys a server gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its address.
    pub address: IpAddr,
    /// Its port, host order.
    pub port: u16,
    /// 1..=2147483647; 0 (or less) = out of service.
    pub weight: i32,
    /// The last weight that was not 0; 0 = it never had one, and has no segment in any form.
    pub last_weight: i32,
}

impl Member {
    /// A member in service, or with weight 0 one that never was.
    pub fn new(address: IpAddr, port: u16, weight: i32) -> Member {
        Member { address, port, weight, last_weight: weight }
    }

    /// A server as it is now.
    pub fn of(server: &Server) -> Member {
        Member {
            address: server.address(),
            port: server.port(),
            weight: server.weight(),
            last_weight: server.last_weight(),
        }
    }

    /// The same with another weight, as [`Server::set_weight`] would leave it.
    ///
    /// ```
    /// use schedulers::placement::Member;
    ///
    /// let member = Member::new("192.0.2.1".parse().unwrap(), 53, 5).weighing(0);
    /// assert_eq!((member.weight, member.last_weight), (0, 5));
    /// ```
    pub fn weighing(self, weight: i32) -> Member {
        let last_weight = if weight == 0 { self.last_weight } else { weight };
        Member { weight, last_weight, ..self }
    }

    /// Whether it takes keys.
    pub fn is_live(&self) -> bool {
        self.weight > 0
    }

    /// How wide its segments are, against those of others; 0 = it has none.
    pub(super) fn width(&self, sticky: bool) -> u32 {
        let weight = match sticky && !self.is_live() {
            true => self.last_weight,
            false => self.weight,
        };
        u32::try_from(weight).unwrap_or(0)
    }
}
