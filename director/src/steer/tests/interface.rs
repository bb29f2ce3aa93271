//! Steering and guard on an interface: what the host's own sockets still get.
//!
//! Two network namespaces, each that of a thread: the host under test, and a client at the other
//! end of a veth. Programs drop what they take, since there is no AF_XDP socket here.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use netio::bpf::{Injector, Link, XdpMode};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, sched_setaffinity, unshare};
use nix::unistd::{Pid, gettid};

use super::frames::{DESTINATION, SOURCE, frame, ip};
use super::*;

const HOST: &str = "10.9.0.1";
const CLIENT: &str = "10.9.0.2";
/// A port of the host that is a virtual service, and one that is the host's own.
const SERVICE: u16 = 53;
const OWN: u16 = 5353;

fn run_ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .expect("iproute2 is installed");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {complaint}");
}

fn colons(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Sends a datagram to each port it is told, until there is nobody to tell it.
fn client(thread_id: Sender<i32>, ports: Receiver<u16>) {
    unshare(CloneFlags::CLONE_NEWNET).expect("a namespace");
    thread_id.send(gettid().as_raw()).expect("the host waits");
    let Ok(_moved) = ports.recv() else { return };
    run_ip(&format!("addr add {CLIENT}/24 dev far"));
    run_ip("link set far up");
    // A veth hands packets over in a queue of the sender's CPU; only so they stay in order.
    let mut one_cpu = CpuSet::new();
    let allowed = sched_getaffinity(Pid::from_raw(0)).expect("the CPUs we may use");
    let cpu = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu) == Ok(true));
    one_cpu.set(cpu.expect("at least one")).unwrap();
    sched_setaffinity(Pid::from_raw(0), &one_cpu).expect("pinned");
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    while let Ok(port) = ports.recv() {
        socket.send_to(b"ping", (HOST, port)).expect("sent");
    }
}

struct Host {
    interface: u32,
    service: UdpSocket,
    own: UdpSocket,
    to_client: Option<Sender<u16>>,
    client: Option<JoinHandle<()>>,
}

impl Host {
    fn new() -> Host {
        let (near, far) = (colons(DESTINATION), colons(SOURCE));
        run_ip(&format!("link add near address {near} type veth peer name far address {far}"));
        run_ip(&format!("addr add {HOST}/24 dev near"));
        run_ip("link set near up");
        let (thread_id, from_client) = channel();
        let (to_client, ports) = channel();
        let client = thread::spawn(move || client(thread_id, ports));
        let thread_id = from_client.recv().expect("the client has started");
        run_ip(&format!("link set far netns {thread_id}"));
        to_client.send(0).expect("the client lives");
        let socket = |port| {
            let socket = UdpSocket::bind((HOST, port)).expect("a free port");
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            socket
        };
        let service = socket(SERVICE);
        service.set_nonblocking(true).unwrap();
        let host = Host {
            interface: if_nametoindex("near").expect("the interface"),
            service,
            own: socket(OWN),
            to_client: Some(to_client),
            client: Some(client),
        };
        // Let the client learn our address now, or its first packets wait for that.
        host.tell_client(OWN);
        host.own.recv(&mut [0; 16]).expect("a first datagram");
        host
    }

    /// Whether the client's datagram to the service reaches the host's socket. A datagram to the
    /// host's own port follows it on the same wire and must always come; by then the first has.
    fn service_reaches_host(&self) -> bool {
        self.tell_client(SERVICE);
        self.tell_client(OWN);
        self.own.recv(&mut [0; 16]).expect("the host's own traffic");
        self.has_datagram()
    }

    /// Whether the host has its service again. A child process that another test has just forked
    /// holds a copy of a link's descriptor until it executes its program; give it a moment.
    fn service_comes_back(&self) -> bool {
        let mut attempts = 0..1000;
        attempts.any(|_| self.service_reaches_host())
    }

    /// Whether a frame to the service, given back to the stack, reaches the host's socket.
    fn injected_reaches_host(&self, injector: &Injector) -> bool {
        let mut segment = vec![];
        for half in [9999, SERVICE, 12, 0] {
            segment.extend(half.to_be_bytes());
        }
        segment.extend(b"back");
        let packet = ip(CLIENT, HOST, 17, &segment);
        injector.inject(&frame(&packet)).expect("injected");
        self.has_datagram()
    }

    fn tell_client(&self, port: u16) {
        let to_client = self.to_client.as_ref().expect("not dropped yet");
        to_client.send(port).expect("the client lives");
    }

    fn has_datagram(&self) -> bool {
        self.service.recv(&mut [0; 16]).is_ok()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.to_client.take());
        let result = self.client.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(result, Some(Ok(()))));
    }
}

/// Runs the test in a namespace of its own, with programs for the service.
fn on_host(test: impl FnOnce(&Host, &Steering, &Map) + Send + 'static) {
    let result = thread::spawn(move || {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            eprintln!("skipped: needs root for a network namespace");
            return;
        }
        let mut keys = KeySet::new();
        keys.add_service(17, HOST.parse().unwrap(), SERVICE);
        let mut table = Steering::new(16).expect("a map");
        table.sync(&keys).expect("room");
        let sockets = Map::of_sockets("no_sockets", 1).expect("a map");
        test(&Host::new(), &table, &sockets);
    })
    .join();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// Steering that drops what it takes.
fn dropping(table: &Steering, sockets: &Map, mark: Option<Mark>) -> Program {
    let insns = steering(table.map(), table.present().marked(), sockets, mark, xdp::DROP);
    Program::load(ProgramType::Xdp, "steering", &insns).expect("loaded")
}

#[test]
fn native_steering_takes_the_service_and_nothing_else_and_lets_go_at_once() {
    on_host(|host, table, sockets| {
        assert!(host.service_reaches_host());
        let program = dropping(table, sockets, None);
        let link = Link::attach_xdp(&program, host.interface, XdpMode::Native).unwrap();
        assert!(!host.service_reaches_host());
        let injector = Injector::new(host.interface).unwrap();
        assert!(host.injected_reaches_host(&injector));
        drop(link);
        assert!(host.service_comes_back());
    });
}

#[test]
fn a_marked_frame_passes_generic_steering_and_is_not_taken_again() {
    on_host(|host, table, sockets| {
        let mark = Mark::random();
        let program = dropping(table, sockets, Some(mark));
        let _link = Link::attach_xdp(&program, host.interface, XdpMode::Generic).unwrap();
        assert!(!host.service_reaches_host());
        let unmarked = Injector::new(host.interface).unwrap();
        assert!(!host.injected_reaches_host(&unmarked));
        let marked = Injector::with_mark(host.interface, mark.0).unwrap();
        assert!(host.injected_reaches_host(&marked));
    });
}

#[test]
fn the_guard_keeps_the_service_from_the_host_and_a_marked_frame_passes() {
    on_host(|host, table, _| {
        let mark = Mark::random();
        let guard = table.load_guard(Some(mark)).unwrap();
        let link = Link::attach_tcx_ingress(&guard, host.interface).unwrap();
        assert!(!host.service_reaches_host());
        let unmarked = Injector::new(host.interface).unwrap();
        assert!(!host.injected_reaches_host(&unmarked));
        let marked = Injector::with_mark(host.interface, mark.0).unwrap();
        assert!(host.injected_reaches_host(&marked));
        drop(link);
        assert!(host.service_comes_back());
    });
}

#[test]
fn without_a_socket_steering_leaves_its_packets_to_the_host() {
    on_host(|host, table, sockets| {
        let attach = |program| Link::attach_xdp(program, host.interface, XdpMode::Native);
        let program = table.load(ProgramType::Xdp, sockets, None).unwrap();
        let mut link = attach(&program).unwrap();
        assert!(host.service_reaches_host());
        let again = table.load(ProgramType::XdpFragments, sockets, None).unwrap();
        link.update(&again).unwrap();
        assert!(host.service_reaches_host());
    });
}
