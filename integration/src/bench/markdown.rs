//! The figures as they stand in `docs/performance.md`: packets in one table by method and size, new
//! connections in one by scheduler, all else in a list.

use std::fmt::Write;

use super::Figure;
use super::report::{number, share};

/// All figures as tables in Markdown; `title` says above them where they were measured.
pub fn markdown(figures: &[Figure], title: &str) -> String {
    let mut text = format!("{title}\n");
    let pipeline: Vec<Cell<'_>> =
        figures.iter().filter_map(|it| Cell::of(it, "pipeline")).collect();
    for workers in columns(&pipeline, |cell| cell.last) {
        let cells: Vec<_> = pipeline.iter().filter(|cell| cell.last == workers).collect();
        let title = match workers {
            "1" => "One worker: ns per packet (times the floor)",
            _ => {
                "Two workers together: ns per packet (times the floor); times one worker (the floor)"
            }
        };
        table(&mut text, title, "connections", &cells, |cell| cell.middle);
    }
    let new: Vec<Cell<'_>> = figures.iter().filter_map(|it| Cell::of(it, "new")).collect();
    let cells: Vec<_> = new.iter().collect();
    table(&mut text, "New connections, millions per second", "servers", &cells, |cell| cell.last);
    let rest: Vec<_> = figures
        .iter()
        .filter(|it| !it.name.starts_with("pipeline/") && !it.name.starts_with("new/"))
        .collect();
    if !rest.is_empty() {
        text.push_str("\n| | value | floor | ratio | target |\n|---|---:|---:|---:|---|\n");
    }
    for figure in rest {
        let Figure { name, value, unit, .. } = figure;
        let floor = figure.floor.map_or_else(String::new, number);
        let ratio = figure.ratio.map_or_else(String::new, share);
        let targets: Vec<_> =
            figure.targets.iter().map(|it| verdict(&it.what, it.reached)).collect();
        let value = number(*value);
        let targets = targets.join(", ");
        let _ = writeln!(text, "| `{name}` | {value} {unit} | {floor} | {ratio} | {targets} |");
    }
    text
}

/// A figure in a table: where it stands, and what is written there.
struct Cell<'a> {
    row: &'a str,
    middle: &'a str,
    last: &'a str,
    figure: &'a Figure,
}

impl<'a> Cell<'a> {
    /// For names `<kind>/row/last` and `<kind>/row/middle/last`.
    fn of(figure: &'a Figure, kind: &str) -> Option<Cell<'a>> {
        let words: Vec<_> = figure.name.split('/').collect();
        match words[..] {
            [first, row, last] if first == kind => Some(Cell { row, middle: "", last, figure }),
            [first, row, middle, last] if first == kind => Some(Cell { row, middle, last, figure }),
            _ => None,
        }
    }

    fn text(&self) -> String {
        let mut text = number(self.figure.value);
        if let (Some(ratio), "ns/packet") = (self.figure.ratio, self.figure.unit.as_str()) {
            let _ = write!(text, " ({})", share(ratio));
        }
        if let Some([own, floor]) = self.figure.speedup {
            let _ = write!(text, "; {own:.2} ({floor:.2})");
        }
        if self.figure.reached() == Some(true) {
            text = format!("**{text}**");
        }
        text
    }
}

/// Different answers of `key`, in the order in which they come.
fn columns<'a>(cells: &[Cell<'a>], key: impl Fn(&Cell<'a>) -> &'a str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in cells.iter().map(key) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// One table: a row for each method or scheduler, a column for each answer of `column`.
fn table<'a>(
    text: &mut String,
    title: &str,
    across: &str,
    cells: &[&Cell<'a>],
    column: impl Fn(&Cell<'a>) -> &'a str,
) {
    let (mut rows, mut heads): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for cell in cells {
        if !rows.contains(&cell.row) {
            rows.push(cell.row);
        }
        if !heads.contains(&column(cell)) {
            heads.push(column(cell));
        }
    }
    if cells.is_empty() {
        return;
    }
    let _ = write!(text, "\n{title}; bold: all targets reached.\n\n| |");
    for head in &heads {
        let _ = write!(text, " {} {across} |", grouped(head));
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(heads.len()));
    for row in rows {
        let _ = write!(text, "| `{row}` |");
        for head in &heads {
            let here = cells.iter().find(|cell| cell.row == row && column(cell) == *head);
            let _ = write!(text, " {} |", here.map_or_else(String::new, |cell| cell.text()));
        }
        text.push('\n');
    }
}

/// 10000000 as 10,000,000.
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn verdict(what: &str, reached: bool) -> String {
    if reached { format!("**{what}: reached**") } else { format!("{what}: not reached") }
}

#[cfg(test)]
mod tests {
    use super::super::Better;
    use super::*;

    #[test]
    fn a_method_has_one_row_and_every_size_a_column() {
        let cost = |name: &str, value: f64| {
            Figure::new(name, value, "ns/packet", Better::Less).over(20.0, "").ratio_target(2.5)
        };
        let mut two = cost("pipeline/nat/1000/2", 30.0);
        two.speedup = Some([1.67, 1.9]);
        let figures = [
            cost("pipeline/nat/1000/1", 50.0),
            two,
            cost("pipeline/nat/1000000/1", 90.0),
            Figure::new("new/rr/3", 2.5, "M/s", Better::More).value_target(2.0, " M/s"),
            Figure::new("new/rr/1000", 1.5, "M/s", Better::More).value_target(2.0, " M/s"),
            Figure::new("idle/cpu", 0.5, "%", Better::Less).over(0.1, "").value_target(1.0, " %"),
        ];
        let text = markdown(&figures, "a machine");
        for line in [
            "| | 1,000 connections | 1,000,000 connections |",
            "| `nat` | **50.0 (2.50)** | 90.0 (4.50) |",
            "| `nat` | **30.0 (1.50); 1.67 (1.90)** |",
            "| | 3 servers | 1,000 servers |",
            "| `rr` | **2.50** | 1.50 |",
            "| `idle/cpu` | 0.50 % | 0.10 | 5.00 | **at most 1 %: reached** |",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
        }
    }
}
