//! The rungs: what each way of taking packets needs.

use std::fmt;

use anyhow::{Result, bail};
use netio::Pool;
use netio::bpf::XdpMode;
use netio::{Bind, Rings, XskOptions, XskPort};

use super::Card;
use super::attachment::Attachment;
use crate::config::Config;
use crate::steer::{Mark, Steering};

/// One way, from best to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    ZeroCopy,
    Copy,
    Generic,
    Packet,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::ZeroCopy => "AF_XDP zero-copy",
            Step::Copy => "AF_XDP copy",
            Step::Generic => "AF_XDP generic",
            Step::Packet => "AF_PACKET",
        })
    }
}

/// The smallest and the largest chunk of packet memory.
const SMALLEST_CHUNK: u32 = 2048;
const LARGEST_CHUNK: u32 = 65_536;

/// What XDP leaves free before a frame, and what Ethernet with a VLAN tag adds to the MTU.
const BEFORE: u32 = netio::HEADROOM + 18;

impl Step {
    /// Whether the program on the interface sees frames that we inject.
    pub(super) fn sees_injected(self) -> bool {
        self == Step::Generic
    }

    /// The chunks that hold a frame of `mtu`: AF_XDP takes chunks of a page at most.
    pub(super) fn chunk_size(self, mtu: u32) -> Result<u32> {
        const PAGE: u32 = 4096;
        let largest = if self == Step::Packet { LARGEST_CHUNK } else { PAGE };
        let needed = mtu.saturating_add(BEFORE).clamp(SMALLEST_CHUNK, u32::MAX / 2);
        let chunk = needed.next_power_of_two();
        if chunk <= largest {
            return Ok(chunk);
        }
        let most = largest - BEFORE;
        match self {
            Step::Packet => bail!("MTU {mtu} is above {most}, the most there is: lower it"),
            _ => bail!(
                "MTU {mtu} is above {most}, which is all that a page holds: lower it with `ip \
                 link set`, or write io = \"packet\""
            ),
        }
    }

    /// Attaches the steering program to a card.
    pub(super) fn attach(
        self,
        steering: &Steering,
        card: &Card,
        mark: Option<Mark>,
    ) -> Result<Attachment> {
        let mode = match self {
            Step::Generic => XdpMode::Generic,
            _ => XdpMode::Native,
        };
        Attachment::steering(steering, card, mode, mark)
    }

    /// How its sockets are bound.
    pub(super) fn bind(self) -> Bind {
        match self {
            Step::ZeroCopy => Bind::ZeroCopy,
            _ => Bind::Copy,
        }
    }

    /// Opens the socket of one queue.
    pub(super) fn open_socket(
        self,
        pool: &mut Pool,
        config: &Config,
        card: &Card,
        queue: u32,
    ) -> Result<XskPort> {
        let mut options = XskOptions::new(&card.name, queue, self.bind());
        options.rings = rings(config);
        options.busy_poll = config.busy_poll.unwrap_or(self == Step::ZeroCopy);
        Ok(XskPort::open(pool, options)?)
    }
}

/// The sizes of rings.
pub(super) fn rings(config: &Config) -> Rings {
    Rings { rx: config.rx_ring_size, tx: config.tx_ring_size }
}

/// Which ways could not be taken, and why. What keeps several from being taken is said once.
#[derive(Debug, Default)]
pub(super) struct Refusals(Vec<(String, String)>);

impl Refusals {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, step: Step, error: &anyhow::Error) {
        let reason = format!("{error:#}");
        match self.0.last_mut() {
            Some((steps, same)) if *same == reason => {
                steps.push_str(", ");
                steps.push_str(&step.to_string());
            }
            _ => self.0.push((step.to_string(), reason)),
        }
    }

    pub(super) fn joined(&self, between: &str) -> String {
        let lines: Vec<_> =
            self.0.iter().map(|(steps, reason)| format!("{steps}: {reason}")).collect();
        lines.join(between)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_holds_a_frame_of_the_mtu() {
        for (step, mtu, chunk) in [
            (Step::Copy, 1500, 2048),
            (Step::Copy, 1774, 2048),
            (Step::Generic, 1775, 4096),
            (Step::ZeroCopy, 3822, 4096),
            (Step::Packet, 1500, 2048),
            (Step::Packet, 9000, 16384),
            (Step::Packet, 65262, 65536),
        ] {
            assert_eq!(step.chunk_size(mtu).unwrap(), chunk, "{step} {mtu}");
        }
        for (step, mtu) in [(Step::Copy, 3823), (Step::Packet, 65263), (Step::Packet, u32::MAX)] {
            let refused = step.chunk_size(mtu).unwrap_err().to_string();
            assert!(refused.contains("lower it"), "{refused}");
        }
    }

    #[test]
    fn one_reason_for_several_ways_is_told_once() {
        let mut refusals = Refusals::default();
        refusals.add(Step::Copy, &anyhow::anyhow!("forbidden"));
        refusals.add(Step::Generic, &anyhow::anyhow!("forbidden"));
        refusals.add(Step::Packet, &anyhow::anyhow!("busy"));
        assert_eq!(
            refusals.joined("; "),
            "AF_XDP copy, AF_XDP generic: forbidden; AF_PACKET: busy"
        );
    }
}
