//! Connections that a check opens.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};

use super::{Deadline, Way, trouble};
use crate::health::outcome::Outcome;

/// A connection, whichever way it goes.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a connection. One that is `fleeting` is to be dropped at once, and then taken back with RST.
pub(super) async fn connect(
    way: &Way<'_>,
    is_fleeting: bool,
    deadline: Deadline,
) -> Result<Box<dyn Stream>, Outcome> {
    match way {
        Way::Kernel(address) => Ok(Box::new(by_kernel(*address, is_fleeting, deadline).await?)),
        Way::Path(path, passage) => Ok(Box::new(path.connect(passage, deadline).await?)),
    }
}

/// Opens a connection by the kernel's stack.
pub(super) async fn by_kernel(
    address: SocketAddr,
    is_fleeting: bool,
    deadline: Deadline,
) -> Result<TcpStream, Outcome> {
    const STEP: &str = "connect";
    let trouble = |error: std::io::Error| trouble::outcome(STEP, &error);
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
    .map_err(trouble)?;
    if is_fleeting {
        netio::silence::acknowledge_late(&socket).map_err(trouble)?;
        socket.set_zero_linger().map_err(trouble)?;
    }
    let connected = deadline.limit(STEP, socket.connect(address)).await?;
    connected.map_err(trouble)
}
