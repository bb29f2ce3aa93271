//! A port that leaves partial checksums to its caller, as AF_XDP without TX metadata does.

use std::io;
use std::os::fd::BorrowedFd;

use netio::{Frame, Held, MemoryPort, Pool, Port, PortCounters};

/// See the module.
pub(crate) struct Plain(pub(crate) MemoryPort);

impl Port for Plain {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize> {
        self.0.receive(pool, batch, limit)
    }

    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()> {
        self.0.transmit(pool, frames)
    }

    fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        self.0.flush(pool)
    }

    fn completes_checksums(&self) -> bool {
        false
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.0.readiness()
    }

    fn counters(&self) -> PortCounters {
        self.0.counters()
    }

    fn held(&self) -> Held {
        self.0.held()
    }
}
