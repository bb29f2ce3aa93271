//! Weighted least connection (wlc): the lowest overhead for its weight. The default scheduler.
//!
//! Follows `ip_vs_wlc.c`. There is no slow start: a new server without connections gets every new
//! one until it has caught up.

use crate::Entry;
use crate::lightest::Lightest;
use crate::weight::{overhead_by_weight, overhead_by_weight_words};

pub(crate) const ENTRY: Entry = Entry {
    name: "wlc",
    summary: "weighted least connection: the fewest connections for its weight",
    create: |options| Lightest::scheduler(overhead_by_weight, overhead_by_weight_words, options),
};

#[cfg(test)]
mod tests {
    use crate::testing::{Service, load, overload};

    #[test]
    fn connections_settle_in_proportion_to_weight() {
        let mut service = Service::new("wlc", &[3, 1, 2]);
        for _ in 0..60 {
            service.connect().unwrap();
        }
        let active = |id| service.server(id).active();
        assert_eq!([active(0), active(1), active(2)], [30, 10, 20]);
    }

    #[test]
    fn the_newest_of_equal_fractions_is_chosen() {
        let mut service = Service::new("wlc", &[2, 4, 1]);
        load(service.server(0), 2, 0);
        load(service.server(1), 4, 0);
        load(service.server(2), 1, 0);
        assert_eq!(service.next(), Some(0));
        load(service.server(0), 0, 1);
        assert_eq!(service.next(), Some(1));
    }

    #[test]
    fn a_new_server_gets_all_until_it_has_caught_up() {
        let mut service = Service::new("wlc", &[1, 1]);
        load(service.server(0), 3, 0);
        load(service.server(1), 3, 0);
        service.add(9, 1).unwrap();
        let chosen: Vec<_> = (0..5).map(|_| service.connect().unwrap()).collect();
        assert_eq!(chosen, [9, 9, 9, 9, 0]);
        service.remove(9);
        assert_eq!(service.next(), Some(1));
    }

    #[test]
    fn quiesced_and_overloaded_servers_get_nothing() {
        let mut service = Service::new("wlc", &[0, 100, 1]);
        overload(service.server(1));
        load(service.server(2), 5, 0);
        assert_eq!(service.next(), Some(2));
        service.set_weight(2, 0);
        assert_eq!(service.next(), None);
    }

    #[test]
    fn the_largest_weights_and_loads_are_compared_exactly() {
        let mut service = Service::new("wlc", &[i32::MAX, i32::MAX - 1]);
        load(service.server(0), 1, 0);
        load(service.server(1), 1, 0);
        assert_eq!(service.next(), Some(0));
        load(service.server(0), 0, 1);
        assert_eq!(service.next(), Some(1));
    }
}
