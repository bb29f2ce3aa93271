//! Whether a packet comes to the director at all, and if not, what it may have missed by little.

use std::collections::BTreeSet;

use forwarding::parse;

use super::Scene;
use crate::control::explain::Step;
use crate::steer::{Key, Kind};

/// Services of an address that are named.
const NAMED: usize = 8;

/// What steering looks at.
const TAKEN: &str = "the XDP program takes it: addresses and port are a service's, a NAT server's, or in an \
                     error about those";
const LEFT: &str = "the XDP program leaves it to the kernel: no service, NAT server or tunnel has these \
                    addresses, port and protocol";

/// Whether the steering program takes it; `Err`: no.
pub(super) fn steered(
    scene: &Scene<'_>,
    frame: &[u8],
    interface: Option<&str>,
) -> Result<Step, Step> {
    let step = |text: String| Step { stage: "steering".to_owned(), text, details: Vec::new() };
    if let Some(name) = interface
        && !scene.interfaces.iter().any(|known| known == name)
    {
        let served = scene.interfaces.join(", ");
        return Err(step(format!("the director does not serve {name}, only {served}")));
    }
    match scene.steering.wants(frame) {
        true => Ok(step(TAKEN.to_owned())),
        false => Err(Step { details: vec![nearby(scene, frame)], ..step(LEFT.to_owned()) }),
    }
}

/// What services there are at the packet's destination.
fn nearby(scene: &Scene<'_>, frame: &[u8]) -> String {
    let Ok(headers) = parse(frame) else {
        return "it is nothing that a service could be for".to_owned();
    };
    let at = headers.destination;
    let address = Key::new(Kind::Service, 0, at, 0).address;
    let of_service = |key: &&Key| key.kind == Kind::Service && key.protocol != 0;
    let keys = scene.steering.iter().filter(of_service).filter(|key| key.address == address);
    let ports: BTreeSet<(u8, u16)> = keys.map(|key| (key.protocol, key.port)).collect();
    let name = |&(protocol, port): &(u8, u16)| {
        let protocol = match protocol {
            6 => "tcp",
            17 => "udp",
            132 => "sctp",
            _ => "?",
        };
        if port == 0 { format!("every port/{protocol}") } else { format!("{port}/{protocol}") }
    };
    let names: Vec<String> = ports.iter().take(NAMED).map(name).collect();
    let more = if ports.len() > NAMED {
        format!(" and {} more", ports.len() - NAMED)
    } else {
        String::new()
    };
    match names.is_empty() {
        true => format!("{at} is no service's address"),
        false => format!("{at} has services on {}{more}", names.join(", ")),
    }
}
