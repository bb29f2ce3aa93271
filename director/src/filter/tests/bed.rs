//! What the tests have in common: a policy, and the filter in the kernel beside its twin.

use std::net::IpAddr;

use netio::bpf::{LoadError, MapError, TestContext, xdp};
use nlb::filter::{Decision, HostState, Memory, Policy, Reason, decide};
use nlb::key::HashKey;
use nlb::rules::Rules;

use super::frames::{CLUSTER_MAC, OWN_MAC};
use crate::filter::{Capacity, Filter, FilterError};

pub(super) const PRIMARY: &str = "192.0.2.10";
pub(super) const PRIMARY_IPV6: &str = "2001:db8::10";
pub(super) const OWN: &str = "192.0.2.21";
pub(super) const PEER: &str = "192.0.2.22";

pub(super) fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// An active host that serves nothing.
pub(super) fn policy(rules: Rules) -> Policy {
    let hash = HashKey { k0: 0x0706_0504_0302_0100, k1: 0x0f0e_0d0c_0b0a_0908 };
    Policy {
        state: HostState::Active,
        vips: vec![address(PRIMARY), address(PRIMARY_IPV6)],
        ..Policy::new(OWN_MAC, CLUSTER_MAC, address(PRIMARY), rules, hash)
    }
}

/// `None`, with a word about it, when the process may not load programs.
pub(super) fn opened(filter: Result<Filter, FilterError>) -> Option<Filter> {
    match filter {
        Err(
            FilterError::Map(MapError::NotPermitted { .. })
            | FilterError::Load(LoadError::NotPermitted { .. }),
        ) => {
            eprintln!("skipped: needs root to load eBPF programs");
            None
        }
        filter => Some(filter.unwrap_or_else(|error| panic!("{error}"))),
    }
}

/// The filter and its twin, side by side.
pub(super) struct Bed {
    pub(super) filter: Filter,
    pub(super) twin: Memory,
    /// Frames by reason, as the twin has it.
    pub(super) counts: [u64; Reason::ALL.len()],
}

impl Bed {
    pub(super) fn new(policy: &Policy) -> Option<Bed> {
        let capacity = Capacity { flows: 1 << 17, fragments: 1 << 15 };
        let filter = opened(Filter::open(policy, capacity))?;
        Some(Bed { filter, twin: Memory::default(), counts: [0; Reason::ALL.len()] })
    }

    /// Shows a frame to both, and says how they differ: in verdict, reason or the frame's bytes.
    pub(super) fn step(&mut self, frame: &[u8]) -> Result<Decision, String> {
        let decision = decide(frame, self.filter.published(), &mut self.twin);
        let context = TestContext::default();
        let run = self.filter.program().test_run(frame, &context).expect("a test run");
        let reason = usize::from(decision.reason.number());
        self.counts[reason] += 1;
        let count = self.filter.memory.counters.sum(reason as u32).expect("a counter");
        if count != self.counts[reason] {
            return Err(format!(
                "{} is not the program's reason: {}",
                decision.reason,
                self.other()
            ));
        }
        let verdict = if decision.passes() { xdp::PASS } else { xdp::DROP };
        if run.verdict != verdict {
            return Err(format!("{}, but the verdict was {}", decision.reason, run.verdict));
        }
        let mut expected = frame.to_vec();
        if decision.to_own_mac {
            expected[..6].copy_from_slice(&OWN_MAC);
        }
        if run.data != expected {
            return Err(format!("{}: the frame became {:02x?}", decision.reason, run.data));
        }
        Ok(decision)
    }

    /// The reason that the program has counted and the twin has not.
    fn other(&self) -> String {
        let counters = self.filter.counters().expect("counters");
        let more = counters.iter().zip(self.counts).find(|((_, count), twin)| count > twin);
        more.map_or("none".to_owned(), |((reason, _), _)| reason.to_string())
    }
}
