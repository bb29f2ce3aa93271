//! The questions that are open, and what became of the last hundred: round trip and loss.
//!
//! Challenges are at random, and known to nobody who has not seen the question.

use std::time::Duration;

use crate::health::chance::Dice;

/// The way that a question takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A datagram.
    Udp,
    /// The stream.
    Tcp,
}

/// Open questions of a direction: seven datagrams and one on the stream, which loses none.
const OPEN_DATAGRAMS: usize = 7;
/// Questions that the loss is of.
const REMEMBERED: u32 = 100;

/// One open question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    challenge: u64,
    way: Way,
    sent: Duration,
    /// Counted from 1, over both ways: which of two questions is the later one.
    pub(super) number: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Questions {
    /// The oldest first; at most [`OPEN_DATAGRAMS`] + 1.
    open: Vec<Question>,
    dice: Dice,
    asked: u64,
    /// A bit for each of the last questions that is no longer open, the newest lowest: 1 = lost.
    losses: u128,
    counted: u32,
    round_trip: Option<Duration>,
}

impl Questions {
    pub(super) fn new() -> Questions {
        Questions {
            open: Vec::with_capacity(OPEN_DATAGRAMS + 1),
            dice: Dice::default(),
            asked: 0,
            losses: 0,
            counted: 0,
            round_trip: None,
        }
    }

    /// A new question's challenge; `None` when one is open on the stream already. The oldest of too
    /// many datagrams counts as lost.
    pub(super) fn ask(&mut self, way: Way, now: Duration) -> Option<u64> {
        let open = self.open.iter().filter(|question| question.way == way).count();
        match way {
            Way::Tcp if open > 0 => return None,
            Way::Udp if open >= OPEN_DATAGRAMS => self.give_up_oldest(),
            _ => {}
        }
        self.asked += 1;
        let (challenge, number) = (self.dice.throw(), self.asked);
        self.open.push(Question { challenge, way, sent: now, number });
        Some(challenge)
    }

    fn give_up_oldest(&mut self) {
        if let Some(oldest) = self.open.iter().position(|question| question.way == Way::Udp) {
            self.open.remove(oldest);
            self.count(true);
        }
    }

    /// Takes the answer to an open question: that question, which is open no more.
    pub(super) fn answered(&mut self, challenge: u64, way: Way, now: Duration) -> Option<Question> {
        let place = self.open.iter().position(|q| q.challenge == challenge && q.way == way)?;
        let question = self.open.remove(place);
        let sample = now.saturating_sub(question.sent);
        // RFC 6298 section 2, with the same weight of one eighth.
        let smoothed = self.round_trip.map_or(sample, |old| (old * 7 + sample) / 8);
        self.round_trip = Some(smoothed);
        if way == Way::Udp {
            self.count(false);
        }
        Some(question)
    }

    /// Whether an answer to it would be one to an open question.
    pub(super) fn is_open(&self, challenge: u64) -> bool {
        self.open.iter().any(|question| question.challenge == challenge)
    }

    /// When the question on the stream was asked, if one is open.
    pub(super) fn on_stream_since(&self) -> Option<Duration> {
        self.open.iter().find(|question| question.way == Way::Tcp).map(|question| question.sent)
    }

    /// The stream is no more: nor is its question. It says nothing of loss.
    pub(super) fn forget_stream(&mut self) {
        self.open.retain(|question| question.way != Way::Tcp);
    }

    /// Datagrams that were sent before `then` are lost.
    pub(super) fn expire(&mut self, then: Duration) {
        let before = self.open.len();
        self.open.retain(|question| question.way == Way::Tcp || question.sent >= then);
        for _ in self.open.len()..before {
            self.count(true);
        }
    }

    fn count(&mut self, is_lost: bool) {
        self.losses = self.losses << 1 | u128::from(is_lost);
        self.counted = (self.counted + 1).min(REMEMBERED);
    }

    /// Smoothed; zero before the first answer.
    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip.unwrap_or_default()
    }

    /// Lost ones among the last hundred datagrams, percent.
    pub(super) fn lost(&self) -> f64 {
        if self.counted == 0 {
            return 0.0;
        }
        let among = self.losses & ((1 << REMEMBERED) - 1);
        f64::from(among.count_ones()) * 100.0 / f64::from(self.counted)
    }

    /// `time`, up to so many percent of it longer or shorter.
    pub(super) fn vary(&mut self, time: Duration, percent: u64) -> Duration {
        self.dice.vary(time, percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn at_most_eight_are_open_and_each_is_answered_once_and_by_its_own_way() {
        let mut questions = Questions::new();
        let asked: Vec<u64> = (0..10).map(|_| questions.ask(Way::Udp, SECOND).unwrap()).collect();
        let stream = questions.ask(Way::Tcp, SECOND).unwrap();
        assert_eq!(questions.ask(Way::Tcp, SECOND), None, "one on the stream");
        assert_eq!(questions.open.len(), 8);
        assert!(questions.answered(asked[2], Way::Udp, SECOND).is_none(), "given up");
        assert!(questions.answered(asked[3], Way::Tcp, SECOND).is_none(), "another way");
        assert!(questions.answered(asked[3], Way::Udp, SECOND).is_some());
        assert!(questions.answered(asked[3], Way::Udp, SECOND).is_none(), "replayed");
        assert!(questions.answered(stream, Way::Tcp, SECOND).is_some());
    }

    #[test]
    fn loss_is_that_of_the_last_hundred_and_the_round_trip_is_smoothed() {
        let mut questions = Questions::new();
        let mut ask = |is_lost: bool, took: u64| {
            let challenge = questions.ask(Way::Udp, SECOND).unwrap();
            if is_lost {
                questions.expire(SECOND * 2);
            } else {
                questions.answered(challenge, Way::Udp, SECOND + Duration::from_millis(took));
            }
            (questions.lost(), questions.round_trip())
        };
        assert_eq!(ask(true, 0), (100.0, Duration::ZERO));
        assert_eq!(ask(false, 8), (50.0, Duration::from_millis(8)));
        assert_eq!(ask(false, 16).1, Duration::from_millis(9));
        for _ in 0..98 {
            ask(false, 9);
        }
        assert_eq!(ask(true, 0).0, 1.0);
    }

    #[test]
    fn challenges_differ_between_directions() {
        let challenge = || Questions::new().ask(Way::Udp, SECOND);
        assert_ne!(challenge(), challenge());
    }
}
