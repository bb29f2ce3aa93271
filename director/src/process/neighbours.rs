//! Servers whose Ethernet addresses are kept known, so that no client waits for ARP.
//!
//! Which next hops these are is looked up for all servers at once, which takes a while when there
//! are a hundred thousand. While the table changes all the time that is done now and then only: a
//! packet to a server that is not among them yet has it asked for as well.

use std::time::{Duration, Instant};

use crate::network::{Network, Resolver};
use crate::table::Table;

/// What is quicker than this is done whenever there is something new.
const QUICK: Duration = Duration::from_millis(1);

/// After what was not, a rest of so many times as long.
const REST: u32 = 20;

/// See the module.
#[derive(Default)]
pub(super) struct Neighbours {
    are_behind: bool,
    /// Not to be looked up again before.
    rest_until: Option<Instant>,
}

impl Neighbours {
    /// There are other servers, or other routes.
    pub(super) fn have_changed(&mut self) {
        self.are_behind = true;
    }

    /// Whether [`follow`](Neighbours::follow) has something to do, perhaps after a rest.
    pub(super) fn are_behind(&self) -> bool {
        self.are_behind
    }

    /// Has the next hops of all servers kept known, unless that is so or it must rest.
    pub(super) fn follow(&mut self, table: &Table, network: &Network, resolver: &Resolver) {
        let start = Instant::now();
        if !self.are_behind || self.rest_until.is_some_and(|until| start < until) {
            return;
        }
        let servers = table.server_addresses().into_iter();
        resolver.keep_resolved(servers.filter_map(|server| {
            network.route(server).map(|route| (route.interface, route.next_hop(server)))
        }));
        self.are_behind = false;
        let took = start.elapsed();
        self.rest_until = (took > QUICK).then(|| start + took * REST);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dispatch::Shared;

    #[test]
    fn after_a_long_look_up_there_is_a_rest_and_then_what_was_missed_is_made_up() {
        let table = Table::new(Arc::new(Shared::new(10)), Box::new(|_| false), 1);
        let (network, resolver) = (Network::default(), Resolver::disconnected());
        let mut neighbours = Neighbours::default();
        neighbours.have_changed();
        neighbours.follow(&table, &network, &resolver);
        assert!(!neighbours.are_behind());
        neighbours.have_changed();
        neighbours.rest_until = Some(Instant::now() + Duration::from_secs(60));
        neighbours.follow(&table, &network, &resolver);
        assert!(neighbours.are_behind());
        neighbours.rest_until = Some(Instant::now());
        neighbours.follow(&table, &network, &resolver);
        assert!(!neighbours.are_behind());
    }
}
