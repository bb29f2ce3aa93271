//! The stages of a batch. What a packet needs from memory is asked for one stage before it is used,
//! for all packets of the batch: so the worker waits for memory once, and not packet by packet.
//!
//! ```text
//!   received      the frames themselves are on their way
//!   sight         read headers, hash both ends       -> the index's lines are on their way
//!   locate        find the slot                      -> the connections are on their way
//!   carry         look at the connection, rewrite, Ethernet header, out
//!                 or, for whatever is not plain and simple, the long way
//! ```

use std::net::IpAddr;
use std::time::Duration;

use forwarding::{Packet, checksum, parse};
use netio::{Frame, PartialChecksum, prefetch};

use super::Worker;
use super::tap::Outcome;
use crate::dispatch::established::{Carried, Moment};
use crate::dispatch::service::Services;
use crate::dispatch::verdict::Method;

impl Worker {
    /// A batch from port number `port`.
    pub(super) fn handle(
        &mut self,
        now: Duration,
        services: &Services,
        port: usize,
        batch: &mut Vec<Frame>,
    ) {
        if self.ports[port].filter.is_some() {
            self.leave_to_the_kernel(port, batch);
        }
        for frame in &*batch {
            if let Some(first) = self.pool.bytes(frame).first() {
                prefetch(first);
            }
        }
        // One bit for each packet that may go the short way.
        let mut plain = 0_u64;
        for (place, (sighting, frame)) in self.sightings.iter_mut().zip(&*batch).enumerate() {
            if let Some(sighted) = self.dispatcher.sight(self.pool.bytes(frame)) {
                *sighting = sighted;
                plain |= 1 << place;
            }
        }
        for (place, sighting) in self.sightings[..batch.len()].iter_mut().enumerate() {
            if plain & 1 << place != 0 {
                self.dispatcher.locate(sighting);
            }
        }
        // Asked once and not of every packet: what is captured goes by code of its own.
        match self.watcher.wants_forwarded() {
            false => self.carry::<false>(now, services, port, batch, plain),
            true => self.carry::<true>(now, services, port, batch, plain),
        }
    }

    /// Decides on the frames of a batch, those with a bit in `plain` by the short way where that can be.
    /// `CAPTURED`: somebody wants to see them.
    #[inline(always)]
    fn carry<const CAPTURED: bool>(
        &mut self,
        now: Duration,
        services: &Services,
        port: usize,
        batch: &mut Vec<Frame>,
        plain: u64,
    ) {
        let moment = Moment::of(now);
        for (place, mut frame) in batch.drain(..).enumerate() {
            if CAPTURED {
                self.watcher.remember(port, self.pool.bytes(&frame));
            }
            let (start, len) = (frame.start(), frame.len());
            let mut packet = Packet::new(self.pool.chunk_mut(&mut frame), start, len);
            let carried = match plain & 1 << place {
                0 => None,
                _ => {
                    let (routes, sighting) = (&mut self.routes, &self.sightings[place]);
                    self.dispatcher.carry(moment, routes, &mut packet, sighting)
                }
            };
            match carried {
                Some(carried) => {
                    let start = packet.start();
                    if CAPTURED {
                        let translated = source_of_answer(packet.bytes(), carried.method);
                        self.watcher.note(Outcome::Forwarded(carried.method), translated);
                    }
                    self.depart::<CAPTURED>(frame, start, &carried);
                }
                None => self.decide(now, services, port, frame, now),
            }
        }
    }

    /// Gives back copies of what is the kernel's.
    #[cold]
    fn leave_to_the_kernel(&mut self, port: usize, batch: &mut Vec<Frame>) {
        let Some(filter) = &self.ports[port].filter else { return };
        let mut ours = 0;
        for place in 0..batch.len() {
            if filter.wants(self.pool.bytes(&batch[place])) {
                batch.swap(ours, place);
                ours += 1;
            }
        }
        for frame in batch.drain(ours..) {
            self.pool.release(frame);
        }
    }

    /// Queues the frame, which begins at `start` of its chunk.
    #[inline(always)]
    fn depart<const CAPTURED: bool>(&mut self, mut frame: Frame, start: usize, carried: &Carried) {
        let Carried { method, port, partial, end, .. } = *carried;
        let Some(out) = self.out.get_mut(port) else { return self.pool.release(frame) };
        self.pool.reshape(&mut frame, start, end);
        frame.partial = match partial {
            Some(partial) if self.ports[port].port.completes_checksums() => {
                Some(PartialChecksum { start: partial.start as u16, offset: partial.offset as u16 })
            }
            Some(partial) => {
                checksum::complete(self.pool.bytes_mut(&mut frame), partial, end);
                None
            }
            None => None,
        };
        self.status.verdicts.transmitted(method);
        if CAPTURED {
            let left = Outcome::Left(method);
            self.watcher.note_leaving(left, port, self.pool.bytes(&frame));
        }
        out.push(frame);
    }
}

/// Who a translated answer comes from, for those who capture.
#[cold]
fn source_of_answer(frame: &[u8], method: Method) -> Option<(u8, IpAddr, u16)> {
    let headers = parse(frame).ok().filter(|_| method == Method::NatReply)?;
    Some((headers.protocol, headers.source, headers.source_port))
}
