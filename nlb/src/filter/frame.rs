//! Parse: what the filter reads of a frame, and no more.
//!
//! | read | must be there | otherwise |
//! |---|---|---|
//! | Ethernet, one tag of 802.1Q or 802.1ad | 14 bytes, 4 more of a tag | malformed |
//! | IPv4 | 20 bytes, version 4, header length of 20 or more | malformed |
//! | IPv6 | 40 bytes, version 6 | malformed |
//! | IPv6 extension headers, at most four | 8 bytes each | malformed |
//! | TCP, UDP, ICMP | 20, 8, 8 bytes | malformed |
//! | what an ICMP error quotes | IP header, whole or first fragment, then 8 bytes of TCP or UDP | no flow |
//!
//! Where a packet ends (its own length, padding), its checksums and the length of TCP's options
//! are the stack's to check.

use std::net::IpAddr;

use forwarding::wire::{ethernet, extension, ipv4, ipv6, protocol};

/// EtherType of heartbeats.
pub const HEARTBEAT: u16 = 0x886f;
/// EtherType of a provider's tag, read like a customer's.
const QINQ: u16 = 0x88a8;
/// IPv6 extension headers that are stepped over in one packet.
pub const MAX_EXTENSIONS: usize = 4;

/// A frame up to its EtherType.
pub(super) struct Link {
    pub(super) destination: ethernet::Address,
    /// Behind the tag, where there is one.
    pub(super) ether_type: u16,
    /// Where what follows begins.
    pub(super) payload: usize,
}

/// The IP header of a packet.
pub(super) struct Ip {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// What follows: an extension header too.
    protocol: u8,
    /// Where it begins.
    payload: usize,
    /// Of IPv4. Of IPv6 it is still to be read.
    part: Part,
}

/// What an IP packet carries.
pub(super) struct Upper {
    /// Its protocol, behind all extension headers.
    pub(super) protocol: u8,
    /// Where it begins.
    pub(super) offset: usize,
    pub(super) part: Part,
}

/// Which part of a packet a frame holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// The first fragment: the transport's header is in it.
    First { id: u32 },
    /// Another fragment.
    Later { id: u32 },
}

/// What is malformed has no reading.
pub(super) fn link(frame: &[u8]) -> Option<Link> {
    let header = ethernet::Header::at(frame, 0)?;
    let destination = header.destination();
    match header.ether_type() {
        ethernet::VLAN | QINQ => {
            let tag = ethernet::Tag::at(frame, ethernet::LEN)?;
            let payload = ethernet::LEN + ethernet::TAG_LEN;
            Some(Link { destination, ether_type: tag.ether_type(), payload })
        }
        ether_type => Some(Link { destination, ether_type, payload: ethernet::LEN }),
    }
}

pub(super) fn ipv4(frame: &[u8], at: usize) -> Option<Ip> {
    let header = ipv4::Header::at(frame, at)?;
    if header.version() != 4 || header.header_len() < ipv4::LEN {
        return None;
    }
    let (flags_and_offset, id) = (header.flags_and_offset(), header.identification().into());
    let part = match (flags_and_offset & ipv4::OFFSET, flags_and_offset & ipv4::MORE_FRAGMENTS) {
        (0, 0) => Part::Whole,
        (0, _) => Part::First { id },
        _ => Part::Later { id },
    };
    Some(Ip {
        source: header.source().into(),
        destination: header.destination().into(),
        protocol: header.protocol(),
        payload: at + header.header_len(),
        part,
    })
}

pub(super) fn ipv6(frame: &[u8], at: usize) -> Option<Ip> {
    let header = ipv6::Header::at(frame, at).filter(|header| header.version() == 6)?;
    Some(Ip {
        source: header.source().into(),
        destination: header.destination().into(),
        protocol: header.next_header(),
        payload: at + ipv6::LEN,
        part: Part::Whole,
    })
}

impl Ip {
    pub(super) fn is_ipv4(&self) -> bool {
        self.destination.is_ipv4()
    }

    /// Steps over extension headers, as far as to a fragment that has nothing behind them.
    pub(super) fn upper(&self, frame: &[u8]) -> Option<Upper> {
        let mut upper = Upper { protocol: self.protocol, offset: self.payload, part: self.part };
        if self.is_ipv4() {
            return Some(upper);
        }
        for _ in 0..MAX_EXTENSIONS {
            if !is_extension(upper.protocol) || matches!(upper.part, Part::Later { .. }) {
                break;
            }
            let header = extension::Header::at(frame, upper.offset)?;
            if upper.protocol == protocol::FRAGMENT {
                upper.part = ipv6_part(&header);
                upper.offset += extension::LEN;
            } else {
                upper.offset += header.header_len();
            }
            upper.protocol = header.next_header();
        }
        let read = matches!(upper.part, Part::Later { .. }) || !is_extension(upper.protocol);
        read.then_some(upper)
    }

    /// The protocol right behind this header; `None` of a fragment that does not begin with it.
    pub(super) fn next(&self) -> Option<(u8, usize)> {
        (!matches!(self.part, Part::Later { .. })).then_some((self.protocol, self.payload))
    }
}

/// A fragment header on a whole packet (RFC 6946) makes it no fragment.
fn ipv6_part(header: &extension::Header<&[u8; extension::LEN]>) -> Part {
    let (offset_and_flags, id) = (header.offset_and_flags(), header.identification());
    let place = offset_and_flags & extension::OFFSET;
    match (place, offset_and_flags & extension::MORE_FRAGMENTS) {
        (0, 0) => Part::Whole,
        (0, _) => Part::First { id },
        _ => Part::Later { id },
    }
}

fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::DESTINATION_OPTIONS
    )
}
