//! Octets of each protocol: field maps and accessors that cannot panic after one length check.
//!
//! Knows where fields lie. Must not know what a packet is for: [`parse`](fn@crate::parse) decides what
//! is accepted, and the forwarding methods decide what is rewritten.
//!
//! Every protocol has one file with the same things in it: `LEN`, the bytes of its fixed header; a
//! private map of its fields; and `Header`, a view of exactly those bytes. [`Header::at`] and
//! [`Header::at_mut`] are the one length check: a `Header` holds a reference to an *array*, so
//! every field is at a constant place of a constant length and no accessor can panic. Numbers go in
//! and come out in host order.
//!
//! ```
//! use forwarding::wire::udp;
//!
//! let mut bytes = [0x30, 0x39, 0, 53, 0, 8, 0, 0];
//! let mut header = udp::Header::at_mut(&mut bytes, 0).unwrap();
//! assert_eq!(header.source_port(), 12345);
//! header.set_destination_port(5353);
//! assert!(udp::Header::at(&bytes, 1).is_none(), "one byte short");
//! ```
//!
//! [`Header::at`]: ipv4::Header::at
//! [`Header::at_mut`]: ipv4::Header::at_mut

/// Declares `$Header`, the view of a fixed header of `$len` bytes, with its two length checks.
macro_rules! header {
    ($(#[$doc:meta])* $Header:ident, $len:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Header<T>(T);

        impl<'a> $Header<&'a [u8; $len]> {
            /// The header at `offset`; `None` when it reaches past `bytes`.
            #[inline]
            pub fn at(bytes: &'a [u8], offset: usize) -> Option<Self> {
                bytes.get(offset..)?.first_chunk().map($Header)
            }
        }

        impl<'a> $Header<&'a mut [u8; $len]> {
            /// The header at `offset`, to change; `None` when it reaches past `bytes`.
            #[inline]
            pub fn at_mut(bytes: &'a mut [u8], offset: usize) -> Option<Self> {
                bytes.get_mut(offset..)?.first_chunk_mut().map($Header)
            }
        }

        impl<T: std::borrow::Borrow<[u8; $len]>> $Header<T> {
            #[inline]
            fn bytes(&self) -> &[u8; $len] {
                self.0.borrow()
            }
        }

        impl<T: std::borrow::BorrowMut<[u8; $len]>> $Header<T> {
            #[inline]
            fn bytes_mut(&mut self) -> &mut [u8; $len] {
                self.0.borrow_mut()
            }
        }
    };
}

pub mod ethernet;
pub mod extension;
pub mod gre;
pub mod gue;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod protocol;
pub mod sctp;
pub mod tcp;
pub mod udp;

/// The `N` bytes at `at`. Every caller passes constants that lie in its array.
#[inline(always)]
fn take<const N: usize, const L: usize>(bytes: &[u8; L], at: usize) -> [u8; N] {
    let mut taken = [0; N];
    taken.copy_from_slice(&bytes[at..at + N]);
    taken
}

/// Writes `value` at `at`. Every caller passes constants that lie in its array.
#[inline(always)]
fn put<const N: usize, const L: usize>(bytes: &mut [u8; L], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

#[inline(always)]
fn u16_at<const L: usize>(bytes: &[u8; L], at: usize) -> u16 {
    u16::from_be_bytes(take(bytes, at))
}

#[inline(always)]
fn u32_at<const L: usize>(bytes: &[u8; L], at: usize) -> u32 {
    u32::from_be_bytes(take(bytes, at))
}
