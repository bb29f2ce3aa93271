//! A packet in a line.

use std::io::{self, Write};

use serde_json::json;

use super::fate::{Fate, Flow, Verdict};
use super::moves::name;
use crate::paint::Paint;

/// What a line says.
pub struct Line<'a> {
    /// From 1 on.
    pub number: u64,
    /// Seconds since the first packet.
    pub time: f64,
    /// Of what can be read.
    pub flow: Option<Flow>,
    /// What became of it.
    pub fate: &'a Fate,
    /// What would become of it with the other file.
    pub other: Option<&'a Fate>,
    /// Whether not all of it was captured.
    pub is_cut: bool,
}

/// `     7     0.012345  tcp 198.51.100.7:41000 > 192.0.2.10:80  forwarded nat  10.0.0.11:80`
///
/// # Errors
/// When it cannot be written.
pub fn text(to: &mut impl Write, line: &Line<'_>, paint: Paint) -> io::Result<()> {
    let Line { number, time, fate, .. } = line;
    write!(to, "{number:>6} {time:>12.6}  ")?;
    match line.flow {
        Some(flow) => write!(to, "{flow}")?,
        None => to.write_all(b"(no IP packet that can be read)")?,
    }
    let verdict = fate.verdict.name();
    let words = format!("{verdict} {}", fate.reason);
    match fate.verdict {
        Verdict::Dropped => write!(to, "  {}", paint.loss(&words))?,
        _ => write!(to, "  {words}")?,
    }
    if fate.answered {
        to.write_all(b" (sender told)")?;
    }
    if let Some(target) = fate.target {
        write!(to, "  {target}")?;
    }
    if let Some(other) = line.other.filter(|other| is_other(fate, other)) {
        let words = format!("other file: {} {}", other.verdict.name(), other.reason);
        write!(to, "  {}", paint.warning(&words))?;
        if let Some(target) = other.target {
            write!(to, " {target}")?;
        }
    }
    if line.is_cut {
        to.write_all(b"  (captured in part)")?;
    }
    to.write_all(b"\n")
}

fn is_other(one: &Fate, other: &Fate) -> bool {
    (one.verdict, one.reason, one.target) != (other.verdict, other.reason, other.target)
}

/// The same as a JSON object.
///
/// # Errors
/// When it cannot be written.
pub fn json(to: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    let fate = line.fate;
    let mut object = json!({
        "packet": line.number,
        "time": (line.time * 1e9).round() / 1e9,
        "verdict": fate.verdict.name(),
        "reason": fate.reason,
    });
    let mut put = |key: &str, value: serde_json::Value| object[key] = value;
    if let Some(flow) = line.flow {
        put("flow", json!({"protocol": flow.protocol, "from": flow.from, "to": flow.to}));
    }
    if let Some(service) = fate.service {
        put("service", json!(service.to_string()));
    }
    if fate.target.is_some() {
        put("server", json!(name(fate.target)));
    }
    if fate.answered {
        put("answered", json!(true));
    }
    if line.is_cut {
        put("captured_in_part", json!(true));
    }
    if let Some(other) = line.other {
        put(
            "other",
            json!({
                "verdict": other.verdict.name(),
                "reason": other.reason,
                "server": other.target.map(|target| target.to_string()),
            }),
        );
    }
    serde_json::to_writer(&mut *to, &object)?;
    to.write_all(b"\n")
}
