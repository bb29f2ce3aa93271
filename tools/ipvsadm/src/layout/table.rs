//! The service table of `-L`, in its default layout and with thresholds, templates or tunnels.

use director::control::api::{
    Forwarding, Persistence, ServerSpec, ServerView, ServiceKey, ServiceSpec, ServiceView, Tunnel,
    TunnelChecksum,
};

use super::{Format, counters, flags_of, line, protocol_name, protocol_of, scheduler_flags, sort};
use crate::names::Names;

/// Width of the first column of wide layouts; longer IPv4 services are cut.
const SERVICE_WIDTH: usize = 33;
/// Longer IPv4 servers are cut.
const SERVER_WIDTH: usize = 28;

/// What stands above the services. `table_size` gives it the line about the version, which a listing
/// of one service does not have.
pub fn head(table_size: Option<u32>, format: &Format) -> String {
    let mut text = String::new();
    if let Some(size) = table_size {
        line(&mut text, format_args!("IP Virtual Server version 1.2.1 (size={size})"));
    }
    titles(&mut text, format);
    text
}

/// The lines of one service: its own, and one for each server.
pub fn service(service: &ServiceView, format: &Format, names: &Names) -> String {
    let mut text = String::new();
    let name = service_name(&service.spec.key, names);
    if format.stats || format.rate {
        counters::service(&mut text, &name, &service.stats, format);
    } else {
        line(&mut text, format_args!("{name} {}", particulars(&service.spec)));
    }
    let mut servers: Vec<&ServerView> = service.servers.iter().collect();
    if !format.unsorted {
        sort::servers(&mut servers);
    }
    for server in servers {
        let name = server_name(&server.spec, &service.spec.key, names);
        server_line(&mut text, &name, server, format);
    }
    text
}

fn titles(text: &mut String, format: &Format) {
    let first = "Prot LocalAddress:Port";
    let second = "  -> RemoteAddress:Port";
    if format.stats || format.rate {
        counters::titles(text, first, second, format);
    } else if format.thresholds {
        line(
            text,
            format_args!(
                "{first:<33} {:<10} {:<10} {:<10} {:<10}",
                "Uthreshold", "Lthreshold", "ActiveConn", "InActConn"
            ),
        );
        line(text, format_args!("{second}"));
    } else if format.persistent {
        line(
            text,
            format_args!(
                "{first:<33} {:<9} {:<11} {:<10} {:<10}",
                "Weight", "PersistConn", "ActiveConn", "InActConn"
            ),
        );
        line(text, format_args!("{second}"));
    } else {
        line(text, format_args!("{first} Scheduler Flags"));
        let tunnel = if format.tunnel { "TunnelInfo    " } else { "" };
        line(text, format_args!("{second}           Forward {tunnel}Weight ActiveConn InActConn"));
    }
}

fn server_line(text: &mut String, name: &str, server: &ServerView, format: &Format) {
    let ServerView { spec, active, inactive, persistent, stats, .. } = server;
    let ServerSpec { upper_threshold, lower_threshold, .. } = spec;
    // What the scheduler goes by: a checker with `inhibit_on_failure` makes the kernel show that too.
    let weight = server.effective_weight;
    let name = format_args!("  -> {name:<SERVER_WIDTH$}");
    let forwarding = forwarding_name(spec.forwarding);
    if format.stats || format.rate {
        counters::server(text, name, stats, format);
    } else if format.thresholds {
        line(
            text,
            format_args!(
                "{name} {upper_threshold:<10} {lower_threshold:<10} {active:<10} {inactive:<10}"
            ),
        );
    } else if format.persistent {
        line(text, format_args!("{name} {weight:<9} {persistent:<11} {active:<10} {inactive:<10}"));
    } else if format.tunnel {
        let tunnel = tunnel_info(spec);
        line(
            text,
            format_args!(
                "{name} {forwarding:<7} {tunnel:<13} {weight:<6} {active:<10} {inactive:<10}"
            ),
        );
    } else {
        line(text, format_args!("{name} {forwarding:<7} {weight:<6} {active:<10} {inactive:<10}"));
    }
}

/// `TCP  10.0.0.1:80`, `FWM  7`, `FWM  7 IPv6`.
fn service_name(key: &ServiceKey, names: &Names) -> String {
    match key {
        ServiceKey::Fwmark { fwmark, ipv6 } => {
            // A C int in the original: marks of 2^31 and more are negative there, and so here.
            let fwmark = *fwmark as i32;
            format!("FWM  {fwmark}{}", if *ipv6 { " IPv6" } else { "" })
        }
        ServiceKey::Address { protocol, address } => {
            let name = names.show(*address, Some(*protocol));
            let name = format!("{:<4} {name}", protocol_name(*protocol));
            if address.is_ipv6() { name } else { cut(name, SERVICE_WIDTH) }
        }
    }
}

fn server_name(server: &ServerSpec, service: &ServiceKey, names: &Names) -> String {
    let name = names.show(server.address, protocol_of(service));
    if server.address.is_ipv6() { name } else { cut(name, SERVER_WIDTH) }
}

fn cut(name: String, width: usize) -> String {
    if name.chars().count() <= width { name } else { name.chars().take(width).collect() }
}

/// What follows a service's name: scheduler and options.
fn particulars(spec: &ServiceSpec) -> String {
    let mut text = spec.scheduler.clone();
    let flags = scheduler_flags(&spec.scheduler, flags_of(spec));
    if !flags.is_empty() {
        text.push_str(&format!(" ({})", flags.join(",")));
    }
    if let Some(Persistence { timeout, prefix, engine }) = &spec.persistence {
        text.push_str(&format!(" persistent {timeout}"));
        if let Some(mask) = mask(*prefix, spec.key.is_ipv6()) {
            text.push_str(&format!(" mask {mask}"));
        }
        if let Some(engine) = engine {
            text.push_str(&format!(" pe {engine}"));
        }
    }
    if spec.one_packet {
        text.push_str(" ops");
    }
    text
}

/// A mask as the command line takes it: dotted, or a prefix for IPv6. `None` for a full one.
pub fn mask(prefix: u8, ipv6: bool) -> Option<String> {
    match (prefix, ipv6) {
        (128.., true) | (32.., false) => None,
        (prefix, true) => Some(prefix.to_string()),
        (prefix, false) => {
            let bits = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Some(std::net::Ipv4Addr::from(bits).to_string())
        }
    }
}

fn forwarding_name(forwarding: Forwarding) -> &'static str {
    match forwarding {
        Forwarding::Nat => "Masq",
        Forwarding::Local(_) => "Local",
        Forwarding::Tunnel => "Tunnel",
        Forwarding::Direct => "Route",
    }
}

fn tunnel_info(server: &ServerSpec) -> String {
    let checksum = |checksum| match checksum {
        TunnelChecksum::Nocsum => "-c",
        TunnelChecksum::Csum => "+c",
        TunnelChecksum::Remcsum => "r+c",
    };
    match (server.forwarding, server.tunnel) {
        (Forwarding::Tunnel, Tunnel::Ipip) => "ipip".to_owned(),
        (Forwarding::Tunnel, Tunnel::Gue { port, checksum: sum }) => {
            format!("gue:{port}:{}", checksum(sum))
        }
        (Forwarding::Tunnel, Tunnel::Gre { checksum: sum }) => format!("gre:{}", checksum(sum)),
        _ => "n/a".to_owned(),
    }
}
