//! One control connection through NAT: what its packets announce, and what becomes of them.

use std::net::IpAddr;

use super::rewrite::is_whole_segment;
use super::{
    NotRewritten, Place, SequenceAdjustment, adjust_acknowledgement, adjust_sequence, read, rewrite,
};
use crate::checksum::Partial;
use crate::wire::tcp;
use crate::{Family, Headers, Packet};

/// What a director has to remember of a control connection, besides the connection.
///
/// Every packet of the connection must come through here once it is established: packets from the
/// client before they are translated or after, those from the server likewise (neither sequence
/// numbers nor announcements depend on it).
#[derive(Clone, Debug, Default)]
pub struct Control {
    replies: SequenceAdjustment,
    /// The client has sent PASV or EPSV and the reply has not come.
    passive: bool,
}

/// A data connection that has been announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The server will connect from the port before its control port (20) to this end of the
    /// client. It need not be the client's own address: a director that will not be used for
    /// attacks on others compares them (RFC 2577 section 3).
    Active {
        /// The announced address and port.
        client: (IpAddr, u16),
    },
    /// The client will connect, from a port not known yet, to the same port of the virtual address
    /// as the server listens at.
    Passive {
        /// The announced address and port.
        server: (IpAddr, u16),
    },
}

/// What becomes of a packet from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on. When it announces a data connection, that is to be expected from now on; an
    /// announcement that is repeated comes again.
    Forward(Option<Expected>),
    /// Something is missing before it that may have to be altered: it is dropped, and the server
    /// repeats it.
    Early,
    /// It repeats a part of an altered line: it is dropped.
    Torn,
    /// It has an announcement that could not be rewritten: it is dropped.
    Refused(NotRewritten),
}

impl Control {
    /// A request for a passive data connection is not waited for any more: the next reply passes as it
    /// is, unless it repeats one that was rewritten. For a connection that is not established, or no
    /// longer.
    pub fn withdraw(&mut self) {
        self.passive = false;
    }

    /// A packet from the client. Its acknowledgement numbers become the server's; its data stay as
    /// they are, because a server behind NAT sees the client's own address.
    pub fn from_client(
        &mut self,
        frame: &mut [u8],
        headers: &Headers,
        partial: Option<Partial>,
    ) -> Option<Expected> {
        adjust_acknowledgement(frame, headers, &self.replies, partial);
        if headers.tcp_flags & tcp::ACK != 0
            && let Some(header) = tcp::Header::at(frame, headers.l4)
        {
            self.replies.acknowledged(header.acknowledgement());
        }
        let data = frame.get(data(frame, headers)?..headers.end)?;
        if read::is_passive(data, headers.family) {
            self.passive = true;
            return None;
        }
        let announcement = read::active(data)?;
        let address = announcement.address.filter(|address| is_of(*address, headers.family))?;
        self.passive = false;
        Some(Expected::Active { client: (address, announcement.port) })
    }

    /// A packet from the server at `server`. An announcement that the client has asked for is
    /// rewritten to `virtual_address`, and sequence numbers become the client's.
    pub fn from_server(
        &mut self,
        packet: &mut Packet<'_>,
        headers: &mut Headers,
        server: IpAddr,
        virtual_address: IpAddr,
        partial: Option<Partial>,
    ) -> Outcome {
        let Some((sequence, len, start)) = extent(packet.bytes(), headers) else {
            // A fragment: its beginning has the number, its end is not here.
            adjust_sequence(packet.bytes_mut(), headers, &self.replies, partial);
            return Outcome::Forward(None);
        };
        let place = self.replies.place(sequence, len);
        let (offset, repeated) = match place {
            Place::Next { offset } if self.passive => (Some(offset), false),
            Place::Altered { offset } => (Some(offset), true),
            Place::Ahead if self.passive => return Outcome::Early,
            Place::Torn => return Outcome::Torn,
            Place::Next { .. } | Place::Old | Place::Ahead => (None, false),
        };
        let announcement = offset.and_then(|offset| {
            let text = packet.bytes().get(start + offset..headers.end)?;
            let announcement = read::reply(text)?.moved(offset);
            let address = announcement.address.unwrap_or(server);
            is_of(address, headers.family).then_some((announcement, address))
        });
        let mut expected = None;
        if let Some((announcement, address)) = announcement {
            let port = announcement.port;
            let written = rewrite(packet, headers, &announcement, virtual_address, port, partial);
            let change = match written {
                Ok(change) => change,
                Err(error) => return Outcome::Refused(error),
            };
            let line = announcement.line;
            let position = sequence.wrapping_add(line.start as u32);
            // Lines have at most 512 bytes.
            let (old_len, new_len) = (line.len() as u16, line.len().saturating_add_signed(change));
            if !self.replies.alter(position, old_len, new_len as u16) {
                return Outcome::Torn;
            }
            self.passive &= repeated;
            expected = Some(Expected::Passive { server: (address, port) });
        } else if repeated {
            // What was an announcement is none any more.
            return Outcome::Torn;
        }
        self.replies.passed(sequence, len);
        adjust_sequence(packet.bytes_mut(), headers, &self.replies, partial);
        Outcome::Forward(expected)
    }
}

/// Sequence number, length (SYN and FIN count as a byte) and beginning of the data of a whole
/// segment.
fn extent(frame: &[u8], headers: &Headers) -> Option<(u32, usize, usize)> {
    let start = data(frame, headers)?;
    let sequence = tcp::Header::at(frame, headers.l4)?.sequence();
    let ends = (headers.tcp_flags & (tcp::SYN | tcp::FIN)).count_ones() as usize;
    Some((sequence, headers.end - start + ends, start))
}

/// Where the data of a whole TCP segment begin: at most at `headers.end`, which lies in the frame.
pub(super) fn data(frame: &[u8], headers: &Headers) -> Option<usize> {
    if !is_whole_segment(headers) || headers.end > frame.len() {
        return None;
    }
    let header_len = tcp::Header::at(frame, headers.l4)?.header_len();
    let start = headers.l4 + header_len;
    (header_len >= tcp::LEN && start <= headers.end).then_some(start)
}

fn is_of(address: IpAddr, family: Family) -> bool {
    address.is_ipv4() == (family == Family::V4)
}
