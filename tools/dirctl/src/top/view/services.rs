//! Services and their servers: the table in the middle.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::numbers::{fit, short, sparkline};
use super::super::rows::Row;
use super::super::state::{Column, Top};
use super::{dim, loss, page_of, span, warning};

/// Columns and the width of each, but for the name, which takes what is left.
const COLUMNS: [(Column, &str, usize); 9] = [
    (Column::State, "state", 5),
    (Column::Weight, "weight", 7),
    (Column::Active, "act", 5),
    (Column::Inactive, "inact", 5),
    (Column::Cps, "cps", 5),
    (Column::InPps, "inpps", 5),
    (Column::OutPps, "outpps", 6),
    (Column::InBps, "inbps", 5),
    (Column::OutBps, "outbps", 6),
];

/// A name is not given more than this.
const LONGEST_NAME: usize = 52;

/// A line of bars is worth showing from this many on.
const BARS: usize = 12;

pub(super) fn lines(top: &Top, width: usize, room: usize) -> Vec<Line<'static>> {
    let fixed: usize = COLUMNS.iter().map(|(_, _, width)| width + 1).sum();
    let rest = width.saturating_sub(fixed);
    let bars = rest.saturating_sub(LONGEST_NAME.min(rest.max(36) - BARS));
    let bars = if bars > BARS { bars - 1 } else { 0 };
    let name = if bars > 0 { rest - bars - 1 } else { rest.min(LONGEST_NAME) };
    let mut lines = vec![titles(top, name, bars)];
    let rows = top.rows();
    if rows.is_empty() {
        let text = if top.filter.is_empty() { "no services" } else { "nothing has that in it" };
        lines.push(Line::styled(format!("  {text}"), dim()));
        return lines;
    }
    let (first, shown) = page_of(&rows, top.cursor, room.saturating_sub(1));
    for (place, row) in (first..).zip(shown) {
        // What is printed for a script has no cursor.
        let chosen = place == top.cursor && room != usize::MAX;
        lines.push(line(top, row, name, bars, chosen));
    }
    lines
}

fn titles(top: &Top, name: usize, bars: usize) -> Line<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let style = |column| {
        if column == top.column { bold.add_modifier(Modifier::REVERSED) } else { bold }
    };
    let mut spans = vec![span(fit("service, server", name), style(Column::Name))];
    for (column, title, width) in COLUMNS {
        spans.push(Span::raw(" "));
        let left = column == Column::State;
        let title = if left { format!("{title:<width$}") } else { format!("{title:>width$}") };
        spans.push(span(title, style(column)));
    }
    if bars > 0 {
        spans.push(span(format!(" {}", fit("inpps", bars)), bold));
    }
    Line::from(spans)
}

fn line(top: &Top, row: &Row<'_>, name: usize, bars: usize, chosen: bool) -> Line<'static> {
    let mark = match (row.server, row.expanded) {
        (Some(_), _) => "    ",
        (None, true) => "- ",
        (None, false) => "+ ",
    };
    let (rates, [effective, weight]) = (row.rates, row.weights);
    let weight = match effective == weight {
        true => short(weight as f64),
        false => format!("{}>{}", short(weight as f64), short(effective as f64)),
    };
    let numbers = [
        weight,
        short(row.connections[0] as f64),
        short(row.connections[1] as f64),
        short(rates.connections),
        short(rates.in_packets),
        short(rates.out_packets),
        short(rates.in_bits),
        short(rates.out_bits),
    ];
    // Of two long weights the one in effect is what counts.
    let tail = |text: String, width: usize| {
        let skipped = text.chars().count().saturating_sub(width);
        let text: String = text.chars().skip(skipped).collect();
        format!(" {text:>width$}")
    };
    let cells: String = numbers
        .into_iter()
        .zip(&COLUMNS[1..])
        .map(|(text, (_, _, width))| tail(text, *width))
        .collect();
    let state = match row.state {
        "down" | "empty" => loss(),
        "drain" | "part" | "quiet" => warning(),
        _ => Style::new(),
    };
    let base =
        if row.server.is_none() { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
    let mut spans = vec![
        span(fit(&format!("{mark}{}", row.name()), name), base.patch(state)),
        span(format!(" {:<5}", row.state), state),
        span(cells, base),
    ];
    let past = if row.server.is_none() { top.meter.history(&row.service.spec.key) } else { None };
    if bars > 0
        && let Some(past) = past
    {
        spans.push(Span::raw(format!(" {}", sparkline(past, bars))));
    }
    let line = Line::from(spans);
    if chosen { line.style(Style::new().add_modifier(Modifier::REVERSED)) } else { line }
}
