//! A real server's side: what it must have for the part that the director's file gives it.
//!
//! Every area is a function from [`Facts`] to findings. None of them asks anybody anything. What a
//! server needs is the agent's knowledge: its role in the file, and the settings that it makes.

mod agent;
mod listeners;
mod quiet;
mod routes;
#[cfg(test)]
mod tests;
mod tunnel;
mod vips;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use director::config::Config;
use director::network::{Interface, Network};
use realserver_agent::role::Role;
use realserver_agent::settings::{Entry, Forwarding};

pub(super) use self::agent::watch;
use super::director::clock;
use super::facts::agent::Agent;
use super::facts::file::Guarded;
use super::facts::listeners::Listener;
use super::facts::machine::Machine;
use super::facts::settings::Settings;
use super::finding::{Check, Finding, quoted};

/// All that is known.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The machine.
    pub machine: Machine,
    /// The director's file.
    pub file: PathBuf,
    /// What a director makes of it, or what is wrong with it.
    pub config: Result<Config, String>,
    /// What this host is there for.
    pub role: Role,
    /// Its entries in the file.
    pub entries: Vec<Entry>,
    /// The kernel's tables.
    pub network: Network,
    /// The kernel's types of interfaces (`ARPHRD_...`), by name.
    pub types: BTreeMap<String, u32>,
    /// The kernel's settings.
    pub settings: Settings,
    /// The agent.
    pub agent: Agent,
    /// The port that it is asked at.
    pub agent_port: u16,
    /// The agent's file with the secret, when it has one.
    pub key: Option<Guarded>,
    /// The director's, when the file names another one.
    pub directors_key: Option<PathBuf>,
    /// Whether it answers as a director asks, by address.
    pub probes: Vec<(IpAddr, Result<(), String>)>,
    /// Where somebody listens.
    pub listeners: Vec<Listener>,
    /// The directors' addresses, as far as they are known.
    pub directors: Vec<IpAddr>,
}

impl Facts {
    /// Everything that is to be said about them.
    pub fn examine(&self) -> Vec<Finding> {
        let mut findings = vec![clock(self.machine.clock)];
        if let Err(error) = &self.config {
            let (shown, first) = (self.file.display(), error.lines().next().unwrap_or_default());
            let found = format!("a director would refuse {shown}: {first}");
            let check = format!("director check {}", quoted(&self.file));
            findings.push(Finding::fault(Check::File, found).remedy(check));
        }
        let areas: [fn(&Facts) -> Vec<Finding>; 6] = [
            vips::examine,
            quiet::examine,
            tunnel::examine,
            routes::examine,
            agent::examine,
            listeners::examine,
        ];
        findings.extend(areas.iter().flat_map(|area| area(self)));
        findings
    }

    /// Whether any of its services reaches it so.
    fn has(&self, is_it: impl Fn(Forwarding) -> bool) -> bool {
        self.entries.iter().any(|entry| is_it(entry.forwarding))
    }

    /// The interfaces with the addresses that the file names, each once.
    fn cards(&self) -> Vec<&Interface> {
        let mut cards: Vec<&Interface> = Vec::new();
        for address in self.network.addresses() {
            if self.role.addresses.contains(&address.address)
                && let Some(card) = self.network.interface(address.interface)
                && card.name != "lo"
                && cards.iter().all(|known| known.index != card.index)
            {
                cards.push(card);
            }
        }
        cards
    }
}

/// Whether packets come as they were sent, with the VIP as destination.
fn needs_vip(forwarding: Forwarding) -> bool {
    forwarding != Forwarding::Nat
}
