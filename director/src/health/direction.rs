//! The link from the director to the agent on a real server: whether the host lives, whether it is
//! still the same incarnation of it, and what its agent says.
//!
//! A *direction* is what connection-integrity tracking calls the connections that live and die
//! together: here all that a host serves. One direction serves every service that the host is in.
//!
//! ```text
//!   state     asked                     what happens                           then
//!   unknown   UDP each period           an answer                              udp
//!                                       none until timeout                     tcp (still available)
//!   udp       UDP each period           an answer                              udp
//!               from two missed on 3    no more until timeout: TCP answers     tcp
//!               a period, and TCP                              nor does TCP    lost
//!   tcp       TCP each period           an answer                              tcp
//!               UDP each minute         none until timeout, or refused         lost
//!                                       an answer over UDP                     udp
//!   lost      UDP and TCP each period   `rise` answers in a row                udp or tcp: back
//!   any                                 an answer with another boot nonce      same, and: restarted
//! ```
//!
//! Sans-IO: time (since any fixed moment) comes in as an argument, as do answers; what is to be sent,
//! and what has become of the link, goes out as [`Action`]s. It knows no socket and no service.
//!
//! With `confirm_tcp` off a link whose UDP answers stop is lost without asking TCP, so that a
//! firewall that starts to swallow UDP makes a healthy server fail.

mod damping;
mod questions;
mod refusals;

use std::time::Duration;

use realserver_agent::protocol::{Answer, Key, State};

use super::plan::AgentWatch;
use crate::control::health::DirectionView;
use damping::Damping;
use questions::Questions;
pub use questions::Way;
pub use refusals::Refusal;
use refusals::Refusals;

/// How long a question on the stream may be open before a new connection is tried. A lost SYN is sent
/// again after one second (RFC 6298), so that one may get lost.
const STREAM_PATIENCE: Duration = Duration::from_secs(2);
/// From one UDP question to the next while TCP is in use.
const UDP_AGAIN: Duration = Duration::from_secs(60);
/// Beats in a row without an answer from which on it is asked more often, and over TCP.
const MISSES: u32 = 2;
/// How much a period varies at random, percent either way, so that directors and servers do not fall
/// into step.
const JITTER: u64 = 5;

/// How the agent is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nothing is known yet.
    Unknown,
    /// Over UDP.
    Udp,
    /// Over TCP.
    Tcp,
    /// Not at all.
    Lost,
}

impl Mode {
    /// Its word in the control API.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Unknown => "unknown",
            Mode::Udp => "udp",
            Mode::Tcp => "tcp",
            Mode::Lost => "lost",
        }
    }
}

/// What is to be done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a probe with this challenge as a datagram.
    SendUdp(u64),
    /// Send a probe with this challenge on the stream; connect first if there is none.
    SendTcp(u64),
    /// Close the stream, or give up connecting it. Nothing of it counts from now on.
    CloseTcp,
    /// The link is lost: connections made so far are unusable. [`Direction::reason`] says why.
    Lost,
    /// The link is back.
    Back,
    /// The agent is reached in another way.
    Mode,
    /// The host has started anew: connections made so far are dead.
    Restarted,
}

/// See the module.
#[derive(Debug)]
pub struct Direction {
    settings: AgentWatch,
    mode: Mode,
    questions: Questions,
    refusals: Refusals,
    damping: Damping,
    /// When it went into `mode`, later by as much as we were kept from looking.
    since: Duration,
    /// The last answers.
    last_udp: Option<Duration>,
    last_tcp: Option<Duration>,
    /// The question whose answer is the newest.
    newest: u64,
    next_beat: Duration,
    udp_again: Duration,
    /// Since the last beat.
    is_answered: bool,
    misses: u32,
    /// Beats with an answer in a row, while it is lost.
    in_a_row: u32,
    /// The stream is or was in use: what it lacks.
    stream_trouble: Option<String>,
    reason: String,
    incarnation: u32,
    report: Option<(Answer, Duration)>,
    answers: u64,
}

impl Direction {
    /// One that nothing is known of. Its first question is due at once.
    pub fn new(settings: AgentWatch, now: Duration) -> Direction {
        Direction {
            settings,
            mode: Mode::Unknown,
            questions: Questions::new(),
            refusals: Refusals::default(),
            damping: Damping::default(),
            since: now,
            last_udp: None,
            last_tcp: None,
            newest: 0,
            next_beat: now,
            udp_again: now,
            is_answered: true,
            misses: 0,
            in_a_row: 0,
            stream_trouble: None,
            reason: String::new(),
            incarnation: 0,
            report: None,
            answers: 0,
        }
    }

    /// How the agent is reached.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Why it is lost; empty when it is not.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The last answer that counted, and when.
    pub fn report(&self) -> Option<(Answer, Duration)> {
        self.report
    }

    /// How many answers have counted.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Whether an answer with this challenge is one to an open question.
    pub fn is_asked(&self, challenge: u64) -> bool {
        self.questions.is_open(challenge)
    }

    /// When [`tick`](Self::tick) is due next.
    pub fn due(&self) -> Duration {
        self.deadline().map_or(self.next_beat, |deadline| deadline.min(self.next_beat))
    }

    /// What time brings. Early and late calls do no harm: silence while nobody looked is not held
    /// against the server.
    pub fn tick(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if now >= self.next_beat {
            let late = now - self.next_beat;
            if late > self.settings.period {
                self.have_been_kept(late, now);
            }
            self.beat(now, actions);
        }
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            self.expire(now, actions);
        }
    }

    /// The director itself could not ask: the time until `now` does not count.
    pub fn could_not_ask(&mut self, now: Duration) {
        let heard = self.heard_at();
        self.have_been_kept(now.saturating_sub(heard), now);
    }

    fn have_been_kept(&mut self, late: Duration, now: Duration) {
        for then in [&mut self.last_udp, &mut self.last_tcp].into_iter().flatten() {
            *then = (*then + late).min(now);
        }
        self.since = (self.since + late).min(now);
    }

    /// What was heard last in this mode, or when it began.
    fn heard_at(&self) -> Duration {
        let last = match self.mode {
            Mode::Udp => self.last_udp,
            Mode::Tcp => self.last_tcp,
            Mode::Unknown | Mode::Lost => None,
        };
        last.unwrap_or(self.since)
    }

    /// When silence has lasted too long for this mode.
    fn deadline(&self) -> Option<Duration> {
        match self.mode {
            Mode::Lost => None,
            // UDP had its time: this is the one try that TCP has.
            Mode::Tcp if self.last_tcp.is_none() => Some(self.since + self.stream_patience()),
            Mode::Tcp | Mode::Udp | Mode::Unknown => Some(self.heard_at() + self.settings.timeout),
        }
    }

    fn stream_patience(&self) -> Duration {
        STREAM_PATIENCE.min(self.settings.timeout)
    }

    /// Answers over UDP have stopped, or so it seems. Early enough for TCP to have said its word when
    /// the timeout is there.
    fn is_suspect(&self, now: Duration) -> bool {
        self.mode == Mode::Udp
            && (self.misses >= MISSES || now >= self.heard_at() + self.settings.timeout * 3 / 5)
    }

    fn beat(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.is_answered {
            self.misses = 0;
        } else {
            self.misses = self.misses.saturating_add(1);
            self.in_a_row = 0;
        }
        self.is_answered = false;
        self.questions.expire(now.saturating_sub(self.settings.timeout));
        let is_suspect = self.is_suspect(now);
        match self.mode {
            Mode::Unknown => self.ask_udp(now, actions),
            Mode::Udp => {
                self.ask_udp(now, actions);
                if is_suspect && self.settings.confirm_tcp {
                    self.ask_tcp(now, actions);
                } else if !is_suspect && self.stream_trouble.take().is_some() {
                    // A stream of a suspicion that has passed.
                    self.close(actions);
                }
            }
            Mode::Tcp => {
                self.ask_tcp(now, actions);
                if now >= self.udp_again || self.misses >= MISSES {
                    self.udp_again = now + UDP_AGAIN;
                    self.ask_udp(now, actions);
                }
            }
            Mode::Lost => {
                self.ask_udp(now, actions);
                self.ask_tcp(now, actions);
            }
        }
        let period = if is_suspect { self.settings.period / 3 } else { self.settings.period };
        self.next_beat = now + self.questions.vary(period, JITTER);
    }

    fn ask_udp(&mut self, now: Duration, actions: &mut Vec<Action>) {
        actions.extend(self.questions.ask(Way::Udp, now).map(Action::SendUdp));
    }

    fn ask_tcp(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let asked = self.questions.on_stream_since();
        if asked.is_some_and(|then| now >= then + self.stream_patience()) {
            self.stream_trouble = Some("no answer".to_owned());
            self.close(actions);
        }
        if let Some(challenge) = self.questions.ask(Way::Tcp, now) {
            self.stream_trouble.get_or_insert_with(|| "no answer".to_owned());
            actions.push(Action::SendTcp(challenge));
        }
    }

    fn close(&mut self, actions: &mut Vec<Action>) {
        self.questions.forget_stream();
        actions.push(Action::CloseTcp);
    }

    /// The timeout is there.
    fn expire(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match self.mode {
            Mode::Unknown => {
                self.enter(Mode::Tcp, now, actions);
                self.udp_again = now + UDP_AGAIN;
                self.ask_tcp(now, actions);
            }
            Mode::Udp if self.last_tcp > self.last_udp => {
                self.enter(Mode::Tcp, now, actions);
                self.udp_again = now + UDP_AGAIN;
            }
            Mode::Udp | Mode::Tcp => self.lose(now, actions),
            Mode::Lost => {}
        }
    }

    fn enter(&mut self, mode: Mode, now: Duration, actions: &mut Vec<Action>) {
        (self.mode, self.since, self.misses) = (mode, now, 0);
        actions.push(Action::Mode);
    }

    fn lose(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let stream = self.stream_trouble.as_deref().unwrap_or("not asked");
        self.reason = match (self.mode, self.report.is_some()) {
            (_, false) => format!("its agent has never answered, over UDP or TCP (TCP: {stream})"),
            (Mode::Tcp, _) => format!("its agent answers no more over TCP ({stream})"),
            _ => {
                let timeout = self.settings.timeout;
                format!("no answer from its agent for {timeout:?} (TCP: {stream})")
            }
        };
        if let Some(hold) = self.damping.lost(now) {
            let seconds = hold.as_secs();
            self.reason += &format!("; lost three times within a minute: held for {seconds} s");
        }
        (self.mode, self.since) = (Mode::Lost, now);
        (self.misses, self.in_a_row, self.is_answered) = (0, 0, false);
        self.incarnation = self.incarnation.wrapping_add(1);
        self.close(actions);
        actions.push(Action::Lost);
    }

    /// Bytes have come from the agent's address. Over TCP they show at least that the host is there. The error says why they do not count, and whether
    /// that is news for an operator; nothing has changed then but a counter.
    ///
    /// # Errors
    /// Why they do not count.
    pub fn heard(
        &mut self,
        way: Way,
        bytes: &[u8],
        key: Option<&Key>,
        now: Duration,
        actions: &mut Vec<Action>,
    ) -> Result<(), (Refusal, bool)> {
        let question = match Answer::decode(bytes, key) {
            Ok(answer) => {
                let question = self.questions.answered(answer.challenge, way, now);
                question.map(|question| (answer, question)).ok_or(Refusal::Unasked)
            }
            Err(refused) => Err(refused.into()),
        };
        let (answer, question) = question.map_err(|refusal| self.refuse(refusal, way, now))?;
        if question.number < self.newest {
            // Overtaken by a later one: what it says is not so any more.
            return Ok(());
        }
        self.newest = question.number;
        self.refusals.good();
        let boot = self.report.map(|(report, _)| report.boot);
        self.report = Some((answer, now));
        self.answers += 1;
        if boot.is_some_and(|boot| boot != answer.boot) {
            self.incarnation = self.incarnation.wrapping_add(1);
            actions.push(Action::Restarted);
        }
        match way {
            Way::Udp => self.last_udp = Some(now),
            Way::Tcp => self.last_tcp = Some(now),
        }
        let is_first = !std::mem::replace(&mut self.is_answered, true);
        match (self.mode, way) {
            (Mode::Unknown, Way::Udp) => self.enter(Mode::Udp, now, actions),
            (Mode::Tcp, Way::Udp) => {
                self.close(actions);
                self.enter(Mode::Udp, now, actions);
            }
            (Mode::Lost, _) if is_first => {
                self.in_a_row += 1;
                self.come_back(now, actions);
            }
            _ => {}
        }
        Ok(())
    }

    fn come_back(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.in_a_row < self.settings.rise || self.damping.holds(now) {
            return;
        }
        let is_udp = self.last_udp.is_some_and(|last| last >= self.since);
        if is_udp {
            self.close(actions);
        }
        self.udp_again = now + UDP_AGAIN;
        (self.mode, self.since) = (if is_udp { Mode::Udp } else { Mode::Tcp }, now);
        self.misses = 0;
        self.reason.clear();
        actions.push(Action::Back);
    }

    /// What does not count changes nothing. But who writes on a stream is there, whatever it is that
    /// he writes: an agent of another version takes no server down.
    fn refuse(&mut self, refusal: Refusal, way: Way, now: Duration) -> (Refusal, bool) {
        if way == Way::Tcp {
            self.is_there(now);
        }
        (refusal, self.refusals.note(refusal, now))
    }

    /// Something has come over the stream that is no answer: it says that the host lives, no more. One
    /// that is lost comes back by answers only.
    fn is_there(&mut self, now: Duration) {
        self.questions.forget_stream();
        self.last_tcp = Some(now);
        if self.mode != Mode::Lost {
            self.is_answered = true;
        }
    }

    /// No connection: refused, no route, reset while connecting.
    pub fn stream_failed(&mut self, why: &str, now: Duration, actions: &mut Vec<Action>) {
        self.questions.forget_stream();
        self.stream_trouble = Some(why.to_owned());
        if self.mode == Mode::Tcp {
            self.lose(now, actions);
        }
    }

    /// The agent has closed the stream that was open. Who does that without an answer (he may want
    /// another key, or another version) is there all the same.
    pub fn stream_closed(&mut self, why: &str, now: Duration) {
        self.is_there(now);
        self.stream_ended(why);
    }

    /// The stream has ended after it was open. It is opened anew with the next question.
    pub fn stream_ended(&mut self, why: &str) {
        self.questions.forget_stream();
        self.stream_trouble = Some(why.to_owned());
    }

    /// As the control API shows it.
    pub fn view(&self) -> DirectionView {
        let report = self.report.map(|(report, _)| report);
        DirectionView {
            mode: self.mode.word().to_owned(),
            incarnation: self.incarnation,
            boot: report.map(|report| format!("{:016x}", report.boot)),
            round_trip: self.questions.round_trip().as_secs_f64() * 1000.0,
            lost: self.questions.lost(),
            refused: self.refusals.count(),
            agent_state: match report.map(|report| report.state) {
                None => "",
                Some(State::Up) => "up",
                Some(State::Draining) => "draining",
                Some(State::Down) => "down",
            }
            .to_owned(),
            load: report.and_then(|report| report.load),
            connections: report.map_or(0, |report| report.connections),
            queue: report.map_or(0, |report| report.queue),
        }
    }
}

#[cfg(test)]
mod tests;
