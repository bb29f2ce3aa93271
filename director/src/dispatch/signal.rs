//! What a packet says to the state of its connection: read from the frame once, before anything is
//! looked up.

use forwarding::Headers;

use super::sctp::{self, Chunks, SctpState};
use super::state::State;
use super::tcp::{self, Direction};
use super::{SCTP, TCP};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// TCP: the flags.
    Tcp(u8),
    /// SCTP: the first chunks.
    Sctp(Chunks),
    /// UDP: it is there.
    Udp,
    /// Nothing, a later fragment or SCTP without a chunk: the state stays, the timer starts anew.
    Nothing,
}

impl Signal {
    /// The signal of a packet.
    pub fn read(frame: &[u8], headers: &Headers) -> Signal {
        match headers.protocol {
            TCP if headers.is_later_fragment() => Signal::Nothing,
            TCP => Signal::Tcp(headers.tcp_flags),
            SCTP if headers.is_later_fragment() => Signal::Nothing,
            SCTP => frame
                .get(headers.l4..headers.end)
                .and_then(Chunks::read)
                .map_or(Signal::Nothing, Signal::Sctp),
            _ => Signal::Udp,
        }
    }

    /// The state after it.
    pub fn next(self, direction: Direction, state: State) -> State {
        match self {
            Signal::Tcp(flags) => tcp::next(direction, state, flags),
            Signal::Sctp(chunks) => {
                let before = match state {
                    State::Sctp(state) => state,
                    _ => SctpState::None,
                };
                State::Sctp(sctp::next(direction, before, chunks.event()))
            }
            Signal::Udp => State::Udp,
            Signal::Nothing => state,
        }
    }

    /// Whether it begins a new connection in place of one that has ended.
    pub fn opens(self) -> bool {
        match self {
            Signal::Tcp(flags) => tcp::opens(flags),
            Signal::Sctp(chunks) => chunks.opens(),
            Signal::Udp | Signal::Nothing => false,
        }
    }

    /// Whether a packet without a connection may make one.
    pub fn may_be_scheduled(self) -> bool {
        match self {
            Signal::Tcp(flags) => tcp::may_be_scheduled(flags),
            Signal::Sctp(chunks) => chunks.may_be_scheduled(false),
            Signal::Udp => true,
            Signal::Nothing => false,
        }
    }
}
