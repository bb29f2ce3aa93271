//! A director without a network: everything that decides about packets, made from a configuration
//! file alone. So a decision can be looked at (`dirctl replay`, `dirctl explain --config`) by the very
//! code that carries traffic.
//!
//! It knows what the file says. It must not know the machine: no socket, no kernel table, no clock.
//! What a running director learns from those is *assumed* here, and [`Assumed`] says what: every
//! address is on the link of the first interface, every next hop is resolved, every server is up and
//! none is the director itself. Everything is seeded, so the same packets at the same times have the
//! same fate in every run.

mod cluster;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::dispatch::connections::SHARDS;
use crate::dispatch::service::Services;
use crate::dispatch::verdict::Path;
use crate::dispatch::{Dispatcher, Routes, Shared};
use crate::steer::KeySet;
use crate::table::Table;
pub use cluster::{Cluster, ClusterHost};

/// What takes the place of chance: in hashes of connections, and in schedulers that draw lots.
const SEED: u64 = 1;

/// How often a director looks after what has no event of its own.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// Why there is no such world.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoWorld(String);

/// See the module.
pub struct World {
    shared: Arc<Shared>,
    table: Table,
    swept: Duration,
}

impl World {
    /// Services, servers, marks, timeouts and settings as the file has them; its servers are all up.
    /// Nothing of `mode = "nlb"`.
    ///
    /// # Errors
    /// What of the file a director would refuse when it starts.
    pub fn from_config(config: &Config) -> Result<World, NoWorld> {
        let shared = Shared::with_seed(config.max_connections, SEED);
        let shared = Arc::new(shared.with_ftp(config.ftp_ports.clone()));
        let table = Table::new(shared.clone(), Box::new(|_| false), SEED);
        if let Some(timeouts) = config.timeouts {
            shared.timeouts.set(timeouts);
        }
        table.declare_settings(&BTreeMap::new(), &config.settings);
        let changes = table
            .declare(&config.services, &config.marks, Duration::ZERO)
            .map_err(|refused| NoWorld(refused.to_string()))?;
        match changes.refused.first() {
            None => Ok(World { shared, table, swept: Duration::ZERO }),
            Some((key, refusal)) => Err(NoWorld(format!("service {key}: {}", refusal.message))),
        }
    }

    /// The table of services, for its views and counters.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// What dispatchers share: connections, timeouts, settings.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The services, as workers are shown them.
    pub fn services(&self) -> Arc<Services> {
        self.table.published().load_full()
    }

    /// A pipeline, as a worker has one.
    pub fn dispatcher(&self) -> Dispatcher {
        Dispatcher::new(self.shared.clone(), SEED as u16)
    }

    /// What the steering program would take from an interface; everything else is the kernel's.
    pub fn steering(&self) -> KeySet {
        self.table.steering()
    }

    /// Time has come to `now`, which must not run backwards: what has expired ends, and once a second
    /// all else is looked after that a director looks after.
    pub fn pass(&mut self, now: Duration) {
        for shard in 0..SHARDS {
            self.shared.connections.expire(shard, now);
        }
        if now >= self.swept + HOUSEKEEPING {
            self.swept = now;
            self.table.sweep(now);
        }
    }
}

/// Ways out that nobody has looked up: see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// MTU of every path, bytes of IP packet.
    pub mtu: u32,
    /// The director's own address, which IPv4 tunnels begin at.
    pub source_v4: Ipv4Addr,
    /// The same over IPv6.
    pub source_v6: Ipv6Addr,
}

impl Assumed {
    /// The interface that everything leaves by: the first one.
    pub const INTERFACE: u32 = 1;
    /// The director's own MAC address, a locally administered one.
    pub const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    /// The MAC address of a next hop: locally administered, and made of its address.
    pub fn mac(address: IpAddr) -> [u8; 6] {
        match address {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                [2, 4, a, b, c, d]
            }
            IpAddr::V6(address) => {
                let [.., a, b, c, d] = address.octets();
                [2, 6, a, b, c, d]
            }
        }
    }
}

impl Default for Assumed {
    /// An MTU of 1500, and the addresses of nobody: 192.0.0.8 (RFC 7600) and 100::1 (RFC 6666).
    fn default() -> Assumed {
        Assumed {
            mtu: 1500,
            source_v4: Ipv4Addr::new(192, 0, 0, 8),
            source_v6: Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1),
        }
    }
}

impl Routes for Assumed {
    fn path(&mut self, destination: IpAddr) -> Option<Path> {
        let source = match destination {
            IpAddr::V4(_) => self.source_v4.into(),
            IpAddr::V6(_) => self.source_v6.into(),
        };
        Some(Path {
            interface: Assumed::INTERFACE,
            next_hop: destination,
            source: Some(source),
            mtu: self.mtu,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        mode = "dispatcher"
        interfaces = ["eth0"]
        [settings]
        sloppy_tcp = 1
        [[service]]
        listen = "192.0.2.10:80/tcp"
        scheduler = "rr"
        forwarding = "nat"
            [[service.server]]
            address = "10.0.0.11:8080"
            [[service.server]]
            address = "10.0.0.12:8080"
    "#;

    fn world() -> World {
        World::from_config(&crate::config::parse(FILE, "test.toml").unwrap()).unwrap()
    }

    fn frame(client: &str, port: u16) -> Vec<u8> {
        let client: Ipv4Addr = client.parse().unwrap();
        let mut frame = Vec::new();
        etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(client.octets(), [192, 0, 2, 10], 64)
            .tcp(port, 80, 1, 1000)
            .syn()
            .write(&mut frame, &[])
            .unwrap();
        frame
    }

    /// Where the pipeline sends a SYN.
    fn sent(world: &World, dispatcher: &mut Dispatcher, frame: &[u8]) -> Option<IpAddr> {
        use crate::dispatch::verdict::Verdict;
        let mut chunk = vec![0; 2048];
        chunk[256..256 + frame.len()].copy_from_slice(frame);
        let mut packet = forwarding::Packet::new(&mut chunk, 256, frame.len());
        let mut routes = Assumed::default();
        let now = Duration::from_secs(1);
        match dispatcher.handle(now, &world.services(), &mut routes, &mut packet) {
            Verdict::Transmit { path, .. } => Some(path.next_hop),
            _ => None,
        }
    }

    #[test]
    fn a_world_has_the_files_services_and_sends_to_each_server_in_turn() {
        let world = world();
        let mut dispatcher = world.dispatcher();
        let servers: Vec<_> = (1..5)
            .map(|port| sent(&world, &mut dispatcher, &frame("198.51.100.7", port)).unwrap())
            .collect();
        assert_ne!(servers[0], servers[1]);
        assert_eq!(servers[..2], servers[2..]);
        use crate::dispatch::settings::Setting;
        assert!(world.shared().settings.is_on(Setting::SloppyTcp));
    }

    #[test]
    fn steering_takes_what_a_running_director_would_take_and_nothing_else() {
        let keys = world().steering();
        assert!(keys.wants(&frame("198.51.100.7", 1)));
        let mut other = frame("198.51.100.7", 1);
        other[14 + 19] = 11;
        assert!(!keys.wants(&other), "192.0.2.11 is no service");
    }

    #[test]
    fn connections_end_when_their_time_has_passed() {
        let mut world = world();
        let mut dispatcher = world.dispatcher();
        let _ = sent(&world, &mut dispatcher, &frame("198.51.100.7", 1));
        assert_eq!(world.shared().connections.len(), 1);
        world.pass(Duration::from_secs(30));
        assert_eq!(world.shared().connections.len(), 1);
        world.pass(Duration::from_secs(100));
        assert_eq!(world.shared().connections.len(), 0);
    }

    #[test]
    fn every_run_is_the_same() {
        let runs: Vec<Vec<_>> = (0..2)
            .map(|_| {
                let world = world();
                let mut dispatcher = world.dispatcher();
                (1..50)
                    .map(|port| sent(&world, &mut dispatcher, &frame("198.51.100.7", port)))
                    .collect()
            })
            .collect();
        assert_eq!(runs[0], runs[1]);
    }
}
