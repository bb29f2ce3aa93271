//! How a cluster grows: every host pays for the packets of all.
//!
//! A host that serves `R` of its capacity `C` also receives and drops what the others serve. If
//! receiving and dropping a packet costs the part `O` of serving one, then with `n` hosts
//!
//! ```text
//!     R_n = C (1 - n (R_n / R_1) O),    R_1 = C (1 - O)
//! ```
//!
//! so that each host still serves `1 / (1 + (n - 1) O)` of what it would serve alone. However many
//! hosts there are, together they serve less than `1 / O` times what one does.

/// What each of `hosts` hosts serves, as a part of what one would serve alone.
///
/// `overhead` is the cost of a dropped packet over that of a served one, from 0 on.
///
/// ```
/// use nlb::capacity;
///
/// assert_eq!(capacity::of_each(1, 0.05), 1.0);
/// assert!((capacity::of_all(8, 0.05) - 5.93).abs() < 0.005);
/// ```
pub fn of_each(hosts: u32, overhead: f64) -> f64 {
    1.0 / (1.0 + f64::from(hosts.saturating_sub(1)) * overhead)
}

/// What `hosts` hosts serve together, as a multiple of what one serves alone.
pub fn of_all(hosts: u32, overhead: f64) -> f64 {
    f64::from(hosts) * of_each(hosts, overhead)
}

/// What no number of hosts serves, as a multiple of what one serves alone; infinite when dropping
/// costs nothing.
pub fn limit(overhead: f64) -> f64 {
    1.0 / overhead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_published_one() {
        for (overhead, table, of_many) in [
            (0.001, [2.00, 3.99, 7.94, 15.76, 31.04], 1000.0),
            (0.01, [1.98, 3.88, 7.48, 13.91, 24.43], 100.0),
            (0.02, [1.96, 3.77, 7.02, 12.31, 19.75], 50.0),
            (0.05, [1.90, 3.48, 5.93, 9.14, 12.55], 20.0),
            (0.1, [1.82, 3.08, 4.71, 6.40, 7.80], 10.0),
        ] {
            for (hosts, expected) in [2, 4, 8, 16, 32].into_iter().zip(table) {
                let found = of_all(hosts, overhead);
                assert!((found - expected).abs() <= 0.0051, "{overhead} {hosts}: {found}");
            }
            assert_eq!(limit(overhead), of_many);
            assert!(of_all(u32::MAX, overhead) < limit(overhead));
        }
    }

    /// The closed form must satisfy the equation it comes of.
    #[test]
    fn the_closed_form_solves_the_equation() {
        for hosts in 1..=32 {
            let (capacity, overhead) = (1000.0, 0.037);
            let one = capacity * (1.0 - overhead);
            let each = of_each(hosts, overhead) * one;
            let right = capacity * (1.0 - f64::from(hosts) * each / one * overhead);
            assert!((each - right).abs() < 1e-6 * capacity, "{hosts}: {each} {right}");
        }
    }
}
