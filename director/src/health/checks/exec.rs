//! A command says how the server is: 0 it passes, 1 it fails, 2 it wants no new connections, and all
//! else it fails as well. The first line that it prints is the reason.
//!
//! It is a process group of its own: when its time is up all of that is killed, and whatever it has
//! left behind when it ends. It has no input, and of the director's environment nothing but `PATH`.

use std::io;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

use super::{Deadline, Outcome, Target, trouble, words};

/// Commands that may run at the same time.
const MOST_RUNNING: usize = 32;
/// Bytes of output that are kept; the rest is read and thrown away.
const MOST_KEPT: usize = 4096;
/// Where commands are looked for if the director has not been told.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static RUNNING: Semaphore = Semaphore::const_new(MOST_RUNNING);

pub(super) async fn run(
    command: &[String],
    address: SocketAddr,
    target: &Target,
    deadline: Deadline,
) -> Result<Outcome, Outcome> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Outcome::Unable("there is no command".to_owned()));
    };
    let Some(Ok(_permit)) = deadline.wait(RUNNING.acquire()).await else {
        return Err(Outcome::Unable(format!("{MOST_RUNNING} commands are running already")));
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_else(|| PATH.into()));
    command.envs(environment(address, target));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.process_group(0).kill_on_drop(true).spawn();
    // Nothing has run yet: whatever the error is, it is not the server's.
    let child =
        child.map_err(|error| Outcome::Unable(format!("{program}: {}", trouble::words(&error))))?;
    if let Some(id) = child.id() {
        // The director goes before others; what it starts need not. It may have ended already.
        let _ = netio::set_group_niceness(id, 0);
    }
    let mut group = Group::new(child);
    let mut kept = Vec::new();
    let ended = deadline.wait(group.finish(&mut kept)).await;
    let status = match ended {
        Some(ended) => ended.map_err(|error| trouble::outcome(program, &error))?,
        None => {
            group.kill();
            // It cannot refuse, and is not to be left a zombie.
            let _ = group.child.wait().await;
            return Err(Outcome::Failed(reason("timed out", &kept)));
        }
    };
    Ok(verdict(status, &kept))
}

/// What the command is told of its server.
fn environment(address: SocketAddr, target: &Target) -> [(&'static str, String); 5] {
    let forwarding = target.server.forwarding.name();
    let vip = target.vip();
    [
        ("SWITCHYARD_SERVICE", target.service.to_string()),
        ("SWITCHYARD_SERVER", address.ip().to_string()),
        ("SWITCHYARD_PORT", address.port().to_string()),
        ("SWITCHYARD_VIP", vip.map(|vip| vip.ip().to_string()).unwrap_or_default()),
        ("SWITCHYARD_FORWARDING", forwarding.to_owned()),
    ]
}

fn verdict(status: ExitStatus, kept: &[u8]) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(0), _) => Outcome::PASSED,
        (Some(2), _) => Outcome::Soft(reason("exit code 2", kept)),
        (Some(code), _) => Outcome::Failed(reason(&format!("exit code {code}"), kept)),
        (None, Some(signal)) => {
            Outcome::Failed(reason(&format!("killed by signal {signal}"), kept))
        }
        (None, None) => Outcome::Failed(reason("no exit code", kept)),
    }
}

fn reason(what: &str, kept: &[u8]) -> String {
    match words::first_line(kept).as_str() {
        "" => what.to_owned(),
        line => format!("{what}: {line}"),
    }
}

/// A process and all that it has started, unless they have left the group.
#[derive(Debug)]
struct Group {
    child: Child,
    /// Number of the group, as long as it is to be killed.
    number: Option<Pid>,
}

impl Group {
    fn new(child: Child) -> Group {
        let number = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Group { child, number }
    }

    /// Waits for the process to end, and keeps the begin of what it prints. Others of its group may
    /// still hold its output open then, and are not waited for.
    async fn finish(&mut self, kept: &mut Vec<u8>) -> io::Result<ExitStatus> {
        let (output, errors) = (self.child.stdout.take(), self.child.stderr.take());
        let mut output = Output::new(output);
        let mut errors = Output::new(errors);
        let mut scraps = [0; MOST_KEPT];
        let mut more = [0; MOST_KEPT];
        let status = loop {
            tokio::select! {
                // What has been printed comes before the end.
                biased;
                count = output.read(&mut scraps) => keep(kept, &scraps[..count]),
                count = errors.read(&mut more) => keep(kept, &more[..count]),
                status = self.child.wait() => break status,
            }
        };
        self.kill();
        status
    }

    /// Once only: the number may then be another's, if only after all others have been used.
    fn kill(&mut self) {
        if let Some(number) = self.number.take() {
            let _ = killpg(number, Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = MOST_KEPT - kept.len();
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// One of the command's outputs, until its end.
struct Output<T>(Option<T>);

impl<T: AsyncRead + Unpin> Output<T> {
    fn new(output: Option<T>) -> Output<T> {
        Output(output)
    }

    /// How many bytes have come, at least one; waits for ever after the end.
    async fn read(&mut self, buffer: &mut [u8]) -> usize {
        if let Some(output) = &mut self.0 {
            match output.read(buffer).await {
                Ok(count) if count > 0 => return count,
                _ => self.0 = None,
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests;
