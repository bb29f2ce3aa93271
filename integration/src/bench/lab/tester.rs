//! Sender and receiver in one thread, with one clock: it has a socket in each of the outer hosts.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netio::bpf::xdp;
use netio::{Bind, Frame, Pool, Port, Rings, XskOptions, XskPort};

use super::super::frames::udp;
use super::super::turns::{go_first, pin};
use super::bed::{Bed, CLIENT, PORT, RING, VIP};
use super::middle::{Redirect, redirect};

/// Flows, by source port: each is a connection of the director.
const FLOWS: u32 = 1000;
const FIRST_PORT: u16 = 2000;

/// The first of a crowd of clients: 20.0.0.0.
const FIRST_CLIENT: u32 = 0x1400_0000;

/// Packets of a crowd that may be under way at a time.
const UNDER_WAY: u64 = 1024;

/// Frames sent at a time at most.
const BURST: usize = 64;

/// Where the payload begins: which run the frame is of (4 bytes), and when it was sent,
/// nanoseconds since the tester's start (8 bytes).
const PAYLOAD: usize = 42;
const SOURCE_PORT: usize = 34;

/// How long packets that are still under way are waited for.
const STRAGGLERS: Duration = Duration::from_millis(50);

/// See the module.
pub(super) struct Tester {
    pool: Pool,
    sender: XskPort,
    /// Packets that have reached the sink's interface, as its driver counts them.
    arrived: File,
    program: Redirect,
    listener: Option<(Pool, XskPort)>,
    /// From and to.
    macs: ([u8; 6], [u8; 6]),
    frame: Vec<u8>,
    frames: Vec<Frame>,
    flow: u32,
    run: u32,
    start: Instant,
}

/// What came of packets sent at a steady pace.
pub(super) struct Passage {
    pub(super) sent: u64,
    pub(super) lost: u64,
    /// Of every packet, from before it was given to the kernel until it was seen in the ring.
    pub(super) micros: Vec<f64>,
}

impl Passage {
    /// Adds what came after.
    pub(super) fn append(&mut self, mut later: Passage) {
        self.sent += later.sent;
        self.lost += later.lost;
        self.micros.append(&mut later.micros);
    }
}

impl Tester {
    /// Sends from the source; what reaches the sink is counted and dropped.
    pub(super) fn new(bed: &Bed) -> Result<Tester> {
        let macs = bed.macs()?;
        let mut pool = Pool::new(4 * RING, 2048)?;
        let sender = bed.source.run(|| open(&mut pool))??;
        let (program, arrived) = bed.sink.run(|| {
            let arrived = File::open("/sys/class/net/eth0/statistics/rx_packets")?;
            Ok::<_, anyhow::Error>((redirect("eth0", xdp::DROP, None)?, arrived))
        })??;
        let macs = (macs.source.0, macs.middle[0].0);
        let frame = udp(macs, (CLIENT.into(), FIRST_PORT), (VIP.into(), PORT));
        Ok(Tester {
            pool,
            sender,
            arrived,
            program,
            listener: None,
            macs,
            frame,
            frames: Vec::with_capacity(BURST),
            flow: 0,
            run: 0,
            start: Instant::now(),
        })
    }

    /// From now on packets that reach the sink are received there, for [`pace`](Tester::pace).
    pub(super) fn listen(&mut self, bed: &Bed) -> Result<()> {
        let mut pool = Pool::new(4 * RING, 2048)?;
        let port = bed.sink.run(|| open(&mut pool))??;
        self.program.set(port.fd())?;
        self.listener = Some((pool, port));
        Ok(())
    }

    /// Sends as fast as possible. Returns packets per second that arrived.
    pub(super) fn flood(&mut self, length: Duration) -> Result<f64> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                pin(1);
                go_first();
                let before = self.arrived()?;
                let start = Instant::now();
                while start.elapsed() < length {
                    self.send(BURST)?;
                }
                let took = start.elapsed();
                Ok((self.arrived()? - before) as f64 / took.as_secs_f64())
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Sends one datagram of each of so many clients, who have addresses of their own, and no more at
    /// a time than rings hold. Not while [listening](Tester::listen).
    pub(super) fn crowd(&mut self, clients: u32) -> Result<()> {
        ensure!(self.listener.is_none(), "what arrives is not counted any more");
        let (before, mut sent) = (self.arrived()?, 0);
        for first in (0..clients).step_by(BURST) {
            sent += self.send_of(first..clients.min(first + BURST as u32))? as u64;
            let start = Instant::now();
            let mut arrived = self.arrived()? - before;
            while arrived + UNDER_WAY < sent {
                // Lost ones never arrive: they are not waited for again.
                if start.elapsed() > STRAGGLERS {
                    sent = arrived;
                }
                std::thread::yield_now();
                arrived = self.arrived()? - before;
            }
        }
        std::thread::sleep(STRAGGLERS);
        Ok(())
    }

    /// Sends a datagram of each of these clients, and says how many that were.
    fn send_of(&mut self, clients: std::ops::Range<u32>) -> Result<usize> {
        for number in clients {
            let Some(mut frame) = self.pool.allocate() else { break };
            let client = Ipv4Addr::from_bits(FIRST_CLIENT + number);
            let bytes = udp(self.macs, (client, FIRST_PORT), (VIP.into(), PORT));
            let start = frame.start();
            self.pool.reshape(&mut frame, start, bytes.len());
            self.pool.bytes_mut(&mut frame).copy_from_slice(&bytes);
            self.frames.push(frame);
        }
        self.transmit()
    }

    /// Sends so many packets per second, evenly, and receives them.
    pub(super) fn pace(&mut self, rate: f64, length: Duration) -> Result<Passage> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                pin(1);
                go_first();
                self.paced(rate, length)
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn paced(&mut self, rate: f64, length: Duration) -> Result<Passage> {
        self.run += 1;
        let wanted = (rate * length.as_secs_f64()) as u64;
        let mut passage = Passage { sent: 0, lost: 0, micros: Vec::with_capacity(wanted as usize) };
        let start = Instant::now();
        while passage.sent < wanted {
            let due = ((rate * start.elapsed().as_secs_f64()) as u64).min(wanted);
            let burst = (due - passage.sent).min(BURST as u64);
            passage.sent += self.send(burst as usize)? as u64;
            self.receive(&mut passage.micros)?;
            // A middle that takes nothing must not keep us for ever.
            ensure!(start.elapsed() < length * 4, "{rate:.0} packets per second cannot be sent");
        }
        let end = Instant::now();
        while end.elapsed() < STRAGGLERS && (passage.micros.len() as u64) < passage.sent {
            self.receive(&mut passage.micros)?;
        }
        passage.lost = passage.sent.saturating_sub(passage.micros.len() as u64);
        Ok(passage)
    }

    /// Sends up to `count` frames, and says how many that were: as many as there are chunks for.
    fn send(&mut self, count: usize) -> Result<usize> {
        let stamp = self.start.elapsed().as_nanos() as u64;
        for _ in 0..count {
            let Some(mut frame) = self.pool.allocate() else { break };
            let start = frame.start();
            self.pool.reshape(&mut frame, start, self.frame.len());
            let bytes = self.pool.bytes_mut(&mut frame);
            bytes.copy_from_slice(&self.frame);
            self.flow = (self.flow + 617) % FLOWS;
            let port = FIRST_PORT + self.flow as u16;
            bytes[SOURCE_PORT..SOURCE_PORT + 2].copy_from_slice(&port.to_be_bytes());
            bytes[PAYLOAD..PAYLOAD + 4].copy_from_slice(&self.run.to_be_bytes());
            bytes[PAYLOAD + 4..PAYLOAD + 12].copy_from_slice(&stamp.to_be_bytes());
            self.frames.push(frame);
        }
        self.transmit()
    }

    /// Sends the frames at hand, and says how many were sent.
    fn transmit(&mut self) -> Result<usize> {
        let before = self.sender.counters().transmit_dropped;
        let count = self.frames.len();
        if count > 0 {
            self.sender.transmit(&mut self.pool, &mut self.frames)?;
        }
        self.sender.flush(&mut self.pool)?;
        Ok(count - (self.sender.counters().transmit_dropped - before) as usize)
    }

    fn receive(&mut self, micros: &mut Vec<f64>) -> Result<()> {
        let (pool, port) = self.listener.as_mut().context("nobody listens")?;
        let mut frames = std::mem::take(&mut self.frames);
        let received = port.receive(pool, &mut frames, BURST)?;
        if received > 0 {
            let now = self.start.elapsed().as_nanos() as u64;
            for frame in &frames {
                let bytes = pool.bytes(frame);
                let part = |from: usize, to: usize| bytes.get(PAYLOAD + from..PAYLOAD + to);
                let run =
                    part(0, 4).and_then(|bytes| Some(u32::from_be_bytes(bytes.try_into().ok()?)));
                let sent =
                    part(4, 12).and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
                // Of an earlier run: it was counted as lost there.
                if let (Some(run), Some(sent)) = (run, sent)
                    && run == self.run
                {
                    micros.push(now.saturating_sub(sent) as f64 / 1e3);
                }
            }
            frames.drain(..).for_each(|frame| pool.release(frame));
            port.flush(pool)?;
        }
        self.frames = frames;
        Ok(())
    }

    fn arrived(&self) -> Result<u64> {
        let mut text = [0; 32];
        let length = self.arrived.read_at(&mut text, 0).context("rx_packets of the sink")?;
        let text = String::from_utf8_lossy(&text[..length]);
        text.trim().parse().with_context(|| format!("rx_packets of the sink: {text:?}"))
    }
}

fn open(pool: &mut Pool) -> Result<XskPort> {
    let mut options = XskOptions::new("eth0", 0, Bind::Copy);
    options.rings = Rings::of(RING);
    Ok(XskPort::open(pool, options)?)
}
