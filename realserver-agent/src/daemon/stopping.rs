//! When a drain that SIGTERM has begun is done.

use std::time::Duration;

use tokio::time::Instant;

use crate::answer::Answering;
use crate::standing::Standing;

/// Who has asked within this time is waited for: it is to hear that the host drains before its VIPs
/// go. Five times what a director waits from one probe to the next.
const ASKS: Duration = Duration::from_secs(5);

/// A drain that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopping {
    since: Instant,
    deadline: Instant,
    /// When all who ask had been told; what was counted before may not be all.
    told: Option<Instant>,
}

/// Why it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// Nobody is served any more.
    Empty,
    /// The deadline has come, with so many connections left.
    Deadline(u32),
}

impl Stopping {
    pub(super) fn new(now: Instant, limit: Duration) -> Stopping {
        Stopping { since: now, deadline: now + limit, told: None }
    }

    /// Whether it is done by now.
    pub(super) fn check(
        &mut self,
        now: Instant,
        answering: &Answering,
        standing: &Standing,
    ) -> Option<Done> {
        let report = standing.report();
        let waits = |it: &crate::answer::Asker| {
            it.heard <= self.since && it.heard + ASKS > self.since && it.heard + ASKS > now
        };
        if self.told.is_none() && !answering.askers().iter().any(waits) {
            self.told = Some(now);
        }
        let is_empty = report.connections == 0
            && self.told.is_some_and(|told| report.counted.is_some_and(|counted| counted >= told));
        match () {
            () if is_empty => Some(Done::Empty),
            () if now >= self.deadline => Some(Done::Deadline(report.connections)),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::rc::Rc;

    use super::*;
    use crate::answer::{Over, Policy};
    use crate::load::Report;
    use crate::protocol::Probe;

    fn report(connections: u32, counted: Instant) -> Report {
        Report { connections, counted: Some(counted), ..Report::default() }
    }

    #[tokio::test]
    async fn the_host_stays_until_the_director_knows_and_the_last_connection_is_gone() {
        let standing = Rc::new(Standing::default());
        let answering = Answering::new(1, standing.clone(), Policy::default());
        let ask = || {
            let probe = Probe { challenge: 1 }.encode(None);
            answering.message(&probe, IpAddr::from([10, 0, 0, 1]), Over::Udp).unwrap()
        };
        ask();
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut stopping = Stopping::new(start, 30 * second);
        standing.set_report(report(0, start + second));
        assert_eq!(stopping.check(start + second, &answering, &standing), None, "not told yet");
        std::thread::sleep(Duration::from_millis(1));
        ask();
        let told = start + 2 * second;
        assert_eq!(stopping.check(told, &answering, &standing), None, "counted before");
        standing.set_report(report(1, told));
        assert_eq!(stopping.check(told, &answering, &standing), None, "one is left");
        standing.set_report(report(0, told + second));
        assert_eq!(stopping.check(told + second, &answering, &standing), Some(Done::Empty));
    }

    #[tokio::test]
    async fn a_director_that_is_gone_is_not_waited_for_and_a_deadline_is_one() {
        let standing = Rc::new(Standing::default());
        let answering = Answering::new(1, standing.clone(), Policy::default());
        let probe = Probe { challenge: 1 }.encode(None);
        answering.message(&probe, IpAddr::from([10, 0, 0, 1]), Over::Udp).unwrap();
        let start = Instant::now();
        let mut stopping = Stopping::new(start, 2 * ASKS);
        standing.set_report(report(3, start));
        assert_eq!(stopping.check(start, &answering, &standing), None);
        assert_eq!(stopping.check(start + ASKS, &answering, &standing), None);
        assert!(stopping.told.is_some(), "it has been silent for too long");
        let done = stopping.check(start + 2 * ASKS, &answering, &standing);
        assert_eq!(done, Some(Done::Deadline(3)));
    }
}
