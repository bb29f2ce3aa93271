//! Capture files, packet by packet: pcap and pcapng, whoever wrote them, of any size.
//!
//! Knows the two formats. Must not know what is in a packet beyond what its link type says. One packet
//! is in memory at a time, and nothing that a file says makes that more than [`LONGEST`].
//!
//! Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::link::Link;

/// Bytes of a packet at most: what tcpdump takes for no limit.
pub const LONGEST: usize = 262_144;

/// Bytes of a block that has no packet, of those that are read and not skipped.
const LONGEST_DESCRIPTION: usize = 65_536;

/// Interfaces of a section at most.
const INTERFACES: usize = 65_536;

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

/// What a pcapng file says of an interface.
#[derive(Clone, Copy, Debug)]
struct Interface {
    /// Its number, if it is none that we know.
    link: Result<Link, u32>,
    /// 0 = no limit.
    snaplen: u32,
    resolution: Resolution,
    /// Seconds to be added.
    offset: u64,
}

/// What a unit of a pcapng time is: 10^-n seconds, or 2^-n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    Decimal(u32),
    Binary(u32),
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

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

fn next_block<'a>(
    input: &mut Box<dyn Read>,
    order: &mut Order,
    interfaces: &mut Vec<Interface>,
    packet: &'a mut Vec<u8>,
) -> Result<Option<Captured<'a>>, Problem> {
    loop {
        let mut kind = [0; 4];
        if !begin(input, &mut kind)? {
            return Ok(None);
        }
        if order.word(&kind, 0) == SECTION {
            *order = section(input)?;
            interfaces.clear();
            continue;
        }
        let mut length = [0; 4];
        fill(input, &mut length)?;
        let total = order.word(&length, 0) as usize;
        let Some(body) = total.checked_sub(12).filter(|body| body % 4 == 0) else {
            return Err(Problem::Damaged("a block has a length that cannot be"));
        };
        let kind = order.word(&kind, 0);
        let (most, head) = match kind {
            INTERFACE => (LONGEST_DESCRIPTION, 8),
            ENHANCED_PACKET | OLD_PACKET => (LONGEST + LONGEST_DESCRIPTION, 20),
            SIMPLE_PACKET => (LONGEST + LONGEST_DESCRIPTION, 4),
            _ => {
                skip(input, body + 4)?;
                continue;
            }
        };
        if !(head..=most).contains(&body) {
            return Err(Problem::Damaged("a block has a length that cannot be"));
        }
        packet.resize(body, 0);
        fill(input, packet)?;
        let mut again = [0; 4];
        fill(input, &mut again)?;
        if again != length {
            return Err(Problem::Damaged("a block does not end where it says"));
        }
        if kind == INTERFACE {
            if interfaces.len() >= INTERFACES {
                return Err(Problem::Damaged("it has more interfaces than there can be"));
            }
            interfaces.push(Interface::read(*order, packet));
            continue;
        }
        let bytes: &'a [u8] = packet;
        return packet_of(kind, *order, interfaces, bytes).map(Some);
    }
}

/// The packet in the body of a block.
fn packet_of<'a>(
    kind: u32,
    order: Order,
    interfaces: &[Interface],
    body: &'a [u8],
) -> Result<Captured<'a>, Problem> {
    let word = |at| order.word(body, at);
    let number = match kind {
        ENHANCED_PACKET => word(0) as usize,
        OLD_PACKET => usize::from(order.half(body, 0)),
        _ => 0,
    };
    let of = interfaces.get(number).copied();
    let of = of.ok_or(Problem::Damaged("a packet is of an interface that is not described"))?;
    let link = of.link.map_err(Problem::UnknownLink)?;
    let (time, captured, length, data) = match kind {
        SIMPLE_PACKET => {
            let length = word(0) as usize;
            let limit = if of.snaplen == 0 { length } else { length.min(of.snaplen as usize) };
            // It has no time.
            (Duration::ZERO, limit.min(body.len() - 4), length, &body[4..])
        }
        _ => {
            let units = u64::from(word(4)) << 32 | u64::from(word(8));
            (of.time(units), word(12) as usize, word(16) as usize, &body[20..])
        }
    };
    let bytes = data.get(..captured);
    let bytes = bytes.ok_or(Problem::Damaged("a packet is longer than its block"))?;
    Ok(Captured { time, link, length: length.max(captured), bytes })
}

/// Reads the rest of a section header, of which the type has been read.
fn section(input: &mut Box<dyn Read>) -> Result<Order, Problem> {
    let mut head = [0; 8];
    fill(input, &mut head)?;
    let order = match head[4..] {
        [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
        [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
        _ => return Err(Problem::Damaged("a section has no byte order")),
    };
    match (order.word(&head, 0) as usize).checked_sub(12) {
        Some(rest) if rest >= 16 && rest % 4 == 0 => skip(input, rest)?,
        _ => return Err(Problem::Damaged("a section header has a length that cannot be")),
    }
    Ok(order)
}

impl Interface {
    fn read(order: Order, body: &[u8]) -> Interface {
        let number = u32::from(order.half(body, 0));
        let mut interface = Interface {
            link: Link::of(number).ok_or(number),
            snaplen: order.word(body, 4),
            resolution: Resolution::Decimal(6),
            offset: 0,
        };
        let mut options = &body[8..];
        while let Some((head, rest)) = options.split_first_chunk::<4>() {
            let (code, length) = (order.half(head, 0), usize::from(order.half(head, 2)));
            let Some(value) = rest.get(..length).filter(|_| code != 0) else { break };
            match (code, value) {
                (9, [power]) if power & 0x80 == 0 => {
                    interface.resolution = Resolution::Decimal(u32::from(*power));
                }
                (9, [power]) => interface.resolution = Resolution::Binary(u32::from(power & 0x7f)),
                (14, [_, _, _, _, _, _, _, _]) => {
                    let (one, two) = (order.word(value, 0), order.word(value, 4));
                    let (low, high) = if order == Order::Little { (one, two) } else { (two, one) };
                    interface.offset = u64::from(high) << 32 | u64::from(low);
                }
                _ => {}
            }
            options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        interface
    }

    fn time(&self, units: u64) -> Duration {
        let units = u128::from(units);
        let nanoseconds = match self.resolution {
            Resolution::Decimal(power @ 0..=9) => units * 10_u128.pow(9 - power),
            Resolution::Decimal(power) => {
                units.checked_div(10_u128.pow((power - 9).min(38))).unwrap_or(0)
            }
            Resolution::Binary(power @ 0..=64) => (units * 1_000_000_000) >> power,
            Resolution::Binary(_) => 0,
        };
        let seconds = u64::try_from(nanoseconds / 1_000_000_000).unwrap_or(u64::MAX);
        // An offset may be negative: then it wraps.
        let seconds = seconds.wrapping_add(self.offset);
        Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32)
    }
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
