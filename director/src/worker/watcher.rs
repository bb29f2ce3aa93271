//! The worker's side of its taps: the packet that is being handled, as it came, and who takes it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use forwarding::Headers;

use super::tap::{End, LONGEST, List, Outcome, Record, Taps};
use crate::dispatch::verdict::Method;

/// See the module.
#[derive(Debug)]
pub(super) struct Watcher {
    /// As of the beginning of the breath; `None` without taps.
    taps: Option<Arc<List>>,
    wants_forwarded: bool,
    wants_headers: bool,
    /// Nanoseconds of the worker's own time, at the beginning of the breath.
    time: u64,
    /// The packet that is being handled, as it came.
    came: Vec<u8>,
    length: usize,
    headers: Option<Headers>,
    port: usize,
    /// How it was forwarded.
    method: Method,
    /// The taps that have taken it, a bit for each.
    taken: u8,
}

impl Watcher {
    pub(super) fn new() -> Watcher {
        Watcher {
            taps: None,
            wants_forwarded: false,
            wants_headers: false,
            time: 0,
            came: Vec::with_capacity(LONGEST),
            length: 0,
            headers: None,
            port: 0,
            method: Method::Nat,
            taken: 0,
        }
    }

    /// The port that the packet came by.
    pub(super) fn port(&self) -> usize {
        self.port
    }

    /// How the packet was forwarded, of which there are several pieces.
    pub(super) fn method(&self) -> Method {
        self.method
    }

    /// Once per breath, at `now`: which taps there are.
    #[inline(always)]
    pub(super) fn refresh(&mut self, now: Duration, taps: &Taps) {
        if taps.are_there.load(Relaxed) || self.taps.is_some() {
            self.look(now, taps);
        }
    }

    #[cold]
    fn look(&mut self, now: Duration, taps: &Taps) {
        let list = taps.list.load();
        if list.is_empty() {
            self.taps = None;
            (self.wants_forwarded, self.wants_headers, self.taken) = (false, false, 0);
            return;
        }
        let is_new = self.taps.as_ref().is_none_or(|own| !Arc::ptr_eq(own, &list));
        if is_new {
            self.wants_forwarded = list.iter().any(|tap| tap.wanted.forwarded);
            self.wants_headers = list.iter().any(|tap| tap.wanted.service.is_some());
            self.taps = Some(arc_swap::Guard::into_inner(list));
        }
        self.time = now.as_nanos() as u64;
    }

    /// Whether packets are to be shown.
    #[inline(always)]
    pub(super) fn is_there(&self) -> bool {
        self.taps.is_some()
    }

    /// Whether it matters what is forwarded.
    #[inline(always)]
    pub(super) fn wants_forwarded(&self) -> bool {
        self.wants_forwarded
    }

    /// A packet has come by port number `port`, before anything is done with it.
    #[cold]
    pub(super) fn remember(&mut self, port: usize, frame: &[u8]) {
        self.taken = 0;
        self.port = port;
        self.length = frame.len();
        self.came.clear();
        self.came.extend_from_slice(&frame[..frame.len().min(LONGEST)]);
        self.headers = None;
        if self.wants_headers {
            self.headers = forwarding::parse(frame).ok();
        }
    }

    /// What is handled now is not what was remembered.
    pub(super) fn forget(&mut self) {
        self.taken = 0;
        self.port = 0;
        self.length = 0;
        self.came.clear();
        self.headers = None;
    }

    /// What has become of the packet that was remembered; `translated` is who it comes from now, if it is
    /// a server's answer.
    #[cold]
    pub(super) fn note(&mut self, outcome: Outcome, translated: Option<(u8, IpAddr, u16)>) {
        let Some(taps) = &self.taps else { return };
        if let Outcome::Forwarded(method) = outcome {
            self.method = method;
        }
        let record = Record {
            time: self.time,
            port: self.port as u16,
            outcome,
            length: self.length as u32,
            bytes: &self.came,
        };
        for (place, tap) in taps.iter().enumerate() {
            let is_of = |end: End| {
                let came = self.headers.as_ref();
                let to = came.map(|it| (it.protocol, it.destination, it.destination_port));
                let mut ends = to.into_iter().chain(translated);
                ends.any(|(protocol, address, port)| end.is(protocol, address, port))
            };
            if tap.wanted.wants(outcome) && tap.wanted.service.is_none_or(is_of) && tap.is_next() {
                tap.put(&record);
                self.taken |= 1 << place;
            }
        }
    }

    /// A packet that leaves by port number `port`, or would have, as it is now. Those who have taken it as
    /// it came take it; one that is lost also those who ask for its reason.
    #[cold]
    pub(super) fn note_leaving(&self, outcome: Outcome, port: usize, frame: &[u8]) {
        let Some(taps) = &self.taps else { return };
        let bytes = &frame[..frame.len().min(LONGEST)];
        let length = frame.len() as u32;
        let record = Record { time: self.time, port: port as u16, outcome, length, bytes };
        for (place, tap) in taps.iter().enumerate() {
            let is_its = self.taken & 1 << place != 0;
            let is_lost = matches!(outcome, Outcome::Lost(_))
                && tap.wanted.service.is_none()
                && tap.wanted.sample == 1;
            if tap.wanted.wants(outcome) && (is_its || is_lost) {
                tap.put(&record);
            }
        }
    }
}
