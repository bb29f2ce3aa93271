//! `GET /v1/capture`: what is asked for, and the answer, a pcapng file that grows while packets come.
//!
//! Packets are gathered ten times a second, off the runtime's thread. A client that reads slowly loses
//! packets, which the file says; nobody else notices.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};

use super::filter;
use crate::capture::Feed;
use crate::dispatch::verdict::{DropReason, PassReason};
use crate::worker::tap::{EVERY_DROP, EVERY_PASS, End, LONGEST, Wanted};

/// How often packets are gathered.
const PERIOD: Duration = Duration::from_millis(100);

/// The longest capture, seconds: a day.
const LONGEST_TIME: u64 = 86_400;

/// The least that tells addresses and ports.
const LEAST_SNAPLEN: usize = 64;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureQuery {
    /// Which packets.
    pub wanted: Wanted,
    /// It ends after so many, as they arrive.
    pub count: Option<u64>,
    /// It ends after this time.
    pub time: Option<Duration>,
}

impl CaptureQuery {
    /// Reads `verdict=dropped&reason=no_route&sample=10&service=192.0.2.10:80/tcp&snaplen=256&both=true&
    /// count=100&seconds=60`; verdict and reason may be there several times. With a reason and no verdict
    /// only what has such a reason is wanted; with neither everything is.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_query(query: &str) -> Result<CaptureQuery, String> {
        let mut wanted = Wanted {
            forwarded: false,
            passed: 0,
            dropped: 0,
            sample: 1,
            service: None,
            snaplen: LONGEST,
            both: false,
        };
        let (mut count, mut time) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number = |least: u64, most: u64| {
                let number = value.parse().ok().filter(|number| (least..=most).contains(number));
                number.ok_or_else(|| format!("{key} is a number from {least} to {most}"))
            };
            match key {
                "verdict" => match value {
                    "forwarded" => wanted.forwarded = true,
                    "passed" => wanted.passed = EVERY_PASS,
                    "dropped" => wanted.dropped = EVERY_DROP,
                    _ => return Err("verdict is forwarded, passed or dropped".to_owned()),
                },
                "reason" => reason(&mut wanted, value)?,
                "sample" => wanted.sample = number(1, u32::MAX.into())? as u32,
                "snaplen" => {
                    wanted.snaplen = number(LEAST_SNAPLEN as u64, LONGEST as u64)? as usize;
                }
                "service" => wanted.service = Some(end(value)?),
                "both" if matches!(value, "true" | "false") => wanted.both = value == "true",
                "both" => return Err("both is true or false".to_owned()),
                "count" => count = Some(number(1, u64::MAX)?),
                "seconds" => time = Some(Duration::from_secs(number(1, LONGEST_TIME)?)),
                _ => {
                    return Err(format!(
                        "there is no {key:?}: there are verdict, reason, sample, service, snaplen, both, \
                         count and seconds"
                    ));
                }
            }
        }
        if !wanted.forwarded && wanted.passed == 0 && wanted.dropped == 0 {
            wanted.forwarded = true;
            (wanted.passed, wanted.dropped) = (EVERY_PASS, EVERY_DROP);
        }
        Ok(CaptureQuery { wanted, count, time })
    }
}

fn reason(wanted: &mut Wanted, name: &str) -> Result<(), String> {
    let drop = DropReason::ALL.iter().find(|reason| reason.label() == name);
    let pass = PassReason::ALL.iter().find(|reason| reason.label() == name);
    match (drop, pass) {
        (Some(reason), _) => wanted.dropped |= 1 << *reason as u32,
        (None, Some(reason)) => wanted.passed |= 1 << *reason as u32,
        (None, None) => {
            return Err(format!("there is no reason {name:?}: `dirctl drops --all` shows all"));
        }
    }
    Ok(())
}

fn end(text: &str) -> Result<End, String> {
    let end = filter::End::read(text).ok_or_else(|| {
        format!("service {text:?} is not one: write 192.0.2.10, 192.0.2.10:80 or 192.0.2.10:80/tcp")
    })?;
    let protocol = end.protocol.map(super::api::Protocol::number);
    // Port 0 is that of a service for every port.
    Ok(End { protocol, address: end.address, port: end.port.filter(|port| *port != 0) })
}

/// The packets, as a file.
pub(super) struct CaptureStream {
    state: State,
    /// Packets at most, as they arrive.
    limit: u64,
    ends: Option<Instant>,
    next: Pin<Box<Sleep>>,
    keep_alive: Duration,
    quiet_since: Instant,
}

enum State {
    /// The beginning is to be written.
    Begin(Box<Feed>),
    /// Until the next time.
    Waiting(Box<Feed>),
    /// Packets become text, off the runtime's thread.
    Gathering(JoinHandle<Gathered>),
    /// No more.
    Done,
}

/// What has come of gathering.
struct Gathered {
    feed: Box<Feed>,
    text: Vec<u8>,
    /// Whether the capture is over.
    is_last: bool,
}

impl CaptureStream {
    /// Of `feed`, which may be quiet for `keep_alive` before a block says that nothing has come: so a
    /// client that has left is noticed.
    pub(super) fn new(feed: Feed, query: &CaptureQuery, keep_alive: Duration) -> CaptureStream {
        let now = Instant::now();
        CaptureStream {
            state: State::Begin(Box::new(feed)),
            limit: query.count.unwrap_or(u64::MAX),
            ends: query.time.map(|time| now + time),
            next: Box::pin(tokio::time::sleep_until(now)),
            keep_alive,
            quiet_since: now,
        }
    }

    /// The next frame; `None` at the end.
    pub(super) fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let stream = self.get_mut();
        loop {
            match std::mem::replace(&mut stream.state, State::Done) {
                State::Begin(mut feed) => {
                    let mut text = Vec::new();
                    feed.head(&mut text);
                    stream.state = State::Waiting(feed);
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
                }
                State::Waiting(mut feed) => {
                    if stream.next.as_mut().poll(context).is_pending() {
                        stream.state = State::Waiting(feed);
                        return Poll::Pending;
                    }
                    let now = Instant::now();
                    stream.next.as_mut().reset(now + PERIOD);
                    let is_over = stream.ends.is_some_and(|end| now >= end);
                    let is_quiet = now >= stream.quiet_since + stream.keep_alive;
                    let limit = stream.limit;
                    stream.state = State::Gathering(tokio::task::spawn_blocking(move || {
                        let mut text = Vec::new();
                        let any = feed.packets(limit.saturating_sub(feed.count()), &mut text);
                        let is_last = is_over || feed.count() >= limit;
                        if is_last || (is_quiet && !any) || feed.has_lost_more() {
                            feed.statistics(&mut text);
                        }
                        Gathered { feed, text, is_last }
                    }));
                }
                State::Gathering(mut work) => match Pin::new(&mut work).poll(context) {
                    Poll::Pending => {
                        stream.state = State::Gathering(work);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(Gathered { feed, text, is_last })) => {
                        if !is_last {
                            stream.state = State::Waiting(feed);
                        }
                        if !text.is_empty() {
                            stream.quiet_since = Instant::now();
                            return Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
                        }
                    }
                    Poll::Ready(Err(error)) => {
                        tracing::error!(%error, "a capture failed");
                        return Poll::Ready(Some(Err(io::Error::other(error))));
                    }
                },
                State::Done => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_what_is_wanted_and_nothing_else() {
        let read = CaptureQuery::from_query;
        let all = read("").unwrap();
        assert!(all.wanted.forwarded);
        assert_eq!((all.wanted.dropped, all.wanted.passed), (EVERY_DROP, EVERY_PASS));
        let drops = read("reason=no_route&reason=passed_icmp&count=3&seconds=60&sample=7").unwrap();
        assert!(!drops.wanted.forwarded);
        assert_eq!(drops.wanted.dropped, 1 << DropReason::NoRoute as u32);
        assert_eq!(drops.wanted.passed, 1 << PassReason::Icmp as u32);
        assert_eq!((drops.count, drops.time), (Some(3), Some(Duration::from_secs(60))));
        assert_eq!(drops.wanted.sample, 7);
        let one = read("verdict=forwarded&service=192.0.2.10:80/tcp&both=true&snaplen=96").unwrap();
        assert_eq!((one.wanted.dropped, one.wanted.both, one.wanted.snaplen), (0, true, 96));
        let service = one.wanted.service.unwrap();
        assert_eq!((service.protocol, service.port), (Some(6), Some(80)));
        for wrong in [
            "verdict=lost",
            "reason=x",
            "sample=0",
            "snaplen=10",
            "count=0",
            "seconds=0",
            "seconds=999999",
            "both=1",
            "service=x",
            "since=3",
            "x",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
