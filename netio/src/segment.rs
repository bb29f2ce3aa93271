//! Cuts a super-frame into the segments that its sender left to the network card to make (TSO).
//!
//! On veth and virtio the kernel hands over TCP frames of up to 64 KiB with the size of the
//! segments beside them. Here they become ordinary frames, as tcp_gso_segment() of the kernel
//! would cut them: headers are copied; length, identification, sequence number and flags are made
//! to fit; the TCP or UDP checksum stays partial, its pseudo-header sum adjusted to the new
//! length. Pure: bytes in, bytes out.

use crate::PartialChecksum;
use crate::checksum::{fold, sum};

/// Where things are in headers, in bytes.
mod field {
    pub(super) const IPV4_TOTAL_LENGTH: usize = 2;
    pub(super) const IPV4_ID: usize = 4;
    pub(super) const IPV4_CHECKSUM: usize = 10;
    pub(super) const IPV6_PAYLOAD_LENGTH: usize = 4;
    pub(super) const IPV6_HEADER: usize = 40;
    pub(super) const TCP_SEQUENCE: usize = 4;
    pub(super) const TCP_DATA_OFFSET: usize = 12;
    pub(super) const TCP_FLAGS: usize = 13;
    pub(super) const TCP_CHECKSUM: u16 = 16;
    pub(super) const UDP_LENGTH: usize = 4;
    pub(super) const UDP_CHECKSUM: u16 = 6;
    pub(super) const UDP_HEADER: usize = 8;
}

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// What a super-frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A piece of a stream.
    Tcp,
    /// Several datagrams of equal size (`UDP_SEGMENT`), of which the last may be shorter.
    Udp,
}

/// A super-frame about to be cut, and how far.
#[derive(Debug)]
pub(crate) struct Segmenter {
    transport: Transport,
    ip: usize,
    is_v6: bool,
    l4: usize,
    /// Bytes of all headers together.
    headers: usize,
    /// Bytes of payload in each segment but the last.
    size: usize,
    /// Bytes of payload already cut off.
    done: usize,
    /// Segments already cut.
    count: u16,
    total: usize,
}

/// A segment that has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Bytes, from the start of the buffer.
    pub(crate) len: usize,
    /// Its checksum, which is still to be completed.
    pub(crate) partial: PartialChecksum,
}

impl Segmenter {
    /// Looks at `frame`, whose TCP or UDP header is at `l4`, to be cut into pieces of `size` bytes
    /// of payload. `None` when the frame is not what it is said to be.
    pub(crate) fn new(
        frame: &[u8],
        transport: Transport,
        l4: usize,
        size: usize,
    ) -> Option<Segmenter> {
        let ip = ip_header(frame)?;
        let is_v6 = frame.get(ip)? >> 4 == 6;
        let least = if is_v6 { field::IPV6_HEADER } else { ipv4_header(frame, ip)? };
        let header = match transport {
            Transport::Tcp => usize::from(frame.get(l4 + field::TCP_DATA_OFFSET)? >> 4) * 4,
            Transport::Udp => field::UDP_HEADER,
        };
        let shortest = if transport == Transport::Tcp { 20 } else { field::UDP_HEADER };
        let headers = l4.checked_add(header)?;
        let sound = l4 >= ip + least && header >= shortest && headers <= frame.len() && size > 0;
        sound.then(|| Segmenter {
            transport,
            ip,
            is_v6,
            l4,
            headers,
            size,
            done: 0,
            count: 0,
            total: frame.len() - headers,
        })
    }

    /// Bytes of the largest segment there will be.
    pub(crate) fn largest(&self) -> usize {
        self.headers + self.size.min(self.total)
    }

    /// Writes the next segment of `frame` (the one that `new` was shown) to the start of `out`.
    /// `None` when there is none left, or `out` is too small for it.
    pub(crate) fn next(&mut self, frame: &[u8], out: &mut [u8]) -> Option<Segment> {
        // A frame of headers alone is one segment.
        if self.done >= self.total && self.count > 0 {
            return None;
        }
        let payload = (self.total - self.done).min(self.size);
        let len = self.headers + payload;
        let out = out.get_mut(..len)?;
        let from = self.headers + self.done;
        out[..self.headers].copy_from_slice(frame.get(..self.headers)?);
        out[self.headers..].copy_from_slice(frame.get(from..from + payload)?);
        self.fix_network_header(out);
        let offset = self.fix_transport_header(out, payload);
        self.done += payload;
        self.count = self.count.wrapping_add(1);
        Some(Segment { len, partial: PartialChecksum { start: self.l4 as u16, offset } })
    }

    fn fix_network_header(&self, out: &mut [u8]) {
        let len = out.len() - self.ip;
        if self.is_v6 {
            let payload = len - field::IPV6_HEADER;
            put(out, self.ip + field::IPV6_PAYLOAD_LENGTH, payload as u16);
            return;
        }
        put(out, self.ip + field::IPV4_TOTAL_LENGTH, len as u16);
        let id = get(out, self.ip + field::IPV4_ID).wrapping_add(self.count);
        put(out, self.ip + field::IPV4_ID, id);
        put(out, self.ip + field::IPV4_CHECKSUM, 0);
        let header = usize::from(out[self.ip] & 0x0f) * 4;
        let checksum = !sum(&out[self.ip..self.ip + header]);
        put(out, self.ip + field::IPV4_CHECKSUM, checksum);
    }

    /// Says where the checksum is, from the transport header.
    fn fix_transport_header(&self, out: &mut [u8], payload: usize) -> u16 {
        let is_first = self.count == 0;
        let is_last = self.done + payload >= self.total;
        let offset = match self.transport {
            Transport::Tcp => {
                let at = self.l4 + field::TCP_SEQUENCE;
                let sequence = u32::from_be_bytes([out[at], out[at + 1], out[at + 2], out[at + 3]]);
                let sequence = sequence.wrapping_add(self.done as u32);
                out[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
                let flags = &mut out[self.l4 + field::TCP_FLAGS];
                if !is_last {
                    *flags &= !(FIN | PSH);
                }
                if !is_first {
                    *flags &= !CWR;
                }
                field::TCP_CHECKSUM
            }
            Transport::Udp => {
                put(out, self.l4 + field::UDP_LENGTH, (field::UDP_HEADER + payload) as u16);
                field::UDP_CHECKSUM
            }
        };
        // The pseudo-header has the length of header and payload: take the old one out (by adding
        // its complement, RFC 1624) and the new one in. Up to 65535 + 8 it may have been.
        let old = (self.headers - self.l4 + self.total) as u64;
        let new = (self.headers - self.l4 + payload) as u64;
        let at = self.l4 + usize::from(offset);
        let pseudo = u64::from(get(out, at)) + u64::from(!fold(old)) + new;
        put(out, at, fold(pseudo));
        offset
    }
}

/// Where the IP header is: after the Ethernet header and any VLAN tags.
fn ip_header(frame: &[u8]) -> Option<usize> {
    let mut at = 12;
    loop {
        let ethertype = frame.get(at..at + 2)?;
        at += 2;
        match ethertype {
            [0x81, 0x00] | [0x88, 0xa8] => at += 2,
            [0x08, 0x00] | [0x86, 0xdd] => return Some(at),
            _ => return None,
        }
    }
}

/// Bytes of the IPv4 header at `ip`.
fn ipv4_header(frame: &[u8], ip: usize) -> Option<usize> {
    let first = *frame.get(ip)?;
    let len = usize::from(first & 0x0f) * 4;
    (first >> 4 == 4 && len >= 20).then_some(len)
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
