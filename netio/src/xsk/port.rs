//! A [`Port`] over one AF_XDP socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::open::Opened;
use super::socket::{self, Wakeup};
use super::{Bind, XskOptions};
use crate::{Frame, Held, OpenError, Pool, Port, PortCounters};

/// Wakeups in a row that free no place in the TX ring, after which we stop asking.
const PATIENCE: u32 = 8;

/// How many calls of `flush` there are between looks at whether the interface still exists: poll(2)
/// does not tell. An idle worker flushes ten times a second, and must not sit there for long.
const FLUSHES_PER_CHECK: u32 = 16;

/// After so many looks in vain, of which each has had the kernel look at the card, a port that polls
/// busily is at rest: about a tenth of a millisecond after its last packet.
const LOOKS: u32 = 128;

/// One queue of one interface over AF_XDP.
///
/// All ports of a worker are opened on the worker's one [`Pool`] and are used with that pool only.
///
/// Dropping it unmaps the rings and closes the socket, but the chunks that were in its rings are
/// lost to the pool; [`XskPort::close`] gives them back.
#[derive(Debug)]
pub struct XskPort {
    opened: Opened,
    options: XskOptions,
    pool: u32,
    /// Chunks that the kernel is to have for receiving.
    fill_target: usize,
    /// Chunks that the kernel has for receiving.
    filled: usize,
    /// Chunks that it has for transmitting. Both together are those of the ledger.
    sending: usize,
    flushes: u32,
    /// Looks in vain since the last packet.
    in_vain: u32,
    counters: PortCounters,
}

/// What the kernel has counted for the socket, apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XskStatistics {
    /// Frames dropped for another reason than a full RX ring; in copy mode also for want of a chunk.
    pub rx_dropped: u64,
    /// Frames dropped because the RX ring was full.
    pub rx_ring_full: u64,
    /// Times the kernel found the fill ring empty (more than one per frame, possibly).
    pub fill_ring_empty: u64,
    /// TX descriptors that the kernel found invalid: a defect of this crate if it is not 0.
    pub tx_invalid: u64,
}

impl XskPort {
    /// Opens and binds a socket and fills its fill ring from `pool`. The first socket of a pool
    /// registers it as UMEM; the others share it. Takes up to a second when the queue is busy.
    ///
    /// The pool should have [`Rings::chunks`](super::Rings::chunks) for each port, and some for the
    /// worker. With less it begins to receive with what there is, an RX ring full at least.
    ///
    /// # Errors
    /// See [`OpenError`]; nothing is left behind then, and all chunks are in the pool.
    pub fn open(pool: &mut Pool, options: XskOptions) -> Result<XskPort, OpenError> {
        let opened = Opened::open(pool, &options)?;
        let filled = opened.ledger.held();
        let fill_target = options.rings.to_receive(options.mode) as usize;
        let pool = pool.id();
        let counters = PortCounters::default();
        Ok(XskPort {
            opened,
            options,
            pool,
            fill_target,
            filled,
            sending: 0,
            flushes: 0,
            in_vain: LOOKS,
            counters,
        })
    }

    /// The socket, to be put into an XSKMAP at the place of its queue.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.opened.socket.as_fd()
    }

    /// The index of its interface.
    pub fn interface_index(&self) -> u32 {
        self.opened.interface
    }

    /// The queue that it is bound to.
    pub fn queue(&self) -> u32 {
        self.options.queue
    }

    /// Zero-copy or copy.
    pub fn mode(&self) -> Bind {
        self.options.mode
    }

    /// Whether it polls busily while there is traffic: that was asked for, and the kernel agreed.
    pub fn busy_polls(&self) -> bool {
        self.opened.busy_polls
    }

    /// What the kernel has counted for the socket; zero when it cannot be asked.
    pub fn statistics(&self) -> XskStatistics {
        socket::statistics(self.fd()).map_or_else(
            |_| XskStatistics::default(),
            |kernel| XskStatistics {
                rx_dropped: kernel.rx_dropped,
                rx_ring_full: kernel.rx_ring_full,
                fill_ring_empty: kernel.rx_fill_ring_empty_descs,
                tx_invalid: kernel.tx_invalid_descs,
            },
        )
    }

    /// Closes the socket and gives its chunks back to the pool.
    ///
    /// In zero-copy mode they are *not* given back: the card may still write into them for a
    /// moment after the socket is closed, and there is no way to learn when it has stopped.
    pub fn close(self, pool: &mut Pool) {
        let idle = self.options.mode == Bind::Copy && self.pool == pool.id();
        self.opened.close(pool, idle);
    }

    /// Takes back the chunks of frames that have been sent.
    fn reap(&mut self, pool: &mut Pool) {
        while let Some(address) = self.opened.completion.pop() {
            if let Some(frame) = self.adopt(pool, address, 0) {
                self.sending = self.sending.saturating_sub(1);
                pool.release(frame);
            }
        }
        self.opened.completion.release();
    }

    /// The frame at `address` of the UMEM, if the kernel had that chunk.
    fn adopt(&mut self, pool: &Pool, address: u64, len: u32) -> Option<Frame> {
        let size = pool.chunk_size() as u64;
        let chunk = u32::try_from(address / size).ok()?;
        let frame = pool.adopt(chunk, (address % size) as u32, len)?;
        self.opened.ledger.take(chunk).then_some(frame)
    }

    fn refill(&mut self, pool: &mut Pool) {
        let wanted = self.fill_target.saturating_sub(self.filled);
        self.filled += self.opened.refill(pool, wanted);
    }

    /// Wakes the kernel until the TX ring is empty, or it makes no more headway.
    fn kick(&mut self, pool: &mut Pool) -> io::Result<()> {
        let mut left = self.opened.tx.unconsumed();
        let mut idle = 0;
        while left > 0 && idle < PATIENCE {
            self.counters.wakeups += 1;
            match socket::wake_transmit(self.fd()) {
                Wakeup::Done => break,
                Wakeup::Again => {}
                Wakeup::Gone(error) => return Err(error),
            }
            self.reap(pool);
            let now = self.opened.tx.unconsumed();
            idle = if now < left { 0 } else { idle + 1 };
            left = now;
        }
        self.reap(pool);
        Ok(())
    }

    /// Publishes what has been pushed and makes room in the full TX ring, if that can be done soon.
    fn make_room(&mut self, pool: &mut Pool) -> io::Result<bool> {
        self.opened.tx.publish();
        for _ in 0..PATIENCE {
            self.kick(pool)?;
            if self.opened.tx.room() > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn check_pool(&self, pool: &Pool) -> io::Result<()> {
        if self.pool == pool.id() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "an AF_XDP port is used with another pool than it was opened on",
        ))
    }
}

impl Port for XskPort {
    fn describe(&self) -> String {
        let XskOptions { interface, queue, mode, .. } = &self.options;
        format!("{interface} queue {queue}, AF_XDP {mode}")
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize> {
        self.check_pool(pool)?;
        let mut received = 0;
        while received < limit {
            // Each is a whole frame: multi-buffer frames come only with XDP_USE_SG.
            let Some(descriptor) = self.opened.rx.pop() else {
                break;
            };
            if let Some(frame) = self.adopt(pool, descriptor.addr, descriptor.len) {
                self.filled = self.filled.saturating_sub(1);
                self.counters.received_bytes += frame.len() as u64;
                batch.push(frame);
                received += 1;
            }
        }
        self.opened.rx.release();
        self.counters.received += received as u64;
        if received > 0 {
            self.in_vain = 0;
            self.refill(pool);
        } else if self.is_lively() {
            self.in_vain += 1;
            if let Wakeup::Gone(error) = socket::wake_receive(self.fd()) {
                return Err(error);
            }
        }
        Ok(received)
    }

    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()> {
        let mut outcome = self.check_pool(pool);
        // Once there is no room in spite of all patience, the rest of the batch gets none.
        let mut stuck = outcome.is_err();
        for mut frame in frames.drain(..) {
            let descriptor = self.opened.format.describe(pool, &mut frame);
            if descriptor.is_some() && !stuck && self.opened.tx.room() == 0 {
                stuck = match self.make_room(pool) {
                    Ok(room) => !room,
                    Err(error) => {
                        outcome = Err(error);
                        true
                    }
                };
            }
            match descriptor {
                Some(descriptor) if !stuck && self.opened.tx.push(descriptor) => {
                    self.opened.ledger.give(frame.into_chunk());
                    self.sending += 1;
                    self.counters.transmitted += 1;
                    self.counters.transmitted_bytes += u64::from(descriptor.len);
                }
                _ => {
                    pool.release(frame);
                    self.counters.transmit_dropped += 1;
                }
            }
        }
        self.opened.tx.publish();
        outcome
    }

    fn flush(&mut self, pool: &mut Pool) -> io::Result<()> {
        self.check_pool(pool)?;
        self.reap(pool);
        if self.opened.tx.needs_wakeup() {
            self.kick(pool)?;
        }
        self.refill(pool);
        if self.opened.fill.needs_wakeup()
            && let Wakeup::Gone(error) = socket::wake_receive(self.fd())
        {
            return Err(error);
        }
        self.flushes += 1;
        if self.flushes >= FLUSHES_PER_CHECK {
            self.flushes = 0;
            socket::pending_error(self.fd())?;
        }
        Ok(())
    }

    fn completes_checksums(&self) -> bool {
        self.opened.format.completes
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd())
    }

    /// Asks the kernel: one system call, not for every breath.
    fn counters(&self) -> PortCounters {
        let kernel = self.statistics();
        PortCounters {
            receive_dropped: kernel.rx_dropped + kernel.rx_ring_full,
            transmit_dropped: self.counters.transmit_dropped + kernel.tx_invalid,
            kernel: Some(kernel),
            ..self.counters
        }
    }

    fn held(&self) -> Held {
        debug_assert_eq!(self.filled + self.sending, self.opened.ledger.held());
        Held { receiving: self.filled, transmitting: self.sending }
    }

    fn is_lively(&self) -> bool {
        self.opened.busy_polls && self.in_vain < LOOKS
    }
}
