//! Packets that are larger than their way out allows and may be fragmented: IPv4 without "don't
//! fragment", and what we have put into an IPv6 tunnel, whose sender we are.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use forwarding::fragment::Fragmenter;
use forwarding::{Family, checksum};
use netio::{Frame, Pool};

use super::Worker;
use super::egress::{Counted, Departure};
use crate::dispatch::verdict::{DropReason, Method};

/// What cutting needs.
#[derive(Debug)]
pub(super) struct Pieces {
    /// The packet that is being cut, while its pieces are written into frames of the pool.
    whole: Vec<u8>,
    /// Identification of the next IPv6 packet.
    next_id: u32,
}

impl Pieces {
    /// For frames of this pool.
    pub(super) fn new(pool: &Pool) -> Pieces {
        Pieces {
            whole: Vec::with_capacity(pool.chunk_size()),
            // Not to be guessed, nor shared between workers (RFC 7739).
            next_id: RandomState::new().build_hasher().finish() as u32,
        }
    }
}

impl Worker {
    /// Cuts a packet and sends the pieces; as a packet it counts by what becomes of the first.
    #[cold]
    pub(super) fn send_in_pieces(
        &mut self,
        now: Duration,
        mut frame: Frame,
        mut departure: Departure,
    ) {
        let headers = departure.headers;
        let may_be_cut = match headers.family {
            Family::V4 => !headers.dont_fragment,
            Family::V6 => departure.counted == Counted::Forwarded(Method::Tunnel),
        };
        // A checksum covers all pieces.
        if let Some(partial) = departure.partial.take() {
            checksum::complete(self.pool.bytes_mut(&mut frame), partial, headers.end);
        }
        let mut whole = std::mem::take(&mut self.pieces.whole);
        whole.clear();
        whole.extend_from_slice(self.pool.bytes(&frame));
        let id = self.pieces.next_id;
        self.pieces.next_id = id.wrapping_add(1);
        let fragmenter = Fragmenter::new(&whole, &headers, departure.path.mtu, id);
        match fragmenter.filter(|_| may_be_cut) {
            Some(fragmenter) => {
                self.pool.release(frame);
                self.send_each(now, &whole, fragmenter, departure);
            }
            None => self.lose(frame, departure.counted, DropReason::TooBig),
        }
        self.pieces.whole = whole;
    }

    fn send_each(
        &mut self,
        now: Duration,
        whole: &[u8],
        mut fragmenter: Fragmenter,
        departure: Departure,
    ) {
        let mut counted = departure.counted;
        loop {
            let Some(mut piece) = self.pool.allocate() else {
                if counted != Counted::Piece {
                    self.status.verdicts.dropped(DropReason::NoFrames);
                }
                return;
            };
            let start = piece.start();
            let room = &mut self.pool.chunk_mut(&mut piece)[start..];
            let Some(headers) = fragmenter.next(whole, room) else {
                return self.pool.release(piece);
            };
            self.pool.reshape(&mut piece, start, headers.end);
            self.send_whole(now, piece, Departure { counted, headers, ..departure });
            counted = Counted::Piece;
        }
    }
}
