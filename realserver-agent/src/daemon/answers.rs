//! The sockets that are answered at, and the task that does.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use nix::libc;
use tokio::net::TcpListener;

use super::Task;
use super::plan::Plan;
use crate::answer::listening::{self, Pair};
use crate::answer::tcp::{self, Limits};
use crate::answer::{Answering, udp};
use crate::settings::AgentCheck;

/// Where the agent answers.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// What has been asked for; the sockets are opened again only when that changes.
    wanted: Vec<SocketAddr>,
    text_port: Option<u16>,
    pairs: Vec<Pair>,
    text: Vec<TcpListener>,
}

impl Sockets {
    /// Opens what the plan asks for. That IPv6 is off is no error as long as nobody has asked for it by
    /// name; without a file, where probes were never answered before, nothing is.
    ///
    /// # Errors
    /// When an address is not this host's, or its port is taken.
    pub(super) fn open(plan: &Plan) -> Result<Sockets> {
        let mut sockets =
            Sockets { wanted: wanted(plan), text_port: text_port(plan), ..Self::default() };
        for address in &sockets.wanted {
            match Pair::open(*address) {
                Ok(pair) => sockets.pairs.push(pair),
                // Of the default addresses one is IPv6's, and that may be off.
                Err(error) if address.is_ipv6() && !plan.listen_is_said && is_off(&error) => {
                    tracing::info!("probes over IPv6 are not answered: {error}");
                }
                Err(error) => {
                    let error = anyhow::Error::from(error).context(format!(
                        "answer probes at {address}, UDP and TCP: it must be an address of this \
                         host with a free port (ss -lntup); another one is set by listen of \
                         [agent] or --listen, and --no-answer does without"
                    ));
                    if plan.listen_is_said || plan.config.is_some() {
                        return Err(error);
                    }
                    tracing::warn!("going on without: {error:#}");
                }
            }
        }
        if let Some(port) = sockets.text_port {
            for pair in &sockets.pairs {
                let address = SocketAddr::new(pair.address()?.ip(), port);
                sockets.text.push(listening::tcp(address).with_context(|| {
                    format!("answer HAProxy's agent-check at {address} (agent_check of [agent])")
                })?);
            }
        }
        Ok(sockets)
    }

    /// Whether the plan asks for other ones.
    pub(super) fn differ(&self, plan: &Plan) -> bool {
        self.wanted != wanted(plan) || self.text_port != text_port(plan)
    }

    /// Where probes are answered.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.pairs.iter().filter_map(|pair| pair.address().ok()).collect()
    }

    /// Answers until a socket breaks; without any, for ever nothing.
    pub(super) fn task(self: Rc<Self>, answering: Rc<Answering>) -> Task {
        Box::pin(async move {
            let limits = Limits::default();
            let answering = &*answering;
            let datagrams = self.pairs.iter().map(|pair| udp::serve(&pair.udp, answering));
            let probes =
                self.pairs.iter().map(|pair| tcp::serve(&pair.tcp, answering, limits, false));
            let text = self.text.iter().map(|socket| tcp::serve(socket, answering, limits, true));
            if self.pairs.is_empty() {
                return std::future::pending().await;
            }
            let connections = try_join_all(probes.chain(text));
            tokio::try_join!(try_join_all(datagrams), connections).context("answer probes")?;
            Ok(())
        })
    }
}

/// Whether it says that this family is not there.
fn is_off(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
}

fn wanted(plan: &Plan) -> Vec<SocketAddr> {
    if plan.answers { plan.agent.listen.clone() } else { Vec::new() }
}

fn text_port(plan: &Plan) -> Option<u16> {
    match plan.agent.agent_check {
        AgentCheck::Port(port) => Some(port),
        AgentCheck::Off | AgentCheck::Shared => None,
    }
}
