//! A node of a cluster without a dispatcher: the hosts as it sees them, their shares, and its own port
//! rules.

use director::control::nlb::views::SlotView;
use ratatui::style::Style;
use ratatui::text::Line;

use super::super::numbers::{fit, short};
use super::super::snapshot::Node;
use super::super::state::Top;
use super::{dim, heading, loss, warning};
use crate::clean::clean;

pub(super) fn lines(top: &Top, node: &Node, width: usize, room: usize) -> Vec<Line<'static>> {
    let query = &node.display.query;
    let wanted = top.filter.to_lowercase();
    let is_meant = |text: &str| wanted.is_empty() || text.to_lowercase().contains(&wanted);
    let mut lines = vec![
        heading(format!(
            "cluster {}, seen by host {} {}: {}",
            clean(&query.cluster),
            node.host,
            clean(&node.name),
            clean(&node.state)
        )),
        heading(format!(
            "host {} {} {:>8} {:>7} {:>13}",
            fit("name", 16),
            fit("state", 20),
            "silent",
            "flows",
            "buckets"
        )),
    ];
    // What no rule covers is the default host's, all of it: a share of that would say nothing.
    let rules = &node.display.params.rules;
    let is_of_rule = |slot: &&SlotView| rules.iter().any(|rule| rule.slots.contains(&slot.slot));
    let slots: Vec<&SlotView> = node.map.slots.iter().filter(is_of_rule).collect();
    let all = slots.iter().map(|slot| slot.now.values().sum::<usize>()).sum::<usize>();
    for host in &query.hosts {
        let buckets: usize = slots.iter().filter_map(|slot| slot.now.get(&host.host)).sum();
        let share = if all == 0 { 0.0 } else { buckets as f64 * 100.0 / all as f64 };
        let line = format!(
            "{:>4} {} {} {:>6} s {:>7} {:>6} {:>5.1}%",
            host.host,
            fit(&clean(&host.name), 16),
            fit(&clean(if host.heard { &host.state } else { "not heard" }), 20),
            short(host.silent),
            short(host.flows as f64),
            buckets,
            share,
        );
        let style = match host.state.as_str() {
            _ if !host.heard => loss(),
            state if state.starts_with("converged") => Style::new(),
            _ => warning(),
        };
        if is_meant(&line) {
            lines.push(Line::styled(line, style));
        }
    }
    let rest = width.saturating_sub(47).min(52);
    lines.push(heading(format!(
        "{} {} {:>6} {:>7} {:>7} {:>7} {:>5}",
        fit("port rule", rest),
        fit("state", 9),
        "weight",
        "buckets",
        "flows",
        "opened",
        "cps"
    )));
    for (place, rule) in rules.iter().enumerate() {
        let line = format!(
            "{} {} {:>6} {:>7} {:>7} {:>7} {:>5}",
            fit(&clean(&rule.rule), rest),
            fit(&clean(&rule.state), 9),
            rule.number,
            rule.buckets,
            short(rule.flows as f64),
            short(rule.opened as f64),
            short(top.meter.rule(place)),
        );
        if is_meant(&line) {
            let style = if rule.state == "enabled" { Style::new() } else { warning() };
            lines.push(Line::styled(line, style));
        }
    }
    if lines.len() > room && room > 0 {
        let left_out = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(Line::styled(format!("  {left_out} more lines: / filters"), dim()));
    }
    lines
}
