//! Weights: shares, divisors, and who carries the least for its weight.
//!
//! Knows servers' counters. Must not know tables, cursors or keys.
//!
//! Loads are compared as fractions `load / weight` by cross multiplication, never by division. The
//! products are taken in 128 bits: an overhead of 41 bits times a weight of 31 does not fit 64.

use crate::Server;
use std::sync::Arc;

/// Whether `load / weight` of the first pair is strictly below that of the second.
pub(crate) fn is_lighter(first: Burden, second: Burden) -> bool {
    product(first.0, second.1) < product(second.0, first.1)
}

fn product(load: u64, weight: i32) -> u128 {
    u128::from(load) * u128::from(weight.max(0).unsigned_abs())
}

/// A load and the weight that it is divided by.
pub(crate) type Burden = (u64, i32);

/// What a server has that must not be chosen: 1 / 0, which everything else is lighter than.
pub(crate) const UNBEARABLE: Burden = (1, 0);

/// By what servers are compared: the lightest [`Burden`] wins, the first in the list of equals.
pub(crate) type Measure = fn(&Server) -> Burden;

/// The servers of a list with their indices, head first.
pub(crate) fn each(servers: &[Arc<Server>]) -> impl Iterator<Item = (usize, &Server)> {
    servers.iter().map(Arc::as_ref).enumerate()
}

/// The candidate with the lightest burden that can be borne; the earlier one wins a tie.
pub(crate) fn least_loaded<'a>(
    candidates: impl Iterator<Item = (usize, &'a Server)>,
    measure: Measure,
) -> Option<usize> {
    let mut least = (None, UNBEARABLE);
    for (index, server) in candidates {
        let burden = measure(server);
        if is_lighter(burden, least.1) {
            least = (Some(index), burden);
        }
    }
    least.0
}

/// wlc: lowest overhead for its weight. lblc and lblcr fall back on it.
pub(crate) fn overhead_by_weight(server: &Server) -> Burden {
    by_weight(server, Server::overhead)
}

/// sed: active connections and the one that is about to come, for its weight.
pub(crate) fn expected_delay(server: &Server) -> Burden {
    by_weight(server, |server| u64::from(server.active()) + 1)
}

/// nq: as sed, but nothing is lighter than a server without active connections.
pub(crate) fn queue(server: &Server) -> Burden {
    by_weight(server, |server| match server.active() {
        0 => 0,
        active => u64::from(active) + 1,
    })
}

/// lc: lowest overhead, whatever the weight.
pub(crate) fn overhead(server: &Server) -> Burden {
    if server.is_eligible() { (server.overhead(), 1) } else { UNBEARABLE }
}

/// fo: the heavier the lighter.
pub(crate) fn lightness(server: &Server) -> Burden {
    by_weight(server, |_| 1)
}

fn by_weight(server: &Server, load: impl Fn(&Server) -> u64) -> Burden {
    // Read once: another worker may change the weight between two looks.
    let weight = server.weight();
    if weight <= 0 || server.is_overloaded() {
        return UNBEARABLE;
    }
    (load(server), weight)
}

/// What a server comes to, in words.
pub(crate) type Words = fn(&Server) -> String;

/// Of [`overhead`].
pub(crate) fn overhead_words(server: &Server) -> String {
    format!("{}*256+{}", server.active(), server.connections())
}

/// Of [`overhead_by_weight`].
pub(crate) fn overhead_by_weight_words(server: &Server) -> String {
    format!("{} over weight {}", overhead_words(server), server.weight())
}

/// Of [`expected_delay`].
pub(crate) fn expected_delay_words(server: &Server) -> String {
    format!("{}+1 active over weight {}", server.active(), server.weight())
}

/// Of [`queue`].
pub(crate) fn queue_words(server: &Server) -> String {
    if server.active() == 0 { "idle".to_owned() } else { expected_delay_words(server) }
}

/// Of [`lightness`].
pub(crate) fn weight_words(server: &Server) -> String {
    format!("weight {}", server.weight())
}

/// Greatest common divisor of the positive ones among `weights`; 0 when there is none.
pub(crate) fn greatest_common_divisor(weights: impl Iterator<Item = i32>) -> i32 {
    weights.filter(|&weight| weight > 0).fold(0, gcd)
}

fn gcd(mut a: i32, mut b: i32) -> i32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisor_ignores_quiesced_servers() {
        let divisor = |weights: &[i32]| greatest_common_divisor(weights.iter().copied());
        assert_eq!(divisor(&[]), 0);
        assert_eq!(divisor(&[0, 0]), 0);
        assert_eq!(divisor(&[0, 12, 0, 18]), 6);
        assert_eq!(divisor(&[7, 5]), 1);
        assert_eq!(divisor(&[i32::MAX]), i32::MAX);
        assert_eq!(divisor(&[-4, 6]), 6);
    }

    #[test]
    fn comparison_is_strict_and_does_not_overflow() {
        assert!(is_lighter((1, 2), (2, 3)));
        assert!(!is_lighter((2, 4), (1, 2)));
        let most = u64::from(u32::MAX) * 258;
        assert!(is_lighter((most - 1, i32::MAX), (most, i32::MAX)));
        assert!(!is_lighter((most, 1), (most, i32::MAX)));
        assert!(is_lighter((most, 1), UNBEARABLE) && !is_lighter(UNBEARABLE, (most, 1)));
        assert!(!is_lighter(UNBEARABLE, UNBEARABLE));
    }
}
