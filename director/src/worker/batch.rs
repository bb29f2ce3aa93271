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

use std::time::Duration;

use forwarding::wire::ethernet;
use forwarding::{Packet, checksum};
use netio::{Frame, PartialChecksum, prefetch};

use super::Worker;
use crate::dispatch::established::{Carried, Moment};
use crate::dispatch::service::Services;

impl Worker {
    /// A batch from port number `port`.
    pub(super) fn handle(
        &mut self,
        now: Duration,
        services: &Services,
        port: usize,
        batch: &mut Vec<Frame>,
    ) {
        for frame in &*batch {
            if let Some(first) = self.pool.bytes(frame).first() {
                prefetch(first);
            }
        }
        for (sighting, frame) in self.sightings.iter_mut().zip(&*batch) {
            *sighting = self.dispatcher.sight(self.pool.bytes(frame));
        }
        for sighting in self.sightings[..batch.len()].iter_mut().flatten() {
            self.dispatcher.locate(sighting);
        }
        let moment = Moment::of(now);
        for (place, frame) in batch.drain(..).enumerate() {
            self.forward(now, moment, services, port, place, frame);
        }
    }

    /// The last stage, for the packet in this place of its batch.
    #[inline(always)]
    fn forward(
        &mut self,
        now: Duration,
        moment: Moment,
        services: &Services,
        port: usize,
        place: usize,
        mut frame: Frame,
    ) {
        if let Some(filter) = &self.ports[port].filter
            && !filter.wants(self.pool.bytes(&frame))
        {
            return self.pool.release(frame);
        }
        let carried = match self.sightings.get(place) {
            Some(Some(sighting)) => {
                let (start, len) = (frame.start(), frame.len());
                let mut packet = Packet::new(self.pool.chunk_mut(&mut frame), start, len);
                let routes = &mut self.routes;
                let carried = self.dispatcher.carry(moment, routes, &mut packet, sighting);
                carried.map(|carried| (carried, packet.start()))
            }
            _ => None,
        };
        match carried {
            Some((carried, start)) => self.depart(frame, start, &carried),
            None => self.decide(now, services, port, frame, now),
        }
    }

    /// Writes the Ethernet addresses and queues the frame, which begins at `start` of its chunk.
    #[inline(always)]
    fn depart(&mut self, mut frame: Frame, start: usize, carried: &Carried) {
        let Carried { method, exit, partial, end } = *carried;
        let Some(out) = self.out.get_mut(exit.port) else { return self.pool.release(frame) };
        self.pool.reshape(&mut frame, start, end);
        let bytes = self.pool.bytes_mut(&mut frame);
        ethernet::set_addresses(bytes, exit.to, exit.from);
        frame.partial = match partial {
            Some(partial) if self.ports[exit.port].port.completes_checksums() => {
                Some(PartialChecksum { start: partial.start as u16, offset: partial.offset as u16 })
            }
            Some(partial) => {
                checksum::complete(bytes, partial, end);
                None
            }
            None => None,
        };
        self.status.verdicts.transmitted(method);
        out.push(frame);
    }
}
