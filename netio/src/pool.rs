//! Frames and the pool of memory they live in (the UMEM, when sockets share it with the kernel).

use std::io;

/// Bytes kept free before a frame that the pool hands out, and that XDP leaves before a frame it
/// received: room for encapsulation and TX metadata.
pub const HEADROOM: u32 = 256;

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
    pub(crate) chunk: u32,
    pub(crate) start: u32,
    pub(crate) len: u32,
    /// Set by AF_PACKET and TUN ports on receive when the kernel says so; set by the pipeline on
    /// transmit when the checksum is still to be completed.
    pub partial: Option<PartialChecksum>,
}

impl Frame {
    /// Bytes in the frame.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no byte in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the frame begins in its chunk.
    pub fn start(&self) -> usize {
        self.start as usize
    }
}

/// A fixed number of chunks of memory, each of which holds one frame.
#[derive(Debug)]
pub struct Pool {}

impl Pool {
    /// A pool of `chunks` chunks of `chunk_size` bytes (a power of two, 2048..=65536; AF_XDP
    /// takes no more than 4096).
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub fn new(chunks: u32, chunk_size: u32) -> io::Result<Pool> {
        let _ = (chunks, chunk_size);
        unimplemented!()
    }

    /// A chunk with an empty frame at [`HEADROOM`], or `None` when all are taken.
    pub fn allocate(&mut self) -> Option<Frame> {
        unimplemented!()
    }

    /// Gives a chunk back.
    pub fn release(&mut self, frame: Frame) {
        let _ = frame;
        unimplemented!()
    }

    /// The frame's bytes.
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let _ = frame;
        unimplemented!()
    }

    /// The frame's bytes, to change.
    pub fn bytes_mut(&mut self, frame: &mut Frame) -> &mut [u8] {
        let _ = frame;
        unimplemented!()
    }

    /// The whole chunk, headroom and tailroom with it; the frame is at `frame.start()`.
    pub fn chunk_mut(&mut self, frame: &mut Frame) -> &mut [u8] {
        let _ = frame;
        unimplemented!()
    }

    /// Says where the frame now is in its chunk (after encapsulation, or when one is written).
    ///
    /// # Panics
    /// When `start + len` is past the chunk.
    pub fn reshape(&mut self, frame: &mut Frame, start: usize, len: usize) {
        let _ = (frame, start, len);
        unimplemented!()
    }

    /// Chunks in all.
    pub fn capacity(&self) -> usize {
        unimplemented!()
    }

    /// Chunks not handed out.
    pub fn available(&self) -> usize {
        unimplemented!()
    }

    /// Bytes in a chunk.
    pub fn chunk_size(&self) -> usize {
        unimplemented!()
    }
}
