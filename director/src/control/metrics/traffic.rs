//! Services and their servers: counters, rates, connections, picks.
//!
//! As many series as the configuration has services and servers, and no more than [`MOST_SERVICES`] and
//! [`MOST_SERVERS`] of them: what is beyond is left out, and its number is told.

use super::super::api::{ServerView, ServiceView, Stats};
use super::page::{Page, name_of};

/// Services that are shown.
pub(super) const MOST_SERVICES: usize = 2_000;
/// Servers of all services together that are shown.
pub(super) const MOST_SERVERS: usize = 10_000;

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

/// Rates as `ipvsadm --rate` has them: averages over some ten seconds, made every two.
const RATES: &[(&str, &str, Count)] = &[
    ("connections_per_second", "Connections scheduled per second.", |stats| stats.cps),
    ("in_packets_per_second", "Packets from clients per second.", |stats| stats.in_pps),
    ("out_packets_per_second", "Packets to clients per second.", |stats| stats.out_pps),
    ("in_bytes_per_second", "Bytes from clients per second.", |stats| stats.in_bps),
    ("out_bytes_per_second", "Bytes to clients per second.", |stats| stats.out_bps),
];

const GAUGES: &[(&str, &str, Gauge)] = &[
    ("weight", "Weight; 0 is quiesced.", |server| server.spec.weight.into()),
    (
        "effective_weight",
        "Weight that the scheduler goes by, after health and feedback; 0: no new connections.",
        |server| server.effective_weight.into(),
    ),
    ("active_connections", "Connections in an active state.", |server| server.active.into()),
    ("inactive_connections", "Connections in other states.", |server| server.inactive.into()),
    ("persistence_templates", "Persistence templates.", |server| server.persistent.into()),
];

/// All of them.
pub(super) fn services(page: &mut Page, services: &[ServiceView]) {
    let shown = &services[..services.len().min(MOST_SERVICES)];
    let named: Vec<(String, &ServiceView)> =
        shown.iter().map(|service| (name_of(&service.spec.key), service)).collect();
    let all = named.iter().flat_map(|(name, service)| {
        let servers = service.servers.iter().chain(&service.fallback);
        servers.map(move |server| (name.as_str(), server.spec.address.to_string(), server))
    });
    // Room for one more tells whether there is more.
    let servers: Vec<(&str, String, &ServerView)> = all.take(MOST_SERVERS).collect();
    let count = |services: &[ServiceView]| -> usize {
        services.iter().map(|it| it.servers.len() + usize::from(it.fallback.is_some())).sum()
    };
    let help = "Services and servers that this page leaves out, to stay bounded.";
    page.family("switchyard_omitted", "gauge", help);
    page.sample(&[("kind", "service")], services.len() - shown.len());
    page.sample(&[("kind", "server")], count(services) - servers.len());

    for (kind, rows) in [("counter", COUNTERS), ("gauge", RATES)] {
        let suffix = if kind == "counter" { "_total" } else { "" };
        for (name, help, value) in rows {
            page.family(&format!("switchyard_service_{name}{suffix}"), kind, help);
            for (service, view) in &named {
                page.sample(&[("service", service)], value(&view.stats));
            }
            page.family(&format!("switchyard_server_{name}{suffix}"), kind, help);
            for (service, address, view) in &servers {
                page.sample(&[("service", service), ("server", address)], value(&view.stats));
            }
        }
    }
    let help =
        "Times the scheduler has chosen a server; connections by template are not among them.";
    page.family("switchyard_server_picks_total", "counter", help);
    for (service, address, view) in &servers {
        page.sample(&[("service", service), ("server", address)], view.picks);
    }
    for (name, help, gauge) in GAUGES {
        page.family(&format!("switchyard_server_{name}"), "gauge", help);
        for (service, address, view) in &servers {
            page.sample(&[("service", service), ("server", address)], gauge(view));
        }
    }
}
