//! Frames from a description. Built by `etherparse`, so that what our code makes of one packet
//! can be compared with another that our code had no part in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use etherparse::{
    IpDscp, IpEcn, IpFragOffset, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv4Options,
    Ipv6Extensions, Ipv6Header, Ipv6RawExtHeader, PacketBuilder, TcpHeader, VlanId,
};
use proptest::prelude::*;

pub(crate) const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const DIRECTOR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    Sctp,
}

#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) transport: Transport,
    /// Both are of one family.
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) vlan: Option<u16>,
    pub(crate) ttl: u8,
    pub(crate) traffic_class: u8,
    pub(crate) dont_fragment: bool,
    /// 8 bytes of IPv4 options, or an IPv6 hop-by-hop header.
    pub(crate) options: bool,
    pub(crate) tcp_flags: u8,
    pub(crate) payload: Vec<u8>,
    /// Bytes of 0xee behind the packet.
    pub(crate) padding: usize,
}

impl Spec {
    pub(crate) fn new(transport: Transport, source: &str, destination: &str) -> Spec {
        Spec {
            transport,
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            vlan: None,
            ttl: 64,
            traffic_class: 0,
            dont_fragment: true,
            options: false,
            tcp_flags: crate::wire::tcp::SYN,
            payload: b"payload".to_vec(),
            padding: 0,
        }
    }

    /// Where the IP header begins.
    pub(crate) fn l3(&self) -> usize {
        if self.vlan.is_some() { 18 } else { 14 }
    }

    /// Where the transport header begins.
    pub(crate) fn l4(&self) -> usize {
        let ip = if self.source.is_ipv4() { 20 } else { 40 };
        self.l3() + ip + if self.options { 8 } else { 0 }
    }

    pub(crate) fn protocol(&self) -> u8 {
        match self.transport {
            Transport::Tcp => 6,
            Transport::Udp => 17,
            Transport::Sctp => 132,
        }
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let ip = self.ip(self.source.ip(), self.destination.ip());
        let (source, destination) = (self.source.port(), self.destination.port());
        let link = PacketBuilder::ethernet2(CLIENT_MAC, DIRECTOR_MAC);
        let network = match self.vlan {
            Some(id) => link.single_vlan(VlanId::try_new(id).unwrap()).ip(ip),
            None => link.ip(ip),
        };
        let mut frame = Vec::new();
        match self.transport {
            Transport::Tcp => {
                let mut tcp = TcpHeader::new(source, destination, 0x1234_5678, 0xffff);
                tcp.fin = self.tcp_flags & 1 != 0;
                tcp.syn = self.tcp_flags & 2 != 0;
                tcp.rst = self.tcp_flags & 4 != 0;
                tcp.ack = self.tcp_flags & 16 != 0;
                network.tcp_header(tcp).write(&mut frame, &self.payload)
            }
            Transport::Udp => network.udp(source, destination).write(&mut frame, &self.payload),
            Transport::Sctp => {
                let packet = sctp_packet(source, destination, &self.payload);
                network.write(&mut frame, IpNumber(132), &packet)
            }
        }
        .unwrap();
        frame.resize(frame.len() + self.padding, 0xee);
        frame
    }

    fn ip(&self, source: IpAddr, destination: IpAddr) -> IpHeaders {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut header = Ipv4Header::new(
                    0,
                    self.ttl,
                    IpNumber(0),
                    source.octets(),
                    destination.octets(),
                )
                .unwrap();
                header.identification = 0x4242;
                header.dscp = IpDscp::try_new(self.traffic_class >> 2).unwrap();
                header.ecn = IpEcn::try_new(self.traffic_class & 3).unwrap();
                header.dont_fragment = self.dont_fragment;
                if self.options {
                    header.options = Ipv4Options::from([1, 1, 1, 1, 1, 1, 1, 0]);
                }
                IpHeaders::Ipv4(header, Ipv4Extensions::default())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let header = Ipv6Header {
                    traffic_class: self.traffic_class,
                    hop_limit: self.ttl,
                    source: source.octets(),
                    destination: destination.octets(),
                    ..Ipv6Header::default()
                };
                let padding = [1, 4, 0, 0, 0, 0];
                let extensions = Ipv6Extensions {
                    hop_by_hop_options: self
                        .options
                        .then(|| Ipv6RawExtHeader::new_raw(IpNumber(0), &padding).unwrap()),
                    ..Ipv6Extensions::default()
                };
                IpHeaders::Ipv6(header, extensions)
            }
            _ => unreachable!("both are of one family"),
        }
    }

    /// A fragment of this packet whose transport part begins at byte `offset` (a multiple of 8).
    /// Only the fields of the IP header tell it from the whole packet.
    pub(crate) fn build_fragment(&self, offset: u16, more: bool) -> Vec<u8> {
        let mut payload = Vec::new();
        let whole = self.build();
        let rest = &whole[self.l4() + usize::from(offset)..];
        let len = if more { rest.len() & !7 } else { rest.len() };
        payload.extend_from_slice(&rest[..len]);
        let offset = IpFragOffset::try_new(offset / 8).unwrap();
        let link = PacketBuilder::ethernet2(CLIENT_MAC, DIRECTOR_MAC);
        let ip = match self.ip(self.source.ip(), self.destination.ip()) {
            IpHeaders::Ipv4(mut header, extensions) => {
                header.fragment_offset = offset;
                header.more_fragments = more;
                IpHeaders::Ipv4(header, extensions)
            }
            IpHeaders::Ipv6(header, mut extensions) => {
                extensions.fragment = Some(etherparse::Ipv6FragmentHeader::new(
                    IpNumber(0),
                    offset,
                    more,
                    0x0102_0304,
                ));
                IpHeaders::Ipv6(header, extensions)
            }
        };
        let mut frame = Vec::new();
        link.ip(ip).write(&mut frame, IpNumber(self.protocol()), &payload).unwrap();
        frame
    }
}

/// An ICMP or ICMPv6 error frame with this type, code and quote.
pub(crate) fn icmp_error(
    source: IpAddr,
    destination: IpAddr,
    (kind, code): (u8, u8),
    quote: &[u8],
) -> Vec<u8> {
    let link = PacketBuilder::ethernet2(CLIENT_MAC, DIRECTOR_MAC);
    let mut frame = Vec::new();
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => link
            .ipv4(source.octets(), destination.octets(), 64)
            .icmpv4_raw(kind, code, [0; 4])
            .write(&mut frame, quote),
        (IpAddr::V6(source), IpAddr::V6(destination)) => link
            .ipv6(source.octets(), destination.octets(), 64)
            .icmpv6_raw(kind, code, [0; 4])
            .write(&mut frame, quote),
        _ => unreachable!("both are of one family"),
    }
    .unwrap();
    frame
}

fn sctp_packet(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    packet.extend_from_slice(&source.to_be_bytes());
    packet.extend_from_slice(&destination.to_be_bytes());
    packet.extend_from_slice(&[0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0]);
    packet.extend_from_slice(payload);
    let checksum = super::oracle::crc32c(&packet);
    packet[8..12].copy_from_slice(&checksum.to_le_bytes());
    packet
}

fn unicast_v4() -> impl Strategy<Value = IpAddr> {
    (1u8..127, any::<[u8; 3]>()).prop_map(|(a, [b, c, d])| IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
}

fn unicast_v6() -> impl Strategy<Value = IpAddr> {
    any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits >> 3 | 1 << 125)))
}

/// `N` unicast addresses with ports, all of one family.
pub(crate) fn endpoints<const N: usize>() -> impl Strategy<Value = [SocketAddr; N]> {
    fn with_ports<const N: usize>(
        address: impl Strategy<Value = IpAddr> + Clone,
    ) -> impl Strategy<Value = [SocketAddr; N]> {
        std::array::from_fn(|_| (address.clone(), any::<u16>()).prop_map(SocketAddr::from))
    }
    prop_oneof![with_ports(unicast_v4().boxed()), with_ports(unicast_v6().boxed())]
}

pub(crate) fn transports() -> impl Strategy<Value = Transport> {
    prop_oneof![Just(Transport::Tcp), Just(Transport::Udp), Just(Transport::Sctp)]
}

/// Any packet between these two.
pub(crate) fn between(source: SocketAddr, destination: SocketAddr) -> impl Strategy<Value = Spec> {
    (
        transports(),
        prop::option::of(0u16..4096),
        any::<(u8, u8, bool, bool, u8)>(),
        prop::collection::vec(any::<u8>(), 0..200),
        0usize..20,
    )
        .prop_map(move |(transport, vlan, fields, payload, padding)| {
            let (ttl, traffic_class, dont_fragment, options, tcp_flags) = fields;
            Spec {
                transport,
                source,
                destination,
                vlan,
                ttl,
                traffic_class,
                dont_fragment,
                options,
                tcp_flags: tcp_flags & 0x17,
                payload,
                padding,
            }
        })
}

/// Any packet.
pub(crate) fn specs() -> impl Strategy<Value = Spec> {
    endpoints::<2>().prop_flat_map(|[source, destination]| between(source, destination))
}
