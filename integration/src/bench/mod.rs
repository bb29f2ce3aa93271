//! What the director costs: per packet, per new connection, per connection kept, through real
//! sockets, while its services change, when there is nothing to do, and when an operator lists what
//! it has.
//!
//! Every figure stands beside its *floor*, the least that a program must do for the same, measured
//! in turn with it in the same run: a busy neighbour on the machine slows both, and what one
//! compares between two machines or two days is the ratio. Values are medians of many short
//! rounds. Nothing here fails because it is slow; it fails when there was nothing to measure,
//! because packets did not arrive.
//!
//! | module | figures | needs |
//! |---|---|---|
//! | `pipeline` | `pipeline/...`: ns per packet over a port in memory, one worker and two | |
//! | `scheduling` | `new/...`: new connections per second by scheduler | |
//! | `placement` | `dht/...`: ns per look-up in the table of dht | |
//! | `memory` | `memory/...`: bytes per connection | 2 GiB or more |
//! | `stall` | `stall/...`: the longest call while the table grows and while connections expire | |
//! | `publish` | `publish/...`: services change while packets flow | root for `publish/lab-...` |
//! | `filter` | `filter/...`: ns per frame of nlb mode's XDP program | root |
//! | `lab` | `lab/...`, `idle/cpu`, `ipvsadm/...`: a real director on veth pairs | root |

mod chart;
mod compare;
mod director;
mod figure;
mod filter;
mod floor;
mod flows;
mod frames;
mod lab;
mod machine;
mod markdown;
mod memory;
mod pipeline;
mod placement;
mod preference;
mod publish;
mod report;
mod scheduling;
mod stall;
mod template;
mod turns;

use anyhow::{Result, ensure};

pub use chart::chart;
pub use compare::compare;
pub use figure::{Better, Figure, Target};
pub use machine::describe;
pub use markdown::markdown;
pub use memory::measure_here as measure_memory;
pub use preference::Preference;
pub use report::{json, parse, table};

/// How much to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Only what has this in its name.
    pub only: String,
    /// A look at whether everything works: small sizes, few rounds, figures of no worth.
    pub quick: bool,
    /// Rounds of 256 packets for each figure over the memory port; `None`: 800, or 20 for a look.
    pub rounds: Option<usize>,
}

impl Plan {
    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 20 } else { 800 }).clamp(1, MOST_ROUNDS)
    }
}

/// So many new connections fit into the table, and have clients of their own.
const MOST_ROUNDS: usize = 40_000;

/// What has been measured so far.
struct Run<'a> {
    plan: &'a Plan,
    figures: Vec<Figure>,
    tell: &'a mut dyn FnMut(&str),
}

impl Run<'_> {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.plan.only)
    }

    fn tell(&mut self, what: &str) {
        (self.tell)(what);
    }

    /// Adds a figure, if it is wanted: some can only be measured along with others.
    fn add(&mut self, figure: Figure) {
        if self.wants(&figure.name) {
            self.figures.push(figure);
        }
    }
}

/// Measures; `tell` is told what is under way and what is left out.
///
/// # Errors
/// When something could not be built, or packets were not sent on: then there is nothing to
/// measure.
pub fn run(plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<Vec<Figure>> {
    let mut run = Run { plan, figures: Vec::new(), tell };
    pipeline::run(&mut run)?;
    scheduling::run(&mut run)?;
    placement::run(&mut run)?;
    memory::run(&mut run)?;
    stall::run(&mut run)?;
    publish::run(&mut run)?;
    filter::run(&mut run)?;
    lab::run(&mut run)?;
    let Run { figures, .. } = run;
    ensure!(!figures.is_empty(), "nothing was measured that has {:?} in its name", plan.only);
    Ok(figures)
}
