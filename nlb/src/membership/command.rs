//! What an operator may ask of a host, and what it answers.

use std::time::Duration;

use crate::buckets::BucketSet;
use crate::heartbeat::{Operator, Phase};
use crate::host::HostSet;
use crate::slot::Slot;

use super::{Cause, Drain, Event, Membership, Standing};

/// A command to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Join the cluster; ends a drain.
    Start,
    /// Leave at once; connections of this host break.
    Stop,
    /// Take no new flows; leave when the last has ended, or when so much time has passed.
    DrainStop(Option<Duration>),
    /// Leave at once and refuse everything but `Resume`.
    Suspend,
    /// Ends a suspension; the host is stopped then.
    Resume,
}

/// A command to one slot of a host, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotCommand {
    /// Serve again.
    Enable,
    /// Serve no more, old flows neither.
    Disable,
    /// Take no new flows.
    Drain,
    /// Take this weight, 0 to 100.
    Weight(u8),
}

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done, or begun.
    Done,
    /// Nothing to do: it is so already.
    Already,
    /// Done; a drain was cut short by it.
    DrainInterrupted,
    /// Refused: the host is suspended, `resume` first.
    Suspended,
    /// Refused: the host is stopped, `start` first.
    Stopped,
    /// Refused: no such rule.
    NotFound,
    /// Refused: a value is out of its range.
    BadParameters,
}

impl Answer {
    /// All of them, in the order of their numbers on the wire.
    pub const ALL: [Answer; 7] = [
        Answer::Done,
        Answer::Already,
        Answer::DrainInterrupted,
        Answer::Suspended,
        Answer::Stopped,
        Answer::NotFound,
        Answer::BadParameters,
    ];

    /// The answer as a word.
    pub const fn label(self) -> &'static str {
        match self {
            Answer::Done => "done",
            Answer::Already => "already",
            Answer::DrainInterrupted => "drain-interrupted",
            Answer::Suspended => "suspended",
            Answer::Stopped => "stopped",
            Answer::NotFound => "not-found",
            Answer::BadParameters => "bad-parameters",
        }
    }
}

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    Start,
    CancelDrain,
    Drain,
    Stop,
    Suspend,
    Resume,
}

type Cell = (Answer, Effect);

const ALREADY: Cell = (Answer::Already, Effect::None);
const LOCKED: Cell = (Answer::Suspended, Effect::None);

/// Commands and states; the rows are in the order of [`Command`].
#[rustfmt::skip]
const TABLE: [[Cell; 4]; 5] = [
    //             suspended                       stopped                          member                        draining
    /* start   */ [LOCKED,                         (Answer::Done, Effect::Start),   ALREADY,                      (Answer::Done, Effect::CancelDrain)],
    /* stop    */ [LOCKED,                         ALREADY,                         (Answer::Done, Effect::Stop), (Answer::DrainInterrupted, Effect::Stop)],
    /* drain   */ [LOCKED,                         ALREADY,                         (Answer::Done, Effect::Drain), ALREADY],
    /* suspend */ [ALREADY,                        (Answer::Done, Effect::Suspend), (Answer::Done, Effect::Suspend), (Answer::DrainInterrupted, Effect::Suspend)],
    /* resume  */ [(Answer::Done, Effect::Resume), ALREADY,                         ALREADY,                      ALREADY],
];

impl Membership {
    /// Carries out a command; the table of commands and states says what it does.
    pub fn command(&mut self, command: Command, now: Duration) -> Answer {
        self.advance(now);
        let row = match command {
            Command::Start => 0,
            Command::Stop => 1,
            Command::DrainStop(_) => 2,
            Command::Suspend => 3,
            Command::Resume => 4,
        };
        let column = match (self.standing, self.drain) {
            (Standing::Suspended, _) => 0,
            (Standing::Stopped, _) => 1,
            (Standing::Member, None) => 2,
            (Standing::Member, Some(_)) => 3,
        };
        let (answer, effect) = TABLE[row][column];
        if answer == Answer::DrainInterrupted {
            self.journal.note(Event::DrainInterrupted);
        }
        match effect {
            Effect::None => return answer,
            Effect::Start => self.start(),
            Effect::CancelDrain => {
                self.drain = None;
                self.journal.note(Event::DrainInterrupted);
            }
            Effect::Drain => {
                let Command::DrainStop(within) = command else { return answer };
                self.start_drain(within);
            }
            Effect::Stop => self.leave(Standing::Stopped),
            Effect::Suspend => {
                if self.standing == Standing::Member {
                    self.leave(Standing::Suspended);
                }
                self.standing = Standing::Suspended;
                self.journal.note(Event::Suspended);
            }
            Effect::Resume => {
                self.standing = Standing::Stopped;
                self.journal.note(Event::Resumed);
            }
        }
        self.maps_version += 1;
        self.evaluate();
        answer
    }

    fn start(&mut self) {
        self.standing = Standing::Member;
        self.drain = None;
        self.in_round = false;
        self.pulse.begin(self.now);
        self.converge(Cause::Started);
    }

    /// Leaves: says goodbye, serves nothing.
    fn leave(&mut self, standing: Standing) {
        self.void();
        self.standing = standing;
        self.drain = None;
        self.quarantine = None;
        self.in_round = false;
        self.view.hosts = HostSet::EMPTY;
        self.journal.note(Event::Stopped);
        self.pulse.end(self.now);
    }

    fn start_drain(&mut self, within: Option<Duration>) {
        self.drain = Some(Drain {
            since: self.now,
            deadline: within.map(|within| self.now + within),
            flows_at_start: self.flow_count(),
        });
        self.want_flows();
        self.journal.note(Event::DrainStarted);
    }

    pub(super) fn flow_count(&self) -> u64 {
        self.slots.iter().map(|slot| u64::from(slot.flow_count)).sum()
    }

    /// A drain ends when this host serves nothing any more and its last flow has ended, or at its
    /// deadline.
    pub(super) fn advance_drain(&mut self) {
        let Some(drain) = self.drain else { return };
        let serves = self.slots.iter().any(|slot| !slot.serving.is_empty());
        let handed_over = self.all_others_have_converged() && !serves && !self.flows_wanted;
        let late = drain.deadline.is_some_and(|deadline| deadline <= self.now);
        let never_served = self.committed.is_empty() || self.quarantine.is_some();
        if late || (handed_over && self.flow_count() == 0) || (never_served && !serves) {
            self.leave(Standing::Stopped);
            self.maps_version += 1;
        }
    }

    /// Whether this host's leaving is in force everywhere.
    fn all_others_have_converged(&self) -> bool {
        let there = |host| {
            self.last(host)
                .is_some_and(|last| last.phase == Phase::Converged && last.view == self.view)
        };
        self.converged && self.members().all(there)
    }

    /// A command to one slot, or to all when `slot` is `None`. It takes effect here at once where it
    /// takes something away, and everywhere with the next convergence.
    pub fn slot_command(
        &mut self,
        slot: Option<Slot>,
        command: SlotCommand,
        now: Duration,
    ) -> Answer {
        self.advance(now);
        match self.standing {
            Standing::Suspended => return Answer::Suspended,
            Standing::Stopped => return Answer::Stopped,
            Standing::Member => {}
        }
        if matches!(command, SlotCommand::Weight(101..)) {
            return Answer::BadParameters;
        }
        let chosen: Vec<Slot> =
            self.slots_in_order().filter(|&each| slot.is_none_or(|slot| slot == each)).collect();
        if chosen.is_empty() {
            return Answer::NotFound;
        }
        let mut answer = Answer::Already;
        for slot in chosen {
            if self.change_slot(slot, command) {
                answer = Answer::Done;
                self.journal.note(Event::SlotChanged(slot.get()));
            }
        }
        self.evaluate();
        answer
    }

    fn change_slot(&mut self, slot: Slot, command: SlotCommand) -> bool {
        let plan = &mut self.plan.slots[slot.index()];
        let before = *plan;
        match command {
            SlotCommand::Enable => plan.operator = Operator::Enabled,
            SlotCommand::Disable => plan.operator = Operator::Disabled,
            SlotCommand::Drain => plan.operator = Operator::Draining,
            SlotCommand::Weight(weight) => plan.weight = weight,
        }
        let changed = *plan != before;
        if changed && command == SlotCommand::Disable {
            self.slots[slot.index()].give_up(&BucketSet::ALL);
            self.maps_version += 1;
        }
        changed
    }
}
