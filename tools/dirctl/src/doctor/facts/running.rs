//! The running director: what it says of itself, twice with a second between, and of its services.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::time::Duration;

use director::control::ClientError;
use director::control::api::{ServiceView, Status};
use director::control::client::Client;
use director::control::events::{EventKind, Told};
use director::control::filter::ConnectionFilter;
use director::control::health::ServerHealth;
use director::control::plan::{Plan, PlanRequest};

use super::file::ConfigFile;

/// Between the two looks: what grows in it is told.
const BETWEEN: Duration = Duration::from_secs(1);

/// Connections that are looked at, at most: a flood of half-open ones is not to be listed whole.
const MOST_CONNECTIONS: u32 = 100_000;

/// A server that answers does so within this, seconds.
const PATIENCE: u32 = 2;

/// How long a half-open connection lives without a packet, seconds (SYN_RECV).
const HALF_OPEN: u32 = 60;

/// Servers whose other connections are looked at, at most.
const MOST_SERVERS: usize = 64;

/// See the module.
#[derive(Clone, Debug)]
pub struct Running {
    /// At first.
    pub before: Status,
    /// A second later.
    pub now: Status,
    /// Its services, at the end.
    pub services: Vec<ServiceView>,
    /// How their servers are.
    pub servers: Vec<ServerHealth>,
    /// What would change if it followed the file; `None` where there is none, or it cannot be asked.
    pub plan: Option<Plan>,
    /// Half-open connections of servers that have no other ones: nobody has ever heard of these
    /// servers again.
    pub half_open: BTreeMap<SocketAddr, u32>,
    /// Connections that have been half open for `PATIENCE` and more, of servers that have answered
    /// nobody since.
    pub stuck: BTreeMap<SocketAddr, u32>,
    /// Why an agent's answers did not count, the last time, by host.
    pub refusals: BTreeMap<IpAddr, String>,
}

/// Asks the director, `before` having been its status when we came.
///
/// # Errors
/// When it does not answer.
pub fn ask(
    client: &mut Client,
    before: Status,
    file: Option<&ConfigFile>,
) -> Result<Running, ClientError> {
    let is_dispatcher = before.mode != "nlb";
    std::thread::sleep(BETWEEN);
    let now = client.status()?;
    let mut running = Running {
        before,
        now,
        services: client.services()?,
        servers: client.servers()?,
        plan: None,
        half_open: BTreeMap::new(),
        stuck: BTreeMap::new(),
        refusals: BTreeMap::new(),
    };
    if is_dispatcher {
        if let Some((file, text)) = file.and_then(|file| Some((file, file.text.clone()?))) {
            let request = PlanRequest { file: file.path.display().to_string(), text };
            running.plan = client.plan(&request).ok();
        }
        (running.half_open, running.stuck) = half_open(client)?;
        client.events(0, false, |told| {
            if let Told::Event(event) = told
                && let (EventKind::AgentRefused, Some(server)) = (event.kind, event.server)
            {
                running.refusals.insert(server.ip(), event.reason);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(running)
}

/// Connections by server.
type Counts = BTreeMap<SocketAddr, u32>;

/// Half-open connections of servers that have no other ones, and those of all that are stuck.
fn half_open(client: &mut Client) -> Result<(Counts, Counts), ClientError> {
    let filter = ConnectionFilter { state: Some("SYN_RECV".to_owned()), ..Default::default() };
    let (mut half_open, mut stuck) = (Counts::new(), Counts::new());
    // The age of each server's youngest that is stuck.
    let mut youngest = Counts::new();
    let mut seen = 0;
    client.connections_where(&filter, |connection| {
        if connection.expires + PATIENCE <= HALF_OPEN {
            *stuck.entry(connection.server).or_default() += 1;
            let age = HALF_OPEN - connection.expires;
            let known = youngest.entry(connection.server).or_insert(age);
            *known = age.min(*known);
        }
        *half_open.entry(connection.server).or_default() += 1;
        seen += 1;
        if seen < MOST_CONNECTIONS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    // Of those servers, which have answered somebody? A client that goes on has heard of its server.
    let timeouts = client.timeouts()?;
    let mut mute: Vec<SocketAddr> = half_open.keys().take(MOST_SERVERS).copied().collect();
    let mut answered = Vec::new();
    for server in &mute {
        let mut filter = ConnectionFilter::default();
        if filter.set("server", &server.to_string()).is_err() {
            continue;
        }
        let since = youngest.get(server).copied();
        client.connections_where(&filter, |connection| {
            let lives = match connection.state.as_str() {
                "SYN_RECV" | "CLOSE" | "NONE" => return ControlFlow::Continue(()),
                "ESTABLISHED" => timeouts.tcp,
                "FIN_WAIT" => timeouts.tcp_fin,
                "CLOSE_WAIT" => 60,
                "LAST_ACK" => 30,
                _ => 120,
            };
            if !answered.contains(server) {
                answered.push(*server);
            }
            // A service may have a timeout of its own: then it counts as just used.
            let idle = lives.saturating_sub(connection.expires);
            match since {
                Some(age) if idle >= age => ControlFlow::Continue(()),
                _ => {
                    stuck.remove(server);
                    ControlFlow::Break(())
                }
            }
        })?;
    }
    mute.retain(|server| !answered.contains(server));
    half_open.retain(|server, _| mute.contains(server));
    Ok((half_open, stuck))
}
