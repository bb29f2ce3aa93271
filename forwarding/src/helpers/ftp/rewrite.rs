//! Puts another address and port into an announcement. The text may become longer or shorter, and
//! everything that says how long the packet is follows.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use super::read::{Announcement, Form};
use crate::checksum::{Delta, Partial, Sum};
use crate::wire::{ipv4, ipv6, tcp};
use crate::{Family, Fragment, Headers, Packet};

/// Why a packet was left as it is. It must not be forwarded: its receiver would be told an address
/// that it cannot reach, and the numbering of the connection may already count on the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRewritten {
    /// The announcement is not inside the data of a whole TCP segment.
    #[error("the announcement does not lie in this packet")]
    Outside,
    /// The address is of a family that the announcement's form cannot hold.
    #[error("the announcement's form cannot hold an address of this family")]
    Family,
    /// The TCP checksum is wrong: a new one would hide that.
    #[error("bad TCP checksum")]
    Checksum,
    /// The packet cannot become longer: neither the chunk nor IP has the room.
    #[error("no room for a longer packet")]
    NoRoom,
}

/// Writes `address` and `port` in place of what `announcement` (of this packet's data) says, and
/// returns by how many bytes the packet has become longer (negative: shorter).
///
/// The IP length and `headers.end` follow, and so do the IPv4 header checksum (incrementally) and
/// the TCP checksum (in full: every byte behind the text may have moved to the other half of a
/// word). When `partial` says that the TCP checksum is still to be completed, the pseudo-header sum
/// of the new length is written. Padding behind the packet is cut off. Sequence numbers are
/// [`SequenceAdjustment`](super::SequenceAdjustment)'s.
///
/// # Errors
/// See [`NotRewritten`]; the packet has not been changed.
pub fn rewrite(
    packet: &mut Packet<'_>,
    headers: &mut Headers,
    announcement: &Announcement,
    address: IpAddr,
    port: u16,
    partial: Option<Partial>,
) -> Result<isize, NotRewritten> {
    let text = Text::of(announcement.form, address, port).ok_or(NotRewritten::Family)?;
    let frame = packet.bytes();
    let data = super::control::data(frame, headers).ok_or(NotRewritten::Outside)?;
    let start = data + announcement.text.start;
    let end = data + announcement.text.end;
    if start > end || end > headers.end {
        return Err(NotRewritten::Outside);
    }
    let partial = partial.filter(|partial| partial.start == headers.l4);
    let segment = frame.get(headers.l4..headers.end).ok_or(NotRewritten::Outside)?;
    if partial.is_none() && headers.pseudo_header().bytes(segment).folded() != 0xffff {
        return Err(NotRewritten::Checksum);
    }
    let new = text.bytes();
    let new_end = start + new.len() + (headers.end - end);
    if new_end - headers.l3 > usize::from(u16::MAX) {
        return Err(NotRewritten::NoRoom);
    }
    make_room(packet, headers.end, start..end, new.len())?;
    let frame = packet.bytes_mut();
    if let Some(place) = frame.get_mut(start..start + new.len()) {
        place.copy_from_slice(new);
    }
    let change = new_end as isize - headers.end as isize;
    headers.end = new_end;
    set_length(frame, headers);
    fill_checksum(frame, headers, partial);
    Ok(change)
}

/// Makes the text at `old` of a frame whose packet ends at `end` `new_len` bytes long, and the frame
/// end with the packet. The bytes behind it move, or, when the chunk has no room behind, those
/// before it.
fn make_room(
    packet: &mut Packet<'_>,
    end: usize,
    old: std::ops::Range<usize>,
    new_len: usize,
) -> Result<(), NotRewritten> {
    let tail = old.end..end;
    let new_end = old.start + new_len + tail.len();
    if new_end <= packet.len() || packet.resize(new_end) {
        packet.bytes_mut().copy_within(tail, old.start + new_len);
    } else {
        // Longer than before, or it would have fitted.
        let growth = new_end - end;
        if !packet.grow_front(growth) {
            return Err(NotRewritten::NoRoom);
        }
        packet.bytes_mut().copy_within(growth..growth + old.start, 0);
    }
    // Cuts padding off; a frame can always become shorter.
    let _ = packet.resize(new_end);
    Ok(())
}

/// Writes the length of the packet into its IP header.
fn set_length(frame: &mut [u8], headers: &Headers) {
    match headers.family {
        Family::V4 => {
            if let Some(mut header) = ipv4::Header::at_mut(frame, headers.l3) {
                let (old, new) = (header.total_length(), headers.ip_len() as u16);
                header.set_total_length(new);
                header.set_checksum(Delta::default().u16(old, new).apply(header.checksum()));
            }
        }
        Family::V6 => {
            if let Some(mut header) = ipv6::Header::at_mut(frame, headers.l3) {
                header.set_payload_length((headers.ip_len() - ipv6::LEN) as u16);
            }
        }
    }
}

/// Computes the TCP checksum, or begins it when it is `partial`.
fn fill_checksum(frame: &mut [u8], headers: &Headers, partial: Option<Partial>) {
    let pseudo_header = headers.pseudo_header();
    let Some(segment) = frame.get_mut(headers.l4..headers.end) else {
        return;
    };
    let set = |segment: &mut [u8], checksum| {
        if let Some(mut header) = tcp::Header::at_mut(segment, 0) {
            header.set_checksum(checksum);
        }
    };
    set(segment, 0);
    let checksum = match partial {
        Some(_) => pseudo_header.folded(),
        None => Sum::bytes(pseudo_header, segment).checksum(),
    };
    set(segment, checksum);
}

/// Whether the packet is a whole TCP segment.
pub(super) fn is_whole_segment(headers: &Headers) -> bool {
    headers.is_tcp() && headers.fragment == Fragment::Whole
}

/// The text of an announcement: at most `|2|`, 45 bytes of address, `|65535|`.
struct Text {
    bytes: [u8; 64],
    len: usize,
}

impl Text {
    fn of(form: Form, address: IpAddr, port: u16) -> Option<Text> {
        let mut text = Text { bytes: [0; 64], len: 0 };
        let [high, low] = port.to_be_bytes();
        match (form, address) {
            (Form::HostPort, IpAddr::V4(address)) => {
                let [a, b, c, d] = Ipv4Addr::octets(&address);
                write!(text, "{a},{b},{c},{d},{high},{low}")
            }
            (Form::HostPort, IpAddr::V6(_)) => return None,
            (Form::Extended(delimiter), address) => {
                let d = char::from(delimiter);
                let family = if address.is_ipv4() { 1 } else { 2 };
                write!(text, "{d}{family}{d}{address}{d}{port}{d}")
            }
            (Form::PortOnly(delimiter), _) => {
                let d = char::from(delimiter);
                write!(text, "{d}{d}{d}{port}{d}")
            }
        }
        .ok()?;
        Some(text)
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}
