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

/// Entries in the RX and in the TX ring, each a power of two from 64 to 32768. The other two rings
/// follow from them, so large that ours never refuse a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Frames received that wait for us.
    pub rx: u32,
    /// Frames to transmit that wait for the kernel.
    pub tx: u32,
}

impl Rings {
    /// Both of the same size.
    pub fn of(size: u32) -> Rings {
        Rings { rx: size, tx: size }
    }

    /// Entries in the fill ring: all chunks that a port ever gives the kernel to receive into, which
    /// is what the RX ring holds and as much for the card's own ring.
    pub fn fill(self) -> u32 {
        2 * self.rx
    }

    /// Entries in the completion ring: the kernel takes a frame from the TX ring only if there is a
    /// place here for its return, also while the card still has as many frames as the TX ring holds.
    pub fn completion(self) -> u32 {
        2 * self.tx
    }

    /// Chunks that the kernel is to have for receiving. In copy mode as many as the RX ring has
    /// places, so that the ring cannot overflow; in zero-copy mode the card's own ring holds as many
    /// again.
    pub(crate) fn to_receive(self, mode: Bind) -> u32 {
        match mode {
            Bind::Copy => self.rx,
            Bind::ZeroCopy => self.fill(),
        }
    }

    /// Chunks that a pool should have for a port in this mode, besides those that its user holds.
    pub fn chunks(self, mode: Bind) -> u32 {
        self.to_receive(mode) + self.completion()
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
    /// How large its rings are.
    pub rings: Rings,
    /// While packets come, look for more in the card itself rather than wait for its interrupts
    /// (`SO_PREFER_BUSY_POLL`), if the kernel lets us.
    pub busy_poll: bool,
}

impl XskOptions {
    /// Rings of 2048 entries: enough for a burst of a few milliseconds at a million packets a second.
    /// No busy polling.
    pub fn new(interface: impl Into<String>, queue: u32, mode: Bind) -> XskOptions {
        let rings = Rings::of(2048);
        XskOptions { interface: interface.into(), queue, mode, rings, busy_poll: false }
    }
}
