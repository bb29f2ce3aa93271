//! Port rules, and all else that a host runs with.

use director::control::api::VerdictCount;
use director::control::nlb::views::{ParamsView, RuleView};

use crate::clean::clean;
use crate::columns::{Side, columns};
use crate::paint::Paint;

/// The rules as a table.
pub fn table(rules: &[RuleView], paint: Paint) -> String {
    if rules.is_empty() {
        return "  no port rules: the default host takes everything\n".to_owned();
    }
    let titles = ["rule", "filter", "affinity", "state", "weight", "buckets", "flows", "opened"];
    let mut rows = vec![titles.map(str::to_owned)];
    rows.extend(rules.iter().map(|rule| {
        let number = match rule.filter.as_str() {
            "single" => format!("#{}", rule.number),
            _ => rule.number.to_string(),
        };
        [
            clean(&rule.rule),
            clean(&rule.filter),
            clean(&rule.affinity),
            clean(&rule.state),
            number,
            rule.buckets.to_string(),
            rule.flows.to_string(),
            rule.opened.to_string(),
        ]
    }));
    use Side::{Left, Right};
    let mut lines = columns([Left, Left, Left, Left, Right, Right, Right, Right], &rows);
    lines[0] = paint.heading(&lines[0]);
    lines.join("\n") + "\n"
}

/// Everything.
pub fn params(view: &ParamsView, paint: Paint) -> String {
    let join = |addresses: &[std::net::IpAddr]| {
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let mut rows = vec![
        ["version".to_owned(), clean(&view.version)],
        ["configuration".to_owned(), clean(&view.config)],
        ["digest".to_owned(), format!("{} (generation {})", clean(&view.digest), view.generation)],
        ["interface".to_owned(), format!("{} {}", clean(&view.interface), clean(&view.mac))],
        ["cluster MAC".to_owned(), clean(&view.cluster_mac)],
        ["virtual".to_owned(), join(&view.vips)],
        ["own".to_owned(), join(&view.addresses)],
    ];
    rows.extend(view.settings.iter().map(|(name, value)| [clean(name), clean(value)]));
    let mut text = columns([Side::Left, Side::Left], &rows).join("\n") + "\n\n";
    text.push_str(&table(&view.rules, paint));
    for (title, counts) in [
        ("Frames since start", &view.frames),
        ("Heartbeats not believed", &view.refused_heartbeats),
        ("Remote commands not taken", &view.refused_commands),
    ] {
        if !counts.is_empty() {
            text.push_str(&format!("\n{}\n{}", paint.heading(title), counters(counts)));
        }
    }
    text
}

fn counters(counts: &[VerdictCount]) -> String {
    let rows: Vec<[String; 3]> = counts
        .iter()
        .map(|count| [count.packets.to_string(), clean(&count.reason), clean(&count.meaning)])
        .collect();
    columns([Side::Right, Side::Left, Side::Left], &rows).join("\n") + "\n"
}
