//! Announcements in the text of a control connection.
//!
//! As in the kernel (`ip_vs_ftp.c`) they count at the beginning of a segment, in any case. More
//! strictly than there, a line counts only when it is there to its end, CRLF or LF: a line cut in
//! two is never rewritten in half, and a number above its range is no number.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::Family;

/// The longest line that is looked at, in bytes. RFC 959 names no limit; announcements have about
/// 50.
const MAX_LINE: usize = 512;

/// How an announcement is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `h1,h2,h3,h4,p1,p2`: PORT and 227. IPv4 only.
    HostPort,
    /// `|family|address|port|`: EPRT, and 229 of servers that give more than they may. The
    /// delimiter is any printable character (RFC 2428 section 2).
    Extended(u8),
    /// `|||port|`: 229, with its delimiter.
    PortOnly(u8),
}

/// An address and port announced in the data of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// How it is written.
    pub form: Form,
    /// Address; `None` of [`Form::PortOnly`], which means the address of the control connection.
    pub address: Option<IpAddr>,
    /// Port, not 0.
    pub port: u16,
    /// Where the form stands in the data: from the first digit or delimiter to behind the last.
    pub text: Range<usize>,
    /// Where the line that has it stands, its end (CRLF or LF) included.
    pub line: Range<usize>,
}

impl Announcement {
    /// The same announcement, of data that begins `by` bytes earlier.
    #[must_use]
    pub fn moved(self, by: usize) -> Announcement {
        Announcement {
            text: self.text.start + by..self.text.end + by,
            line: self.line.start + by..self.line.end + by,
            ..self
        }
    }
}

/// The `PORT` or `EPRT` command at the beginning of a segment from the client.
///
/// ```
/// let active = forwarding::helpers::ftp::read::active(b"PORT 192,0,2,7,4,1\r\n").unwrap();
/// assert_eq!(active.address, Some([192, 0, 2, 7].into()));
/// assert_eq!(active.port, 1025);
/// ```
pub fn active(payload: &[u8]) -> Option<Announcement> {
    let line = first_line(payload)?;
    let (verb, rest) = line.split_at_checked(4)?;
    let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
    if blanks == 0 {
        return None;
    }
    let start = 4 + blanks;
    let found = if verb.eq_ignore_ascii_case(b"PORT") {
        host_port(line, start)
    } else if verb.eq_ignore_ascii_case(b"EPRT") {
        extended(line, start).filter(|found| found.address.is_some())
    } else {
        None
    }?;
    // Nothing but the end of the line may follow.
    line[found.text.end..].trim_ascii().is_empty().then_some(found)
}

/// Whether a segment from the client has a `PASV` or `EPSV` command: the server's next 227 or 229
/// announces a port. `EPSV ALL` announces none, nor does a request for the other family's: PASV and
/// `EPSV 1` are IPv4's, `EPSV 2` is IPv6's.
///
/// ```
/// use forwarding::Family;
/// use forwarding::helpers::ftp::read::is_passive;
///
/// assert!(is_passive(b"TYPE I\r\nEPSV\r\n", Family::V6));
/// assert!(!is_passive(b"EPSV 2\r\n", Family::V4));
/// ```
pub fn is_passive(payload: &[u8], family: Family) -> bool {
    let own = if family == Family::V4 { b"1" } else { b"2" };
    payload.split_inclusive(|byte| *byte == b'\n').any(|line| {
        let Some((verb, rest)) = line.split_at_checked(4) else {
            return false;
        };
        let argument = rest.trim_ascii();
        let is_command = rest.first().is_some_and(u8::is_ascii_whitespace) && line.ends_with(b"\n");
        is_command
            && (family == Family::V4 && verb.eq_ignore_ascii_case(b"PASV") && argument.is_empty()
                || verb.eq_ignore_ascii_case(b"EPSV") && (argument.is_empty() || argument == own))
    })
}

/// The `227` or `229` reply at the beginning of a segment from the server. The parenthesis of a 227
/// may be missing, as RFC 1123 section 4.1.2.6 warns.
///
/// ```
/// use forwarding::helpers::ftp::read::reply;
///
/// let line = b"229 Entering Extended Passive Mode (|||50000|)\r\n";
/// let passive = reply(line).unwrap();
/// assert_eq!((passive.address, passive.port), (None, 50000));
/// assert_eq!(&line[passive.text], b"|||50000|");
/// ```
pub fn reply(payload: &[u8]) -> Option<Announcement> {
    let line = first_line(payload)?;
    let (code, rest) = line.split_at_checked(4)?;
    let is_host_port = match code {
        b"227 " => true,
        b"229 " => false,
        _ => return None,
    };
    let opens = |byte: &u8| *byte == b'(' || is_host_port && byte.is_ascii_digit();
    let opening = 4 + rest.iter().position(opens)?;
    let start = opening + line[opening..].iter().take_while(|byte| **byte == b'(').count();
    if is_host_port { host_port(line, start) } else { extended(line, start) }
}

/// The first line with its end, when that is there.
fn first_line(payload: &[u8]) -> Option<&[u8]> {
    let reach = &payload[..payload.len().min(MAX_LINE)];
    let end = reach.iter().position(|byte| *byte == b'\n')?;
    Some(&reach[..=end])
}

/// Six numbers of 8 bits with commas between, at `start` of `line`.
fn host_port(line: &[u8], start: usize) -> Option<Announcement> {
    let mut numbers = [0; 6];
    let mut at = start;
    for (place, number) in numbers.iter_mut().enumerate() {
        if place > 0 {
            at = expect(line, at, b',')?;
        }
        let (value, end) = decimal(line, at)?;
        *number = u8::try_from(value).ok()?;
        at = end;
    }
    let [a, b, c, d, high, low] = numbers;
    let port = u16::from_be_bytes([high, low]);
    (port != 0).then_some(Announcement {
        form: Form::HostPort,
        address: Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d))),
        port,
        text: start..at,
        line: 0..line.len(),
    })
}

/// `|family|address|port|` or `|||port|`, at `start` of `line`.
fn extended(line: &[u8], start: usize) -> Option<Announcement> {
    let delimiter = *line.get(start)?;
    // A delimiter that may stand in an address or number could not be told from it.
    if !delimiter.is_ascii_graphic() || delimiter.is_ascii_alphanumeric() {
        return None;
    }
    let (family, at) = field(line, start + 1, delimiter)?;
    let (address, at) = field(line, at, delimiter)?;
    let address = match (family, address) {
        (b"", b"") => None,
        (b"1", text) => Some(IpAddr::V4(parse_address::<Ipv4Addr>(text)?)),
        (b"2", text) => Some(IpAddr::V6(parse_address::<Ipv6Addr>(text)?)),
        _ => return None,
    };
    let (port, at) = decimal(line, at)?;
    let end = expect(line, at, delimiter)?;
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    let form = match address {
        Some(_) => Form::Extended(delimiter),
        None => Form::PortOnly(delimiter),
    };
    Some(Announcement { form, address, port, text: start..end, line: 0..line.len() })
}

fn parse_address<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// What stands before the next `delimiter`, and the place behind that.
fn field(line: &[u8], at: usize, delimiter: u8) -> Option<(&[u8], usize)> {
    let rest = line.get(at..)?;
    let len = rest.iter().position(|byte| *byte == delimiter)?;
    Some((&rest[..len], at + len + 1))
}

/// The place behind `byte`, when it stands at `at`.
fn expect(line: &[u8], at: usize, byte: u8) -> Option<usize> {
    (line.get(at) == Some(&byte)).then_some(at + 1)
}

/// One to five decimal digits at `at`: the number, and the place behind it.
fn decimal(line: &[u8], at: usize) -> Option<(u32, usize)> {
    let digits = line.get(at..)?;
    let len = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=5).contains(&len) {
        return None;
    }
    let value = digits[..len].iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    Some((value, at + len))
}
