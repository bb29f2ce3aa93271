//! The director under fuzz: services of every kind, two workers on one table, and an operator who
//! changes things while traffic flows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use director::config::DeclaredService;
use director::control::api::{
    Bias, BiasWindow, Extras, Forwarding, GoneServer, HashKey, MssClamp, NoDestination,
    OwnTimeouts, Persistence, Placement, Protocol, ServerSpec, ServiceKey, ServiceSpec, Teardown,
    Tunnel,
};
use director::control::operations::Command;
use director::dispatch::Shared;
use director::health::plan::ServiceHealth;
use director::health::servers::{Servers, Standing};
use director::network::Resolver;
use director::table::Table;
use director::worker::tap::{EVERY_DROP, EVERY_PASS, End, Tap, Wanted};
use director::worker::{Upcall, Worker, WorkerParts, WorkerPort, WorkerStatus};
use netio::{MemoryPort, Pool, Wire};

use crate::ftp::CONTROL;
use crate::network::{BACK, FRONT, network};
use crate::random::Random;

pub(crate) const VIP4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10));
pub(crate) const VIP6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x10));
const CONNECTIONS: usize = 2500;
const PROTOCOLS: [Protocol; 3] = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];

use Forwarding::{Direct, Nat, Tunnel as Tunnelled};

/// Port, scheduler, method, persistent, servers: the same for every protocol on both VIPs. A server
/// is named by the end of its address: 10.77.0.N and fd77::N, but see [`address`].
#[rustfmt::skip]
const SERVICES: &[(u16, &str, Forwarding, bool, &[u16])] = &[
    (80, "wlc",   Nat,       false, &[11, 12, 13]),
    (81, "rr",    Tunnelled, false, &[11, 12]),
    (82, "sh",    Direct,    false, &[12, 13]),
    (83, "lc",    Nat,       true,  &[11, 12]),
    (84, "rr",    Nat,       false, &[]),
    (SILENT, "rr",    Nat,       false, &[99]),
    (86, "rr",    Nat,       false, &[NOWHERE]),
    (87, "rr",    Nat,       false, &[LOCAL]),
    (88, "mh",    Tunnelled, false, &[OTHER_FAMILY, VLAN]),
    (89, "lblcr", Nat,       false, &[VLAN, 11]),
    (CONTROL, "rr", Nat,     false, &[11, 12]),
    (ONE_PACKET, "rr", Tunnelled, true, &[11, 12]),
];

/// Where clients send to: services, the busy ones more often.
pub(crate) const PORTS: &[u16] = &[
    80, 80, 80, 80, 81, 81, 81, 82, 82, 83, 83, 84, SILENT, 86, 87, 88, 89, 90, ONE_PACKET,
    CONTROL, CONTROL,
];

/// The service whose server never answers ARP or neighbour discovery.
pub(crate) const SILENT: u16 = 85;

/// The service that schedules each datagram by itself.
const ONE_PACKET: u16 = 91;

/// Behind an interface of nobody in IPv4, without a route in IPv6.
const NOWHERE: u16 = 1000;
/// The director itself.
const LOCAL: u16 = 1001;
const OTHER_FAMILY: u16 = 1002;
/// Behind a VLAN (IPv4 only).
const VLAN: u16 = 1003;

fn address(server: u16, v4: bool) -> IpAddr {
    let text = match (server, v4) {
        (NOWHERE, true) => "10.79.0.11".to_owned(),
        (NOWHERE, false) => "fc00::9".to_owned(),
        (LOCAL, true) => "192.0.2.1".to_owned(),
        (LOCAL, false) => "2001:db8:1::1".to_owned(),
        (OTHER_FAMILY, true) => "fd77::13".to_owned(),
        (OTHER_FAMILY, false) => "10.77.0.13".to_owned(),
        (VLAN, true) => "10.78.0.11".to_owned(),
        (VLAN, false) => "fd77::12".to_owned(),
        (last, true) => format!("10.77.0.{last}"),
        (last, false) => format!("fd77::{last}"),
    };
    text.parse().expect("an address")
}

/// One worker and its wires.
pub(crate) struct Hands {
    pub(crate) worker: Worker,
    pub(crate) status: Arc<WorkerStatus>,
    pub(crate) wires: [Wire; 2],
}

/// Has everything captured, and nobody read it: packets go their way all the same.
fn watch(status: &WorkerStatus) {
    let wanted = Wanted {
        forwarded: true,
        passed: EVERY_PASS,
        dropped: EVERY_DROP,
        sample: 3,
        service: Some(End { protocol: None, address: VIP4, port: None }),
        snaplen: 200,
        both: true,
    };
    let other = Wanted { service: None, sample: 1, ..wanted.clone() };
    for wanted in [wanted, other] {
        assert!(status.taps.add(Arc::new(Tap::new(wanted, Duration::ZERO))));
    }
}

/// See the module.
pub(crate) struct Scene {
    pub(crate) table: Table,
    pub(crate) hands: [Hands; 2],
    pub(crate) now: Duration,
    /// Fragments over a transport header that have been sent: what needs no memory to be refused.
    pub(crate) over_headers: u64,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let shared = Arc::new(Shared::with_seed(CONNECTIONS, 1));
        let own = [address(LOCAL, true), address(LOCAL, false)];
        let table = Table::new(shared.clone(), Box::new(move |it| own.contains(&it)), 7);
        let network = Arc::new(ArcSwap::from_pointee(network()));
        let hands = [0, 1].map(|index| {
            let (ports, wires): (Vec<_>, Vec<_>) = [FRONT, BACK].map(port).into_iter().unzip();
            let status = Arc::new(WorkerStatus::default());
            watch(&status);
            let worker = Worker::new(WorkerParts {
                index,
                workers: 2,
                ports,
                // When as many wait for a neighbour as may, less than a batch is left: running out
                // of frames is tried as well.
                pool: Pool::new(560, 2048).unwrap(),
                shared: shared.clone(),
                services: table.published(),
                network: network.clone(),
                resolver: Resolver::disconnected(),
                epoch: Instant::now(),
                status: status.clone(),
                stop: Arc::default(),
            });
            let Ok(wires) = <[Wire; 2]>::try_from(wires) else { unreachable!("two of them") };
            Hands { worker, status, wires }
        });
        let mut scene = Scene { table, hands, now: Duration::from_secs(1), over_headers: 0 };
        for protocol in PROTOCOLS {
            for vip in [VIP4, VIP6] {
                for place in 0..SERVICES.len() {
                    scene.add_service(protocol, vip, place);
                }
            }
        }
        scene.declare_fallbacks();
        scene
    }

    /// The first service of each protocol and VIP has a fallback server, whenever it is there.
    fn declare_fallbacks(&self) {
        let (port, ..) = SERVICES[0];
        let views = self.table.service_views().into_iter();
        let declared: Vec<_> = views
            .filter_map(|view| match view.spec.key {
                ServiceKey::Address { address, .. } if address.port() == port => {
                    Some(DeclaredService {
                        fallback: Some(spec(0, 13, address.ip(), 1)),
                        service: view.spec,
                        servers: Vec::new(),
                        health: ServiceHealth::default(),
                    })
                }
                _ => None,
            })
            .collect();
        let declared = self.table.declare(&declared, &[], self.now).expect("they can be had");
        assert_eq!(declared.refused, []);
    }

    fn change(&self, command: Command) {
        // What is there already, or is not: the operator errs too.
        let _ = self.table.change(command, self.now);
    }

    fn add_service(&mut self, protocol: Protocol, vip: IpAddr, place: usize) {
        let (port, scheduler, _, persistent, servers) = SERVICES[place];
        let prefix = if vip.is_ipv4() { 24 } else { 64 };
        let key = ServiceKey::Address { protocol, address: SocketAddr::new(vip, port) };
        // Where there are no servers, clients hear of it in both ways from the first packet on.
        let no_destination = match servers.is_empty() && protocol == Protocol::Tcp && vip.is_ipv6()
        {
            true => NoDestination::Rst,
            false => NoDestination::Icmp,
        };
        let gone_server = if port == 81 { GoneServer::Rst } else { GoneServer::Drop };
        let service = ServiceSpec {
            key,
            scheduler: scheduler.to_owned(),
            flags: 0,
            persistence: persistent.then_some(Persistence { timeout: 40, prefix, engine: None }),
            one_packet: protocol == Protocol::Udp && port == ONE_PACKET,
            extras: Some(Extras { no_destination, gone_server, ..Extras::default() }),
        };
        self.change(Command::AddService { service });
        for &server in servers {
            self.change(Command::AddServer { service: key, server: spec(place, server, vip, 1) });
        }
    }

    /// The service shall do more than the kernel's, or less.
    fn edit_extras(&self, key: ServiceKey, random: &mut Random) {
        let views = self.table.service_views();
        let Some(view) = views.into_iter().find(|view| view.spec.key == key) else { return };
        let (tcp, udp) = match key {
            ServiceKey::Address { protocol: Protocol::Tcp, .. } => (random.below(2) == 0, 0),
            ServiceKey::Address { protocol: Protocol::Udp, .. } => {
                (false, random.below(100) as u32)
            }
            _ => (false, 0),
        };
        let seconds = if tcp { random.below(1000) as u32 } else { 0 };
        let extras = Extras {
            timeouts: OwnTimeouts { tcp: seconds, tcp_fin: seconds, udp },
            gone_server: *random.pick(&[GoneServer::Drop, GoneServer::Rst, GoneServer::Reschedule]),
            no_destination: if tcp { NoDestination::Rst } else { NoDestination::Icmp },
            leave_quiesced: random.below(2) == 0,
            bias: *random.pick(&[Bias::None, Bias::Linear(200), Bias::Ilb(2)]),
            bias_window: BiasWindow(100 + random.below(9000) as u32),
            teardown: *random.pick(&[Teardown::Lazy, Teardown::Eager, Teardown::None]),
            mss_clamp: MssClamp::ByRoute(tcp),
            placement: Placement {
                key: *random.pick(&[None, Some(HashKey::SourcePort), Some(HashKey::Tuple)]),
                sticky: random.below(2) == 0,
                variants: 1 + random.below(600) as u16,
            },
        };
        let service = ServiceSpec { extras: Some(extras), ..view.spec };
        self.change(Command::EditService { service });
    }

    /// The operator does something to one service.
    pub(crate) fn operate(&mut self, random: &mut Random) {
        let protocol = *random.pick(&PROTOCOLS);
        let vip = *random.pick(&[VIP4, VIP6]);
        let place = random.below(SERVICES.len());
        let (port, _, _, _, servers) = SERVICES[place];
        let service = ServiceKey::Address { protocol, address: SocketAddr::new(vip, port) };
        let chosen = servers.get(random.below(servers.len()));
        match (random.below(12), chosen) {
            (0, _) => self.change(Command::DeleteService { service }),
            (1..4, _) => self.add_service(protocol, vip, place),
            (4, _) => self.edit_extras(service, random),
            (5 | 6, Some(&server)) => {
                let server = spec(place, server, vip, 1).address;
                self.change(Command::DeleteServer { service, server });
            }
            (9, Some(&server)) => {
                let server = spec(place, server, vip, 1).address;
                let standing = Standing {
                    is_admitted: random.below(3) > 0,
                    permille: 1 + random.below(3000) as u16,
                };
                self.table.stand(&service, server, standing);
                self.table.report(&service, server, Some(random.below(10_001) as u16));
            }
            (10, Some(&server)) => {
                let server = spec(place, server, vip, 1).address;
                self.table.lose(&service, server, random.below(2) == 0, self.now);
            }
            (11, _) => _ = self.table.fall_back(&service, random.below(2) == 0),
            (_, Some(&server)) => {
                let server = spec(place, server, vip, random.below(3) as i32);
                self.change(Command::EditServer { service, server });
            }
            (_, None) => self.change(Command::Zero { service: Some(service) }),
        }
        // Whom this would rouse is not here.
        self.table.take_eager_work(100);
        self.table.sweep(self.now);
        self.table.estimate();
    }

    /// Every counter of both workers: label and packets.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let rows = self.hands.each_ref().map(|hands| hands.status.verdicts.rows());
        let [one, other] = rows;
        one.zip(other).map(|(one, other)| (one.label, one.packets + other.packets)).collect()
    }
}

fn spec(place: usize, server: u16, vip: IpAddr, weight: i32) -> ServerSpec {
    let (port, _, forwarding, ..) = SERVICES[place];
    // NAT may change the port too.
    let port = if forwarding == Nat && server != LOCAL { port + 8000 } else { port };
    ServerSpec {
        address: SocketAddr::new(address(server, vip.is_ipv4()), port),
        forwarding,
        tunnel: Tunnel::Ipip,
        weight,
        upper_threshold: 0,
        lower_threshold: 0,
    }
}

fn port(interface: u32) -> (WorkerPort, Wire) {
    let (port, wire) = MemoryPort::new("fuzz", 4096);
    let mut calls = 0_u32;
    // One packet in eight finds the kernel's queue full.
    let upcall: Upcall = Box::new(move |_| {
        calls += 1;
        if calls.is_multiple_of(8) { Err(std::io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    (WorkerPort { port: Box::new(port), interface, upcall: Some(upcall), filter: None }, wire)
}
