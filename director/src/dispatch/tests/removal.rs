//! Connections whose server or service is edited, removed and added again.

use std::time::Duration;

use super::bed::*;
use crate::control::api::{Forwarding, Persistence, Protocol};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};
use crate::table::Interest;

const CLIENT: &str = "198.51.100.7:4000";
const VIP: &str = "192.0.2.10:80";
const REAL: &str = "10.77.0.11:80";

fn interest_in_server(bed: &Bed) -> bool {
    bed.table.interests().contains(&Interest::NatServer(6, at(REAL)))
}

fn interest_in_service(bed: &Bed) -> bool {
    bed.table.interests().contains(&Interest::Service(6, at(VIP)))
}

/// Housekeeping once a second, as the director does.
fn wait_and_sweep(bed: &mut Bed, seconds: u64) {
    for _ in 0..seconds {
        bed.wait(Duration::from_secs(1));
        bed.table.sweep(bed.now);
    }
}

#[test]
fn an_edit_without_the_method_does_not_break_nat_connections() {
    let service = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service, &[(REAL, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    // `ipvsadm -e ... -w 0` without -m: the method falls back to direct routing.
    let mut drained = server(REAL, Forwarding::Direct);
    drained.weight = 0;
    bed.apply(Command::EditServer { service, server: drained });
    assert!(interest_in_server(&bed), "its answers still come to us");
    assert_eq!(bed.tcp(REAL, CLIENT, ACK).source(), at(VIP));
    assert_eq!(bed.tcp(CLIENT, VIP, FIN_ACK).destination(), at(REAL));
    bed.tcp(REAL, CLIENT, FIN_ACK);
    wait_and_sweep(&mut bed, 130);
    assert!(!interest_in_server(&bed), "no longer than its connections");
}

#[test]
fn clients_of_a_removed_service_are_not_reset_by_the_kernel() {
    let service_key = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service_key, &[(REAL, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    bed.apply(Command::Flush);
    assert!(interest_in_service(&bed), "its connections' packets still come to us");
    let out = bed.tcp(CLIENT, VIP, ACK);
    assert_eq!(out.verdict, Verdict::Drop(DropReason::ServerRemoved));
    // Nobody else is served.
    let stranger = bed.tcp("198.51.100.8:4000", VIP, SYN);
    assert_eq!(stranger.verdict, Verdict::Pass(PassReason::NoService));
    assert!(bed.tcp(REAL, CLIENT, ACK).is_sent(), "what the server still says is delivered");
    wait_and_sweep(&mut bed, 905);
    assert!(!interest_in_service(&bed), "no longer than its connections");
}

#[test]
fn a_service_that_was_removed_without_connections_is_the_kernels_at_once() {
    let bed = Bed::with(key(Protocol::Tcp, VIP), &[(REAL, Forwarding::Nat)]);
    bed.apply(Command::Flush);
    assert!(!interest_in_service(&bed));
}

#[test]
fn a_restored_table_has_its_connections_again_and_counts_them() {
    let service_key = key(Protocol::Tcp, VIP);
    let mut bed = Bed::with(service_key, &[(REAL, Forwarding::Nat)]);
    bed.establish(CLIENT, VIP);
    bed.apply(Command::Flush);
    bed.apply(Command::AddService { service: service(service_key, "wlc") });
    bed.apply(Command::AddServer { service: service_key, server: server(REAL, Forwarding::Nat) });
    assert_eq!(bed.counts(), [(1, 0)]);
    assert_eq!(bed.tcp(CLIENT, VIP, ACK).destination(), at(REAL));
    // As in the kernel: a server that comes back to another service starts to count anew.
    let view = &bed.table.service_views()[0];
    for stats in [view.stats, view.servers[0].stats] {
        assert_eq!((stats.connections, stats.in_packets, stats.out_packets), (0, 1, 0));
    }
}

#[test]
fn a_service_for_every_port_reaches_its_servers_on_the_port_the_client_chose() {
    let service_key = key(Protocol::Tcp, "192.0.2.10:0");
    let mut bed = Bed::new();
    let mut every_port = service(service_key, "rr");
    every_port.persistence = Some(Persistence { timeout: 300, prefix: 32, engine: None });
    bed.apply(Command::AddService { service: every_port });
    // The kernel does not look at the port of a server here.
    bed.apply(Command::AddServer {
        service: service_key,
        server: server("10.77.0.11:8080", Forwarding::Nat),
    });
    assert_eq!(bed.tcp(CLIENT, "192.0.2.10:443", SYN).destination(), at("10.77.0.11:443"));
    let every_port_of_the_server = Interest::NatServer(6, at("10.77.0.11:0"));
    assert!(bed.table.interests().contains(&every_port_of_the_server));
}
