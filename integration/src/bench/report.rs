//! Figures for people and for programs.

use std::fmt::Write;

use super::{Better, Figure};

const HEAD: &str = "\
Every figure beside its floor, the least that a program must do for the same, measured in turn with
it. ratio = value / floor; speedup = one worker's cost / two workers' cost, in brackets the floor's.
What each floor is stands below the table.

";

/// A table that says what its columns are; `machine` is named above it.
pub fn table(figures: &[Figure], machine: &str) -> String {
    let mut text = format!("{machine}\n\n{HEAD}");
    let width = figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "{:width$} {:>6} {:>9} {:>9} {:>11}  {:11} target",
        "", "ratio", "value", "floor", "speedup", "unit"
    );
    for figure in figures {
        let dash = || String::from("-");
        let floor = figure.floor.map_or_else(dash, number);
        let ratio = figure.ratio.map_or_else(dash, share);
        let speedup = figure
            .speedup
            .map_or_else(String::new, |[own, floor]| format!("{own:.2} ({floor:.2})"));
        let targets: Vec<_> = figure
            .targets
            .iter()
            .map(|target| {
                let word = if target.reached { "reached" } else { "NOT reached" };
                format!("{}: {word}", target.what)
            })
            .collect();
        let line = format!(
            "{:width$} {ratio:>6} {:>9} {floor:>9} {speedup:>11}  {:11} {}",
            figure.name,
            number(figure.value),
            figure.unit,
            targets.join(", ")
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push_str(&notes(figures));
    let (all, reached) = figures
        .iter()
        .flat_map(|figure| &figure.targets)
        .fold((0, 0), |(all, reached), target| (all + 1, reached + usize::from(target.reached)));
    let _ = writeln!(text, "\n{reached} of {all} targets reached");
    text
}

/// Each note once, with the first name that it belongs to and how many more there are.
fn notes(figures: &[Figure]) -> String {
    let mut text = String::new();
    let mut seen: Vec<(&str, &str, usize)> = Vec::new();
    for figure in figures.iter().filter(|figure| !figure.note.is_empty()) {
        // What was measured beside it differs from figure to figure; what the floor is does not.
        let note = figure.note.split("; the port alone").next().unwrap_or_default();
        match seen.iter_mut().find(|(_, other, _)| *other == note) {
            Some((_, _, more)) => *more += 1,
            None => seen.push((&figure.name, note, 0)),
        }
    }
    if !seen.is_empty() {
        text.push('\n');
    }
    for (name, note, more) in seen {
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "{name}{others}: {note}");
    }
    text
}

/// As many digits as say something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => String::from("0"),
        large if large >= 100.0 => format!("{value:.0}"),
        large if large >= 10.0 => format!("{value:.1}"),
        large if large >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A ratio, with more digits where it is small.
pub(super) fn share(ratio: f64) -> String {
    let digits = if ratio < 0.1 { 3 } else { 2 };
    format!("{ratio:.digits$}")
}

/// The figures as an array of objects, see [`Figure`].
///
/// # Errors
/// None that a figure could cause.
pub fn json(figures: &[Figure]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(figures)
}

/// Reads what [`json`] has written.
///
/// # Errors
/// When it is something else; says where.
pub fn parse(text: &str) -> serde_json::Result<Vec<Figure>> {
    serde_json::from_str(text)
}

/// Whether the better value is the smaller one, in a word for tables.
pub(super) fn better(figure: &Figure, factor: f64) -> &'static str {
    let gain = match figure.better {
        Better::Less => 1.0 / factor,
        Better::More => factor,
    };
    // Less than that is the difference between two runs of the same program.
    match gain {
        gain if gain > 1.1 => "better",
        gain if gain < 1.0 / 1.1 => "WORSE",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Vec<Figure> {
        let mut two = Figure::new("pipeline/nat/1000/2", 30.0, "ns/packet", Better::Less)
            .over(10.0, "floor: bare")
            .ratio_target(2.5);
        two.speedup = Some([1.67, 1.9]);
        vec![
            Figure::new("pipeline/nat/1000/1", 50.123, "ns/packet", Better::Less)
                .over(20.0, "floor: bare; the port alone 15.0 ns")
                .ratio_target(2.6),
            two,
            Figure::new("publish/lost", 0.0, "packets", Better::Less).value_target(0.0, ""),
        ]
    }

    #[test]
    fn people_see_value_floor_ratio_and_whether_it_is_enough() {
        let text = table(&figures(), "a machine");
        let line = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(text.starts_with("a machine\n"));
        assert_eq!(
            line("pipeline/nat/1000/1 "),
            "pipeline/nat/1000/1 2.51 50.1 20.0 ns/packet at most 2.6 x floor: reached"
        );
        assert_eq!(
            line("pipeline/nat/1000/2"),
            "pipeline/nat/1000/2 3.00 30.0 10.0 1.67 (1.90) ns/packet at most 2.5 x floor: NOT reached"
        );
        assert!(text.contains("\npipeline/nat/1000/1 and 1 more: floor: bare\n"), "{text}");
        assert!(text.ends_with("\n2 of 3 targets reached\n"), "{text}");
    }

    #[test]
    fn programs_read_back_what_was_written() {
        let text = json(&figures()).unwrap();
        assert_eq!(parse(&text).unwrap(), figures());
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value[0]["name"], "pipeline/nat/1000/1");
        assert_eq!(value[1]["targets"][0]["reached"], false);
        assert_eq!(value[2]["floor"], serde_json::Value::Null);
    }
}
