//! Events as a body of newline-delimited JSON: those that are remembered, and with `follow` those
//! that come, as they come. A reader that is slow is told what it has missed; what is kept for it
//! is a frame.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::OwnedSemaphorePermit;

use super::events::Told;
use crate::health::journal::Journal;

/// Events in one frame.
const FRAME: usize = 128;

/// What is asked for: `?after=N&follow=true`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventQuery {
    /// Only events with larger numbers.
    pub(super) after: u64,
    /// Whether those that are to come are wanted.
    pub(super) follow: bool,
}

impl EventQuery {
    /// Reads a query.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn from_query(query: &str) -> Result<EventQuery, String> {
        let mut wanted = EventQuery::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("after", number) => {
                    let number = number.parse();
                    wanted.after =
                        number.map_err(|_| "after is the number of an event".to_owned())?;
                }
                ("follow", "true") => wanted.follow = true,
                ("follow", "false") => wanted.follow = false,
                ("follow", _) => return Err("follow is true or false".to_owned()),
                (key, _) => return Err(format!("there is no {key:?}, only after and follow")),
            }
        }
        Ok(wanted)
    }
}

/// The events, as lines.
pub(super) struct EventStream {
    journal: Arc<Journal>,
    /// Number of the last event that was told.
    told: u64,
    follow: Option<Follow>,
}

/// What a follower has beside.
struct Follow {
    /// An empty line is written when nothing happens for so long: a reader that has left is noticed
    /// by it.
    keep_alive: Duration,
    waiting: Option<Pin<Box<dyn Future<Output = Woken> + Send>>>,
    /// The follower's place, free again when it leaves.
    _place: OwnedSemaphorePermit,
}

/// Why waiting has ended.
enum Woken {
    /// There is another event.
    News,
    /// Nothing has happened.
    Quiet,
    /// Nothing will happen any more.
    Ended,
}

impl EventStream {
    /// Events with numbers above `after`; those to come too, if the reader has a `place` among the
    /// followers.
    pub(super) fn new(
        journal: Arc<Journal>,
        after: u64,
        place: Option<OwnedSemaphorePermit>,
        keep_alive: Duration,
    ) -> EventStream {
        // A number that has not been reached is from an earlier run: all of this one is news.
        let told = if after > *journal.newest().borrow() { 0 } else { after };
        let follow = place.map(|place| Follow { keep_alive, waiting: None, _place: place });
        EventStream { journal, told, follow }
    }

    /// The next frame; `None` at the end.
    pub(super) fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let stream = self.get_mut();
        loop {
            if let Some(follow) = &mut stream.follow
                && let Some(waiting) = &mut follow.waiting
            {
                let woken = ready!(waiting.as_mut().poll(context));
                follow.waiting = None;
                match woken {
                    Woken::News => {}
                    Woken::Quiet => {
                        return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"\n")))));
                    }
                    Woken::Ended => return Poll::Ready(None),
                }
            }
            let text = stream.news();
            if !text.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
            }
            match &mut stream.follow {
                None => return Poll::Ready(None),
                Some(follow) => {
                    let waiting = wait(&stream.journal, stream.told, follow.keep_alive);
                    follow.waiting = Some(Box::pin(waiting));
                }
            }
        }
    }

    /// Some of what has not been told, as lines.
    fn news(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut tell = |told: &Told| {
            // Writing plain structs into memory cannot fail.
            _ = serde_json::to_writer(&mut text, told);
            text.push(b'\n');
        };
        for event in self.journal.some_after(self.told, FRAME) {
            let lost = event.number.saturating_sub(self.told + 1);
            if lost > 0 {
                tell(&Told::Lost { lost });
            }
            self.told = event.number;
            tell(&Told::Event(event));
        }
        text
    }
}

/// Waits for an event with a number above `told`.
fn wait(
    journal: &Journal,
    told: u64,
    keep_alive: Duration,
) -> impl Future<Output = Woken> + Send + use<> {
    let mut newest = journal.newest();
    async move {
        let news = newest.wait_for(|&number| number > told);
        match tokio::time::timeout(keep_alive, news).await {
            Ok(Ok(_)) => Woken::News,
            Ok(Err(_)) => Woken::Ended,
            Err(_) => Woken::Quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EventQuery;

    #[test]
    fn a_query_says_from_where_and_whether_to_follow_and_nothing_else() {
        let read = EventQuery::from_query;
        assert_eq!(read(""), Ok(EventQuery::default()));
        assert_eq!(read("follow=true&after=7"), Ok(EventQuery { after: 7, follow: true }));
        assert_eq!(read("follow=false"), Ok(EventQuery::default()));
        for wrong in ["after=", "after=-1", "after=x", "follow", "follow=1", "since=3", "x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
