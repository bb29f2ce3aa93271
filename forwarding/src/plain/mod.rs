//! Most packets are plain: whole TCP or UDP, without options, extension headers or a VLAN tag. What
//! they need is read at once and rewritten at once, at places known beforehand.
//!
//! Knows how to do for them what [`parse`](fn@crate::parse), [`direct`](crate::direct) and
//! [`nat`](crate::nat) do for all, bit for bit the same (a test compares them). Must not know more
//! kinds of packets than these.

mod ipip;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::{Delta, Partial, Sum};
use crate::wire::{ethernet, ipv4, ipv6, protocol, tcp, udp};
use crate::{Family, Fragment, Headers};

/// Which end of a packet is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
}

/// What there is to know of a plain packet. Addresses are numbers, those of IPv4 in the lowest 32
/// bits; all is in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// IPv4 or IPv6.
    pub family: Family,
    /// TCP or UDP.
    pub protocol: u8,
    /// TCP flags, otherwise 0.
    pub tcp_flags: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4 "don't fragment"; always true for IPv6.
    pub dont_fragment: bool,
    /// The sender has left the transport checksum to be completed.
    pub is_partial: bool,
    /// One past the last byte of the IP packet.
    end: u32,
    /// IP source.
    pub source: u128,
    /// IP destination.
    pub destination: u128,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

/// Of a packet that nobody has read yet.
impl Default for Plain {
    fn default() -> Plain {
        Plain {
            family: Family::V4,
            protocol: 0,
            tcp_flags: 0,
            ttl: 0,
            dont_fragment: false,
            is_partial: false,
            end: (ethernet::LEN + ipv4::LEN) as u32,
            source: 0,
            destination: 0,
            source_port: 0,
            destination_port: 0,
        }
    }
}

impl Plain {
    /// Reads a frame; `None` when it is not plain, or not well formed: then
    /// [`parse`](fn@crate::parse) knows what it is. UDP without a checksum is not plain either.
    #[inline(always)]
    pub fn read(frame: &[u8]) -> Option<Plain> {
        let plain = match ethernet::Header::at(frame, 0)?.ether_type() {
            ethernet::IPV4 => Plain::over_ipv4(frame)?,
            ethernet::IPV6 => Plain::over_ipv6(frame)?,
            _ => return None,
        };
        plain.with_transport(frame)
    }

    #[inline(always)]
    fn over_ipv4(frame: &[u8]) -> Option<Plain> {
        let header = ipv4::Header::at(frame, ethernet::LEN)?;
        let length = header.total_length();
        let end = ethernet::LEN + usize::from(length);
        let flags_and_offset = header.flags_and_offset();
        let is_plain = header.version_and_length() == 0x45
            && usize::from(length) >= ipv4::LEN
            && end <= frame.len()
            && flags_and_offset & (ipv4::OFFSET | ipv4::MORE_FRAGMENTS) == 0
            && header.sum().is(0xffff);
        is_plain.then(|| Plain {
            family: Family::V4,
            protocol: header.protocol(),
            tcp_flags: 0,
            ttl: header.ttl(),
            dont_fragment: flags_and_offset & ipv4::DONT_FRAGMENT != 0,
            is_partial: false,
            end: end as u32,
            source: u128::from(header.source().to_bits()),
            destination: u128::from(header.destination().to_bits()),
            source_port: 0,
            destination_port: 0,
        })
    }

    #[inline(always)]
    fn over_ipv6(frame: &[u8]) -> Option<Plain> {
        let header = ipv6::Header::at(frame, ethernet::LEN)?;
        let length = usize::from(header.payload_length());
        let end = ethernet::LEN + ipv6::LEN + length;
        if header.version() != 6 || length == 0 || end > frame.len() {
            return None;
        }
        Some(Plain {
            family: Family::V6,
            protocol: header.next_header(),
            tcp_flags: 0,
            ttl: header.hop_limit(),
            dont_fragment: true,
            is_partial: false,
            end: end as u32,
            source: header.source().to_bits(),
            destination: header.destination().to_bits(),
            source_port: 0,
            destination_port: 0,
        })
    }

    #[inline(always)]
    fn with_transport(mut self, frame: &[u8]) -> Option<Plain> {
        let packet = frame.get(..self.end as usize)?;
        let length = self.end as usize - self.l4();
        let checksum = match self.protocol {
            protocol::TCP => {
                let header = tcp::Header::at(packet, self.l4())?;
                if header.header_len() < tcp::LEN || header.header_len() > length {
                    return None;
                }
                self.source_port = header.source_port();
                self.destination_port = header.destination_port();
                self.tcp_flags = header.flags();
                header.checksum()
            }
            protocol::UDP => {
                let header = udp::Header::at(packet, self.l4())?;
                if usize::from(header.length()) != length || header.checksum() == 0 {
                    return None;
                }
                self.source_port = header.source_port();
                self.destination_port = header.destination_port();
                header.checksum()
            }
            _ => return None,
        };
        self.is_partial = self.pseudo_header(self.source, self.destination).is(checksum);
        Some(self)
    }

    /// Where the transport header begins.
    #[inline(always)]
    fn l4(&self) -> usize {
        match self.family {
            Family::V4 => ethernet::LEN + ipv4::LEN,
            Family::V6 => ethernet::LEN + ipv6::LEN,
        }
    }

    /// Bytes of the frame, without padding.
    #[inline(always)]
    pub fn end(&self) -> usize {
        self.end as usize
    }

    /// Bytes of the IP packet.
    #[inline(always)]
    pub fn ip_len(&self) -> usize {
        self.end() - ethernet::LEN
    }

    #[inline(always)]
    fn pseudo_header(&self, source: u128, destination: u128) -> Sum {
        let length = self.end() - self.l4();
        let sum = match self.family {
            Family::V4 => Sum::default().word(source as u32).word(destination as u32),
            Family::V6 => Sum::default().u128(source).u128(destination),
        };
        sum.word(u32::from(self.protocol)).word(length as u32)
    }

    /// IP destination.
    #[inline(always)]
    pub fn destination_address(&self) -> IpAddr {
        self.address(self.destination)
    }

    #[inline(always)]
    fn address(&self, bits: u128) -> IpAddr {
        match self.family {
            Family::V4 => Ipv4Addr::from_bits(bits as u32).into(),
            Family::V6 => Ipv6Addr::from_bits(bits).into(),
        }
    }

    /// Where the transport checksum is to be completed, if it is.
    #[inline(always)]
    pub fn partial(&self) -> Option<Partial> {
        let offset = if self.protocol == protocol::TCP { tcp::CHECKSUM } else { udp::CHECKSUM };
        self.is_partial.then_some(Partial { start: self.l4(), offset })
    }

    /// Lowers the TTL, which is more than 1.
    #[inline(always)]
    pub fn lower_ttl(&self, frame: &mut [u8]) {
        // No address changes, so no other checksum does.
        let _: Delta = match self.family {
            Family::V4 => self.change_ipv4(frame, None),
            Family::V6 => self.change_ipv6(frame, None),
        };
    }

    /// Lowers the TTL, which is more than 1, and replaces address and port of one end; `address` is
    /// of the packet's family.
    #[inline(always)]
    pub fn translate(&self, frame: &mut [u8], end: End, address: u128, port: u16) {
        let delta = match self.family {
            Family::V4 => self.change_ipv4(frame, Some((end, address as u32))),
            Family::V6 => self.change_ipv6(frame, Some((end, address))),
        };
        let (old_port, source, destination) = match end {
            End::Source => (self.source_port, address, self.destination),
            End::Destination => (self.destination_port, self.source, address),
        };
        let sum = |checksum| match self.is_partial {
            true => self.pseudo_header(source, destination).folded(),
            false => delta.u16(old_port, port).apply(checksum),
        };
        match self.protocol {
            protocol::TCP => {
                let Some(mut header) = tcp::Header::at_mut(frame, self.l4()) else { return };
                match end {
                    End::Source => header.set_source_port(port),
                    End::Destination => header.set_destination_port(port),
                }
                header.set_checksum(sum(header.checksum()));
            }
            _ => {
                let Some(mut header) = udp::Header::at_mut(frame, self.l4()) else { return };
                match end {
                    End::Source => header.set_source_port(port),
                    End::Destination => header.set_destination_port(port),
                }
                let sum = sum(header.checksum());
                if self.is_partial {
                    header.set_checksum(sum);
                } else {
                    header.set_computed_checksum(sum);
                }
            }
        }
    }

    /// Returns what the new address does to checksums over it.
    #[inline(always)]
    fn change_ipv4(&self, frame: &mut [u8], new: Option<(End, u32)>) -> Delta {
        let Some(mut header) = ipv4::Header::at_mut(frame, ethernet::LEN) else {
            return Delta::default();
        };
        let delta = match new {
            Some((End::Source, address)) => {
                header.set_source(address.into());
                Delta::default().u32(self.source as u32, address)
            }
            Some((End::Destination, address)) => {
                header.set_destination(address.into());
                Delta::default().u32(self.destination as u32, address)
            }
            None => Delta::default(),
        };
        let before = header.ttl_and_protocol();
        let whole = delta.u16(before, before.wrapping_sub(0x0100));
        header.set_checksum(whole.apply(header.checksum()));
        header.set_ttl(self.ttl.wrapping_sub(1));
        delta
    }

    #[inline(always)]
    fn change_ipv6(&self, frame: &mut [u8], new: Option<(End, u128)>) -> Delta {
        let Some(mut header) = ipv6::Header::at_mut(frame, ethernet::LEN) else {
            return Delta::default();
        };
        header.set_hop_limit(self.ttl.wrapping_sub(1));
        match new {
            Some((End::Source, address)) => {
                header.set_source(address.into());
                Delta::default().u128(self.source, address)
            }
            Some((End::Destination, address)) => {
                header.set_destination(address.into());
                Delta::default().u128(self.destination, address)
            }
            None => Delta::default(),
        }
    }

    /// What [`parse`](fn@crate::parse) would say of the packet after
    /// [`lower_ttl`](Plain::lower_ttl).
    #[inline]
    pub fn headers(&self) -> Headers {
        Headers {
            family: self.family,
            vlan: None,
            l3: ethernet::LEN,
            l4: self.l4(),
            end: self.end(),
            protocol: self.protocol,
            source: self.address(self.source),
            destination: self.address(self.destination),
            source_port: self.source_port,
            destination_port: self.destination_port,
            ttl: self.ttl.wrapping_sub(1),
            dont_fragment: self.dont_fragment,
            fragment: Fragment::Whole,
            tcp_flags: self.tcp_flags,
        }
    }
}

#[cfg(test)]
mod tests;
