//! Frames for tests, written field by field.

use std::net::IpAddr;

use forwarding::wire::{ethernet, extension, icmp, ipv4, ipv6, protocol, tcp, udp};

/// What a frame is made of.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) mac: ethernet::Address,
    /// EtherType of a tag, if there is one.
    pub(super) tag: Option<u16>,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// Of the payload.
    pub(super) protocol: u8,
    /// IPv6 extension headers before the fragment header, of 8 bytes each.
    pub(super) extensions: Vec<u8>,
    pub(super) fragment: Option<Fragment>,
    pub(super) payload: Vec<u8>,
}

/// Place of a fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    pub(super) id: u32,
    /// In units of 8 bytes.
    pub(super) offset: u16,
    pub(super) more: bool,
}

impl Spec {
    pub(super) fn build(&self) -> Vec<u8> {
        let mut frame = self.mac.to_vec();
        frame.extend([4; 6]);
        if let Some(tag) = self.tag {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 5]);
        }
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                frame.extend(ethernet::IPV4.to_be_bytes());
                let at = frame.len();
                frame.extend([0; ipv4::LEN]);
                let mut header = ipv4::Header::at_mut(&mut frame, at).unwrap();
                header.clear();
                header.set_total_length((ipv4::LEN + self.payload.len()) as u16);
                header.set_ttl(64);
                header.set_protocol(self.protocol);
                header.set_source(source);
                header.set_destination(destination);
                if let Some(Fragment { id, offset, more }) = self.fragment {
                    header.set_identification(id as u16);
                    let more = if more { ipv4::MORE_FRAGMENTS } else { 0 };
                    header.set_flags_and_offset(offset | more);
                }
                header.fill_checksum();
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend(ethernet::IPV6.to_be_bytes());
                let at = frame.len();
                frame.extend([0; ipv6::LEN]);
                let chain = self.chain();
                let mut header = ipv6::Header::at_mut(&mut frame, at).unwrap();
                header.clear();
                header.set_payload_length((chain.len() * 8 + self.payload.len()) as u16);
                header.set_next_header(chain.first().copied().unwrap_or(self.protocol));
                header.set_hop_limit(64);
                header.set_source(source);
                header.set_destination(destination);
                for place in 0..chain.len() {
                    let next = chain.get(place + 1).copied().unwrap_or(self.protocol);
                    self.extension(&mut frame, chain[place], next);
                }
            }
            mixed => panic!("{mixed:?}"),
        }
        frame.extend(&self.payload);
        frame
    }

    /// Kinds of the extension headers, the fragment header last.
    fn chain(&self) -> Vec<u8> {
        let fragment = self.fragment.map(|_| protocol::FRAGMENT);
        self.extensions.iter().copied().chain(fragment).collect()
    }

    fn extension(&self, frame: &mut Vec<u8>, kind: u8, next: u8) {
        let at = frame.len();
        frame.extend([0; extension::LEN]);
        let mut header = extension::Header::at_mut(frame, at).unwrap();
        header.set_next_header(next);
        if let (protocol::FRAGMENT, Some(Fragment { id, offset, more })) = (kind, self.fragment) {
            header.set_identification(id);
            header.set_offset_and_flags((offset * 8) | u16::from(more));
        }
    }

    /// The answer to a packet, as an ICMP error quotes it: the IP packet without Ethernet.
    fn answer(&self) -> Vec<u8> {
        let mut payload = self.payload.clone();
        payload.swap(0, 2);
        payload.swap(1, 3);
        let (source, destination) = (self.destination, self.source);
        Spec { source, destination, payload, tag: None, ..self.clone() }.build().split_off(14)
    }

    /// An ICMP error from `router` about the answer to this packet.
    pub(super) fn error(&self, router: IpAddr) -> Spec {
        let (protocol, kind) = match self.destination {
            IpAddr::V4(_) => (protocol::ICMP, icmp::v4::UNREACHABLE),
            IpAddr::V6(_) => (protocol::ICMPV6, icmp::v6::TOO_BIG),
        };
        let mut payload = message(kind);
        payload.extend(self.answer());
        Spec {
            source: router,
            protocol,
            payload,
            fragment: None,
            extensions: vec![],
            ..self.clone()
        }
    }
}

pub(super) fn segment(source: u16, destination: u16, flags: u8) -> Vec<u8> {
    let mut bytes = vec![0; tcp::LEN];
    let mut header = tcp::Header::at_mut(&mut bytes, 0).unwrap();
    header.clear();
    header.set_source_port(source);
    header.set_destination_port(destination);
    header.set_flags(flags);
    bytes
}

pub(super) fn datagram(source: u16, destination: u16) -> Vec<u8> {
    let mut bytes = vec![0; udp::LEN];
    let mut header = udp::Header::at_mut(&mut bytes, 0).unwrap();
    header.set_source_port(source);
    header.set_destination_port(destination);
    bytes[5] = udp::LEN as u8;
    bytes
}

pub(super) fn message(kind: u8) -> Vec<u8> {
    let mut bytes = vec![0; icmp::LEN];
    icmp::Header::at_mut(&mut bytes, 0).unwrap().set_kind(kind, 0);
    bytes
}
