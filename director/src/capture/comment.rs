//! What is said of a captured packet: verdict, reason, and who has to do with it.
//!
//! Connections are looked up after the fact, some tenths of a second later: one that has ended by then
//! is not named.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use forwarding::Headers;

use crate::dispatch::Shared;
use crate::dispatch::service::Services;
use crate::worker::tap::{LONGEST, Outcome, Record};

/// See the module.
pub(super) struct Commentator {
    shared: Arc<Shared>,
    services: Arc<ArcSwap<Services>>,
    /// A packet of which not all was copied, with zeros in place of the rest.
    whole: Vec<u8>,
}

impl Commentator {
    pub(super) fn new(shared: Arc<Shared>, services: Arc<ArcSwap<Services>>) -> Commentator {
        Commentator { shared, services, whole: Vec::new() }
    }

    /// One line.
    pub(super) fn comment(&mut self, record: &Record<'_>) -> String {
        let (verdict, reason, meaning) = match record.outcome {
            Outcome::Forwarded(method) => {
                let headers = self.headers(record);
                let whom = headers.and_then(|headers| self.connection(&headers));
                let whom = whom.map(|whom| format!(": {whom}")).unwrap_or_default();
                return format!("forwarded {}{whom}", method.label());
            }
            Outcome::Left(method) => return format!("left, forwarded {}", method.label()),
            Outcome::Own => return "left, an answer of the director's own".to_owned(),
            Outcome::Dropped(reason) | Outcome::Answered(reason) | Outcome::Lost(reason) => {
                ("dropped", reason.label(), reason.meaning())
            }
            Outcome::Passed(reason) => ("passed", reason.label(), reason.meaning()),
        };
        let more = match record.outcome {
            Outcome::Answered(_) => " (its sender was told)",
            Outcome::Lost(_) => " (as it would have left)",
            _ => "",
        };
        let whom = self
            .headers(record)
            .and_then(|headers| self.connection(&headers).or_else(|| self.service(&headers)));
        let whom = whom.map(|whom| format!("; {whom}")).unwrap_or_default();
        format!("{verdict} {reason}{more}: {meaning}{whom}")
    }

    /// `server 10.0.0.11:8080 of 192.0.2.10:80/tcp`
    fn connection(&self, headers: &Headers) -> Option<String> {
        let from = (headers.source, headers.source_port);
        let to = (headers.destination, headers.destination_port);
        self.shared.connections.peek(headers.protocol, from, to, |_, connection| {
            let server = SocketAddr::from(connection.server_endpoint);
            format!("server {server} of {}", connection.service().key)
        })
    }

    fn service(&self, headers: &Headers) -> Option<String> {
        let services = self.services.load();
        services.of(headers).map(|service| format!("service {}", service.key))
    }

    fn headers(&mut self, record: &Record<'_>) -> Option<Headers> {
        let length = record.length as usize;
        if record.bytes.len() >= length || length > LONGEST {
            return forwarding::parse(record.bytes).ok();
        }
        self.whole.clear();
        self.whole.extend_from_slice(record.bytes);
        self.whole.resize(length, 0);
        forwarding::parse(&self.whole).ok()
    }
}
