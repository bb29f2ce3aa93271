//! Messages of remote control as bytes.

use crate::host::HostId;
use crate::key::SealKey;
use crate::membership::{Answer, State};

use super::{HEAD, MAGIC, MAX_TEXT, SEAL, VERSION};

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A controller asks who is there.
    Hello = 1,
    /// A node gives a nonce.
    Challenge = 2,
    /// A controller commands.
    Command = 3,
    /// A node answers.
    Answer = 4,
}

/// How a command ended, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// What membership answered.
    Answer(Answer),
    /// Not a change but a question; where the host stands.
    State(State),
    /// The command's words were not understood; the text says why.
    NotUnderstood,
    /// Not here: the host was not started with this ability, or an error; the text says which.
    Failed,
}

const STATES: [State; 8] = [
    State::Suspended,
    State::Stopped,
    State::Disconnected,
    State::Converging,
    State::Converged,
    State::ConvergedDefault,
    State::Draining,
    State::Quarantined,
];
const FIRST_STATE: u8 = 32;
const NOT_UNDERSTOOD: u8 = 64;
const FAILED: u8 = 65;

impl Code {
    fn number(self) -> u8 {
        let place = |found: Option<usize>| found.unwrap_or_default() as u8;
        match self {
            Code::Answer(answer) => place(Answer::ALL.iter().position(|&each| each == answer)),
            Code::State(state) => {
                FIRST_STATE + place(STATES.iter().position(|&each| each == state))
            }
            Code::NotUnderstood => NOT_UNDERSTOOD,
            Code::Failed => FAILED,
        }
    }

    fn of(number: u8) -> Option<Code> {
        match number {
            NOT_UNDERSTOOD => Some(Code::NotUnderstood),
            FAILED => Some(Code::Failed),
            FIRST_STATE.. => {
                STATES.get(usize::from(number - FIRST_STATE)).copied().map(Code::State)
            }
            _ => Answer::ALL.get(usize::from(number)).copied().map(Code::Answer),
        }
    }
}

/// The code as a word.
impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Code::Answer(answer) => f.write_str(answer.label()),
            Code::State(state) => state.fmt(f),
            Code::NotUnderstood => f.write_str("not-understood"),
            Code::Failed => f.write_str("failed"),
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// Whom it is for (hello and command; `None` = all), or who speaks.
    pub host: Option<HostId>,
    /// How a command ended; of other messages [`Answer::Done`].
    pub code: Code,
    /// The challenge's nonce; in a hello the controller's.
    pub nonce: [u8; 16],
    /// Rises with each command under one challenge.
    pub sequence: u32,
    /// Words of a command, text of an answer, the controller's nonce in a challenge. At most
    /// [`MAX_TEXT`] bytes; what is longer is cut when it is sent.
    pub text: Vec<u8>,
}

impl Message {
    /// The datagram, sealed with the control key.
    pub fn encode(&self, key: &SealKey) -> Vec<u8> {
        let text = &self.text[..self.text.len().min(MAX_TEXT)];
        let mut out = Vec::with_capacity(HEAD + text.len() + SEAL);
        out.extend(MAGIC);
        let host = self.host.map_or(0, HostId::get);
        out.extend([VERSION, self.kind as u8, host, self.code.number()]);
        out.extend(self.nonce);
        out.extend(self.sequence.to_be_bytes());
        out.extend((text.len() as u16).to_be_bytes());
        out.extend(text);
        let seal = key.sign(&[&out]);
        out.extend(&seal[..SEAL]);
        out
    }

    /// The text as people read it: what is not UTF-8 or would steer a terminal is replaced.
    pub fn readable(&self) -> String {
        let steers = |letter: char| letter.is_control() && letter != '\n';
        String::from_utf8_lossy(&self.text).replace(steers, "\u{fffd}")
    }
}

/// The message in a datagram; `None` when it is not one, or not sealed with this key.
pub fn decode(datagram: &[u8], key: &SealKey) -> Option<Message> {
    if datagram.len() > HEAD + MAX_TEXT + SEAL {
        return None;
    }
    let (sealed, seal) = datagram.split_at_checked(datagram.len().checked_sub(SEAL)?)?;
    let (head, text) = sealed.split_at_checked(HEAD)?;
    let whole = head[..4] == MAGIC
        && head[4] == VERSION
        && usize::from(u16::from_be_bytes([head[28], head[29]])) == text.len();
    if !whole || !key.verify(&[sealed], seal) {
        return None;
    }
    let kind = match head[5] {
        1 => Kind::Hello,
        2 => Kind::Challenge,
        3 => Kind::Command,
        4 => Kind::Answer,
        _ => return None,
    };
    let host = match head[6] {
        0 => None,
        id => Some(HostId::new(id).ok()?),
    };
    Some(Message {
        kind,
        host,
        code: Code::of(head[7])?,
        nonce: head[8..24].try_into().ok()?,
        sequence: u32::from_be_bytes(head[24..28].try_into().ok()?),
        text: text.to_vec(),
    })
}
