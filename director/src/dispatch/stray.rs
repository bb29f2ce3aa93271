//! What a NAT server sends from its service's port without a connection: an answer to nobody.
//! `nat_icmp_send` has it told so (`ip_vs_out_hook`'s behaviour); otherwise it is the host's.

use std::time::Duration;

use forwarding::icmp::Error;
use forwarding::{Headers, Packet};

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

    /// Tells the server that nobody is there.
    pub(super) fn refuse_answer(
        &mut self,
        now: Duration,
        routes: &mut impl Routes,
        packet: &Packet<'_>,
        headers: &Headers,
    ) -> Stop {
        let own = own_address(routes, headers, Method::NatReply);
        self.answer(now, packet, headers, own, Error::PortUnreachable, DropReason::NoConnection)
    }
}
