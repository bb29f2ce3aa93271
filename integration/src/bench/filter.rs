//! The filter of nlb mode: ns per frame in the kernel, beside an XDP program that does nothing.
//!
//! Every host of such a cluster receives every frame, so what a dropped one costs is what bounds
//! the cluster; the commonest is a segment of a connection that another host holds.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use ::director::filter::{Capacity, Filter};
use anyhow::{Context, Result, bail, ensure};
use netio::bpf::{Assembler, Program, ProgramType, Register, TestContext, xdp};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, socket};
use nlb::buckets::BucketSet;
use nlb::filter::{HostState, Policy, Reason};
use nlb::host::HostId;
use nlb::key::HashKey;
use nlb::rules::{Affinity, Mode, Protocol, Rule, Rules, Scope};

use super::Run;
use super::figure::{Better, Figure};
use super::frames;
use super::turns::{median, pin};

const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const CLUSTER_MAC: [u8; 6] = [2, 0xbf, 192, 0, 2, 10];
/// Virtual address and client.
const IPV4: [&str; 2] = ["192.0.2.10", "198.51.100.7"];
const IPV6: [&str; 2] = ["2001:db8::10", "2001:db8:1::7"];
const PORT: u16 = 80;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Runs of a program in a row, before the next has its turn.
const REPEAT: u32 = 4_000;
/// As many rounds of others take as long as one here.
const SHARE: usize = 8;

const FLOOR: &str = "floor: an XDP program that only says what to do with the frame";

/// What is sent, to a host that serves all buckets or none.
struct Case {
    name: &'static str,
    serves: bool,
    frame: Vec<u8>,
    /// As the filter must say, or something else has been measured.
    reason: Reason,
}

pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    if !NAMES.iter().any(|name| run.wants(name)) {
        return Ok(());
    }
    if let Err(missing) = crate::lab::supported() {
        run.tell(&format!("left out: filter/...: {missing:#}"));
        return Ok(());
    }
    run.tell("filter: the XDP program of nlb mode, by test runs in the kernel");
    let lab = crate::lab::Lab::new("filter")?;
    let host = lab.host("node")?;
    for (address, prefix) in IPV4.into_iter().zip([32; 2]).chain(IPV6.into_iter().zip([128; 2])) {
        host.add_address("lo", &format!("{address}/{prefix}"))?;
    }
    let rounds = run.plan.rounds().div_ceil(SHARE);
    for figure in host.run(|| measure(rounds))?? {
        run.add(figure);
    }
    Ok(())
}

const NAMES: [&str; 12] = [
    "filter/drop/segment",
    "filter/drop/syn",
    "filter/drop/udp",
    "filter/drop/segment-ipv6",
    "filter/drop/syn-ipv6",
    "filter/pass/segment",
    "filter/pass/syn",
    "filter/pass/udp",
    "filter/pass/segment-ipv6",
    "filter/pass/syn-ipv6",
    "filter/established/ipv4",
    "filter/established/ipv6",
];

fn measure(rounds: usize) -> Result<Vec<Figure>> {
    pin(0);
    let empty = empty(xdp::DROP)?;
    let [another, own] = [false, true].map(|serves| {
        Filter::open(&policy(serves)?, Capacity::default()).map_err(anyhow::Error::from)
    });
    let (another, own) = (another?, own?);
    let connections = [Connection::open(IPV4)?, Connection::open(IPV6)?];
    let cases = cases(&connections);
    let context = TestContext { repeat: REPEAT, ..TestContext::default() };
    let mut floor = Vec::new();
    let mut costs = vec![Vec::new(); cases.len()];
    for case in &cases {
        let filter = if case.serves { &own } else { &another };
        confirm(filter, case)?;
    }
    for _ in 0..rounds {
        floor.push(nanoseconds(&empty, &cases[0].frame, &context)?);
        for (case, costs) in cases.iter().zip(&mut costs) {
            let filter = if case.serves { &own } else { &another };
            costs.push(nanoseconds(filter.program(), &case.frame, &context)?);
        }
    }
    let floor = median(&floor);
    let figure = |(case, costs): (&Case, &Vec<f64>)| {
        Figure::new(case.name, median(costs), "ns/frame", Better::Less)
            .over(floor, FLOOR)
            .noted(&format!("test runs of {REPEAT} frames, reason {}", case.reason))
    };
    Ok(cases.iter().zip(&costs).map(figure).collect())
}

fn cases(connections: &[Connection; 2]) -> Vec<Case> {
    let end = |address: &str, port| SocketAddr::new(ip(address), port);
    let tcp =
        |[vip, client]: [&str; 2], flags| frames::tcp(end(client, 40_000), end(vip, PORT), flags);
    let datagram = || match (ip(IPV4[1]), ip(IPV4[0])) {
        (IpAddr::V4(client), IpAddr::V4(vip)) => {
            frames::udp(([2, 0, 0, 0, 0, 9], CLUSTER_MAC), (client, 40_000), (vip, PORT))
        }
        _ => Vec::new(),
    };
    let [established, established_ipv6] =
        connections.each_ref().map(|it| frames::tcp(it.client, it.server, ACK));
    let frames = [
        (false, tcp(IPV4, ACK), Reason::NotOwner),
        (false, tcp(IPV4, SYN), Reason::NotOwner),
        (false, datagram(), Reason::NotOwner),
        (false, tcp(IPV6, ACK), Reason::NotOwner),
        (false, tcp(IPV6, SYN), Reason::NotOwner),
        (true, tcp(IPV4, ACK), Reason::OwnBucket),
        (true, tcp(IPV4, SYN), Reason::OwnBucket),
        (true, datagram(), Reason::OwnBucket),
        (true, tcp(IPV6, ACK), Reason::OwnBucket),
        (true, tcp(IPV6, SYN), Reason::OwnBucket),
        (false, established, Reason::FlowPinned),
        (false, established_ipv6, Reason::FlowPinned),
    ];
    NAMES
        .into_iter()
        .zip(frames)
        .map(|(name, (serves, mut frame, reason))| {
            frame[..6].copy_from_slice(&CLUSTER_MAC);
            Case { name, serves, frame, reason }
        })
        .collect()
}

/// One frame, to see that it ends as it should.
fn confirm(filter: &Filter, case: &Case) -> Result<()> {
    let count = || -> Result<u64> {
        let counters = filter.counters()?;
        Ok(counters.iter().find(|(reason, _)| *reason == case.reason).map_or(0, |it| it.1))
    };
    let before = count()?;
    filter.program().test_run(&case.frame, &TestContext::default()).context("a test run")?;
    ensure!(count()? == before + 1, "{}: the filter does not say {}", case.name, case.reason);
    Ok(())
}

fn nanoseconds(program: &Program, frame: &[u8], context: &TestContext) -> Result<f64> {
    let run = program.test_run(frame, context).context("a test run")?;
    Ok(run.duration.as_nanos() as f64)
}

/// One slot, by the client's address, for the TCP and UDP of the port; all of its buckets, or none.
fn policy(serves: bool) -> Result<Policy> {
    let host = HostId::new(1)?;
    let rules = Rules::new(vec![Rule {
        scope: Scope::All,
        protocol: Protocol::Both,
        first_port: PORT,
        last_port: PORT,
        mode: Mode::Multiple { affinity: Affinity::SINGLE, weights: vec![(host, 50)] },
    }])?;
    let slots: Vec<_> = rules.slots().collect();
    let hash = HashKey { k0: 1, k1: 2 };
    let mut policy = Policy::new(OWN_MAC, CLUSTER_MAC, ip(IPV4[0]), rules, hash);
    policy.vips = vec![ip(IPV4[0]), ip(IPV6[0])];
    policy.state = HostState::Active;
    if serves {
        for slot in slots {
            policy.slots[slot.index()].serving = BucketSet::ALL;
        }
    }
    Ok(policy)
}

/// A program that does nothing.
fn empty(verdict: i32) -> Result<Program> {
    let mut asm = Assembler::new();
    asm.mov(Register::R0, verdict);
    asm.exit();
    Ok(Program::load(ProgramType::Xdp, "empty", &asm.assemble()?)?)
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A connection that this host holds.
struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    _ends: (TcpListener, TcpStream, TcpStream),
}

impl Connection {
    fn open([vip, client]: [&str; 2]) -> Result<Connection> {
        let listener = TcpListener::bind((ip(vip), PORT)).context("listen")?;
        let server = listener.local_addr()?;
        let family = match ip(client) {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        let near = socket(family, SockType::Stream, SockFlag::empty(), None)?;
        bind(near.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(ip(client), 0)))?;
        connect(near.as_raw_fd(), &SockaddrStorage::from(server)).context("connect")?;
        let (far, client) = listener.accept()?;
        if client.ip() == server.ip() {
            bail!("the connection came from the virtual address itself");
        }
        Ok(Connection { client, server, _ends: (listener, TcpStream::from(near), far) })
    }
}
