//! A capture under way: the packets that workers have copied for it, as pcapng with what became of
//! each.
//!
//! Knows taps, connections and services. Must not know who reads it: `control/capture.rs` does.

mod comment;
mod pcapng;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;

use crate::control::api::PortView;
use crate::dispatch::Shared;
use crate::dispatch::service::Services;
use crate::worker::WorkerStatus;
use crate::worker::tap::{MOST_TAPS, Outcome, Record, Tap, Wanted};
use comment::Commentator;
use pcapng::Blocks;

/// How long a worker may still look at a tap that has been removed: longer than it sleeps.
const AFTERLIFE: Duration = Duration::from_secs(1);

/// Too many captures run already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MOST_TAPS} captures run already: end one, or try again later")]
pub struct Busy;

/// See the module. It ends when this is dropped.
pub struct Feed {
    workers: Vec<Watched>,
    interfaces: Vec<PortView>,
    commentator: Commentator,
    blocks: Blocks,
    /// Packets that have been handed out, as they arrived.
    packets: u64,
    /// How many were lost when that was last told.
    told_lost: u64,
    snaplen: usize,
}

/// A worker that is watched.
struct Watched {
    status: Arc<WorkerStatus>,
    tap: Arc<Tap>,
    /// Numbers of its ports among all.
    ports: Vec<u32>,
    ring: Vec<u8>,
}

impl Feed {
    /// Begins a capture of what is `wanted` at all workers, whose time began at `epoch`; `ports` are those of
    /// all of them.
    ///
    /// # Errors
    /// When there are too many.
    pub fn begin(
        statuses: &[Arc<WorkerStatus>],
        ports: &[PortView],
        shared: &Arc<Shared>,
        services: &Arc<ArcSwap<Services>>,
        epoch: Instant,
        wanted: &Wanted,
    ) -> Result<Feed, Busy> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = clock.saturating_sub(epoch.elapsed());
        let mut feed = Feed {
            workers: Vec::new(),
            interfaces: ports.to_vec(),
            commentator: Commentator::new(shared.clone(), services.clone()),
            blocks: Blocks::default(),
            packets: 0,
            told_lost: 0,
            snaplen: wanted.snaplen,
        };
        for (worker, status) in statuses.iter().enumerate() {
            let tap = Arc::new(Tap::new(wanted.clone(), start));
            // What has been added before is removed with the feed.
            if !status.taps.add(tap.clone()) {
                return Err(Busy);
            }
            let own = ports.iter().enumerate().filter(|(_, port)| port.worker as usize == worker);
            let ports = own.filter_map(|(number, _)| u32::try_from(number).ok()).collect();
            feed.workers.push(Watched { status: status.clone(), tap, ports, ring: Vec::new() });
        }
        Ok(feed)
    }

    /// What a file begins with: a section, and each port as an interface.
    pub fn head(&mut self, text: &mut Vec<u8>) {
        self.blocks.head(&self.interfaces, self.snaplen, text);
    }

    /// Appends the packets that have come since the last time, in the order of their times; `most` of
    /// them at most, not counting those that leave. Whether there were any.
    pub fn packets(&mut self, most: u64, text: &mut Vec<u8>) -> bool {
        for worker in &mut self.workers {
            worker.tap.take(&mut worker.ring);
        }
        let mut records: Vec<(u32, Record<'_>)> = Vec::new();
        for worker in &self.workers {
            let mut rest = &worker.ring[..];
            while let Some((record, next)) = Record::read(rest) {
                let port = worker.ports.get(usize::from(record.port)).copied().unwrap_or(0);
                records.push((port, record));
                rest = next;
            }
        }
        records.sort_by_key(|(_, record)| record.time);
        let mut left = most;
        for (port, record) in &records {
            let leaves = matches!(record.outcome, Outcome::Left(_) | Outcome::Own);
            if left == 0 && !leaves {
                break;
            }
            if !leaves {
                left -= 1;
                self.packets += 1;
            }
            let comment = self.commentator.comment(record);
            self.blocks.packet(*port, record, leaves, &comment, text);
        }
        !records.is_empty()
    }

    /// Appends how many packets there were, and how many were lost.
    pub fn statistics(&mut self, text: &mut Vec<u8>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.told_lost = self.lost();
        self.blocks.statistics(now, self.packets, self.told_lost, text);
    }

    /// Whether packets were lost since [`statistics`](Feed::statistics) said how many.
    pub fn has_lost_more(&self) -> bool {
        self.lost() > self.told_lost
    }

    /// Packets that were handed out, as they arrived.
    pub fn count(&self) -> u64 {
        self.packets
    }

    /// Packets that found no room, because they came faster than they were read.
    pub fn lost(&self) -> u64 {
        self.workers.iter().map(|worker| worker.tap.lost()).sum()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let taps = self.workers.drain(..).map(|worker| {
            let before = worker.status.taps.remove(&worker.tap);
            (before, worker.tap)
        });
        let taps: Vec<_> = taps.collect();
        // A worker that were the last to drop a ring would give back its memory in a breath.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(AFTERLIFE).await;
                drop(taps);
            });
        }
    }
}

#[cfg(test)]
mod tests;
