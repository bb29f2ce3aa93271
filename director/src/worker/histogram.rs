//! How often something was how large, in buckets that double. One writer, any number of readers.

use crate::control::workers::HistogramView;
use crate::dispatch::counters::Counter;

/// Bucket `n` counts values up to 2^n, and the last one all that are larger.
#[derive(Debug)]
pub struct Histogram<const BUCKETS: usize> {
    counts: [Counter; BUCKETS],
    sum: Counter,
}

impl<const BUCKETS: usize> Default for Histogram<BUCKETS> {
    fn default() -> Histogram<BUCKETS> {
        Histogram { counts: std::array::from_fn(|_| Counter::default()), sum: Counter::default() }
    }
}

impl<const BUCKETS: usize> Histogram<BUCKETS> {
    /// Counts `value`. Only the owning worker may call this.
    #[inline]
    pub fn record(&self, value: u64) {
        let bits = u64::BITS - value.saturating_sub(1).leading_zeros();
        self.counts[(bits as usize).min(BUCKETS - 1)].add(1);
        self.sum.add(value);
    }

    /// As the control API shows it; `unit` is what one stands for.
    pub fn view(&self, unit: f64) -> HistogramView {
        HistogramView {
            bounds: (0..BUCKETS - 1).map(|bits| (1_u64 << bits) as f64 * unit).collect(),
            counts: self.counts.iter().map(Counter::get).collect(),
            sum: self.sum.get() as f64 * unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::<5>::default();
        for value in [0, 1, 2, 3, 4, 5, 8, 9, 1000] {
            histogram.record(value);
        }
        let view = histogram.view(0.5);
        assert_eq!(view.bounds, [0.5, 1.0, 2.0, 4.0]);
        assert_eq!(view.counts, [2, 1, 2, 2, 2]);
        assert_eq!(view.sum, 516.0);
        Histogram::<2>::default().record(u64::MAX);
    }
}
