//! Where the program keeps what it has read of a packet: places on the stack and registers.
//!
//! `r6` is the context all along. While headers are read, `r7` is the header, `r8` the end of the
//! frame and `r9` what follows the header; afterwards `r7` is the map of the slot, and in the end
//! `r9` the reason. `r0` to `r5` are scratch, and lost by every call.

use netio::bpf::Register::{self, R6, R7, R8, R9};

pub(super) const CONTEXT: Register = R6;
pub(super) const HEADER: Register = R7;
pub(super) const END: Register = R8;
pub(super) const NEXT: Register = R9;
/// Once the headers are read: the slot in its map.
pub(super) const SLOT: Register = R7;
/// Once the bucket is known: 1 if this host serves it.
pub(super) const SERVING: Register = R8;
/// Once the bucket is known: 1 if another host holds flows in it.
pub(super) const TAINTED: Register = R9;
/// In the end.
pub(super) const REASON: Register = R9;

/// The flow, a key of `pins` and `retired` ([`layout::flow`](crate::filter::layout::flow)).
pub(super) const FLOW: i16 = -40;
/// An address that is looked up: a key of `addresses`.
pub(super) const ADDRESS: i16 = -64;
/// The fragmented packet, a key of `fragments`.
pub(super) const FRAGMENT: i16 = -104;
/// IPv4 addresses and ports without gaps, as the kernel looks for sockets by them.
pub(super) const SOCKET: i16 = -120;
/// Words to be hashed.
pub(super) const WORDS: i16 = -160;
/// A value to be put into a map.
pub(super) const VALUE: i16 = -176;
/// A key of `ports`.
pub(super) const PORT: i16 = -184;
/// A key of four bytes.
pub(super) const INDEX: i16 = -188;
/// The number of the virtual address, 4 bytes.
pub(super) const VIP: i16 = -192;
/// Where the frame was sent to: a [`To`], one byte.
pub(super) const TO: i16 = -193;
/// What kind of packet: a [`Kind`], one byte.
pub(super) const KIND: i16 = -194;
/// 1 if this is the first fragment of several, one byte.
pub(super) const FIRST_FRAGMENT: i16 = -195;
/// 1 if the flow is that of a packet quoted in an ICMP error, one byte.
pub(super) const QUOTED: i16 = -196;
/// Not 0 if the client ends the flow with this packet: TCP's FIN and RST, one byte.
pub(super) const CLOSING: i16 = -197;
/// Flags and offset of an IPv4 header, in network order.
pub(super) const FRAGMENT_BITS: i16 = -200;

/// Whose MAC address a frame was sent to.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(super) enum To {
    /// A single host's, this or another.
    Host = 0,
    /// The cluster's.
    Cluster = 1,
    /// Broadcast or multicast.
    Group = 2,
}

/// What kind of packet is decided about.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(super) enum Kind {
    /// TCP, the beginning of a flow.
    Syn = 1,
    /// TCP, any other packet.
    Segment = 2,
    /// A UDP datagram.
    Datagram = 3,
    /// A GRE packet of a PPTP client.
    Tunnel = 4,
    /// An ICMP echo request.
    Echo = 5,
    /// A later fragment, which goes where the first one went.
    Fragment = 6,
}
