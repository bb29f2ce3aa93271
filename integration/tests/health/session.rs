//! A client's connection that lasts: one keep-alive connection to nginx through the director.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bed::{Bed, HTTP, vip};

/// See the module.
pub(crate) struct Session {
    stream: TcpStream,
    /// The number of the server that answers it.
    pub(crate) server: usize,
}

/// What a client finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An answer.
    Answer,
    /// A reset.
    Reset,
    /// The end of the stream.
    End,
    /// Nothing within the time.
    Silence,
}

impl Session {
    /// One more, wherever the scheduler sends it.
    pub(crate) fn open(bed: &Bed) -> Result<Session> {
        let target = SocketAddr::new(vip(), HTTP);
        let stream = bed.topology.client.run(|| TcpStream::connect(target))??;
        let mut session = Session { stream, server: 0 };
        let answer = session.request(Duration::from_secs(5))?;
        let name = answer.lines().find_map(|line| line.strip_prefix("X-Server: server"));
        session.server = name.context("nobody said who he is")?.trim().parse()?;
        Ok(session)
    }

    /// One at server `number`; the scheduler goes round.
    pub(crate) fn open_at(bed: &Bed, number: usize) -> Result<Session> {
        for _ in 0..20 {
            let session = Session::open(bed)?;
            if session.server == number {
                return Ok(session);
            }
        }
        bail!("no connection came to server {number}");
    }

    fn request(&mut self, limit: Duration) -> Result<String> {
        self.stream.set_read_timeout(Some(limit))?;
        self.stream.write_all(b"GET /page HTTP/1.1\r\nHost: vip\r\n\r\n")?;
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while !answer.ends_with(b"a page\n") {
            match self.stream.read(&mut buffer)? {
                0 => bail!("the server has closed"),
                count => answer.extend_from_slice(&buffer[..count]),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Asks once more.
    pub(crate) fn ask(&mut self, limit: Duration) -> Found {
        found(self.request(limit).map(|_| Found::Answer))
    }

    /// Listens, and says nothing.
    pub(crate) fn listen(&mut self, limit: Duration) -> Found {
        let mut byte = [0];
        let heard = self.stream.set_read_timeout(Some(limit)).and_then(|()| {
            self.stream.read(&mut byte).map(|count| match count {
                0 => Found::End,
                _ => Found::Answer,
            })
        });
        found(heard.map_err(anyhow::Error::from))
    }

    /// The next packet must be answered by a reset; how long that took, in seconds.
    #[track_caller]
    pub(crate) fn is_reset(&mut self) -> f64 {
        let start = Instant::now();
        assert_eq!(self.ask(Duration::from_secs(3)), Found::Reset);
        start.elapsed().as_secs_f64()
    }
}

fn found(result: Result<Found>) -> Found {
    let error = match result {
        Ok(found) => return found,
        Err(error) => error,
    };
    match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => Found::Reset,
        Some(ErrorKind::WouldBlock | ErrorKind::TimedOut) => Found::Silence,
        _ => Found::End,
    }
}
