//! A fork foresees what becomes of a packet, and leaves no trace: for every scheduler and every
//! forwarding method, among random packets, removals, weights and settings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use forwarding::{Packet, parse};

use super::bed::*;
use super::ftp::{Dialogue, V4};
use crate::control::api::{Forwarding, Persistence, Protocol, ServerSpec, ServiceKey, Tunnel};
use crate::control::operations::Command;
use crate::dispatch::fork::Fork;
use crate::dispatch::verdict::Verdict;
use crate::dispatch::witness::Decision;
use crate::dispatch::{Dispatcher, Shared};
use crate::table::Table;

const VIP: &str = "192.0.2.10:80";
const OTHER: &str = "192.0.2.10:53";

/// Numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// What came of a packet, but for the identification in an outer header, which is a worker's own.
#[derive(Debug, PartialEq)]
struct Fate {
    verdict: String,
    frame: Vec<u8>,
    reply: Option<Vec<u8>>,
}

fn fate(verdict: Verdict, mut frame: Vec<u8>, reply: Option<&[u8]>) -> Fate {
    let without_number = |frame: &mut Vec<u8>| {
        if frame.len() > 34 && frame[12..14] == [8, 0] {
            frame[18..20].fill(0);
            frame[24..26].fill(0);
        }
    };
    let is_sent = matches!(verdict, Verdict::Transmit { .. });
    without_number(&mut frame);
    let reply = match verdict {
        Verdict::Answer { .. } => reply.map(|reply| {
            let mut reply = reply.to_vec();
            without_number(&mut reply);
            reply
        }),
        _ => None,
    };
    Fate { verdict: format!("{verdict:?}"), frame: if is_sent { frame } else { vec![] }, reply }
}

/// What a fork of the bed says of a packet, and what it has decided.
fn foresee(bed: &mut Bed, frame: &[u8]) -> (Fate, Vec<Decision>) {
    let services = bed.table.published().load_full();
    let Ok(headers) = parse(frame) else { panic!("no packet") };
    let fork = Fork::of(bed.table.shared(), &services, frame, &headers);
    let mut dispatcher = Dispatcher::on(&fork);
    let mut chunk = vec![0; 4096];
    chunk[256..256 + frame.len()].copy_from_slice(frame);
    let mut packet = Packet::new(&mut chunk, 256, frame.len());
    let verdict = dispatcher.handle(bed.now, &fork.services, &mut bed.routes, &mut packet);
    let frame = packet.bytes().to_vec();
    let reply = dispatcher.reply().map(|(bytes, _)| bytes.to_vec());
    (fate(verdict, frame, reply.as_deref()), dispatcher.decisions())
}

/// Everything that an operator could see of the state.
fn state(bed: &Bed) -> String {
    let connections: Vec<String> = {
        let parts = (0..).map_while(|part| bed.table.connection_views(part, bed.now));
        let mut all: Vec<String> = parts.flatten().map(|view| format!("{view:?}")).collect();
        all.sort();
        all
    };
    format!(
        "{connections:#?}\n{:#?}\n{:?}",
        bed.table.service_views(),
        bed.table.shared().overflow.rows()
    )
}

fn bed(scheduler: &str, forwarding: Forwarding, persistence: Option<u8>) -> Bed {
    let shared = Arc::new(Shared::with_seed(500, 3));
    let table = Table::new(shared.clone(), Box::new(|_| false), 7);
    let bed = Bed {
        table,
        routes: OneLink { mtu: 1500, own: None },
        now: Duration::from_secs(1),
        dispatcher: Dispatcher::new(shared, 1),
    };
    for (protocol, address) in [(Protocol::Tcp, VIP), (Protocol::Udp, OTHER)] {
        let key = key(protocol, address);
        let mut spec = service(key, scheduler);
        spec.persistence =
            persistence.map(|prefix| Persistence { timeout: 300, prefix, engine: None });
        bed.apply(Command::AddService { service: spec });
        for last in 11..15 {
            bed.apply(Command::AddServer { service: key, server: real(key, last, forwarding, 3) });
        }
    }
    bed
}

fn real(key: ServiceKey, last: usize, forwarding: Forwarding, weight: i32) -> ServerSpec {
    let ServiceKey::Address { address, .. } = key else { unreachable!() };
    let port = match forwarding {
        Forwarding::Nat => address.port() + 8000,
        _ => address.port(),
    };
    ServerSpec {
        weight,
        tunnel: if last == 12 {
            Tunnel::Gre { checksum: Default::default() }
        } else {
            Tunnel::Ipip
        },
        ..server(&format!("10.77.0.{last}:{port}"), forwarding)
    }
}

/// A packet of a client, of a server, or of a router; about a few connections again and again.
fn packet(chance: &mut Chance, forwarding: Forwarding) -> Vec<u8> {
    let client = |chance: &mut Chance| -> SocketAddr {
        format!("198.51.100.{}:{}", 1 + chance.below(6), 4000 + chance.below(4)).parse().unwrap()
    };
    let flags = [SYN, SYN, ACK, ACK, FIN_ACK, RST][chance.below(6)];
    let client = client(chance);
    let last = 11 + chance.below(5);
    match chance.below(10) {
        0..=4 => tcp(client, at(VIP), flags, &vec![7; chance.below(1440)]),
        5 | 6 => udp(client, at(OTHER), b"a question"),
        7 if forwarding == Forwarding::Nat => {
            let flags = [SYN_ACK, ACK, FIN_ACK, RST][chance.below(4)];
            tcp(at(&format!("10.77.0.{last}:8080")), client, flags, b"an answer")
        }
        8 if forwarding == Forwarding::Nat => {
            udp(at(&format!("10.77.0.{last}:8053")), client, b"an answer")
        }
        9 => too_big(&client.to_string(), VIP),
        _ => tcp(client, at("192.0.2.10:81"), flags, b""),
    }
}

/// Something that an operator does, the same to all beds.
fn intervene(chance: &mut Chance, beds: [&mut Bed; 2], forwarding: Forwarding) {
    let key =
        if chance.below(2) == 0 { key(Protocol::Tcp, VIP) } else { key(Protocol::Udp, OTHER) };
    let server = real(key, 11 + chance.below(4), forwarding, chance.below(4) as i32);
    let name =
        ["expire_nodest_conn", "expire_quiescent_template", "conn_reuse_mode"][chance.below(3)];
    let value = chance.below(2) as u32;
    let what = chance.below(5);
    for bed in beds {
        let command = match what {
            0 => Command::EditServer { service: key, server: server.clone() },
            1 => Command::DeleteServer { service: key, server: server.address },
            2 => Command::AddServer { service: key, server: server.clone() },
            3 => Command::SetSettings { settings: [(name.to_owned(), value)].into() },
            _ => {
                bed.wait(Duration::from_secs(7));
                continue;
            }
        };
        // It may be there already, or gone.
        let _ = bed.table.change(command, bed.now);
    }
}

fn foresees(scheduler: &str, forwarding: Forwarding, persistence: Option<u8>, packets: usize) {
    let what = format!("{scheduler}, {forwarding:?}, persistence {persistence:?}");
    let mut chance = Chance(scheduler.len() as u64 * 31 + packets as u64);
    let (mut one, mut other) =
        (bed(scheduler, forwarding, persistence), bed(scheduler, forwarding, persistence));
    let mut sent = 0;
    for step in 0..packets {
        if chance.below(8) == 0 {
            intervene(&mut chance, [&mut one, &mut other], forwarding);
        }
        let frame = packet(&mut chance, forwarding);
        let before = state(&one);
        let (foreseen, decisions) = foresee(&mut one, &frame);
        assert_eq!(state(&one), before, "{what}, packet {step}: asking has changed something");
        let happens = |bed: &mut Bed| {
            let out = bed.handle(&frame);
            let reply = bed.dispatcher.reply().map(|(bytes, _)| bytes.to_vec());
            fate(out.verdict, out.frame, reply.as_deref())
        };
        let fate = happens(&mut one);
        assert_eq!(foreseen, fate, "{what}, packet {step}, {decisions:#?}");
        assert_eq!(fate, happens(&mut other), "{what}, packet {step}: asking has left a trace");
        sent += usize::from(fate.verdict.starts_with("Transmit"));
        assert!(!decisions.is_empty() || !fate.verdict.starts_with("Transmit"), "{what}");
    }
    assert_eq!(state(&one), state(&other), "{what}: asking has left a trace");
    assert!(sent > packets / 10, "{what}: hardly anything was sent, {sent} of {packets}");
}

#[test]
fn what_a_fork_says_of_a_packet_happens_to_it_with_every_scheduler() {
    for entry in schedulers::REGISTRY {
        foresees(entry.name, Forwarding::Nat, None, 150);
    }
}

#[test]
fn what_a_fork_says_of_a_packet_happens_to_it_by_every_method_and_with_templates() {
    for forwarding in [Forwarding::Nat, Forwarding::Direct, Forwarding::Tunnel] {
        for persistence in [None, Some(32), Some(24)] {
            foresees("wlc", forwarding, persistence, 300);
            foresees("rr", forwarding, persistence, 300);
        }
    }
}

#[test]
fn a_scheduler_says_what_it_went_by() {
    let mut bed = bed("wlc", Forwarding::Nat, None);
    for port in 4000..4003 {
        bed.establish(&format!("198.51.100.7:{port}"), VIP);
    }
    let (_, decisions) = foresee(&mut bed, &tcp(at("198.51.100.9:1"), at(VIP), SYN, b""));
    let scheduled = decisions.iter().find_map(|decision| match decision {
        Decision::Scheduled { candidates, chosen, .. } => Some((candidates.clone(), *chosen)),
        _ => None,
    });
    let (candidates, chosen) = scheduled.unwrap();
    let figures: Vec<&str> = candidates.iter().map(|it| it.figure.as_str()).collect();
    assert_eq!(
        figures,
        [
            "1*256+1 over weight 3",
            "1*256+1 over weight 3",
            "1*256+1 over weight 3",
            "0*256+0 over weight 3"
        ]
    );
    assert_eq!(chosen, Some(at("10.77.0.11:8080")));
}

#[test]
fn ftp_data_connections_that_are_awaited_are_foreseen() {
    let mut ftp = Dialogue::open(V4);
    ftp.says("PASV\r\n");
    ftp.answers("227 Entering Passive Mode (10,77,0,11,195,80).\r\n");
    let data = tcp(at("198.51.100.7:41234"), at("192.0.2.100:50000"), SYN, b"");
    let (foreseen, _) = foresee(&mut ftp.bed, &data);
    let out = ftp.bed.handle(&data);
    assert_eq!(out.destination(), at("10.77.0.11:50000"));
    assert_eq!(foreseen, fate(out.verdict, out.frame, None));
}
