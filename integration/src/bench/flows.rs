//! The traffic: connections that have been established through the director, visited without
//! locality, and new ones.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use pnet::packet::tcp::TcpFlags::{ACK, SYN};

use super::director::{Director, Setup, Station};
use super::template::{CLIENTS, Frames, ROUND, Side, Template, number_of};
use super::turns::{Source, together};
use ::director::control::api::Forwarding;

/// Established connections of clients 0 to `flows`.
#[derive(Debug)]
pub(super) struct Flows {
    setup: Setup,
    flows: u32,
    /// Which server each has, with NAT: its replies come from there.
    servers: Arc<Vec<u16>>,
}

impl Flows {
    /// Opens so many connections as the clients would: SYN, and the ACK that makes a connection
    /// ESTABLISHED in the director's eyes too.
    ///
    /// `go_on` is asked now and then, with how many there are.
    pub(super) fn open(
        director: &mut Director,
        setup: &Setup,
        flows: u32,
        go_on: &(dyn Fn(u32) -> Result<()> + Sync),
    ) -> Result<Flows> {
        let shares = open(director, setup, 0..flows, setup.forwarding == Forwarding::Nat, go_on)?;
        let workers = shares.len();
        let mut servers =
            vec![0; if setup.forwarding == Forwarding::Nat { flows as usize } else { 0 }];
        for (worker, share) in shares.into_iter().enumerate() {
            for (at, server) in share.into_iter().enumerate() {
                servers[at * workers + worker] = server;
            }
        }
        Ok(Flows { setup: setup.clone(), flows, servers: Arc::new(servers) })
    }

    /// The packets of one of `workers` workers that share the flows: an ACK of each in turn.
    pub(super) fn visits(&self, side: Side, worker: usize, workers: usize) -> Visits {
        let vip = self.setup.vip();
        let templates = match side {
            Side::Client => vec![Template::new(vip, Side::Client, ACK)],
            Side::Server => (0..self.setup.servers)
                .map(|number| Template::new(self.setup.server(number), Side::Server, ACK))
                .collect(),
        };
        Visits {
            templates,
            servers: match side {
                Side::Client => Arc::default(),
                Side::Server => Arc::clone(&self.servers),
            },
            flows: u64::from(self.flows),
            stride: stride(u64::from(self.flows)),
            next: worker as u64,
            step: workers as u64,
        }
    }
}

/// Opens the connections of a range of clients, every worker its share: client 0 the first, client 1
/// the second... Returns the server of each, if that is to be remembered, by worker.
pub(super) fn open(
    director: &mut Director,
    setup: &Setup,
    clients: Range<u32>,
    remember: bool,
    go_on: &(dyn Fn(u32) -> Result<()> + Sync),
) -> Result<Vec<Vec<u16>>> {
    ensure!(clients.end <= CLIENTS, "there are {CLIENTS} clients only");
    let before = director.connections();
    let workers = director.stations.len();
    let shares = together((0..).zip(&mut director.stations), |(worker, station)| {
        let clients = clients.clone().skip(worker).step_by(workers);
        open_share(station, setup, clients, remember, go_on)
    })?;
    let opened = director.connections() - before;
    ensure!(opened == clients.len(), "{opened} of {} connections are in the table", clients.len());
    Ok(shares)
}

fn open_share(
    station: &mut Station,
    setup: &Setup,
    mut clients: impl Iterator<Item = u32>,
    remember: bool,
    go_on: &(dyn Fn(u32) -> Result<()> + Sync),
) -> Result<Vec<u16>> {
    let [syn, ack] = [SYN, ACK].map(|flags| Template::new(setup.vip(), Side::Client, flags));
    let (mut numbers, mut sent) = (Vec::with_capacity(ROUND), Vec::with_capacity(ROUND));
    let (mut servers, mut frames) = (Vec::new(), Frames::default());
    for chunk in 1.. {
        numbers.clear();
        numbers.extend(clients.by_ref().take(ROUND));
        let Some(&first) = numbers.first() else { break };
        if chunk % 2048 == 0 {
            go_on(first)?;
        }
        sent.clear();
        frames.fill(numbers.iter().map(|number| (&syn, *number)));
        station.exchange(&frames, |bytes| sent.push(ends_of(bytes, setup)))?;
        let (all, out) = (numbers.len(), sent.len());
        ensure!(out == all, "{out} of {all} SYNs were sent on");
        if remember {
            let same = numbers.iter().zip(&sent).all(|(number, (client, _))| client == number);
            ensure!(same, "the SYNs were sent on in another order");
            servers.extend(sent.iter().map(|(_, server)| *server));
        }
        let mut acks = 0;
        frames.fill(numbers.iter().map(|number| (&ack, *number)));
        station.exchange(&frames, |_| acks += 1)?;
        ensure!(acks == all, "{acks} of {all} ACKs were sent on");
    }
    Ok(servers)
}

/// Client and server of a request that NAT has sent on.
fn ends_of(frame: &[u8], setup: &Setup) -> (u32, u16) {
    let (source, destination) = if setup.vip().is_ipv4() { (26, 30) } else { (34, 50) };
    let four = |at: usize| -> [u8; 4] {
        frame.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default()
    };
    let [_, _, high, low] = four(destination);
    (number_of(four(source)), u16::from_be_bytes([high, low]).wrapping_sub(0x100))
}

/// See [`Flows::visits`].
#[derive(Clone, Debug)]
pub(super) struct Visits {
    templates: Vec<Template>,
    servers: Arc<Vec<u16>>,
    flows: u64,
    stride: u64,
    next: u64,
    step: u64,
}

/// From one flow to the next one visited: about 0.618 of all, so that neighbours in time are far
/// from each other, and without a common divisor, so that every flow has its turn.
fn stride(flows: u64) -> u64 {
    let divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let start = (flows as f64 * 0.618_033_988_75) as u64;
    (start.max(1)..).find(|&stride| divisor(stride, flows) == 1).unwrap_or(1)
}

impl Source for Visits {
    fn next(&mut self, frames: &mut Frames) {
        let visits = (0..ROUND as u64).map(|visit| self.next + visit * self.step);
        frames.fill(visits.map(|visit| {
            let flow = visit * self.stride % self.flows;
            let server = self.servers.get(flow as usize).copied().unwrap_or(0);
            (&self.templates[server as usize], flow as u32)
        }));
        // Wraps to the same place in its own share: workers never meet on a flow.
        self.next = (self.next + ROUND as u64 * self.step) % (self.flows * self.step);
    }
}

/// SYNs that nobody has sent before.
#[derive(Debug)]
pub(super) struct NewConnections {
    syn: Template,
    next: u32,
}

impl NewConnections {
    pub(super) fn new(setup: &Setup) -> NewConnections {
        NewConnections::after(setup, 0)
    }

    /// Of clients from number `first` on.
    pub(super) fn after(setup: &Setup, first: u32) -> NewConnections {
        NewConnections { syn: Template::new(setup.vip(), Side::Client, SYN), next: first }
    }
}

impl Source for NewConnections {
    fn next(&mut self, frames: &mut Frames) {
        let numbers = self.next..self.next + ROUND as u32;
        self.next = numbers.end;
        frames.fill(numbers.map(|number| (&self.syn, number)));
    }
}

/// A [`Flows::open`] that never stops.
pub(super) fn always(_: u32) -> Result<()> {
    Ok(())
}

/// Refuses to go on when the machine's memory runs out: to be killed for it would be worse than
/// to have no figure.
pub(super) fn while_memory_lasts(opened: u32) -> Result<()> {
    let available = super::machine::available_memory();
    if available.is_some_and(|bytes| bytes < super::machine::RESERVE) {
        bail!(super::machine::TooLittleMemory { connections: opened });
    }
    Ok(())
}

#[cfg(test)]
#[path = "flows_tests.rs"]
mod tests;
