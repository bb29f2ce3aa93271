//! FTP through NAT (RFC 959, RFC 2428): addresses and ports of data connections are announced as
//! text on the control connection, and what the server announces is not what its client may use.
//!
//! ```text
//! client ── PORT 192,0,2,7,4,1 ──> the server will connect from port 20 to the client: expect it
//! client ── PASV, EPSV ──────────> the next reply announces a port of the server:
//! client <── 227 (192,0,2,1,..) ── 227 (10,0,0,11,..) server    rewritten to the virtual address
//! client <── 229 (|||50000|) ───── 229 (|||50000|) ── server    has no address to rewrite
//! ```
//!
//! [`read`] finds announcements, [`rewrite`](fn@rewrite) puts another address into one,
//! [`SequenceAdjustment`] remembers what that did to the numbering of the connection, and
//! [`Control`] is the three together for the packets of one control connection.
//!
//! Knows text, packets and sequence numbers. Must not know connections: that a data connection is to
//! be expected goes out as a value.

pub mod read;

mod adjust;
mod control;
mod rewrite;
mod sequence;
#[cfg(test)]
mod tests;

pub use adjust::{adjust_acknowledgement, adjust_sequence};
pub use control::{Control, Expected, Outcome};
pub use read::{Announcement, Form};
pub use rewrite::{NotRewritten, rewrite};
pub use sequence::{Place, SequenceAdjustment};
