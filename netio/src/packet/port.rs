//! A [`Port`] over one AF_PACKET socket.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::PacketOptions;
use super::socket::{self, Arrival, BATCH, Overflow};
use super::virtio::{self, Cut};
use crate::segment::Segmenter;
use crate::{
    Frame, HEADROOM, Held, OpenError, PartialChecksum, Pool, Port, PortCounters, interface,
};

/// Bytes of a VLAN tag, and of the addresses before it.
const TAG: usize = 4;
const ADDRESSES: usize = 12;

/// How often a transmit asks again while the send buffer is full.
const PATIENCE: u32 = 16;

/// One interface over AF_PACKET, or one worker's share of it.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    options: PacketOptions,
    index: u32,
    /// Received but not yet handed on: super-frames can be more than the caller's limit.
    arrivals: VecDeque<Arrival>,
    overflow: Overflow,
    cutting: Option<Cutting>,
    counters: PortCounters,
    /// The kernel forgets its count when it is asked, and it is asked by `&self`.
    kernel_drops: Cell<u64>,
}

/// A super-frame that is being cut. It lies whole in the overflow.
#[derive(Debug)]
struct Cutting {
    segmenter: Segmenter,
    slot: usize,
    len: usize,
    tag: Option<[u8; TAG]>,
}

impl PacketPort {
    /// Opens a socket on the interface.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: PacketOptions) -> Result<PacketPort, OpenError> {
        let index = interface::index(&options.interface)?;
        Ok(PacketPort {
            socket: socket::open(&options, index)?,
            options,
            index,
            arrivals: VecDeque::with_capacity(BATCH),
            overflow: Overflow::new(),
            cutting: None,
            counters: PortCounters::default(),
            kernel_drops: Cell::new(0),
        })
    }

    /// The index of its interface.
    pub fn interface_index(&self) -> u32 {
        self.index
    }

    /// Closes the socket and gives chunks that were still to be handed on back to the pool.
    pub fn close(self, pool: &mut Pool) {
        for arrival in self.arrivals {
            pool.release(arrival.frame);
        }
    }

    /// Receives what is there. Says whether there may be more.
    fn fetch(&mut self, pool: &mut Pool, limit: usize) -> io::Result<bool> {
        let limit = limit.min(BATCH);
        let arrivals = &mut self.arrivals;
        let outcome =
            socket::receive(self.socket.as_fd(), pool, &mut self.overflow, limit, |arrival| {
                arrivals.push_back(arrival);
            });
        match outcome {
            Ok(count) => Ok(count == limit),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(false),
                // A packet that virtio has no words for (an SCTP super-frame): the kernel drops it.
                Some(libc::EINVAL) => {
                    self.counters.receive_dropped += 1;
                    Ok(true)
                }
                // Switched off: that passes, unless it is gone.
                Some(libc::ENETDOWN) if interface::name(self.index).is_ok() => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// The frame of an ordinary packet; `None` when it was dropped, or is a super-frame and is
    /// now in `cutting`.
    fn accept(&mut self, pool: &mut Pool, arrival: Arrival) -> Option<Frame> {
        let Arrival { mut frame, header, len, slot, truncated, tag } = arrival;
        let (partial, cut) = virtio::parse(&header);
        if cut == Cut::No && len == frame.len() && !truncated {
            frame.partial = partial;
            put_back(pool, &mut frame, tag);
            return Some(frame);
        }
        if let (Cut::Into(transport, size), Some(partial), false) = (cut, partial, truncated) {
            let room = pool.chunk_size() - HEADROOM as usize;
            let whole = self.overflow.part(slot);
            whole[..frame.len()].copy_from_slice(pool.bytes(&frame));
            let l4 = usize::from(partial.start);
            self.cutting = Segmenter::new(&whole[..len], transport, l4, size)
                .filter(|segmenter| segmenter.largest() <= room)
                .map(|segmenter| Cutting { segmenter, slot, len, tag });
        }
        if self.cutting.is_none() {
            self.counters.receive_dropped += 1;
        }
        pool.release(frame);
        None
    }

    /// The next segment of the super-frame in hand; `None` when there is none, or no chunk for it.
    fn cut(&mut self, pool: &mut Pool) -> Option<Frame> {
        let cutting = self.cutting.as_mut()?;
        let mut frame = pool.allocate()?;
        let out = &mut pool.chunk_mut(&mut frame)[HEADROOM as usize..];
        let whole = &self.overflow.part(cutting.slot)[..cutting.len];
        let Some(segment) = cutting.segmenter.next(whole, out) else {
            self.cutting = None;
            pool.release(frame);
            return None;
        };
        pool.reshape(&mut frame, HEADROOM as usize, segment.len);
        frame.partial = Some(segment.partial);
        let tag = cutting.tag;
        put_back(pool, &mut frame, tag);
        Some(frame)
    }

    /// The next frame of what has been received.
    fn next(&mut self, pool: &mut Pool) -> Option<Frame> {
        loop {
            if let Some(frame) = self.cut(pool) {
                return Some(frame);
            }
            if self.cutting.is_some() {
                return None;
            }
            let arrival = self.arrivals.pop_front()?;
            if let Some(frame) = self.accept(pool, arrival) {
                return Some(frame);
            }
        }
    }

    /// What to do when the kernel has not taken the first of `frames`: how many to give up.
    fn refused(&mut self, error: io::Error, patience: &mut u32) -> io::Result<GiveUp> {
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(GiveUp::None),
            Some(libc::EAGAIN) if *patience > 0 => {
                *patience -= 1;
                Ok(GiveUp::None)
            }
            Some(libc::EAGAIN) => Ok(GiveUp::All),
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV)
                if interface::name(self.index).is_err() =>
            {
                Err(error)
            }
            Some(libc::ENETDOWN) => Ok(GiveUp::All),
            // Its queue was full (ENOBUFS), or it is larger than the MTU (EMSGSIZE), or malformed.
            _ => Ok(GiveUp::First),
        }
    }
}

/// How many frames not to send.
enum GiveUp {
    None,
    First,
    All,
}

/// Puts a VLAN tag back where it was: between the addresses and what follows them.
fn put_back(pool: &mut Pool, frame: &mut Frame, tag: Option<[u8; TAG]>) {
    let Some(tag) = tag else { return };
    if frame.len() < ADDRESSES {
        return;
    }
    let (start, len) = (frame.start() - TAG, frame.len() + TAG);
    pool.reshape(frame, start, len);
    let bytes = pool.bytes_mut(frame);
    bytes.copy_within(TAG..TAG + ADDRESSES, 0);
    bytes[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag);
    frame.partial = frame.partial.map(|PartialChecksum { start, offset }| PartialChecksum {
        start: start.saturating_add(TAG as u16),
        offset,
    });
}

impl Port for PacketPort {
    fn describe(&self) -> String {
        let PacketOptions { interface, fanout } = &self.options;
        match fanout {
            Some(group) => format!("{interface}, AF_PACKET in group {group}"),
            None => format!("{interface}, AF_PACKET"),
        }
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        batch: &mut Vec<Frame>,
        limit: usize,
    ) -> io::Result<usize> {
        let before = batch.len();
        let mut more = true;
        while batch.len() - before < limit {
            if let Some(frame) = self.next(pool) {
                self.counters.received += 1;
                self.counters.received_bytes += frame.len() as u64;
                batch.push(frame);
                continue;
            }
            // Nothing in hand, or no chunks to go on with.
            if !more || self.cutting.is_some() || pool.available() == 0 {
                break;
            }
            more = self.fetch(pool, limit - (batch.len() - before))?;
        }
        Ok(batch.len() - before)
    }

    fn transmit(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>) -> io::Result<()> {
        let mut outcome = Ok(());
        let mut patience = PATIENCE;
        let mut at = 0;
        while at < frames.len() {
            self.counters.wakeups += 1;
            let dropped = match socket::send(self.socket.as_fd(), pool, &frames[at..]) {
                Ok(sent) => {
                    self.counters.transmitted += sent as u64;
                    let bytes: usize = frames[at..at + sent].iter().map(Frame::len).sum();
                    self.counters.transmitted_bytes += bytes as u64;
                    at += sent;
                    0
                }
                Err(error) => match self.refused(error, &mut patience) {
                    Ok(GiveUp::None) => 0,
                    Ok(GiveUp::First) => 1,
                    Ok(GiveUp::All) => frames.len() - at,
                    Err(error) => {
                        outcome = Err(error);
                        frames.len() - at
                    }
                },
            };
            self.counters.transmit_dropped += dropped as u64;
            at += dropped;
        }
        // The kernel has copied them.
        for frame in frames.drain(..) {
            pool.release(frame);
        }
        outcome
    }

    fn flush(&mut self, _pool: &mut Pool) -> io::Result<()> {
        Ok(())
    }

    fn completes_checksums(&self) -> bool {
        true
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn counters(&self) -> PortCounters {
        let drops = self.kernel_drops.get() + socket::take_drops(self.socket.as_fd());
        self.kernel_drops.set(drops);
        PortCounters { receive_dropped: self.counters.receive_dropped + drops, ..self.counters }
    }

    fn held(&self) -> Held {
        Held { receiving: self.arrivals.len(), transmitting: 0 }
    }
}
