//! Answers that do not count: how many, and which of them an operator has not heard of yet.

use std::time::Duration;

use realserver_agent::protocol::Refused;

/// The same is told at most so often, however much somebody sends.
const REST: Duration = Duration::from_secs(60);

/// Why an answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Its bytes.
    #[error("{0}")]
    Message(#[from] Refused),
    /// Its challenge.
    #[error("it answers no open question: replayed, forged or much too late")]
    Unasked,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: u64,
    /// When each was told, and whether there has been a good answer since.
    told: Vec<(Refusal, Duration, bool)>,
}

impl Refusals {
    /// Counts one; whether an operator should hear of it.
    pub(super) fn note(&mut self, refusal: Refusal, now: Duration) -> bool {
        self.count += 1;
        let kind = kind(refusal);
        match self.told.iter_mut().find(|(known, ..)| self::kind(*known) == kind) {
            Some((_, then, is_over)) if *is_over && *then + REST <= now => {
                (*then, *is_over) = (now, false);
                true
            }
            Some(_) => false,
            None => {
                self.told.push((refusal, now, false));
                true
            }
        }
    }

    /// A good answer: what is refused after it is news again.
    pub(super) fn good(&mut self) {
        for (.., is_over) in &mut self.told {
            *is_over = true;
        }
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// Refusals alike: of versions there are 255, which are one thing to tell.
fn kind(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Message(Refused::Version { .. }) => Refused::Version { theirs: 0 }.into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_until_a_good_answer_and_at_most_once_a_minute() {
        let mut refusals = Refusals::default();
        let at = Duration::from_secs;
        let version = |theirs| Refusal::Message(Refused::Version { theirs });
        assert!(refusals.note(version(2), at(1)));
        assert!(!refusals.note(version(3), at(2)), "the same");
        assert!(refusals.note(Refusal::Unasked, at(2)), "another");
        assert!(!refusals.note(version(2), at(90)), "no good answer since");
        refusals.good();
        assert!(refusals.note(version(2), at(91)));
        refusals.good();
        assert!(!refusals.note(version(2), at(92)), "within a minute");
        assert_eq!((refusals.count(), refusals.told.len()), (6, 2));
    }
}
