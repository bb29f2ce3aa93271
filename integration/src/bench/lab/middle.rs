//! The three that carry packets from one side to the other: each is started for a measurement and
//! stopped after it, so that all have the same veth pairs.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use netio::bpf::{
    Assembler, Helper, Link, Map, Program, ProgramType, Register, Size, XdpMode, xdp,
};
use netio::{Bind, Frame, Pool, Port, Rings, XskOptions, XskPort, interface};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::super::turns::{core, go_first, pin};
use super::bed::{Bed, Macs, RING};
use crate::lab::Host;
use crate::running::Director;

/// What stands in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bare,
    Director,
    Router,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Bare, Kind::Director, Kind::Router];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Bare => "bare forwarder",
            Kind::Director => "director",
            Kind::Router => "Linux router",
        })
    }
}

/// One of them at work.
pub(super) enum Running {
    Bare { thread: JoinHandle<Result<()>>, stop: Arc<AtomicBool> },
    Director(Box<Director>),
    Router(Host),
}

/// Which core receives packets that the kernel forwards.
const STEERING: &str = "/sys/class/net/eth0/queues/rx-0/rps_cpus";

/// How long a bare forwarder may take until its sockets are bound.
const PATIENCE: Duration = Duration::from_secs(10);

impl Running {
    pub(super) fn start(kind: Kind, bed: &Bed) -> Result<Running> {
        match kind {
            Kind::Bare => bare(bed),
            Kind::Director => {
                let director = Director::start(&bed.lab, &bed.middle, &bed.config())?;
                Ok(Running::Director(Box::new(director)))
            }
            Kind::Router => {
                // As the director's worker has a core for itself, so has the kernel's forwarding.
                let mask = format!("{:x}", 1_u64 << core(0).unwrap_or(0));
                bed.middle.run(|| std::fs::write(STEERING, mask))?.context("RPS")?;
                bed.middle.sysctl("net.ipv4.ip_forward", "1")?;
                Ok(Running::Router(bed.middle.clone()))
            }
        }
    }

    /// How the director takes its packets, in its own words.
    pub(super) fn way(&self) -> Option<String> {
        let Running::Director(director) = self else { return None };
        let log = director.process().log();
        let line = log.lines().find_map(|line| line.split("packets: ").nth(1))?;
        Some(line.split(';').next().unwrap_or(line).trim().to_owned())
    }

    pub(super) fn stop(self) -> Result<()> {
        match self {
            Running::Bare { thread, stop } => {
                stop.store(true, Ordering::Release);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            Running::Director(director) => director.stop(),
            Running::Router(middle) => {
                middle.run(|| std::fs::write(STEERING, "0"))?.context("RPS")?;
                middle.sysctl("net.ipv4.ip_forward", "0")
            }
        }
    }
}

fn bare(bed: &Bed) -> Result<Running> {
    let stop = Arc::new(AtomicBool::new(false));
    let (ready, is_ready) = mpsc::channel();
    let (macs, middle, stopped) = (bed.macs()?, bed.middle.clone(), stop.clone());
    let thread = std::thread::spawn(move || {
        middle.run(|| {
            pin(0);
            go_first();
            forward(&macs, &ready, &stopped)
        })?
    });
    // Who fails hangs up without a word; the error comes when it is joined.
    if is_ready.recv_timeout(PATIENCE).is_err() {
        stop.store(true, Ordering::Release);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        bail!("the bare forwarder did not start within {PATIENCE:?}");
    }
    Ok(Running::Bare { thread, stop })
}

/// The least that a program with two AF_XDP sockets can do: what comes in at one goes out at the
/// other with new Ethernet addresses. It sleeps like a worker of the director when there is
/// nothing.
fn forward(macs: &Macs, ready: &mpsc::Sender<()>, stop: &AtomicBool) -> Result<()> {
    let mut pool = Pool::new(8 * RING, 2048)?;
    let (mut left, mut right) = (open(&mut pool, "eth0")?, open(&mut pool, "eth1")?);
    let _programs = [
        redirect("eth0", xdp::PASS, Some(left.fd()))?,
        redirect("eth1", xdp::PASS, Some(right.fd()))?,
    ];
    let headers =
        [[macs.sink.0, macs.middle[1].0].concat(), [macs.source.0, macs.middle[0].0].concat()];
    let mut frames: Vec<Frame> = Vec::with_capacity(64);
    let _ = ready.send(());
    while !stop.load(Ordering::Acquire) {
        let mut received = 0;
        for (way, header) in headers.iter().enumerate() {
            let (from, to) =
                if way == 0 { (&mut left, &mut right) } else { (&mut right, &mut left) };
            received += from.receive(&mut pool, &mut frames, 64)?;
            for frame in &mut frames {
                if let Some(addresses) = pool.bytes_mut(frame).get_mut(..12) {
                    addresses.copy_from_slice(header);
                }
            }
            if !frames.is_empty() {
                to.transmit(&mut pool, &mut frames)?;
            }
        }
        left.flush(&mut pool)?;
        right.flush(&mut pool)?;
        if received == 0 {
            let mut ready = [left.fd(), right.fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            let _ = poll(&mut ready, PollTimeout::from(100_u8));
        }
    }
    Ok(())
}

fn open(pool: &mut Pool, name: &str) -> Result<XskPort> {
    let mut options = XskOptions::new(name, 0, Bind::Copy);
    options.rings = Rings::of(RING);
    Ok(XskPort::open(pool, options)?)
}

/// An XDP program on an interface: every packet to the socket of its queue; without one, `otherwise`.
pub(super) struct Redirect {
    sockets: Map,
    _link: Link,
}

/// Attaches one, natively, in the namespace of the calling thread.
pub(super) fn redirect(
    name: &str,
    otherwise: i32,
    socket: Option<BorrowedFd<'_>>,
) -> Result<Redirect> {
    let sockets = Map::of_sockets("bench_sockets", 1)?;
    let mut asm = Assembler::new();
    asm.load(Size::Word, Register::R2, Register::R1, xdp::context::RX_QUEUE_INDEX);
    asm.load_map(Register::R1, &sockets);
    asm.mov(Register::R3, otherwise);
    asm.call(Helper::RedirectMap);
    asm.exit();
    let program = Program::load(ProgramType::Xdp, "bench_redirect", &asm.assemble()?)?;
    let link = Link::attach_xdp(&program, interface::index(name)?, XdpMode::Native)?;
    let redirect = Redirect { sockets, _link: link };
    if let Some(socket) = socket {
        redirect.set(socket)?;
    }
    Ok(redirect)
}

impl Redirect {
    /// From now on packets go to this socket.
    pub(super) fn set(&self, socket: BorrowedFd<'_>) -> Result<()> {
        Ok(self.sockets.set_socket(0, socket)?)
    }
}
