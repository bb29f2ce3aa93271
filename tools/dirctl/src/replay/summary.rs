//! All packets of a replay together: verdicts, reasons, services and servers, and flows that move.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use director::control::api::{ServiceView, Stats};
use serde_json::{Value, json};

use super::clock::Clock;
use super::fate::{Fate, Target, Verdict};
use super::moves::{Move, Moves, name};
use crate::clean::count;
use crate::columns::{Side, columns};
use crate::paint::Paint;

/// What a replay cannot know.
const ASSUMED: &str =
    "assumed: the director has just started, all servers are up, and every next hop answers";

/// Flows that move, and that are named.
const NAMED: usize = 100;

/// Packets by fate.
#[derive(Debug, Default)]
pub struct Summary {
    /// All.
    pub packets: u64,
    /// Those that were not captured as a whole.
    pub cut: u64,
    fates: BTreeMap<(Verdict, &'static str, &'static str), u64>,
    /// By host of a cluster, in the order of their ids.
    hosts: BTreeMap<u8, (String, u64)>,
    span: Option<(Duration, Duration)>,
}

/// What a summary is made of.
pub struct Whole<'a> {
    /// The packets.
    pub summary: &'a Summary,
    /// Their times.
    pub clock: &'a Clock,
    /// Services and servers, with what they have counted.
    pub views: &'a [ServiceView],
    /// With two files.
    pub moves: Option<&'a Moves>,
}

impl Summary {
    /// A packet.
    pub fn note(&mut self, fate: &Fate) {
        *self.fates.entry((fate.verdict, fate.reason, fate.meaning)).or_default() += 1;
        if let Some(target @ Target::Host(host)) = fate.target {
            let entry = self.hosts.entry(host.id.get());
            entry.or_insert_with(|| (target.to_string(), 0)).1 += 1;
        }
    }

    /// When it was captured.
    pub fn note_time(&mut self, time: Duration) {
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    fn seconds(&self) -> f64 {
        self.span.map_or(0.0, |(first, last)| (last - first).as_secs_f64())
    }
}

/// For people; `rule` puts an empty line before it.
pub fn text(whole: &Whole<'_>, paint: Paint, rule: bool) -> String {
    let Whole { summary, clock, .. } = whole;
    let mut text = if rule && summary.packets > 0 { "\n".to_owned() } else { String::new() };
    let packets = count(summary.packets, "packet");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} in {:.3} s", paint.heading(&packets), summary.seconds());
    let rows: Vec<[String; 4]> = summary
        .fates
        .iter()
        .map(|((verdict, reason, meaning), packets)| {
            [
                packets.to_string(),
                verdict.name().to_owned(),
                (*reason).to_owned(),
                (*meaning).to_owned(),
            ]
        })
        .collect();
    for line in columns([Side::Right, Side::Left, Side::Left, Side::Left], &rows) {
        text += &(line + "\n");
    }
    for note in notes(summary, clock) {
        text += &(paint.warning(&note) + "\n");
    }
    if !summary.hosts.is_empty() {
        let _ = writeln!(text, "\n{}", paint.heading("hosts"));
        let rows: Vec<[String; 2]> = summary
            .hosts
            .values()
            .map(|(host, packets)| [host.clone(), packets.to_string()])
            .collect();
        for line in columns([Side::Left, Side::Right], &rows) {
            text += &(line + "\n");
        }
    }
    text += &services(whole.views, paint);
    if let Some(moves) = whole.moves {
        text += &moved(moves, paint);
    }
    text
}

/// What a reader must know of the capture.
fn notes(summary: &Summary, clock: &Clock) -> Vec<String> {
    let mut notes = vec![ASSUMED.to_owned()];
    if summary.cut > 0 {
        notes.push(format!(
            "{} captured in part: the bodies are missing (snaplen), and count as zeros; without its headers a \
             packet is truncated",
            count(summary.cut, "packet")
        ));
    }
    if clock.backwards > 0 {
        let times = count(clock.backwards, "time");
        notes.push(format!("{times} that ran backwards: the clock stood still"));
    }
    if clock.jumps > 0 {
        notes.push(format!(
            "{} of more than a day, each of which counts as a day",
            count(clock.jumps, "gap")
        ));
    }
    notes
}

fn services(views: &[ServiceView], paint: Paint) -> String {
    if views.is_empty() {
        return String::new();
    }
    let row = |name: String, stats: &Stats| {
        let Stats { connections, in_packets, out_packets, in_bytes, out_bytes, .. } = stats;
        let numbers = [connections, in_packets, in_bytes, out_packets, out_bytes];
        let [a, b, c, d, e] = numbers.map(ToString::to_string);
        [name, a, b, c, d, e]
    };
    let mut rows = vec![
        ["service, servers", "connections", "packets", "bytes", "replies", "bytes"]
            .map(str::to_owned),
    ];
    for view in views {
        rows.push(row(view.spec.key.to_string(), &view.stats));
        for server in view.servers.iter().chain(&view.fallback) {
            rows.push(row(format!("  {}", server.spec.address), &server.stats));
        }
    }
    let sides = [Side::Left, Side::Right, Side::Right, Side::Right, Side::Right, Side::Right];
    let mut text = "\n".to_owned();
    for (place, line) in columns(sides, &rows).into_iter().enumerate() {
        text += &(if place == 0 { paint.heading(&line) } else { line } + "\n");
    }
    text
}

fn moved(moves: &Moves, paint: Paint) -> String {
    let total = moves.moved().count();
    let of = count(moves.compared() as u64, "flow");
    let mut text =
        format!("\n{}\n", paint.heading(&format!("{total} of {of} would go to somebody else")));
    for ((from, to), flows) in moves.pairs() {
        let _ = writeln!(text, "  {flows} from {from} to {to}");
    }
    for Move { flow, from, to } in moves.moved().take(NAMED) {
        let _ = writeln!(text, "  {flow}: {} -> {}", name(from), name(to));
    }
    if total > NAMED {
        let _ = writeln!(text, "  ... and {} more", total - NAMED);
    }
    if moves.beyond > 0 {
        let packets = count(moves.beyond, "packet");
        let _ = writeln!(
            text,
            "{}",
            paint.warning(&format!("{packets} of further flows were not compared"))
        );
    }
    text
}

/// For programs: one line.
pub fn json(whole: &Whole<'_>) -> String {
    let Whole { summary, clock, views, moves } = whole;
    let fates: Vec<Value> = summary
        .fates
        .iter()
        .map(|((verdict, reason, meaning), packets)| {
            json!({"verdict": verdict.name(), "reason": reason, "meaning": meaning, "packets": packets})
        })
        .collect();
    let hosts: Vec<Value> = summary
        .hosts
        .iter()
        .map(|(id, (_, packets))| json!({"host": id, "packets": packets}))
        .collect();
    let services: Vec<Value> = views
        .iter()
        .map(|view| {
            let servers: Vec<Value> = view
                .servers
                .iter()
                .chain(&view.fallback)
                .map(|server| json!({"address": server.spec.address, "stats": counts(&server.stats)}))
                .collect();
            let service = view.spec.key.to_string();
            json!({"service": service, "stats": counts(&view.stats), "servers": servers})
        })
        .collect();
    let mut object = json!({
        "packets": summary.packets,
        "seconds": summary.seconds(),
        "captured_in_part": summary.cut,
        "times_backwards": clock.backwards,
        "gaps_shortened": clock.jumps,
        "fates": fates,
        "services": services,
        "hosts": hosts,
    });
    if let Some(moves) = moves {
        let list: Vec<Value> = moves
            .moved()
            .take(NAMED)
            .map(|Move { flow, from, to }| {
                json!({
                    "protocol": flow.protocol, "from": flow.from, "to": flow.to,
                    "before": from.map(|it| it.to_string()), "after": to.map(|it| it.to_string()),
                })
            })
            .collect();
        object["compare"] = json!({
            "flows": moves.compared(),
            "moved": moves.moved().count(),
            "packets_not_compared": moves.beyond,
            "first": list,
        });
    }
    json!({ "summary": object }).to_string() + "\n"
}

fn counts(stats: &Stats) -> Value {
    json!({
        "connections": stats.connections,
        "in_packets": stats.in_packets,
        "in_bytes": stats.in_bytes,
        "out_packets": stats.out_packets,
        "out_bytes": stats.out_bytes,
    })
}
