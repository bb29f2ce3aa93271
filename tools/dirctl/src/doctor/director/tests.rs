//! What must be said of literal facts.

mod bed;

use std::path::PathBuf;

use director::control::health::HealthState;
use director::control::plan::{FieldChange, Plan};
use director::network::{Change, Freshness};
use netio::ethtool::Receiving;
use netio::interface::{Queues, State};

use super::*;
use crate::doctor::facts::settings::key;
use crate::doctor::finding::{Check, Severity};
use bed::*;

#[test]
fn where_all_is_well_only_the_missing_director_is_told() {
    let bad: Vec<Finding> =
        facts("nat", "").examine().into_iter().filter(|it| it.severity < Severity::Ok).collect();
    let [finding] = bad.as_slice() else { panic!("{bad:#?}") };
    assert_eq!((finding.check, finding.severity), (Check::Director, Severity::Fault));
    assert!(finding.found.contains("nobody serves 192.0.2.10"), "{finding:?}");
}

#[test]
fn an_old_kernel_missing_capabilities_and_a_wrong_clock_are_told() {
    let mut facts = running("nat", (0, 0));
    facts.machine.kernel = "5.15.0-generic".to_owned();
    facts.machine.director = Some(7);
    facts.machine.capabilities = Some(!(1 << 12));
    facts.machine.clock = Some(false);
    only(&facts, Check::Kernel, &["5.15.0-generic is older than 6.6"]);
    only(&facts, Check::Capabilities, &["process 7", "CAP_NET_ADMIN"]);
    assert_eq!(only(&facts, Check::Clock, &[]).severity, Severity::Note);
    // What is needed to start only may be given up afterwards.
    facts.machine.capabilities = Some(1 << 12 | 1 << 13);
    assert!(of(&facts, Check::Capabilities).is_empty());
}

#[test]
fn a_server_that_answers_for_the_vip_is_told_from_a_stranger() {
    let mut facts = facts("direct", "");
    let claim = |last| Claim {
        address: "192.0.2.10".parse().unwrap(),
        interface: "eth0".to_owned(),
        mac: [2, 0, 0, 0, 1, last],
    };
    facts.claims = Ok(vec![claim(11)]);
    let finding = only(&facts, Check::VipElsewhere, &["real server 10.0.0.11 answers ARP"]);
    assert_eq!((finding.severity, finding.on.as_deref()), (Severity::Fault, Some("10.0.0.11")));
    let wanted = "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2";
    assert_eq!(finding.remedy, [wanted]);

    facts.claims = Ok(vec![claim(77)]);
    let finding = only(&facts, Check::VipElsewhere, &["no server", "02:00:00:00:01:4d"]);
    assert_eq!(finding.severity, Severity::Fault);
    facts.claims = Err("no permission".to_owned());
    assert_eq!(only(&facts, Check::VipElsewhere, &[]).severity, Severity::Note);
}

#[test]
fn a_vip_that_is_missing_or_on_two_interfaces_is_told() {
    let mut facts = facts("nat", "");
    facts.network.apply(address(3, "192.0.2.10/32"));
    let finding = only(&facts, Check::VipTwice, &["eth0 and eth1"]);
    assert_eq!(finding.remedy, ["ip address del 192.0.2.10/32 dev eth1"]);

    let gone = |prefix| match address(2, prefix) {
        Change::Address(address) => Change::AddressGone(address),
        _ => unreachable!(),
    };
    let mut facts = self::facts("nat", "");
    facts.network.apply(gone("192.0.2.10/24"));
    assert_eq!(only(&facts, Check::Vip, &["a router must send it"]).severity, Severity::Note);
    facts.network.apply(address(2, "192.0.2.1/24"));
    let finding = only(&facts, Check::Vip, &["nobody answers for it on eth0"]);
    assert_eq!(finding.remedy, ["ip address add 192.0.2.10/32 dev eth0"]);
    facts.plan.own_addresses = Some(true);
    assert!(of(&facts, Check::Vip).is_empty(), "the director will put it there");
    facts.running = running("nat", (1, 1)).running;
    let finding = only(&facts, Check::Vip, &["own_addresses = true"]);
    assert_eq!(finding.severity, Severity::Fault, "it runs, and has not");
}

#[test]
fn a_tunnel_without_room_is_told_unless_its_segments_are_clamped() {
    let small = facts("tunnel", "");
    let finding = only(&small, Check::Mtu, &["10.0.0.11", "MTU 1500 - 20", "leaves 1480"]);
    assert_eq!(finding.remedy, ["ip link set dev eth1 mtu 1520"]);
    assert!(of(&facts("tunnel", "mss_clamp = true"), Check::Mtu).is_empty());
    assert!(of(&facts("nat", ""), Check::Mtu).is_empty());
    let mut wide = facts("tunnel", "");
    wide.network.apply(interface(3, "eth1", 1520));
    assert!(of(&wide, Check::Mtu).is_empty());
    // Clients' interface above Ethernet's: they send more.
    wide.network.apply(interface(2, "eth0", 9000));
    assert_eq!(only(&wide, Check::Mtu, &["clients send 9000"]).remedy.len(), 1);
}

#[test]
fn servers_without_a_way_or_a_neighbour_are_told() {
    let mut silent = facts("nat", "");
    silent.network.apply(neighbour(11, Freshness::Unknown));
    only(&silent, Check::Neighbour, &["10.0.0.11 does not answer on eth1"]);

    let mut aside = facts("nat", "");
    aside.plan.interfaces = vec!["eth0".to_owned()];
    let finding = only(&aside, Check::Route, &["leaves by eth1"]);
    assert!(finding.remedy[0].contains(r#"interfaces = ["eth0", "eth1"]/' /test.toml"#));

    let mut lost = facts("nat", "");
    let Change::Route { route, .. } = route("10.0.0.0/24", 3) else { unreachable!() };
    lost.network.apply(Change::RouteGone(route));
    let finding = only(&lost, Check::Route, &["no route to the server 10.0.0.11"]);
    assert_eq!(finding.remedy, ["ip route add 10.0.0.11/32 dev eth1"]);
}

#[test]
fn a_nat_server_that_never_answers_is_told_and_a_dead_one_only_once() {
    let mut mute = running("nat", (9, 0));
    let finding = only(&mute, Check::ReturnPath, &["10.0.0.11:80"]);
    assert_eq!(finding.remedy, ["ip route replace default via 10.0.0.1"]);
    assert!(of(&running("nat", (9, 1)), Check::ReturnPath).is_empty());
    let mut lately = running("nat", (9, 5));
    let server = "10.0.0.11:80".parse().unwrap();
    lately.running.as_mut().unwrap().stuck.insert(server, 1);
    assert!(of(&lately, Check::ReturnPath).is_empty(), "one may be chance");
    lately.running.as_mut().unwrap().stuck.insert(server, 2);
    let finding = only(&lately, Check::ReturnPath, &["2 connections", "10.0.0.11:80", "flood"]);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.remedy, ["ip route replace default via 10.0.0.1"]);
    let down = health(HealthState::Down, "tcp: connection refused");
    mute.running.as_mut().unwrap().servers = vec![down];
    assert!(mute.examine().iter().all(|it| it.check != Check::ReturnPath));
    let finding = only(&mute, Check::ServerDown, &["10.0.0.11:80", "connection refused"]);
    assert_eq!(finding.on.as_deref(), Some("10.0.0.11"));
}

#[test]
fn servers_that_fail_for_one_reason_are_told_together() {
    let mut facts = running("nat", (1, 1));
    let failed = |last: u8| {
        let address = SocketAddr::from(([10, 0, 0, last], 80));
        director::control::health::ServerHealth {
            address,
            ..health(HealthState::Down, "icmp: silence")
        }
    };
    facts.running.as_mut().unwrap().servers = (11..17).map(failed).collect();
    only(
        &facts,
        Check::ServerDown,
        &["10.0.0.11:80, ", "and 2 more of 192.0.2.10:80/tcp are down"],
    );
}

#[test]
fn a_direct_server_that_no_client_has_heard_is_told() {
    let mut facts = running("direct", (3, 0));
    assert!(facts.examine().iter().all(|it| it.check != Check::Unanswered), "all went on");
    let server = "10.0.0.11:80".parse().unwrap();
    facts.running.as_mut().unwrap().half_open.insert(server, 1);
    let finding = only(&facts, Check::Unanswered, &["10.0.0.11:80", "no VIP"]);
    assert_eq!(finding.remedy, ["dirctl doctor --side server"]);
    facts.machine.astray = Some(5);
    facts.astray_later = Some(9);
    assert_eq!(only(&facts, Check::Astray, &["dropped 4"]).severity, Severity::Warning);
}

#[test]
fn only_drops_that_grow_are_told_and_the_harmless_ones_as_notes() {
    let mut facts = running("nat", (1, 1));
    let director = facts.running.as_mut().unwrap();
    director.before = status(&[("no_server", 5), ("no_route", 1), ("truncated", 1)]);
    director.now = status(&[("no_server", 5), ("no_route", 4), ("truncated", 2)]);
    director.now.ports[0].receive_dropped = 8;
    let mut told = of(&facts, Check::Drops);
    told.sort_by_key(|it| it.severity);
    let [grave, harmless] = told.as_slice() else { panic!("{told:#?}") };
    assert!(grave.found.starts_with("no_route grows, 3 in a second: "), "{grave:?}");
    assert_eq!((grave.severity, harmless.severity), (Severity::Warning, Severity::Note));
    only(&facts, Check::Rings, &["eth0, queue 0: 8 frames received"]);
}

#[test]
fn a_table_that_is_almost_full_is_told() {
    let mut facts = running("nat", (1, 1));
    facts.running.as_mut().unwrap().now.connections = 900;
    assert!(of(&facts, Check::Table).is_empty());
    facts.running.as_mut().unwrap().now.connections = 901;
    only(&facts, Check::Table, &["901 of 1000 connections"]);
}

#[test]
fn queues_that_nobody_serves_and_cards_that_change_frames_are_told() {
    let mut facts = running("nat", (1, 1));
    facts.machine.cores = 1;
    facts.cards[0].queues = Some(Queues { receive: 4, transmit: 4 });
    facts.cards[1].receiving = Some(Receiving { joins_segments: true, strips_tags: false });
    let finding = only(&facts, Check::Queues, &["eth0 has 4 queues", "serves 1"]);
    assert_eq!(finding.remedy, ["ethtool -L eth0 combined 1"]);
    only(&facts, Check::Offloads, &["eth1 joins"]);
    facts.cards[1].state = Some(State::NoCarrier);
    only(&facts, Check::Link, &["eth1 has no carrier"]);
    facts.machine.cores = 4;
    facts.cards[0].queues = Some(Queues { receive: 1, transmit: 1 });
    assert!(of(&facts, Check::Queues).iter().all(|it| it.severity == Severity::Note), "slow only");
}

#[test]
fn redirects_matter_where_clients_and_nat_servers_share_a_segment() {
    let mut facts = facts("nat", "");
    facts.settings.0.insert(key("ipv4", "all", "send_redirects"), 1);
    assert!(facts.examine().iter().all(|it| it.check != Check::Redirects), "two arms");
    for change in [address(3, "192.0.2.10/32"), route("192.0.2.0/24", 3)] {
        facts.network.apply(change);
    }
    facts.plan.interfaces = vec!["eth1".to_owned()];
    facts.cards = vec![card("eth1")];
    only(&facts, Check::Redirects, &["10.0.0.11 are both on eth1"]);
    facts.settings.0.insert("net/ipv4/ip_forward".to_owned(), 0);
    assert_eq!(only(&facts, Check::Forwarding, &["ip_forward = 0"]).severity, Severity::Note);
}

#[test]
fn a_file_that_says_something_else_than_runs_is_told() {
    let mut facts = running("nat", (1, 1));
    let finding = only(&facts, Check::File, &["192.0.2.10:80/tcp does not run", "changed since"]);
    assert_eq!(finding.severity, Severity::Note, "an operator has removed it");
    let timeouts = vec![FieldChange { field: "tcp".into(), old: "900".into(), new: "60".into() }];
    facts.running.as_mut().unwrap().plan = Some(Plan { timeouts, ..Plan::default() });
    let finding = only(&facts, Check::File, &["a reload would change: 1 timeout"]);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.remedy, ["kill -HUP 7"]);
    facts.running.as_mut().unwrap().now.applied = Some("new.toml".to_owned());
    let finding = only(&facts, Check::File, &["new.toml was applied and not saved"]);
    assert_eq!((finding.severity, finding.remedy.len()), (Severity::Warning, 1));
    facts.running.as_mut().unwrap().now.warnings = vec!["a.toml waits to be confirmed".to_owned()];
    assert!(facts.examine().iter().all(|it| it.check != Check::File), "it is on trial");
    let path = PathBuf::from("/test.toml");
    let config = Err("/test.toml:1:1: modes: unknown key\n    remove it".to_owned());
    facts.file = Some(ConfigFile { path, text: None, config });
    only(&facts, Check::File, &["a director would refuse /test.toml", "unknown key"]);
    facts.control.mode = Ok(0o666);
    let finding = only(&facts, Check::ControlSocket, &["0666"]);
    assert_eq!(finding.remedy, ["chmod 660 /sock"]);
}
