//! One measured number, what it is held against, and what it was to reach.

use serde::{Deserialize, Serialize};

/// One figure. `value` and `floor` are medians unless `note` says otherwise, and were measured in
/// turn, so that a busy neighbour on the machine spoils both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured, `pipeline/nat/1000000/1` for example.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of `value` and `floor`.
    pub unit: String,
    /// Whether less or more is better.
    pub better: Better,
    /// The same by a program that does the least that the task allows.
    pub floor: Option<f64>,
    /// `value / floor`.
    pub ratio: Option<f64>,
    /// How many times as fast as one worker, and how many times the floor is with as many.
    pub speedup: Option<[f64; 2]>,
    /// What was to be reached.
    pub targets: Vec<Target>,
    /// What the floor is, by which way packets came, and what else one must know.
    pub note: String,
}

/// The direction of improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Costs.
    Less,
    /// Rates.
    More,
}

/// Something to reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// In words: "at most 2.5 x floor".
    pub what: String,
    /// Whether it was.
    pub reached: bool,
}

impl Figure {
    /// A figure without floor and targets.
    pub(super) fn new(name: impl Into<String>, value: f64, unit: &str, better: Better) -> Figure {
        Figure {
            name: name.into(),
            value: tidy(value),
            unit: unit.to_owned(),
            better,
            floor: None,
            ratio: None,
            speedup: None,
            targets: Vec::new(),
            note: String::new(),
        }
    }

    /// Holds it against a floor; `note` says what that is.
    pub(super) fn over(mut self, floor: f64, note: &str) -> Figure {
        self.floor = Some(tidy(floor));
        self.ratio = (floor != 0.0).then(|| tidy(self.value / floor));
        self.noted(note)
    }

    /// Adds to the note.
    pub(super) fn noted(mut self, note: &str) -> Figure {
        if !self.note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(note);
        self
    }

    /// Adds a target on `actual`: at most `limit` if less is better, else at least.
    pub(super) fn target(mut self, actual: f64, limit: f64, better: Better, of: &str) -> Figure {
        let (word, reached) = match better {
            Better::Less => ("at most", actual <= limit),
            Better::More => ("at least", actual >= limit),
        };
        self.targets.push(Target { what: format!("{word} {limit}{of}"), reached });
        self
    }

    /// Adds a target on the value itself.
    pub(super) fn value_target(self, limit: f64, of: &str) -> Figure {
        let (value, better) = (self.value, self.better);
        self.target(value, limit, better, of)
    }

    /// Adds a target on the ratio, if there is one.
    pub(super) fn ratio_target(self, limit: f64) -> Figure {
        let better = self.better;
        match self.ratio {
            Some(ratio) => self.target(ratio, limit, better, " x floor"),
            None => self,
        }
    }

    /// Whether all targets were reached; `None` without any.
    pub fn reached(&self) -> Option<bool> {
        (!self.targets.is_empty()).then(|| self.targets.iter().all(|target| target.reached))
    }
}

/// Four significant digits: more would be noise, and none of it is money.
pub(super) fn tidy(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(3 - number.abs().log10().floor() as i32);
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_reached_on_the_better_side_only() {
        let cost = Figure::new("a", 50.0, "ns", Better::Less).over(20.0, "bare").ratio_target(2.5);
        assert_eq!((cost.ratio, cost.reached()), (Some(2.5), Some(true)));
        assert_eq!(cost.targets[0].what, "at most 2.5 x floor");
        assert_eq!(cost.value_target(40.0, " ns").reached(), Some(false));
        let rate = Figure::new("b", 1.9, "M/s", Better::More).value_target(2.0, " M/s");
        assert_eq!(rate.reached(), Some(false));
        assert_eq!(Figure::new("c", 1.0, "x", Better::More).reached(), None);
    }

    #[test]
    fn numbers_keep_four_digits() {
        assert_eq!(tidy(1234.567), 1235.0);
        assert_eq!(tidy(0.012_345_67), 0.012_35);
        assert_eq!((tidy(0.0), tidy(f64::NAN)), (0.0, 0.0));
    }
}
