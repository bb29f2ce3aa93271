//! A hint to the processor that a value will be read soon.
//!
//! A batch of packets needs a cache line each from a table that no cache holds. Asking for all of
//! them before the first is read lets their ways from memory overlap. The hint is allowed to come
//! to nothing, so it never changes what a program does.

/// Asks for the cache line in which `value` begins, and does not wait for it.
///
/// On processors other than x86-64 it does nothing.
///
/// ```
/// let table = vec![[0_u64; 8]; 1024];
/// let wanted = [7, 900, 42];
/// for index in wanted {
///     netio::prefetch(&table[index]);
/// }
/// let sum: u64 = wanted.iter().map(|&index| table[index][0]).sum();
/// assert_eq!(sum, 0);
/// ```
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program can see and never faults, and the
        // reference is valid besides. SSE is part of every x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
