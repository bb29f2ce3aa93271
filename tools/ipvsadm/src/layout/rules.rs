//! The lines of `-S`: the commands that rebuild the table. What ipvsadm does not save (thresholds,
//! timeouts, connections) is not saved here either.

use director::control::api::{
    Forwarding, Persistence, Protocol, ServerSpec, ServerView, ServiceKey, ServiceSpec,
    ServiceView, Tunnel, TunnelChecksum,
};

use super::table::mask;
use super::{line, protocol_of, scheduler_flags, sort};
use crate::names::Names;

/// All lines: each service, then its servers.
pub fn rules(services: &[ServiceView], names: &Names) -> String {
    let mut text = String::new();
    let mut services: Vec<&ServiceView> = services.iter().collect();
    sort::services(&mut services);
    for service in services {
        let key = service_key(&service.spec.key, names);
        line(&mut text, format_args!("-A {key}{}", service_options(&service.spec)));
        let mut servers: Vec<&ServerView> = service.servers.iter().collect();
        sort::servers(&mut servers);
        for server in servers {
            let spec = &server.spec;
            let address = names.show(spec.address, protocol_of(&service.spec.key));
            line(&mut text, format_args!("-a {key} -r {address}{}", server_options(spec)));
        }
    }
    text
}

fn service_key(key: &ServiceKey, names: &Names) -> String {
    match key {
        ServiceKey::Fwmark { fwmark, ipv6: false } => format!("-f {fwmark}"),
        ServiceKey::Fwmark { fwmark, ipv6: true } => format!("-f {fwmark} -6"),
        ServiceKey::Address { protocol, address } => {
            let flag = match protocol {
                Protocol::Tcp => "-t",
                Protocol::Udp => "-u",
                Protocol::Sctp => "--sctp-service",
            };
            format!("{flag} {}", names.show(*address, Some(*protocol)))
        }
    }
}

fn service_options(spec: &ServiceSpec) -> String {
    let mut text = format!(" -s {}", spec.scheduler);
    if let Some(Persistence { timeout, prefix, engine }) = &spec.persistence {
        text.push_str(&format!(" -p {timeout}"));
        if let Some(mask) = mask(*prefix, spec.key.is_ipv6()) {
            text.push_str(&format!(" -M {mask}"));
        }
        if let Some(engine) = engine {
            text.push_str(&format!(" --pe {engine}"));
        }
    }
    if spec.one_packet {
        text.push_str(" -o");
    }
    let flags = scheduler_flags(&spec.scheduler, spec.flags);
    if !flags.is_empty() {
        text.push_str(&format!(" -b {}", flags.join(",")));
    }
    text
}

fn server_options(spec: &ServerSpec) -> String {
    let method = match spec.forwarding {
        Forwarding::Direct | Forwarding::Local => "-g",
        Forwarding::Nat => "-m",
        Forwarding::Tunnel => "-i",
    };
    let mut text = format!(" {method} -w {}", spec.weight);
    if spec.forwarding == Forwarding::Tunnel {
        let checksum = |checksum| match checksum {
            TunnelChecksum::Nocsum => "--tun-nocsum",
            TunnelChecksum::Csum => "--tun-csum",
            TunnelChecksum::Remcsum => "--tun-remcsum",
        };
        text.push_str(&match spec.tunnel {
            Tunnel::Ipip => " --tun-type ipip".to_owned(),
            Tunnel::Gre { checksum: sum } => format!(" --tun-type gre {}", checksum(sum)),
            Tunnel::Gue { port, checksum: sum } => {
                format!(" --tun-type gue --tun-port {port} {}", checksum(sum))
            }
        });
    }
    text
}
