//! Packets from a capture file and into one: replay without a network.
//!
//! Knows the classic pcap format with Ethernet frames. Time in the file is told to the caller
//! ([`PcapPort::time`]) and never waited for: whoever replays decides what it means.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;

use crate::capture::{Capture, CaptureError, into_io};
use crate::memory::place;
use crate::{Frame, Held, Pool, Port, PortCounters, complete_checksum};

/// A port that receives what is in one capture file and transmits into another.
#[derive(Debug)]
pub struct PcapPort {
    name: String,
    reader: Option<PcapReader<File>>,
    writer: Option<Capture>,
    time: Duration,
    counters: PortCounters,
}

impl PcapPort {
    /// Opens `read` to receive from and makes `write` to transmit into (over any file that is
    /// there). Without the one nothing is received, without the other what is transmitted is gone.
    ///
    /// # Errors
    /// See [`CaptureError`].
    pub fn open(read: Option<&Path>, write: Option<&Path>) -> Result<PcapPort, CaptureError> {
        let shown =
            |path: Option<&Path>| path.map_or("nothing".into(), |path| path.display().to_string());
        Ok(PcapPort {
            name: format!("from {} to {}, pcap", shown(read), shown(write)),
            reader: read.map(open_reader).transpose()?,
            writer: write.map(Capture::create).transpose()?,
            time: Duration::ZERO,
            counters: PortCounters::default(),
        })
    }

    /// When the packet received last was captured, since the epoch: of the *last* one, so who needs
    /// the time of each receives one at a time. Transmitted packets are written with it too.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Whether all packets have been received.
    pub fn is_finished(&self) -> bool {
        self.reader.is_none()
    }
}

fn open_reader(path: &Path) -> Result<PcapReader<File>, CaptureError> {
    let path = path.to_owned();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(source) => return Err(CaptureError::File { path, source }),
    };
    let reader = match PcapReader::new(file) {
        Ok(reader) => reader,
        Err(error) => {
            return Err(CaptureError::Format { path, reason: error.to_string() });
        }
    };
    match reader.header().datalink {
        DataLink::ETHERNET => Ok(reader),
        link => Err(CaptureError::NotEthernet { path, link }),
    }
}

impl Port for PcapPort {
    fn describe(&self) -> String {
        self.name.clone()
    }

    /// Also an error when the file is damaged; then [`PcapPort::is_finished`].
    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize> {
        let mut received = 0;
        while received < limit {
            let Some(reader) = &mut self.reader else {
                break;
            };
            let Some(mut frame) = pool.allocate() else {
                break;
            };
            match reader.next_packet() {
                Some(Ok(packet)) if place(pool, &mut frame, &packet.data) => {
                    self.time = packet.timestamp;
                    self.counters.received += 1;
                    self.counters.received_bytes += packet.data.len() as u64;
                    batch.push(frame);
                    received += 1;
                }
                Some(Ok(_)) => {
                    self.counters.receive_dropped += 1;
                    pool.release(frame);
                }
                Some(Err(error)) => {
                    pool.release(frame);
                    self.reader = None;
                    return Err(into_io(error));
                }
                None => {
                    pool.release(frame);
                    self.reader = None;
                }
            }
        }
        Ok(received)
    }

    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()> {
        let mut outcome = Ok(());
        for mut frame in frames.drain(..) {
            // Nobody comes after us to complete it.
            if let Some(partial) = frame.partial {
                complete_checksum(pool.bytes_mut(&mut frame), partial);
            }
            let bytes = pool.bytes(&frame);
            let written = match &mut self.writer {
                Some(writer) if outcome.is_ok() => writer.write(self.time, bytes),
                _ => Ok(()),
            };
            match written {
                Ok(()) if outcome.is_ok() => {
                    self.counters.transmitted += 1;
                    self.counters.transmitted_bytes += frame.len() as u64;
                }
                written => {
                    self.counters.transmit_dropped += 1;
                    outcome = outcome.and(written);
                }
            }
            pool.release(frame);
        }
        outcome
    }

    /// What has been transmitted is in the file when the port is dropped.
    fn flush(&mut self, _pool: &mut Pool) -> io::Result<()> {
        Ok(())
    }

    /// Left to this port, it is completed in software: a capture should not show a wrong sum.
    fn completes_checksums(&self) -> bool {
        true
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> PortCounters {
        self.counters
    }

    fn held(&self) -> Held {
        Held::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartialChecksum;

    fn receive_one(port: &mut PcapPort, pool: &mut Pool) -> Option<Vec<u8>> {
        let mut batch = Vec::new();
        port.receive(pool, &mut batch, 1).unwrap();
        let frame = batch.pop()?;
        let bytes = pool.bytes(&frame).to_vec();
        pool.release(frame);
        Some(bytes)
    }

    #[test]
    fn what_was_transmitted_can_be_received_with_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let times = [Duration::new(1_700_000_000, 123_456_789), Duration::new(1_700_000_001, 5)];
        let mut capture = Capture::create(&first).unwrap();
        capture.write(times[0], &[1; 60]).unwrap();
        capture.write(times[1], &[2; 1500]).unwrap();
        drop(capture);

        let mut pool = Pool::new(4, 2048).unwrap();
        let mut port = PcapPort::open(Some(&first), Some(&second)).unwrap();
        let mut batch = Vec::new();
        assert_eq!(port.receive(&mut pool, &mut batch, 1).unwrap(), 1);
        assert_eq!(port.time(), times[0]);
        port.transmit(&mut pool, &mut batch).unwrap();
        assert_eq!(port.receive(&mut pool, &mut batch, 64).unwrap(), 1);
        assert!(port.is_finished());
        port.transmit(&mut pool, &mut batch).unwrap();
        assert_eq!(pool.available(), pool.capacity());
        drop(port);

        let mut again = PcapPort::open(Some(&second), None).unwrap();
        assert_eq!(receive_one(&mut again, &mut pool).unwrap(), [1; 60]);
        assert_eq!(again.time(), times[0]);
        assert_eq!(receive_one(&mut again, &mut pool).unwrap(), [2; 1500]);
        assert_eq!(again.time(), times[1]);
        assert_eq!(receive_one(&mut again, &mut pool), None);
    }

    #[test]
    fn a_partial_checksum_is_complete_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut pool = Pool::new(1, 2048).unwrap();
        let mut port = PcapPort::open(None, Some(&path)).unwrap();
        let mut frame = pool.allocate().unwrap();
        assert!(place(&mut pool, &mut frame, &[0x12; 40]));
        let partial = PartialChecksum { start: 14, offset: 6 };
        frame.partial = Some(partial);
        port.transmit(&mut pool, &mut vec![frame]).unwrap();
        drop(port);
        let mut expected = [0x12; 40];
        assert!(complete_checksum(&mut expected, partial));
        let mut port = PcapPort::open(Some(&path), None).unwrap();
        assert_eq!(receive_one(&mut port, &mut pool).unwrap(), expected);
    }

    #[test]
    fn a_file_that_is_no_capture_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "this is not a capture file at all").unwrap();
        let refused = PcapPort::open(Some(&path), None).unwrap_err().to_string();
        assert!(refused.contains("editcap"), "{refused}");
        let missing = PcapPort::open(Some(&folder.path().join("none")), None).unwrap_err();
        assert!(matches!(missing, CaptureError::File { .. }));
    }

    #[test]
    fn a_capture_that_ends_in_the_middle_is_an_error_once_and_then_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut");
        let mut capture = Capture::create(&path).unwrap();
        capture.write(Duration::ZERO, &[1; 60]).unwrap();
        capture.write(Duration::ZERO, &[2; 60]).unwrap();
        drop(capture);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 10]).unwrap();
        let mut pool = Pool::new(4, 2048).unwrap();
        let mut port = PcapPort::open(Some(&path), None).unwrap();
        let mut batch = Vec::new();
        assert!(port.receive(&mut pool, &mut batch, 64).is_err());
        assert_eq!(batch.len(), 1, "what was whole is there");
        assert_eq!(port.receive(&mut pool, &mut batch, 64).unwrap(), 0);
        batch.drain(..).for_each(|frame| pool.release(frame));
        assert_eq!(pool.available(), pool.capacity());
    }
}
