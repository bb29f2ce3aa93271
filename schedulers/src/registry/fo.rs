//! Weighted failover (fo): the eligible server of the highest weight gets everything.
//!
//! Follows `ip_vs_fo.c`. The next highest takes over when it is quiesced or overloaded.

use crate::weight::each;
use crate::{Entry, Key, Scheduler, Server};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "fo",
    summary: "weighted failover: all to the eligible server of the highest weight",
    create: |_| Box::new(Failover),
};

#[derive(Debug)]
struct Failover;

impl Scheduler for Failover {
    fn choose(&mut self, servers: &[Arc<Server>], _: &Key, _: Duration) -> Option<usize> {
        // `max_by_key` would keep the last of equals; the lower index, nearer the head, wins.
        each(servers)
            .filter(|(_, server)| server.is_eligible())
            .max_by_key(|(index, server)| (server.weight(), Reverse(*index)))
            .map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Service, load, overload};

    #[test]
    fn the_heaviest_serves_however_loaded_until_it_fails() {
        let mut service = Service::new("fo", &[1, 9, 5]);
        load(service.server(1), 500, 0);
        assert_eq!(service.run(3), [1, 1, 1]);
        service.set_weight(1, 0);
        assert_eq!(service.next(), Some(2));
        overload(service.server(2));
        assert_eq!(service.next(), Some(0));
        service.set_weight(0, 0);
        assert_eq!(service.next(), None);
        service.set_weight(1, 9);
        assert_eq!(service.next(), Some(1));
    }

    #[test]
    fn the_newest_of_equal_weights_serves() {
        let mut service = Service::new("fo", &[1, 5, 5]);
        assert_eq!(service.next(), Some(1));
        service.add(9, 5).unwrap();
        assert_eq!(service.next(), Some(9));
        service.remove(9);
        service.remove(1);
        assert_eq!(service.next(), Some(2));
    }
}
