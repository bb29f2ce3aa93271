//! AF_XDP sockets in copy mode on veth: in, out, and across.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use netio::{
    Bind, Frame, PacketOptions, PacketPort, Pool, Port, Rings, XskOptions, XskPort, interface,
};

use crate::frames::{self, collect, number, numbered, send};
use crate::lab;
use crate::program::{GENERIC, NATIVE, Redirect};

const RING: u32 = 256;

pub(crate) fn options(interface: &str, queue: u32) -> XskOptions {
    XskOptions { rings: Rings::of(RING), ..XskOptions::new(interface, queue, Bind::Copy) }
}

pub(crate) fn pool() -> Pool {
    Pool::new(4096, 2048).unwrap()
}

/// An AF_PACKET port and its pool: what the other end sees.
fn witness(interface: &str) -> (PacketPort, Pool) {
    (PacketPort::open(PacketOptions::new(interface)).unwrap(), pool())
}

#[test]
fn what_is_transmitted_arrives_whole_and_in_order_and_every_chunk_comes_back() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let (mut peer, mut peer_pool) = witness("sw1");
        let mut pool = pool();
        let mut port = XskPort::open(&mut pool, options("sw0", 0)).unwrap();
        assert_eq!(port.describe(), "sw0 queue 0, AF_XDP copy");
        assert!(port.completes_checksums(), "this kernel takes TX metadata");
        for round in 0..50 {
            let batch: Vec<_> =
                (0..32).map(|n| numbered(round * 32 + n, 60 + (n as usize * 45))).collect();
            send(&mut port, &mut pool, &batch);
        }
        let numbers = collect(&mut peer, &mut peer_pool, 1600, number);
        assert_eq!(numbers, (0..1600).collect::<Vec<_>>());
        let counters = port.counters();
        assert_eq!((counters.transmitted, counters.transmit_dropped), (1600, 0));
        assert_eq!(port.held().total(), RING as usize, "only the fill ring has chunks");
        assert_eq!(pool.available() + port.held().total(), pool.capacity());
        port.close(&mut pool);
        assert_eq!(pool.available(), pool.capacity());
    });
}

#[test]
fn a_batch_of_many_rings_full_is_sent_or_counted_but_never_lost() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let (mut peer, mut peer_pool) = witness("sw1");
        let mut pool = pool();
        let mut port = XskPort::open(&mut pool, options("sw0", 0)).unwrap();
        let batch: Vec<_> = (0..3000).map(|n| numbered(n, 60)).collect();
        send(&mut port, &mut pool, &batch);
        let counters = port.counters();
        assert_eq!(counters.transmitted + counters.transmit_dropped, 3000);
        assert_eq!(counters.transmit_dropped, 0, "copy mode always makes headway");
        let numbers = collect(&mut peer, &mut peer_pool, 3000, number);
        assert_eq!(numbers.len() as u64, counters.transmitted);
        assert_eq!(pool.available() + port.held().total(), pool.capacity());
        assert_eq!(port.statistics().tx_invalid, 0);
    });
}

#[test]
fn rings_of_two_sizes_receive_a_burst_as_long_as_one_and_send_batches_longer_than_the_other() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let (mut peer, mut peer_pool) = witness("sw1");
        let mut pool = pool();
        let rings = Rings { rx: 1024, tx: 64 };
        let mut port = XskPort::open(&mut pool, XskOptions { rings, ..options("sw0", 0) }).unwrap();
        assert_eq!(port.held().total(), 1024, "chunks for a whole RX ring");
        let redirect = Redirect::attach(port.interface_index(), NATIVE);
        redirect.set(0, port.fd());
        let batch: Vec<_> = (0..1000).map(|n| numbered(n, 60)).collect();
        send(&mut peer, &mut peer_pool, &batch);
        assert_eq!(collect(&mut port, &mut pool, 1000, number), (0..1000).collect::<Vec<_>>());
        assert_eq!(port.counters().receive_dropped, 0);
        send(&mut port, &mut pool, &batch);
        assert_eq!(collect(&mut peer, &mut peer_pool, 1000, number), (0..1000).collect::<Vec<_>>());
        assert_eq!(port.counters().transmit_dropped, 0);
        assert_eq!(pool.available() + port.held().total(), pool.capacity());
    });
}

/// `partial_sums`: how many of the 200 packets are to have only the pseudo-header's sum.
fn udp_echoes_come_back(mode: u32, partial_sums: u32) {
    lab::veth("sw0", "sw1", 1);
    if partial_sums == 0 {
        lab::transmit_checksums_off("sw1");
    }
    lab::set_address("sw1", Ipv4Addr::new(10, 77, 0, 1));
    let far = Ipv4Addr::new(10, 77, 0, 2);
    lab::set_neighbour("sw1", far, interface::mac("sw0").unwrap());
    let mut pool = pool();
    let mut port = XskPort::open(&mut pool, options("sw0", 0)).unwrap();
    let redirect = Redirect::attach(port.interface_index(), mode);
    redirect.set(0, port.fd());
    let client = UdpSocket::bind("10.77.0.1:4000").unwrap();
    client.connect((far, 7)).unwrap();
    client.set_nonblocking(true).unwrap();
    let (mut partial, mut echoes, mut sent) = (0, Vec::new(), 0_u32);
    let mut batch = Vec::new();
    let mut answers = Vec::new();
    let deadline = Instant::now() + frames::PATIENCE;
    while echoes.len() < 200 && Instant::now() < deadline {
        if sent < 200 {
            client.send(&[&sent.to_be_bytes()[..], &[b'x'; 90]].concat()).unwrap();
            sent += 1;
        }
        port.receive(&mut pool, &mut batch, 64).unwrap();
        for mut frame in batch.drain(..) {
            let bytes = pool.bytes(&frame);
            if bytes[12..14] == [8, 0] && bytes[23] == 17 {
                assert_eq!(frame.start(), netio::HEADROOM as usize);
                frame.partial = frames::partial(pool.bytes(&frame));
                partial += u32::from(frame.partial.is_some());
                frames::turn_around(pool.bytes_mut(&mut frame));
                answers.push(frame);
            } else {
                pool.release(frame);
            }
        }
        port.transmit(&mut pool, &mut answers).unwrap();
        port.flush(&mut pool).unwrap();
        let mut buffer = [0; 200];
        while let Ok(len) = client.recv(&mut buffer) {
            assert_eq!(len, 94);
            echoes.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
        }
    }
    assert_eq!(echoes, (0..200).collect::<Vec<_>>());
    assert_eq!(partial, partial_sums);
    assert_eq!(pool.available() + port.held().total(), pool.capacity());
}

#[test]
fn partial_sums_of_the_peers_kernel_are_completed_on_the_way_back_native() {
    lab::alone(|| udp_echoes_come_back(NATIVE, 200));
}

#[test]
fn partial_sums_of_the_peers_kernel_are_completed_on_the_way_back_generic() {
    lab::alone(|| udp_echoes_come_back(GENERIC, 200));
}

#[test]
fn complete_sums_of_the_peers_kernel_are_left_as_they_are() {
    lab::alone(|| udp_echoes_come_back(NATIVE, 0));
}

#[test]
fn a_frame_received_on_one_port_leaves_on_another_of_the_same_pool() {
    lab::alone(|| {
        lab::veth("swa0", "swa1", 2);
        lab::veth("swb0", "swb1", 2);
        let mut pool = pool();
        let mut ports = Vec::new();
        for (interface, queue) in [("swa0", 0), ("swa0", 1), ("swb0", 0), ("swb0", 1)] {
            ports.push(XskPort::open(&mut pool, options(interface, queue)).unwrap());
        }
        let redirect = Redirect::attach(ports[0].interface_index(), NATIVE);
        redirect.set(0, ports[0].fd());
        redirect.set(1, ports[1].fd());
        let (mut sender, mut sender_pool) = witness("swa1");
        let (mut receiver, mut receiver_pool) = witness("swb1");
        for round in 0..20 {
            let frames: Vec<_> = (0..64).map(|n| numbered(round * 64 + n, 100)).collect();
            send(&mut sender, &mut sender_pool, &frames);
            let deadline = Instant::now() + frames::PATIENCE;
            let mut moved = 0;
            while moved < 64 && Instant::now() < deadline {
                for queue in 0..2 {
                    let mut batch = Vec::new();
                    ports[queue].receive(&mut pool, &mut batch, 64).unwrap();
                    // The kernels' own packets (neighbour discovery) come through as well.
                    let ours = |frame: &&Frame| number(pool.bytes(frame)).is_some();
                    moved += batch.iter().filter(ours).count();
                    ports[2 + queue].transmit(&mut pool, &mut batch).unwrap();
                }
                ports.iter_mut().for_each(|port| port.flush(&mut pool).unwrap());
            }
        }
        let mut numbers = collect(&mut receiver, &mut receiver_pool, 1280, number);
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1280).collect::<Vec<_>>());
        let held: usize = ports.iter().map(|port| port.held().total()).sum();
        assert_eq!(pool.available() + held, pool.capacity());
        ports.into_iter().for_each(|port| port.close(&mut pool));
        assert_eq!(pool.available(), pool.capacity());
    });
}

#[test]
fn a_flood_that_nobody_takes_is_counted_and_the_port_recovers() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let mut pool = pool();
        let mut port = XskPort::open(&mut pool, options("sw0", 0)).unwrap();
        let redirect = Redirect::attach(port.interface_index(), NATIVE);
        redirect.set(0, port.fd());
        let (mut sender, mut sender_pool) = witness("sw1");
        for round in 0..10 {
            let frames: Vec<_> = (0..64).map(|n| numbered(round * 64 + n, 60)).collect();
            send(&mut sender, &mut sender_pool, &frames);
            std::thread::sleep(Duration::from_millis(2));
        }
        let first = collect(&mut port, &mut pool, 256, number);
        assert!(first.len() <= RING as usize, "{}", first.len());
        let dropped = port.counters().receive_dropped;
        assert!(first.len() as u64 + dropped >= 640, "{} + {dropped}", first.len());
        let frames: Vec<_> = (1000..1100).map(|n| numbered(n, 60)).collect();
        send(&mut sender, &mut sender_pool, &frames);
        assert_eq!(collect(&mut port, &mut pool, 100, number), (1000..1100).collect::<Vec<_>>());
        assert_eq!(pool.available() + port.held().total(), pool.capacity());
    });
}

#[test]
fn a_port_that_polls_busily_is_lively_after_a_packet_and_comes_to_rest() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let mut pool = pool();
        let busy = XskOptions { busy_poll: true, ..options("sw0", 0) };
        let mut port = XskPort::open(&mut pool, busy).unwrap();
        assert!(port.busy_polls(), "this kernel knows SO_PREFER_BUSY_POLL");
        let redirect = Redirect::attach(port.interface_index(), NATIVE);
        redirect.set(0, port.fd());
        let (mut sender, mut sender_pool) = witness("sw1");
        for round in 0..3 {
            let frames: Vec<_> = (0..100).map(|n| numbered(round * 100 + n, 60)).collect();
            send(&mut sender, &mut sender_pool, &frames);
            let expected: Vec<_> = (round * 100..round * 100 + 100).collect();
            assert_eq!(collect(&mut port, &mut pool, 100, number), expected);
            assert!(port.is_lively(), "more may come at once");
            // The kernels' own packets may keep it awake for a while.
            let deadline = Instant::now() + frames::PATIENCE;
            while port.is_lively() && Instant::now() < deadline {
                let mut batch = Vec::new();
                port.receive(&mut pool, &mut batch, 64).unwrap();
                batch.drain(..).for_each(|frame| pool.release(frame));
                port.flush(&mut pool).unwrap();
            }
            assert!(!port.is_lively(), "it never sleeps");
        }
        assert_eq!(pool.available() + port.held().total(), pool.capacity());
        let calm = XskPort::open(&mut pool, XskOptions { busy_poll: false, ..options("sw1", 0) });
        assert!(!calm.unwrap().busy_polls());
    });
}
