//! AF_XDP sockets: packets between a queue of a network card and our own memory, past the kernel's
//! network stack.
//!
//! Knows rings, UMEM and one queue of one interface. Must not know which packets are steered here:
//! an XDP program does that, whose XSKMAP the loader fills with [`XskPort`]'s descriptor.
//!
//! Who owns a chunk of the pool, and how it changes hands:
//!
//! ```text
//!                         allocate                       release
//!    +-----------+  <------------------  Pool  <-------------------------------+
//!    |   fill    |                        ^ |                                  |
//!    +-----------+                release | | allocate                         |
//!          | the kernel takes an          | v                          +--------------+
//!          v empty chunk             the worker                        |  completion  |
//!    [ a packet is received ]         |      ^                         +--------------+
//!          |                          |      |                                ^ the kernel is
//!          v               transmit() |      | receive()                      | done with it
//!    +-----------+                    v      |                         [ a packet is sent ]
//!    |    rx     |  ------------------|------+                                ^
//!    +-----------+              +-----------+                                 |
//!                               |    tx     |  -------------------------------+
//!                               +-----------+
//! ```
//!
//! All ports of a worker share one pool, which is one UMEM: a frame received on one goes out on
//! another by moving its descriptor, not its bytes.

mod ledger;
mod metadata;
mod open;
mod port;
mod ring;
mod socket;
mod umem;

use std::fmt;

pub use port::{XskPort, XskStatistics};
pub(crate) use umem::Sharers;

/// How the kernel moves packets between the card and our memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// The card writes into our memory. The driver must offer it.
    ZeroCopy,
    /// The kernel copies. Works on every interface.
    Copy,
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bind::ZeroCopy => "zero-copy",
            Bind::Copy => "copy",
        })
    }
}

/// What [`XskPort::open`] needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XskOptions {
    /// The interface's name, in the network namespace of the calling thread.
    pub interface: String,
    /// Which of its queues, from 0.
    pub queue: u32,
    /// Zero-copy or copy. There is no falling back from one to the other here.
    pub mode: Bind,
    /// Entries in the RX, TX and completion rings; a power of two from 64 to 32768. The fill ring
    /// has twice as many. Give the pool at least twice this many chunks for every port.
    pub ring_size: u32,
    /// While packets come, look for more in the card itself rather than wait for its interrupts
    /// (`SO_PREFER_BUSY_POLL`), if the kernel lets us.
    pub busy_poll: bool,
}

impl XskOptions {
    /// Rings of 2048 entries: enough for a burst of a few milliseconds at a million packets a second.
    /// No busy polling.
    pub fn new(interface: impl Into<String>, queue: u32, mode: Bind) -> XskOptions {
        XskOptions { interface: interface.into(), queue, mode, ring_size: 2048, busy_poll: false }
    }
}
