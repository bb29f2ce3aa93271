//! What decides about packets, in either mode.

use std::time::Duration;

use director::config::{Config, Mode};
use director::world::Assumed;
use forwarding::Headers;

use super::fate::Fate;
use super::hosts::Hosts;
use super::pipeline::{HEADROOM, Pipeline, Room, Sink};

/// What decides.
pub(super) enum Decider {
    Director(Box<Pipeline>),
    Cluster(Box<Hosts>),
}

impl Decider {
    pub(super) fn new(config: &Config, mtu: u32) -> Result<Decider, String> {
        match config.mode {
            Mode::Dispatcher => {
                Pipeline::new(config, mtu).map(|it| Decider::Director(Box::new(it)))
            }
            Mode::Nlb => Hosts::new(config).map(|it| Decider::Cluster(Box::new(it))),
        }
        .map_err(|error| error.to_string())
    }

    /// To whom frames go whose Ethernet header was not captured.
    pub(super) fn mac(&self) -> [u8; 6] {
        match self {
            Decider::Director(_) => Assumed::MAC,
            Decider::Cluster(hosts) => hosts.mac(),
        }
    }

    pub(super) fn judge(
        &mut self,
        now: Duration,
        room: Room<'_>,
        headers: Option<&Headers>,
        out: Option<&mut Sink<'_>>,
    ) -> Fate {
        match self {
            Decider::Director(pipeline) => pipeline.judge(now, room, headers, out),
            Decider::Cluster(hosts) => {
                hosts.judge(&room.chunk[HEADROOM..HEADROOM + room.length], headers)
            }
        }
    }
}
