//! The top of a frame: which director, how much it carries, and what is wrong.

use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::super::numbers::{fit, short, sparkline};
use super::super::rates::Meter;
use super::super::snapshot::Snapshot;
use super::super::state::Top;
use super::{heading, loss, span, warning};
use crate::clean::{clean, count, duration};

/// Four lines.
pub(super) fn lines(top: &Top, width: usize) -> Vec<Line<'static>> {
    let Some(snapshot) = &top.snapshot else {
        let text = match &top.trouble {
            None => "asking the director ...".to_owned(),
            Some(_) => "no director yet".to_owned(),
        };
        let blank = Line::default;
        return vec![heading(text), blank(), blank(), note(top, None, width)];
    };
    let paused = if top.paused { "PAUSED  " } else { "" };
    let title = cut(&who(snapshot), width.saturating_sub(paused.len()));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = Line::from(vec![span(paused.to_owned(), bold.patch(warning())), span(title, bold)]);
    let [rates, bars] = match &snapshot.node {
        Some(_) => [Line::default(), Line::default()],
        None => traffic(&top.meter, width),
    };
    vec![title, rates, bars, note(top, Some(snapshot), width)]
}

/// What matters least stands last, where a narrow screen cuts it off.
fn who(snapshot: &Snapshot) -> String {
    let status = &snapshot.status;
    let mut text = format!("director {}  up {}  ", clean(&status.version), duration(status.uptime));
    text.push_str(&match &snapshot.node {
        Some(_) => count(status.services.into(), "port rule"),
        None => count(snapshot.services.len() as u64, "service"),
    });
    if let Some(health) = &status.health {
        text.push_str(&format!(": {} up", health.up));
        for (number, word) in [(health.down, "down"), (health.draining, "draining")] {
            if number > 0 {
                text.push_str(&format!(", {number} {word}"));
            }
        }
    }
    text + &format!("  {} connections", short(status.connections as f64))
}

fn traffic(meter: &Meter, width: usize) -> [Line<'static>; 2] {
    let total = meter.total;
    let rates = format!(
        "new {:>5}/s   in {:>5} packets/s {:>5} bit/s   out {:>5} packets/s {:>5} bit/s",
        short(total.connections),
        short(total.in_packets),
        short(total.in_bits),
        short(total.out_packets),
        short(total.out_bits),
    );
    let half = width.saturating_sub(22) / 2;
    let bars = format!(
        "new {}   in packets {}",
        sparkline(&meter.connections, half),
        sparkline(&meter.packets, half + 3)
    );
    [Line::from(rates), Line::from(bars)]
}

/// What an operator should know before all else.
fn note(top: &Top, snapshot: Option<&Snapshot>, width: usize) -> Line<'static> {
    if let Some((reason, attempts)) = &top.trouble {
        let old = if snapshot.is_some() { "; below is the last that was seen" } else { "" };
        let tried = count((*attempts).into(), "attempt");
        // The reason may be long; that it is tried again must be seen.
        let end = format!(" (trying again, {tried}{old})");
        let rest = width.saturating_sub(end.chars().count());
        let reason = clean(reason);
        let reason = if reason.chars().count() > rest { fit(&reason, rest) } else { reason };
        return Line::styled(reason + &end, loss());
    }
    let warnings = snapshot.map_or(&[][..], |snapshot| &snapshot.status.warnings);
    match warnings {
        [] => Line::default(),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" (+{})", rest.len()) };
            let room = width.saturating_sub(more.len() + 2);
            let first = cut(&clean(first), room);
            Line::styled(format!("! {first}{more}"), warning())
        }
    }
}

/// What fits.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
