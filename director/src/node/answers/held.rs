//! The flows that this host holds: connections in the kernel's socket table, and pins.

use std::collections::BTreeMap;

use ::nlb::host::HostId;
use ::nlb::tuple::Tuple;
use forwarding::wire::protocol;

use super::{Refused, Scene};
use crate::control::nlb::views::{ConnectionsView, FlowView};
use crate::node::flows;
use crate::node::host::Host;

/// Most flows shown, whatever is asked for.
const MOST: usize = 100_000;

/// All of them by protocol, client and port, `limit` of them in full.
pub(super) fn connections(
    host: &Host,
    limit: usize,
    scene: &Scene<'_>,
) -> Result<ConnectionsView, Refused> {
    let pins = host.filter.pins(scene.now).map_err(Refused::failed)?;
    let mut held: BTreeMap<Tuple, &str> = pins.into_iter().map(|pin| (pin.tuple, "pin")).collect();
    let vips = &host.policy().vips;
    let sockets = scene.held.iter().filter_map(|held| flows::tuple(held, vips));
    held.extend(sockets.map(|tuple| (tuple, "socket")));
    let shown = held.iter().take(limit.min(MOST)).map(|(tuple, held)| FlowView {
        protocol: word(tuple.protocol),
        client: tuple.client,
        client_port: tuple.client_port,
        vip: tuple.vip,
        port: tuple.vip_port,
        held: (*held).to_owned(),
        owner: owner(host, tuple).map(HostId::get),
    });
    Ok(ConnectionsView { total: held.len(), flows: shown.collect() })
}

fn owner(host: &Host, tuple: &Tuple) -> Option<HostId> {
    let (choice, bucket) = host.policy().place(tuple)?;
    host.membership.maps().nth(choice.slot.index())?.target.owner(bucket)
}

fn word(number: u8) -> String {
    match number {
        protocol::TCP => "tcp".to_owned(),
        protocol::UDP => "udp".to_owned(),
        protocol::GRE => "gre".to_owned(),
        other => other.to_string(),
    }
}
