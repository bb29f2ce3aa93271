//! One datagram out, and the wait for one that answers it.

use std::io;
use std::net::SocketAddr;

use tokio::net::UdpSocket;

use super::{Deadline, Way, trouble};
use crate::health::outcome::Outcome;

/// The longest datagram.
const LONGEST: usize = 65_535;

/// Sends `payload`, and gives each datagram that comes back to `accept` until that makes something of
/// one. `None` when that is not so before the deadline.
pub(super) async fn exchange<T>(
    way: &Way<'_>,
    payload: &[u8],
    deadline: Deadline,
    accept: impl FnMut(&[u8]) -> Option<T>,
) -> Result<Option<T>, Outcome> {
    match way {
        Way::Kernel(address) => by_kernel(*address, payload, deadline, accept).await,
        Way::Path(path, passage) => path.exchange(passage, payload, deadline, accept).await,
    }
}

/// The socket is connected: datagrams of others do not reach it, and it hears that a port is closed.
async fn by_kernel<T>(
    address: SocketAddr,
    payload: &[u8],
    deadline: Deadline,
    mut accept: impl FnMut(&[u8]) -> Option<T>,
) -> Result<Option<T>, Outcome> {
    let local: SocketAddr = match address {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let sending = |error| trouble::outcome("send", &error);
    let socket = UdpSocket::bind(local).await.map_err(sending)?;
    socket.connect(address).await.map_err(sending)?;
    deadline.limit("send", socket.send(payload)).await?.map_err(sending)?;
    let mut buffer = vec![0; LONGEST];
    let answered = deadline.wait(async {
        loop {
            let length = socket.recv(&mut buffer).await?;
            if let Some(made) = accept(&buffer[..length]) {
                return Ok(made);
            }
        }
    });
    answered.await.transpose().map_err(|error: io::Error| trouble::outcome("answer", &error))
}
