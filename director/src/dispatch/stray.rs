//! What a NAT server sends from its service's port without a connection: an answer to nobody.
//! `nat_icmp_send` has it told so (`ip_vs_out_hook`'s behaviour); otherwise it is the host's.

use std::time::Duration;

use forwarding::icmp::Error;
use forwarding::{Headers, Packet, direct};

use super::forward::own_address;
use super::service::Services;
use super::settings::Setting;
use super::signal::Signal;
use super::verdict::{DropReason, Method, Stop};
use super::{Dispatcher, Routes};

impl Dispatcher {
    /// Whether a packet without a connection is a NAT server's answer to be refused. A reset or abort is
    /// not: it ends what is not there.
    pub(super) fn is_stray_answer(
        &self,
        services: &Services,
        headers: &Headers,
        signal: Signal,
    ) -> bool {
        self.shared.settings.is_on(Setting::NatIcmpSend)
            && services.has_nat_server(headers.protocol, headers.source, headers.source_port)
            && !signal.resets()
    }

    /// Tells the server that nobody is there, as the router that it takes us for: what is to be sent
    /// on has lost one of its TTL before we look at it.
    pub(super) fn refuse_answer(
        &mut self,
        now: Duration,
        routes: &mut impl Routes,
        packet: &mut Packet<'_>,
        mut headers: Headers,
    ) -> Stop {
        let is_for_us = routes.path(headers.destination).is_none();
        let (own, is_alive) = if is_for_us {
            (headers.destination, true)
        } else {
            let own = own_address(routes, &headers, Method::NatReply);
            (own, direct::decrement_ttl(packet.bytes_mut(), &mut headers))
        };
        let (error, reason) = if is_alive {
            (Error::PortUnreachable, DropReason::NoConnection)
        } else {
            (Error::TimeExceeded, DropReason::TtlExceeded)
        };
        self.answer(now, packet, &headers, own, error, reason)
    }
}
