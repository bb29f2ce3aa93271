//! How an answer is put into HTTP: status codes, headers, and the one shape that all refusals
//! have. It knows nothing of which path asked.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::api::{Refusal, RefusalKind};
use super::capture::CaptureStream;
use super::follow::EventStream;
use super::listing::ServiceStream;
use super::stream::ConnectionStream;
use super::{VERSION, VERSION_HEADER};

/// The body of an answer: in one piece, or services, the connection table, events
/// or packets piece by piece.
pub(super) enum ReplyBody {
    Whole(Full<Bytes>),
    Services(ServiceStream),
    Connections(ConnectionStream),
    Events(EventStream),
    Capture(Box<CaptureStream>),
}

pub(super) type Reply = Response<ReplyBody>;

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            ReplyBody::Whole(body) => {
                let frame = Pin::new(body).poll_frame(context);
                frame.map_err(|never| match never {})
            }
            ReplyBody::Services(body) => Pin::new(body).poll_frame(context),
            ReplyBody::Connections(body) => Pin::new(body).poll_frame(context),
            ReplyBody::Events(body) => Pin::new(body).poll_frame(context),
            ReplyBody::Capture(body) => Pin::new(&mut **body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Whole(body) => body.is_end_stream(),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Whole(body) => body.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

/// An answer with a body of type `content_type`.
pub(super) fn reply(status: StatusCode, content_type: &'static str, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    reply
}

/// `value` as JSON, with a newline for those who read it in a terminal.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> Reply {
    match serde_json::to_vec(value) {
        Ok(mut text) => {
            text.push(b'\n');
            reply(status, "application/json", ReplyBody::Whole(Full::from(text)))
        }
        // Our types have string keys and finite numbers only, so this is out of reach; a plain
        // answer is still better than a panic.
        Err(error) => {
            let text = format!("the answer cannot be written as JSON: {error}\n");
            let body = ReplyBody::Whole(Full::from(text));
            reply(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", body)
        }
    }
}

/// Plain text of some type.
pub(super) fn text(content_type: &'static str, text: String) -> Reply {
    reply(StatusCode::OK, content_type, ReplyBody::Whole(Full::from(text)))
}

/// A refusal without a place.
pub(super) fn refuse(status: StatusCode, error: RefusalKind, message: String) -> Reply {
    json(status, &Refusal { error, message })
}

/// The path exists, the method does not.
pub(super) fn wrong_method(path: &str, allowed: &'static str) -> Reply {
    let message = format!("{path} answers to {allowed} only");
    let mut reply = refuse(StatusCode::METHOD_NOT_ALLOWED, RefusalKind::BadRequest, message);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

/// The HTTP status of each kind of refusal.
pub(super) fn status_of(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::ServiceExists | RefusalKind::ServerExists => StatusCode::CONFLICT,
        RefusalKind::NoSuchService | RefusalKind::NoSuchServer | RefusalKind::NoSuchScheduler => {
            StatusCode::NOT_FOUND
        }
        RefusalKind::NeedsRestart | RefusalKind::NothingWaits => StatusCode::CONFLICT,
        RefusalKind::Invalid
        | RefusalKind::Range
        | RefusalKind::BadFile
        | RefusalKind::BadRequest => StatusCode::BAD_REQUEST,
        RefusalKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        RefusalKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        RefusalKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
