//! What ways to place keys come to: how evenly they spread them, and how many move when a node
//! leaves and returns.
//!
//! Knows keys and nodes, both made up. Must not know how the figures are shown.
//!
//! *Efficiency* is the average number of keys of a node divided by the largest, *deviation* the mean of
//! the nodes' absolute distances from the average, divided by the average. Keys that fall on N nodes
//! wholly by chance have a deviation of sqrt(2 / pi) sqrt((N - 1) / K) in the mean: the *noise floor*.

use super::hashes::{HashBy, NameHasher, octets};
use super::{Member, PlacementOptions, Table};
use crate::{Change, Key, Options, Scheduler, Server, ServerId, create};
use std::f64::consts::{FRAC_PI_2, PI};
use std::hash::Hasher;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// A way to place keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// The table, cut by the nodes in service.
    Dht,
    /// The table, cut by all nodes.
    StickyDht,
    /// The scheduler mh, with its 4093 slots.
    Maglev,
    /// Each key on the node whose hash together with the key's is the largest.
    Rendezvous,
}

impl Scheme {
    /// All there are.
    pub const ALL: [Scheme; 4] =
        [Scheme::Dht, Scheme::StickyDht, Scheme::Maglev, Scheme::Rendezvous];

    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Dht => "dht",
            Scheme::StickyDht => "sticky dht",
            Scheme::Maglev => "mh (4093 slots)",
            Scheme::Rendezvous => "rendezvous",
        }
    }

    /// The part of all keys that moves when one of `nodes` leaves, where there is a formula.
    pub fn expected_moves(self, nodes: u16) -> Option<f64> {
        let nodes = f64::from(nodes);
        match self {
            Scheme::Dht => Some((nodes + 1.0) / (3.0 * nodes)),
            Scheme::StickyDht | Scheme::Rendezvous => Some(1.0 / nodes),
            Scheme::Maglev => None,
        }
    }

    /// Where keys go, as node numbers. Nodes are in the list in the order of `nodes`; that one of them
    /// that is `gone` is out of service in a dht, and out of the list for the others.
    fn placer(self, nodes: &[u16], gone: Option<u16>) -> Box<dyn Fn(u64) -> u16> {
        let there = |node: &u16| Some(*node) != gone;
        match self {
            Scheme::Dht | Scheme::StickyDht => {
                let members: Vec<_> = nodes
                    .iter()
                    .map(|node| {
                        let member = Member::new(address(*node), 53, 1);
                        if there(node) { member } else { member.weighing(0) }
                    })
                    .collect();
                let sticky = self == Scheme::StickyDht;
                let options = PlacementOptions { sticky, ..PlacementOptions::default() };
                // So few nodes always fit, and one of them is in service.
                let table = Table::build(&members, options).ok();
                let nodes = nodes.to_vec();
                Box::new(move |key| {
                    table.as_ref().and_then(|table| table.owner(key)).map_or(NOBODY, |it| nodes[it])
                })
            }
            Scheme::Maglev => maglev(nodes.iter().copied().filter(there).collect()),
            Scheme::Rendezvous => {
                let nodes: Vec<_> = nodes
                    .iter()
                    .filter(|node| there(node))
                    .map(|&node| (node, mix(u128::from_be_bytes(octets(address(node))) as u64)))
                    .collect();
                Box::new(move |key| {
                    let best = nodes.iter().max_by_key(|(_, own)| mix(key ^ own));
                    best.map_or(NOBODY, |best| best.0)
                })
            }
        }
    }
}

const NOBODY: u16 = u16::MAX;

fn address(node: u16) -> IpAddr {
    Ipv4Addr::from_bits(0xC000_0200 + 1 + u32::from(node)).into()
}

/// The scheduler as it is, asked key by key.
fn maglev(nodes: Vec<u16>) -> Box<dyn Fn(u64) -> u16> {
    let servers: Vec<_> = nodes
        .iter()
        .map(|&node| Arc::new(Server::new(ServerId(node.into()), address(node), 53, 1)))
        .collect();
    let options = Options { key: HashBy::Name, ..Options::default() };
    let scheduler: Option<Box<dyn Scheduler>> = create("mh", &options).and_then(|mut mh| {
        mh.changed(&servers, Change::Bound).ok()?;
        Some(mh)
    });
    let scheduler = std::cell::RefCell::new(scheduler);
    let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    Box::new(move |key| {
        let key = Key {
            protocol: 17,
            source: nowhere,
            source_port: 0,
            destination: nowhere,
            destination_port: 53,
            name: Some(key),
        };
        let mut scheduler = scheduler.borrow_mut();
        let chosen = scheduler.as_mut().and_then(|it| it.choose(&servers, &key, Duration::ZERO));
        chosen.map_or(NOBODY, |index| nodes[index])
    })
}

/// A bijection that mixes all bits (the finish of SplitMix64: Steele, Lea and Flood, 2014).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The hashes of so many distinct names, other ones for each `set`.
pub fn names(count: usize, set: u32) -> Vec<u64> {
    let zone = format!("zone{set}");
    (0..count)
        .map(|number| {
            let mut hasher = NameHasher::default();
            for label in [&format!("www{number}"), &zone, "example"] {
                hasher.write(&[label.len() as u8]);
                hasher.write(label.as_bytes());
            }
            hasher.write(&[0]);
            hasher.finish()
        })
        .collect()
}

/// How evenly keys are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// Average / largest, 0..=1.
    pub efficiency: f64,
    /// Mean distance from the average / average; 0.01 = 1 %.
    pub deviation: f64,
}

/// How evenly the first K of `keys` are spread over so many nodes, for each K of `counts`, which rise.
pub fn balance(scheme: Scheme, nodes: u16, keys: &[u64], counts: &[usize]) -> Vec<Balance> {
    let placer = scheme.placer(&list(nodes), None);
    let mut each = vec![0_u64; usize::from(nodes)];
    let mut done = 0;
    let mut balances = Vec::new();
    for &count in counts {
        keys[done..count].iter().for_each(|&key| each[usize::from(placer(key))] += 1);
        done = count;
        balances.push(of(&each));
    }
    balances
}

fn of(each: &[u64]) -> Balance {
    let average = each.iter().sum::<u64>() as f64 / each.len() as f64;
    let largest = each.iter().max().copied().unwrap_or(0) as f64;
    let distances: f64 = each.iter().map(|&keys| (keys as f64 - average).abs()).sum();
    Balance { efficiency: average / largest, deviation: distances / each.len() as f64 / average }
}

/// The deviation of keys that fall by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Its mean: the noise floor.
    pub floor: f64,
    /// The standard deviation of a single trial.
    pub sigma: f64,
}

/// The noise of `keys` keys on so many nodes, two or more. Each count is all but normally distributed,
/// and two of them are correlated by -1 / (N - 1).
pub fn noise(nodes: u16, keys: usize) -> Noise {
    let nodes = f64::from(nodes);
    let one = ((nodes - 1.0) / keys as f64).sqrt();
    let correlation = -1.0 / (nodes - 1.0);
    let both = 2.0 / PI
        * ((1.0 - correlation * correlation).sqrt() + correlation * correlation.asin() - 1.0);
    let variance = (1.0 - 1.0 / FRAC_PI_2) / nodes + (nodes - 1.0) / nodes * both;
    Noise { floor: (2.0 / PI).sqrt() * one, sigma: one * variance.max(0.0).sqrt() }
}

/// Parts of all keys, 0..=1, in the mean over who leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moves {
    /// On another node after one has left.
    pub on_leave: f64,
    /// On another node than at first, after it has come back (newest of the list, as schedulers have it).
    pub after_return: f64,
    /// Of the leaver's keys those that the former replica then has; for the dht only.
    pub to_replica: Option<f64>,
}

/// What moves when one of so many nodes, two or more, leaves and returns.
pub fn moves(scheme: Scheme, nodes: u16, keys: &[u64]) -> Moves {
    let list = list(nodes);
    let before = scheme.placer(&list, None);
    let owners: Vec<u16> = keys.iter().map(|&key| before(key)).collect();
    let replicas = replicas(scheme, &list);
    let (mut left, mut lost, mut inherited, mut returned) = (0_usize, 0_usize, 0_usize, 0_usize);
    for leaver in 0..nodes {
        let without = scheme.placer(&list, Some(leaver));
        let mut back: Vec<u16> = list.iter().copied().filter(|&node| node != leaver).collect();
        back.insert(0, leaver);
        let again = scheme.placer(&back, None);
        for (&key, &owner) in keys.iter().zip(&owners) {
            let now = without(key);
            left += usize::from(now != owner);
            returned += usize::from(again(key) != owner);
            if owner == leaver
                && let Some(table) = &replicas
            {
                lost += 1;
                inherited += usize::from(table.replica(key) == Some(usize::from(now)));
            }
        }
    }
    let all = (keys.len() * usize::from(nodes)) as f64;
    Moves {
        on_leave: left as f64 / all,
        after_return: returned as f64 / all,
        to_replica: replicas.map(|_| inherited as f64 / lost as f64),
    }
}

fn list(nodes: u16) -> Vec<u16> {
    (0..nodes).collect()
}

fn replicas(scheme: Scheme, list: &[u16]) -> Option<Table> {
    let sticky = match scheme {
        Scheme::Dht => false,
        Scheme::StickyDht => true,
        Scheme::Maglev | Scheme::Rendezvous => return None,
    };
    let members: Vec<_> = list.iter().map(|&node| Member::new(address(node), 53, 1)).collect();
    Table::build(&members, PlacementOptions { sticky, ..PlacementOptions::default() }).ok()
}
