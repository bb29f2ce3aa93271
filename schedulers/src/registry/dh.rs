//! Destination hashing (dh): the same server for the same destination address.
//!
//! Follows `ip_vs_dh.c`. 256 slots are dealt out to the servers in list order, one each, round and
//! round; weight does not matter. There is no fallback: when the slot's server is not eligible the
//! packet has no destination. Meant for transparent proxies and caches behind a firewall mark.
//!
//! With a key of one's own ([`HashBy`]) the lower half of its hash takes the place of the address.

use crate::address::{fold, spread};
use crate::placement::HashBy;
use crate::remembered::Remembered;
use crate::slots::Slots;
use crate::weight::weight_words;
use crate::{Change, Entry, Key, Options, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "dh",
    summary: "destination hashing: the same server for the same destination address",
    create: |options| Box::new(DestinationHashing::new(options)),
};

/// log2 of the number of slots (`CONFIG_IP_VS_DH_TAB_BITS`).
const SLOT_BITS: u32 = 8;

#[derive(Debug)]
struct DestinationHashing {
    slots: Slots,
    by: HashBy,
}

impl DestinationHashing {
    fn new(options: &Options) -> DestinationHashing {
        DestinationHashing { slots: Slots::empty(1 << SLOT_BITS), by: options.key }
    }

    fn slot(&self, key: &Key) -> usize {
        let number = match self.by {
            HashBy::OfScheduler => fold(key.destination),
            by => key.hash_by(by) as u32,
        };
        spread(number, SLOT_BITS)
    }
}

impl Scheduler for DestinationHashing {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        if !matches!(change, Change::Edited { .. } | Change::Replaced { .. }) {
            let in_turn = (0..servers.len()).cycle();
            self.slots.deal(in_turn.filter_map(|index| Remembered::at(servers, index)));
        }
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], key: &Key, _: Duration) -> Option<usize> {
        self.slots.choose(servers, self.slot(key))
    }

    fn fork(&self, _: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(DestinationHashing { slots: self.slots.clone(), by: self.by })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        weight_words(server)
    }

    fn bearings(&self, servers: &[Arc<Server>], key: &Key) -> String {
        self.slots.words(servers, self.slot(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Service, destination, overload, servers};

    /// Destinations with the slots that the kernel's hash gives them.
    const PLACED: [(&str, usize); 4] =
        [("203.0.113.9", 64), ("192.0.2.10", 162), ("2001:db8::80", 248), ("10.255.0.1", 232)];

    #[test]
    fn destinations_fall_where_the_kernels_hash_puts_them() {
        // 256 servers, so that the server's id is the slot.
        let mut service = Service::new("dh", &[1; 256]);
        for (address, slot) in PLACED {
            assert_eq!(service.choose(&destination(address)), Some(slot as u64), "{address}");
        }
    }

    #[test]
    fn slots_are_dealt_in_turn_whatever_the_weight() {
        let list = servers(&[1, 50, 0]);
        let mut scheduler = DestinationHashing::new(&Options::default());
        scheduler.changed(&list, Change::Bound).unwrap();
        let expected: Vec<_> = (0..256).map(|slot| Some(slot % 3)).collect();
        assert_eq!(scheduler.slots.indices(&list), expected);
    }

    #[test]
    fn the_client_does_not_matter() {
        let mut service = Service::new("dh", &[1; 16]);
        let mut key = destination("203.0.113.9");
        let chosen = service.choose(&key);
        key.source = "2001:db8::1".parse().unwrap();
        key.source_port = 1;
        key.destination_port = 443;
        assert_eq!(service.choose(&key), chosen);
    }

    #[test]
    fn a_key_of_ones_own_takes_the_place_of_the_address() {
        let options = Options { key: HashBy::Name, ..Options::default() };
        let mut service = Service::with_options("dh", &[1; 256], &options);
        for (slot, number) in [(64, 0xCB00_7109), (162, 0xABCD_C000_020A)] {
            let key = Key { name: Some(number), ..destination("10.0.0.1") };
            assert_eq!(service.choose(&key), Some(slot));
        }
    }

    #[test]
    fn there_is_no_fallback_from_a_quiesced_or_overloaded_server() {
        let mut service = Service::new("dh", &[1, 1]);
        let key = destination("203.0.113.9");
        let id = service.choose(&key).unwrap();
        service.set_weight(id, 0);
        assert_eq!(service.choose(&key), None);
        service.set_weight(id, 5);
        assert_eq!(service.choose(&key), Some(id));
        overload(service.server(id));
        assert_eq!(service.choose(&key), None);
    }

    #[test]
    fn adding_and_removing_deals_anew_and_editing_does_not() {
        let mut list = servers(&[1, 1, 1]);
        let mut scheduler = DestinationHashing::new(&Options::default());
        scheduler.changed(&list, Change::Bound).unwrap();
        let removed = list.remove(0);
        // Told of an edit only, the slots still belong to the old list.
        scheduler.changed(&list, Change::Edited { index: 0 }).unwrap();
        assert_eq!(scheduler.slots.indices(&list)[..3], [None, Some(0), Some(1)]);
        let change = Change::Removed { index: 0, id: removed.id() };
        scheduler.changed(&list, change).unwrap();
        assert_eq!(scheduler.slots.shares(&list), [128, 128]);
        list.clear();
        scheduler.changed(&list, change).unwrap();
        assert_eq!(scheduler.choose(&list, &destination("203.0.113.9"), Duration::ZERO), None);
    }
}
