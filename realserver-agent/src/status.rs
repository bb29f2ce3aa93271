//! What `realserver-agent status` shows: as values, as JSON, and for people.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::checks;
use crate::load::Parts;
use crate::protocol::State;

/// All that the agent knows of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `up`, `draining` or `down`.
    pub state: String,
    /// Why; empty when all is well.
    pub reason: String,
    /// What this host is there for, in one line.
    pub role: String,
    /// The configuration file, when there is one.
    pub config: Option<String>,
    /// Seconds since the agent started.
    pub uptime: u64,
    /// The boot nonce, hexadecimal.
    pub boot: String,
    /// 0..=10000, when it is known.
    pub load: Option<u16>,
    /// What it is made of.
    pub parts: Parts,
    /// What is wrong with the operator's command for it; empty when nothing is.
    pub command: String,
    /// Connections of the services.
    pub connections: u32,
    /// Connections that wait to be accepted.
    pub queue: u32,
    /// The local checks.
    pub checks: Vec<checks::View>,
    /// What has been changed on this host.
    pub prepared: Prepared,
    /// What is unpacked.
    pub tunnel: TunnelView,
    /// Who is answered.
    pub answers: AnswersView,
}

/// What has been changed on this host, and is undone at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The VIPs that have been put on `lo`.
    pub vips: Vec<IpAddr>,
    /// The settings that have been changed: path under `/proc/sys`, and value.
    pub settings: Vec<(String, String)>,
    /// How often something had to be made again because somebody had undone it.
    pub restored: u64,
}

/// What is unpacked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelView {
    /// The types.
    pub kinds: Vec<String>,
    /// The devices: the kernel's own, or the one that the agent writes to.
    pub devices: Vec<String>,
    /// Whether the kernel unpacks; then the agent counts nothing.
    pub by_kernel: bool,
    /// Packets by what became of them.
    pub packets: BTreeMap<String, u64>,
}

/// Who is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswersView {
    /// Where.
    pub listen: Vec<SocketAddr>,
    /// Whether probes must be signed.
    pub signed: bool,
    /// Answers so far.
    pub answered: u64,
    /// What was not answered, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Who has asked, the last first; at most 64.
    pub askers: Vec<AskerView>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskerView {
    /// Its address.
    pub address: IpAddr,
    /// `udp`, `tcp`, or `text` for HAProxy's agent-check.
    pub over: String,
    /// Seconds since it asked last.
    pub ago: f64,
    /// How often it has been answered.
    pub answers: u64,
}

/// The word for a state.
pub fn word(state: State) -> &'static str {
    match state {
        State::Up => "up",
        State::Draining => "draining",
        State::Down => "down",
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, text: &str| writeln!(f, "{name:<12} {text}");
        let because = if self.reason.is_empty() { "" } else { ": " };
        row("state", &format!("{}{because}{}", self.state, self.reason))?;
        row("this host", &self.role)?;
        row("load", &self.load())?;
        let (connections, queue) = (self.connections, self.queue);
        row("connections", &format!("{connections}, and {queue} wait to be accepted"))?;
        for check in &self.checks {
            let passes = if check.passes { "good" } else { "BAD" };
            let (name, in_a_row, last) = (&check.name, check.in_a_row, &check.last);
            row("check", &format!("{name}: {passes} ({last}, {in_a_row} in a row)"))?;
        }
        let Prepared { vips, settings, restored } = &self.prepared;
        row("on lo", &list(vips))?;
        for (key, value) in settings {
            row("set", &format!("{key} = {value}"))?;
        }
        if *restored > 0 {
            row("made again", &format!("{restored} times: somebody undoes it"))?;
        }
        row("tunnel", &self.tunnel())?;
        let answers = &self.answers;
        let signed = if answers.signed { ", signed" } else { "" };
        row("answers at", &format!("{}{signed}: {}", list(&answers.listen), answers.answered))?;
        for (reason, times) in &answers.refused {
            row("refused", &format!("{reason}: {times}"))?;
        }
        for AskerView { address, over, ago, answers } in &answers.askers {
            row("asked by", &format!("{address} over {over}, {ago:.1} s ago, {answers} times"))?;
        }
        row("boot", &format!("{}, the agent runs for {} s", self.boot, self.uptime))?;
        match &self.config {
            Some(config) => row("file", config),
            None => Ok(()),
        }
    }
}

impl Status {
    fn load(&self) -> String {
        let Parts { cpu, memory, connections, queue, command } = self.parts;
        let mut text = self.load.map_or("not known".to_owned(), |load| format!("{load} of 10000"));
        let all = [
            ("cpu", cpu),
            ("memory", memory),
            ("connections", connections),
            ("queue", queue),
            ("command", command),
        ];
        for (place, (name, part)) in
            all.iter().filter_map(|(name, part)| part.map(|part| (name, part))).enumerate()
        {
            let before = if place == 0 { " (" } else { ", " };
            let _ = write!(text, "{before}{name} {part}");
        }
        if text.contains('(') {
            text.push(')');
        }
        if !self.command.is_empty() {
            let _ = write!(text, "; the command: {}", self.command);
        }
        text
    }

    fn tunnel(&self) -> String {
        let TunnelView { kinds, devices, by_kernel, packets } = &self.tunnel;
        if kinds.is_empty() {
            return "none".to_owned();
        }
        let by = if *by_kernel { "the kernel" } else { "the agent" };
        let counted: Vec<_> =
            packets.iter().map(|(name, packets)| format!("{name} {packets}")).collect();
        let counted = if *by_kernel { String::new() } else { format!(": {}", counted.join(", ")) };
        format!("{} by {by} ({}){counted}", kinds.join(", "), devices.join(", "))
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    match items {
        [] => "nothing".to_owned(),
        items => items.iter().map(T::to_string).collect::<Vec<_>>().join(", "),
    }
}
