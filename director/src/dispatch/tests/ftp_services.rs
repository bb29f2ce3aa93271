//! FTP services whose servers may answer around the director: no control connection is listened to,
//! and persistence keeps a client's connections together.

use std::net::SocketAddr;

use super::bed::*;
use crate::control::api::{Forwarding, Persistence, Protocol};
use crate::control::operations::Command;
use crate::dispatch::verdict::{DropReason, PassReason, Verdict};

/// A persistent service on port 21 whose servers answer around the director.
fn persistent(forwarding: Forwarding) -> Bed {
    let bed = Bed::new();
    let key = key(Protocol::Tcp, "192.0.2.100:21");
    let persistence = Some(Persistence { timeout: 360, prefix: 32, engine: None });
    let mut spec = service(key, "rr");
    spec.persistence = persistence;
    bed.apply(Command::AddService { service: spec });
    for address in ["10.77.0.11:21", "10.77.0.12:21"] {
        bed.apply(Command::AddServer { service: key, server: server(address, forwarding) });
    }
    bed
}

#[test]
fn a_persistent_ftp_service_takes_the_data_connections_of_its_clients() {
    for forwarding in [Forwarding::Direct, Forwarding::Nat] {
        let mut bed = persistent(forwarding);
        for number in 1..=4 {
            let client = format!("198.51.100.{number}");
            let vip = |port: u16| format!("192.0.2.100:{port}");
            let data = |bed: &mut Bed, port| {
                let out = bed.tcp(&format!("{client}:41234"), &vip(port), SYN);
                assert!(out.is_sent(), "{forwarding:?} {port}: {:?}", out.verdict);
                let parts = (0..).map_while(|part| bed.table.connection_views(part, bed.now));
                let ours = parts.flatten().find(|view| {
                    view.client == at(&format!("{client}:41234"))
                        && view.virtual_address == at(&vip(port))
                });
                ours.unwrap().server
            };
            let control = data(&mut bed, 21);
            for port in [20, 1024, 50000] {
                assert_eq!(data(&mut bed, port), SocketAddr::new(control.ip(), port));
            }
            let out = bed.tcp(&format!("{client}:41234"), &vip(1023), SYN);
            assert_eq!(out.verdict, Verdict::Pass(PassReason::NoService));
        }
    }
}

#[test]
fn an_ftp_service_without_a_server_refuses_control_connections_alone() {
    let mut bed = persistent(Forwarding::Direct);
    let service = key(Protocol::Tcp, "192.0.2.100:21");
    for address in ["10.77.0.11:21", "10.77.0.12:21"] {
        bed.apply(Command::DeleteServer { service, server: at(address) });
    }
    let client = "198.51.100.7:41234";
    let out = bed.tcp(client, "192.0.2.100:21", SYN);
    assert_eq!(out.verdict, Verdict::Answer { reason: DropReason::NoServer });
    let out = bed.tcp(client, "192.0.2.100:50000", SYN);
    assert_eq!(out.verdict, Verdict::Pass(PassReason::FtpData));
}
