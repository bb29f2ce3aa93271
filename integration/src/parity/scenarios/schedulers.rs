//! Which server each new connection goes to, scheduler by scheduler.

use std::net::SocketAddr;

use super::clients::{come_and_go, tcp};
use crate::parity::step::{Scenario, Step};
use crate::topology::{VIP_V4, server_addresses};

/// Schedulers that decide by load and weight alone: one virtual address says all about them.
pub(super) const BY_LOAD: [&str; 8] = ["rr", "wrr", "lc", "wlc", "sed", "nq", "fo", "ovf"];

/// Weights of the servers, by what they try.
const WEIGHTS: [(&str, &[i32]); 3] = [
    ("equal", &[1, 1, 1, 1]),
    ("skewed", &[1, 4, 2, 10, 6]),
    ("zero", &[3, 0, 5, 0, 1]),
];

/// One scenario per scheduler.
pub(super) fn all() -> Vec<Scenario> {
    BY_LOAD.iter().map(|name| by_load(name)).collect()
}

fn by_load(scheduler: &str) -> Scenario {
    let mut steps = Vec::new();
    for ((_, weights), port) in WEIGHTS.into_iter().zip(8001..) {
        let service = SocketAddr::new(VIP_V4, port);
        let mut rules = vec![format!("-A -t {service} -s {scheduler}")];
        for (number, weight) in (1..).zip(weights) {
            let server = SocketAddr::new(server_addresses(number)[0], port);
            rules.push(format!("-a -t {service} -r {server} -g -w {weight}"));
        }
        steps.push(Step::Restore(rules));
        let flows: Vec<_> = (0..500).map(|number| tcp(number, service)).collect();
        steps.push(Step::Send(come_and_go(&flows)));
        steps.push(Step::Show(format!("-L -n -t {service}")));
    }
    Scenario {
        name: scheduler.to_owned(),
        title: format!("{scheduler}: equal, skewed and zero weights"),
        connections: 1500,
        steps,
    }
}
