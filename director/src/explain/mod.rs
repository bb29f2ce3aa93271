//! Why a packet goes where it goes, said by the code that sends it there.
//!
//! ```text
//! packet ── steering (arrival.rs): would the XDP program take it? ── no ──> the host's stack has it
//!   v
//! a fork of what it can meet (dispatch/fork.rs) ── Dispatcher::handle ──> a verdict, and each decision
//!   v                                                                   (dispatch/witness.rs)
//! the way out: interface, next hop, its MAC address
//!   v
//! words (words.rs), and what of the packet has changed (fields.rs)
//! ```
//!
//! Nothing of the running director is changed: a test compares all that can be seen of it before and
//! after, for every scheduler. It knows what a director is made of. It must not know HTTP, nor where routes come
//! from: those are [`Ways`].

mod arrival;
pub mod build;
pub mod cluster;
mod fields;
pub mod offline;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use forwarding::{Packet, parse};

use crate::control::explain::{Explanation, Outcome};
use crate::dispatch::counters::SENT;
use crate::dispatch::fork::Fork;
use crate::dispatch::service::Services;
use crate::dispatch::verdict::{DropReason, Path, Verdict};
use crate::dispatch::{Dispatcher, Routes, Shared};
use crate::steer::KeySet;

/// Longest frame that is looked at, bytes.
pub const LONGEST: usize = 64 * 1024;

/// Bytes of a packet at least: an Ethernet header.
const SHORTEST: usize = 14;

/// Room before a frame that any tunnel's headers fit into.
const HEADROOM: usize = 128;

/// How a frame leaves by a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// By this interface, between these Ethernet addresses.
    Known {
        /// The interface's name.
        interface: String,
        /// Its own Ethernet address.
        source: [u8; 6],
        /// The next hop's.
        destination: [u8; 6],
    },
    /// The next hop's Ethernet address is not known: the kernel would be asked, and the packet wait
    /// for three seconds.
    Unresolved {
        /// The interface's name.
        interface: String,
        /// Whether it has been asked already, and has not answered.
        is_silent: bool,
    },
    /// The path leaves by an interface that the director does not serve.
    NoPort {
        /// Its name.
        interface: String,
    },
}

/// Where packets leave.
pub trait Ways: Routes {
    /// How they do by this path.
    fn link(&self, path: &Path) -> Link;

    /// What is assumed of ways, and not known. By default nothing.
    fn assumed(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Everything that a packet meets.
pub struct Scene<'a> {
    /// What dispatchers share.
    pub shared: &'a Shared,
    /// The services.
    pub services: &'a Services,
    /// What the steering program takes.
    pub steering: &'a KeySet,
    /// The interfaces that the director serves.
    pub interfaces: &'a [String],
    /// Time since start.
    pub now: Duration,
}

/// Explains the Ethernet frame `frame`, which arrives on `interface`.
pub fn explain(
    scene: &Scene<'_>,
    ways: &mut impl Ways,
    frame: &[u8],
    interface: Option<&str>,
) -> Explanation {
    let mut explanation = Explanation {
        packet: words::packet(frame),
        outcome: Outcome::Passed,
        reason: "not_steered".to_owned(),
        meaning: "It never comes to the director: the host's own stack has it.".to_owned(),
        steps: Vec::new(),
        changes: Vec::new(),
        answer: None,
        assumed: ways.assumed(),
    };
    match arrival::steered(scene, frame, interface) {
        Ok(step) => explanation.steps.push(step),
        Err(step) => {
            explanation.steps.push(step);
            return explanation;
        }
    }
    let Ok(headers) = parse(frame) else {
        // As a worker has it: there is nothing to look up.
        let mut dispatcher = Dispatcher::on(&Fork::of_nothing(scene.shared));
        let mut bytes = frame.to_vec();
        let length = bytes.len();
        let mut packet = Packet::new(&mut bytes, 0, length);
        let services = Services::default();
        let verdict = dispatcher.handle(scene.now, &services, ways, &mut packet);
        conclude(&mut explanation, &verdict);
        return explanation;
    };
    let fork = Fork::of(scene.shared, scene.services, frame, &headers);
    let mut dispatcher = Dispatcher::on(&fork);
    let mut chunk = vec![0; HEADROOM + frame.len() + HEADROOM];
    chunk[HEADROOM..HEADROOM + frame.len()].copy_from_slice(frame);
    let mut packet = Packet::new(&mut chunk, HEADROOM, frame.len());
    let verdict = dispatcher.handle(scene.now, &fork.services, ways, &mut packet);
    let decisions = dispatcher.decisions();
    explanation.steps.extend(decisions.into_iter().map(|decision| words::step(decision, &headers)));
    conclude(&mut explanation, &verdict);
    match verdict {
        Verdict::Transmit { path, .. } => {
            let link = ways.link(&path);
            explanation.steps.push(words::link(&path, &link));
            let lost = match link {
                Link::NoPort { .. } => Some(DropReason::NoPort),
                Link::Unresolved { is_silent: true, .. } => Some(DropReason::NoNeighbour),
                Link::Unresolved { .. } | Link::Known { .. } => None,
            };
            if let Some(reason) = lost {
                conclude(&mut explanation, &Verdict::Drop(reason));
                return explanation;
            }
            let sent = packet.bytes_mut();
            if let Link::Known { source, destination, .. } = link
                && let Some(header) = sent.get_mut(..12)
            {
                header[..6].copy_from_slice(&destination);
                header[6..].copy_from_slice(&source);
            }
            explanation.changes = fields::changes(frame, packet.bytes());
        }
        Verdict::Answer { .. } => {
            explanation.answer = dispatcher.reply().map(|(reply, _)| words::packet(reply));
        }
        Verdict::Pass(_) | Verdict::Drop(_) => {}
    }
    explanation
}

/// Outcome, reason and meaning of a verdict.
fn conclude(explanation: &mut Explanation, verdict: &Verdict) {
    let (outcome, reason, meaning) = match verdict {
        Verdict::Transmit { method, .. } => {
            let (label, meaning) = SENT[*method as usize];
            (Outcome::Forwarded, label, meaning)
        }
        Verdict::Answer { reason } => (Outcome::Answered, reason.label(), reason.meaning()),
        Verdict::Pass(reason) => (Outcome::Passed, reason.label(), reason.meaning()),
        Verdict::Drop(reason) => (Outcome::Dropped, reason.label(), reason.meaning()),
    };
    explanation.outcome = outcome;
    reason.clone_into(&mut explanation.reason);
    meaning.clone_into(&mut explanation.meaning);
}

/// Reads a frame as hexadecimal digits; blanks, colons and line ends between them do not count.
///
/// # Errors
/// What is wrong with it, in words.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != b':')
        .take(2 * LONGEST + 1)
        .collect();
    if digits.len() > 2 * LONGEST {
        return Err(format!("the packet is longer than {LONGEST} bytes"));
    }
    if digits.len() % 2 == 1 {
        return Err(format!("{} hexadecimal digits are no whole number of bytes", digits.len()));
    }
    let value = |digit: u8| (digit as char).to_digit(16);
    let byte = |(index, pair): (usize, &[u8])| match (value(pair[0]), value(pair[1])) {
        (Some(high), Some(low)) => Ok((high * 16 + low) as u8),
        _ => {
            let bad = String::from_utf8_lossy(pair).into_owned();
            Err(format!("byte {} is {bad:?}, which is not hexadecimal", index + 1))
        }
    };
    digits.chunks(2).enumerate().map(byte).collect()
}

/// A packet in hexadecimal digits, from its Ethernet or IP header on, as a frame.
///
/// # Errors
/// What is wrong with it, in words; also when it is too short to be a packet.
pub fn frame_from_hex(text: &str) -> Result<Vec<u8>, String> {
    let bytes = from_hex(text)?;
    if bytes.len() < SHORTEST {
        let length = bytes.len();
        return Err(format!(
            "{length} bytes are no packet: it begins with an Ethernet or IP header"
        ));
    }
    Ok(as_frame(&bytes))
}

/// A frame as [`from_hex`] reads it.
pub fn to_hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An IP packet with an Ethernet header before it, for those that come without one; a frame as it is.
pub fn as_frame(packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= 20 && parse(packet).is_err() => [8, 0],
        Some(6) if packet.len() >= 40 && parse(packet).is_err() => [0x86, 0xdd],
        _ => return packet.to_vec(),
    };
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(kind);
    frame.extend(packet);
    frame
}
