//! Connections: many probes one after the other, or HAProxy's text.
//!
//! Nobody can hold the agent: there are at most [`Limits::connections`], when there are as many the
//! one that has been silent longest has to go, and each address has a share of them.

use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::{Answering, Over, Silence};
use crate::protocol::{LEN, MAGIC, Refused};

/// How much one may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections.
    pub connections: usize,
    /// Most connections of one address.
    pub of_one: usize,
    /// How long one may be silent.
    pub idle: Duration,
    /// How long one may be silent at first before it is taken for a peer that waits for text. Longer
    /// than the 200 ms after which a lost first segment is sent again.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            of_one: 64,
            idle: Duration::from_secs(30),
            patience: Duration::from_millis(300),
        }
    }
}

/// How long a peer that got its text has to close, and how much of what it sends is read by then.
const FAREWELL: Duration = Duration::from_secs(1);
const FAREWELL_BYTES: usize = 4096;

/// A connection, as the others see it.
struct Guest {
    address: IpAddr,
    heard: Cell<Instant>,
    leave: Notify,
}

/// Answers the connections to a listener until that breaks; with `only_text` at once in text.
///
/// # Errors
/// When it breaks.
pub async fn serve(
    listener: &TcpListener,
    answering: &Answering,
    limits: Limits,
    only_text: bool,
) -> io::Result<()> {
    let mut conversations = FuturesUnordered::new();
    let mut guests: Vec<Rc<Guest>> = Vec::new();
    loop {
        tokio::select! {
            // First those that have ended: only then is there room.
            biased;
            Some(gone) = conversations.next() => guests.retain(|guest| !Rc::ptr_eq(guest, &gone)),
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let address = peer.ip().to_canonical();
                    if let Err(silence) = admit(address, answering, &mut guests, limits) {
                        answering.count(silence, address);
                        continue;
                    }
                    let heard = Cell::new(Instant::now());
                    let guest = Rc::new(Guest { address, heard, leave: Notify::new() });
                    guests.push(guest.clone());
                    conversations.push(converse(stream, guest, answering, limits, only_text));
                }
                // Of one connection, or for want of descriptors: it is better next time.
                Err(error) => {
                    tracing::debug!("did not accept a connection: {error}");
                    sleep(Duration::from_millis(10)).await;
                }
            },
        }
    }
}

/// Makes room: when there are too many, the one that has been silent longest has to go.
fn admit(
    address: IpAddr,
    answering: &Answering,
    guests: &mut Vec<Rc<Guest>>,
    limits: Limits,
) -> Result<(), Silence> {
    answering.admit(address)?;
    if guests.iter().filter(|guest| guest.address == address).count() >= limits.of_one {
        return Err(Silence::TooMany);
    }
    if guests.len() >= limits.connections {
        let silent = (0..guests.len()).min_by_key(|place| guests[*place].heard.get());
        let guest = silent.map(|place| guests.swap_remove(place)).ok_or(Silence::TooMany)?;
        answering.count(Silence::TooMany, guest.address);
        guest.leave.notify_one();
    }
    Ok(())
}

async fn converse(
    stream: TcpStream,
    guest: Rc<Guest>,
    answering: &Answering,
    limits: Limits,
    only_text: bool,
) -> Rc<Guest> {
    let talk = async {
        if only_text {
            speak(stream, &guest, answering).await
        } else {
            answer(stream, &guest, answering, limits).await
        }
    };
    tokio::select! {
        // Whatever is wrong with a connection, it is closed.
        _ = talk => {}
        () = guest.leave.notified() => {}
    }
    guest
}

async fn answer(
    mut stream: TcpStream,
    guest: &Guest,
    answering: &Answering,
    limits: Limits,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut message = [0; LEN];
    let first = if answering.speaks_text() { limits.patience } else { limits.idle };
    let mut length = match timeout(first, stream.read(&mut message)).await {
        Ok(length) => length?,
        Err(_) if answering.speaks_text() => return speak(stream, guest, answering).await,
        Err(_) => return Ok(()),
    };
    if !MAGIC.starts_with(&message[..length.min(MAGIC.len())]) && answering.speaks_text() {
        return speak(stream, guest, answering).await;
    }
    let mut deadline = Instant::now() + limits.idle;
    loop {
        while length < LEN {
            let more = tokio::time::timeout_at(deadline, stream.read(&mut message[length..]));
            match more.await {
                Ok(Ok(more)) if more > 0 => length += more,
                // A message that is cut: its peer has closed, or is too slow.
                _ if length > 0 => {
                    answering.count(Silence::Refused(Refused::Foreign), guest.address);
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
        let Ok(bytes) = answering.message(&message, guest.address, Over::Tcp) else {
            return Ok(());
        };
        // A peer that does not read its answers is not waited for.
        timeout(FAREWELL, stream.write_all(&bytes)).await??;
        guest.heard.set(Instant::now());
        deadline = Instant::now() + limits.idle;
        length = 0;
    }
}

/// Sends the line, and then waits until the peer has it: to close with something unread would take
/// the line back.
async fn speak(mut stream: TcpStream, guest: &Guest, answering: &Answering) -> io::Result<()> {
    let Ok(line) = answering.text(guest.address) else { return Ok(()) };
    timeout(FAREWELL, stream.write_all(line.as_bytes())).await??;
    stream.shutdown().await?;
    let mut rest = stream.take(FAREWELL_BYTES as u64);
    let mut nowhere = [0; 512];
    let drained = async {
        while rest.read(&mut nowhere).await? > 0 {}
        io::Result::Ok(())
    };
    timeout(FAREWELL, drained).await?
}
