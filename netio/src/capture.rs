//! Capture files: how they are written, and what can be wrong with one.
//!
//! Knows the classic pcap format with Ethernet frames, and that times are since the epoch. Must not
//! know where packets come from or go to; that is for the ports that use it.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, PcapError, TsResolution};

/// Longer packets than this are not written whole: what tcpdump takes for no limit.
const SNAPLEN: u32 = 262_144;

/// Why a capture file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// It cannot be opened or made.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not a pcap file.
    #[error(
        "{} is not a pcap file ({reason}); a pcapng file is converted by `editcap -F pcap IN OUT`",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        reason: String,
    },
    /// It has packets without Ethernet headers.
    #[error(
        "{} holds {link:?} packets, not Ethernet frames: capture on an Ethernet interface, not on \"any\"",
        path.display()
    )]
    NotEthernet {
        /// The file.
        path: PathBuf,
        /// What it holds.
        link: DataLink,
    },
}

/// A capture file that is being written.
#[derive(Debug)]
pub(crate) struct Capture {
    writer: PcapWriter<BufWriter<File>>,
}

impl Capture {
    /// Makes the file, over any that is there.
    pub(crate) fn create(path: &Path) -> Result<Capture, CaptureError> {
        let file = File::create(path)
            .map_err(|source| CaptureError::File { path: path.to_owned(), source })?;
        let header = PcapHeader {
            snaplen: SNAPLEN,
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(BufWriter::new(file), header).map_err(|error| {
            CaptureError::Format { path: path.to_owned(), reason: error.to_string() }
        })?;
        Ok(Capture { writer })
    }

    /// Appends a packet. `time` is since the epoch.
    pub(crate) fn write(&mut self, time: Duration, bytes: &[u8]) -> io::Result<()> {
        let len = bytes.len() as u32;
        self.writer.write_packet(&PcapPacket::new(time, len, bytes)).map_err(into_io)?;
        Ok(())
    }
}

/// The error of a file in use, as ports tell it.
pub(crate) fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("capture file: {other}")),
    }
}
