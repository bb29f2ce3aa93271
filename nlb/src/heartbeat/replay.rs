//! Which boot of a host is believed, and which of its heartbeats are new.
//!
//! Within a boot the sequence must rise. A boot that was followed by another is over: its
//! heartbeats are replays for as long as they are remembered ([`REMEMBERED`]). Heartbeats recorded
//! before *this* host started cannot be told by that; they are harmless because a host counts only
//! once it shows that it hears our present boot (see
//! [`Heard::hears`](crate::heartbeat::Heard::hears)), which no old recording does.

use std::collections::VecDeque;

use crate::host::Nonce;

/// How many past boots of a host are remembered.
pub const REMEMBERED: usize = 16;

/// What to make of a heartbeat's boot and sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The next of the boot we believe.
    Fresh,
    /// Not newer than one heard already, or of a boot that is over.
    Replay,
    /// Of a boot never heard: a restart, or a second host with this id.
    OtherBoot,
}

/// The boots of one host.
#[derive(Clone, Debug)]
pub struct Window {
    nonce: Nonce,
    sequence: u64,
    over: VecDeque<Nonce>,
}

impl Window {
    /// A host heard for the first time.
    pub fn new(nonce: Nonce, sequence: u64) -> Window {
        Window { nonce, sequence, over: VecDeque::new() }
    }

    /// The boot we believe.
    pub fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// Judges a heartbeat; a fresh one moves the window.
    pub fn judge(&mut self, nonce: Nonce, sequence: u64) -> Verdict {
        if nonce != self.nonce {
            return if self.over.contains(&nonce) { Verdict::Replay } else { Verdict::OtherBoot };
        }
        if sequence <= self.sequence {
            return Verdict::Replay;
        }
        self.sequence = sequence;
        Verdict::Fresh
    }

    /// Believes another boot from now on.
    pub fn restart(&mut self, nonce: Nonce, sequence: u64) {
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back(self.nonce);
        self.nonce = nonce;
        self.sequence = sequence;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_believed_twice() {
        let mut window = Window::new(Nonce(1), 10);
        for (nonce, sequence, verdict) in [
            (1, 10, Verdict::Replay),
            (1, 9, Verdict::Replay),
            (1, 11, Verdict::Fresh),
            (1, 11, Verdict::Replay),
            (1, 500, Verdict::Fresh),
            (1, 499, Verdict::Replay),
            (2, 1, Verdict::OtherBoot),
        ] {
            assert_eq!(window.judge(Nonce(nonce), sequence), verdict, "{nonce} {sequence}");
        }
    }

    #[test]
    fn a_boot_that_is_over_stays_over() {
        let mut window = Window::new(Nonce(1), 10);
        for boot in 2..=20 {
            window.restart(Nonce(boot), 1);
            assert_eq!(window.judge(Nonce(boot), 2), Verdict::Fresh);
            for old in boot.saturating_sub(REMEMBERED as u64).max(1)..boot {
                assert_eq!(window.judge(Nonce(old), u64::MAX), Verdict::Replay, "{old} of {boot}");
            }
        }
    }
}
