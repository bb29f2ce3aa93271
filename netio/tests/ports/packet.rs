//! AF_PACKET sockets on veth.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Instant;

use netio::{PacketOptions, PacketPort, Pool, Port, interface};

use crate::frames::{self, collect, filled, number, numbered, send};
use crate::lab;

fn pool() -> Pool {
    Pool::new(1024, 2048).unwrap()
}

fn open(interface: &str) -> PacketPort {
    PacketPort::open(PacketOptions::new(interface)).unwrap()
}

#[test]
fn the_kernel_says_which_sums_are_partial_and_completes_them_on_the_way_back() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        lab::set_address("sw1", Ipv4Addr::new(10, 77, 0, 1));
        let far = Ipv4Addr::new(10, 77, 0, 2);
        lab::set_neighbour("sw1", far, interface::mac("sw0").unwrap());
        let (mut port, mut pool) = (open("sw0"), pool());
        let client = UdpSocket::bind("10.77.0.1:4000").unwrap();
        client.connect((far, 7)).unwrap();
        client.set_nonblocking(true).unwrap();
        let (mut sent, mut echoes) = (0_u32, Vec::new());
        let (mut batch, mut answers) = (Vec::new(), Vec::new());
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
                    assert!(frame.partial.is_some());
                    assert_eq!(frame.partial, frames::partial(bytes), "what the kernel says is so");
                    frames::turn_around(pool.bytes_mut(&mut frame));
                    answers.push(frame);
                } else {
                    pool.release(frame);
                }
            }
            port.transmit(&mut pool, &mut answers).unwrap();
            let mut buffer = [0; 200];
            while let Ok(len) = client.recv(&mut buffer) {
                assert_eq!(len, 94);
                echoes.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
            }
        }
        assert_eq!(echoes, (0..200).collect::<Vec<_>>());
        assert_eq!((port.counters().transmitted, port.counters().transmit_dropped), (200, 0));
        assert_eq!(pool.available(), pool.capacity());
    });
}

#[test]
fn our_own_packets_do_not_come_back_to_us() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        for mut port in [open("sw0"), PacketPort::open(PacketOptions::in_group("sw0", 7)).unwrap()]
        {
            let mut pool = pool();
            send(&mut port, &mut pool, &[numbered(1, 60)]);
            assert_eq!(collect(&mut port, &mut pool, 0, number), [0; 0]);
        }
    });
}

#[test]
fn a_vlan_tag_that_the_kernel_takes_off_is_put_back() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let (mut port, mut pool) = (open("sw0"), pool());
        let mut peer = open("sw1");
        for kind in [[0x81, 0x00], [0x88, 0xa8]] {
            let mut tagged = numbered(9, 100);
            tagged.splice(12..12, [kind[0], kind[1], 0x60, 0x2a]);
            let mut peer_pool = self::pool();
            send(&mut peer, &mut peer_pool, &[tagged.clone()]);
            let received = collect(&mut port, &mut pool, 1, |bytes| Some(bytes.to_vec()));
            assert!(received.contains(&tagged), "{received:02x?}");
        }
        assert_eq!(pool.available(), pool.capacity());
    });
}

#[test]
fn the_members_of_a_group_share_the_packets_and_keep_flows_together() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        lab::set_address("sw1", Ipv4Addr::new(10, 77, 0, 1));
        let far = Ipv4Addr::new(10, 77, 0, 2);
        lab::set_neighbour("sw1", far, interface::mac("sw0").unwrap());
        let member = || PacketPort::open(PacketOptions::in_group("sw0", 99)).unwrap();
        let (mut members, mut pool) = ([member(), member()], pool());
        let client = UdpSocket::bind("10.77.0.1:0").unwrap();
        for _ in 0..3 {
            for flow in 0..64 {
                client.send_to(b"x", (far, 1000 + flow)).unwrap();
            }
        }
        let port = |bytes: &[u8]| {
            (bytes[12..14] == [8, 0] && bytes[23] == 17)
                .then(|| u16::from_be_bytes([bytes[36], bytes[37]]))
        };
        let mut shares = members.each_mut().map(|member| collect(member, &mut pool, 1, port));
        assert_eq!(shares[0].len() + shares[1].len(), 192, "each packet goes to one of them");
        for share in &mut shares {
            assert!(!share.is_empty(), "both have work");
            share.sort_unstable();
            assert!(share.chunks(3).all(|flow| flow[0] == flow[2]), "a flow has one worker");
        }
    });
}

#[test]
fn a_frame_larger_than_a_chunk_is_dropped_and_counted_and_the_next_arrives() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        lab::set_mtu("sw0", 9000);
        lab::set_mtu("sw1", 9000);
        let (mut port, mut pool) = (open("sw0"), pool());
        let mut peer = open("sw1");
        let mut large = Pool::new(64, 16384).unwrap();
        let frames = [numbered(1, 1792), numbered(2, 1793), numbered(3, 9014), numbered(4, 60)];
        send(&mut peer, &mut large, &frames);
        assert_eq!(collect(&mut port, &mut pool, 2, number), [1, 4]);
        assert_eq!(port.counters().receive_dropped, 2);
        assert_eq!(pool.available(), pool.capacity());
    });
}

#[test]
fn a_frame_that_the_kernel_refuses_is_counted_and_those_behind_it_leave() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let (mut port, mut pool) = (open("sw0"), pool());
        let (mut peer, mut peer_pool) = (open("sw1"), self::pool());
        let mut beyond = filled(&mut pool, &numbered(1, 60));
        beyond.partial = Some(netio::PartialChecksum { start: 70, offset: 16 });
        let mut frames = vec![
            filled(&mut pool, &numbered(0, 60)),
            filled(&mut pool, &[0; 5]),
            filled(&mut pool, &numbered(2, 1700)),
            beyond,
            filled(&mut pool, &numbered(3, 60)),
        ];
        port.transmit(&mut pool, &mut frames).unwrap();
        assert_eq!(collect(&mut peer, &mut peer_pool, 2, number), [0, 3]);
        assert_eq!((port.counters().transmitted, port.counters().transmit_dropped), (2, 3));
        assert_eq!(pool.available(), pool.capacity());
    });
}

#[test]
fn an_interface_that_is_off_is_no_error_and_one_that_is_gone_is() {
    lab::alone(|| {
        lab::veth("sw0", "sw1", 1);
        let (mut port, mut pool) = (open("sw0"), pool());
        let mut batch = Vec::new();
        lab::down("sw0");
        for _ in 0..3 {
            port.receive(&mut pool, &mut batch, 64).unwrap();
        }
        let mut frames = vec![filled(&mut pool, &numbered(0, 60))];
        port.transmit(&mut pool, &mut frames).unwrap();
        assert_eq!(port.counters().transmit_dropped, 1);
        lab::up("sw0");
        let mut peer = open("sw1");
        send(&mut peer, &mut self::pool(), &[numbered(1, 60)]);
        assert_eq!(collect(&mut port, &mut pool, 1, number), [1], "it works again");
        lab::remove("sw0");
        let outcome = (0..3).try_for_each(|_| port.receive(&mut pool, &mut batch, 64).map(drop));
        assert!(outcome.is_err(), "the interface is gone, and nobody has said so");
    });
}
