//! Ethernet II and one IEEE 802.1Q tag.

use super::{put, take, u16_at};
use crate::{Headers, Packet};

/// Bytes of an Ethernet header without a tag.
pub const LEN: usize = 14;
/// Bytes that an 802.1Q tag adds: its own type and the tag control information.
pub const TAG_LEN: usize = 4;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of an 802.1Q tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

/// Largest VLAN id that a tag can carry (12 bits); 4095 itself is reserved.
pub const MAX_VLAN: u16 = 0x0fff;

/// A MAC address.
pub type Address = [u8; 6];

mod field {
    pub(super) const DESTINATION: usize = 0;
    pub(super) const SOURCE: usize = 6;
    pub(super) const ETHER_TYPE: usize = 12;
    /// Bytes of both addresses.
    pub(super) const ADDRESSES: usize = 12;
}

header! {
    /// An Ethernet header; of a tagged frame the part before the tag control information.
    Header, LEN
}

impl<T: std::borrow::Borrow<[u8; LEN]>> Header<T> {
    /// Destination address.
    #[inline]
    pub fn destination(&self) -> Address {
        take(self.bytes(), field::DESTINATION)
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> Address {
        take(self.bytes(), field::SOURCE)
    }

    /// EtherType: [`VLAN`] when a tag follows.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        u16_at(self.bytes(), field::ETHER_TYPE)
    }
}

impl<T: std::borrow::BorrowMut<[u8; LEN]>> Header<T> {
    /// Sets the destination address.
    #[inline]
    pub fn set_destination(&mut self, address: Address) {
        put(self.bytes_mut(), field::DESTINATION, address);
    }

    /// Sets the source address.
    #[inline]
    pub fn set_source(&mut self, address: Address) {
        put(self.bytes_mut(), field::SOURCE, address);
    }

    /// Sets the EtherType.
    #[inline]
    pub fn set_ether_type(&mut self, ether_type: u16) {
        put(self.bytes_mut(), field::ETHER_TYPE, ether_type.to_be_bytes());
    }
}

header! {
    /// What follows an EtherType of [`VLAN`], at [`LEN`]: tag control information and the EtherType
    /// of what is tagged.
    Tag, TAG_LEN
}

impl<T: std::borrow::Borrow<[u8; TAG_LEN]>> Tag<T> {
    /// Tag control information: priority (3 bits), drop eligible (1 bit), VLAN id (12 bits).
    #[inline]
    pub fn control(&self) -> u16 {
        u16_at(self.bytes(), 0)
    }

    /// VLAN id, 12 bits; 0 says that the tag carries only a priority.
    #[inline]
    pub fn id(&self) -> u16 {
        self.control() & MAX_VLAN
    }

    /// EtherType of what is tagged.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        u16_at(self.bytes(), 2)
    }
}

impl<T: std::borrow::BorrowMut<[u8; TAG_LEN]>> Tag<T> {
    /// Sets priority, drop eligible bit and VLAN id.
    #[inline]
    pub fn set_control(&mut self, control: u16) {
        put(self.bytes_mut(), 0, control.to_be_bytes());
    }

    /// Sets the EtherType of what is tagged.
    #[inline]
    pub fn set_ether_type(&mut self, ether_type: u16) {
        put(self.bytes_mut(), 2, ether_type.to_be_bytes());
    }
}

/// Writes both MAC addresses: the next hop's and the egress interface's. A frame shorter than an
/// Ethernet header is left as it is.
#[inline]
pub fn set_addresses(frame: &mut [u8], destination: Address, source: Address) {
    if let Some(mut header) = Header::at_mut(frame, 0) {
        header.set_destination(destination);
        header.set_source(source);
    }
}

/// The same with both as they stand in a frame.
#[inline(always)]
pub fn put_addresses(frame: &mut [u8], addresses: &[u8; field::ADDRESSES]) {
    if let Some(place) = frame.first_chunk_mut() {
        *place = *addresses;
    }
}

/// Gives the frame the tag of the network it leaves on: inserts, replaces (keeping the priority)
/// or, with `None`, removes its 802.1Q tag. `headers` follows, and so must a partial checksum: move
/// it by what `headers.l3` has moved ([`Partial::moved`](crate::checksum::Partial::moved)).
///
/// False, and no change, when there is no room before the frame, or the id is above [`MAX_VLAN`].
///
/// ```
/// use forwarding::wire::ethernet;
/// use forwarding::{Packet, parse};
/// # let frame = {
/// #     let mut bytes = Vec::new();
/// #     etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
/// #         .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
/// #         .udp(1, 2).write(&mut bytes, b"hello").unwrap();
/// #     bytes
/// # };
/// let mut chunk = [0; 2048];
/// chunk[256..][..frame.len()].copy_from_slice(&frame);
/// let mut packet = Packet::new(&mut chunk, 256, frame.len());
/// let mut headers = parse(packet.bytes()).unwrap();
///
/// assert!(ethernet::set_vlan(&mut packet, &mut headers, Some(7)));
/// assert_eq!(headers.vlan, Some(7));
/// assert_eq!(parse(packet.bytes()), Ok(headers));
/// assert!(ethernet::set_vlan(&mut packet, &mut headers, None));
/// assert_eq!(packet.bytes(), frame);
/// ```
#[must_use]
pub fn set_vlan(packet: &mut Packet<'_>, headers: &mut Headers, vlan: Option<u16>) -> bool {
    if headers.vlan == vlan {
        return true;
    }
    if packet.len() < headers.l3 || vlan.is_some_and(|id| id > MAX_VLAN) {
        return false;
    }
    match (headers.vlan, vlan) {
        (Some(_), Some(id)) => replace_tag(packet.bytes_mut(), id),
        (None, Some(id)) => {
            if !packet.grow_front(TAG_LEN) {
                return false;
            }
            insert_tag(packet.bytes_mut(), id);
            headers.l3 += TAG_LEN;
            headers.l4 += TAG_LEN;
            headers.end += TAG_LEN;
        }
        (_, None) => {
            packet.bytes_mut().copy_within(..field::ADDRESSES, TAG_LEN);
            packet.shrink_front(TAG_LEN);
            headers.l3 -= TAG_LEN;
            headers.l4 -= TAG_LEN;
            headers.end -= TAG_LEN;
        }
    }
    headers.vlan = vlan;
    true
}

fn replace_tag(frame: &mut [u8], id: u16) {
    if let Some(mut tag) = Tag::at_mut(frame, LEN) {
        tag.set_control(tag.control() & !MAX_VLAN | id);
    }
}

/// The four new bytes are in front: the addresses move there, and the EtherType that stays behind
/// them becomes that of the tag's content.
fn insert_tag(frame: &mut [u8], id: u16) {
    frame.copy_within(TAG_LEN..TAG_LEN + field::ADDRESSES, 0);
    if let Some(mut header) = Header::at_mut(frame, 0) {
        header.set_ether_type(VLAN);
    }
    if let Some(mut tag) = Tag::at_mut(frame, LEN) {
        tag.set_control(id);
    }
}

#[cfg(test)]
mod tests;
