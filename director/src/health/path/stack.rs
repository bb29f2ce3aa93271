//! A TCP/IP stack with one socket, for one check.

use std::future::pending;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::AnySocket;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::device::Device;
use super::{Exit, random};

/// What a check talks between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// Ours.
    pub(super) local: SocketAddr,
    /// The VIP's.
    pub(super) vip: SocketAddr,
    /// The longest packet that may be sent, bytes.
    pub(super) mtu: usize,
}

/// See the module.
pub(super) struct Stack {
    interface: Interface,
    device: Device,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    since: tokio::time::Instant,
}

impl Stack {
    /// A stack with this socket.
    pub(super) fn new<T: AnySocket<'static>>(ends: &Ends, socket: T) -> Stack {
        let mut device = Device::new(ends.mtu);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = random();
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        let length = if ends.local.is_ipv4() { 32 } else { 128 };
        let address = IpCidr::new(address(ends.local.ip()), length);
        // There is room for two, and this is the first.
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(address);
        });
        // Everything leaves by the one exit; which gateway that is does not matter.
        let _ = match ends.local.ip() {
            IpAddr::V4(own) => interface.routes_mut().add_default_ipv4_route(own).map(drop),
            IpAddr::V6(own) => interface.routes_mut().add_default_ipv6_route(own).map(drop),
        };
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        Stack { interface, device, sockets, handle, since: tokio::time::Instant::now() }
    }

    /// The socket, and what some of its calls want.
    pub(super) fn socket<T: AnySocket<'static>>(
        &mut self,
    ) -> (&mut T, &mut smoltcp::iface::Context) {
        (self.sockets.get_mut(self.handle), self.interface.context())
    }

    /// An IP packet has come.
    pub(super) fn arrive(&mut self, packet: Vec<u8>) {
        self.device.arrive(packet);
    }

    /// Does what is due: handles what has come, and sends what is to be sent.
    pub(super) fn turn(&mut self, exit: &mut Exit) -> std::io::Result<()> {
        let now = self.now();
        self.interface.poll(now, &mut self.device, &mut self.sockets);
        while let Some(packet) = self.device.depart() {
            exit.send(&packet)?;
        }
        Ok(())
    }

    /// Waits until something is due by time alone.
    pub(super) async fn due(&mut self) {
        let now = self.now();
        match self.interface.poll_delay(now, &self.sockets) {
            // At once would be to spin where a socket waits for room that only we can make.
            Some(delay) => {
                let delay = Duration::from(delay).max(Duration::from_millis(1));
                tokio::time::sleep(delay).await;
            }
            None => pending().await,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(i64::try_from(self.since.elapsed().as_micros()).unwrap_or(i64::MAX))
    }
}

/// An address in the stack's words.
pub(super) fn address(address: IpAddr) -> IpAddress {
    address.into()
}
