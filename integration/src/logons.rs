//! A server on which each new session begins with work: the model of the load-biasing paper.
//!
//! A logon needs so many seconds of a core. Those in progress share the cores of the machine evenly,
//! and none has more than one. It is a model, and nothing is computed: twenty such servers stand on
//! one small machine. When the work is done the session stays, and costs nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// What a client sends first: with this, a session that needs no work.
pub const IDLE: u8 = b'i';
/// With this, a logon.
pub const LOGON: u8 = b'l';
/// The answer when the work is done.
pub const READY: u8 = b'r';

/// From one look at all sessions to the next.
const TICK: Duration = Duration::from_millis(5);

/// The server.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Seconds of a core that a logon needs.
    pub work: f64,
    /// Cores.
    pub cores: f64,
}

struct Session {
    stream: TcpStream,
    /// Seconds of a core still to be had; `None` before the client has said what it wants.
    left: Option<f64>,
}

impl Server {
    /// Serves for ever. `told` hears of each new highest number of logons in progress.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn serve(&self, mut told: impl FnMut(usize)) -> Result<()> {
        let listener = TcpListener::bind(self.listen)
            .with_context(|| format!("cannot listen on {}", self.listen))?;
        listener.set_nonblocking(true)?;
        let (mut sessions, mut peak, mut last) = (Vec::new(), 0, Instant::now());
        loop {
            std::thread::sleep(TICK);
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true)?;
                sessions.push(Session { stream, left: None });
            }
            let passed = last.elapsed().as_secs_f64();
            last = Instant::now();
            let working = sessions.iter().filter(|session| session.is_working()).count();
            let share = (self.cores / working.max(1) as f64).min(1.0) * passed;
            sessions.retain_mut(|session| session.go_on(share, self.work));
            if working > peak {
                peak = working;
                told(peak);
            }
        }
    }
}

impl Session {
    fn is_working(&self) -> bool {
        self.left.is_some_and(|left| left > 0.0)
    }

    /// Whether it is still there after another `share` seconds of a core.
    fn go_on(&mut self, share: f64, work: f64) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => return false,
            Ok(_) if byte[0] == LOGON => self.left = Some(work),
            Ok(_) => self.left = Some(0.0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        if let Some(left) = self.left.as_mut().filter(|left| **left > 0.0) {
            *left -= share;
            if *left <= 0.0 {
                return self.stream.write_all(&[READY]).is_ok();
            }
        }
        true
    }
}
