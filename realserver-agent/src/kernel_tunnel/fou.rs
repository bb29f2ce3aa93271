//! The kernel's UDP ports for GUE (`fou`): what comes to one is unpacked as far as the packet inside,
//! and then goes on as if that had come by itself. So a port needs an `ipip`, `sit` or `ip6tnl` device
//! beside it, which unpacks nothing but that outer header.
//!
//! Asked over generic netlink, as `ip fou` does: linux/genetlink.h, linux/fou.h. The kernel's side
//! understands every checksum of GUE (nocsum, csum, remcsum) without being told which comes.
//!
//! For devices the kernel loads its modules by itself; for `fou` somebody has to tell it to.
//!
//! Knows ports. Must not know devices.

use std::fmt;
use std::io::{self, ErrorKind};
use std::str::FromStr;
use std::time::Duration;

use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};
use nix::libc::{AF_INET, AF_INET6, ENOENT};

use crate::program;

/// `struct nlmsghdr`, then `struct genlmsghdr`.
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
const NLMSG_ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_ACK`.
const REQUEST: u16 = 0x0005;
/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID` and `_NAME`.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `FOU_CMD_*`, `FOU_ATTR_*`, `FOU_ENCAP_GUE`.
const ADD: u8 = 1;
const REMOVE: u8 = 2;
const ATTRIBUTE_PORT: u16 = 1;
const ATTRIBUTE_FAMILY: u16 = 2;
const ATTRIBUTE_TYPE: u16 = 4;
const GUE: u8 = 2;
/// Of `fou`, and enough for the controller.
const VERSION: u8 = 1;

/// Where the kernel says which program loads its modules.
const LOADER: &str = "/proc/sys/kernel/modprobe";
/// How long that may take.
const LOAD_LIMIT: Duration = Duration::from_secs(10);

/// A port for GUE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) number: u16,
    pub(super) is_v4: bool,
}

/// `6080/v4`.
impl fmt::Display for Port {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.number, if self.is_v4 { "v4" } else { "v6" })
    }
}

impl FromStr for Port {
    type Err = ();

    fn from_str(text: &str) -> Result<Port, ()> {
        let (number, family) = text.split_once('/').ok_or(())?;
        let is_v4 = match family {
            "v4" => true,
            "v6" => false,
            _ => return Err(()),
        };
        Ok(Port { number: number.parse().map_err(|_| ())?, is_v4 })
    }
}

/// The kernel's `fou`, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct Fou {
    socket: Socket,
    family: u16,
}

impl Fou {
    /// `None` when the kernel has no `fou`, also not as a module. A module stays loaded.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub(super) async fn load() -> io::Result<Option<Fou>> {
        if let Some(fou) = Fou::open()? {
            return Ok(Some(fou));
        }
        let loader = std::fs::read_to_string(LOADER).unwrap_or_default();
        let command = [loader.trim().to_owned(), "-q".to_owned(), "fou".to_owned()];
        if let Err(error) = program::run(&command, &[], LOAD_LIMIT).await {
            tracing::debug!("no module fou: {error}");
        }
        Fou::open()
    }

    /// `None` when the kernel has no `fou` at the moment.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub(super) fn open() -> io::Result<Option<Fou>> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let mut attributes = Vec::new();
        attribute(&mut attributes, FAMILY_NAME, b"fou\0");
        let mut family = None;
        let asked = exchange(&socket, &message(CONTROLLER, GET_FAMILY, &attributes), |found| {
            family = family.or(family_id(found));
        });
        match (asked, family) {
            (Ok(()), Some(family)) => Ok(Some(Fou { socket, family })),
            (Ok(()), None) => Err(cut()),
            (Err(error), _) if error.raw_os_error() == Some(ENOENT) => Ok(None),
            (Err(error), _) => Err(error),
        }
    }

    /// Opens a port. Blocks for as long as the kernel takes.
    ///
    /// # Errors
    /// When it is taken, by another program or by another port of this kind; when the kernel does
    /// not have the family; without `CAP_NET_ADMIN`.
    pub(super) fn add(&self, port: Port) -> io::Result<()> {
        self.tell(ADD, port)
    }

    /// Closes a port.
    ///
    /// # Errors
    /// When there is no such port, or without `CAP_NET_ADMIN`.
    pub(super) fn remove(&self, port: Port) -> io::Result<()> {
        self.tell(REMOVE, port)
    }

    fn tell(&self, command: u8, port: Port) -> io::Result<()> {
        let family = if port.is_v4 { AF_INET } else { AF_INET6 };
        let mut attributes = Vec::new();
        attribute(&mut attributes, ATTRIBUTE_PORT, &port.number.to_be_bytes());
        attribute(&mut attributes, ATTRIBUTE_FAMILY, &[family as u8]);
        attribute(&mut attributes, ATTRIBUTE_TYPE, &[GUE]);
        exchange(&self.socket, &message(self.family, command, &attributes), |_| ())
    }
}

fn message(kind: u16, command: u8, attributes: &[u8]) -> Vec<u8> {
    let length = (HEADER + GENERIC_HEADER + attributes.len()) as u32;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    // Sequence number and sender: one question at a time, so nobody looks at them.
    message.extend([0; 8]);
    message.extend([command, VERSION, 0, 0]);
    message.extend(attributes);
    message
}

fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend((4 + value.len() as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Asks, and gives every answer's attributes to `note`, until the kernel says how it ended.
fn exchange(socket: &Socket, question: &[u8], mut note: impl FnMut(&[u8])) -> io::Result<()> {
    socket.send(question, 0)?;
    while !read(&socket.recv_from_full()?.0, &mut note)? {}
    Ok(())
}

/// Reads one datagram of the answer; whether it was the last.
fn read(mut rest: &[u8], note: &mut impl FnMut(&[u8])) -> io::Result<bool> {
    while let Some(header) = rest.get(..HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let body = rest.get(HEADER..length).ok_or_else(cut)?;
        if u16::from_ne_bytes([header[4], header[5]]) == NLMSG_ERROR {
            let code = body.first_chunk().ok_or_else(cut)?;
            return match i32::from_ne_bytes(*code) {
                0 => Ok(true),
                code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
            };
        }
        note(body.get(GENERIC_HEADER..).ok_or_else(cut)?);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The family's number, of the attributes that the controller gives.
fn family_id(mut attributes: &[u8]) -> Option<u16> {
    loop {
        let [length, kind] = [attributes.get(..2)?, attributes.get(2..4)?]
            .map(|it| u16::from_ne_bytes([it[0], it[1]]));
        let value = attributes.get(4..length.into())?;
        if kind == FAMILY_ID {
            return value.first_chunk().copied().map(u16::from_ne_bytes);
        }
        attributes = attributes.get(usize::from(length).next_multiple_of(4)..)?;
    }
}

fn cut() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a cut message of the kernel")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_as_it_is_written() {
        for (text, number, is_v4) in [("6080/v4", 6080, true), ("1/v6", 1, false)] {
            assert_eq!(text.parse(), Ok(Port { number, is_v4 }));
            assert_eq!(Port { number, is_v4 }.to_string(), text);
        }
        for text in ["6080", "6080/", "65536/v4", "/v4", "6080/v5"] {
            assert_eq!(text.parse::<Port>(), Err(()), "{text}");
        }
    }

    /// What a 6.1 kernel answers, shortened: the name comes before the number.
    #[test]
    fn the_familys_number_is_found_behind_other_attributes_and_a_cut_answer_is_an_error() {
        let mut attributes = Vec::new();
        attribute(&mut attributes, FAMILY_NAME, b"fou\0");
        attribute(&mut attributes, FAMILY_ID, &27u16.to_ne_bytes());
        let answer = message(CONTROLLER, 1, &attributes);
        let mut found = None;
        assert!(!read(&answer, &mut |it| found = family_id(it)).unwrap());
        assert_eq!(found, Some(27));
        for end in HEADER..answer.len() {
            assert!(read(&answer[..end], &mut |_| panic!("it is cut")).is_err(), "{end}");
        }
        for end in 0..attributes.len() - 2 {
            assert_eq!(family_id(&attributes[..end]), None, "{end}");
        }
        // An attribute that says that it is shorter than its own header.
        assert_eq!(family_id(&[0; 8]), None);
        for length in 0..(HEADER + GENERIC_HEADER) as u32 {
            let mut answer = answer.clone();
            answer[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(read(&answer, &mut |_| panic!("it is cut")).is_err(), "{length}");
        }
    }

    #[test]
    fn a_refusal_is_the_error_that_the_kernel_gives() {
        let mut refusal = message(NLMSG_ERROR, 0, &[0; 16]);
        refusal[HEADER..HEADER + 4].copy_from_slice(&(-ENOENT).to_ne_bytes());
        let error = read(&refusal, &mut |_| panic!("no answer")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(ENOENT));
        refusal[HEADER..HEADER + 4].fill(0);
        assert!(read(&refusal, &mut |_| panic!("no answer")).unwrap());
    }
}
