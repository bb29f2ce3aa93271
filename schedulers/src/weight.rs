//! Weights: shares, divisors, and who carries the least for its weight.
//!
//! Knows servers' counters. Must not know tables, cursors or keys.
//!
//! Loads are compared as fractions `load / weight` by cross multiplication, never by division. The
//! products are taken in 128 bits: an overhead of 41 bits times a weight of 31 does not fit 64.

use crate::Server;
use std::sync::Arc;

/// Whether `load / weight` of the first pair is strictly below that of the second.
pub(crate) fn is_lighter(first: (u64, i32), second: (u64, i32)) -> bool {
    product(first.0, second.1) < product(second.0, first.1)
}

fn product(load: u64, weight: i32) -> u128 {
    u128::from(load) * u128::from(weight.max(0).unsigned_abs())
}

/// The servers of a list with their indices, head first.
pub(crate) fn each(servers: &[Arc<Server>]) -> impl Iterator<Item = (usize, &Server)> {
    servers.iter().map(Arc::as_ref).enumerate()
}

/// The eligible candidate of lowest `load / weight`; the earlier one wins a tie.
pub(crate) fn least_loaded<'a>(
    candidates: impl Iterator<Item = (usize, &'a Server)>,
    load: impl Fn(&Server) -> u64,
) -> Option<usize> {
    let mut least: Option<(usize, (u64, i32))> = None;
    for (index, server) in candidates {
        // Read once: another worker may change the weight between two looks.
        let weight = server.weight();
        if weight <= 0 || server.is_overloaded() {
            continue;
        }
        let burden = (load(server), weight);
        if least.is_none_or(|(_, lightest)| is_lighter(burden, lightest)) {
            least = Some((index, burden));
        }
    }
    least.map(|(index, _)| index)
}

/// The choice of wlc, which lblc and lblcr fall back on: lowest overhead for its weight.
pub(crate) fn weighted_least_connection(servers: &[Arc<Server>]) -> Option<usize> {
    least_loaded(each(servers), Server::overhead)
}

/// The load that sed and nq compare: active connections and the one that is about to come.
pub(crate) fn expected_delay(server: &Server) -> u64 {
    u64::from(server.active()) + 1
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
    }
}
