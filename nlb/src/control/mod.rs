//! Remote control: commands to a node over UDP port [`PORT`] of the cluster's primary address.
//!
//! Knows bytes, their seal and which challenges are open; time is an argument. Must not know
//! sockets, nor what a command says or does: that is text of the two who speak.
//!
//! A command counts once, on the node it was made for, and only from somebody who has the cluster's
//! key:
//!
//! ```text
//!  controller                                       each node
//!     hello  (who are you?)        ------------->
//!                                  <-------------   challenge: host id, fresh nonce
//!     command, sealed over nonce,  ------------->   nonce known and unused? seal right? then once
//!     sequence and command         <-------------   answer, sealed over nonce, sequence and answer
//! ```
//!
//! Numbers are big endian. Every message begins alike:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | `SwYc` |
//! | 4 | 1 | version, [`VERSION`] |
//! | 5 | 1 | 1 hello, 2 challenge, 3 command, 4 answer |
//! | 6 | 1 | host id: in hello and command whom it is for, 0 = all; else who speaks |
//! | 7 | 1 | answer: its [`Code`]; else 0 |
//! | 8 | 16 | nonce: in hello the controller's own (it comes back in the challenge); else the challenge's |
//! | 24 | 4 | sequence: rises with each command under one challenge; hello and challenge 0 |
//! | 28 | 2 | length of the text |
//! | 30 | .. | hello: empty; challenge: the controller's nonce; command: what to do; answer: a part of the answer (`parts`) |
//! | end | 16 | HMAC-SHA256 under the control key of all before, its first 16 bytes |
//!
//! All four are sealed: a stranger cannot even make a node answer. A recorded hello gets a new
//! challenge, which is of no use without the key.

mod challenge;
mod message;
mod parts;

pub use challenge::{Challenges, Refused, Request};
pub use message::{Code, Kind, Message, decode};
pub use parts::{MAX_PARTS, Parts, split};

/// The UDP port of remote control.
pub const PORT: u16 = 2504;
/// Version of the format; others are refused.
pub const VERSION: u8 = 1;
/// Most bytes of a text: a message fits one datagram that is not fragmented.
pub const MAX_TEXT: usize = 1200;

const MAGIC: [u8; 4] = *b"SwYc";
const HEAD: usize = 30;
const SEAL: usize = 16;

#[cfg(test)]
mod tests;
