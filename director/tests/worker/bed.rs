//! Workers without threads, kernel or clock: memory for ports, a network made by hand, and a time
//! that the test decides on.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use director::control::api::{Forwarding, Protocol, ServerSpec, ServiceKey, ServiceSpec, Tunnel};
use director::control::operations::Command;
use director::dispatch::Shared;
use director::network::{Change, Network, Resolver};
use director::table::Table;
use director::worker::{Filter, Upcall, Worker, WorkerParts, WorkerPort, WorkerStatus};
use netio::{MemoryPort, Packet, Pool, Port, Wire};

use crate::network::{BACK, FRONT, network};
use crate::port::Plain;

pub(crate) const FRAMES: u32 = 1024;
pub(crate) const CLIENT: &str = "198.51.100.7:4000";
pub(crate) const CLIENT6: &str = "[2001:db8:2::7]:4000";
pub(crate) const VIP: &str = "192.0.2.10:80";
pub(crate) const VIP6: &str = "[2001:db8:1::10]:80";

/// Makes a port of one in memory.
pub(crate) type Front = Box<dyn FnOnce(MemoryPort) -> Box<dyn Port>>;

/// How a worker's ports differ from the usual.
#[derive(Default)]
pub(crate) struct Options {
    /// The ports leave partial checksums to their caller.
    pub(crate) plain_ports: bool,
    /// What is put around the front port, or in its place.
    pub(crate) front: Option<Front>,
    /// The front port's upcall fails.
    pub(crate) deaf_kernel: bool,
    /// The front port's filter.
    pub(crate) filter: Option<Filter>,
}

/// One worker with a front and a back port.
pub(crate) struct Hands {
    pub(crate) worker: Worker,
    pub(crate) status: Arc<WorkerStatus>,
    pub(crate) front: Wire,
    pub(crate) back: Wire,
    /// What the front port has passed up.
    pub(crate) passed: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// A director.
pub(crate) struct Bed {
    pub(crate) table: Table,
    pub(crate) network: Arc<ArcSwap<Network>>,
    pub(crate) hands: Vec<Hands>,
    pub(crate) now: Duration,
}

impl Bed {
    /// So many workers.
    pub(crate) fn new(workers: usize) -> Bed {
        Bed::with((0..workers).map(|_| Options::default()).collect())
    }

    /// One worker for each of these.
    pub(crate) fn with(options: Vec<Options>) -> Bed {
        let shared = Arc::new(Shared::new(100_000));
        let table = Table::new(shared.clone(), Box::new(|_| false), 7);
        let network = Arc::new(ArcSwap::from_pointee(network()));
        let workers = options.len();
        let hands = options
            .into_iter()
            .enumerate()
            .map(|(index, options)| hands(index, workers, options, &shared, &table, &network))
            .collect();
        Bed { table, network, hands, now: Duration::from_secs(1) }
    }

    /// Adds a service (round robin) with these servers.
    pub(crate) fn serve(
        &self,
        protocol: Protocol,
        vip: &str,
        servers: &[&str],
        forwarding: Forwarding,
    ) {
        let key = ServiceKey::Address { protocol, address: at(vip) };
        let service = ServiceSpec {
            key,
            scheduler: "rr".to_owned(),
            flags: 0,
            persistence: None,
            one_packet: false,
            extras: None,
        };
        self.table.change(Command::AddService { service }, self.now).unwrap();
        for address in servers {
            let server = ServerSpec {
                address: at(address),
                forwarding,
                tunnel: Tunnel::Ipip,
                weight: 1,
                upper_threshold: 0,
                lower_threshold: 0,
            };
            self.table.change(Command::AddServer { service: key, server }, self.now).unwrap();
        }
    }

    /// The kernel's tables change.
    pub(crate) fn learn(&self, change: Change) {
        let mut network = Network::clone(&self.network.load());
        network.apply(change);
        self.network.store(Arc::new(network));
    }

    /// One breath of the worker `index`; no frame may be lost in it.
    pub(crate) fn breath(&mut self, index: usize) {
        let worker = &mut self.hands[index].worker;
        worker.breath(self.now).unwrap();
        let frames = worker.frames();
        assert_eq!(frames.lost(), 0, "{frames:?}");
    }

    /// A frame comes to the front of worker `index`; what goes out at its back.
    pub(crate) fn request(&mut self, index: usize, frame: &[u8]) -> Vec<Packet> {
        assert!(self.hands[index].front.inject(frame, None));
        self.breath(index);
        self.hands[index].back.collect_all()
    }

    /// A frame comes to the back of worker `index`; what goes out at its front.
    pub(crate) fn reply(&mut self, index: usize, frame: &[u8]) -> Vec<Packet> {
        assert!(self.hands[index].back.inject(frame, None));
        self.breath(index);
        self.hands[index].front.collect_all()
    }

    /// Lets time pass, a tick at a time.
    pub(crate) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(100);
            (0..self.hands.len()).for_each(|index| self.breath(index));
        }
    }

    /// The counter of this label of the worker `index`.
    pub(crate) fn count(&self, index: usize, label: &str) -> u64 {
        let mut rows = self.hands[index].status.verdicts.rows();
        rows.find(|row| row.label == label).unwrap_or_else(|| panic!("no counter {label}")).packets
    }
}

pub(crate) fn at(text: &str) -> SocketAddr {
    text.parse().expect("address and port")
}

fn hands(
    index: usize,
    workers: usize,
    options: Options,
    shared: &Arc<Shared>,
    table: &Table,
    network: &Arc<ArcSwap<Network>>,
) -> Hands {
    let (front, front_wire) = MemoryPort::new("eth0", 4096);
    let (back, back_wire) = MemoryPort::new("eth1", 4096);
    let boxed = |port: MemoryPort| -> Box<dyn Port> {
        if options.plain_ports { Box::new(Plain(port)) } else { Box::new(port) }
    };
    let front = match options.front {
        Some(other) => other(front),
        None => boxed(front),
    };
    let passed = Arc::new(Mutex::new(Vec::new()));
    let upcall: Upcall = if options.deaf_kernel {
        Box::new(|_| Err(std::io::ErrorKind::WouldBlock.into()))
    } else {
        let passed = passed.clone();
        Box::new(move |frame: &[u8]| {
            passed.lock().unwrap().push(frame.to_vec());
            Ok(())
        })
    };
    let status = Arc::new(WorkerStatus::default());
    let ports = vec![
        WorkerPort { port: front, interface: FRONT, upcall: Some(upcall), filter: options.filter },
        WorkerPort { port: boxed(back), interface: BACK, upcall: None, filter: None },
    ];
    let worker = Worker::new(WorkerParts {
        index,
        workers,
        ports,
        pool: Pool::new(FRAMES, 2048).unwrap(),
        shared: shared.clone(),
        services: table.published(),
        network: network.clone(),
        resolver: Resolver::disconnected(),
        epoch: Instant::now(),
        status: status.clone(),
        // Who calls `run` wants it to come to its end.
        stop: Arc::new(AtomicBool::new(true)),
    });
    Hands { worker, status, front: front_wire, back: back_wire, passed }
}
