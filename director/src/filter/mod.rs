//! The filter of `mode = "nlb"`: every host receives every packet of the virtual addresses; an XDP
//! program passes this host's share up to its own stack and drops what is another's.
//!
//! ```text
//! membership --> Policy --Filter::publish--> maps <--look-up-- filter (XDP)
//!                   |                         ^                  pass: own MAC address, to the stack
//!                   v                         |                  drop: counted by reason
//!        nlb::filter::decide, the twin        +-- pins, counters --> membership, metrics
//! ```
//!
//! Every frame is counted under the one [`Reason`] for which it was passed or dropped. The
//! program hangs on a BPF link: when the process ends, however it ends, the filter is gone.
//!
//! On veth pairs the kernel decides whose a frame is before the filter has run; there a second
//! program makes good for that (`claim.rs`).
//!
//! Start reading at the chart in `program/mod.rs`. Knows frames and buckets; must not know why a
//! bucket is this host's.

mod claim;
mod error;
mod flows;
mod layout;
mod maps;
mod program;
mod publish;
mod siphash;

#[cfg(test)]
mod tests;

use netio::bpf::{Link, MapError, Program, ProgramType, XdpMode};
use nlb::filter::{Policy, Reason};
use nlb::slot::Slot;

pub use error::FilterError;
pub use flows::{Idle, Pin};
pub use maps::Capacity;

use maps::{HOST_ADDRESSES, Memory, Tables};
use program::Settings;

/// Where the filter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The interface, of this network namespace.
    pub ifindex: u32,
    /// In the driver or at the entry to the stack.
    pub mode: XdpMode,
    /// Whether the driver tells whose a frame is before the filter has run: veth in native mode.
    pub claim: bool,
}

/// The filter of one interface.
#[derive(Debug)]
pub struct Filter {
    memory: Memory,
    tables: Tables,
    settings: Settings,
    /// What the tables say, unless changing them has failed in the middle.
    published: Policy,
    intact: bool,
    program: Program,
    attached: Option<Attached>,
}

#[derive(Debug)]
struct Attached {
    filter: Link,
    claim: Option<Link>,
}

impl Filter {
    /// Loads the program, which does not run anywhere yet.
    ///
    /// # Errors
    /// When it is not permitted, there is no memory, or the hosts have too many addresses.
    pub fn open(policy: &Policy, capacity: Capacity) -> Result<Filter, FilterError> {
        check(policy)?;
        let memory = Memory::new(capacity)?;
        let (settings, tables, program) = build(policy, &memory)?;
        let published = policy.clone();
        Ok(Filter { memory, tables, settings, published, intact: true, program, attached: None })
    }

    /// From now on every frame that the interface receives goes by the filter, until it is dropped
    /// or attached elsewhere.
    ///
    /// # Errors
    /// When another program holds the interface, the driver does not allow it in this mode, or
    /// `claim` is asked for on a kernel older than 6.6.
    pub fn attach(&mut self, place: Place) -> Result<(), FilterError> {
        self.attached = None;
        let claim = place.claim.then(|| load_claim(&self.settings)).transpose()?;
        // Without the second program the first would pass frames to nowhere, so it comes first.
        let claim =
            claim.map(|program| Link::attach_tcx_ingress(&program, place.ifindex)).transpose()?;
        let filter = Link::attach_xdp(&self.program, place.ifindex, place.mode)?;
        self.attached = Some(Attached { filter, claim });
        Ok(())
    }

    /// Decides by this policy from now on. What is remembered of flows stays.
    ///
    /// New rules or virtual addresses come with new tables and a new program, which takes the old
    /// one's place between two frames. Else buckets are given up first and taken then.
    ///
    /// # Errors
    /// When the hosts have too many addresses, and then nothing is changed, or the kernel refuses. If
    /// it does so in the middle, buckets may have been given up that
    /// should be served; the next publication, whichever it is, makes everything anew.
    pub fn publish(&mut self, policy: &Policy) -> Result<(), FilterError> {
        check(policy)?;
        if self.is_same_program(policy) {
            self.intact = false;
            publish::change(&self.tables, &self.published, policy)?;
        } else {
            let (settings, tables, program) = build(policy, &self.memory)?;
            if let Some(attached) = &mut self.attached {
                if let Some(claim) = &mut attached.claim {
                    claim.update(&load_claim(&settings)?)?;
                }
                attached.filter.update(&program)?;
            }
            (self.settings, self.tables, self.program) = (settings, tables, program);
        }
        self.published = policy.clone();
        self.intact = true;
        Ok(())
    }

    /// What the filter decides by: what was published last without an error.
    pub fn published(&self) -> &Policy {
        &self.published
    }

    /// Frames by reason, since the filter was opened.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn counters(&self) -> Result<Vec<(Reason, u64)>, MapError> {
        let count =
            |reason: &Reason| Ok((*reason, self.memory.counters.sum(reason.number().into())?));
        Reason::ALL.iter().map(count).collect()
    }

    /// TCP flows that this host has let begin in a slot, since the filter was opened: SYNs, also
    /// repeated ones.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn opened(&self, slot: Slot) -> Result<u64, MapError> {
        self.memory.opened.sum(slot.get().into())
    }

    /// The program, for tests and measurements.
    pub fn program(&self) -> &Program {
        &self.program
    }

    fn is_same_program(&self, policy: &Policy) -> bool {
        self.intact
            && self.settings == Settings::of(policy)
            && self.published.vips == policy.vips
            && self.published.rules == policy.rules
    }
}

/// What could not be written.
fn check(policy: &Policy) -> Result<(), FilterError> {
    let given = policy.own.len() + policy.peers.len();
    match given <= HOST_ADDRESSES {
        true => Ok(()),
        false => Err(FilterError::TooManyAddresses { given, most: HOST_ADDRESSES }),
    }
}

fn build(policy: &Policy, memory: &Memory) -> Result<(Settings, Tables, Program), FilterError> {
    let settings = Settings::of(policy);
    let tables = Tables::new(policy)?;
    publish::fill(&tables, policy)?;
    let insns = program::filter(&settings, &tables, memory);
    // Large MTUs are for kernels from 5.18 on; what another refuses for that, it takes without.
    let load = |kind| Program::load(kind, "nlb_filter", &insns);
    let program = load(ProgramType::XdpFragments).or_else(|_| load(ProgramType::Xdp))?;
    Ok((settings, tables, program))
}

fn load_claim(settings: &Settings) -> Result<Program, FilterError> {
    let insns = claim::claim(settings.own_mac());
    Ok(Program::load(ProgramType::SchedCls, "nlb_claim", &insns)?)
}
