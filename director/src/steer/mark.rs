//! How our own frames are known among those that an interface receives.

use std::hash::{BuildHasher, Hasher, RandomState};

/// An Ethernet address that no card has, drawn anew by each process.
///
/// What steering took but is the kernel's after all is given back by
/// [`Injector::with_mark`](netio::bpf::Injector::with_mark). Behind native XDP that is the end of
/// it. In generic mode, and in AF_PACKET mode with its guard, the frame comes by our program and
/// our socket once more; the mark as its source address tells that it has been there. The
/// network layer does not look at that address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub [u8; 6]);

impl Mark {
    /// A mark that nobody on the segment can guess.
    pub fn random() -> Mark {
        // The standard library's keys come from the kernel's random numbers.
        let bits = RandomState::new().build_hasher().finish().to_be_bytes();
        let [first, b, c, d, e, f, ..] = bits;
        // Locally administered, and not a group.
        Mark([first & 0xfc | 0x02, b, c, d, e, f])
    }

    /// Whether a frame bears it: one that we have injected ourselves.
    pub fn is_on(self, frame: &[u8]) -> bool {
        frame.get(6..12) == Some(&self.0[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_unicast_local_addresses_and_differ() {
        let (one, other) = (Mark::random(), Mark::random());
        assert_ne!(one, other);
        assert_eq!(one.0[0] & 0x03, 0x02);
    }

    #[test]
    fn only_a_frame_with_the_mark_as_source_bears_it() {
        let mark = Mark([2, 1, 2, 3, 4, 5]);
        let mut frame = [0; 14];
        assert!(!mark.is_on(&frame));
        assert!(!mark.is_on(&frame[..8]));
        frame[6..12].copy_from_slice(&mark.0);
        assert!(mark.is_on(&frame));
    }
}
