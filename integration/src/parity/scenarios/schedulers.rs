//! Which server each new connection goes to, for the schedulers that decide by load and weight
//! alone: one virtual address says all about them.

use std::net::SocketAddr;
use std::time::Duration;

use super::clients::{come_and_go, tcp};
use super::rules::{changes_under_way, service, show};
use crate::parity::step::{Flow, Kind, Packet, Scenario, Step};
use crate::topology::VIP_V4;

const BY_LOAD: [&str; 8] = ["rr", "wrr", "lc", "wlc", "sed", "nq", "fo", "ovf"];

/// Equal, skewed and zero weights.
const WEIGHTS: [&[i32]; 3] = [&[1, 1, 1, 1], &[1, 4, 2, 10, 6], &[3, 0, 5, 0, 1]];

/// The same for `ovf`, for which a weight is also the number of connections that a server takes.
const CAPACITIES: [&[i32]; 3] =
    [&[150, 150, 150, 150], &[30, 90, 300, 60, 250], &[300, 0, 90, 0, 200]];

/// Three scenarios per scheduler.
pub(super) fn all() -> Vec<Scenario> {
    BY_LOAD
        .iter()
        .flat_map(|name| [weights(name), thresholds(name), changes(name)])
        .chain([edits_of_limits()])
        .collect()
}

fn weights(scheduler: &str) -> Scenario {
    let mut steps = Vec::new();
    let weights = if scheduler == "ovf" { CAPACITIES } else { WEIGHTS };
    for (weights, port) in weights.into_iter().zip(8001..) {
        let at = SocketAddr::new(VIP_V4, port);
        steps.push(Step::Restore(service(at, &format!("-s {scheduler}"), weights)));
        let flows: Vec<_> = (0..500).map(|number| tcp(number, at)).collect();
        steps.push(Step::Send(come_and_go(&flows)));
        steps.push(show(at));
    }
    Scenario {
        name: scheduler.to_owned(),
        title: "equal, skewed and zero weights".to_owned(),
        connections: 1500,
        steps,
    }
}

/// Servers that are full, some of which are free again when connections have expired. Short
/// timeouts after a FIN make that happen while we look.
fn thresholds(scheduler: &str) -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8010);
    let weights = if scheduler == "ovf" { [400, 300, 200, 350] } else { [5, 3, 2, 4] };
    let limits = ["-x 120 -y 40", "-x 100", "-x 60 -y 60", "-x 400 -y 1"];
    let mut rules = service(at, &format!("-s {scheduler}"), &weights);
    for (rule, limits) in rules[1..].iter_mut().zip(limits) {
        rule.push_str(&format!(" {limits}"));
    }
    let flows: Vec<_> = (0..900).map(|number| tcp(number, at)).collect();
    let open = |flows: &[Flow]| {
        let both = |&flow| [Packet::new(flow, Kind::Syn), Packet::new(flow, Kind::Ack)];
        Step::Send(flows.iter().flat_map(both).collect())
    };
    // Those of the first wave that are to end: enough for some servers, not for all.
    let end = |flows: &[Flow], every: usize| {
        let ending = flows.iter().step_by(every).map(|&flow| Packet::new(flow, Kind::Fin));
        Step::Send(ending.collect())
    };
    let listing = Step::Show(format!("-L -n --thresholds -t {at}"));
    let steps = vec![
        Step::Ipvsadm("--set 900 2 300".to_owned()),
        Step::Restore(rules),
        open(&flows[..400]),
        listing.clone(),
        end(&flows[..200], 1),
        Step::Wait(Duration::from_secs(4)),
        open(&flows[400..600]),
        listing.clone(),
        end(&flows[200..400], 2),
        Step::Wait(Duration::from_secs(4)),
        open(&flows[600..750]),
        // Higher and lower limits than what is there: the mark stays what it was in between.
        Step::Ipvsadm(format!("-e -t {at} -r {} -g -w 3 -x 200", super::rules::server(2, at))),
        Step::Ipvsadm(format!("-e -t {at} -r {} -g -w 4 -x 20 -y 9", super::rules::server(4, at))),
        // A lower threshold above what is there frees nobody before a connection ends.
        Step::Ipvsadm(format!(
            "-e -t {at} -r {} -g -w 5 -x 120 -y 119",
            super::rules::server(1, at)
        )),
        open(&flows[750..]),
        listing,
        show(at),
    ];
    Scenario {
        name: format!("{scheduler}-thresholds"),
        title: "servers fill up and empty again".to_owned(),
        connections: 500,
        steps,
    }
}

/// When an edit of the limits takes hold.
fn edits_of_limits() -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8030);
    let server = super::rules::server(1, at);
    let mut steps = vec![Step::Restore(service(at, "-s rr", &[1, 1, 1]))];
    let limits = [
        "-x 60 -y 20",
        "-x 61 -y 20",
        "-x 90 -y 20",
        "-x 90 -y 70",
        "-x 100 -y 99",
        "-x 130",
        "-x 120",
        "-x 50 -y 10",
        "-x 0",
        "-x 500 -y 490",
        "-x 400 -y 1",
        "-x 10",
    ];
    let mut flows = (0..).map(|number| tcp(number, at));
    for limits in limits {
        steps.push(Step::Ipvsadm(format!("-e -t {at} -r {server} -g -w 1 {limits}")));
        let flows: Vec<_> = flows.by_ref().take(60).collect();
        steps.push(Step::Send(flows.iter().map(|&flow| Packet::new(flow, Kind::Syn)).collect()));
        steps.push(Step::Show(format!("-L -n --thresholds -t {at}")));
    }
    Scenario {
        name: "threshold-edits".to_owned(),
        title: "limits raised and lowered on a server that is full or nearly so".to_owned(),
        connections: 720,
        steps,
    }
}

fn changes(scheduler: &str) -> Scenario {
    let at = SocketAddr::new(VIP_V4, 8020);
    let scale = if scheduler == "ovf" { 25 } else { 1 };
    let weights = [2, 3, 4, 5].map(|weight| weight * scale);
    let mut steps = vec![Step::Restore(service(at, &format!("-s {scheduler}"), &weights))];
    steps.extend(changes_under_way(at, scale, |phase| {
        let flows: Vec<_> = (phase * 90..phase * 90 + 90).map(|number| tcp(number, at)).collect();
        let mut packets = come_and_go(&flows);
        // Earlier connections, also those of a server that has been removed, go on.
        let earlier = (0..phase * 90).step_by(9).map(|number| tcp(number, at));
        packets.extend(earlier.map(|flow| Packet::new(flow, Kind::Ack)));
        Step::Send(packets)
    }));
    Scenario {
        name: format!("{scheduler}-changes"),
        title: "servers added, edited, quiesced, removed and added again".to_owned(),
        connections: 540,
        steps,
    }
}
