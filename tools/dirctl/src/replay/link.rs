//! Link types: what packets of a capture begin with, and how they become Ethernet frames.

use forwarding::wire::ethernet;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// What a packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// An Ethernet header.
    Ethernet,
    /// An IP header.
    Raw,
    /// What `tcpdump -i any` writes (SLL): 16 bytes, the Ethernet type last.
    Cooked,
    /// What newer ones write (SLL2): 20 bytes, the Ethernet type first.
    Cooked2,
}

impl Link {
    /// By its number in the list of tcpdump.org.
    pub fn of(number: u32) -> Option<Link> {
        match number {
            1 => Some(Link::Ethernet),
            // Raw IP has had several numbers; IPv4 and IPv6 alone have their own.
            12 | 14 | 101 | 228 | 229 => Some(Link::Raw),
            113 => Some(Link::Cooked),
            276 => Some(Link::Cooked2),
            _ => None,
        }
    }

    /// Bytes before the IP packet that an Ethernet frame would not have.
    fn header(self) -> usize {
        match self {
            Link::Ethernet | Link::Raw => 0,
            Link::Cooked => 16,
            Link::Cooked2 => 20,
        }
    }

    /// Puts the packet as an Ethernet frame to the start of `room`; returns how long it is there, and how
    /// long it would be had all `length` bytes of it been captured. A frame that is made gets `to` as
    /// its destination. `None` when there is less than such a header, or no room.
    pub fn frame(
        self,
        bytes: &[u8],
        length: usize,
        to: [u8; 6],
        room: &mut [u8],
    ) -> Option<(usize, usize)> {
        if self == Link::Ethernet {
            room.get_mut(..bytes.len())?.copy_from_slice(bytes);
            return Some((bytes.len(), length));
        }
        let packet = bytes.get(self.header()..)?;
        let kind = match self {
            Link::Cooked => u16::from_be_bytes([bytes[14], bytes[15]]),
            Link::Cooked2 => u16::from_be_bytes([bytes[0], bytes[1]]),
            _ if packet.first()? >> 4 == 6 => ethernet::IPV6,
            _ => ethernet::IPV4,
        };
        let frame = room.get_mut(..ETHERNET + packet.len())?;
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&FROM);
        frame[12..14].copy_from_slice(&kind.to_be_bytes());
        frame[ETHERNET..].copy_from_slice(packet);
        Some((frame.len(), length.saturating_sub(self.header()) + ETHERNET))
    }
}

/// Who is taken to have sent a packet whose Ethernet header was not captured.
const FROM: [u8; 6] = [2, 0, 0, 0, 0, 2];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ip_packet_becomes_a_frame_of_its_family() {
        let mut room = [0; 64];
        let framed = Link::Raw.frame(&[0x60, 1, 2], 40, [9; 6], &mut room);
        assert_eq!(framed, Some((17, 54)));
        assert_eq!(room[..6], [9; 6]);
        assert_eq!(room[12..17], [0x86, 0xdd, 0x60, 1, 2]);
        let _ = Link::Raw.frame(&[0x45], 1, [9; 6], &mut room);
        assert_eq!(room[12..14], [8, 0]);
    }

    #[test]
    fn what_tcpdump_writes_of_any_interface_loses_its_own_header() {
        let mut room = [0; 64];
        let mut cooked = [0; 17];
        (cooked[14], cooked[16]) = (8, 0x45);
        assert_eq!(Link::Cooked.frame(&cooked, 100, [9; 6], &mut room), Some((15, 98)));
        assert_eq!(room[12..15], [8, 0, 0x45]);
        assert_eq!(Link::Cooked.frame(&cooked[..15], 100, [9; 6], &mut room), None);
        assert_eq!(Link::Ethernet.frame(&[0; 65], 65, [9; 6], &mut room), None, "no room");
    }
}
