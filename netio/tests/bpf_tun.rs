//! TUN and TAP interfaces in network namespaces of their own.

mod bpf_namespace;

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use bpf_namespace::{in_namespace, ip, mac, udp_frame};
use netio::tun::{Layer, Tun, VNET_HEADER};

const HERE: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 9, 0, 1), 7000);
const PEER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 9, 0, 2), 999);

/// Whether this kernel and this user have TUN at all.
fn available() -> bool {
    let present = std::path::Path::new("/dev/net/tun").exists();
    if !present {
        eprintln!("skipped: no /dev/net/tun");
    }
    present
}

fn up(tun: &Tun) {
    ip(&format!("addr add 10.9.0.1/24 dev {}", tun.name()));
    ip(&format!("link set {} up", tun.name()));
}

/// The next IPv4 packet that the stack sends (it also sends neighbour discovery of its own).
fn next_ipv4(tun: &Tun, header: usize) -> Vec<u8> {
    let mut buffer = vec![0; 2048];
    for _ in 0..1000 {
        match tun.receive(&mut buffer) {
            Ok(length) if buffer[header] >> 4 == 4 => return buffer[..length].to_vec(),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the stack sent nothing");
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut buffer = [0; 100];
    let length = socket.recv(&mut buffer).expect("a datagram arrives");
    buffer[..length].to_vec()
}

#[test]
fn packets_go_both_ways_through_a_tun() {
    if !available() {
        return;
    }
    in_namespace(|| {
        let tun = Tun::open("tun%d", Layer::Ip, false).unwrap();
        assert_eq!(tun.name(), "tun0");
        up(&tun);
        let socket = UdpSocket::bind(HERE).unwrap();
        let packet = &udp_frame([0; 6], HERE, b"in")[14..];
        tun.send(packet).unwrap();
        assert_eq!(receive(&socket), b"in");
        tun.send_parts(&packet[..20], &packet[20..]).unwrap();
        assert_eq!(receive(&socket), b"in");
        socket.send_to(b"out", PEER).unwrap();
        let sent = next_ipv4(&tun, 0);
        assert_eq!(sent.len(), 28 + 3);
        assert_eq!(&sent[28..], b"out");
    });
}

#[test]
fn the_virtio_header_tells_of_partial_checksums() {
    if !available() {
        return;
    }
    in_namespace(|| {
        let tun = Tun::open("vnet", Layer::Ip, true).unwrap();
        assert!(tun.has_vnet_header());
        up(&tun);
        let socket = UdpSocket::bind(HERE).unwrap();
        let packet = &udp_frame([0; 6], HERE, b"in")[14..];
        tun.send_parts(&[0; VNET_HEADER], packet).unwrap();
        assert_eq!(receive(&socket), b"in");
        socket.send_to(b"out", PEER).unwrap();
        let sent = next_ipv4(&tun, VNET_HEADER);
        assert_eq!(sent.len(), VNET_HEADER + 28 + 3);
        // NEEDS_CSUM, from the UDP header on (20), the field being 6 bytes into it.
        assert_eq!(sent[0], 1);
        let half = |at: usize| u16::from_ne_bytes([sent[at], sent[at + 1]]);
        assert_eq!((half(6), half(8)), (20, 6));
    });
}

#[test]
fn a_tap_carries_whole_frames_and_is_gone_when_dropped() {
    if !available() {
        return;
    }
    in_namespace(|| {
        let tap = Tun::open("tap", Layer::Ethernet, false).unwrap();
        up(&tap);
        let socket = UdpSocket::bind(HERE).unwrap();
        tap.send(&udp_frame(mac("tap"), HERE, b"in")).unwrap();
        assert_eq!(receive(&socket), b"in");
        let error = Tun::open("tap", Layer::Ethernet, false).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
        drop(tap);
        Tun::open("tap", Layer::Ethernet, false).expect("the name is free again");
    });
}

#[test]
fn an_impossible_name_is_refused() {
    if !available() {
        return;
    }
    let error = Tun::open("a-name-much-too-long", Layer::Ip, false).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}
