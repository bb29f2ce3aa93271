//! dht on a service whose list changes.

use super::*;
use crate::placement::name_hash;
use crate::testing::{Service, client, overload, server, servers};
use std::collections::HashMap;

fn options(sticky: bool, key: HashBy) -> Options {
    let placement = PlacementOptions { sticky, ..PlacementOptions::default() };
    Options { placement, key, ..Options::default() }
}

fn service(weights: &[i32], sticky: bool) -> Service {
    Service::with_options("dht", weights, &options(sticky, HashBy::Source))
}

fn clients() -> impl Iterator<Item = Key> {
    (0..2_000_u32).map(|host| client(&std::net::Ipv4Addr::from_bits(host).to_string(), 7))
}

/// Where all clients go.
fn placement(service: &mut Service) -> Vec<Option<u64>> {
    clients().map(|key| service.choose(&key)).collect()
}

/// Where the rule says they go.
fn expected(service: &Service, sticky: bool) -> Vec<Option<u64>> {
    let members: Vec<_> = service.servers.iter().map(|server| Member::of(server)).collect();
    let table = Table::build(&members, options(sticky, HashBy::Source).placement).unwrap();
    let owner = |key: Key| table.owner(key.hash_by(HashBy::Source));
    clients().map(|key| Some(service.servers[owner(key)?].id().0)).collect()
}

#[test]
fn after_every_change_keys_are_where_a_new_table_has_them() {
    for sticky in [false, true] {
        let mut service = service(&[], sticky);
        assert_eq!(service.next(), None);
        for id in 0..12 {
            service.add(id, 1 + id as i32 % 3).unwrap();
            assert_eq!(placement(&mut service), expected(&service, sticky), "{id} came");
        }
        service.add(99, 0).unwrap();
        for (id, weight) in [(3, 0), (5, 9), (3, 2), (99, 1), (99, 0), (4, i32::MAX)] {
            service.set_weight(id, weight);
            assert_eq!(placement(&mut service), expected(&service, sticky), "{id}: {weight}");
        }
        for id in [0, 11, 99, 6] {
            service.remove(id);
            assert_eq!(placement(&mut service), expected(&service, sticky), "{id} left");
        }
    }
}

#[test]
fn the_one_who_comes_back_gets_its_old_keys_and_nobody_elses() {
    for sticky in [false, true] {
        let mut service = service(&[1; 5], sticky);
        let before = placement(&mut service);
        service.set_weight(2, 0);
        let without = placement(&mut service);
        assert!(without.iter().all(|id| id.is_some_and(|id| id != 2)));
        service.set_weight(2, 1);
        assert_eq!(placement(&mut service), before);
        service.remove(2);
        service.add(2, 1).unwrap();
        assert_eq!(placement(&mut service), before, "and so does one that was removed");
        let moved = |(now, then): (&Option<u64>, &Option<u64>)| now != then && *then != Some(2);
        let others = without.iter().zip(&before).filter(|&pair| moved(pair)).count();
        // A fifth of the keys in the faithful form: (N + 1) / (3 N) - 1 / N.
        assert_eq!(sticky, others == 0, "{others}");
    }
}

#[test]
fn keys_of_an_overloaded_server_go_to_the_replica_and_on_along_the_row() {
    let mut service = service(&[1; 4], false);
    let members: Vec<_> = service.servers.iter().map(|server| Member::of(server)).collect();
    let table = Table::build(&members, PlacementOptions::default()).unwrap();
    for key in clients().take(20) {
        let row: Vec<_> = table.walk(key.hash_by(HashBy::Source)).collect();
        for &index in &row {
            assert_eq!(service.choose(&key), Some(index as u64));
            overload(&service.servers[index]);
        }
        assert_eq!(service.choose(&key), None, "all are overloaded");
        row.iter().for_each(|&index| service.servers[index].set_thresholds(0, 0));
    }
}

#[test]
fn a_weight_that_the_scheduler_has_not_been_told_of_yet_is_not_chosen() {
    let mut service = service(&[1; 3], true);
    let key = client("198.51.100.1", 7);
    let owner = service.choose(&key).unwrap();
    service.server(owner).set_weight(0);
    assert!(service.choose(&key).is_some_and(|id| id != owner));
}

#[test]
fn the_key_is_what_the_options_say() {
    let one = Key { name: name_hash("a.example"), ..client("198.51.100.1", 7) };
    let port = Key { source_port: 8, ..one };
    let target = Key { destination: "192.0.2.99".parse().unwrap(), ..one };
    let name = Key { name: name_hash("b.example"), ..one };
    let nameless = Key { name: None, ..one };
    for (by, matter) in [
        (HashBy::OfScheduler, [false, false, false, false]),
        (HashBy::Source, [false, false, false, false]),
        (HashBy::SourcePort, [true, false, false, false]),
        (HashBy::Destination, [false, true, false, false]),
        (HashBy::Tuple, [true, true, false, false]),
        (HashBy::Name, [false, false, true, true]),
    ] {
        let mut service = Service::with_options("dht", &[1; 500], &options(false, by));
        let own = service.choose(&one);
        // Of 500 servers it is hardly the same by chance: these keys are fixed, and are not.
        let found = [port, target, name, nameless].map(|key| service.choose(&key) != own);
        assert_eq!(found, matter, "{by:?}");
    }
}

#[test]
fn the_table_has_as_many_rows_as_the_options_say() {
    for variants in [1, 7, 512] {
        let placed = PlacementOptions { variants, sticky: false };
        let options = Options { placement: placed, ..options(false, HashBy::Source) };
        let mut service = Service::with_options("dht", &[1, 2, 3, 4, 5], &options);
        let members: Vec<_> = service.servers.iter().map(|server| Member::of(server)).collect();
        let table = Table::build(&members, placed).unwrap();
        let owner = |key: Key| table.owner(key.hash_by(HashBy::Source));
        let expected: Vec<_> =
            clients().map(|key| Some(service.servers[owner(key)?].id().0)).collect();
        assert_eq!(placement(&mut service), expected, "{variants}");
    }
}

#[test]
fn a_nameless_packet_goes_by_its_source() {
    let mut by_name = Service::with_options("dht", &[1; 50], &options(false, HashBy::Name));
    let mut by_source = service(&[1; 50], false);
    assert_eq!(placement(&mut by_name), placement(&mut by_source));
}

#[test]
fn more_servers_than_fit_are_refused_and_the_old_table_stays() {
    let options = Options {
        placement: PlacementOptions { variants: 65_535, sticky: false },
        ..Options::default()
    };
    let mut service = Service::with_options("dht", &[1; 2], &options);
    let before = placement(&mut service);
    let many: Vec<_> = (2..513).map(|id| server(id, 1)).chain(servers(&[1, 1])).collect();
    let refused = service.scheduler.changed(&many, Change::Bound);
    assert_eq!(refused, Err(TooManyServers { limit: 512 }));
    assert_eq!(placement(&mut service), before);
}

fn dht(list: &[Arc<Server>]) -> DistributedHashTable {
    let mut scheduler = DistributedHashTable::new(&Options::default());
    scheduler.changed(list, Change::Bound).unwrap();
    scheduler
}

#[test]
fn a_prepared_table_is_taken_and_the_old_one_outlives_the_lock() {
    let list = servers(&[1, 1, 1]);
    let mut scheduler = dht(&list);
    let old = Arc::downgrade(scheduler.table.as_ref().unwrap());
    let to_be: Vec<_> = list.iter().map(|server| Member::of(server).weighing(4)).collect();
    let prepared = scheduler.plan(&to_be).unwrap().run();
    scheduler.offer(&prepared);
    list.iter().for_each(|server| server.set_weight(4));
    let offered = scheduler.offered.clone().unwrap();
    scheduler.changed(&list, Change::Edited { index: 0 }).unwrap();
    assert!(Arc::ptr_eq(scheduler.table.as_ref().unwrap(), &offered));
    assert!(old.upgrade().is_some(), "it would be let go under the lock");
    drop(prepared);
    assert!(old.upgrade().is_none());
}

#[test]
fn what_was_prepared_for_another_list_is_not_taken() {
    let mut list = servers(&[1, 1, 1]);
    let mut scheduler = dht(&list);
    let to_be = [Member::of(&list[0]), Member::of(&list[1])];
    let prepared = scheduler.plan(&to_be).unwrap().run();
    scheduler.offer(&prepared);
    // Meanwhile it is the first that is removed, not the last.
    let id = list.remove(0).id();
    scheduler.changed(&list, Change::Removed { index: 0, id }).unwrap();
    let members: Vec<_> = list.iter().map(|server| Member::of(server)).collect();
    assert!(scheduler.table.as_ref().unwrap().is_of(&members));
    assert!(scheduler.offered.is_none(), "an offer is for one change");
    // What another scheduler has prepared is none of its business.
    scheduler.offer(&Prepared::new("a table of another kind"));
    assert!(scheduler.offered.is_none());
}

#[test]
fn there_is_nothing_to_prepare_for_a_list_that_it_has() {
    let list = servers(&[1, 0]);
    let scheduler = dht(&list);
    let members: Vec<_> = list.iter().map(|server| Member::of(server)).collect();
    assert!(scheduler.plan(&members).is_none());
    assert!(scheduler.plan(&members[..1]).is_some());
    let rr = crate::create("rr", &Options::default()).unwrap();
    assert!(rr.plan(&members).is_none());
}

#[test]
fn thresholds_alone_make_no_new_table() {
    let list = servers(&[1, 1]);
    let mut scheduler = dht(&list);
    let before = scheduler.table.clone().unwrap();
    list[0].set_thresholds(5, 2);
    scheduler.changed(&list, Change::Edited { index: 0 }).unwrap();
    assert!(Arc::ptr_eq(&before, scheduler.table.as_ref().unwrap()));
}

#[test]
fn every_server_gets_its_part_by_weight() {
    let mut service = service(&[1, 2, 5], true);
    let mut parts = HashMap::<_, u32>::new();
    placement(&mut service).into_iter().for_each(|id| *parts.entry(id).or_default() += 1);
    for (id, expected) in [(0, 250_u32), (1, 500), (2, 1250)] {
        assert!(parts[&Some(id)].abs_diff(expected) < 100, "{parts:?}");
    }
}
