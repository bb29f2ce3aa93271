//! Configuration files for the standard topology, as an operator would write them.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use crate::topology::{Kind, VIP_V4, VIP_V6, server_addresses};

/// The top of a file: mode, the one interface, and `io`.
pub fn top(io: &str) -> String {
    format!("mode = \"dispatcher\"\ninterfaces = [\"eth0\"]\nio = \"{io}\"\n")
}

/// Port 80 of both VIPs over the first servers, one for each weight.
pub fn web(kind: Kind, scheduler: &str, weights: &[u32]) -> String {
    [VIP_V4, VIP_V6].map(|vip| service(kind, vip, 80, scheduler, "", weights)).concat()
}

/// One service over the first servers, the same port there: with NAT, two services that lead to one
/// port of a server would make one connection of two that have the same client port. `more` are further lines of it.
pub fn service(
    kind: Kind,
    vip: IpAddr,
    port: u16,
    scheduler: &str,
    more: &str,
    weights: &[u32],
) -> String {
    let forwarding = match kind {
        Kind::Nat | Kind::NatTwoArmed => "nat",
        Kind::Direct => "direct",
        Kind::Tunnel => "tunnel",
    };
    let listen = SocketAddr::new(vip, port);
    let mut text = format!(
        "\n[[service]]\nlisten = \"{listen}/tcp\"\nscheduler = \"{scheduler}\"\n\
         forwarding = \"{forwarding}\"\n{more}\n"
    );
    for (number, weight) in (1..).zip(weights) {
        let address = SocketAddr::new(server_addresses(number)[usize::from(vip.is_ipv6())], port);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n  [[service.server]]\n  address = \"{address}\"\n  weight = {weight}\n"
        );
    }
    text
}
