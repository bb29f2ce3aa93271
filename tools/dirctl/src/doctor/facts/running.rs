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

/// Between the two looks: what grows in it is told.
const BETWEEN: Duration = Duration::from_secs(1);

/// Connections that are looked at, at most: a flood of half-open ones is not to be listed whole.
const MOST_CONNECTIONS: u32 = 100_000;

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
    /// Half-open connections of servers that have no other ones: nobody has ever heard of these
    /// servers again.
    pub half_open: BTreeMap<SocketAddr, u32>,
    /// Why an agent's answers did not count, the last time, by host.
    pub refusals: BTreeMap<IpAddr, String>,
}

/// Asks the director, `before` having been its status when we came.
///
/// # Errors
/// When it does not answer.
pub fn ask(client: &mut Client, before: Status) -> Result<Running, ClientError> {
    let is_dispatcher = before.mode != "nlb";
    std::thread::sleep(BETWEEN);
    let now = client.status()?;
    let mut running = Running {
        before,
        now,
        services: client.services()?,
        servers: client.servers()?,
        half_open: BTreeMap::new(),
        refusals: BTreeMap::new(),
    };
    if is_dispatcher {
        running.half_open = half_open(client)?;
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

fn half_open(client: &mut Client) -> Result<BTreeMap<SocketAddr, u32>, ClientError> {
    let filter = ConnectionFilter { state: Some("SYN_RECV".to_owned()), ..Default::default() };
    let mut half_open = BTreeMap::new();
    let mut seen = 0;
    client.connections_where(&filter, |connection| {
        *half_open.entry(connection.server).or_default() += 1;
        seen += 1;
        if seen < MOST_CONNECTIONS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    // Of those servers, which have answered somebody? A client that goes on has heard of its server.
    let mut mute: Vec<SocketAddr> = half_open.keys().take(MOST_SERVERS).copied().collect();
    let mut answered = Vec::new();
    for server in &mute {
        let mut filter = ConnectionFilter::default();
        if filter.set("server", &server.to_string()).is_err() {
            continue;
        }
        client.connections_where(&filter, |connection| {
            if !matches!(connection.state.as_str(), "SYN_RECV" | "CLOSE" | "NONE") {
                answered.push(*server);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
    }
    mute.retain(|server| !answered.contains(server));
    half_open.retain(|server, _| mute.contains(server));
    Ok(half_open)
}
