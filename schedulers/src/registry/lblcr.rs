//! Locality-based least connection with replication (lblcr): a set of servers per destination.
//!
//! Follows `ip_vs_lblcr.c`. Each destination address has a set of servers; the eligible one of the
//! lowest overhead for its weight is used. When there is none or it is swamped ([`is_swamped`]),
//! wlc chooses among all servers and the choice joins the set. A set of several that has not
//! changed for [`Expirations::lblcr`] loses its most loaded server, so that a burst's replicas go again.

use crate::lightest::Lightest;
use crate::locality::{Destinations, is_swamped};
use crate::remembered::Remembered;
use crate::replicas::{Replicas, Set};
use crate::weight::{is_lighter, overhead_by_weight, overhead_by_weight_words};
use crate::{
    Change, Entry, Expirations, Key, Options, Scheduler, Server, ServerId, TooManyServers,
};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "lblcr",
    summary: "lblc with replication: a set of servers per destination address",
    create: |options| Box::new(Replicated::new(options)),
};

struct Replicated {
    /// All servers, as wlc sees them.
    all: Lightest,
    destinations: Destinations<Set>,
    replicas: Replicas,
}

impl Replicated {
    fn new(options: &Options) -> Replicated {
        let expiration = Expirations::default().lblcr;
        Replicated {
            all: Lightest::by(overhead_by_weight, overhead_by_weight_words, options),
            destinations: Destinations::new(options.seed, expiration),
            replicas: Replicas::new(),
        }
    }
}

impl Scheduler for Replicated {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        self.all.follow(servers, change);
        Ok(())
    }

    fn set_expirations(&mut self, expirations: &Expirations) {
        self.destinations.set_expiration(expirations.lblcr);
    }

    fn choose(&mut self, servers: &[Arc<Server>], key: &Key, now: Duration) -> Option<usize> {
        let replicas = &mut self.replicas;
        let expiration = self.destinations.expiration();
        self.all.attend(servers, now);
        self.destinations.review(now, |set| replicas.release(set));
        if let Some(set) = self.destinations.get(key.destination, now) {
            let members = replicas.members(set).filter_map(|member| member.find(servers));
            let members = members.map(|index| (index, servers[index].as_ref()));
            let least = self.all.lightest_of(members);
            // The kernel chooses before it shrinks the set: the server that leaves may be the one
            // that is used once more.
            if set.len() > 1
                && now > set.last_change().saturating_add(expiration)
                && let Some(id) = most_loaded(replicas, set, servers)
            {
                replicas.remove(set, id, now);
            }
            if let Some(index) = least
                && !is_swamped(&servers[index], servers)
            {
                return Some(index);
            }
            let index = self.all.lightest(servers, now)?;
            replicas.insert(set, Remembered::at(servers, index)?, now);
            return Some(index);
        }
        let index = self.all.lightest(servers, now)?;
        if self.destinations.has_room() {
            let mut set = Set::empty(now);
            replicas.insert(&mut set, Remembered::at(servers, index)?, now);
            self.destinations.insert(key.destination, set, now);
        }
        Some(index)
    }

    fn fork(&self, servers: &[Arc<Server>], key: &Key) -> Box<dyn Scheduler> {
        let mut replicas = Replicas::of_one_set();
        let destinations =
            self.destinations.fork(key.destination, |set| self.replicas.copy(set, &mut replicas));
        Box::new(Replicated { all: self.all.over(servers), destinations, replicas })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        self.all.words(server)
    }

    fn bearings(&self, servers: &[Arc<Server>], key: &Key) -> String {
        let Some(set) = self.destinations.peek(key.destination) else {
            return "nothing is remembered for this destination: as wlc".to_owned();
        };
        let members = self.replicas.members(set).filter_map(|member| member.find(servers));
        let names: Vec<String> = members.map(|index| servers[index].name()).collect();
        format!("the least loaded of this destination's set: {}", names.join(", "))
    }
}

/// The member that leaves a set: the highest overhead for its weight among those with a weight, the
/// first in the set on a tie.
///
/// A member that is gone leaves before all others. The kernel lets it compete with the connections
/// it had, and may so remove a live server from beside a dead one.
fn most_loaded(replicas: &Replicas, set: &Set, servers: &[Arc<Server>]) -> Option<ServerId> {
    let mut most: Option<(ServerId, (u64, i32))> = None;
    for member in replicas.members(set) {
        let Some(index) = member.find(servers) else {
            return Some(member.id());
        };
        let burden = (servers[index].overhead(), servers[index].weight());
        if burden.1 > 0 && most.is_none_or(|(_, heaviest)| is_lighter(heaviest, burden)) {
            most = Some((member.id(), burden));
        }
    }
    most.map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Service, destination, load, overload};

    const EXPIRATION: Duration = Duration::from_secs(24 * 60 * 60);

    /// Unloads a server of all its active connections.
    fn unload(server: &Server) {
        while server.active() > 0 {
            server.connection_closed(true);
        }
    }

    /// A service whose destination is served by 0 and, since 0 was swamped, by 1. Both have load 1.
    fn replicated() -> (Service, Key) {
        let mut service = Service::new("lblcr", &[2, 2, 2]);
        let key = destination("203.0.113.1");
        assert_eq!(service.choose(&key), Some(0));
        load(service.server(0), 3, 0);
        load(service.server(2), 1, 0);
        assert_eq!(service.choose(&key), Some(1));
        unload(service.server(0));
        unload(service.server(2));
        load(service.server(0), 1, 0);
        load(service.server(1), 1, 0);
        (service, key)
    }

    #[test]
    fn the_least_loaded_of_the_set_is_used_though_another_server_is_idle() {
        let (mut service, key) = replicated();
        load(service.server(1), 0, 1);
        assert_eq!(service.choose(&key), Some(0));
        load(service.server(0), 0, 2);
        assert_eq!(service.choose(&key), Some(1));
    }

    #[test]
    fn a_tie_within_the_set_goes_to_the_server_that_joined_last() {
        let (mut service, key) = replicated();
        assert_eq!(service.choose(&key), Some(1));
    }

    #[test]
    fn a_set_unchanged_for_a_day_loses_its_most_loaded_server() {
        let (mut service, key) = replicated();
        load(service.server(1), 0, 1);
        // Used in between, or the destination itself would be forgotten.
        service.now += EXPIRATION / 2;
        assert_eq!(service.choose(&key), Some(0));
        service.now += EXPIRATION / 2;
        assert_eq!(service.choose(&key), Some(0));
        load(service.server(0), 0, 2);
        assert_eq!(service.choose(&key), Some(1), "not past the day: 1 is still there");
        load(service.server(1), 0, 2);
        service.now += Duration::from_nanos(1);
        assert_eq!(service.choose(&key), Some(0));
        load(service.server(0), 0, 5);
        assert_eq!(service.choose(&key), Some(0), "server 1 has left the set");
    }

    #[test]
    fn the_day_counts_from_the_last_change_of_the_set() {
        let (mut service, key) = replicated();
        load(service.server(1), 0, 1);
        service.now += EXPIRATION - Duration::from_secs(60);
        // Both swamped: server 2 joins, and the day begins anew.
        load(service.server(0), 3, 0);
        load(service.server(1), 3, 0);
        assert_eq!(service.choose(&key), Some(2));
        service.now += Duration::from_secs(3600);
        service.choose(&key);
        unload(service.server(0));
        unload(service.server(1));
        load(service.server(2), 1, 0);
        assert_eq!(service.choose(&key), Some(0), "0 and 1 are still in the set");
    }

    #[test]
    fn a_destination_unused_for_a_day_is_forgotten_with_its_set() {
        let (mut service, key) = replicated();
        service.now += EXPIRATION + Duration::from_secs(60 * 60);
        assert_eq!(service.choose(&key), Some(2), "wlc chooses the idle one");
    }

    #[test]
    fn a_removed_server_leaves_the_set_before_a_live_one() {
        let (mut service, key) = replicated();
        service.remove(1);
        service.now += EXPIRATION / 2;
        assert_eq!(service.choose(&key), Some(0));
        service.now += EXPIRATION / 2 + Duration::from_secs(1);
        assert_eq!(service.choose(&key), Some(0));
        load(service.server(0), 0, 5);
        assert_eq!(service.choose(&key), Some(0), "had 0 left, wlc would choose 2");
    }

    #[test]
    fn quiesced_and_overloaded_members_are_not_used() {
        let (mut service, key) = replicated();
        service.set_weight(1, 0);
        assert_eq!(service.choose(&key), Some(0));
        overload(service.server(0));
        assert_eq!(service.choose(&key), Some(2));
        service.set_weight(2, 0);
        assert_eq!(service.choose(&key), None);
    }

    #[test]
    fn servers_come_and_go() {
        let (mut service, key) = replicated();
        service.add(9, 2).unwrap();
        assert_eq!(service.choose(&key), Some(1), "a new server joins no set unasked");
        service.remove(0);
        service.remove(1);
        assert_eq!(service.choose(&key), Some(9));
        service.remove(9);
        service.remove(2);
        assert_eq!(service.choose(&key), None);
    }
}
