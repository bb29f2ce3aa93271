//! The kernel's map follows the configuration.

use super::frames::{frame, ip, ports};
use super::*;
use crate::steer::{Key, Kind, MarkedSet, SteerError, Wanted};

fn services(count: u16) -> KeySet {
    let mut keys = KeySet::new();
    for port in 1..=count {
        keys.add_service(6, "192.0.2.10".parse().unwrap(), port);
    }
    keys
}

fn to_port(port: u16) -> Vec<u8> {
    frame(&ip("198.51.100.7", "192.0.2.10", 6, &ports(40000, port)))
}

/// What is in the kernel's map, sorted.
fn in_kernel(table: &Steering) -> Vec<Vec<u8>> {
    let mut keys = table.map().keys().expect("a list of keys");
    keys.sort();
    keys
}

fn expected(keys: &KeySet) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = keys.iter().map(|key| key.to_bytes().to_vec()).collect();
    keys.sort();
    keys
}

fn table(capacity: u32) -> Option<Steering> {
    match Steering::new(capacity) {
        Err(MapError::NotPermitted { .. }) => {
            eprintln!("skipped: needs root to create eBPF maps");
            None
        }
        table => Some(table.expect("a map")),
    }
}

#[test]
fn a_running_program_follows_every_change_of_the_services() {
    let Some(mut programs) = Programs::load(&services(2), None) else {
        return;
    };
    assert!(programs.steers(&to_port(1)) && programs.steers(&to_port(2)));
    let mut changed = services(1);
    changed.add_service(6, "192.0.2.10".parse().unwrap(), 3);
    programs.table.sync(&changed).unwrap();
    let steered = [1, 2, 3].map(|port| programs.steers(&to_port(port)));
    assert_eq!(steered, [true, false, true]);
    programs.table.sync(&KeySet::new()).unwrap();
    assert!(!programs.steers(&to_port(1)));
    assert!(in_kernel(&programs.table).is_empty());
}

#[test]
fn a_configuration_that_does_not_fit_is_refused_and_changes_nothing() {
    let Some(mut table) = table(8) else { return };
    let (fits, too_many) = (services(7), services(8));
    table.sync(&fits).unwrap();
    let error = table.sync(&too_many).unwrap_err();
    assert!(matches!(error, SteerError::Full { needed: 9, capacity: 8 }), "{error}");
    assert_eq!(in_kernel(&table), expected(&fits));
}

#[test]
fn a_full_table_can_be_exchanged_for_another_that_fits() {
    let Some(mut table) = table(8) else { return };
    table.sync(&services(7)).unwrap();
    let mut other = KeySet::new();
    for port in 1..=7 {
        other.add_nat_server(17, "10.0.0.21".parse().unwrap(), port);
    }
    table.sync(&other).unwrap();
    assert_eq!(in_kernel(&table), expected(&other));
}

#[test]
fn following_changes_leaves_in_the_map_what_a_whole_configuration_would() {
    let Some(mut table) = table(64) else { return };
    let mut wanted = Wanted::default();
    let mut random = 1_u32;
    for _ in 0..200 {
        for _ in 0..5 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let port = (random >> 28) as u16;
            let key = Key::new(Kind::Service, 6, "192.0.2.10".parse().unwrap(), 1 + port);
            for key in [key, key.of_fragments()] {
                if random & 1 << 20 == 0 { wanted.remove(key) } else { wanted.add(key) }
            }
        }
        table.follow(&mut wanted).unwrap();
        assert_eq!(in_kernel(&table), expected(&wanted.to_set(MarkedSet::default())));
    }
}

#[test]
fn what_did_not_fit_follows_when_there_is_room() {
    let Some(mut table) = table(2) else { return };
    let mut wanted = Wanted::default();
    let keys = [1, 2, 3].map(|port| Key::new(Kind::Server, 6, "10.0.0.21".parse().unwrap(), port));
    keys.iter().for_each(|key| wanted.add(*key));
    let error = table.follow(&mut wanted).unwrap_err();
    assert!(matches!(error, SteerError::Full { needed: 3, capacity: 2 }), "{error}");
    assert!(in_kernel(&table).is_empty());
    wanted.remove(keys[1]);
    table.follow(&mut wanted).unwrap();
    assert_eq!(in_kernel(&table), expected(&wanted.to_set(MarkedSet::default())));
}
