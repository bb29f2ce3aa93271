//! What is shown of an answer.

use director::control::nlb::views::{
    ConnectionsView, FilterView, HistoryView, MacsView, MapView, QueryView,
};
use director::control::nlb::{NlbAnswer, NlbReply, NlbView};

use super::verdict::{self, Packet};
use super::{capacity, rules};
use crate::clean::{clean, count, duration};
use crate::columns::{Side, columns};
use crate::paint::Paint;

/// The answers of all hosts, one after the other.
pub fn text(reply: &NlbReply, served: Option<f64>, paint: Paint) -> String {
    let mut blocks: Vec<String> =
        reply.answers.iter().map(|answer| one(answer, served, paint)).collect();
    match verdict::packet(reply) {
        Some(Packet::Disagreement) => {
            let line =
                "The hosts disagree about this packet: look at `dirctl nlb query --host all`";
            blocks.push(paint.loss(line) + "\n");
        }
        Some(Packet::Nobody) if reply.answers.len() > 1 => {
            blocks.push(paint.warning("None of these hosts takes it.\n"));
        }
        Some(Packet::Taken(host)) if reply.answers.len() > 1 => {
            blocks.push(format!("Host {host} takes it; the others agree.\n"));
        }
        _ => {}
    }
    if !reply.silent.is_empty() {
        let line = format!("No answer from host {}", list(&reply.silent));
        blocks.push(paint.warning(&line) + "\n");
    }
    blocks.join("")
}

fn one(answer: &NlbAnswer, served: Option<f64>, paint: Paint) -> String {
    if let (0, Some(NlbView::Macs(view))) = (answer.host, answer.view.as_deref()) {
        // Nobody was asked.
        return macs(view);
    }
    let mut text = format!("host {} ({}): ", answer.host, clean(&answer.name));
    match &answer.message {
        Some(message) if answer.result.is_good() => {
            text.push_str(&format!(
                "{}, {}: {}",
                answer.result.label(),
                answer.state,
                clean(message)
            ));
        }
        Some(message) => {
            let line = format!("{}: {}", answer.result.label(), clean(message));
            text.push_str(&paint.warning(&line));
        }
        None if answer.view.is_some() => text.push_str(&clean(&answer.state)),
        None => text.push_str(&format!("{}, {}", answer.result.label(), clean(&answer.state))),
    }
    text.push('\n');
    text.push_str(&match answer.view.as_deref() {
        None => String::new(),
        Some(NlbView::Query(view)) => query(view, paint),
        Some(NlbView::Rules(view)) => rules::table(&view.rules, paint),
        Some(NlbView::Params(view)) => rules::params(view, paint),
        Some(NlbView::Display(view)) => [
            rules::params(&view.params, paint),
            query(&view.query, paint),
            history(&view.history, paint),
        ]
        .join("\n"),
        Some(NlbView::Macs(view)) => macs(view),
        Some(NlbView::Filter(view)) => filter(view),
        Some(NlbView::History(view)) => history(view, paint),
        Some(NlbView::Connections(view)) => connections(view, paint),
        Some(NlbView::Map(view)) => map(view, paint),
        Some(NlbView::Capacity(view)) => capacity::text(view, served, paint),
    });
    text
}

/// `1, 2, 5`
pub fn list(hosts: &[u8]) -> String {
    hosts.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
}

fn table<const N: usize>(
    titles: [&str; N],
    sides: [Side; N],
    rows: Vec<[String; N]>,
    paint: Paint,
) -> String {
    let mut all = vec![titles.map(str::to_owned)];
    all.extend(rows);
    let mut lines = columns(sides, &all);
    lines[0] = paint.heading(&lines[0]);
    lines.join("\n") + "\n"
}

fn query(view: &QueryView, paint: Paint) -> String {
    let members = match view.members.is_empty() {
        true => "none: this host is not in it".to_owned(),
        false => list(&view.members),
    };
    let mut text = format!(
        "  cluster   {}, members {members} (epoch {})\n  converged {}\n",
        clean(&view.cluster),
        view.epoch,
        match (view.last_began, view.last_ended) {
            (None, _) => "never".to_owned(),
            (_, Some(ago)) => format!("{} times, last {} ago", view.convergences, duration(ago)),
            (Some(ago), None) => format!("not yet, since {}", duration(ago)),
        }
    );
    if let Some(drain) = view.drain {
        let left = drain.left.map(|left| format!(", {} at most", duration(left)));
        text.push_str(&format!(
            "  draining  {} of {} left{}\n",
            drain.flows_left,
            count(drain.flows_at_start, "connection"),
            left.unwrap_or_default()
        ));
    }
    text.push('\n');
    let rows = view.hosts.iter().map(|host| {
        [
            host.host.to_string(),
            clean(&host.name),
            clean(&host.state),
            host.flows.to_string(),
            format!("{:.1} s", host.silent),
            host.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        ]
    });
    use Side::{Left, Right};
    let titles = ["host", "name", "state", "flows", "heard", "addresses"];
    text.push_str(&table(titles, [Right, Left, Left, Right, Right, Left], rows.collect(), paint));
    for warning in &view.warnings {
        text.push_str(&paint.warning(&format!("  ! {}", clean(warning))));
        text.push('\n');
    }
    text
}

fn macs(view: &MacsView) -> String {
    format!(
        "  address    {}\n  unicast    {}\n  multicast  {}\n  igmp       {} (group {})\n",
        view.address,
        clean(&view.unicast),
        clean(&view.multicast),
        clean(&view.igmp),
        clean(&view.group)
    )
}

fn filter(view: &FilterView) -> String {
    let mut text = format!(
        "  {}: {} ({})\n",
        if view.passes { "takes it" } else { "drops it" },
        clean(&view.reason),
        clean(&view.meaning)
    );
    let rule = view.rule.as_deref().map_or("none, the default host's".to_owned(), clean);
    text.push_str(&format!("  rule {rule}"));
    if let (Some(slot), Some(bucket)) = (view.slot, view.bucket) {
        let owner = view.owner.map_or("nobody".to_owned(), |owner| format!("host {owner}"));
        text.push_str(&format!(", slot {slot}, bucket {bucket}, owner {owner}"));
        if view.serving {
            text.push_str(", served here");
        }
        if view.tainted {
            text.push_str(", others hold flows in it");
        }
    }
    if let Some(held) = &view.held {
        text.push_str(&format!(", held here by a {}", clean(held)));
    }
    text.push('\n');
    text
}

fn history(view: &HistoryView, paint: Paint) -> String {
    if view.convergences.is_empty() {
        return "  no convergence yet\n".to_owned();
    }
    let rows = view.convergences.iter().map(|past| {
        let about = past.host.map(|host| format!(" {host}")).unwrap_or_default();
        [
            format!("{} ago", duration(past.began)),
            past.took.map_or("-".to_owned(), |took| format!("{took:.2} s")),
            format!("{}{about}", clean(&past.cause)),
            list(&past.from),
            list(&past.to),
        ]
    });
    use Side::{Left, Right};
    let titles = ["began", "took", "cause", "from", "to"];
    table(titles, [Right, Right, Left, Left, Left], rows.collect(), paint)
}

fn connections(view: &ConnectionsView, paint: Paint) -> String {
    let rows: Vec<_> = view
        .flows
        .iter()
        .map(|flow| {
            [
                clean(&flow.protocol),
                std::net::SocketAddr::new(flow.client, flow.client_port).to_string(),
                std::net::SocketAddr::new(flow.vip, flow.port).to_string(),
                clean(&flow.held),
                flow.owner.map_or("-".to_owned(), |owner| owner.to_string()),
            ]
        })
        .collect();
    let shown = rows.len();
    use Side::{Left, Right};
    let titles = ["protocol", "client", "virtual address", "held by", "owner"];
    let mut text = match shown {
        0 => String::new(),
        _ => table(titles, [Left, Left, Left, Left, Right], rows, paint),
    };
    text.push_str(&format!("  {}", count(view.total as u64, "flow")));
    if shown < view.total {
        text.push_str(&format!(", {shown} shown: --limit shows more"));
    }
    text.push('\n');
    text
}

fn map(view: &MapView, paint: Paint) -> String {
    let mut rows = Vec::new();
    for slot in &view.slots {
        let hosts: std::collections::BTreeSet<u8> =
            slot.now.keys().chain(slot.then.keys()).copied().collect();
        for (place, host) in hosts.into_iter().enumerate() {
            let share = |shares: &std::collections::BTreeMap<u8, usize>| {
                shares.get(&host).copied().unwrap_or(0).to_string()
            };
            let first = |text: String| if place == 0 { text } else { String::new() };
            rows.push([
                first(slot.slot.to_string()),
                host.to_string(),
                share(&slot.now),
                share(&slot.then),
                first(slot.moved.to_string()),
                first(slot.rules.iter().map(|rule| clean(rule)).collect::<Vec<_>>().join("; ")),
            ]);
        }
    }
    use Side::{Left, Right};
    let titles = ["slot", "host", "now", "then", "moved", "rules"];
    table(titles, [Right, Right, Right, Right, Right, Left], rows, paint)
}

#[cfg(test)]
mod tests;
