//! What director and agent say to each other, byte by byte.
//!
//! The director asks with a [`Probe`], the agent answers with an [`Answer`]; over UDP one datagram
//! each, over TCP one message after the other on one connection. Both are [`LEN`] bytes, so that an
//! answer is never longer than its question (nobody can use an agent to flood a third party), and a
//! message on a stream needs no length.
//!
//! ```text
//!    0  magic "SYRA" 32                                   numbers in network byte order
//!    4  version 8 | kind 8: 1 probe, 2 answer | flags 16: 1 signed, 2 load is known
//!    8  challenge 64: the director's, at random, and the same in the answer
//!   16  boot 64: the agent's, at random when it started; of a probe 0, as is all that follows
//!   24  state 8: 0 up, 1 draining, 2 down | 0 8 | load 16: 0..=10000
//!   28  connections 32
//!   32  accept queue 32: connections waiting to be accepted
//!   36  0 32
//!   40  tag 128: the first half of HMAC-SHA-256 over bytes 0..40, or 0 when not signed
//! ```
//!
//! An answer counts only if it repeats the challenge of a question that is still open: who did not see
//! the question cannot forge one, and an old answer is of no use. With a key who did see it cannot
//! either. Another version is refused by name; magic, version and kind stay where they are for ever.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Where agents listen unless they are told otherwise, UDP and TCP.
pub const PORT: u16 = 6086;

/// Bytes of every message.
pub const LEN: usize = 56;

/// The version that is spoken here.
pub const VERSION: u8 = 1;

/// The most load that there is.
pub const FULL: u16 = 10_000;

/// What every message begins with.
pub const MAGIC: [u8; 4] = *b"SYRA";
const SIGNED: u16 = 1;
const LOAD_KNOWN: u16 = 2;
/// Bytes that the tag is made of; it follows them.
const BODY: usize = 40;

/// One message.
pub type Message = [u8; LEN];

/// What a real server says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// It serves.
    #[default]
    Up,
    /// It serves the connections that it has, and wants no new ones.
    Draining,
    /// It serves nobody.
    Down,
}

/// The director's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// At random; the answer repeats it.
    pub challenge: u64,
}

/// The agent's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// That of the question.
    pub challenge: u64,
    /// At random when the agent started: another one means that the host's connections are dead
    /// (the agent keeps it over a restart of itself alone).
    pub boot: u64,
    /// How the server is.
    pub state: State,
    /// 0..=[`FULL`], when it is known.
    pub load: Option<u16>,
    /// Established connections of the services.
    pub connections: u32,
    /// Connections that wait to be accepted.
    pub queue: u32,
}

/// A secret that director and agents share.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// Why a message does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// Not [`LEN`] bytes that begin with the magic.
    #[error("it is no message of this protocol")]
    Foreign,
    /// Another version.
    #[error("it speaks version {theirs} of the protocol, and version {VERSION} is spoken here")]
    Version {
        /// Theirs.
        theirs: u8,
    },
    /// A probe where an answer belongs, or the other way round.
    #[error("it is no message of the kind that belongs here")]
    Kind,
    /// Not signed, though a key is set here.
    #[error("it is not signed, and a key is set here")]
    Unsigned,
    /// Signed, though no key is set here: nobody can tell whether it is right.
    #[error("it is signed, and no key is set here")]
    NoKey,
    /// The tag is wrong.
    #[error("its signature is wrong: another key, or forged")]
    Forged,
    /// A state or load that does not exist.
    #[error("it says what cannot be: a state or load out of range")]
    Nonsense,
}

impl Key {
    /// A key of at least one byte; more than 64 are hashed to 32.
    pub fn new(secret: &[u8]) -> Option<Key> {
        if secret.is_empty() {
            return None;
        }
        Hmac::new_from_slice(secret).ok().map(Key)
    }

    fn tag(&self, body: &[u8]) -> [u8; LEN - BODY] {
        let mut mac = self.0.clone();
        mac.update(body);
        let whole = mac.finalize().into_bytes();
        let mut tag = [0; LEN - BODY];
        tag.copy_from_slice(&whole[..LEN - BODY]);
        tag
    }

    fn accepts(&self, body: &[u8], tag: &[u8]) -> bool {
        let mut mac = self.0.clone();
        mac.update(body);
        mac.verify_truncated_left(tag).is_ok()
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Probe {
    /// Its bytes.
    ///
    /// ```
    /// use realserver_agent::protocol::{Key, Probe, Refused};
    ///
    /// let key = Key::new(b"secret").unwrap();
    /// let bytes = Probe { challenge: 7 }.encode(Some(&key));
    /// assert_eq!(Probe::decode(&bytes, Some(&key)), Ok(Probe { challenge: 7 }));
    /// assert_eq!(Probe::decode(&bytes, Key::new(b"other").as_ref()), Err(Refused::Forged));
    /// ```
    pub fn encode(&self, key: Option<&Key>) -> Message {
        seal(head(1, 0, self.challenge), key)
    }

    /// Reads one.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn decode(bytes: &[u8], key: Option<&Key>) -> Result<Probe, Refused> {
        let message = open(bytes, 1, key)?;
        Ok(Probe { challenge: number(message, 8) })
    }
}

impl Answer {
    /// Its bytes. A load above [`FULL`] becomes that.
    pub fn encode(&self, key: Option<&Key>) -> Message {
        let flags = if self.load.is_some() { LOAD_KNOWN } else { 0 };
        let mut message = head(2, flags, self.challenge);
        message[16..24].copy_from_slice(&self.boot.to_be_bytes());
        message[24] = match self.state {
            State::Up => 0,
            State::Draining => 1,
            State::Down => 2,
        };
        let load = self.load.unwrap_or_default().min(FULL);
        message[26..28].copy_from_slice(&load.to_be_bytes());
        message[28..32].copy_from_slice(&self.connections.to_be_bytes());
        message[32..36].copy_from_slice(&self.queue.to_be_bytes());
        seal(message, key)
    }

    /// Reads one. Whether its challenge is that of an open question is for the caller to see.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn decode(bytes: &[u8], key: Option<&Key>) -> Result<Answer, Refused> {
        let message = open(bytes, 2, key)?;
        let state = match message[24] {
            0 => State::Up,
            1 => State::Draining,
            2 => State::Down,
            _ => return Err(Refused::Nonsense),
        };
        let load = u16::from_be_bytes([message[26], message[27]]);
        if load > FULL {
            return Err(Refused::Nonsense);
        }
        let is_known = flags(message) & LOAD_KNOWN != 0;
        let counts = number(message, 28);
        Ok(Answer {
            challenge: number(message, 8),
            boot: number(message, 16),
            state,
            load: is_known.then_some(load),
            connections: (counts >> 32) as u32,
            queue: counts as u32,
        })
    }
}

fn head(kind: u8, flags: u16, challenge: u64) -> Message {
    let mut message = [0; LEN];
    message[..4].copy_from_slice(&MAGIC);
    (message[4], message[5]) = (VERSION, kind);
    message[6..8].copy_from_slice(&flags.to_be_bytes());
    message[8..16].copy_from_slice(&challenge.to_be_bytes());
    message
}

fn seal(mut message: Message, key: Option<&Key>) -> Message {
    if let Some(key) = key {
        let flags = flags(&message) | SIGNED;
        message[6..8].copy_from_slice(&flags.to_be_bytes());
        let tag = key.tag(&message[..BODY]);
        message[BODY..].copy_from_slice(&tag);
    }
    message
}

fn open<'a>(bytes: &'a [u8], kind: u8, key: Option<&Key>) -> Result<&'a Message, Refused> {
    if bytes.len() < 6 || bytes[..4] != MAGIC {
        return Err(Refused::Foreign);
    }
    if bytes[4] != VERSION {
        return Err(Refused::Version { theirs: bytes[4] });
    }
    let message: &Message = bytes.try_into().map_err(|_| Refused::Foreign)?;
    if message[5] != kind {
        return Err(Refused::Kind);
    }
    match (flags(message) & SIGNED != 0, key) {
        (false, Some(_)) => Err(Refused::Unsigned),
        (true, None) => Err(Refused::NoKey),
        (true, Some(key)) if !key.accepts(&message[..BODY], &message[BODY..]) => {
            Err(Refused::Forged)
        }
        _ => Ok(message),
    }
}

fn flags(message: &Message) -> u16 {
    u16::from_be_bytes([message[6], message[7]])
}

fn number(message: &Message, at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&message[at..at + 8]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Answer = Answer {
        challenge: 0x0102_0304_0506_0708,
        boot: 0x1112_1314_1516_1718,
        state: State::Draining,
        load: Some(2500),
        connections: 70_000,
        queue: 3,
    };

    #[test]
    fn what_is_said_is_what_is_heard_with_and_without_a_key() {
        let key = Key::new(b"of the cluster");
        for key in [None, key.as_ref()] {
            assert_eq!(Answer::decode(&ANSWER.encode(key), key), Ok(ANSWER));
            let probe = Probe { challenge: u64::MAX };
            assert_eq!(Probe::decode(&probe.encode(key), key), Ok(probe));
        }
        let unknown = Answer { load: None, ..ANSWER };
        assert_eq!(Answer::decode(&unknown.encode(None), None), Ok(unknown));
    }

    #[test]
    fn the_bytes_are_those_of_version_1() {
        let bytes = ANSWER.encode(None);
        let expected = [
            b"SYRA\x01\x02\x00\x02".as_slice(),
            &[1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
            &[1, 0, 0x09, 0xc4, 0, 1, 0x11, 0x70, 0, 0, 0, 3, 0, 0, 0, 0],
            &[0; 16],
        ]
        .concat();
        assert_eq!(bytes[..], expected);
    }

    #[test]
    fn every_wrong_message_is_refused_by_name() {
        let key = Key::new(b"right");
        let good = ANSWER.encode(None);
        let with = |at: usize, byte| {
            let mut bytes = good;
            bytes[at] = byte;
            Answer::decode(&bytes, None)
        };
        assert_eq!(with(0, b'X'), Err(Refused::Foreign));
        assert_eq!(with(4, 2), Err(Refused::Version { theirs: 2 }));
        assert_eq!(with(5, 1), Err(Refused::Kind));
        assert_eq!(with(24, 3), Err(Refused::Nonsense));
        assert_eq!(with(26, 0xff), Err(Refused::Nonsense));
        assert_eq!(Answer::decode(&good[..LEN - 1], None), Err(Refused::Foreign));
        assert_eq!(Answer::decode(&[], None), Err(Refused::Foreign));
        assert_eq!(Answer::decode(&good, key.as_ref()), Err(Refused::Unsigned));
        let signed = ANSWER.encode(key.as_ref());
        assert_eq!(Answer::decode(&signed, None), Err(Refused::NoKey));
        for at in 0..LEN {
            let mut bytes = signed;
            bytes[at] ^= 0x40;
            assert!(Answer::decode(&bytes, key.as_ref()).is_err(), "byte {at} is not protected");
        }
    }
}
