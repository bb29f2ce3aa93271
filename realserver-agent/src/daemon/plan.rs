//! What the command line and the file come to: what the agent is to be.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Options;
use crate::answer::Policy;
use crate::key_file;
use crate::load::Meter;
use crate::role::{self, Role};
use crate::settings::{self, Agent, AgentCheck, CONTROL};

/// What the agent is to be.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) role: Role,
    pub(super) agent: Agent,
    pub(super) policy: Policy,
    /// Whether probes are answered.
    pub(super) answers: bool,
    /// Whether where they are answered has been said, and not only assumed.
    pub(super) listen_is_said: bool,
    /// The control socket, and whether it has been said.
    pub(super) control: (PathBuf, bool),
    /// The configuration file.
    pub(super) config: Option<PathBuf>,
    /// Addresses that a tunnel may lead to.
    pub(super) endpoints: Vec<IpAddr>,
}

impl Plan {
    /// Reads the file, if there is one, and finds this host in it.
    ///
    /// # Errors
    /// When the file is wrong, does not name this host, or its key cannot be read.
    pub(super) fn make(options: &Options) -> Result<Plan> {
        let (mut role, mut agent) = match &options.config {
            Some(path) => {
                let settings = settings::load(path)?;
                let own = role::own_addresses()?;
                let role = match Role::find(&settings, &own) {
                    Err(_) if !options.vip.is_empty() => Role::default(),
                    role => role.with_context(|| path.display().to_string())?,
                };
                (role, settings.agent)
            }
            // As it was before there were files: a signal ends it at once.
            None => (Role::default(), Agent { drain_deadline: Duration::ZERO, ..Agent::default() }),
        };
        if role.unnamed > 0 && options.vip.is_empty() {
            tracing::warn!(
                "{} of this host's services are named by a mark, and the file does not tell their \
                 VIPs: give them with --vip",
                role.unnamed
            );
        }
        role.extend(&options.vip, &options.tunnel);
        agent.from.extend(&options.from);
        if !options.listen.is_empty() {
            agent.listen.clone_from(&options.listen);
        }
        if let Some(seconds) = options.drain_deadline {
            agent.drain_deadline = Duration::from_secs(seconds);
        }
        let key = agent.key_file.as_deref().map(key_file::read).transpose()?;
        let text = agent.agent_check != AgentCheck::Off;
        let policy = Policy { from: agent.from.clone(), key, text };
        let said = options.control.clone().or(agent.control.clone());
        let control = (said.clone().unwrap_or_else(|| CONTROL.into()), said.is_some());
        let mut endpoints = match role.addresses.is_empty() {
            true => role::own_addresses()?,
            false => role.addresses.clone(),
        };
        // When the file is read again they are this host's addresses as well.
        endpoints.retain(|address| !role.vips.contains(address));
        let listen_is_said = agent.listen != Agent::default().listen;
        let (answers, config) = (!options.no_answer, options.config.clone());
        Ok(Plan { role, agent, policy, answers, listen_is_said, control, config, endpoints })
    }

    /// What is measured.
    pub(super) fn meter(&self) -> Meter {
        Meter {
            weights: self.agent.load,
            full: self.agent.full,
            served: self.role.served.clone(),
            command: self.agent.command.clone(),
        }
    }
}
