//! A program at work on an interface, and what it takes to put another in its place: the rules of
//! firewall marks are part of the programs.

use anyhow::{Context, Result};
use netio::bpf::{Link, Map, ProgramType, XdpMode};

use super::Card;
use crate::steer::{Mark, Steering};

/// See the module. Dropping it takes the program off the interface.
pub(super) struct Attachment {
    link: Link,
    /// Of the steering program; the guard has none.
    sockets: Option<Map>,
    mark: Option<Mark>,
}

impl Attachment {
    /// Attaches the steering program to a card.
    pub(super) fn steering(
        steering: &Steering,
        card: &Card,
        mode: XdpMode,
        mark: Option<Mark>,
    ) -> Result<Attachment> {
        let sockets = Map::of_sockets("steer_sockets", card.queues)?;
        let program = steering.load(ProgramType::Xdp, &sockets, mark)?;
        let link = Link::attach_xdp(&program, card.index, mode)?;
        Ok(Attachment { link, sockets: Some(sockets), mark })
    }

    /// Attaches the guard to a card.
    pub(super) fn guard(steering: &Steering, card: &Card, mark: Mark) -> Result<Attachment> {
        let guard = steering.load_guard(Some(mark))?;
        let link = Link::attach_tcx_ingress(&guard, card.index)
            .context("AF_PACKET needs a tcx program that keeps the kernel from answering too")?;
        Ok(Attachment { link, sockets: None, mark: Some(mark) })
    }

    /// The sockets that the steering program gives packets to.
    pub(super) fn sockets(&self) -> Option<&Map> {
        self.sockets.as_ref()
    }

    /// Puts the program that `steering` now loads in place of the present one. No packet meets
    /// neither.
    pub(super) fn reload(&mut self, steering: &Steering) -> Result<()> {
        let program = match &self.sockets {
            Some(sockets) => steering.load(ProgramType::Xdp, sockets, self.mark)?,
            None => steering.load_guard(self.mark)?,
        };
        Ok(self.link.update(&program)?)
    }
}
