//! A cluster at rest: everything is answered, once, by the host whose share it is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration::cluster::client_addresses;
use integration::lab::Process;
use integration::nginx;
use integration::udp::echo_many;
use nix::sys::signal::Signal;

use crate::bed::{Bed, DNS, ECHO, FAMILIES, Site};
use crate::load::{failed, requests, tally};
use crate::witness::Witness;
use crate::{LAB_BINARY, can_run};

/// Requests to each VIP.
const REQUESTS: usize = 600;
/// Questions to each VIP's DNS.
const QUERIES: usize = 100;
/// Standard deviations that a share may be off: once in two million times by chance.
const DEVIATIONS: f64 = 5.0;

/// Each host has its share, up to what chance does: every connection falls on a host by itself, so
/// the count of a host is binomial.
fn shares(what: &str, counts: &BTreeMap<String, usize>, bed: &Bed) {
    let total: usize = counts.values().sum();
    let weight = |number: usize| f64::from(*bed.site.weights.get(number - 1).unwrap_or(&50));
    let all: f64 = (1..=bed.site.hosts).map(weight).sum();
    for number in 1..=bed.site.hosts {
        let share = weight(number) / all;
        let expected = total as f64 * share;
        let deviation = (expected * (1.0 - share)).sqrt();
        let count = *counts.get(bed.name(number)).unwrap_or(&0) as f64;
        assert!(
            (count - expected).abs() <= DEVIATIONS * deviation + 1.0,
            "{what}: host {number} has {count} of {total}, not {expected:.0}: {counts:?}"
        );
    }
}

fn everything_is_answered_once(site: Site) {
    let bed = Bed::serving("once", site).unwrap();
    let _dns = start_dns(&bed).unwrap();
    let echo = start_echo(&bed).unwrap();
    let witness = Witness::start(&bed.cluster).unwrap();
    for &family in bed.site.families {
        let (name, vip) = FAMILIES[family];
        let made = requests(&bed.cluster.client, family, REQUESTS).unwrap();
        let counts = tally(&made);
        println!("{} nodes, {name}: {counts:?}", bed.site.hosts);
        assert!(failed(&made).is_empty(), "{name}: {counts:?}");
        shares(name, &counts, &bed);

        let answers = dig(&bed, vip).unwrap();
        assert_eq!(answers.values().sum::<usize>(), QUERIES, "DNS, {name}: {answers:?}");
        shares(&format!("DNS, {name}"), &answers, &bed);

        // Three fragments there, three back.
        let target = SocketAddr::new(vip, ECHO);
        let limit = Duration::from_millis(800);
        let ask = || echo_many(target, 60, 3000, false, limit);
        let echoed = bed.cluster.client.run(ask).unwrap().unwrap();
        assert_eq!(echoed.lost, 0, "fragments, {name}: {echoed:?}");
        assert!(echoed.by_server.len() > 1, "fragments, {name}: {echoed:?}");
        pings(&bed, family).unwrap();
    }
    errors_reach_the_host_that_they_are_about(&bed, &echo).unwrap();
    let account = witness.finish().unwrap();
    let (asked, answered) = account.pings();
    assert_eq!(asked, answered, "echo requests and replies");
    assert!(asked >= 16, "{asked} echo requests");
    assert_eq!(account.answered_twice(), Vec::<String>::new());
    assert_eq!(account.resets().len(), 0, "resets: {:?}", account.resets());
    let speakers: BTreeSet<usize> = account.speakers().into_keys().collect();
    assert_eq!(speakers, (1..=bed.site.hosts).collect(), "not every host answered");
}

/// Starts dnsmasq on every host; each answers `who.example.test` with its name.
fn start_dns(bed: &Bed) -> Result<Vec<Process>> {
    let start = |host: &integration::lab::Host| {
        let process = host
            .command("/usr/sbin/dnsmasq")
            .args(["--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"])
            .args(["--user=root", "--pid-file", &format!("--port={DNS}")])
            .arg(format!("--txt-record=who.example.test,{}", host.name()))
            .spawn()?;
        // It listens on TCP as well.
        nginx::wait_for_tcp(host, DNS, &process)?;
        Ok(process)
    };
    bed.cluster.hosts.iter().map(start).collect()
}

/// Asks, each time from a new port and never a second time; counts the answers.
fn dig(bed: &Bed, vip: IpAddr) -> Result<BTreeMap<String, usize>> {
    let questions = bed.cluster.lab.logs().join("questions");
    std::fs::write(&questions, "who.example.test TXT\n".repeat(QUERIES))?;
    let output = bed
        .cluster
        .client
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

pub(crate) fn start_echo(bed: &Bed) -> Result<Vec<Process>> {
    let mut processes = Vec::new();
    for host in &bed.cluster.hosts {
        for &family in bed.site.families {
            let process = host
                .command(LAB_BINARY)
                .args(["serve-udp-echo", "--name", host.name(), "--listen"])
                .arg(SocketAddr::new(FAMILIES[family].1, ECHO).to_string())
                .spawn()?;
            process.wait_for_log("echoes on", Duration::from_secs(10))?;
            processes.push(process);
        }
    }
    Ok(processes)
}

/// A ping from each of a few clients; ping itself says `DUP!` of a second reply.
pub(crate) fn pings(bed: &Bed, family: usize) -> Result<()> {
    for number in 1..=8 {
        let output = bed
            .cluster
            .client
            .command("ping")
            .args(["-n", "-c", "1", "-W", "2", "-I"])
            .arg(client_addresses(number)[family].to_string())
            .arg(FAMILIES[family].1.to_string())
            .output(Duration::from_secs(5))?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && !text.contains("DUP!"), "ping: {text}");
    }
    Ok(())
}

/// A client that has closed its socket answers an answer with "port unreachable": it concerns the
/// host that answered, and nobody else is to hear of it.
fn errors_reach_the_host_that_they_are_about(bed: &Bed, echo: &[Process]) -> Result<()> {
    let hosts = &bed.cluster.hosts;
    let before: Vec<u64> = hosts.iter().map(unreachables_heard).collect::<Result<_>>()?;
    let vip = FAMILIES[bed.site.families[0]].1;
    let ask = |number: u8| -> Result<()> {
        // Few, and one from each address: a kernel sends few errors a second to one destination.
        let from = client_addresses(number)[bed.site.families[0]];
        let socket = UdpSocket::bind((from, 0)).context("bind")?;
        socket.send_to(b"and gone", (vip, ECHO)).context("send")?;
        Ok(())
    };
    // The servers answer when the clients are gone.
    echo.iter().try_for_each(|server| server.signal(Signal::SIGSTOP))?;
    bed.cluster.client.run(|| (1..=4).try_for_each(ask))??;
    echo.iter().try_for_each(|server| server.signal(Signal::SIGCONT))?;
    std::thread::sleep(Duration::from_millis(200));
    let after: Vec<u64> = hosts.iter().map(unreachables_heard).collect::<Result<_>>()?;
    let heard: u64 = after.iter().zip(&before).map(|(after, before)| after - before).sum();
    ensure!(heard == 4, "4 clients were gone and hosts heard {heard} errors");
    Ok(())
}

/// "Destination unreachable" messages that a host's stack has received (`nstat` shows them).
fn unreachables_heard(host: &integration::lab::Host) -> Result<u64> {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))??;
    let mut lines = text.lines().filter(|line| line.starts_with("Icmp: "));
    let (names, values) = (lines.next().context("no Icmp")?, lines.next().context("no values")?);
    let mut pairs = names.split(' ').zip(values.split(' '));
    let value = pairs.find(|(name, _)| *name == "InDestUnreachs").context("no such counter")?.1;
    Ok(value.parse()?)
}

#[test]
fn quick_2_nodes_answer_everything_once() {
    if can_run() {
        everything_is_answered_once(Site::new(2));
    }
}

#[test]
fn three_nodes_answer_everything_once_by_their_weights() {
    if can_run() {
        everything_is_answered_once(Site { weights: vec![100, 50, 25], ..Site::new(3) });
    }
}

#[test]
fn four_nodes_answer_everything_once() {
    if can_run() {
        everything_is_answered_once(Site::new(4));
    }
}

#[test]
fn eight_nodes_answer_everything_once() {
    if can_run() {
        everything_is_answered_once(Site::new(8));
    }
}

#[test]
fn with_affinity_a_client_is_always_at_one_node() {
    if !can_run() {
        return;
    }
    let site = Site { service: "persistence = { timeout = \"5m\" }", ..Site::new(4) };
    let bed = Bed::serving("affinity", site).unwrap();
    let witness = Witness::start(&bed.cluster).unwrap();
    for &family in bed.site.families {
        let made = requests(&bed.cluster.client, family, 640).unwrap();
        assert!(failed(&made).is_empty(), "{:?}", tally(&made));
        let mut homes: BTreeMap<IpAddr, BTreeSet<&String>> = BTreeMap::new();
        for request in &made {
            homes.entry(request.client).or_default().extend(request.outcome.as_ref().ok());
        }
        assert_eq!(homes.len(), 64);
        for (client, servers) in &homes {
            assert_eq!(servers.len(), 1, "{client} met {servers:?}");
        }
        let servers: BTreeSet<_> = homes.into_values().flatten().collect();
        assert_eq!(servers.len(), 4, "64 clients met only {servers:?}");
    }
    let account = witness.finish().unwrap();
    assert_eq!(account.answered_twice(), Vec::<String>::new());
    assert_eq!(account.resets().len(), 0);
}

/// Real curl, once to each VIP from a few clients.
#[test]
fn quick_curl_is_served_over_both_families() {
    if !can_run() {
        return;
    }
    let mut bed = Bed::serving("curl", Site::new(3)).unwrap();
    for (family, vip) in FAMILIES {
        let mut served = BTreeSet::new();
        for number in 1..=12 {
            let from = client_addresses(number)[usize::from(vip.is_ipv6())];
            let output = bed
                .cluster
                .client
                .command("curl")
                .args(["--silent", "--show-error", "--fail", "--globoff", "--max-time", "5"])
                .args(["--interface", &from.to_string()])
                .arg(format!("http://{}/page", SocketAddr::new(vip, 80)))
                .output(Duration::from_secs(10))
                .unwrap();
            assert!(output.status.success(), "{family}: {output:?}");
            served.insert(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        assert!(served.len() > 1, "{family}: only {served:?}");
    }
    bed.stop_all().unwrap();
}
