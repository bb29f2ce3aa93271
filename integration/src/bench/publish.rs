//! A thousand services of ten servers each appear and go while packets flow.
//!
//! Here over a port in memory: one worker carries established connections without a pause, and the
//! control plane publishes. Its longest breath while that goes on stands beside the longest in a
//! stretch of the same length without: what the machine itself does to a busy thread.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use nix::time::{ClockId, clock_gettime};

use super::Run;
use super::director::{Director, Setup, Station};
use super::figure::{Better, Figure};
use super::flows::{Flows, Visits, always};
use super::template::{Frames, Side};
use super::turns::{Carrier, Source, median, pin, put};
use ::director::config::DeclaredService;
use ::director::control::api::{Forwarding, Protocol, ServerSpec, ServiceKey, ServiceSpec, Tunnel};

/// What is published.
pub(super) const SERVICES: u16 = 1_000;
pub(super) const SERVERS: u8 = 10;

/// After a publication: until the worker has certainly seen it, and has let go of the old.
const AFTERWARDS: Duration = Duration::from_millis(5);

const NAMES: [&str; 4] =
    ["publish/lost", "publish/longest-breath", "publish/longest-breath-cpu", "publish/time"];

pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    if !NAMES.iter().any(|name| run.wants(name)) {
        return Ok(());
    }
    run.tell("publish: 1,000 services of 10 servers, over the memory port");
    let publications = if run.plan.quick { 2 } else { 20 };
    let setup = Setup { forwarding: Forwarding::Nat, v4: true, scheduler: "rr", servers: 3 };
    let mut director = Director::new(&setup, 1, 1 << 16)?;
    let visits = Flows::open(&mut director, &setup, 10_240, &always)?.visits(Side::Client, 0, 1);
    let mut station = director.stations.pop().ok_or_else(|| anyhow!("no worker"))?;
    let stretch = Stretch::default();
    let declared = services();
    let (seen, times) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            pin(0);
            carry(&mut station, visits, &stretch)
        });
        let times = publish(&director, &declared, publications, &stretch);
        stretch.over.store(true, Ordering::Release);
        let seen = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, anyhow::Error>((seen?, times?))
    })?;
    report(run, &seen, &times)
}

fn report(run: &mut Run<'_>, seen: &Seen, times: &[f64]) -> Result<()> {
    ensure!(seen.sent > 0, "the worker has carried nothing");
    let note =
        format!("memory port, {} publications, {} packets meanwhile", times.len(), seen.sent);
    run.add(
        Figure::new(NAMES[0], (seen.sent - seen.came) as f64, "packets", Better::Less)
            .value_target(0.0, "")
            .noted(&note),
    );
    let wall = "floor: as long without a publication";
    let stall = |name, [quiet, busy]: [f64; 2]| {
        Figure::new(name, busy, "ms", Better::Less).over(quiet, wall).noted(&note)
    };
    run.add(stall(NAMES[1], seen.wall).value_target(1.0, " ms"));
    let cpu = stall(NAMES[2], seen.cpu).value_target(1.0, " ms");
    run.add(cpu.noted("the thread's own time: without what other programs took of its core"));
    run.add(
        Figure::new(NAMES[3], median(times), "ms", Better::Less)
            .noted("median time until all are published"),
    );
    Ok(())
}

/// What goes on at the moment: odd numbers are publications.
#[derive(Default)]
struct Stretch {
    number: AtomicUsize,
    over: AtomicBool,
}

/// Publishes all services and none in turn. Returns milliseconds each time.
fn publish(
    director: &Director,
    declared: &[DeclaredService],
    publications: usize,
    stretch: &Stretch,
) -> Result<Vec<f64>> {
    pin(1);
    let mut times = Vec::new();
    let mut length = Duration::from_millis(50);
    for number in 0..publications {
        std::thread::sleep(length);
        let declared = if number % 2 == 0 { declared } else { &[] };
        stretch.number.fetch_add(1, Ordering::AcqRel);
        let start = Instant::now();
        let changes = director.table().declare(declared, &[], Duration::from_secs(2));
        let took = start.elapsed();
        std::thread::sleep(AFTERWARDS);
        stretch.number.fetch_add(1, Ordering::AcqRel);
        let changes = changes.map_err(|refused| anyhow!("{refused}"))?;
        ensure!(changes.refused.is_empty() && changes.made > 0, "not published: {changes:?}");
        length = took + AFTERWARDS;
        times.push(took.as_secs_f64() * 1e3);
    }
    Ok(times)
}

/// What the worker came to: packets in and out, milliseconds of the longest breath without and with
/// a publication.
#[derive(Default)]
struct Seen {
    sent: u64,
    came: u64,
    wall: [f64; 2],
    cpu: [f64; 2],
}

fn carry(station: &mut Station, mut visits: Visits, stretch: &Stretch) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut frames = Frames::default();
    while !stretch.over.load(Ordering::Acquire) {
        visits.next(&mut frames);
        put(station.wire(), &frames)?;
        seen.sent += frames.count() as u64;
        loop {
            let before = stretch.number.load(Ordering::Acquire) % 2;
            let (wall, cpu) = (Instant::now(), thread_time()?);
            let received = station.breath()?;
            let (cpu, wall) = (thread_time()? - cpu, wall.elapsed());
            // A breath that a publication began or ended in is one of its own.
            let busy = before | (stretch.number.load(Ordering::Acquire) % 2);
            seen.wall[busy] = seen.wall[busy].max(wall.as_secs_f64() * 1e3);
            seen.cpu[busy] = seen.cpu[busy].max(cpu.as_secs_f64() * 1e3);
            if received == 0 {
                break;
            }
        }
        while let Some(packet) = station.wire().collect() {
            station.wire().recycle(packet);
            seen.came += 1;
        }
    }
    Ok(seen)
}

fn thread_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// The services as a configuration file would declare them.
fn services() -> Vec<DeclaredService> {
    (0..SERVICES).map(service).collect()
}

fn service(number: u16) -> DeclaredService {
    let [high, low] = number.to_be_bytes();
    let address = SocketAddr::from(([198, 51, 100 + high, low], 80));
    let key = ServiceKey::Address { protocol: Protocol::Tcp, address };
    let servers = (1..=SERVERS).map(|server| ServerSpec {
        address: SocketAddr::from(([10, 77, 1, server], 80)),
        forwarding: Forwarding::Nat,
        tunnel: Tunnel::Ipip,
        weight: 1,
        upper_threshold: 0,
        lower_threshold: 0,
    });
    DeclaredService {
        service: ServiceSpec {
            key,
            scheduler: "wlc".to_owned(),
            flags: 0,
            persistence: None,
            one_packet: false,
            extras: None,
        },
        servers: servers.collect(),
        fallback: None,
        health: director::health::plan::ServiceHealth::default(),
    }
}
