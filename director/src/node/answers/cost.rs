//! What the filter costs on this machine, measured: with a program of its own that hangs on no
//! interface, so that neither traffic nor counters notice.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use ::nlb::buckets::BucketSet;
use ::nlb::filter::{HostState, Policy};
use anyhow::{Context, Result};
use netio::bpf::TestContext;
use nix::time::{ClockId, clock_gettime};

use super::explain;
use crate::control::nlb::views::CapacityView;
use crate::control::nlb::{FilterQuestion, FlowProtocol};
use crate::filter::{Capacity, Filter};

/// Each figure is the least of so many measurements: what else the machine does only adds to it.
const MEASUREMENTS: u32 = 10;
/// Runs of the program in a measurement; some 2 ms.
const RUNS: u32 = 10_000;
/// Datagrams through loopback in a measurement; some 5 ms.
const DATAGRAMS: u32 = 1_000;

/// Measures, under the rules and addresses of `policy`. Takes a tenth of a second.
///
/// # Errors
/// When the kernel refuses.
pub(in crate::node) fn capacity(policy: &Policy) -> Result<CapacityView> {
    let with = |serving: &BucketSet| {
        let mut policy = policy.clone();
        policy.state = HostState::Active;
        for slot in policy.slots.iter_mut() {
            slot.serving = serving.clone();
            slot.tainted = BucketSet::EMPTY;
        }
        policy
    };
    let question = FilterQuestion {
        protocol: FlowProtocol::Tcp,
        client: client(policy.primary),
        client_port: 40000,
        vip: policy.primary,
        port: policy.rules.entries().first().map_or(80, |entry| entry.first_port),
        flags: vec![],
    };
    let frame = explain::frame(&question, policy.cluster_mac);
    let time = |serving: &BucketSet| -> Result<f64> {
        let filter = Filter::open(&with(serving), Capacity { flows: 1024, fragments: 1024 })?;
        let repeat = TestContext { repeat: RUNS, ..TestContext::default() };
        least(RUNS, || {
            filter.program().test_run(&frame, &repeat)?;
            Ok(())
        })
    };
    Ok(CapacityView {
        dropped: time(&BucketSet::EMPTY)?,
        passed: time(&BucketSet::ALL)?,
        served: served()?,
    })
}

/// Any client of the address's family.
fn client(vip: IpAddr) -> IpAddr {
    match vip {
        IpAddr::V4(_) => IpAddr::from([203, 0, 113, 7]),
        IpAddr::V6(_) => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 7]),
    }
}

/// Nanoseconds of processor for one datagram up through the stack and one down.
fn served() -> Result<f64> {
    let socket = || -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        Ok(socket)
    };
    let one = socket().context("a socket on loopback")?;
    one.connect(one.local_addr()?)?;
    let mut buffer = [0; 64];
    least(DATAGRAMS, || {
        for _ in 0..DATAGRAMS {
            one.send(&[0; 40])?;
            one.recv(&mut buffer)?;
        }
        Ok(())
    })
}

/// The least nanoseconds of processor for one of `count` things that `work` does at a time.
fn least(count: u32, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut least = Duration::MAX;
    for _ in 0..MEASUREMENTS {
        let before = used()?;
        work()?;
        least = least.min(used()?.saturating_sub(before));
    }
    Ok(least.as_nanos() as f64 / f64::from(count))
}

/// Processor time of this thread.
fn used() -> Result<Duration> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?))
}
