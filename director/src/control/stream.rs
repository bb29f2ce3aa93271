//! The connection table as a body of newline-delimited JSON, made while it is read: one shard is
//! copied at a time, and the next only when the client has taken the last one. The table may hold
//! millions of connections; this holds one shard.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::Frame;
use tokio::task::JoinHandle;

use super::api::ConnectionView;
use super::filter::ConnectionFilter;
use super::operations::Operations;

/// About how much text one frame carries. Bounds the time between two turns of the runtime.
const FRAME: usize = 64 * 1024;

/// The connections, as lines.
pub(super) struct ConnectionStream {
    operations: Arc<dyn Operations>,
    filter: ConnectionFilter,
    state: State,
}

enum State {
    /// Shard of this number is to be fetched next.
    Between(usize),
    /// It is being copied, off the runtime's thread because it takes the shard's lock.
    Copying(usize, JoinHandle<Option<Vec<ConnectionView>>>),
    /// Its connections are being written.
    Writing(usize, std::vec::IntoIter<ConnectionView>),
    /// No more.
    Done,
}

impl ConnectionStream {
    /// Of the connections that `filter` admits.
    pub(super) fn new(
        operations: Arc<dyn Operations>,
        filter: ConnectionFilter,
    ) -> ConnectionStream {
        ConnectionStream { operations, filter, state: State::Between(0) }
    }

    /// The next frame; `None` at the end of the table.
    pub(super) fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let ConnectionStream { operations, filter, state } = &mut *self;
        loop {
            match state {
                State::Between(shard) => {
                    let shard = *shard;
                    let operations = Arc::clone(operations);
                    let copy = tokio::task::spawn_blocking(move || operations.connections(shard));
                    *state = State::Copying(shard, copy);
                }
                State::Copying(shard, copy) => {
                    let shard = *shard;
                    *state = match ready!(Pin::new(copy).poll(context)) {
                        Ok(Some(connections)) => State::Writing(shard, connections.into_iter()),
                        Ok(None) => State::Done,
                        Err(error) => {
                            tracing::error!(shard, %error, "copying the connection table failed");
                            *state = State::Done;
                            // Breaks the response off, so that nobody takes it for the whole table.
                            return Poll::Ready(Some(Err(io::Error::other(error))));
                        }
                    };
                }
                State::Writing(shard, connections) => {
                    let lines = lines(connections, filter);
                    if lines.is_empty() {
                        *state = State::Between(*shard + 1);
                    } else {
                        return Poll::Ready(Some(Ok(Frame::data(Bytes::from(lines)))));
                    }
                }
                State::Done => return Poll::Ready(None),
            }
        }
    }
}

fn lines(
    connections: &mut std::vec::IntoIter<ConnectionView>,
    filter: &ConnectionFilter,
) -> Vec<u8> {
    let mut text = Vec::new();
    for connection in connections.filter(|connection| filter.admits(connection)) {
        // Writing plain structs into memory cannot fail; a line that did would be left out whole.
        if let Ok(line) = serde_json::to_vec(&connection) {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        if text.len() >= FRAME {
            break;
        }
    }
    text
}
