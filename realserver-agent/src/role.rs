//! What this host is in the director's file: its own entries, and what follows from them.
//!
//! Knows addresses and settings. Must not change the host.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, bail};

use crate::kind::Kind;
use crate::settings::{Entry, Forwarding, Mode, Protocol, Settings};

/// What this host is there for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Its addresses that the file names.
    pub addresses: Vec<IpAddr>,
    /// How many services have it as a server.
    pub services: usize,
    /// The virtual addresses that belong on `lo`.
    pub vips: Vec<IpAddr>,
    /// What has to be unpacked.
    pub tunnels: Vec<Kind>,
    /// Where its services listen.
    pub served: Vec<Served>,
    /// How many of its services need a VIP that the file does not name: they are named by a mark.
    pub unnamed: usize,
}

/// Where a service listens on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The address that clients' packets come to: the VIP, with NAT the host's own.
    pub address: IpAddr,
    /// `None` = any port.
    pub port: Option<u16>,
    /// What it speaks; `None` = not known.
    pub protocol: Option<Protocol>,
}

impl Served {
    /// Its socket's address, when it speaks TCP on one port.
    pub fn tcp(&self) -> Option<SocketAddr> {
        let port = self.port.filter(|_| self.protocol == Some(Protocol::Tcp))?;
        Some(SocketAddr::new(self.address, port))
    }

    /// Whether a socket that is bound there is one of its.
    pub fn has(&self, local: SocketAddr) -> bool {
        let same = local.ip().is_unspecified() || local.ip() == self.address;
        same && self.port.is_none_or(|port| port == local.port())
    }
}

/// This host's addresses but those that tell no host from another: of loopback networks, link-local
/// ones, and those that the kernel makes of IPv4 addresses for `sit` devices (`::10.0.0.11`).
///
/// # Errors
/// When the kernel does not list them.
pub fn own_addresses() -> Result<Vec<IpAddr>> {
    let interfaces = nix::ifaddrs::getifaddrs().context("list this host's addresses")?;
    let mut own: Vec<IpAddr> = interfaces
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        })
        .filter(is_a_hosts_own)
        .collect();
    own.sort();
    own.dedup();
    Ok(own)
}

fn is_a_hosts_own(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_loopback(),
        IpAddr::V6(address) => {
            // Both ::1 and ::10.0.0.11.
            let small = address.segments()[..6] == [0; 6];
            !small && !address.is_unicast_link_local()
        }
    }
}

impl Role {
    /// The role of the host that has the addresses `own`.
    ///
    /// # Errors
    /// When the file does not name any of them.
    pub fn find(settings: &Settings, own: &[IpAddr]) -> Result<Role> {
        let mine: Vec<&Entry> =
            settings.entries.iter().filter(|entry| own.contains(&entry.address)).collect();
        if mine.is_empty() {
            let own: Vec<_> = own.iter().map(IpAddr::to_string).collect();
            bail!(
                "the file has no [[service.server]] with an address of this host, which has {}: \
                 name one of them as the address of a server, or say what this host is there for \
                 with --vip",
                if own.is_empty() { "none".to_owned() } else { own.join(", ") }
            );
        }
        let mut role = Role { services: mine.len(), ..Role::default() };
        for entry in mine {
            add(&mut role.addresses, entry.address);
            let port = entry.port.or(entry.listen.map(|listen| listen.port()));
            let port = port.filter(|port| *port != 0);
            let protocol = Some(entry.protocol);
            match (entry.forwarding, entry.listen) {
                (Forwarding::Nat, _) => {
                    add(&mut role.served, Served { address: entry.address, port, protocol });
                }
                (Forwarding::Direct | Forwarding::Tunnel(_), Some(listen)) => {
                    add(&mut role.served, Served { address: listen.ip(), port, protocol });
                    // There the nodes put the VIPs on themselves.
                    if settings.mode == Mode::Dispatcher {
                        add(&mut role.vips, listen.ip());
                    }
                }
                (Forwarding::Direct | Forwarding::Tunnel(_), None) => role.unnamed += 1,
            }
            if let Forwarding::Tunnel(kind) = entry.forwarding
                && settings.mode == Mode::Dispatcher
            {
                add(&mut role.tunnels, kind);
            }
        }
        Ok(role)
    }

    /// The role that the command line gives: VIPs for services that are not known.
    pub fn given(vips: &[IpAddr], tunnels: &[Kind]) -> Role {
        let mut role = Role::default();
        role.extend(vips, tunnels);
        role
    }

    /// What the command line adds to the file: VIPs of services that are named by a mark, say.
    pub fn extend(&mut self, vips: &[IpAddr], tunnels: &[Kind]) {
        for vip in vips {
            if !self.vips.contains(vip) {
                self.vips.push(*vip);
                self.served.push(Served { address: *vip, port: None, protocol: None });
            }
        }
        for tunnel in tunnels {
            add(&mut self.tunnels, *tunnel);
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| match items.len() {
            0 => "none".to_owned(),
            _ => items.join(", "),
        };
        if !self.addresses.is_empty() {
            let addresses = self.addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>();
            let plural = if self.services == 1 { "service" } else { "services" };
            let services = self.services;
            write!(f, "{}: server of {services} {plural}, ", addresses.join(" and "))?;
        }
        write!(f, "VIPs {}", list(self.vips.iter().map(IpAddr::to_string).collect()))?;
        write!(f, ", tunnel {}", list(self.tunnels.iter().map(Kind::to_string).collect()))
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::parse;

    const FILE: &str = r#"
        [[service]]
        listen = "192.0.2.10:80/tcp"
        forwarding = "direct"
        [[service.server]]
        address = "10.0.0.11"
        [[service.server]]
        address = "10.0.0.12"
        [[service]]
        listen = "192.0.2.20:443/tcp"
        forwarding = "tunnel"
        [[service.server]]
        address = "10.0.0.12"
        tunnel = { type = "gue", port = 5555 }
        [[service]]
        listen = "192.0.2.30:53/udp"
        forwarding = "nat"
        [[service.server]]
        address = "10.0.0.12:5353"
        [[service]]
        fwmark = 7
        forwarding = "direct"
        [[service.server]]
        address = "10.0.0.12"
    "#;

    fn role(file: &str, own: &str) -> Result<Role> {
        Role::find(&parse(file).unwrap(), &[own.parse().unwrap()])
    }

    #[test]
    fn a_host_finds_its_vips_tunnels_and_services_and_nobody_elses() {
        let one = role(FILE, "10.0.0.11").unwrap();
        assert_eq!(one.to_string(), "10.0.0.11: server of 1 service, VIPs 192.0.2.10, tunnel none");
        let two = role(FILE, "10.0.0.12").unwrap();
        assert_eq!((one.unnamed, two.unnamed), (0, 1), "a mark names no VIP");
        assert_eq!(
            two.to_string(),
            "10.0.0.12: server of 4 services, VIPs 192.0.2.10, 192.0.2.20, tunnel gue:5555"
        );
        let tcp: Vec<_> = two.served.iter().filter_map(Served::tcp).collect();
        let [first, second] = ["192.0.2.10:80", "192.0.2.20:443"].map(|it| it.parse().unwrap());
        assert_eq!(tcp, [first, second]);
        let behind_nat: SocketAddr = "10.0.0.12:5353".parse().unwrap();
        assert!(two.served.iter().any(|served| served.has(behind_nat)));
    }

    #[test]
    fn a_node_without_dispatcher_has_its_vips_from_the_director() {
        let role = role(&format!("mode = \"nlb\"\n{FILE}"), "10.0.0.12").unwrap();
        assert_eq!((role.vips.len(), role.tunnels.len(), role.served.len()), (0, 0, 3));
    }

    #[test]
    fn a_host_that_the_file_does_not_name_is_told_its_addresses() {
        let error = role(FILE, "10.0.0.99").unwrap_err().to_string();
        assert!(error.contains("10.0.0.99") && error.contains("[[service.server]]"), "{error}");
    }

    #[test]
    fn an_address_that_a_tunnel_device_brings_along_is_not_the_hosts() {
        for (text, own) in [
            ("10.0.0.11", true),
            ("2001:db8::11", true),
            ("::10.0.0.11", false),
            ("::1", false),
            ("127.0.0.1", false),
            ("fe80::1", false),
        ] {
            assert_eq!(is_a_hosts_own(&text.parse().unwrap()), own, "{text}");
        }
    }

    #[test]
    fn a_listener_on_all_addresses_is_one_of_the_service() {
        let served =
            Served { address: "192.0.2.1".parse().unwrap(), port: Some(80), protocol: None };
        for (text, expected) in [
            ("192.0.2.1:80", true),
            ("0.0.0.0:80", true),
            ("192.0.2.1:81", false),
            ("192.0.2.2:80", false),
        ] {
            assert_eq!(served.has(text.parse().unwrap()), expected, "{text}");
        }
    }
}
