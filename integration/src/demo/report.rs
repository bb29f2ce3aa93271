//! The closing table: requests per server, method, family and scheduler.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Row;

/// The table as text, one line per scenario.
pub(super) fn table(rows: &[Row]) -> String {
    let servers: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.tally.by_server.keys().map(String::as_str)).collect();
    let mut text = format!("{:<8} {:<6} {:<9}", "method", "family", "scheduler");
    for server in &servers {
        // Writing to a string cannot fail, here and below.
        let _ = write!(text, " {server:>8}");
    }
    let _ = writeln!(text, " {:>9} {:>7}", "answered", "failed");
    for row in rows {
        let _ = write!(text, "{:<8} {:<6} {:<9}", row.method, row.family, row.scheduler);
        for server in &servers {
            let count = row.tally.by_server.get(*server).copied().unwrap_or(0);
            let _ = write!(text, " {count:>8}");
        }
        let failed = row.wanted - row.tally.answered().min(row.wanted);
        let _ = writeln!(text, " {:>9} {failed:>7}", row.tally.answered());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Tally;

    #[test]
    fn every_server_has_a_column_and_lost_requests_are_shown() {
        let tally = |answers: &[(&str, u64)]| Tally {
            by_server: answers.iter().map(|&(name, count)| (name.to_owned(), count)).collect(),
            ..Tally::default()
        };
        let row = |tally| Row { method: "nat", family: "IPv4", scheduler: "rr", tally, wanted: 10 };
        let text = table(&[row(tally(&[("a", 6), ("b", 4)])), row(tally(&[("a", 7)]))]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0].split_whitespace().skip(3).collect::<Vec<_>>(),
            ["a", "b", "answered", "failed"]
        );
        assert_eq!(lines[2].split_whitespace().skip(3).collect::<Vec<_>>(), ["7", "0", "7", "3"]);
    }
}
