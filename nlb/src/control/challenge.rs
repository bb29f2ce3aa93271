//! A node's side: which challenges are open, and which commands count.

use std::collections::VecDeque;
use std::time::Duration;

use crate::host::HostId;
use crate::key::SealKey;

use super::message::{Code, Kind, Message, decode};
use crate::membership::Answer;

/// Most challenges open at once; the oldest is forgotten for a new one.
const OPEN: usize = 32;
/// How long a challenge may be used.
const LIFE: Duration = Duration::from_secs(30);

/// Why a datagram was not obeyed; an index of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No message of remote control, or not sealed with the cluster's key.
    Seal,
    /// For another host, or a message only nodes send.
    NotForUs,
    /// Its challenge is not open: too old, or never given.
    NoChallenge,
    /// Its sequence is not above the last one under its challenge.
    Replay,
}

impl Refused {
    /// All of them, in order.
    pub const ALL: [Refused; 4] =
        [Refused::Seal, Refused::NotForUs, Refused::NoChallenge, Refused::Replay];

    /// A word for counters.
    pub const fn label(self) -> &'static str {
        match self {
            Refused::Seal => "seal",
            Refused::NotForUs => "not-for-us",
            Refused::NoChallenge => "no-challenge",
            Refused::Replay => "replay",
        }
    }

    /// One line for an operator.
    pub const fn explanation(self) -> &'static str {
        match self {
            Refused::Seal => "no remote command, or of somebody who has not the cluster's key",
            Refused::NotForUs => "a remote command for another host of the cluster",
            Refused::NoChallenge => "a remote command that no open challenge of this host covers",
            Refused::Replay => "a remote command that has been heard before",
        }
    }
}

/// What to do about a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Send this back.
    Reply(Vec<u8>),
    /// Carry out this command, then send what [`Challenges::answer`] makes of the outcome.
    Obey(Message),
}

#[derive(Debug)]
struct Open {
    nonce: [u8; 16],
    until: Duration,
    sequence: u32,
}

/// The challenges of one node.
#[derive(Debug)]
pub struct Challenges {
    host: HostId,
    key: SealKey,
    open: VecDeque<Open>,
    refused: [u64; 4],
}

impl Challenges {
    /// A node without open challenges; `key` is the cluster's control key.
    pub fn new(host: HostId, key: SealKey) -> Challenges {
        Challenges { host, key, open: VecDeque::new(), refused: [0; 4] }
    }

    /// A datagram has arrived; `fresh` are 16 random bytes never given before.
    ///
    /// # Errors
    ///
    /// Why it is not obeyed; nothing is sent then.
    pub fn receive(
        &mut self,
        datagram: &[u8],
        fresh: [u8; 16],
        now: Duration,
    ) -> Result<Request, Refused> {
        let judged = self.judge(datagram, fresh, now);
        if let Err(reason) = judged {
            self.refused[reason as usize] += 1;
        }
        judged
    }

    fn judge(
        &mut self,
        datagram: &[u8],
        fresh: [u8; 16],
        now: Duration,
    ) -> Result<Request, Refused> {
        let message = decode(datagram, &self.key).ok_or(Refused::Seal)?;
        if message.host.is_some_and(|host| host != self.host) {
            return Err(Refused::NotForUs);
        }
        match message.kind {
            Kind::Hello => Ok(Request::Reply(self.challenge(&message, fresh, now))),
            Kind::Command => self.command(message, now),
            Kind::Challenge | Kind::Answer => Err(Refused::NotForUs),
        }
    }

    fn challenge(&mut self, hello: &Message, fresh: [u8; 16], now: Duration) -> Vec<u8> {
        self.open.retain(|open| open.until > now);
        if self.open.len() == OPEN {
            self.open.pop_front();
        }
        self.open.push_back(Open { nonce: fresh, until: now + LIFE, sequence: 0 });
        let challenge = Message {
            kind: Kind::Challenge,
            host: Some(self.host),
            code: Code::Answer(Answer::Done),
            nonce: fresh,
            sequence: 0,
            text: hello.nonce.to_vec(),
        };
        challenge.encode(&self.key)
    }

    fn command(&mut self, command: Message, now: Duration) -> Result<Request, Refused> {
        let open = self.open.iter_mut().find(|o| o.nonce == command.nonce && o.until > now);
        let open = open.ok_or(Refused::NoChallenge)?;
        if command.sequence <= open.sequence {
            return Err(Refused::Replay);
        }
        open.sequence = command.sequence;
        Ok(Request::Obey(command))
    }

    /// The answer to a command, or a part of it; of a text longer than
    /// [`MAX_TEXT`](super::MAX_TEXT) bytes the rest is cut off.
    pub fn answer(&self, command: &Message, code: Code, text: Vec<u8>) -> Vec<u8> {
        let host = Some(self.host);
        let answer = Message { kind: Kind::Answer, host, code, text, ..command.clone() };
        answer.encode(&self.key)
    }

    /// How many datagrams were refused for a reason.
    pub fn refused(&self, reason: Refused) -> u64 {
        self.refused[reason as usize]
    }
}
