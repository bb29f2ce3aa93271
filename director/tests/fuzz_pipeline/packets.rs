//! Well-formed packets of all kinds that a director meets. Built by `etherparse`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use etherparse::{
    IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv4Options, Ipv6Extensions, Ipv6Header,
    Ipv6RawExtHeader, PacketBuilder, TcpHeader,
};
use forwarding::Headers;

use crate::fragments::in_fragments;
use crate::ftp;
use crate::random::Random;
use crate::scene::{PORTS, SILENT, VIP4, VIP6};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// A packet, or the parts of one.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) frames: Vec<Vec<u8>>,
}

/// What a client sends: mostly to a service, mostly in a connection that it has already.
pub(crate) fn from_client(random: &mut Random) -> Built {
    let v4 = random.chance(500);
    let vip = if v4 { VIP4 } else { VIP6 };
    let destination = match random.below(40) {
        0 => SocketAddr::new(vip, random.bits() as u16),
        1 => SocketAddr::new(if v4 { [192, 0, 2, 1].into() } else { VIP4 }, 80),
        _ => SocketAddr::new(vip, *random.pick(PORTS)),
    };
    let source = client(random, destination.is_ipv4());
    let protocol = match random.below(20) {
        0 => SCTP,
        1..8 => UDP,
        _ => TCP,
    };
    between(random, protocol, source, destination)
}

/// Of a data connection of FTP that may be expected.
pub(crate) fn of_ftp_data(random: &mut Random) -> Built {
    let v4 = random.chance(500);
    let client = client(random, v4);
    let (from, to) = ftp::data(random, client);
    between(random, TCP, from, to)
}

/// More datagrams to a silent server than a worker has frames.
pub(crate) fn flood(random: &mut Random) -> Built {
    let (from, to) = (client(random, true), SocketAddr::new(VIP4, SILENT));
    let mut frames = Vec::new();
    while frames.len() < 1500 {
        frames.append(&mut between(random, UDP, from, to).frames);
    }
    Built { frames }
}

/// A client: one of a few who come again, or anybody.
fn client(random: &mut Random, v4: bool) -> SocketAddr {
    let (host, port) = if random.chance(900) {
        (random.below(16) as u32, 4000 + random.below(8) as u16)
    } else {
        (random.bits() as u32 & 0xffff, random.bits() as u16)
    };
    let address = if v4 {
        IpAddr::V4(Ipv4Addr::from_bits(0xc633_0000 | host))
    } else {
        IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8_0002 << 80 | u128::from(host)))
    };
    SocketAddr::new(address, port)
}

/// The answer of whoever a frame was for.
pub(crate) fn answer(random: &mut Random, headers: &Headers) -> Built {
    let source = SocketAddr::new(headers.destination, headers.destination_port);
    let destination = SocketAddr::new(headers.source, headers.source_port);
    between(random, headers.protocol, source, destination)
}

/// An ICMP error about a frame, to who sent it, from its receiver or a router on the way.
pub(crate) fn error_about(random: &mut Random, frame: &[u8], headers: &Headers) -> Built {
    let most = *random.pick(&[28, 36, 48, 60, 120, 500, 1200]);
    let quote = &frame[headers.l3..headers.end.min(headers.l3 + most)];
    let ethernet = PacketBuilder::ethernet2([2, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2]);
    let mut bytes = Vec::new();
    let rest = (random.below(1500) as u32).to_be_bytes();
    match (headers.source, headers.destination) {
        (IpAddr::V4(to), IpAddr::V4(from)) => {
            let from = if random.chance(500) { from } else { Ipv4Addr::new(10, 9, 9, 9) };
            let &(kind, code) =
                random.pick(&[(3, 4), (3, 3), (3, 1), (11, 0), (12, 0), (4, 0), (5, 0)]);
            let ip = ethernet.ipv4(from.octets(), to.octets(), 64);
            ip.icmpv4_raw(kind, code, rest).write(&mut bytes, quote).unwrap();
        }
        (IpAddr::V6(to), IpAddr::V6(from)) => {
            let from = if random.chance(500) { from } else { "fd99::9".parse().unwrap() };
            let &(kind, code) = random.pick(&[(2, 0), (1, 4), (3, 0), (4, 1), (1, 0), (137, 0)]);
            let ip = ethernet.ipv6(from.octets(), to.octets(), 64);
            ip.icmpv6_raw(kind, code, rest).write(&mut bytes, quote).unwrap();
        }
        _ => return Built::default(),
    }
    Built { frames: vec![bytes] }
}

/// A packet in a packet, as a tunnel makes it.
pub(crate) fn in_a_tunnel(random: &mut Random) -> Built {
    let inner = from_client(random);
    let outer = client(random, true);
    let frames = inner.frames.iter().filter_map(|frame| {
        let headers = forwarding::parse(frame).ok()?;
        let payload = &frame[headers.l3..headers.end];
        let IpAddr::V4(from) = outer.ip() else { return None };
        let number = if headers.source.is_ipv4() { IpNumber::IPV4 } else { IpNumber::IPV6 };
        let mut bytes = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(from.octets(), [192, 0, 2, 1], 64)
            .write(&mut bytes, number, payload)
            .ok()?;
        Some(bytes)
    });
    Built { frames: frames.collect() }
}

/// ARP, IPv6 neighbour discovery's kind, and ethertypes nobody knows.
pub(crate) fn not_ip(random: &mut Random) -> Built {
    let mut bytes = vec![0; 14 + random.below(60)];
    random.fill(&mut bytes);
    let ethertype: u16 = *random.pick(&[0x0806, 0x88cc, 0x886f, 0x8863, 0x88a8]);
    bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
    Built { frames: vec![bytes] }
}

/// Nothing but chance, with an ethertype that lets it in.
pub(crate) fn noise(random: &mut Random) -> Built {
    let mut bytes = vec![0; random.below(200)];
    random.fill(&mut bytes);
    if let Some(ethertype) = bytes.get_mut(12..14) {
        let known: u16 = *random.pick(&[0x0800, 0x86dd, 0x8100]);
        ethertype.copy_from_slice(&known.to_be_bytes());
    }
    if let Some(version) = bytes.get_mut(14) {
        *version = *random.pick(&[0x45, 0x45, 0x60, 0x60, 0x46, *version]);
    }
    Built { frames: vec![bytes] }
}

/// A packet of this protocol with everything else left to chance; sometimes in fragments.
fn between(random: &mut Random, protocol: u8, from: SocketAddr, to: SocketAddr) -> Built {
    let Some(ip) = ip_headers(random, from.ip(), to.ip()) else { return Built::default() };
    let length = if random.chance(40) { random.below(1700) } else { random.below(64) };
    let mut payload = vec![0; length];
    random.fill(&mut payload);
    let is_control = protocol == TCP && ftp::is_control(from, to);
    if is_control {
        payload = ftp::text(random);
    }
    let transport = transport(random, protocol, from, to, &payload);
    if random.chance(930) {
        let mut frames = Vec::from_iter(write(random, ip, protocol, &transport));
        if is_control {
            frames.iter_mut().for_each(|frame| ftp::make_sum(random, frame));
        }
        return Built { frames };
    }
    in_fragments(random, ip, protocol, &transport)
}

fn ip_headers(random: &mut Random, from: IpAddr, to: IpAddr) -> Option<IpHeaders> {
    let ttl = if random.chance(50) { random.below(3) as u8 } else { 64 };
    let options = random.chance(60);
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header =
                Ipv4Header::new(0, ttl, IpNumber(0), from.octets(), to.octets()).ok()?;
            header.dont_fragment = random.chance(700);
            if options {
                header.options = Ipv4Options::from([1, 1, 1, 1, 1, 1, 1, 0]);
            }
            Some(IpHeaders::Ipv4(header, Ipv4Extensions::default()))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let header = Ipv6Header {
                hop_limit: ttl,
                source: from.octets(),
                destination: to.octets(),
                ..Ipv6Header::default()
            };
            let raw = || Ipv6RawExtHeader::new_raw(IpNumber(0), &[1, 4, 0, 0, 0, 0]).ok();
            let mut extensions = Ipv6Extensions::default();
            if options {
                extensions.hop_by_hop_options = raw();
                extensions.destination_options = raw();
            }
            Some(IpHeaders::Ipv6(header, extensions))
        }
        _ => None,
    }
}

/// Transport header and data. The checksum is what a sender with offload leaves, or chance: the
/// director does not verify it.
fn transport(
    random: &mut Random,
    protocol: u8,
    from: SocketAddr,
    to: SocketAddr,
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let checksum = random.bits() as u16;
    match protocol {
        TCP => {
            let mut header = TcpHeader::new(from.port(), to.port(), 1, 9000);
            let flags =
                *random.pick(&[0x02, 0x02, 0x12, 0x10, 0x10, 0x18, 0x11, 0x04, checksum as u8]);
            header.fin = flags & 0x01 != 0;
            header.syn = flags & 0x02 != 0;
            header.rst = flags & 0x04 != 0;
            header.ack = flags & 0x10 != 0;
            header.checksum = checksum;
            if ftp::is_control(from, to) {
                ftp::number(random, &mut header);
            }
            bytes.extend_from_slice(&header.to_bytes());
        }
        UDP => {
            let length = 8 + payload.len() as u16;
            let checksum = if random.chance(100) { 0 } else { checksum };
            for word in [from.port(), to.port(), length, checksum] {
                bytes.extend_from_slice(&word.to_be_bytes());
            }
        }
        _ => {
            bytes.extend_from_slice(&from.port().to_be_bytes());
            bytes.extend_from_slice(&to.port().to_be_bytes());
            bytes.extend_from_slice(&[0; 8]);
            if random.chance(100) {
                return bytes;
            }
            let kind = *random.pick(&[1, 1, 1, 0, 2, 6, 7, 10, 11, checksum as u8]);
            bytes.extend_from_slice(&[kind, 0, 0, 4]);
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// The packet as a frame, some with a tag, some with padding.
pub(crate) fn write(
    random: &mut Random,
    ip: IpHeaders,
    protocol: u8,
    payload: &[u8],
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    PacketBuilder::ethernet2([2, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2])
        .ip(ip)
        .write(&mut bytes, IpNumber(protocol), payload)
        .ok()?;
    if random.chance(80) {
        bytes.splice(12..12, [0x81, 0, 0, random.bits() as u8]);
    }
    if random.chance(100) {
        bytes.resize(bytes.len() + random.below(20), 0xee);
    }
    Some(bytes)
}
