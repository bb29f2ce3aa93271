//! Source hashing (sh): the same server for the same client address, and with `sh-port` port.
//!
//! Follows `ip_vs_sh.c` of kernels that hash with `hash_32` (older ones keep the product's low
//! bits and place clients elsewhere). 256 slots are dealt out in list order, as many to each server
//! as its weight, round and round; a quiesced server still gets one a round. All slots are dealt
//! anew at every change, and many clients move.
//!
//! With a key of one's own ([`HashBy`]) the lower half of its hash takes the place of the address, and
//! `sh-port` does not count.
//!
//! Without `sh-fallback` a slot whose server is not eligible has no destination. With it, slots
//! `2h`, `2h + 1` ... are tried, *h* being the client's own.

use crate::address::{client_number, spread};
use crate::placement::HashBy;
use crate::remembered::Remembered;
use crate::slots::Slots;
use crate::weight::weight_words;
use crate::{Change, Entry, Flags, Key, Options, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "sh",
    summary: "source hashing: the same server for the same client address",
    create: |options| Box::new(SourceHashing::new(options)),
};

/// log2 of the number of slots (`CONFIG_IP_VS_SH_TAB_BITS`, default).
const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;

#[derive(Debug)]
struct SourceHashing {
    slots: Slots,
    falls_back: bool,
    uses_port: bool,
    by: HashBy,
}

impl SourceHashing {
    fn new(options: &Options) -> SourceHashing {
        SourceHashing {
            slots: Slots::empty(SLOTS),
            falls_back: options.flags.contains(Flags::FLAG_1),
            uses_port: options.flags.contains(Flags::FLAG_2),
            by: options.key,
        }
    }
}

impl Scheduler for SourceHashing {
    fn changed(&mut self, servers: &[Arc<Server>], _: Change) -> Result<(), TooManyServers> {
        let in_turn = (0..servers.len()).cycle();
        self.slots.deal(in_turn.flat_map(|index| {
            let share = servers[index].weight().clamp(1, SLOTS as i32) as usize;
            Remembered::at(servers, index).into_iter().cycle().take(share)
        }));
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], key: &Key, _: Duration) -> Option<usize> {
        let own = spread(client_number(key, self.by, self.uses_port), SLOT_BITS);
        if self.falls_back {
            let slot_at = |offset| (own + offset) % SLOTS;
            self.slots.choose_or_fall_back(servers, own, slot_at)
        } else {
            self.slots.choose(servers, own)
        }
    }

    fn fork(&self, _: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(SourceHashing { slots: self.slots.clone(), ..*self })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        weight_words(server)
    }

    fn bearings(&self, servers: &[Arc<Server>], key: &Key) -> String {
        let slot = spread(client_number(key, self.by, self.uses_port), SLOT_BITS);
        let falls_back = if self.falls_back { ", or the next that can be used" } else { "" };
        format!("{}{falls_back}", self.slots.words(servers, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Service, client, overload, servers};

    /// Clients with the slots of their address alone and of address and port.
    const PLACED: [(&str, u16, u64, u64); 4] = [
        ("198.51.100.1", 1024, 96, 130),
        ("203.0.113.200", 65535, 52, 89),
        ("2001:db8:1:2::33", 40000, 99, 7),
        ("255.255.255.255", 1, 158, 0),
    ];

    fn shares(weights: &[i32]) -> Vec<usize> {
        let list = servers(weights);
        let mut scheduler = SourceHashing::new(&Options::default());
        scheduler.changed(&list, Change::Bound).unwrap();
        scheduler.slots.shares(&list)
    }

    #[test]
    fn clients_fall_where_the_kernels_hash_puts_them() {
        // 256 servers, so that the server's id is the slot.
        let mut plain = Service::new("sh", &[1; 256]);
        let mut with_port = Service::with_flags("sh", &[1; 256], Flags::FLAG_2);
        for (address, port, by_address, by_port) in PLACED {
            let key = client(address, port);
            assert_eq!(plain.choose(&key), Some(by_address), "{address}");
            assert_eq!(with_port.choose(&key), Some(by_port), "{address} port {port}");
        }
    }

    #[test]
    fn a_key_of_ones_own_takes_the_place_of_the_address() {
        let options = Options { key: HashBy::Name, flags: Flags::FLAG_2, ..Options::default() };
        let mut service = Service::with_options("sh", &[1; 256], &options);
        let named = |name| Key { name: Some(name), ..client("198.51.100.1", 1024) };
        // Slot 96 is where the number 198.51.100.1 falls, whatever the upper half.
        assert_eq!(service.choose(&named(0xC633_6401)), Some(96));
        assert_eq!(service.choose(&named(0x1234_5678_C633_6401)), Some(96));
        assert_eq!(service.choose(&named(1)), Some(0x61));
        let other_port = Key { source_port: 99, ..client("198.51.100.1", 1024) };
        let nameless = service.choose(&client("198.51.100.1", 1024));
        assert_eq!(service.choose(&other_port), nameless, "a nameless one goes by its address");
    }

    #[test]
    fn a_protocol_without_ports_is_hashed_by_address_even_with_sh_port() {
        let mut service = Service::with_flags("sh", &[1; 256], Flags::FLAG_2);
        let (address, port, by_address, _) = PLACED[0];
        let key = Key { protocol: 50, ..client(address, port) };
        assert_eq!(service.choose(&key), Some(by_address));
    }

    #[test]
    fn slots_go_by_weight_in_runs() {
        let list = servers(&[2, 1, 0]);
        let mut scheduler = SourceHashing::new(&Options::default());
        scheduler.changed(&list, Change::Bound).unwrap();
        let round = [0, 0, 1, 2].map(Some);
        let expected: Vec<_> = round.into_iter().cycle().take(256).collect();
        assert_eq!(scheduler.slots.indices(&list), expected);
    }

    #[test]
    fn servers_at_the_end_go_short_when_weights_exceed_the_slots() {
        assert_eq!(shares(&[200, 100, 100]), [200, 56, 0]);
        assert_eq!(shares(&[i32::MAX, 1]), [256, 0]);
        assert_eq!(shares(&[0, 0]), [128, 128]);
    }

    #[test]
    fn without_fallback_the_clients_of_a_quiesced_server_have_no_destination() {
        let mut service = Service::new("sh", &[1; 4]);
        let key = client("198.51.100.1", 1024);
        let id = service.choose(&key).unwrap();
        overload(service.server(id));
        assert_eq!(service.choose(&key), None);
        service.server(id).set_thresholds(0, 0);
        service.set_weight(id, 0);
        assert_eq!(service.choose(&key), None);
    }

    #[test]
    fn the_fallback_starts_at_twice_the_slot() {
        let mut service = Service::with_flags("sh", &[1; 256], Flags::FLAG_1);
        let (address, port, own, _) = PLACED[0];
        let key = client(address, port);
        assert_eq!(service.choose(&key), Some(own));
        overload(service.server(own));
        assert_eq!(service.choose(&key), Some(own * 2 % 256));
        overload(service.server(own * 2 % 256));
        assert_eq!(service.choose(&key), Some((own * 2 + 1) % 256));
    }

    #[test]
    fn the_fallback_finds_the_last_server_and_no_other() {
        let mut service = Service::with_flags("sh", &[1; 5], Flags::FLAG_1);
        (1..5).for_each(|id| service.set_weight(id, 0));
        for host in 0..200 {
            assert_eq!(service.choose(&client(&format!("198.51.100.{host}"), 1)), Some(0));
        }
        service.set_weight(0, 0);
        assert_eq!(service.next(), None);
    }

    #[test]
    fn every_change_deals_anew() {
        let mut service = Service::new("sh", &[1]);
        assert_eq!(service.next(), Some(0));
        service.add(9, 255).unwrap();
        let mut chosen = std::collections::BTreeMap::<_, u32>::new();
        for host in 0..256 {
            let key = client(&format!("198.51.{host}.7"), 1);
            *chosen.entry(service.choose(&key)).or_default() += 1;
        }
        assert!(chosen[&Some(9)] > 240, "{chosen:?}");
        service.remove(9);
        assert_eq!(service.next(), Some(0));
        service.remove(0);
        assert_eq!(service.next(), None);
    }
}
