//! Which bytes of a datagram have gone on, and whether one more fragment fits beside them.
//!
//! Must not know what the bytes are: a fragment that lies within what has gone on is a duplicate,
//! whatever is in it. Rules and their order are those of Linux 6.1: for IPv4 of `ip_frag_queue`, for
//! IPv6 of `nf_ct_frag6_queue` (RFC 5722), for both of `inet_frag_queue_insert`. Where the kernel
//! gives up a datagram of which nobody has seen a byte yet, its receiver has some of it here: it is
//! spoilt, and nothing that could complete it may follow.

use forwarding::{Family, Fragment, Headers};

/// Separate parts of a datagram that are told apart. In order a datagram is one part, and in any
/// order that paths of different length make of it a few.
pub(super) const PARTS: usize = 16;

/// Bytes of the longest IP packet: over IPv4 with its header, over IPv6 without.
const LONGEST: usize = 65_535;

/// Every fragment but the last one has a multiple of this many bytes.
const UNIT: usize = 8;

/// Where a fragment lies in its datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    family: Family,
    /// Bytes from the beginning of what is fragmented on.
    begin: usize,
    /// One past its last byte; may be past all that a datagram can have.
    end: usize,
    /// The most that `end` may be.
    most: usize,
    /// It is not the last one.
    more: bool,
}

impl Piece {
    /// `None` of a whole packet.
    pub(super) fn of(headers: &Headers) -> Option<Piece> {
        let (begin, length, more) = match headers.fragment {
            Fragment::Whole => return None,
            Fragment::First { length, .. } => (0, length.into(), true),
            Fragment::Later { offset, more, .. } => (offset.into(), headers.payload_len(), more),
        };
        let most = match headers.family {
            Family::V4 => LONGEST - (headers.l4 - headers.l3),
            Family::V6 => LONGEST,
        };
        Some(Piece { family: headers.family, begin, end: begin + length, most, more })
    }
}

/// Why a fragment does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// All its bytes are in one part that has gone on.
    Duplicate,
    /// Some of its bytes have gone on.
    Overlap,
    /// It has no bytes, or reaches past the end, or says another end.
    End,
    /// It ends among eight bytes and is not the last one.
    Uneven,
    /// It would be one part too many.
    Scattered,
}

impl Misfit {
    /// Whether the datagram is spoilt by it.
    fn spoils(self, family: Family) -> bool {
        match (self, family) {
            (Misfit::Duplicate, _) | (Misfit::End, Family::V6) => false,
            (Misfit::End, Family::V4) => true,
            (Misfit::Overlap | Misfit::Uneven | Misfit::Scattered, _) => true,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cover {
    /// Begin and end of what has gone on, `count` of them in the order of their places. Parts that
    /// touch are one when they came in this order, and otherwise when room is needed: the kernel
    /// tells duplicates by its parts.
    parts: [(u16, u16); PARTS],
    count: u8,
    /// The end of the datagram, which a last fragment has said.
    end: Option<u16>,
    spoilt: Option<Misfit>,
}

impl Cover {
    /// Nothing has gone on, nor been refused.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && !self.is_spoilt()
    }

    /// No more of it may go on.
    pub(super) fn is_spoilt(&self) -> bool {
        self.spoilt.is_some()
    }

    /// Every byte has gone on.
    pub(super) fn is_complete(&self) -> bool {
        let parts = self.parts();
        let joined = parts.windows(2).all(|pair| pair[0].1 == pair[1].0);
        let ends = parts.first().zip(parts.last()).map(|(first, last)| (first.0, last.1));
        joined && ends.zip(self.end).is_some_and(|(ends, end)| ends == (0, end))
    }

    /// Whether this fragment may go on. One that may not can spoil the datagram.
    ///
    /// # Errors
    /// Why not, or what has spoilt the datagram before.
    pub(super) fn check(&mut self, piece: &Piece) -> Result<(), Misfit> {
        if let Some(misfit) = self.spoilt {
            return Err(misfit);
        }
        let fits = self.compare(piece);
        self.spoilt = fits.err().filter(|misfit| misfit.spoils(piece.family));
        fits
    }

    /// The same for a fragment that goes on now.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn add(&mut self, piece: &Piece) -> Result<(), Misfit> {
        self.check(piece)?;
        if !self.insert(piece) {
            self.join();
            if !self.insert(piece) {
                self.spoilt = Some(Misfit::Scattered);
                return Err(Misfit::Scattered);
            }
        }
        if !piece.more {
            self.end = Some(piece.end as u16);
        }
        Ok(())
    }

    fn parts(&self) -> &[(u16, u16)] {
        self.parts.get(..self.count.into()).unwrap_or_default()
    }

    fn compare(&mut self, piece: &Piece) -> Result<(), Misfit> {
        let &Piece { begin, end, .. } = piece;
        if piece.more && !end.is_multiple_of(UNIT) {
            return Err(Misfit::Uneven);
        }
        let reach = self.parts().last().map_or(0, |part| part.1.into());
        let known = self.end.map(usize::from);
        let past = if piece.more { known.is_some_and(|known| end > known) } else { end < reach };
        let other = !piece.more && known.is_some_and(|known| end != known);
        if past || other || end == begin || end > piece.most {
            return Err(Misfit::End);
        }
        let meets = |part: &&(u16, u16)| begin < part.1.into() && usize::from(part.0) < end;
        let Some(&(from, to)) = self.parts().iter().find(meets) else {
            return Ok(());
        };
        if begin < from.into() || end > to.into() {
            return Err(Misfit::Overlap);
        }
        if !piece.more {
            self.end = Some(to);
        }
        Err(Misfit::Duplicate)
    }

    /// Puts a fragment that meets no other among the parts; says whether there was room.
    fn insert(&mut self, piece: &Piece) -> bool {
        let (begin, end) = (piece.begin as u16, piece.end as u16);
        let count = usize::from(self.count);
        let place = self.parts().partition_point(|part| part.0 < begin);
        if place == count
            && let Some(last) = self.parts[..count].last_mut()
            && last.1 == begin
        {
            last.1 = end;
            return true;
        }
        if count == PARTS {
            return false;
        }
        self.parts.copy_within(place..count, place + 1);
        self.parts[place] = (begin, end);
        self.count += 1;
        true
    }

    /// Makes one part of those that touch.
    fn join(&mut self) {
        let mut count = 0;
        for index in 0..usize::from(self.count) {
            let part = self.parts[index];
            if count > 0 && self.parts[count - 1].1 == part.0 {
                self.parts[count - 1].1 = part.1;
            } else {
                self.parts[count] = part;
                count += 1;
            }
        }
        self.count = count as u8;
    }
}

#[cfg(test)]
mod tests;
