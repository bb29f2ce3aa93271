//! Whose fault an error is, and what it is called.

use std::io;

use nix::errno::Errno;

use crate::health::outcome::Outcome;

/// What comes of a check that met `error` at this step: what is missing here is not the server's
/// fault.
pub(in crate::health) fn outcome(step: &str, error: &io::Error) -> Outcome {
    let words = format!("{step}: {}", words(error));
    if is_ours(error) { Outcome::Unable(words) } else { Outcome::Failed(words) }
}

/// Whether the error is about this machine: no descriptors, memory or ports left, an address that it
/// does not have, or a firewall or missing capability here.
pub(in crate::health) fn is_ours(error: &io::Error) -> bool {
    let Some(number) = error.raw_os_error() else { return false };
    [
        Errno::EMFILE,
        Errno::ENFILE,
        Errno::ENOBUFS,
        Errno::ENOMEM,
        Errno::EAGAIN,
        Errno::EACCES,
        Errno::EPERM,
        Errno::EADDRNOTAVAIL,
        Errno::EADDRINUSE,
        Errno::EAFNOSUPPORT,
        Errno::EPROTONOSUPPORT,
    ]
    .contains(&Errno::from_raw(number))
}

/// The error in words, without its number.
pub(in crate::health) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = match text.rfind(" (os error ") {
        Some(end) => &text[..end],
        None => &text,
    };
    // The system's begin with a capital letter, and these stand within a sentence.
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
