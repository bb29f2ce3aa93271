//! Services as a JSON array, made while it is read: a few services become text at a time, and the
//! next only when the client has taken those. A director may have ten thousands of them.
//!
//! Each service is a line of its own, so that a client can read the array line by line as well.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::Frame;
use tokio::task::JoinHandle;

use super::api::ServiceView;

/// About how much text one frame carries.
const FRAME: usize = 64 * 1024;

type Services = Box<dyn Iterator<Item = ServiceView> + Send>;

/// The services, as lines.
pub(super) struct ServiceStream(State);

enum State {
    /// These are to be written next.
    Between(Box<Writer>),
    /// They are being written, off the runtime's thread because each takes its service's lock.
    Writing(JoinHandle<(Vec<u8>, Option<Box<Writer>>)>),
    /// No more.
    Done,
}

/// Services that have not been written yet, one of them at hand: what comes behind a service
/// depends on whether there is another.
struct Writer {
    services: Services,
    next: Option<ServiceView>,
    has_begun: bool,
}

impl ServiceStream {
    pub(super) fn new(services: Services) -> ServiceStream {
        ServiceStream(State::Between(Box::new(Writer { services, next: None, has_begun: false })))
    }

    /// The next frame; `None` at the end.
    pub(super) fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            match std::mem::replace(&mut self.0, State::Done) {
                State::Between(writer) => {
                    let writing = tokio::task::spawn_blocking(move || writer.write());
                    self.0 = State::Writing(writing);
                }
                State::Writing(mut writing) => {
                    let polled = Pin::new(&mut writing).poll(context);
                    if polled.is_pending() {
                        self.0 = State::Writing(writing);
                    }
                    return Poll::Ready(Some(match ready!(polled) {
                        Ok((text, writer)) => {
                            self.0 = writer.map_or(State::Done, State::Between);
                            Ok(Frame::data(Bytes::from(text)))
                        }
                        Err(error) => {
                            tracing::error!(%error, "listing the services failed");
                            // Breaks the answer off, so that nobody takes it for all.
                            Err(io::Error::other(error))
                        }
                    }));
                }
                State::Done => return Poll::Ready(None),
            }
        }
    }
}

impl Writer {
    /// The text of some services, and those that remain.
    fn write(mut self: Box<Self>) -> (Vec<u8>, Option<Box<Writer>>) {
        let mut text = Vec::with_capacity(FRAME + FRAME / 4);
        if !self.has_begun {
            self.has_begun = true;
            text.extend_from_slice(b"[\n");
            self.next = self.services.next();
        }
        while let Some(service) = self.next.take() {
            // Writing plain structs into memory cannot fail.
            _ = serde_json::to_writer(&mut text, &service);
            self.next = self.services.next();
            text.extend_from_slice(if self.next.is_some() { b",\n" } else { b"\n" });
            if text.len() >= FRAME && self.next.is_some() {
                return (text, Some(self));
            }
        }
        text.extend_from_slice(b"]\n");
        (text, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::api::{Protocol, ServiceKey, ServiceSpec, Stats};

    fn service(number: u16) -> ServiceView {
        let address = std::net::SocketAddr::new("192.0.2.10".parse().unwrap(), number);
        let spec = ServiceSpec {
            key: ServiceKey::Address { protocol: Protocol::Tcp, address },
            scheduler: "wlc".to_owned(),
            flags: 0,
            persistence: None,
            one_packet: false,
            extras: None,
        };
        ServiceView {
            spec,
            declared: false,
            stats: Stats::default(),
            servers: Vec::new(),
            fallback: None,
        }
    }

    fn pieces(count: u16) -> Vec<Vec<u8>> {
        let services = Box::new((0..count).map(service));
        let mut writer = Some(Box::new(Writer { services, next: None, has_begun: false }));
        let mut pieces = Vec::new();
        while let Some(current) = writer {
            let (text, rest) = current.write();
            pieces.push(text);
            writer = rest;
        }
        pieces
    }

    #[test]
    fn the_lines_are_one_array_however_many_services_there_are() {
        for count in [0, 1, 2, 5000] {
            let text = pieces(count).concat();
            let read: Vec<ServiceView> = serde_json::from_slice(&text).unwrap();
            assert_eq!(read, (0..count).map(service).collect::<Vec<_>>());
            assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), usize::from(count) + 2);
        }
    }

    #[test]
    fn no_piece_is_much_longer_than_a_frame() {
        let pieces = pieces(5000);
        assert!(pieces.len() > 10 && pieces.iter().all(|piece| piece.len() < FRAME + 4096));
    }
}
