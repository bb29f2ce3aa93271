//! Reading all of the kernel's tables at once.

use futures_util::StreamExt;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::rule::{RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::{Error, Handle};

use super::{Network, messages, routes};

/// How often a dump that the kernel calls inconsistent is tried again. After that the last one
/// must do: what it missed has been told by multicast in the meantime.
const ATTEMPTS: u32 = 5;

/// The policy rules that every namespace starts with: (priority, table).
const DEFAULT_RULES: [(u32, u32); 3] =
    [(0, routes::LOCAL), (32_766, routes::MAIN), (32_767, routes::DEFAULT)];

/// The network as it is now.
pub(super) async fn network(handle: &Handle) -> Result<Network, Error> {
    let mut attempt = 1;
    loop {
        let mut network = Network::default();
        let mut consistent = true;
        let requests = [
            RouteNetlinkMessage::GetLink(LinkMessage::default()),
            RouteNetlinkMessage::GetAddress(AddressMessage::default()),
            RouteNetlinkMessage::GetRoute(RouteMessage::default()),
            RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()),
        ];
        for request in requests {
            consistent &= each(handle, request, |message, flags| {
                if let Some(change) = messages::change(message, flags) {
                    network.load(change);
                }
            })
            .await?;
        }
        if consistent || attempt >= ATTEMPTS {
            return Ok(network);
        }
        attempt += 1;
    }
}

/// How many policy rules there are beyond the ones that are followed.
pub(super) async fn foreign_rules(handle: &Handle) -> Result<usize, Error> {
    let mut foreign = 0;
    let request = RouteNetlinkMessage::GetRule(RuleMessage::default());
    each(handle, request, |message, _| {
        // Multicast routing has rules of its own in the same list.
        if let RouteNetlinkMessage::NewRule(rule) = message
            && matches!(rule.header.family, AddressFamily::Inet | AddressFamily::Inet6)
        {
            let (mut priority, mut table) = (0, u32::from(rule.header.table));
            for attribute in &rule.attributes {
                match attribute {
                    RuleAttribute::Priority(value) => priority = *value,
                    RuleAttribute::Table(value) => table = *value,
                    _ => {}
                }
            }
            foreign += usize::from(!DEFAULT_RULES.contains(&(priority, table)));
        }
    })
    .await?;
    Ok(foreign)
}

/// Calls `each` for every object that the kernel answers a dump request with; says whether the
/// answer is consistent, as far as the kernel knows.
async fn each(
    handle: &Handle,
    request: RouteNetlinkMessage,
    mut each: impl FnMut(&RouteNetlinkMessage, u16),
) -> Result<bool, Error> {
    let mut request = NetlinkMessage::from(request);
    request.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut answers = handle.clone().request(request)?;
    let mut consistent = true;
    while let Some(answer) = answers.next().await {
        let flags = answer.header.flags;
        consistent &= flags & NLM_F_DUMP_INTR == 0;
        match answer.payload {
            NetlinkPayload::InnerMessage(message) => each(&message, flags),
            NetlinkPayload::Error(error) => return Err(Error::NetlinkError(error)),
            NetlinkPayload::Overrun(_) => consistent = false,
            _ => {}
        }
    }
    Ok(consistent)
}
