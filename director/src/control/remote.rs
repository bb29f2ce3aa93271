//! Commands to nodes over UDP, from a machine that has the cluster's key: `dirctl nlb --cluster`, and
//! a node that is asked for others.
//!
//! Knows the messages of [`nlb::control`] and the words of [`nlb`](super::nlb). Plain blocking
//! calls; every wait has an end. What does not come sealed with the key is not looked at.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use ::nlb::control::{Code, Kind, Message, Parts, decode};
use ::nlb::host::HostId;
use ::nlb::key::SealKey;
use ::nlb::membership::Answer;

use super::nlb::{NlbAnswer, NlbCommand, NlbReply};

/// How long is waited before a question is put again.
const PAUSE: Duration = Duration::from_millis(400);
/// How many times it is put.
const TIMES: u32 = 3;
/// Larger than any message.
const BUFFER: usize = 2048;

/// Somebody who may command.
#[derive(Debug)]
pub struct Controller {
    key: SealKey,
    socket: UdpSocket,
    nonce: [u8; 16],
}

/// A node that has answered a hello.
#[derive(Clone, Copy, Debug)]
struct Node {
    address: SocketAddr,
    nonce: [u8; 16],
}

impl Controller {
    /// Who has this control key, on the way to addresses of the same family as `to`.
    ///
    /// # Errors
    /// When there is no socket or no randomness to be had.
    pub fn new(key: SealKey, to: IpAddr) -> io::Result<Controller> {
        let any: IpAddr = match to {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        Ok(Controller { key, socket, nonce: random()? })
    }

    /// Has the nodes behind `to` (the cluster's primary address, or addresses of hosts) carry out a
    /// command. `hosts` are those it is for; of an empty list, all that answer a hello. Takes at
    /// most three seconds, less when all hosts of the list answer.
    ///
    /// # Errors
    /// When the network refuses.
    pub fn ask(
        &self,
        to: &[SocketAddr],
        hosts: &[HostId],
        command: &NlbCommand,
    ) -> io::Result<NlbReply> {
        let nodes = self.meet(to, hosts)?;
        let mut answers = self.command(&nodes, command)?;
        let asked: Vec<HostId> = match hosts {
            [] => nodes.keys().copied().collect(),
            hosts => hosts.to_vec(),
        };
        let silent = asked.iter().filter(|host| !answers.contains_key(host));
        let silent = silent.map(|host| host.get()).collect();
        let mut reply = NlbReply { answers: Vec::new(), silent };
        for host in asked {
            reply.answers.extend(answers.remove(&host));
        }
        Ok(reply)
    }

    /// The hosts that a word means: `all` (an empty list), an id, an address, a name.
    ///
    /// # Errors
    /// When the network refuses, or nobody answers to the word.
    pub fn find(&self, to: &[SocketAddr], word: &str) -> io::Result<Vec<HostId>> {
        if word == "all" {
            return Ok(Vec::new());
        }
        if let Ok(host) = word.parse::<HostId>() {
            return Ok(vec![host]);
        }
        let nodes = self.meet(to, &[])?;
        if let Ok(address) = word.parse::<IpAddr>() {
            let of_address = |(_, node): &(&HostId, &Node)| node.address.ip() == address;
            if let Some((host, _)) = nodes.iter().find(of_address) {
                return Ok(vec![*host]);
            }
        }
        let answers = self.command(&nodes, &NlbCommand::Query)?;
        let named = answers.iter().find(|(_, answer)| answer.name == word);
        named.map(|(host, _)| vec![*host]).ok_or_else(|| {
            let known: Vec<String> =
                answers.iter().map(|(host, answer)| format!("{host} {}", answer.name)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("no host {word:?} answers; those that do: {known}"),
            )
        })
    }

    /// Says hello and collects challenges.
    fn meet(&self, to: &[SocketAddr], hosts: &[HostId]) -> io::Result<BTreeMap<HostId, Node>> {
        let only = match hosts {
            [host] => Some(*host),
            _ => None,
        };
        let hello = self.message(Kind::Hello, only, self.nonce, 0, Vec::new());
        let mut nodes = BTreeMap::new();
        for _ in 0..TIMES {
            for address in to {
                // That one host is out of reach is told by its silence.
                let _ = self.socket.send_to(&hello, address);
            }
            self.listen(|message, address| {
                let host = message.host?;
                if message.kind == Kind::Challenge
                    && message.text == self.nonce
                    && (hosts.is_empty() || hosts.contains(&host))
                {
                    nodes.entry(host).or_insert(Node { address, nonce: message.nonce });
                }
                (!hosts.is_empty() && nodes.len() == hosts.len()).then_some(())
            })?;
            if !nodes.is_empty() && (hosts.is_empty() || nodes.len() == hosts.len()) {
                break;
            }
        }
        Ok(nodes)
    }

    /// Commands each of them under its challenge, and collects answers.
    fn command(
        &self,
        nodes: &BTreeMap<HostId, Node>,
        command: &NlbCommand,
    ) -> io::Result<BTreeMap<HostId, NlbAnswer>> {
        let text = serde_json::to_vec(command)?;
        let mut answers: BTreeMap<HostId, NlbAnswer> = BTreeMap::new();
        let mut parts: BTreeMap<(HostId, u32), Parts> = BTreeMap::new();
        for sequence in 1..=TIMES {
            for (host, node) in nodes.iter().filter(|(host, _)| !answers.contains_key(host)) {
                let text = text.clone();
                let message = self.message(Kind::Command, Some(*host), node.nonce, sequence, text);
                let _ = self.socket.send_to(&message, node.address);
            }
            self.listen(|message, _| {
                let host = message.host?;
                let node = nodes.get(&host)?;
                if message.kind == Kind::Answer
                    && message.nonce == node.nonce
                    && (1..=sequence).contains(&message.sequence)
                    && let Some(whole) =
                        parts.entry((host, message.sequence)).or_default().take(&message.text)
                    && let Ok(answer) = serde_json::from_slice(&whole)
                {
                    answers.insert(host, answer);
                }
                (answers.len() == nodes.len()).then_some(())
            })?;
            if answers.len() == nodes.len() {
                break;
            }
        }
        Ok(answers)
    }

    fn message(
        &self,
        kind: Kind,
        host: Option<HostId>,
        nonce: [u8; 16],
        sequence: u32,
        text: Vec<u8>,
    ) -> Vec<u8> {
        let code = Code::Answer(Answer::Done);
        Message { kind, host, code, nonce, sequence, text }.encode(&self.key)
    }

    /// Hands on what comes in sealed, until the pause is over or `each` has enough.
    fn listen(&self, mut each: impl FnMut(Message, SocketAddr) -> Option<()>) -> io::Result<()> {
        let end = Instant::now() + PAUSE;
        let mut buffer = [0; BUFFER];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.socket.set_read_timeout(Some(left))?;
            use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
            match self.socket.recv_from(&mut buffer) {
                Ok((length, address)) => {
                    let message = decode(&buffer[..length], &self.key);
                    if message.is_some_and(|message| each(message, address).is_some()) {
                        return Ok(());
                    }
                }
                Err(error) if matches!(error.kind(), TimedOut | WouldBlock) => return Ok(()),
                Err(error) if matches!(error.kind(), ConnectionRefused | Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Sixteen bytes that nobody can guess.
///
/// # Errors
/// When the system has none.
pub(crate) fn random() -> io::Result<[u8; 16]> {
    use io::Read;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
