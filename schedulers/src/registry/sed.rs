//! Shortest expected delay (sed): the lowest `(active + 1) / weight`.
//!
//! Follows `ip_vs_sed.c`. The one is the connection about to come; inactive ones do not count.
//! Weinrib and Shenker, "Greed is not enough", INFOCOM 1988.

use crate::Entry;
use crate::lightest::Lightest;
use crate::weight::{expected_delay, expected_delay_words};

pub(crate) const ENTRY: Entry = Entry {
    name: "sed",
    summary: "shortest expected delay: lowest (active + 1) / weight",
    create: |options| Lightest::scheduler(expected_delay, expected_delay_words, options),
};

#[cfg(test)]
mod tests {
    use crate::testing::{Service, load, overload};

    #[test]
    fn a_fast_server_is_preferred_while_its_queue_is_short() {
        let mut service = Service::new("sed", &[1, 3]);
        let chosen: Vec<_> = (0..4).map(|_| service.connect().unwrap()).collect();
        // 1/1 against 1/3, 2/3, then a tie at 3/3 that the head wins, then 2/1 against 3/3.
        assert_eq!(chosen, [1, 1, 0, 1]);
    }

    #[test]
    fn inactive_connections_do_not_count() {
        let mut service = Service::new("sed", &[1, 1]);
        load(service.server(0), 0, 1000);
        load(service.server(1), 1, 0);
        assert_eq!(service.next(), Some(0));
    }

    #[test]
    fn quiesced_and_overloaded_servers_get_nothing() {
        let mut service = Service::new("sed", &[9, 0, 1]);
        overload(service.server(0));
        load(service.server(2), 50, 0);
        assert_eq!(service.next(), Some(2));
        service.set_weight(2, 0);
        assert_eq!(service.next(), None);
    }

    #[test]
    fn servers_come_and_go() {
        let mut service = Service::new("sed", &[2]);
        service.add(9, 2).unwrap();
        assert_eq!(service.connect(), Some(9));
        assert_eq!(service.connect(), Some(0));
        service.remove(0);
        assert_eq!(service.connect(), Some(9));
        service.remove(9);
        assert_eq!(service.connect(), None);
    }
}
