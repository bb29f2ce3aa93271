//! IP in IP of plain packets: an outer header before them, and nothing between.

use std::net::IpAddr;

use super::Plain;
use crate::checksum::Partial;
use crate::tunnel::{Outer, outer_traffic_class};
use crate::wire::{ethernet, ipv4, ipv6, protocol};
use crate::{Family, Packet};

impl Plain {
    /// What [`Encapsulation::Ipip`](crate::tunnel::Encapsulation::Ipip) does with the packet after
    /// [`lower_ttl`](Plain::lower_ttl), but for the Ethernet addresses, which are to be written by the
    /// caller: they stay undefined. Returns the end of the frame and where the inner checksum is to be
    /// completed now, if it is; `None`, and no change, where that returns `None`.
    #[inline(always)]
    pub fn put_into_ipip(
        &self,
        packet: &mut Packet<'_>,
        outer: &Outer,
    ) -> Option<(usize, Option<Partial>)> {
        let frame = packet.bytes();
        let (inside, traffic_class) = match self.family {
            Family::V4 => (protocol::IPIP, ipv4::Header::at(frame, ethernet::LEN)?.traffic_class()),
            Family::V6 => (protocol::IPV6, ipv6::Header::at(frame, ethernet::LEN)?.traffic_class()),
        };
        let traffic_class = outer_traffic_class(traffic_class);
        let ttl = self.ttl.wrapping_sub(1);
        let growth = match (outer.source, outer.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let length = u16::try_from(self.ip_len() + ipv4::LEN).ok()?;
                let frame = self.grown(packet, ipv4::LEN)?;
                ethernet::Header::at_mut(frame, 0)?.set_ether_type(ethernet::IPV4);
                let mut header = ipv4::Header::at_mut(frame, ethernet::LEN)?;
                header.clear();
                header.set_traffic_class(traffic_class);
                header.set_total_length(length);
                header.set_identification(outer.id);
                let is_v4 = self.family == Family::V4;
                if is_v4 && self.dont_fragment && outer.path_mtu_discovery {
                    header.set_flags_and_offset(ipv4::DONT_FRAGMENT);
                }
                header.set_ttl(ttl);
                header.set_protocol(inside);
                header.set_source(source);
                header.set_destination(destination);
                header.fill_checksum();
                ipv4::LEN
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let length = u16::try_from(self.ip_len()).ok()?;
                let frame = self.grown(packet, ipv6::LEN)?;
                ethernet::Header::at_mut(frame, 0)?.set_ether_type(ethernet::IPV6);
                let mut header = ipv6::Header::at_mut(frame, ethernet::LEN)?;
                header.clear();
                header.set_traffic_class(traffic_class);
                header.set_payload_length(length);
                header.set_next_header(inside);
                header.set_hop_limit(ttl);
                header.set_source(source);
                header.set_destination(destination);
                ipv6::LEN
            }
            _ => return None,
        };
        let partial = self.partial().map(|partial| partial.moved(growth as isize));
        Some((self.end() + growth, partial))
    }

    /// The frame with so much room before it, and without padding.
    #[inline(always)]
    fn grown<'a>(&self, packet: &'a mut Packet<'_>, growth: usize) -> Option<&'a mut [u8]> {
        if packet.len() < self.end() || !packet.grow_front(growth) {
            return None;
        }
        // Not longer than it is now, so there is room for it.
        let _ = packet.resize(self.end() + growth);
        Some(packet.bytes_mut())
    }
}
