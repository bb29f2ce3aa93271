//! The filter on an interface: what of the cluster's traffic reaches the host's sockets.
//!
//! Two network namespaces, each that of a thread: the host under test, and a client at the other
//! end of a veth, whose neighbour table says which MAC address the virtual address has.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use netio::bpf::XdpMode;
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, sched_setaffinity, unshare};
use nix::unistd::{Pid, gettid};
use nlb::buckets::BucketSet;
use nlb::filter::{Policy, Reason, SlotState};
use nlb::rules::Rules;
use nlb::slot::Slot;

use super::bed::{self, OWN, PRIMARY, address, opened};
use super::frames::{CLIENT_MAC, CLUSTER_MAC, OWN_MAC};
use super::sockets::run_ip;
use crate::filter::{Capacity, Filter, Place};

const CLIENT: &str = "192.0.2.200";
const PORT: u16 = 53;

fn colons(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Sends a datagram to each address it is told, until there is nobody to tell it.
fn client(thread_id: Sender<i32>, addresses: Receiver<&'static str>) {
    unshare(CloneFlags::CLONE_NEWNET).expect("a namespace");
    thread_id.send(gettid().as_raw()).expect("the host waits");
    let Ok(_moved) = addresses.recv() else { return };
    run_ip(&format!("addr add {CLIENT}/24 dev far"));
    run_ip("link set far up");
    for (address, mac) in [(PRIMARY, CLUSTER_MAC), (OWN, OWN_MAC)] {
        let mac = colons(mac);
        run_ip(&format!("neigh replace {address} lladdr {mac} dev far nud permanent"));
    }
    // A veth hands packets over in a queue of the sender's CPU; only so they stay in order.
    let mut one_cpu = CpuSet::new();
    let allowed = sched_getaffinity(Pid::from_raw(0)).expect("the CPUs we may use");
    let cpu = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu) == Ok(true));
    one_cpu.set(cpu.expect("at least one")).unwrap();
    sched_setaffinity(Pid::from_raw(0), &one_cpu).expect("pinned");
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    while let Ok(address) = addresses.recv() {
        socket.send_to(b"ping", (address, PORT)).expect("sent");
    }
}

struct Host {
    interface: u32,
    cluster: UdpSocket,
    own: UdpSocket,
    to_client: Option<Sender<&'static str>>,
    client: Option<JoinHandle<()>>,
}

impl Host {
    fn new() -> Host {
        let (near, far) = (colons(OWN_MAC), colons(CLIENT_MAC));
        run_ip(&format!("link add near address {near} type veth peer name far address {far}"));
        run_ip(&format!("addr add {OWN}/24 dev near"));
        run_ip(&format!("addr add {PRIMARY}/32 dev near"));
        run_ip("link set near up");
        let (thread_id, from_client) = channel();
        let (to_client, addresses) = channel();
        let client = thread::spawn(move || client(thread_id, addresses));
        let thread_id = from_client.recv().expect("the client has started");
        run_ip(&format!("link set far netns {thread_id}"));
        to_client.send(OWN).expect("the client lives");
        let socket = |address: &str| {
            let socket = UdpSocket::bind((address, PORT)).expect("a free port");
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            socket
        };
        let cluster = socket(PRIMARY);
        cluster.set_nonblocking(true).unwrap();
        Host {
            interface: if_nametoindex("near").expect("the interface"),
            cluster,
            own: socket(OWN),
            to_client: Some(to_client),
            client: Some(client),
        }
    }

    /// Whether the client's datagram to the virtual address reaches the host's socket. A datagram
    /// to the host's own address follows it on the same wire and must always come; by then the
    /// first has.
    fn cluster_reaches_host(&self) -> bool {
        let to_client = self.to_client.as_ref().expect("not dropped yet");
        for address in [PRIMARY, OWN] {
            to_client.send(address).expect("the client lives");
        }
        self.own.recv(&mut [0; 16]).expect("the host's own traffic");
        self.cluster.recv(&mut [0; 16]).is_ok()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.to_client.take());
        let result = self.client.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(result, Some(Ok(()))));
    }
}

/// Runs the test in a namespace of its own, with a filter that serves nothing yet.
fn on_host(test: impl FnOnce(&Host, Filter) + Send + 'static) {
    let result = thread::spawn(move || {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            eprintln!("skipped: needs root for a network namespace");
            return;
        }
        let Some(filter) = opened(Filter::open(&policy(false), Capacity::default())) else {
            return;
        };
        test(&Host::new(), filter);
    })
    .join();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

fn policy(serving: bool) -> Policy {
    let mut policy = Policy { own: vec![address(OWN)], ..bed::policy(Rules::none()) };
    if serving {
        let all = SlotState { serving: BucketSet::ALL, ..SlotState::default() };
        policy.slots[Slot::DEFAULT.index()] = all;
    }
    policy
}

fn count(filter: &Filter, reason: Reason) -> u64 {
    let counters = filter.counters().expect("counters");
    counters.into_iter().find(|(other, _)| *other == reason).expect("all are there").1
}

#[test]
fn on_veth_the_host_gets_its_share_and_nothing_of_another_s() {
    on_host(|host, mut filter| {
        let place = Place { ifindex: host.interface, mode: XdpMode::Native, claim: true };
        filter.attach(place).expect("attached");
        assert!(!host.cluster_reaches_host(), "another's share");
        assert_eq!(count(&filter, Reason::NotOwner), 1);
        filter.publish(&policy(true)).expect("published");
        assert!(host.cluster_reaches_host(), "its own share");
        filter.publish(&policy(false)).expect("published");
        assert!(!host.cluster_reaches_host(), "another's share again");
        // New rules, a new program: it takes the place of the one at work.
        let tracking = Policy { track: true, ..policy(true) };
        filter.publish(&tracking).expect("published");
        assert!(host.cluster_reaches_host(), "with a new program");
        assert_eq!(count(&filter, Reason::DefaultHost), 2);
    });
}

#[test]
fn native_on_veth_needs_the_second_program() {
    on_host(|host, mut filter| {
        filter.publish(&policy(true)).expect("published");
        let place = Place { ifindex: host.interface, mode: XdpMode::Native, claim: false };
        filter.attach(place).expect("attached");
        assert!(!host.cluster_reaches_host(), "else the second program is needless");
        assert_eq!(count(&filter, Reason::DefaultHost), 1);
    });
}

#[test]
fn generic_needs_no_second_program_and_a_dropped_filter_lets_go_of_the_interface() {
    on_host(|host, mut filter| {
        let place = Place { ifindex: host.interface, mode: XdpMode::Generic, claim: false };
        filter.attach(place).expect("attached");
        assert!(!host.cluster_reaches_host());
        filter.publish(&policy(true)).expect("published");
        assert!(host.cluster_reaches_host());

        let mut next = Filter::open(&policy(true), Capacity::default()).expect("loaded");
        let place = Place { mode: XdpMode::Native, claim: true, ..place };
        assert!(next.attach(place).is_err(), "the interface is another's");
        drop(filter);
        // A child process that another test has just forked holds a copy of a link's descriptor until
        // it executes its program; give it a moment.
        assert!((0..1000).any(|_| next.attach(place).is_ok()));
        assert!(host.cluster_reaches_host());
    });
}
