//! Smooth weighted round robin (swrr): as many turns per cycle as the weight, spread evenly.
//!
//! Not in the kernel, whose wrr gives a heavy server its turns in runs. The rule is that of nginx's
//! upstreams: each server is owed its weight more with every choice, who is owed most is chosen,
//! and pays back what all were given. Weights 5, 1, 1 give A A B A C A A.
//!
//! What a server is owed is kept when weights change, servers come and go or fill up: it is counted
//! in turns, and a turn costs the sum of all weights, so it is scaled when that sum changes. Nobody
//! gets a run of turns because of a change. A newcomer, and a server that comes back from weight 0
//! or from being full, begins with what it had: at most a turn or two.

use crate::{Change, Entry, Key, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "swrr",
    summary: "smooth weighted round robin: turns in proportion to weight, evenly spread",
    create: |_| Box::new(SmoothRoundRobin::default()),
};

/// A unit of weight is so many of these: what scaling cuts off then does not add up.
const UNIT: i128 = 1 << 16;

#[derive(Debug, Default)]
struct SmoothRoundRobin {
    /// What each server of the list is owed, in weight times [`UNIT`].
    owed: Vec<i128>,
    /// What a turn cost when `owed` was last counted: the weights of all eligible servers.
    turn: i128,
}

impl SmoothRoundRobin {
    /// Counts what is owed in turns of another cost.
    fn scale(&mut self, turn: i128) {
        if self.turn > 0 && self.turn != turn {
            for owed in &mut self.owed {
                // Whole turns first: neither product can overflow, whatever the weights.
                *owed = *owed / self.turn * turn + *owed % self.turn * turn / self.turn;
            }
        }
        self.turn = turn;
    }
}

impl Scheduler for SmoothRoundRobin {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        match change {
            Change::Bound => self.owed.clear(),
            Change::Added => self.owed.insert(0, 0),
            Change::Removed { index, .. } if index < self.owed.len() => {
                self.owed.remove(index);
            }
            Change::Removed { .. } | Change::Edited { .. } | Change::Replaced { .. } => {}
        }
        self.owed.resize(servers.len(), 0);
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], _: &Key, _: Duration) -> Option<usize> {
        self.owed.resize(servers.len(), 0);
        let shares = || {
            servers.iter().map(|server| match server.is_overloaded() {
                false => i128::from(server.weight().max(0)) * UNIT,
                true => 0,
            })
        };
        let turn = shares().sum();
        self.scale(turn);
        let mut most: Option<usize> = None;
        // Weights are read again and may be others by now: then a turn is a little off its cost.
        for (index, share) in shares().enumerate().filter(|&(_, share)| share > 0) {
            self.owed[index] += share;
            if most.is_none_or(|most| self.owed[index] > self.owed[most]) {
                most = Some(index);
            }
        }
        let chosen = most?;
        self.owed[chosen] -= turn;
        Some(chosen)
    }

    fn fork(&self, _: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(SmoothRoundRobin { owed: self.owed.clone(), turn: self.turn })
    }

    fn figure(&self, index: usize, server: &Server) -> String {
        let owed = self.owed.get(index).map_or(0.0, |owed| *owed as f64 / UNIT as f64);
        format!("owed {owed:.2} and weight {}", server.weight())
    }
}

#[cfg(test)]
mod tests;
