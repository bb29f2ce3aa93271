//! Memory had with `mmap`: the area of a [`Pool`](crate::Pool) and the rings of an AF_XDP socket.
//!
//! A [`Mapping`] knows where memory is and how long it lives, and gives out bounds-checked raw
//! pointers. Who may touch which bytes when is decided by its users; that is why it never makes a
//! reference itself.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// What the kernel calls a huge page on every architecture that matters here.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// What pages a pool's memory is made of. The larger they are, the fewer of them the processor has
/// to keep in mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Huge ones, which the machine had in reserve (`vm.nr_hugepages`).
    Huge,
    /// Ordinary ones, which the kernel may merge into huge ones if it finds the time.
    Mergeable,
    /// Ordinary ones.
    Ordinary,
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pages::Huge => "huge pages",
            Pages::Mergeable => "ordinary pages, merged if the kernel can",
            Pages::Ordinary => "ordinary pages",
        })
    }
}

/// A mapped region, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    pages: Pages,
}

// SAFETY: a mapping is only an address and a length; all its methods take `&self` and give out raw
// pointers, whose use is the business of unsafe code elsewhere. `munmap` may be called by any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing in it changes while it is shared.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed private memory of at least `len` bytes: huge pages when the machine has some
    /// reserved, else ordinary ones with the wish that the kernel merge them.
    ///
    /// # Errors
    /// `ENOMEM` when the memory cannot be had.
    pub(crate) fn anonymous(len: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        if len >= HUGE_PAGE {
            let whole = len.next_multiple_of(HUGE_PAGE);
            let huge = flags | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
            // What is reserved is set aside with the call: touching it cannot fail later.
            if let Ok(mapping) = Mapping::map(whole, huge, -1, 0) {
                return Ok(mapping.of_pages(Pages::Huge));
            }
        }
        let mapping = Mapping::map(len, flags, -1, 0)?;
        if len >= HUGE_PAGE {
            let start = mapping.base.as_ptr().cast();
            // SAFETY: the range is the mapping just made. Advice only; a refusal costs speed.
            if unsafe { libc::madvise(start, len, libc::MADV_HUGEPAGE) } == 0 {
                return Ok(mapping.of_pages(Pages::Mergeable));
            }
        }
        Ok(mapping)
    }

    /// Room for `len` zeroed bytes, of which none are set aside before they are touched.
    ///
    /// # Errors
    /// `ENOMEM` when the room cannot be had.
    pub(crate) fn reserved(len: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Mapping::map(len, flags, -1, 0)
    }

    /// Has `len` bytes from `offset`, of which any may be in use, made of huge pages from now on, if
    /// the kernel can.
    pub(crate) fn merge(&self, offset: usize, len: usize) {
        self.advise(offset, len, libc::MADV_HUGEPAGE);
    }

    /// Takes the memory of `len` bytes from `offset` now. What is in use stays as it is.
    pub(crate) fn populate(&self, offset: usize, len: usize) {
        self.advise(offset, len, libc::MADV_POPULATE_WRITE);
    }

    fn advise(&self, offset: usize, len: usize, advice: i32) {
        let start = self.at(offset, len);
        if len > 0 {
            // SAFETY: the range is within the mapping (`at` looks), and neither advice changes a byte.
            // A refusal costs speed.
            unsafe { libc::madvise(start.as_ptr().cast(), len, advice) };
        }
    }

    /// `len` bytes that the kernel shares through `fd` at `offset`.
    ///
    /// # Errors
    /// As of mmap(2).
    pub(crate) fn of(fd: BorrowedFd<'_>, len: usize, offset: libc::off_t) -> io::Result<Mapping> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Mapping::map(len, flags, fd.as_raw_fd(), offset)
    }

    fn map(len: usize, flags: i32, fd: i32, offset: libc::off_t) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a null hint without MAP_FIXED never replaces an existing mapping.
        let base = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, fd, offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Mapping { base, len, pages: Pages::Ordinary })
    }

    fn of_pages(mut self, pages: Pages) -> Mapping {
        self.pages = pages;
        self
    }

    /// What it is made of.
    pub(crate) fn pages(&self) -> Pages {
        self.pages
    }

    /// Where the `len` bytes from `offset` are.
    ///
    /// # Panics
    /// When they are not all within the mapping.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "{len} bytes at {offset} are not within a mapping of {}",
            self.len
        );
        // SAFETY: just checked: the result is within the mapping or one past its end.
        unsafe { self.base.add(offset) }
    }
}

impl Mapping {
    /// The same for who has looked before.
    ///
    /// # Safety
    /// `offset` is within the mapping.
    #[inline(always)]
    pub(crate) unsafe fn at_checked(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.len);
        // SAFETY: the caller says so.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the region is ours and nobody can reach it any more: users hold this in an `Arc`
        // for as long as they hold pointers into it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_and_writable_to_its_last_byte() {
        let mapping = Mapping::anonymous(3 * HUGE_PAGE / 2).unwrap();
        let last = mapping.at(mapping.len - 1, 1).as_ptr();
        // SAFETY: within the mapping, which nobody else knows.
        unsafe {
            assert_eq!(last.read(), 0);
            last.write(7);
            assert_eq!(last.read(), 7);
        }
    }

    #[test]
    fn what_it_says_of_its_pages_is_what_the_kernel_gave() {
        let mapping = Mapping::anonymous(2 * HUGE_PAGE).unwrap();
        let start = format!("{:x}-", mapping.at(0, 1).as_ptr() as usize);
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        // The kernel may have joined it with a neighbour of its kind.
        let mine = smaps.lines().skip_while(|line| !line.starts_with(&start));
        let line = |name: &str| mine.clone().find(|line| line.starts_with(name)).map(str::to_owned);
        let Some(size) = line("KernelPageSize:") else { return };
        let is_huge = size.contains("2048 kB");
        assert_eq!(mapping.pages() == Pages::Huge, is_huge, "{size}");
        let is_wished = line("VmFlags:").is_some_and(|flags| flags.contains(" hg"));
        assert_eq!(mapping.pages() == Pages::Mergeable, is_wished && !is_huge);
    }

    #[test]
    #[should_panic(expected = "not within a mapping")]
    fn a_pointer_past_the_end_is_never_given_out() {
        let mapping = Mapping::anonymous(4096).unwrap();
        let _ = mapping.at(4096 - 4, 8);
    }
}
