//! The header that goes before each packet when `PACKET_VNET_HDR` is set: `struct virtio_net_hdr`
//! of linux/virtio_net.h, in the machine's byte order.

use crate::PartialChecksum;
use crate::segment::Transport;

/// Bytes of the header.
pub(super) const LEN: usize = 10;

mod field {
    use std::ops::Range;

    pub(super) const FLAGS: usize = 0;
    pub(super) const GSO_TYPE: usize = 1;
    pub(super) const GSO_SIZE: Range<usize> = 4..6;
    pub(super) const CHECKSUM_START: Range<usize> = 6..8;
    pub(super) const CHECKSUM_OFFSET: Range<usize> = 8..10;
}

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;

const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// A flag upon the type: the sender understands ECN.
const GSO_ECN: u8 = 0x80;

/// Whether a packet is more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// An ordinary packet.
    No,
    /// A super-frame, to be cut into segments of so many bytes of payload.
    Into(Transport, usize),
    /// A super-frame of a kind that we do not know how to cut.
    Unknown,
}

/// Reads where the checksum is, if partial, and whether to cut.
pub(super) fn parse(header: &[u8; LEN]) -> (Option<PartialChecksum>, Cut) {
    let word =
        |at: std::ops::Range<usize>| u16::from_ne_bytes([header[at.start], header[at.start + 1]]);
    let partial = (header[field::FLAGS] & NEEDS_CHECKSUM != 0).then(|| PartialChecksum {
        start: word(field::CHECKSUM_START),
        offset: word(field::CHECKSUM_OFFSET),
    });
    let size = usize::from(word(field::GSO_SIZE));
    let cut = match header[field::GSO_TYPE] & !GSO_ECN {
        GSO_NONE => Cut::No,
        GSO_TCPV4 | GSO_TCPV6 => Cut::Into(Transport::Tcp, size),
        GSO_UDP_L4 => Cut::Into(Transport::Udp, size),
        _ => Cut::Unknown,
    };
    (partial, cut)
}

/// The header for an ordinary packet.
pub(super) fn build(partial: Option<PartialChecksum>) -> [u8; LEN] {
    let mut header = [0; LEN];
    if let Some(partial) = partial {
        header[field::FLAGS] = NEEDS_CHECKSUM;
        header[field::CHECKSUM_START].copy_from_slice(&partial.start.to_ne_bytes());
        header[field::CHECKSUM_OFFSET].copy_from_slice(&partial.offset.to_ne_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read_again() {
        for partial in [None, Some(PartialChecksum { start: 34, offset: 16 })] {
            assert_eq!(parse(&build(partial)), (partial, Cut::No));
        }
    }

    #[test]
    fn super_frames_are_told_by_kind() {
        let of = |kind: u8| {
            let mut header = build(None);
            header[field::GSO_TYPE] = kind;
            header[field::GSO_SIZE].copy_from_slice(&1448_u16.to_ne_bytes());
            parse(&header).1
        };
        assert_eq!(of(1), Cut::Into(Transport::Tcp, 1448));
        assert_eq!(of(4 | 0x80), Cut::Into(Transport::Tcp, 1448));
        assert_eq!(of(5), Cut::Into(Transport::Udp, 1448));
        assert_eq!(of(3), Cut::Unknown, "UDP fragmentation offload");
    }
}
