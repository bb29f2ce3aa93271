//! One-packet scheduling: each UDP datagram of the service is scheduled by itself, whoever sends it.
//!
//! Its connection is made, counted and moved like any other, and gone before the packet leaves: it
//! is never in the table (`IP_VS_CONN_F_ONE_PACKET` of the kernel). So nothing that comes back finds
//! it. A NAT server's answer is the host's to route, untranslated, as in the kernel.
//!
//! Later fragments of a datagram follow the first one by what is remembered with its ports.

use std::sync::Arc;
use std::time::Duration;

use forwarding::Headers;

use super::connection::Connection;
use super::connections::{Binding, Way};
use super::real_server::RealServer;
use super::signal::Signal;
use super::verdict::{DropReason, PassReason, Stop};
use super::{Dispatcher, Target};

/// Where a datagram went whose fragments are still to come.
pub(super) struct Course {
    target: Target,
    binding: Arc<Binding>,
}

impl Course {
    /// The same course with a copy of its server.
    pub(super) fn with(&self, server: Arc<RealServer>) -> Course {
        Course { target: self.target, binding: Arc::new(self.binding.with(server)) }
    }

    /// Whose server it leads to.
    pub(super) fn server(&self) -> &Arc<RealServer> {
        &self.binding.server
    }
}

impl Dispatcher {
    /// The target of the datagram that `connection` was made for.
    pub(super) fn use_once(
        &self,
        now: Duration,
        headers: &Headers,
        signal: Signal,
        mut connection: Connection,
    ) -> Target {
        connection.incoming(signal, headers.ip_len(), now, &self.shared.timeouts);
        let target = Target::of(Way::In, &connection);
        if headers.is_first_fragment() {
            let binding = connection.binding.clone();
            self.shared.fragments.chart(headers, Arc::new(Course { target, binding }));
        }
        target
    }

    /// The target of a later fragment: its datagram's. A first fragment that another worker has in
    /// hand is waited for like one that is still to come.
    pub(super) fn use_again(&self, now: Duration, headers: &Headers) -> Result<Target, Stop> {
        let course = self.shared.fragments.course(headers, now);
        let course = course.ok_or(Stop::Pass(PassReason::Fragment))?;
        if course.binding.server.is_lost() {
            return Err(Stop::Drop(DropReason::ServerLost));
        }
        course.binding.counted(headers.ip_len(), true);
        Ok(course.target)
    }
}
