//! Weighted round robin (wrr): as many turns per cycle as the weight, heavy servers first.
//!
//! Follows `ip_vs_wrr.c`. The list is walked again and again with a falling bar, and a server is
//! taken when its weight reaches the bar. The bar starts at the largest weight and falls by the
//! weights' greatest common divisor, the *step*, at the end of each walk. It is kept `step - 1`
//! lower than that, so that the last walk of a cycle is at 1: a server whose weight has just been
//! set below the step is then still found.
//!
//! Weights 4, 3, 2 give A A B A B C A B C: runs of the heavy server, not an even mixture.

use crate::remembered::{Remembered, after};
use crate::weight::{greatest_common_divisor, weight_words};
use crate::{Change, Entry, Key, Scheduler, Server, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "wrr",
    summary: "weighted round robin: turns in proportion to weight",
    create: |_| Box::new(WeightedRoundRobin::default()),
};

#[derive(Debug, Default)]
struct WeightedRoundRobin {
    /// The server chosen last; `None` = before the head of the list.
    cursor: Option<Remembered>,
    /// The weight that is needed now (`cw`).
    bar: i64,
    /// Where the bar starts each cycle (`mw`); 0 when no server has a weight.
    top: i64,
    /// By how much the bar falls (`di`); at least 1.
    step: i64,
}

impl Scheduler for WeightedRoundRobin {
    fn changed(&mut self, servers: &[Arc<Server>], change: Change) -> Result<(), TooManyServers> {
        let weights = || servers.iter().map(|server| server.weight());
        self.cursor = None;
        self.step = i64::from(greatest_common_divisor(weights()).max(1));
        let heaviest = i64::from(weights().max().unwrap_or(0).max(0));
        self.top = heaviest - (self.step - 1);
        if change == Change::Bound || self.bar > self.top || self.bar == 0 {
            self.bar = self.top;
        } else if self.step > 1 {
            self.bar = self.bar / self.step * self.step + 1;
        }
        Ok(())
    }

    fn choose(&mut self, servers: &[Arc<Server>], _: &Key, _: Duration) -> Option<usize> {
        if self.top == 0 {
            return None;
        }
        let cursor = self.cursor.and_then(|cursor| cursor.find(servers));
        let mut from = cursor.map_or(0, |index| index + 1);
        // Looked for only when a walk has found nobody: that is once in a walk, not once in a choice.
        let mut heaviest = None;
        let mut lowest_walk = false;
        let mut restarted = false;
        let mut stop = None;
        loop {
            // A failed search also moves the cursor: before the head, or to where it stopped.
            self.cursor = None;
            for (index, server) in servers.iter().enumerate().skip(from) {
                let taken = !server.is_overloaded() && i64::from(server.weight()) >= self.bar;
                if taken || stop == Some(index) {
                    self.cursor = Remembered::at(servers, index);
                    return taken.then_some(index);
                }
            }
            from = 0;
            self.bar -= self.step;
            if self.bar <= 0 {
                self.bar = self.top;
                // All servers have been walked at the lowest bar: in full by the walk just ended,
                // or because the search began before the head.
                if lowest_walk || cursor.is_none() {
                    return None;
                }
                restarted = true;
            }
            let heaviest = *heaviest.get_or_insert_with(|| heaviest_available(servers));
            self.bar = skip_idle_walks(self.bar, self.step, heaviest);
            lowest_walk = self.bar <= self.step;
            if lowest_walk && restarted {
                // The first walk was at the lowest bar, but only from the cursor on; this one
                // looks at the servers up to the cursor.
                stop = cursor;
            }
        }
    }

    fn fork(&self, _: &[Arc<Server>], _: &Key) -> Box<dyn Scheduler> {
        Box::new(WeightedRoundRobin { ..*self })
    }

    fn figure(&self, _: usize, server: &Server) -> String {
        weight_words(server)
    }

    fn bearings(&self, servers: &[Arc<Server>], _: &Key) -> String {
        let (after, bar, top) = (after(self.cursor, servers), self.bar, self.top);
        format!("{after}, with a weight of at least {bar} (from {top} down)")
    }
}

/// The largest weight that is not overloaded, 0 when there is none.
fn heaviest_available(servers: &[Arc<Server>]) -> i64 {
    let available = servers.iter().filter(|server| !server.is_overloaded());
    available.map(|server| i64::from(server.weight())).max().unwrap_or(0)
}

/// The bar after all full walks that cannot find a server, the lowest excepted; that is always at 1.
///
/// The kernel makes these walks, up to two billion of them when a very heavy server is overloaded.
/// They have no other effect than lowering the bar.
fn skip_idle_walks(bar: i64, step: i64, heaviest: i64) -> i64 {
    let walks = ((bar - heaviest + step - 1) / step).max(0);
    (bar - walks * step).max(1)
}

#[cfg(test)]
mod tests;
