//! The network card of a check's own stack: packets that have come, and packets to be sent.

use std::collections::VecDeque;

use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::time::Instant;

/// Packets that may wait on either side.
const MOST: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Device {
    mtu: usize,
    arrived: VecDeque<Vec<u8>>,
    departing: VecDeque<Vec<u8>>,
}

impl Device {
    /// One that sends IP packets of at most `mtu` bytes; it receives any.
    pub(super) fn new(mtu: usize) -> Device {
        Device { mtu, arrived: VecDeque::new(), departing: VecDeque::new() }
    }

    /// An IP packet has come. One too many is lost.
    pub(super) fn arrive(&mut self, packet: Vec<u8>) {
        if self.arrived.len() < MOST {
            self.arrived.push_back(packet);
        }
    }

    /// The next IP packet to be sent.
    pub(super) fn depart(&mut self) -> Option<Vec<u8>> {
        self.departing.pop_front()
    }
}

impl phy::Device for Device {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Departing<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Departing<'_>)> {
        let packet = self.arrived.pop_front()?;
        Some((Arrived(packet), Departing(&mut self.departing)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Departing<'_>> {
        (self.departing.len() < MOST).then_some(Departing(&mut self.departing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

/// A packet that has come.
pub(super) struct Arrived(Vec<u8>);

impl phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, look: F) -> R {
        look(&self.0)
    }
}

/// Room for a packet to be sent.
pub(super) struct Departing<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::TxToken for Departing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = vec![0; length];
        let made = write(&mut packet);
        self.0.push_back(packet);
        made
    }
}
