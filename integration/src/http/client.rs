//! The client: many requests, each on a connection of its own, and a tally of who answered.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::header::{CONNECTION, HOST};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use super::SERVER_HEADER;

/// What to fetch.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the requests go.
    pub target: SocketAddr,
    /// The address they come from; `None`: the route's.
    pub source: Option<IpAddr>,
    /// How many.
    pub count: u64,
    /// How many at the same time. At least 1.
    pub concurrency: usize,
    /// How long one may take, from connect to the last byte of the body.
    pub request_limit: Duration,
    /// How long all may take; what is not fetched by then is counted as an error.
    pub total_limit: Duration,
}

impl Plan {
    /// `count` requests, 8 at a time, 5 s for each and 60 s for all.
    pub fn new(target: SocketAddr, count: u64) -> Plan {
        Plan {
            target,
            source: None,
            count,
            concurrency: 8,
            request_limit: Duration::from_secs(5),
            total_limit: Duration::from_secs(60),
        }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests answered or failed.
    pub done: u64,
    /// Of them failed.
    pub failed: u64,
    /// Of how many.
    pub count: u64,
}

/// Who answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Complete answers by the name in `X-Server` ("" when there was none).
    pub by_server: BTreeMap<String, u64>,
    /// Failures by what went wrong.
    pub errors: BTreeMap<String, u64>,
    /// Bytes of all bodies.
    pub bytes: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Tally {
    /// Complete answers.
    pub fn answered(&self) -> u64 {
        self.by_server.values().sum()
    }

    /// Failed requests.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// Fetches as planned and calls `progress` after each request. Needs a tokio runtime on the
/// calling thread (with a [`LocalSet`](tokio::task::LocalSet) or not).
pub async fn fetch_many(plan: &Plan, mut progress: impl FnMut(Progress)) -> Tally {
    let start = Instant::now();
    let deadline = start + plan.total_limit;
    let mut tally = Tally::default();
    let mut running = JoinSet::new();
    let mut started = 0;
    let mut done = 0;
    while done < plan.count {
        while started < plan.count && running.len() < plan.concurrency.max(1) {
            running.spawn(fetch_in_time(plan.target, plan.source, plan.request_limit));
            started += 1;
        }
        match tokio::time::timeout_at(deadline.into(), running.join_next()).await {
            Ok(Some(Ok(Ok((server, bytes))))) => {
                *tally.by_server.entry(server).or_default() += 1;
                tally.bytes += bytes;
                done += 1;
            }
            Ok(Some(Ok(Err(error)))) => {
                *tally.errors.entry(describe(&error)).or_default() += 1;
                done += 1;
            }
            Ok(Some(Err(panic))) => std::panic::resume_unwind(panic.into_panic()),
            Ok(None) => unreachable!("a request is running while not all are done"),
            Err(_) => {
                let rest = plan.count - done;
                *tally.errors.entry("no time left".to_owned()).or_default() += rest;
                done = plan.count;
            }
        }
        progress(Progress { done, failed: tally.failed(), count: plan.count });
    }
    tally.seconds = start.elapsed().as_secs_f64();
    tally
}

/// The innermost cause: "Connection refused", not where we noticed it, so that a tally has few
/// lines.
fn describe(error: &anyhow::Error) -> String {
    error.root_cause().to_string()
}

async fn fetch_in_time(
    target: SocketAddr,
    source: Option<IpAddr>,
    limit: Duration,
) -> Result<(String, u64)> {
    match tokio::time::timeout(limit, fetch(target, source)).await {
        Ok(result) => result,
        Err(_) => anyhow::bail!("no answer within {limit:?}"),
    }
}

/// One request on a connection of its own: the name and the length of the body.
async fn fetch(target: SocketAddr, source: Option<IpAddr>) -> Result<(String, u64)> {
    let socket = if target.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }
        .context("open a socket")?;
    if let Some(source) = source {
        socket.bind(SocketAddr::new(source, 0)).with_context(|| format!("bind to {source}"))?;
    }
    let stream = socket.connect(target).await.context("connect")?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get("/")
        .header(HOST, target.to_string())
        // The server closes first, so the client's ports are free again at once.
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())?;
    let exchange = async move {
        let response = sender.send_request(request).await?;
        let name = response
            .headers()
            .get(SERVER_HEADER)
            .map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned())
            .unwrap_or_default();
        anyhow::ensure!(response.status().is_success(), "status {}", response.status());
        // hyper errs when the body is shorter than announced.
        let body = response.into_body().collect().await?.to_bytes();
        Ok((name, body.len() as u64))
    };
    let (answer, _) = tokio::join!(exchange, connection);
    answer
}
