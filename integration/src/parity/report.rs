//! What a comparison came to.

use std::fmt;

/// Differences kept: the first ones tell most, later ones often follow from them.
const KEPT: usize = 12;

/// The outcome of one scenario.
#[derive(Clone, Debug)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// Who was compared: the kernel's release, and ours.
    pub names: [String; 2],
    /// Connections that reached a server on both sides.
    pub connections: usize,
    /// Packets sent to each side.
    pub sent: usize,
    /// Packets that came out on each side.
    pub received: [usize; 2],
    /// What differs; empty when all is equal.
    pub differences: Vec<String>,
    /// Both sides next to each other, step by step.
    pub transcript: Vec<String>,
    wanted: usize,
    left_out: usize,
}

impl Report {
    pub(super) fn new(scenario: &str, names: [String; 2], wanted: usize) -> Report {
        Report {
            scenario: scenario.to_owned(),
            names,
            connections: 0,
            sent: 0,
            received: [0; 2],
            differences: Vec::new(),
            transcript: Vec::new(),
            wanted,
            left_out: 0,
        }
    }

    pub(super) fn differs(&mut self, difference: String) {
        if self.differences.len() < KEPT {
            self.differences.push(difference);
        } else {
            self.left_out += 1;
        }
    }

    /// Says something about the differences that comes before them all.
    pub(super) fn explain(&mut self, explanation: String) {
        self.differences.insert(0, explanation);
    }

    /// Whether both sides did the same, and enough of it.
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty() && self.connections >= self.wanted
    }
}

/// The verdict, without the transcript.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { scenario, names, connections, sent, received, .. } = self;
        let verdict = if self.is_equal() { "equal" } else { "DIFFERENT" };
        write!(
            f,
            "{scenario}: {verdict}: {connections} connections, {sent} packets in; out: {} by {}, {} by {}",
            received[0], names[0], received[1], names[1]
        )?;
        if *connections < self.wanted {
            write!(f, "\n  only {connections} connections of {} reached a server", self.wanted)?;
        }
        for difference in &self.differences {
            write!(f, "\n  {difference}")?;
        }
        if self.left_out > 0 {
            write!(f, "\n  and {} more differences", self.left_out)?;
        }
        Ok(())
    }
}
