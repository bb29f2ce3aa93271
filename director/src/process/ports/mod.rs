//! How packets are taken from the interfaces: the best way that all of them offer.
//!
//! From best to last: AF_XDP zero-copy, AF_XDP copy, AF_XDP on generic XDP, AF_PACKET. The same for
//! all interfaces, because the sockets of a worker share one packet memory. One log line says
//! which way was taken and why not a better one.

mod attachment;
mod bench;
mod ladder;

use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arc_swap::ArcSwap;
use netio::{PacketOptions, PacketPort};
use netio::{Pool, Port};
use netio::{interface, interrupts};

use crate::config::{Config, Io};
use crate::control::api::PortView;
use crate::steer::{DEFAULT_CAPACITY, KeySet, Mark, MarkedSet, Steering, Wanted};
use crate::table::Tidings;
use attachment::Attachment;
pub(super) use bench::Bench;
use ladder::{Refusals, Step};

/// An interface that packets are taken from.
#[derive(Clone, Debug)]
struct Card {
    name: String,
    index: u32,
    mtu: u32,
    queues: u32,
}

/// Everything open. Dropping it, or [`detach`](Opened::detach), gives the kernel its traffic back.
pub(super) struct Opened {
    /// One line: which way, and why not a better one.
    pub(super) summary: String,
    steering: Steering,
    attachments: Vec<Attachment>,
    benches: Vec<Bench>,
    views: Vec<PortView>,
    /// What shall be steered to us.
    wanted: Wanted,
    /// What is, for AF_PACKET ports, which see everything.
    keys: Arc<ArcSwap<KeySet>>,
    has_filters: bool,
}

/// Opens all ports that the configuration asks for.
pub(super) fn open(config: &Config) -> Result<Opened> {
    let cards = config.interfaces.iter().map(|name| card(name)).collect::<Result<Vec<_>>>()?;
    let steps: &[Step] = match config.io {
        Io::Auto => &[Step::ZeroCopy, Step::Copy, Step::Generic, Step::Packet],
        Io::ZeroCopy => &[Step::ZeroCopy],
        Io::Copy => &[Step::Copy],
        Io::Generic => &[Step::Generic],
        Io::Packet => &[Step::Packet],
    };
    let mut refusals = Refusals::default();
    for &step in steps {
        match attempt(step, config, &cards) {
            Ok(mut opened) => {
                let names: Vec<_> = cards
                    .iter()
                    .map(|card| match card.queues {
                        1 => format!("{} (1 queue)", card.name),
                        queues => format!("{} ({queues} queues)", card.name),
                    })
                    .collect();
                opened.summary = format!("packets: {step} on {}", names.join(", "));
                let why = match (config.io, refusals.is_empty()) {
                    (Io::Auto, true) => String::from("; the best there is"),
                    (Io::Auto, false) => format!("; not {}", refusals.joined("; not ")),
                    (_, _) => String::from("; as `io` in the configuration says"),
                };
                opened.summary.push_str(&why);
                opened.summary.push_str(&opened.means(config));
                return Ok(opened);
            }
            Err(error) => refusals.add(step, &error),
        }
    }
    match config.io {
        Io::Auto => bail!("no way to take packets:\n  {}", refusals.joined("\n  ")),
        _ => bail!("{} (io in the configuration allows nothing else)", refusals.joined("; ")),
    }
}

fn card(name: &str) -> Result<Card> {
    Ok(Card {
        name: name.to_owned(),
        index: interface::index(name)?,
        mtu: interface::mtu(name)?,
        queues: interface::queues(name)?.receive,
    })
}

fn largest_mtu(cards: &[Card]) -> u32 {
    cards.iter().map(|card| card.mtu).max().unwrap_or(0)
}

/// Tries one way for all interfaces; nothing is left behind when it fails.
fn attempt(step: Step, config: &Config, cards: &[Card]) -> Result<Opened> {
    let steering = Steering::new(DEFAULT_CAPACITY)?;
    let keys = Arc::new(ArcSwap::default());
    let mut opened = Opened {
        summary: String::new(),
        steering,
        attachments: Vec::new(),
        benches: Vec::new(),
        views: Vec::new(),
        wanted: Wanted::default(),
        keys,
        has_filters: step == Step::Packet,
    };
    match step {
        Step::Packet => opened.open_packet(config, cards)?,
        _ => opened.open_xdp(step, config, cards)?,
    }
    Ok(opened)
}

/// How many workers: what is asked for, else one per core, never more than there are queues to
/// share out.
fn workers(config: &Config, queues: u32) -> u32 {
    let cores = match config.cpus.len() {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        named => named,
    };
    let wanted = config.workers.unwrap_or(cores).max(1) as u32;
    wanted.min(queues)
}

impl Opened {
    fn open_xdp(&mut self, step: Step, config: &Config, cards: &[Card]) -> Result<()> {
        let chunk = step.chunk_size(largest_mtu(cards))?;
        let fewest = cards.iter().map(|card| card.queues).min().unwrap_or(1);
        let workers = workers(config, fewest);
        let mark = step.sees_injected().then(Mark::random);
        for card in cards {
            self.attachments.push(step.attach(&self.steering, card, mark)?);
        }
        for worker in 0..workers {
            let mut bench = Bench::new(step, config, cards, workers, chunk)?;
            bench.core = interrupts::core_of(&cards[0].name, worker);
            bench.busy_polls = true;
            for (number, card) in cards.iter().enumerate() {
                for queue in (worker..card.queues).step_by(workers as usize) {
                    let port = step.open_socket(&mut bench.pool, config, card, queue)?;
                    bench.busy_polls &= port.busy_polls();
                    let fd: BorrowedFd<'_> = port.fd();
                    if let Some(sockets) = self.attachments[number].sockets() {
                        sockets
                            .set_socket(queue, fd)
                            .with_context(|| format!("{} queue {queue}", card.name))?;
                    }
                    bench.add(card, Box::new(port), mark, None)?;
                    self.view(card, queue, worker, step);
                }
            }
            self.benches.push(bench);
        }
        Ok(())
    }

    fn open_packet(&mut self, config: &Config, cards: &[Card]) -> Result<()> {
        let chunk = Step::Packet.chunk_size(largest_mtu(cards))?;
        let workers = workers(config, u32::MAX);
        let mark = Mark::random();
        for card in cards {
            self.attachments.push(Attachment::guard(&self.steering, card, mark)?);
        }
        for worker in 0..workers {
            let mut bench = Bench::new(Step::Packet, config, cards, workers, chunk)?;
            for card in cards {
                let options = match workers {
                    1 => PacketOptions::new(&card.name),
                    _ => PacketOptions::in_group(&card.name, fanout_group(card)),
                };
                let port = PacketPort::open(options)?;
                bench.add(card, Box::new(port), Some(mark), Some(self.keys.clone()))?;
                self.view(card, worker, worker, Step::Packet);
            }
            self.benches.push(bench);
        }
        Ok(())
    }

    /// What was got of packet memory, rings and busy polling.
    fn means(&self, config: &Config) -> String {
        let Some(bench) = self.benches.first() else { return String::new() };
        let pool = &bench.pool;
        let memory = format!(
            "; packet memory: {} frames of {} bytes per worker in {}",
            pool.capacity(),
            pool.chunk_size(),
            pool.pages()
        );
        // AF_PACKET has no rings of ours, and nothing to poll.
        if self.has_filters {
            return memory;
        }
        let polled = self.benches.iter().all(|bench| bench.busy_polls);
        let polling = match (polled, config.busy_poll) {
            (true, _) => "; busy polling under load",
            (false, Some(true)) => "; no busy polling: the kernel does not let us",
            (false, _) => "",
        };
        let rings = match (config.rx_ring_size, config.tx_ring_size) {
            (rx, tx) if rx == tx => format!("rings of {rx}"),
            (rx, tx) => format!("rings of {rx} to receive and {tx} to transmit"),
        };
        format!("{memory}; {rings}{polling}")
    }

    fn view(&mut self, card: &Card, queue: u32, worker: u32, step: Step) {
        self.views.push(PortView {
            interface: card.name.clone(),
            queue,
            worker,
            io: step.to_string(),
            received: 0,
            transmitted: 0,
            receive_dropped: 0,
            transmit_dropped: 0,
            receiving: 0,
            transmitting: 0,
            socket: None,
        });
    }

    /// The ports of each worker, once.
    pub(super) fn take_benches(&mut self) -> Vec<Bench> {
        std::mem::take(&mut self.benches)
    }

    /// One view per port, in the order of workers and their ports.
    pub(super) fn views(&self) -> Vec<PortView> {
        self.views.clone()
    }

    /// Has what is steered to us follow the table: what is new of it, and all its marks.
    pub(super) fn steer(&mut self, tidings: &Tidings, marked: MarkedSet) -> Result<()> {
        for interest in &tidings.added {
            interest.keys().for_each(|key| self.wanted.add(key));
        }
        for interest in &tidings.removed {
            interest.keys().for_each(|key| self.wanted.remove(key));
        }
        // A packet must not be dropped by the guard before we take it, nor the other way round
        // for longer than this takes; a retransmission covers it.
        if self.has_filters {
            self.keys.store(Arc::new(self.wanted.to_set(marked.clone())));
        }
        let followed = match self.steering.follow(&mut self.wanted) {
            Ok(()) => self.exchange_programs(&marked),
            Err(error) => Err(error.into()),
        };
        if followed.is_err() && self.has_filters {
            // What the guard takes from the kernel, and nothing else, is ours.
            self.keys.store(Arc::new(self.steering.present().clone()));
        }
        followed.context("steering does not follow the services")
    }

    /// Has the programs know these rules of firewall marks.
    fn exchange_programs(&mut self, marked: &MarkedSet) -> Result<()> {
        if self.steering.present().marked() == marked {
            return Ok(());
        }
        let before = self.steering.set_marked(marked.clone());
        let steering = &self.steering;
        let outcome = self.attachments.iter_mut().try_for_each(|program| program.reload(steering));
        if outcome.is_err() {
            self.steering.set_marked(before);
        }
        outcome
    }

    /// Takes the programs off the interfaces: the kernel has its traffic back.
    pub(super) fn detach(&mut self) {
        self.attachments.clear();
    }
}

/// A fanout group of this process and interface: the kernel keeps groups per network namespace.
fn fanout_group(card: &Card) -> u16 {
    (std::process::id() as u16).rotate_left(5) ^ card.index as u16
}

/// Sends the frames that announce new addresses, each on its interface.
pub(super) fn announce(interface: &str, mac: [u8; 6], vips: &[IpAddr]) -> Result<()> {
    let mut pool = Pool::new(64, 2048)?;
    let mut port = PacketPort::open(PacketOptions::new(interface))?;
    let mut frames = Vec::new();
    for vip in vips {
        let bytes = crate::network::announcement(mac, *vip, None);
        let Some(mut frame) = pool.allocate() else { break };
        let start = frame.start();
        pool.reshape(&mut frame, start, bytes.len());
        pool.bytes_mut(&mut frame).copy_from_slice(&bytes);
        frames.push(frame);
    }
    port.transmit(&mut pool, &mut frames)?;
    port.flush(&mut pool)?;
    Ok(())
}
