//! Several changes as one: nobody else's in between, and one publication.

use std::time::Duration;

use super::Table;
use crate::control::api::{BatchOutcome, CommandRefusal, OnRefusal};
use crate::control::operations::Command;

impl Table {
    /// Makes the changes in order at `now` (time since start). Workers are shown the services as
    /// they are after the last of them.
    pub fn batch(
        &self,
        commands: Vec<Command>,
        on_refusal: OnRefusal,
        now: Duration,
    ) -> BatchOutcome {
        let mut state = self.lock();
        let mut outcome = BatchOutcome::default();
        if on_refusal == OnRefusal::Undo {
            match self.all_or_nothing(&mut state, commands, now) {
                Ok(applied) => outcome.applied = applied,
                Err(refused) => outcome.refused.push(refused),
            }
            return outcome;
        }
        for (index, command) in commands.into_iter().enumerate() {
            match self.apply(&mut state, command, now) {
                Ok(()) => outcome.applied += 1,
                Err(refusal) => {
                    outcome.refused.push(CommandRefusal { refusal, index });
                    if on_refusal == OnRefusal::Stop {
                        break;
                    }
                }
            }
        }
        self.publish(&mut state);
        outcome
    }
}
