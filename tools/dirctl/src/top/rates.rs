//! What happens per second, from how much counters have grown between two answers. The clock is an
//! argument: two answers carry when they were asked.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use director::control::api::{ServiceKey, Stats, VerdictCount};

use super::snapshot::Snapshot;

/// How many frames a sparkline remembers.
pub const REMEMBERED: usize = 120;

/// Answers closer to each other than this say nothing of rates, seconds.
const CLOSE: f64 = 0.01;

/// Per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Connections scheduled.
    pub connections: f64,
    /// Packets from clients.
    pub in_packets: f64,
    /// Packets to clients.
    pub out_packets: f64,
    /// Bits from clients.
    pub in_bits: f64,
    /// Bits to clients.
    pub out_bits: f64,
}

impl Rates {
    /// The director's own averages: what there is before a second answer.
    pub fn told(stats: &Stats) -> Rates {
        Rates {
            connections: stats.cps as f64,
            in_packets: stats.in_pps as f64,
            out_packets: stats.out_pps as f64,
            in_bits: stats.in_bps as f64 * 8.0,
            out_bits: stats.out_bps as f64 * 8.0,
        }
    }

    fn between(before: &Stats, now: &Stats, seconds: f64) -> Rates {
        Rates {
            connections: grown(before.connections, now.connections) / seconds,
            in_packets: grown(before.in_packets, now.in_packets) / seconds,
            out_packets: grown(before.out_packets, now.out_packets) / seconds,
            in_bits: grown(before.in_bytes, now.in_bytes) * 8.0 / seconds,
            out_bits: grown(before.out_bytes, now.out_bytes) * 8.0 / seconds,
        }
    }

    fn add(&mut self, other: Rates) {
        self.connections += other.connections;
        self.in_packets += other.in_packets;
        self.out_packets += other.out_packets;
        self.in_bits += other.in_bits;
        self.out_bits += other.out_bits;
    }
}

/// A counter that is smaller than before was set back (`ipvsadm -Z`): what it has counted since then
/// is the least that has happened.
fn grown(before: u64, now: u64) -> f64 {
    now.checked_sub(before).unwrap_or(now) as f64
}

/// A service, or a server of one.
pub type Id = (ServiceKey, Option<SocketAddr>);

/// Rates of everything, and how they were.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// By service and server.
    rates: HashMap<Id, Rates>,
    /// Of all services together.
    pub total: Rates,
    /// Packets per second by verdict and reason; and frames per second of ports, by their place.
    fates: HashMap<(String, String), f64>,
    ports: Vec<[f64; 2]>,
    /// New flows per second by port rule, in the order of the rules.
    rules: Vec<f64>,
    /// Packets per second from clients, then connections per second: the latest last.
    pub packets: VecDeque<f64>,
    /// See there.
    pub connections: VecDeque<f64>,
    services: HashMap<ServiceKey, VecDeque<f64>>,
}

impl Meter {
    /// Takes in a new answer. `before` is nothing for the first, and for the first of a new director.
    pub fn read(&mut self, before: Option<&Snapshot>, now: &Snapshot) {
        let seconds = before.map(|before| now.at.saturating_sub(before.at).as_secs_f64());
        let before = before.filter(|_| seconds.is_some_and(|seconds| seconds >= CLOSE));
        let seconds = seconds.unwrap_or(1.0).max(CLOSE);
        let old: HashMap<Id, &Stats> = before.map(each_stats).unwrap_or_default();
        self.rates = each_stats(now)
            .into_iter()
            .map(|(id, stats)| match (before, old.get(&id)) {
                (None, _) => (id, Rates::told(stats)),
                (Some(_), Some(old)) => (id, Rates::between(old, stats, seconds)),
                // Declared since then: all that it has counted is new.
                (Some(_), None) => (id, Rates::between(&Stats::default(), stats, seconds)),
            })
            .collect();
        self.total = Rates::default();
        for service in &now.services {
            let rates = self.of(&(service.spec.key, None));
            self.total.add(rates);
        }
        self.read_fates(before, now, seconds);
        self.read_ports(before, now, seconds);
        self.read_rules(before, now, seconds);
        self.remember(now);
    }

    /// Of a service or server.
    pub fn of(&self, id: &Id) -> Rates {
        self.rates.get(id).copied().unwrap_or_default()
    }

    /// Packets per second that met a fate.
    pub fn fate(&self, fate: &VerdictCount) -> f64 {
        self.fates.get(&name(fate)).copied().unwrap_or_default()
    }

    /// Frames received and transmitted per second by the port at this place of the list.
    pub fn port(&self, place: usize) -> [f64; 2] {
        self.ports.get(place).copied().unwrap_or_default()
    }

    /// New flows per second of the port rule at this place of the list.
    pub fn rule(&self, place: usize) -> f64 {
        self.rules.get(place).copied().unwrap_or_default()
    }

    /// Packets per second from clients of a service, the latest last.
    pub fn history(&self, service: &ServiceKey) -> Option<&VecDeque<f64>> {
        self.services.get(service)
    }

    fn read_fates(&mut self, before: Option<&Snapshot>, now: &Snapshot, seconds: f64) {
        let old: HashMap<_, _> = before
            .map(|before| fates(before).map(|fate| (name(fate), fate.packets)).collect())
            .unwrap_or_default();
        self.fates = match before {
            None => HashMap::new(),
            Some(_) => fates(now)
                .map(|fate| {
                    // One that had met no packet is left out of an answer.
                    let old = old.get(&name(fate)).copied().unwrap_or_default();
                    (name(fate), grown(old, fate.packets) / seconds)
                })
                .collect(),
        };
    }

    fn read_ports(&mut self, before: Option<&Snapshot>, now: &Snapshot, seconds: f64) {
        let old: HashMap<_, _> = before
            .map(|before| {
                let ports = before.status.ports.iter();
                ports.map(|port| ((port.interface.as_str(), port.queue), port)).collect()
            })
            .unwrap_or_default();
        let rates = now.status.ports.iter().map(|port| {
            let Some(old) = old.get(&(port.interface.as_str(), port.queue)) else {
                return [0.0; 2];
            };
            let pairs = [(old.received, port.received), (old.transmitted, port.transmitted)];
            pairs.map(|(before, now)| grown(before, now) / seconds)
        });
        self.ports = rates.collect();
    }

    fn read_rules(&mut self, before: Option<&Snapshot>, now: &Snapshot, seconds: f64) {
        let rules = |snapshot: &Snapshot| -> Vec<(String, u64)> {
            let node = snapshot.node.iter();
            let rules = node.flat_map(|node| &node.display.params.rules);
            rules.map(|rule| (rule.rule.clone(), rule.opened)).collect()
        };
        let old: HashMap<String, u64> =
            before.map(|before| rules(before).into_iter().collect()).unwrap_or_default();
        let rates = rules(now).into_iter().map(|(rule, opened)| {
            old.get(&rule).map(|old| grown(*old, opened) / seconds).unwrap_or_default()
        });
        self.rules = rates.collect();
    }

    fn remember(&mut self, now: &Snapshot) {
        push(&mut self.packets, self.total.in_packets);
        push(&mut self.connections, self.total.connections);
        let mut past = std::mem::take(&mut self.services);
        for service in &now.services {
            let key = service.spec.key;
            let mut own = past.remove(&key).unwrap_or_default();
            push(&mut own, self.of(&(key, None)).in_packets);
            self.services.insert(key, own);
        }
    }
}

fn push(past: &mut VecDeque<f64>, value: f64) {
    if past.len() == REMEMBERED {
        past.pop_front();
    }
    past.push_back(value);
}

fn name(fate: &VerdictCount) -> (String, String) {
    (fate.verdict.clone(), fate.reason.clone())
}

/// All that packets or frames can meet: in mode nlb the filter's.
pub fn fates(snapshot: &Snapshot) -> impl Iterator<Item = &VerdictCount> {
    let status = &snapshot.status;
    status.verdicts.iter().chain(&status.overflow)
}

fn each_stats(snapshot: &Snapshot) -> HashMap<Id, &Stats> {
    let mut all = HashMap::new();
    for service in &snapshot.services {
        let key = service.spec.key;
        all.insert((key, None), &service.stats);
        for server in service.servers.iter().chain(&service.fallback) {
            all.insert((key, Some(server.spec.address)), &server.stats);
        }
    }
    all
}
