//! What a service does beyond the kernel's IPVS, as clients and servers with a kernel's TCP see it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use integration::topology::{Kind, server_addresses};
use nix::sys::socket::{getsockopt, sockopt};

use super::bed::{Bed, SECOND, VIPS, can_run, connect, service, top};

/// Bytes of a download.
const MUCH: usize = 20_000_000;

/// A config with a service on port 80 of both VIPs that has these further lines.
fn config(kind: Kind, more: &str, weights: &[u32]) -> String {
    top("copy") + &VIPS.map(|vip| service(kind, vip, 80, "rr", more, weights)).concat()
}

#[test]
fn quick_a_connect_is_refused_at_once_when_there_is_no_server() {
    if !can_run() {
        return;
    }
    let bed = Bed::with(Kind::Nat, &config(Kind::Nat, "no_destination = \"rst\"", &[]));
    for (count, vip) in (1..).zip(VIPS) {
        let start = Instant::now();
        let error = connect(&bed.topology, SocketAddr::new(vip, 80)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{vip}");
        assert!(start.elapsed() < SECOND / 2, "{vip}: after {:?}", start.elapsed());
        assert_eq!(bed.director.verdicts("no_server_reset").unwrap(), count, "{vip}");
        assert_eq!(bed.director.verdicts("resets_sent").unwrap(), count, "{vip}");
    }
}

#[test]
fn quick_clients_of_a_removed_server_are_reset_at_once() {
    if !can_run() {
        return;
    }
    for kind in [Kind::Nat, Kind::Direct, Kind::Tunnel] {
        let bed = Bed::with(kind, &config(kind, "gone_server = \"rst\"", &[1]));
        for (count, vip) in (1..).zip(VIPS) {
            let target = SocketAddr::new(vip, 80);
            let mut stream = connect(&bed.topology, target).unwrap();
            stream.set_read_timeout(Some(SECOND * 5)).unwrap();
            let real = SocketAddr::new(server_addresses(1)[usize::from(vip.is_ipv6())], 80);
            let (target, real) = (target.to_string(), real.to_string());
            bed.director.ipvsadm(&["-d", "-t", &target, "-r", &real]).unwrap();
            let start = Instant::now();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n").unwrap();
            let error = stream.read(&mut [0; 100]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{kind:?} {vip}");
            assert!(start.elapsed() < SECOND / 2, "{kind:?} {vip}: after {:?}", start.elapsed());
            assert_eq!(bed.director.verdicts("server_gone").unwrap(), count, "{kind:?} {vip}");
            assert!(bed.director.ipvsadm(&["-L", "-n", "-c"]).unwrap().lines().count() <= 2);
        }
    }
}

/// Serves downloads on server 1; says how large the segments of each were.
fn serve_downloads(bed: &Bed) -> Receiver<u32> {
    let (tell, told) = channel();
    // This wildcard is for both families.
    let listen = || TcpListener::bind((Ipv6Addr::UNSPECIFIED, 9000));
    let listener = bed.topology.servers[0].run(listen).unwrap().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            // What went wrong is seen at the other end.
            let _ = stream.write_all(&vec![7; MUCH]);
            let Ok(segment) = getsockopt(&stream, sockopt::TcpMaxSeg) else { return };
            if tell.send(segment).is_err() {
                return;
            }
        }
    });
    told
}

#[test]
fn segments_are_no_larger_than_the_clamp_says() {
    if !can_run() {
        return;
    }
    // Timestamps may take 12 bytes of each.
    for (kind, clamp, expected) in [
        (Kind::Tunnel, "true", [1440, 1400]),
        (Kind::Tunnel, "1000", [1000, 1000]),
        (Kind::Nat, "1000", [1000, 1000]),
        (Kind::Nat, "false", [1460, 1440]),
    ] {
        let services =
            VIPS.map(|vip| service(kind, vip, 9000, "rr", &format!("mss_clamp = {clamp}"), &[1]));
        let bed = Bed::with(kind, &(top("copy") + &services.concat()));
        let segments = serve_downloads(&bed);
        for (vip, expected) in VIPS.into_iter().zip(expected) {
            let mut stream = connect(&bed.topology, SocketAddr::new(vip, 9000)).unwrap();
            stream.set_read_timeout(Some(SECOND * 10)).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            assert!(all.len() == MUCH && all.iter().all(|byte| *byte == 7), "{kind:?} {vip}");
            let sent = segments.recv_timeout(SECOND).unwrap();
            assert!((expected - 12..=expected).contains(&sent), "{kind:?} {clamp} {vip}: {sent}");
            if kind == Kind::Nat {
                // The other direction too: the servers' SYN+ACK passes here.
                let segment = getsockopt(&stream, sockopt::TcpMaxSeg).unwrap();
                let exact = expected - 12..=expected;
                assert!(exact.contains(&segment), "{kind:?} {clamp} {vip}: {segment}");
            }
        }
        for nothing in ["too_big", "icmp_sent"] {
            assert_eq!(bed.director.verdicts(nothing).unwrap(), 0, "{kind:?} {clamp}");
        }
    }
}
