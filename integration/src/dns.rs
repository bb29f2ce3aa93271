//! A name server that counts who asked it what, and a client that asks many names: both ends of a
//! farm of caches.
//!
//! Only what that takes of DNS (RFC 1035): one question of type A, one answer, no compression in
//! questions.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Bytes of a header.
const HEADER: usize = 12;
/// Bytes of type and class behind a name.
const KIND: usize = 4;
/// How long an answer may be kept, seconds: longer than any test.
const LIFETIME: u32 = 3600;
/// How often a question without an answer is asked again.
const ATTEMPTS: usize = 3;

/// One question that reached the upstream server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The name, as it was written.
    pub name: String,
    /// Who asked.
    pub by: IpAddr,
    /// When.
    pub at: Instant,
}

/// A name server that knows every name, and remembers who asked. Ends when it is dropped.
#[derive(Debug)]
pub struct Upstream {
    asked: Arc<Mutex<Vec<Asked>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Upstream {
    /// Serves on a socket.
    ///
    /// # Errors
    /// When the socket takes no time limit.
    pub fn serve(socket: UdpSocket) -> Result<Upstream> {
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let (asked, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (notes, end) = (asked.clone(), over.clone());
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 1500];
            while !end.load(Relaxed) {
                let Ok((len, from)) = socket.recv_from(&mut buffer) else { continue };
                let question = &buffer[..len];
                let Some((name, answer)) = answer(question) else { continue };
                let asked = Asked { name, by: from.ip(), at: Instant::now() };
                notes.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
                // Who has gone meanwhile needs no answer.
                let _ = socket.send_to(&answer, from);
            }
        });
        Ok(Upstream { asked, over, thread: Some(thread) })
    }

    /// All questions since the last call.
    pub fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks for one name after the other, each from a new port.
///
/// # Errors
/// When a name has no answer after three attempts of a second.
pub fn ask_all<'a>(server: SocketAddr, names: impl Iterator<Item = &'a str>) -> Result<usize> {
    let mut asked = 0;
    for (number, name) in names.enumerate() {
        ask(server, number as u16, name)?;
        asked += 1;
    }
    Ok(asked)
}

fn ask(server: SocketAddr, id: u16, name: &str) -> Result<()> {
    let any: IpAddr = Ipv4Addr::UNSPECIFIED.into();
    let question = question(id, name)?;
    let mut buffer = [0; 1500];
    for _ in 0..ATTEMPTS {
        let socket = UdpSocket::bind((any, 0)).context("no socket to ask with")?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        // A cache that is just being stopped refuses: the next attempt may find another.
        let heard = socket.send(&question).and_then(|_| socket.recv(&mut buffer));
        if let Ok(len) = heard
            && buffer[..len].starts_with(&id.to_be_bytes())
            && len > question.len()
        {
            return Ok(());
        }
    }
    bail!("{server} has no answer for {name}");
}

/// A question for the address of `name`.
fn question(id: u16, name: &str) -> Result<Vec<u8>> {
    let mut bytes = id.to_be_bytes().to_vec();
    // Recursion desired; one question.
    bytes.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        let len = u8::try_from(label.len()).ok().filter(|len| (1..=63).contains(len));
        bytes.push(len.with_context(|| format!("{name} is no name"))?);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 1, 0, 1]);
    Ok(bytes)
}

/// The name in a question, and the answer to it.
fn answer(question: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut name = String::new();
    let mut at = HEADER;
    loop {
        let len = usize::from(*question.get(at)?);
        at += 1;
        if len == 0 {
            break;
        }
        let label = question.get(at..at + len).filter(|_| len < 64)?;
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(std::str::from_utf8(label).ok()?);
        at += len;
    }
    let mut bytes = question.get(..at + KIND)?.to_vec();
    // An answer, authoritative, recursion available; one question, one record and nothing more.
    bytes[2..HEADER].copy_from_slice(&[0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    // The name is that of the question; type A, class IN.
    bytes.extend_from_slice(&[0xc0, HEADER as u8, 0, 1, 0, 1]);
    bytes.extend_from_slice(&LIFETIME.to_be_bytes());
    bytes.extend_from_slice(&[0, 4, 198, 18, 0, 1]);
    Some((name, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstream_server_answers_and_remembers_who_asked_what() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let upstream = Upstream::serve(socket).unwrap();
        let names = ["a.example.test", "B.example.test"];
        assert_eq!(ask_all(address, names.into_iter()).unwrap(), 2);
        let asked = upstream.take();
        assert_eq!(asked.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), names);
        assert!(asked.iter().all(|it| it.by == address.ip()) && upstream.take().is_empty());
    }

    #[test]
    fn what_is_no_question_has_no_answer() {
        let whole = question(7, "a.b").unwrap();
        assert!(answer(&whole).is_some());
        for len in 0..whole.len() {
            assert_eq!(answer(&whole[..len]), None, "{len} bytes");
        }
        assert!(question(7, "a..b").is_err());
    }
}
