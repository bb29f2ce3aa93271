//! Checksums: the Internet checksum in full ([`Sum`], RFC 1071) and as an update ([`Delta`], RFC
//! 1624), sums that a sender left to hardware ([`Partial`]), and SCTP's CRC32c.
//!
//! Knows sums. Must not know why a header changes: [`nat`](crate::nat) and the others do.
//!
//! A frame that comes from a local veth or a VM may carry only the pseudo-header sum in its TCP or
//! UDP checksum field: its sender left the rest to hardware that does not exist. We pass that
//! partiality on:
//!
//! ```text
//!   received     field = pseudo-header sum        partial() says so
//!   translated   field = new pseudo-header sum    nat, with that Partial
//!   tunnelled    the same field, further behind   Partial::moved
//!   sent         by a port that tells the kernel (TX metadata), or after complete()
//! ```

mod crc32c;
mod delta;
mod partial;
mod sum;

pub(crate) use crc32c::fill_sctp;
pub use crc32c::{complete_sctp, sctp};
pub use delta::Delta;
pub(crate) use partial::completed;
pub use partial::{Partial, complete, partial};
pub use sum::{Sum, pseudo_header};

#[cfg(test)]
mod tests;
