//! How a cluster would grow, of what the filter costs.

use director::control::nlb::views::CapacityView;
use nlb::capacity;

use crate::columns::{Side, columns};
use crate::paint::Paint;

/// The table of R_N for 2 to 32 hosts; `served` is what serving a packet costs, nanoseconds, if the
/// operator knows.
pub fn text(view: &CapacityView, served: Option<f64>, paint: Paint) -> String {
    let cost = served.unwrap_or(view.served).max(1.0);
    let overhead = view.dropped / cost;
    let whose = match served {
        Some(_) => "as given",
        None => "measured: a datagram through this host's stack, without an application",
    };
    let mut rows = vec![["hosts", "each serves", "together"].map(str::to_owned)];
    rows.extend((2..=32).map(|hosts| {
        [
            hosts.to_string(),
            format!("{:.1} %", 100.0 * capacity::of_each(hosts, overhead)),
            format!("{:.2}", capacity::of_all(hosts, overhead)),
        ]
    }));
    let mut lines = columns([Side::Right; 3], &rows);
    lines[0] = paint.heading(&lines[0]);
    format!(
        "  dropping a packet  {:.0} ns\n  passing one        {:.0} ns\n  serving one        {cost:.0} ns ({whose})\n  \
         overhead           {:.2} % of serving one; no number of hosts serves more than {:.0} times one\n\n{}\n",
        view.dropped,
        view.passed,
        100.0 * overhead,
        capacity::limit(overhead),
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_from_the_cost_of_a_drop_over_that_of_serving() {
        let view = CapacityView { dropped: 50.0, passed: 80.0, served: 5000.0 };
        let text = text(&view, None, Paint::default());
        assert!(text.contains("  overhead           1.00 % of serving one"), "{text}");
        assert!(text.contains("\n     16       87.0 %     13.91\n"), "{text}");
        let text = super::text(&view, Some(1000.0), Paint::default());
        assert!(text.contains("serving one        1000 ns (as given)"), "{text}");
        assert!(text.contains("\n      8       74.1 %      5.93\n"), "{text}");
    }
}
