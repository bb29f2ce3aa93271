//! Metrics on an address of their own, for those who cannot ask a unix socket: `GET /metrics` and
//! `GET /healthz`, and nothing else. It knows HTTP/1.1 and how many it serves; the page is that of
//! `metrics`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::api::RefusalKind;
use super::guard::Guarded;
use super::replies::{self, Reply};
use super::routes::Shared;
use super::server::protocol;

/// Clients at a time that may take their time to ask; others wait for their turn to be accepted.
const CLIENTS: usize = 256;
/// Answers at a time: each is a page of up to megabytes until it has been read.
const ANSWERS: usize = 16;
/// How long a client may take to ask.
const QUESTION: Duration = Duration::from_secs(2);
/// How long it may leave an answer unread.
const PATIENCE: Duration = Duration::from_secs(10);

/// Listens on the address of `metrics` in the file.
///
/// # Errors
/// When that cannot be: the error names the address.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let message = format!(
            "cannot serve metrics on {address}: {error}: give `metrics` another address, or leave it out"
        );
        io::Error::new(error.kind(), message)
    })
}

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CLIENTS));
    let answers = Arc::new(Semaphore::new(ANSWERS));
    let mut clients = JoinSet::new();
    loop {
        // Never closed, so there will be a place.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => break stream,
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a client of the metrics");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = clients.join_next() => {}
            }
        };
        let client = converse(stream, Arc::clone(&shared), Arc::clone(&answers));
        clients.spawn(async move {
            client.await;
            drop(place);
        });
    }
}

/// One request to a connection, so that nobody keeps a place.
async fn converse(stream: TcpStream, shared: Arc<Shared>, answers: Arc<Semaphore>) {
    let mut protocol = protocol(&shared.limits);
    protocol.keep_alive(false).header_read_timeout(QUESTION);
    // Taken when the question has come, kept until the answer has gone.
    let place = Arc::new(OnceLock::new());
    let service = service_fn(|request| {
        let (shared, answers, place) = (shared.clone(), answers.clone(), place.clone());
        async move {
            // Never closed, and there is one question to a connection.
            let _ = place.set(answers.acquire_owned().await);
            answer(request, shared).await
        }
    });
    let io = TokioIo::new(Guarded::new(stream, PATIENCE));
    if let Err(error) = protocol.serve_connection(io, service).await {
        tracing::debug!(%error, "a client of the metrics left early");
    }
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Reply, Infallible> {
    let path = request.uri().path();
    Ok(match (request.method(), path) {
        (&Method::GET, "/metrics") => shared.metrics().await,
        (&Method::GET, "/healthz") => replies::text("text/plain", "ok\n".to_owned()),
        (_, "/metrics" | "/healthz") => replies::wrong_method("this", "GET"),
        _ => {
            let message = "there is only /metrics and /healthz here".to_owned();
            replies::refuse(StatusCode::NOT_FOUND, RefusalKind::BadRequest, message)
        }
    })
}
