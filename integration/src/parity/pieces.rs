//! Fragments: cut here as a sender cuts, and put together again as a receiver does.
//!
//! The kernel puts a datagram together before it forwards it and cuts it again; ours forwards the
//! fragments as they come. What is compared is what the receiver has in the end.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::arrival::Arrival;
use super::frames::{ip, sum_header};
use super::step::{Packet, Piece};

/// IPv6's fragment header: its protocol number, and its length.
const FRAGMENT: u8 = 44;
const FRAGMENT_LEN: usize = 8;
const V6_LEN: usize = 40;
const V4_LEN: usize = 20;
const UDP_LEN: usize = 8;

/// The fragment that `packet` is; `datagram` makes the whole, UDP header and all, with this many
/// bytes of payload.
pub(super) fn packet(
    packet: &Packet,
    piece: Piece,
    ends: (IpAddr, IpAddr),
    datagram: impl Fn(usize) -> Vec<u8>,
) -> Vec<u8> {
    let mut whole = datagram(piece.datagram);
    let end = piece.offset + piece.length;
    whole.resize(whole.len().max(end), 0);
    if piece.forged {
        whole[UDP_LEN..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    let bytes = &whole[piece.offset..end];
    let more = u16::from(piece.more);
    // A client's flow has a port of its own, and its datagrams differ in length.
    let id = packet.flow.client.port().wrapping_add(piece.datagram as u16);
    if ends.0.is_ipv6() {
        let mut header = vec![17, 0];
        header.extend((piece.offset as u16 | more).to_be_bytes());
        header.extend(u32::from(id).to_be_bytes());
        return ip(packet, ends, FRAGMENT, 0, &[&header, bytes].concat());
    }
    let unflagged = Packet { dont_fragment: false, ..*packet };
    let mut fragment = ip(&unflagged, ends, 17, id, bytes);
    fragment[6..8].copy_from_slice(&((more << 13) | (piece.offset as u16 / 8)).to_be_bytes());
    sum_header(&mut fragment);
    fragment
}

/// What receivers have of datagrams that lack a fragment.
#[derive(Default)]
pub(super) struct Receivers {
    parts: BTreeMap<Vec<u8>, Vec<Arrival>>,
}

impl Receivers {
    /// Puts fragments among `arrivals` together; each whole stands where its last fragment was. What
    /// lacks a fragment has not been received yet: the kernel keeps it to itself, and ours has sent
    /// what it had before it knew.
    pub(super) fn put_together(&mut self, arrivals: Vec<Arrival>) -> Vec<Arrival> {
        let mut out = Vec::new();
        for arrival in arrivals {
            let Some(fragment) = Fragment::of(&arrival.packet) else {
                out.push(arrival);
                continue;
            };
            let datagram = self.parts.entry(fragment.name).or_default();
            datagram.push(arrival);
            if let Some(packet) = whole(datagram) {
                out.push(Arrival { packet, to: datagram[0].to });
                datagram.clear();
            }
        }
        out
    }
}

/// What the headers of a fragment say.
struct Fragment {
    /// Of which datagram it is: addresses, protocol and identification.
    name: Vec<u8>,
    offset: usize,
    more: bool,
    /// Where its bytes begin.
    begin: usize,
}

impl Fragment {
    fn of(packet: &[u8]) -> Option<Fragment> {
        let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
        if packet.first()? >> 4 == 6 {
            if packet[6] != FRAGMENT {
                return None;
            }
            let place = word(V6_LEN + 2)?;
            let name = [&packet[8..V6_LEN], packet.get(V6_LEN + 4..V6_LEN + 8)?].concat();
            let (offset, more) = (usize::from(place & !7), place & 1 != 0);
            return Some(Fragment { name, offset, more, begin: V6_LEN + FRAGMENT_LEN });
        }
        let place = word(6)?;
        let (offset, more) = (usize::from(place & 0x1fff) * 8, place & 0x2000 != 0);
        (offset != 0 || more).then(|| Fragment {
            name: [&packet[12..V4_LEN], &packet[4..6], &packet[9..10]].concat(),
            offset,
            more,
            begin: V4_LEN,
        })
    }
}

/// The packet that these fragments make, when they are all of it. The receiver is the most gullible
/// one that there could be, so that nothing that should not have come goes unseen: it takes fragments
/// that overlap, the later one's bytes, and the last end that it hears.
fn whole(fragments: &[Arrival]) -> Option<Vec<u8>> {
    let mut bytes: Vec<Option<u8>> = Vec::new();
    let (mut first, mut end) = (None, None);
    for arrival in fragments {
        let fragment = Fragment::of(&arrival.packet)?;
        let part = arrival.packet.get(fragment.begin..)?;
        let past = fragment.offset + part.len();
        bytes.resize(bytes.len().max(past), None);
        bytes[fragment.offset..past].iter_mut().zip(part).for_each(|(to, byte)| *to = Some(*byte));
        if fragment.offset == 0 {
            first = Some(&arrival.packet);
        }
        if !fragment.more {
            end = Some(past);
        }
    }
    let payload: Vec<u8> = bytes.get(..end?)?.iter().copied().collect::<Option<_>>()?;
    let mut packet = first?.clone();
    if packet[0] >> 4 == 6 {
        packet[6] = packet[V6_LEN];
        packet.truncate(V6_LEN);
        packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    } else {
        packet.truncate(V4_LEN);
        packet[2..4].copy_from_slice(&((V4_LEN + payload.len()) as u16).to_be_bytes());
        packet[6..8].fill(0);
        sum_header(&mut packet);
    }
    packet.extend(payload);
    Some(packet)
}
