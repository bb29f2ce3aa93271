//! Which path does what. It knows the words of the API and the trait behind it; how answers are
//! put into HTTP is in `replies`, who may connect is in `server`.
//!
//! Everything asked of [`Operations`] runs on a blocking thread: the runtime that also drives
//! netlink, health checks and timers is never held up by a large table or a large request.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::{Method, Request, StatusCode};
use tokio::sync::Semaphore;

use super::api::{Applied, Batch, BatchOutcome, OnRefusal, Refusal, RefusalKind};
use super::capture::{CaptureQuery, CaptureStream};
use super::explain::Question;
use super::filter::ConnectionFilter;
use super::follow::{EventQuery, EventStream};
use super::listing::ServiceStream;
use super::metrics;
use super::nlb::NlbRequest;
use super::operations::{Command, Operations};
use super::plan::{ApplyRequest, PlanRequest, SettleRequest};
use super::replies::{self, Reply, ReplyBody};
use super::server::Limits;
use super::stream::ConnectionStream;

/// Every path with its method and what it is for. The answer to an unknown path is made of it.
pub(super) const PATHS: &[(&str, &str, &str)] = &[
    ("GET", "/v1/status", "what the director is and does"),
    ("GET", "/v1/services", "services with their servers and counters"),
    ("GET", "/v1/servers", "how the servers are: state, weights, checks"),
    ("GET", "/v1/events", "what has happened to servers, one JSON object per line; follow=true"),
    ("POST", "/v1/commands", "changes: a JSON array of commands, carried out in order"),
    ("POST", "/v1/batch", "changes of which some may be refused, or all or none are to be made"),
    ("GET", "/v1/timeouts", "the tcp, tcp_fin and udp timeouts"),
    ("GET", "/v1/settings", "the settings, by the kernel's names"),
    ("GET", "/v1/marks", "the rules that set firewall marks"),
    ("GET", "/v1/connections", "the connection table or a part of it, one JSON object per line"),
    ("GET", "/v1/drops", "every reason to forward, pass or drop a packet, with its count"),
    ("GET", "/v1/capture", "packets as they come, as a pcapng file, with what became of each"),
    ("POST", "/v1/explain", "what would become of a packet, and why; changes nothing"),
    ("POST", "/v1/nlb", "a question or command to nodes of mode nlb; GET is the question query"),
    ("POST", "/v1/plan", "what would change if the text of another file was followed"),
    ("POST", "/v1/apply", "follows the text of another file, all of it or none"),
    ("POST", "/v1/settle", "confirms an applied file that waits for it, or reverts it"),
    ("GET", "/metrics", "counters for Prometheus"),
];

/// How often each of them has been asked for, in their order.
pub(super) type Requests = [AtomicU64; PATHS.len()];

/// What all requests share.
pub(crate) struct Shared {
    pub(super) requests: Requests,
    pub(super) operations: Arc<dyn Operations>,
    pub(super) limits: Limits,
    /// Places of those that follow events.
    pub(super) followers: Arc<Semaphore>,
    /// Held while a request's commands are carried out, so that two requests do not mix.
    pub(super) turn: Mutex<()>,
}

/// Answers one request, whatever it is.
pub(super) async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Reply, Infallible> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let Some(place) = PATHS.iter().position(|(_, known, _)| *known == path) else {
        return Ok(unknown_path(&path));
    };
    let (method, known, _) = PATHS[place];
    shared.requests[place].fetch_add(1, Relaxed);
    let query_of_a_node = known == "/v1/nlb" && request.method() == Method::GET;
    if request.method().as_str() != method && !query_of_a_node {
        return Ok(replies::wrong_method(known, method));
    }
    debug_assert!(matches!(*request.method(), Method::GET | Method::POST));
    Ok(match known {
        "/v1/status" => {
            let status = ask(&shared, |operations| operations.status()).await;
            status.map_or_else(failed, |status| replies::json(StatusCode::OK, &status))
        }
        "/v1/services" => {
            let services = ask(&shared, |operations| operations.each_service()).await;
            services.map_or_else(failed, |services| {
                let body = ReplyBody::Services(ServiceStream::new(services));
                replies::reply(StatusCode::OK, "application/json", body)
            })
        }
        "/v1/timeouts" => {
            let timeouts = ask(&shared, |operations| operations.timeouts()).await;
            timeouts.map_or_else(failed, |timeouts| replies::json(StatusCode::OK, &timeouts))
        }
        "/v1/settings" => {
            let settings = ask(&shared, |operations| operations.settings()).await;
            settings.map_or_else(failed, |settings| replies::json(StatusCode::OK, &settings))
        }
        "/v1/marks" => {
            let marks = ask(&shared, |operations| operations.marks()).await;
            marks.map_or_else(failed, |marks| replies::json(StatusCode::OK, &marks))
        }
        "/v1/servers" => {
            let servers = ask(&shared, |operations| operations.servers()).await;
            servers.map_or_else(failed, |servers| replies::json(StatusCode::OK, &servers))
        }
        "/v1/events" => events(&shared, &query),
        "/v1/drops" => {
            let verdicts = ask(&shared, |operations| operations.verdicts()).await;
            verdicts.map_or_else(failed, |verdicts| replies::json(StatusCode::OK, &verdicts))
        }
        "/v1/capture" => capture(&shared, &query).await,
        "/v1/connections" => {
            let filter = match ConnectionFilter::from_query(&query) {
                Ok(filter) => filter,
                Err(bad) => {
                    let kind = RefusalKind::BadRequest;
                    return Ok(replies::refuse(StatusCode::BAD_REQUEST, kind, bad.to_string()));
                }
            };
            let body = ConnectionStream::new(Arc::clone(&shared.operations), filter);
            let body = ReplyBody::Connections(body);
            replies::reply(StatusCode::OK, "application/x-ndjson", body)
        }
        "/v1/commands" => changes(request.into_body(), shared, carry_out).await,
        "/v1/nlb" if query_of_a_node => {
            let work = tokio::task::spawn_blocking(move || nlb(&shared, NlbRequest::default()));
            work.await.unwrap_or_else(failed)
        }
        "/v1/nlb" => changes(request.into_body(), shared, ask_nodes).await,
        "/v1/explain" => changes(request.into_body(), shared, explain).await,
        "/v1/batch" => changes(request.into_body(), shared, carry_out_batch).await,
        "/v1/plan" => changes(request.into_body(), shared, plan).await,
        "/v1/apply" => changes(request.into_body(), shared, follow).await,
        "/v1/settle" => changes(request.into_body(), shared, settle).await,
        _ => shared.metrics().await,
    })
}

fn events(shared: &Shared, query: &str) -> Reply {
    let query = match EventQuery::from_query(query) {
        Ok(query) => query,
        Err(bad) => {
            return replies::refuse(StatusCode::BAD_REQUEST, RefusalKind::BadRequest, bad);
        }
    };
    let refuse = |kind, message| replies::refuse(replies::status_of(kind), kind, message);
    let Some(journal) = shared.operations.journal() else {
        let message = "no servers are watched here, so there are no events".to_owned();
        return refuse(RefusalKind::Unsupported, message);
    };
    let mut place = None;
    if query.follow {
        place = Arc::clone(&shared.followers).try_acquire_owned().ok();
        if place.is_none() {
            let most = shared.limits.followers;
            let message = format!("{most} clients follow events already: end some, or try again");
            return refuse(RefusalKind::Busy, message);
        }
    }
    let body = EventStream::new(journal, query.after, place, shared.limits.keep_alive);
    replies::reply(StatusCode::OK, "application/x-ndjson", ReplyBody::Events(body))
}

async fn capture(shared: &Arc<Shared>, query: &str) -> Reply {
    let query = match CaptureQuery::from_query(query) {
        Ok(query) => query,
        Err(bad) => {
            return replies::refuse(StatusCode::BAD_REQUEST, RefusalKind::BadRequest, bad);
        }
    };
    let wanted = query.wanted.clone();
    match ask(shared, move |operations| operations.capture(&wanted)).await {
        Err(error) => failed(error),
        Ok(Err(refusal)) => replies::json(replies::status_of(refusal.error), &refusal),
        Ok(Ok(feed)) => {
            let body = CaptureStream::new(feed, &query, shared.limits.keep_alive);
            let body = ReplyBody::Capture(Box::new(body));
            replies::reply(StatusCode::OK, "application/x-pcapng", body)
        }
    }
}

/// Asks the director something off the runtime's thread. The error is a panic over there.
async fn ask<T: Send + 'static>(
    shared: &Arc<Shared>,
    question: impl FnOnce(&dyn Operations) -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    let operations = Arc::clone(&shared.operations);
    tokio::task::spawn_blocking(move || question(&*operations)).await
}

fn failed(error: tokio::task::JoinError) -> Reply {
    tracing::error!(%error, "a control request failed inside the director");
    let message = "the director failed while it answered; its log says more".to_owned();
    let status = replies::status_of(RefusalKind::Internal);
    replies::refuse(status, RefusalKind::Internal, message)
}

fn unknown_path(path: &str) -> Reply {
    let mut message = format!("no such path: {path}. There are");
    for (place, (method, known, purpose)) in PATHS.iter().enumerate() {
        let comma = if place == 0 { ' ' } else { ';' };
        let blank = if place == 0 { "" } else { " " };
        message.push_str(&format!("{comma}{blank}{method} {known} ({purpose})"));
    }
    replies::refuse(StatusCode::NOT_FOUND, RefusalKind::BadRequest, message)
}

/// Receives a request for changes and has it carried out.
async fn changes(
    body: Incoming,
    shared: Arc<Shared>,
    carry_out: fn(&Shared, &[u8]) -> Reply,
) -> Reply {
    let body = match receive(body, &shared.limits).await {
        Ok(body) => body,
        Err(reply) => return *reply,
    };
    // A client that goes away does not stop what it has asked for half way: the blocking thread
    // runs to its end whether or not anybody waits for it.
    let work = tokio::task::spawn_blocking(move || carry_out(&shared, &body));
    work.await.unwrap_or_else(failed)
}

impl Shared {
    /// The metrics page.
    pub(super) async fn metrics(self: &Arc<Shared>) -> Reply {
        let requests = self.counts();
        let text = ask(self, move |operations| metrics::text(operations, &requests)).await;
        text.map_or_else(failed, |text| replies::text(metrics::CONTENT_TYPE, text))
    }

    /// Requests so far, by path.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = self.requests.iter().map(|count| count.load(Relaxed));
        PATHS.iter().map(|(_, path, _)| *path).zip(counts).collect()
    }

    /// Carries out one request's commands, and nobody else's in between.
    fn batch(&self, commands: Vec<Command>, on_refusal: OnRefusal) -> BatchOutcome {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.operations.batch(commands, on_refusal)
    }
}

fn carry_out(shared: &Shared, body: &[u8]) -> Reply {
    let commands = match serde_json::from_slice::<Vec<Command>>(body) {
        Ok(commands) => commands,
        Err(error) => return bad_json("a JSON array of commands", &error),
    };
    let mut outcome = shared.batch(commands, OnRefusal::Stop);
    match outcome.refused.pop() {
        None => replies::json(StatusCode::OK, &Applied { applied: outcome.applied }),
        Some(refused) => replies::json(replies::status_of(refused.refusal.error), &refused),
    }
}

fn carry_out_batch(shared: &Shared, body: &[u8]) -> Reply {
    match serde_json::from_slice::<Batch>(body) {
        Ok(Batch { commands, on_refusal }) => {
            replies::json(StatusCode::OK, &shared.batch(commands, on_refusal))
        }
        Err(error) => bad_json("a batch of commands", &error),
    }
}

fn plan(shared: &Shared, body: &[u8]) -> Reply {
    let request = serde_json::from_slice::<PlanRequest>(body);
    answered(request.map(|request| shared.operations.plan(request)), "a file to plan")
}

fn follow(shared: &Shared, body: &[u8]) -> Reply {
    let _turn = shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
    let request = serde_json::from_slice::<ApplyRequest>(body);
    answered(request.map(|request| shared.operations.follow(request)), "a file to apply")
}

fn settle(shared: &Shared, body: &[u8]) -> Reply {
    let _turn = shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
    let request = serde_json::from_slice::<SettleRequest>(body);
    answered(request.map(|request| shared.operations.settle(request.verdict)), "a verdict")
}

fn answered<T: serde::Serialize>(
    outcome: serde_json::Result<Result<T, Refusal>>,
    wanted: &str,
) -> Reply {
    match outcome {
        Ok(Ok(answer)) => replies::json(StatusCode::OK, &answer),
        Ok(Err(refusal)) => replies::json(replies::status_of(refusal.error), &refusal),
        Err(error) => bad_json(wanted, &error),
    }
}

/// One at a time is not needed here: a node puts commands in order itself, and one that waits for
/// other hosts must not keep others waiting.
fn ask_nodes(shared: &Shared, body: &[u8]) -> Reply {
    match serde_json::from_slice::<NlbRequest>(body) {
        Ok(request) => nlb(shared, request),
        Err(error) => bad_json("a command to nodes", &error),
    }
}

fn explain(shared: &Shared, body: &[u8]) -> Reply {
    match serde_json::from_slice::<Question>(body) {
        Ok(question) => match shared.operations.explain(question) {
            Ok(explanation) => replies::json(StatusCode::OK, &explanation),
            Err(refusal) => replies::json(replies::status_of(refusal.error), &refusal),
        },
        Err(error) => bad_json("a packet to explain", &error),
    }
}

fn nlb(shared: &Shared, request: NlbRequest) -> Reply {
    match shared.operations.nlb(request) {
        Ok(reply) => replies::json(StatusCode::OK, &reply),
        Err(refusal) => replies::json(replies::status_of(refusal.error), &refusal),
    }
}

/// `serde_json` puts line and column at the end of what it says.
fn bad_json(wanted: &str, error: &serde_json::Error) -> Reply {
    let message = format!("the body is not {wanted}: {error}");
    let refusal = Refusal { error: RefusalKind::BadRequest, message };
    replies::json(StatusCode::BAD_REQUEST, &refusal)
}

async fn receive(body: Incoming, limits: &Limits) -> Result<Bytes, Box<Reply>> {
    let too_long = || {
        let message = format!("the body is longer than {} bytes", limits.body);
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Box::new(replies::refuse(status, RefusalKind::BadRequest, message))
    };
    if body.size_hint().lower() > limits.body as u64 {
        return Err(too_long());
    }
    let collected = Limited::new(body, limits.body).collect();
    match tokio::time::timeout(limits.body_time, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(error)) => {
            let message = format!("the body broke off: {error}");
            let status = StatusCode::BAD_REQUEST;
            Err(Box::new(replies::refuse(status, RefusalKind::BadRequest, message)))
        }
        Err(_) => {
            let seconds = limits.body_time.as_secs();
            let message = format!("the body did not arrive within {seconds} s");
            let status = StatusCode::REQUEST_TIMEOUT;
            Err(Box::new(replies::refuse(status, RefusalKind::BadRequest, message)))
        }
    }
}
