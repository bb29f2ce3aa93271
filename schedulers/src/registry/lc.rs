//! Least connection (lc): the eligible server with the lowest overhead, whatever its weight.
//!
//! Follows `ip_vs_lc.c`. An active connection counts 257, any other 1 ([`Server::overhead`](crate::Server::overhead)).

use crate::Entry;
use crate::lightest::Lightest;
use crate::weight::{overhead, overhead_words};

pub(crate) const ENTRY: Entry = Entry {
    name: "lc",
    summary: "least connection: the fewest connections, active ones counting most",
    create: |options| Lightest::scheduler(overhead, overhead_words, options),
};

#[cfg(test)]
mod tests {
    use crate::testing::{Service, load, overload};

    #[test]
    fn one_active_connection_weighs_more_than_many_inactive_ones() {
        let mut service = Service::new("lc", &[1, 1]);
        load(service.server(0), 1, 0);
        load(service.server(1), 0, 256);
        assert_eq!(service.next(), Some(1));
        load(service.server(1), 0, 1);
        assert_eq!(service.next(), Some(0), "257 inactive tie with one active; the head wins");
        load(service.server(0), 0, 1);
        assert_eq!(service.next(), Some(1));
    }

    #[test]
    fn weight_matters_only_as_zero_or_not() {
        let mut service = Service::new("lc", &[1000, 1, 0]);
        load(service.server(0), 2, 0);
        load(service.server(1), 1, 0);
        assert_eq!(service.next(), Some(1));
        service.set_weight(1, 0);
        assert_eq!(service.next(), Some(0));
    }

    #[test]
    fn the_newest_of_equals_is_chosen() {
        let mut service = Service::new("lc", &[1, 1]);
        assert_eq!(service.next(), Some(0));
        service.add(9, 1).unwrap();
        assert_eq!(service.next(), Some(9));
        service.remove(9);
        assert_eq!(service.next(), Some(0));
    }

    #[test]
    fn overloaded_servers_get_nothing() {
        let mut service = Service::new("lc", &[1, 1]);
        overload(service.server(0));
        load(service.server(1), 9, 9);
        assert_eq!(service.next(), Some(1));
        overload(service.server(1));
        assert_eq!(service.next(), None);
    }
}
