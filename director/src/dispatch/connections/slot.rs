//! A connection in 64 bytes: eight words, of which a packet of an established connection reads six
//! and writes one.
//!
//! ```text
//!   0  client's address, upper half         IPv4 stands in the lowest 32 bits
//!   1                    lower half
//!   2  address the client talks to, upper half
//!   3                               lower half
//!   4  client's port 16 | that other port 16 | server's port 16 | protocol 8 | kind 8
//!   5  binding 32 | when the wheel looks at it 32
//!   6  expires 32 | generation 20 | state 5 | packets 4 | no output 1 | active 1 | live 1
//!   7  neighbours in the wheel, or in the list of free slots: before 32 | behind 32
//! ```
//!
//! This file knows what is in the words, `place.rs` how they are read and written.
//!
//! Words 0 to 4, and the binding, stay as they are while the slot is live, and word 6 tells whether
//! it has been all the time: it is read before and after them, and its generation changes with
//! every new connection (a sequence lock). Word 6 is changed by compare and exchange, so two workers
//! with packets of one connection do not undo each other's work. Word 7 and the rest of word 5 are
//! the business of who holds the shard's lock.

use std::net::IpAddr;
use std::time::Duration;

use crate::dispatch::connection::Tuple;
use crate::dispatch::state::State;

/// Bits of the kind: the client's address is of IPv6; the other one is.
const CLIENT_V6: u64 = 1;
const PEER_V6: u64 = 2;
/// It is a persistence template.
const TEMPLATE: u64 = 4;
/// There is more to know of it, under the shard's lock.
const EXTRA: u64 = 8;
/// Its packets need more than a look at the slot.
const SLOW: u64 = 16;

/// What of word 4 names the connection.
const NAME: u64 = !(0xffff << 16 | EXTRA | SLOW);

/// Fractions of a second in which expiry is counted; it is rounded up. 32 bits of them are more
/// than eight years.
const TICK: Duration = Duration::from_nanos(62_500_000);

/// Packets are counted up to this.
pub(crate) const MANY: u8 = 15;

/// What of a connection stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) client: u128,
    pub(super) peer: u128,
    pub(super) ends: u64,
}

impl Name {
    /// The name of `tuple`.
    #[inline(always)]
    pub(super) fn of(tuple: &Tuple) -> Name {
        let (client, client_v6) = bits(tuple.client.0);
        let (peer, peer_v6) = bits(tuple.peer.0);
        let kind = if client_v6 { CLIENT_V6 } else { 0 }
            | if peer_v6 { PEER_V6 } else { 0 }
            | if tuple.template { TEMPLATE } else { 0 };
        let ends = u64::from(tuple.client.1) << 48
            | u64::from(tuple.peer.1) << 32
            | u64::from(tuple.protocol) << 8
            | kind;
        Name { client, peer, ends }
    }

    /// The name of a connection between two ends of one family, whose addresses are numbers.
    #[inline(always)]
    pub(super) fn of_bits(v6: bool, protocol: u8, client: (u128, u16), peer: (u128, u16)) -> Name {
        let kind = if v6 { CLIENT_V6 | PEER_V6 } else { 0 };
        let ends =
            u64::from(client.1) << 48 | u64::from(peer.1) << 32 | u64::from(protocol) << 8 | kind;
        Name { client: client.0, peer: peer.0, ends }
    }

    pub(super) fn with(self, server_port: u16, has_extra: bool, is_slow: bool) -> Name {
        let extra = if has_extra { EXTRA } else { 0 };
        let slow = if is_slow { SLOW } else { 0 };
        Name { ends: self.ends & NAME | u64::from(server_port) << 16 | extra | slow, ..self }
    }

    pub(super) fn tuple(&self) -> Tuple {
        Tuple {
            protocol: (self.ends >> 8) as u8,
            template: self.ends & TEMPLATE != 0,
            client: (address(self.client, self.ends & CLIENT_V6 != 0), (self.ends >> 48) as u16),
            peer: (address(self.peer, self.ends & PEER_V6 != 0), (self.ends >> 32) as u16),
        }
    }

    #[inline(always)]
    pub(super) fn server_port(&self) -> u16 {
        (self.ends >> 16) as u16
    }

    /// Address, as a number, and port that the client talks to.
    #[inline(always)]
    pub(super) fn peer_bits(&self) -> (u128, u16) {
        (self.peer, (self.ends >> 32) as u16)
    }

    pub(super) fn is_template(&self) -> bool {
        self.ends & TEMPLATE != 0
    }

    pub(super) fn has_extra(&self) -> bool {
        self.ends & EXTRA != 0
    }

    #[inline(always)]
    pub(super) fn is_slow(&self) -> bool {
        self.ends & SLOW != 0
    }

    /// Whether it names the same connection.
    #[inline(always)]
    pub(super) fn is(&self, other: &Name) -> bool {
        self.client == other.client
            && self.peer == other.peer
            && (self.ends ^ other.ends) & NAME == 0
    }

    /// Whether `answer`, whose peer is a server, comes over it, if the server is the right one: that
    /// only its binding knows.
    #[inline(always)]
    pub(super) fn may_be_answered_by(&self, answer: &Name) -> bool {
        const CLIENTS: u64 = 0xffff << 48 | 0xff << 8 | CLIENT_V6 | TEMPLATE;
        self.client == answer.client
            && (self.ends ^ answer.ends) & CLIENTS == 0
            && self.server_port() == (answer.ends >> 32) as u16
    }
}

fn bits(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), false),
        IpAddr::V6(v6) => (v6.to_bits(), true),
    }
}

fn address(bits: u128, is_v6: bool) -> IpAddr {
    match is_v6 {
        false => std::net::Ipv4Addr::from_bits(bits as u32).into(),
        true => std::net::Ipv6Addr::from_bits(bits).into(),
    }
}

/// What of a connection changes with its packets: word 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(pub(super) u64);

pub(super) const LIVE: u64 = 1;
const ACTIVE: u64 = 1 << 1;
const NO_OUTPUT: u64 = 1 << 2;
const PACKETS: u32 = 3;
const STATE: u32 = 7;
pub(super) const GENERATION: u32 = 12;
const EXPIRES: u32 = 32;
/// Everything that a packet may change.
pub(super) const CHANGING: u64 = !(LIVE | 0xf_ffff << GENERATION);

impl Moment {
    pub(super) fn new(
        state: State,
        expires: Duration,
        packets: u8,
        no_output: bool,
        active: bool,
    ) -> Moment {
        Moment(
            u64::from(ticks(expires)) << EXPIRES
                | u64::from(state.code()) << STATE
                | u64::from(packets.min(MANY)) << PACKETS
                | if no_output { NO_OUTPUT } else { 0 }
                | if active { ACTIVE } else { 0 },
        )
    }

    #[inline(always)]
    pub(super) fn is_live(self) -> bool {
        self.0 & LIVE != 0
    }

    #[inline(always)]
    pub(super) fn is_active(self) -> bool {
        self.0 & ACTIVE != 0
    }

    #[inline(always)]
    pub(super) fn has_no_output(self) -> bool {
        self.0 & NO_OUTPUT != 0
    }

    #[inline(always)]
    pub(super) fn packets(self) -> u8 {
        (self.0 >> PACKETS) as u8 & MANY
    }

    #[inline(always)]
    pub(super) fn state(self) -> State {
        State::of_code((self.0 >> STATE) as u8 & 31)
    }

    #[inline(always)]
    pub(super) fn expires(self) -> u32 {
        (self.0 >> EXPIRES) as u32
    }

    /// After one more packet in the same state.
    #[inline(always)]
    pub(super) fn renewed(self, expires: u32, is_from_client: bool) -> Moment {
        let more = is_from_client && self.packets() < MANY;
        let rest = self.0 & u64::from(u32::MAX) & !if is_from_client { 0 } else { NO_OUTPUT };
        Moment((u64::from(expires) << EXPIRES) | (rest + (u64::from(more) << PACKETS)))
    }

    pub(super) fn is_of_the_same_connection(self, other: Moment) -> bool {
        (self.0 ^ other.0) & !CHANGING == 0
    }
}

/// A time since start in the fractions in which expiry is counted, rounded up.
#[inline(always)]
pub(crate) fn ticks(time: Duration) -> u32 {
    (time.as_nanos() as u64).div_ceil(TICK.as_nanos() as u64) as u32
}

/// The time since start that so many of them are.
pub(crate) fn time(ticks: u32) -> Duration {
    TICK * ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::sctp::SctpState;

    fn tuple(client: &str, peer: &str) -> Tuple {
        Tuple {
            protocol: 6,
            template: false,
            client: (client.parse().unwrap(), 4000),
            peer: (peer.parse().unwrap(), 80),
        }
    }

    #[test]
    fn a_name_says_what_was_put_in_and_nothing_else_is_the_same() {
        let one = tuple("198.51.100.7", "192.0.2.10");
        let name = Name::of(&one).with(8080, true, true);
        assert_eq!((name.tuple(), name.server_port()), (one, 8080));
        assert!(name.has_extra() && name.is_slow() && name.is(&Name::of(&one)));
        for other in [
            tuple("198.51.100.8", "192.0.2.10"),
            tuple("198.51.100.7", "192.0.2.11"),
            tuple("::198.51.100.7", "192.0.2.10"),
            tuple("::198.51.100.7", "::192.0.2.10"),
            Tuple { protocol: 17, ..one },
            Tuple { template: true, ..one },
            Tuple { client: (one.client.0, 4001), ..one },
            Tuple { peer: (one.peer.0, 81), ..one },
        ] {
            assert_eq!(Name::of(&other).tuple(), other);
            assert!(!name.is(&Name::of(&other)), "{other:?}");
        }
    }

    #[test]
    fn every_state_and_time_comes_out_as_it_went_in() {
        let sctp = SctpState::ALL.map(State::Sctp);
        for state in State::PLAIN.into_iter().chain(sctp) {
            let moment = Moment::new(state, Duration::from_millis(900_001), 200, true, false);
            assert_eq!(moment.state(), state);
            assert_eq!((moment.packets(), moment.has_no_output()), (MANY, true));
            let expires = time(moment.expires());
            assert!((900_001..900_064).contains(&expires.as_millis()), "{expires:?}");
        }
    }
}
