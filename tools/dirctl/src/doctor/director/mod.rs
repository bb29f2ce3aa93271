//! The director's side: what the machine, its network and the director itself say, area by area.
//!
//! Every area is a function from [`Facts`] to findings. None of them asks anybody anything.

mod cards;
mod config;
mod machine;
mod mtu;
mod reach;
mod segment;
mod servers;
#[cfg(test)]
mod tests;
mod traffic;
mod vips;

use std::net::{IpAddr, SocketAddr};

use director::config::Config;
use director::control::api::{
    Extras, Forwarding, ServerSpec, ServerView, ServiceKey, ServiceSpec, Tunnel,
};
use director::network::{Interface, Network, Route};

pub(super) use self::machine::clock;
pub(super) use self::servers::key_file;
use super::facts::cards::Card;
use super::facts::file::{ConfigFile, Guarded};
use super::facts::machine::Machine;
use super::facts::running::Running;
use super::facts::segment::Claim;
use super::facts::settings::Settings;
use super::finding::Finding;

/// All that is known.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The machine.
    pub machine: Machine,
    /// The same as [`Machine::astray`], a moment later.
    pub astray_later: Option<u64>,
    /// The configuration file, when there is one to go by.
    pub file: Option<ConfigFile>,
    /// The director, when one runs.
    pub running: Option<Running>,
    /// Its control socket.
    pub control: Guarded,
    /// The files with the secrets of agents.
    pub keys: Vec<Guarded>,
    /// The interfaces that packets are taken from.
    pub cards: Vec<Card>,
    /// The kernel's tables.
    pub network: Network,
    /// Policy routing rules that nobody follows.
    pub foreign_rules: usize,
    /// The kernel's settings.
    pub settings: Settings,
    /// Who else answers for the VIPs, or why nobody could be asked.
    pub claims: Result<Vec<Claim>, String>,
    /// What is to be served.
    pub plan: Plan,
}

/// What is to be served: as the running director says, else as the file does.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Whether it is mode nlb, in which nobody forwards.
    pub is_nlb: bool,
    /// Where packets come in and go out.
    pub interfaces: Vec<String>,
    /// Whether the director puts the VIPs on an interface; `None` = not known.
    pub own_addresses: Option<bool>,
    /// The services.
    pub services: Vec<Service>,
}

/// A service, as far as it matters here.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its name.
    pub key: ServiceKey,
    /// What the kernel does not do.
    pub extras: Extras,
    /// Its servers.
    pub servers: Vec<Server>,
}

/// A server, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Address and port.
    pub address: SocketAddr,
    /// How packets reach it.
    pub forwarding: Forwarding,
    /// Looked at only with a tunnel.
    pub tunnel: Tunnel,
    /// Packets from and to clients so far, when it is known.
    pub packets: Option<(u64, u64)>,
}

impl Plan {
    /// What runs, and of what that does not say, what the file says.
    pub fn of(running: Option<&Running>, config: Option<&Config>) -> Plan {
        let mut plan = config.map(Plan::of_file).unwrap_or_default();
        let Some(running) = running else { return plan };
        plan.is_nlb = running.now.mode == "nlb";
        let mut interfaces: Vec<String> =
            running.now.ports.iter().map(|port| port.interface.clone()).collect();
        interfaces.dedup();
        if !interfaces.is_empty() {
            plan.interfaces = interfaces;
        }
        if !plan.is_nlb {
            let service = |service: &director::control::api::ServiceView| {
                let servers = service.servers.iter().filter(|server| !server.local);
                Service::new(&service.spec, servers.map(Server::running).collect())
            };
            plan.services = running.services.iter().map(service).collect();
        }
        plan
    }

    fn of_file(config: &Config) -> Plan {
        let services = config.services.iter().map(|service| {
            Service::new(&service.service, service.servers.iter().map(Server::planned).collect())
        });
        Plan {
            is_nlb: config.mode == director::config::Mode::Nlb,
            interfaces: config.interfaces.clone(),
            own_addresses: Some(config.own_addresses),
            services: services.collect(),
        }
    }

    /// The VIPs, each once, in the order of the services.
    pub fn vips(&self) -> Vec<IpAddr> {
        let mut vips = Vec::new();
        for vip in self.services.iter().filter_map(|service| service.key.vip()) {
            if !vips.contains(&vip) {
                vips.push(vip);
            }
        }
        vips
    }

    /// The servers' addresses, each once, with the forwarding methods that lead there.
    pub fn hosts(&self) -> Vec<(IpAddr, Vec<Forwarding>)> {
        let mut hosts: Vec<(IpAddr, Vec<Forwarding>)> = Vec::new();
        for server in self.services.iter().flat_map(|service| &service.servers) {
            let (ip, method) = (server.address.ip(), server.forwarding.asked());
            match hosts.iter_mut().find(|(known, _)| *known == ip) {
                Some((_, methods)) if methods.contains(&method) => {}
                Some((_, methods)) => methods.push(method),
                None => hosts.push((ip, vec![method])),
            }
        }
        hosts
    }

    /// Whether any server is reached in this way.
    pub fn has(&self, forwarding: Forwarding) -> bool {
        self.hosts().iter().any(|(_, methods)| methods.contains(&forwarding))
    }
}

impl Service {
    fn new(spec: &ServiceSpec, servers: Vec<Server>) -> Service {
        Service { key: spec.key, extras: spec.extras.unwrap_or_default(), servers }
    }
}

impl Server {
    fn planned(spec: &ServerSpec) -> Server {
        let ServerSpec { address, forwarding, tunnel, .. } = *spec;
        Server { address, forwarding, tunnel, packets: None }
    }

    fn running(view: &ServerView) -> Server {
        let packets = Some((view.stats.in_packets, view.stats.out_packets));
        Server { packets, ..Server::planned(&view.spec) }
    }
}

impl Facts {
    /// Everything that is to be said about them.
    pub fn examine(&self) -> Vec<Finding> {
        let mut areas: Vec<fn(&Facts) -> Vec<Finding>> =
            vec![machine::examine, config::examine, cards::examine];
        if !self.plan.is_nlb {
            areas.extend([
                vips::examine as fn(&Facts) -> Vec<Finding>,
                segment::examine,
                reach::examine,
                mtu::examine,
                servers::examine,
                traffic::examine,
            ]);
        }
        areas.iter().flat_map(|area| area(self)).collect()
    }

    /// The interface that clients' packets for `vip` come in by: the one that has it, or its subnet;
    /// else the first.
    fn front(&self, vip: IpAddr) -> Option<&Interface> {
        let ours = |index: u32| {
            let interface = self.network.interface(index);
            interface.filter(|interface| self.plan.interfaces.contains(&interface.name))
        };
        let of = |wanted: &dyn Fn(&director::network::Address) -> bool| {
            self.network.addresses().filter(|it| wanted(it)).find_map(|it| ours(it.interface))
        };
        of(&|it| it.address == vip)
            .or_else(|| of(&|it| it.subnet.contains(&vip)))
            .or_else(|| self.network.interface_by_name(self.plan.interfaces.first()?))
    }

    /// The interface and the way to a server.
    fn way(&self, server: IpAddr) -> Option<(&Interface, Route)> {
        let route = self.network.route(server)?;
        Some((self.network.interface(route.interface)?, route))
    }
}

/// `192.0.2.10/32`
fn host_prefix(address: IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 })
}

/// `ip`, or `ip -6`.
pub(super) fn ip(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "ip" } else { "ip -6" }
}
