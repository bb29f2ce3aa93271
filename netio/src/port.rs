//! A port: where packets come from and go to.

use std::io;
use std::iter::Sum;
use std::os::fd::BorrowedFd;

use crate::{Frame, Pool, XskStatistics};

/// What a port has counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames received.
    pub received: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames handed to the kernel (or the file, or the peer).
    pub transmitted: u64,
    /// Bytes of those.
    pub transmitted_bytes: u64,
    /// Frames the kernel could not give us: our ring or buffer was full.
    pub receive_dropped: u64,
    /// Frames that we could not give to the kernel: its ring stayed full or it refused them.
    pub transmit_dropped: u64,
    /// Times the kernel had to be woken to transmit.
    pub wakeups: u64,
    /// What the kernel has counted for the socket, apart; AF_XDP only.
    pub kernel: Option<XskStatistics>,
}

/// Chunks of a pool that are with a port, by what for. What is neither there, nor in the pool, nor in
/// anybody's hand, is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Empty, to receive into, or received and not handed out yet: fill and RX ring.
    pub receiving: usize,
    /// Being sent, or sent and not taken back yet: TX and completion ring.
    pub transmitting: usize,
}

impl Held {
    /// All of them.
    pub fn total(self) -> usize {
        self.receiving + self.transmitting
    }
}

impl Sum for Held {
    fn sum<I: Iterator<Item = Held>>(ports: I) -> Held {
        ports.fold(Held::default(), |sum, held| Held {
            receiving: sum.receiving + held.receiving,
            transmitting: sum.transmitting + held.transmitting,
        })
    }
}

/// A packet source and sink: one queue of one interface, a file, or memory.
///
/// A worker calls `receive`, handles the batch, then `transmit` and `flush` once per breath. All
/// frames of all ports of a worker live in that worker's [`Pool`].
pub trait Port: Send {
    /// For log lines: interface, queue and how ("eth0 queue 0, AF_XDP zero-copy").
    fn describe(&self) -> String;

    /// Appends up to `limit` received frames to `batch` and says how many. Never blocks.
    ///
    /// # Errors
    /// When the port is gone for good (interface removed); a passing shortage is not an error.
    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize>;

    /// Takes every frame of `frames`. What the kernel does not take is given back to the pool and
    /// counted in `transmit_dropped`.
    ///
    /// # Errors
    /// As for `receive`; `frames` is empty also then.
    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()>;

    /// Wakes the kernel if it has to be woken, and takes back chunks whose frames have been sent.
    ///
    /// # Errors
    /// As for `receive`.
    fn flush(&mut self, pool: &mut Pool) -> io::Result<()>;

    /// Whether a frame's [`PartialChecksum`](crate::PartialChecksum) may be left to this port on
    /// transmit. If not, the caller completes the sum before `transmit`.
    fn completes_checksums(&self) -> bool;

    /// What to poll for readability, if the port has such a thing.
    fn readiness(&self) -> Option<BorrowedFd<'_>>;

    /// The counters so far.
    fn counters(&self) -> PortCounters;

    /// Chunks of the pool that this port holds at the moment.
    fn held(&self) -> Held;

    /// Whether there is so much going on that the worker had better look again at once than sleep
    /// until [`readiness`](Port::readiness) says that there is a packet.
    fn is_lively(&self) -> bool {
        false
    }
}

/// A boxed port, for whoever decides at run time which kind it is (and for wrappers around such).
impl<P: Port + ?Sized> Port for Box<P> {
    fn describe(&self) -> String {
        (**self).describe()
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize> {
        (**self).receive(pool, batch, limit)
    }

    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()> {
        (**self).transmit(pool, frames)
    }

    fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        (**self).flush(pool)
    }

    fn completes_checksums(&self) -> bool {
        (**self).completes_checksums()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        (**self).readiness()
    }

    fn counters(&self) -> PortCounters {
        (**self).counters()
    }

    fn held(&self) -> Held {
        (**self).held()
    }

    fn is_lively(&self) -> bool {
        (**self).is_lively()
    }
}
