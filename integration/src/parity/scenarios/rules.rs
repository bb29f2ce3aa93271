//! Rules of services as `ipvsadm -R` takes them, and what happens to a service under way.

use std::net::{IpAddr, SocketAddr};

use crate::parity::step::Step;
use crate::topology::server_addresses;

/// Server `number` of `service`'s family, on the service's port.
pub(super) fn server(number: usize, service: SocketAddr) -> SocketAddr {
    SocketAddr::new(server_addresses(number)[usize::from(service.is_ipv6())], service.port())
}

/// A TCP service with servers 1, 2, ... of these weights, by direct routing.
pub(super) fn service(service: SocketAddr, options: &str, weights: &[i32]) -> Vec<String> {
    let mut rules = vec![format!("-A -t {service} {options}")];
    for (number, weight) in (1..).zip(weights) {
        rules.push(format!("-a -t {service} -r {} -g -w {weight}", server(number, service)));
    }
    rules
}

/// `count` services on as many addresses of `network` (its first), all with the same port,
/// options and servers.
pub(super) fn services(
    network: IpAddr,
    count: usize,
    port: u16,
    options: &str,
    weights: &[i32],
) -> (Vec<SocketAddr>, Vec<String>) {
    let address = |number: usize| match network {
        IpAddr::V4(first) => IpAddr::V4((first.to_bits() + number as u32).into()),
        IpAddr::V6(first) => IpAddr::V6((first.to_bits() + (number as u128) * 0x1001).into()),
    };
    let addresses: Vec<_> =
        (1..=count).map(|number| SocketAddr::new(address(number), port)).collect();
    let rules = addresses.iter().flat_map(|&at| service(at, options, weights)).collect();
    (addresses, rules)
}

/// The listing of one service.
pub(super) fn show(service: SocketAddr) -> Step {
    Step::Show(format!("-L -n -t {service}"))
}

/// What an operator does to four servers' service (weights 2, 3, 4, 5, all times `scale`) while
/// clients come: `between(phase)` is what they send after each change, 0 first. Phases: 7.
pub(super) fn changes_under_way(
    service: SocketAddr,
    scale: i32,
    mut between: impl FnMut(usize) -> Step,
) -> Vec<Step> {
    let server = |number| server(number, service);
    let with = |command: &str, number, weight: i32| {
        format!("{command} -t {service} -r {} -g -w {}", server(number), weight * scale)
    };
    let changes = [
        with("-a", 5, 6),
        with("-e", 2, 9),
        with("-e", 3, 0),
        format!("-d -t {service} -r {}", server(1)),
        with("-a", 1, 2),
        with("-e", 3, 4),
    ];
    let mut steps = vec![between(0)];
    for (change, phase) in changes.into_iter().zip(1..) {
        steps.extend([Step::Ipvsadm(change), between(phase), show(service)]);
    }
    steps
}
