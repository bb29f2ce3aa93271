//! Tests of the whole crate, and what the tests of its modules share: frames built by `etherparse`,
//! and `etherparse` and `pnet` as judges of the checksums in a frame.

pub(crate) mod frames;
pub(crate) mod oracle;

mod never_panics;
