//! From options to a bound socket with its rings, or an error that says what to do.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::ledger::Ledger;
use super::metadata::TxFormat;
use super::ring::{Completion, Fill, Rx, Tx};
use super::umem::{self, Umem};
use super::{Bind, Rings, XskOptions, socket};
use crate::{OpenError, Pool, interface};

/// A queue is released a little after its socket is closed (5 to 23 ms were measured): between
/// tries to bind we wait this long, then twice as long, and so on...
const FIRST_PAUSE: Duration = Duration::from_millis(4);
/// ...this many times: about a second in all.
const PAUSES: u32 = 8;

/// Frames that one wakeup may send in copy mode, where the kernel lets us choose.
const BUDGET: u32 = 256;

/// Packets that one busy poll may take from the card: a batch of the worker's.
const POLL_BUDGET: i32 = 64;

/// Everything that a bound socket consists of.
///
/// The order of the fields is the order of their end: rings are unmapped before the socket is
/// closed, because a mapped ring keeps the socket bound.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) fill: Fill,
    pub(super) rx: Rx,
    pub(super) tx: Tx,
    pub(super) completion: Completion,
    pub(super) socket: Arc<OwnedFd>,
    pub(super) ledger: Ledger,
    pub(super) format: TxFormat,
    pub(super) interface: u32,
    /// Whether wakeups do the work of the card's interrupt.
    pub(super) busy_polls: bool,
}

impl Opened {
    /// Opens and binds a socket, and has the fill ring full before anything can arrive (drivers
    /// take chunks when they are bound, and some never come back for more).
    pub(super) fn open(pool: &mut Pool, options: &XskOptions) -> Result<Opened, OpenError> {
        let index = check(pool, options)?;
        let name = options.interface.as_str();
        let socket = socket::open()
            .map_err(|error| OpenError::of_socket("AF_XDP", "CONFIG_XDP_SOCKETS", name, error))?;
        let socket = Arc::new(socket);
        let fd = socket.as_fd();
        let umem = Umem::of(pool, fd).map_err(|source| match source.raw_os_error() {
            Some(libc::ENOBUFS) => OpenError::MemoryLimit {
                needed: pool.capacity() * pool.chunk_size(),
                limit: umem::memory_limit(),
            },
            _ => OpenError::at("registering the UMEM", name)(source),
        })?;
        if let Some((_, shared)) = umem.shared
            && shared != options.mode
        {
            return Err(OpenError::ModeMismatch {
                interface: name.to_owned(),
                queue: options.queue,
                asked: options.mode,
                shared,
            });
        }
        let (fill, rx, tx, completion) =
            rings(fd, options.rings).map_err(OpenError::at("making the rings", name))?;
        let mut opened = Opened {
            fill,
            rx,
            tx,
            completion,
            ledger: Ledger::new(pool.capacity()),
            format: TxFormat {
                reserve: umem.metadata,
                completes: umem.metadata && options.mode == Bind::Copy,
            },
            interface: index,
            socket: Arc::clone(&socket),
            busy_polls: false,
        };
        opened.refill(pool, options.rings.rx as usize);
        if let Err(error) = bind(fd, index, options, &umem) {
            opened.close(pool, true);
            return Err(error);
        }
        socket::raise_budget(fd, options.rings.tx.min(BUDGET));
        opened.busy_polls = options.busy_poll && socket::prefer_busy_poll(fd, POLL_BUDGET).is_ok();
        pool.sharers.add(&socket, index, options.queue, options.mode);
        Ok(opened)
    }

    /// Puts empty chunks into the fill ring until `count` have been put or there are no more.
    pub(super) fn refill(&mut self, pool: &mut Pool, count: usize) -> usize {
        let mut put = 0;
        while put < count && self.fill.room() > 0 {
            let Some(frame) = pool.allocate() else { break };
            let chunk = frame.into_chunk();
            self.ledger.give(chunk);
            let pushed = self.fill.push(u64::from(chunk) * pool.chunk_size() as u64);
            debug_assert!(pushed, "there was room");
            put += 1;
        }
        if put > 0 {
            self.fill.publish();
        }
        put
    }

    /// Closes the socket, and then gives the chunks that it had back to the pool, if `idle` says
    /// that the kernel cannot write them any more.
    pub(super) fn close(self, pool: &mut Pool, idle: bool) {
        let Opened { fill, rx, tx, completion, socket, ledger, .. } = self;
        drop((fill, rx, tx, completion));
        drop(socket);
        if idle {
            for chunk in ledger.chunks() {
                if let Some(frame) = pool.adopt(chunk, 0, 0) {
                    pool.release(frame);
                }
            }
        }
    }
}

/// Refuses what cannot work before anything is opened, and finds the interface's index.
fn check(pool: &Pool, options: &XskOptions) -> Result<u32, OpenError> {
    for (ring, size) in [("RX", options.rings.rx), ("TX", options.rings.tx)] {
        if !size.is_power_of_two() || !(64..=32768).contains(&size) {
            return Err(OpenError::RingSize { ring, size });
        }
    }
    if pool.chunk_size() > umem::page_size() {
        return Err(OpenError::ChunkSize { chunk_size: pool.chunk_size() });
    }
    let index = interface::index(&options.interface)?;
    let queues = interface::queues(&options.interface)?;
    let queues = queues.receive.max(queues.transmit);
    if options.queue >= queues {
        return Err(OpenError::NoSuchQueue {
            interface: options.interface.clone(),
            queue: options.queue,
            queues,
        });
    }
    // The kernel would say EINVAL.
    if pool.sharers.have(index, options.queue) {
        return Err(busy(options));
    }
    let (needed, available) = (options.rings.rx as usize, pool.available());
    if available < needed {
        return Err(OpenError::PoolExhausted { needed, available });
    }
    Ok(index)
}

fn rings(fd: BorrowedFd<'_>, sizes: Rings) -> io::Result<(Fill, Rx, Tx, Completion)> {
    Fill::set_size(fd, sizes.fill())?;
    Completion::set_size(fd, sizes.completion())?;
    Rx::set_size(fd, sizes.rx)?;
    Tx::set_size(fd, sizes.tx)?;
    let offsets = socket::offsets(fd)?;
    Ok((
        Fill::map(fd, &offsets, sizes.fill())?,
        Rx::map(fd, &offsets, sizes.rx)?,
        Tx::map(fd, &offsets, sizes.tx)?,
        Completion::map(fd, &offsets, sizes.completion())?,
    ))
}

fn bind(
    fd: BorrowedFd<'_>,
    index: u32,
    options: &XskOptions,
    umem: &Umem,
) -> Result<(), OpenError> {
    let shared = umem.shared.as_ref().map(|(socket, _)| socket.as_fd());
    let flags = match (shared, options.mode) {
        // The mode and the wakeups are those of the socket shared with.
        (Some(_), _) => libc::XDP_SHARED_UMEM,
        (None, Bind::ZeroCopy) => libc::XDP_ZEROCOPY | libc::XDP_USE_NEED_WAKEUP,
        (None, Bind::Copy) => libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
    };
    let mut pauses = 0;
    let refused = loop {
        match socket::bind(fd, index, options.queue, flags, shared) {
            Ok(()) => break None,
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && pauses < PAUSES => {
                thread::sleep(FIRST_PAUSE * (1 << pauses));
                pauses += 1;
            }
            Err(error) => break Some(error),
        }
    };
    match refused {
        None => {}
        Some(error) => match error.raw_os_error() {
            Some(libc::EBUSY) => return Err(busy(options)),
            Some(libc::EOPNOTSUPP) if options.mode == Bind::ZeroCopy => {
                return Err(OpenError::ZeroCopyUnsupported {
                    interface: options.interface.clone(),
                    queue: options.queue,
                });
            }
            _ => return Err(OpenError::at("bind", &options.interface)(error)),
        },
    }
    Ok(())
}

fn busy(options: &XskOptions) -> OpenError {
    OpenError::Busy { interface: options.interface.clone(), queue: options.queue }
}
