//! Frames made on the fly: ten million flows cannot be kept as frames, so one template per
//! direction is copied and the client's address, port and the checksums are filled in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::frames::tcp;

/// Frames in a round: enough to make the clock's own cost vanish, few enough to stay in the cache
/// and to be carried before the scheduler gives the core to somebody else.
pub(super) const ROUND: usize = 256;

/// Clients there are: their numbers have so many values.
pub(super) const CLIENTS: u32 = 1 << 24;

/// Ports that clients come from, and the first of them.
const PORTS: u32 = 50_000;
const FIRST_PORT: u16 = 1024;

/// The address and port of client `number` (taken modulo [`CLIENTS`]). Every client has an address
/// of its own: nothing is shared between two connections but the service and its servers.
pub(super) fn client(number: u32, v4: bool) -> SocketAddr {
    let number = number % CLIENTS;
    let address = match v4 {
        true => IpAddr::V4(Ipv4Addr::from_bits(0x1400_0000 | number)),
        false => {
            let network = u128::from(Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0));
            IpAddr::V6(Ipv6Addr::from_bits(network | u128::from(number)))
        }
    };
    SocketAddr::new(address, FIRST_PORT + (number % PORTS) as u16)
}

/// The number of the client whose address ends like this.
pub(super) fn number_of(address_end: [u8; 4]) -> u32 {
    u32::from_be_bytes(address_end) % CLIENTS
}

/// The end of the frame that the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// It sends.
    Client,
    /// It receives: the frame is a server's.
    Server,
}

/// Where the fields are, from the beginning of the frame.
const IPV4_SUM: usize = 14 + 10;
const TCP_SUM: usize = 16;

/// A frame with client 0 at one end.
#[derive(Clone, Debug)]
pub(super) struct Template {
    frame: Vec<u8>,
    /// Last four bytes of the client's address.
    address: usize,
    port: usize,
    /// The header's sum without the client's number, with IPv4.
    ip_sum: Option<u32>,
    /// The place of TCP's checksum, and its sum without the client's number and port.
    tcp_sum: (usize, u32),
}

impl Template {
    /// A TCP segment with `flags` between a client and `other`.
    pub(super) fn new(other: SocketAddr, side: Side, flags: u8) -> Template {
        let v4 = other.is_ipv4();
        let zero = client(0, v4);
        let frame = match side {
            Side::Client => tcp(zero, other, flags),
            Side::Server => tcp(other, zero, flags),
        };
        let (l4, source, size) = if v4 { (34, 26, 4) } else { (54, 22, 16) };
        let (address, port) = match side {
            Side::Client => (source + size - 4, l4),
            Side::Server => (source + 2 * size - 4, l4 + 2),
        };
        let sum = |at: usize| u32::from(!u16::from_be_bytes([frame[at], frame[at + 1]]));
        Template {
            address,
            port,
            ip_sum: v4.then(|| sum(IPV4_SUM)),
            tcp_sum: (l4 + TCP_SUM, sum(l4 + TCP_SUM)),
            frame,
        }
    }

    /// Writes the frame of client `number` over `out`, which must be as long as the frame.
    pub(super) fn write(&self, number: u32, out: &mut [u8]) {
        let number = number % CLIENTS;
        out.copy_from_slice(&self.frame);
        // The low 24 bits of client 0's address are zero, so the number's words are simply added.
        let words = (number >> 16) + (number & 0xffff);
        let [_, a, b, c] = number.to_be_bytes();
        out[self.address + 1..self.address + 4].copy_from_slice(&[a, b, c]);
        let port = number % PORTS;
        put(out, self.port, FIRST_PORT + port as u16);
        if let Some(sum) = self.ip_sum {
            put(out, IPV4_SUM, !fold(sum + words));
        }
        let (place, sum) = self.tcp_sum;
        put(out, place, !fold(sum + words + port));
    }
}

fn put(out: &mut [u8], at: usize, word: u16) {
    out[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Frames of one length, side by side; the memory is used again.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    len: usize,
}

impl Frames {
    /// Replaces the contents: for each of `clients`, the frame of the template that it names.
    pub(super) fn fill<'a>(&mut self, clients: impl Iterator<Item = (&'a Template, u32)>) {
        self.bytes.clear();
        for (template, number) in clients {
            self.len = template.frame.len();
            let start = self.bytes.len();
            self.bytes.resize(start + self.len, 0);
            template.write(number, &mut self.bytes[start..]);
        }
    }

    /// How many.
    pub(super) fn count(&self) -> usize {
        self.bytes.len() / self.len.max(1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.len.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_in_frame_is_the_one_that_would_have_been_built() {
        for other in ["192.0.2.10:80", "[2001:db8:1::10]:80", "[fd77::101]:80"] {
            let other: SocketAddr = other.parse().unwrap();
            for side in [Side::Client, Side::Server] {
                let template = Template::new(other, side, 0x10);
                for number in (0..40).map(|step| step * 419_431 % CLIENTS) {
                    let client = client(number, other.is_ipv4());
                    let built = match side {
                        Side::Client => tcp(client, other, 0x10),
                        Side::Server => tcp(other, client, 0x10),
                    };
                    let mut frames = Frames::default();
                    frames.fill([(&template, number)].into_iter());
                    assert_eq!(frames.count(), 1);
                    assert_eq!(frames.iter().next().unwrap(), built, "{client} {other} {side:?}");
                }
            }
        }
    }
}
