//! The segment: every heartbeat reaches every other node, unless it is lost or the way is cut.

use std::collections::BTreeSet;
use std::time::Duration;

use super::random::Random;

/// What the segment does to frames. Nodes are numbered by their place in the world.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Probability that one receiver misses one frame.
    pub loss: f64,
    cut: BTreeSet<(usize, usize)>,
}

impl Network {
    /// Cuts the way from one node to another; the way back stays.
    pub fn cut(&mut self, from: usize, to: usize) {
        self.cut.insert((from, to));
    }

    /// Cuts all ways between two parts.
    pub fn part(&mut self, one: &[usize], other: &[usize]) {
        for &a in one {
            for &b in other {
                self.cut(a, b);
                self.cut(b, a);
            }
        }
    }

    /// Everything is whole again.
    pub fn heal(&mut self) {
        self.cut.clear();
    }

    /// Whether frames get from one node to another at all.
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        !self.cut.contains(&(from, to))
    }

    /// How long one frame takes; `None` when it does not arrive.
    pub(super) fn carry(&self, from: usize, to: usize, random: &mut Random) -> Option<Duration> {
        if !self.reaches(from, to) || random.happens(self.loss) {
            return None;
        }
        Some(random.between(Duration::from_micros(200), Duration::from_micros(1200)))
    }
}
