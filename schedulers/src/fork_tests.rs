//! A fork foresees the next choice of its scheduler, and leaves no trace: for every scheduler, with a
//! load bias and without, over short lists and long ones.

use crate::{Bias, Change, Key, Options, REGISTRY, Scheduler, Server, ServerId, TooManyServers};
use std::sync::Arc;
use std::time::Duration;

/// Numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A scheduler with its list.
struct Service {
    scheduler: Box<dyn Scheduler>,
    servers: Vec<Arc<Server>>,
}

impl Service {
    fn new(name: &str, options: &Options, weights: &[i32]) -> Service {
        let server = |(number, &weight): (usize, &i32)| {
            let address = std::net::Ipv4Addr::from_bits(0x0a00_0001 + number as u32).into();
            Arc::new(Server::new(ServerId(number as u64), address, 80, weight))
        };
        let servers: Vec<_> = weights.iter().enumerate().map(server).collect();
        let mut scheduler = crate::create(name, options).unwrap();
        scheduler.changed(&servers, Change::Bound).unwrap();
        Service { scheduler, servers }
    }

    fn act(&mut self, what: usize, index: usize, number: usize) -> Result<(), TooManyServers> {
        let server = &self.servers[index];
        match what {
            0 => {
                server.set_weight(number as i32 % 5);
                self.scheduler.changed(&self.servers, Change::Edited { index })?;
            }
            1 => server.set_thresholds(number as u32 % 7, 0),
            2 => server.connection_moved(true),
            3 => server.connection_closed(number.is_multiple_of(2)),
            4 => server.report(Some(number as u16 % 11_000)),
            5 => server.handshake_begun(),
            6 => server.handshake_ended(),
            _ if self.servers.len() > 3 => {
                let id = self.servers.remove(index).id();
                self.scheduler.changed(&self.servers, Change::Removed { index, id })?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn key(chance: &mut Chance) -> Key {
    let address = |number: usize| std::net::Ipv4Addr::from_bits(0xc000_0200 + number as u32).into();
    Key {
        protocol: 6,
        source: address(chance.below(40)),
        source_port: chance.below(60_000) as u16,
        destination: address(100 + chance.below(5)),
        destination_port: 80,
        name: Some(chance.below(50) as u64),
    }
}

fn foresees(name: &str, bias: Bias, length: usize, seed: u64) {
    let options =
        Options { bias, bias_window: Duration::from_secs(5), seed: 7, ..Options::default() };
    let mut chance = Chance(seed);
    let weights: Vec<i32> = (0..length).map(|_| chance.below(5) as i32).collect();
    // The other one is never forked.
    let mut one = Service::new(name, &options, &weights);
    let mut other = Service::new(name, &options, &weights);
    let mut now = Duration::ZERO;
    for step in 0..600 {
        now += Duration::from_millis(chance.below(900) as u64);
        if step == 300 {
            // Memories expire.
            now += Duration::from_secs(90_000);
        }
        let key = key(&mut chance);
        let forks: Vec<_> = one.servers.iter().map(|server| Arc::new(server.fork())).collect();
        let fork = |one: &Service| one.scheduler.fork(&forks, &key).choose(&forks, &key, now);
        let foreseen = fork(&one);
        for (index, server) in one.servers.iter().enumerate() {
            assert!(!one.scheduler.figure(index, server).is_empty());
        }
        let _ = one.scheduler.bearings(&one.servers, &key);
        let chosen = one.scheduler.choose(&one.servers, &key, now);
        let what = format!("{name} {bias:?}, {length} servers, seed {seed}, step {step}");
        assert_eq!(foreseen, chosen, "{what}: the fork chose another one");
        assert_eq!(chosen, other.scheduler.choose(&other.servers, &key, now), "{what}: a trace");
        if let Some(index) = chosen {
            one.servers[index].connection_opened();
            other.servers[index].connection_opened();
        }
        let (what, index, number) =
            (chance.below(8), chance.below(one.servers.len()), chance.below(20_000));
        one.act(what, index, number).unwrap();
        other.act(what, index, number).unwrap();
    }
}

#[test]
fn a_fork_of_every_scheduler_foresees_its_next_choice_and_leaves_no_trace() {
    for entry in REGISTRY {
        let biased = ["lc", "wlc", "sed", "nq", "lblc", "lblcr", "load"].contains(&entry.name);
        for bias in [Bias::None, Bias::Ilb(2), Bias::Linear(200)] {
            if bias != Bias::None && !biased {
                continue;
            }
            for (length, seed) in [(1, 1), (4, 2), (9, 3), (40, 4)] {
                foresees(entry.name, bias, length, seed);
            }
        }
    }
}

#[test]
fn what_happens_to_a_fork_of_a_server_does_not_concern_it() {
    let server = Server::new(ServerId(1), "10.0.0.1".parse().unwrap(), 80, 3);
    server.set_thresholds(2, 1);
    server.connection_opened();
    server.report(Some(77));
    let fork = server.fork();
    assert_eq!(
        (fork.id(), fork.name(), fork.weight(), fork.connections(), fork.reported()),
        (server.id(), "10.0.0.1:80".to_owned(), 3, 1, Some(77))
    );
    fork.connection_opened();
    fork.set_weight(0);
    assert!(fork.is_overloaded() && !server.is_overloaded());
    assert_eq!((server.connections(), server.weight()), (1, 3));
}
