//! The last steps of a packet: Ethernet header, checksum if it must be completed here, and the
//! port that its route leaves by.

use std::time::Duration;

use forwarding::checksum::{self, Partial};
use forwarding::fragmentation::Cut;
use forwarding::wire::ethernet;
use forwarding::{Headers, Packet};
use netio::{Frame, PartialChecksum};

use super::Worker;
use super::routes::{Link, NoLink};
use super::waiting::{PATIENCE, Parked};
use crate::dispatch::Routes;
use crate::dispatch::verdict::{DropReason, Path};

impl Worker {
    /// Sends a packet out on `path`, or parks it until the next hop is resolved.
    pub(super) fn send(
        &mut self,
        now: Duration,
        frame: Frame,
        path: &Path,
        partial: Option<Partial>,
        headers: Headers,
    ) {
        match self.routes.link(path) {
            Ok(link) => self.emit(frame, &link, path.mtu, partial, headers),
            Err(NoLink::NoPort) => self.drop(frame, DropReason::NoPort),
            Err(NoLink::Unresolved) => {
                let parked = Parked { frame, path: *path, partial, headers, since: now };
                if let Some(oldest) = self.waiting.park(parked) {
                    self.drop(oldest, DropReason::NoNeighbour);
                }
            }
        }
    }

    /// Sends the ICMP error that the dispatcher has just written.
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
        self.status.verdicts.answered.add(1);
        self.send(now, frame, &path, None, headers);
    }

    /// Writes the Ethernet header and queues the frame, in fragments when it is larger than `mtu`:
    /// the dispatcher has answered those that must not be cut.
    fn emit(
        &mut self,
        mut frame: Frame,
        link: &Link,
        mtu: u32,
        partial: Option<Partial>,
        headers: Headers,
    ) {
        let port = &self.ports[link.port].port;
        let mut headers = headers;
        let (start, len) = (frame.start(), frame.len());
        let mut packet = Packet::new(self.pool.chunk_mut(&mut frame), start, len);
        let before = headers.l3;
        // Padding behind the packet is for the card to make anew.
        let fits = packet.resize(headers.end)
            && (headers.vlan == link.vlan
                || ethernet::set_vlan(&mut packet, &mut headers, link.vlan));
        if !fits {
            return self.drop(frame, DropReason::NoRoom);
        }
        ethernet::set_addresses(packet.bytes_mut(), link.destination, link.source);
        let shift = headers.l3.wrapping_sub(before);
        let partial =
            partial.map(|partial| Partial { start: partial.start.wrapping_add(shift), ..partial });
        let too_large = headers.ip_len() > mtu as usize;
        let left = match partial {
            Some(partial) if !too_large && port.completes_checksums() => {
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
        if too_large {
            return self.emit_in_fragments(frame, link.port, mtu, &headers);
        }
        self.out[link.port].push(frame);
    }

    /// Queues the fragments of a frame that is complete but for its size.
    fn emit_in_fragments(&mut self, frame: Frame, port: usize, mtu: u32, headers: &Headers) {
        self.next_fragment_id = self.next_fragment_id.wrapping_add(1);
        let whole = &mut self.whole[..frame.len()];
        whole.copy_from_slice(self.pool.bytes(&frame));
        let Some(mut cut) = Cut::new(whole, headers, mtu as usize, self.next_fragment_id) else {
            return self.drop(frame, DropReason::TooBig);
        };
        self.pool.release(frame);
        loop {
            let Some(mut fragment) = self.pool.allocate() else {
                return self.status.verdicts.dropped(DropReason::NoFrames);
            };
            let start = fragment.start();
            let Some(len) = cut.next(whole, &mut self.pool.chunk_mut(&mut fragment)[start..])
            else {
                return self.pool.release(fragment);
            };
            self.pool.reshape(&mut fragment, start, len);
            self.out[port].push(fragment);
        }
    }

    /// Tries again to send what waits; what has waited too long is dropped.
    pub(super) fn retry_waiting(&mut self, now: Duration) {
        for _ in 0..self.waiting.len() {
            let Some(parked) = self.waiting.take() else { return };
            match self.routes.link(&parked.path) {
                Ok(link) => {
                    let mtu = parked.path.mtu;
                    self.emit(parked.frame, &link, mtu, parked.partial, parked.headers);
                }
                Err(NoLink::NoPort) => self.drop(parked.frame, DropReason::NoPort),
                Err(NoLink::Unresolved) if now >= parked.since + PATIENCE => {
                    self.drop(parked.frame, DropReason::NoNeighbour);
                }
                Err(NoLink::Unresolved) => {
                    // There is room: one has just been taken.
                    let _ = self.waiting.park(parked);
                }
            }
        }
    }
}
