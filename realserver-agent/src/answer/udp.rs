//! Datagrams: one probe each, one answer each, from the address that was asked.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use nix::cmsg_space;
use nix::libc::{in_pktinfo, in6_pktinfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::{Answering, Over, ROOM};

/// Datagrams taken before others have their turn.
const BATCH: usize = 64;

/// Which address of ours was asked.
#[derive(Clone, Copy)]
enum Asked {
    V4(in_pktinfo),
    V6(in6_pktinfo),
}

/// Answers until the socket breaks.
///
/// # Errors
/// When it breaks.
pub async fn serve(socket: &UdpSocket, answering: &Answering) -> io::Result<()> {
    loop {
        socket.readable().await?;
        for _ in 0..BATCH {
            match socket.try_io(Interest::READABLE, || one(socket.as_raw_fd(), answering)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        tokio::task::yield_now().await;
    }
}

fn one(socket: i32, answering: &Answering) -> io::Result<()> {
    // One byte more than a message has: what is longer is not taken for one that is cut.
    let mut bytes = [0; ROOM];
    let mut control = cmsg_space!(in6_pktinfo);
    let mut into = [IoSliceMut::new(&mut bytes)];
    let received =
        recvmsg::<SockaddrStorage>(socket, &mut into, Some(&mut control), MsgFlags::MSG_DONTWAIT)?;
    let (length, source) = (received.bytes, received.address);
    let asked = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::Ipv4PacketInfo(asked) => Some(Asked::V4(asked)),
        ControlMessageOwned::Ipv6PacketInfo(asked) => Some(Asked::V6(asked)),
        _ => None,
    });
    let Some(source) = source else { return Ok(()) };
    let Some(address) = address(&source) else { return Ok(()) };
    let Ok(answer) = answering.message(&bytes[..length], address.ip(), Over::Udp) else {
        return Ok(());
    };
    let info;
    let control: &[ControlMessage<'_>] = match asked {
        Some(Asked::V4(mut asked)) => {
            asked.ipi_ifindex = 0;
            info = [ControlMessage::Ipv4PacketInfo(&asked)];
            return send(socket, &answer, &info, &source);
        }
        Some(Asked::V6(asked)) => {
            info = [ControlMessage::Ipv6PacketInfo(&asked)];
            return send(socket, &answer, &info, &source);
        }
        None => &[],
    };
    send(socket, &answer, control, &source)
}

/// An answer that cannot be sent is lost, as one on the way is: the director asks again.
fn send(
    socket: i32,
    answer: &[u8],
    control: &[ControlMessage<'_>],
    to: &SockaddrStorage,
) -> io::Result<()> {
    let from = [IoSlice::new(answer)];
    if let Err(error) = sendmsg(socket, &from, control, MsgFlags::MSG_DONTWAIT, Some(to)) {
        tracing::debug!("an answer was not sent: {error}");
    }
    Ok(())
}

fn address(source: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = source.as_sockaddr_in().map(|it| SocketAddr::new(IpAddr::V4(it.ip()), it.port()));
    v4.or_else(|| {
        source.as_sockaddr_in6().map(|it| SocketAddr::new(IpAddr::V6(it.ip()), it.port()))
    })
}
