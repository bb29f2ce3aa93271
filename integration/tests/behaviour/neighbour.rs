//! The kernel's stack on the same interface works as if there were no director.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Instant;

use integration::ping::ping;
use integration::topology::Kind;

use super::bed::{Bed, SECOND, VIPS, can_run, connect};
use super::wire::{ACK, RST, Wire};

/// The director's own addresses, by family.
const DIPS: [&str; 2] = ["192.0.2.1", "2001:db8:1::1"];

/// What ssh would do: a few words with a server of the director's host.
#[track_caller]
fn converse(bed: &Bed, address: IpAddr) {
    let listener = bed.topology.director.run(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let target = listener.local_addr().unwrap();
    let mut asking =
        connect(&bed.topology, target).unwrap_or_else(|error| panic!("{target}: {error}"));
    let (mut answering, _) = listener.accept().unwrap();
    for stream in [&asking, &answering] {
        stream.set_read_timeout(Some(SECOND)).unwrap();
    }
    // More than a segment, so that sums of offloaded frames are looked at too.
    let said: Vec<u8> = (0..20_000_u32).map(|byte| byte as u8).collect();
    let mut heard = vec![0; said.len()];
    asking.write_all(&said).unwrap();
    answering.read_exact(&mut heard).unwrap();
    answering.write_all(&heard).unwrap();
    heard.fill(0);
    asking.read_exact(&mut heard).unwrap();
    assert!(heard == said, "{target} returns something else");
}

/// A segment that belongs to no connection is the kernel's, who resets it.
#[track_caller]
fn stray_segment_is_reset(bed: &Bed, vip: IpAddr) {
    let mut wire = Wire::new(&bed.topology);
    let stray = wire.tcp(45_000, (vip, 80), ACK);
    wire.send(&stray);
    let reset = wire.receive(SECOND, |_, headers| {
        headers.source == vip
            && (headers.source_port, headers.destination_port) == (80, 45_000)
            && headers.tcp_flags & RST != 0
    });
    assert!(reset.is_some(), "no reset from {vip}");
}

fn is_a_good_neighbour(io: &str) {
    let bed = Bed::new(Kind::Nat, io);
    let log = bed.director.process().log();
    assert!(!log.contains("policy routing"), "a warning about rules that nobody has made:\n{log}");
    let mac = bed.topology.director.mac("eth0").unwrap();
    for (vip, dip) in VIPS.into_iter().zip(DIPS) {
        let dip: IpAddr = dip.parse().unwrap();
        bed.topology.client.forget_neighbours("eth0").unwrap();
        for (address, size) in [(vip, 56), (dip, 56), (vip, 1400), (dip, 1400)] {
            bed.topology.client.run(|| ping(address, size, SECOND)).unwrap().unwrap();
        }
        for address in [vip, dip] {
            let known = bed.topology.client.known_mac("eth0", address).unwrap();
            assert_eq!(known, Some(mac), "{address}");
            converse(&bed, address);
        }
        let start = Instant::now();
        let refused = connect(&bed.topology, SocketAddr::new(vip, 81)).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "{vip} port 81");
        assert!(start.elapsed() < SECOND, "refused only after {:?}", start.elapsed());
        stray_segment_is_reset(&bed, vip);
    }
    assert!(bed.director.verdicts("passed_no_connection").unwrap() >= 2);
    assert_eq!(bed.director.verdicts("pass_failed").unwrap(), 0);
    bed.carries(30);
    bed.director.stop().unwrap();
}

#[test]
fn quick_the_kernel_keeps_its_traffic_beside_af_xdp() {
    if can_run() {
        is_a_good_neighbour("copy");
    }
}

#[test]
fn the_kernel_keeps_its_traffic_beside_generic_xdp() {
    if can_run() {
        is_a_good_neighbour("generic");
    }
}

#[test]
fn the_kernel_keeps_its_traffic_beside_af_packet() {
    if can_run() {
        is_a_good_neighbour("packet");
    }
}
