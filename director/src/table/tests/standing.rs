//! What health makes of weights, and what operators, reloads and batches make of that.

use super::*;
use crate::control::api::{Bias, BiasWindow, OnRefusal};
use crate::health::servers::{Pool, Servers, Standing};

const ONE: &str = "10.77.0.11:80";
const TWO: &str = "10.77.0.12:80";
const DOWN: Standing = Standing { is_admitted: false, permille: 1000 };
const HALF: Standing = Standing { is_admitted: true, permille: 500 };

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn weighing(address: &str, weight: i32) -> ServerSpec {
    ServerSpec { weight, ..server(address) }
}

/// A table with two servers, of weight 10 each.
fn two() -> Table {
    let table = table();
    done(&table, Command::AddService { service: service() });
    for address in [TWO, ONE] {
        done(&table, Command::AddServer { service: key(), server: weighing(address, 10) });
    }
    table
}

fn stand(table: &Table, server: &str, standing: Standing) -> Option<(i32, i32)> {
    table.stand(&key(), address(server), standing)
}

/// Configured and effective weight of each server, newest first.
fn weights(table: &Table) -> Vec<(i32, i32)> {
    let view = table.service_views().remove(0);
    view.servers.iter().map(|server| (server.spec.weight, server.effective_weight)).collect()
}

/// Whether a new connection finds a server.
fn is_served(table: &Table) -> bool {
    let service = table.service(&key()).unwrap();
    let key = schedulers::Key {
        protocol: 6,
        source: "198.51.100.7".parse().unwrap(),
        source_port: 5000,
        destination: "192.0.2.10".parse().unwrap(),
        destination_port: 80,
        name: None,
    };
    service.schedule(&key, NOW).is_some()
}

#[test]
fn neither_health_nor_operator_overwrites_what_the_other_has_said() {
    let table = two();
    assert_eq!(stand(&table, ONE, DOWN), Some((10, 0)));
    assert_eq!(weights(&table), [(10, 0), (10, 10)]);
    done(&table, Command::EditServer { service: key(), server: weighing(ONE, 30) });
    assert_eq!(weights(&table), [(30, 0), (10, 10)], "what it will have when it is back");
    assert_eq!(stand(&table, ONE, HALF), Some((0, 15)));
    done(&table, Command::EditServer { service: key(), server: weighing(ONE, 0) });
    assert_eq!(stand(&table, ONE, Standing::UNCHECKED), Some((0, 0)), "still quiesced");
    done(&table, Command::EditServer { service: key(), server: weighing(ONE, 7) });
    assert_eq!(weights(&table), [(7, 7), (10, 10)]);
}

#[test]
fn a_failed_server_gets_nothing_and_the_scheduler_hears_of_it_by_every_scheduler() {
    for entry in schedulers::REGISTRY {
        let table = two();
        let spec = ServiceSpec { scheduler: entry.name.into(), ..service() };
        done(&table, Command::EditService { service: spec });
        for server in [ONE, TWO] {
            stand(&table, server, DOWN);
        }
        assert!(!is_served(&table), "{}", entry.name);
        for server in [ONE, TWO] {
            stand(&table, server, Standing::UNCHECKED);
        }
        assert!(is_served(&table), "{}", entry.name);
    }
}

#[test]
fn a_standing_outlasts_reloads_batches_and_removal_as_long_as_the_server_is_remembered() {
    let table = table();
    let declare = |servers: &[ServerSpec]| {
        let declared = [DeclaredService {
            service: service(),
            servers: servers.to_vec(),
            fallback: None,
            health: ServiceHealth::default(),
        }];
        table.declare(&declared, &[], NOW).unwrap();
    };
    declare(&[weighing(ONE, 10)]);
    stand(&table, ONE, DOWN);
    declare(&[weighing(ONE, 20), weighing(TWO, 5)]);
    assert_eq!(weights(&table), [(5, 5), (20, 0)]);

    // A whole table in one go, as a restore does.
    let anew = vec![
        Command::Flush,
        Command::AddService { service: ServiceSpec { scheduler: "rr".into(), ..service() } },
        Command::AddServer { service: key(), server: weighing(ONE, 8) },
    ];
    assert_eq!(table.batch(anew, OnRefusal::Undo, NOW).refused, []);
    assert_eq!(weights(&table), [(8, 0)]);

    done(&table, Command::DeleteServer { service: key(), server: address(ONE) });
    done(&table, Command::AddServer { service: key(), server: weighing(ONE, 3) });
    assert_eq!(weights(&table), [(3, 0)], "it is the same one");
    done(&table, Command::DeleteServer { service: key(), server: address(ONE) });
    table.sweep(NOW + super::super::trash::TRASH_TIME);
    done(&table, Command::AddServer { service: key(), server: weighing(ONE, 3) });
    assert_eq!(weights(&table), [(3, 3)], "it is another one");
}

#[test]
fn health_knows_the_servers_as_they_were_asked_for_and_of_what_is_not_there_nothing() {
    let table = two();
    let local = server("10.77.0.1:80");
    done(&table, Command::AddServer { service: key(), server: local.clone() });
    stand(&table, ONE, DOWN);
    let servers = vec![local, weighing(ONE, 10), weighing(TWO, 10)];
    assert_eq!(table.pool(&key()), Some(Pool { servers }));
    let ServiceKey::Address { address: vip, .. } = key() else { unreachable!() };
    let other = ServiceKey::Address { protocol: Protocol::Udp, address: vip };
    assert_eq!(table.pool(&other), None);
    assert_eq!(table.stand(&other, address(ONE), DOWN), None);
    assert_eq!(stand(&table, "10.77.0.13:80", DOWN), None);
    assert!(!table.report(&key(), address("10.77.0.13:80"), Some(1)));
    assert!(!table.fall_back(&other, true));
}

#[test]
fn scheduler_load_goes_by_what_is_reported() {
    let table = two();
    let spec = ServiceSpec { scheduler: "load".into(), ..service() };
    done(&table, Command::EditService { service: spec });
    let service = table.service(&key()).unwrap();
    let chosen = || {
        let key = schedulers::Key {
            protocol: 6,
            source: "198.51.100.7".parse().unwrap(),
            source_port: 5000,
            destination: "192.0.2.10".parse().unwrap(),
            destination_port: 80,
            name: None,
        };
        service.schedule(&key, NOW).unwrap().binding.server.address()
    };
    for (one, two, expected) in [(9000, 100, TWO), (100, 9000, ONE)] {
        assert!(table.report(&key(), address(ONE), Some(one)));
        assert!(table.report(&key(), address(TWO), Some(two)));
        assert_eq!(chosen(), address(expected));
    }
}

/// A scheduler that is made anew forgets whom it had chosen last.
#[test]
fn an_edit_of_the_bias_makes_another_scheduler_and_one_that_does_not_speak_of_it_does_not() {
    let table = two();
    let edit = |extras: Option<Extras>| {
        let spec = ServiceSpec { scheduler: "wlc".into(), extras, ..service() };
        done(&table, Command::EditService { service: spec });
    };
    let ilb = Extras { bias: Bias::Ilb(2), ..Extras::default() };
    let watches = || {
        let service = table.service(&key()).unwrap();
        let choice = service.choice();
        let load = &choice.members()[0].server.load;
        load.connection_opened();
        load.handshake_begun();
        let count = load.in_progress();
        load.handshake_ended();
        load.connection_closed(false);
        count > 0
    };
    assert!(!watches());
    edit(Some(ilb));
    assert!(watches());
    edit(None);
    assert_eq!(table.service_views()[0].spec.extras, Some(ilb));
    for window in [99, 60_001] {
        let extras = Some(Extras { bias_window: BiasWindow(window), ..ilb });
        let spec = ServiceSpec { extras, ..service() };
        let refused = table.change(Command::EditService { service: spec }, NOW).unwrap_err();
        assert!(refused.message.contains(&format!("bias_window {window}")), "{refused:?}");
    }
}
