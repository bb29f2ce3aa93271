//! Many changes as one: all of them or none, and nothing in between that a packet would notice.

use proptest::prelude::*;
use schedulers::Key;

use super::followers::any_command;
use super::*;
use crate::control::api::OnRefusal;

fn client() -> Key {
    Key {
        protocol: 6,
        source: "198.51.100.7".parse().unwrap(),
        source_port: 5000,
        destination: "192.0.2.10".parse().unwrap(),
        destination_port: 80,
        name: None,
    }
}

fn add(service: ServiceSpec, servers: &[&str]) -> Vec<Command> {
    let key = service.key;
    let servers = servers.iter().rev().map(|address| server(address));
    let servers = servers.map(|server| Command::AddServer { service: key, server });
    [Command::AddService { service }].into_iter().chain(servers).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_or_nothing_ends_as_one_by_one_or_changes_nothing(
        before in prop::collection::vec(any_command(), 0..25),
        mut commands in prop::collection::vec(any_command(), 1..40),
        all_can_be in any::<bool>(),
    ) {
        let (rehearsal, one_by_one, as_one) = (table(), table(), table());
        for table in [&rehearsal, &one_by_one, &as_one] {
            table.batch(before.clone(), OnRefusal::Continue, NOW);
        }
        if all_can_be {
            commands.retain(|command| rehearsal.change(command.clone(), NOW).is_ok());
        }
        let untouched = as_one.service_views();
        let expected = one_by_one.batch(commands.clone(), OnRefusal::Stop, NOW);
        let outcome = as_one.batch(commands, OnRefusal::Undo, NOW);
        prop_assert_eq!(&outcome.refused, &expected.refused);
        if outcome.refused.is_empty() {
            prop_assert_eq!(outcome.applied, expected.applied);
            prop_assert_eq!(as_one.service_views(), one_by_one.service_views());
            prop_assert_eq!(as_one.marks(), one_by_one.marks());
            prop_assert_eq!(
                as_one.shared().settings.all(),
                one_by_one.shared().settings.all()
            );
        } else {
            prop_assert_eq!(outcome.applied, 0);
            prop_assert_eq!(as_one.service_views(), untouched);
        }
    }
}

#[test]
fn a_table_restored_over_itself_keeps_its_connections_and_is_never_empty() {
    let table = Arc::new(table());
    let servers = ["10.77.0.11:80", "10.77.0.12:80"];
    table.batch(add(service(), &servers), OnRefusal::Stop, NOW);
    let find = |table: &Table| {
        let services = table.published().load_full();
        services.find(6, "192.0.2.10".parse().unwrap(), 80).cloned()
    };
    let first = find(&table).unwrap().schedule(&client(), NOW).unwrap().binding.server.clone();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let worker = std::thread::spawn({
        let (table, stop, first) = (table.clone(), stop.clone(), first.clone());
        move || {
            let mut packets = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) || packets == 0 {
                let service = find(&table).expect("the service is gone");
                assert!(service.schedule(&client(), NOW).is_some(), "no server");
                assert!(first.is_available(), "a connection's server is gone");
                packets += 1;
            }
        }
    });
    for round in 0..300 {
        // Another order, another scheduler and another server, from time to time.
        let mut file = vec![Command::Flush];
        let (scheduler, third) = [("wlc", "10.77.0.13:80"), ("rr", "10.77.0.14:80")][round % 2];
        let service = ServiceSpec { scheduler: scheduler.into(), ..service() };
        let servers = [servers[round % 2], third, servers[1 - round % 2]];
        file.extend(add(service, &servers));
        let outcome = table.batch(file, OnRefusal::Undo, NOW);
        assert_eq!((outcome.applied, outcome.refused.len()), (5, 0));
        assert_eq!(weights(&table).len(), 3);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    worker.join().unwrap();
    let service = find(&table).unwrap();
    let members = service.choice().members().to_vec();
    assert!(members.iter().any(|member| Arc::ptr_eq(&member.server, &first)));
}

#[test]
fn more_servers_than_a_scheduler_holds_refuse_the_whole_batch() {
    let table = table();
    let limit = schedulers::most_servers("mh").unwrap();
    let address = |number: usize| {
        let address = std::net::Ipv4Addr::from_bits(0x0a4e_0000 + number as u32);
        SocketAddr::new(address.into(), 80)
    };
    let add_server = |number| Command::AddServer {
        service: key(),
        server: ServerSpec { address: address(number), ..server("10.77.0.11:80") },
    };
    let mut commands = vec![Command::AddService { service: service() }];
    commands.extend((0..=limit).map(add_server));
    let service = ServiceSpec { scheduler: "mh".into(), ..service() };
    commands.push(Command::EditService { service });
    let outcome = table.batch(commands.clone(), OnRefusal::Undo, NOW);
    assert_eq!(outcome.refused[0].index, commands.len() - 1);
    assert!(outcome.refused[0].refusal.message.contains(&limit.to_string()));
    assert!(table.service_views().is_empty());
    commands.remove(limit + 1);
    let outcome = table.batch(commands, OnRefusal::Undo, NOW);
    assert_eq!(outcome.refused, []);
    assert_eq!(table.service_views()[0].servers.len(), limit);
}
