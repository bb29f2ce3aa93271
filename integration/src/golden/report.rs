//! What the comparison came to, and both sides of what differs next to each other.

use std::fmt;

use super::Case;
use super::script::Answer;

/// Width of the left side.
const WIDTH: usize = 84;

/// The outcome of some sections.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Invocations that were answered alike.
    pub equal: usize,
    /// Those that were meant to be answered differently, and were.
    pub meant: usize,
    /// Those that were not, ready to be read.
    pub differences: Vec<String>,
}

impl Report {
    /// Whether something was compared, and nothing differs.
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty() && self.equal > 0
    }

    pub(super) fn join(&mut self, other: Report) {
        self.equal += other.equal;
        self.meant += other.meant;
        self.differences.extend(other.differences);
    }

    pub(super) fn add(&mut self, section: &str, case: &Case, theirs: &Answer, ours: &Answer) {
        self.add_compared(section, case, [theirs, ours], theirs == ours);
    }

    /// Adds what has been found `equal` or not.
    pub(super) fn add_compared(
        &mut self,
        section: &str,
        case: &Case,
        [theirs, ours]: [&Answer; 2],
        equal: bool,
    ) {
        if equal == case.differs {
            self.differences.push(side_by_side(section, case, theirs, ours));
        } else if case.differs {
            self.meant += 1;
        } else {
            self.equal += 1;
        }
    }
}

/// The count, then what differs: the real tool on the left, ours on the right.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} invocations equal", self.equal)?;
        if self.meant > 0 {
            write!(f, ", {} different as they are meant to be", self.meant)?;
        }
        if !self.differences.is_empty() {
            write!(f, ", {} NOT AS MEANT", self.differences.len())?;
        }
        for difference in &self.differences {
            write!(f, "\n{difference}")?;
        }
        Ok(())
    }
}

/// Lines below a difference, for the reader of a failed comparison.
pub(super) fn indented(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("    {line}")).collect();
    format!("the director counts\n{}", lines.join("\n"))
}

fn side_by_side(section: &str, case: &Case, theirs: &Answer, ours: &Answer) -> String {
    let mut text = format!("{section}: {}", case.line);
    if case.differs {
        text.push_str(" (meant to differ)");
    }
    for line in case.input.lines() {
        text.push_str(&format!("\n    < {line:?}"));
    }
    for (what, left, right) in
        [("out", &theirs.output, &ours.output), ("err", &theirs.errors, &ours.errors)]
    {
        let lines = |text: &str| -> Vec<String> {
            text.split_inclusive('\n').map(|line| line.escape_debug().to_string()).collect()
        };
        let (left, right) = (lines(left), lines(right));
        for index in 0..left.len().max(right.len()) {
            let [left, right] =
                [&left, &right].map(|lines| lines.get(index).map_or("", String::as_str));
            let mark = if left == right { ' ' } else { '#' };
            text.push_str(&format!("\n  {mark} {what} {left:<WIDTH$} | {right}"));
        }
    }
    let mark = if theirs.code == ours.code { ' ' } else { '#' };
    text.push_str(&format!("\n  {mark} rc  {:<WIDTH$} | {}", theirs.code, ours.code));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(output: &str, code: i32) -> Answer {
        Answer { output: output.to_owned(), errors: String::new(), code }
    }

    #[test]
    fn a_blank_at_the_end_of_a_line_and_an_exit_code_are_differences() {
        let case = Case::new("ipvsadm -Ln");
        let mut report = Report::default();
        assert!(!report.is_equal());
        report.add("x", &case, &answer("a \n", 0), &answer("a \n", 0));
        assert!(report.is_equal());
        report.add("x", &case, &answer("a \n", 0), &answer("a\n", 0));
        report.add("x", &case, &answer("", 2), &answer("", 255));
        let meant = Case { differs: true, ..case.clone() };
        report.add("x", &meant, &answer("", 2), &answer("", 255));
        assert_eq!(report.differences.len(), 2);
        report.add("x", &meant, &answer("", 2), &answer("", 2));
        assert!(!report.is_equal());
        let text = report.to_string();
        assert!(text.starts_with("1 invocations equal, 1 different as "), "{text}");
        assert!(text.contains("# out a \\n "), "{text}");
        assert!(text.contains("# rc  2 "), "{text}");
    }
}
