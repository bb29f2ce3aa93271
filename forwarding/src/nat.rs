//! Network address translation (masquerading): one address and port are replaced, checksums follow.

use std::net::IpAddr;

use crate::Headers;
use crate::checksum::Partial;

/// Replaces destination address and port (request, client to server). `address` must be of the
/// packet's family. Later fragments have only their address replaced. When `partial` says that the
/// transport checksum is still to be completed, the new pseudo-header sum is written, otherwise
/// the checksum is updated incrementally (a UDP checksum of 0 is computed in full, as the kernel
/// does; of a fragment it stays 0). `headers` is updated to match.
pub fn rewrite_destination(
    frame: &mut [u8],
    headers: &mut Headers,
    address: IpAddr,
    port: u16,
    partial: Option<Partial>,
) {
    let _ = (frame, headers, address, port, partial);
    unimplemented!()
}

/// Replaces source address and port (reply, server to client); otherwise as
/// [`rewrite_destination`].
pub fn rewrite_source(
    frame: &mut [u8],
    headers: &mut Headers,
    address: IpAddr,
    port: u16,
    partial: Option<Partial>,
) {
    let _ = (frame, headers, address, port, partial);
    unimplemented!()
}
