//! A worker's counters: one writer, any number of readers, no locked instruction.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::verdict::{DropReason, Method, PassReason};

/// Label and meaning of each [`Method`], in their order.
pub const SENT: [(&str, &str); 5] = [
    ("sent_nat", "Forwarded to a server by NAT."),
    ("sent_nat_reply", "A server's answer, translated back and sent to the client."),
    ("sent_tunnel", "Forwarded to a server through a tunnel."),
    ("sent_direct", "Forwarded to a server by direct routing."),
    (
        "sent_bypass",
        "Forwarded to the address that the client asks for, because no server was there (`cache_bypass`).",
    ),
];

/// A counter with a single writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`. Only the owning worker may call this.
    pub fn add(&self, count: u64) {
        self.0.store(self.0.load(Relaxed) + count, Relaxed);
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How many packets of one worker met which fate.
#[derive(Debug)]
pub struct Verdicts {
    transmitted: [Counter; 5],
    dropped: [Counter; DropReason::ALL.len()],
    passed: [Counter; PassReason::ALL.len()],
    /// ICMP errors sent.
    pub answered: Counter,
    /// TCP resets sent.
    pub resets: Counter,
}

impl Default for Verdicts {
    fn default() -> Verdicts {
        Verdicts {
            transmitted: Default::default(),
            dropped: std::array::from_fn(|_| Counter::default()),
            passed: Default::default(),
            answered: Counter::default(),
            resets: Counter::default(),
        }
    }
}

/// One line of [`Verdicts::rows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// `forwarded`, `passed`, `dropped`, or `sent` for packets of our own.
    pub verdict: &'static str,
    /// The reason's label.
    pub label: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Packets.
    pub packets: u64,
}

impl Verdicts {
    /// Counts a packet sent by `method`.
    pub fn transmitted(&self, method: Method) {
        self.transmitted[method as usize].add(1);
    }

    /// Counts a dropped packet.
    pub fn dropped(&self, reason: DropReason) {
        self.dropped[reason as usize].add(1);
    }

    /// Counts a packet passed up.
    pub fn passed(&self, reason: PassReason) {
        self.passed[reason as usize].add(1);
    }

    /// Every counter with its name and meaning, zeros included.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let row = |verdict, label, meaning, counter: &Counter| Row {
            verdict,
            label,
            meaning,
            packets: counter.get(),
        };
        let sent = SENT
            .iter()
            .zip(&self.transmitted)
            .map(move |(&(label, meaning), counter)| row("forwarded", label, meaning, counter));
        let passed = PassReason::ALL
            .iter()
            .zip(&self.passed)
            .map(move |(reason, counter)| row("passed", reason.label(), reason.meaning(), counter));
        let dropped = DropReason::ALL.iter().zip(&self.dropped).map(move |(reason, counter)| {
            row("dropped", reason.label(), reason.meaning(), counter)
        });
        let own = [
            row("sent", "icmp_sent", "ICMP errors sent to clients or servers.", &self.answered),
            row("sent", "resets_sent", "TCP resets sent to clients.", &self.resets),
        ];
        sent.chain(passed).chain(dropped).chain(own)
    }
}
