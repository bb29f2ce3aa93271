//! A table of packets, each with a name and the answer that operators expect.

use super::frames::{Header, ethernet, frame, icmp, ip, ip_with, ports, tagged};
use super::*;

const CLIENT: &str = "198.51.100.7";
const CLIENT6: &str = "2001:db8:ff::7";
const VIP: &str = "192.0.2.10";
const VIP6: &str = "2001:db8::10";
const ALL_PORTS: &str = "192.0.2.11";
const SERVER: &str = "10.0.0.21";
const SERVER6: &str = "2001:db8:1::21";
const TUNNEL: &str = "10.0.0.31";
const TUNNEL6: &str = "2001:db8:1::31";
const FTP: &str = "192.0.2.12";
const FTP6: &str = "2001:db8::12";
const FTP_SERVER: &str = "10.0.0.23";
const ROUTER: &str = "203.0.113.1";
const ROUTER6: &str = "2001:db8:ee::1";
const TCP: u8 = 6;
const UDP: u8 = 17;

struct Case {
    name: &'static str,
    taken: bool,
    frame: Vec<u8>,
}

fn taken(name: &'static str, frame: Vec<u8>) -> Case {
    let taken = true;
    Case { name, taken, frame }
}

fn left(name: &'static str, frame: Vec<u8>) -> Case {
    let taken = false;
    Case { name, taken, frame }
}

fn to_vip() -> Vec<u8> {
    ip(CLIENT, VIP, TCP, &ports(40000, 80))
}

fn to_vip6() -> Vec<u8> {
    ip(CLIENT6, VIP6, TCP, &ports(40000, 80))
}

#[rustfmt::skip]
fn services() -> Vec<Case> {
    let dns = ip(CLIENT, VIP, UDP, &ports(40000, 53));
    let sctp = ip(CLIENT, VIP, 132, &ports(40000, 5060));
    let options = Header { options: 10, ..Header::default() };
    let one_option = Header { options: 1, ..Header::default() };
    let with_options = |header| ip_with(header, CLIENT, VIP, TCP, &ports(40000, 80));
    let mut short_header = to_vip();
    short_header[0] = 0x44;
    let mut wrong_version = to_vip();
    wrong_version[0] = 0x55;
    vec![
        taken("TCP to a service", frame(&to_vip())),
        taken("UDP to a service", frame(&dns)),
        taken("SCTP to a service", frame(&sctp)),
        taken("IPv6 to a service", frame(&to_vip6())),
        taken("IPv6 UDP to a service", frame(&ip(CLIENT6, VIP6, UDP, &ports(9, 53)))),
        taken("any port of a service for all ports", frame(&ip(CLIENT, ALL_PORTS, TCP, &ports(9, 12345)))),
        taken("one word of IP options", frame(&with_options(&one_option))),
        taken("forty bytes of IP options", frame(&with_options(&options))),
        taken("VLAN tag", tagged(0x8100, frame(&to_vip()))),
        taken("802.1ad tag", tagged(0x88a8, frame(&to_vip6()))),
        left("two VLAN tags", tagged(0x88a8, tagged(0x8100, frame(&to_vip())))),
        left("ssh to the VIP", frame(&ip(CLIENT, VIP, TCP, &ports(40000, 22)))),
        left("UDP to the TCP service's port", frame(&ip(CLIENT, VIP, UDP, &ports(40000, 80)))),
        left("the service's port of another address", frame(&ip(CLIENT, "192.0.2.12", TCP, &ports(40000, 80)))),
        left("UDP to the service for all TCP ports", frame(&ip(CLIENT, ALL_PORTS, UDP, &ports(9, 9)))),
        left("wrong IPv6 port", frame(&ip(CLIENT6, VIP6, TCP, &ports(40000, 22)))),
        left("a packet from the VIP", frame(&ip(VIP, CLIENT, TCP, &ports(80, 40000)))),
        left("another protocol (GRE) to the VIP", frame(&ip(CLIENT, VIP, 47, &ports(40000, 80)))),
        left("IPv4 header of 16 bytes", frame(&short_header)),
        left("IPv4 header of version 5", ethernet(0x0800, &wrong_version)),
        left("IPv6 in a frame that says IPv4", ethernet(0x0800, &to_vip6())),
        left("ARP", ethernet(0x0806, &[0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 10])),
        left("LLDP", ethernet(0x88cc, &[0; 46])),
    ]
}

#[rustfmt::skip]
fn data_connections() -> Vec<Case> {
    let error = |from, to, port: (u16, u16)| {
        let quoted = ip(from, to, TCP, &ports(port.0, port.1));
        frame(&ip(ROUTER, FTP, 1, &icmp(3, &quoted)))
    };
    vec![
        taken("the first port for passive FTP", frame(&ip(CLIENT, FTP, TCP, &ports(9, 1024)))),
        taken("the last port for passive FTP", frame(&ip(CLIENT, FTP, TCP, &ports(9, 65535)))),
        taken("IPv6 to a port for passive FTP", frame(&ip(CLIENT6, FTP6, TCP, &ports(9, 50000)))),
        taken("a passive FTP server's answer", frame(&ip(FTP_SERVER, CLIENT, TCP, &ports(50000, 9)))),
        taken("an error about a passive FTP server's answer", error(FTP, CLIENT, (50000, 40000))),
        taken("an error about a packet to a passive FTP server", error(CLIENT, FTP_SERVER, (9, 50000))),
        left("the last privileged port of an FTP service", frame(&ip(CLIENT, FTP, TCP, &ports(40000, 1023)))),
        left("UDP to an FTP service", frame(&ip(CLIENT, FTP, UDP, &ports(40000, 50000)))),
        left("an FTP server's ssh", frame(&ip(FTP_SERVER, CLIENT, TCP, &ports(22, 40000)))),
        left("a packet to an FTP server's own address", frame(&ip(CLIENT, FTP_SERVER, TCP, &ports(9, 50000)))),
    ]
}

#[rustfmt::skip]
fn fragments() -> Vec<Case> {
    let part = |offset, more| Header { fragment: Some((offset, more)), ..Header::default() };
    let of = |from, to, protocol, header: &Header, payload: &[u8]| frame(&ip_with(header, from, to, protocol, payload));
    let (first, middle, last) = (part(0, true), part(100, true), part(200, false));
    let data = [0xaa; 64];
    let after_options = Header { extensions: vec![(60, 0)], ..last.clone() };
    vec![
        taken("first fragment", of(CLIENT, VIP, TCP, &first, &ports(40000, 80))),
        taken("middle fragment", of(CLIENT, VIP, TCP, &middle, &data)),
        taken("last fragment", of(CLIENT, VIP, UDP, &last, &data)),
        taken("last fragment of one byte", of(CLIENT, VIP, UDP, &last, &data[..1])),
        taken("IPv6 first fragment", of(CLIENT6, VIP6, TCP, &first, &ports(40000, 80))),
        taken("IPv6 middle fragment", of(CLIENT6, VIP6, TCP, &middle, &data)),
        taken("IPv6 last fragment behind options", of(CLIENT6, VIP6, UDP, &after_options, &data)),
        taken("IPv6 last fragment, options within", of(CLIENT6, VIP6, 60, &last, &data)),
        taken("IPv6 whole packet with a fragment header", of(CLIENT6, VIP6, TCP, &part(0, false), &ports(9, 80))),
        taken("later fragment of a NAT server's reply", of(SERVER, CLIENT, TCP, &last, &data)),
        taken("IPv6 later fragment of a NAT server's reply", of(SERVER6, CLIENT6, TCP, &last, &data)),
        left("first fragment to another port", of(CLIENT, VIP, TCP, &first, &ports(40000, 22))),
        left("later fragment to another address", of(CLIENT, "192.0.2.12", TCP, &last, &data)),
        left("first fragment of a large ping", of(CLIENT, VIP, 1, &first, &icmp(8, &data))),
        left("later fragment of a large ping", of(CLIENT, VIP, 1, &last, &data)),
        left("IPv6 later fragment of a large ping", of(CLIENT6, VIP6, 58, &last, &data)),
        left("later fragment to a tunnel server", of(CLIENT, TUNNEL, TCP, &last, &data)),
    ]
}

#[rustfmt::skip]
fn replies_and_chains() -> Vec<Case> {
    let chain = |numbers: &[(u8, u8)]| {
        let header = Header { extensions: numbers.to_vec(), ..Header::default() };
        frame(&ip_with(&header, CLIENT6, VIP6, TCP, &ports(40000, 80)))
    };
    let mut endless = chain(&[(60, 0)]);
    endless[14 + 40 + 1] = 255;
    vec![
        taken("reply of a NAT server", frame(&ip(SERVER, CLIENT, TCP, &ports(8080, 40000)))),
        taken("IPv6 reply of a NAT server", frame(&ip(SERVER6, CLIENT6, TCP, &ports(8080, 40000)))),
        taken("reply of a NAT server for all ports", frame(&ip("10.0.0.22", CLIENT, TCP, &ports(4711, 40000)))),
        left("a NAT server's ssh", frame(&ip(SERVER, CLIENT, TCP, &ports(22, 40000)))),
        left("a NAT server's UDP", frame(&ip(SERVER, CLIENT, UDP, &ports(8080, 40000)))),
        left("a client's packet to a NAT server's own address", frame(&ip(CLIENT, SERVER, TCP, &ports(40000, 8080)))),
        left("a tunnel server's packet", frame(&ip(TUNNEL, CLIENT, TCP, &ports(80, 40000)))),
        taken("hop-by-hop options", chain(&[(0, 0)])),
        taken("routing header", chain(&[(43, 2)])),
        taken("four extension headers", chain(&[(0, 0), (60, 1), (43, 2), (60, 0)])),
        left("five extension headers", chain(&[(0, 0), (60, 1), (43, 2), (60, 0), (60, 0)])),
        left("authentication header", chain(&[(51, 0)])),
        left("extension header longer than the frame", endless),
    ]
}

#[rustfmt::skip]
fn errors() -> Vec<Case> {
    let from_vip = ip(VIP, CLIENT, TCP, &ports(80, 40000));
    let to_server = ip(CLIENT, SERVER, TCP, &ports(40000, 8080));
    let to_all_ports_server = ip(CLIENT, "10.0.0.22", TCP, &ports(40000, 9999));
    let encapsulated = ip("192.0.2.1", TUNNEL, 4, &to_vip());
    let encapsulated6 = ip("192.0.2.1", TUNNEL, 41, &to_vip6());
    let from_vip6 = ip(VIP6, CLIENT6, TCP, &ports(80, 40000));
    let to_server6 = ip(CLIENT6, SERVER6, TCP, &ports(40000, 8080));
    let tunnelled6 = ip("2001:db8::1", TUNNEL6, 41, &to_vip6());
    let behind_options = ip_with(&Header { extensions: vec![(60, 0)], ..Header::default() }, VIP6, CLIENT6, TCP, &ports(80, 9));
    let later = ip_with(&Header { fragment: Some((9, false)), ..Header::default() }, VIP, CLIENT, TCP, &ports(80, 9));
    let error = |kind, quoted: &[u8]| frame(&ip(ROUTER, VIP, 1, &icmp(kind, quoted)));
    let error6 = |kind, quoted: &[u8]| frame(&ip(ROUTER6, VIP6, 58, &icmp(kind, quoted)));
    vec![
        taken("unreachable about the VIP's packet", error(3, &from_vip)),
        taken("source quench about the VIP's packet", error(4, &from_vip)),
        taken("time exceeded about the VIP's packet", error(11, &from_vip)),
        taken("parameter problem about the VIP's packet", error(12, &from_vip)),
        taken("only 8 bytes quoted", error(3, &from_vip[..28])),
        taken("a VLAN's error", tagged(0x8100, error(3, &from_vip))),
        taken("unreachable NAT server", error(3, &to_server)),
        taken("unreachable NAT server for all ports", error(3, &to_all_ports_server)),
        taken("unreachable tunnel server", error(3, &encapsulated)),
        taken("unreachable tunnel server, IPv6 within", error(3, &encapsulated6)),
        taken("IPv6 unreachable about the VIP's packet", error6(1, &from_vip6)),
        taken("IPv6 packet too big about the VIP's packet", error6(2, &from_vip6)),
        taken("IPv6 time exceeded about a NAT server's packet", error6(3, &to_server6)),
        taken("IPv6 parameter problem, options quoted", error6(4, &behind_options)),
        taken("IPv6 too big on the way to a tunnel server", error6(2, &tunnelled6)),
        left("unreachable about a packet of the director's own", error(3, &ip(VIP, CLIENT, TCP, &ports(179, 40000)))),
        left("unreachable about a packet to the VIP", error(3, &to_vip())),
        left("unreachable about a NAT server's ssh", error(3, &ip(CLIENT, SERVER, TCP, &ports(9, 22)))),
        left("unreachable about another tunnel", error(3, &ip("192.0.2.1", "10.0.0.99", 4, &to_vip()))),
        left("unreachable about TCP to a tunnel server", error(3, &ip("192.0.2.1", TUNNEL, TCP, &ports(9, 80)))),
        left("unreachable about a later fragment", error(3, &later)),
        left("unreachable about a ping of the VIP", error(3, &ip(VIP, CLIENT, 1, &icmp(0, &[0; 8])))),
        left("redirect about the VIP's packet", error(5, &from_vip)),
        left("IPv6 redirect about the VIP's packet", error6(137, &from_vip6)),
        left("4 bytes less than ports quoted", error(3, &from_vip[..20])),
        left("ping of the VIP", frame(&ip(CLIENT, VIP, 1, &icmp(8, &from_vip)))),
        left("IPv6 ping of the VIP", frame(&ip(CLIENT6, VIP6, 58, &icmp(128, &from_vip6)))),
        left("neighbour solicitation for the VIP", frame(&ip(CLIENT6, VIP6, 58, &icmp(135, &[0; 24])))),
        left("neighbour advertisement", frame(&ip(CLIENT6, VIP6, 58, &icmp(136, &[0; 24])))),
        left("ICMP protocol number in IPv6", frame(&ip(ROUTER6, VIP6, 1, &icmp(3, &from_vip6)))),
        left("ICMPv6 protocol number in IPv4", frame(&ip(ROUTER, VIP, 58, &icmp(1, &from_vip)))),
    ]
}

fn all() -> Vec<Case> {
    [services(), data_connections(), fragments(), replies_and_chains(), errors()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn the_twin_takes_what_is_a_service_s_and_leaves_the_rest() {
    let keys = keys();
    for case in all() {
        assert_eq!(keys.wants(&case.frame), case.taken, "{}", case.name);
    }
}

#[test]
fn the_program_takes_what_is_a_service_s_and_leaves_the_rest() {
    let Some(programs) = Programs::load(&keys(), None) else {
        return;
    };
    for case in all() {
        assert_eq!(programs.steers(&case.frame), case.taken, "{}", case.name);
    }
}

#[test]
fn the_guard_drops_just_what_the_program_takes() {
    let Some(programs) = Programs::load(&keys(), None) else {
        return;
    };
    for case in all() {
        assert_eq!(programs.guards(&case.frame), case.taken, "{}", case.name);
    }
}

#[test]
fn a_frame_cut_short_anywhere_is_judged_alike_by_both_and_harms_neither() {
    let keys = keys();
    let Some(programs) = Programs::load(&keys, None) else {
        return;
    };
    for case in all() {
        for length in 14..=case.frame.len().min(80) {
            let runt = &case.frame[..length];
            let expected = keys.wants(runt);
            assert!(case.taken || !expected, "{} cut at {length}", case.name);
            let decisions = (programs.steers(runt), programs.guards(runt));
            let both = (expected, expected);
            assert_eq!(decisions, both, "{} cut at {length}", case.name);
        }
        // The kernel tests no frames of less than a header; the twin must bear them.
        for length in 0..14 {
            assert!(!keys.wants(&case.frame[..length]));
        }
    }
}

#[test]
fn a_frame_with_our_mark_is_left_to_the_kernel() {
    let mark = Mark::random();
    let Some(programs) = Programs::load(&keys(), Some(mark)) else {
        return;
    };
    for case in all() {
        assert_eq!(programs.steers(&case.frame), case.taken, "{}", case.name);
        let mut marked = case.frame;
        marked[6..12].copy_from_slice(&mark.0);
        assert!(!programs.steers(&marked), "{}", case.name);
        assert!(!programs.guards(&marked), "{}", case.name);
        // One byte off is another's frame.
        marked[11] ^= 1;
        assert_eq!(programs.steers(&marked), case.taken, "{}", case.name);
    }
}
