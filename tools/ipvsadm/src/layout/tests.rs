//! The listings of the reference, byte for byte; here is what they list. `|` marks the end of a
//! line, so that blanks there can be seen.

use director::control::api::{
    Forwarding, Persistence, Protocol, ServerSpec, ServerView, ServiceKey, ServiceSpec,
    ServiceView, Stats, Tunnel, TunnelChecksum,
};

use super::Format;
use super::{rules, sort, table as layout_of_table};
use crate::names::Names;

mod counters;
mod lists;
mod tables;

/// The table as the command prints it.
fn table(
    services: &[ServiceView],
    table_size: Option<u32>,
    format: &Format,
    names: &Names,
) -> String {
    let mut rows: Vec<(ServiceKey, String)> = services
        .iter()
        .map(|service| (service.spec.key, layout_of_table::service(service, format, names)))
        .collect();
    if !format.unsorted {
        rows = sort::by_service(rows);
    }
    let rows: String = rows.into_iter().map(|(_, text)| text).collect();
    layout_of_table::head(table_size, format) + &rows
}

/// The saved rules as the command prints them.
fn saved(services: &[ServiceView]) -> String {
    let names = Names::default();
    let blocks = services.iter().map(|service| (service.spec.key, rules::service(service, &names)));
    sort::by_service(blocks.collect()).into_iter().map(|(_, text)| text).collect()
}

fn lines(text: &str) -> String {
    text.split('|')
        .map(|line| format!("{}\n", line.trim_start_matches('\n')))
        .collect::<String>()
        .trim_end_matches('\n')
        .to_owned()
        + "\n"
}

fn service(protocol: Protocol, address: &str, scheduler: &str) -> ServiceView {
    let address = address.parse().unwrap();
    with_key(ServiceKey::Address { protocol, address }, scheduler)
}

fn with_key(key: ServiceKey, scheduler: &str) -> ServiceView {
    let spec = ServiceSpec {
        key,
        scheduler: scheduler.to_owned(),
        flags: 0,
        persistence: None,
        one_packet: false,
        extras: None,
    };
    ServiceView {
        spec,
        declared: false,
        stats: Stats::default(),
        servers: Vec::new(),
        fallback: None,
    }
}

fn persistent(timeout: u32, prefix: u8) -> Option<Persistence> {
    Some(Persistence { timeout, prefix, engine: None })
}

fn server(
    address: &str,
    forwarding: Forwarding,
    weight: i32,
    active: u32,
    inactive: u32,
) -> ServerView {
    let spec = ServerSpec {
        address: address.parse().unwrap(),
        forwarding,
        tunnel: Tunnel::Ipip,
        weight,
        upper_threshold: 0,
        lower_threshold: 0,
    };
    ServerView {
        picks: 0,
        spec,
        effective_weight: weight,
        local: false,
        active,
        inactive,
        persistent: 0,
        stats: Stats::default(),
    }
}

/// A server that has failed, and one whose weight follows its load.
fn judged() -> ServiceView {
    let mut tcp = service(Protocol::Tcp, "10.0.0.1:80", "wlc");
    tcp.servers = vec![
        ServerView { effective_weight: 0, ..server("10.0.0.11:80", Forwarding::Direct, 5, 3, 4) },
        ServerView {
            effective_weight: 70,
            ..server("10.0.0.12:80", Forwarding::Direct, 100, 3, 4)
        },
    ];
    tcp
}

#[test]
fn the_listing_shows_the_weights_in_effect() {
    let weights = |format: Format, column: usize| -> Vec<String> {
        let text = list(&[judged()], format);
        let lines = text.lines().filter(|line| line.starts_with("  -> 10."));
        lines.map(|line| line.split_whitespace().nth(column).unwrap().to_owned()).collect()
    };
    assert_eq!(weights(Format::default(), 3), ["0", "70"]);
    assert_eq!(weights(Format { persistent: true, ..Format::default() }, 2), ["0", "70"]);
    assert_eq!(weights(Format { tunnel: true, ..Format::default() }, 4), ["0", "70"]);
}

#[test]
fn saved_rules_have_the_weights_that_were_asked_for() {
    let saved = rules::service(&judged(), &Names::default());
    for rule in ["-r 10.0.0.11:80 -g -w 5", "-r 10.0.0.12:80 -g -w 100"] {
        assert!(saved.contains(rule), "{saved}");
    }
}

/// The table of the reference's first example, in an order of its own.
fn example() -> Vec<ServiceView> {
    let mut tcp = service(Protocol::Tcp, "10.0.0.1:80", "wlc");
    tcp.servers = vec![
        server("10.0.0.12:80", Forwarding::Direct, 1, 10, 200),
        server("10.0.0.11:80", Forwarding::Direct, 5, 3, 4),
    ];
    let mut sh = service(Protocol::Tcp, "10.0.0.2:443", "sh");
    sh.spec.flags = 0x18;
    sh.spec.persistence = persistent(300, 24);
    sh.servers = vec![server("10.0.0.21:443", Forwarding::Tunnel, 1, 0, 0)];
    let mut ops = service(Protocol::Udp, "10.0.0.3:53", "rr");
    ops.spec.one_packet = true;
    ops.servers = vec![server("10.0.0.31:5353", Forwarding::Nat, 1, 0, 1)];
    let mut sip = service(Protocol::Udp, "10.0.0.4:5060", "mh");
    sip.spec.flags = 0x10;
    sip.spec.persistence =
        Some(Persistence { timeout: 360, prefix: 32, engine: Some("sip".to_owned()) });
    sip.servers = vec![server("127.0.0.1:5060", Forwarding::Direct.at_home(), 1, 0, 0)];
    let sctp = service(Protocol::Sctp, "10.0.0.5:2905", "rr");
    let mut six = service(Protocol::Tcp, "[2001:db8::1]:80", "wrr");
    six.spec.persistence = persistent(50, 64);
    six.servers = vec![server("[2001:db8::11]:80", Forwarding::Nat, 1, 0, 0)];
    let mut mark = with_key(ServiceKey::Fwmark { fwmark: 7, ipv6: false }, "lc");
    mark.spec.persistence = persistent(600, 32);
    mark.servers = vec![server("10.0.0.71:0", Forwarding::Direct, 1, 0, 0)];
    let mark_six = with_key(ServiceKey::Fwmark { fwmark: 8, ipv6: true }, "wlc");
    vec![mark_six, mark, six, sctp, sip, ops, sh, tcp]
}

fn list(services: &[ServiceView], format: Format) -> String {
    table(services, Some(4096), &format, &Names::default())
}

fn tunnels() -> ServiceView {
    let mut tcp = service(Protocol::Tcp, "10.0.0.2:443", "wlc");
    let gue = |port, checksum| Tunnel::Gue { port, checksum };
    tcp.servers = [
        ("10.0.0.21:443", Tunnel::Ipip, 1),
        ("10.0.0.22:443", gue(6080, TunnelChecksum::Csum), 1),
        ("10.0.0.23:443", Tunnel::Gre { checksum: TunnelChecksum::Nocsum }, 1),
        ("10.0.0.24:443", gue(6081, TunnelChecksum::Remcsum), 0),
    ]
    .map(|(address, tunnel, weight)| {
        let mut server = server(address, Forwarding::Tunnel, weight, 0, 0);
        server.spec.tunnel = tunnel;
        server
    })
    .to_vec();
    tcp.servers.push(server("10.0.0.25:443", Forwarding::Direct, 1, 0, 0));
    tcp
}
