//! A director whose workers have a memory port each: everything is on one link, as in a one-armed
//! set-up. The workers, the table and the routes are those that carry traffic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use director::control::api::{Forwarding, Protocol, ServerSpec, ServiceKey, ServiceSpec, Tunnel};
use director::control::operations::Command;
use director::dispatch::Shared;
use director::keeper::Keeper;
use director::network::{
    Address, Change, Freshness, Hop, Interface, KernelRoute, Neighbour, Network, Resolver,
    RouteKind,
};
use director::table::Table;
use director::worker::{Worker, WorkerParts, WorkerPort, WorkerStatus};
use netio::{MemoryPort, Pool, Wire};

use super::template::{Frames, ROUND};
use super::turns::{Carrier, put};

const INTERFACE: u32 = 2;

/// Of every server. `ovf` leaves a server when it has more connections than this.
const WEIGHT: i32 = 1_000_000;

/// What the director does.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) forwarding: Forwarding,
    pub(super) v4: bool,
    pub(super) scheduler: &'static str,
    /// 1 to 60,000.
    pub(super) servers: u16,
}

impl Setup {
    pub(super) fn vip(&self) -> SocketAddr {
        let address = match self.v4 {
            true => IpAddr::from([192, 0, 2, 10]),
            false => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x10)),
        };
        SocketAddr::new(address, 80)
    }

    /// The address of server `number`, from 0.
    pub(super) fn server(&self, number: u16) -> SocketAddr {
        let address = match self.v4 {
            true => Ipv4Addr::from_bits(0x0a4d_0100 + u32::from(number)).into(),
            false => IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0x100 + number)),
        };
        SocketAddr::new(address, 80)
    }
}

/// See the module.
pub(super) struct Director {
    /// Its workers.
    pub(super) stations: Vec<Station>,
    table: Table,
    shared: Arc<Shared>,
    /// Gets memory ahead, as in the process.
    _keeper: Keeper,
}

/// One worker and its port.
pub(super) struct Station {
    worker: Worker,
    wire: Wire,
    epoch: Instant,
    /// Virtual time that has been skipped.
    skipped: Duration,
}

/// Chunks in the packet memory of a worker: a round does not use them up.
const CHUNKS: u32 = 4 * ROUND as u32;

impl Director {
    /// A director with so many workers, for at most so many connections.
    pub(super) fn new(setup: &Setup, workers: usize, connections: usize) -> Result<Director> {
        Director::over(setup, workers, Shared::new(connections))
    }

    /// The same with one worker, whose table is each time as the time before.
    pub(super) fn repeatable(setup: &Setup, connections: usize) -> Result<Director> {
        Director::over(setup, 1, Shared::with_seed(connections, 1))
    }

    fn over(setup: &Setup, workers: usize, shared: Shared) -> Result<Director> {
        let shared = Arc::new(shared);
        let table = Table::new(shared.clone(), Box::new(|_| false), 1);
        let mut network = segment()?;
        declare(&table, setup, &mut network)?;
        let network = Arc::new(Arc::new(network).into());
        let epoch = Instant::now();
        let station = |index| {
            let (port, wire) = MemoryPort::new(format!("eth0 queue {index}"), ROUND);
            let port = Box::new(port);
            let worker = Worker::new(WorkerParts {
                index,
                workers,
                ports: vec![WorkerPort { port, interface: INTERFACE, upcall: None, filter: None }],
                pool: Pool::new(CHUNKS, 2048)?,
                shared: shared.clone(),
                services: table.published(),
                network: Arc::clone(&network),
                resolver: Resolver::disconnected(),
                epoch,
                status: Arc::new(WorkerStatus::default()),
                stop: Arc::default(),
            });
            Ok(Station { worker, wire, epoch, skipped: Duration::from_secs(1) })
        };
        let stations = (0..workers).map(station).collect::<Result<_>>()?;
        let keeper = Keeper::start(&shared, || ())?;
        Ok(Director { stations, table, shared, _keeper: keeper })
    }

    /// Connections in the table.
    pub(super) fn connections(&self) -> usize {
        self.shared.connections.len()
    }

    /// The services, to be changed while workers are at work.
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Passes time at once, as far as timers are concerned.
    pub(super) fn skip(&mut self, time: Duration) -> Result<()> {
        for station in &mut self.stations {
            station.skipped += time;
            station.breath()?;
        }
        Ok(())
    }
}

impl Station {
    /// Sends frames on and gives what comes out to `each`.
    pub(super) fn exchange(&mut self, frames: &Frames, mut each: impl FnMut(&[u8])) -> Result<()> {
        put(&self.wire, frames)?;
        self.carry()?;
        while let Some(packet) = self.wire.collect() {
            each(&packet.bytes);
            self.wire.recycle(packet);
        }
        Ok(())
    }

    /// As in the worker's own loop: the clock is read once per breath.
    pub(super) fn breath(&mut self) -> Result<usize> {
        Ok(self.worker.breath(self.skipped + self.epoch.elapsed())?)
    }
}

impl Carrier for Station {
    fn wire(&self) -> &Wire {
        &self.wire
    }

    fn carry(&mut self) -> Result<Duration> {
        let start = Instant::now();
        while self.breath()? > 0 {}
        Ok(start.elapsed())
    }
}

/// Adds the service; its servers are known to the network.
fn declare(table: &Table, setup: &Setup, network: &mut Network) -> Result<()> {
    let change = |command| table.change(command, Duration::ZERO).map_err(|it| anyhow!("{it:?}"));
    let key = ServiceKey::Address { protocol: Protocol::Tcp, address: setup.vip() };
    let scheduler = setup.scheduler.to_owned();
    let service = ServiceSpec {
        key,
        scheduler,
        flags: 0,
        persistence: None,
        one_packet: false,
        extras: None,
    };
    change(Command::AddService { service }).context("the service")?;
    for number in 0..setup.servers {
        let address = setup.server(number);
        let server = ServerSpec {
            address,
            forwarding: setup.forwarding,
            tunnel: Tunnel::Ipip,
            weight: WEIGHT,
            upper_threshold: 0,
            lower_threshold: 0,
        };
        change(Command::AddServer { service: key, server }).context("a server")?;
        network.apply(neighbour(address.ip()));
    }
    Ok(())
}

/// One interface with both families, the servers' networks on it, and a router to all else.
fn segment() -> Result<Network> {
    let mut network = Network::default();
    network.apply(Change::Interface(Interface {
        index: INTERFACE,
        name: "eth0".to_owned(),
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        up: true,
        carrier: true,
        vlan: None,
    }));
    for (own, subnet) in [
        ("192.0.2.1", "192.0.2.0/24"),
        ("10.77.0.1", "10.77.0.0/16"),
        ("2001:db8:1::1", "2001:db8:1::/64"),
        ("fd77::1", "fd77::/64"),
    ] {
        network.apply(Change::Address(Address {
            interface: INTERFACE,
            address: own.parse()?,
            subnet: subnet.parse()?,
            scope: 0,
            secondary: false,
            deprecated: false,
            tentative: false,
            protocol: 0,
        }));
        network.apply(route(subnet, None)?);
    }
    for (subnet, router) in [("0.0.0.0/0", "192.0.2.254"), ("::/0", "2001:db8:1::fe")] {
        let router: IpAddr = router.parse()?;
        network.apply(route(subnet, Some(router))?);
        network.apply(neighbour(router));
    }
    Ok(network)
}

fn route(destination: &str, gateway: Option<IpAddr>) -> Result<Change> {
    let hop = Hop { interface: INTERFACE, gateway, weight: 1, dead: false };
    let route = KernelRoute {
        table: 254,
        destination: destination.parse()?,
        priority: 0,
        kind: RouteKind::Unicast,
        hops: vec![hop],
        source: None,
        mtu: None,
        scope: 0,
    };
    Ok(Change::Route { route, replaces: false })
}

fn neighbour(address: IpAddr) -> Change {
    let mac = Some([2, 0, 0, 0, 0, 2]);
    Change::Neighbour(Neighbour { interface: INTERFACE, address, mac, freshness: Freshness::Fresh })
}
