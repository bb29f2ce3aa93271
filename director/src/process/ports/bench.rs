//! What one worker works at: its ports and the packet memory they share.

use std::sync::Arc;

use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use netio::bpf::Injector;
use netio::{Pool, Port};

use super::Card;
use super::ladder::{Step, rings};
use crate::config::Config;
use crate::steer::{KeySet, Mark};
use crate::worker::WorkerPort;

/// See the module.
pub(in crate::process) struct Bench {
    pub(in crate::process) ports: Vec<WorkerPort>,
    pub(in crate::process) pool: Pool,
    /// The core that serves the interrupt of its first queue, if there is one.
    pub(in crate::process) core: Option<usize>,
    /// Whether all its ports poll busily.
    pub(super) busy_polls: bool,
}

/// Frames for the worker itself: batches, answers, packets that wait for a neighbour.
const SPARE_FRAMES: u32 = 2048;

impl Bench {
    /// Packet memory for one of `workers` workers, without ports yet.
    pub(super) fn new(
        step: Step,
        config: &Config,
        cards: &[Card],
        workers: u32,
        chunk: u32,
    ) -> Result<Bench> {
        let ports: u32 = cards.iter().map(|card| card.queues.div_ceil(workers)).sum();
        let enough = ports * rings(config).chunks(step.bind()) + SPARE_FRAMES;
        let frames = config.frames.unwrap_or(enough);
        let pool = Pool::new(frames, chunk)
            .with_context(|| format!("no memory for {frames} frames of {chunk} bytes"))?;
        Ok(Bench { ports: Vec::new(), pool, core: None, busy_polls: false })
    }

    /// Adds a port.
    pub(super) fn add(
        &mut self,
        card: &Card,
        port: Box<dyn Port>,
        mark: Option<Mark>,
        keys: Option<Arc<ArcSwap<KeySet>>>,
    ) -> Result<()> {
        let injector = match mark {
            Some(mark) => Injector::with_mark(card.index, mark.0)?,
            None => Injector::new(card.index)?,
        };
        self.ports.push(WorkerPort {
            port,
            interface: card.index,
            upcall: Some(Box::new(move |frame| injector.inject(frame))),
            filter: keys.map(|keys| crate::worker::Filter { keys, mark }),
        });
        Ok(())
    }
}
