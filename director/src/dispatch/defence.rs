//! Against floods of connections: `drop_entry`, `drop_packet` and `secure_tcp`, as
//! `update_defense_level` and `ip_vs_random_dropentry` have them.
//!
//! Each has a mode: 0 off; 1 automatic; 2 automatic and now active; 3 always. The kernel's
//! automatic modes watch free pages of memory. Here the scarce thing is room in the connection
//! table: it is low while fewer connections than `amemthresh` fit in.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Shared;
use super::connection::Connection;
use super::sctp::SctpState;
use super::settings::Setting;
use super::state::{State, Timeouts};

/// A connection that was idle for less is not removed.
const LEAST_IDLE: Duration = Duration::from_secs(60);

/// A connection with more packets than this is not removed.
const MOST_PACKETS: usize = 8;

/// What the modes come to at the moment.
#[derive(Debug, Default)]
pub struct Defence {
    drops_entries: AtomicBool,
    /// One of so many packets that would open a connection is dropped; 0 = none.
    drop_rate: AtomicU32,
    /// How many of them to go, the dropped one included.
    to_go: AtomicU32,
    lots: Mutex<Lots>,
}

impl Defence {
    /// The same rate and turn, apart from these.
    pub(super) fn fork(&self) -> Defence {
        Defence {
            drops_entries: AtomicBool::new(self.drops_entries.load(Relaxed)),
            drop_rate: AtomicU32::new(self.drop_rate.load(Relaxed)),
            to_go: AtomicU32::new(self.to_go.load(Relaxed)),
            lots: Mutex::default(),
        }
    }

    /// Whether this packet, which would open a connection, is one to be dropped.
    pub(super) fn drops_packet(&self) -> bool {
        let rate = self.drop_rate.load(Relaxed);
        if rate == 0 {
            return false;
        }
        let count = |to_go: u32| Some(if to_go > 1 { to_go - 1 } else { rate });
        // The closure always says what comes next.
        self.to_go.fetch_update(Relaxed, Relaxed, count).is_ok_and(|to_go| to_go <= 1)
    }
}

/// The next mode, and whether the defence is active.
fn level(mode: u32, is_low: bool) -> (u32, bool) {
    match mode {
        0 => (0, false),
        3.. => (3, true),
        _ if is_low => (2, true),
        _ => (1, false),
    }
}

impl Shared {
    /// Brings the defences up to date: once a second, and when a setting has changed.
    pub fn review_defence(&self) {
        let Shared { settings, defence, connections, .. } = self;
        let threshold = settings.get(Setting::Amemthresh);
        let room = u32::try_from(connections.room()).unwrap_or(u32::MAX);
        let is_low = room < threshold;
        let review = |setting| {
            let mode = settings.get(setting);
            let (next, is_active) = level(mode, is_low);
            if next != mode {
                settings.set(setting, next);
            }
            (next, is_active)
        };
        defence.drops_entries.store(review(Setting::DropEntry).1, Relaxed);
        self.timeouts.set_secure_tcp(review(Setting::SecureTcp).1);
        let rate = match review(Setting::DropPacket) {
            (_, false) => 0,
            (3, _) => settings.get(Setting::AmDroprate),
            _ => threshold / (threshold - room),
        };
        defence.drop_rate.store(rate, Relaxed);
    }

    /// Once a second: with `drop_entry` active, looks at one in 32 connections, by chance, and
    /// removes those that the table can do without.
    pub fn drop_entries(&self, now: Duration) {
        let Shared { defence, connections, timeouts, .. } = self;
        if !defence.drops_entries.load(Relaxed) {
            return;
        }
        let mut lots = defence.lots.lock().unwrap_or_else(PoisonError::into_inner);
        let Lots { state, to_go } = &mut *lots;
        connections.thin_out(
            || random(state),
            |connection| can_be_spared(connection, now, timeouts, to_go),
        );
    }
}

/// How the lots fall.
#[derive(Debug)]
struct Lots {
    /// Of the generator.
    state: u64,
    /// By the number of a connection's packets: how many such connections to go until one is
    /// removed, itself included.
    to_go: [u8; MOST_PACKETS + 1],
}

impl Default for Lots {
    fn default() -> Lots {
        Lots { state: 0x9e37_79b9_7f4a_7c15, to_go: [0; MOST_PACKETS + 1] }
    }
}

/// Marsaglia's xorshift64: nobody gains by guessing which connections are looked at.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Whether a connection that has been looked at goes: a template that nothing came of, a connection
/// that has hardly begun, or an established one that has been idle for a minute, when it is its
/// turn. What other connections depend on stays.
fn can_be_spared(
    connection: &Connection,
    now: Duration,
    timeouts: &Timeouts,
    to_go: &mut [u8; MOST_PACKETS + 1],
) -> bool {
    if connection.reprieve().is_some() {
        return false;
    }
    if connection.tuple.template {
        return !connection.is_assured();
    }
    match connection.state {
        State::SynRecv | State::SynAck => true,
        State::Sctp(SctpState::Init1 | SctpState::Init) => true,
        state @ (State::Established | State::Udp | State::Sctp(SctpState::Established)) => {
            let timeout = connection.service().policy.timeout(state, timeouts);
            let idle = (now + timeout).saturating_sub(connection.expires);
            idle >= LEAST_IDLE && is_its_turn(connection.packets().into(), to_go)
        }
        _ => false,
    }
}

/// Of the connections with `packets` packets one in so many goes; of those with none or more than
/// eight, none.
fn is_its_turn(packets: usize, to_go: &mut [u8; MOST_PACKETS + 1]) -> bool {
    let Some(left) = to_go.get_mut(packets).filter(|_| packets > 0) else {
        return false;
    };
    if *left > 1 {
        *left -= 1;
        return false;
    }
    *left = packets as u8;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_modes_follow_the_room_and_the_others_do_not() {
        for (mode, low, expected) in [
            (0, true, (0, false)),
            (1, false, (1, false)),
            (1, true, (2, true)),
            (2, true, (2, true)),
            (2, false, (1, false)),
            (3, false, (3, true)),
        ] {
            assert_eq!(level(mode, low), expected, "{mode} {low}");
        }
    }

    #[test]
    fn one_of_so_many_packets_is_dropped_the_first_of_them_at_once() {
        let defence = Defence::default();
        assert!(!defence.drops_packet());
        defence.drop_rate.store(3, Relaxed);
        let dropped: Vec<_> = (0..7).map(|_| defence.drops_packet()).collect();
        assert_eq!(dropped, [true, false, false, true, false, false, true]);
        defence.drop_rate.store(1, Relaxed);
        // What was to go is seen off first.
        let dropped: Vec<_> = (0..4).map(|_| defence.drops_packet()).collect();
        assert_eq!(dropped, [false, false, true, true]);
    }

    #[test]
    fn the_more_packets_the_rarer_its_turn() {
        let mut to_go = [0; MOST_PACKETS + 1];
        let turns =
            |packets, to_go: &mut _| (0..80).filter(|_| is_its_turn(packets, to_go)).count();
        assert_eq!(turns(1, &mut to_go), 80);
        assert_eq!(turns(8, &mut to_go), 10);
        assert_eq!(turns(0, &mut to_go), 0);
        assert_eq!(turns(9, &mut to_go), 0);
    }
}
