//! The director in numbers, as Prometheus text (exposition format 0.0.4). A pure function of the
//! same views that the JSON paths give out.

mod health;

use std::fmt::{Display, Write};

use super::api::{Protocol, ServerView, ServiceKey, ServiceView, Stats, Status};
use super::health::ServerHealth;

/// What HTTP calls this format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics.
pub(super) fn text(status: &Status, services: &[ServiceView], health: &[ServerHealth]) -> String {
    let mut page = Page::default();
    about(&mut page, status);
    ports(&mut page, status);
    let servers: Vec<(String, &ServerView)> = services
        .iter()
        .flat_map(|service| {
            let name = name_of(&service.spec.key);
            service.servers.iter().map(move |server| (name.clone(), server))
        })
        .collect();
    for (name, help, count) in COUNTERS {
        page.family(&format!("switchyard_service_{name}_total"), "counter", help);
        for service in services {
            page.sample(&[("service", &name_of(&service.spec.key))], count(&service.stats));
        }
    }
    for (name, help, count) in COUNTERS {
        page.family(&format!("switchyard_server_{name}_total"), "counter", help);
        for (service, server) in &servers {
            let address = server.spec.address.to_string();
            page.sample(&[("service", service), ("server", &address)], count(&server.stats));
        }
    }
    for (name, help, gauge) in GAUGES {
        page.family(&format!("switchyard_server_{name}"), "gauge", help);
        for (service, server) in &servers {
            let address = server.spec.address.to_string();
            page.sample(&[("service", service), ("server", &address)], gauge(server));
        }
    }
    health::servers(&mut page, health);
    page.text
}

type Count = fn(&Stats) -> u64;
type Gauge = fn(&ServerView) -> i64;

/// Counters of services and of servers alike. `ipvsadm -Z` sets them back, which Prometheus takes
/// for a restart.
const COUNTERS: &[(&str, &str, Count)] = &[
    ("connections", "Connections scheduled.", |stats| stats.connections),
    ("in_packets", "Packets from clients.", |stats| stats.in_packets),
    ("out_packets", "Packets to clients (NAT only).", |stats| stats.out_packets),
    ("in_bytes", "Bytes of IP packets from clients.", |stats| stats.in_bytes),
    ("out_bytes", "Bytes of IP packets to clients (NAT only).", |stats| stats.out_bytes),
];

const GAUGES: &[(&str, &str, Gauge)] = &[
    ("weight", "Weight; 0 is quiesced.", |server| server.spec.weight.into()),
    (
        "effective_weight",
        "Weight that the scheduler goes by: 0 when the server gets no new connections.",
        |server| server.effective_weight.into(),
    ),
    ("active_connections", "Connections in an active state.", |server| server.active.into()),
    ("inactive_connections", "Connections in other states.", |server| server.inactive.into()),
    ("persistence_templates", "Persistence templates.", |server| server.persistent.into()),
];

fn about(page: &mut Page, status: &Status) {
    page.family("switchyard_info", "gauge", "The running director.");
    page.sample(&[("version", &status.version), ("mode", &status.mode)], 1);
    page.family("switchyard_uptime_seconds", "gauge", "Seconds since start.");
    page.sample(&[], status.uptime);
    page.family("switchyard_warnings", "gauge", "Warnings that `dirctl status` shows.");
    page.sample(&[], status.warnings.len());
    page.family("switchyard_services", "gauge", "Virtual services.");
    page.sample(&[], status.services);
    page.family("switchyard_connections", "gauge", "Connections in the table.");
    page.sample(&[], status.connections);
    page.family(
        "switchyard_overflow_total",
        "counter",
        "What has come of a full connection table.",
    );
    for count in &status.overflow {
        page.sample(&[("what", &count.reason)], count.packets);
    }
    page.family("switchyard_verdict_packets_total", "counter", "Packets by what became of them.");
    for verdict in &status.verdicts {
        page.sample(&[("reason", &verdict.reason)], verdict.packets);
    }
}

fn ports(page: &mut Page, status: &Status) {
    type Frames = fn(&super::api::PortView) -> u64;
    let counters: [(&str, &str, Frames); 4] = [
        ("received_frames", "Frames received.", |port| port.received),
        ("transmitted_frames", "Frames transmitted.", |port| port.transmitted),
        ("receive_dropped_frames", "Frames lost on receive.", |port| port.receive_dropped),
        ("transmit_dropped_frames", "Frames lost on transmit.", |port| port.transmit_dropped),
    ];
    for (name, help, count) in counters {
        page.family(&format!("switchyard_port_{name}_total"), "counter", help);
        for port in &status.ports {
            let (queue, worker) = (port.queue.to_string(), port.worker.to_string());
            let labels = [
                ("interface", port.interface.as_str()),
                ("queue", queue.as_str()),
                ("worker", worker.as_str()),
                ("io", port.io.as_str()),
            ];
            page.sample(&labels, count(port));
        }
    }
}

/// A service's label, in the notation of the configuration file: `192.0.2.10:80/tcp`,
/// `fwmark 7/ipv4`.
fn name_of(key: &ServiceKey) -> String {
    match key {
        ServiceKey::Address { protocol, address } => {
            let protocol = match protocol {
                Protocol::Tcp => "tcp",
                Protocol::Udp => "udp",
                Protocol::Sctp => "sctp",
            };
            format!("{address}/{protocol}")
        }
        ServiceKey::Fwmark { fwmark, ipv6 } => {
            format!("fwmark {fwmark}/{}", if *ipv6 { "ipv6" } else { "ipv4" })
        }
    }
}

#[derive(Default)]
struct Page {
    text: String,
    name: String,
}

impl Page {
    /// Opens a metric family; samples that follow belong to it.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.name = name.to_owned();
        // Writing into a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(&self.name);
        for (place, (label, word)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escape(word));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// Label values escape backslash, quote and newline, nothing else.
fn escape(word: &str) -> String {
    word.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_with_quote_backslash_or_newline_does_not_break_the_page() {
        let mut page = Page::default();
        page.family("m", "gauge", "Help.");
        page.sample(&[("a", "x\"y\\z\nw"), ("b", "é")], 3);
        assert_eq!(
            page.text,
            "# HELP m Help.\n# TYPE m gauge\nm{a=\"x\\\"y\\\\z\\nw\",b=\"é\"} 3\n"
        );
    }

    #[test]
    fn services_of_one_mark_and_both_families_have_different_labels() {
        let names = [false, true].map(|ipv6| name_of(&ServiceKey::Fwmark { fwmark: 7, ipv6 }));
        assert_eq!(names, ["fwmark 7/ipv4", "fwmark 7/ipv6"]);
    }
}
