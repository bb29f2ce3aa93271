//! Overflow (ovf): the heaviest server that is not full; its weight is also its capacity.
//!
//! Follows `ip_vs_ovf.c`. A server counts as full when its active connections *exceed* its weight,
//! so that it gets `weight + 1` of them. Inactive connections do not count, which makes the rule
//! of little use for UDP.

use crate::least::Least;
use crate::weight::{Burden, UNBEARABLE, lightness};
use crate::{Entry, Server};

pub(crate) const ENTRY: Entry = Entry {
    name: "ovf",
    summary: "overflow: the heaviest server with no more active connections than its weight",
    create: |_| Box::new(Least::by(room, words)),
};

fn words(server: &Server) -> String {
    let has_room = i64::from(server.active()) <= i64::from(server.weight());
    let full = if has_room { "" } else { ": full" };
    format!("{} active of weight {}{full}", server.active(), server.weight())
}

/// The heavier the lighter, as long as it is not full.
fn room(server: &Server) -> Burden {
    let has_room = i64::from(server.active()) <= i64::from(server.weight());
    if has_room { lightness(server) } else { UNBEARABLE }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Service, load, overload};

    #[test]
    fn the_heaviest_fills_up_before_the_next_gets_any() {
        let mut service = Service::new("ovf", &[1, 3, 2]);
        let chosen: Vec<_> = (0..9).map(|_| service.connect().unwrap()).collect();
        assert_eq!(chosen, [1, 1, 1, 1, 2, 2, 2, 0, 0]);
        assert_eq!(service.connect(), None, "all exceed their weight");
    }

    #[test]
    fn inactive_connections_take_no_room() {
        let mut service = Service::new("ovf", &[1, 2]);
        load(service.server(1), 2, 50);
        assert_eq!(service.next(), Some(1));
    }

    #[test]
    fn the_newest_of_equal_weights_fills_first() {
        let mut service = Service::new("ovf", &[1, 1]);
        service.add(9, 1).unwrap();
        let chosen: Vec<_> = (0..3).map(|_| service.connect().unwrap()).collect();
        assert_eq!(chosen, [9, 9, 0]);
        service.remove(0);
        assert_eq!(service.connect(), Some(1));
    }

    #[test]
    fn quiesced_and_overloaded_servers_get_nothing() {
        let mut service = Service::new("ovf", &[0, 9, 3]);
        overload(service.server(1));
        assert_eq!(service.next(), Some(2));
        service.set_weight(2, 0);
        assert_eq!(service.next(), None);
    }
}
