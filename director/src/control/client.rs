//! The other end of the control socket, for tools: plain blocking calls. It knows HTTP and the
//! words of the API; what to print and which exit code to give is the tool's affair.

mod files;

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::api::{
    Applied, Batch, BatchOutcome, CommandRefusal, ConnectionView, OnRefusal, Refusal, ServiceView,
    Status, Timeouts, VerdictCount,
};
use super::events::Told;
use super::explain::{Explanation, Question};
use super::filter::ConnectionFilter;
use super::health::ServerHealth;
use super::nlb::{NlbReply, NlbRequest};
use super::operations::Command;
use super::{ClientError, VERSION_HEADER};

/// How long the director may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a capture goes on that was interrupted: what has been captured by then is on its way, and
/// so is how much was lost.
const UNDER_WAY: Duration = Duration::from_millis(300);

/// The way to one director. Every call opens a connection of its own, because the director closes
/// those that idle and a tool may take its time between two calls.
///
/// ```no_run
/// use director::control::{DEFAULT_SOCKET, client::Client};
///
/// let mut client = Client::connect(DEFAULT_SOCKET)?;
/// println!("{} services", client.services()?.len());
/// # Ok::<(), director::control::ClientError>(())
/// ```
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    runtime: tokio::runtime::Runtime,
    /// The director's version, when it has answered.
    director: Option<String>,
}

impl Client {
    /// The director that listens on `path`, having made sure that there is one.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`], [`ClientError::PermissionDenied`] or [`ClientError::System`].
    pub fn connect(path: impl AsRef<Path>) -> Result<Client, ClientError> {
        let path = path.as_ref().to_path_buf();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| ClientError::System { path: path.clone(), error })?;
        runtime.block_on(open(&path))?;
        Ok(Client { path, runtime, director: None })
    }

    /// What the director is and does.
    ///
    /// # Errors
    /// See [`ClientError`]; so for all of these.
    pub fn status(&mut self) -> Result<Status, ClientError> {
        self.get("/v1/status")
    }

    /// All services with their servers, in kernel order.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn services(&mut self) -> Result<Vec<ServiceView>, ClientError> {
        self.get("/v1/services")
    }

    /// Calls `each` for every service, in kernel order, while the list is being read; stops when it
    /// breaks. Neither side ever holds the whole list.
    ///
    /// # Errors
    /// See [`ClientError`]; also when the listing ends before its end.
    pub fn each_service(
        &mut self,
        mut each: impl FnMut(ServiceView) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        let mut ended = false;
        self.lines("/v1/services", |client, line| {
            Ok(match line {
                b"[" => ControlFlow::Continue(()),
                b"]" => {
                    ended = true;
                    ControlFlow::Continue(())
                }
                line => {
                    let service = each(client.parse(line.strip_suffix(b",").unwrap_or(line))?);
                    ended |= service.is_break();
                    service
                }
            })
        })?;
        if ended { Ok(()) } else { Err(self.odd(None, "half a list of services".to_owned())) }
    }

    /// How the servers are.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn servers(&mut self) -> Result<Vec<ServerHealth>, ClientError> {
        self.get("/v1/servers")
    }

    /// Calls `each` for every event with a number above `after`, and with `follow` for those to come,
    /// until it breaks.
    ///
    /// # Errors
    /// See [`ClientError`]; also when the director ends while it is followed.
    pub fn events(
        &mut self,
        after: u64,
        follow: bool,
        mut each: impl FnMut(Told) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        let path = format!("/v1/events?after={after}&follow={follow}");
        self.lines(&path, |client, line| Ok(each(client.parse(line)?)))
    }

    /// The timeouts.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn timeouts(&mut self) -> Result<Timeouts, ClientError> {
        self.get("/v1/timeouts")
    }

    /// The settings, by name.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn settings(&mut self) -> Result<BTreeMap<String, u32>, ClientError> {
        self.get("/v1/settings")
    }

    /// The metrics page.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn metrics(&mut self) -> Result<String, ClientError> {
        let body = self.exchange(Method::GET, "/metrics", Bytes::new())?;
        let text = String::from_utf8(body.to_vec());
        text.map_err(|error| self.odd(None, error.to_string()))
    }

    /// Carries out `commands` in order and says how many that were. Stops at the first that is
    /// refused; those before it stay done.
    ///
    /// # Errors
    /// [`ClientError::Refused`] names the command by its index.
    pub fn apply(&mut self, commands: &[Command]) -> Result<usize, ClientError> {
        self.agree()?;
        let body =
            serde_json::to_vec(commands).map_err(|error| self.odd(None, error.to_string()))?;
        let answer = self.exchange(Method::POST, "/v1/commands", Bytes::from(body))?;
        let Applied { applied } = self.parse(&answer)?;
        Ok(applied)
    }

    /// Carries out `commands` as one change, and says which were carried out and which refused.
    ///
    /// # Errors
    /// See [`ClientError`]; a refused command is not one.
    pub fn batch(
        &mut self,
        commands: &[Command],
        on_refusal: OnRefusal,
    ) -> Result<BatchOutcome, ClientError> {
        self.agree()?;
        let batch = Batch { on_refusal, commands: commands.to_vec() };
        let body = serde_json::to_vec(&batch).map_err(|error| self.odd(None, error.to_string()))?;
        let answer = self.exchange(Method::POST, "/v1/batch", Bytes::from(body))?;
        self.parse(&answer)
    }

    /// What would become of a packet, and why. Changes nothing.
    ///
    /// # Errors
    /// See [`ClientError`]; also when the packet cannot be read.
    pub fn explain(&mut self, question: &Question) -> Result<Explanation, ClientError> {
        self.post("/v1/explain", question)
    }

    fn post<Q: Serialize, A: DeserializeOwned>(
        &mut self,
        path: &str,
        request: &Q,
    ) -> Result<A, ClientError> {
        let body =
            serde_json::to_vec(request).map_err(|error| self.odd(None, error.to_string()))?;
        let answer = self.exchange(Method::POST, path, Bytes::from(body))?;
        self.parse(&answer)
    }

    /// Asks nodes of mode nlb, or commands them.
    ///
    /// # Errors
    /// See [`ClientError`]; what a host itself answers is not one.
    pub fn nlb(&mut self, request: &NlbRequest) -> Result<NlbReply, ClientError> {
        self.post("/v1/nlb", request)
    }

    /// Calls `each` for every connection while the table is being read, in no order; stops when it
    /// breaks. Neither side ever holds the whole table.
    ///
    /// # Errors
    /// See [`ClientError`]; also when the listing ends before its end.
    pub fn connections(
        &mut self,
        each: impl FnMut(ConnectionView) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        self.connections_where(&ConnectionFilter::default(), each)
    }

    /// The same for the connections that `filter` admits; the director looks through them.
    ///
    /// # Errors
    /// See [`ClientError`]; also when the listing ends before its end.
    pub fn connections_where(
        &mut self,
        filter: &ConnectionFilter,
        mut each: impl FnMut(ConnectionView) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        let path = match filter.to_query() {
            query if query.is_empty() => "/v1/connections".to_owned(),
            query => format!("/v1/connections?{query}"),
        };
        self.lines(&path, |client, line| Ok(each(client.parse(line)?)))
    }

    /// Every reason to forward, pass or drop a packet, with its count.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn drops(&mut self) -> Result<Vec<VerdictCount>, ClientError> {
        self.get("/v1/drops")
    }

    /// Captures packets (`query` is what stands behind the question mark, see `docs/control-api.md`): calls
    /// `each` for every piece of a pcapng file as it comes in, until it breaks, the capture is over, or
    /// somebody interrupts (SIGINT, SIGTERM): then what is under way still comes.
    ///
    /// # Errors
    /// See [`ClientError`]; also when the director ends meanwhile.
    pub fn capture(
        &mut self,
        query: &str,
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), ClientError> {
        let (runtime, path) = (&self.runtime, &self.path);
        let system = |error| ClientError::System { path: path.clone(), error };
        let signals = runtime.block_on(async {
            Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
        });
        let (mut interrupt, mut terminate) = signals.map_err(system)?;
        let response = self.send(Method::GET, &format!("/v1/capture?{query}"), Bytes::new())?;
        let mut body = self.checked(response)?.into_body();
        let mut ends: Option<Instant> = None;
        loop {
            let (runtime, path) = (&self.runtime, &self.path);
            let frame = runtime.block_on(async {
                loop {
                    let end = ends.unwrap_or_else(Instant::now);
                    tokio::select! {
                        frame = patient(path, body.frame()) => return frame,
                        () = sleep_until(end), if ends.is_some() => return Ok(None),
                        _ = interrupt.recv(), if ends.is_none() => {}
                        _ = terminate.recv(), if ends.is_none() => {}
                    }
                    ends = Some(Instant::now() + UNDER_WAY);
                }
            })?;
            let Some(frame) = frame else { return Ok(()) };
            let frame = frame.map_err(|error| broken(path, &error))?;
            if let Ok(bytes) = frame.into_data()
                && each(&bytes).is_break()
            {
                return Ok(());
            }
        }
    }

    /// Calls `each` for every line of an answer, as it comes in.
    fn lines(
        &mut self,
        path: &str,
        mut each: impl FnMut(&Client, &[u8]) -> Result<ControlFlow<()>, ClientError>,
    ) -> Result<(), ClientError> {
        let response = self.send(Method::GET, path, Bytes::new())?;
        let mut body = self.checked(response)?.into_body();
        let mut pending: Vec<u8> = Vec::new();
        loop {
            let (runtime, path) = (&self.runtime, &self.path);
            let frame = runtime.block_on(patient(path, body.frame()))?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| broken(path, &error))?;
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            pending.extend_from_slice(&bytes);
            // A frame need not end where a line does.
            let whole = pending.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            for line in pending[..whole].split(|&byte| byte == b'\n') {
                if !line.is_empty() && each(self, line)?.is_break() {
                    return Ok(());
                }
            }
            pending.drain(..whole);
        }
        if pending.is_empty() { Ok(()) } else { Err(self.odd(None, "half a line".to_owned())) }
    }

    fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, ClientError> {
        let answer = self.exchange(Method::GET, path, Bytes::new())?;
        self.parse(&answer)
    }

    fn parse<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T, ClientError> {
        let odd = |error: serde_json::Error| self.odd(self.director.clone(), error.to_string());
        serde_json::from_slice(text).map_err(odd)
    }

    /// Makes sure that a change means the same to the director as to us: another release may not know
    /// a field of it, and would make half of the change without a word.
    fn agree(&mut self) -> Result<(), ClientError> {
        if self.director.is_none() {
            self.timeouts()?;
        }
        if self.director.as_deref().is_some_and(is_of_this_release) {
            return Ok(());
        }
        let detail = "it may take a change for another one, so nothing has been changed".to_owned();
        Err(self.odd(self.director.clone(), detail))
    }

    /// The body of a good answer.
    fn exchange(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes, ClientError> {
        let response = self.send(method, path, body)?;
        let response = self.checked(response)?;
        self.collect(response.into_body())
    }

    fn collect(&self, body: Incoming) -> Result<Bytes, ClientError> {
        let body = self.runtime.block_on(patient(&self.path, body.collect()))?;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| broken(&self.path, &error))
    }

    fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "director")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| self.odd(None, error.to_string()))?;
        let socket = &self.path;
        self.runtime.block_on(async {
            let mut sender = open(socket).await?;
            let response = patient(socket, sender.send_request(request)).await?;
            response.map_err(|error| broken(socket, &error))
        })
    }

    /// Lets a good answer through and turns any other into an error.
    fn checked(&mut self, response: Response<Incoming>) -> Result<Response<Incoming>, ClientError> {
        let director = response.headers().get(VERSION_HEADER);
        let director =
            director.map(|version| String::from_utf8_lossy(version.as_bytes()).into_owned());
        self.director.clone_from(&director);
        let status = response.status();
        if director.is_some() && status.is_success() {
            return Ok(response);
        }
        let text = self.collect(response.into_body())?;
        if director.is_none() {
            return Err(self.odd(None, format!("HTTP status {status} without {VERSION_HEADER}")));
        }
        if let Ok(CommandRefusal { refusal, index }) = serde_json::from_slice(&text) {
            return Err(ClientError::Refused { refusal, index: Some(index) });
        }
        match serde_json::from_slice::<Refusal>(&text) {
            // A path of ours that it does not have: an older or newer director.
            Ok(refusal) if status.as_u16() == 404 => Err(self.odd(director, refusal.message)),
            Ok(refusal) => Err(ClientError::Refused { refusal, index: None }),
            Err(error) => Err(self.odd(director, format!("HTTP status {status}: {error}"))),
        }
    }

    fn odd(&self, director: Option<String>, detail: String) -> ClientError {
        ClientError::Protocol { path: self.path.clone(), director, detail }
    }
}

/// Releases are the same while the first two numbers of their versions are.
fn is_of_this_release(version: &str) -> bool {
    let release =
        |version: &str| -> Vec<String> { version.split('.').take(2).map(str::to_owned).collect() };
    release(version) == release(super::VERSION)
}

async fn open(path: &Path) -> Result<SendRequest<Full<Bytes>>, ClientError> {
    let stream = patient(path, UnixStream::connect(path)).await?;
    let stream = stream.map_err(|error| {
        let path = path.to_path_buf();
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => ClientError::NotRunning { path },
            ErrorKind::PermissionDenied => ClientError::PermissionDenied { path },
            _ => ClientError::System { path, error },
        }
    })?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| broken(path, &error))?;
    // Its errors reach the caller through the request that they spoil.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

async fn patient<F: Future>(path: &Path, work: F) -> Result<F::Output, ClientError> {
    let outcome = tokio::time::timeout(PATIENCE, work).await;
    outcome.map_err(|_| ClientError::NoAnswer {
        path: path.to_path_buf(),
        seconds: PATIENCE.as_secs(),
    })
}

fn broken(path: &Path, error: &hyper::Error) -> ClientError {
    let path = path.to_path_buf();
    if error.is_parse() {
        let detail = format!("no HTTP: {error}");
        return ClientError::Protocol { path, director: None, detail };
    }
    ClientError::System { path, error: io::Error::other(error.to_string()) }
}
