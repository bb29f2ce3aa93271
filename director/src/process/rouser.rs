//! Rouses silent clients of servers that have failed: each is sent a segment that it must answer, and
//! what it answers comes to a worker, which resets the connection.
//!
//! Sent from the control plane, through the kernel's routes. Whom it does not reach, or where it cannot
//! be sent at all, hears of it when it next sends something.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use forwarding::rouse;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, sendto,
    socket,
};

use crate::table::Silent;

/// How often some are roused.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// How many clients then: 50,000 in a second.
pub(super) const AT_ONCE: usize = 5000;

/// See the module. Sockets are opened when there is somebody to rouse.
#[derive(Default)]
pub(super) struct Rouser {
    v4: Option<OwnedFd>,
    v6: Option<OwnedFd>,
    seed: RandomState,
    count: u64,
}

impl Rouser {
    /// Rouses them all, as far as that is possible.
    ///
    /// # Errors
    /// When it cannot be sent at all: no socket.
    pub(super) fn rouse(&mut self, silent: &[Silent]) -> io::Result<()> {
        let mut packet = [0; rouse::LONGEST];
        for Silent { client, virtual_address } in silent {
            let number = self.number();
            let made = rouse::segment(&mut packet, *virtual_address, *client, number);
            let Some(packet) = made.and_then(|len| packet.get(..len)) else { continue };
            // Who cannot be reached now, for want of a route or of room, is not roused.
            let _ = self.send(packet, *client)?;
        }
        Ok(())
    }

    /// Sends an IP packet. The outer error is that there is no way to send any.
    fn send(&mut self, packet: &[u8], to: SocketAddr) -> io::Result<nix::Result<usize>> {
        let flags = MsgFlags::MSG_DONTWAIT;
        Ok(match to {
            SocketAddr::V4(to) => {
                let fd = opened(&mut self.v4, AddressFamily::Inet)?.as_raw_fd();
                sendto(fd, packet, &SockaddrIn::from(SocketAddrV4::new(*to.ip(), 0)), flags)
            }
            SocketAddr::V6(to) => {
                let fd = opened(&mut self.v6, AddressFamily::Inet6)?.as_raw_fd();
                // Of a raw socket the port must be 0.
                let to = SocketAddrV6::new(*to.ip(), 0, 0, to.scope_id());
                sendto(fd, packet, &SockaddrIn6::from(to), flags)
            }
        })
    }

    /// A number that nobody can foresee.
    fn number(&mut self) -> u32 {
        self.count += 1;
        let mut hasher = self.seed.build_hasher();
        hasher.write_u64(self.count);
        hasher.finish() as u32
    }
}

/// A socket for whole IP packets.
fn opened(place: &mut Option<OwnedFd>, family: AddressFamily) -> io::Result<&OwnedFd> {
    let fd = match place.take() {
        Some(fd) => fd,
        // It never receives anything.
        None => socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw)?,
    };
    Ok(place.insert(fd))
}
