//! The path: its MTU and its time to live, as a router tells of them.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

use integration::topology::Kind;
use netio::ethtool::Offload;
use nix::sys::socket::{getsockopt, sockopt};

use super::bed::{Bed, SECOND, VIPS, can_run, connect, service, top, web};
use super::wire::{SYN, Wire, tcp};

/// Bytes of an upload.
const MUCH: usize = 5_000_000;

/// Where uploads go.
const UPLOAD: u16 = 9000;

/// Serves uploads on every server at `port`: reads each to its end, answers with its sum.
fn take_uploads(bed: &Bed, port: u16) {
    for server in &bed.topology.servers {
        // This wildcard is for both families.
        let listener =
            server.run(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))).unwrap().unwrap();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                // What went wrong is seen at the other end.
                let _ = take(stream);
            }
        });
    }
}

fn take(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(SECOND * 10))?;
    let mut all = Vec::new();
    stream.read_to_end(&mut all)?;
    write!(stream, "{} {}", all.len(), sum(&all))
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().map(|(at, byte)| (at as u64 + 1) * u64::from(*byte)).sum()
}

/// Sends much to `vip`; returns the connection when all has arrived as it was sent.
#[track_caller]
fn upload(bed: &Bed, vip: IpAddr, port: u16) -> TcpStream {
    let much: Vec<u8> = (0..MUCH).map(|at| ((at * 31) >> 3) as u8).collect();
    let target = SocketAddr::new(vip, port);
    let mut stream =
        connect(&bed.topology, target).unwrap_or_else(|error| panic!("{target}: {error}"));
    stream.set_write_timeout(Some(SECOND * 10)).unwrap();
    stream.set_read_timeout(Some(SECOND * 10)).unwrap();
    stream.write_all(&much).unwrap_or_else(|error| panic!("{target}: {error}"));
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{target}: {error}"));
    assert_eq!(answer, format!("{MUCH} {}", sum(&much)), "{target}");
    stream
}

/// Uploads through services that are added for it on [`UPLOAD`], by the method of those on `like`.
#[track_caller]
pub(crate) fn upload_is_whole(bed: &Bed, like: u16) {
    take_uploads(bed, UPLOAD);
    let of_it = |at: &SocketAddr| at.port() == like;
    let services = bed.director.services().unwrap();
    let mut done = 0;
    for view in services {
        use director::control::api::{Forwarding, ServiceKey};
        let ServiceKey::Address { address, .. } = view.spec.key else { continue };
        if !of_it(&address) {
            continue;
        }
        let target = SocketAddr::new(address.ip(), UPLOAD).to_string();
        bed.director.ipvsadm(&["-A", "-t", &target, "-s", "rr"]).unwrap();
        for server in view.servers {
            let method = match server.spec.forwarding {
                Forwarding::Nat => "-m",
                Forwarding::Tunnel => "-i",
                _ => "-g",
            };
            let at = SocketAddr::new(server.spec.address.ip(), UPLOAD).to_string();
            bed.director.ipvsadm(&["-a", "-t", &target, "-r", &at, method]).unwrap();
        }
        upload(bed, address.ip(), UPLOAD);
        done += 1;
    }
    assert_eq!(done, 2, "one service per family");
}

fn tunnel_tells_its_mtu(io: &str) {
    let config = top(io)
        + &web(Kind::Tunnel, "rr", &[1, 1, 1])
        + &VIPS.map(|vip| service(Kind::Tunnel, vip, UPLOAD, "rr", "", &[1, 1, 1])).concat();
    let bed = Bed::with(Kind::Tunnel, &config);
    if io == "generic" {
        // Generic XDP sees what a peer on the same machine has not cut to size yet, and a socket
        // takes no frame larger than a page. (A native program makes veth cut it before.)
        for cutting in [Offload::TcpSegmentation, Offload::GenericSegmentation] {
            bed.topology.front.host().offload("director-eth0", cutting, false).unwrap();
        }
    }
    take_uploads(&bed, UPLOAD);
    for (vip, inner) in VIPS.into_iter().zip([1480, 1460]) {
        let before = bed.director.verdicts("too_big").unwrap();
        let stream = upload(&bed, vip, UPLOAD);
        assert!(bed.director.verdicts("too_big").unwrap() > before, "{vip}: nothing was too big");
        if vip.is_ipv4() {
            assert_eq!(getsockopt(&stream, sockopt::IpMtu).unwrap(), inner, "{vip}");
        }
        // What is left of the MTU for data; timestamps may take 12 bytes.
        let headers = if vip.is_ipv4() { 40 } else { 60 };
        let segment = getsockopt(&stream, sockopt::TcpMaxSeg).unwrap() as i32;
        assert!((inner - headers - 12..=inner - headers).contains(&segment), "{vip}: {segment}");
    }
}

#[test]
fn quick_a_client_learns_the_mtu_of_the_tunnel_and_its_upload_is_whole() {
    if can_run() {
        tunnel_tells_its_mtu("copy");
    }
}

#[test]
fn the_tunnel_tells_its_mtu_in_other_modes_too() {
    if can_run() {
        ["generic", "packet"].iter().for_each(|io| tunnel_tells_its_mtu(io));
    }
}

/// As traceroute does: a packet whose time is up at the director is answered by it.
#[test]
fn a_packet_whose_time_is_up_yields_time_exceeded() {
    if !can_run() {
        return;
    }
    for kind in [Kind::Nat, Kind::Direct, Kind::Tunnel] {
        let bed = Bed::new(kind, "copy");
        let mut wire = Wire::new(&bed.topology);
        for vip in VIPS {
            let last = tcp(wire.to, wire.from, 46_000, (vip, 80), SYN, 1);
            wire.send(&last);
            let expected = if vip.is_ipv4() { (1, 11) } else { (58, 3) };
            let answer = wire.receive(SECOND, |frame, headers| {
                headers.protocol == expected.0 && frame.get(headers.l4) == Some(&expected.1)
            });
            let answer = answer.unwrap_or_else(|| panic!("{kind:?}: no answer from {vip}"));
            let headers = forwarding::parse(&answer).unwrap();
            assert_eq!(headers.source, vip, "{kind:?}");
            // It quotes what it is about: ports first behind the quoted IP header.
            let quoted = headers.l4 + 8 + if vip.is_ipv4() { 20 } else { 40 };
            assert_eq!(answer[quoted..quoted + 4], [0xb3, 0xb0, 0, 80], "{kind:?} {vip}");
        }
        assert_eq!(bed.director.verdicts("ttl_exceeded").unwrap(), 2, "{kind:?}");
        bed.carries(6);
    }
}
