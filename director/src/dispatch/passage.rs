//! What a worker keeps at hand of each binding, in one place: all that a packet of an established
//! connection needs to know of it. Looked up anew in every breath in which there is such a packet.

use std::time::Duration;

use super::connections::{Binding, Bindings, ticks};
use super::established::{Exit, Exits};
use super::state::{State, Timeouts};
use super::transmitter::Transmitter;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// The breath in which it was looked up.
    breath: u64,
    /// How packets reach the server.
    pub(super) transmitter: Transmitter,
    /// Whether the server's address is of IPv6.
    pub(super) is_v6: bool,
    /// That address as a number.
    pub(super) bits: u128,
    /// Ticks that an established TCP connection lives.
    pub(super) established: u32,
    /// Ticks that a UDP connection lives.
    pub(super) udp: u32,
    /// Whether the server has failed, and its connections with it.
    pub(super) is_lost: bool,
    /// The way to the server, if it belongs to its service and the way is known.
    pub(super) exit: Option<Exit>,
}

/// Those of all bindings, by number.
#[derive(Debug, Default)]
pub(super) struct Passages {
    passages: Vec<Option<Passage>>,
    breath: u64,
}

impl Passages {
    /// Another breath has begun; there are bindings with numbers below `len`.
    pub(super) fn refresh(&mut self, len: usize) {
        self.breath += 1;
        if len > self.passages.len() {
            self.passages.resize(len, None);
        }
    }

    /// That of binding number `id`, as it is in this breath.
    #[inline(always)]
    pub(super) fn get(
        &mut self,
        id: u32,
        bindings: &Bindings,
        timeouts: &Timeouts,
        exits: &mut impl Exits,
    ) -> Option<&Passage> {
        let breath = self.breath;
        let place = self.passages.get_mut(id as usize)?;
        if place.as_ref().is_none_or(|passage| passage.breath != breath) {
            *place = Some(Passage::of(bindings.get(id)?, breath, timeouts, exits));
        }
        place.as_ref()
    }
}

impl Passage {
    #[cold]
    fn of(binding: &Binding, breath: u64, timeouts: &Timeouts, exits: &mut impl Exits) -> Passage {
        let ticks = |state| {
            let seconds = binding.service.policy.seconds(state, timeouts);
            seconds.saturating_mul(ticks(Duration::from_secs(1)))
        };
        let is_available = binding.server.is_available();
        Passage {
            breath,
            transmitter: binding.transmitter,
            is_v6: binding.address.is_ipv6(),
            bits: binding.address_bits(),
            established: ticks(State::Established),
            udp: ticks(State::Udp),
            is_lost: binding.server.is_lost(),
            exit: if is_available { exits.to_server(binding) } else { None },
        }
    }
}
