//! An allocator that counts: how tests know that the packet path allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which in addition counts what each thread asks of it. For test and
/// bench programs:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: netio::CountingAllocator = netio::CountingAllocator;
///
/// let before = netio::CountingAllocator::allocations();
/// drop(Box::new(1));
/// assert_eq!(netio::CountingAllocator::allocations() - before, 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

impl CountingAllocator {
    /// Allocations and reallocations of this thread so far; 0 for ever where this is not the
    /// program's allocator.
    pub fn allocations() -> u64 {
        ALLOCATIONS.get()
    }
}

// SAFETY: hands everything on to the system's allocator; counting touches a thread-local without
// destructor that is initialised at compile time, so it does not allocate itself.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
