//! A stream that gives no more than so many bytes: whatever a server says, and however fast, reading it
//! comes to an end.
//!
//! What is read may be skipped without a pause, as heads of informational answers are; a time limit is
//! looked at only between two waits, so that it alone would not end that.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// See the module.
#[derive(Debug)]
pub(super) struct Budget<S> {
    stream: S,
    left: usize,
}

impl<S> Budget<S> {
    /// At most `bytes` of `stream`.
    pub(super) fn of(stream: S, bytes: usize) -> Budget<S> {
        Budget { stream, left: bytes }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Budget<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::Error::other("it never ends")));
        }
        // A little more may come with the last read: what counts is that there is an end.
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        self.left = self.left.saturating_sub(read);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Budget<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
