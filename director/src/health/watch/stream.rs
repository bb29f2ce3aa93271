//! The stream to one agent: a task that connects, writes questions and reads answers.
//!
//! It judges nothing: bytes go to who asked.

use std::io;
use std::net::SocketAddr;

use realserver_agent::protocol::{LEN, Message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::Task;
use super::agents::is_ours;

/// Questions that wait to be written.
const WAITING: usize = 4;

/// An open stream, or one that is being opened. Dropping it closes it.
pub(super) struct Stream {
    questions: mpsc::Sender<Message>,
    _task: Task,
}

/// What has come of a stream.
pub(super) struct Told {
    /// Whose: the agent's number, and which of its streams.
    pub(super) agent: u64,
    pub(super) stream: u32,
    pub(super) what: What,
}

/// See [`Told`].
pub(super) enum What {
    /// The next message.
    Answer(Message),
    /// It could not be opened.
    Failed(String),
    /// It was open, and the agent has closed it.
    Closed(String),
    /// It was open, and is no more.
    Ended(String),
    /// It could not be opened, and that was the director's own need.
    Unable(String),
}

impl Stream {
    /// Begins to open a stream; `whose` says so to `told` what comes of it.
    pub(super) fn open(address: SocketAddr, whose: (u64, u32), told: mpsc::Sender<Told>) -> Stream {
        let (questions, waiting) = mpsc::channel(WAITING);
        let task = tokio::spawn(async move {
            let what = live(address, whose, waiting, &told).await;
            tell(&told, whose, what).await;
        });
        Stream { questions, _task: Task(task) }
    }

    /// Writes a question as soon as the stream is open. One too many is not asked.
    pub(super) fn ask(&self, question: Message) {
        // Nobody waits for it: an unasked question is as one that is not answered.
        let _ = self.questions.try_send(question);
    }
}

async fn tell(told: &mpsc::Sender<Told>, (agent, stream): (u64, u32), what: What) {
    // Nobody listens when all ends.
    let _ = told.send(Told { agent, stream, what }).await;
}

/// The stream's life: how it ended.
async fn live(
    address: SocketAddr,
    whose: (u64, u32),
    mut questions: mpsc::Receiver<Message>,
    told: &mpsc::Sender<Told>,
) -> What {
    let mut stream = match TcpStream::connect(address).await {
        Ok(stream) => stream,
        Err(error) if is_ours(&error) => return What::Unable(words(&error)),
        Err(error) => return What::Failed(words(&error)),
    };
    // One message at a time: there is nothing to wait for. It does without if it must.
    let _ = stream.set_nodelay(true);
    let (mut reader, mut writer) = stream.split();
    let mut message: Message = [0; LEN];
    let mut length = 0;
    loop {
        tokio::select! {
            read = reader.read(&mut message[length..]) => match read {
                Ok(0) => return What::Closed("it was closed".to_owned()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return What::Closed(words(&error));
                }
                Ok(more) => length += more,
                Err(error) => return What::Ended(words(&error)),
            },
            question = questions.recv() => {
                let Some(question) = question else { return What::Ended("closed here".to_owned()) };
                if let Err(error) = writer.write_all(&question).await {
                    return What::Ended(words(&error));
                }
            }
        }
        if length == LEN {
            length = 0;
            tell(told, whose, What::Answer(message)).await;
        }
    }
}

/// An error without its number.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        io::ErrorKind::TimedOut => "timed out".to_owned(),
        io::ErrorKind::HostUnreachable => "host unreachable".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network unreachable".to_owned(),
        _ => error.to_string(),
    }
}
