//! A packet cut in two, as a sender or a router on the way would.

use forwarding::checksum::Sum;

use super::frames::ETHERNET;

/// Bytes of an IPv6 fragment header.
const FRAGMENT_HEADER: usize = 8;

/// Both fragments of a frame without IP options, the first one the larger by less than 16 bytes.
/// `id` is the identification.
pub(super) fn in_two(frame: &[u8], id: u16) -> Vec<Vec<u8>> {
    let v6 = frame[ETHERNET] >> 4 == 6;
    let (headers, payload) = frame.split_at(ETHERNET + if v6 { 40 } else { 20 });
    let cut = (payload.len() / 2).next_multiple_of(8);
    [(0, &payload[..cut]), (cut as u16, &payload[cut..])]
        .map(|(offset, part)| {
            let mut fragment = headers.to_vec();
            let more = u16::from(offset == 0);
            if v6 {
                let protocol = std::mem::replace(&mut fragment[ETHERNET + 6], 44);
                let length = (FRAGMENT_HEADER + part.len()) as u16;
                fragment[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&length.to_be_bytes());
                fragment.extend([protocol, 0]);
                fragment.extend((offset | more).to_be_bytes());
                fragment.extend(u32::from(id).to_be_bytes());
            } else {
                let ip = &mut fragment[ETHERNET..];
                ip[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
                ip[6..8].copy_from_slice(&((more << 13) | (offset / 8)).to_be_bytes());
                ip[10..12].fill(0);
                let sum = Sum::default().bytes(ip).checksum();
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            fragment.extend(part);
            fragment
        })
        .to_vec()
}
