//! ICMP and ICMPv6: errors that we send, and errors about packets that we forwarded.
//!
//! Knows messages and quotes. Must not know connections: the director looks up the quoted packet
//! and says what to translate it to.
//!
//! ```text
//!   +----------+----+------+--------------------------------+
//!   | Ethernet | IP | ICMP | quote:  IP | TCP, UDP, SCTP .. |     an error about what we forwarded:
//!   +----------+----+------+--------------------------------+     quoted(), then translate()
//!   +----------+----+------+-------------------------------------+
//!   | Ethernet | IP | ICMP | quote:  IP | quote: IP | TCP, UDP ..|  about our tunnel's packet:
//!   +----------+----+------+-------------------------------------+  quoted(), then tunnelled()
//! ```

mod error;
mod quoted;
mod translate;

pub use error::{Error, error, number};
pub use quoted::{has_right_sum, is_garbled, quoted, tunnelled};
pub use translate::{Translation, translate};
