//! Answers directors: who may ask, what is answered, and who has asked.
//!
//! ```text
//!    UDP  datagram  ->              -> probe, answer   \
//!    TCP  message   ->  Answering   -> probe, answer    >  Standing: state, load, connections
//!    TCP  silence, or text          -> agent_check     /
//! ```
//!
//! `udp` and `tcp` know sockets, `agent_check` HAProxy's text; here is what they have in common.

pub mod agent_check;
pub mod listening;
mod pace;
pub mod tcp;
#[cfg(test)]
mod tests;
pub mod udp;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use ipnet::IpNet;
use tokio::time::Instant;

use crate::protocol::{Key, LEN, Message, Probe, Refused};
use crate::standing::Standing;
use pace::Pace;

/// Answers per second, over UDP and TCP together: a thousand directors that ask every 50 ms.
const PER_SECOND: u32 = 20_000;
/// Directors that are remembered; of more, those that were silent longest are forgotten.
const REMEMBERED: usize = 64;

/// Who may ask, and with what.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Networks that may ask; empty = anybody.
    pub from: Vec<IpNet>,
    /// Probes must be signed with it, and answers are.
    pub key: Option<Key>,
    /// Whether silence and text on the probes' TCP port are answered in text.
    pub text: bool,
}

/// How something has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// A datagram.
    Udp,
    /// A connection.
    Tcp,
    /// HAProxy's text.
    Text,
}

/// Why nothing is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Silence {
    /// The message does not count.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It comes from where nobody may ask.
    #[error("it comes from an address that may not ask")]
    Stranger,
    /// There have been too many answers, or connections, already.
    #[error("there are too many at once")]
    TooMany,
}

/// Who has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Its address.
    pub address: IpAddr,
    /// How it asked last.
    pub over: Over,
    /// When it asked last.
    pub heard: Instant,
    /// How often it has been answered.
    pub answers: u64,
}

/// Answers for one host. Belongs to one thread.
#[derive(Debug)]
pub struct Answering {
    boot: u64,
    standing: Rc<Standing>,
    policy: RefCell<Policy>,
    pace: Cell<Pace>,
    answered: Cell<u64>,
    refused: RefCell<BTreeMap<&'static str, u64>>,
    askers: RefCell<Vec<Asker>>,
}

impl Answering {
    /// For this boot nonce.
    pub fn new(boot: u64, standing: Rc<Standing>, policy: Policy) -> Answering {
        Answering {
            boot,
            standing,
            policy: RefCell::new(policy),
            pace: Cell::new(Pace::new(PER_SECOND)),
            answered: Cell::new(0),
            refused: RefCell::default(),
            askers: RefCell::default(),
        }
    }

    /// Who may ask from now on.
    pub fn set_policy(&self, policy: Policy) {
        self.policy.replace(policy);
    }

    /// The boot nonce.
    pub fn boot(&self) -> u64 {
        self.boot
    }

    /// Whether silence and text are answered in text.
    pub fn speaks_text(&self) -> bool {
        self.policy.borrow().text
    }

    /// The answer to a message. Why there is none is counted.
    ///
    /// # Errors
    /// Why there is none.
    pub fn message(&self, bytes: &[u8], source: IpAddr, over: Over) -> Result<Message, Silence> {
        let answer = self.admit(source).and_then(|()| {
            let policy = self.policy.borrow();
            let probe = Probe::decode(bytes, policy.key.as_ref())?;
            // Only now: who floods with rubbish is not to use up what directors need.
            self.take_turn()?;
            let answer = self.standing.answer(probe.challenge, self.boot);
            Ok(answer.encode(policy.key.as_ref()))
        });
        self.note(answer, source, over)
    }

    /// The answer in HAProxy's words.
    ///
    /// # Errors
    /// Why there is none.
    pub fn text(&self, source: IpAddr) -> Result<String, Silence> {
        let answer = self.admit(source).and_then(|()| self.take_turn());
        self.note(answer.map(|()| agent_check::line(&self.standing)), source, Over::Text)
    }

    /// Whether this address may ask.
    pub(crate) fn admit(&self, source: IpAddr) -> Result<(), Silence> {
        let policy = self.policy.borrow();
        let may = policy.from.is_empty() || policy.from.iter().any(|net| net.contains(&source));
        if may { Ok(()) } else { Err(Silence::Stranger) }
    }

    fn take_turn(&self) -> Result<(), Silence> {
        let mut pace = self.pace.get();
        let may = pace.take(Instant::now());
        self.pace.set(pace);
        if may { Ok(()) } else { Err(Silence::TooMany) }
    }

    fn note<T>(
        &self,
        answer: Result<T, Silence>,
        source: IpAddr,
        over: Over,
    ) -> Result<T, Silence> {
        match &answer {
            Ok(_) => self.remember(source, over),
            Err(silence) => self.count(*silence, source),
        }
        answer
    }

    /// Counts what is not answered.
    pub(crate) fn count(&self, silence: Silence, source: IpAddr) {
        let mut refused = self.refused.borrow_mut();
        let times = refused.entry(silence.label()).or_default();
        *times += 1;
        if *times == 1 {
            tracing::warn!(%source, "did not answer a message: {silence} (more are only counted)");
        }
    }

    fn remember(&self, address: IpAddr, over: Over) {
        self.answered.set(self.answered.get() + 1);
        let heard = Instant::now();
        let mut askers = self.askers.borrow_mut();
        if let Some(asker) = askers.iter_mut().find(|asker| asker.address == address) {
            *asker = Asker { over, heard, answers: asker.answers + 1, ..*asker };
            return;
        }
        if askers.len() == REMEMBERED {
            let oldest = (0..REMEMBERED).min_by_key(|place| askers[*place].heard);
            oldest.map(|place| askers.swap_remove(place));
        }
        askers.push(Asker { address, over, heard, answers: 1 });
    }

    /// Answers so far.
    pub fn answered(&self) -> u64 {
        self.answered.get()
    }

    /// What was not answered, by reason.
    pub fn refused(&self) -> BTreeMap<&'static str, u64> {
        self.refused.borrow().clone()
    }

    /// Who has asked, the last first.
    pub fn askers(&self) -> Vec<Asker> {
        let mut askers = self.askers.borrow().clone();
        askers.sort_by_key(|asker| std::cmp::Reverse(asker.heard));
        askers
    }
}

impl Silence {
    /// One word for it, for counters.
    pub fn label(self) -> &'static str {
        match self {
            Silence::Refused(Refused::Foreign) => "foreign",
            Silence::Refused(Refused::Version { .. }) => "version",
            Silence::Refused(Refused::Kind) => "kind",
            Silence::Refused(Refused::Unsigned) => "unsigned",
            Silence::Refused(Refused::NoKey) => "no_key",
            Silence::Refused(Refused::Forged) => "forged",
            Silence::Refused(Refused::Nonsense) => "nonsense",
            Silence::Stranger => "stranger",
            Silence::TooMany => "too_many",
        }
    }
}

/// Room for a datagram that is one byte too long to be a message.
const ROOM: usize = LEN + 1;
