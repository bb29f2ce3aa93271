//! Frames and the pool of memory they live in (the UMEM, when sockets share it with the kernel).
//!
//! Knows who owns which chunk. A chunk is always in exactly one place: in the pool's free list, in
//! a [`Frame`] that somebody holds, or in the rings of a port. Must not know what a frame contains.

use std::io;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::mapping::{Mapping, Pages};
use crate::xsk::Sharers;

/// Bytes kept free before a frame that the pool hands out, and that XDP leaves before a frame it
/// received: room for encapsulation and TX metadata.
pub const HEADROOM: u32 = 256;

/// The chunk sizes that [`Pool::new`] takes, in bytes.
const CHUNK_SIZES: std::ops::RangeInclusive<u32> = 2048..=65536;

/// Where the checksum is that the sender left to the network card: only the pseudo-header sum
/// stands in the field (`CHECKSUM_PARTIAL`). Both count from the first byte of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// First byte that the sum covers.
    pub start: u16,
    /// Where the sum is to be stored, from `start`.
    pub offset: u16,
}

/// One packet in a [`Pool`]: which chunk and which bytes of it. Neither `Clone` nor `Copy`: who
/// holds it owns the chunk, and gives it to a port or back to the pool.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a dropped frame is a leaked chunk; give it back with Pool::release"]
pub struct Frame {
    pool: u32,
    chunk: u32,
    start: u32,
    len: u32,
    /// Set by AF_PACKET and TUN ports on receive when the kernel says so; set by the pipeline on
    /// transmit when the checksum is still to be completed.
    pub partial: Option<PartialChecksum>,
}

impl Frame {
    /// Bytes in the frame.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no byte in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the frame begins in its chunk.
    #[inline]
    pub fn start(&self) -> usize {
        self.start as usize
    }

    /// Which chunk of the pool the frame is in.
    pub(crate) fn chunk(&self) -> u32 {
        self.chunk
    }

    /// Ends the frame without freeing its chunk, for ports that hand the chunk to the kernel. They
    /// get it back by [`Pool::adopt`].
    pub(crate) fn into_chunk(self) -> u32 {
        self.chunk
    }
}

/// A fixed number of chunks of memory, each of which holds one frame.
///
/// Every frame of a pool is to come back to the same pool; one that is shown to another pool is a
/// mistake of the program and panics, because two owners of a chunk would be worse.
#[derive(Debug)]
pub struct Pool {
    area: Arc<Mapping>,
    id: u32,
    chunks: u32,
    chunk_size: u32,
    /// A stack, so that the chunk used last, still in the cache, is used next.
    free: Vec<u32>,
    /// The AF_XDP sockets that have this pool for their UMEM.
    pub(crate) sharers: Sharers,
}

impl Pool {
    /// A pool of `chunks` chunks of `chunk_size` bytes (a power of two, 2048..=65536; AF_XDP
    /// takes no more than 4096).
    ///
    /// # Errors
    /// `InvalidInput` for no chunks or another chunk size; else when the memory cannot be had.
    pub fn new(chunks: u32, chunk_size: u32) -> io::Result<Pool> {
        static NEXT_ID: AtomicU32 = AtomicU32::new(0);
        if chunks == 0 || !chunk_size.is_power_of_two() || !CHUNK_SIZES.contains(&chunk_size) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "a pool of {chunks} chunks of {chunk_size} bytes: there must be at least one chunk, \
                     and its size a power of two from 2048 to 65536"
                ),
            ));
        }
        let len =
            (chunks as usize).checked_mul(chunk_size as usize).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Pool {
            area: Arc::new(Mapping::anonymous(len)?),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            chunks,
            chunk_size,
            free: (0..chunks).rev().collect(),
            sharers: Sharers::default(),
        })
    }

    /// A chunk with an empty frame at [`HEADROOM`], or `None` when all are taken.
    #[inline]
    pub fn allocate(&mut self) -> Option<Frame> {
        let chunk = self.free.pop()?;
        Some(Frame { pool: self.id, chunk, start: HEADROOM, len: 0, partial: None })
    }

    /// Gives a chunk back.
    ///
    /// # Panics
    /// When the frame is of another pool.
    #[inline]
    pub fn release(&mut self, frame: Frame) {
        self.own(&frame);
        self.free.push(frame.chunk);
    }

    /// A second frame with the same bytes, or `None` when all chunks are taken.
    ///
    /// # Panics
    /// When the frame is of another pool.
    pub fn duplicate(&mut self, frame: &Frame) -> Option<Frame> {
        self.own(frame);
        let mut copy = self.allocate()?;
        copy.partial = frame.partial;
        self.reshape(&mut copy, frame.start(), frame.len());
        let to = self.place(&copy, copy.start);
        let from = self.place(frame, frame.start);
        // SAFETY: both frames are within their chunks (see `place`), which are different ones, since
        // two frames never have the same; `&mut self` keeps references to either away.
        unsafe { to.copy_from_nonoverlapping(from, frame.len()) };
        Some(copy)
    }

    /// The frame's bytes.
    ///
    /// # Panics
    /// When the frame is of another pool.
    #[inline]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        self.own(frame);
        let place = self.place(frame, frame.start);
        // SAFETY: in bounds (see `place`); the chunk is the frame's alone (see `Frame`), so neither the
        // kernel nor another frame writes it, and `&self` keeps `bytes_mut` away.
        unsafe { slice::from_raw_parts(place, frame.len()) }
    }

    /// The frame's bytes, to change.
    ///
    /// # Panics
    /// When the frame is of another pool.
    #[inline]
    pub fn bytes_mut(&mut self, frame: &mut Frame) -> &mut [u8] {
        self.own(frame);
        let place = self.place(frame, frame.start);
        // SAFETY: as in `bytes`, and `&mut self` keeps every other reference away.
        unsafe { slice::from_raw_parts_mut(place, frame.len()) }
    }

    /// The whole chunk, headroom and tailroom with it; the frame is at `frame.start()`.
    ///
    /// # Panics
    /// When the frame is of another pool.
    #[inline]
    pub fn chunk_mut(&mut self, frame: &mut Frame) -> &mut [u8] {
        self.own(frame);
        let place = self.place(frame, 0);
        // SAFETY: as in `bytes_mut`.
        unsafe { slice::from_raw_parts_mut(place, self.chunk_size()) }
    }

    /// Says where the frame now is in its chunk (after encapsulation, or when one is written).
    ///
    /// # Panics
    /// When `start + len` is past the chunk, or the frame is of another pool.
    #[inline]
    pub fn reshape(&mut self, frame: &mut Frame, start: usize, len: usize) {
        self.own(frame);
        let size = self.chunk_size();
        assert!(
            start <= size && len <= size - start,
            "a frame of {len} bytes at {start} is not within a chunk of {size}"
        );
        // Both are at most 65536 now.
        frame.start = start as u32;
        frame.len = len as u32;
    }

    /// Chunks in all.
    pub fn capacity(&self) -> usize {
        self.chunks as usize
    }

    /// Chunks not handed out.
    pub fn available(&self) -> usize {
        self.free.len()
    }

    /// What its memory is made of.
    pub fn pages(&self) -> Pages {
        self.area.pages()
    }

    /// Bytes in a chunk.
    #[inline]
    pub fn chunk_size(&self) -> usize {
        self.chunk_size as usize
    }

    /// What tells this pool from all others of the process.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The memory, for sockets that share it with the kernel and so must keep it alive.
    pub(crate) fn area(&self) -> &Arc<Mapping> {
        &self.area
    }

    /// The frame of `len` bytes at `start` of a chunk that the kernel has given back, or `None`
    /// when there are no such bytes. The caller answers for having held that chunk.
    pub(crate) fn adopt(&self, chunk: u32, start: u32, len: u32) -> Option<Frame> {
        let fits = start <= self.chunk_size && len <= self.chunk_size - start;
        (chunk < self.chunks && fits).then_some(Frame {
            pool: self.id,
            chunk,
            start,
            len,
            partial: None,
        })
    }

    #[inline(always)]
    fn own(&self, frame: &Frame) {
        assert!(frame.pool == self.id, "a frame was shown to a pool that it is not of");
    }

    /// Where `start` is in the frame's chunk, if the frame is of this pool. `start` is the frame's own or 0.
    #[inline(always)]
    fn place(&self, frame: &Frame, start: u32) -> *mut u8 {
        let chunk = frame.chunk as usize * self.chunk_size();
        // SAFETY: a pool makes frames of its own chunks only (`allocate`, `adopt`), all of which are in
        // the area; and no frame begins or ends outside its chunk (`adopt` and `reshape` look).
        unsafe { self.area.at_checked(chunk + start as usize) }.as_ptr()
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
