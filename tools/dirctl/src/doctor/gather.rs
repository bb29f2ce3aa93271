//! Puts the facts of one side together.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ::director::config::{self, Config};
use ::director::control::client::Client;
use ::director::network::{Network, Snapshot};
use realserver_agent::key_file;
use realserver_agent::role::{Role, own_addresses};
use realserver_agent::settings::{self, CONTROL, Mode};

use super::facts::agent::{self, Agent};
use super::facts::file::{ConfigFile, Guarded};
use super::facts::settings::Settings;
use super::facts::{cards, listeners, machine, running, segment};
use super::{Trouble, director, server};

/// The director's side. Takes about two seconds.
pub(super) fn director(
    socket: &Path,
    config: Option<&Path>,
    client: Option<Client>,
) -> Result<director::Facts, Trouble> {
    let mut client = client;
    let status = match &mut client {
        Some(client) => Some(client.status().map_err(Trouble::Director)?),
        None => None,
    };
    let machine = machine::look(status.as_ref().map(|status| status.pid));
    let path = config.map(Path::to_owned);
    let path = path.or_else(|| status.as_ref()?.config.as_ref().map(PathBuf::from));
    let file = path.map(|path| ConfigFile::read(&path));
    let running = match (client, status) {
        (Some(mut client), Some(status)) => {
            Some(running::ask(&mut client, status, file.as_ref()).map_err(Trouble::Director)?)
        }
        _ => None,
    };
    let parsed = file.as_ref().and_then(|file| file.config.as_ref().ok());
    let plan = director::Plan::of(running.as_ref(), parsed);
    let keys = parsed.map(key_files).unwrap_or_default();
    let Snapshot { network, foreign_rules } = snapshot()?;
    let names = plan.interfaces.iter().map(String::as_str);
    let vips = if plan.is_nlb { Vec::new() } else { plan.vips() };
    Ok(director::Facts {
        machine,
        file,
        control: Guarded::look(socket),
        keys: keys.iter().map(|path| Guarded::key(path)).collect(),
        cards: plan.interfaces.iter().map(|name| cards::look(name)).collect(),
        settings: Settings::read(names),
        claims: segment::ask(&network, &plan.interfaces, &vips),
        network,
        foreign_rules,
        astray_later: machine::astray(),
        running,
        plan,
    })
}

fn key_files(config: &Config) -> Vec<PathBuf> {
    let agents = config.services.iter().filter_map(|service| service.health.agent.as_ref());
    let mut files: Vec<PathBuf> = agents.filter_map(|agent| agent.key_file.clone()).collect();
    files.sort();
    files.dedup();
    files
}

/// A real server's side.
pub(super) fn server(file: &Path, directors: &[IpAddr]) -> Result<server::Facts, Trouble> {
    let (settings, role) = role(file)?;
    if settings.mode == Mode::Nlb {
        return Err(Trouble::File(format!(
            "{}: mode = \"nlb\", in which every server runs a director of its own\nleave --side server out",
            file.display()
        )));
    }
    let agent_settings = &settings.agent;
    let socket = agent_settings.control.clone().unwrap_or_else(|| PathBuf::from(CONTROL));
    let agent = agent::look(&socket);
    let network = snapshot()?.network;
    let config = config::load(file).map_err(|error| error.to_string());
    let names: Vec<String> = network.interfaces().map(|it| it.name.clone()).collect();
    let mut facts = server::Facts {
        machine: machine::look(None),
        file: file.to_owned(),
        config,
        entries: settings
            .entries
            .iter()
            .filter(|entry| role.addresses.contains(&entry.address))
            .cloned()
            .collect(),
        types: types(&network),
        settings: Settings::read(names.iter().map(String::as_str)),
        agent_port: agent_settings.listen.first().map_or(0, std::net::SocketAddr::port),
        key: agent_settings.key_file.as_deref().map(Guarded::key),
        directors_key: None,
        probes: Vec::new(),
        listeners: listeners::look(),
        directors: directors.to_vec(),
        role,
        network,
        agent,
    };
    facts.directors_key = server::watch(&facts).and_then(|watch| watch.key_file.clone());
    if let Agent::Running(status) = &facts.agent {
        if facts.directors.is_empty() {
            let askers = status.answers.askers.iter().filter(|asker| asker.over != "text");
            let own = &facts.role.addresses;
            facts.directors =
                askers.map(|asker| asker.address).filter(|it| !own.contains(it)).collect();
        }
        // Whom an agent does not know it does not answer: not this host either.
        if agent_settings.from.is_empty() {
            let key = agent_settings.key_file.as_deref().and_then(|path| key_file::read(path).ok());
            let ask = |address: &IpAddr| {
                (*address, agent::probe(*address, facts.agent_port, key.as_ref()))
            };
            facts.probes = facts.role.addresses.iter().map(ask).collect();
        }
    }
    Ok(facts)
}

/// What the file says to the agent, and what this host is there for.
pub(super) fn role(file: &Path) -> Result<(settings::Settings, Role), Trouble> {
    let settings = settings::load(file).map_err(|error| Trouble::File(error.to_string()))?;
    let own = own_addresses().map_err(|error| Trouble::Kernel(format!("{error:#}")))?;
    let role = Role::find(&settings, &own)
        .map_err(|error| Trouble::File(format!("{}: {error:#}", file.display())))?;
    Ok((settings, role))
}

fn snapshot() -> Result<Snapshot, Trouble> {
    Snapshot::take().map_err(|error| Trouble::Kernel(error.to_string()))
}

/// The kernel's types of interfaces, from sysfs where that shows our own namespace.
fn types(network: &Network) -> BTreeMap<String, u32> {
    let number = |name: &str, file: &str| {
        let text = std::fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok()?;
        text.trim().parse::<u32>().ok()
    };
    let of = |interface: &::director::network::Interface| {
        let name = &interface.name;
        let is_ours = number(name, "ifindex") == Some(interface.index);
        Some((name.clone(), number(name, "type").filter(|_| is_ours)?))
    };
    network.interfaces().filter_map(of).collect()
}
