//! A datagram to the VIP, and those that come back.

use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};

use super::reservation::Arrival;
use super::stack::{Stack, address};
use super::{Deadline, Ends, Lease, Outcome, trouble};

/// The longest datagram, and the room for those that have come.
const ROOM: usize = 64 << 10;
/// Datagrams that may wait.
const WAITING: usize = 16;

/// See [`Path::exchange`](super::Path::exchange).
pub(super) async fn exchange<T>(
    lease: Lease,
    payload: &[u8],
    deadline: Deadline,
    mut accept: impl FnMut(&[u8]) -> Option<T>,
) -> Result<Option<T>, Outcome> {
    let Lease { ends, mut exit, mut reservation } = lease;
    let Ends { local, vip, mtu } = ends;
    let headers = if vip.is_ipv4() { 20 + 8 } else { 40 + 8 };
    if payload.len() + headers > mtu {
        let most = mtu.saturating_sub(headers);
        return Err(Outcome::Unable(format!("what is sent is longer than {most} bytes")));
    }
    let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; WAITING], vec![0; ROOM]);
    let mut stack = Stack::new(&ends, Socket::new(buffer(), buffer()));
    let (socket, _) = stack.socket::<Socket<'_>>();
    socket
        .bind((address(local.ip()), local.port()))
        .map_err(|error| Outcome::Unable(format!("send: {error}")))?;
    socket
        .send_slice(payload, (address(vip.ip()), vip.port()))
        .map_err(|error| Outcome::Unable(format!("send: {error}")))?;
    let from = (address(vip.ip()), vip.port()).into();
    let work = async {
        loop {
            stack.turn(&mut exit).map_err(|error| trouble::outcome("send", &error))?;
            let (socket, _) = stack.socket::<Socket<'_>>();
            while let Ok((datagram, about)) = socket.recv() {
                if about.endpoint == from
                    && let Some(made) = accept(datagram)
                {
                    return Ok(made);
                }
            }
            tokio::select! {
                arrival = reservation.receive() => match arrival {
                    Arrival::Packet(packet) => stack.arrive(packet),
                    Arrival::Refused(why) => return Err(Outcome::Failed(format!("answer: {why}"))),
                },
                () = stack.due() => {}
            }
        }
    };
    deadline.wait(work).await.transpose()
}
