//! Commands with the kernel's answers, and reloads that change only what differs.

mod batch;
mod fallback;
mod followers;
mod preparation;
mod standing;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{Interest, Table};
use crate::config::DeclaredService;
use crate::control::api::{
    Extras, Forwarding, MssClamp, NoDestination, Persistence, Protocol, RefusalKind, ServerSpec,
    ServiceKey, ServiceSpec, Tunnel,
};
use crate::control::operations::Command;
use crate::dispatch::Shared;
use crate::health::plan::ServiceHealth;

const NOW: Duration = Duration::from_secs(1);

fn table() -> Table {
    let own: SocketAddr = "10.77.0.1:0".parse().unwrap();
    Table::new(Arc::new(Shared::new(100)), Box::new(move |address| address == own.ip()), 1)
}

fn key() -> ServiceKey {
    ServiceKey::Address { protocol: Protocol::Tcp, address: "192.0.2.10:80".parse().unwrap() }
}

fn service() -> ServiceSpec {
    ServiceSpec {
        key: key(),
        scheduler: "wlc".into(),
        flags: 0,
        persistence: None,
        one_packet: false,
        extras: None,
    }
}

pub(super) fn server(address: &str) -> ServerSpec {
    ServerSpec {
        address: address.parse().unwrap(),
        forwarding: Forwarding::Nat,
        tunnel: Tunnel::Ipip,
        weight: 1,
        upper_threshold: 0,
        lower_threshold: 0,
    }
}

fn refusal(table: &Table, command: Command) -> RefusalKind {
    table.change(command, NOW).unwrap_err().error
}

fn done(table: &Table, command: Command) {
    table.change(command, NOW).unwrap();
}

#[test]
fn every_command_on_something_missing_or_double_is_refused_as_the_kernel_does() {
    use RefusalKind::*;
    let table = table();
    let real = server("10.77.0.11:80");
    assert_eq!(refusal(&table, Command::EditService { service: service() }), NoSuchService);
    assert_eq!(refusal(&table, Command::DeleteService { service: key() }), NoSuchService);
    assert_eq!(refusal(&table, Command::Zero { service: Some(key()) }), NoSuchService);
    let add = Command::AddServer { service: key(), server: real.clone() };
    assert_eq!(refusal(&table, add.clone()), NoSuchService);
    done(&table, Command::AddService { service: service() });
    assert_eq!(refusal(&table, Command::AddService { service: service() }), ServiceExists);
    assert_eq!(
        refusal(&table, Command::EditServer { service: key(), server: real.clone() }),
        NoSuchServer
    );
    assert_eq!(
        refusal(&table, Command::DeleteServer { service: key(), server: real.address }),
        NoSuchServer
    );
    done(&table, add.clone());
    assert_eq!(refusal(&table, add), ServerExists);
    let unknown = ServiceSpec { scheduler: "fastest".into(), ..service() };
    assert_eq!(refusal(&table, Command::EditService { service: unknown }), NoSuchScheduler);
    assert_eq!(table.service_views()[0].spec.scheduler, "wlc");
}

#[test]
fn values_out_of_range_are_refused() {
    let table = table();
    done(&table, Command::AddService { service: service() });
    let add = |change: fn(&mut ServerSpec)| {
        let mut server = server("10.77.0.11:80");
        change(&mut server);
        refusal(&table, Command::AddServer { service: key(), server })
    };
    assert_eq!(add(|server| server.weight = -1), RefusalKind::Range);
    assert_eq!(add(|server| server.lower_threshold = 5), RefusalKind::Range);
    assert_eq!(
        add(|server| server.address = "[fd77::11]:80".parse().unwrap()),
        RefusalKind::Invalid
    );
    assert_eq!(
        add(|server| server.address = "224.0.0.1:80".parse().unwrap()),
        RefusalKind::Invalid
    );
    let mut every_port = service();
    every_port.key =
        ServiceKey::Address { protocol: Protocol::Tcp, address: "192.0.2.11:0".parse().unwrap() };
    assert_eq!(
        refusal(&table, Command::AddService { service: every_port.clone() }),
        RefusalKind::Invalid
    );
    every_port.persistence = Some(Persistence { timeout: 300, prefix: 32, engine: None });
    done(&table, Command::AddService { service: every_port });
}

#[test]
fn the_newest_server_stands_first_and_own_addresses_are_local() {
    let table = table();
    done(&table, Command::AddService { service: service() });
    for address in ["10.77.0.11:80", "10.77.0.12:80", "10.77.0.1:80"] {
        done(&table, Command::AddServer { service: key(), server: server(address) });
    }
    let view = &table.service_views()[0];
    let listed: Vec<_> =
        view.servers.iter().map(|server| server.spec.address.to_string()).collect();
    assert_eq!(listed, ["10.77.0.1:80", "10.77.0.12:80", "10.77.0.11:80"]);
    let methods: Vec<_> =
        view.servers.iter().map(|server| (server.spec.forwarding, server.local)).collect();
    assert_eq!(methods[0], (server("10.77.0.1:80").forwarding, true));
    assert_eq!(methods[1], (server("10.77.0.12:80").forwarding, false));
}

#[test]
fn steering_hears_of_services_and_of_servers_whose_answers_come_back() {
    let table = table();
    done(&table, Command::AddService { service: service() });
    let mut tunnel = server("10.77.0.12:80");
    tunnel.forwarding = Forwarding::Tunnel;
    done(&table, Command::AddServer { service: key(), server: server("10.77.0.11:80") });
    done(&table, Command::AddServer { service: key(), server: tunnel });
    let real: SocketAddr = "10.77.0.11:80".parse().unwrap();
    let expected = [
        Interest::Service(6, "192.0.2.10:80".parse().unwrap()),
        Interest::NatServer(6, real),
        Interest::TunnelServer("10.77.0.12".parse().unwrap()),
    ];
    assert_eq!(table.interests(), expected);
    done(&table, Command::DeleteServer { service: key(), server: real });
    assert_eq!(table.interests(), expected, "answers of a removed server still come");
    table.sweep(NOW + Duration::from_secs(121));
    assert_eq!(table.interests(), [expected[0], expected[2]]);
}

#[test]
fn steering_hears_of_the_data_ports_of_ftp_services_by_nat() {
    let ftp =
        ServiceKey::Address { protocol: Protocol::Tcp, address: "192.0.2.10:21".parse().unwrap() };
    let (vip, real) = ("192.0.2.10".parse().unwrap(), "10.77.0.11".parse().unwrap());
    let table = table();
    done(&table, Command::AddService { service: ServiceSpec { key: ftp, ..service() } });
    let mut direct = server("10.77.0.11:21");
    direct.forwarding = Forwarding::Direct;
    done(&table, Command::AddServer { service: ftp, server: direct.clone() });
    assert_eq!(table.interests(), [Interest::Service(6, "192.0.2.10:21".parse().unwrap())]);
    done(&table, Command::EditServer { service: ftp, server: server("10.77.0.11:21") });
    let expected = [
        Interest::Service(6, "192.0.2.10:20".parse().unwrap()),
        Interest::Service(6, "192.0.2.10:21".parse().unwrap()),
        Interest::NatServer(6, "10.77.0.11:20".parse().unwrap()),
        Interest::NatServer(6, "10.77.0.11:21".parse().unwrap()),
        Interest::FtpService(vip),
        Interest::FtpServer(real),
    ];
    assert_eq!(table.interests(), expected);
    // Without the helper a persistent service still has data connections.
    done(&table, Command::EditServer { service: ftp, server: direct });
    let persistence = Some(Persistence { timeout: 60, prefix: 32, engine: None });
    let service = ServiceSpec { key: ftp, persistence, ..service() };
    done(&table, Command::EditService { service });
    assert_eq!(table.interests(), [expected[0], expected[1], expected[4]]);
}

fn declared(servers: &[ServerSpec]) -> [DeclaredService; 1] {
    [DeclaredService {
        service: service(),
        servers: servers.to_vec(),
        fallback: None,
        health: ServiceHealth::default(),
    }]
}

fn weights(table: &Table) -> Vec<(String, i32)> {
    table.service_views()[0]
        .servers
        .iter()
        .map(|server| (server.spec.address.to_string(), server.spec.weight))
        .collect()
}

#[test]
fn a_reload_does_not_undo_what_was_done_at_run_time() {
    let table = table();
    let (one, two) = (server("10.77.0.11:80"), server("10.77.0.12:80"));
    table.declare(&declared(&[one.clone(), two.clone()]), &[], NOW).unwrap();
    // A checker has quiesced a server; an operator has added one.
    let quiesced = ServerSpec { weight: 0, ..one.clone() };
    done(&table, Command::EditServer { service: key(), server: quiesced });
    done(&table, Command::AddServer { service: key(), server: server("10.77.0.13:80") });
    let heavier = ServerSpec { weight: 5, ..two };
    let changes = table.declare(&declared(&[one, heavier]), &[], NOW).unwrap();
    assert_eq!((changes.made, changes.refused.len()), (1, 0));
    let expected = [("10.77.0.13:80", 1), ("10.77.0.12:80", 5), ("10.77.0.11:80", 0)];
    assert_eq!(weights(&table), expected.map(|(address, weight)| (address.to_owned(), weight)));
}

#[test]
fn a_reload_removes_what_the_file_no_longer_has() {
    let table = table();
    let (one, two) = (server("10.77.0.11:80"), server("10.77.0.12:80"));
    table.declare(&declared(&[one.clone(), two]), &[], NOW).unwrap();
    table.declare(&declared(&[one]), &[], NOW).unwrap();
    assert_eq!(weights(&table), [("10.77.0.11:80".to_owned(), 1)]);
    table.declare(&[], &[], NOW).unwrap();
    assert!(table.service_views().is_empty());
    assert!(table.published().load().find(6, "192.0.2.10".parse().unwrap(), 80).is_none());
}

#[test]
fn a_file_with_one_impossible_service_changes_nothing() {
    let table = table();
    table.declare(&declared(&[server("10.77.0.11:80")]), &[], NOW).unwrap();
    let mut bad = declared(&[server("10.77.0.12:80")]);
    bad[0].service.scheduler = "fastest".into();
    table.declare(&bad, &[], NOW).unwrap_err();
    assert_eq!(weights(&table), [("10.77.0.11:80".to_owned(), 1)]);
}

#[test]
fn a_command_during_a_reload_waits_its_turn_and_is_published_at_once() {
    let table = Arc::new(table());
    let other: SocketAddr = "192.0.2.20:80".parse().unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let operator = std::thread::spawn({
        let (table, stop) = (table.clone(), stop.clone());
        move || {
            let key = ServiceKey::Address { protocol: Protocol::Tcp, address: other };
            let mut rounds = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let find = || table.published().load().find(6, other.ip(), 80).is_some();
                done(&table, Command::AddService { service: ServiceSpec { key, ..service() } });
                assert!(find(), "added, and workers see it");
                done(&table, Command::DeleteService { service: key });
                assert!(!find(), "removed, and workers see it");
                rounds += 1;
            }
            rounds
        }
    });
    let servers: Vec<_> =
        (1..100).map(|last| server(&format!("10.77.0.{}:80", last + 1))).collect();
    for _ in 0..200 {
        table.declare(&declared(&servers), &[], NOW).unwrap();
        table.declare(&declared(&servers[..1]), &[], NOW).unwrap();
        let views = table.service_views();
        let ours = views.iter().find(|view| view.spec.key == key()).unwrap();
        assert_eq!(ours.servers.len(), 1);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(operator.join().unwrap() > 0);
}

#[test]
fn extras_that_make_no_sense_are_refused_and_change_nothing() {
    let table = table();
    done(&table, Command::AddService { service: service() });
    let edit = |key: ServiceKey, change: fn(&mut Extras)| {
        let mut extras = Extras::default();
        change(&mut extras);
        Command::EditService { service: ServiceSpec { key, extras: Some(extras), ..service() } }
    };
    let udp =
        ServiceKey::Address { protocol: Protocol::Udp, address: "192.0.2.10:53".parse().unwrap() };
    done(&table, Command::AddService { service: ServiceSpec { key: udp, ..service() } });
    for (key, change) in [
        (key(), (|extras| extras.timeouts.tcp = 2_147_484) as fn(&mut Extras)),
        (key(), |extras| extras.timeouts.udp = 10),
        (key(), |extras| extras.mss_clamp = MssClamp::Bytes(535)),
        (key(), |extras| extras.mss_clamp = MssClamp::Bytes(65_496)),
        (udp, |extras| extras.timeouts.tcp_fin = 10),
        (udp, |extras| extras.no_destination = NoDestination::Rst),
        (udp, |extras| extras.mss_clamp = MssClamp::ByRoute(true)),
    ] {
        assert_eq!(refusal(&table, edit(key, change)), RefusalKind::Invalid);
    }
    let off = Some(Extras::default());
    assert!(table.service_views().iter().all(|view| view.spec.extras == off));
    done(&table, edit(key(), |extras| extras.mss_clamp = MssClamp::Bytes(536)));
    done(&table, edit(udp, |extras| extras.timeouts.udp = 2_147_483));
}

#[test]
fn a_command_waits_for_who_follows_and_not_for_ever() {
    let table = Arc::new(table());
    table.wait_until_followed();
    done(&table, Command::AddService { service: service() });
    let follower = std::thread::spawn({
        let table = table.clone();
        move || {
            std::thread::sleep(Duration::from_millis(50));
            let change = table.last_change();
            assert!(!table.tidings().added.is_empty());
            table.has_been_followed(change);
        }
    });
    let start = std::time::Instant::now();
    table.wait_until_followed();
    assert!(start.elapsed() >= Duration::from_millis(50), "it has not waited");
    assert!(table.tidings().added.is_empty(), "it was told before");
    follower.join().unwrap();
}
