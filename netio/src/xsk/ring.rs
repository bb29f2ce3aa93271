//! The four rings of an AF_XDP socket: one generic ring in shared memory, four roles.
//!
//! A ring is an array of entries and two cursors that only grow (and wrap at 2^32): the producer
//! writes entries and then its cursor, the consumer reads entries and then writes its own.
//!
//! ```text
//!               consumer              producer
//!                  v                     v
//!     . . free . . [ entries to consume ] . . free . .      producer - consumer <= size
//! ```
//!
//! Each side keeps its own cursor private and shows it only when it says `publish` or `release`,
//! and keeps a copy of the other's, re-read only when by that copy there is nothing left to do: the
//! cache line travels once per batch. See Documentation/networking/af_xdp.rst.

use std::io;
use std::num::Wrapping;
use std::ops::{Deref, DerefMut};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::mapping::Mapping;

/// What both sides of a ring of `T` share. `T` is `u64` (a chunk's address) or `xdp_desc`.
#[derive(Debug)]
struct Ring<T> {
    /// Holds the memory; the pointers below point into it.
    _mapping: std::sync::Arc<Mapping>,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
    /// Our own cursor, perhaps ahead of what we have shown.
    ours: Wrapping<u32>,
    /// The other side's cursor when we last looked.
    theirs: Wrapping<u32>,
}

// SAFETY: the pointers are into the mapping that the ring itself keeps alive, whose atomics any
// thread may use, and whose entries are divided between the two sides by the cursors; this side of
// the ring is used by one thread at a time because every method that moves takes `&mut self`.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// A side of the ring of `size` entries (a power of two) laid out in `mapping` as `offsets` say.
    fn new(
        mapping: std::sync::Arc<Mapping>,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> Ring<T> {
        assert!(size.is_power_of_two());
        let bytes = size as usize * size_of::<T>();
        let cursor = |offset: u64| {
            let place = mapping.at(offset as usize, size_of::<AtomicU32>()).cast::<AtomicU32>();
            assert!(place.is_aligned());
            place
        };
        let entries = mapping.at(offsets.desc as usize, bytes).cast::<T>();
        assert!(entries.is_aligned());
        Ring {
            producer: cursor(offsets.producer),
            consumer: cursor(offsets.consumer),
            flags: cursor(offsets.flags),
            entries,
            size,
            ours: Wrapping(0),
            theirs: Wrapping(0),
            _mapping: mapping,
        }
    }

    fn word(word: &NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: set once in `new`: aligned, within the mapping that lives as long as the ring
        // does, and only ever accessed as an atomic by us; the kernel does likewise.
        unsafe { word.as_ref() }
    }

    /// Where the entry at `cursor` is; never outside the ring, whatever the cursor.
    fn entry(&self, cursor: Wrapping<u32>) -> NonNull<T> {
        let index = (cursor.0 & (self.size - 1)) as usize;
        // SAFETY: the index is below `size`, and `new` checked that `size` entries are there.
        unsafe { self.entries.add(index) }
    }
}

/// The side of a ring that writes entries.
#[derive(Debug)]
pub(crate) struct Producer<T>(Ring<T>);

impl<T: Copy> Producer<T> {
    fn new(mut ring: Ring<T>) -> Producer<T> {
        ring.ours = Wrapping(Ring::<T>::word(&ring.producer).load(Ordering::Relaxed));
        ring.theirs = Wrapping(Ring::<T>::word(&ring.consumer).load(Ordering::Acquire));
        Producer(ring)
    }

    /// How many entries can be pushed; looks at the consumer's cursor only when it seems none.
    pub(crate) fn room(&mut self) -> u32 {
        let room = self.0.size - self.used();
        if room > 0 {
            return room;
        }
        // Acquire: the consumer has read the entries that we are about to overwrite.
        self.0.theirs = Wrapping(Ring::<T>::word(&self.0.consumer).load(Ordering::Acquire));
        self.0.size - self.used()
    }

    fn used(&self) -> u32 {
        let used = (self.0.ours - self.0.theirs).0;
        debug_assert!(used <= self.0.size, "the consumer has run ahead of the producer");
        used.min(self.0.size)
    }

    /// Writes an entry, which the consumer sees after `publish`. `false` when the ring is full.
    #[must_use]
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if self.room() == 0 {
            return false;
        }
        // SAFETY: in the ring, and between our cursor and the consumer's: the consumer does not
        // touch it before we publish.
        unsafe { self.0.entry(self.0.ours).write(entry) };
        self.0.ours += 1;
        true
    }

    /// Shows the consumer all entries pushed.
    pub(crate) fn publish(&mut self) {
        // Release: the entries are written before the cursor is.
        Ring::<T>::word(&self.0.producer).store(self.0.ours.0, Ordering::Release);
    }

    /// Entries, published or not, that the consumer has not taken yet.
    pub(crate) fn unconsumed(&mut self) -> u32 {
        self.0.theirs = Wrapping(Ring::<T>::word(&self.0.consumer).load(Ordering::Acquire));
        self.used()
    }

    /// Whether the consumer sleeps and wants a system call to go on.
    pub(crate) fn needs_wakeup(&self) -> bool {
        // The consumer sets the flag and then looks at our cursor once more; we wrote the cursor
        // and now look at the flag. Without a fence in between both could miss the other.
        fence(Ordering::SeqCst);
        let flags = Ring::<T>::word(&self.0.flags).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The side of a ring that reads entries.
#[derive(Debug)]
pub(crate) struct Consumer<T>(Ring<T>);

impl<T: Copy> Consumer<T> {
    fn new(mut ring: Ring<T>) -> Consumer<T> {
        ring.ours = Wrapping(Ring::<T>::word(&ring.consumer).load(Ordering::Relaxed));
        ring.theirs = Wrapping(Ring::<T>::word(&ring.producer).load(Ordering::Acquire));
        Consumer(ring)
    }

    /// The next entry; its place in the ring stays taken until `release`.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.0.ours == self.0.theirs {
            // Acquire: the entries up to that cursor are written.
            self.0.theirs = Wrapping(Ring::<T>::word(&self.0.producer).load(Ordering::Acquire));
            if self.0.ours == self.0.theirs {
                return None;
            }
        }
        // SAFETY: in the ring, and between our cursor and the producer's: it was written before the
        // producer showed it, and is not written again before we release it.
        let entry = unsafe { self.0.entry(self.0.ours).read() };
        self.0.ours += 1;
        Some(entry)
    }

    /// Gives the producer the places of all entries popped.
    pub(crate) fn release(&mut self) {
        // Release: the entries are read before the cursor is written.
        Ring::<T>::word(&self.0.consumer).store(self.0.ours.0, Ordering::Release);
    }
}

/// Makes a role of a ring: a type of its own, so that no ring is taken for another, and how the
/// kernel is asked for it.
macro_rules! role {
    ($(#[$doc:meta])* $role:ident is $side:ident of $entry:ty: $offsets:ident, $option:expr, $page:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $role($side<$entry>);

        impl $role {
            /// Sets the size of the ring of `fd`.
            pub(crate) fn set_size(fd: BorrowedFd<'_>, size: u32) -> io::Result<()> {
                crate::sockopt::set(fd, libc::SOL_XDP, $option, size)
            }

            /// Maps the ring of `fd`, whose size has been set to `size`.
            pub(crate) fn map(
                fd: BorrowedFd<'_>,
                offsets: &libc::xdp_mmap_offsets,
                size: u32,
            ) -> io::Result<$role> {
                let offsets = &offsets.$offsets;
                let len = offsets.desc as usize + size as usize * size_of::<$entry>();
                let mapping = Mapping::of(fd, len, $page as libc::off_t)?;
                Ok($role($side::new(Ring::new(mapping.into(), offsets, size))))
            }
        }

        impl Deref for $role {
            type Target = $side<$entry>;
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl DerefMut for $role {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
    };
}

role! {
    /// We give the kernel empty chunks to receive into.
    Fill is Producer of u64: fr, libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING
}
role! {
    /// The kernel gives us frames that it has received.
    Rx is Consumer of libc::xdp_desc: rx, libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING
}
role! {
    /// We give the kernel frames to transmit.
    Tx is Producer of libc::xdp_desc: tx, libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING
}
role! {
    /// The kernel gives us back the chunks of frames that have been sent.
    Completion is Consumer of u64: cr, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
