//! An HTTP request is answered as expected.

use std::convert::Infallible;
use std::error::Error;
use std::future::pending;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;

use super::stream::Stream;
use super::{Deadline, Outcome};
use crate::health::plan::Http;

/// How much of a body is looked at, and how long the headers of an answer may be.
const MOST: usize = 64 << 10;
/// Headers of an answer at most.
const HEADERS: usize = 100;
/// What the request says that it comes from.
const AGENT: &str = "switchyard";

/// Asks over a connection that has just been opened to `address`.
pub(super) async fn run(
    stream: impl Stream + 'static,
    address: SocketAddr,
    usual_port: u16,
    http: &Http,
    deadline: Deadline,
) -> Result<Outcome, Outcome> {
    let request = request(http, address, usual_port)?;
    deadline.limit("answer", talk(stream, request, http)).await?
}

/// The name that is asked for: `host`, or else the address, with its port where it is not the usual.
pub(super) fn host(http: &Http, address: SocketAddr, usual_port: u16) -> String {
    match (&http.host, address) {
        (Some(host), _) => host.clone(),
        (None, SocketAddr::V6(address)) if address.port() == usual_port => {
            format!("[{}]", address.ip())
        }
        (None, address) if address.port() == usual_port => address.ip().to_string(),
        (None, address) => address.to_string(),
    }
}

fn request(
    http: &Http,
    address: SocketAddr,
    usual_port: u16,
) -> Result<Request<Empty<Bytes>>, Outcome> {
    let unfit = |what: &str| Outcome::Unable(format!("{what} does not fit into an HTTP request"));
    if !http.path.starts_with('/') {
        return Err(unfit(&format!("path {:?}, which begins without /,", http.path)));
    }
    let host = host(http, address, usual_port);
    Request::get(http.path.as_str())
        .header(header::HOST, &host)
        .header(header::USER_AGENT, AGENT)
        .header(header::CONNECTION, "close")
        .body(Empty::new())
        .map_err(|_| unfit(&format!("path {:?} or host {host:?}", http.path)))
}

async fn talk(
    stream: impl Stream + 'static,
    request: Request<Empty<Bytes>>,
    http: &Http,
) -> Result<Outcome, Outcome> {
    let mut client = http1::Builder::new();
    client.max_buf_size(MOST).max_headers(HEADERS);
    let (mut sender, connection) =
        client.handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    // What it ends with is told to the request as well.
    let connection = async {
        let _ = connection.await;
        pending::<Infallible>().await
    };
    let asked = async {
        let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
        judge(response, http).await
    };
    tokio::select! {
        biased;
        outcome = asked => outcome,
        never = connection => match never {},
    }
}

async fn judge(mut response: Response<Incoming>, http: &Http) -> Result<Outcome, Outcome> {
    let status = response.status().as_u16();
    let is_among = |ranges: &[RangeInclusive<u16>]| ranges.iter().any(|it| it.contains(&status));
    if is_among(&http.soft) {
        return Ok(Outcome::Soft(format!("status {status}")));
    }
    if !is_among(&http.expect) {
        return Ok(Outcome::Failed(format!("status {status}")));
    }
    match &http.contains {
        Some(wanted) if !contains(response.body_mut(), wanted.as_bytes()).await? => {
            Ok(Outcome::Failed(format!("the body does not contain {wanted:?}")))
        }
        _ => Ok(Outcome::PASSED),
    }
}

/// Whether `wanted` is in the first [`MOST`] bytes of the body. No more is read than that takes.
async fn contains(
    body: &mut (impl Body<Data = Bytes, Error = hyper::Error> + Unpin),
    wanted: &[u8],
) -> Result<bool, Outcome> {
    let mut begin = Vec::new();
    if wanted.is_empty() {
        return Ok(true);
    }
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| failed(&error))?;
        let Some(data) = frame.data_ref() else { continue };
        let data = &data[..data.len().min(MOST - begin.len())];
        // What has been looked through is not looked through again, whatever pieces come.
        let from = begin.len().saturating_sub(wanted.len() - 1);
        begin.extend_from_slice(data);
        if begin[from..].windows(wanted.len()).any(|part| part == wanted) {
            return Ok(true);
        }
        if begin.len() == MOST {
            return Ok(false);
        }
    }
    Ok(false)
}

/// What the server has done wrong, with the cause behind it.
fn failed(error: &hyper::Error) -> Outcome {
    Outcome::Failed(match error.source() {
        Some(cause) => format!("answer: {error}: {cause}"),
        None => format!("answer: {error}"),
    })
}

#[cfg(test)]
mod tests;
