//! The fallback server: who takes new connections when all others have failed.

use super::*;
use crate::control::api::OnRefusal;
use crate::dispatch::service::Service;
use crate::health::servers::{Servers, Standing};

const ONE: &str = "10.77.0.11:80";
const SORRY: &str = "10.77.0.99:8080";
const OTHER: &str = "10.77.0.98:8080";

fn declared(fallback: Option<&str>) -> [DeclaredService; 1] {
    [DeclaredService {
        service: service(),
        servers: vec![server(ONE)],
        fallback: fallback.map(server),
        health: ServiceHealth::default(),
    }]
}

fn declare(table: &Table, fallback: Option<&str>) -> usize {
    table.declare(&declared(fallback), &[], NOW).unwrap().made
}

fn chosen(service: &Service) -> Option<SocketAddr> {
    let key = schedulers::Key {
        protocol: 6,
        source: "198.51.100.7".parse().unwrap(),
        source_port: 5000,
        destination: "192.0.2.10".parse().unwrap(),
        destination_port: 80,
        name: None,
    };
    Some(service.schedule(&key, NOW)?.binding.server.address())
}

fn fallback(table: &Table) -> Option<String> {
    let view = table.service_views().remove(0);
    view.fallback.map(|server| server.spec.address.to_string())
}

fn nat(address: &str) -> Interest {
    Interest::NatServer(6, address.parse().unwrap())
}

#[test]
fn new_connections_go_to_it_while_that_is_said_by_every_scheduler() {
    for entry in schedulers::REGISTRY {
        let table = table();
        declare(&table, Some(SORRY));
        let spec = ServiceSpec { scheduler: entry.name.into(), ..service() };
        done(&table, Command::EditService { service: spec });
        let service = table.service(&key()).unwrap();
        assert_eq!(chosen(&service), ONE.parse().ok(), "{}", entry.name);
        table.stand(&key(), ONE.parse().unwrap(), Standing { is_admitted: false, permille: 1000 });
        assert_eq!(chosen(&service), None);
        assert!(table.fall_back(&key(), true));
        assert_eq!(chosen(&service), SORRY.parse().ok());
        assert!(table.fall_back(&key(), false));
        assert_eq!(chosen(&service), None);
    }
}

#[test]
fn a_reload_brings_changes_and_removes_it() {
    let table = table();
    assert_eq!(declare(&table, None), 2);
    assert!(!table.fall_back(&key(), false), "there is none");
    assert_eq!(declare(&table, Some(SORRY)), 1);
    assert_eq!(fallback(&table).as_deref(), Some(SORRY));
    assert!(table.interests().contains(&nat(SORRY)), "its answers come to us");
    assert_eq!(declare(&table, Some(SORRY)), 0);
    table.fall_back(&key(), true);
    let service = table.service(&key()).unwrap();
    assert_eq!(declare(&table, Some(OTHER)), 1);
    assert_eq!(chosen(&service), OTHER.parse().ok());
    let interests = table.interests();
    assert!(interests.contains(&nat(OTHER)));
    let binding = service.choice().fallback().unwrap().binding.id();
    assert_eq!((declare(&table, Some(SORRY)), declare(&table, Some(OTHER))), (1, 1));
    assert_eq!(service.choice().fallback().unwrap().binding.id(), binding, "it is the same one");
    assert_eq!(declare(&table, None), 1);
    assert_eq!(fallback(&table), None);
    table.sweep(NOW + super::super::trash::TRASH_TIME);
    let interests = table.interests();
    assert!(!interests.contains(&nat(OTHER)) && !interests.contains(&nat(SORRY)));
}

#[test]
fn it_is_steered_to_us_and_kept_resolved_like_any_server() {
    let table = table();
    declare(&table, Some(SORRY));
    let tidings = table.tidings();
    assert!(tidings.added.contains(&nat(SORRY)) && tidings.other_servers);
    assert!(table.server_addresses().contains(&"10.77.0.99".parse().unwrap()));
    declare(&table, None);
    table.sweep(NOW + super::super::trash::TRASH_TIME);
    let tidings = table.tidings();
    assert!(tidings.removed.contains(&nat(SORRY)));
    assert!(!table.server_addresses().contains(&"10.77.0.99".parse().unwrap()));
}

#[test]
fn an_operator_who_removes_a_service_and_adds_it_again_has_it_again() {
    let table = table();
    declare(&table, Some(SORRY));
    let anew = [Command::Flush, Command::AddService { service: service() }];
    anew.iter().for_each(|command| done(&table, command.clone()));
    assert_eq!(fallback(&table).as_deref(), Some(SORRY));
    let outcome = table.batch(anew.to_vec(), OnRefusal::Undo, NOW);
    assert_eq!((outcome.applied, fallback(&table).as_deref()), (2, Some(SORRY)));
}

#[test]
fn one_of_the_servers_may_be_the_fallback_server_too_and_is_removed_by_itself() {
    let table = table();
    declare(&table, Some(ONE));
    let service = table.service(&key()).unwrap();
    done(&table, Command::DeleteServer { service: key(), server: ONE.parse().unwrap() });
    table.fall_back(&key(), true);
    assert_eq!(chosen(&service), ONE.parse().ok());
    done(&table, Command::AddServer { service: key(), server: server(ONE) });
    assert_eq!(declare(&table, None), 1);
    table.fall_back(&key(), false);
    assert_eq!(chosen(&service), ONE.parse().ok());
}

#[test]
fn a_file_with_an_impossible_one_is_refused() {
    let table = table();
    for wrong in ["[fd77::11]:80", "224.0.0.1:80"] {
        let refused = table.declare(&declared(Some(wrong)), &[], NOW).unwrap_err();
        assert_eq!(refused.service, Some(key()));
    }
    assert!(table.service_views().is_empty());
}
