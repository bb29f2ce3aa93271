//! What the director says at one moment: everything that a frame shows comes from here. It knows the
//! control API, and nothing of what is shown or how.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use director::control::ClientError;
use director::control::api::{ServiceKey, ServiceView, Status};
use director::control::client::Client;
use director::control::health::{HealthState, ServerHealth};
use director::control::nlb::views::{DisplayView, MapView};
use director::control::nlb::{NlbCommand, NlbReply, NlbRequest, NlbView, WhatIf};

/// One answer to every question.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was asked, since whatever moment is the same for all of them.
    pub at: Duration,
    /// The director.
    pub status: Status,
    /// Its services; none in mode nlb.
    pub services: Vec<ServiceView>,
    /// How servers are, where somebody watches them.
    pub health: HashMap<(ServiceKey, SocketAddr), HealthState>,
    /// The node of a cluster; mode nlb only.
    pub node: Option<Box<Node>>,
}

/// A node of a cluster, as it sees itself and the others.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its id.
    pub host: u8,
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: String,
    /// What it runs with and sees.
    pub display: DisplayView,
    /// Who has how many buckets.
    pub map: MapView,
}

impl Snapshot {
    /// Asks the director that listens on `socket`. Blocks for as long as it takes to answer.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn ask(socket: &Path, at: Duration) -> Result<Snapshot, ClientError> {
        let mut client = Client::connect(socket)?;
        let status = client.status()?;
        if status.mode == "nlb" {
            let node = Some(Box::new(ask_node(&mut client)?));
            return Ok(Snapshot { at, status, services: vec![], health: HashMap::new(), node });
        }
        let services = client.services()?;
        let watched = status.health.is_some();
        let health = if watched { states(client.servers()?) } else { HashMap::new() };
        Ok(Snapshot { at, status, services, health, node: None })
    }
}

fn states(servers: Vec<ServerHealth>) -> HashMap<(ServiceKey, SocketAddr), HealthState> {
    let own = |server: ServerHealth| ((server.service, server.address), server.state);
    servers.into_iter().map(own).collect()
}

fn ask_node(client: &mut Client) -> Result<Node, ClientError> {
    let mut node = Node::default();
    let mut ask = |command| client.nlb(&NlbRequest { command, hosts: None });
    let NlbReply { answers, .. } = ask(NlbCommand::Display)?;
    if let Some(answer) = answers.into_iter().next() {
        (node.host, node.name, node.state) = (answer.host, answer.name, answer.state);
        if let Some(NlbView::Display(display)) = answer.view.map(|view| *view) {
            node.display = *display;
        }
    }
    let NlbReply { answers, .. } = ask(NlbCommand::Map(WhatIf::default()))?;
    if let Some(NlbView::Map(map)) =
        answers.into_iter().next().and_then(|answer| answer.view).map(|view| *view)
    {
        node.map = map;
    }
    Ok(node)
}
