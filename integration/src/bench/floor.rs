//! The cost of receiving and transmitting alone: a worker that decides nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use netio::{Frame, MemoryPort, Pool, Port, Wire};

/// Frames taken at a time: as many as a worker takes.
const BATCH: usize = 64;

/// A port, its packet memory, and nothing between in and out.
pub(super) struct Floor {
    /// Behind the same dispatch as a worker's.
    port: Box<dyn Port>,
    wire: Wire,
    pool: Pool,
    frames: Vec<Frame>,
}

impl Floor {
    pub(super) fn new() -> Result<Floor> {
        let (port, wire) = MemoryPort::new("floor", super::ROUND);
        let pool = Pool::new(1024, 2048)?;
        Ok(Floor { port: Box::new(port), wire, pool, frames: Vec::with_capacity(BATCH) })
    }

    /// How long these frames take.
    pub(super) fn time(&mut self, frames: &[Vec<u8>]) -> Result<Duration> {
        put(&self.wire, frames)?;
        let start = Instant::now();
        while self.port.receive(&mut self.pool, &mut self.frames, BATCH)? > 0 {
            self.port.transmit(&mut self.pool, &mut self.frames)?;
            self.port.flush(&mut self.pool)?;
        }
        let took = start.elapsed();
        take(&self.wire, frames.len())?;
        Ok(took)
    }
}

/// Puts frames on a wire.
pub(super) fn put(wire: &Wire, frames: &[Vec<u8>]) -> Result<()> {
    for frame in frames {
        ensure!(wire.inject(frame, None), "the wire holds fewer than {} frames", frames.len());
    }
    Ok(())
}

/// Takes what has come out, which must be as many frames as were put in.
pub(super) fn take(wire: &Wire, expected: usize) -> Result<()> {
    let mut sent = 0;
    while let Some(packet) = wire.collect() {
        wire.recycle(packet);
        sent += 1;
    }
    ensure!(sent == expected, "{sent} of {expected} packets were sent on: nothing to measure");
    Ok(())
}
