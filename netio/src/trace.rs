//! A port that writes down what passes, in both directions, as a capture file.
//!
//! For tests and for an operator who wants to see what the director sees: an AF_XDP socket takes
//! packets before tcpdump could. Frames are written as they are, partial checksums included.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::capture::Capture;
use crate::{CaptureError, Frame, Held, Pool, Port, PortCounters};

/// Wraps a port and writes what it receives and what it is given to transmit into a pcap file.
///
/// Writing is buffered, and blocks when the disk does: not for a port under full load.
#[derive(Debug)]
pub struct Trace<P> {
    inner: P,
    capture: Option<Capture>,
}

impl<P: Port> Trace<P> {
    /// Wraps `inner` and makes the file at `path`, over any that is there.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn new(inner: P, path: &Path) -> Result<Trace<P>, CaptureError> {
        Ok(Trace { inner, capture: Some(Capture::create(path)?) })
    }

    /// The port within.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Ends the trace and gives the port back; what was traced is in the file then.
    pub fn into_inner(self) -> P {
        self.inner
    }

    /// A disk that is full ends the trace, never the traffic.
    fn write(&mut self, pool: &Pool, frames: &[Frame]) {
        let Some(capture) = &mut self.capture else {
            return;
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or(Duration::ZERO);
        for frame in frames {
            if let Err(error) = capture.write(now, pool.bytes(frame)) {
                tracing::warn!(port = self.inner.describe(), %error, "the trace ends here");
                self.capture = None;
                return;
            }
        }
    }
}

impl<P: Port> Port for Trace<P> {
    fn describe(&self) -> String {
        format!("{}, traced", self.inner.describe())
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize> {
        let before = batch.len();
        let outcome = self.inner.receive(pool, batch, limit);
        if batch.len() > before {
            self.write(pool, &batch[before..]);
        }
        outcome
    }

    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()> {
        if !frames.is_empty() {
            self.write(pool, frames);
        }
        self.inner.transmit(pool, frames)
    }

    fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        self.inner.flush(pool)
    }

    fn completes_checksums(&self) -> bool {
        self.inner.completes_checksums()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.inner.readiness()
    }

    fn counters(&self) -> PortCounters {
        self.inner.counters()
    }

    fn held(&self) -> Held {
        self.inner.held()
    }

    fn is_lively(&self) -> bool {
        self.inner.is_lively()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryPort, PcapPort};

    #[test]
    fn both_directions_are_in_the_file_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut pool = Pool::new(4, 2048).unwrap();
        let (port, wire) = MemoryPort::new("test", 4);
        let mut port = Trace::new(port, &path).unwrap();
        let mut batch = Vec::new();
        assert!(wire.inject(&[1; 60], None));
        assert_eq!(port.receive(&mut pool, &mut batch, 64).unwrap(), 1);
        pool.bytes_mut(&mut batch[0]).fill(2);
        port.transmit(&mut pool, &mut batch).unwrap();
        assert_eq!(wire.collect().unwrap().bytes, [2; 60]);
        drop(port);

        let mut file = PcapPort::open(Some(&path), None).unwrap();
        assert_eq!(file.receive(&mut pool, &mut batch, 64).unwrap(), 2);
        assert_eq!(pool.bytes(&batch[0]), [1; 60]);
        assert_eq!(pool.bytes(&batch[1]), [2; 60]);
        assert!(file.time() > Duration::from_secs(1_600_000_000), "wall-clock time");
        batch.drain(..).for_each(|frame| pool.release(frame));
    }
}
