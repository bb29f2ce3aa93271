//! The agent of this machine: whether it runs, what it says, whether it answers as a director asks.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use realserver_agent::control::{self, NotRunning, Request};
use realserver_agent::protocol::{Answer, Key, LEN, Probe};
use realserver_agent::status::Status;

/// How long an answer on this machine may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// What became of asking the agent for its status.
#[derive(Clone, Debug, PartialEq)]
pub enum Agent {
    /// It runs.
    Running(Box<Status>),
    /// Nobody is there.
    Absent,
    /// Somebody is there who cannot be asked, and why.
    Silent(String),
}

/// Asks the agent over its control socket.
pub fn look(socket: &Path) -> Agent {
    match control::ask(socket, Request::Status) {
        Ok(reply) => match reply.status {
            Some(status) => Agent::Running(Box::new(status)),
            None => Agent::Silent("it says nothing of itself: another version".to_owned()),
        },
        Err(error) if error.downcast_ref::<NotRunning>().is_some() => Agent::Absent,
        Err(error) => Agent::Silent(format!("{error:#}")),
    }
}

/// Asks the agent as a director does, at an address of this machine.
///
/// # Errors
/// Why there is no answer that counts, in words.
pub fn probe(address: IpAddr, port: u16, key: Option<&Key>) -> Result<(), String> {
    let words = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "no answer".to_owned(),
        _ => error.to_string(),
    };
    let socket = UdpSocket::bind((address, 0)).map_err(words)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(words)?;
    socket.connect(SocketAddr::new(address, port)).map_err(words)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let challenge = now.as_nanos() as u64;
    let mut buffer = [0; LEN];
    for last in [false, true] {
        socket.send(&Probe { challenge }.encode(key)).map_err(words)?;
        match socket.recv(&mut buffer) {
            Ok(length) => {
                let answer = Answer::decode(&buffer[..length], key);
                return answer.map(drop).map_err(|refused| refused.to_string());
            }
            Err(error) if last => return Err(words(error)),
            Err(_) => {}
        }
    }
    Ok(())
}
