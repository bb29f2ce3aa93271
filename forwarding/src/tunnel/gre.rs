//! GRE: the header of RFC 2784 (`ipvs_gre_encap`).

use super::sum_completed;
use crate::checksum::Partial;
use crate::wire::{ethernet, gre};
use crate::{Family, Headers};

/// Bytes of the header.
#[inline]
pub(super) fn len(checksum: bool) -> usize {
    gre::LEN + if checksum { gre::CHECKSUM_LEN } else { 0 }
}

/// Writes the header behind the outer IP header. `None` when the frame is shorter than `outside`
/// says.
pub(super) fn write(
    frame: &mut [u8],
    outside: &Headers,
    inner: Family,
    checksum: bool,
    partial: Option<Partial>,
) -> Option<()> {
    let mut header = gre::Header::at_mut(frame, outside.l4)?;
    header.set_flags(if checksum { gre::CHECKSUM } else { 0 });
    header.set_protocol(match inner {
        Family::V4 => ethernet::IPV4,
        Family::V6 => ethernet::IPV6,
    });
    if checksum {
        gre::Checksum::at_mut(frame, outside.l4 + gre::LEN)?.set(0);
        let sum = sum_completed(frame, outside.l4, outside.end, partial)?;
        gre::Checksum::at_mut(frame, outside.l4 + gre::LEN)?.set(sum.checksum());
    }
    Some(())
}
