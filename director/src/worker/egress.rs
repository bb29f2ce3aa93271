//! The last steps of a packet: Ethernet header, checksum if it must be completed here, and the
//! port that its route leaves by.

use std::time::Duration;

use forwarding::checksum::{self, Partial};
use forwarding::wire::ethernet;
use forwarding::{Headers, Packet};
use netio::{Frame, PartialChecksum};

use super::Worker;
use super::routes::{Link, NoLink};
use super::tap::Outcome;
use super::waiting::{PATIENCE, Parked};
use crate::dispatch::Routes;
use crate::dispatch::verdict::{DropReason, Method, Path};

/// What a departing frame counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// A packet forwarded by this method.
    Forwarded(Method),
    /// An ICMP error of our own.
    Answer,
    /// A TCP reset of our own.
    Reset,
    /// A further piece of a packet that has been counted.
    Piece,
}

/// A packet that is ready but for its Ethernet header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) counted: Counted,
    pub(super) path: Path,
    pub(super) partial: Option<Partial>,
    pub(super) headers: Headers,
}

impl Worker {
    /// Sends a packet out on its path, in pieces if it must be.
    pub(super) fn send(&mut self, now: Duration, frame: Frame, departure: Departure) {
        if departure.headers.ip_len() > departure.path.mtu as usize {
            self.send_in_pieces(now, frame, departure);
        } else {
            self.send_whole(now, frame, departure);
        }
    }

    /// Sends a packet that fits, or parks it until the next hop is resolved.
    pub(super) fn send_whole(&mut self, now: Duration, frame: Frame, departure: Departure) {
        match self.routes.link(&departure.path) {
            Ok(link) => self.emit(frame, &link, &departure),
            Err(NoLink::NoPort) => self.lose(frame, departure.counted, DropReason::NoPort),
            Err(NoLink::Unresolved) => {
                let parked = Parked { frame, departure, since: now };
                if let Some(oldest) = self.waiting.park(parked) {
                    let counted = oldest.departure.counted;
                    self.lose(oldest.frame, counted, DropReason::NoNeighbour);
                }
            }
        }
    }

    /// Drops a departing frame.
    pub(super) fn lose(&mut self, frame: Frame, counted: Counted, reason: DropReason) {
        if self.watcher.is_there() && matches!(counted, Counted::Forwarded(_)) {
            let port = self.watcher.port();
            self.watcher.note_leaving(Outcome::Lost(reason), port, self.pool.bytes(&frame));
        }
        match counted {
            Counted::Forwarded(_) | Counted::Answer | Counted::Reset => self.drop(frame, reason),
            Counted::Piece => self.pool.release(frame),
        }
    }

    /// Sends the ICMP error or TCP reset that the dispatcher has just written.
    pub(super) fn send_reply(&mut self, now: Duration) {
        let Some((reply, headers)) = self.dispatcher.reply() else { return };
        let Some(path) = self.routes.path(headers.destination) else {
            return self.status.verdicts.dropped(DropReason::NoRoute);
        };
        let Some(mut frame) = self.pool.allocate() else {
            return self.status.verdicts.dropped(DropReason::NoFrames);
        };
        let start = frame.start();
        self.pool.reshape(&mut frame, start, reply.len());
        self.pool.bytes_mut(&mut frame).copy_from_slice(reply);
        let counted = if headers.is_tcp() { Counted::Reset } else { Counted::Answer };
        self.send(now, frame, Departure { counted, path, partial: None, headers });
    }

    /// Writes the Ethernet header and queues the frame. Only here a packet counts as sent.
    fn emit(&mut self, mut frame: Frame, link: &Link, departure: &Departure) {
        let port = &self.ports[link.port].port;
        let mut headers = departure.headers;
        let (start, len) = (frame.start(), frame.len());
        let mut packet = Packet::new(self.pool.chunk_mut(&mut frame), start, len);
        let before = headers.l3;
        // Padding behind the packet is for the card to make anew.
        let fits = packet.resize(headers.end)
            && (headers.vlan == link.vlan
                || ethernet::set_vlan(&mut packet, &mut headers, link.vlan));
        if !fits {
            return self.lose(frame, departure.counted, DropReason::NoRoom);
        }
        ethernet::set_addresses(packet.bytes_mut(), link.destination, link.source);
        let shift = headers.l3.wrapping_sub(before);
        let partial = departure
            .partial
            .map(|partial| Partial { start: partial.start.wrapping_add(shift), ..partial });
        let left = match partial {
            Some(partial) if port.completes_checksums() => {
                Some(PartialChecksum { start: partial.start as u16, offset: partial.offset as u16 })
            }
            Some(partial) => {
                checksum::complete(packet.bytes_mut(), partial, headers.end);
                None
            }
            None => None,
        };
        let (start, len) = (packet.start(), packet.len());
        self.pool.reshape(&mut frame, start, len);
        frame.partial = left;
        match departure.counted {
            Counted::Forwarded(method) => self.status.verdicts.transmitted(method),
            Counted::Answer => self.status.verdicts.answered.add(1),
            Counted::Reset => self.status.verdicts.resets.add(1),
            Counted::Piece => {}
        }
        if self.watcher.is_there() {
            let outcome = match departure.counted {
                Counted::Forwarded(method) => Outcome::Left(method),
                Counted::Answer | Counted::Reset => Outcome::Own,
                Counted::Piece => Outcome::Left(self.watcher.method()),
            };
            self.watcher.note_leaving(outcome, link.port, self.pool.bytes(&frame));
        }
        self.out[link.port].push(frame);
    }

    /// Tries again to send what waits; what has waited too long is dropped.
    pub(super) fn retry_waiting(&mut self, now: Duration) {
        self.watcher.forget();
        for _ in 0..self.waiting.len() {
            let Some(parked) = self.waiting.take() else { return };
            let counted = parked.departure.counted;
            match self.routes.link(&parked.departure.path) {
                Ok(link) => self.emit(parked.frame, &link, &parked.departure),
                Err(NoLink::NoPort) => self.lose(parked.frame, counted, DropReason::NoPort),
                Err(NoLink::Unresolved) if now >= parked.since + PATIENCE => {
                    self.lose(parked.frame, counted, DropReason::NoNeighbour);
                }
                Err(NoLink::Unresolved) => {
                    // There is room: one has just been taken.
                    let _ = self.waiting.park(parked);
                }
            }
        }
    }
}
