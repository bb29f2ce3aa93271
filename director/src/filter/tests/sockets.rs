//! The kernel's own TCP sockets are the memory of flows: in a network namespace with a real listener
//! and real connections.

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};
use nlb::buckets::BucketSet;
use nlb::filter::{Policy, Reason, SlotState, Socket};
use nlb::rules::Rules;
use nlb::slot::{SLOTS, Slot};
use nlb::tuple::Tuple;

use super::bed::{self, Bed, PRIMARY, PRIMARY_IPV6, address};
use super::frames::{ACK, FIN, RST, SYN, TCP, icmp, ip, tcp, to_cluster};

const CLIENT: &str = "198.51.100.1";
const CLIENT_IPV6: &str = "2001:db8:1::1";
const PORT: u16 = 80;

/// A connection to a virtual address of this host, and both its ends.
struct Flow {
    tuple: Tuple,
    client: TcpStream,
    server: TcpStream,
    _listener: TcpListener,
}

impl Flow {
    fn open(client: &str, vip: &str) -> Flow {
        let listener = TcpListener::bind((address(vip), PORT)).expect("a listener");
        let client = connected(address(client), listener.local_addr().expect("bound"));
        let (server, from) = listener.accept().expect("a connection");
        let tuple = Tuple {
            protocol: TCP,
            client: from.ip(),
            client_port: from.port(),
            vip: address(vip),
            vip_port: PORT,
        };
        Flow { tuple, client, server, _listener: listener }
    }

    /// A segment of it from the client.
    fn segment(&self, flags: u8) -> Vec<u8> {
        segment(&self.tuple, flags)
    }
}

fn segment(tuple: &Tuple, flags: u8) -> Vec<u8> {
    let segment = tcp(tuple.client_port, tuple.vip_port, flags);
    to_cluster(&ip(tuple.client, tuple.vip, TCP, &segment))
}

/// A stream from an address of ours.
fn connected(from: IpAddr, to: SocketAddr) -> TcpStream {
    let family = if from.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let fd: OwnedFd = socket(family, SockType::Stream, SockFlag::empty(), None).expect("a socket");
    let storage = |address: SocketAddr| SockaddrStorage::from(address);
    setsockopt(&fd, sockopt::ReuseAddr, &true).expect("an option");
    bind(fd.as_raw_fd(), &storage(SocketAddr::new(from, 0))).expect("bound");
    connect(fd.as_raw_fd(), &storage(to)).expect("connected");
    TcpStream::from(fd)
}

/// Runs a test in a network namespace where the virtual addresses and those of the clients are
/// this host's.
fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let result = std::thread::spawn(move || {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            eprintln!("skipped: needs root for a network namespace");
            return;
        }
        run_ip("link set lo up");
        for (address, prefix) in
            [(PRIMARY, 32), (CLIENT, 32), (PRIMARY_IPV6, 128), (CLIENT_IPV6, 128)]
        {
            run_ip(&format!("addr add {address}/{prefix} dev lo"));
        }
        test();
    })
    .join();
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

pub(super) fn run_ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .expect("iproute2 is installed");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {complaint}");
}

/// The default slot serves all buckets, or none.
fn policy(serving: bool, tainted: bool) -> Policy {
    let set = |full| if full { BucketSet::ALL } else { BucketSet::EMPTY };
    let mut slots: Box<[SlotState; SLOTS]> =
        Box::new(std::array::from_fn(|_| SlotState::default()));
    slots[Slot::DEFAULT.index()] = SlotState { serving: set(serving), tainted: set(tainted) };
    Policy { slots, ..bed::policy(Rules::none()) }
}

/// What both sides say of a frame.
fn reason(bed: &mut Bed, frame: &[u8]) -> Reason {
    bed.step(frame).unwrap_or_else(|difference| panic!("{difference}\n{frame:02x?}")).reason
}

fn both_families(test: fn(&mut Bed, &Flow)) {
    in_namespace(move || {
        for (client, vip) in [(CLIENT, PRIMARY), (CLIENT_IPV6, PRIMARY_IPV6)] {
            let Some(mut bed) = Bed::new(&policy(false, false)) else { return };
            let flow = Flow::open(client, vip);
            bed.twin.sockets.insert(flow.tuple, Socket::Flow);
            test(&mut bed, &flow);
        }
    });
}

#[test]
fn a_connection_of_this_host_is_passed_in_a_bucket_of_another_and_a_listener_is_no_connection() {
    both_families(|bed, flow| {
        assert_eq!(reason(bed, &flow.segment(ACK)), Reason::FlowPinned);
        assert_eq!(reason(bed, &flow.segment(ACK | FIN)), Reason::FlowPinned);
        let stranger = Tuple { client_port: flow.tuple.client_port ^ 1, ..flow.tuple };
        assert_eq!(reason(bed, &segment(&stranger, ACK)), Reason::NotOwner);
        assert_eq!(reason(bed, &segment(&stranger, SYN)), Reason::NotOwner);
        let elsewhere = Tuple { vip_port: 81, ..flow.tuple };
        assert_eq!(reason(bed, &segment(&elsewhere, RST)), Reason::NotOwner);
    });
}

#[test]
fn a_connection_is_passed_in_a_bucket_that_others_hold_flows_in_and_a_stranger_gets_no_reset() {
    both_families(|bed, flow| {
        bed.filter.publish(&policy(true, true)).expect("published");
        assert_eq!(reason(bed, &flow.segment(ACK)), Reason::FlowPinned);
        let stranger = Tuple { client_port: flow.tuple.client_port ^ 1, ..flow.tuple };
        assert_eq!(reason(bed, &segment(&stranger, ACK)), Reason::BucketTainted);
        bed.filter.publish(&policy(true, false)).expect("published");
        assert_eq!(reason(bed, &segment(&stranger, ACK)), Reason::DefaultHost);
    });
}

#[test]
fn a_syn_in_a_bucket_of_another_retires_the_connection_with_its_ports_until_one_begins_here() {
    both_families(|bed, flow| {
        assert_eq!(reason(bed, &flow.segment(ACK)), Reason::FlowPinned);
        assert_eq!(reason(bed, &flow.segment(SYN)), Reason::PinnedElsewhere);
        assert_eq!(reason(bed, &flow.segment(ACK)), Reason::NotOwner);
        assert_eq!(reason(bed, &flow.segment(SYN)), Reason::PinnedElsewhere);
        bed.filter.publish(&policy(true, false)).expect("published");
        assert_eq!(reason(bed, &flow.segment(SYN)), Reason::DefaultHost);
        assert_eq!(reason(bed, &flow.segment(ACK)), Reason::FlowPinned);
    });
}

#[test]
fn a_connection_that_an_operator_has_given_up_goes_by_the_map_until_one_begins_here() {
    both_families(|bed, flow| {
        assert_eq!(reason(bed, &flow.segment(ACK)), Reason::FlowPinned);
        bed.filter.retire(&flow.tuple, super::memory::now()).expect("given up");
        bed.twin.retired.insert(flow.tuple);
        assert_eq!(reason(bed, &flow.segment(ACK)), Reason::NotOwner);
        bed.filter.publish(&policy(true, false)).expect("published");
        assert_eq!(reason(bed, &flow.segment(ACK)), Reason::DefaultHost);
    });
}

#[test]
fn a_connection_that_waits_for_its_last_packets_is_still_held() {
    both_families(|bed, flow| {
        flow.server.shutdown(std::net::Shutdown::Write).expect("closed");
        let mut rest = Vec::new();
        (&flow.client).read_to_end(&mut rest).expect("the end");
        flow.client.shutdown(std::net::Shutdown::Write).expect("closed");
        (&flow.server).read_to_end(&mut rest).expect("the end");
        // The server closed first: what is left of its end is a TIME_WAIT.
        assert_eq!(reason(bed, &flow.segment(ACK)), Reason::FlowPinned);
    });
}

#[test]
fn an_icmp_error_about_a_connection_of_this_host_reaches_it() {
    both_families(|bed, flow| {
        let Tuple { client, client_port, vip, vip_port, .. } = flow.tuple;
        let (number, kind, router) = match client {
            IpAddr::V4(_) => (1, 3, address("203.0.113.1")),
            IpAddr::V6(_) => (58, 2, address("2001:db8:ee::1")),
        };
        let error = |client_port| {
            let quote = ip(vip, client, TCP, &tcp(vip_port, client_port, ACK)[..8]);
            to_cluster(&ip(router, vip, number, &icmp(kind, &quote)))
        };
        assert_eq!(reason(bed, &error(client_port)), Reason::FlowPinned);
        assert_eq!(reason(bed, &error(client_port ^ 1)), Reason::NotOwner);
    });
}

#[test]
fn an_ipv4_connection_of_a_socket_that_speaks_ipv6_is_found() {
    in_namespace(|| {
        let Some(mut bed) = Bed::new(&policy(false, false)) else { return };
        let listener = TcpListener::bind(("::", PORT)).expect("a listener");
        let client = connected(address(CLIENT), SocketAddr::new(address(PRIMARY), PORT));
        let (_server, _) = listener.accept().expect("a connection");
        let tuple = Tuple {
            protocol: TCP,
            client: address(CLIENT),
            client_port: client.local_addr().expect("bound").port(),
            vip: address(PRIMARY),
            vip_port: PORT,
        };
        bed.twin.sockets.insert(tuple, Socket::Flow);
        assert_eq!(reason(&mut bed, &segment(&tuple, ACK)), Reason::FlowPinned);
    });
}

#[test]
fn a_connection_of_another_namespace_needs_a_pin() {
    in_namespace(|| {
        let tracked = Policy { track: true, ..policy(true, false) };
        let Some(mut bed) = Bed::new(&tracked) else { return };
        let tuple = Tuple {
            protocol: TCP,
            client: address(CLIENT),
            client_port: 40_000,
            vip: address(PRIMARY),
            vip_port: PORT,
        };
        assert_eq!(reason(&mut bed, &segment(&tuple, SYN)), Reason::DefaultHost);
        let moved = Policy { track: true, ..policy(false, false) };
        bed.filter.publish(&moved).expect("published");
        assert_eq!(reason(&mut bed, &segment(&tuple, ACK)), Reason::FlowPinned);
        assert_eq!(reason(&mut bed, &segment(&tuple, SYN)), Reason::PinnedElsewhere);
        assert_eq!(reason(&mut bed, &segment(&tuple, ACK)), Reason::NotOwner);
    });
}
