//! The two functions that all directors must have in common: the draw that orders the rows, and the
//! hash of a key. Both are SipHash-1-3 over the bytes below, and a number of several bytes in them
//! has its highest byte first.
//!
//! | what | first half of the SipHash key | second half |
//! |---|---|---|
//! | draw | `0x243f6a8885a308d3` | `0x13198a2e03707344` |
//! | key | `0xa4093822299f31d0` | `0x082efa98ec4e6c89` |
//!
//! (Both are digits of pi; a half is a number whose lowest byte is the first of the 16 key bytes.) An
//! address is 16 bytes, an IPv4 one mapped into IPv6 (`::ffff:192.0.2.1`). Ports are 2 bytes, and 0
//! for other protocols than TCP, UDP and SCTP.
//!
//! | hash of | bytes |
//! |---|---|
//! | draw | address, port, variant (2 bytes) |
//! | source | 1, client address |
//! | source and port | 2, client address, client port |
//! | destination | 3, destination address |
//! | tuple | 4, protocol, client address, client port, destination address, destination port |
//! | name | 5, and each label with its length before it, A-Z as a-z; the root's 0 at the end |
//!
//! # Vectors
//!
//! | hash of | is |
//! |---|---|
//! | draw: 192.0.2.1 port 53, variant 0 | `0x8894ce85c900a413` |
//! | draw: 192.0.2.1 port 53, variant 511 | `0xebbe507d8085eda3` |
//! | draw: 2001:db8::53 port 853, variant 65534 | `0xbab6630aa749d38d` |
//! | source 198.51.100.7 | `0x8a1477a9839da799` |
//! | source and port 198.51.100.7 port 40000 | `0x165428f4506ad4f9` |
//! | destination 192.0.2.10 | `0x963ac16bb37e099d` |
//! | tuple 17, 198.51.100.7 port 40000, 192.0.2.10 port 53 | `0xe0b2fb2e27ffb0fb` |
//! | tuple 6, 2001:db8::7 port 443, 2001:db8::1 port 80 | `0x68f69e90d3436642` |
//! | name `www.example.com` | `0x0b69e802162de140` |
//! | name `.` | `0x840f1df30c1df243` |

use crate::Key;
use crate::address::{client_port, destination_port};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::net::IpAddr;

const DRAW_KEY: (u64, u64) = (0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);
const KEY_KEY: (u64, u64) = (0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89);

/// First bytes of what is hashed, so that a name is never mistaken for an address.
const SOURCE: u8 = 1;
const SOURCE_PORT: u8 = 2;
const DESTINATION: u8 = 3;
const TUPLE: u8 = 4;
const NAME: u8 = 5;

/// What of a packet a hashing scheduler goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HashBy {
    /// As the scheduler does by itself: sh, mh and dh exactly as in the kernel, flags included; dht by
    /// [`HashBy::Source`].
    #[default]
    OfScheduler,
    /// The client's address.
    Source,
    /// The client's address and port.
    SourcePort,
    /// The address that the client asked for.
    Destination,
    /// Protocol, both addresses and both ports.
    Tuple,
    /// The name in a DNS question; where there is none, [`HashBy::Source`].
    Name,
}

impl Key {
    /// The 64-bit hash of the part that `by` says; see [`hashes`](self) for the bytes.
    pub fn hash_by(&self, by: HashBy) -> u64 {
        let mut bytes = Bytes::none();
        match (by, self.name) {
            (HashBy::Name, Some(hash)) => return hash,
            (HashBy::OfScheduler | HashBy::Source | HashBy::Name, _) => {
                bytes.put(&[SOURCE]).put(&octets(self.source));
            }
            (HashBy::SourcePort, _) => {
                let port = client_port(self).to_be_bytes();
                bytes.put(&[SOURCE_PORT]).put(&octets(self.source)).put(&port);
            }
            (HashBy::Destination, _) => {
                bytes.put(&[DESTINATION]).put(&octets(self.destination));
            }
            (HashBy::Tuple, _) => {
                bytes.put(&[TUPLE, self.protocol]);
                bytes.put(&octets(self.source)).put(&client_port(self).to_be_bytes());
                bytes.put(&octets(self.destination)).put(&destination_port(self).to_be_bytes());
            }
        }
        SipHasher13::new_with_keys(KEY_KEY.0, KEY_KEY.1).hash(bytes.all())
    }
}

/// The number by which a member stands in the row of `variant`, lowest first; of equal ones the lower
/// address comes first (as 16 bytes), then the lower port.
///
/// ```
/// use schedulers::placement::dht_rand;
///
/// let plain = dht_rand("192.0.2.1".parse().unwrap(), 53, 0);
/// assert_eq!(plain, dht_rand("::ffff:192.0.2.1".parse().unwrap(), 53, 0));
/// assert_ne!(plain, dht_rand("192.0.2.1".parse().unwrap(), 53, 1));
/// ```
pub fn dht_rand(address: IpAddr, port: u16, variant: u16) -> u64 {
    let mut bytes = Bytes::none();
    bytes.put(&octets(address)).put(&port.to_be_bytes()).put(&variant.to_be_bytes());
    SipHasher13::new_with_keys(DRAW_KEY.0, DRAW_KEY.1).hash(bytes.all())
}

/// Hashes a DNS name from its bytes on the wire, in as many pieces as one likes: every label with its
/// length before it and its letters in lower case, at last the root's 0.
///
/// ```
/// use schedulers::placement::{NameHasher, name_hash};
/// use std::hash::Hasher;
///
/// let mut hasher = NameHasher::default();
/// hasher.write(b"\x03www");
/// hasher.write(b"\x07example\0");
/// assert_eq!(Some(hasher.finish()), name_hash("WWW.example"));
/// ```
#[derive(Clone, Debug)]
pub struct NameHasher(SipHasher13);

impl Default for NameHasher {
    fn default() -> NameHasher {
        let mut hasher = SipHasher13::new_with_keys(KEY_KEY.0, KEY_KEY.1);
        hasher.write(&[NAME]);
        NameHasher(hasher)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// The hash of a name as one writes it, with or without the dot at its end; no escapes. `None` when
/// it is no name: a label is empty or longer than 63 bytes, or all of it is longer than 255.
pub fn name_hash(name: &str) -> Option<u64> {
    let mut hasher = NameHasher::default();
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut left: usize = 255 - 1;
    for label in name.split('.').filter(|_| !name.is_empty()) {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        left = left.checked_sub(1 + label.len())?;
        hasher.write(&[length]);
        label.bytes().for_each(|byte| hasher.write(&[byte.to_ascii_lowercase()]));
    }
    hasher.write(&[0]);
    Some(hasher.finish())
}

/// An address as 16 bytes.
pub(super) fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// What is hashed, gathered on the stack.
struct Bytes {
    bytes: [u8; 38],
    len: usize,
}

impl Bytes {
    fn none() -> Bytes {
        Bytes { bytes: [0; 38], len: 0 }
    }

    /// There is room for the longest, a tuple.
    fn put(&mut self, more: &[u8]) -> &mut Bytes {
        self.bytes[self.len..self.len + more.len()].copy_from_slice(more);
        self.len += more.len();
        self
    }

    fn all(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
