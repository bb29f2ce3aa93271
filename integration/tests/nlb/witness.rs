//! Who said what on the segment: every frame that a host or the client sends, as it enters the
//! bridge, and what it means that it did.
//!
//! An AF_PACKET socket on each port of the bridge sees what comes in there, so the sender is known
//! by the port and not by an address that could be another's.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use forwarding::{Fragment, parse};
use integration::cluster::Cluster;
use netio::ethernet::{self, Wanted};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use crate::bed::is_vip;

const EVERYTHING: u16 = 0x0003;
/// Room for what comes in while the machine is busy elsewhere.
const BUFFER: usize = 32 << 20;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// One frame.
#[derive(Clone, Copy, Debug)]
struct Sight {
    at: Instant,
    /// Number of the host that sent it, 0 = the client.
    from: usize,
    protocol: u8,
    source: SocketAddr,
    destination: SocketAddr,
    flags: u8,
    /// TCP: acknowledgement number; ICMP: type, code, identifier and sequence; UDP: the first bytes.
    word: u64,
    later: bool,
}

/// A witness at work.
pub(crate) struct Witness {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Sight>>>,
}

impl Witness {
    /// Looks at everything that enters the bridge from now on.
    pub(crate) fn start(cluster: &Cluster) -> Result<Witness> {
        let names = std::iter::once(cluster.client.name())
            .chain(cluster.hosts.iter().map(integration::lab::Host::name))
            .map(|name| format!("{name}-eth0"))
            .collect::<Vec<_>>();
        let open = |name: &String| -> Result<UdpSocket> {
            let socket = ethernet::open(name, EVERYTHING, Wanted::All)?;
            setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
            Ok(socket)
        };
        let segment = cluster.wire.host();
        let sockets = segment.run(|| names.iter().map(open).collect::<Result<Vec<_>>>())??;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || watch(&sockets, &stopped));
        Ok(Witness { stop, thread })
    }

    /// What it has seen.
    pub(crate) fn finish(self) -> Result<Account> {
        // Frames on their way to the bridge are still part of it.
        std::thread::sleep(Duration::from_millis(100));
        self.stop.store(true, Ordering::Relaxed);
        let sights = self.thread.join().map_err(|_| anyhow!("the witness panicked"))??;
        Ok(Account { sights })
    }
}

fn watch(sockets: &[UdpSocket], stop: &AtomicBool) -> Result<Vec<Sight>> {
    let mut sights = Vec::new();
    let mut buffer = vec![0; 1 << 17];
    while !stop.load(Ordering::Relaxed) {
        let mut wanted: Vec<_> =
            sockets.iter().map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN)).collect();
        poll(&mut wanted, PollTimeout::from(50_u8)).context("wait for frames")?;
        for (from, socket) in sockets.iter().enumerate() {
            while let Ok(length) = socket.recv(&mut buffer) {
                sights.extend(sight(&buffer[..length], from));
            }
        }
    }
    sights.sort_by_key(|sight| sight.at);
    Ok(sights)
}

fn sight(frame: &[u8], from: usize) -> Option<Sight> {
    let headers = parse(frame).ok()?;
    let body = frame.get(headers.l4..headers.end)?;
    let later = matches!(headers.fragment, Fragment::Later { .. });
    let first = |range: std::ops::Range<usize>| {
        body.get(range)
            .unwrap_or_default()
            .iter()
            .fold(0, |word, &byte| word << 8 | u64::from(byte))
    };
    let word = match headers.protocol {
        _ if later => 0,
        TCP => first(8..12),
        ICMP | ICMPV6 => first(0..2) << 32 | first(4..8),
        _ => first(8..16),
    };
    Some(Sight {
        at: Instant::now(),
        from,
        protocol: headers.protocol,
        source: SocketAddr::new(headers.source, headers.source_port),
        destination: SocketAddr::new(headers.destination, headers.destination_port),
        flags: headers.tcp_flags,
        word,
        later,
    })
}

/// What the witness has seen.
pub(crate) struct Account {
    sights: Vec<Sight>,
}

/// A flow by its client's and the cluster's end.
type Flow = (u8, SocketAddr, SocketAddr);

impl Account {
    /// What hosts sent from a virtual address, by flow and in order.
    fn answers(&self) -> BTreeMap<Flow, Vec<&Sight>> {
        let mut flows: BTreeMap<Flow, Vec<&Sight>> = BTreeMap::new();
        let answers = self.sights.iter().filter(|it| it.from > 0 && is_vip(it.source.ip()));
        for sight in answers.filter(|it| !it.later && matches!(it.protocol, TCP | UDP)) {
            flows.entry((sight.protocol, sight.destination, sight.source)).or_default().push(sight);
        }
        flows
    }

    /// Flows that two hosts answered, in the words of a failed test. A host that answers after
    /// another has fallen silent for good is none: the other may have died.
    pub(crate) fn answered_twice(&self) -> Vec<String> {
        let mut twice = Vec::new();
        for (flow, answers) in self.answers() {
            let mut order: Vec<usize> = answers.iter().map(|answer| answer.from).collect();
            order.dedup();
            let came_back = order.iter().enumerate().any(|(at, host)| order[..at].contains(host));
            let datagram_twice = flow.0 == UDP && order.len() > 1;
            if came_back || datagram_twice || second_greeting(&answers).is_some() {
                twice.push(show(&flow, &order));
            }
        }
        twice.extend(self.echoed_twice());
        twice
    }

    /// New connections that two hosts took. Less than [`answered_twice`](Self::answered_twice): of a
    /// node that was killed the host still repeats what it had to say.
    pub(crate) fn greeted_twice(&self) -> Vec<String> {
        let twice = self.answers().into_iter().filter(|(_, all)| second_greeting(all).is_some());
        twice
            .map(|(flow, all)| show(&flow, &all.iter().map(|it| it.from).collect::<Vec<_>>()))
            .collect()
    }

    /// Echo requests with more than one reply, and replies nobody asked for.
    fn echoed_twice(&self) -> Vec<String> {
        let mut balance: BTreeMap<(IpAddr, IpAddr, u64), (i32, Vec<usize>)> = BTreeMap::new();
        for sight in self.sights.iter().filter(|sight| !sight.later) {
            let (client, vip) = (sight.source.ip(), sight.destination.ip());
            let what = sight.word & 0xffff_ffff;
            match (sight.protocol, sight.word >> 40) {
                (ICMP, 8) | (ICMPV6, 128) if is_vip(vip) => {
                    balance.entry((client, vip, what)).or_default().0 += 1;
                }
                (ICMP, 0) | (ICMPV6, 129) if is_vip(client) => {
                    let (count, hosts) = balance.entry((vip, client, what)).or_default();
                    *count -= 1;
                    hosts.push(sight.from);
                }
                _ => {}
            }
        }
        let twice = balance.into_iter().filter(|(_, (count, _))| *count < 0);
        twice
            .map(|((client, vip, _), (_, hosts))| format!("ping {client} to {vip}: {hosts:?}"))
            .collect()
    }

    /// Echo requests to a virtual address, and replies from one.
    pub(crate) fn pings(&self) -> (usize, usize) {
        let count = |types: [(u8, u64); 2]| {
            let is_one = |it: &&Sight| types.contains(&(it.protocol, it.word >> 40));
            self.sights
                .iter()
                .filter(is_one)
                .filter(|it| is_vip(it.source.ip()) || is_vip(it.destination.ip()))
                .count()
        };
        (count([(ICMP, 8), (ICMPV6, 128)]), count([(ICMP, 0), (ICMPV6, 129)]))
    }

    /// Resets that hosts sent from a virtual address: when, and by whom.
    pub(crate) fn resets(&self) -> Vec<(Instant, usize, SocketAddr)> {
        let resets = self.sights.iter().filter(|it| it.from > 0 && it.protocol == TCP);
        resets
            .filter(|it| it.flags & RST != 0 && is_vip(it.source.ip()))
            .map(|it| (it.at, it.from, it.destination))
            .collect()
    }

    /// Resets by a host that had not begun the flow itself.
    pub(crate) fn strangers_resets(&self) -> Vec<(Instant, usize, SocketAddr)> {
        let answers = self.answers();
        let began = |(_, host, client): &(Instant, usize, SocketAddr)| {
            answers.iter().any(|((_, to, _), sights)| {
                to == client && sights.iter().any(|it| it.from == *host && is_greeting(it))
            })
        };
        self.resets().into_iter().filter(|reset| !began(reset)).collect()
    }

    /// First SYNs of clients to a virtual address that nobody answered within `patience`.
    pub(crate) fn unanswered(&self, patience: Duration) -> Vec<Instant> {
        let answers = self.answers();
        let mut seen = std::collections::BTreeSet::new();
        let mut unanswered = Vec::new();
        let Some(end) = self.sights.last().map(|sight| sight.at) else { return unanswered };
        for syn in self.sights.iter().filter(|it| it.from == 0 && it.protocol == TCP) {
            let first = syn.flags & (SYN | ACK) == SYN && is_vip(syn.destination.ip());
            if !first || !seen.insert((syn.source, syn.destination)) || syn.at + patience > end {
                continue;
            }
            let answered = answers.get(&(TCP, syn.source, syn.destination)).is_some_and(|all| {
                all.iter().any(|it| it.at >= syn.at && it.at <= syn.at + patience)
            });
            if !answered {
                unanswered.push(syn.at);
            }
        }
        unanswered
    }

    /// Answers by host: who spoke from a virtual address at all, neighbour discovery left out.
    pub(crate) fn speakers(&self) -> BTreeMap<usize, usize> {
        let mut counts = BTreeMap::new();
        let discovery =
            |it: &&Sight| it.protocol == ICMPV6 && (133..=137).contains(&(it.word >> 40));
        let spoken = self.sights.iter().filter(|it| it.from > 0 && is_vip(it.source.ip()));
        for sight in spoken.filter(|it| !discovery(it)) {
            *counts.entry(sight.from).or_default() += 1;
        }
        counts
    }

    /// The last moment at which a second host took a connection: its first word to it. (What it has
    /// begun it says again after a second, and after two.)
    pub(crate) fn last_double(&self) -> Option<Instant> {
        self.answers().values().filter_map(|answers| second_greeting(answers)).max()
    }
}

/// When a second host first greeted for the same SYN.
fn second_greeting(answers: &[&Sight]) -> Option<Instant> {
    let greetings: Vec<_> = answers.iter().filter(|it| is_greeting(it)).collect();
    let second = greetings.iter().enumerate().filter(|(at, it)| {
        greetings[..*at].iter().any(|first| first.from != it.from && first.word == it.word)
    });
    second.map(|(_, it)| it.at).min()
}

fn show((protocol, client, vip): &Flow, hosts: &[usize]) -> String {
    format!("{client} to {vip} (protocol {protocol}): hosts {hosts:?}")
}

fn is_greeting(sight: &Sight) -> bool {
    sight.protocol == TCP && sight.flags & (SYN | ACK) == SYN | ACK
}
