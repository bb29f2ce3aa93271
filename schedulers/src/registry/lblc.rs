//! Locality-based least connection (lblc): one server per destination while it is not swamped.
//!
//! Follows `ip_vs_lblc.c`. The server that wlc chose for a destination address is remembered and
//! used again, unless it is gone, quiesced or swamped ([`is_swamped`]); wlc then chooses another,
//! which takes its place. The remembered server's *overload flag is not looked at*: it may get
//! connections beyond its upper threshold.

use crate::lightest::Lightest;
use crate::locality::{Destinations, is_swamped};
use crate::remembered::Remembered;
use crate::weight::{overhead_by_weight, overhead_by_weight_words};
use crate::{Change, Entry, Expirations, Key, Options, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "lblc",
    summary: "locality-based least connection: wlc, remembered per destination address",
    create: |options| Box::new(LocalityBased::new(options)),
};

struct LocalityBased {
    /// All servers, as wlc sees them.
    all: Lightest,
    destinations: Destinations<Remembered>,
}

impl LocalityBased {
    fn new(options: &Options) -> LocalityBased {
        LocalityBased {
            all: Lightest::by(overhead_by_weight, overhead_by_weight_words, options),
            destinations: Destinations::new(options.seed, Expirations::default().lblc),
        }
    }
}

// What is remembered is looked up by id. As in the kernel, a server that is removed and comes back
// under the same id has its destinations again.
impl Scheduler for LocalityBased {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        self.all.follow(servers, change);
        Ok(())
    }

    fn set_expirations(&mut self, expirations: &Expirations) {
        self.destinations.set_expiration(expirations.lblc);
    }

    fn choose(&mut self, servers: &[Arc<Server>], key: &Key, now: Duration) -> Option<usize> {
        self.all.attend(servers, now);
        self.destinations.review(now, |_| ());
        if let Some(remembered) = self.destinations.get(key.destination, now) {
            if let Some(index) = remembered.find(servers)
                && servers[index].weight() > 0
                && !is_swamped(&servers[index], servers)
            {
                return Some(index);
            }
            let index = self.all.lightest(servers, now)?;
            *remembered = Remembered::at(servers, index)?;
            return Some(index);
        }
        let index = self.all.lightest(servers, now)?;
        if self.destinations.has_room() {
            self.destinations.insert(key.destination, Remembered::at(servers, index)?, now);
        }
        Some(index)
    }

    fn fork(&self, servers: &[Arc<Server>], key: &Key) -> Box<dyn Scheduler> {
        let destinations = self.destinations.fork(key.destination, |remembered| *remembered);
        Box::new(LocalityBased { all: self.all.over(servers), destinations })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        self.all.words(server)
    }

    fn bearings(&self, servers: &[Arc<Server>], key: &Key) -> String {
        let remembered = self.destinations.peek(key.destination);
        match remembered.map(|remembered| remembered.find(servers)) {
            None => "nothing is remembered for this destination: as wlc".to_owned(),
            Some(None) => "what is remembered for this destination is gone: as wlc".to_owned(),
            Some(Some(index)) => {
                format!("{} is remembered for this destination", servers[index].name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Service, destination, load, overload};

    #[test]
    fn a_destination_keeps_its_server_when_another_becomes_lighter() {
        let mut service = Service::new("lblc", &[10, 10]);
        let cached = destination("203.0.113.1");
        assert_eq!(service.choose(&cached), Some(0));
        load(service.server(0), 4, 0);
        assert_eq!(service.choose(&cached), Some(0));
        assert_eq!(service.choose(&destination("203.0.113.2")), Some(1));
    }

    #[test]
    fn a_swamped_server_loses_the_destination_for_good_if_another_is_half_idle() {
        let mut service = Service::new("lblc", &[2, 2]);
        let key = destination("203.0.113.1");
        assert_eq!(service.choose(&key), Some(0));
        load(service.server(0), 3, 0);
        load(service.server(1), 1, 0);
        assert_eq!(service.choose(&key), Some(0), "the other is exactly half loaded");
        service.server(1).connection_moved(false);
        assert_eq!(service.choose(&key), Some(1));
        load(service.server(1), 2, 0);
        assert_eq!(service.choose(&key), Some(1), "it does not go back");
    }

    #[test]
    fn a_quiesced_server_loses_its_destinations() {
        let mut service = Service::new("lblc", &[5, 5]);
        let key = destination("203.0.113.1");
        assert_eq!(service.choose(&key), Some(0));
        service.set_weight(0, 0);
        assert_eq!(service.choose(&key), Some(1));
        service.set_weight(0, 5);
        assert_eq!(service.choose(&key), Some(1));
        service.set_weight(0, 0);
        service.set_weight(1, 0);
        assert_eq!(service.choose(&key), None);
    }

    #[test]
    fn the_overload_flag_counts_for_new_destinations_only() {
        let mut service = Service::new("lblc", &[5, 5]);
        let key = destination("203.0.113.1");
        assert_eq!(service.choose(&key), Some(0));
        overload(service.server(0));
        assert_eq!(service.choose(&key), Some(0));
        assert_eq!(service.choose(&destination("203.0.113.2")), Some(1));
    }

    #[test]
    fn servers_come_and_go_and_come_back() {
        let mut service = Service::new("lblc", &[5, 5]);
        let key = destination("203.0.113.1");
        assert_eq!(service.choose(&key), Some(0));
        service.add(9, 5).unwrap();
        assert_eq!(service.choose(&key), Some(0), "a new server takes no destination");
        service.remove(0);
        service.add(0, 5).unwrap();
        assert_eq!(service.choose(&key), Some(0), "no packet came while it was away");
        service.remove(0);
        assert_eq!(service.choose(&key), Some(9));
        service.remove(9);
        service.remove(1);
        assert_eq!(service.choose(&key), None);
    }

    #[test]
    fn ipv4_and_ipv6_destinations_are_apart() {
        let mut service = Service::new("lblc", &[5, 5]);
        assert_eq!(service.choose(&destination("203.0.113.1")), Some(0));
        load(service.server(0), 1, 0);
        assert_eq!(service.choose(&destination("::ffff:203.0.113.1")), Some(1));
        assert_eq!(service.choose(&destination("203.0.113.1")), Some(0));
    }
}
