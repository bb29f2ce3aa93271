//! The control socket: `drain`, `undrain` and `status` from this host's operator.
//!
//! One line of JSON each way: `{"do":"drain"}`, and `{"ok":true,"state":"draining",...}`. Who may write to
//! the socket (mode 0660) may command; nobody else can reach it.

use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as Blocking;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use crate::status::Status;

/// Operators at a time.
const CLIENTS: usize = 16;
/// The longest question.
const QUESTION: u64 = 4096;
/// The longest answer that is read.
const ANSWER: u64 = 1 << 20;
/// How long one question and its answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What an operator may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// No new connections, please.
    Drain,
    /// New connections are welcome again.
    Undrain,
    /// Everything.
    Status,
}

/// What is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Whether it was done.
    pub ok: bool,
    /// Why not; empty when it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// What the agent says of this host now.
    #[serde(default)]
    pub state: String,
    /// Why it says so.
    #[serde(default)]
    pub reason: String,
    /// To `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// There is no agent.
#[derive(Debug, thiserror::Error)]
#[error(
    "no agent answers at {0}: is it running (realserver-agent run), and with this control socket \
     (--control)?"
)]
pub struct NotRunning(String);

/// The socket, as long as this value lives.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    /// The folder, when it was made for it.
    folder: Option<PathBuf>,
}

impl Control {
    /// Makes the socket, and its folder when there is none. One that an agent has left behind is
    /// replaced. Needs a tokio runtime.
    ///
    /// # Errors
    /// When another agent has it, or the folder cannot be written to.
    pub fn open(path: &Path) -> Result<Control> {
        let shown = path.display();
        let folder = path.parent().filter(|folder| !folder.exists()).map(Path::to_owned);
        if let Some(missing) = &folder {
            let made = std::fs::create_dir_all(missing);
            made.with_context(|| format!("make the folder of the control socket {shown}"))?;
        }
        match Blocking::connect(path) {
            Ok(_) => bail!("another agent has the control socket {shown}: name one with --control"),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).with_context(|| format!("replace {shown}"))?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).with_context(|| {
            format!("make the control socket {shown} (name one with --control)")
        })?;
        std::fs::set_permissions(path, Permissions::from_mode(0o660))
            .with_context(|| format!("set the mode of {shown}"))?;
        Ok(Control { listener, path: path.to_owned(), folder })
    }

    /// Serves operators for ever.
    pub async fn serve(&self, answer: impl Fn(Request) -> Reply) {
        let mut clients = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(_) = clients.next() => {}
                accepted = self.listener.accept(), if clients.len() < CLIENTS => match accepted {
                    Ok((stream, _)) => clients.push(timeout(PATIENCE, client(stream, &answer))),
                    Err(error) => {
                        tracing::debug!("did not accept an operator: {error}");
                        sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // There is nothing more to be done about it than what the next agent does.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.folder.as_ref().map(std::fs::remove_dir);
    }
}

async fn client(mut stream: UnixStream, answer: &impl Fn(Request) -> Reply) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut read = read.take(QUESTION);
    let mut line = Vec::new();
    while !line.contains(&b'\n') && read.read_buf(&mut line).await? > 0 {}
    let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
    let reply = match serde_json::from_slice(&line[..end]) {
        Ok(request) => answer(request),
        Err(error) => Reply {
            error: format!(
                "{error}: write one line {{\"do\":\"drain\"}}, \"undrain\" or \"status\""
            ),
            ..Reply::default()
        },
    };
    let mut bytes = serde_json::to_vec(&reply).map_err(io::Error::other)?;
    bytes.push(b'\n');
    write.write_all(&bytes).await
}

/// Asks the agent at this socket. Blocks, at most some seconds.
///
/// # Errors
/// [`NotRunning`] when nobody is there; else when it may not be asked, or refuses.
pub fn ask(path: &Path, request: Request) -> Result<Reply> {
    let shown = path.display();
    let mut stream = Blocking::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            anyhow::Error::from(NotRunning(shown.to_string()))
        }
        io::ErrorKind::PermissionDenied => {
            anyhow::Error::from(error).context(format!("you may not write to {shown}: be root"))
        }
        _ => anyhow::Error::from(error).context(format!("connect to {shown}")),
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut question = serde_json::to_vec(&request)?;
    question.push(b'\n');
    stream.write_all(&question).with_context(|| format!("ask the agent at {shown}"))?;
    let mut line = String::new();
    BufReader::new(stream.take(ANSWER))
        .read_line(&mut line)
        .with_context(|| format!("the agent at {shown} does not answer"))?;
    let reply: Reply = serde_json::from_str(&line)
        .with_context(|| format!("what the agent at {shown} answers is not understood"))?;
    if !reply.ok {
        bail!("the agent says: {}", reply.error);
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("agent-control-{}-{name}/sock", std::process::id()))
    }

    fn yes(request: Request) -> Reply {
        Reply { ok: true, state: format!("{request:?}"), ..Reply::default() }
    }

    /// Asks from a thread while the socket is served here.
    async fn with<T: Send + 'static>(
        control: &Control,
        client: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        tokio::select! {
            () = control.serve(yes) => unreachable!("it serves for ever"),
            done = tokio::task::spawn_blocking(client) => done.unwrap(),
        }
    }

    #[tokio::test]
    async fn an_operator_is_answered_and_the_socket_goes_with_the_agent() {
        let path = path("life");
        let error = ask(&path, Request::Status).unwrap_err();
        assert!(error.is::<NotRunning>(), "{error}");
        let control = Control::open(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o660);
        assert!(Control::open(&path).unwrap_err().to_string().contains("another agent"));
        let there = path.clone();
        let reply = with(&control, move || ask(&there, Request::Drain)).await.unwrap();
        assert_eq!(reply.state, "Drain");
        drop(control);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }

    #[tokio::test]
    async fn a_socket_that_was_left_behind_is_replaced() {
        let path = path("left");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(ask(&path, Request::Status).unwrap_err().is::<NotRunning>());
        drop(Control::open(&path).unwrap());
        assert!(path.parent().unwrap().exists(), "the folder was there before");
        std::fs::remove_dir(path.parent().unwrap()).unwrap();
    }

    #[tokio::test]
    async fn what_is_no_question_is_answered_with_what_would_be_one() {
        let path = path("wrong");
        let control = Control::open(&path).unwrap();
        for wrong in ["\n", "drain\n", "{\"do\":\"explode\"}\n", &"x".repeat(100_000), "[[[[\n"] {
            let (there, wrong) = (path.clone(), wrong.to_owned());
            let heard = with(&control, move || {
                let mut stream = Blocking::connect(there).unwrap();
                // Not all of it is read.
                let _ = stream.write_all(wrong.as_bytes());
                let mut heard = String::new();
                let _ = BufReader::new(stream).read_line(&mut heard);
                heard
            });
            let heard = heard.await;
            assert!(heard.contains("\"ok\":false") && heard.contains("undrain"), "{heard}");
        }
    }
}
