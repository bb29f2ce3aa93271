//! Who has to go when the table is full.
//!
//! First what is closing, then what has hardly begun, then what has been idle longest; never an
//! established connection that is in use. Looking at all of them for each would take too long, so
//! some sixty are looked at, and the next time the next ones: which of them is oldest is nearly
//! which of all is, as with the approximate eviction of Redis.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::place::{Place, Seen};
use super::slot::time;
use super::{Connections, SHARDS};
use crate::dispatch::connection::Connection;
use crate::dispatch::sctp::SctpState;
use crate::dispatch::state::{State, Timeouts};

/// Connections looked at for one that has to go.
const LOOKED_AT: u32 = 64;

/// The best of them that are tried: on some, others depend.
const TRIED: usize = 4;

/// A connection that has been idle for less is in use.
const LEAST_IDLE: Duration = Duration::from_secs(60);

/// How badly a connection is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// Its server has failed.
    None,
    Closing,
    Embryonic,
    Idle,
}

impl Need {
    /// That of a connection.
    fn of_one(connection: &Connection, idle: Duration) -> Option<Need> {
        match connection.server().is_lost() {
            true => Some(Need::None),
            false => Need::of(connection.state, idle),
        }
    }

    /// That of a connection in this state, idle for so long; `None`: it stays.
    fn of(state: State, idle: Duration) -> Option<Need> {
        use SctpState as Sctp;
        Some(match state {
            State::FinWait
            | State::TimeWait
            | State::Close
            | State::CloseWait
            | State::LastAck
            | State::Sctp(
                Sctp::ShutdownSent
                | Sctp::ShutdownReceived
                | Sctp::ShutdownAckSent
                | Sctp::Rejected
                | Sctp::Closed,
            ) => Need::Closing,
            State::Established | State::Udp | State::Sctp(Sctp::Established) => {
                return (idle >= LEAST_IDLE).then_some(Need::Idle);
            }
            _ => Need::Embryonic,
        })
    }
}

/// One that could go: how badly it is needed, when it was last used, where it is.
type Candidate = (Need, Duration, usize, u32);

impl Connections {
    /// Removes a connection that can be spared best. False when none can.
    pub fn make_room(&self, now: Duration, timeouts: &Timeouts) -> bool {
        let mut best: [Option<Candidate>; TRIED] = [None; TRIED];
        let start = self.hand.fetch_add(LOOKED_AT, Relaxed);
        let mut left = LOOKED_AT;
        for step in 0..SHARDS {
            let shard = (start as usize / LOOKED_AT as usize + step) % SHARDS;
            let used = self.used_of(shard);
            let first = start.wrapping_mul(0x9e37_79b9) % used.max(1);
            for place in 0..used.min(left) {
                let slot = (first + place) % used;
                let Some(seen) = self.arena.get(shard, slot).and_then(Place::look) else {
                    continue;
                };
                if let Some((need, since)) = self.need(&seen, now, timeouts) {
                    keep(&mut best, (need, since, shard, slot));
                }
            }
            left -= used.min(left);
            if left == 0 {
                break;
            }
        }
        best.into_iter().flatten().any(|(need, _, shard, slot)| {
            self.evict(shard, slot, |connection| {
                let idle = idle(connection, now, timeouts);
                // It may have become another one since.
                let is_as_seen =
                    connection.tuple.template || Need::of_one(connection, idle) == Some(need);
                let is_template_in_use = connection.tuple.template
                    && connection.is_assured()
                    && !connection.server().is_lost();
                is_as_seen && !is_template_in_use && connection.reprieve().is_none()
            })
        })
    }

    /// How badly a connection is needed, and when it was last used.
    fn need(&self, seen: &Seen, now: Duration, timeouts: &Timeouts) -> Option<(Need, Duration)> {
        let expires = time(seen.moment.expires());
        let bound = self.bindings.newest();
        let binding = bound.get(seen.binding)?;
        if binding.server.is_lost() {
            return Some((Need::None, expires));
        }
        if seen.name.is_template() {
            return Some((Need::Embryonic, expires));
        }
        let state = seen.moment.state();
        let timeout = binding.service.policy.timeout(state, timeouts);
        let since = expires.saturating_sub(timeout);
        Some((Need::of(state, now.saturating_sub(since))?, since))
    }

    fn evict(&self, shard: usize, slot: u32, goes: impl FnOnce(&Connection) -> bool) -> bool {
        let mut locked = self.shards[shard].lock(self);
        if locked.with(slot, |connection| goes(connection)) != Some(true) {
            return false;
        }
        let Some(connection) = locked.remove(slot) else { return false };
        self.gone(&connection);
        true
    }
}

/// How long a connection has been idle.
fn idle(connection: &Connection, now: Duration, timeouts: &Timeouts) -> Duration {
    let timeout = connection.service().policy.timeout(connection.state, timeouts);
    (now + timeout).saturating_sub(connection.expires)
}

/// Keeps the best few, best first.
fn keep(best: &mut [Option<Candidate>; TRIED], candidate: Candidate) {
    let mut candidate = Some(candidate);
    for place in best {
        if place.is_none() || candidate < *place {
            std::mem::swap(place, &mut candidate);
        }
        if candidate.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_go_before_the_embryonic_and_those_before_the_idle() {
        let long = Duration::from_secs(600);
        let need = |state| Need::of(state, long);
        assert!(need(State::FinWait) < need(State::SynRecv));
        assert!(need(State::SynRecv) < need(State::Established));
        assert_eq!(Need::of(State::Established, Duration::from_secs(59)), None);
        assert_eq!(Need::of(State::Udp, LEAST_IDLE), Some(Need::Idle));
        for state in State::PLAIN.into_iter().chain(SctpState::ALL.map(State::Sctp)) {
            assert!(need(state).is_some(), "{state:?}");
        }
    }

    #[test]
    fn the_best_few_are_kept_the_oldest_first() {
        let mut best = [None; TRIED];
        let at = |seconds| Duration::from_secs(seconds);
        for (need, since) in [
            (Need::Idle, 1),
            (Need::Closing, 9),
            (Need::Embryonic, 3),
            (Need::Closing, 2),
            (Need::Idle, 0),
            (Need::Embryonic, 2),
        ] {
            keep(&mut best, (need, at(since), 0, 0));
        }
        let order: Vec<_> = best.iter().flatten().map(|it| (it.0, it.1.as_secs())).collect();
        assert_eq!(
            order,
            [(Need::Closing, 2), (Need::Closing, 9), (Need::Embryonic, 2), (Need::Embryonic, 3)]
        );
    }
}
