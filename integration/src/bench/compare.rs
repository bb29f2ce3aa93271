//! Two runs side by side.
//!
//! Runs of two days or two machines differ by more than the program: so beside what a value has
//! become stands what its ratio to the floor has become, which takes the machine out of it.

use std::fmt::Write;

use super::Figure;
use super::report::{better, number};

/// A table of both runs' figures by name, in the order of the second.
///
/// ```
/// let run = integration::bench::parse("[]").unwrap();
/// assert!(integration::bench::compare(&run, &run).contains("nothing"));
/// ```
pub fn compare(before: &[Figure], after: &[Figure]) -> String {
    let pairs: Vec<(&Figure, &Figure)> = after
        .iter()
        .filter_map(|new| Some((before.iter().find(|old| old.name == new.name)?, new)))
        .collect();
    if pairs.is_empty() {
        return String::from("nothing is in both files\n");
    }
    let width = pairs.iter().map(|(_, new)| new.name.len()).max().unwrap_or(0);
    let mut text = String::from(
        "A and B are values, B/A is what they have become; 'of floors' is the same of value/floor,\n\
         which a slower or busier machine changes less. A difference of 10 % is noise.\n\n",
    );
    let _ = writeln!(
        text,
        "{:width$} {:>9} {:>9} {:>6} {:>9}  {:10}",
        "", "A", "B", "B/A", "of floors", "unit"
    );
    for (old, new) in pairs {
        let quotient = |before: f64, after: f64| (before != 0.0).then(|| after / before);
        let factor = quotient(old.value, new.value);
        let of_floors = old.ratio.zip(new.ratio).and_then(|(old, new)| quotient(old, new));
        let show = |factor: Option<f64>| factor.map_or("-".to_owned(), |it| format!("{it:.2}"));
        let verdict = of_floors.or(factor).map_or("", |factor| better(new, factor));
        let line = format!(
            "{:width$} {:>9} {:>9} {:>6} {:>9}  {:10} {verdict}",
            new.name,
            number(old.value),
            number(new.value),
            show(factor),
            show(of_floors),
            new.unit
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for (which, some, others) in [("A", before, after), ("B", after, before)] {
        let alone: Vec<_> = some
            .iter()
            .filter(|figure| others.iter().all(|other| other.name != figure.name))
            .map(|figure| figure.name.as_str())
            .collect();
        if !alone.is_empty() {
            let _ = writeln!(text, "\nonly in {which}: {}", alone.join(" "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::Better;
    use super::*;

    #[test]
    fn a_slower_machine_is_no_regression_and_a_lower_rate_is_one() {
        let cost = |value: f64, floor: f64| {
            Figure::new("cost", value, "ns", Better::Less).over(floor, "bare")
        };
        let rate = |value: f64| Figure::new("rate", value, "M/s", Better::More);
        let text = compare(&[cost(50.0, 20.0), rate(2.0)], &[cost(100.0, 40.0), rate(1.0)]);
        let line = |name: &str| -> Vec<&str> {
            text.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().collect()
        };
        assert_eq!(line("cost"), ["cost", "50.0", "100", "2.00", "1.00", "ns"]);
        assert_eq!(line("rate"), ["rate", "2.00", "1.00", "0.50", "-", "M/s", "WORSE"]);
    }

    #[test]
    fn what_only_one_run_has_is_named() {
        let figure = |name: &str| Figure::new(name, 1.0, "ns", Better::Less);
        let text = compare(&[figure("a"), figure("b")], &[figure("b"), figure("c")]);
        assert!(text.contains("only in A: a\n") && text.contains("only in B: c\n"), "{text}");
    }
}
