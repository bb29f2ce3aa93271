//! A port that loses, doubles, spoils and cuts what passes: a bad network, on purpose.
//!
//! For tests. Wraps any other port; the same seed makes the same faults.

use std::io;
use std::os::fd::BorrowedFd;

use crate::{Frame, Held, Pool, Port, PortCounters};

/// How often each fault happens, in frames of a thousand. All zero: none ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The frame is lost.
    pub drop: u16,
    /// The frame comes twice.
    pub duplicate: u16,
    /// One bit of the frame is flipped.
    pub corrupt: u16,
    /// The end of the frame is missing.
    pub truncate: u16,
}

/// A port with faults on the way in and on the way out.
#[derive(Debug)]
pub struct FaultInjector<P> {
    inner: P,
    on_receive: Faults,
    on_transmit: Faults,
    random: SplitMix,
    /// Frames received and not judged yet; empty between calls.
    waiting: Vec<Frame>,
    /// Frames received and judged: between calls, the doubles that were more than the caller's limit.
    received: Vec<Frame>,
    /// Frames to transmit, judged; empty between calls.
    outgoing: Vec<Frame>,
}

impl<P: Port> FaultInjector<P> {
    /// Wraps `inner`; `seed` decides which frames are hit.
    pub fn new(inner: P, seed: u64, on_receive: Faults, on_transmit: Faults) -> FaultInjector<P> {
        FaultInjector {
            inner,
            on_receive,
            on_transmit,
            random: SplitMix(seed),
            waiting: Vec::new(),
            received: Vec::new(),
            outgoing: Vec::new(),
        }
    }

    /// Changes the faults from now on.
    pub fn set_faults(&mut self, on_receive: Faults, on_transmit: Faults) {
        (self.on_receive, self.on_transmit) = (on_receive, on_transmit);
    }

    /// The port within.
    pub fn inner(&self) -> &P {
        &self.inner
    }
}

impl<P: Port> Port for FaultInjector<P> {
    fn describe(&self) -> String {
        format!("{}, with faults", self.inner.describe())
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize> {
        let room = limit.saturating_sub(self.received.len());
        let outcome = self.inner.receive(pool, &mut self.waiting, room);
        for frame in self.waiting.drain(..) {
            self.random.judge(pool, self.on_receive, frame, &mut self.received);
        }
        outcome?;
        let count = self.received.len().min(limit);
        batch.extend(self.received.drain(..count));
        Ok(count)
    }

    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()> {
        for frame in frames.drain(..) {
            self.random.judge(pool, self.on_transmit, frame, &mut self.outgoing);
        }
        self.inner.transmit(pool, &mut self.outgoing)
    }

    fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        self.inner.flush(pool)
    }

    fn completes_checksums(&self) -> bool {
        self.inner.completes_checksums()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.inner.readiness()
    }

    fn counters(&self) -> PortCounters {
        self.inner.counters()
    }

    fn held(&self) -> Held {
        let Held { receiving, transmitting } = self.inner.held();
        Held { receiving: receiving + self.received.len(), transmitting }
    }

    fn is_lively(&self) -> bool {
        self.inner.is_lively()
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): small, seeded, and the same on every machine.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be 0.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn hits(&mut self, per_thousand: u16) -> bool {
        per_thousand > 0 && self.below(1000) < usize::from(per_thousand)
    }

    /// Lets `frame` meet its fate: none, one or two frames are added to `judged`.
    fn judge(
        &mut self,
        pool: &mut Pool,
        faults: Faults,
        mut frame: Frame,
        judged: &mut Vec<Frame>,
    ) {
        if self.hits(faults.drop) {
            pool.release(frame);
            return;
        }
        if self.hits(faults.truncate) && !frame.is_empty() {
            let (start, len) = (frame.start(), self.below(frame.len()));
            pool.reshape(&mut frame, start, len);
            // A request for a checksum that is no longer there would only be refused.
            frame.partial = frame.partial.filter(|partial| {
                usize::from(partial.start) + usize::from(partial.offset) + 2 <= len
            });
        }
        if self.hits(faults.corrupt) && !frame.is_empty() {
            let bit = self.below(frame.len() * 8);
            pool.bytes_mut(&mut frame)[bit / 8] ^= 1 << (bit % 8);
        }
        if self.hits(faults.duplicate)
            && let Some(copy) = pool.duplicate(&frame)
        {
            judged.push(copy);
        }
        judged.push(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryPort;

    const ALWAYS: u16 = 1000;
    const NONE: Faults = Faults { drop: 0, duplicate: 0, corrupt: 0, truncate: 0 };

    /// What comes out of `count` packets of 64 zeros.
    fn through(seed: u64, faults: Faults, count: usize) -> Vec<Vec<u8>> {
        let mut pool = Pool::new(64, 2048).unwrap();
        let (port, wire) = MemoryPort::new("test", 1024);
        let mut port = FaultInjector::new(port, seed, faults, NONE);
        let mut batch = Vec::new();
        let mut seen = Vec::new();
        for _ in 0..count {
            assert!(wire.inject(&[0; 64], None));
        }
        while port.receive(&mut pool, &mut batch, 3).unwrap() > 0 || wire_has_more(&port) {
            assert!(batch.len() <= 3, "the limit is kept");
            for frame in batch.drain(..) {
                seen.push(pool.bytes(&frame).to_vec());
                pool.release(frame);
            }
        }
        assert_eq!(pool.available(), pool.capacity());
        seen
    }

    fn wire_has_more(port: &FaultInjector<MemoryPort>) -> bool {
        port.held().total() > 0
    }

    #[test]
    fn each_fault_does_what_its_name_says() {
        assert_eq!(through(1, NONE, 10), vec![vec![0; 64]; 10]);
        assert_eq!(through(1, Faults { drop: ALWAYS, ..NONE }, 10).len(), 0);
        let doubled = through(1, Faults { duplicate: ALWAYS, ..NONE }, 10);
        assert_eq!(doubled, vec![vec![0; 64]; 20]);
        for bytes in through(1, Faults { corrupt: ALWAYS, ..NONE }, 10) {
            assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        }
        for bytes in through(1, Faults { truncate: ALWAYS, ..NONE }, 10) {
            assert!(bytes.len() < 64);
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_faults() {
        let faults = Faults { drop: 0, duplicate: 100, corrupt: 300, truncate: 300 };
        assert_eq!(through(7, faults, 200), through(7, faults, 200));
        assert_ne!(through(7, faults, 200), through(8, faults, 200));
    }

    #[test]
    fn transmitted_frames_are_hit_too_and_no_chunk_is_lost() {
        let mut pool = Pool::new(8, 2048).unwrap();
        let (port, wire) = MemoryPort::new("test", 64);
        let faults = Faults { drop: 0, duplicate: ALWAYS, corrupt: 0, truncate: 0 };
        let mut port = FaultInjector::new(port, 1, NONE, faults);
        let mut frames = vec![pool.allocate().unwrap(), pool.allocate().unwrap()];
        port.transmit(&mut pool, &mut frames).unwrap();
        assert_eq!((frames.len(), wire.collect_all().len()), (0, 4));
        assert_eq!(pool.available(), pool.capacity());
    }
}
