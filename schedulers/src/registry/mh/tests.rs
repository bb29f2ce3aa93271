//! mh against values computed apart from it, and against the rules of the reference.
//!
//! The numbers come from a separate program that has SipHash-1-3 of its own (checked with the
//! published SipHash vector) and fills the table with Maglev's rule.

use super::*;
use crate::testing::{Service, client, load, overload, server, servers};

/// Clients with the slots of their address alone and of address and port.
const PLACED: [(&str, u16, usize, usize); 4] = [
    ("198.51.100.1", 1024, 2374, 350),
    ("203.0.113.200", 65535, 3310, 2747),
    ("2001:db8:1:2::33", 40000, 1650, 316),
    ("255.255.255.255", 1, 3432, 2495),
];

fn table(servers: &[Arc<Server>]) -> Vec<Option<usize>> {
    let mut slots = Slots::empty(TABLE_SIZE as usize);
    fill(&mut slots, servers);
    slots.indices(servers)
}

fn shares(table: &[Option<usize>], servers: usize) -> Vec<usize> {
    let of = |index| table.iter().filter(|&&owner| owner == Some(index)).count();
    (0..servers).map(of).collect()
}

#[test]
fn the_hash_is_half_of_siphash_1_3() {
    for (number, offset, skip) in [
        (0, 492_468_162, 4_169_286_463),
        (1, 384_591_538, 2_182_130_385),
        (0xC000_0201, 2_458_426_504, 3_338_568_677),
        (0xFFFF_FFFF, 583_391_001, 4_149_874_525),
    ] {
        assert_eq!(hash(number, OFFSET_KEY), offset, "{number:#x}");
        assert_eq!(hash(number, SKIP_KEY), skip, "{number:#x}");
    }
}

#[test]
fn tables_are_filled_as_by_the_kernel() {
    for (weights, expected, digest) in [
        (&[1, 1, 1][..], &[1365, 1364, 1364][..], 2_713_657_691),
        (&[4, 2, 1], &[2340, 1169, 584], 891_550_850),
        (&[100, 0, 250, 3], &[1175, 0, 2872, 46], 2_528_219_573),
        (&[i32::MAX, 1, 1_000_000], &[3969, 62, 62], 2_340_811_485),
    ] {
        let table = table(&servers(weights));
        assert_eq!(shares(&table, weights.len()), expected, "{weights:?}");
        let fold = |sum: u32, owner: &Option<usize>| {
            sum.wrapping_mul(31).wrapping_add(owner.unwrap() as u32 + 1)
        };
        assert_eq!(table.iter().fold(0, fold), digest, "{weights:?}");
    }
}

#[test]
fn clients_fall_where_the_kernels_hash_puts_them() {
    let list = servers(&[3, 2, 5, 1]);
    let owners = table(&list);
    let mut plain = Service::new("mh", &[3, 2, 5, 1]);
    let mut with_port = Service::with_flags("mh", &[3, 2, 5, 1], Flags::FLAG_2);
    for (address, port, by_address, by_port) in PLACED {
        let key = client(address, port);
        let owner = |slot: usize| owners[slot].map(|index| index as u64);
        assert_eq!(slot_of(fold_with_port(key.source, 0)), by_address);
        assert_eq!(plain.choose(&key), owner(by_address), "{address}");
        assert_eq!(with_port.choose(&key), owner(by_port), "{address} port {port}");
        let without_ports = Key { protocol: 50, ..key };
        assert_eq!(with_port.choose(&without_ports), owner(by_address));
    }
}

#[test]
fn a_key_of_ones_own_takes_the_place_of_the_address() {
    let owners = table(&servers(&[3, 2, 5, 1]));
    let options = Options { key: HashBy::Name, flags: Flags::FLAG_2, ..Options::default() };
    let mut service = Service::with_options("mh", &[3, 2, 5, 1], &options);
    for number in 0..50 {
        let key = Key { name: Some(7 << 32 | number), ..client("198.51.100.1", 1024) };
        let owner = owners[slot_of(number as u32)].map(|index| index as u64);
        assert_eq!(service.choose(&key), owner, "{number}");
    }
}

#[test]
fn quiescing_moves_no_slot_and_without_fallback_leaves_clients_alone() {
    let mut service = Service::new("mh", &[1, 1, 1]);
    let before = table(&service.servers);
    let key = client("198.51.100.1", 1024);
    let id = service.choose(&key).unwrap();
    service.set_weight(id, 0);
    assert_eq!(table(&service.servers), before);
    assert_eq!(service.choose(&key), None);
    service.set_weight(id, 1);
    assert_eq!(service.choose(&key), Some(id));
    overload(service.server(id));
    assert_eq!(service.choose(&key), None);
}

#[test]
fn the_fallback_probes_by_hashing_again() {
    let mut service = Service::with_flags("mh", &[1, 1, 1, 1], Flags::FLAG_1);
    let owners = table(&service.servers);
    let key = client("198.51.100.1", 1024);
    let id = service.choose(&key).unwrap();
    overload(service.server(id));
    let (_, _, own, _) = PLACED[0];
    let number = fold_with_port(key.source, 0);
    let probes =
        (0..TABLE_SIZE).map(|k| slot_of(number.wrapping_add((k + own as u32) % TABLE_SIZE)));
    let expected = probes.map(|slot| owners[slot].unwrap() as u64).find(|&other| other != id);
    assert_eq!(service.choose(&key), expected);
}

#[test]
fn the_fallback_finds_the_last_server_and_no_other() {
    let mut service = Service::with_flags("mh", &[1; 6], Flags::FLAG_1);
    (1..6).for_each(|id| service.set_weight(id, 0));
    for host in 0..50 {
        assert_eq!(service.choose(&client(&format!("198.51.100.{host}"), 1)), Some(0));
    }
    overload(service.server(0));
    assert_eq!(service.next(), None);
}

#[test]
fn a_server_added_with_weight_0_gets_no_slots() {
    let mut service = Service::with_flags("mh", &[0], Flags::FLAG_1);
    assert_eq!(service.next(), None, "no server ever had a weight");
    service.add(9, 1).unwrap();
    assert_eq!(service.next(), Some(9));
    assert_eq!(shares(&table(&service.servers), 2), [4093, 0]);
    service.remove(9);
    assert_eq!(service.next(), None);
}

#[test]
fn removing_one_of_ten_moves_few_clients_of_the_others() {
    let mut service = Service::new("mh", &[1; 10]);
    let keys: Vec<_> =
        (0..1000).map(|n| client(&format!("10.9.{}.{}", n / 250, n % 250), 1)).collect();
    let before: Vec<_> = keys.iter().map(|key| service.choose(key).unwrap()).collect();
    service.remove(4);
    let after = keys.iter().map(|key| service.choose(key).unwrap());
    let moved = before.iter().zip(after).filter(|(old, new)| **old != 4 && **old != *new).count();
    assert!(moved < 60, "{moved} of about 900 moved");
}

#[test]
fn load_and_list_order_of_choices_do_not_matter() {
    let mut service = Service::new("mh", &[1, 1]);
    let key = client("203.0.113.200", 1);
    let id = service.choose(&key);
    load(service.server(id.unwrap()), 1000, 1000);
    assert_eq!(service.choose(&key), id);
}

#[test]
fn one_server_more_than_slots_is_refused_and_the_old_table_stays() {
    let mut service = Service::new("mh", &[1; 4093]);
    let key = client("198.51.100.1", 1024);
    let id = service.choose(&key);
    assert!(id.is_some());
    assert_eq!(service.add(9000, 1), Err(TooManyServers { limit: 4093 }));
    assert_eq!(service.choose(&key), id, "the refused list must not be half in force");
    service.remove(9000);
    assert_eq!(service.choose(&key), id);
    assert!(table(&service.servers).iter().all(Option::is_some));
}

#[test]
fn large_weights_are_scaled_to_six_bits() {
    assert_eq!([0, 1, 63, 64, 127, 128].map(shift), [0, 0, 0, 1, 1, 2]);
    assert_eq!(shift(i32::MAX), 25);
    let turns = |weights: &[i32]| -> Vec<u32> {
        preferences(&servers(weights)).iter().map(|p| p.turns).collect()
    };
    assert_eq!(turns(&[600, 300, 100]), [6, 3, 1]);
    assert_eq!(turns(&[1000, 1]), [62, 1]);
    assert_eq!(turns(&[-5, 4]), [1]);
    assert!(preferences(&[server(1, 0)]).is_empty());
}
