//! UDP: dnsmasq on every server asked by dig, and datagrams larger than the path, whose later
//! fragments carry no ports and must still follow the first to its server.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration::lab::Process;
use integration::nginx;
use integration::topology::{Kind, server_addresses};
use integration::udp::{EchoTally, echo_many};

use crate::bed::{Bed, DNS, ECHO, FAMILIES, Plan};
use crate::can_run;

/// Questions to each VIP.
const QUERIES: usize = 600;

/// Starts dnsmasq on every server; each answers `who.example.test` with its name.
pub(crate) fn start_dns(bed: &Bed) -> Result<Vec<Process>> {
    bed.servers()
        .iter()
        .map(|server| {
            let process = server
                .command("/usr/sbin/dnsmasq")
                .args(["--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"])
                .args(["--user=root", "--pid-file", &format!("--port={DNS}")])
                .arg(format!("--txt-record=who.example.test,{}", server.name()))
                .spawn()?;
            // It listens on TCP as well.
            nginx::wait_for_tcp(server, DNS, &process)?;
            Ok(process)
        })
        .collect()
}

/// Asks `QUERIES` times, each time from a new port, never a second time; counts the answers.
pub(crate) fn dig(bed: &Bed, vip: IpAddr) -> Result<BTreeMap<String, usize>> {
    let questions = bed.topology.lab.logs().join("questions");
    std::fs::write(&questions, "who.example.test TXT\n".repeat(QUERIES))?;
    let output = bed
        .client()
        .command("dig")
        .args([&format!("@{vip}"), "-p", &DNS.to_string(), "+short", "+tries=1", "+time=2", "-f"])
        .arg(&questions)
        .output(Duration::from_secs(60))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "dig: {text}");
    let mut answers = BTreeMap::new();
    for line in text.lines() {
        *answers.entry(line.trim_matches('"').to_owned()).or_default() += 1;
    }
    Ok(answers)
}

fn names_are_resolved(plan: Plan) {
    let bed = Bed::build(plan).unwrap();
    let _servers = start_dns(&bed).unwrap();
    for (family, vip) in FAMILIES {
        let answers = dig(&bed, vip).unwrap();
        println!("{}, {family}: {answers:?}", bed.title());
        let total: usize = answers.values().sum();
        assert_eq!(total, QUERIES, "{family}: {answers:?}\n{}", bed.counters());
        // Now and then dig takes a port a second time, and its connection is still there.
        for server in bed.servers() {
            let count = answers.get(server.name()).copied().unwrap_or(0);
            assert!(count.abs_diff(QUERIES / 3) <= 20, "{family}: {answers:?}");
        }
    }
    bed.nothing_was_lost().unwrap();
    bed.director.stop().unwrap();
}

/// Starts echo servers on the addresses that each method's servers are asked at.
pub(crate) fn start_echo(bed: &Bed, kind: Kind) -> Result<Vec<Process>> {
    let mut processes = Vec::new();
    for (number, server) in (1..).zip(bed.servers()) {
        for (family, (_, vip)) in FAMILIES.iter().enumerate() {
            let address = match kind {
                Kind::Nat | Kind::NatTwoArmed => server_addresses(number)[family],
                Kind::Direct | Kind::Tunnel => *vip,
            };
            let process = server
                .command(crate::LAB_BINARY)
                .args(["serve-udp-echo", "--name", server.name(), "--listen"])
                .arg(SocketAddr::new(address, ECHO).to_string())
                .spawn()?;
            process.wait_for_log("echoes on", Duration::from_secs(10))?;
            processes.push(process);
        }
    }
    Ok(processes)
}

pub(crate) fn echo(bed: &Bed, vip: IpAddr, count: u64, size: usize) -> Result<EchoTally> {
    let target = SocketAddr::new(vip, ECHO);
    let limit = Duration::from_millis(500);
    bed.client().run(|| echo_many(target, count, size, false, limit))?.context("echo")
}

/// Three fragments there, three fragments back.
fn fragments_follow(plan: Plan) {
    let bed = Bed::build(plan).unwrap();
    let _servers = start_echo(&bed, plan.kind).unwrap();
    for (family, vip) in FAMILIES {
        // IPv6 learns of a tunnel's narrower path from an ICMP error, at the cost of a datagram.
        let learning = echo(&bed, vip, 3, 3000).unwrap();
        let narrower = plan.kind == Kind::Tunnel && vip.is_ipv6();
        assert!(learning.lost <= u64::from(narrower), "{family}: {learning:?}");
        let tally = echo(&bed, vip, 300, 3000).unwrap();
        println!("{}, {family}: {tally:?}", bed.title());
        assert_eq!(tally.lost, 0, "{family}: {tally:?}\n{}", bed.counters());
        assert_eq!(tally.by_server.len(), 3, "{family}: {tally:?}");
    }
    bed.nothing_was_lost().unwrap();
    bed.director.stop().unwrap();
}

macro_rules! by_every_method {
    ($carry:ident { $($name:ident: $kind:ident, $offload:literal;)* }) => {$(
        #[test]
        fn $name() {
            if can_run() {
                $carry(Plan::new(Kind::$kind, $offload));
            }
        }
    )*};
}

by_every_method! { names_are_resolved {
    quick_dig_is_answered_through_nat_with_peers_offload_on: Nat, true;
    dig_is_answered_through_nat_with_peers_offload_off: Nat, false;
    dig_is_answered_through_tunnels_with_peers_offload_on: Tunnel, true;
    dig_is_answered_through_tunnels_with_peers_offload_off: Tunnel, false;
    dig_is_answered_by_direct_routing_with_peers_offload_on: Direct, true;
    dig_is_answered_by_direct_routing_with_peers_offload_off: Direct, false;
} }

by_every_method! { fragments_follow {
    later_fragments_follow_the_first_through_nat_with_peers_offload_on: Nat, true;
    later_fragments_follow_the_first_through_nat_with_peers_offload_off: Nat, false;
    later_fragments_follow_the_first_through_tunnels_with_peers_offload_on: Tunnel, true;
    later_fragments_follow_the_first_through_tunnels_with_peers_offload_off: Tunnel, false;
    later_fragments_follow_the_first_by_direct_routing_with_peers_offload_on: Direct, true;
    later_fragments_follow_the_first_by_direct_routing_with_peers_offload_off: Direct, false;
} }
