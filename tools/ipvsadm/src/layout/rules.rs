//! The lines of `-S`: the commands that rebuild the table. What ipvsadm does not save (thresholds,
//! timeouts, connections) is not saved here either, unless everything is asked for.

use director::control::api::{
    Bias, BiasWindow, Extras, Forwarding, GoneServer, MssClamp, NoDestination, OwnTimeouts,
    Persistence, Placement, Protocol, ServerSpec, ServerView, ServiceKey, ServiceSpec, ServiceView,
    Teardown, Timeouts, Tunnel, TunnelChecksum,
};

use super::table::mask;
use super::{flags_of, line, protocol_of, scheduler_flags, sort};
use crate::flags::extensions::HASH_KEYS;
use crate::names::Names;

/// The lines of one service: its own, then those of its servers.
pub fn service(service: &ServiceView, names: &Names) -> String {
    let mut text = String::new();
    let key = service_key(&service.spec.key, names);
    line(&mut text, format_args!("-A {key}{}", service_options(&service.spec)));
    let mut servers: Vec<&ServerView> = service.servers.iter().collect();
    sort::servers(&mut servers);
    for server in servers {
        let spec = &server.spec;
        let address = names.show(spec.address, protocol_of(&service.spec.key));
        line(&mut text, format_args!("-a {key} -r {address}{}", server_options(spec)));
    }
    text
}

/// The same with everything that a service and its servers have, and the servers in the order in which
/// they were added: schedulers go by it.
pub fn full_service(service: &ServiceView) -> String {
    let mut text = String::new();
    let ServiceView { spec, servers, .. } = service;
    let key = service_key(&spec.key, &Names::default());
    let options = options_but_flags(spec);
    // By number: the third flag of sh and mh has no other name. What the file says of dht in its own words
    // is among the options.
    let flags = scheduler_flags("", spec.flags);
    let flags = if flags.is_empty() { String::new() } else { format!(" -b {}", flags.join(",")) };
    let extras = spec.extras.map_or_else(String::new, |extras| extra_options(&extras));
    line(&mut text, format_args!("-A {key}{options}{flags}{extras}"));
    for ServerView { spec, .. } in servers.iter().rev() {
        let ServerSpec { address, upper_threshold: upper, lower_threshold: lower, .. } = spec;
        let mut options = server_options(spec);
        if (*upper, *lower) != (0, 0) {
            options.push_str(&format!(" -x {upper} -y {lower}"));
        }
        line(&mut text, format_args!("-a {key} -r {address}{options}"));
    }
    text
}

/// The command that sets the timeouts.
pub fn timeouts(timeouts: &Timeouts) -> String {
    let Timeouts { tcp, tcp_fin, udp } = timeouts;
    format!("--set {tcp} {tcp_fin} {udp}\n")
}

/// Those that are not off.
fn extra_options(extras: &Extras) -> String {
    let Extras {
        timeouts,
        gone_server,
        no_destination,
        leave_quiesced,
        mss_clamp,
        bias,
        bias_window,
        teardown,
        placement: Placement { key, sticky, variants },
    } = *extras;
    let mut text = String::new();
    if timeouts != OwnTimeouts::default() {
        let OwnTimeouts { tcp, tcp_fin, udp } = timeouts;
        text.push_str(&format!(" --service-timeouts {tcp},{tcp_fin},{udp}"));
    }
    text.push_str(match gone_server {
        GoneServer::Drop => "",
        GoneServer::Rst => " --gone-server rst",
        GoneServer::Reschedule => " --gone-server reschedule",
    });
    text.push_str(match no_destination {
        NoDestination::Icmp => "",
        NoDestination::Rst => " --no-destination rst",
    });
    if leave_quiesced {
        text.push_str(" --leave-quiesced");
    }
    match mss_clamp {
        MssClamp::ByRoute(false) => {}
        MssClamp::ByRoute(true) => text.push_str(" --mss-clamp route"),
        MssClamp::Bytes(bytes) => text.push_str(&format!(" --mss-clamp {bytes}")),
    }
    if bias != Bias::None {
        text.push_str(&format!(" --bias {bias}"));
    }
    if bias_window != BiasWindow::default() {
        text.push_str(&format!(" --bias-window {}", bias_window.0));
    }
    text.push_str(match teardown {
        Teardown::Lazy => "",
        Teardown::Eager => " --teardown eager",
        Teardown::None => " --teardown none",
    });
    let key = HASH_KEYS.iter().find(|(_, it)| Some(*it) == key);
    key.iter().for_each(|(word, _)| text.push_str(&format!(" --hash-key {word}")));
    if sticky {
        text.push_str(" --sticky");
    }
    if variants != Placement::default().variants {
        text.push_str(&format!(" --variants {variants}"));
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
    let mut text = options_but_flags(spec);
    let flags = scheduler_flags(&spec.scheduler, flags_of(spec));
    if !flags.is_empty() {
        text.push_str(&format!(" -b {}", flags.join(",")));
    }
    text
}

fn options_but_flags(spec: &ServiceSpec) -> String {
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
    text
}

fn server_options(spec: &ServerSpec) -> String {
    let method = match spec.forwarding {
        Forwarding::Direct | Forwarding::Local(_) => "-g",
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
