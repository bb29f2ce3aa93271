//! A director with one worker on one memory port: everything is on one link, as in a one-armed
//! set-up. The worker, the table and the routes are those that carry traffic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use director::control::api::{Forwarding, Protocol, ServerSpec, ServiceKey, ServiceSpec, Tunnel};
use director::control::operations::Command;
use director::dispatch::Shared;
use director::network::{
    Address, Change, Freshness, Hop, Interface, KernelRoute, Neighbour, Network, Resolver,
    RouteKind,
};
use director::table::Table;
use director::worker::{Worker, WorkerParts, WorkerPort, WorkerStatus};
use netio::{MemoryPort, Packet, Pool, Wire};

use super::floor::{put, take};

const INTERFACE: u32 = 2;

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

    fn server(&self, number: u16) -> SocketAddr {
        let address = match self.v4 {
            true => Ipv4Addr::from_bits(0x0a4d_0100 + u32::from(number)).into(),
            false => IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0x100 + number)),
        };
        SocketAddr::new(address, 80)
    }
}

/// See the module.
pub(super) struct Director {
    worker: Worker,
    shared: Arc<Shared>,
    wire: Wire,
    epoch: Instant,
    /// Virtual time that has been skipped.
    skipped: Duration,
}

impl Director {
    pub(super) fn new(setup: &Setup) -> Result<Director> {
        let shared = Arc::new(Shared::new(1 << 20));
        let table = Table::new(shared.clone(), Box::new(|_| false), 1);
        let mut network = segment()?;
        declare(&table, setup, &mut network)?;
        let (port, wire) = MemoryPort::new("eth0", super::ROUND);
        let port =
            WorkerPort { port: Box::new(port), interface: INTERFACE, upcall: None, filter: None };
        let epoch = Instant::now();
        let worker = Worker::new(WorkerParts {
            index: 0,
            workers: 1,
            ports: vec![port],
            pool: Pool::new(1024, 2048)?,
            shared: shared.clone(),
            services: table.published(),
            network: Arc::new(Arc::new(network).into()),
            resolver: Resolver::disconnected(),
            epoch,
            status: Arc::new(WorkerStatus::default()),
            stop: Arc::default(),
        });
        Ok(Director { worker, shared, wire, epoch, skipped: Duration::from_secs(1) })
    }

    /// How long the worker takes to send these frames on.
    pub(super) fn time(&mut self, frames: &[Vec<u8>]) -> Result<Duration> {
        put(&self.wire, frames)?;
        let start = Instant::now();
        while self.breath()? > 0 {}
        let took = start.elapsed();
        take(&self.wire, frames.len())?;
        Ok(took)
    }

    /// Sends frames and gives what comes out of them.
    pub(super) fn exchange(&mut self, frames: &[Vec<u8>]) -> Result<Vec<Packet>> {
        put(&self.wire, frames)?;
        while self.breath()? > 0 {}
        Ok(self.wire.collect_all())
    }

    /// Connections in the table.
    pub(super) fn connections(&self) -> usize {
        self.shared.connections.len()
    }

    /// Passes time at once, so that connections expire.
    pub(super) fn skip(&mut self, time: Duration) -> Result<()> {
        self.skipped += time;
        self.breath().map(drop)
    }

    /// As in the worker's own loop: the clock is read once per breath.
    fn breath(&mut self) -> Result<usize> {
        Ok(self.worker.breath(self.skipped + self.epoch.elapsed())?)
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
            weight: 1,
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
