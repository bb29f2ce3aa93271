//! The connection table as a body of newline-delimited JSON, made while it is read: a few parts of it
//! become text at a time, and the next only when the client has taken those. The table may hold
//! millions of connections; this holds a frame.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::Frame;
use tokio::task::JoinHandle;

use super::filter::ConnectionFilter;
use super::operations::Operations;

/// About how much text one frame carries.
const FRAME: usize = 64 * 1024;

/// Parts that are looked through at a time at most: a client that has left is noticed after these,
/// however few connections its filter admits.
const PARTS: usize = 256;

/// The connections, as lines.
pub(super) struct ConnectionStream {
    source: Source,
    state: State,
}

/// Where connections come from, and which of them.
#[derive(Clone)]
struct Source {
    operations: Arc<dyn Operations>,
    filter: Arc<ConnectionFilter>,
}

enum State {
    /// The part of this number is to be written next.
    Between(usize),
    /// Some are being written, off the runtime's thread.
    Writing(JoinHandle<(Vec<u8>, Option<usize>)>),
    /// No more.
    Done,
}

impl ConnectionStream {
    /// Of the connections that `filter` admits.
    pub(super) fn new(
        operations: Arc<dyn Operations>,
        filter: ConnectionFilter,
    ) -> ConnectionStream {
        let source = Source { operations, filter: Arc::new(filter) };
        ConnectionStream { source, state: State::Between(0) }
    }

    /// The next frame; `None` at the end of the table.
    pub(super) fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let ConnectionStream { source, state } = &mut *self;
        loop {
            match state {
                State::Between(part) => {
                    let (part, source) = (*part, source.clone());
                    let writing = tokio::task::spawn_blocking(move || source.write(part));
                    *state = State::Writing(writing);
                }
                State::Writing(writing) => match ready!(Pin::new(writing).poll(context)) {
                    Ok((text, next)) => {
                        *state = next.map_or(State::Done, State::Between);
                        if !text.is_empty() {
                            return Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
                        }
                    }
                    Err(error) => {
                        tracing::error!(%error, "listing the connection table failed");
                        *state = State::Done;
                        // Breaks the answer off, so that nobody takes it for the whole table.
                        return Poll::Ready(Some(Err(io::Error::other(error))));
                    }
                },
                State::Done => return Poll::Ready(None),
            }
        }
    }
}

impl Source {
    /// The text of some parts from `first` on, and the part to go on with.
    fn write(&self, first: usize) -> (Vec<u8>, Option<usize>) {
        let mut text = Vec::with_capacity(FRAME + FRAME / 2);
        for part in first..first + PARTS {
            if text.len() >= FRAME {
                return (text, Some(part));
            }
            let Some(connections) = self.operations.connections(part) else {
                return (text, None);
            };
            for connection in connections.iter().filter(|it| self.filter.admits(it)) {
                // Writing plain structs into memory cannot fail.
                _ = serde_json::to_writer(&mut text, connection);
                text.push(b'\n');
            }
        }
        (text, Some(first + PARTS))
    }
}
