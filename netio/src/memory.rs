//! A port without a kernel: packets that a program puts in and takes out.
//!
//! For tests, benches and the simulator. The frames of each end live in that end's own pool, so
//! bytes are copied across. Buffers are used again: once warm, nothing is allocated per packet.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Frame, HEADROOM, Held, PartialChecksum, Pool, Port, PortCounters};

/// A packet on its way between two ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// From the Ethernet header on.
    pub bytes: Vec<u8>,
    /// The checksum that its sender left to be completed.
    pub partial: Option<PartialChecksum>,
}

/// One direction: a queue, and buffers to use again.
#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<Packet>,
    spare: Vec<Vec<u8>>,
    capacity: usize,
}

impl Lane {
    /// `false` when there is no place left.
    fn put(&mut self, bytes: &[u8], partial: Option<PartialChecksum>) -> bool {
        if self.queue.len() >= self.capacity {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.queue.push_back(Packet { bytes: buffer, partial });
        true
    }
}

type Shared = Arc<Mutex<Lane>>;

fn lane(capacity: usize) -> Shared {
    Arc::new(Mutex::new(Lane { capacity, ..Lane::default() }))
}

fn lock(lane: &Shared) -> MutexGuard<'_, Lane> {
    // A queue of packets is sound whatever its other holder was doing when it panicked.
    lane.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A port whose other end is another one, or a [`Wire`].
#[derive(Debug)]
pub struct MemoryPort {
    name: String,
    inbound: Shared,
    outbound: Shared,
    counters: PortCounters,
}

/// The far end of a [`MemoryPort`], for a program that plays the network.
#[derive(Debug)]
pub struct Wire {
    to_port: Shared,
    from_port: Shared,
}

impl MemoryPort {
    /// A port and the wire that it is plugged into. Each direction holds up to `capacity` packets.
    pub fn new(name: impl Into<String>, capacity: usize) -> (MemoryPort, Wire) {
        let (inbound, outbound) = (lane(capacity), lane(capacity));
        let wire = Wire { to_port: Arc::clone(&inbound), from_port: Arc::clone(&outbound) };
        (MemoryPort::over(name.into(), inbound, outbound), wire)
    }

    /// Two ports plugged into each other, each direction with up to `capacity` packets on its way.
    pub fn pair(capacity: usize) -> (MemoryPort, MemoryPort) {
        let (there, back) = (lane(capacity), lane(capacity));
        let left = MemoryPort::over("left".into(), Arc::clone(&back), Arc::clone(&there));
        (left, MemoryPort::over("right".into(), there, back))
    }

    fn over(name: String, inbound: Shared, outbound: Shared) -> MemoryPort {
        MemoryPort { name, inbound, outbound, counters: PortCounters::default() }
    }
}

impl Wire {
    /// Sends a packet to the port. `false` when its queue is full.
    pub fn inject(&self, bytes: &[u8], partial: Option<PartialChecksum>) -> bool {
        lock(&self.to_port).put(bytes, partial)
    }

    /// Takes the oldest packet that the port has transmitted.
    pub fn collect(&self) -> Option<Packet> {
        lock(&self.from_port).queue.pop_front()
    }

    /// Takes all packets that the port has transmitted, oldest first.
    pub fn collect_all(&self) -> Vec<Packet> {
        lock(&self.from_port).queue.drain(..).collect()
    }

    /// Gives a packet's buffer back, for benches that must not allocate.
    pub fn recycle(&self, packet: Packet) {
        lock(&self.from_port).spare.push(packet.bytes);
    }
}

impl Port for MemoryPort {
    fn describe(&self) -> String {
        format!("{}, memory", self.name)
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize> {
        let mut lane = lock(&self.inbound);
        let mut received = 0;
        while received < limit && !lane.queue.is_empty() {
            // Out of chunks: what is queued waits, as it would in a card's ring.
            let Some(mut frame) = pool.allocate() else {
                break;
            };
            let Some(packet) = lane.queue.pop_front() else {
                pool.release(frame);
                break;
            };
            if place(pool, &mut frame, &packet.bytes) {
                frame.partial = packet.partial;
                self.counters.received += 1;
                self.counters.received_bytes += packet.bytes.len() as u64;
                batch.push(frame);
                received += 1;
            } else {
                self.counters.receive_dropped += 1;
                pool.release(frame);
            }
            lane.spare.push(packet.bytes);
        }
        Ok(received)
    }

    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()> {
        let mut lane = lock(&self.outbound);
        for frame in frames.drain(..) {
            if lane.put(pool.bytes(&frame), frame.partial) {
                self.counters.transmitted += 1;
                self.counters.transmitted_bytes += frame.len() as u64;
            } else {
                self.counters.transmit_dropped += 1;
            }
            pool.release(frame);
        }
        Ok(())
    }

    fn flush(&mut self, _pool: &mut Pool) -> io::Result<()> {
        Ok(())
    }

    /// The partiality is passed on with the packet.
    fn completes_checksums(&self) -> bool {
        true
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> PortCounters {
        self.counters
    }

    fn held(&self) -> Held {
        Held::default()
    }
}

/// Writes `bytes` into an empty frame, after the headroom. `false` when they do not fit.
pub(crate) fn place(pool: &mut Pool, frame: &mut Frame, bytes: &[u8]) -> bool {
    let start = HEADROOM as usize;
    if bytes.len() > pool.chunk_size() - start {
        return false;
    }
    pool.reshape(frame, start, bytes.len());
    pool.bytes_mut(frame).copy_from_slice(bytes);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_cross_a_pair_in_order_with_their_partial_checksums() {
        let (mut left, mut right) = MemoryPort::pair(8);
        let (mut here, mut there) = (Pool::new(8, 2048).unwrap(), Pool::new(8, 2048).unwrap());
        let partial = Some(PartialChecksum { start: 34, offset: 6 });
        let mut frames = Vec::new();
        for number in 0..3 {
            let mut frame = here.allocate().unwrap();
            assert!(place(&mut here, &mut frame, &[number; 60]));
            frame.partial = partial;
            frames.push(frame);
        }
        left.transmit(&mut here, &mut frames).unwrap();
        assert_eq!((frames.len(), here.available()), (0, 8), "all chunks are back");
        let mut batch = Vec::new();
        assert_eq!(right.receive(&mut there, &mut batch, 2).unwrap(), 2);
        assert_eq!(right.receive(&mut there, &mut batch, 2).unwrap(), 1);
        for (number, frame) in batch.drain(..).enumerate() {
            assert_eq!(there.bytes(&frame), [number as u8; 60]);
            assert_eq!(frame.partial, partial);
            there.release(frame);
        }
        assert_eq!((left.counters().transmitted, right.counters().received_bytes), (3, 180));
    }

    #[test]
    fn a_full_queue_drops_and_counts_on_the_side_of_the_sender() {
        let (mut port, wire) = MemoryPort::new("test", 1);
        let mut pool = Pool::new(2, 2048).unwrap();
        let mut frames = vec![pool.allocate().unwrap(), pool.allocate().unwrap()];
        port.transmit(&mut pool, &mut frames).unwrap();
        let counters = port.counters();
        assert_eq!((counters.transmitted, counters.transmit_dropped), (1, 1));
        assert_eq!(wire.collect_all().len(), 1);
        assert_eq!(pool.available(), 2);
        assert!(wire.inject(&[1; 60], None));
        assert!(!wire.inject(&[2; 60], None));
    }

    #[test]
    fn packets_wait_while_the_pool_is_empty_and_too_large_ones_are_dropped() {
        let (mut port, wire) = MemoryPort::new("test", 4);
        let mut pool = Pool::new(1, 2048).unwrap();
        let mut batch = vec![pool.allocate().unwrap()];
        assert!(wire.inject(&[0; 1793], None) && wire.inject(&[1; 1792], None));
        assert_eq!(port.receive(&mut pool, &mut batch, 64).unwrap(), 0);
        assert_eq!(port.counters().receive_dropped, 0);
        batch.drain(..).for_each(|frame| pool.release(frame));
        assert_eq!(port.receive(&mut pool, &mut batch, 64).unwrap(), 1);
        assert_eq!(port.counters().receive_dropped, 1);
        assert_eq!(pool.bytes(&batch[0]), [1; 1792]);
        batch.drain(..).for_each(|frame| pool.release(frame));
    }
}
