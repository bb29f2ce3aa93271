//! The rungs: what each way of taking packets needs.

use std::fmt;

use anyhow::{Result, bail};
use netio::Pool;
use netio::bpf::{Link, Map, ProgramType, XdpMode};
use netio::{Bind, XskOptions, XskPort};

use super::Card;
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

/// What XDP leaves free before a frame, and what Ethernet with a VLAN tag adds to the MTU.
const BEFORE: u32 = netio::HEADROOM + 18;

impl Step {
    /// Whether the program on the interface sees frames that we inject.
    pub(super) fn sees_injected(self) -> bool {
        self == Step::Generic
    }

    /// The chunks that hold a frame of `mtu`: AF_XDP takes chunks of a page at most.
    pub(super) fn chunk_size(self, mtu: u32) -> Result<u32> {
        match mtu + BEFORE {
            0..=2048 => Ok(2048),
            2049..=4096 => Ok(4096),
            _ => bail!("MTU {mtu} is above {}, which is all that a page holds", 4096 - BEFORE),
        }
    }

    /// Attaches the steering program to a card; returns it with the map for its sockets.
    pub(super) fn attach(
        self,
        steering: &Steering,
        card: &Card,
        mark: Option<Mark>,
    ) -> Result<(Link, Map)> {
        let mode = match self {
            Step::Generic => XdpMode::Generic,
            _ => XdpMode::Native,
        };
        let map = Map::of_sockets("steer_sockets", card.queues)?;
        let program = steering.load(ProgramType::Xdp, &map, mark)?;
        let link = Link::attach_xdp(&program, card.index, mode)?;
        Ok((link, map))
    }

    /// Opens the socket of one queue.
    pub(super) fn open_socket(
        self,
        pool: &mut Pool,
        config: &Config,
        card: &Card,
        queue: u32,
    ) -> Result<XskPort> {
        let mode = match self {
            Step::ZeroCopy => Bind::ZeroCopy,
            _ => Bind::Copy,
        };
        let mut options = XskOptions::new(&card.name, queue, mode);
        options.ring_size = config.ring_size;
        Ok(XskPort::open(pool, options)?)
    }
}
