//! What a packet says to the state of its connection: read from the frame once, before anything is
//! looked up.

use forwarding::Headers;

use super::sctp::{self, Chunks, Event, SctpState};
use super::settings::{Setting, Settings};
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

    /// The state after it; `secure`: TCP's by the table of `secure_tcp`.
    pub fn next(self, secure: bool, direction: Direction, state: State) -> State {
        match self {
            Signal::Tcp(flags) => tcp::next(secure, direction, state, flags),
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

    /// Whether it ends its connection at once.
    pub fn resets(self) -> bool {
        match self {
            Signal::Tcp(flags) => tcp::resets(flags),
            Signal::Sctp(chunks) => chunks.event() == Event::Abort,
            Signal::Udp | Signal::Nothing => false,
        }
    }

    /// Whether a packet without a connection may make one: `sloppy_tcp` and `sloppy_sctp` take more.
    pub fn may_be_scheduled(self, settings: &Settings) -> bool {
        match self {
            Signal::Tcp(flags) => tcp::may_be_scheduled(flags, settings.is_on(Setting::SloppyTcp)),
            Signal::Sctp(chunks) => chunks.may_be_scheduled(settings.is_on(Setting::SloppySctp)),
            Signal::Udp => true,
            Signal::Nothing => false,
        }
    }
}
