//! A packet in a chunk of memory: bytes with room before and behind.

/// A frame inside a larger chunk, so that headers can be put before it without moving it.
#[derive(Debug)]
pub struct Packet<'a> {
    chunk: &'a mut [u8],
    start: usize,
    end: usize,
}

impl<'a> Packet<'a> {
    /// The frame `chunk[start..start + len]`.
    ///
    /// # Panics
    /// When that range is not inside the chunk.
    #[inline]
    pub fn new(chunk: &'a mut [u8], start: usize, len: usize) -> Packet<'a> {
        assert!(start <= chunk.len() && len <= chunk.len() - start);
        Packet { chunk, start, end: start + len }
    }

    /// The frame's bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.chunk[self.start..self.end]
    }

    /// The frame's bytes, to change.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.chunk[self.start..self.end]
    }

    /// Where the frame begins in its chunk.
    #[inline]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes in the frame.
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there is no byte in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Puts `count` bytes of undefined content before the frame. False, and no change, when the
    /// chunk has no such room.
    #[inline]
    #[must_use]
    pub fn grow_front(&mut self, count: usize) -> bool {
        match self.start.checked_sub(count) {
            Some(start) => {
                self.start = start;
                true
            }
            None => false,
        }
    }

    /// Takes `count` bytes from the front (all, if there are fewer).
    #[inline]
    pub fn shrink_front(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Makes the frame `len` bytes long; false, and no change, when the chunk is too short.
    #[inline]
    #[must_use]
    pub fn resize(&mut self, len: usize) -> bool {
        if len > self.chunk.len() - self.start {
            return false;
        }
        self.end = self.start + len;
        true
    }
}
