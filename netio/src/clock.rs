//! Whether the machine's clock follows another one.
//!
//! Knows what the kernel has been told by whoever keeps the time (NTP, PTP); must not set anything.

use std::io;
use std::mem;

/// Whether the kernel takes its clock for synchronised: a daemon for the time has said so lately.
///
/// # Errors
/// When the kernel does not answer, as in a sandbox without `adjtimex`.
pub fn is_synchronised() -> io::Result<bool> {
    // SAFETY: a C struct of integers; zero is a value of each, and with `modes` 0 nothing is set.
    let mut timex: libc::timex = unsafe { mem::zeroed() };
    // SAFETY: `timex` is alive during the call, and of the type that it fills in.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(timex.status & libc::STA_UNSYNC == 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn everybody_may_ask() {
        // What the answer is depends on the machine.
        assert!(super::is_synchronised().is_ok());
    }
}
