//! The packets as they would leave, as a pcap file with Ethernet headers.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, PcapError, TsResolution};

use super::file::LONGEST;

/// See the module.
pub struct Output {
    writer: Option<PcapWriter<BufWriter<File>>>,
    /// What kept it from going on.
    failed: Option<io::Error>,
}

impl Output {
    /// Makes the file, over any that is there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path) -> io::Result<Output> {
        let header = PcapHeader {
            snaplen: LONGEST as u32,
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        let file = BufWriter::with_capacity(1 << 18, File::create(path)?);
        let writer = PcapWriter::with_header(file, header).map_err(into_io)?;
        Ok(Output { writer: Some(writer), failed: None })
    }

    /// Appends a frame, of whose end `missing` bytes were never captured. After an error it does nothing.
    pub fn write(&mut self, time: Duration, frame: &[u8], missing: usize) {
        let Some(writer) = &mut self.writer else { return };
        let captured = &frame[..frame.len().saturating_sub(missing)];
        // The format has 32 bits for seconds.
        let time = time.min(Duration::from_secs(u32::MAX.into()));
        let packet = PcapPacket::new(time, frame.len() as u32, captured);
        if let Err(error) = writer.write_packet(&packet) {
            self.failed = Some(into_io(error));
            self.writer = None;
        }
    }

    /// Everything is in the file.
    ///
    /// # Errors
    /// When something is not.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        match self.writer.take() {
            Some(writer) => writer.into_writer().flush(),
            None => Ok(()),
        }
    }
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
