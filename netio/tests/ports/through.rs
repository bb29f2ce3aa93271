//! A TCP transfer between two kernels through a forwarder of two ports: super-frames, partial
//! sums and all, with every offload of the peers left on.
//!
//! ```text
//!     client, own namespace        the test's namespace          server, own namespace
//!         swa1 10.77.0.1  <--veth-->  swa0 | swb0  <--veth-->  swb1 10.77.0.2
//! ```

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use netio::{PacketOptions, PacketPort, Pool, Port, XskPort, interface};

use crate::frames;
use crate::lab;
use crate::program::{NATIVE, Redirect};
use crate::xsk;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const BYTES: usize = 4 << 20;

fn pattern() -> impl Iterator<Item = u8> {
    (0_u32..).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
}

/// A host in a namespace of its own, which is told when its interface has been moved there.
struct Host {
    moved: Sender<[u8; 6]>,
    done: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Host {
    /// `talk` runs when the interface is configured.
    fn start(
        name: &'static str,
        (own, other): (Ipv4Addr, Ipv4Addr),
        talk: impl FnOnce() + Send + 'static,
    ) -> Host {
        let (moved, wait_moved) = channel();
        let (say_done, done) = channel();
        let (say_namespace, namespace) = channel();
        let thread = thread::spawn(move || {
            lab::in_namespace(move || {
                say_namespace.send(lab::namespace()).unwrap();
                let mac = wait_moved.recv().unwrap();
                lab::set_address(name, own);
                lab::up(name);
                lab::set_neighbour(name, other, mac);
                talk();
                say_done.send(()).unwrap();
                // The namespace goes, and with it the veth, when the test has seen everything.
                let _ = wait_moved.recv();
            });
        });
        lab::move_to(name, &namespace.recv().unwrap());
        Host { moved, done, thread }
    }
}

/// Carries a transfer from a client to a server and an answer back, over `left` and `right`.
/// Says how many frames of those from the client had partial sums.
fn transfer(pool: &mut Pool, left: &mut impl Port, right: &mut impl Port) -> u64 {
    let macs = ["swa1", "swb1"].map(|name| interface::mac(name).unwrap());
    let server = Host::start("swb1", (SERVER, CLIENT), || {
        let listener = TcpListener::bind((SERVER, 80)).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert!(received.iter().copied().eq(pattern().take(BYTES)), "the stream has changed");
        stream.write_all(b"whole").unwrap();
    });
    let client = Host::start("swa1", (CLIENT, SERVER), || {
        let start = Instant::now();
        let mut stream = loop {
            match TcpStream::connect((SERVER, 80)) {
                Ok(stream) => break stream,
                Err(error) => assert!(start.elapsed() < frames::PATIENCE, "{error}"),
            }
            thread::sleep(Duration::from_millis(5));
        };
        stream.write_all(&pattern().take(BYTES).collect::<Vec<_>>()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "whole");
    });
    server.moved.send(macs[0]).unwrap();
    client.moved.send(macs[1]).unwrap();
    let start = Instant::now();
    let mut partial = 0;
    while client.done.try_recv().is_err() && !client.thread.is_finished() {
        assert!(start.elapsed() < Duration::from_secs(30), "the transfer hangs");
        partial += forward(pool, left, right);
        forward(pool, right, left);
    }
    drop((client.moved, server.moved));
    client.thread.join().unwrap();
    server.thread.join().unwrap();
    partial
}

/// One breath: from one port to the other. Says how many partial sums there were.
fn forward(pool: &mut Pool, from: &mut impl Port, to: &mut impl Port) -> u64 {
    let mut batch = Vec::new();
    from.receive(pool, &mut batch, 64).unwrap();
    let mut partial = 0;
    for frame in &mut batch {
        assert!(frame.len() <= 1514, "a super-frame got through: {}", frame.len());
        frame.partial = frame.partial.or_else(|| frames::partial(pool.bytes(frame)));
        partial += u64::from(frame.partial.is_some());
    }
    to.transmit(pool, &mut batch).unwrap();
    to.flush(pool).unwrap();
    partial
}

fn veths() {
    lab::veth("swa0", "swa1", 1);
    lab::veth("swb0", "swb1", 1);
}

#[test]
fn tcp_with_super_frames_comes_whole_through_af_packet() {
    lab::alone(|| {
        veths();
        let mut pool = Pool::new(1024, 2048).unwrap();
        let open = |name| PacketPort::open(PacketOptions::new(name)).unwrap();
        let (mut left, mut right) = (open("swa0"), open("swb0"));
        let partial = transfer(&mut pool, &mut left, &mut right);
        assert!(partial > 1000, "{partial} partial sums: the offloads were to be on");
        assert_eq!(pool.available() + left.held().total() + right.held().total(), pool.capacity());
    });
}

#[test]
fn tcp_with_partial_sums_comes_whole_through_af_xdp() {
    lab::alone(|| {
        veths();
        let mut pool = xsk::pool();
        let open = |pool: &mut Pool, name| {
            let port = XskPort::open(pool, xsk::options(name, 0)).unwrap();
            let redirect = Redirect::attach(port.interface_index(), NATIVE);
            redirect.set(0, port.fd());
            (port, redirect)
        };
        let (mut left, _left_program) = open(&mut pool, "swa0");
        let (mut right, _right_program) = open(&mut pool, "swb0");
        let partial = transfer(&mut pool, &mut left, &mut right);
        assert!(partial > 1000, "{partial} partial sums: the offloads were to be on");
        assert_eq!(pool.available() + left.held().total() + right.held().total(), pool.capacity());
    });
}
