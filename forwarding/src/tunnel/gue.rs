//! GUE: UDP and GUE header (`ipvs_gue_encap`).

use super::{GueChecksum, sum_completed};
use crate::checksum::Partial;
use crate::wire::{gue, protocol, udp};
use crate::{Family, Headers};

/// The ports that GUE's source port is one of, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourcePorts {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

impl Default for SourcePorts {
    /// The kernel's `net.ipv4.ip_local_port_range`.
    fn default() -> SourcePorts {
        SourcePorts { first: 32768, last: 60999 }
    }
}

impl SourcePorts {
    /// The port of the flow with this hash. All bits of the hash have a part in it.
    #[inline]
    pub(super) fn of(self, flow_hash: u32) -> u16 {
        let count = u64::from(self.last.saturating_sub(self.first)) + 1;
        // As the kernel's `udp_flow_src_port`: the upper bits of the product choose.
        let hash = flow_hash ^ (flow_hash << 16);
        self.first + ((u64::from(hash) * count) >> 32) as u16
    }
}

/// Bytes of UDP and GUE header.
#[inline]
pub(super) fn len(checksum: GueChecksum, partial: bool) -> usize {
    udp::LEN + gue::LEN + options_len(checksum, partial)
}

#[inline]
fn options_len(checksum: GueChecksum, partial: bool) -> usize {
    match (checksum, partial) {
        (GueChecksum::Remcsum, true) => gue::REMOTE_CHECKSUM_LEN,
        _ => 0,
    }
}

/// Writes both headers behind the outer IP header. Returns what of the inner checksum is left to
/// do for us. `None` when the frame is shorter than `outside` says.
pub(super) fn write(
    frame: &mut [u8],
    outside: &Headers,
    inner: Family,
    checksum: GueChecksum,
    partial: Option<Partial>,
) -> Option<Option<Partial>> {
    let options = options_len(checksum, partial.is_some());
    let mut header = gue::Header::at_mut(frame, outside.l4 + udp::LEN)?;
    header.clear();
    header.set_protocol(match inner {
        Family::V4 => protocol::IPIP,
        Family::V6 => protocol::IPV6,
    });
    let mut left = partial;
    if let (Some(remote), true) = (partial, options > 0) {
        header.set_options_len(options);
        header.set_flags(gue::PRIVATE);
        let at = outside.l4 + udp::LEN + gue::LEN;
        let start = remote.start.checked_sub(at + options)?;
        let mut option = gue::RemoteChecksum::at_mut(frame, at)?;
        option.set_private_flags(gue::REMOTE_CHECKSUM);
        option.set_start(u16::try_from(start).ok()?);
        option.set_field(u16::try_from(start + remote.offset).ok()?);
        left = None;
    }
    let mut header = udp::Header::at_mut(frame, outside.l4)?;
    header.set_source_port(outside.source_port);
    header.set_destination_port(outside.destination_port);
    header.set_length(u16::try_from(outside.payload_len()).ok()?);
    header.set_checksum(0);
    if checksum != GueChecksum::Nocsum {
        let sum = sum_completed(frame, outside.l4, outside.end, left)?;
        let sum = sum.word(u32::from(outside.pseudo_header().folded()));
        udp::Header::at_mut(frame, outside.l4)?.set_computed_checksum(sum.checksum());
    }
    Some(left)
}
