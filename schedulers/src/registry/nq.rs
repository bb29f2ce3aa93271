//! Never queue (nq): the first idle server, and when none is idle the shortest expected delay.
//!
//! Follows `ip_vs_nq.c`. Idle means no active connection; how fast the server is does not matter
//! then, so that it is put to use.

use crate::Entry;
use crate::lightest::Lightest;
use crate::weight::{queue, queue_words};

pub(crate) const ENTRY: Entry = Entry {
    name: "nq",
    summary: "never queue: an idle server if there is one, else shortest expected delay",
    create: |options| Lightest::scheduler(queue, queue_words, options),
};

#[cfg(test)]
mod tests {
    use crate::testing::{Service, load, overload};

    #[test]
    fn an_idle_slow_server_is_used_before_a_busy_fast_one() {
        let mut service = Service::new("nq", &[100, 1, 1]);
        let chosen: Vec<_> = (0..4).map(|_| service.connect().unwrap()).collect();
        assert_eq!(chosen, [0, 1, 2, 0]);
    }

    #[test]
    fn inactive_connections_leave_a_server_idle() {
        let mut service = Service::new("nq", &[1, 1]);
        load(service.server(0), 0, 10);
        assert_eq!(service.next(), Some(0));
    }

    #[test]
    fn ties_in_delay_go_to_the_head() {
        let mut service = Service::new("nq", &[2, 1, 2]);
        load(service.server(0), 1, 0);
        load(service.server(1), 1, 0);
        load(service.server(2), 1, 0);
        assert_eq!(service.next(), Some(0));
    }

    #[test]
    fn idle_but_quiesced_or_overloaded_servers_get_nothing() {
        let mut service = Service::new("nq", &[0, 1, 1]);
        overload(service.server(1));
        load(service.server(2), 7, 0);
        assert_eq!(service.next(), Some(2));
        overload(service.server(2));
        assert_eq!(service.next(), None);
    }

    #[test]
    fn servers_come_and_go() {
        let mut service = Service::new("nq", &[1]);
        assert_eq!(service.connect(), Some(0));
        service.add(9, 1).unwrap();
        assert_eq!(service.connect(), Some(9));
        service.remove(9);
        assert_eq!(service.connect(), Some(0));
    }
}
