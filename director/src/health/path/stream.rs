//! A TCP connection to the VIP: a task that carries bytes between a check and the stack.

use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::oneshot;

use super::reservation::Arrival;
use super::stack::{Stack, address};
use super::{Deadline, Ends, Exit, Lease, Outcome, Reservation, trouble};

/// Bytes that are under way, in each direction and on each side of the stack.
const ROOM: usize = 64 << 10;
/// Bytes that are carried at once.
const LOAD: usize = 16 << 10;

/// What is said when a connection cannot be opened.
const STEP: &str = "connect";

/// Opens a connection. The stream that is given belongs to a task that ends with it, and at the
/// deadline.
pub(super) async fn connect(lease: Lease, deadline: Deadline) -> Result<DuplexStream, Outcome> {
    let (ours, theirs) = tokio::io::duplex(ROOM);
    let (tell, told) = oneshot::channel();
    let carrier = Carrier::new(lease, theirs, tell)?;
    tokio::spawn(async move { deadline.wait(carrier.run()).await });
    let opened = deadline.limit(STEP, told).await?;
    // The task ends without a word at the deadline only.
    opened.unwrap_or_else(|_| Err(Outcome::Failed(format!("{STEP}: timed out"))))?;
    Ok(ours)
}

/// Carries bytes; dropped, it leaves with RST.
struct Carrier {
    stack: Stack,
    exit: Exit,
    reservation: Reservation,
    read: ReadHalf<DuplexStream>,
    /// `None` after the server's end.
    write: Option<WriteHalf<DuplexStream>>,
    /// Who waits for the connection to be open.
    tell: Option<oneshot::Sender<Result<(), Outcome>>>,
    /// From the check, not yet in the stack; `outgoing[sent..]`.
    outgoing: Vec<u8>,
    sent: usize,
    /// From the stack, not yet at the check.
    incoming: Vec<u8>,
    given: usize,
}

/// Why a carrier has nothing more to do.
struct Over;

impl Carrier {
    fn new(
        lease: Lease,
        stream: DuplexStream,
        tell: oneshot::Sender<Result<(), Outcome>>,
    ) -> Result<Carrier, Outcome> {
        let Lease { ends, exit, reservation } = lease;
        let Ends { local, vip, .. } = ends;
        let mut socket =
            Socket::new(SocketBuffer::new(vec![0; ROOM]), SocketBuffer::new(vec![0; ROOM]));
        // Requests are short, and the whole of one is to be sent at once.
        socket.set_nagle_enabled(false);
        socket.set_ack_delay(Some(Duration::from_millis(10)));
        let mut stack = Stack::new(&ends, socket);
        let (socket, context) = stack.socket::<Socket<'_>>();
        let (vip, local) = ((address(vip.ip()), vip.port()), (address(local.ip()), local.port()));
        socket
            .connect(context, vip, local)
            .map_err(|error| Outcome::Unable(format!("{STEP}: {error}")))?;
        let (read, write) = tokio::io::split(stream);
        Ok(Carrier {
            stack,
            exit,
            reservation,
            read,
            write: Some(write),
            tell: Some(tell),
            outgoing: Vec::new(),
            sent: 0,
            incoming: Vec::new(),
            given: 0,
        })
    }

    async fn run(mut self) {
        while let Ok(()) = self.step().await {}
    }

    /// What is to be done now, and the wait for a reason for the next.
    async fn step(&mut self) -> Result<(), Over> {
        self.turn()?;
        let has_ended = self.exchange()?;
        self.turn()?;
        if has_ended && let Some(mut write) = self.write.take() {
            write.shutdown().await.map_err(|_| Over)?;
        }
        let mut load = [0; LOAD];
        let is_open = self.tell.is_none();
        tokio::select! {
            arrival = self.reservation.receive() => match arrival {
                Arrival::Packet(packet) => self.stack.arrive(packet),
                Arrival::Refused(why) if !is_open => {
                    self.refuse(Outcome::Failed(format!("{STEP}: {why}")));
                    return Err(Over);
                }
                // As the kernel's stack does: what is open is not ended by a single error.
                Arrival::Refused(_) => {}
            },
            () = self.stack.due() => {}
            count = self.read.read(&mut load), if is_open && self.outgoing.is_empty() => {
                match count {
                    Ok(count) if count > 0 => self.outgoing.extend_from_slice(&load[..count]),
                    // The check is over.
                    _ => return Err(Over),
                }
            },
            count = give(&mut self.write, &self.incoming[self.given..]) => match count {
                Some(count) => self.given += count,
                None => return Err(Over),
            },
            () = gone(&mut self.tell) => return Err(Over),
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Over> {
        self.stack.turn(&mut self.exit).map_err(|error| {
            self.refuse(trouble::outcome("send", &error));
            Over
        })
    }

    /// Carries between the stack and what is under way. Whether the server has ended the connection,
    /// by FIN or RST, and all that it sent is with the check.
    fn exchange(&mut self) -> Result<bool, Over> {
        let (socket, _) = self.stack.socket::<Socket<'_>>();
        if self.tell.is_some() {
            match socket.state() {
                State::SynSent => return Ok(false),
                State::Closed => {
                    self.refuse(Outcome::Failed(format!("{STEP}: connection refused")));
                    return Err(Over);
                }
                _ => {}
            }
            if let Some(tell) = self.tell.take() {
                let _ = tell.send(Ok(()));
            }
        }
        if !self.outgoing.is_empty() {
            self.sent += socket.send_slice(&self.outgoing[self.sent..]).map_err(|_| Over)?;
            if self.sent == self.outgoing.len() {
                (self.sent, self.outgoing) = (0, Vec::new());
            }
        }
        if self.given == self.incoming.len() {
            (self.given, self.incoming) = (0, Vec::new());
            let taken = socket.recv(|bytes| {
                let count = bytes.len().min(LOAD);
                (count, bytes[..count].to_vec())
            });
            match taken {
                Ok(bytes) => self.incoming = bytes,
                Err(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    fn refuse(&mut self, outcome: Outcome) {
        if let Some(tell) = self.tell.take() {
            let _ = tell.send(Err(outcome));
        }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        let (socket, _) = self.stack.socket::<Socket<'_>>();
        socket.abort();
        let _ = self.stack.turn(&mut self.exit);
    }
}

/// Gives bytes to the check: how many it took, or `None` when it is over. Waits for ever when there
/// are none.
async fn give(write: &mut Option<WriteHalf<DuplexStream>>, bytes: &[u8]) -> Option<usize> {
    match write {
        Some(write) if !bytes.is_empty() => write.write(bytes).await.ok(),
        _ => std::future::pending().await,
    }
}

/// Waits until nobody waits any more for the connection to be open.
async fn gone(tell: &mut Option<oneshot::Sender<Result<(), Outcome>>>) {
    match tell {
        Some(tell) => tell.closed().await,
        None => std::future::pending().await,
    }
}
