//! Load bias: a connection in progress adds to its server's load before that shows in any count.
//!
//! Knows arithmetic. Must not know servers, nor which connections are in progress.
//!
//! The rules are those of load biasing and intelligent load biasing, in which a load is a number of
//! 0..=10000 (full). [`Bias::score`] is that number. Schedulers compare the same in another form
//! ([`Pressure`]): a score of 9999 says of two drowning servers that they are equal, and there are
//! as many as connections to choose from.

/// A full load.
pub(crate) const FULL: u16 = 10_000;

/// The highest load that is told from a full one where loads are compared, as a part of it.
const NEARLY_FULL: f64 = 1.0 - 1e-9;

/// How much each connection in progress adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bias {
    /// Nothing.
    #[default]
    None,
    /// So many ten-thousandths of a full load.
    Linear(u16),
    /// This part, 1/m, of what the server still has room for; m >= 2 (less is taken for 2).
    Ilb(u16),
}

impl Bias {
    /// The load of a server, 0..=10000, that had `load` before so many connections in progress came.
    ///
    /// Linear: load + n * bias, and no more than full. Ilb: full - (full - load) * (1 - 1/m)^n, rounded
    /// down; so one that is not full does not become so by bias alone.
    ///
    /// ```
    /// use schedulers::Bias;
    ///
    /// assert_eq!(Bias::Linear(200).score(1000, 10), 3000);
    /// assert_eq!(Bias::Ilb(2).score(0, 3), 8750);
    /// assert_eq!(Bias::Ilb(2).score(0, 1_000_000), 9999);
    /// ```
    pub fn score(self, load: u16, in_progress: u32) -> u16 {
        let room = FULL.saturating_sub(load);
        let left = match self {
            Bias::None => room,
            Bias::Linear(each) => {
                let added = u64::from(each) * u64::from(in_progress);
                room.saturating_sub(u16::try_from(added).unwrap_or(FULL))
            }
            Bias::Ilb(multiplier) => left_by_ilb(room, multiplier.max(2), in_progress),
        };
        FULL - left
    }

    /// What it comes to where servers are compared.
    pub(crate) fn pressure(self) -> Pressure {
        match self {
            Bias::None => Pressure::Added(0.0),
            Bias::Linear(each) => Pressure::Added(f64::from(each) / f64::from(FULL)),
            Bias::Ilb(multiplier) => {
                let multiplier = f64::from(multiplier.max(2));
                Pressure::Multiplied((multiplier / (multiplier - 1.0)).ln())
            }
        }
    }
}

/// The room that is left, rounded up. It is counted in parts of 2^-64, so that rounding on the way
/// does not add up to anything; a room of 1 is not left by however many.
fn left_by_ilb(room: u16, multiplier: u16, in_progress: u32) -> u16 {
    const ONE: u128 = 1 << 64;
    let multiplier = u128::from(multiplier);
    let mut room = u128::from(room) * ONE;
    for _ in 0..in_progress {
        if room <= ONE {
            break;
        }
        room = room * (multiplier - 1) / multiplier;
    }
    room.div_ceil(ONE) as u16
}

/// A bias in the form in which loads are compared: the larger the value the worse, and however many
/// connections are in progress, one more makes it larger.
///
/// With ilb the room that is left, (1 - load) * (1 - 1/m)^n, is compared by its logarithm:
/// -ln(1 - load) + n * ln(m / (m - 1)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pressure {
    /// Linear: each adds so much of a full load.
    Added(f64),
    /// Ilb: each makes the room smaller, by so much in its logarithm.
    Multiplied(f64),
}

impl Pressure {
    /// The value of a load, as a part of a full one, and so many connections in progress. Never NaN.
    pub(crate) fn value(self, load: f64, in_progress: f64) -> f64 {
        let load = load.clamp(0.0, NEARLY_FULL);
        match self {
            Pressure::Added(each) => load + in_progress * each,
            Pressure::Multiplied(each) => in_progress * each - (-load).ln_1p(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [u32; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 50];

    fn scores(bias: Bias) -> [u16; 11] {
        COUNTS.map(|count| bias.score(0, count))
    }

    #[test]
    fn scores_are_those_of_the_published_table() {
        assert_eq!(
            scores(Bias::Linear(200)),
            [200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800, 2000, 10_000]
        );
        for (multiplier, expected) in [
            (2, [5000, 7500, 8750, 9375, 9687, 9843, 9921, 9960, 9980, 9990, 9999]),
            (4, [2500, 4375, 5781, 6835, 7626, 8220, 8665, 8998, 9249, 9436, 9999]),
            (8, [1250, 2343, 3300, 4138, 4870, 5512, 6073, 6563, 6993, 7369, 9987]),
            (10, [1000, 1900, 2710, 3439, 4095, 4685, 5217, 5695, 6125, 6513, 9948]),
        ] {
            assert_eq!(scores(Bias::Ilb(multiplier)), expected, "m = {multiplier}");
        }
        assert_eq!(scores(Bias::None), [0; 11]);
    }

    #[test]
    fn an_idle_server_is_the_best_for_as_many_as_published() {
        // The table's tenths of a full load at which the others stand.
        let best_for = |bias: Bias, tenths: u16| {
            (0..).find(|&count| bias.score(0, count) >= tenths * 1000).unwrap()
        };
        for (multiplier, expected) in [
            (2, [1, 3, 4]),
            (3, [2, 4, 6]),
            (4, [3, 6, 9]),
            (6, [4, 9, 13]),
            (8, [6, 13, 18]),
            (10, [7, 16, 22]),
        ] {
            let counts = [5, 8, 9].map(|tenths| best_for(Bias::Ilb(multiplier), tenths));
            assert_eq!(counts, expected, "m = {multiplier}");
        }
        assert_eq!([5, 8, 9].map(|tenths| best_for(Bias::Linear(200), tenths)), [25, 40, 45]);
    }

    #[test]
    fn scores_start_at_the_load_and_end_at_full() {
        assert_eq!(Bias::Ilb(2).score(6000, 1), 8000);
        assert_eq!(Bias::Ilb(4).score(9999, 1), 9999);
        assert_eq!(Bias::Ilb(u16::MAX).score(0, u32::MAX), 9999);
        assert_eq!(Bias::Ilb(0).score(0, 1), 5000);
        assert_eq!(Bias::Linear(u16::MAX).score(0, u32::MAX), 10_000);
        assert_eq!(Bias::Linear(200).score(9900, 1), 10_000);
        for bias in [Bias::None, Bias::Linear(200), Bias::Ilb(2)] {
            assert_eq!([bias.score(10_000, 1), bias.score(u16::MAX, 1)], [10_000; 2]);
        }
    }

    #[test]
    fn comparison_agrees_with_the_scores_while_those_differ() {
        for bias in [Bias::Linear(200), Bias::Ilb(2), Bias::Ilb(4), Bias::Ilb(10)] {
            let mut all: Vec<(f64, u16)> = Vec::new();
            for load in (0..10_000).step_by(500) {
                for count in 0..40 {
                    let value = bias.pressure().value(f64::from(load) / 1e4, f64::from(count));
                    all.push((value, bias.score(load, count)));
                }
            }
            all.sort_by(|first, second| first.0.total_cmp(&second.0));
            // By one it may: scores are rounded.
            assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].1 + 1), "{bias:?}");
        }
    }

    #[test]
    fn comparison_knows_no_end() {
        for bias in [Bias::Linear(1), Bias::Ilb(2), Bias::Ilb(u16::MAX), Bias::Ilb(0)] {
            let value = |count| bias.pressure().value(2.0, count);
            assert!(value(0.0) < value(1.0) && value(4e9) < value(4e9 + 1.0), "{bias:?}");
            assert!(value(1e30).is_finite() && value(0.0) > bias.pressure().value(-1.0, 0.0));
        }
    }
}
