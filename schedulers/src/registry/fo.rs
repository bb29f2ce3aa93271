//! Weighted failover (fo): the eligible server of the highest weight gets everything.
//!
//! Follows `ip_vs_fo.c`. The next highest takes over when it is quiesced or overloaded.

use crate::Entry;
use crate::least::Least;
use crate::weight::{lightness, weight_words};

pub(crate) const ENTRY: Entry = Entry {
    name: "fo",
    summary: "weighted failover: all to the eligible server of the highest weight",
    create: |_| Box::new(Least::by(lightness, weight_words)),
};

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
