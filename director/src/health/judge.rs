//! How a server stands in a service, made of all that is known of it; and how the service stands.
//!
//! Pure: no time, no table, no counting. What goes in has been counted by others.
//!
//! ```text
//!   direction lost, agent says down, or any check down     -> down      hard: connections are dead
//!   agent says draining, or any check draining             -> draining  soft: connections stay
//!   nobody has said anything, and it was not up before     -> as before
//!   nobody has said anything                               -> unchecked
//!   otherwise                                              -> up
//! ```

use realserver_agent::protocol::State;

use super::direction::Mode;
use super::plan::AllDown;
use super::tally::Tally;
use crate::control::health::HealthState;

/// What is known of the link to a server's agent.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// How the agent is reached.
    pub mode: Mode,
    /// Why it is not.
    pub reason: &'a str,
    /// What it said last of its host, if it has ever been heard.
    pub said: Option<State>,
}

/// How a server was before, when that must not be forgotten: it holds until every check and the agent
/// have said something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// Down or draining.
    pub state: HealthState,
    /// Why.
    pub reason: String,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// See the module.
    pub state: HealthState,
    /// Why; empty when all is well.
    pub reason: String,
}

/// The judgement over one server. `checks`: each with its name.
pub fn server<'a>(
    checks: impl Iterator<Item = (&'a str, &'a Tally)> + Clone,
    link: Option<Link<'_>>,
    before: Option<&Before>,
) -> Verdict {
    let of_link = link.map(voice);
    let voices = || of_link.iter().map(|(state, _)| *state);
    let of_checks = || checks.clone().map(|(_, tally)| tally.state());
    for state in [HealthState::Down, HealthState::Draining] {
        if let Some((_, reason)) = of_link.as_ref().filter(|(said, _)| *said == state) {
            return Verdict { state, reason: reason.clone() };
        }
        if let Some((kind, tally)) = checks.clone().find(|(_, tally)| tally.state() == state) {
            return Verdict { state, reason: format!("{kind}: {}", tally.words()) };
        }
        // What it was before weighs as much, as long as somebody has not spoken.
        let is_open = voices().chain(of_checks()).any(|state| state == HealthState::Unchecked);
        if let Some(before) = before.filter(|before| is_open && before.state == state) {
            return Verdict { state, reason: before.reason.clone() };
        }
    }
    let has_spoken = voices().chain(of_checks()).any(|state| state == HealthState::Up);
    let state = if has_spoken { HealthState::Up } else { HealthState::Unchecked };
    Verdict { state, reason: String::new() }
}

/// Whether all of them have said something, so that what was before does not matter any more.
pub fn is_complete<'a>(
    mut checks: impl Iterator<Item = &'a Tally>,
    link: Option<Link<'_>>,
) -> bool {
    checks.all(|tally| tally.state() != HealthState::Unchecked)
        && link.is_none_or(|link| voice(link).0 != HealthState::Unchecked)
}

fn voice(link: Link<'_>) -> (HealthState, String) {
    match (link.mode, link.said) {
        (Mode::Lost, _) => (HealthState::Down, link.reason.to_owned()),
        (_, None) => (HealthState::Unchecked, String::new()),
        (_, Some(State::Down)) => (HealthState::Down, "its agent says: down".to_owned()),
        (_, Some(State::Draining)) => {
            (HealthState::Draining, "its agent says: draining".to_owned())
        }
        (_, Some(State::Up)) => (HealthState::Up, String::new()),
    }
}

/// Whether a server in this state serves.
pub fn serves(state: HealthState) -> bool {
    matches!(state, HealthState::Up | HealthState::Unchecked)
}

/// How a service stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// None of its servers serves, and there are some with a weight.
    pub are_all_down: bool,
    /// Servers in this state take new connections all the same.
    pub kept: Option<HealthState>,
    /// New connections go to the fallback server.
    pub falls_back: bool,
}

/// The judgement over a service, of the states of those of its servers that have a weight.
pub fn service(states: impl Iterator<Item = HealthState> + Clone, all_down: AllDown) -> Situation {
    let are_all_down = states.clone().next().is_some() && !states.clone().any(serves);
    if !are_all_down {
        return Situation::default();
    }
    let has_failed = states.clone().any(|state| state == HealthState::Down);
    // Who asked to be left alone is left alone, unless there is nobody else.
    let kept = if has_failed { HealthState::Down } else { HealthState::Draining };
    Situation {
        are_all_down,
        kept: (all_down == AllDown::Keep).then_some(kept),
        falls_back: all_down == AllDown::Fallback,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use HealthState::{Down, Draining, Unchecked, Up};

    use super::*;
    use crate::health::outcome::Outcome;
    use crate::health::plan::Check;

    fn tally(state: HealthState) -> Tally {
        let mut tally = Tally::new(&Check { rise: 1, fall: 1, ..Check::default() }, false);
        let words = "words".to_owned();
        match state {
            Unchecked => {}
            Up => drop(tally.note(&Outcome::PASSED, Duration::ZERO)),
            Draining => drop(tally.note(&Outcome::Soft(words), Duration::ZERO)),
            Down => drop(tally.note(&Outcome::Failed(words), Duration::ZERO)),
        }
        assert_eq!(tally.state(), state);
        tally
    }

    const fn link(mode: Mode, said: Option<State>) -> Option<Link<'static>> {
        Some(Link { mode, reason: "lost", said })
    }

    #[test]
    fn the_worst_that_is_known_of_a_server_counts() {
        let up = link(Mode::Udp, Some(State::Up));
        for (checks, link, state, reason) in [
            (&[][..], None, Unchecked, ""),
            (&[Unchecked, Unchecked], None, Unchecked, ""),
            (&[Unchecked, Up], None, Up, ""),
            (&[Up, Up], up, Up, ""),
            (&[Up, Draining, Up], up, Draining, "b: words"),
            (&[Draining, Down], up, Down, "b: words"),
            (&[Up], link(Mode::Tcp, Some(State::Draining)), Draining, "its agent says: draining"),
            (&[Draining], link(Mode::Udp, Some(State::Down)), Down, "its agent says: down"),
            (&[Up], link(Mode::Lost, Some(State::Up)), Down, "lost"),
            (&[Up], link(Mode::Lost, None), Down, "lost"),
            (&[Unchecked], link(Mode::Unknown, None), Unchecked, ""),
            (&[Up], link(Mode::Tcp, None), Up, ""),
        ] {
            let tallies: Vec<Tally> = checks.iter().map(|state| tally(*state)).collect();
            let named = ["a", "b", "c"].into_iter().zip(&tallies);
            let verdict = server(named, link, None);
            assert_eq!((verdict.state, verdict.reason.as_str()), (state, reason), "{checks:?}");
        }
    }

    #[test]
    fn what_was_before_holds_until_all_have_spoken_and_makes_nothing_better() {
        for (was, checks, link, state) in [
            (Down, [Unchecked, Up], None, Down),
            (Down, [Draining, Unchecked], None, Down),
            (Down, [Up, Up], None, Up),
            (Draining, [Up, Unchecked], None, Draining),
            (Draining, [Down, Unchecked], None, Down),
            (Down, [Up, Up], link(Mode::Unknown, None), Down),
            (Down, [Up, Up], link(Mode::Udp, Some(State::Up)), Up),
        ] {
            let before = Before { state: was, reason: "before".to_owned() };
            let tallies = checks.map(tally);
            let named = ["a", "b"].into_iter().zip(&tallies);
            let verdict = server(named, link, Some(&before));
            assert_eq!(verdict.state, state, "{was:?} {checks:?}");
            let is_over = is_complete(tallies.iter(), link);
            assert_eq!(is_over, state == Up, "{checks:?}");
        }
    }

    #[test]
    fn a_service_whose_servers_have_all_failed_keeps_drops_or_falls_back() {
        let all = |states: &[HealthState], all_down| service(states.iter().copied(), all_down);
        let fine = Situation::default();
        for all_down in [AllDown::Keep, AllDown::Drop, AllDown::Fallback] {
            assert_eq!(all(&[], all_down), fine, "no servers, or none with a weight");
            assert_eq!(all(&[Down, Up], all_down), fine);
            assert_eq!(all(&[Down, Unchecked], all_down), fine);
        }
        let failed = Situation { are_all_down: true, ..fine };
        let kept = |state| Situation { kept: Some(state), ..failed };
        assert_eq!(all(&[Down, Draining], AllDown::Keep), kept(Down), "who drains is left alone");
        assert_eq!(all(&[Draining, Draining], AllDown::Keep), kept(Draining));
        assert_eq!(all(&[Down, Draining], AllDown::Drop), failed);
        let falls_back = Situation { falls_back: true, ..failed };
        assert_eq!(all(&[Down], AllDown::Fallback), falls_back);
    }
}
