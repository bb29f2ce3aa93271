//! What it costs to watch many servers: a TCP check and an agent of each, every second, on the
//! loopback.
//!
//! ```text
//! cargo run --release -p director --example health_cost [SERVERS] [SECONDS]
//! ```
//!
//! Prints which share of a core the thread with the health engine took, and which the whole process
//! took with all servers and agents in it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use director::control::api::{Forwarding, Protocol, ServerSpec, ServiceKey, Tunnel};
use director::control::health::HealthState;
use director::health::journal::Journal;
use director::health::plan::{AgentWatch, Check, ServiceHealth};
use director::health::servers::{Pool, Servers, Standing};
use director::health::watch::{Checks, Means, Watch};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use realserver_agent::protocol::{Answer, LEN, Probe, State};
use tokio::net::{TcpListener, UdpSocket};

/// Servers of one service.
const POOL: usize = 100;
/// Before it is measured.
const WARM_UP: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u32| -> Result<u32> {
        arguments.next().map_or(Ok(default), |text| text.parse().context("a number is expected"))
    };
    let (servers, seconds) = (number(1000)?, number(10)?.max(1));
    // An agent has a socket of its own, and a check another.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;

    let answered = Arc::new(AtomicU64::new(0));
    let (sender, ports) = mpsc::channel();
    let count = answered.clone();
    std::thread::spawn(move || serve(servers, &sender, &count));
    let (tcp, agent) = ports.recv().context("the servers did not start")??;

    let addresses: Vec<SocketAddr> =
        (0..servers).map(|number| SocketAddr::from((address(number), tcp))).collect();
    let table = Table::new(&addresses);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(watch(table, agent, seconds, &answered))
}

async fn watch(table: Table, agent: u16, seconds: u32, answered: &AtomicU64) -> Result<()> {
    let second = Duration::from_secs(1);
    let check = Check { interval: second, timeout: second, ..Check::default() };
    let asked = AgentWatch { port: agent, ..AgentWatch::default() };
    let plan =
        ServiceHealth { checks: vec![check], agent: Some(asked), ..ServiceHealth::default() };
    let plans = table.pools.keys().map(|service| (*service, plan.clone())).collect();
    let memory = std::env::temp_dir().join(format!("health_cost.{}.json", std::process::id()));
    let means = Means {
        servers: Arc::new(table),
        journal: Arc::new(Journal::default()),
        prober: Arc::new(Checks::default()),
        memory: Some(memory.clone()),
        epoch: Instant::now(),
    };
    let watch = Watch::begin(means, plans)?;
    for _ in 0..WARM_UP.as_secs() {
        tokio::time::sleep(second).await;
        watch.reconcile();
    }
    let made = || watch.views().iter().map(|view| view.checks[0].made).sum::<u64>();
    let before = (made(), answered.load(Relaxed), Instant::now());
    let used = (used(UsageWho::RUSAGE_THREAD)?, used(UsageWho::RUSAGE_SELF)?);
    for _ in 0..seconds {
        tokio::time::sleep(second).await;
        watch.reconcile();
    }
    let time = before.2.elapsed();
    let share = |who, before| -> Result<f64> {
        Ok((self::used(who)?.saturating_sub(before)).as_secs_f64() / time.as_secs_f64() * 100.0)
    };
    let engine = share(UsageWho::RUSAGE_THREAD, used.0)?;
    let all = share(UsageWho::RUSAGE_SELF, used.1)?;
    let rate = |count: u64| count as f64 / time.as_secs_f64();
    let views = watch.views();
    let up = views.iter().filter(|view| view.state == HealthState::Up).count();
    println!(
        "{} servers, {up} up; each second {:.0} checks and {:.0} answers of agents",
        views.len(),
        rate(made() - before.0),
        rate(answered.load(Relaxed) - before.1),
    );
    println!("health took {engine:.1} % of a core; with the servers and agents {all:.1} %");
    drop(watch);
    // It was written, or was not.
    let _ = std::fs::remove_file(memory);
    Ok(())
}

/// Processor time so far.
fn used(who: UsageWho) -> Result<Duration> {
    let usage = getrusage(who)?;
    let micros = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(
            u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0),
        )
    };
    Ok(micros(usage.user_time()) + micros(usage.system_time()))
}

/// Each server has an address of its own, so that each has an agent of its own.
fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 1)) + number)
}

/// All servers and agents, for ever, on a thread of their own. Their TCP and their UDP port.
fn serve(servers: u32, ports: &mpsc::Sender<Result<(u16, u16)>>, answered: &Arc<AtomicU64>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(Into::into).and_then(|runtime| {
        runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
            let first = UdpSocket::bind((address(0), 0)).await?;
            let agent = first.local_addr()?.port();
            tokio::spawn(answer(first, answered.clone()));
            for number in 1..servers {
                let socket = UdpSocket::bind((address(number), agent)).await?;
                tokio::spawn(answer(socket, answered.clone()));
            }
            // Nobody waits for them only if the process is ending.
            let _ = ports.send(Ok((listener.local_addr()?.port(), agent)));
            loop {
                drop(listener.accept().await?);
            }
        })
    });
    let _ = ports.send(outcome);
}

async fn answer(socket: UdpSocket, answered: Arc<AtomicU64>) {
    let mut buffer = [0; LEN];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        if let Ok(Probe { challenge }) = Probe::decode(&buffer[..length], None) {
            let load = Some(1000);
            let state = State::Up;
            let answer = Answer { challenge, boot: 1, state, load, connections: 1, queue: 0 };
            if socket.send_to(&answer.encode(None), from).await.is_ok() {
                answered.fetch_add(1, Relaxed);
            }
        }
    }
}

/// A table that knows its pools and forgets what it is told.
struct Table {
    pools: HashMap<ServiceKey, Vec<ServerSpec>>,
}

impl Table {
    fn new(servers: &[SocketAddr]) -> Table {
        let spec = |address: &SocketAddr| ServerSpec {
            address: *address,
            forwarding: Forwarding::Nat,
            tunnel: Tunnel::default(),
            weight: 100,
            upper_threshold: 0,
            lower_threshold: 0,
        };
        let pool = |(number, servers): (usize, &[SocketAddr])| {
            let vip = Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 1)) + number as u32);
            let address = SocketAddr::from((vip, 80));
            let service = ServiceKey::Address { protocol: Protocol::Tcp, address };
            (service, servers.iter().map(spec).collect())
        };
        Table { pools: servers.chunks(POOL).enumerate().map(pool).collect() }
    }
}

impl Servers for Table {
    fn pool(&self, service: &ServiceKey) -> Option<Pool> {
        self.pools.get(service).map(|servers| Pool { servers: servers.clone() })
    }

    fn stand(&self, _: &ServiceKey, _: SocketAddr, standing: Standing) -> Option<(i32, i32)> {
        Some((100, standing.effective(100)))
    }

    fn lose(&self, _: &ServiceKey, _: SocketAddr, _: bool, _: Duration) -> bool {
        true
    }

    fn report(&self, _: &ServiceKey, _: SocketAddr, _: Option<u16>) -> bool {
        true
    }

    fn fall_back(&self, _: &ServiceKey, _: bool) -> bool {
        true
    }
}
