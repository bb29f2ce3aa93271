//! A director's end of a direction, a wire that delays and loses, and a host: stepped in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use realserver_agent::protocol::{Answer, LEN, State};

use crate::health::direction::{Action, Direction, Mode, Way};
use crate::health::plan::AgentWatch;

pub(super) const MILLI: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// What a host does with what comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    Answers,
    Refuses,
    Silent,
}

#[derive(Debug)]
enum Event {
    /// A probe is at the host.
    Asked(Way, u64, u32),
    /// An answer is at the director.
    Answered(Way, [u8; LEN], u32),
    Failed(u32),
    Ended(u32),
}

pub(super) struct World {
    pub(super) direction: Direction,
    pub(super) now: Duration,
    pub(super) udp: Port,
    pub(super) tcp: Port,
    pub(super) boot: u64,
    pub(super) state: State,
    /// One way, of each packet.
    pub(super) loss: f64,
    /// What has become of the link, and when.
    pub(super) edges: Vec<(Duration, Action)>,
    /// Probes sent, UDP and TCP.
    pub(super) sent: [u64; 2],
    /// The last challenge that was sent.
    pub(super) challenge: u64,
    events: BTreeMap<(Duration, u64), Event>,
    numbers: u64,
    stream: u32,
    /// The boot nonce of the host that the stream is open to.
    is_open_to: Option<u64>,
    random: u64,
}

impl World {
    /// Probes every `period` ms, lost after `timeout` ms; a host 1 ms away that answers everything.
    pub(super) fn new(period: u32, timeout: u32) -> World {
        let settings = AgentWatch {
            period: MILLI * period,
            timeout: MILLI * timeout,
            ..AgentWatch::default()
        };
        World {
            direction: Direction::new(settings, SECOND),
            now: SECOND,
            udp: Port::Answers,
            tcp: Port::Answers,
            boot: 1,
            state: State::Up,
            loss: 0.0,
            edges: Vec::new(),
            sent: [0; 2],
            challenge: 0,
            events: BTreeMap::new(),
            numbers: 0,
            stream: 0,
            is_open_to: None,
            random: 0x2545_f491_4f6c_dd1d,
        }
    }

    pub(super) fn strict(mut self) -> World {
        self.direction.settings.confirm_tcp = false;
        self
    }

    /// From now on nothing comes back from it, or all does.
    pub(super) fn host(&mut self, port: Port) {
        (self.udp, self.tcp) = (port, port);
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let event = self.events.keys().next().copied();
            let due = self.direction.due();
            let next = event.map_or(due, |(at, _)| at.min(due));
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            let mut actions = Vec::new();
            match event.filter(|(at, _)| *at <= due) {
                Some(key) => {
                    let event = self.events.remove(&key).unwrap();
                    self.happen(event, &mut actions);
                }
                None => {
                    self.direction.tick(self.now, &mut actions);
                    assert!(self.direction.due() > self.now, "it would spin");
                }
            }
            self.act(actions);
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Asked(way, challenge, stream) => {
                let port = if way == Way::Udp { self.udp } else { self.tcp };
                let is_foreign = way == Way::Tcp && self.is_open_to != Some(self.boot);
                if port != Port::Answers {
                    return;
                }
                if is_foreign {
                    return self.later(MILLI, Event::Ended(stream));
                }
                let bytes = self.answer(challenge).encode(None);
                if let Some(delay) = self.delay(way) {
                    self.later(delay, Event::Answered(way, bytes, stream));
                }
            }
            Event::Answered(way, bytes, stream) if way == Way::Udp || stream == self.stream => {
                // Late ones are refused, and that is all.
                let _ = self.direction.heard(way, &bytes, None, self.now, actions);
            }
            Event::Failed(stream) if stream == self.stream => {
                self.direction.stream_failed("connection refused", self.now, actions);
            }
            Event::Ended(stream) if stream == self.stream => {
                self.is_open_to = None;
                self.direction.stream_ended("reset");
            }
            Event::Answered(..) | Event::Failed(_) | Event::Ended(_) => {}
        }
    }

    /// What the host would answer now.
    pub(super) fn answer(&self, challenge: u64) -> Answer {
        let (boot, state) = (self.boot, self.state);
        Answer { challenge, boot, state, load: Some(5000), connections: 7, queue: 1 }
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::SendUdp(challenge) => {
                    self.sent[0] += 1;
                    self.challenge = challenge;
                    if let Some(delay) = self.delay(Way::Udp) {
                        self.later(delay, Event::Asked(Way::Udp, challenge, 0));
                    }
                }
                Action::SendTcp(challenge) => self.send_tcp(challenge),
                Action::CloseTcp => (self.stream, self.is_open_to) = (self.stream + 1, None),
                edge => self.edges.push((self.now, edge)),
            }
        }
    }

    fn send_tcp(&mut self, challenge: u64) {
        self.sent[1] += 1;
        let stream = self.stream;
        let mut wait = Duration::ZERO;
        if self.is_open_to.is_none() {
            match self.tcp {
                Port::Silent => return,
                Port::Refuses => return self.later(2 * MILLI, Event::Failed(stream)),
                Port::Answers => {}
            }
            self.is_open_to = Some(self.boot);
            // SYN and SYN-ACK; what is lost is sent again after 1, 2, 4 s.
            wait = self.again(SECOND) + self.again(SECOND);
        }
        if let Some(delay) = self.delay(Way::Tcp) {
            self.later(wait + delay, Event::Asked(Way::Tcp, challenge, stream));
        }
    }

    fn later(&mut self, delay: Duration, event: Event) {
        self.numbers += 1;
        self.events.insert((self.now + delay, self.numbers), event);
    }

    /// How long a packet is on its way; never, if a datagram is lost.
    fn delay(&mut self, way: Way) -> Option<Duration> {
        match way {
            Way::Udp => (!self.is_lost()).then_some(MILLI),
            Way::Tcp => Some(MILLI + self.again(200 * MILLI)),
        }
    }

    /// How long until a packet of the stream that is sent again and again gets through.
    fn again(&mut self, first: Duration) -> Duration {
        let (mut wait, mut next) = (Duration::ZERO, first);
        while self.is_lost() {
            wait += next;
            next *= 2;
        }
        wait
    }

    fn is_lost(&mut self) -> bool {
        // xorshift64 (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 11) as f64) < self.loss * (1u64 << 53) as f64
    }

    /// The host's end of the stream is gone.
    pub(super) fn act_close(&mut self) {
        self.is_open_to = None;
    }

    /// What is on its way gets lost.
    pub(super) fn forget(&mut self) {
        self.events.clear();
    }

    /// What has become of the link since the last call.
    pub(super) fn news(&mut self) -> Vec<Action> {
        self.edges.drain(..).map(|(_, edge)| edge).collect()
    }

    pub(super) fn mode(&self) -> Mode {
        self.direction.mode()
    }
}
