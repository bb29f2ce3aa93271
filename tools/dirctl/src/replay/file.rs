//! Capture files, packet by packet: pcap and pcapng, whoever wrote them, of any size.
//!
//! Knows the two formats. Must not know what is in a packet beyond what its link type says. One packet
//! is in memory at a time, and nothing that a file says makes that more than [`LONGEST`].
//!
//! Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

mod pcapng;

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::link::Link;
use pcapng::{Interface, next_block, section};

/// Bytes of a packet at most: what tcpdump takes for no limit.
pub const LONGEST: usize = 262_144;

/// Read at a time.
const BUFFER: usize = 1 << 20;

/// A packet as the file has it.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// Since 1970.
    pub time: Duration,
    /// What its bytes begin with.
    pub link: Link,
    /// Bytes that it had on the wire.
    pub length: usize,
    /// Those of them that were captured.
    pub bytes: &'a [u8],
}

/// Why a file, or the rest of it, cannot be read.
#[derive(Debug)]
pub enum Problem {
    /// The system says why.
    Unreadable(io::Error),
    /// It is neither pcap nor pcapng.
    NoCapture,
    /// Its packets begin with something that we do not know.
    UnknownLink(u32),
    /// It ends within a packet.
    CutShort,
    /// What is in it cannot be.
    Damaged(&'static str),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Unreadable(error) => write!(f, "{error}"),
            Problem::NoCapture => f.write_str("is neither a pcap nor a pcapng file"),
            Problem::UnknownLink(link) => write!(
                f,
                "holds packets of link type {link}: only Ethernet, raw IP and those of `tcpdump -i any` can be \
                 replayed"
            ),
            Problem::CutShort => f.write_str("is cut short: it ends within a packet"),
            Problem::Damaged(what) => write!(f, "is damaged: {what}"),
        }
    }
}

/// A file that is being read.
pub struct Capture {
    path: PathBuf,
    input: Box<dyn Read>,
    format: Format,
    packet: Vec<u8>,
}

/// Byte order of a file or a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

enum Format {
    Classic { order: Order, nanoseconds: bool, link: Link },
    Next { order: Order, interfaces: Vec<Interface> },
}

impl Capture {
    /// Opens the file at `path`; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be read, or is no capture.
    pub fn open(path: &Path) -> Result<Capture, Problem> {
        let input: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => {
                let file = File::open(path).map_err(Problem::Unreadable)?;
                if file.metadata().is_ok_and(|about| about.is_dir()) {
                    let error = io::Error::from(io::ErrorKind::IsADirectory);
                    return Err(Problem::Unreadable(error));
                }
                Box::new(file)
            }
        };
        Capture::of(path, Box::new(BufReader::with_capacity(BUFFER, input)))
    }

    /// Reads from `input`, which is called `path`.
    ///
    /// # Errors
    /// As [`open`](Capture::open).
    pub fn of(path: &Path, mut input: Box<dyn Read>) -> Result<Capture, Problem> {
        let mut magic = [0; 4];
        fill(&mut input, &mut magic).map_err(no_capture)?;
        let classic = |order, nanoseconds| Some((order, nanoseconds));
        let found = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => classic(Order::Little, false),
            [0xa1, 0xb2, 0xc3, 0xd4] => classic(Order::Big, false),
            [0x4d, 0x3c, 0xb2, 0xa1] => classic(Order::Little, true),
            [0xa1, 0xb2, 0x3c, 0x4d] => classic(Order::Big, true),
            [0x0a, 0x0d, 0x0d, 0x0a] => None,
            _ => return Err(Problem::NoCapture),
        };
        let format = match found {
            Some((order, nanoseconds)) => {
                let mut rest = [0; 20];
                fill(&mut input, &mut rest).map_err(no_capture)?;
                // The upper bits tell of a frame check sequence.
                let number = order.word(&rest, 16) & 0x0fff_ffff;
                let link = Link::of(number).ok_or(Problem::UnknownLink(number))?;
                Format::Classic { order, nanoseconds, link }
            }
            None => {
                let order = section(&mut input).map_err(no_capture)?;
                Format::Next { order, interfaces: Vec::new() }
            }
        };
        Ok(Capture { path: path.to_owned(), input, format, packet: Vec::new() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// When there is something else than a packet, or only a part of one.
    pub fn next_packet(&mut self) -> Result<Option<Captured<'_>>, Problem> {
        let Capture { input, format, packet, .. } = self;
        match format {
            Format::Classic { order, nanoseconds, link } => {
                next_classic(input, *order, *nanoseconds, *link, packet)
            }
            Format::Next { order, interfaces } => next_block(input, order, interfaces, packet),
        }
    }
}

fn next_classic<'a>(
    input: &mut Box<dyn Read>,
    order: Order,
    nanoseconds: bool,
    link: Link,
    packet: &'a mut Vec<u8>,
) -> Result<Option<Captured<'a>>, Problem> {
    let mut head = [0; 16];
    if !begin(input, &mut head)? {
        return Ok(None);
    }
    let word = |at| order.word(&head, at);
    let (captured, length) = (word(8) as usize, word(12) as usize);
    if captured > LONGEST {
        return Err(Problem::Damaged("a packet is longer than any can be"));
    }
    packet.resize(captured, 0);
    fill(input, packet)?;
    let fraction = if nanoseconds { word(4) } else { word(4).saturating_mul(1000) };
    let time = Duration::from_secs(word(0).into()) + Duration::from_nanos(fraction.into());
    Ok(Some(Captured { time, link, length: length.max(captured), bytes: packet }))
}

impl Order {
    fn word(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>).copied().unwrap_or_default();
        match self {
            Order::Little => u32::from_le_bytes(word),
            Order::Big => u32::from_be_bytes(word),
        }
    }

    fn half(self, bytes: &[u8], at: usize) -> u16 {
        let half = bytes.get(at..).and_then(<[u8]>::first_chunk::<2>).copied().unwrap_or_default();
        match self {
            Order::Little => u16::from_le_bytes(half),
            Order::Big => u16::from_be_bytes(half),
        }
    }
}

/// Reads all of `bytes`.
fn fill(input: &mut dyn Read, bytes: &mut [u8]) -> Result<(), Problem> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Problem::CutShort,
        _ => Problem::Unreadable(error),
    })
}

/// The same; false when there is not a single byte.
fn begin(input: &mut dyn Read, bytes: &mut [u8]) -> Result<bool, Problem> {
    let Some((first, rest)) = bytes.split_first_mut() else { return Ok(true) };
    match input.read_exact(std::slice::from_mut(first)) {
        Ok(()) => fill(input, rest).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(Problem::Unreadable(error)),
    }
}

fn skip(input: &mut dyn Read, count: usize) -> Result<(), Problem> {
    let skipped = io::copy(&mut input.take(count as u64), &mut io::sink());
    match skipped.map_err(Problem::Unreadable)? {
        all if all == count as u64 => Ok(()),
        _ => Err(Problem::CutShort),
    }
}

/// What is not even the head of a capture is none.
fn no_capture(problem: Problem) -> Problem {
    match problem {
        Problem::CutShort | Problem::Damaged(_) => Problem::NoCapture,
        other => other,
    }
}

#[cfg(test)]
mod tests;
