//! The table of all cases: the worst of every figure over several seeds.

use std::fmt;
use std::time::Duration;

use super::cases::{CASES, Case, Outcome};
use super::measure::Measures;

/// One line: a case in clusters of one size.
#[derive(Clone, Debug)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// Nodes in the cluster.
    pub nodes: usize,
    /// The worst of each figure.
    pub worst: Measures,
    /// What went wrong: the seed, and broken rules or limits. Empty when all is well.
    pub faults: Vec<(u64, String)>,
}

/// Runs all cases, each with these seeds; `done` is told each line when it is known.
pub fn run(seeds: std::ops::Range<u64>, mut done: impl FnMut(&Row)) -> Vec<Row> {
    let lines = CASES.iter().flat_map(|case| case.nodes.iter().map(move |&nodes| (case, nodes)));
    lines
        .map(|(case, nodes)| {
            let row = line(case, nodes, seeds.clone());
            done(&row);
            row
        })
        .collect()
}

/// One case in clusters of one size.
pub fn line(case: &Case, nodes: usize, seeds: std::ops::Range<u64>) -> Row {
    let mut row = Row { case: *case, nodes, worst: Measures::default(), faults: Vec::new() };
    for seed in seeds {
        let outcome = (case.run)(seed, nodes);
        row.faults.extend(faults(case, &outcome).into_iter().map(|fault| (seed, fault)));
        worsen(&mut row.worst, &outcome.measures);
    }
    row
}

fn worsen(worst: &mut Measures, one: &Measures) {
    worst.noticed = worst.noticed.max(one.noticed);
    worst.settled = worst.settled.max(one.settled);
    worst.unserved = worst.unserved.max(one.unserved);
    worst.twice = worst.twice.max(one.twice);
    worst.gap = worst.gap.max(one.gap);
}

fn faults(case: &Case, outcome: &Outcome) -> Vec<String> {
    let Outcome { measures, violations } = outcome;
    let mut faults: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let mut limit = |name: &str, value: Option<Duration>, most: Duration| {
        if value.is_none_or(|value| value > most) {
            faults.push(format!("{name} {value:?}, at most {most:?}"));
        }
    };
    let limits = case.limits;
    if let Some(most) = limits.noticed {
        limit("noticed", measures.noticed, most);
    }
    limit("settled", measures.settled, limits.settled);
    if let Some(most) = limits.gap {
        limit("gap", Some(measures.gap), most);
    }
    if measures.twice > limits.twice {
        faults.push(format!("served twice {} s", measures.twice));
    }
    faults
}

/// The line above all others.
pub const HEADER: &str =
    "case                     nodes  noticed  settled  unserved      gap    twice";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: Option<Duration>| match time {
            Some(time) => format!("{:.2}", time.as_secs_f64()),
            None => "-".to_owned(),
        };
        write!(
            f,
            "{:24} {:5} {:>8} {:>8} {:9.3} {:>8} {:8.3}{}",
            self.case.name,
            self.nodes,
            seconds(self.worst.noticed),
            seconds(self.worst.settled),
            self.worst.unserved,
            seconds(Some(self.worst.gap)),
            self.worst.twice,
            if self.faults.is_empty() { "" } else { "  FAILED" },
        )
    }
}
