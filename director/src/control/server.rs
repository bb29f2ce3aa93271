//! Who is served, how many at a time and how long: the loop that accepts clients of the control
//! socket. It knows HTTP/1.1 and limits; what a request means is in `routes`.

use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::api::RefusalKind;
use super::guard::Guarded;
use super::operations::Operations;
use super::replies;
use super::routes::{self, Shared};

/// What clients may take. The defaults are generous for tools and tight for mishaps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections served at a time.
    pub connections: usize,
    /// Further connections that are told so, at a time; beyond these they are closed unheard.
    pub refusals: usize,
    /// Those among the connections that may follow events at a time.
    pub followers: usize,
    /// A follower gets an empty line when nothing has happened for so long.
    pub keep_alive: Duration,
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of a request's head, at least 8192.
    pub head: usize,
    /// Header lines of a request.
    pub headers: usize,
    /// How long a connection may wait for the head of its next request.
    pub head_time: Duration,
    /// How long the body of a request may take.
    pub body_time: Duration,
    /// How long a client may leave an answer unread.
    pub write_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            refusals: 64,
            followers: 64,
            keep_alive: Duration::from_secs(15),
            body: 64 * 1024 * 1024,
            head: 32 * 1024,
            headers: 64,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            write_time: Duration::from_secs(30),
        }
    }
}

/// What all requests share, to whatever socket they come.
pub(crate) fn shared(limits: Limits, operations: Arc<dyn Operations>) -> Arc<Shared> {
    let followers = Arc::new(Semaphore::new(limits.followers));
    Arc::new(Shared {
        requests: std::array::from_fn(|_| AtomicU64::new(0)),
        operations,
        limits,
        followers,
        turn: Mutex::new(()),
    })
}

/// Serves the control API on `listener` until the returned future is dropped, which also ends the
/// connections that are open then. Never returns by itself.
pub async fn serve(listener: UnixListener, operations: Arc<dyn Operations>) {
    serve_within(Limits::default(), listener, operations).await;
}

/// The same, and metrics on the address that has been opened for them, if one has.
pub(crate) async fn serve_with_metrics(
    listener: UnixListener,
    metrics: Option<TcpListener>,
    operations: Arc<dyn Operations>,
) {
    let shared = shared(Limits::default(), operations);
    match metrics {
        None => serve_shared(listener, shared).await,
        Some(metrics) => {
            let exporter = super::exporter::serve(metrics, Arc::clone(&shared));
            tokio::join!(serve_shared(listener, shared), exporter);
        }
    }
}

/// [`serve`] with other limits.
pub async fn serve_within(limits: Limits, listener: UnixListener, operations: Arc<dyn Operations>) {
    serve_shared(listener, shared(limits, operations)).await;
}

async fn serve_shared(listener: UnixListener, shared: Arc<Shared>) {
    let limits = shared.limits;
    let places = Arc::new(Semaphore::new(limits.connections));
    let refusals = Arc::new(Semaphore::new(limits.refusals));
    let mut clients = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: others have to finish first.
                    tracing::warn!(%error, "cannot accept a client of the control socket");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            Some(_) = clients.join_next() => continue,
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let client = converse(stream, Arc::clone(&shared));
            clients.spawn(async move {
                client.await;
                drop(place);
            });
        } else if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
            clients.spawn(async move {
                turn_away(stream, limits).await;
                drop(place);
            });
        }
    }
}

pub(super) fn protocol(limits: &Limits) -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head)
        .max_headers(limits.headers);
    protocol
}

fn converse(stream: UnixStream, shared: Arc<Shared>) -> impl Future<Output = ()> {
    let io = TokioIo::new(Guarded::new(stream, shared.limits.write_time));
    let protocol = protocol(&shared.limits);
    async move {
        let service = service_fn(move |request| routes::answer(request, Arc::clone(&shared)));
        if let Err(error) = protocol.serve_connection(io, service).await {
            // A client that left, stalled or spoke no HTTP: its own trouble, not the director's.
            tracing::debug!(%error, "a control connection ended early");
        }
    }
}

/// Answers one request with "too many clients" and closes. The request is read first: closing with
/// unread bytes would reset the connection and lose the answer.
async fn turn_away(stream: UnixStream, limits: Limits) {
    let patience = Duration::from_secs(2).min(limits.head_time);
    let io = TokioIo::new(Guarded::new(stream, patience));
    let service = service_fn(move |_request| async move {
        let message = format!(
            "{} clients are connected to the control socket already: close some, or try again",
            limits.connections
        );
        let status = replies::status_of(RefusalKind::Busy);
        Ok::<_, std::convert::Infallible>(replies::refuse(status, RefusalKind::Busy, message))
    });
    let mut protocol = protocol(&limits);
    let answer = protocol.keep_alive(false).serve_connection(io, service);
    let _ = tokio::time::timeout(patience, answer).await;
}
