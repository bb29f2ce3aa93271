//! Drops by reason and packet ports: a few lines of each below the table, and all of them on pages of
//! their own.

use director::control::api::VerdictCount;
use ratatui::text::Line;

use super::super::numbers::{fit, short};
use super::super::rates::fates as all_fates;
use super::super::snapshot::Snapshot;
use super::super::state::{Page, Top};
use super::{dim, heading, loss, page_of};
use crate::clean::clean;

/// Drops below the table: those of most packets now. In a tall frame more.
const DROPS: usize = 3;
/// Ports below the table.
const PORTS: usize = 2;

/// What stands below the table on the first page.
pub(super) fn below(top: &Top, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(snapshot) = &top.snapshot else { return vec![] };
    if top.page != Page::Services {
        return vec![];
    }
    // Of what a screen has beyond 24 lines a quarter is theirs; of one that has less, nothing.
    let share = |least: usize| match height {
        usize::MAX => usize::MAX,
        0..22 => least.min(1),
        _ => least + (height - 22) / 8,
    };
    let mut lines = drops(top, snapshot, width, share(DROPS));
    if snapshot.node.is_none() {
        if height == usize::MAX {
            lines.push(Line::default());
        }
        lines.extend(ports(top, snapshot, share(PORTS).saturating_add(1)));
    }
    lines
}

/// Those that were dropped, and what has come of a full table.
fn drops(top: &Top, snapshot: &Snapshot, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut drops: Vec<&VerdictCount> = all_fates(snapshot).filter(|fate| is_loss(fate)).collect();
    sort(top, &mut drops);
    let mut lines = vec![heading(format!("dropped{:>17} {:>8}", "per second", "all"))];
    if drops.is_empty() {
        lines.push(Line::styled("  nothing", dim()));
    }
    let rows = drops.iter().take(most).map(|fate| fate_line(top, fate, "", width));
    lines.extend(rows);
    if most != usize::MAX {
        // The table keeps its place when the first packet is dropped.
        lines.resize(most + 1, Line::default());
    }
    lines
}

/// Every fate that a packet has met.
pub(super) fn fates(
    top: &Top,
    snapshot: &Snapshot,
    width: usize,
    room: usize,
) -> Vec<Line<'static>> {
    let mut fates: Vec<&VerdictCount> = all_fates(snapshot).collect();
    sort(top, &mut fates);
    // What is lost comes first.
    fates.sort_by_key(|fate| !is_loss(fate));
    let mut lines =
        vec![heading(format!("reason{:>18} {:>8}  became    meaning", "per second", "all"))];
    let (_, shown) = page_of(&fates, top.cursor, room.saturating_sub(1));
    lines.extend(shown.iter().map(|fate| fate_line(top, fate, &fate.verdict, width)));
    if fates.is_empty() {
        lines.push(Line::styled("  no packet yet", dim()));
    }
    lines
}

fn is_loss(fate: &VerdictCount) -> bool {
    matches!(fate.verdict.as_str(), "dropped" | "")
}

fn sort(top: &Top, fates: &mut [&VerdictCount]) {
    fates.sort_by(|one, other| {
        let rates = top.meter.fate(other).total_cmp(&top.meter.fate(one));
        rates.then(other.packets.cmp(&one.packets))
    });
}

fn fate_line(top: &Top, fate: &VerdictCount, verdict: &str, width: usize) -> Line<'static> {
    let rate = top.meter.fate(fate);
    let verdict =
        if verdict.is_empty() { String::new() } else { format!("{} ", fit(&clean(verdict), 9)) };
    let text = format!(
        "  {} {:>5} {:>8}  {verdict}{}",
        fit(&clean(&fate.reason), 16),
        short(rate),
        short(fate.packets as f64),
        clean(&fate.meaning),
    );
    let text: String = text.chars().take(width).collect();
    let style = if is_loss(fate) && rate > 0.0 { loss() } else { Default::default() };
    Line::styled(text, style)
}

/// Packet ports: in at most so many lines, titles among them.
pub(super) fn ports(top: &Top, snapshot: &Snapshot, room: usize) -> Vec<Line<'static>> {
    let all: Vec<_> = snapshot.status.ports.iter().enumerate().collect();
    let mut lines = vec![heading(format!(
        "{} {:>5}  {} {:>7} {:>7} {:>8} {:>8}",
        fit("port", 16),
        "queue",
        fit("io", 17),
        "in pps",
        "out pps",
        "in lost",
        "out lost"
    ))];
    let cursor = if top.page == Page::Ports { top.cursor } else { 0 };
    let (_, shown) = page_of(&all, cursor, room.saturating_sub(1));
    for (place, port) in shown {
        let [received, transmitted] = top.meter.port(*place);
        let text = format!(
            "  {} {:>5}  {} {:>7} {:>7} {:>8} {:>8}",
            fit(&clean(&port.interface), 14),
            port.queue,
            fit(&clean(&port.io), 17),
            short(received),
            short(transmitted),
            short(port.receive_dropped as f64),
            short(port.transmit_dropped as f64),
        );
        let lossy = port.receive_dropped > 0 || port.transmit_dropped > 0;
        lines.push(Line::styled(text, if lossy { loss() } else { Default::default() }));
    }
    if all.is_empty() {
        lines.push(Line::styled("  none: no packet reaches this director", dim()));
    }
    lines
}
